//! A project is as wide as its user means it: no file in it widens or moves it, and what it says is marked as its own.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::desk::{Desk, Ran, git_variables};
use crate::provider::{Manner, Server};

const MARK: &str = "comes from the project, not from the user";

/// The model of the user, whatever the project says.
fn model(desk: &Desk) -> Server {
    let server = Server::start(Manner::Well);
    let config = format!("{{base_url: \"{}\", default_model: m}}", server.url());
    let settings =
        format!("config: {{providers: [{{module: provider-chat-completions, config: {config}}}]}}\n");
    desk.file("../home/settings.yaml", settings);
    server
}

fn run_in(desk: &Desk, dir: &Path, args: &[&str]) -> Ran {
    let ran = Ran::of(desk.command_with_git(args).current_dir(dir).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

fn directory(desk: &Desk, name: &str) -> std::path::PathBuf {
    let dir = desk.path(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn words_of_a_project_are_used_and_marked_as_its_own() {
    let desk = Desk::new();
    let server = model(&desk);
    desk.file("AGENTS.md", "Use tabs here. See @more.md.").file("more.md", "Tabs are four wide.");
    let ran = run_in(&desk, &desk.work(), &["run", "hi"]);
    assert!(!ran.stderr.contains("trusted"), "text asks for nothing: {}", ran.seen());
    let asked = server.asked().pop().unwrap();
    for words in ["Use tabs here.", "Tabs are four wide."] {
        let before = asked.split(words).next().unwrap();
        assert!(before.len() < asked.len() && before.ends_with(".]\\n"), "{words}: {asked}");
    }
    assert_eq!(asked.matches(MARK).count(), 2, "{asked}");
}

#[test]
fn a_link_brings_no_file_from_elsewhere_into_the_prompt_before_trust() {
    let desk = Desk::new();
    let server = model(&desk);
    let secret = directory(&desk, "user/.ssh").join("id");
    std::fs::write(&secret, "PRIVATE-LINES").unwrap();
    symlink(&secret, desk.work().join("AGENTS.md")).unwrap();
    symlink(&secret, desk.work().join("notes.md")).unwrap();
    let ran = run_in(&desk, &desk.work(), &["run", "see @notes.md"]);
    assert!(!server.asked().pop().unwrap().contains("PRIVATE-LINES"));
    for text in ["is not trusted; ignoring its `AGENTS.md` (a link to `", "amplifier trust"] {
        assert!(ran.stderr.contains(text), "`{text}` is missing: {}", ran.seen());
    }
    let trusted = run_in(&desk, &desk.work(), &["trust"]);
    assert!(trusted.stdout.contains("uses the path `"), "{}", trusted.seen());
    run_in(&desk, &desk.work(), &["run", "hi"]);
    assert!(server.asked().pop().unwrap().contains("PRIVATE-LINES"));
    // Where it leads is part of what was agreed to.
    let other = directory(&desk, "user").join("other");
    std::fs::write(&other, "OTHER-LINES").unwrap();
    std::fs::remove_file(desk.work().join("AGENTS.md")).unwrap();
    symlink(&other, desk.work().join("AGENTS.md")).unwrap();
    run_in(&desk, &desk.work(), &["run", "hi"]);
    assert!(!server.asked().pop().unwrap().contains("OTHER-LINES"));
    // A link that stays inside is nothing to ask about.
    let inside = directory(&desk, "inside");
    std::fs::write(inside.join("CONTRIBUTING.md"), "INSIDE-LINES").unwrap();
    symlink("CONTRIBUTING.md", inside.join("AGENTS.md")).unwrap();
    let ran = run_in(&desk, &inside, &["run", "hi"]);
    assert!(!ran.stderr.contains("trusted"), "{}", ran.seen());
    assert!(server.asked().pop().unwrap().contains("INSIDE-LINES"));
}

#[test]
fn a_directory_that_only_looks_like_a_repository_makes_no_project_of_what_is_below() {
    let desk = Desk::new();
    let server = model(&desk);
    desk.commit("private", &[("a", "x")]);
    let private = desk.path("repos/private/.git");
    let file = |above: &Path| {
        std::fs::write(above.join(".git"), format!("gitdir: {}\n", private.display())).unwrap();
    };
    type Form<'a> = (&'a str, &'a dyn Fn(&Path));
    let forms: [Form<'_>; 4] = [
        ("empty", &|above| std::fs::create_dir(above.join(".git")).unwrap()),
        ("text", &|above| std::fs::write(above.join(".git"), "").unwrap()),
        ("file", &file),
        ("link", &|above| symlink(&private, above.join(".git")).unwrap()),
    ];
    for (name, make) in forms {
        let mine = directory(&desk, &format!("{name}/mine/deep"));
        let above = desk.path(name);
        make(&above);
        std::fs::create_dir(above.join(".amplifier")).unwrap();
        std::fs::write(above.join(".amplifier/settings.yaml"), "limits: {max_tokens: 5}\nprefer: source\n")
            .unwrap();
        std::fs::write(above.join("AGENTS.md"), "WORDS-FROM-ABOVE").unwrap();
        let ran = run_in(&desk, &mine, &["run", "hi"]);
        assert!(!ran.stderr.contains("trusted"), "{name}: {}", ran.seen());
        assert!(!server.asked().pop().unwrap().contains("WORDS-FROM-ABOVE"), "{name}");
        let cwd = mine.to_str().unwrap();
        let set = desk.with_git(&["--cwd", cwd, "config", "get", "limits.max_tokens"]);
        assert!(!set.stdout.contains('5') && !set.stderr.contains("trusted"), "{name}: {}", set.seen());
    }
}

#[test]
fn a_subdirectory_and_a_linked_work_tree_belong_to_their_project() {
    let desk = Desk::new();
    let server = model(&desk);
    desk.commit(
        "own",
        &[(".amplifier/settings.yaml", "limits: {max_tokens: 5000000}\n"), ("AGENTS.md", "OWN-WORDS")],
    );
    let linked = desk.path("linked");
    desk.git("own", &["worktree", "add", "--quiet", "-b", "side", linked.to_str().unwrap()]);
    for top in [desk.path("repos/own"), linked] {
        let below = top.join("src/deep");
        std::fs::create_dir_all(&below).unwrap();
        let ran = run_in(&desk, &below, &["run", "hi"]);
        assert!(server.asked().pop().unwrap().contains("OWN-WORDS"), "{}", ran.seen());
        let set = run_in(&desk, &below, &["config", "get", "limits.max_tokens"]);
        assert_eq!(set.stdout.trim(), "5000000", "{}", set.seen());
    }
}

#[test]
fn the_home_directory_is_no_project_of_what_lies_in_it() {
    let desk = Desk::new();
    let server = model(&desk);
    let home = directory(&desk, "user");
    let mut git = Command::new("git");
    git.args(["init", "--quiet"]).current_dir(&home).env_clear().envs(git_variables(&home));
    assert!(git.status().unwrap().success());
    std::fs::write(home.join("AGENTS.md"), "WORDS-OF-HOME").unwrap();
    let loose = directory(&desk, "user/loose");
    run_in(&desk, &loose, &["run", "hi"]);
    assert!(!server.asked().pop().unwrap().contains("WORDS-OF-HOME"));
}

#[test]
fn a_linked_folder_of_settings_is_shown_and_leads_to_nothing_before_trust() {
    let desk = Desk::new();
    let elsewhere = directory(&desk, "elsewhere");
    std::fs::write(elsewhere.join("settings.yaml"), "prefer: source\n").unwrap();
    symlink(&elsewhere, desk.work().join(".amplifier")).unwrap();
    let get = || run_in(&desk, &desk.work(), &["config", "get", "prefer"]);
    let ran = get();
    assert_eq!(ran.stdout.trim(), "native", "{}", ran.seen());
    assert!(ran.stderr.contains("`.amplifier` (a link to `"), "{}", ran.seen());
    let trusted = run_in(&desk, &desk.work(), &["trust"]);
    assert!(trusted.stdout.contains(&elsewhere.display().to_string()), "{}", trusted.seen());
    assert_eq!(get().stdout.trim(), "source");
}
