//! In which manner a session is opened: what a failure means, and whether its modules set to work. Opening is in `open.rs`.

/// What a module that does not come up means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// A provider, tool or hook that fails is a line in the load report.
    #[default]
    Lenient,
    /// Any failure is fatal.
    Strict,
}

/// Whether modules hear that the session stands, which is when they first ask others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Readiness {
    /// They do.
    #[default]
    Told,
    /// They do not: they are only looked at.
    Withheld,
}
