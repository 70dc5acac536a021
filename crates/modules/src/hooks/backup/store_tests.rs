use super::*;
use crate::hooks::backup::{RestoreError, Restored};

struct Desk {
    temp: tempfile::TempDir,
    limits: Limits,
}

impl Desk {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("work")).unwrap();
        let limits = Limits { max_file_bytes: 1_000, max_total_bytes: 10_000, max_entries: 100 };
        Self { temp, limits }
    }

    fn work(&self) -> PathBuf {
        self.temp.path().join("work").canonicalize().unwrap()
    }

    fn open(&self) -> Backups {
        Backups::open(&self.temp.path().join("backups/s1"), self.limits).unwrap()
    }

    fn keep(&self, backups: &mut Backups, name: &str) -> Kept {
        backups.keep(&self.work().join(name), &[self.work()], &about()).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.work().join(name)).ok()
    }

    fn objects(&self) -> usize {
        std::fs::read_dir(self.temp.path().join("backups/s1/objects")).unwrap().count()
    }
}

fn about() -> About {
    About { time: Timestamp::default(), turn: 1, tool_name: "write_file".to_owned(), tool_call_id: None }
}

#[test]
fn what_was_kept_comes_back_byte_for_byte_and_the_restore_can_be_undone() {
    let desk = Desk::new();
    let mut backups = desk.open();
    desk.write("a.txt", "one\r\n\u{0}");
    #[cfg(unix)]
    std::fs::set_permissions(desk.work().join("a.txt"), std::os::unix::fs::PermissionsExt::from_mode(0o750))
        .unwrap();
    assert_eq!(desk.keep(&mut backups, "a.txt"), Kept::Entry(1));
    desk.write("a.txt", "two");
    // A process that ended in between loses nothing.
    let mut backups = desk.open();
    let restored = backups.restore(1, &desk.work(), &about()).unwrap();
    assert_eq!(restored, Restored::Written(desk.work().join("a.txt")));
    assert_eq!(desk.read("a.txt").unwrap(), "one\r\n\u{0}");
    #[cfg(unix)]
    assert_eq!(mode_of(&std::fs::metadata(desk.work().join("a.txt")).unwrap()), Some(0o750));
    backups.restore(2, &desk.work(), &about()).unwrap();
    assert_eq!(desk.read("a.txt").unwrap(), "two");
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    let desk = Desk::new();
    let mut backups = desk.open();
    assert_eq!(desk.keep(&mut backups, "new/b.txt"), Kept::Entry(1));
    std::fs::create_dir(desk.work().join("new")).unwrap();
    desk.write("new/b.txt", "x");
    assert_eq!(
        backups.restore(1, &desk.work(), &about()).unwrap(),
        Restored::Removed(desk.work().join("new/b.txt"))
    );
    assert_eq!(desk.read("new/b.txt"), None);
}

#[test]
fn equal_contents_are_kept_once_and_the_oldest_go_when_there_is_no_room() {
    let mut desk = Desk::new();
    desk.limits.max_entries = 10;
    let mut backups = desk.open();
    for n in 0..8 {
        desk.write("a", if n % 2 == 0 { "even" } else { "odd" });
        desk.keep(&mut backups, "a");
    }
    assert_eq!(desk.objects(), 2);
    for n in 0..5 {
        desk.write("a", &format!("text {n}"));
        desk.keep(&mut backups, "a");
    }
    let entries = desk.open().entries().to_vec();
    assert!(entries.len() <= 10 && entries.last().unwrap().number == 13, "{entries:?}");
    let used: BTreeSet<_> = entries.iter().map(|entry| entry.sha256.clone().unwrap()).collect();
    assert_eq!(desk.objects(), used.len());
    assert!(matches!(backups.restore(1, &desk.work(), &about()), Err(RestoreError::Unknown { number: 1 })));
}

#[test]
fn bytes_are_bounded_too() {
    let mut desk = Desk::new();
    desk.limits.max_total_bytes = 2_000;
    let mut backups = desk.open();
    for n in 0..9 {
        desk.write("a", &n.to_string().repeat(600));
        desk.keep(&mut backups, "a");
    }
    assert!(backups.total_bytes() <= 2_000 && desk.objects() <= 3);
    desk.write("large", &"x".repeat(1_001));
    assert!(matches!(desk.keep(&mut backups, "large"), Kept::Skipped { .. }));
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_roots_is_copied_or_written() {
    let desk = Desk::new();
    let mut backups = desk.open();
    let secret = desk.temp.path().join("secret");
    std::fs::write(&secret, "s").unwrap();
    std::os::unix::fs::symlink(&secret, desk.work().join("link")).unwrap();
    for name in ["link", "../secret", "new/../../secret", "/etc/hostname"] {
        assert!(matches!(desk.keep(&mut backups, name), Kept::Skipped { .. }), "{name}");
    }
    // A folder that becomes a link after the backup must not carry the restore away.
    std::fs::create_dir(desk.work().join("dir")).unwrap();
    desk.write("dir/f", "inside");
    desk.keep(&mut backups, "dir/f");
    std::fs::remove_dir_all(desk.work().join("dir")).unwrap();
    std::os::unix::fs::symlink(desk.temp.path(), desk.work().join("dir")).unwrap();
    assert!(matches!(backups.restore(1, &desk.work(), &about()), Err(RestoreError::Outside { .. })));
    assert!(!desk.temp.path().join("f").exists());
}

#[test]
fn a_damaged_copy_is_not_restored_and_a_torn_index_goes_on() {
    let desk = Desk::new();
    let mut backups = desk.open();
    desk.write("a", "one");
    desk.keep(&mut backups, "a");
    let object = backups.object(backups.entries()[0].sha256.as_ref().unwrap());
    std::fs::write(object, "other").unwrap();
    assert!(matches!(backups.restore(1, &desk.work(), &about()), Err(RestoreError::Damaged { .. })));
    let index = desk.temp.path().join("backups/s1/index.jsonl");
    let text = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, format!("{text}{{\"v\":1,\"num")).unwrap();
    let mut backups = desk.open();
    desk.write("a", "two");
    assert_eq!(desk.keep(&mut backups, "a"), Kept::Entry(2));
    assert_eq!(desk.open().entries().len(), 2);
}

#[test]
fn old_sessions_go_and_folders_of_others_stay() {
    let desk = Desk::new();
    let parent = desk.temp.path().join("backups");
    for name in ["s0", "s2", "s3"] {
        std::fs::create_dir_all(parent.join(name)).unwrap();
        std::fs::write(parent.join(name).join(INDEX), "").unwrap();
    }
    std::fs::create_dir_all(parent.join("mine")).unwrap();
    forget_old_sessions(&parent.join("s1"), 2).unwrap();
    let left = std::fs::read_dir(&parent).unwrap().count();
    assert_eq!((left, parent.join("mine").is_dir()), (2, true));
}
