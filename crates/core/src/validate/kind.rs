//! Which kind of module an id's name tells. Only for warnings here: in a plan the place decides the kind.

/// The kinds that a mount plan has places for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Orchestrator,
    Context,
    Provider,
    Tool,
    Hook,
}

/// Word parts that tell a kind, in the order in which they are looked for.
const PARTS: [(&str, Kind); 6] = [
    ("orchestrat", Kind::Orchestrator),
    ("loop", Kind::Orchestrator),
    ("provider", Kind::Provider),
    ("tool", Kind::Tool),
    ("hook", Kind::Hook),
    ("context", Kind::Context),
];

impl Kind {
    /// The kind with its article.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Orchestrator => "an orchestrator",
            Self::Context => "a context",
            Self::Provider => "a provider",
            Self::Tool => "a tool",
            Self::Hook => "a hook",
        }
    }
}

/// What is odd about the name of a module that stands in a place for `expected`, if anything.
///
/// The first segment decides when it tells a kind; otherwise any part may, so that `my-loop-tool` is fine as a tool.
pub(super) fn doubt(id: &str, expected: Kind) -> Option<String> {
    let lower = id.to_lowercase();
    let first = lower.split(['-', '_', '.']).next().unwrap_or_default();
    let leading = PARTS.iter().find(|(part, _)| first.starts_with(part)).map(|(_, kind)| *kind);
    let kinds: Vec<Kind> = match leading {
        Some(kind) => vec![kind],
        None => PARTS.iter().filter(|(part, _)| lower.contains(part)).map(|(_, kind)| *kind).collect(),
    };
    match kinds.first() {
        None => Some(format!("Could not determine mount type for module: {id}")),
        Some(_) if kinds.contains(&expected) => None,
        Some(kind) => {
            Some(format!("module `{id}` is named like {} but is used as {}", kind.noun(), expected.noun()))
        }
    }
}
