//! Records calls with their answers, and plays them back without a network. `AMPLIFIER_RECORD` and `AMPLIFIER_REPLAY` name
//! the folder; each call is a file that people can read and change. No header but harmless ones is ever written, and
//! texts lose their secrets first: those that the application knows, and what looks like one.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::CapabilityCall;
use amplifier_core::redact::{redact, redact_text};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::text::shorten;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;
use tokio::fs;

mod alike;
mod stream;

use self::alike::Times;

/// Headers of answers that replay needs.
const KEPT: [&str; 5] = ["content-type", "retry-after", "retry-after-ms", "x-ms-retry-after-ms", "date"];
/// How many lines of a difference are shown.
const DIFF_LINES: usize = 80;
/// How much of each; one line may be a whole message.
const DIFF_LINE: usize = 400;
/// How many files a folder may hold.
const MOST_FILES: u32 = 100_000;

/// Where calls go and come from.
pub(super) enum Tape {
    /// The network alone.
    Off,
    /// The network, and every call into a folder.
    Record(Arc<Recorder>),
    /// The calls of a folder and nothing else.
    Play(Player),
}

/// The session that records or plays.
pub(super) struct Run {
    /// Where it works.
    pub(super) folder: Option<String>,
    /// Takes out the secrets that the application knows.
    pub(super) hide: Option<Arc<dyn CapabilityCall>>,
}

impl Run {
    async fn hide(&self, value: Value) -> Result<Value, LlmError> {
        let Some(hide) = &self.hide else { return Ok(value) };
        hide.call(value).await.map_err(|error| {
            let message = format!("nothing is recorded, because secrets cannot be taken out: {error}");
            LlmError::new(LlmErrorKind::Configuration, message)
        })
    }

    async fn hide_text(&self, text: String) -> Result<String, LlmError> {
        let hidden = self.hide(Value::String(text)).await?;
        Ok(hidden.as_str().map(str::to_owned).unwrap_or_default())
    }

    /// The body of an answer without secrets, also where one came in pieces.
    async fn hide_body(&self, body: String) -> Result<String, LlmError> {
        let body = redact_text(&self.hide_text(body).await?).into_owned();
        let mut changed = Vec::new();
        for whole in stream::joined(&body) {
            let hidden = redact_text(&self.hide_text(whole.text.clone()).await?).into_owned();
            if hidden != whole.text {
                changed.push((whole, hidden));
            }
        }
        Ok(if changed.is_empty() { body } else { stream::rewritten(&body, &changed) })
    }
}

/// What was asked, as far as it counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    provider: String,
    path: String,
    body: Value,
}

impl Asked {
    pub(super) async fn new(
        provider: &str,
        path: &str,
        body: Option<&Value>,
        scrub: impl Fn(&str) -> String,
        run: &Run,
    ) -> Result<Self, LlmError> {
        let body = body.map_or(Value::Null, |body| scrub_value(redact(body), &scrub));
        Ok(Self { provider: provider.to_owned(), path: scrub(path), body: run.hide(body).await? })
    }

    /// The same without what belongs to the run.
    fn settled(&self, folder: Option<&str>, times: Times) -> Self {
        let body = scrub_value(self.body.clone(), &|text: &str| alike::settled(text, folder, times));
        Self { body, ..self.clone() }
    }

    fn text(&self) -> String {
        // Made of JSON values: writing it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn scrub_value(value: Value, scrub: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(scrub(&text)),
        Value::Array(items) => items.into_iter().map(|item| scrub_value(item, scrub)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, scrub_value(value, scrub))).collect(),
        other => other,
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Given {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// Why it broke off, when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) broke_off: Option<String>,
}

impl Given {
    pub(super) fn new(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        scrub: impl Fn(&str) -> String,
    ) -> Self {
        let kept = KEPT
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned())));
        let body = scrub(&String::from_utf8_lossy(body));
        Self { status: status.as_u16(), headers: kept.collect(), body, broke_off: None }
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn headers(&self) -> HeaderMap {
        let pair = |(name, value): &(String, String)| {
            Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
        };
        self.headers.iter().filter_map(pair).collect()
    }

    /// The same answer, broken off for this reason, if there is one.
    pub(super) fn broken_off(self, reason: Option<String>) -> Self {
        Self { broke_off: reason, ..self }
    }

    /// The same answer, when its body was handed out.
    pub(super) fn without_body(self) -> Self {
        Self { body: String::new(), ..self }
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }
}

#[derive(Serialize, Deserialize)]
struct Take {
    /// Where the session worked that asked: paths below it are told apart from others when it is played elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    request: Asked,
    response: Given,
}

/// Writes calls and their answers down.
pub(super) struct Recorder {
    pub(super) folder: PathBuf,
    pub(super) run: Run,
}

impl Recorder {
    /// Writes a call and its answer into the folder, under the next free number.
    pub(super) async fn record(&self, request: Asked, response: Given) -> Result<(), LlmError> {
        let broke_off = match response.broke_off {
            Some(reason) => Some(self.run.hide_text(reason).await?),
            None => None,
        };
        let body = self.run.hide_body(response.body).await?;
        let response = Given { body, broke_off, ..response };
        write(&self.folder, Take { folder: self.run.folder.clone(), request, response }).await
    }
}

async fn write(folder: &Path, take: Take) -> Result<(), LlmError> {
    let told = |error: std::io::Error| {
        let message = format!("the call cannot be recorded in `{}`: {error}", folder.display());
        LlmError::new(LlmErrorKind::Configuration, message)
    };
    make_private(folder).await.map_err(told)?;
    let provider = &take.request.provider;
    let text = serde_json::to_vec_pretty(&take).map_err(|error| told(error.into()))?;
    for number in 1..=MOST_FILES {
        let path = folder.join(format!("{number:05}-{provider}.json"));
        // Sessions beside this one record too: whoever makes the file has the number.
        match private_file().write(true).create_new(true).open(&path).await {
            Ok(file) => {
                drop(file);
                return fs::write(&path, &text).await.map_err(told);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(told(error)),
        }
    }
    Err(told(std::io::Error::other("the folder is full")))
}

/// Makes a folder for the owner alone: conversations are nobody else's business. One that is there keeps its mode.
async fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder).await
}

/// Options that create files for the owner alone.
fn private_file() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// Answers from a folder. Each recorded call answers once, in the order of the files: a request that is the same, else one
/// that differs only in what belongs to the run: first where even the dates are the same, for what is asked may be one.
pub(super) struct Player {
    folder: PathBuf,
    takes: Vec<Recorded>,
    played: Mutex<HashSet<usize>>,
    pub(super) run: Run,
}

struct Recorded {
    name: String,
    asked: Asked,
    dated: Asked,
    settled: Asked,
    given: Given,
}

impl Player {
    /// Reads a folder. The error is a sentence for the load report.
    pub(super) async fn open(folder: PathBuf, run: Run) -> Result<Self, String> {
        let told = |path: &Path, error: &dyn std::fmt::Display| {
            format!("`{}` cannot be replayed: {error}", path.display())
        };
        let mut entries = fs::read_dir(&folder).await.map_err(|error| told(&folder, &error))?;
        let mut paths = Vec::new();
        while let Some(entry) = entries.next_entry().await.map_err(|error| told(&folder, &error))? {
            if entry.path().extension().is_some_and(|extension| extension == "json") {
                paths.push(entry.path());
            }
        }
        paths.sort();
        let mut takes = Vec::with_capacity(paths.len());
        for path in paths {
            let text = fs::read(&path).await.map_err(|error| told(&path, &error))?;
            let take: Take = serde_json::from_slice(&text).map_err(|error| told(&path, &error))?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let settled = |times| take.request.settled(take.folder.as_deref(), times);
            let (dated, settled) = (settled(Times::Kept), settled(Times::Settled));
            takes.push(Recorded { name, asked: take.request, dated, settled, given: take.response });
        }
        Ok(Self { folder, takes, played: Mutex::default(), run })
    }

    /// The answer to this call, or why there is none.
    pub(super) fn play(&self, asked: &Asked) -> Result<Given, LlmError> {
        let settled = |times| asked.settled(self.run.folder.as_deref(), times);
        let (dated, settled) = (settled(Times::Kept), settled(Times::Settled));
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh: Vec<_> = self.takes.iter().enumerate().filter(|(at, _)| !played.contains(at)).collect();
        let first = |is_same: &dyn Fn(&Recorded) -> bool| fresh.iter().find(|(_, take)| is_same(take));
        let found = first(&|take| take.asked == *asked)
            .or_else(|| first(&|take| take.dated == dated))
            .or_else(|| first(&|take| take.settled == settled));
        if let Some((at, take)) = found {
            played.insert(*at);
            return Ok(take.given.clone());
        }
        let rest: Vec<_> = fresh.into_iter().map(|(_, take)| take).collect();
        Err(LlmError::new(LlmErrorKind::Configuration, self.unexpected(&settled, &rest)))
    }

    fn unexpected(&self, asked: &Asked, rest: &[&Recorded]) -> String {
        let folder = self.folder.display();
        let text = asked.text();
        let same_kind = rest
            .iter()
            .filter(|take| (&take.asked.provider, &take.asked.path) == (&asked.provider, &asked.path));
        let likeness = |other: &Asked| {
            let ratio = TextDiff::from_lines(other.text().as_str(), text.as_str()).ratio();
            (ratio * 1_000_000.0) as u64
        };
        let Some(nearest) = same_kind.max_by_key(|take| likeness(&take.settled)) else {
            let (provider, path, rest) = (&asked.provider, &asked.path, rest.len());
            return format!(
                "no recorded call to `{path}` of `{provider}` is left in `{folder}` ({rest} other calls are)"
            );
        };
        let name = &nearest.name;
        let mut told =
            format!("this request is not among the recorded ones in `{folder}`; the nearest, `{name}`, ");
        match alike::first_difference(&nearest.settled.body, &asked.body) {
            Some(alike::Difference { at, recorded, sent }) => {
                told.push_str(&format!("differs first at `{at}`: recorded `{recorded}`, sent `{sent}`\n"));
            }
            None => told.push_str("differs:\n"),
        }
        let recorded = nearest.settled.text();
        let diff = TextDiff::from_lines(recorded.as_str(), text.as_str());
        let shown = diff.unified_diff().context_radius(2).header(name, "this request").to_string();
        for line in shown.lines().take(DIFF_LINES) {
            told.push_str(&shorten(line, DIFF_LINE));
            told.push('\n');
        }
        if shown.lines().count() > DIFF_LINES {
            told.push_str("… the difference goes on\n");
        }
        told
    }
}
