//! How much and how long: the bounds of every fetch, in one place, with the defaults people live with.

use std::time::Duration;

/// Bounds of fetches. The defaults fit a module or a bundle with room to spare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many sources one process gets at the same time; the others wait for their turn.
    pub at_once: usize,
    /// One attempt of git to fetch.
    pub git_fetch: Duration,
    /// One question to git that moves no content.
    pub git_query: Duration,
    /// How often git is asked again after a failure of the network, the first time included.
    pub git_attempts: u32,
    /// How long to wait for another process that fetches the same thing.
    pub lock_wait: Duration,
    /// One download, from its first byte sent to its last byte received.
    pub http_total: Duration,
    /// How long a download may stand still.
    pub http_idle: Duration,
    pub http_redirects: usize,
    /// The most bytes of one download, after decompression.
    pub download_bytes: u64,
    /// The most files in one tree.
    pub tree_files: u64,
    /// The most bytes in one tree.
    pub tree_bytes: u64,
    /// How much larger than its archive the content of an archive may be.
    pub archive_ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            at_once: 8,
            git_fetch: Duration::from_secs(300),
            git_query: Duration::from_secs(30),
            git_attempts: 3,
            lock_wait: Duration::from_secs(900),
            http_total: Duration::from_secs(300),
            http_idle: Duration::from_secs(30),
            http_redirects: 5,
            download_bytes: 256 * 1024 * 1024,
            tree_files: 100_000,
            tree_bytes: 2 * 1024 * 1024 * 1024,
            archive_ratio: 200,
        }
    }
}
