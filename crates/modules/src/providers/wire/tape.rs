//! Records calls with their answers, and plays them back without a network. `AMPLIFIER_RECORD` and `AMPLIFIER_REPLAY` name
//! the folder; each call is a file that people can read and change. No header but harmless ones is ever written, and
//! texts lose their secrets first.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use amplifier_core::redact::{redact, redact_text};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;
use tokio::fs;

/// Headers of answers that replay needs.
const KEPT: [&str; 5] = ["content-type", "retry-after", "retry-after-ms", "x-ms-retry-after-ms", "date"];
/// How many lines of a difference are shown.
const DIFF_LINES: usize = 80;
/// How many files a folder may hold.
const MOST_FILES: u32 = 100_000;

/// Where calls go and come from.
pub(super) enum Tape {
    /// The network alone.
    Off,
    /// The network, and every call into this folder.
    Record(PathBuf),
    /// The calls of a folder and nothing else.
    Play(Player),
}

/// What was asked, as far as it counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    provider: String,
    path: String,
    body: Value,
}

impl Asked {
    pub(super) fn new(
        provider: &str,
        path: &str,
        body: Option<&Value>,
        scrub: impl Fn(&str) -> String,
    ) -> Self {
        let body = body.map_or(Value::Null, |body| scrub_value(redact(body), &scrub));
        Self { provider: provider.to_owned(), path: scrub(path), body }
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
        let body = redact_text(&body).into_owned();
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
    request: Asked,
    response: Given,
}

/// Writes a call and its answer into the folder, under the next free number.
pub(super) async fn record(folder: &Path, request: Asked, response: Given) -> Result<(), LlmError> {
    let told = |error: std::io::Error| {
        let message = format!("the call cannot be recorded in `{}`: {error}", folder.display());
        LlmError::new(LlmErrorKind::Configuration, message)
    };
    fs::create_dir_all(folder).await.map_err(told)?;
    let provider = request.provider.clone();
    let text = serde_json::to_vec_pretty(&Take { request, response }).map_err(|error| told(error.into()))?;
    for number in 1..=MOST_FILES {
        let path = folder.join(format!("{number:05}-{provider}.json"));
        // Sessions beside this one record too: whoever makes the file has the number.
        match fs::OpenOptions::new().write(true).create_new(true).open(&path).await {
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

/// Answers from a folder. Each recorded call answers once, in the order of the files.
pub(super) struct Player {
    folder: PathBuf,
    takes: Vec<(String, Asked, Given)>,
    played: Mutex<HashSet<usize>>,
}

impl Player {
    /// Reads a folder. The error is a sentence for the load report.
    pub(super) async fn open(folder: PathBuf) -> Result<Self, String> {
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
            takes.push((name, take.request, take.response));
        }
        Ok(Self { folder, takes, played: Mutex::default() })
    }

    /// The answer to this call, or why there is none.
    pub(super) fn play(&self, asked: &Asked) -> Result<Given, LlmError> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = self.takes.iter().enumerate().filter(|(at, _)| !played.contains(at));
        let found = fresh
            .find(|(_, (_, recorded, _))| recorded == asked)
            .map(|(at, (_, _, given))| (at, given.clone()));
        if let Some((at, given)) = found {
            played.insert(at);
            return Ok(given);
        }
        let rest: Vec<_> = self
            .takes
            .iter()
            .enumerate()
            .filter(|(at, _)| !played.contains(at))
            .map(|(_, take)| take)
            .collect();
        Err(LlmError::new(LlmErrorKind::Configuration, self.unexpected(asked, &rest)))
    }

    fn unexpected(&self, asked: &Asked, rest: &[&(String, Asked, Given)]) -> String {
        let folder = self.folder.display();
        let text = asked.text();
        let same_kind = rest
            .iter()
            .filter(|(_, other, _)| (&other.provider, &other.path) == (&asked.provider, &asked.path));
        let likeness = |other: &Asked| {
            let ratio = TextDiff::from_lines(other.text().as_str(), text.as_str()).ratio();
            (ratio * 1_000_000.0) as u64
        };
        let Some((name, nearest, _)) = same_kind.max_by_key(|(_, other, _)| likeness(other)) else {
            let (provider, path, rest) = (&asked.provider, &asked.path, rest.len());
            return format!(
                "no recorded call to `{path}` of `{provider}` is left in `{folder}` ({rest} other calls are)"
            );
        };
        let recorded = nearest.text();
        let diff = TextDiff::from_lines(recorded.as_str(), text.as_str());
        let shown = diff.unified_diff().context_radius(2).header(name, "this request").to_string();
        let mut told =
            format!("this request is not among the recorded ones in `{folder}`; the nearest differs:\n");
        for line in shown.lines().take(DIFF_LINES) {
            told.push_str(line);
            told.push('\n');
        }
        if shown.lines().count() > DIFF_LINES {
            told.push_str("… the difference goes on\n");
        }
        told
    }
}
