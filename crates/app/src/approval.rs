//! Who answers when a session asks whether it may: a policy that needs nobody, or a person with a memory.
//!
//! Hooks decide what is asked about, the kernel asks and keeps the time; this file only answers. It draws nothing: a front
//! end brings an [`Asker`] that puts the question and says what was chosen. What was allowed for good is kept by
//! `approval/grants.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::{ApprovalError, ApprovalSystem, DisplayMessage, DisplaySystem};
use amplifier_protocol::hook::{ApprovalDecision, AskedCall, MessageLevel, Question};
use amplifier_protocol::text::visible;
use amplifier_protocol::tool::{EffectClass, Effects};
use async_trait::async_trait;

mod changes;
mod grants;

pub use amplifier_modules::Danger;
pub use amplifier_modules::preview::Preview;
pub use changes::{Places, changes, dangers};
pub use grants::{AllowedInput, Grant, GrantFile, GrantsError};

use crate::denial;
use crate::env::Environment;
use crate::journal::Secrets;
use crate::library::Access;
use crate::settings::Approve;

/// How the line begins in which `hooks-approval` says what that option covers.
const SCOPE_LINE: &str = "\"Allow always\" covers ";

/// What the person chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this time.
    Once,
    /// Yes, and from now on until the session ends.
    Session,
    /// Yes, and in this folder from now on.
    Always,
    /// No.
    No,
}

impl Answer {
    /// What a typed line means; nothing where it is not clear or not offered: only what covers more than this time offers
    /// the answers for longer. An empty line is no answer.
    pub fn read(line: &str, lasting: Option<&Grant>) -> Option<Self> {
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" | "o" | "once" => Some(Self::Once),
            "s" | "session" => lasting.map(|_| Self::Session),
            "a" | "always" => lasting.map(|_| Self::Always),
            "n" | "no" => Some(Self::No),
            _ => None,
        }
    }
}

/// Puts a question to a person, on whatever there is.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Puts the question and waits for the choice. Dropped when the time is up or the turn is stopped.
    async fn ask(&self, question: &Question) -> Result<Answer, ApprovalError>;
}

/// The approval system of a front end.
pub struct Approvals {
    policy: Approve,
    asker: Option<Arc<dyn Asker>>,
    display: Option<Arc<dyn DisplaySystem>>,
    kept: Option<GrantFile>,
    folder: PathBuf,
    /// Who knows the keys that must not be kept.
    keys: Option<Environment>,
    session: Mutex<BTreeSet<Grant>>,
    told: Mutex<BTreeSet<String>>,
}

impl Approvals {
    /// Who answers here: the policy that somebody asks for, else that of the settings, else the person, else nobody.
    pub fn decided(
        wished: Option<Approve>,
        person: Option<Arc<dyn Asker>>,
        access: &Access,
        display: Arc<dyn DisplaySystem>,
    ) -> Self {
        match (wished.or_else(|| access.settings.approve()).unwrap_or(Approve::Ask), person) {
            (Approve::Ask, Some(person)) => {
                let kept = GrantFile::new(access.home.approvals());
                // By its real path: a link may lead elsewhere tomorrow.
                let folder = access.base.canonicalize().unwrap_or_else(|_| access.base.clone());
                let asked = Self::of_person(person, kept, folder, Some(display));
                Self { keys: Some(access.environment.clone()), ..asked }
            }
            (policy, _) => Self::of_policy(policy, Some(display)),
        }
    }

    /// The same for a single call, whose own end tells that a policy refused it.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.display = self.display.filter(|_| self.asker.is_some());
        self
    }

    /// A policy that asks nobody. What it refuses is told on the display, with what would allow it.
    pub fn of_policy(policy: Approve, display: Option<Arc<dyn DisplaySystem>>) -> Self {
        Self {
            policy,
            asker: None,
            display,
            kept: None,
            folder: PathBuf::new(),
            keys: None,
            session: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// A person decides, and what was allowed for good in this folder is kept in the file.
    pub fn of_person(
        asker: Arc<dyn Asker>,
        kept: GrantFile,
        folder: PathBuf,
        display: Option<Arc<dyn DisplaySystem>>,
    ) -> Self {
        Self { asker: Some(asker), kept: Some(kept), folder, ..Self::of_policy(Approve::Ask, display) }
    }

    /// The directory that what is allowed for good holds in, by its real path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Allows something until the session ends, as if the person had said so.
    pub fn allow_in_session(&self, grant: Grant) {
        lock(&self.session).insert(grant);
    }

    /// What was allowed until the session ends.
    pub fn allowed_in_session(&self) -> Vec<Grant> {
        lock(&self.session).iter().cloned().collect()
    }

    /// Forgets what was allowed until the session ends: from now on it is asked about again.
    pub fn forget_session(&self) {
        lock(&self.session).clear();
    }

    async fn put(&self, asker: &dyn Asker, question: &Question) -> Result<String, ApprovalError> {
        // Where only this time is offered, nothing is kept, and what was kept elsewhere does not count.
        let grant = lasting(question);
        if let Some(grant) = &grant
            && self.is_allowed(grant).await
        {
            return yes(question);
        }
        match (asker.ask(question).await?, grant) {
            (Answer::No, _) => Ok(no(question)),
            (Answer::Once, _) | (_, None) => yes(question),
            // What holds longer is remembered here alone: the kernel and its hooks are told of this one time, else they
            // would go on allowing what was forgotten here.
            (Answer::Session, Some(grant)) => {
                self.allow_in_session(grant);
                yes(question)
            }
            (Answer::Always, Some(grant)) => {
                self.allow_in_session(grant.clone());
                self.keep(grant).await;
                yes(question)
            }
        }
    }

    async fn is_allowed(&self, grant: &Grant) -> bool {
        if lock(&self.session).iter().any(|allowed| allowed.is(grant)) {
            return true;
        }
        let Some(kept) = self.kept.clone() else { return false };
        let (folder, wanted) = (self.folder.clone(), grant.clone());
        let looked = tokio::task::spawn_blocking(move || kept.holds(&folder, &wanted)).await;
        match looked {
            Ok(Ok(held)) => held,
            // What cannot be read allows nothing; the person is asked and told why.
            Ok(Err(error)) => {
                self.tell(format!("what was always allowed is not known: {error}")).await;
                false
            }
            Err(_) => false,
        }
    }

    async fn keep(&self, grant: Grant) {
        let Some(kept) = self.kept.clone() else { return };
        let folder = self.folder.clone();
        let secrets = self.keys.as_ref().map(Secrets::known_to).unwrap_or_default();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || kept.add(&folder, grant, &secrets)).await
        {
            self.tell(format!("allowed for this session only: {error}")).await;
        }
    }

    /// Answers for nobody. What would allow it is told the person alone: the model cannot do it.
    async fn refuse(&self, question: &Question, cure: &str) -> Result<String, ApprovalError> {
        self.tell(format!("not allowed: {}; {cure}", asked_about(question))).await;
        let message = match self.policy {
            Approve::Safe => "`--approve safe` refuses what may change or start something",
            Approve::Ask | Approve::All | Approve::None => "nobody can be asked here",
        };
        Err(ApprovalError::Unavailable { message: message.to_owned() })
    }

    async fn tell(&self, message: String) {
        let is_news = lock(&self.told).insert(message.clone());
        if let Some(display) = self.display.as_ref().filter(|_| is_news) {
            let (level, source) = (MessageLevel::Warning, "approval".to_owned());
            display.show_message(DisplayMessage { message, level, source }).await;
        }
    }
}

#[async_trait]
impl ApprovalSystem for Approvals {
    async fn request_approval(&self, question: Question) -> Result<String, ApprovalError> {
        let is_safe = question.call.as_ref().is_some_and(|call| only_reads(call.effects));
        match (self.policy, &self.asker) {
            (Approve::All, _) => yes(&question),
            (Approve::Safe, _) if is_safe => yes(&question),
            (Approve::Safe, _) => self.refuse(&question, "`--approve all` allows it").await,
            (Approve::Ask, Some(asker)) => self.put(asker.as_ref(), &question).await,
            (Approve::Ask | Approve::None, _) if is_safe => {
                self.refuse(&question, "`--approve safe` or `--approve all` allows it").await
            }
            (Approve::Ask | Approve::None, _) => self.refuse(&question, "`--approve all` allows it").await,
        }
    }
}

/// What an answer for longer than this time would cover; nothing where no such answer is offered.
pub fn lasting(question: &Question) -> Option<Grant> {
    let is_offered = question.option(ApprovalDecision::AllowAlways).is_some();
    question.call.as_ref().filter(|_| is_offered).map(Grant::of)
}

/// What is asked, without the line that says what "Allow always" covers: a front end says that in the words of its own
/// answers, which are others. A line that only begins like that one belongs to the question.
pub fn wording(question: &Question) -> &str {
    let text = question.prompt.trim_end();
    let scopes = |call: &AskedCall| {
        let tool = visible(&call.tool_name);
        [format!("{SCOPE_LINE}exactly this."), format!("{SCOPE_LINE}every call of `{tool}`.")]
    };
    match (lasting(question).and(question.call.as_ref()), text.rsplit_once('\n')) {
        (Some(call), Some((before, last))) if scopes(call).iter().any(|scope| scope == last) => before,
        _ => text,
    }
}

/// What a question is about, in one line: the call, and what is asked where that is not just whether it may run.
fn asked_about(question: &Question) -> String {
    // Below the first line is what the call would change, or the command that is told anyway.
    let asked = wording(question).lines().next().unwrap_or_default();
    match &question.call {
        None => denial::one_line(asked),
        Some(call) => {
            let told = denial::call(&call.tool_name, &call.tool_input);
            let is_plain = asked.starts_with("Run with `") || asked.starts_with("Run `");
            if is_plain { told } else { format!("{told} ({})", denial::one_line(asked)) }
        }
    }
}

/// Whether a tool declares to change nothing and to start nothing. Talking to other machines to look something up counts.
pub fn only_reads(effects: Effects) -> bool {
    matches!(effects.class, EffectClass::Pure | EffectClass::Read) && !effects.writes && !effects.executes
}

/// The option that grants this one time, as it was offered: one that grants for longer where there is no other. A question
/// without any cannot be granted.
fn yes(question: &Question) -> Result<String, ApprovalError> {
    let granting = question.option(ApprovalDecision::AllowOnce);
    let granting = granting.or_else(|| question.option(ApprovalDecision::AllowAlways));
    let message = || "none of its options allows anything".to_owned();
    granting
        .map(|option| option.text.clone())
        .ok_or_else(|| ApprovalError::Unavailable { message: message() })
}

/// The option that refuses, as it was offered. What was not offered is a no as well.
fn no(question: &Question) -> String {
    question.option(ApprovalDecision::Deny).map_or_else(|| "Deny".to_owned(), |option| option.text.clone())
}

impl Grant {
    /// What allowing this call for longer covers: exactly this input where programs are started, else every call of the
    /// tool; of a tool of another module, or of one that is configured otherwise, nothing.
    pub fn of(call: &AskedCall) -> Self {
        let input = call.effects.executes.then(|| AllowedInput::of(&call.tool_input));
        Self { tool: call.tool_name.clone(), input, module: call.module.as_deref().map(grants::of_module) }
    }

    /// What it covers, in words.
    pub fn scope(&self) -> String {
        match self.input {
            Some(_) => "exactly this call".to_owned(),
            None => format!("every call of `{}`", self.tool),
        }
    }
}

// A panic cannot leave a set half changed: every change is one insert.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
