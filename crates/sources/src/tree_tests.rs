use std::os::unix::fs::PermissionsExt;

use super::*;

fn hash(path: &Path) -> String {
    Listing::read(path, &Limits::default()).unwrap().hash().to_string()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn the_hash_is_the_documented_one_and_stays_so() {
    let dir =
        folder(&[("a.md", "one\n"), ("b/c.py", "two\n"), (".git/HEAD", "left out"), ("b/.git", "left out")]);
    let one = hex(&Sha256::digest("one\n"));
    let two = hex(&Sha256::digest("two\n"));
    let by_hand = format!("amplifier-tree-v1\nfile {one} a.md\0file {two} b/c.py\0");
    assert_eq!(hash(dir.path()), format!("sha256:{}", hex(&Sha256::digest(by_hand))));
    // Written down, so that a change of the definition cannot pass unseen: locks of people depend on it.
    assert_eq!(hash(dir.path()), "sha256:1c7811ea189c6e03c0c84091806c52aac8f37d54766fda3b92c5e725154cf565");
}

#[test]
fn content_name_executable_bit_and_link_target_count_and_times_do_not() {
    let dir = folder(&[("run.sh", "x"), ("empty/.git/x", "")]);
    let file = dir.path().join("run.sh");
    let first = hash(dir.path());
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    File::open(&file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(hash(dir.path()), first, "other mode bits, times and empty folders do not count");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let executable = hash(dir.path());
    std::fs::rename(&file, dir.path().join("ran.sh")).unwrap();
    let renamed = hash(dir.path());
    std::os::unix::fs::symlink("ran.sh", &file).unwrap();
    let linked = hash(dir.path());
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("elsewhere", &file).unwrap();
    let all = [first, executable, renamed, linked, hash(dir.path())];
    for (at, hash) in all.iter().enumerate() {
        assert!(!all[..at].contains(hash), "{at}: {all:?}");
    }
}

#[test]
fn a_file_is_hashed_as_a_folder_that_holds_only_it() {
    let dir = folder(&[("a.md", "one\n")]);
    assert_eq!(hash(dir.path()), hash(&dir.path().join("a.md")));
}

#[test]
fn limits_and_strange_files_are_errors_not_hashes() {
    let dir = folder(&[("a", "12345"), ("b", "12345")]);
    let few = Limits { tree_files: 1, ..Limits::default() };
    assert!(matches!(Listing::read(dir.path(), &few), Err(TreeError::Files { limit: 1 })));
    let small = Limits { tree_bytes: 9, ..Limits::default() };
    assert!(matches!(Listing::read(dir.path(), &small), Err(TreeError::Bytes { limit: 9 })));
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
    assert!(matches!(Listing::read(dir.path(), &Limits::default()), Err(TreeError::Kind { .. })));
}

#[test]
fn changes_are_named_path_by_path() {
    let dir = folder(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let before = Listing::read(dir.path(), &Limits::default()).unwrap();
    std::fs::write(dir.path().join("a"), "9").unwrap();
    std::fs::remove_file(dir.path().join("b")).unwrap();
    std::fs::write(dir.path().join("d"), "4").unwrap();
    let after = Listing::read(dir.path(), &Limits::default()).unwrap();
    assert_eq!(Listing::changes(before.files(), &after), ["`a` is changed", "`b` is missing", "`d` is new"]);
}

#[test]
fn a_hash_is_read_only_in_its_one_form() {
    let good = format!("sha256:{}", "0a".repeat(32));
    assert_eq!(good.parse::<ContentHash>().unwrap().as_str(), good);
    for bad in ["", "sha256:", "md5:00", &good.to_uppercase(), &format!("{good}0")] {
        bad.parse::<ContentHash>().unwrap_err();
    }
}
