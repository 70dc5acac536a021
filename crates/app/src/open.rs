//! From a checked plan to an open session with its folder, journal and lease. All policy of opening is here.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{ApprovalSystem, Capability, DisplaySystem};
use amplifier_core::history::{History, Replay};
use amplifier_core::journal::{Journal, JournalError};
use amplifier_core::loader::Loader;
use amplifier_core::session::{OpenError, OpenFault, Session, SessionBuilder, Strictness};
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::Record;
use async_trait::async_trait;
use serde_json::Value;

use crate::clock::SystemClock;
use crate::env::{self, Environment, OfferedVariables};
use crate::expand::EnvExpander;
use crate::files::FileError;
use crate::journal::{FileJournal, JournalFileError, Owner, RecordReader, Repair};
use crate::paths::{Home, SessionFolder};
use crate::store::{SessionStore, StoreError, update_views};

/// The folder of the home in the person's own folder.
const HOME_FOLDER: &str = ".amplifierd";

/// What a session shall be opened with.
pub struct OpenRequest {
    /// Where sessions live.
    pub home: Home,
    /// Which session.
    pub which: Which,
    /// Where the person works; offered to modules as `session.working_dir`.
    pub working_dir: PathBuf,
    /// What a module that does not come up means.
    pub strictness: Strictness,
    /// Where `${VAR}` comes from.
    pub environment: Environment,
    /// Who is asked; nobody means that every question is answered with no.
    pub approval: Option<Arc<dyn ApprovalSystem>>,
    /// Where messages for the person go.
    pub display: Option<Arc<dyn DisplaySystem>>,
    /// Sees every record as it is made.
    pub tap: Option<Arc<dyn RecordTap>>,
}

/// Which session to open.
pub enum Which {
    /// A new one of this plan.
    New(Box<MountPlan>),
    /// One that exists, with the plan it was opened with, or with this one instead.
    Resume(SessionId, Option<Box<MountPlan>>),
}

/// Sees every record as it is made, in order. It is called in the middle of a turn: be quick.
pub trait RecordTap: Send + Sync {
    /// One record.
    fn record(&self, record: &Record);
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// No home folder was named.
    #[error("there is no home folder: neither `--home` nor `AMPLIFIER_HOME` nor `HOME` is set")]
    NoHome,
    /// The session's folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session's journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The kernel refused.
    #[error(transparent)]
    Open(#[from] Box<OpenError>),
}

impl AppError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoHome => Some("name one with `--home DIR`"),
            Self::Store(StoreError::NotFound { .. }) => {
                Some("`--home` must be the one the session was made in")
            }
            Self::Store(StoreError::File(_)) => {
                Some("`--home DIR` or AMPLIFIER_HOME names a folder you can write to")
            }
            Self::Open(open) if matches!(open.fault, OpenFault::Strict { .. }) => {
                Some("without `--strict` the session runs with what is there")
            }
            _ => None,
        }
    }
}

/// An open session and where it is kept.
pub struct OpenSession {
    /// The session.
    pub session: Session,
    /// Its folder.
    pub folder: SessionFolder,
    /// What had to be mended in its journal.
    pub repair: Option<Repair>,
}

/// The home folder: the flag, else `AMPLIFIER_HOME`, else `~/.amplifierd`.
pub fn find_home(flag: Option<PathBuf>, environment: &Environment) -> Result<Home, AppError> {
    let named =
        flag.or_else(|| environment.get(env::AMPLIFIER_HOME).filter(|v| !v.is_empty()).map(PathBuf::from));
    let usual = || Some(PathBuf::from(environment.get(env::HOME)?).join(HOME_FOLDER));
    named.or_else(usual).map(Home::new).ok_or(AppError::NoHome)
}

/// Opens a session: makes or finds its folder, takes its lease, and mounts its modules.
pub async fn open(request: OpenRequest) -> Result<OpenSession, AppError> {
    let store = SessionStore::new(request.home);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let owner = Owner::this_process("amplifier", clock.now());
    let (id, plan, folder, is_new) = match request.which {
        Which::New(plan) => {
            let id = SessionId::generate();
            let folder = store.create(&id, &plan)?;
            (id, *plan, folder, true)
        }
        Which::Resume(id, plan) => {
            let folder = store.open(&id)?;
            let plan = plan.map_or_else(|| store.plan(&folder), |plan| Ok(*plan))?;
            (id, plan, folder, false)
        }
    };
    let (journal, opened) = FileJournal::open(&folder, owner)?;
    let history = if is_new { None } else { Some(read_history(&folder)?) };
    if !is_new {
        store.write_plan(&folder, &plan)?;
    }

    let home_dir = request.environment.get(env::HOME).map(Value::String);
    let variables = Capability::Call(Arc::new(OfferedVariables(request.environment.clone())));
    let loader =
        Loader::new().finder(Arc::new(BuiltIns)).expander(Arc::new(EnvExpander::new(request.environment)));
    let text = |path: &std::path::Path| Capability::Value(Value::String(path.display().to_string()));
    let mut builder = SessionBuilder::new(plan, Arc::new(loader), clock)
        .session_id(id)
        .journal(Arc::new(Tee { journal, tap: request.tap }))
        .capability("session.working_dir", text(&request.working_dir))
        .capability("session.dir", text(folder.dir()))
        .capability("environment.variable", variables)
        .strictness(request.strictness);
    if let Some(home_dir) = home_dir {
        builder = builder.capability("user.home_dir", Capability::Value(home_dir));
    }
    if let Some(history) = history {
        builder = builder.resume(history);
    }
    if let Some(approval) = request.approval {
        builder = builder.approval(approval);
    }
    if let Some(display) = request.display {
        builder = builder.display(display);
    }
    match builder.open().await {
        Ok(session) => Ok(OpenSession { session, folder, repair: opened.repair }),
        Err(error) => {
            if is_new {
                // Nothing was said in it: a folder that stays would only be in the way of the real sessions.
                std::fs::remove_dir_all(folder.dir())
                    .map_err(FileError::at("remove", folder.dir()))
                    .map_err(StoreError::from)?;
            }
            Err(AppError::Open(Box::new(error)))
        }
    }
}

impl OpenSession {
    /// Brings `transcript.jsonl` and `metadata.json` up to the journal. Call it when a turn has ended.
    pub async fn update_views(&self) -> Result<(), AppError> {
        let folder = self.folder.clone();
        match tokio::task::spawn_blocking(move || update_views(&folder).map(drop)).await {
            Ok(updated) => Ok(updated?),
            // The runtime is going down; the views are rebuilt when the session is next opened or listed.
            Err(_) => Ok(()),
        }
    }
}

fn read_history(folder: &SessionFolder) -> Result<History, AppError> {
    let mut replay = Replay::default();
    for record in RecordReader::open(folder)? {
        replay.push(&record?);
    }
    Ok(replay.finish())
}

/// The journal, and somebody who looks on.
struct Tee {
    journal: FileJournal,
    tap: Option<Arc<dyn RecordTap>>,
}

#[async_trait]
impl Journal for Tee {
    fn append(&self, record: &Record) -> Result<(), JournalError> {
        self.journal.append(record)?;
        if let Some(tap) = &self.tap {
            tap.record(record);
        }
        Ok(())
    }

    async fn sync(&self) -> Result<(), JournalError> {
        self.journal.sync().await
    }
}
