//! `@name:path` in the text of a profile: the context folders it brought are the namespaces. How mentions are followed is
//! the `bundle` crate's, and when, the application's.

use std::path::PathBuf;

use crate::chain::Profile;
use crate::error::ProfileError;

/// The context folders of a compiled profile by name.
pub fn namespaces(profile: &Profile) -> Result<Vec<(String, PathBuf)>, ProfileError> {
    let dir = profile.dir.join("contexts");
    let mut namespaces = Vec::new();
    let entries = match std::fs::read_dir(&dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        entries => Some(entries.map_err(ProfileError::io("read", &dir))?),
    };
    for entry in entries.into_iter().flatten() {
        let entry = entry.map_err(ProfileError::io("read", &dir))?;
        if let (Some(name), true) = (entry.file_name().to_str(), entry.path().is_dir()) {
            namespaces.push((name.to_owned(), entry.path()));
        }
    }
    namespaces.sort();
    Ok(namespaces)
}
