//! Why settings cannot be read or changed.

use std::path::PathBuf;

use amplifier_bundle::notice::{Notice, Severity};
use amplifier_bundle::origin::Place;
use amplifier_bundle::yaml::YamlError;
use amplifier_protocol::run::RunPlace;

use super::files::Scope;
use crate::files::{ENTER, FileError, NO_ROOM};

/// Why settings cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    #[error(transparent)]
    File(#[from] FileError),
    /// The same of a file of a project that was to be changed.
    #[error(transparent)]
    Project(FileError),
    #[error("`{}` is {bytes} bytes long; settings have at most {limit}", path.display())]
    TooLarge { path: PathBuf, bytes: u64, limit: u64 },
    #[error("`{}` is no text in UTF-8", path.display())]
    NotText { path: PathBuf },
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// The same, in one of the files that every command reads.
    #[error("{error}")]
    Broken { scope: Scope, error: YamlError },
    /// Values that cannot be meant.
    #[error("{}", first(.0))]
    Invalid(Vec<Notice>),
    #[error("the {} settings cannot be used here: this is your home folder", scope.name())]
    HomeFolder { scope: Scope },
    #[error("there is no setting `{path}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown { path: String, near: Option<String> },
    #[error("`{path}` takes {expected}, found `{found}`")]
    Value { path: String, expected: String, found: String },
    /// A part of a value that cannot be meant.
    #[error("{message}")]
    Part { message: String, hint: Option<String> },
    /// A project would allow what its user does not.
    #[error("a project cannot allow tools more than its user does, so `approve: {asked}` would not be used in `{}`", file.display())]
    Looser { asked: String, file: PathBuf },
    #[error("`{path}` is not set in `{}`", file.display())]
    NotSet { path: String, file: PathBuf },
    #[error("the value of `{path}` looks like a secret, and settings are plain text")]
    Secret { path: String },
    /// A change that cannot be made without risk to the rest of the file.
    #[error("{place}: {reason}; nothing was changed")]
    Unsafe { place: Place, reason: String },
    #[error("`{}` already lists a provider `{name}`", file.display())]
    Taken { name: String, file: PathBuf },
    #[error("no settings list a provider `{name}`")]
    NoProvider { name: String },
    #[error("the {} settings list no provider `{name}`; it stands in {place}", scope.name())]
    OtherFile { name: String, scope: Scope, place: Place },
    #[error("`{}` was changed by somebody else meanwhile", file.display())]
    Changed { file: PathBuf },
    #[error("`{}` is a link to `{}`, which is outside the project", file.display(), target.display())]
    Link { file: PathBuf, target: PathBuf },
    /// What the user trusts cannot be looked up.
    #[error("`{}` cannot be read: {message}", path.display())]
    Trust { path: PathBuf, message: String },
    #[error("another process holds `{}` for more than {seconds} s", path.display())]
    Busy { path: PathBuf, seconds: u64 },
}

impl SettingsError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Invalid(notices) => return worst(notices).and_then(|notice| notice.hint.clone()),
            Self::Yaml(_) => "repair the file in an editor",
            Self::Broken { scope, .. } => return Some(scope.mend()),
            Self::NotText { .. } => "save the file as UTF-8",
            Self::HomeFolder { .. } => "go to the folder of a project, or use `--global`",
            Self::Unknown { .. } => "`amplifier config keys` lists all settings",
            Self::Secret { .. } => {
                "put it into a variable and write `${NAME}`, or let `amplifier init` keep it"
            }
            Self::Unsafe { .. } => {
                "`amplifier config edit` opens the file; it takes the same `--project` or `--local`"
            }
            Self::Taken { name, .. } => {
                let name = name.strip_prefix("provider-").unwrap_or(name);
                return Some(format!(
                    "`amplifier provider set {name}` changes it; `--id NAME` adds another one beside it; \
                     `amplifier provider remove {name}` takes it out"
                ));
            }
            Self::Part { hint, .. } => {
                let usual = "`amplifier config keys` says what each setting takes";
                return Some(hint.clone().unwrap_or_else(|| usual.to_owned()));
            }
            Self::OtherFile { .. } => {
                "without `--global`, `--project` or `--local` it is found wherever it stands"
            }
            Self::NoProvider { .. } => "`amplifier provider list` shows the configured ones first",
            Self::Trust { path, .. } => {
                return Some(format!("remove `{}` to be asked again", path.display()));
            }
            Self::Link { target, .. } => {
                return Some(format!("remove the link, or change `{}` itself", target.display()));
            }
            Self::Busy { .. } => "wait for the other process, or end it",
            Self::File(error) | Self::Project(error) if error.cure() == Some(NO_ROOM) => NO_ROOM,
            Self::File(error) | Self::Project(error) if error.action == ENTER => error.cure()?,
            Self::Project(_) => {
                "make the project's folder and the file writable for you; without `--project` and `--local` \
                 it is set for yourself, in your home"
            }
            // Settings of a project are in no home: another one would not help.
            Self::File(error) if error.is_reading() => {
                "make the file readable for you, or move it away; settings are not needed to run"
            }
            Self::File(_) => {
                "make the file and its folder writable for you; `--home DIR` or AMPLIFIER_HOME names another home"
            }
            Self::TooLarge { .. } => "move what is no setting out of the file",
            Self::Looser { asked, .. } => {
                return Some(format!(
                    "`amplifier config set approve {asked}` allows it for yourself, `--approve {asked}` for one run"
                ));
            }
            Self::Value { .. } => "`amplifier config keys` says what each setting takes",
            Self::NotSet { .. } => "`amplifier config show --origin` says which file sets what",
            Self::Changed { .. } => "look at the file and try again",
        };
        Some(hint.to_owned())
    }

    /// Everything that is wrong, when that is why.
    pub fn complaints(&self) -> &[Notice] {
        match self {
            Self::Invalid(notices) => notices,
            _ => &[],
        }
    }

    /// Where in a file the cause lies.
    pub fn place(&self) -> Option<RunPlace> {
        match self {
            Self::Yaml(error) | Self::Broken { error, .. } => Some((&error.place).into()),
            Self::Unsafe { place, .. } => Some(place.into()),
            _ => None,
        }
    }

    /// The line an error speaks of, with a caret.
    pub fn excerpt(&self) -> Option<String> {
        match self {
            Self::Yaml(error) | Self::Broken { error, .. } => error.place.excerpt(),
            Self::Unsafe { place, .. } => place.excerpt(),
            _ => None,
        }
    }

    /// The same, where it is known which file every command reads is meant.
    pub(super) fn of(self, scope: Scope) -> Self {
        match self {
            Self::Yaml(error) => Self::Broken { scope, error },
            Self::File(error) if scope != Scope::User && !error.is_reading() => Self::Project(error),
            other => other,
        }
    }

    /// Whether the person asked for something wrong or configured it wrong, or the machine failed.
    pub fn is_usage(&self) -> bool {
        match self {
            // A file of settings that cannot be read is wrong configuration, as one that makes no sense is.
            Self::File(error) => error.is_reading(),
            Self::Project(_) | Self::Busy { .. } | Self::Trust { .. } => false,
            _ => true,
        }
    }
}

fn worst(notices: &[Notice]) -> Option<&Notice> {
    notices.iter().find(|notice| notice.severity == Severity::Error).or_else(|| notices.first())
}

fn first(notices: &[Notice]) -> String {
    worst(notices).map_or_else(|| "the settings are not valid".to_owned(), ToString::to_string)
}
