//! What this program is: its version and those of everything it writes. It looks at nothing outside itself.

use amplifier_modules::MODULES;
use amplifier_protocol::record::RECORD_VERSION;
use serde::Serialize;

use crate::registry;

/// What this program is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The version of all crates; they are released together.
    pub version: &'static str,
    /// The commit it was built from, where whoever built it said so in `AMPLIFIER_COMMIT`. Nothing is asked of git while
    /// building, so that the same text gives the same program.
    pub commit: Option<&'static str>,
    /// The machine it was built for.
    pub platform: String,
    /// Whether it was built for speed or for finding mistakes.
    pub build: &'static str,
    /// How many modules are inside.
    pub modules: usize,
    /// The versions of the files it writes.
    pub formats: Formats,
}

/// The versions of the files this program writes. Newer ones are not read, older ones are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Formats {
    /// `events.jsonl`.
    pub journal: u32,
    /// `registry.json`.
    pub registry: u32,
    /// `bundle.lock`.
    pub bundle_lock: u32,
    /// `profile.lock`.
    pub profile_lock: u32,
}

impl About {
    /// This program.
    pub fn new() -> Self {
        let system = match (cfg!(target_env = "gnu"), cfg!(target_env = "musl"), cfg!(target_env = "msvc")) {
            (true, _, _) => "-gnu",
            (_, true, _) => "-musl",
            (_, _, true) => "-msvc",
            _ => "",
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("AMPLIFIER_COMMIT").filter(|commit| !commit.is_empty()),
            platform: format!("{}-{}{system}", std::env::consts::ARCH, std::env::consts::OS),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            modules: MODULES.len(),
            formats: Formats {
                journal: RECORD_VERSION,
                registry: registry::VERSION,
                bundle_lock: amplifier_sources::lock::LOCK_VERSION,
                profile_lock: amplifier_profile::lock_file::LOCK_VERSION,
            },
        }
    }
}

impl Default for About {
    fn default() -> Self {
        Self::new()
    }
}
