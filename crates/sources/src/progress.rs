//! What a fetch tells while it runs. Showing it is for whoever asked.

/// Hears how fetches go. Called from the fetch itself: it must be quick and must not wait.
pub trait Progress: Send + Sync {
    fn report(&self, report: &Report);
}

/// One step of one fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The source, without credentials.
    pub source: String,
    pub stage: Stage,
}

/// What a fetch is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Another process, or another part of this one, gets the same thing; told again every few seconds.
    Waiting { holder: Option<String>, seconds: u64 },
    /// Asks the other side which commit a name stands for.
    Resolving,
    /// Git at work, in its own words, such as `Receiving objects`.
    Git { phase: String, percent: u8 },
    /// Bytes of a download, and how many there will be when the server says so.
    Receiving { bytes: u64, of: Option<u64> },
    /// Unpacks an archive.
    Extracting { files: u64 },
    /// Tries again after a failure that may pass.
    Retrying { attempt: u32, because: String },
    /// It is in the cache.
    Done,
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _report: &Report) {}
}
