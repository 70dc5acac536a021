//! The kernel's integration tests: one binary, a file per topic.

mod validate;
