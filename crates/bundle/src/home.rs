//! Where a bundle file lives: its folder, the root it may not leave, and the source it came from.
//!
//! Paths are compared here, never opened; links are resolved by whoever reads files (`fetch.rs`).

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// The surroundings of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The file itself.
    pub file: PathBuf,
    /// The folder that relative paths start from.
    pub dir: PathBuf,
    /// What the file's paths may not leave when it was fetched.
    pub root: PathBuf,
    /// Where it comes from.
    pub source: Source,
}

/// Where a tree of files comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// This machine: its author is the user, and paths may lead anywhere.
    Local,
    /// Somewhere else: its files see nothing of this machine but what was fetched.
    Fetched {
        /// The address of the whole tree, as it was asked for.
        uri: String,
        /// The same address with its reference replaced by what it was found to be, such as a commit; relative module
        /// sources become addresses below it, so that a plan means the same on every machine. `None`: paths are used.
        pinned: Option<String>,
    },
}

/// A path that leads out of its root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` leads out of `{}`", root.display())]
pub struct Escape {
    /// The path as written.
    pub path: String,
    /// What it must stay in.
    pub root: PathBuf,
}

impl Home {
    /// The surroundings of a local file.
    pub fn local(file: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        Self::new(file.into(), root.into(), Source::Local)
    }

    /// The surroundings of a file of any source.
    pub fn new(file: PathBuf, root: PathBuf, source: Source) -> Self {
        let dir = file.parent().map(Path::to_path_buf).unwrap_or_default();
        Self { file, dir, root, source }
    }

    /// Whether paths of this file may lead out of its root.
    pub fn is_local(&self) -> bool {
        self.source == Source::Local
    }

    /// A path written in this file, from its folder.
    ///
    /// # Errors
    /// [`Escape`] when the file was fetched and the path leaves what was fetched.
    pub fn join(&self, path: &str) -> Result<PathBuf, Escape> {
        let joined = normalize(&self.dir.join(path));
        if self.is_local() || joined.starts_with(&self.root) {
            return Ok(joined);
        }
        Err(Escape { path: path.to_owned(), root: self.root.clone() })
    }

    /// A module source written in this file: `./x` and `../x` become an absolute path, or an address below the pinned
    /// one; everything else stays as it is.
    ///
    /// # Errors
    /// As [`Home::join`].
    pub fn rebase(&self, source: &str) -> Result<Option<String>, Escape> {
        if !is_relative(source) {
            return Ok(None);
        }
        let path = self.join(source)?;
        if let Source::Fetched { pinned: Some(pinned), .. } = &self.source
            && let Ok(below) = path.strip_prefix(&self.root)
        {
            let below = below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>();
            return Ok(Some(if below.is_empty() {
                pinned.clone()
            } else {
                format!("{pinned}#subdirectory={}", below.join("/"))
            }));
        }
        Ok(Some(path.to_string_lossy().into_owned()))
    }
}

/// Whether a reference is a path from the folder of the file it stands in.
pub fn is_relative(reference: &str) -> bool {
    matches!(reference, "." | "..") || reference.starts_with("./") || reference.starts_with("../")
}

/// A reference as messages show it: what stands before the `@` of an address's host may be a password.
pub fn shown(reference: &str) -> String {
    let Some((scheme, rest)) = reference.split_once("://") else { return reference.to_owned() };
    let rest = &without_tokens(rest);
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(host_end).unwrap_or((rest, ""));
    match authority.rsplit_once('@') {
        // A bare user name, as in `git@host`, is no secret.
        Some((user, host)) if user.contains(':') || !scheme.contains("ssh") => {
            format!("{scheme}://***@{host}{path}")
        }
        _ => format!("{scheme}://{rest}"),
    }
}

/// What stands in the query of an address under a name that sounds like a secret may be one.
fn without_tokens(address: &str) -> String {
    const SECRETS: [&str; 7] = ["token", "secret", "sig", "auth", "password", "credential", "key"];
    let Some((before, query)) = address.split_once('?') else { return address.to_owned() };
    let (query, after) = query.split_at(query.find(['#', '@']).unwrap_or(query.len()));
    let hide = |pair: &str| match pair.split_once('=') {
        Some((key, _)) if SECRETS.iter().any(|word| key.to_ascii_lowercase().contains(word)) => {
            format!("{key}=***")
        }
        _ => pair.to_owned(),
    };
    format!("{before}?{}{after}", query.split('&').map(hide).collect::<Vec<_>>().join("&"))
}

/// A text in which the credentials of addresses are stars, so that what stands after them keeps its column.
pub(crate) fn starred(text: &str) -> String {
    let mut hidden = text.match_indices("://").filter_map(|(at, _)| user_at(text, at)).peekable();
    let star = |(at, c): (usize, char)| {
        while hidden.next_if(|range| range.end <= at).is_some() {}
        if hidden.peek().is_some_and(|range| range.contains(&at)) { '*' } else { c }
    };
    text.char_indices().map(star).collect()
}

/// What stands before the host of the address whose `://` is here, when it may be a secret.
fn user_at(text: &str, at: usize) -> Option<Range<usize>> {
    let start = at + "://".len();
    let rest = text.get(start..)?;
    let ends = |c: char| c.is_whitespace() || "/?#\"'<>,[]{}".contains(c);
    let authority = rest.get(..rest.find(ends).unwrap_or(rest.len()))?;
    let (user, _) = authority.rsplit_once('@')?;
    let is_ssh = text.get(..at)?.ends_with("ssh");
    (!is_ssh || user.contains(':')).then(|| start..start + user.len())
}

/// A path without `.` and `..`; above the root there is nothing.
pub fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !result.pop() {
                    result.push("/");
                }
            }
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_source_becomes_an_absolute_path() {
        let home = Home::local("/b/c/bundle.md", "/b/c");
        assert_eq!(home.rebase("../m"), Ok(Some("/b/m".into())));
        assert_eq!(home.rebase("./m/./n"), Ok(Some("/b/c/m/n".into())));
        for kept in ["git+https://h/r@main", "/abs", "name", ".hidden", "~/x"] {
            assert_eq!(home.rebase(kept), Ok(None), "{kept}");
        }
    }

    #[test]
    fn credentials_in_an_address_are_not_shown() {
        assert_eq!(
            shown("git+https://u:t0ken@host/o/r@main#subdirectory=x"),
            "git+https://***@host/o/r@main#subdirectory=x"
        );
        assert_eq!(shown("https://t0ken@host"), "https://***@host");
        assert_eq!(
            shown("git+https://h/o/r?a=1&private_token=t0ken@v1#subdirectory=x"),
            "git+https://h/o/r?a=1&private_token=***@v1#subdirectory=x"
        );
        for plain in
            ["git+ssh://git@host/o/r@v1", "git+https://host/o/r@main", "ns:path", "./x@y", "file:///a@b"]
        {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn credentials_are_stars_in_a_text_that_is_shown() {
        for (text, shown) in [
            (
                "source: git+https://u:tök@host/o/r@main, x: 1",
                "source: git+https://*****@host/o/r@main, x: 1",
            ),
            ("[http://t@a, \"http://u:v@b/c\"]", "[http://*@a, \"http://***@b/c\"]"),
            ("git+ssh://git@host/x and me@example.com", "git+ssh://git@host/x and me@example.com"),
            ("git+ssh://git:pw@host/x", "git+ssh://******@host/x"),
        ] {
            assert_eq!(starred(text), shown);
        }
    }

    #[test]
    fn a_fetched_source_becomes_an_address_and_stays_inside() {
        let pinned = Some("git+https://h/o/r@abc".to_owned());
        let source = Source::Fetched { uri: "git+https://h/o/r@main".into(), pinned };
        let home = Home::new("/cache/abc/behaviors/x.yaml".into(), "/cache/abc".into(), source);
        assert_eq!(
            home.rebase("../modules/m"),
            Ok(Some("git+https://h/o/r@abc#subdirectory=modules/m".into()))
        );
        assert_eq!(home.rebase(".."), Ok(Some("git+https://h/o/r@abc".into())));
        assert!(home.rebase("../../etc").is_err());
        assert!(home.join("/etc/passwd").is_err());
    }
}
