//! The open session of a chat, and everything that is needed to open it again in another way.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_app::approval::{Approvals, Asker, GrantFile};
use amplifier_app::failure::{self, Doors, Failure, Front};
use amplifier_app::files::{FileError, create_private_dir};
use amplifier_app::library::Access;
use amplifier_app::modes::{Mode, ModeSwitch};
use amplifier_app::open::{OpenSession, Which};
use amplifier_app::paths::Home;
use amplifier_app::prompt::PromptParts;
use amplifier_app::sessions::Scope;
use amplifier_app::store::SessionStore;
use amplifier_app::turns::TurnWatch;
use amplifier_app::{
    BundleLock, CancelToken, DisplayMessage, DisplaySystem, ExecuteError, LoadEntry, LoadOutcome,
    ModuleSourceResolver, chain, inquire, prepare, sessions,
};
use amplifier_protocol::event::SessionOrigin;
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::status::SessionStatus;
use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

mod go;
mod ground;
mod wants;

use super::approve::{Approver, Asked};
use super::complete::Known;
use super::screen::Face;
use super::tap::Seen;
use crate::args::{PlanChoice, StartArgs};
use crate::commands::{session, start};
use crate::exit::Exit;
use crate::render;
use crate::stop::{Stop, Stops};
pub use go::Arrival;
use go::cleaned_up;
use ground::Ground;
use wants::{Wants, model_of, providers_of};

/// The session and its wires.
pub struct Seat {
    pub opened: OpenSession,
    pub seen: UnboundedReceiver<Seen>,
    pub asked: UnboundedReceiver<Asked>,
    ground: Ground,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    /// What the session is made of, for people.
    pub made_of: String,
    pub modes: ModeSwitch,
    /// How the turns of the session end.
    pub turns: Arc<TurnWatch>,
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
    /// Finds out what the session is made of and opens it, unless something asks to stop first; what went wrong has been
    /// told.
    pub async fn take(
        args: &StartArgs,
        resumed: Option<SessionId>,
        access: Access,
        face: Face,
        stops: &mut Stops,
    ) -> Result<Self, Exit> {
        let (seen_by, seen) = unbounded_channel();
        let (asked_by, asked) = unbounded_channel();
        let approver = Approver { questions: asked_by, folder: access.base.clone() };
        let person = (face != Face::Pipe).then(|| Arc::new(approver) as Arc<dyn Asker>);
        let display = Arc::new(Notices(seen_by.clone()));
        let approvals = start::approvals(args, &access, person, display);
        let ground = Ground { access: access.clone(), args: args.clone(), seen: seen_by, approvals };
        let is_new = resumed.is_none();
        let made_of = made_of(args, &access, resumed.as_ref());
        let cancel = access.cancel.clone();
        let refused = |stop: Stop| {
            render::note(&format!("error: {}", stop.reason()));
            stop.exit()
        };
        let found = start::find(args, resumed, access);
        let start = stops.unless_stopped(found, &cancel).await.map_err(refused)??;
        let (resolver, before) = (start.resolver.clone(), start.before.clone());
        let turns = Arc::default();
        let opening = start.open(ground.ports(&turns));
        let opened = stops.unless_stopped(opening, &cancel).await.map_err(refused)?;
        let opened = opened.map_err(|error| start::refuse_to_open(&error))?;
        start::tell_about(&opened, before.as_ref());
        let modes = ModeSwitch::default();
        modes.guard(&opened.session);
        Ok(Self { opened, seen, asked, ground, resolver, made_of, modes, turns, is_new })
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
    pub async fn with_bundle(
        &self,
        reference: &str,
        told: String,
        cancel: CancelToken,
    ) -> Result<Move, Exit> {
        let mut args = self.ground.args.clone();
        args.choice = PlanChoice { bundle: Some(reference.to_owned()), profile: None, plan: None };
        let id = self.opened.session.id().clone();
        let start = start::find(&args, Some(id), self.ground.access_until(cancel)).await?;
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

    /// Says if another session goes on elsewhere, and if what it was started from gives something else now.
    pub async fn tell_changes(&self, id: &SessionId, cancel: CancelToken) {
        session::tell_changes(&self.ground.access_until(cancel), id).await;
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
        let made_of = origin_of(&self.ground.access, &id);
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

    pub fn folder(&self) -> &Path {
        &self.ground.access.base
    }

    /// The sessions of the project the person is in.
    pub fn scope(&self) -> Scope {
        Scope::here(&self.ground.access)
    }

    pub fn home(&self) -> &Home {
        &self.ground.access.home
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
        let doors = Doors::of(&self.opened, &self.ground.access.settings);
        failure::describe(error, &self.opened, &doors, Front::Chat)
    }

    /// How long one prompt may take.
    pub fn time(&self) -> Option<Duration> {
        self.ground.access.settings.limits().timeout
    }

    /// Who answers questions, with what was allowed for longer.
    pub fn approvals(&self) -> &Approvals {
        &self.ground.approvals
    }

    /// Where what is allowed always is kept.
    pub fn grants(&self) -> GrantFile {
        GrantFile::new(self.ground.access.home.approvals())
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
        let home = self.ground.access.environment.get(amplifier_app::env::HOME).map(PathBuf::from);
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
        let file = self.ground.access.home.history(self.folder());
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
        let Self { opened, ground, .. } = self;
        let mut problems = cleaned_up(&opened.session).await;
        if let Err(error) = opened.update_views().await {
            problems.push(chain(&error));
        }
        // The lease goes with it.
        drop(opened);
        match is_empty {
            true => Farewell::forgetting(ground.access.home, &id, problems),
            false => Farewell::with_way_back(&id, problems),
        }
    }
}

/// The last words of a chat.
pub struct Farewell {
    pub hint: Option<String>,
    pub problems: Vec<String>,
}

impl Farewell {
    fn with_way_back(id: &SessionId, problems: Vec<String>) -> Self {
        Self { hint: Some(format!("go on with: amplifier{} resume {id}", crate::render::flags())), problems }
    }

    /// That of a session in which nothing was said.
    fn forgetting(home: Home, id: &SessionId, mut problems: Vec<String>) -> Self {
        problems.extend(forget(home, id));
        Self { hint: None, problems }
    }

    /// That of who did not wait for the end.
    pub fn in_haste(id: &SessionId) -> Self {
        let told =
            "the end of the session was not waited for; what is missing is made again from its journal";
        Self::with_way_back(id, vec![told.to_owned()])
    }
}

/// Removes a session in which nothing was said; returns what went wrong with that.
fn forget(home: Home, id: &SessionId) -> Option<String> {
    let removed = sessions::delete(&SessionStore::new(home), std::slice::from_ref(id));
    removed.err().map(|error| chain(&error))
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
