//! A screen that keeps what was shown.

use std::sync::Mutex;

use amplifier_core::contracts::{DisplayMessage, DisplaySystem};
use async_trait::async_trait;

use crate::sync::lock;

/// Keeps every message.
#[derive(Default)]
pub struct RecordingDisplay(Mutex<Vec<DisplayMessage>>);

impl RecordingDisplay {
    /// An empty screen.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that was shown, in order.
    pub fn messages(&self) -> Vec<DisplayMessage> {
        lock(&self.0).clone()
    }
}

#[async_trait]
impl DisplaySystem for RecordingDisplay {
    async fn show_message(&self, message: DisplayMessage) {
        lock(&self.0).push(message);
    }
}
