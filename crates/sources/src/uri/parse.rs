//! From text to [`SourceUri`]. The first form that fits wins, in the order of [`parse`].

use url::Url;

use super::{
    Archive, FileForm, FileUri, Fragment, GitTransport, GitUri, HttpUri, SourceUri, Subpath, ZipUri,
};

/// Longer than any address a person writes.
const MOST_BYTES: usize = 4096;

/// Why a text is no source.
///
/// The text itself is not repeated: it may hold a credential in a place where nobody expects one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    #[error("a source is empty")]
    Empty,
    #[error("a source of {bytes} bytes is longer than {MOST_BYTES}")]
    TooLong { bytes: usize },
    #[error("a source holds a control character")]
    ControlCharacter,
    #[error(
        "sources with `{scheme}` are not known; known are git+https, git+ssh, git+http, git+file, zip+https, zip+http, zip+file, https, http, file and paths"
    )]
    Scheme { scheme: String },
    #[error("`{scheme}` needs an address of the form `{form}`")]
    Address { scheme: &'static str, form: &'static str },
    #[error("`{reference}` is no ref: {why}")]
    Reference { reference: String, why: &'static str },
    #[error("`{path}` {why}")]
    Subpath { path: String, why: &'static str },
    #[error("an address like `user@host:path` is written `git+ssh://user@host/path`")]
    ScpForm,
}

pub(super) fn parse(text: &str) -> Result<SourceUri, UriError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UriError::Empty);
    }
    if text.len() > MOST_BYTES {
        return Err(UriError::TooLong { bytes: text.len() });
    }
    if text.chars().any(char::is_control) {
        return Err(UriError::ControlCharacter);
    }
    if let Some(rest) = strip(text, "git+") {
        return git(rest).map(SourceUri::Git);
    }
    if let Some(rest) = strip(text, "zip+") {
        return zip(rest).map(SourceUri::Zip);
    }
    if let Some(rest) = strip(text, "file://") {
        let (path, fragment) = split_fragment(rest)?;
        return Ok(SourceUri::File(FileUri { form: FileForm::Url, path: file_path(path)?, fragment }));
    }
    if is_plain_path(text) {
        let path = text.to_owned();
        return Ok(SourceUri::File(FileUri { form: FileForm::Plain, path, fragment: Fragment::default() }));
    }
    if strip(text, "http://").or_else(|| strip(text, "https://")).is_some() {
        let (address, fragment) = split_fragment(text)?;
        return Ok(SourceUri::Http(http(address, fragment)?));
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(UriError::Scheme { scheme: format!("{scheme}://") });
    }
    name(text)
}

/// The rest of a text after a prefix, whose case does not matter.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| text.get(prefix.len()..)).flatten()
}

fn is_plain_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let starts = ["/", "./", "../", "~/", r"\\", r".\", r"..\"];
    drive || [".", "..", "~"].contains(&text) || starts.iter().any(|start| text.starts_with(start))
}

fn name(text: &str) -> Result<SourceUri, UriError> {
    let before_slash = text.split('/').next().unwrap_or_default();
    if before_slash.contains(':') {
        let (namespace, path) = text.split_once(':').unwrap_or_default();
        if namespace.contains('@') {
            return Err(UriError::ScpForm);
        }
        let fits = |c: char| c.is_alphanumeric() || "._-".contains(c);
        if namespace.is_empty() || path.is_empty() || !namespace.chars().all(fits) {
            return Err(UriError::Scheme { scheme: format!("{namespace}:") });
        }
        return Ok(SourceUri::Namespaced { namespace: namespace.to_owned(), path: path.to_owned() });
    }
    Ok(match text.split_once('/') {
        Some((name, subpath)) => SourceUri::Named {
            name: name.to_owned(),
            subpath: Some(subpath).filter(|subpath| !subpath.is_empty()).map(str::to_owned),
        },
        None => SourceUri::Named { name: text.to_owned(), subpath: None },
    })
}

fn git(rest: &str) -> Result<GitUri, UriError> {
    let (scheme, rest) = rest.split_once("://").ok_or(UriError::Scheme { scheme: "git+".into() })?;
    let transport = match scheme.to_ascii_lowercase().as_str() {
        "https" => GitTransport::Https,
        "http" => GitTransport::Http,
        "ssh" => GitTransport::Ssh,
        "file" => GitTransport::File,
        _ => return Err(UriError::Scheme { scheme: format!("git+{scheme}://") }),
    };
    let (rest, fragment) = split_fragment(rest)?;
    let (authority, rest) = match transport {
        GitTransport::File => ("", rest),
        // A ref cannot come before the path, so an `@` before the first slash belongs to the user.
        _ => rest.find('/').map(|slash| rest.split_at(slash)).ok_or_else(|| git_form(transport))?,
    };
    let (userinfo, host) = match authority.rsplit_once('@') {
        Some((userinfo, host)) => (Some(userinfo).filter(|userinfo| !userinfo.is_empty()), host),
        None => (None, authority),
    };
    let (rest, reference) = split_reference(rest)?;
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) if transport != GitTransport::File => (path, Some(query.to_owned())),
        _ => (rest, None),
    };
    // A host that begins like an option has been used against ssh.
    let no_host = transport != GitTransport::File && (host.is_empty() || host.starts_with('-'));
    if no_host || path.trim_matches('/').is_empty() || (host.is_empty() && path.starts_with('-')) {
        return Err(git_form(transport));
    }
    Ok(GitUri {
        transport,
        userinfo: userinfo.map(str::to_owned),
        host: host.to_owned(),
        path: path.to_owned(),
        query,
        reference: reference.map(str::to_owned),
        fragment,
    })
}

fn git_form(transport: GitTransport) -> UriError {
    let (scheme, form) = match transport {
        GitTransport::File => ("git+file", "git+file:///path/to/repo@ref"),
        GitTransport::Ssh => ("git+ssh", "git+ssh://git@host/owner/repo@ref"),
        GitTransport::Https => ("git+https", "git+https://host/owner/repo@ref"),
        GitTransport::Http => ("git+http", "git+http://host/owner/repo@ref"),
    };
    UriError::Address { scheme, form }
}

/// Splits at the first `@` that can end a path: one right after a slash begins a name, as in `/@owner/repo`.
/// A path that holds an `@` elsewhere writes it `%40`, which git understands.
fn split_reference(text: &str) -> Result<(&str, Option<&str>), UriError> {
    let at = text
        .match_indices('@')
        .map(|(at, _)| at)
        .find(|at| text.get(..*at).is_some_and(|before| !before.is_empty() && !before.ends_with('/')));
    let Some(at) = at else { return Ok((text, None)) };
    let (path, reference) = text.split_at(at);
    let reference = reference.strip_prefix('@').unwrap_or(reference);
    check_reference(reference)?;
    Ok((path, Some(reference)))
}

/// Git's own rules for names, as far as they keep a name from meaning something else to git.
fn check_reference(reference: &str) -> Result<(), UriError> {
    let refuse = |why| Err(UriError::Reference { reference: reference.to_owned(), why });
    if reference.is_empty() {
        return refuse("nothing follows the `@`");
    }
    if reference.starts_with(['-', '+', '/'])
        || reference.ends_with(['/', '.'])
        || reference.ends_with(".lock")
    {
        return refuse("it begins or ends with something git forbids");
    }
    if reference.contains([' ', '~', '^', ':', '?', '*', '[', '\\'])
        || ["..", "//", "@{", "/."].iter().any(|text| reference.contains(text))
    {
        return refuse("it holds something git forbids");
    }
    Ok(())
}

fn zip(rest: &str) -> Result<ZipUri, UriError> {
    let (rest, fragment) = split_fragment(rest)?;
    if let Some(path) = strip(rest, "file://") {
        return Ok(ZipUri { archive: Archive::File(file_path(path)?), fragment });
    }
    if strip(rest, "http://").or_else(|| strip(rest, "https://")).is_none() {
        let scheme = rest.split("://").next().unwrap_or_default();
        return Err(UriError::Scheme { scheme: format!("zip+{scheme}") });
    }
    Ok(ZipUri { archive: Archive::Http(http(rest, Fragment::default())?), fragment })
}

fn http(address: &str, fragment: Fragment) -> Result<HttpUri, UriError> {
    let url = Url::parse(address).ok().filter(Url::has_host);
    let url = url.ok_or(UriError::Address { scheme: "http", form: "https://host/path" })?;
    Ok(HttpUri { url, fragment })
}

fn file_path(path: &str) -> Result<String, UriError> {
    let path = path.strip_prefix("localhost/").map_or_else(|| path.to_owned(), |rest| format!("/{rest}"));
    // `file:///C:/x` is the drive, not a folder called `C:`.
    let drive = matches!(path.as_bytes(), [b'/', letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    let path = if drive { path.trim_start_matches('/').to_owned() } else { path };
    if path.is_empty() {
        return Err(UriError::Address { scheme: "file", form: "file:///path" });
    }
    Ok(path)
}

/// Splits at the first `#`. A fragment is pairs joined by `&`, of which `subdirectory` counts, or a bare path.
fn split_fragment(text: &str) -> Result<(&str, Fragment), UriError> {
    let Some((before, text)) = text.split_once('#') else { return Ok((text, Fragment::default())) };
    let mut fragment = Fragment::default();
    let mut subdirectory = None;
    for part in text.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("subdirectory", path)) if subdirectory.is_none() => subdirectory = Some(path),
            None if subdirectory.is_none() => subdirectory = Some(part),
            _ => fragment.rest.push(part.to_owned()),
        }
    }
    fragment.subdirectory = subdirectory.map_or(Ok(None), Subpath::parse)?;
    Ok((before, fragment))
}
