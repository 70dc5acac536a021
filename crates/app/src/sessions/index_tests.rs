//! What is noted comes back, whatever was noted before and however the file was broken.

use std::path::PathBuf;

use amplifier_protocol::status::SessionState;
use amplifier_protocol::time::Timestamp;

use super::*;
use crate::store::Progress;

fn home() -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path());
    (dir, home)
}

fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

fn metadata(text: &str, turns: u64, dir: &str) -> Metadata {
    Metadata {
        session_id: id(text),
        parent_id: None,
        created: Timestamp::from_micros(1),
        updated: Timestamp::from_micros(1_000 + i64::try_from(turns).unwrap()),
        turns,
        title: Some(format!("turn {turns}")),
        name: None,
        working_dir: Some(PathBuf::from(dir)),
        bundle: None,
        model: None,
        forked_from: None,
        plan_hash: String::new(),
        status: SessionState::Completed,
        views: Progress::default(),
    }
}

fn folder_of(contents: &Contents, known: &Known) -> Option<PathBuf> {
    contents.folders().nth(known.folder?).map(PathBuf::from)
}

#[test]
fn the_last_line_about_a_session_counts_and_a_later_mark_unsettles_it() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    let folders = ["/plain", "/with \"quotes\" and \\", "/ünïcode/日本", ""];
    for (at, folder) in folders.iter().enumerate() {
        let name = format!("s{at}");
        let (first, last) = (metadata(&name, 1, "/before"), metadata(&name, 2, folder));
        index.note(&[Note::Opened(&id(&name)), Note::Open(&first), Note::Closed(&last)]);
        let contents = index.contents();
        let known = contents.get(&id(&name)).unwrap();
        assert!(known.is_settled() && !known.is_child);
        assert_eq!((known.at, contents.metadata(known)), (1_002, Some(last)));
        assert_eq!(folder_of(&contents, known), Some(PathBuf::from(folder)));
    }
    index.note(&[Note::Opened(&id("s1"))]);
    let contents = index.contents();
    let known = contents.get(&id("s1")).unwrap();
    assert!(!known.is_settled());
    assert_eq!(contents.metadata(known).unwrap().turns, 2, "what was known is still known");
    assert!(contents.get(&id("s9")).is_none());
    assert_eq!(contents.lines(), 3 * folders.len() + 1);
}

#[test]
fn a_tidy_keeps_what_is_known_and_forgets_who_is_gone() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    for turns in 0..200 {
        let (kept, gone) = (metadata("kept", turns, "/a"), metadata("gone", turns, "/b"));
        index.note(&[Note::Closed(&kept), Note::Closed(&gone)]);
    }
    index.note(&[Note::Closed(&metadata("open", 7, "/c")), Note::Opened(&id("open"))]);
    let sessions = [id("kept"), id("open"), id("never-noted")];
    index.tidy(index.contents().lines(), &sessions);
    let contents = index.contents();
    assert_eq!(contents.lines(), 3);
    assert_eq!(contents.metadata(contents.get(&sessions[0]).unwrap()).unwrap().turns, 199);
    let open = contents.get(&sessions[1]).unwrap();
    assert_eq!((open.is_settled(), contents.metadata(open).unwrap().turns), (false, 7));
    assert!(contents.get(&id("gone")).is_none());
}

#[test]
fn what_is_torn_old_or_no_text_is_not_believed() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    index.note(&[Note::Closed(&metadata("whole", 3, "/a")), Note::Closed(&metadata("torn", 3, "/a"))]);
    let mut text = std::fs::read(home.session_index()).unwrap();
    text.truncate(text.len() - 20);
    text.extend(b"\n\xff\xfe{\n\n[]\n{\"id\":\"old\",\"open\":false,\"at\":5,\"about\":{\"turns\":1}}");
    std::fs::write(home.session_index(), text).unwrap();
    index.note(&[Note::Closed(&metadata("after", 4, "/a"))]);
    let contents = index.contents();
    let told =
        |name: &str| contents.get(&id(name)).and_then(|known| contents.metadata(known)).map(|m| m.turns);
    assert_eq!([told("whole"), told("torn"), told("old"), told("after")], [Some(3), None, None, Some(4)]);
    assert!(!contents.get(&id("old")).unwrap().is_settled());
}
