//! Every shape that crosses a boundary, as serde types without I/O.
//!
//! | what | where |
//! |---|---|
//! | names that were parsed once | [`ids`] |
//! | what to mount | [`mount_plan`], [`locate`] |
//! | conversations | [`message`], [`content`], [`tool`], [`text`], [`address`] |
//! | model calls | [`chat`], [`stream`], [`usage`], [`provider`], [`llm_error`] |
//! | hooks and events | [`hook`], [`event`] |
//! | sessions | [`status`], [`spend`], [`record`], [`run`], [`time`] |
//! | modules | [`module_info`] |
//! | calls between processes | [`frame`] |

#![deny(missing_docs)]

pub mod address;
pub mod chat;
pub mod content;
pub mod event;
pub mod frame;
pub mod hook;
pub mod ids;
pub mod llm_error;
pub mod locate;
pub mod message;
pub mod module_info;
pub mod mount_plan;
pub mod provider;
pub mod record;
pub mod run;
pub mod spend;
pub mod status;
pub mod stream;
pub mod text;
pub mod time;
pub mod tool;
pub mod usage;
