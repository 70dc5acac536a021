//! Looking never executes: commands that only show something start no program of a project or of a fetched source, connect to no
//! address of theirs and send no key, whether the project is trusted or not.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_testing::write_program;
use serde_json::json;

use crate::desk::{Desk, Ran};

/// How a command takes a bundle.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    /// As `--bundle`.
    Flag,
    /// As its argument; the one in use when left out.
    Argument,
    /// As its argument.
    Needs,
}

/// Commands that only look, or write what the user says about something that was looked at.
const LOOKING: &[(&str, Takes)] = &[
    ("agents list", Takes::Flag),
    ("agents show helper", Takes::Flag),
    ("backup list", Takes::Nothing),
    ("bundle add", Takes::Needs),
    ("bundle clear", Takes::Nothing),
    ("bundle current", Takes::Nothing),
    ("bundle list", Takes::Nothing),
    ("bundle lock", Takes::Needs),
    ("bundle remove gone", Takes::Nothing),
    ("bundle show", Takes::Argument),
    ("bundle tree", Takes::Argument),
    ("bundle update", Takes::Argument),
    ("bundle use far", Takes::Nothing),
    ("bundle validate", Takes::Needs),
    ("cache clear ffffffff", Takes::Nothing),
    ("cache list", Takes::Nothing),
    ("cache verify", Takes::Nothing),
    ("collection add far {profiles}", Takes::Nothing),
    ("collection list", Takes::Nothing),
    ("collection remove gone", Takes::Nothing),
    ("collection sync", Takes::Nothing),
    ("completions bash", Takes::Nothing),
    ("config get bundle.active", Takes::Nothing),
    ("config keys", Takes::Nothing),
    ("config path", Takes::Nothing),
    ("config schema", Takes::Nothing),
    ("config set ui.color never", Takes::Nothing),
    ("config show", Takes::Nothing),
    ("config unset ui.color", Takes::Nothing),
    ("doctor", Takes::Nothing),
    ("man", Takes::Nothing),
    ("module info tool-mcp", Takes::Nothing),
    ("module list", Takes::Nothing),
    ("plan diff foundation", Takes::Needs),
    ("plan explain", Takes::Flag),
    ("plan hash", Takes::Flag),
    ("plan show", Takes::Flag),
    ("plan validate hostile.json", Takes::Nothing),
    ("profile check far/base", Takes::Nothing),
    ("profile compile far/base", Takes::Nothing),
    ("profile list", Takes::Nothing),
    ("profile show far/base", Takes::Nothing),
    ("provider list", Takes::Nothing),
    ("session cleanup", Takes::Nothing),
    ("session export {session}", Takes::Nothing),
    ("session fork {session}", Takes::Nothing),
    ("session list", Takes::Nothing),
    ("session rename {session} named", Takes::Nothing),
    ("session replay {session}", Takes::Nothing),
    ("session search hi", Takes::Nothing),
    ("session show {session}", Takes::Nothing),
    ("tool info read_file", Takes::Flag),
    ("tool list", Takes::Flag),
    ("trust list", Takes::Nothing),
    ("trust remove", Takes::Nothing),
    ("trust", Takes::Flag),
    ("update --check", Takes::Nothing),
    ("version", Takes::Nothing),
];

/// Commands that open a session, ask a model or start an editor: what they may do is tested in `trust.rs`.
const ACTING: &[&str] = &[
    "backup restore",
    "chat",
    "config edit",
    "continue",
    "init",
    "provider add",
    "provider models",
    "provider remove",
    "provider set",
    "provider test",
    "resume",
    "run",
    "session delete",
    "session resume",
    "session rewind",
    "tool invoke",
];

/// Everything that could be started or asked: settings, a bundle with hooks, servers and agents, files of a project, git.
struct Trap {
    desk: Desk,
    asked: Arc<AtomicUsize>,
    session: String,
    profiles: String,
    fetched: String,
}

impl Trap {
    fn new() -> Self {
        let (desk, asked) = (Desk::new(), Arc::new(AtomicUsize::new(0)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let counted = asked.clone();
        // It ends with the test's process.
        std::thread::spawn(move || {
            listener.incoming().for_each(|_| {
                counted.fetch_add(1, Ordering::SeqCst);
            })
        });
        let ran = desk.amplifier(&["run", "--provider", "mock", "--output", "json", "hi"]);
        let session = ran.json()["session_id"].as_str().unwrap().to_owned();
        let root = desk.path("");
        let mark = |name: &str| format!("touch {}", root.join(format!("mark-{name}")).display());
        let bundle = bundle(&url, &mark);
        let (fetched, _) = desk.commit("far", &[("bundle.md", &bundle.replace("NAME", "far"))]);
        let (profiles, _) = desk.commit("profiles", &[("base/profile.md", &profile(&url, &mark))]);
        desk.file("b/bundle.md", bundle.replace("NAME", "b")).file(
            ".amplifier/settings.yaml",
            format!(
                "bundle: {{active: ./b}}\nconfig: {{providers: [{{module: provider-ollama, config: {{base_url: \"{url}\"}}}}, \
                 {{module: provider-chat-completions, config: {{base_url: \"{url}\", default_model: m}}}}]}}\n"
            ),
        );
        let hooks = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": mark("hooks-file")}]}]}});
        let servers = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", mark("mcp-file")]}, "h": {"url": url}}});
        desk.file(".amplifier/hooks/hooks.json", hooks.to_string());
        desk.file(".mcp.json", servers.to_string()).file(".amplifier/mcp.json", servers.to_string());
        desk.file("hostile.json", plan(&url, &mark).to_string());
        desk.file(".amplifier/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n!`touch mark-skill`\n");
        desk.file("rust-toolchain.toml", "[toolchain]\npath = \"/nowhere\"\n");
        std::fs::create_dir_all(desk.path("bin")).unwrap();
        write_program(
            &desk.path("bin/cargo"),
            &format!("#!/bin/sh\n[ ! -e rust-toolchain.toml ] || {}\necho cargo 1\n", mark("cargo")),
        );
        let trap = Self { desk, asked, session, profiles, fetched };
        trap.repository(&mark);
        trap
    }

    /// A repository whose configuration starts programs at nearly every command of git.
    fn repository(&self, mark: &dyn Fn(&str) -> String) {
        let git = |args: &[&str]| {
            let mut git = self.desk.command_with_git(&[]);
            let variables: Vec<_> = git
                .get_envs()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                .collect();
            git = std::process::Command::new("git");
            git.current_dir(self.desk.work()).env_clear().envs(variables).args(args);
            assert!(git.output().unwrap().status.success(), "{args:?}");
        };
        git(&["init", "--quiet", "--initial-branch=main"]);
        self.desk.file(".gitattributes", "* filter=x diff=x\n");
        git(&["add", ".gitattributes"]);
        git(&["commit", "--quiet", "--message=x"]);
        for key in [
            "core.fsmonitor",
            "filter.x.clean",
            "filter.x.smudge",
            "core.pager",
            "core.sshCommand",
            "diff.x.textconv",
        ] {
            git(&["config", key, &mark(&format!("git-{key}"))]);
        }
        self.desk.file(".git/hooks/post-checkout", format!("#!/bin/sh\n{}\n", mark("git-hook")));
    }

    fn run(&self, words: &str, bundle: Option<&str>, takes: Takes) -> Ran {
        let words = words.replace("{session}", &self.session).replace("{profiles}", &self.profiles);
        let mut args: Vec<_> = words.split(' ').collect();
        match (takes, bundle) {
            (Takes::Flag, Some(bundle)) => args.extend(["--bundle", bundle]),
            (Takes::Argument, Some(bundle)) => args.push(bundle),
            (Takes::Needs, bundle) => args.push(bundle.unwrap_or("./b")),
            _ => {}
        }
        let mut command = self.desk.command_with_git(&args);
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
        let path = format!("{}:{}", self.desk.path("bin").display(), path.display());
        command.env("PATH", path).env("CHAT_COMPLETIONS_API_KEY", "key-of-the-user-7f3a");
        Ran::of(command.output().unwrap())
    }

    fn is_untouched(&self, what: &str, ran: &Ran) {
        let marks = marks(&self.desk.path(""));
        assert!(marks.is_empty(), "{what} started {marks:?}: {}", ran.seen());
        assert_eq!(self.asked.load(Ordering::SeqCst), 0, "{what} connected: {}", ran.seen());
        // The command was one, and not a mistake of this test.
        assert!(!ran.stderr.contains("Usage: "), "{what}: {}", ran.seen());
    }

    fn look(&self, what: &str, bundle: Option<&str>) {
        for (words, takes) in LOOKING {
            let ran = self.run(words, bundle, *takes);
            self.is_untouched(&format!("`{words}` in {what}"), &ran);
            // What is trusted is shown, without what it would start.
            if what.starts_with("a trusted") && words.starts_with("tool ") {
                assert_eq!(ran.code, 0, "{words}: {}", ran.seen());
                assert!(ran.stderr.contains("`tool-mcp` starts servers"), "{words}: {}", ran.seen());
            }
            if what.starts_with("a trusted") && words.starts_with("trust") {
                assert_eq!(self.run("trust", None, Takes::Nothing).code, 0);
            }
        }
    }
}

/// The files below a directory that a program left.
fn marks(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(marks(&entry.path()));
        } else if name.starts_with("mark-") {
            found.push(name);
        }
    }
    found
}

fn plan(url: &str, mark: &dyn Fn(&str) -> String) -> serde_json::Value {
    let servers = json!({"s": {"command": "sh", "args": ["-c", mark("mcp")]}, "h": {"url": url}});
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {"module": "provider-chat-completions", "config": {"base_url": url, "default_model": "m"}},
            {"module": "provider-ollama", "config": {"base_url": url}},
        ],
        "tools": [{"module": "tool-filesystem"}, {"module": "tool-bash"}, {"module": "tool-mcp", "config": {"servers": servers, "wait": 5.0}}],
        "hooks": [{"module": "hooks-shell", "config": {"hooks": [
            {"event": "session:start", "command": mark("hook")}, {"event": "session:end", "command": mark("hook-end")},
        ]}}, {"module": "hooks-status-context"}],
    })
}

fn bundle(url: &str, mark: &dyn Fn(&str) -> String) -> String {
    let mut plan = plan(url, mark);
    let servers = json!({"a": {"command": "sh", "args": ["-c", mark("agent")]}});
    plan["bundle"] = json!({"name": "NAME", "version": "1.0.0"});
    plan["agents"] = json!({"helper": {
        "description": "d", "instruction": "Help.", "tools": [{"module": "tool-mcp", "config": {"servers": servers}}],
    }});
    // YAML holds JSON.
    format!("---\n{plan}\n---\nHi.\n")
}

fn profile(url: &str, mark: &dyn Fn(&str) -> String) -> String {
    let plan = plan(url, mark);
    format!(
        "---\nprofile: {{name: base, version: 1.0.0, description: d, schema_version: 2}}\nsession: {{orchestrator: {{module: loop-basic}}, \
         context: {{module: context-simple}}}}\nproviders: {}\ntools: {}\nhooks: {}\n---\nx\n",
        plan["providers"], plan["tools"], plan["hooks"]
    )
}

#[test]
fn i25_every_command_is_known_to_look_or_to_act() {
    let desk = Desk::new();
    assert_eq!(desk.amplifier(&["man", "--dir", "pages"]).code, 0);
    let pages = std::fs::read_dir(desk.work().join("pages")).unwrap();
    let pages: BTreeSet<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .filter_map(|page| Some(page.strip_prefix("amplifier-")?.strip_suffix(".1")?.replace('-', " ")))
        .collect();
    let is_group = |page: &String| pages.iter().any(|other| other.starts_with(&format!("{page} ")));
    // Of the groups, `trust` is a command as well.
    let commands: BTreeSet<String> =
        pages.iter().filter(|page| !is_group(page) || *page == "trust").cloned().collect();
    let looking = LOOKING.iter().map(|(words, _)| (*words).to_owned());
    let command = |words: String| {
        let fits = |command: &&String| words == **command || words.starts_with(&format!("{command} "));
        commands.iter().filter(fits).max_by_key(|command| command.len()).cloned().unwrap_or(words)
    };
    let known: BTreeSet<String> =
        looking.map(command).chain(ACTING.iter().map(|words| (*words).to_owned())).collect();
    assert_eq!(known, commands, "a command is missing in LOOKING or ACTING");
}

#[test]
fn i25_looking_in_an_untrusted_directory_starts_and_asks_nothing() {
    let trap = Trap::new();
    trap.look("an untrusted directory", None);
}

#[test]
fn i25_looking_in_a_trusted_directory_starts_and_asks_nothing() {
    let trap = Trap::new();
    let ran = trap.run("trust", None, Takes::Nothing);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    for mark in ["mark-hook", "mark-mcp", "mark-agent"] {
        assert!(ran.stdout.contains(mark), "{mark}: {}", ran.seen());
    }
    trap.look("a trusted directory", None);
    // They are there to be started.
    let ran = trap.run("run --provider mock hi", None, Takes::Nothing);
    assert!(!marks(&trap.desk.path("")).is_empty(), "{}", ran.seen());
}

#[test]
fn i25_looking_at_a_fetched_bundle_starts_and_asks_nothing() {
    let trap = Trap::new();
    let fetched = trap.fetched.clone();
    trap.look("a fetched bundle", Some(&fetched));
    let ran = trap.run("trust", Some(&fetched), Takes::Flag);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    trap.look("a trusted fetched bundle", Some(&fetched));
}
