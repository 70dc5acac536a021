//! Every way to say where something is, as one type. It only reads and writes text; nothing is looked up here.
//!
//! What is shown never holds a credential: `Display` and `Debug` write `***` where one was. What git or a server needs
//! is asked for by name, with [`GitUri::address`] or [`HttpUri::url`].

mod parse;
mod subpath;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use amplifier_protocol::address::{HIDDEN, hide_pairs};
use url::Url;

pub use parse::UriError;
pub use subpath::Subpath;

/// Where something is. Reading what `Display` wrote gives the same value, but for credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum SourceUri {
    /// `git+https://…@ref#subdirectory=…`: a commit of a repository.
    Git(GitUri),
    /// `file://…` or a plain path.
    File(FileUri),
    /// `http://…`, `https://…`: one file.
    Http(HttpUri),
    /// `zip+https://…`, `zip+file://…`: the content of an archive.
    Zip(ZipUri),
    /// `namespace:path`, which means something only to whoever keeps the namespaces.
    Namespaced { namespace: String, path: String },
    /// `name` or `name/sub`: something registered or installed under that name.
    Named { name: String, subpath: Option<String> },
}

/// How git reaches a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GitTransport {
    Https,
    Http,
    Ssh,
    File,
}

impl GitTransport {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

/// A commit of a repository, and maybe a part of it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GitUri {
    pub transport: GitTransport,
    /// `user` or `user:password`, as written.
    userinfo: Option<String>,
    /// With its port; empty for files.
    pub host: String,
    /// From the first slash on; for files it may begin with `./` or `../`.
    pub path: String,
    query: Option<String>,
    /// A branch, a tag, a full name under `refs/`, or a commit. Without one: what the repository calls `HEAD`.
    pub reference: Option<String>,
    pub fragment: Fragment,
}

/// A place on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileUri {
    pub form: FileForm,
    pub path: String,
    pub fragment: Fragment,
}

/// How a place on this machine was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileForm {
    /// With `file://`; only then a fragment is one.
    Url,
    /// As a path.
    Plain,
}

/// One file of a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpUri {
    url: Url,
    pub fragment: Fragment,
}

/// The content of an archive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ZipUri {
    pub archive: Archive,
    pub fragment: Fragment,
}

/// Where an archive is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Archive {
    File(String),
    Http(HttpUri),
}

/// What followed the `#`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Fragment {
    /// The part that is meant, inside the whole.
    pub subdirectory: Option<Subpath>,
    /// Other pairs, such as `egg=x`; they mean nothing here and are kept.
    rest: Vec<String>,
}

impl SourceUri {
    /// The part of the whole that is meant.
    pub fn subdirectory(&self) -> Option<&Subpath> {
        match self {
            Self::Git(uri) => uri.fragment.subdirectory.as_ref(),
            Self::File(uri) => uri.fragment.subdirectory.as_ref(),
            Self::Http(uri) => uri.fragment.subdirectory.as_ref(),
            Self::Zip(uri) => uri.fragment.subdirectory.as_ref(),
            Self::Namespaced { .. } | Self::Named { .. } => None,
        }
    }

    /// Whether it holds a credential, which is hidden where it is shown.
    pub fn holds_credentials(&self) -> bool {
        self.to_string().parse::<Self>().is_ok_and(|shown| shown != *self)
    }

    /// Whether it is fetched from elsewhere, and so kept in the cache.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Git(_) | Self::Http(_) | Self::Zip(_) => true,
            Self::File(_) | Self::Namespaced { .. } | Self::Named { .. } => false,
        }
    }
}

impl GitUri {
    /// The address for git, without ref and credentials. A relative path is left as it is.
    pub fn address(&self) -> String {
        // Over ssh the user is part of the address, and no secret.
        let user = match (self.transport, &self.userinfo) {
            (GitTransport::Ssh, Some(userinfo)) => {
                format!("{}@", userinfo.split(':').next().unwrap_or_default())
            }
            _ => String::new(),
        };
        self.with_user(&user)
    }

    /// The beginning of the address with its credentials, and without them; `None` when there are none.
    pub(crate) fn secret_origin(&self) -> Option<(String, String)> {
        let userinfo = self.lent()?;
        let user = userinfo.split(':').next().unwrap_or_default();
        let user = if self.transport == GitTransport::Ssh { format!("{user}@") } else { String::new() };
        let origin = |user: &str| format!("{}://{user}{}/", self.transport.as_str(), self.host);
        let (secret, public) = (origin(&format!("{userinfo}@")), origin(&user));
        (secret != public).then_some((secret, public))
    }

    /// What was written before the host. An address that was shown lends nothing: git's own helpers are asked instead.
    fn lent(&self) -> Option<&str> {
        let is_hidden = |userinfo: &str| userinfo.rsplit(':').next() == Some(HIDDEN);
        self.userinfo.as_deref().filter(|userinfo| !is_hidden(userinfo))
    }

    /// The texts that must never be shown.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        let Some(userinfo) = self.lent() else { return Vec::new() };
        let password = userinfo.split_once(':').map(|(_, password)| password);
        let whole = (self.transport != GitTransport::Ssh).then_some(userinfo);
        whole.into_iter().chain(password).filter(|secret| !secret.is_empty()).collect()
    }

    /// The same repository and part, at another ref.
    #[must_use]
    pub fn at(&self, reference: impl Into<String>) -> Self {
        Self { reference: Some(reference.into()), ..self.clone() }
    }

    /// The whole repository.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { fragment: Fragment::default(), ..self.clone() }
    }

    fn with_user(&self, user: &str) -> String {
        let Self { transport, host, path, query, .. } = self;
        let query = query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}://{user}{host}{path}{query}", transport.as_str())
    }
}

impl ZipUri {
    /// The whole archive.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { fragment: Fragment::default(), ..self.clone() }
    }
}

impl HttpUri {
    /// The address for the server, credentials included, without the fragment. Not for showing. Of an address that was
    /// shown, the mark of its credentials is left out.
    pub fn url(&self) -> Cow<'_, Url> {
        if self.url.username() != HIDDEN {
            return Cow::Borrowed(&self.url);
        }
        let mut url = self.url.clone();
        // It has a host, so these cannot fail.
        if url.set_username("").is_err() || url.set_password(None).is_err() {
            return Cow::Borrowed(&self.url);
        }
        Cow::Owned(url)
    }
}

impl FromStr for SourceUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        parse::parse(text)
    }
}

impl fmt::Display for SourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(uri) => uri.fmt(f),
            Self::File(uri) => uri.fmt(f),
            Self::Http(uri) => write!(f, "{}{}", shown(&uri.url), uri.fragment),
            Self::Zip(ZipUri { archive: Archive::File(path), fragment }) => {
                write!(f, "zip+file://{path}{fragment}")
            }
            Self::Zip(ZipUri { archive: Archive::Http(uri), fragment }) => {
                write!(f, "zip+{}{fragment}", shown(&uri.url))
            }
            Self::Namespaced { namespace, path } => write!(f, "{namespace}:{path}"),
            Self::Named { name, subpath: Some(subpath) } => write!(f, "{name}/{subpath}"),
            Self::Named { name, subpath: None } => f.write_str(name),
        }
    }
}

impl fmt::Debug for SourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl fmt::Display for GitUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport, userinfo, host, path, query, reference, fragment } = self;
        write!(f, "git+{}://", transport.as_str())?;
        match (transport, userinfo.as_ref().map(|userinfo| userinfo.split_once(':'))) {
            (_, None) => {}
            (GitTransport::Ssh, Some(None)) => write!(f, "{}@", userinfo.as_deref().unwrap_or_default())?,
            (GitTransport::Ssh, Some(Some((user, _)))) => write!(f, "{user}:{HIDDEN}@")?,
            // A name alone may be a token too.
            (_, Some(_)) => write!(f, "{HIDDEN}@")?,
        }
        write!(f, "{host}{path}")?;
        if let Some(query) = query {
            write!(f, "?{}", hide_pairs(query))?;
        }
        if let Some(reference) = reference {
            write!(f, "@{reference}")?;
        }
        fragment.fmt(f)
    }
}

impl fmt::Debug for GitUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl fmt::Display for FileUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.form {
            FileForm::Url => "file://",
            FileForm::Plain => "",
        };
        write!(f, "{scheme}{}{}", self.path, self.fragment)
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subdirectory = self.subdirectory.iter().map(|path| format!("subdirectory={path}"));
        let parts: Vec<_> = subdirectory.chain(self.rest.iter().map(|pair| hide_pairs(pair))).collect();
        if parts.is_empty() { Ok(()) } else { write!(f, "#{}", parts.join("&")) }
    }
}

fn shown(url: &Url) -> String {
    let user = if url.username().is_empty() && url.password().is_none() {
        String::new()
    } else {
        format!("{HIDDEN}@")
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let query = url.query().map(|query| format!("?{}", hide_pairs(query))).unwrap_or_default();
    format!("{}://{user}{host}{port}{}{query}", url.scheme(), url.path())
}

#[cfg(test)]
#[path = "uri_tests.rs"]
mod tests;
