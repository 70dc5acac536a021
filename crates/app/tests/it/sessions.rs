//! Sessions are listed from one file, found by the beginning of their ids, forked, rewound and deleted.

use std::path::Path;

use amplifier_app::journal::{FileJournal, verify};
use amplifier_app::paths::{Home, SessionFolder};
use amplifier_app::sessions::recent::{self, Before, Reach};
use amplifier_app::sessions::story::{self, Happening};
use amplifier_app::sessions::{self, ForkRequest, Scope, SessionError};
use amplifier_app::store::{SessionStore, update_views};
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::Record;
use serde_json::{Value, json};

use crate::support::{owner, read_all, record, write_journal};

struct Shelf {
    _dir: tempfile::TempDir,
    store: SessionStore,
}

impl Shelf {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(Home::new(dir.path().join("home")));
        Self { _dir: dir, store }
    }

    /// A session of some turns, each one question and one answer, started in a folder.
    fn session(&self, id: &str, dir: &str, turns: u64) -> SessionFolder {
        self.session_below(None, id, dir, turns)
    }

    /// The same, below another one.
    fn session_below(&self, parent: Option<&str>, id: &str, dir: &str, turns: u64) -> SessionFolder {
        let plan = json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}});
        let folder = self.store.create(&id.parse().unwrap(), &MountPlan::read(&plan).unwrap()).unwrap();
        let mut records = vec![
            record(1, 0, json!({"opened": {"session_id": id, "parent_id": parent, "plan_hash": "sha256:1"}})),
            event(2, 0, "session:described", &json!({"working_dir": dir})),
        ];
        for turn in 1..=turns {
            records.extend(turn_of(2 + (turn - 1) * 4, turn));
        }
        write_journal(&folder, &records);
        folder
    }

    fn ids(&self, scope: &Scope) -> Vec<String> {
        let listing = sessions::list(&self.store, scope).unwrap();
        listing.sessions.iter().map(|listed| listed.metadata.session_id.to_string()).collect()
    }
}

fn event(seq: u64, turn: u64, name: &str, data: &Value) -> Record {
    record(seq, turn, json!({"event": {"name": name, "data": data}}))
}

/// The four records of a turn after the record `last`.
fn turn_of(last: u64, turn: u64) -> [Record; 4] {
    let says = |role: &str, text: String| json!({"message": {"role": role, "content": text}});
    let done = json!({"orchestrator": "loop-basic", "turn_count": 0, "status": "success"});
    [
        event(last + 1, turn, "prompt:submit", &json!({"prompt": format!("question {turn}")})),
        record(last + 2, turn, says("user", format!("question {turn}"))),
        record(last + 3, turn, says("assistant", format!("answer {turn}"))),
        event(last + 4, turn, "orchestrator:complete", &done),
    ]
}

fn texts(folder: &SessionFolder) -> Vec<String> {
    let text = std::fs::read_to_string(folder.transcript()).unwrap();
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_list_is_made_from_the_journals_once_and_from_one_file_after_that() {
    let shelf = Shelf::new();
    let folders = [
        shelf.session("a", "/p/one", 1),
        shelf.session("b", "/p/two", 2),
        shelf.session("c", "/p/one/in", 3),
    ];
    assert_eq!(
        shelf.ids(&Scope::all()),
        ["c", "b", "a"],
        "the last used first, though nobody made a view yet"
    );
    assert_eq!(shelf.ids(&Scope::below(Path::new("/p/one"))), ["c", "a"]);
    // From here on neither journals nor views are looked at.
    for folder in &folders {
        std::fs::remove_file(folder.metadata()).unwrap();
        std::fs::write(folder.events(), "broken").unwrap();
    }
    assert_eq!(shelf.ids(&Scope { limit: Some(2), ..Scope::all() }), ["c", "b"]);
    // What is gone is not listed, and a broken or torn index is made again where it must be.
    std::fs::remove_dir_all(folders[1].dir()).unwrap();
    assert_eq!(shelf.ids(&Scope::all()), ["c", "a"]);
    let mut text = std::fs::read(shelf.store.home().session_index()).unwrap();
    text.extend(b"{\"id\":\"a\",\"op");
    std::fs::write(shelf.store.home().session_index(), text).unwrap();
    shelf.session("d", "/p/one", 1);
    assert_eq!(shelf.ids(&Scope::below(Path::new("/p/one"))), ["c", "d", "a"]);
    assert_eq!(shelf.ids(&Scope::below(Path::new("/p/one"))), ["c", "d", "a"]);
}

#[test]
fn a_session_that_somebody_has_is_listed_with_its_owner_and_damaged_views_are_told() {
    let shelf = Shelf::new();
    let folder = shelf.session("a", "/p", 1);
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    let listing = sessions::list(&shelf.store, &Scope::all()).unwrap();
    assert_eq!(listing.sessions[0].owner.as_ref().unwrap().program, "the test");
    assert_eq!(listing.sessions[0].metadata.title.as_deref(), Some("question 1"));
    assert!(!folder.metadata().exists(), "the views of a session that is in use are its owner's");
    drop(journal);
    std::fs::write(folder.metadata(), "no metadata").unwrap();
    let listing = sessions::list(&shelf.store, &Scope::all()).unwrap();
    assert_eq!(listing.rebuilt.len(), 1);
    assert_eq!((listing.sessions[0].owner.clone(), listing.sessions[0].metadata.turns), (None, 1));
    let empty = shelf.store.home().sessions().join("empty");
    std::fs::create_dir(empty).unwrap();
    let listing = sessions::list(&shelf.store, &Scope::all()).unwrap();
    assert_eq!((listing.sessions.len(), listing.rebuilt.len()), (1, 0));
    let journal = shelf.store.home().session(&"empty".parse().unwrap()).events();
    let told = format!("there is no journal in `{}`", journal.display());
    assert_eq!(listing.unread[0].1.to_string(), told);
}

#[test]
fn a_fork_has_the_turns_up_to_its_own_and_a_journal_of_its_own() {
    let shelf = Shelf::new();
    let source = shelf.session("a", "/p", 3);
    let before = std::fs::read(source.events()).unwrap();
    let request = ForkRequest { at: Some(2), name: Some("  second\n try ".to_owned()) };
    let forked = sessions::fork(&shelf.store, &"a".parse().unwrap(), &request).unwrap();
    let folder = shelf.store.open(&forked.id).unwrap();
    assert_eq!(texts(&folder), ["question 1", "answer 1", "question 2", "answer 2"]);
    assert_eq!(verify(&folder).unwrap().records, 11);
    let (old, new) = (read_all(&source), read_all(&folder));
    assert_eq!(old[1..10], new[1..10], "the same records under the same numbers");
    assert_eq!(forked.metadata.session_id, forked.id);
    assert_eq!(forked.metadata.name.as_deref(), Some("second try"));
    assert_eq!(forked.metadata.working_dir.as_deref(), Some(Path::new("/p")));
    let point = forked.metadata.forked_from.clone().unwrap();
    assert_eq!((point.session.as_str(), point.turn), ("a", 2));
    assert_eq!(std::fs::read(source.events()).unwrap(), before, "the first one stays as it is");
    assert_eq!(shelf.store.plan(&folder).unwrap(), shelf.store.plan(&source).unwrap());
    // A fork of the fork, without a name, has none.
    let again = sessions::fork(&shelf.store, &forked.id, &ForkRequest::default()).unwrap();
    assert_eq!((again.metadata.name, again.turn), (None, 2));
    let depths: Vec<_> = sessions::tree(&shelf.store, &"a".parse().unwrap())
        .unwrap()
        .sessions
        .iter()
        .map(|(depth, _)| *depth)
        .collect();
    assert_eq!(depths, [0, 1, 2]);
}

#[test]
fn w23_sessions_that_descend_from_each_other_are_shown_and_deleted_once() {
    let shelf = Shelf::new();
    for (parent, id) in [("b", "a"), ("c", "b"), ("a", "c")] {
        shelf.session_below(Some(parent), id, "/p", 1);
    }
    let tree = sessions::tree(&shelf.store, &"a".parse().unwrap()).unwrap();
    let shown: Vec<_> =
        tree.sessions.iter().map(|(depth, listed)| (*depth, listed.metadata.session_id.as_str())).collect();
    assert_eq!(shown, [(0, "a"), (1, "c"), (2, "b")]);
    let family = sessions::families(&shelf.store, &["a".parse().unwrap()]).unwrap().remove(0);
    assert_eq!(family.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["a", "c", "b"]);
}

#[test]
fn w23_lists_turns_and_forks_count_the_same_turns() {
    let shelf = Shelf::new();
    let folder = shelf.session("a", "/p", 3);
    let (listed, _) = sessions::look(&shelf.store, &"a".parse().unwrap()).unwrap();
    let forked = sessions::fork(&shelf.store, &"a".parse().unwrap(), &ForkRequest::default()).unwrap();
    let turns = sessions::turns(&folder).unwrap();
    assert_eq!((listed.metadata.turns, turns.len(), forked.turn, forked.metadata.turns), (3, 3, 3, 3));
}

#[test]
fn large_values_are_shared_with_a_fork() {
    let shelf = Shelf::new();
    let source = shelf.session("a", "/p", 1);
    let book = "page\n".repeat(30_000);
    write_journal(&source, &[record(7, 2, json!({"message": {"role": "user", "content": book}}))]);
    let forked = sessions::fork(&shelf.store, &"a".parse().unwrap(), &ForkRequest::default()).unwrap();
    std::fs::remove_dir_all(source.dir()).unwrap();
    let folder = shelf.store.open(&forked.id).unwrap();
    verify(&folder).unwrap();
    assert_eq!(texts(&folder)[2], book);
}

/// What the end of a conversation reads: the first of its turns, what is before them, and the prompts.
fn end_of(folder: &SessionFolder, reach: &Reach) -> (u64, Before, Vec<String>) {
    let recent = recent::recent(folder, reach).unwrap();
    let said = recent.records.iter().flat_map(story::moments).filter_map(|moment| match moment.what {
        Happening::Prompt { text } => Some(text),
        _ => None,
    });
    (recent.from, recent.before, said.collect())
}

#[test]
fn the_end_of_a_conversation_is_the_same_however_it_is_read() {
    let shelf = Shelf::new();
    let id = "a".parse().unwrap();
    let folder = shelf.session("a", "/p", 3);
    let reach = Reach { until: u64::MAX, turns: 2, calls: 0, records: 100, stretches: 8 };
    let asked = |turns: &[u64]| turns.iter().map(|turn| format!("question {turn}")).collect::<Vec<_>>();
    // All of it is in one stretch.
    assert_eq!(end_of(&folder, &reach), (2, Before::Turns, asked(&[1, 2, 3])));
    sessions::rewind(&shelf.store, &id, 1).unwrap();
    assert_eq!(end_of(&folder, &reach), (1, Before::Nothing, asked(&[1])));
    write_journal(&folder, &turn_of(read_all(&folder).len() as u64, 4));
    assert_eq!(end_of(&folder, &reach), (1, Before::Nothing, asked(&[1, 4])));
    assert_eq!(end_of(&folder, &Reach { until: 3, ..reach }), (1, Before::Nothing, asked(&[1])));
    write_journal(&folder, &[record(read_all(&folder).len() as u64 + 1, 4, json!({"messages": []}))]);
    assert_eq!(end_of(&folder, &reach), (u64::MAX, Before::Nothing, asked(&[])));
}

#[test]
fn opening_a_long_session_reads_its_end_alone() {
    let shelf = Shelf::new();
    let folder = shelf.session("a", "/p", 1);
    for turn in 2..=9 {
        let last = read_all(&folder).len() as u64;
        let mut records: Vec<_> = (1..=600).map(|n| event(last + n, turn, "x:y", &json!({"n": n}))).collect();
        records.extend(turn_of(last + 600, turn));
        write_journal(&folder, &records);
    }
    // Whoever reads the beginning finds that it is damaged.
    let mut journal = std::fs::read(folder.events()).unwrap();
    journal[200] ^= 1;
    std::fs::write(folder.events(), journal).unwrap();
    assert!(sessions::turns(&folder).is_err());
    let reach = Reach { until: u64::MAX, turns: 3, calls: 0, records: 100, stretches: 8 };
    let (from, before, asked) = end_of(&folder, &reach);
    assert_eq!((from, before), (7, Before::Turns));
    assert!(asked.ends_with(&["question 7".to_owned(), "question 8".to_owned(), "question 9".to_owned()]));
    // Where that is more than is read, it begins in the middle.
    let (from, before, asked) = end_of(&folder, &Reach { stretches: 1, ..reach });
    assert_eq!((from, before), (8, Before::Unread), "{asked:?}");
}

#[test]
fn going_back_can_be_undone_and_turns_become_a_tree() {
    let shelf = Shelf::new();
    let id = "a".parse().unwrap();
    let folder = shelf.session("a", "/p", 3);
    let done = sessions::rewind(&shelf.store, &id, 1).unwrap();
    assert_eq!((done.from, done.messages, done.back), (3, 2, true));
    assert_eq!(texts(&folder), ["question 1", "answer 1"]);
    let records = read_all(&folder).len() as u64;
    write_journal(&folder, &turn_of(records, 4));
    update_views(&folder).unwrap();
    assert_eq!(texts(&folder), ["question 1", "answer 1", "question 4", "answer 4"]);
    let turns = sessions::turns(&folder).unwrap();
    let shape: Vec<_> = turns.iter().map(|turn| (turn.number, turn.after, turn.counts)).collect();
    assert_eq!(shape, [(1, 0, true), (2, 1, false), (3, 2, false), (4, 1, true)]);
    // Forward again, to where nothing was forgotten.
    let done = sessions::rewind(&shelf.store, &id, 3).unwrap();
    assert_eq!((done.from, done.messages, done.back), (4, 6, false));
    assert_eq!(texts(&folder)[5], "answer 3");
    let counted: Vec<_> =
        sessions::turns(&folder).unwrap().iter().filter(|turn| turn.counts).map(|turn| turn.number).collect();
    assert_eq!(counted, [1, 2, 3]);
    // A fork at a turn is that turn, whatever was gone back over since.
    let at = |turn| ForkRequest { at: Some(turn), name: None };
    let forked = sessions::fork(&shelf.store, &id, &at(4)).unwrap();
    assert_eq!(texts(&shelf.store.open(&forked.id).unwrap())[2], "question 4");
    let error = sessions::fork(&shelf.store, &id, &at(9)).unwrap_err();
    assert_eq!(error.to_string(), "session `a` has no turn 9; its last one is 4");
    assert_eq!(sessions::rewind(&shelf.store, &id, 0).unwrap().messages, 0);
    assert!(texts(&folder).is_empty());
}

#[test]
fn a_cleared_context_is_undone_by_going_back_to_the_turn_before_it() {
    let shelf = Shelf::new();
    let folder = shelf.session("a", "/p", 2);
    write_journal(&folder, &[record(11, 2, json!({"messages": []}))]);
    update_views(&folder).unwrap();
    assert!(texts(&folder).is_empty());
    sessions::rewind(&shelf.store, &"a".parse().unwrap(), 2).unwrap();
    assert_eq!(texts(&folder).len(), 4);
}

#[test]
fn what_somebody_has_is_not_changed_from_outside() {
    let shelf = Shelf::new();
    let (id, folder) = ("a".parse().unwrap(), shelf.session("a", "/p", 2));
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    let refused = [
        sessions::rewind(&shelf.store, &id, 1).map(drop),
        sessions::rename(&shelf.store, &id, "x").map(drop),
        sessions::delete(&shelf.store, std::slice::from_ref(&id)).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, SessionError::InUse { .. }), "{error}");
        assert!(error.to_string().starts_with("session `a` is in use by `the test` (process"), "{error}");
    }
    sessions::fork(&shelf.store, &id, &ForkRequest::default()).unwrap();
    drop(journal);
    assert_eq!(sessions::rename(&shelf.store, &id, "  my\tsession ").unwrap().label(), "my session");
    assert!(sessions::rename(&shelf.store, &id, " ").unwrap_err().is_usage());
    assert!(sessions::rename(&shelf.store, &id, &"x".repeat(81)).unwrap_err().is_usage());
}

#[test]
fn deleting_takes_the_sub_sessions_along_and_leaves_forks() {
    let shelf = Shelf::new();
    let id = "a".parse().unwrap();
    shelf.session("a", "/p", 1);
    let child = shelf.session("a-child", "/p", 0);
    std::fs::remove_dir_all(child.dir()).unwrap();
    let plan =
        MountPlan::read(&json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}}));
    let child = shelf.store.create(&"a-child".parse().unwrap(), &plan.unwrap()).unwrap();
    let opened = json!({"opened": {"session_id": "a-child", "parent_id": "a", "plan_hash": "x"}});
    write_journal(&child, &[record(1, 0, opened)]);
    let forked = sessions::fork(&shelf.store, &id, &ForkRequest::default()).unwrap();
    assert_eq!(shelf.ids(&Scope::all()).len(), 2, "sub-sessions are not listed by themselves");
    assert_eq!(shelf.ids(&Scope::all().with_children()).len(), 3);
    let family = sessions::families(&shelf.store, std::slice::from_ref(&id)).unwrap().remove(0);
    let removed = sessions::delete(&shelf.store, &family).unwrap();
    assert_eq!(removed.sessions.len(), 2);
    assert_eq!(shelf.ids(&Scope::all().with_children()), [forked.id.to_string()]);
    let old = sessions::older_than(&shelf.store, &Scope::all(), 0).unwrap();
    assert_eq!(old.sessions.len(), 1);
    assert!(sessions::older_than(&shelf.store, &Scope::all(), 30).unwrap().sessions.is_empty());
}

#[test]
fn two_processes_that_list_and_write_do_not_lose_a_session() {
    let shelf = Shelf::new();
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let shelf = &shelf;
            scope.spawn(move || {
                for number in 0..10 {
                    let id = format!("s{lane}-{number}");
                    shelf.session(&id, "/p", 1);
                    sessions::rename(&shelf.store, &id.parse().unwrap(), "named").unwrap();
                    sessions::list(&shelf.store, &Scope::all()).unwrap();
                }
            });
        }
    });
    let listing = sessions::list(&shelf.store, &Scope::all()).unwrap();
    assert_eq!(listing.sessions.len(), 40);
    assert!(listing.sessions.iter().all(|listed| listed.metadata.name.as_deref() == Some("named")));
}

#[test]
fn the_last_turns_are_the_same_as_those_of_the_whole_whatever_was_gone_back_to() {
    let shelf = Shelf::new();
    let folder = shelf.session("long", "/p", 0);
    let mut records = read_all(&folder);
    let mut more = |turns: std::ops::RangeInclusive<u64>, back: Option<u64>| {
        for turn in turns.clone() {
            records.extend(turn_of(records.len() as u64, turn));
        }
        if let Some(to) = back {
            let seq = records.len() as u64 + 1;
            records.push(event(seq, *turns.end(), "session:rewound", &json!({"to": to})));
            let said = json!({"messages": [{"role": "user", "content": "x"}]});
            records.push(record(seq + 1, *turns.end(), said));
        }
    };
    more(1..=400, Some(100));
    more(401..=500, Some(450));
    more(501..=700, None);
    std::fs::remove_dir_all(folder.dir()).unwrap();
    let folder = shelf.session("long", "/p", 0);
    std::fs::remove_file(folder.events()).unwrap();
    write_journal(&folder, &records);
    // Who opens it again divides it.
    write_journal(&folder, &[]);
    let all = sessions::turns(&folder).unwrap();
    assert_eq!(all.len(), 700);
    for most in [0, 1, 30, 200, 201, 250, 299, 300, 301, 302, 650, 700, 10_000] {
        let last = sessions::last_turns(&folder, 700, most).unwrap();
        let first = all.len().saturating_sub(usize::try_from(most).unwrap());
        assert_eq!(last, all[first..], "{most}");
    }
    let tally = sessions::tally(&folder, 700).unwrap();
    assert_eq!((tally.counted, tally.gone), (100 + 50 + 200, 300 + 50));
}

#[test]
fn what_is_told_of_the_turns_of_a_long_session_does_not_take_the_whole_journal() {
    let shelf = Shelf::new();
    let folder = shelf.session("long", "/p", 700);
    write_journal(&folder, &[]);
    update_views(&folder).unwrap();
    // Whoever read the beginning would find this.
    let text = std::fs::read_to_string(folder.events()).unwrap();
    std::fs::write(folder.events(), text.replacen("question 1\"", "question !\"", 1)).unwrap();
    assert!(sessions::turns(&folder).is_err());
    let tally = sessions::tally(&folder, 700).unwrap();
    assert_eq!((tally.counted, tally.gone), (700, 0));
    let last = sessions::last_turns(&folder, 700, 30).unwrap();
    assert_eq!((last.len(), last[0].prompt.as_deref()), (30, Some("question 671")));
    assert!(last.iter().all(|turn| turn.counts));
}
