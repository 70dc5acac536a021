//! Many processes and one cache: one fetch, the same result for all, and nothing broken when half of them are killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use amplifier_sources::cache::Selection;
use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::FetchContext;
use amplifier_sources::limits::Limits;
use amplifier_sources::progress::Stage;

use amplifier_testing::{copy_program, until};

use crate::server::{Server, git};
use crate::support::{Heard, World, fetch, names};

const PROCESSES: usize = 20;
const VARIABLE: &str = "AMPLIFIER_TEST_FETCH";

/// A small generator with a seed, so that a failing run can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Not a test of its own: what the tests below start many times. Without its variable it does nothing.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test hands its child what to do, as no argument reaches a test"
)]
async fn fetching_child() {
    let Ok(text) = std::env::var(VARIABLE) else { return };
    let (home, uri) = text.split_once('|').unwrap();
    let world = World::at(home.into());
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    match fetch(&world.fetcher(), uri, &world.cx()).await {
        Ok(fetched) => println!("\ngot {:?}", (fetched.path, fetched.identity)),
        Err(error) => println!("\nfailed {}", error.chain()),
    }
}

fn start(world: &World, uri: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::fetching_child", "--nocapture", "--test-threads", "1"])
        .env(VARIABLE, format!("{}|{uri}", world.path("").display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts all of them and lets them go at once.
fn start_all(world: &World, uri: &str) -> Vec<(Child, BufReader<std::process::ChildStdout>)> {
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let mut child = start(world, uri);
            let output = BufReader::new(child.stdout.take().unwrap());
            (child, output)
        })
        .collect();
    for (_, output) in &mut children {
        assert_eq!(next_line(output, "ready").as_deref(), Some("ready"));
    }
    for (child, _) in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    children
}

/// The next line that begins with one of our words.
fn next_line(output: &mut impl BufRead, word: &str) -> Option<String> {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if line.starts_with(word) || line.starts_with("failed") {
            return Some(line.trim_end().to_owned());
        }
        line.clear();
    }
    None
}

/// A repository that takes a while to fetch and to check out.
fn large_repo(world: &World) -> String {
    let repo = world.repo("repos/one");
    let files: Vec<_> =
        (0..300).map(|at| (format!("f/{}/{at}", at % 7), format!("{at}\n").repeat(50))).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    repo.commit(&files)
}

fn check(world: &World) {
    let verdicts = world.fetcher().cache().verify(&Selection::All, &Limits::default()).unwrap();
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].problems, [""; 0]);
    assert_eq!(verdicts[0].entry.record.as_ref().unwrap().files, 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w8_twenty_processes_in_a_cold_cache_make_one_fetch_and_get_the_same() {
    let world = World::new();
    let commit = large_repo(&world);
    let server = Server::start(git(&world.path("repos"), world.variables())).await;
    let uri = format!("git+{}@main#subdirectory=f/3", server.url("/one/.git"));
    let answers = tokio::task::block_in_place(|| {
        let mut answers = Vec::new();
        for (mut child, mut output) in start_all(&world, &uri) {
            answers.push(next_line(&mut output, "got").expect("an answer"));
            assert!(child.wait().unwrap().success());
        }
        answers
    });
    assert!(answers[0].starts_with("got") && answers[0].contains(&commit), "{}", answers[0]);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    assert_eq!(server.fetches(), 1, "{:#?}", server.log());
    assert_eq!(server.log().len(), 4, "one question and one fetch, two requests each: {:#?}", server.log());
    check(&world);
    assert_eq!(names(world.path("cache/git/.temp")), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w8_half_of_twenty_processes_killed_at_random_moments_harm_nobody() {
    let world = World::new();
    let commit = large_repo(&world);
    let server = Server::start(git(&world.path("repos"), world.variables())).await;
    let uri = format!("git+{}@main", server.url("/one/.git"));
    for round in 0..4_u64 {
        let mut random = Random(round * 104_729 + 17);
        let survivors = tokio::task::block_in_place(|| {
            let mut children = start_all(&world, &uri);
            let mut victims = children.split_off(PROCESSES / 2);
            for (victim, _) in &mut victims {
                // Any moment of its life will do; only the spread matters.
                std::thread::sleep(Duration::from_millis(random.below(60)));
                victim.kill().unwrap();
                victim.wait().unwrap();
            }
            let ended = children.into_iter().map(|(mut child, mut output)| {
                let answer = next_line(&mut output, "got");
                child.wait().unwrap();
                answer.expect("an answer")
            });
            ended.collect::<Vec<_>>()
        });
        assert!(survivors[0].starts_with("got") && survivors[0].contains(&commit), "{}", survivors[0]);
        assert!(survivors.iter().all(|answer| *answer == survivors[0]), "{survivors:#?}");
        check(&world);
        // What the dead left half made is swept, once the gits they started have ended.
        until("the dead are swept", || {
            world.fetcher().cache().clear(&Selection::All).unwrap();
            names(world.path("cache/git/.temp")).is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn tasks_of_one_process_share_a_fetch_too() {
    let world = World::new();
    large_repo(&world);
    let server = Server::start(git(&world.path("repos"), world.variables())).await;
    let fetcher = Arc::new(world.fetcher());
    let mut tasks = tokio::task::JoinSet::new();
    for reference in ["main", "HEAD", "refs/heads/main", "main", "main"] {
        let (fetcher, cx) = (fetcher.clone(), world.cx());
        let uri = format!("git+{}@{reference}", server.url("/one/.git"));
        tasks.spawn(async move { fetch(&fetcher, &uri, &cx).await.unwrap().path });
    }
    let mut paths = tasks.join_all().await;
    paths.dedup();
    assert_eq!(paths.len(), 1);
    assert_eq!(server.fetches(), 1, "three names, one commit: {:#?}", server.log());
}

#[tokio::test]
async fn a_lock_that_is_not_given_back_is_an_error_that_names_its_holder() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1")]);
    let lock = world.path("cache/git/.locks").join(format!("{commit}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "process 4711").unwrap();
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let limits = Limits { lock_wait: Duration::from_millis(50), ..Limits::default() };
    let fetcher = world.fetcher().with_limits(limits);
    let heard = Arc::new(Heard::default());
    let cx = FetchContext { progress: heard.clone(), ..world.cx() };
    let error = fetch(&fetcher, &repo.uri(&format!("@{commit}")), &cx).await.unwrap_err();
    assert_eq!(heard.stages(), [Stage::Waiting { holder: Some("process 4711".to_owned()), seconds: 0 }]);
    assert!(matches!(error, FetchError::Busy { .. }), "{error}");
    assert!(error.to_string().starts_with("process 4711 holds the lock `"), "{error}");
}

#[tokio::test]
async fn a_cache_that_may_not_be_written_to_serves_what_it_has_and_says_what_is_wrong() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1")]);
    let cached = repo.uri(&format!("@{commit}"));
    fetch(&world.fetcher(), &cached, &world.cx()).await.unwrap();
    for folder in [
        "",
        "cache",
        "cache/git",
        "cache/git/.meta",
        "cache/git/.refs",
        "cache/git/.locks",
        "cache/git/.temp",
    ] {
        let mode = if folder.is_empty() { 0o755 } else { 0o555 };
        std::fs::set_permissions(world.path(folder), PermissionsExt::from_mode(mode)).unwrap();
    }
    // A superuser may write everywhere, so then somebody else tries, with a copy of this program that they may start.
    let program = world.path("tests");
    copy_program(&std::env::current_exe().unwrap(), &program);
    let nobody = 65_534;
    let superuser = std::fs::metadata(world.path("home")).unwrap().uid() == 0;
    for (uri, expected) in [(cached, "got"), (repo.uri("@main"), "failed the cache folder `")] {
        let mut command = Command::new(&program);
        command.args(["--exact", "processes::fetching_child", "--nocapture", "--test-threads", "1"]);
        command.env(VARIABLE, format!("{}|{uri}", world.path("").display())).stdin(Stdio::null());
        if superuser {
            command.uid(nobody).gid(nobody);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.lines().any(|line| line.starts_with(expected)), "{text}");
    }
}
