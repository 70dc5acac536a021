//! A part of a whole, written as a relative path that cannot leave it. Links are another matter, checked when it is used.

use std::fmt;

use super::UriError;

/// A relative path without `.`, `..`, empty parts and backslashes; never empty.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subpath(String);

impl Subpath {
    /// Reads a path; `None` when it means the whole.
    pub fn parse(text: &str) -> Result<Option<Self>, UriError> {
        let refuse = |why| UriError::Subpath { path: text.to_owned(), why };
        if text.starts_with('/') {
            return Err(refuse("is absolute; it is meant inside the source"));
        }
        if text.contains(['\\', '\0']) {
            return Err(refuse("holds a character that no path here may hold"));
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(|| refuse("leaves the source"))?;
                }
                part => parts.push(part),
            }
        }
        Ok((!parts.is_empty()).then(|| Self(parts.join("/"))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subpath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Subpath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
