//! Lists of sessions, from the index where it knows, from the session's own files where it does not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZero;
use std::path::Path;
use std::thread::ScopedJoinHandle;

use amplifier_core::clock::Clock;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;

use super::index::{Contents, Index, Known, Note};
use super::mark::{self, DamagedPlace};
use super::{Place, SessionError, has_journal, reading};
use crate::clock::{SystemClock, can_be_right};
use crate::journal::{Lease, LeaseError, Owner};
use crate::library::Access;
use crate::store::{
    Metadata, SessionStore, StoreError, are_damaged, check_journal, metadata_now, metadata_of, updated,
};

/// The clocks of two machines that share a home may differ by this much.
const LEEWAY_MICROS: i64 = 60 * 1_000_000;
/// So many sessions are looked at one after the other before a thread more is worth it.
const FEW: usize = 64;

/// Which sessions.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Those that were started here.
    pub place: Place,
    /// At most this many, the last used first.
    pub limit: Option<usize>,
    /// Whether sessions that others started as part of their work are shown too.
    pub children: Children,
}

/// Whether sub-sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Children {
    #[default]
    Hidden,
    Shown,
}

impl Scope {
    /// All sessions that people started.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those that were started in a folder or below it.
    pub fn below(folder: &Path) -> Self {
        Self { place: Place::below(folder), ..Self::default() }
    }

    /// Those of the project that somebody is in, or of this folder alone where it is in none.
    pub fn here(access: &Access) -> Self {
        Self { place: Place::here(access), ..Self::default() }
    }

    /// With the sub-sessions.
    #[must_use]
    pub fn with_children(self) -> Self {
        Self { children: Children::Shown, ..self }
    }

    fn shows_children(&self) -> bool {
        self.children == Children::Shown
    }

    pub(super) fn is_here(&self, dir: Option<&Path>) -> bool {
        self.place.has(dir)
    }
}

/// A session that could not be read, and why.
pub type Unread = (SessionId, SessionError);

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub metadata: Metadata,
    /// Who has it now.
    pub owner: Option<Owner>,
    /// When it was last used, as far as that is known: not before what was used before it, whatever the clock said then.
    pub used: Timestamp,
    /// What was found to be wrong with its journal, as far as a list knows.
    pub damaged: Vec<DamagedPlace>,
    /// By what it stands before or behind others: who is used later has more.
    rank: i64,
}

impl Listed {
    fn new(metadata: Metadata, owner: Option<Owner>) -> Self {
        let used = metadata.updated;
        Self { used, rank: used.as_micros(), metadata, owner, damaged: Vec::new() }
    }

    /// Used then, as the index has it. Since the clock was ahead once, that may lie ahead too and says no more than what was
    /// used before what; the time of the last record is nearer then.
    fn used(self, at: i64) -> Self {
        let is_ahead = at > SystemClock::default().now().as_micros();
        let used = if is_ahead { self.metadata.updated } else { Timestamp::from_micros(at) };
        Self { used, rank: at, ..self }
    }

    /// Whether the time of its last use can be right, by what the clock says now.
    pub fn is_dated(&self) -> bool {
        let latest = SystemClock::default().now().as_micros().saturating_add(LEEWAY_MICROS);
        can_be_right(self.used) && self.used.as_micros() <= latest
    }
}

/// The sessions there are, the last used first, and those that could not be shown.
#[derive(Debug, Default)]
pub struct Listing {
    pub sessions: Vec<Listed>,
    /// How many there are, whatever the limit.
    pub total: usize,
    /// Folders without a readable journal, wherever they were started: that is not known either.
    pub unread: Vec<Unread>,
    /// Sessions whose views were missing or damaged and were made again from their journals.
    pub rebuilt: Vec<SessionId>,
    /// Sessions that are listed as they were known, and what is wrong with their journals.
    pub damaged: Vec<Unread>,
}

/// What a list shows of one session before its metadata is read.
enum Candidate<'a> {
    Indexed(&'a str, &'a Known),
    Looked(Box<Listed>),
}

impl Candidate<'_> {
    /// By what it is sorted.
    fn rank(&self) -> (i64, &str) {
        match self {
            Self::Indexed(id, known) => (known.used(), id),
            Self::Looked(listed) => (listed.rank, listed.metadata.session_id.as_str()),
        }
    }
}

/// The sessions of a scope.
pub fn list(store: &SessionStore, scope: &Scope) -> Result<Listing, SessionError> {
    let index = Index::of(store.home());
    // At the same time: of many sessions the one takes as long as the other.
    let (names, contents) = std::thread::scope(|threads| {
        let names = threads.spawn(|| store.names());
        let contents = index.contents();
        (names.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), contents)
    });
    let names = names?;
    let (mut candidates, strangers) = sift(&names, &contents, store, scope);
    let mut listing = Listing::default();
    let (mut looked, mut empty) = (Vec::new(), Vec::new());
    for (id, listed, found) in examine_all(store, &strangers) {
        let is_damaged = !found.damaged.is_empty();
        listing.rebuilt.extend(found.rebuilt);
        listing.damaged.extend(found.damaged);
        match listed {
            Ok(listed) => {
                let Metadata { working_dir, parent_id, updated, .. } = &listed.metadata;
                // The clock may have been set back since another was used; who opened it noted that it is the later one.
                let noted = contents.get(id.as_str()).map_or(0, |(_, known)| known.used());
                let used = updated.as_micros().max(noted);
                if listed.owner.is_none() && !is_damaged {
                    looked.push((listed.metadata.clone(), used));
                }
                if scope.is_here(working_dir.as_deref()) && (scope.shows_children() || parent_id.is_none()) {
                    candidates.push(Candidate::Looked(Box::new(listed.used(used))));
                }
            }
            // Nobody said anything in it: there is nothing to list, and nothing is wrong.
            Err(SessionError::Empty { id }) => {
                empty.extend(journal_bytes(store, &id).map(|bytes| (id, bytes)))
            }
            Err(error) => listing.unread.push((id, error)),
        }
    }
    let empty = empty.iter().map(|(id, bytes)| Note::Empty(id, *bytes));
    let notes: Vec<_> =
        looked.iter().map(|(metadata, used)| Note::Found(metadata, *used)).chain(empty).collect();
    index.note(&notes);
    if Index::is_wasteful(contents.lines() + notes.len(), names.matches('/').count()) {
        // What a file has too much costs a list time, and is no reason to fail.
        index.tidy(&store.ids()?).ok();
    }
    listing.total = candidates.len();
    for candidate in first(candidates, scope.limit) {
        listing.show(candidate, &contents, store)?;
    }
    Ok(listing)
}

/// Those of the scope that the index knows, and those that have to be looked at.
fn sift<'a>(
    names: &str,
    contents: &'a Contents,
    store: &SessionStore,
    scope: &Scope,
) -> (Vec<Candidate<'a>>, Vec<SessionId>) {
    let here: Vec<bool> = contents.folders().map(|folder| scope.is_here(Some(folder))).collect();
    let (mut candidates, mut strangers) = (Vec::new(), Vec::new());
    for name in names.split_terminator('/') {
        match contents.get(name) {
            Some((id, known)) if known.is_settled() => {
                let is_here =
                    known.folder().map_or_else(|| scope.is_here(None), |at| here.get(at) == Some(&true));
                if is_here && (scope.shows_children() || !known.is_child) {
                    candidates.push(Candidate::Indexed(id, known));
                }
            }
            known => {
                // Names that are no ids were not made by us.
                let Ok(id) = name.parse::<SessionId>() else { continue };
                let empty = known.and_then(|(_, known)| known.empty_journal());
                if empty.is_none() || empty != journal_bytes(store, &id) {
                    strangers.push(id);
                }
            }
        }
    }
    (candidates, strangers)
}

impl Listing {
    /// The same, with what is known to be wrong with each: for whoever shows it.
    #[must_use]
    pub fn marked(mut self, store: &SessionStore) -> Self {
        let mut anew = Vec::new();
        for listed in &mut self.sessions {
            let id = listed.metadata.session_id.clone();
            if listed.damaged.is_empty() {
                listed.damaged = mark::of(&store.home().session(&id));
            }
            // What the index has of it was made by an older version of this program, which counted in another way. Where it
            // cannot be looked at again, that is what is known.
            if !listed.metadata.is_current()
                && let Ok((looked, _)) = look(store, &id)
            {
                (listed.metadata, listed.owner) = (looked.metadata, looked.owner);
                // Who has it tells the index when it is done.
                if listed.owner.is_none() {
                    anew.push((listed.metadata.clone(), listed.rank));
                }
            }
        }
        let notes: Vec<_> = anew.iter().map(|(metadata, rank)| Note::Found(metadata, *rank)).collect();
        Index::of(store.home()).note(&notes);
        self
    }

    fn show(
        &mut self,
        candidate: Candidate<'_>,
        contents: &Contents,
        store: &SessionStore,
    ) -> Result<(), SessionError> {
        let id: SessionId = match candidate {
            Candidate::Looked(listed) => {
                self.sessions.push(*listed);
                return Ok(());
            }
            Candidate::Indexed(id, known) => match contents.metadata(known) {
                Some(metadata) => {
                    self.sessions.push(Listed::new(metadata, None).used(known.used()));
                    return Ok(());
                }
                None => id.parse()?,
            },
        };
        match examine(store, &id, self) {
            Ok(listed) => self.sessions.push(listed),
            Err(error) => self.unread.push((id, error)),
        }
        Ok(())
    }
}

fn journal_bytes(store: &SessionStore, id: &SessionId) -> Option<u64> {
    std::fs::metadata(store.home().session(id).events()).ok().map(|metadata| metadata.len())
}

/// So many of them, the last used first.
fn first(mut candidates: Vec<Candidate<'_>>, limit: Option<usize>) -> Vec<Candidate<'_>> {
    let newest_first = |one: &Candidate<'_>, other: &Candidate<'_>| other.rank().cmp(&one.rank());
    if let Some(limit) = limit.filter(|limit| *limit < candidates.len()) {
        // Nobody needs the order of those that are not shown.
        candidates.select_nth_unstable_by(limit, newest_first);
        candidates.truncate(limit);
    }
    candidates.sort_unstable_by(newest_first);
    candidates
}

/// One session, from its own files. Views that are behind or damaged are made again, unless somebody has the session.
pub fn look(store: &SessionStore, id: &SessionId) -> Result<(Listed, Vec<SessionId>), SessionError> {
    store.open(id)?;
    let mut listing = Listing::default();
    let listed = examined(store, id, &mut listing)?;
    Ok((listed, listing.rebuilt))
}

/// One session for being shown: one whose journal is damaged is what its views know of it, or else what can be read.
pub fn look_around(store: &SessionStore, id: &SessionId) -> Result<(Listed, Vec<SessionId>), SessionError> {
    store.open(id)?;
    let mut listing = Listing::default();
    match examine(store, id, &mut listing) {
        Err(error @ SessionError::Store(StoreError::Journal(_))) => {
            let folder = store.home().session(id);
            let metadata = reading::metadata_around(&folder, id)?.ok_or(error)?;
            Ok((Listed::new(metadata, None), Vec::new()))
        }
        listed => Ok((listed?, listing.rebuilt)),
    }
}

/// Sessions for a list, each with what was found about it.
fn examine_all(
    store: &SessionStore,
    ids: &[SessionId],
) -> Vec<(SessionId, Result<Listed, SessionError>, Listing)> {
    let look = |id: &SessionId| {
        let mut found = Listing::default();
        (id.clone(), examine(store, id, &mut found), found)
    };
    // Where the index is gone, all of them are looked at.
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = ids.len().div_ceil(threads).max(FEW);
    std::thread::scope(|scope| {
        let parts: Vec<_> = ids
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(look).collect::<Vec<_>>()))
            .collect();
        let join = |part: ScopedJoinHandle<'_, Vec<_>>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts.into_iter().flat_map(join).collect()
    })
}

/// One session for a list: one whose journal is damaged is listed as it was known.
fn examine(store: &SessionStore, id: &SessionId, listing: &mut Listing) -> Result<Listed, SessionError> {
    match examined(store, id, listing) {
        Err(error @ SessionError::Store(StoreError::Behind { .. } | StoreError::Journal(_))) => {
            // The error of the journal is the one worth telling.
            let Ok(metadata) = store.metadata(id) else { return Err(error) };
            let damaged = vec![mark::refused_by(&store.home().session(id), &error)];
            listing.damaged.push((id.clone(), error));
            Ok(Listed { damaged, ..Listed::new(metadata, None) })
        }
        listed => listed,
    }
}

fn examined(store: &SessionStore, id: &SessionId, listing: &mut Listing) -> Result<Listed, SessionError> {
    let folder = store.home().session(id);
    if !has_journal(&folder)? {
        check_journal(&folder)?;
        return Err(SessionError::NoJournal { id: id.clone(), journal: folder.events() });
    }
    let owner = Owner::who_looks(SystemClock::default().now());
    let lease = match Lease::acquire(&folder.lease(), owner) {
        Ok(lease) => lease,
        Err(LeaseError::Held { owner, .. }) => {
            // What its views know, where the journal is just being written in a way that cannot be read.
            let metadata = metadata_now(&folder).or_else(|_| metadata_of(&folder)).map_err(empty(id))?;
            return Ok(Listed::new(metadata, owner));
        }
        // A home that can only be read, or a full disk: what stands in the journal is enough.
        Err(_) => return Ok(Listed::new(metadata_now(&folder).map_err(empty(id))?, None)),
    };
    let damaged = are_damaged(&folder);
    let metadata = match updated(&folder) {
        Ok(metadata) => {
            if damaged {
                listing.rebuilt.push(id.clone());
            }
            metadata.ok_or_else(|| SessionError::Empty { id: id.clone() })?
        }
        // Who only reads needs no room on the disk.
        Err(StoreError::File(_)) => metadata_now(&folder).map_err(empty(id))?,
        Err(error) => return Err(error.into()),
    };
    drop(lease);
    Ok(Listed::new(metadata, None))
}

/// Names the session in which nothing was said.
fn empty(id: &SessionId) -> impl FnOnce(StoreError) -> SessionError {
    let id = id.clone();
    move |error| match error {
        StoreError::Empty { .. } => SessionError::Empty { id },
        error => error.into(),
    }
}

/// A session and everything that came of it.
#[derive(Debug)]
pub struct Tree {
    /// Each with its depth, a parent before its children.
    pub sessions: Vec<(usize, Listed)>,
    /// Sessions that may belong to it: they do not tell.
    pub unread: Vec<Unread>,
}

/// A session and everything that came of it: its sub-sessions, the forks of it, and theirs.
pub fn tree(store: &SessionStore, root: &SessionId) -> Result<Tree, SessionError> {
    let Listing { sessions: all, unread, .. } = list(store, &Scope::all().with_children())?;
    let mut below: HashMap<Cow<'_, str>, Vec<&Listed>> = HashMap::new();
    for listed in &all {
        let metadata = &listed.metadata;
        let above = metadata.parent_id.as_ref().or(metadata.forked_from.as_ref().map(|point| &point.session));
        if let Some(above) = above {
            below.entry(Cow::Borrowed(above.as_str())).or_default().push(listed);
        }
    }
    let Some(first) = all.iter().find(|listed| listed.metadata.session_id == *root) else {
        return Err(SessionError::NoJournal {
            id: root.clone(),
            journal: store.home().session(root).events(),
        });
    };
    let (mut found, mut waiting) = (Vec::new(), vec![(0, first)]);
    while let Some((depth, listed)) = waiting.pop() {
        // A session is below one other at most, and the root below none of these: each comes once.
        waiting.extend(
            below
                .remove(listed.metadata.session_id.as_str())
                .into_iter()
                .flatten()
                .filter(|child| child.metadata.session_id != *root)
                .map(|child| (depth + 1, child)),
        );
        let damaged = mark::of(&store.home().session(&listed.metadata.session_id));
        found.push((depth, Listed { damaged, ..listed.clone() }));
    }
    Ok(Tree { sessions: found, unread })
}
