//! The open session of a chat, and everything that is needed to open it again in another way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_app::approval::{Approvals, Asker, GrantFile};
use amplifier_app::files::{FileError, create_private_dir};
use amplifier_app::library::Access;
use amplifier_app::modes::{Mode, ModeSwitch};
use amplifier_app::open::{AppError, OpenRequest, OpenSession, Which, open};
use amplifier_app::paths::Home;
use amplifier_app::prompt::PromptParts;
use amplifier_app::{
    ApprovalSystem, BundleLock, DisplayMessage, DisplaySystem, ModuleSourceResolver, Strictness, prepare,
};
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::status::SessionStatus;
use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::approve::{Approver, Asked};
use super::complete::Known;
use super::screen::Face;
use super::tap::{Seen, Tap};
use crate::args::{PlanChoice, StartArgs};
use crate::commands::start::{self, Ports};
use crate::exit::Exit;

/// The session and its wires.
pub struct Seat {
    pub opened: OpenSession,
    pub seen: UnboundedReceiver<Seen>,
    pub asked: UnboundedReceiver<Asked>,
    wires: Wires,
    access: Access,
    args: StartArgs,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    lock: Option<Arc<BundleLock>>,
    /// What the session is made of, for people.
    pub made_of: String,
    pub modes: ModeSwitch,
    /// Who answers questions, with what was allowed for longer.
    pub approvals: Arc<Approvals>,
    is_new: bool,
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
struct Notices(UnboundedSender<Seen>);

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
        let person = (face != Face::Pipe).then(|| Arc::new(Approver(asked_by)) as Arc<dyn Asker>);
        let wires = Wires { seen: seen_by };
        let display = Arc::new(Notices(wires.seen.clone()));
        let approvals = start::approvals(args, &access, person, display);
        let is_new = resumed.is_none();
        let made_of = made_of(args, &access, resumed.as_ref());
        let start = start::find(args, resumed, access.clone()).await?;
        let (resolver, lock) = (start.resolver.clone(), start.lock.clone());
        let opened =
            start.open(wires.ports(&approvals)).await.map_err(|error| start::refuse_to_open(&error))?;
        start::tell_about(&opened);
        let modes = ModeSwitch::default();
        modes.guard(&opened.session);
        let args = args.clone();
        Ok(Self {
            opened,
            seen,
            asked,
            wires,
            access,
            args,
            resolver,
            lock,
            made_of,
            modes,
            approvals,
            is_new,
        })
    }

    /// Goes on with the plan of another bundle; what went wrong has been told.
    pub async fn change_bundle(&mut self, reference: &str) -> Result<(), Exit> {
        let mut args = self.args.clone();
        args.choice = PlanChoice { bundle: Some(reference.to_owned()), profile: None, plan: None };
        let id = self.opened.session.id().clone();
        let start = start::find(&args, Some(id), self.access.clone()).await?;
        let (resolver, prompt) = (start.resolver.clone(), start.prompt.clone());
        let old = (
            std::mem::replace(&mut self.resolver, resolver),
            std::mem::replace(&mut self.lock, start.lock.clone()),
        );
        match self.reopen(start.which, prompt).await {
            Ok(()) => {
                self.args = args;
                self.made_of = reference.to_owned();
                Ok(())
            }
            Err(error) => {
                (self.resolver, self.lock) = old;
                Err(start::refuse_to_open(&error))
            }
        }
    }

    /// Opens the same session again with another plan.
    pub async fn change_plan(&mut self, plan: MountPlan) -> Result<(), AppError> {
        let id = self.opened.session.id().clone();
        self.reopen(Which::Resume(id, Some(Box::new(plan))), None).await
    }

    /// Leaves the session for another one.
    pub async fn move_to(&mut self, id: SessionId) -> Result<(), AppError> {
        self.reopen(Which::Resume(id.clone(), None), None).await?;
        self.made_of = format!("session {}", short(&id));
        self.is_new = false;
        Ok(())
    }

    async fn reopen(&mut self, which: Which, prompt: Option<PromptParts>) -> Result<(), AppError> {
        self.opened.update_views().await?;
        // Only one may write to a session: the old one lets go first.
        self.opened.session.cleanup().await;
        let back = self.opened.session.id().clone();
        let opened = open(self.request(which, prompt)).await;
        let (opened, outcome) = match opened {
            Ok(opened) => (opened, Ok(())),
            // Back to where we were, so that nothing is lost but the wish.
            Err(error) => (open(self.request(Which::Resume(back, None), None)).await?, Err(error)),
        };
        self.opened = opened;
        self.modes.guard(&self.opened.session);
        outcome
    }

    fn request(&self, which: Which, prompt: Option<PromptParts>) -> OpenRequest {
        let ports = self.wires.ports(&self.approvals);
        // A session that goes on with its own plan has its own lock.
        let lock = prompt.as_ref().and_then(|_| self.lock.clone());
        OpenRequest {
            home: self.access.home.clone(),
            which,
            working_dir: self.access.base.clone(),
            strictness: if self.args.strict { Strictness::Strict } else { Strictness::Lenient },
            environment: self.access.environment.clone(),
            approval: ports.approval,
            display: ports.display,
            tap: ports.tap,
            prompt,
            resolver: self.resolver.clone(),
            lock,
            origin: None,
        }
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
        let providers = self.opened.session.coordinator().providers();
        match providers.first() {
            Some((name, provider)) => {
                let model =
                    provider.info().defaults.get("model").and_then(|model| model.as_str().map(str::to_owned));
                (name.clone(), model)
            }
            None => ("no provider".to_owned(), None),
        }
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

    /// Ends the session; returns what went wrong with that.
    pub async fn close(&mut self) -> Vec<String> {
        let mut problems = self.opened.session.cleanup().await.failed.clone();
        if let Err(error) = self.opened.update_views().await {
            problems.push(error.to_string());
        }
        problems
    }

    /// How to come back; nothing was said in a session without a turn.
    pub fn farewell(&self) -> Option<String> {
        let said = !self.is_new || self.status().turns > 0;
        said.then(|| format!("go on with: amplifier resume {}", self.opened.session.id()))
    }
}

/// The beginning of an id, enough for people: its first part alone is the same for a minute.
pub fn short(id: &SessionId) -> String {
    id.as_str().chars().take(13).collect()
}

fn made_of(args: &StartArgs, access: &Access, resumed: Option<&SessionId>) -> String {
    let choice = &args.choice;
    let file = choice.plan.as_ref().map(|plan| plan.display().to_string());
    let named = choice.bundle.clone().or_else(|| choice.profile.clone()).or(file);
    match (named, resumed) {
        (Some(named), _) => named,
        (None, Some(id)) => format!("session {}", short(id)),
        // A registry that cannot be read is told by whoever prepares the bundle.
        (None, None) => prepare::current(access).unwrap_or_default(),
    }
}
