//! The front door: `share/`, a fetcher and a clock. What can be done with them stands in a file for each verb.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelToken;
use amplifier_core::clock::Clock;
use amplifier_sources::cache::KeyLock;
use amplifier_sources::fetch::{Base, FetchContext, Fetcher, Freshness};
use amplifier_sources::progress::{Progress, Silent};

use crate::chain::Profile;
use crate::error::ProfileError;
use crate::share::{ProfileId, Share};
use crate::steps::{self, Step, Steps};

/// How long to wait for another process at work on the same thing.
const LONGEST_WAIT: Duration = Duration::from_secs(900);

/// Collections and profiles of one home.
pub struct Profiles {
    pub(crate) share: Share,
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) user_home: Option<std::path::PathBuf>,
}

/// What one piece of work is done with.
#[derive(Clone)]
pub struct ProfileContext {
    /// Whether what was fetched before will do.
    pub freshness: Freshness,
    /// Hears fetches.
    pub progress: Arc<dyn Progress>,
    /// Hears steps.
    pub steps: Arc<dyn Steps>,
    /// Any level of it stops the work.
    pub cancel: CancelToken,
}

impl Default for ProfileContext {
    fn default() -> Self {
        Self {
            freshness: Freshness::Reuse,
            progress: Arc::new(Silent),
            steps: Arc::new(steps::Silent),
            cancel: CancelToken::new(),
        }
    }
}

impl ProfileContext {
    pub(crate) fn fetching(&self, base: Base) -> FetchContext {
        let (freshness, progress) = (self.freshness, Arc::clone(&self.progress));
        FetchContext { base, freshness, progress, cancel: self.cancel.clone() }
    }

    pub(crate) fn tell(&self, step: Step) {
        self.steps.step(&step);
    }

    pub(crate) fn check(&self, what: &dyn std::fmt::Display) -> Result<(), ProfileError> {
        if self.cancel.is_cancelled() {
            return Err(ProfileError::Cancelled { what: what.to_string() });
        }
        Ok(())
    }
}

impl Profiles {
    pub fn new(share: Share, fetcher: Arc<Fetcher>, clock: Arc<dyn Clock>) -> Self {
        Self { share, fetcher, clock, user_home: None }
    }

    /// What `~` means in the sources of collections.
    #[must_use]
    pub fn with_user_home(self, home: impl Into<std::path::PathBuf>) -> Self {
        Self { user_home: Some(home.into()), ..self }
    }

    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Reads a profile with everything it extends.
    pub fn load(&self, id: &ProfileId) -> Result<Profile, ProfileError> {
        Profile::load(&self.share, id)
    }

    /// The right to write in one part of `share/`, over all processes, until it is dropped.
    pub(crate) async fn guard(&self, name: &str, cx: &ProfileContext) -> Result<KeyLock, ProfileError> {
        let path = self.share.lock_path(name);
        let dir = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(dir).map_err(ProfileError::io("create", dir))?;
        let cx = cx.fetching(Base::default());
        KeyLock::acquire(&path, LONGEST_WAIT, name, &cx).await.map_err(ProfileError::Guard)
    }
}

/// Work with the disk, away from the threads that must not wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProfileError> + Send + 'static,
) -> Result<T, ProfileError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ProfileError::Worker { message: error.to_string() }),
    }
}
