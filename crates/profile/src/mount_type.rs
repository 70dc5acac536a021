//! Where a module belongs: the five folders of a profile, and the prefix of an id that says which.

use std::fmt;

/// The kind of a module as folders and plans call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MountType {
    Orchestrator,
    Context,
    Providers,
    Tools,
    Hooks,
}

/// Prefixes of module ids. A prefix ends in a dash, so none is the beginning of another.
const PREFIXES: [(&str, MountType); 7] = [
    ("provider-", MountType::Providers),
    ("tool-", MountType::Tools),
    ("hook-", MountType::Hooks),
    ("hooks-", MountType::Hooks),
    ("loop-", MountType::Orchestrator),
    ("orchestrator-", MountType::Orchestrator),
    ("context-", MountType::Context),
];

impl MountType {
    /// In the order in which plans are written.
    pub const ALL: [Self; 5] = [Self::Orchestrator, Self::Context, Self::Providers, Self::Tools, Self::Hooks];

    /// The name of the folder, and of the section of a plan.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Context => "context",
            Self::Providers => "providers",
            Self::Tools => "tools",
            Self::Hooks => "hooks",
        }
    }

    /// What the prefix of an id says; `None` for an id without a known one.
    pub fn infer(module_id: &str) -> Option<Self> {
        PREFIXES.iter().find(|(prefix, _)| module_id.starts_with(prefix)).map(|(_, found)| *found)
    }
}

impl fmt::Display for MountType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_decides_and_nothing_else() {
        let rows = [
            ("provider-anthropic", Some(MountType::Providers)),
            ("tool-provider-x", Some(MountType::Tools)),
            ("hooks-status-context", Some(MountType::Hooks)),
            ("hook-logging", Some(MountType::Hooks)),
            ("loop-streaming", Some(MountType::Orchestrator)),
            ("orchestrator-x", Some(MountType::Orchestrator)),
            ("context-simple", Some(MountType::Context)),
            ("my-custom-thing", None),
            ("my-tool", None),
        ];
        for (id, expected) in rows {
            assert_eq!(MountType::infer(id), expected, "{id}");
        }
    }
}
