//! One git command of a fetch: its settings, the credentials of its address, its progress and its end.

use std::io;
use std::path::Path;
use std::time::Duration;

use amplifier_core::cancel::{CancelLevel, CancelToken};
use amplifier_core::redact::redact_text;
use amplifier_git::{Call, Git, Place};

use super::progress::Reader;
use crate::uri::GitUri;

/// The most output of one command that is read.
const MOST: u64 = 4 * 1024 * 1024;

/// Settings that hold whatever the user's are: the files of a commit are the same everywhere.
const SETTINGS: [&str; 5] = [
    "core.autocrlf=false",
    "core.eol=lf",
    "core.longpaths=true",
    "core.attributesFile=/dev/null",
    "advice.detachedHead=false",
];

/// What shall be run.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) repo: Option<&'a Path>,
    pub(super) arguments: &'a [&'a str],
    pub(super) longest: Duration,
    /// Whose credentials may be used, and must not be shown.
    pub(super) uri: &'a GitUri,
    pub(super) cancel: &'a CancelToken,
    pub(super) ssh: Ssh,
}

/// How git shall call ssh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ssh {
    /// OpenSSH, told not to ask, unless the environment names another command.
    Batch,
    /// As the user's configuration says; without a terminal it cannot ask either.
    AsConfigured,
}

/// Why git gave no answer.
#[derive(Debug)]
pub(super) enum Fault {
    Start(io::Error),
    Read(io::Error),
    Late(Duration),
    Cancelled,
    Refused { stderr: String },
}

/// Runs one command and gives its output. `listen` hears progress.
pub(super) async fn run(
    git: &Git,
    run: Run<'_>,
    listen: impl FnMut(&str, u8) + Send,
) -> Result<String, Fault> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
    let arguments: Vec<_> = settings.chain(run.arguments.iter().copied()).collect();
    let variables = variables(git, &run);
    let place = run.repo.map_or(Place::Nowhere, Place::Ours);
    let call = Call { place, arguments: &arguments, variables: &variables, longest: run.longest, most: MOST };
    let mut reader = Reader::new(listen);
    // Boxed, so that whoever waits for a fetch stays small.
    let work = Box::pin(git.run(call, |bytes| reader.push(bytes)));
    let ended = tokio::select! {
        ended = work => ended,
        () = run.cancel.cancelled(CancelLevel::Graceful) => return Err(Fault::Cancelled),
    };
    match ended {
        Ok(output) if output.is_cut => {
            Err(Fault::Read(io::Error::other(format!("git wrote more than {MOST} bytes"))))
        }
        Ok(output) => Ok(output.text),
        Err(amplifier_git::Fault::Start(error)) => Err(Fault::Start(error)),
        Err(amplifier_git::Fault::Read(error)) => Err(Fault::Read(error)),
        Err(amplifier_git::Fault::Late(after)) => Err(Fault::Late(after)),
        Err(_) => Err(Fault::Refused { stderr: scrub(&reader.finish(), &run.uri.secrets()) }),
    }
}

/// Variables of this command alone. Credentials of an address are among them: arguments can be read by everybody on the
/// machine.
fn variables(git: &Git, run: &Run<'_>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let is_chosen = ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| git.variable(name).is_some());
    if run.ssh == Ssh::Batch && !is_chosen {
        variables.push(("GIT_SSH_COMMAND".to_owned(), "ssh -o BatchMode=yes".to_owned()));
    }
    if let Some((secret, address)) = run.uri.secret_origin() {
        let count = git.variable("GIT_CONFIG_COUNT").and_then(|count| count.to_str());
        let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        variables.extend([
            ("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string()),
            (format!("GIT_CONFIG_KEY_{count}"), format!("url.{secret}.insteadOf")),
            (format!("GIT_CONFIG_VALUE_{count}"), address.clone()),
        ]);
    }
    variables
}

/// What git said, without credentials: its messages may repeat the address.
fn scrub(text: &str, secrets: &[&str]) -> String {
    let text = secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"));
    redact_text(&text).into_owned()
}
