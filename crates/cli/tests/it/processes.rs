//! Many processes prepare the same bundle in a cold cache: one fetch of each commit, the same plan, nothing broken.
//!
//! The bundle is made of several real repositories with tags, subdirectories and nested bundles, and comes over
//! `file://` and over HTTP.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use amplifier_testing::http::Server;
use amplifier_testing::{block_until, write_program};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, git_variables, read};

const PROCESSES: usize = 20;

/// The commits that the bundle below needs: one of `lib`, one of `more`, two of `kit`.
const COMMITS: usize = 4;

/// A small generator with a seed, so that a failing run can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// How the repositories are reached.
#[derive(Clone, Copy)]
enum Way {
    Files,
    Http,
}

/// A desk with the repositories, the bundle `b`, and a `git` that writes down its fetches and holds them while told to.
struct Stand {
    desk: Desk,
    server: Option<Server>,
}

impl Stand {
    async fn new(way: Way) -> Self {
        let desk = Desk::new();
        let server = match way {
            Way::Files => None,
            Way::Http => Some(Server::start(desk.serving()).await),
        };
        let stand = Self { desk, server };
        stand.write_git();
        stand.write_bundle();
        stand
    }

    fn address(&self, repo: &str, rest: &str) -> String {
        match &self.server {
            None => format!("git+file://{}{rest}", self.desk.path("repos").join(repo).display()),
            Some(server) => format!("git+{}{rest}", server.url(&format!("/{repo}/.git"))),
        }
    }

    /// The tags are older than the branches, so that a wrong commit is a wrong plan.
    fn write_bundle(&self) {
        let desk = &self.desk;
        let pages = "page\n".repeat(2_000);
        let tagged = "bundle: {name: kit}\ntools: [{module: tool-todo, config: {from: tag}}]\n";
        desk.commit("kit", &[("core/bundle.yaml", tagged), ("docs/pages.md", &pages)]);
        desk.git("kit", &["tag", "--annotate", "--message=x", "v1.0.0"]);
        let newest = "bundle: {name: kit-next}\ntools: [{module: tool-web, config: {from: branch}}]\n";
        desk.commit("kit", &[("core/bundle.yaml", "bundle: {name: wrong}\n"), ("next/bundle.yaml", newest)]);
        let kit = self.address("kit", "@v1.0.0#subdirectory=core");
        let lib =
            format!("---\nbundle: {{name: lib}}\nincludes: [lib:parts/x, ./nested, \"{kit}\"]\n---\nLib.\n");
        let (_, commit) = desk.commit(
            "lib",
            &[
                ("bundle.md", &lib),
                ("parts/x.yaml", "bundle: {name: x}\nhooks: [{module: hooks-logging}]\n"),
                ("nested/bundle.yaml", "bundle: {name: nested}\ntools: [{module: tool-search}]\n"),
                ("docs/pages.md", &pages),
            ],
        );
        desk.git("lib", &["tag", "releases/2.0"]);
        desk.commit("lib", &[("bundle.md", "---\nbundle: {name: lib}\n---\nToo new.\n")]);
        let deep = format!("bundle: {{name: more}}\nincludes: [./y.yaml, \"{kit}\"]\n");
        let y = "bundle: {name: y}\ntools: [{module: tool-filesystem, config: {from: y}}]\n";
        desk.commit("more", &[("deep/bundle.yaml", &deep), ("deep/y.yaml", y)]);
        let includes = [
            "minimal".to_owned(),
            self.address("lib", "@releases/2.0"),
            self.address("more", "@main#subdirectory=deep"),
            self.address("lib", &format!("@{commit}#subdirectory=nested")),
            self.address("kit", "@main#subdirectory=next"),
        ];
        desk.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: {}\n", json!(includes)));
    }

    fn write_git(&self) {
        let (bin, log, hold) = (self.bin(), self.desk.path("fetches.log"), self.hold());
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(&log, "").unwrap();
        let path =
            git_variables(&self.desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
        let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
        let real = real.expect("git is needed for this test; install it");
        let (log, hold, real) = (log.display(), hold.display(), real.display());
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' fetch '*) ;; *) exec '{real}' \"$@\" ;; esac\n\
             echo \"begin $PPID $$\" >> '{log}'\nwhile [ -e '{hold}' ]; do sleep 0.01; done\n\
             '{real}' \"$@\"\ncode=$?\necho \"end $PPID $$\" >> '{log}'\nexit $code\n"
        );
        write_program(&bin.join("git"), &script);
    }

    fn bin(&self) -> PathBuf {
        self.desk.path("bin")
    }

    /// While this file is there, a fetch that has begun goes no further.
    fn hold(&self) -> PathBuf {
        self.desk.path("hold")
    }

    /// A command with a home of its own.
    fn command(&self, home: &str, args: &[&str]) -> Command {
        let mut command = self.desk.command_with_git(args);
        let path =
            git_variables(&self.desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
        command.env("PATH", format!("{}:{path}", self.bin().display()));
        command.env("AMPLIFIER_HOME", self.desk.path(home));
        command
    }

    fn start(&self, home: &str) -> Child {
        self.command(home, &["plan", "show", "--bundle", "b"]).spawn().unwrap()
    }

    /// The process that asked and the process of git, for each fetch that began, and whether it has ended.
    fn fetches(&self) -> Vec<(u32, String, Ended)> {
        let text = read(&self.desk.path("fetches.log"));
        let begun = text.lines().filter_map(|line| line.strip_prefix("begin "));
        let fetch = |line: &str| {
            let parent = line.split_once(' ').unwrap().0.parse().unwrap();
            let ended = text.lines().any(|other| other == format!("end {line}"));
            (parent, line.to_owned(), if ended { Ended::Yes } else { Ended::No })
        };
        begun.map(fetch).collect()
    }

    /// Which of these are in the middle of a fetch.
    fn fetching(&self, children: &[Child]) -> Vec<usize> {
        let fetches = self.fetches();
        let busy = |id: u32| fetches.iter().any(|(parent, _, ended)| *parent == id && *ended == Ended::No);
        (0..children.len()).filter(|at| busy(children[*at].id())).collect()
    }

    /// What is in the cache is whole, and is what was asked for.
    fn check(&self, home: &str) {
        let verified = Ran::of(self.command(home, &["cache", "verify"]).output().unwrap());
        assert_eq!(verified.code, 0, "{}", verified.seen());
        let listed = Ran::of(self.command(home, &["cache", "list", "--output", "json"]).output().unwrap());
        assert_eq!(listed.json()["entries"].as_array().unwrap().len(), COMMITS, "{}", listed.stdout);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

/// What a process printed, which must be the plan of the bundle.
fn plan(child: Child) -> String {
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let plan = ran.json();
    let from = |module: &str| {
        let tools = plan["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["module"] == module).map(|tool| tool["config"]["from"].clone())
    };
    assert_eq!(from("tool-todo"), Some(json!("tag")), "{plan:#}");
    assert_eq!(from("tool-web"), Some(json!("branch")), "{plan:#}");
    assert_eq!(from("tool-filesystem"), Some(json!("y")), "{plan:#}");
    assert_eq!(from("tool-search"), Some(Value::Null), "{plan:#}");
    ran.stdout
}

async fn at_once(way: Way) {
    let stand = Stand::new(way).await;
    tokio::task::block_in_place(|| {
        let children: Vec<_> = (0..PROCESSES).map(|_| stand.start("home")).collect();
        let plans: Vec<_> = children.into_iter().map(plan).collect();
        assert!(plans.iter().all(|other| *other == plans[0]), "{plans:#?}");
        assert_eq!(stand.fetches().len(), COMMITS, "{:#?}", stand.fetches());
        stand.check("home");
    });
    if let Some(server) = &stand.server {
        assert_eq!(server.fetches(), COMMITS, "{:#?}", server.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_processes_in_a_cold_cache_fetch_each_commit_once_and_get_the_same_plan() {
    at_once(Way::Files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_processes_over_http_fetch_each_commit_once_and_get_the_same_plan() {
    at_once(Way::Http).await;
}

/// Kills half of twenty. The first kills meet fetches that are held; the others come when they come. Gives the plans of
/// the rest and how many kills met a fetch.
fn kill_half(stand: &Stand, home: &str, seed: u64) -> (Vec<String>, usize) {
    let mut random = Random(seed);
    let held = 2 + random.below(3);
    std::fs::write(stand.hold(), "").unwrap();
    let mut children: Vec<_> = (0..PROCESSES).map(|_| stand.start(home)).collect();
    let mut met = 0;
    for kill in 0..PROCESSES / 2 {
        if kill < held {
            block_until("a fetch is running", || !stand.fetching(&children).is_empty());
        } else {
            stand.hold().exists().then(|| std::fs::remove_file(stand.hold()).unwrap());
            // Any moment of its life will do; only the spread matters.
            std::thread::sleep(Duration::from_millis(random.below(30).try_into().unwrap()));
        }
        let fetching = stand.fetching(&children);
        let victim = match fetching.len() {
            0 => random.below(children.len()),
            some => fetching[random.below(some)],
        };
        met += usize::from(!fetching.is_empty());
        let mut victim = children.remove(victim);
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    println!("seed {seed}: {met} of {} kills met a running fetch, {held} of them held", PROCESSES / 2);
    assert!(met >= held);
    (children.into_iter().map(plan).collect(), met)
}

async fn half_killed(way: Way, seeds: [u64; 2]) {
    let stand = Stand::new(way).await;
    tokio::task::block_in_place(|| {
        let quiet = plan(stand.start("quiet"));
        for seed in seeds {
            let home = format!("home-{seed}");
            let (mut plans, _) = kill_half(&stand, &home, seed);
            assert_eq!(plans.len(), PROCESSES / 2);
            plans.push(plan(stand.start(&home)));
            assert!(plans.iter().all(|plan| *plan == quiet), "seed {seed}: {plans:#?}");
            // What the dead had started ends by itself and harms nothing either.
            block_until("every git has ended", || {
                stand.fetches().iter().all(|(_, _, ended)| *ended == Ended::Yes)
            });
            stand.check(&home);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_twenty_processes_killed_at_random_moments_harm_nobody() {
    half_killed(Way::Files, [104_746, 209_475]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_twenty_processes_over_http_killed_at_random_moments_harm_nobody() {
    half_killed(Way::Http, [314_204, 418_933]).await;
}
