//! The variables of this process, for the programs that modules start. They are handed on, sifted by whoever starts one,
//! and never read for a meaning: settings come from the plan, and `app/src/env.rs` alone reads the environment for us.

use std::ffi::OsString;

/// Every variable of this process. Keys and tokens are among them: sift before handing on.
pub(crate) fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "what a child inherits is the process's own; see decision 0008"
    )]
    std::env::vars_os()
}
