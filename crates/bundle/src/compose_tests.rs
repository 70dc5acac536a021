//! Merge rules.
