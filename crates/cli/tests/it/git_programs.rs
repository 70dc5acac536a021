//! What a repository configures for git starts nothing, and what its user configured works.

use std::path::{Path, PathBuf};
use std::process::Command;

use amplifier_testing::write_program;
use serde_json::json;

use crate::desk::{Desk, Ran, git_variables, plan, read};
use crate::provider::{Manner, Server};

const SECRET: (&str, &str) = ("OPENAI_API_KEY", "key-of-the-user-51c0");

fn git(desk: &Desk, dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(dir).args(args).env_clear().envs(git_variables(&desk.path("user")));
    let output = git.output().expect("git is needed for this test; install it");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository in the directory that the user works in, with one commit.
fn repository(desk: &Desk, files: &[&str]) {
    git(desk, &desk.work(), &["init", "--quiet", "--initial-branch=trunk"]);
    for name in files {
        desk.file(name, "first\n");
    }
    git(desk, &desk.work(), &["add", "--all"]);
    git(desk, &desk.work(), &["commit", "--quiet", "--message=the first commit"]);
}

/// A plan whose model is asked with the state of git, however long git takes.
fn status_plan(desk: &Desk, server: &Server) {
    let mut written = plan(json!({}));
    let config = json!({"base_url": server.url(), "default_model": "m"});
    written["providers"] = json!([{"module": "provider-chat-completions", "config": config}]);
    let patient = json!({"git_wait_ms": 60_000, "git_timeout_ms": 60_000});
    written["hooks"] = json!([{"module": "hooks-status-context", "config": patient}]);
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("status.json"), written.to_string()).unwrap();
}

fn command_in(desk: &Desk, dir: &Path) -> Command {
    let plan = desk.home().join("status.json").display().to_string();
    let mut command = desk.command_with_git(&["run", "--plan", &plan, "hi"]);
    command.current_dir(dir).env(SECRET.0, SECRET.1);
    command
}

/// What the model was asked in a directory.
fn asked_in(desk: &Desk, dir: &Path) -> String {
    let server = Server::start(Manner::Well);
    status_plan(desk, &server);
    let ran = Ran::of(command_in(desk, dir).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    server.asked().pop().unwrap()
}

fn marks(desk: &Desk) -> Vec<String> {
    let entries = std::fs::read_dir(desk.path("marks")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A program that leaves a mark.
fn program(desk: &Desk, name: &str) -> String {
    let mark = desk.path("marks").join(name);
    std::fs::create_dir_all(mark.parent().unwrap()).unwrap();
    let path = desk.path("programs").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_program(&path, &format!("#!/bin/sh\ntouch {}\ncat\n", mark.display()));
    path.display().to_string()
}

fn append(path: &Path, text: &str) {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, before + text).unwrap();
}

#[test]
fn a_repository_starts_no_program_when_its_state_is_read() {
    let desk = Desk::new();
    let files = ["a.txt", "b.md", "c.rs", "d.c", "e.h", "f.py"];
    repository(&desk, &files);
    let git_dir = desk.work().join(".git");
    let filter = |name: &str, key: &str| {
        let program = program(&desk, &format!("filter-{name}"));
        format!("[filter \"{name}\"]\n{key} = {program}\nrequired = {}\n", key == "clean")
    };
    let mut config = filter("x", "clean") + &filter("a.b", "process") + &filter("", "clean");
    for (section, key) in [
        ("core", "fsmonitor"),
        ("core", "pager"),
        ("core", "editor"),
        ("core", "askPass"),
        ("core", "sshCommand"),
        ("core", "gitProxy"),
        ("core", "alternateRefsCommand"),
        ("diff", "external"),
        ("gpg", "program"),
        ("credential", "helper"),
        ("diff \"d\"", "textconv"),
        ("diff \"d\"", "command"),
        ("alias", "status"),
        ("pager", "status"),
    ] {
        config += &format!("[{section}]\n{key} = {}\n", program(&desk, key));
    }
    config += "[log]\nshowSignature = true\n[include]\npath = more\n[extensions]\nworktreeConfig = true\n";
    append(&git_dir.join("config"), &config);
    append(&git_dir.join("more"), &filter("included", "clean"));
    append(&git_dir.join("config.worktree"), &filter("tree", "clean"));
    let hook = git_dir.join("hooks/post-index-change");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::copy(program(&desk, "hook"), &hook).unwrap();
    let attributes =
        "*.txt filter=x diff=d\n*.md filter=a.b\n*.rs filter=included\n*.c filter=tree\n*.h filter=\n";
    desk.file(".gitattributes", attributes);
    for name in files {
        desk.file(name, "other\n");
    }
    let asked = asked_in(&desk, &desk.work());
    for part in ["Current branch: trunk", " M a.txt", " M b.md", " M c.rs", " M d.c", "the first commit"] {
        assert!(asked.contains(part), "`{part}` is missing: {asked}");
    }
    assert_eq!(marks(&desk), [""; 0]);
    // The attack is one: git itself starts them.
    drop(
        Command::new("git")
            .arg("status")
            .current_dir(desk.work())
            .env_clear()
            .envs(git_variables(&desk.path("user")))
            .output()
            .unwrap(),
    );
    for name in ["filter-x", "filter-included", "filter-tree", "fsmonitor"] {
        assert!(marks(&desk).contains(&name.to_owned()), "{name}: {:?}", marks(&desk));
    }
}

#[test]
fn a_filter_that_cannot_be_switched_off_is_not_started_either() {
    let desk = Desk::new();
    repository(&desk, &["a.txt"]);
    append(
        &desk.work().join(".git/config"),
        &format!("[filter \"a=b\"]\nclean = {}\n", program(&desk, "odd")),
    );
    desk.file(".gitattributes", "*.txt filter=a=b\n").file("a.txt", "other\n");
    let asked = asked_in(&desk, &desk.work());
    assert!(asked.contains("cannot be switched off"), "{asked}");
    assert_eq!(marks(&desk), [""; 0]);
}

#[test]
fn a_missing_object_is_not_fetched_with_the_command_of_a_repository() {
    let desk = Desk::new();
    repository(&desk, &["a.txt"]);
    let tree = git(&desk, &desk.work(), &["rev-parse", "HEAD^{tree}"]);
    std::fs::remove_file(desk.work().join(".git/objects").join(&tree[..2]).join(&tree[2..])).unwrap();
    let ssh = program(&desk, "ssh");
    write_program(
        Path::new(&ssh),
        &format!("#!/bin/sh\ntouch {}\nexit 1\n", desk.path("marks/ssh").display()),
    );
    append(
        &desk.work().join(".git/config"),
        &format!(
            "[core]\nrepositoryformatversion = 1\nsshCommand = {ssh}\n[extensions]\npartialClone = origin\n\
             [remote \"origin\"]\nurl = ssh://host.invalid/r\npromisor = true\n"
        ),
    );
    let asked = asked_in(&desk, &desk.work());
    assert!(asked.contains("the first commit"), "{asked}");
    assert_eq!(marks(&desk), [""; 0]);
    drop(
        Command::new("git")
            .arg("status")
            .current_dir(desk.work())
            .env_clear()
            .envs(git_variables(&desk.path("user")))
            .output()
            .unwrap(),
    );
    assert_eq!(marks(&desk), ["ssh"], "git itself starts it");
}

#[test]
fn a_repository_shows_nothing_of_what_lies_elsewhere() {
    let desk = Desk::new();
    desk.commit("private", &[("plan-for-monday.txt", "x")]);
    desk.git("private", &["branch", "--quiet", "-m", "private-branch"]);
    std::fs::write(desk.path("repos/private/new-secret.txt"), "x").unwrap();
    let private = desk.path("repos/private").join(".git");
    let at = |name: &str| {
        let dir = desk.path(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    };
    let hides = |dir: &Path| {
        let asked = asked_in(&desk, dir);
        for part in ["private-branch", "new-secret", "plan-for-monday"] {
            assert!(!asked.contains(part), "{}: {asked}", dir.display());
        }
        asked
    };
    let file = at("file");
    std::fs::write(file.join(".git"), format!("gitdir: {}\n", private.display())).unwrap();
    assert!(hides(&file).contains("Is directory a git repo: No"));
    let link = at("link");
    std::os::unix::fs::symlink(&private, link.join(".git")).unwrap();
    assert!(hides(&link).contains("Is directory a git repo: No"));
    let shared = at("shared");
    std::fs::create_dir(shared.join(".git")).unwrap();
    std::fs::write(shared.join(".git/HEAD"), "ref: refs/heads/private-branch\n").unwrap();
    std::fs::write(shared.join(".git/commondir"), private.display().to_string()).unwrap();
    assert!(hides(&shared).contains("Is directory a git repo: No"));
    // A work tree elsewhere is that of the configuration, not of the directory.
    repository(&desk, &["own.txt"]);
    git(&desk, &desk.work(), &["config", "core.worktree", &desk.path("repos/private").display().to_string()]);
    desk.file("own.txt", "other\n");
    assert!(hides(&desk.work()).contains(" M own.txt"));
}

#[test]
fn linked_work_trees_and_submodules_are_shown_as_git_shows_them() {
    let desk = Desk::new();
    repository(&desk, &["own.txt"]);
    let linked = desk.path("linked");
    git(&desk, &desk.work(), &["worktree", "add", "--quiet", "-b", "side", linked.to_str().unwrap()]);
    std::fs::write(linked.join("own.txt"), "other\n").unwrap();
    let asked = asked_in(&desk, &linked);
    assert!(asked.contains("Current branch: side") && asked.contains(" M own.txt"), "{asked}");
    desk.commit("library", &[("lib.txt", "x")]);
    let library = desk.path("repos/library").display().to_string();
    git(
        &desk,
        &desk.work(),
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &library, "lib"],
    );
    std::fs::write(desk.work().join("lib/lib.txt"), "other\n").unwrap();
    let asked = asked_in(&desk, &desk.work().join("lib"));
    assert!(asked.contains("Current branch: main") && asked.contains(" M lib.txt"), "{asked}");
}

/// A `git` in front of the real one that writes down what it was given.
fn recording_git(desk: &Desk) -> (String, PathBuf) {
    let (bin, record) = (desk.path("bin"), desk.path("record"));
    std::fs::create_dir_all(&bin).unwrap();
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let script = format!("#!/bin/sh\nenv >> {}\nPATH={path}\nexec git \"$@\"\n", record.display());
    write_program(&bin.join("git"), &script);
    (format!("{}:{path}", bin.display()), record)
}

#[test]
fn git_gets_no_key_and_where_it_only_reads_no_agent() {
    let desk = Desk::new();
    repository(&desk, &["a.txt"]);
    let (path, record) = recording_git(&desk);
    let server = Server::start(Manner::Well);
    status_plan(&desk, &server);
    let with = |mut command: Command| {
        command.env("PATH", &path).env("SSH_AUTH_SOCK", "/agent-of-the-user").env(SECRET.0, SECRET.1);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.seen());
        let text = read(&record);
        std::fs::remove_file(&record).unwrap();
        assert!(text.contains("HOME=") && !text.contains(SECRET.1), "{text}");
        text
    };
    assert!(!with(command_in(&desk, &desk.work())).contains("/agent-of-the-user"));
    let (uri, _) = desk.commit("one", &[("bundle.md", BUNDLE)]);
    assert!(with(desk.command_with_git(&["run", "-B", &uri, "hi"])).contains("/agent-of-the-user"));
    let doctor = desk.command_with_git(&["doctor"]);
    let ran = Ran::of({ doctor }.env("PATH", &path).env(SECRET.0, SECRET.1).output().unwrap());
    assert!(!read(&record).contains(SECRET.1), "{}", ran.seen());
}

const BUNDLE: &str = "---\nbundle: {name: b}\nsession: {orchestrator: loop-basic, context: context-simple}\n\
                      providers: [{module: provider-mock, config: {responses: [from the bundle]}}]\n---\nHi.\n";

#[test]
fn what_the_user_configured_for_git_works_in_a_fetch() {
    let desk = Desk::new();
    desk.commit("one", &[("bundle.md", BUNDLE)]);
    let repos = desk.path("repos").display().to_string();
    let run = |uri: &str, ssh: Option<&str>| {
        let mut command = desk.command_with_git(&["run", "-B", uri, "hi"]);
        command.envs(ssh.map(|ssh| ("GIT_SSH_COMMAND", ssh)));
        let ran = Ran::of(command.output().unwrap());
        assert!(ran.code == 0 && ran.stdout.contains("from the bundle"), "{}", ran.seen());
    };
    // A private repository over ssh, with the user's own command in the place of ssh.
    let ssh = desk.path("ssh");
    write_program(&ssh, "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n");
    run(&format!("git+ssh://git@host.invalid{repos}/one@main"), Some(ssh.to_str().unwrap()));
    let settings = format!("[url \"file://{repos}/\"]\ninsteadOf = https://host.invalid/\n");
    std::fs::write(desk.path("user/.gitconfig"), settings).unwrap();
    run("git+https://host.invalid/one@main", None);
    // Without a variable, the command of the user's configuration.
    std::fs::remove_dir_all(desk.home()).unwrap();
    std::fs::write(desk.path("user/.gitconfig"), format!("[core]\nsshCommand = {}\n", ssh.display()))
        .unwrap();
    run(&format!("git+ssh://git@host.invalid{repos}/one@main"), None);
}

#[test]
fn a_fetched_repository_starts_nothing() {
    let desk = Desk::new();
    let attack = program(&desk, "submodule");
    let (_, commit) = desk.commit("one", &[("bundle.md", BUNDLE), (".gitattributes", "* filter=x\n")]);
    for (url, update) in
        [(format!("ext::{attack}"), "checkout"), ("./nothing".to_owned(), &*format!("!{attack}"))]
    {
        let modules = format!("[submodule \"s\"]\npath = s\nurl = {url}\nupdate = {update}\n");
        std::fs::write(desk.path("repos/one/.gitmodules"), modules).unwrap();
        desk.git("one", &["add", ".gitmodules"]);
        desk.git("one", &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},s")]);
        desk.git("one", &["commit", "--quiet", "--message=x"]);
        let uri = format!(
            "git+file://{}@{}",
            desk.path("repos/one").display(),
            desk.git("one", &["rev-parse", "HEAD"])
        );
        let ran = desk.with_git(&["run", "-B", &uri, "hi"]);
        assert_ne!(ran.code, 0, "{}", ran.seen());
        assert_eq!(marks(&desk), [""; 0]);
    }
}
