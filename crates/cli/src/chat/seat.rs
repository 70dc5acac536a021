//! The open session of a chat, and everything that is needed to open it again in another way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_app::approval::{Approvals, Asker, GrantFile};
use amplifier_app::failure::{self, Doors, Failure, Front};
use amplifier_app::files::{FileError, create_private_dir};
use amplifier_app::library::Access;
use amplifier_app::modes::{Mode, ModeSwitch};
use amplifier_app::open::{AppError, Keeps, OpenRequest, OpenSession, Which, open};
use amplifier_app::paths::Home;
use amplifier_app::prompt::PromptParts;
use amplifier_app::store::SessionStore;
use amplifier_app::{
    ApprovalSystem, BundleLock, DisplayMessage, DisplaySystem, ExecuteError, LoadEntry, LoadOutcome,
    ModuleSourceResolver, Strictness, chain, inquire, prepare, sessions,
};
use amplifier_protocol::event::SessionOrigin;
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::status::SessionStatus;
use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

mod wants;

use super::approve::{Approver, Asked};
use super::complete::Known;
use super::screen::Face;
use super::tap::{Seen, Tap};
use crate::args::{PlanChoice, StartArgs};
use crate::commands::start::{self, Ports};
use crate::exit::Exit;
use wants::{Wants, model_of, providers_of};

/// The session and its wires.
pub struct Seat {
    pub opened: OpenSession,
    pub seen: UnboundedReceiver<Seen>,
    pub asked: UnboundedReceiver<Asked>,
    wires: Wires,
    access: Access,
    args: StartArgs,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    /// What the session is made of, for people.
    pub made_of: String,
    pub modes: ModeSwitch,
    /// Who answers questions, with what was allowed for longer.
    pub approvals: Arc<Approvals>,
    is_new: bool,
}

/// Where a chat goes on.
pub struct Move {
    which: Which,
    prompt: Option<PromptParts>,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    lock: Option<Arc<BundleLock>>,
    origin: Option<SessionOrigin>,
    made_of: String,
    wants: Wants,
    /// What is said when it is done.
    told: String,
}

#[derive(Clone)]
struct Wires {
    seen: UnboundedSender<Seen>,
}

impl Wires {
    fn ports(&self, approvals: &Arc<Approvals>) -> Ports {
        Ports {
            approval: Some(Arc::clone(approvals) as Arc<dyn ApprovalSystem>),
            display: Some(Arc::new(Notices(self.seen.clone()))),
            tap: Some(Arc::new(Tap(self.seen.clone()))),
        }
    }
}

/// Messages of hooks go the same way as everything else that happens, so that they stand where they belong.
pub(super) struct Notices(pub(super) UnboundedSender<Seen>);

#[async_trait]
impl DisplaySystem for Notices {
    async fn show_message(&self, message: DisplayMessage) {
        let level = match message.level {
            MessageLevel::Info => None,
            MessageLevel::Warning => Some("warning".to_owned()),
            MessageLevel::Error => Some("error".to_owned()),
        };
        let text = format!("{} ({})", message.message, message.source);
        // Nobody looks on any more when the chat is over.
        self.0.send(Seen::Notice { text, level }).ok();
    }
}

impl Seat {
    /// Finds out what the session is made of and opens it; what went wrong has been told.
    pub async fn take(
        args: &StartArgs,
        resumed: Option<SessionId>,
        access: Access,
        face: Face,
    ) -> Result<Self, Exit> {
        let (seen_by, seen) = unbounded_channel();
        let (asked_by, asked) = unbounded_channel();
        let approver = Approver { questions: asked_by, folder: access.base.clone() };
        let person = (face != Face::Pipe).then(|| Arc::new(approver) as Arc<dyn Asker>);
        let wires = Wires { seen: seen_by };
        let display = Arc::new(Notices(wires.seen.clone()));
        let approvals = start::approvals(args, &access, person, display);
        let is_new = resumed.is_none();
        let made_of = made_of(args, &access, resumed.as_ref());
        let start = start::find(args, resumed, access.clone()).await?;
        let (resolver, before) = (start.resolver.clone(), start.before.clone());
        let opened =
            start.open(wires.ports(&approvals)).await.map_err(|error| start::refuse_to_open(&error))?;
        start::tell_about(&opened, before.as_ref());
        let modes = ModeSwitch::default();
        modes.guard(&opened.session);
        let args = args.clone();
        Ok(Self { opened, seen, asked, wires, access, args, resolver, made_of, modes, approvals, is_new })
    }

    /// The same session, in which another provider is asked: the first one of this plan.
    pub fn with_provider(&self, plan: MountPlan, told: String) -> Move {
        Move { wants: Wants::FirstProvider, ..self.with_plan(plan, told) }
    }

    /// The same session, in which the provider that answers asks another model.
    pub fn with_model(&self, model: &str, told: String) -> Move {
        let mut plan = self.opened.session.coordinator().plan().clone();
        let (asked, _) = self.model();
        let is_asked = |entry: &LoadEntry| match &entry.outcome {
            LoadOutcome::Mounted { names } => names.contains(&asked),
            LoadOutcome::Skipped { .. } | LoadOutcome::Failed { .. } => false,
        };
        let at = providers_of(&self.opened).position(is_asked).unwrap_or_default();
        inquire::prefer_model_of(&mut plan, at, model);
        Move { wants: Wants::Model(model.to_owned()), ..self.with_plan(plan, told) }
    }

    /// The same session with another plan.
    fn with_plan(&self, plan: MountPlan, told: String) -> Move {
        let id = self.opened.session.id().clone();
        self.alike(Which::Resume(id, Some(Box::new(plan))), told)
    }

    /// The same session with the plan of another bundle; what went wrong with finding it has been told.
    pub async fn with_bundle(&self, reference: &str, told: String) -> Result<Move, Exit> {
        let mut args = self.args.clone();
        args.choice = PlanChoice { bundle: Some(reference.to_owned()), profile: None, plan: None };
        let id = self.opened.session.id().clone();
        let start = start::find(&args, Some(id), self.access.clone()).await?;
        let made_of = reference.to_owned();
        Ok(Move {
            which: start.which,
            prompt: start.prompt,
            resolver: start.resolver,
            lock: start.lock,
            origin: start.origin,
            made_of,
            wants: Wants::Nothing,
            told,
        })
    }

    /// A copy of this session.
    pub fn copy(&self, id: SessionId, told: String) -> Move {
        self.alike(Which::Resume(id, None), told)
    }

    /// What is made of the same as this one.
    fn alike(&self, which: Which, told: String) -> Move {
        let (resolver, made_of) = (self.resolver.clone(), self.made_of.clone());
        let wants = Wants::Nothing;
        Move { which, prompt: None, resolver, lock: None, origin: None, made_of, wants, told }
    }

    /// Another session, as it was.
    pub fn other(&self, id: SessionId, told: String) -> Move {
        let made_of = origin_of(&self.access, &id);
        Move {
            which: Which::Resume(id, None),
            prompt: None,
            resolver: None,
            lock: None,
            origin: None,
            made_of,
            wants: Wants::Nothing,
            told,
        }
    }

    /// Leaves the session for another one, or for itself in another form. Where that does not open, the old one is opened
    /// again and the reason is given beside it; without either there is nothing to go on with.
    pub async fn go(mut self, to: Move) -> Result<(Self, Result<String, String>), AppError> {
        self.opened.update_views().await?;
        let back = self.opened.session.id().clone();
        let old = self.opened.session.coordinator().plan().clone();
        let keeps = self.opened.keeps()?;
        let leaves = !matches!(&to.which, Which::Resume(id, _) if *id == back);
        let empty = leaves && self.is_empty();
        self.opened.session.cleanup().await;
        // Only one may write to a session: the old one lets go first.
        drop(self.opened);
        let Move { which, prompt, resolver, lock, origin, made_of, wants, told } = to;
        let parts = Parts { prompt, resolver: resolver.clone(), lock, origin };
        let request =
            |which, parts| request(&self.access, &self.args, self.wires.ports(&self.approvals), which, parts);
        let there = match open(request(which, parts)).await {
            Ok(opened) => match wants.are_met(&opened) {
                Ok(()) => Ok(opened),
                Err(reason) => {
                    opened.session.cleanup().await;
                    Err(reason)
                }
            },
            Err(error) => Err(chain(&error)),
        };
        let outcome = match there {
            Ok(opened) => {
                self.opened = opened;
                (self.resolver, self.made_of) = (resolver, made_of);
                Ok(told)
            }
            Err(reason) => {
                // With all that worked: what belongs to the other one has been kept already.
                let Keeps { prompt, lock, origin } = keeps;
                let parts = Parts { prompt: Some(prompt), resolver: self.resolver.clone(), lock, origin };
                let which = Which::Resume(back.clone(), Some(Box::new(old)));
                self.opened = open(request(which, parts)).await?;
                Err(reason)
            }
        };
        if outcome.is_ok() && leaves {
            self.is_new = false;
        }
        if outcome.is_ok()
            && empty
            && let Some(text) = forget(self.access.home.clone(), &back)
        {
            self.wires.seen.send(Seen::Notice { text, level: Some("warning".to_owned()) }).ok();
        }
        self.modes.guard(&self.opened.session);
        Ok((self, outcome))
    }

    pub fn folder(&self) -> &Path {
        &self.access.base
    }

    pub fn home(&self) -> &Home {
        &self.access.home
    }

    pub fn status(&self) -> SessionStatus {
        self.opened.session.status()
    }

    /// The provider that is asked first, and its model.
    pub fn model(&self) -> (String, Option<String>) {
        model_of(&self.opened)
    }

    /// A turn that failed, in words.
    pub fn failure(&self, error: &ExecuteError) -> Failure {
        let doors = Doors::of(&self.opened, &self.access.settings);
        failure::describe(error, &self.opened, &doors, Front::Chat)
    }

    /// Where what is allowed always is kept.
    pub fn grants(&self) -> GrantFile {
        GrantFile::new(self.access.home.approvals())
    }

    /// What stands before the prompt.
    pub fn mark(&self) -> String {
        match self.modes.mode() {
            Mode::Normal => String::new(),
            mode => format!("[{}] ", mode.as_str()),
        }
    }

    pub fn greeting(&self) -> String {
        let (provider, model) = self.model();
        let model = model.map(|model| format!("/{model}")).unwrap_or_default();
        let id = short(self.opened.session.id());
        format!("{} · {provider}{model} · {} · session {id} · /help", self.made_of, self.shown_folder())
    }

    /// The folder as people write it.
    fn shown_folder(&self) -> String {
        let home = self.access.environment.get(amplifier_app::env::HOME).map(PathBuf::from);
        match home.and_then(|home| self.folder().strip_prefix(home).ok().map(Path::to_owned)) {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => format!("~/{}", below.display()),
            None => self.folder().display().to_string(),
        }
    }

    /// What completion offers.
    pub fn known(&self) -> Known {
        let coordinator = self.opened.session.coordinator();
        let plan = coordinator.plan();
        let providers = coordinator.providers();
        let models = providers.iter().filter_map(|(_, provider)| {
            provider.info().defaults.get("model").and_then(|model| model.as_str().map(str::to_owned))
        });
        Known {
            agents: plan.agents.keys().cloned().collect(),
            tools: coordinator.tool_specs().iter().map(|spec| spec.name.clone()).collect(),
            models: models.collect(),
            providers: providers.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// The file that keeps what was typed in this folder, for its owner alone.
    pub fn history(&self) -> Result<PathBuf, FileError> {
        let file = self.access.home.history(self.folder());
        if let Some(folder) = file.parent() {
            create_private_dir(folder)?;
        }
        amplifier_app::files::create_private_file(&file)?;
        Ok(file)
    }

    /// Whether anybody said anything: a session without a word is not worth keeping.
    fn is_empty(&self) -> bool {
        // Not by its status, which counts from the last opening on: the session may have been opened again since.
        self.is_new && self.opened.session.coordinator().turn() == 0
    }

    /// Ends the session. Says how to come back to it, and what went wrong with its end.
    pub async fn close(self) -> Farewell {
        let id = self.opened.session.id().clone();
        let is_empty = self.is_empty();
        let Self { opened, access, .. } = self;
        let mut problems = opened.session.cleanup().await.failed.clone();
        if let Err(error) = opened.update_views().await {
            problems.push(chain(&error));
        }
        // The lease goes with it.
        drop(opened);
        if is_empty {
            problems.extend(forget(access.home, &id));
            return Farewell { hint: None, problems };
        }
        Farewell { hint: Some(format!("go on with: amplifier resume {id}")), problems }
    }
}

/// The last words of a chat.
pub struct Farewell {
    pub hint: Option<String>,
    pub problems: Vec<String>,
}

/// Removes a session in which nothing was said; returns what went wrong with that.
fn forget(home: Home, id: &SessionId) -> Option<String> {
    let removed = sessions::delete(&SessionStore::new(home), std::slice::from_ref(id));
    removed.err().map(|error| chain(&error))
}

/// What a session is opened with beside its plan.
#[derive(Default)]
struct Parts {
    prompt: Option<PromptParts>,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    lock: Option<Arc<BundleLock>>,
    origin: Option<SessionOrigin>,
}

fn request(access: &Access, args: &StartArgs, ports: Ports, which: Which, parts: Parts) -> OpenRequest {
    OpenRequest {
        home: access.home.clone(),
        which,
        working_dir: access.base.clone(),
        strictness: if args.strict { Strictness::Strict } else { Strictness::Lenient },
        environment: access.environment.clone(),
        approval: ports.approval,
        display: ports.display,
        tap: ports.tap,
        prompt: parts.prompt,
        resolver: parts.resolver,
        lock: parts.lock,
        origin: parts.origin,
    }
}

/// The beginning of an id, enough for people: its first part alone is the same for a minute.
pub fn short(id: &SessionId) -> String {
    id.as_str().chars().take(13).collect()
}

fn made_of(args: &StartArgs, access: &Access, resumed: Option<&SessionId>) -> String {
    let choice = &args.choice;
    let file = choice.plan.as_ref().map(|plan| plan.display().to_string());
    let bundle = choice.bundle.as_deref().map(amplifier_app::credentials::shown);
    let named = bundle.or_else(|| choice.profile.clone()).or(file);
    match (named, resumed) {
        (Some(named), _) => named,
        (None, Some(id)) => origin_of(access, id),
        // A registry that cannot be read is told by whoever prepares the bundle.
        (None, None) => prepare::current(access).unwrap_or_default(),
    }
}

/// What a session was started from, as it was named then.
fn origin_of(access: &Access, id: &SessionId) -> String {
    // A session that cannot be read is told by whoever opens it.
    let origin = SessionStore::new(access.home.clone()).metadata(id).ok().and_then(|about| about.bundle);
    origin.map_or_else(|| "its own plan".to_owned(), |origin| origin.reference)
}
