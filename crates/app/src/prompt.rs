//! The system prompt of a session: its instruction, the files it mentions and declares, and the project's own words, made
//! anew for each request from what stands on disk then. It is put in front of the conversation and never stored in it.
//!
//! What it is made from is kept in the session's folder (`prompt.json`), so that a session goes on without its bundle.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_bundle::context::ContextPath;
use amplifier_bundle::load::LoadedBundle;
use amplifier_bundle::mention::{
    FailedMention, FileCache, FoundMention, Gathered, Gatherer, MentionFault, Quotes, Roots, Speaker,
};
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_bundle::prompt::{expand, system_prompt};
use amplifier_core::contracts::{
    CapabilityCall, CapabilityError, ContextError, ContextManager, DisplayMessage, DisplaySystem,
    RequestBudget,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::estimate::estimate_tokens;
use amplifier_protocol::event::{MentionFailure, MentionResolution, MentionsResolved};
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::message::{Message, Messages, Role};
use amplifier_sources::uri::SourceUri;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::files::{Durability, FileError, write_atomic};
use crate::paths::SessionFolder;
use crate::project;
use crate::shelf::{self, Shelf};
use crate::trust::Trust;

/// What a system prompt is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptParts {
    /// The bundle it comes from, as it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Declared context files by key, in order.
    pub context: Vec<NamedPath>,
    /// Namespaces and their folders.
    pub namespaces: Vec<NamedPath>,
    /// Whether the project's own words belong to it.
    pub project: Project,
    /// Whether mentions between quotation marks count: in bundles they do, in profiles they do not.
    pub quotes: Quotes,
}

/// A path and what it is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    pub name: String,
    pub path: PathBuf,
}

/// Whether `AGENTS.md` is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Project {
    #[default]
    Ignored,
    Read,
}

impl PromptParts {
    /// The parts of a loaded bundle. The project's own words belong to whatever builds on the default bundle.
    pub fn of(loaded: &LoadedBundle, reference: &str) -> Self {
        let default_file = shelf::folder(shelf::DEFAULT).join("bundle.md");
        let builds_on_default = loaded.graph.files.iter().any(|file| file.bundle.home.file == default_file);
        let context = loaded.context.iter();
        let namespaces = loaded.composed.namespaces.iter();
        Self {
            bundle: Some(without_credentials(reference)),
            instruction: loaded
                .composed
                .instruction
                .as_ref()
                .map(|instruction| instruction.text.text.clone()),
            context: context
                .map(|file| NamedPath { name: file.key.clone(), path: file.path.clone() })
                .collect(),
            namespaces: namespaces
                .map(|known| NamedPath { name: known.name.clone(), path: known.dir.clone() })
                .collect(),
            project: if builds_on_default { Project::Read } else { Project::Ignored },
            quotes: Quotes::Read,
        }
    }

    /// The files and folders it is made from.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.context.iter().chain(&self.namespaces).map(|named| named.path.as_path())
    }

    /// The parts of an agent's prompt: its own instruction; what it speaks of may be anything its session knows.
    #[must_use]
    pub fn for_agent(&self, instruction: String) -> Self {
        Self { instruction: Some(instruction), context: Vec::new(), ..self.clone() }
    }

    pub fn write(&self, folder: &SessionFolder, durability: Durability) -> Result<(), PromptError> {
        let path = folder.prompt();
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|source| PromptError::Broken { path: path.clone(), source })?;
        text.push(b'\n');
        Ok(write_atomic(&path, &text, durability)?)
    }

    /// Keeps them with a session that exists, in place of those it had.
    pub(crate) fn replace(&self, folder: &SessionFolder) -> Result<(), PromptError> {
        // A file that was there stays there: that it is gone means that somebody took it away.
        match *self == Self::default() && !folder.prompt().exists() {
            true => Ok(()),
            false => self.write(folder, Durability::Synced),
        }
    }

    /// The parts that a session was opened with; nothing for a session that had none.
    pub fn read(folder: &SessionFolder) -> Result<Option<Self>, PromptError> {
        let path = folder.prompt();
        match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::at("read", &path)(error).into()),
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|source| PromptError::Broken { path: path.clone(), source }),
        }
    }
}

/// Why the parts of a prompt could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    #[error(transparent)]
    File(#[from] FileError),
    /// It was there, for the session came from a bundle or a profile.
    #[error("`{}` is gone, and with it what the model is told about its task", path.display())]
    Missing { path: PathBuf },
    #[error("`{}` is not readable", path.display())]
    Broken {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
}

/// The prompt of one session.
pub struct SystemPrompt {
    parts: PromptParts,
    roots: Roots,
    /// Found when the session opens; their texts are read again when they change.
    project: Vec<PathBuf>,
    /// The root of the project: files below it come from the project.
    root: PathBuf,
    cache: Mutex<FileCache>,
    told: Mutex<Told>,
    display: Option<Arc<dyn DisplaySystem>>,
}

/// What was said already about mentions.
#[derive(Default)]
struct Told {
    hashes: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl SystemPrompt {
    pub fn new(
        parts: PromptParts,
        working_dir: PathBuf,
        user_home: Option<PathBuf>,
        trust: &Trust,
        display: Option<Arc<dyn DisplaySystem>>,
    ) -> Self {
        let project = match parts.project {
            Project::Read => project::find(&working_dir, user_home.as_deref(), trust),
            Project::Ignored => Vec::new(),
        };
        let real = || working_dir.canonicalize().unwrap_or_else(|_| working_dir.clone());
        let root = trust.project().map_or_else(real, |project| project.root.clone());
        let pair = |named: &NamedPath| (named.name.clone(), named.path.clone());
        let roots = Roots {
            namespaces: parts.namespaces.iter().map(pair).collect(),
            base: working_dir,
            allowed: user_home.iter().cloned().collect(),
            home: user_home,
            named: parts.context.iter().map(pair).collect(),
            untrusted: (!trust.trusts_project()).then(|| root.clone()),
        };
        let (cache, told) = (Mutex::default(), Mutex::default());
        Self { parts, roots, project, root, cache, told, display }
    }

    pub fn parts(&self) -> &PromptParts {
        &self.parts
    }

    /// Follows mentions the way this session does, wherever they stand.
    fn gatherer<'g>(&'g self, cache: &'g mut FileCache) -> Gatherer<'g, Shelf> {
        Gatherer::new(&Shelf, &self.roots, cache).with_quotes(self.parts.quotes)
    }

    /// The prompt as of now, and what it was made from. Reads files.
    pub fn render(&self) -> (Option<String>, Gathered) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gatherer = self.gatherer(&mut cache);
        if let Some(instruction) = &self.parts.instruction {
            gatherer.text(instruction, &Speaker::Instruction);
        }
        for file in &self.parts.context {
            gatherer.declared(&declared(file.name.clone(), file.path.clone()));
        }
        for file in self.project.iter().filter(|file| file.is_file()) {
            gatherer.declared(&declared(project::label(file, &self.roots.base), file.clone()));
        }
        let gathered = gatherer.finish();
        let is_from_project = |path: &Path| self.is_from_project(path);
        (system_prompt(self.parts.instruction.as_deref(), &gathered, &is_from_project), gathered)
    }

    /// Whether a file is the project's, and not that of a bundle which lies in it.
    fn is_from_project(&self, path: &Path) -> bool {
        let is_of_bundle = || self.roots.namespaces.iter().any(|(_, dir)| path.starts_with(dir));
        self.project.iter().any(|file| file == path) || (path.starts_with(&self.root) && !is_of_bundle())
    }

    /// A text with the files it mentions before it, and what became of its mentions.
    pub fn expand(&self, text: &str, speaker: &Speaker) -> (String, Gathered) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gatherer = self.gatherer(&mut cache);
        gatherer.text(text, speaker);
        let gathered = gatherer.finish();
        (expand(text, &gathered), gathered)
    }

    /// Where a mention leads.
    fn resolve(&self, mention: &str) -> Option<PathBuf> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gatherer = self.gatherer(&mut cache);
        let mention = if mention.starts_with('@') { mention.to_owned() } else { format!("@{mention}") };
        gatherer.text(&mention, &Speaker::Instruction);
        let found = gatherer.finish().found.into_iter().next()?;
        // A built-in file is on no disk, so nobody else can open it.
        (!found.path.starts_with(shelf::ROOT)).then_some(found.path)
    }

    /// Says what is new: files that came into the prompt or changed, mentions that led nowhere. Each once.
    async fn tell(&self, gathered: &Gathered, at: &Coordinator) {
        for failed in self.report("bundle_context", gathered, at).await {
            let message = DisplayMessage {
                message: describe(&failed),
                level: MessageLevel::Warning,
                source: "system prompt".to_owned(),
            };
            if let Some(display) = &self.display {
                display.show_message(message).await;
            }
        }
    }

    /// Emits what was not told before, and nothing else; gives the failures among it.
    pub(crate) async fn report(
        &self,
        source: &str,
        gathered: &Gathered,
        at: &Coordinator,
    ) -> Vec<FailedMention> {
        let (resolutions, failed) = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let is_told = |found: &&FoundMention| told.hashes.contains(&found.hash);
            let news: Vec<_> = gathered.found.iter().filter(|found| !is_told(found)).collect();
            let resolution = |found: &FoundMention| MentionResolution {
                mention: found.mention.clone(),
                resolved_path: found.path.display().to_string(),
                source_type: found.kind.wire_name().to_owned(),
                content_hash: found.hash.clone(),
                is_new: told.hashes.insert(found.hash.clone()),
            };
            let resolutions: Vec<_> = news.into_iter().map(resolution).collect();
            let mut is_news =
                |failed: &&FailedMention| told.failed.insert(format!("{} {}", failed.mention, failed.reason));
            let failed: Vec<_> = gathered.failed.iter().filter(|failed| is_news(failed)).cloned().collect();
            (resolutions, failed)
        };
        if failed.is_empty() && resolutions.is_empty() {
            return failed;
        }
        let failures = failed.iter().map(|failed| MentionFailure {
            mention: failed.mention.clone(),
            reason: failed.reason.wire_name().to_owned(),
        });
        let event = MentionsResolved {
            source: source.to_owned(),
            resolutions,
            failed: failures.collect(),
            deduplicated_count: gathered.repeated as u64,
            turn: Some(at.turn()),
        };
        at.emit(event).await;
        failed
    }
}

/// Whether a mention that led nowhere was meant as one: `@joe` may be a person.
pub fn is_worth_telling(failed: &FailedMention) -> bool {
    failed.mention.contains(['/', '.', ':']) || failed.reason != MentionFault::NotFound
}

/// One line about a mention that led nowhere.
pub fn describe(failed: &FailedMention) -> String {
    let place = match &failed.within {
        Some(file) => format!(" in `{}`, line {}", file.display(), failed.line),
        None => String::new(),
    };
    format!("mention `{}`{place}: {}", failed.mention, failed.reason)
}

/// How an address may be written down.
pub fn without_credentials(reference: &str) -> String {
    reference.parse::<SourceUri>().map_or_else(|_| reference.to_owned(), |uri| uri.to_string())
}

fn declared(key: String, path: PathBuf) -> ContextPath {
    let place = Place::start(&Arc::new(SourceFile::new(path.clone(), "")));
    ContextPath { key, path, place }
}

/// The conversation with the system prompt before it.
pub struct PromptedContext {
    pub prompt: Arc<SystemPrompt>,
    pub inner: Arc<dyn ContextManager>,
    pub coordinator: Coordinator,
}

#[async_trait]
impl ContextManager for PromptedContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.inner.add_message(message).await
    }

    async fn messages_for_request(&self, mut budget: RequestBudget) -> Result<Messages, ContextError> {
        let prompt = Arc::clone(&self.prompt);
        let rendered = tokio::task::spawn_blocking(move || prompt.render()).await;
        let (text, gathered) = rendered.map_err(|error| ContextError::Store {
            message: format!("the system prompt could not be made: {error}"),
        })?;
        self.prompt.tell(&gathered, &self.coordinator).await;
        let Some(text) = text else { return self.inner.messages_for_request(budget).await };
        // The conversation gets the room that the prompt leaves; where nobody says how much there is, its own bound holds.
        let (room, taken) = (budget.tokens(u64::MAX), estimate_tokens(&text));
        if room != u64::MAX {
            let Some(left) = room.checked_sub(taken).filter(|left| *left > 0) else {
                return Err(ContextError::DoesNotFit { needed: taken, budget: room });
            };
            budget.token_budget = Some(left);
        }
        let mut messages = self.inner.messages_for_request(budget).await?;
        messages.insert(0, Arc::new(Message::text(Role::System, text)));
        Ok(messages)
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        self.inner.messages().await
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        self.inner.set_messages(messages).await
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.inner.clear().await
    }
}

/// `mention_resolver`: a mention becomes a path, or null.
pub struct MentionResolver(pub Arc<SystemPrompt>);

#[async_trait]
impl CapabilityCall for MentionResolver {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let name = || "mention_resolver".to_owned();
        let Some(mention) = arguments.get("mention").and_then(Value::as_str).map(str::to_owned) else {
            let message = "`mention` is missing".to_owned();
            return Err(CapabilityError::Failed { name: name(), message });
        };
        let prompt = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || prompt.resolve(&mention)).await {
            // Modules are told paths as text: one that is none leads nowhere they can go.
            Ok(path) => Ok(json!(path.as_deref().and_then(Path::to_str))),
            Err(error) => Err(CapabilityError::Failed { name: name(), message: error.to_string() }),
        }
    }
}
