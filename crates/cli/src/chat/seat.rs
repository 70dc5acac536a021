//! The seat of a chat: that of `app`, with the wires over which the terminal hears of its session.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_app::approval::{Asker, Places};
use amplifier_app::failure::{self, Doors, Failure, Front};
use amplifier_app::files::{FileError, create_private_dir};
use amplifier_app::library::Access;
use amplifier_app::modes::Mode;
use amplifier_app::paths::Home;
use amplifier_app::providers::UnknownProvider;
use amplifier_app::seat::{self, Ending, Ground};
use amplifier_app::sessions::{Scope, drift};
use amplifier_app::{CancelToken, DisplayMessage, DisplaySystem, ExecuteError};
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::ids::SessionId;
use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

mod go;

use super::approve::{Approver, Asked};
use super::complete::Known;
use super::screen::Face;
use super::tap::{Seen, Tap};
use crate::commands::start::{self, Terms};
use crate::exit::Exit;
use crate::render;
use crate::stop::{Stop, Stops};
pub use go::Arrival;

/// The session and its wires.
pub struct Seat {
    taken: seat::Seat,
    pub seen: UnboundedReceiver<Seen>,
    pub asked: UnboundedReceiver<Asked>,
}

/// All that is not about the terminal is the seat of `app`.
impl Deref for Seat {
    type Target = seat::Seat;

    fn deref(&self) -> &seat::Seat {
        &self.taken
    }
}

/// Where a chat goes on.
pub struct Move {
    to: seat::Move,
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
        terms: &Terms,
        resumed: Option<SessionId>,
        access: Access,
        face: Face,
        stops: &mut Stops,
    ) -> Result<Self, Exit> {
        let (seen_by, seen) = unbounded_channel();
        let (asked_by, asked) = unbounded_channel();
        let approver = Approver { questions: asked_by, places: Places::of(&access) };
        let person = (face != Face::Pipe).then(|| Arc::new(approver) as Arc<dyn Asker>);
        let display: Arc<dyn DisplaySystem> = Arc::new(Notices(seen_by.clone()));
        let approvals = Arc::new(start::approvals(terms.approve, &access, person, Arc::clone(&display)));
        let (wish, tap) = (terms.wish.clone(), Arc::new(Tap(seen_by)));
        let ground = Ground { access: access.clone(), wish, approvals, display, tap };
        let cancel = access.cancel.clone();
        let refused = |stop: Stop| {
            render::note(&format!("error: {}", stop.reason()));
            stop.exit()
        };
        let found = start::find(&terms.wish, resumed, access);
        let start = stops.unless_stopped(found, &cancel).await.map_err(refused)??;
        let before = start.before.clone();
        let taking = seat::Seat::take(start, ground);
        let taken = stops.unless_stopped(taking, &cancel).await.map_err(refused)?;
        let taken = taken.map_err(|error| start::refuse_to_open(&error))?;
        start::tell_about(&taken.opened, before.as_ref());
        Ok(Self { taken, seen, asked })
    }

    /// The same session, in which another provider is asked.
    pub fn with_provider(&self, name: &str, told: String) -> Result<Move, UnknownProvider> {
        Ok(Move { to: self.taken.with_provider(name)?, told })
    }

    /// The same session, in which the provider that answers asks another model.
    pub fn with_model(&self, model: &str, told: String) -> Move {
        Move { to: self.taken.with_model(model), told }
    }

    /// The same session with the plan of another bundle; what went wrong with finding it has been told.
    pub async fn with_bundle(&self, reference: &str, cancel: CancelToken) -> Result<Move, Exit> {
        let found = self.taken.with_bundle(reference, cancel.clone(), &start::tell).await;
        let to = found.map_err(|error| start::refuse(&error, &self.access_until(cancel)))?;
        let told = format!("the session goes on with `{}`", to.made_of);
        Ok(Move { to, told })
    }

    /// The same session, where its journal takes nothing more and must be opened again.
    pub async fn anew(&self) -> Option<Move> {
        let told = "the session was opened anew: its journal takes what is said again".to_owned();
        Some(Move { to: self.taken.anew().await?, told })
    }

    /// A copy of this session.
    pub fn copy(&self, id: SessionId, told: String) -> Move {
        Move { to: self.taken.copy(id), told }
    }

    /// Another session, as it was.
    pub fn other(&self, id: SessionId, told: String) -> Move {
        Move { to: self.taken.other(id), told }
    }

    /// Says if another session goes on elsewhere, and if what it was started from gives something else now.
    pub async fn tell_changes(&self, id: &SessionId, cancel: CancelToken) {
        drift::tell_changes(&self.access_until(cancel), id, &start::tell).await;
    }

    pub fn folder(&self) -> &Path {
        &self.access().base
    }

    /// The sessions of the project the person is in.
    pub fn scope(&self) -> Scope {
        Scope::here(self.access())
    }

    pub fn home(&self) -> &Home {
        &self.access().home
    }

    /// A turn that failed, in words.
    pub fn failure(&self, error: &ExecuteError) -> Failure {
        let doors = Doors::of(&self.opened, &self.access().settings);
        failure::describe(error, &self.opened, &doors, Front::Chat)
    }

    /// How long one prompt may take.
    pub fn time(&self) -> Option<Duration> {
        self.access().settings.limits().timeout
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
        let home = self.access().environment.get(amplifier_app::env::HOME).map(PathBuf::from);
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
        let file = self.home().history(self.folder());
        if let Some(folder) = file.parent() {
            create_private_dir(folder)?;
        }
        amplifier_app::files::create_private_file(&file)?;
        Ok(file)
    }

    /// Ends the session. Says how to come back to it, and what went wrong with its end.
    pub async fn close(self) -> Farewell {
        self.taken.close().await.into()
    }
}

/// The last words of a chat.
pub struct Farewell {
    pub hint: Option<String>,
    pub problems: Vec<String>,
}

impl From<Ending> for Farewell {
    fn from(ending: Ending) -> Self {
        let hint = ending.kept.map(|id| format!("go on with: amplifier{} resume {id}", render::flags()));
        Self { hint, problems: ending.problems }
    }
}

impl Farewell {
    /// That of who did not wait for the end.
    pub fn in_haste(id: &SessionId) -> Self {
        let told =
            "the end of the session was not waited for; what is missing is made again from its journal";
        Ending { kept: Some(id.clone()), problems: vec![told.to_owned()] }.into()
    }
}

/// The beginning of an id, enough for people: its first part alone is the same for a minute.
pub fn short(id: &SessionId) -> String {
    id.as_str().chars().take(13).collect()
}
