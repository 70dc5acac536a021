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
    contents.folders().nth(known.folder()?).map(PathBuf::from)
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
        let (_, known) = contents.get(&name).unwrap();
        assert!(known.is_settled() && !known.is_child);
        assert_eq!(contents.metadata(known), Some(last));
        assert_eq!(folder_of(&contents, known), Some(PathBuf::from(folder)));
    }
    index.note(&[Note::Opened(&id("s1"))]);
    let contents = index.contents();
    let (_, known) = contents.get("s1").unwrap();
    assert!(!known.is_settled());
    assert_eq!(contents.metadata(known).unwrap().turns, 2, "what was known is still known");
    assert!(contents.get("s9").is_none());
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
    assert!(Index::is_wasteful(index.contents().lines(), 2) && !Index::is_wasteful(3, 2));
    index.tidy(&sessions).unwrap();
    let contents = index.contents();
    assert_eq!(contents.lines(), 3);
    assert_eq!(contents.metadata(contents.get("kept").unwrap().1).unwrap().turns, 199);
    let (_, open) = contents.get("open").unwrap();
    assert_eq!((open.is_settled(), contents.metadata(open).unwrap().turns), (false, 7));
    assert!(contents.get("gone").is_none());
}

#[test]
fn an_empty_session_is_known_by_its_journal_until_somebody_takes_it() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    let known = |name: &str| index.contents().get(name).map(|(_, known)| *known).unwrap();
    index.note(&[Note::Opened(&id("quiet")), Note::Empty(&id("quiet"), 77)]);
    assert_eq!((known("quiet").empty_journal(), known("quiet").is_settled()), (Some(77), false));
    index.tidy(&[id("quiet")]).unwrap();
    assert_eq!(known("quiet").empty_journal(), Some(77));
    index.note(&[Note::Opened(&id("quiet"))]);
    assert_eq!((known("quiet").empty_journal(), known("quiet").is_settled()), (None, false));
    index.note(&[Note::Closed(&metadata("quiet", 1, "/a"))]);
    assert_eq!((known("quiet").empty_journal(), known("quiet").is_settled()), (None, true));
}

#[test]
fn what_is_torn_old_or_no_text_is_not_believed() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    index.note(&[Note::Closed(&metadata("whole", 3, "/a")), Note::Closed(&metadata("torn", 3, "/a"))]);
    let mut text = std::fs::read(home.session_index()).unwrap();
    text.truncate(text.len() - 20);
    text.extend(b"\n\xff\xfe{ 1 - \n\n[]\nbare 7 -\nhalf 7 - \"/a\"\nno-end 7 - \"/a\\\nodd x - null {}\n{\"id\":\"old\",\"at\":5}");
    std::fs::write(home.session_index(), text).unwrap();
    index.note(&[Note::Closed(&metadata("after", 4, "/a"))]);
    let contents = index.contents();
    let told = |name: &str| contents.metadata(contents.get(name)?.1).map(|metadata| metadata.turns);
    assert_eq!([told("whole"), told("torn"), told("after")], [Some(3), None, Some(4)]);
    for name in ["bare", "half", "no-end", "odd", "old", "{\"id\":\"old\",\"at\":5}"] {
        assert!(contents.get(name).is_none_or(|(_, known)| !known.is_settled()), "{name}");
    }
}

#[test]
fn who_is_used_later_is_later_whatever_the_clock_says() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    let used = |name: &str| index.contents().get(name).map(|(_, known)| known.used()).unwrap();
    index.note(&[Note::Closed(&metadata("ahead", 5_000, "/a"))]);
    // The clock was set right; what is used now is told an earlier time.
    index.note(&[Note::Closed(&metadata("after", 1, "/a"))]);
    assert!(used("after") > used("ahead"));
    index.note(&[Note::Opened(&id("killed"))]);
    assert!(used("killed") > used("after"));
    // Who only looks changes no order, nor what the next one is later than.
    let latest = std::fs::read(home.session_index_lock()).unwrap();
    index.note(&[Note::Empty(&id("quiet"), 1)]);
    index.note(&[Note::Found(&metadata("ahead", 5_000, "/a"), used("ahead"))]);
    assert!(used("after") > used("ahead"));
    assert_eq!(std::fs::read(home.session_index_lock()).unwrap(), latest);
    let kept = used("killed");
    index.tidy(&[id("ahead"), id("after"), id("killed")]).unwrap();
    assert_eq!(used("killed"), kept);
    index.note(&[Note::Closed(&metadata("ahead", 5_000, "/a"))]);
    assert!(used("ahead") > kept);
}

/// A list that looked at a session before it was renamed writes what it found afterwards.
#[test]
fn what_was_found_before_a_change_does_not_hide_it() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    let seen = |seq: u64, name: Option<&str>| {
        let mut seen = Metadata { name: name.map(str::to_owned), ..metadata("s", 1, "/a") };
        (seen.views.version, seen.views.seq) = (crate::store::PROGRESS_VERSION, seq);
        seen
    };
    let name = || {
        let contents = index.contents();
        contents.get("s").and_then(|(_, known)| contents.metadata(known)).and_then(|metadata| metadata.name)
    };
    index.note(&[Note::Found(&seen(3, None), 1)]);
    index.note_change(&seen(4, Some("named")));
    index.note(&[Note::Found(&seen(3, None), 2)]);
    assert_eq!(name().as_deref(), Some("named"));
    // One that was killed since is looked at again, and what was found counts.
    index.note(&[Note::Opened(&id("s"))]);
    index.note(&[Note::Found(&seen(4, Some("named")), 3)]);
    assert!(index.contents().get("s").is_some_and(|(_, known)| known.is_settled()));
}

/// An index that cannot be told of a change is no index any more: the sessions are looked at.
#[test]
fn a_change_that_cannot_be_noted_takes_the_index_away() {
    let (_dir, home) = home();
    let index = Index::of(&home);
    index.note(&[Note::Closed(&metadata("s", 1, "/a"))]);
    let held = std::fs::File::open(home.session_index_lock()).unwrap();
    held.lock().unwrap();
    index.note_change(&metadata("s", 2, "/a"));
    assert!(index.contents().get("s").is_none());
    held.unlock().unwrap();
}
