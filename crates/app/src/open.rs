//! From a checked plan to an open session with its folder, journal and lease. All policy of opening is here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::mention::{FailedMention, Speaker};
use amplifier_core::cancel::CancelToken;
use amplifier_core::clock::Clock;
use amplifier_core::contracts::{
    ApprovalSystem, Capability, DisplayMessage, DisplaySystem, ModuleSourceResolver,
};
use amplifier_core::journal::{Journal, JournalError};
use amplifier_core::ledger::EARLIER;
use amplifier_core::loader::Loader;
use amplifier_core::session::{Session, SessionBuilder, Strictness};
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::event::{SessionDescribed, SessionOrigin};
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::Record;
use amplifier_protocol::spend::Amounts;
use amplifier_protocol::usage::Usd;
use amplifier_sources::cache::{Cache, InUse};
use amplifier_sources::fetch::{Base, FetchContext};
use amplifier_sources::lock::BundleLock;
use amplifier_sources::resolver::SourceResolver;
use async_trait::async_trait;
use serde_json::Value;

use crate::agents;
use crate::clock::SystemClock;
use crate::credentials::Credentials;
use crate::env::{self, Environment};
use crate::expand::EnvExpander;
use crate::journal::{
    DurableMark, FileJournal, HIDE, HIDE_EVENT, HideInEvents, HideSecrets, Owner, Repair, Secrets,
};
use crate::library;
use crate::paths::{Home, SessionFolder};
use crate::prompt::{PromptParts, PromptedContext, SystemPrompt};
use crate::resolver;
use crate::sessions::index::{Index, Note};
use crate::spawn::{Door, Nest};
use crate::store::{
    SessionStore, StoreError, Views, ViewsUse, are_damaged, discard, read_history, rebuild_views,
    update_views, update_views_to,
};
use crate::trust::{Request, Trust};

pub(crate) mod capabilities;
mod error;
mod finish;
mod kept;

pub use error::{AppError, NotText};
pub(crate) use error::{NOT_WRITABLE, check_names};
pub use finish::forget;
use kept::Kept;

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
    /// Whether the files of the project may start programs.
    pub trust: Arc<Trust>,
    /// Who is asked; nobody means that every question is answered with no.
    pub approval: Option<Arc<dyn ApprovalSystem>>,
    /// Where messages for the person go.
    pub display: Option<Arc<dyn DisplaySystem>>,
    /// Sees every record as it is made.
    pub tap: Option<Arc<dyn RecordTap>>,
    /// What the system prompt is made from; a resumed session keeps what it has unless something is given here.
    pub prompt: Option<PromptParts>,
    /// Who decides where modules come from; without it the built-in ones are taken, and what the plan's sources hold.
    pub resolver: Option<Arc<dyn ModuleSourceResolver>>,
    /// What exactly the sources of the plan are. It is kept with the session, so that resuming takes the same.
    pub lock: Option<Arc<BundleLock>>,
    /// What the plan comes from; kept with the session. Nothing when a session goes on with its own plan.
    pub origin: Option<SessionOrigin>,
    /// What the session needs the user's consent for; one that is resumed keeps what it has unless something is given here.
    pub request: Option<Request>,
    /// Gives up opening when it asks to stop at once; a session that is open has its own.
    pub cancel: CancelToken,
}

/// Which session to open.
pub enum Which {
    /// A new one of this plan.
    New(Box<MountPlan>),
    /// One that exists, with the plan it was opened with, or with this one instead.
    Resume(SessionId, Option<Box<MountPlan>>),
}

/// Sees every record as it is written, without the keys that are known, in order. It is called in the middle of a turn: be quick.
pub trait RecordTap: Send + Sync {
    /// One record.
    fn record(&self, record: &Record);

    /// Who looks on at a session that this one starts as part of its work; nobody, unless somebody wants to.
    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        None
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
    /// Whether its transcript or metadata were damaged and were made again from its journal.
    pub rebuilt: bool,
    nest: Arc<Nest>,
    durable: DurableMark,
    /// What of the cache its prompt reads.
    _in_use: Vec<InUse>,
}

/// The home folder: the flag, else `AMPLIFIER_HOME`, else `~/.amplifierd`.
pub fn find_home(flag: Option<PathBuf>, environment: &Environment) -> Result<Home, AppError> {
    let named = flag.or_else(|| environment.folder(env::AMPLIFIER_HOME));
    let usual = || Some(environment.folder(env::HOME)?.join(HOME_FOLDER));
    named.or_else(usual).map(Home::new).ok_or(AppError::NoHome)
}

/// Opens a session: makes or finds its folder, takes its lease, and mounts its modules.
pub async fn open(request: OpenRequest) -> Result<OpenSession, AppError> {
    check_names(&request.working_dir, &request.home)?;
    let store = SessionStore::new(request.home);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let environment = request.environment.with_plain().of_session();
    let surroundings = Surroundings {
        working_dir: request.working_dir,
        user_home: environment.get(env::HOME).map(PathBuf::from),
        environment: environment.clone(),
        display: request.display,
        strictness: request.strictness,
        trust: request.trust,
    };
    // A plan that comes from nowhere else is the session's own, changed or not.
    let is_own = request.origin.is_none() && request.prompt.is_none();
    let mut credentials = Credentials::default();
    let mut kept = match request.which {
        Which::New(plan) => Kept::create(
            &store,
            SessionId::generate(clock.now()),
            credentials.hide_plan(*plan),
            request.prompt,
        )?,
        Which::Resume(id, plan) => Kept::find(&store, id, plan.map(|plan| *plan), request.prompt)?,
    };
    // A plan that was kept before credentials were hidden is kept without them from now on.
    kept.plan = credentials.hide_plan(kept.plan);
    environment.learn(credentials.plain());
    let kept = match is_own && !kept.is_new && request.lock.is_none() {
        true => kept.under_its_lock()?,
        false => Kept { lock: request.lock, ..kept },
    };
    let kept = Kept { request: request.request, ..kept };
    let resolver = request.resolver.or_else(|| {
        let sources = sources(store.home(), &environment, &surroundings.working_dir)
            .with_written(credentials.written().clone());
        let sources = match &kept.lock {
            Some(lock) => sources.with_lock(Arc::clone(lock)),
            None => sources,
        };
        resolver::for_plan(&kept.plan, sources, store.home())
    });
    let loader = Loader::new().finder(Arc::new(BuiltIns)).expander(Arc::new(EnvExpander::new(environment)));
    let mut builder =
        SessionBuilder::new(kept.plan.clone(), Arc::new(loader), clock).session_id(kept.id.clone());
    builder = builder.unless_cancelled(request.cancel);
    if let Some(approval) = request.approval {
        builder = builder.approval(approval);
    }
    if let Some(display) = &surroundings.display {
        builder = builder.display(Arc::clone(display));
    }
    if let Some(resolver) = resolver {
        builder = builder.resolver(resolver);
    }
    let standing = Standing { depth: 0, tap: request.tap, origin: request.origin };
    furnish(builder, store, kept, surroundings, standing).await
}

/// Where the modules of a plan come from that nobody prepared.
pub(crate) fn sources(home: &Home, environment: &Environment, working_dir: &Path) -> SourceResolver {
    let base = Base { home: environment.get(env::HOME).map(PathBuf::from), ..Base::at(working_dir) };
    SourceResolver::new(Arc::new(library::fetcher(home, environment)), FetchContext::new(base))
}

/// The plan of a child.
pub(crate) enum ChildPlan {
    /// A new child of this plan.
    New(Box<MountPlan>),
    /// One that exists, with the plan it was opened with.
    Kept,
}

/// Opens a session below another one, with a folder and a journal of its own.
pub(crate) async fn open_child(
    nest: &Nest,
    id: SessionId,
    plan: ChildPlan,
    parts: PromptParts,
    depth: u64,
) -> Result<OpenSession, AppError> {
    let store = nest.store.clone();
    let kept = match plan {
        ChildPlan::New(plan) => {
            // Its references are filled in with those of its parent, and must not be the same for another key.
            let environment = &nest.surroundings.environment;
            let mut credentials = Credentials::default();
            *credentials.plain_mut() = environment.plain();
            let plan = credentials.hide_plan(*plan);
            environment.learn(credentials.plain());
            // It does what the parent may, and needs the same consent when it is resumed by itself.
            let parent = store.open(nest.session.id())?;
            Kept { request: Request::of_session(&parent)?, ..Kept::create(&store, id, plan, Some(parts))? }
        }
        ChildPlan::Kept => Kept::find(&store, id, None, Some(parts))?,
    };
    let builder = nest.session.child(kept.plan.clone()).session_id(kept.id.clone());
    let tap = nest.tap.as_ref().and_then(|tap| tap.child(&kept.id));
    let standing = Standing { depth, tap, origin: None };
    furnish(builder, store, kept, nest.surroundings.clone(), standing).await
}

/// Where a session stands and what stands around it; children have the same.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) working_dir: PathBuf,
    pub(crate) user_home: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) display: Option<Arc<dyn DisplaySystem>>,
    pub(crate) strictness: Strictness,
    pub(crate) trust: Arc<Trust>,
}

/// What differs between a session and its children.
struct Standing {
    depth: u64,
    tap: Option<Arc<dyn RecordTap>>,
    origin: Option<SessionOrigin>,
}

/// Gives a session its journal, its capabilities and its prompt, and opens it.
async fn furnish(
    mut builder: SessionBuilder,
    store: SessionStore,
    kept: Kept,
    surroundings: Surroundings,
    standing: Standing,
) -> Result<OpenSession, AppError> {
    let owner = Owner::this_process("amplifier", SystemClock::default().now());
    let (journal, opened) = kept.take(owner)?;
    let secrets = Secrets::of(&kept.plan, &surroundings.environment);
    let journal = journal.hiding(secrets.clone());
    let Kept { id, plan, folder, parts, is_new, .. } = kept;
    let begun = Begun(is_new.then(|| folder.clone()));
    let mut rebuilt = false;
    if !is_new {
        let damaged = are_damaged(&folder);
        update_views(&folder)?;
        let read = read_history(&folder)?;
        if read.views == ViewsUse::Damaged {
            rebuild_views(&folder)?;
        }
        rebuilt = damaged || read.views == ViewsUse::Damaged;
        builder = builder.resume(read.history);
        store.write_plan(&folder, &plan)?;
        parts.replace(&folder)?;
    }
    let (dir, home, display) =
        (surroundings.working_dir.clone(), surroundings.user_home.clone(), surroundings.display.clone());
    let cache = Cache::new(store.home().cache());
    let in_use = parts.paths().filter_map(|path| cache.hold(path)).collect();
    // Looking for the project's own words may take a moment in a large folder.
    let trust = Arc::clone(&surroundings.trust);
    let prompt = move || SystemPrompt::new(parts, dir, home, &trust, display);
    let prompt = tokio::task::spawn_blocking(prompt).await;
    let prompt = Arc::new(prompt.map_err(|error| AppError::CutOff { message: error.to_string() })?);
    let (door, durable) = (Arc::new(Door::default()), journal.mark());
    builder = capabilities::offer(builder, &plan, &folder, &surroundings, &prompt, &door);
    builder = capabilities::offer_trust(builder, &surroundings.trust, store.home())
        .journal(Arc::new(Tee { journal, tap: standing.tap.clone() }))
        .capability(HIDE_EVENT, Capability::Call(Arc::new(HideInEvents::new(secrets.clone()))))
        .capability(HIDE, Capability::Call(Arc::new(HideSecrets(secrets))))
        .capability("self_delegation_depth", Capability::Value(Value::from(standing.depth)))
        .strictness(surroundings.strictness);
    // The disk is waited for while modules mount: nobody has been promised anything yet.
    let settled = async { if is_new { Kept::settle(folder.clone()).await } else { Ok(()) } };
    let session = match tokio::join!(builder.open(), settled) {
        (Ok(session), Ok(())) => Ok(session),
        (Ok(session), Err(error)) => {
            session.cleanup().await;
            Err(error)
        }
        (Err(error), _) => Err(AppError::Open(Box::new(error))),
    };
    let session = session?;
    begun.keep();
    if *prompt.parts() != PromptParts::default() {
        let (prompt, coordinator) = (Arc::clone(&prompt), session.coordinator().clone());
        session.coordinator().wrap_context(|inner| Arc::new(PromptedContext { prompt, inner, coordinator }));
    }
    let begun_in = is_new.then_some(surroundings.working_dir.as_path());
    describe(&session, begun_in, standing.origin).await;
    Index::of(store.home()).note(&[Note::Opened(&id)]);
    let (depth, tap) = (standing.depth, standing.tap);
    let nest = Arc::new(Nest { session: session.clone(), store, surroundings, prompt, depth, tap });
    door.lead_to(&nest);
    Ok(OpenSession { session, folder, repair: opened.repair, rebuilt, nest, durable, _in_use: in_use })
}

/// A folder that was made for a session; it is gone again unless the session opens, also when opening is given up.
struct Begun(Option<SessionFolder>);

impl Begun {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.iter().for_each(discard);
    }
}

/// Writes down what the plan does not say: where the session was begun, and what from.
async fn describe(session: &Session, begun_in: Option<&Path>, origin: Option<SessionOrigin>) {
    if begun_in.is_none() && origin.is_none() {
        return;
    }
    let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned()).display().to_string();
    let working_dir = begun_in.map(real);
    let told = SessionDescribed { working_dir, bundle: origin, ..SessionDescribed::default() };
    session.coordinator().emit(told).await;
}

/// What a session has beside its plan.
#[derive(Debug, Clone)]
pub struct Keeps {
    pub prompt: PromptParts,
    pub lock: Option<Arc<BundleLock>>,
    pub origin: Option<SessionOrigin>,
    pub request: Option<Request>,
    /// What its references stand for.
    pub environment: Environment,
}

impl OpenSession {
    /// What the session and its sub-sessions spent since it was opened.
    pub fn spent_in_run(&self) -> Amounts {
        let statement = self.session.coordinator().ledger().statement();
        let earlier = statement.by_spender.get(EARLIER).copied().unwrap_or_default();
        // A tool call is begun before it has cost anything.
        let begun = Amounts { tool_calls: statement.reserved.tool_calls, ..Amounts::default() };
        statement.total.minus(&earlier).plus(&begun)
    }

    /// What the session and its sub-sessions spent, in earlier runs too.
    pub fn spent(&self) -> Amounts {
        self.session.coordinator().ledger().total()
    }

    /// The money in that; nothing when nobody told a price.
    pub fn cost_of_run(&self) -> Option<Usd> {
        self.price(&self.spent_in_run())
    }

    /// The same for all runs.
    pub fn cost(&self) -> Option<Usd> {
        self.price(&self.spent())
    }

    fn price(&self, spent: &Amounts) -> Option<Usd> {
        let told = self.session.status().cost_usd.is_some() || spent.cost_nanos > 0;
        told.then(|| Usd::from_nanos(spent.cost_nanos))
    }

    /// What the session has beside its plan, for whoever leaves it and may have to come back.
    pub fn keeps(&self) -> Result<Keeps, AppError> {
        let (store, id) = (&self.nest.store, self.session.id());
        let kept = Kept::find(store, id.clone(), None, None)?.under_its_lock()?;
        let origin = store.metadata(id).ok().and_then(|metadata| metadata.bundle);
        let request = Request::of_session(&kept.folder)?;
        let environment = self.environment().clone();
        Ok(Keeps { prompt: kept.parts, lock: kept.lock, origin, request, environment })
    }

    /// The keys that it knows, for whoever writes something down beside its journal.
    pub fn secrets(&self) -> Secrets {
        Secrets::of(self.session.coordinator().plan(), self.environment())
    }

    /// Where its variables come from.
    pub(crate) fn environment(&self) -> &Environment {
        &self.nest.surroundings.environment
    }

    /// Shows the person something, where there is a place for it.
    pub(crate) async fn show(&self, message: String) {
        if let Some(display) = &self.nest.surroundings.display {
            let (level, source) = (MessageLevel::Warning, self.session.id().to_string());
            display.show_message(DisplayMessage { message, level, source }).await;
        }
    }

    /// A prompt with the files it mentions before it and the wish for the agents it names behind it, and the mentions that
    /// led nowhere.
    pub async fn expand(&self, text: String, speaker: Speaker) -> (String, Vec<FailedMention>) {
        if !text.contains('@') {
            return (text, Vec::new());
        }
        let (prompt, kept) = (Arc::clone(&self.nest.prompt), text.clone());
        match tokio::task::spawn_blocking(move || prompt.expand(&text, &speaker)).await {
            Ok((mut expanded, mut gathered)) => {
                let wish = agents::take_mentions(&mut gathered.failed, self.session.coordinator());
                expanded.extend(wish.map(|wish| format!("\n\n{wish}")));
                self.nest.prompt.report("prompt", &gathered, self.session.coordinator()).await;
                (expanded, gathered.failed)
            }
            // The runtime is going down, and the turn with it.
            Err(_) => (kept, Vec::new()),
        }
    }

    /// Brings `transcript.jsonl` and `metadata.json` up to the journal. Call it when a turn has ended.
    pub async fn update_views(&self) -> Result<(), AppError> {
        let (folder, store, id) = (self.folder.clone(), self.nest.store.clone(), self.session.id().clone());
        let is_over = self.session.status().ended_at.is_some();
        // A disk that refuses was told to whoever wrote the record; views are made of what it kept.
        self.session.coordinator().sync_journal().await.ok();
        let durable = self.durable.seq();
        let update = move || -> Result<(), StoreError> {
            let views = match durable {
                Some(seq) => update_views_to(&folder, seq)?,
                None => update_views(&folder)?,
            };
            if views != Views::Empty {
                let metadata = store.metadata(&id)?;
                let note = if is_over { Note::Closed(&metadata) } else { Note::Open(&metadata) };
                Index::of(store.home()).note(&[note]);
            }
            Ok(())
        };
        match tokio::task::spawn_blocking(update).await {
            Ok(updated) => Ok(updated?),
            // The runtime is going down; the views are rebuilt when the session is next opened or listed.
            Err(_) => Ok(()),
        }
    }
}

/// The journal, and somebody who looks on.
struct Tee {
    journal: FileJournal,
    tap: Option<Arc<dyn RecordTap>>,
}

#[async_trait]
impl Journal for Tee {
    fn append(&self, record: &Record) -> Result<(), JournalError> {
        self.journal.append_shown(record, |shown| self.tap.iter().for_each(|tap| tap.record(shown)))
    }

    async fn sync(&self) -> Result<(), JournalError> {
        self.journal.sync().await
    }
}
