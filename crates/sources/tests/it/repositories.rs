//! Git over `file://`: which commit a name stands for, what ends up in the cache, what is refused.

use std::sync::Arc;
use std::time::Duration;

use amplifier_sources::cache::Selection;
use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{FetchContext, Freshness};
use amplifier_sources::limits::Limits;
use amplifier_sources::progress::Stage;

use crate::support::{Heard, Repo, World, commit_of, cx_with, fetch, names, read};
use amplifier_testing::{until, write_program};

/// Three commits with a light tag, an annotated tag, a branch with slashes and a branch named like a tag.
struct Fixture {
    repo: Repo,
    first: String,
    second: String,
    third: String,
}

fn fixture(world: &World) -> Fixture {
    let repo = world.repo("repos/one");
    let first = repo.commit(&[("mods/tool-x/x.py", "1\n"), ("bundle.md", "one\n")]);
    repo.run(&["tag", "v1"]);
    let second = repo.commit(&[("mods/tool-x/x.py", "2\n"), ("run.sh", "#!/bin/sh\n")]);
    repo.run(&["tag", "--annotate", "--message", "two", "v2"]);
    repo.run(&["checkout", "--quiet", "--force", "-b", "feature/deep/x"]);
    let third = repo.commit(&[("mods/tool-x/x.py", "3\n")]);
    repo.run(&["checkout", "--quiet", "--force", "main"]);
    Fixture { repo, first, second, third }
}

#[tokio::test]
async fn every_kind_of_ref_gives_its_commit() {
    let world = World::new();
    let Fixture { repo, first, second, third } = fixture(&world);
    let fetcher = world.fetcher();
    let rows = [
        (String::new(), &second, "2\n"),
        ("@main".to_owned(), &second, "2\n"),
        ("@HEAD".to_owned(), &second, "2\n"),
        ("@v1".to_owned(), &first, "1\n"),
        ("@v2".to_owned(), &second, "2\n"),
        ("@refs/tags/v2".to_owned(), &second, "2\n"),
        ("@feature/deep/x".to_owned(), &third, "3\n"),
        (format!("@{first}"), &first, "1\n"),
        (format!("@{}", first.to_uppercase()), &first, "1\n"),
        (format!("@{}", &first[..9]), &first, "1\n"),
    ];
    for (reference, commit, text) in rows {
        let uri = repo.uri(&format!("{reference}#subdirectory=mods/tool-x"));
        let fetched =
            fetch(&fetcher, &uri, &world.cx()).await.unwrap_or_else(|error| panic!("{uri}: {error}"));
        assert_eq!(commit_of(&fetched), commit, "{uri}");
        assert_eq!(read(fetched.path.join("x.py")), text, "{uri}");
        assert_eq!(fetched.root, world.path("cache/git").join(commit), "{uri}");
        assert_eq!(fetched.path, fetched.root.join("mods/tool-x"), "{uri}");
        assert!(!fetched.root.join(".git").exists());
    }
    let entries: Vec<_> =
        names(world.path("cache/git")).into_iter().filter(|name| !name.starts_with('.')).collect();
    let mut commits = vec![first, second, third];
    commits.sort();
    assert_eq!(entries, commits, "one entry for each commit");
    assert_eq!(names(world.path("cache/git/.temp")), [""; 0], "nothing half made stays");
}

#[tokio::test]
async fn a_branch_comes_before_a_tag_of_its_name_and_the_executable_bit_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let Fixture { repo, second, .. } = fixture(&world);
    std::fs::set_permissions(repo.path.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let tip = repo.commit(&[("new", "n")]);
    repo.run(&["tag", "both", &second]);
    repo.run(&["branch", "both", &tip]);
    let fetched = fetch(&world.fetcher(), &repo.uri("@both"), &world.cx()).await.unwrap();
    assert_eq!(commit_of(&fetched), tip);
    let mode = std::fs::metadata(fetched.path.join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100);
}

#[tokio::test]
async fn what_is_cached_needs_no_repository_and_a_refresh_sees_the_branch_move() {
    let world = World::new();
    let Fixture { repo, second, .. } = fixture(&world);
    let fetcher = world.fetcher();
    let uri = repo.uri("@main");
    fetch(&fetcher, &uri, &world.cx()).await.unwrap();
    let next = repo.commit(&[("bundle.md", "moved\n")]);
    let again = fetch(&fetcher, &uri, &world.cx()).await.unwrap();
    assert_eq!(commit_of(&again), second, "a name that was fetched is not asked again");
    let refreshed = fetch(&fetcher, &uri, &cx_with(world.cx(), Freshness::Refresh)).await.unwrap();
    assert_eq!(
        (commit_of(&refreshed), read(refreshed.path.join("bundle.md")).as_str()),
        (next.as_str(), "moved\n")
    );
    assert_eq!(read(again.path.join("bundle.md")), "one\n", "the old entry did not change");

    std::fs::remove_dir_all(&repo.path).unwrap();
    let offline = cx_with(world.cx(), Freshness::Offline);
    for (reference, commit) in [("@main".to_owned(), &next), (format!("@{second}"), &second)] {
        let fetched = fetch(&fetcher, &repo.uri(&reference), &offline).await.unwrap();
        assert_eq!(commit_of(&fetched), commit);
    }
    let error = fetch(&fetcher, &repo.uri("@v1"), &offline).await.unwrap_err();
    assert!(matches!(error, FetchError::NotCached { .. }), "{error}");
    let error = fetch(&fetcher, &repo.uri("@v1"), &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::Git { .. }), "{error}");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn w5_a_pin_that_cannot_be_had_is_an_error_the_first_time_and_every_time() {
    let world = World::new();
    let Fixture { repo, .. } = fixture(&world);
    let fetcher = world.fetcher();
    let pin = "0123456789abcdef0123456789abcdef01234567";
    // The tag itself is an object too, and no commit.
    let tag = repo.run(&["rev-parse", "refs/tags/v2"]);
    for uri in [repo.uri(&format!("@{pin}")), repo.uri("@0123abcd"), repo.uri(&format!("@{tag}"))] {
        for _ in 0..2 {
            let error = fetch(&fetcher, &uri, &world.cx()).await.unwrap_err();
            assert!(matches!(error, FetchError::CommitNotFound { .. }), "{uri}: {error}");
        }
    }
    let error = fetch(&fetcher, &repo.uri("@no/such"), &world.cx()).await.unwrap_err();
    assert!(matches!(&error, FetchError::RefNotFound { reference, .. } if reference == "no/such"), "{error}");
    assert_eq!(fetcher.cache().list().unwrap(), [], "nothing was kept in their place");
}

#[tokio::test]
async fn w6_a_missing_subdirectory_is_an_error_that_costs_no_entry() {
    let world = World::new();
    let Fixture { repo, first, .. } = fixture(&world);
    let fetcher = world.fetcher();
    let error = fetch(&fetcher, &repo.uri("@v1#subdirectory=gone"), &world.cx()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("Subdirectory 'gone' not found in repository `git+file://"),
        "{error}"
    );
    assert_eq!(fetcher.cache().list().unwrap().len(), 1);
    std::fs::remove_dir_all(&repo.path).unwrap();
    let fetched = fetch(&fetcher, &repo.uri("@v1#mods/tool-x/x.py"), &world.cx()).await.unwrap();
    assert_eq!((commit_of(&fetched), read(&fetched.path).as_str()), (first.as_str(), "1\n"));
}

#[tokio::test]
async fn w7_a_repository_with_nothing_we_know_at_its_root_is_kept_like_any_other() {
    let world = World::new();
    let repo = world.repo("repos/deep");
    repo.commit(&[("some/where/bundle.md", "deep\n")]);
    let (fetcher, uri) = (world.fetcher(), repo.uri("@main#subdirectory=some/where"));
    let first = fetch(&fetcher, &uri, &world.cx()).await.unwrap();
    std::fs::remove_dir_all(&repo.path).unwrap();
    let again = fetch(&fetcher, &uri, &world.cx()).await.unwrap();
    assert_eq!((&again, read(again.path.join("bundle.md")).as_str()), (&first, "deep\n"));
}

#[tokio::test]
async fn repositories_with_longer_commit_ids_work_too() {
    let world = World::new();
    let repo = world.repo("repos/long");
    std::fs::remove_dir_all(repo.path.join(".git")).unwrap();
    repo.run(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256", "."]);
    let commit = repo.commit(&[("a", "1\n")]);
    assert_eq!(commit.len(), 64);
    for reference in ["main", &commit] {
        let fetched =
            fetch(&world.fetcher(), &repo.uri(&format!("@{reference}")), &world.cx()).await.unwrap();
        assert_eq!((commit_of(&fetched), read(fetched.path.join("a")).as_str()), (commit.as_str(), "1\n"));
    }
}

#[tokio::test]
async fn a_link_in_a_repository_leads_nowhere_outside_of_it() {
    let world = World::new();
    let repo = world.repo("repos/evil");
    std::fs::create_dir(world.path("outside")).unwrap();
    std::os::unix::fs::symlink(world.path("outside"), repo.path.join("link")).unwrap();
    repo.commit(&[]);
    let error = fetch(&world.fetcher(), &repo.uri("#subdirectory=link"), &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::Escapes { .. }), "{error}");
}

#[tokio::test]
async fn nothing_that_a_template_or_a_configuration_brings_is_run() {
    let world = World::new();
    let Fixture { repo, .. } = fixture(&world);
    let hook = world.path("home/template/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let mark = world.path("hook-ran");
    write_program(&hook, &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    let template = world.path("home/template");
    world.configure(&format!(
        "[init]\n templateDir = {0}\n[core]\n hooksPath = {0}/hooks\n autocrlf = true\n",
        template.display()
    ));
    let fetched = fetch(&world.fetcher(), &repo.uri("@v1"), &world.cx()).await.unwrap();
    assert!(!mark.exists(), "the hook ran");
    assert_eq!(read(fetched.path.join("bundle.md")), "one\n", "line ends are those of the commit");
}

#[tokio::test]
async fn relative_addresses_are_relative_to_the_base() {
    let world = World::new();
    let Fixture { first, .. } = fixture(&world);
    let fetched = fetch(&world.fetcher(), "git+file://./repos/one@v1", &world.cx()).await.unwrap();
    assert_eq!(commit_of(&fetched), first);
}

#[tokio::test]
async fn progress_is_told_and_the_second_fetch_has_none() {
    let world = World::new();
    let Fixture { repo, .. } = fixture(&world);
    let heard = Arc::new(Heard::default());
    let cx = FetchContext { progress: heard.clone(), ..world.cx() };
    fetch(&world.fetcher(), &repo.uri("@main"), &cx).await.unwrap();
    let stages = heard.stages();
    assert_eq!(stages.first(), Some(&Stage::Resolving));
    assert!(stages.iter().any(|stage| matches!(stage, Stage::Git { percent: 100, .. })), "{stages:?}");
    assert_eq!(stages.last(), Some(&Stage::Done));
    fetch(&world.fetcher(), &repo.uri("@main"), &cx).await.unwrap();
    assert_eq!(heard.stages(), stages);
}

/// A git that never ends, and a child of it that would outlive it. Both hold the pipe whose end the test waits for.
fn endless_git(world: &World) -> amplifier_sources::git::Git {
    let script = world.path("endless-git");
    let (pids, started) = (world.path("pids"), world.path("started"));
    let text = format!(
        "#!/bin/sh\nsleep 600 &\necho $$ $! > {}\nmv {} {}\nwait\n",
        pids.display(),
        pids.display(),
        started.display()
    );
    write_program(&script, &text);
    world.git().with_program(script)
}

/// Whether a process runs; one that nobody has reaped yet does not.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[tokio::test]
async fn cancelling_and_time_outs_end_git_and_all_it_started() {
    let world = World::new();
    let git = endless_git(&world);
    let cache = || amplifier_sources::cache::Cache::new(world.path("cache"));
    let short = Limits { git_query: Duration::from_millis(300), ..Limits::default() };
    for limits in [Limits::default(), short.clone()] {
        let fetcher =
            amplifier_sources::fetch::Fetcher::new(cache(), git.clone(), Arc::new(crate::support::Stopped))
                .with_limits(limits.clone());
        let cx = world.cx();
        let cancel = cx.cancel.clone();
        let task = tokio::spawn(async move { fetch(&fetcher, "git+file:///nowhere@main", &cx).await });
        until("git runs", || world.path("started").exists()).await;
        let pids = read(world.path("started"));
        if limits != short {
            cancel.request_graceful();
        }
        let error = task.await.unwrap().unwrap_err();
        match limits == short {
            false => assert!(matches!(error, FetchError::Cancelled { .. }), "{error}"),
            true => assert!(matches!(error, FetchError::TimedOut { .. }), "{error}"),
        }
        for pid in pids.split_whitespace() {
            until("the processes are gone", || !runs(pid)).await;
        }
        std::fs::remove_file(world.path("started")).unwrap();
    }
    let missing = world.git().with_program(world.path("no-such-git"));
    let fetcher = amplifier_sources::fetch::Fetcher::new(cache(), missing, Arc::new(crate::support::Stopped));
    let error = fetch(&fetcher, "git+file:///nowhere@main", &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::GitMissing { .. }), "{error}");
}

#[tokio::test]
async fn the_cache_lists_verifies_and_clears() {
    let world = World::new();
    let Fixture { repo, first, second, .. } = fixture(&world);
    let fetcher = world.fetcher();
    for reference in ["@v1", "@main"] {
        fetch(&fetcher, &repo.uri(reference), &world.cx()).await.unwrap();
    }
    let cache = fetcher.cache();
    let listed = cache.list().unwrap();
    assert_eq!(listed.len(), 2);
    let record = listed.iter().find(|entry| entry.key == first).unwrap().record.clone().unwrap();
    assert_eq!((record.source, record.files, record.bytes), (repo.uri("@v1"), 2, 6));
    let limits = Limits::default();
    assert!(
        cache.verify(&Selection::All, &limits).unwrap().iter().all(|verdict| verdict.problems.is_empty())
    );

    let entry = world.path("cache/git").join(&first);
    std::fs::write(entry.join("mods/tool-x/x.py"), "tampered").unwrap();
    std::fs::write(entry.join("new"), "").unwrap();
    let verdicts = cache.verify(&Selection::Key(first[..8].to_owned()), &limits).unwrap();
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].problems, ["`mods/tool-x/x.py` is changed", "`new` is new"]);

    let cleared = cache.clear(&Selection::Key(first.clone())).unwrap();
    assert_eq!(cleared.removed.len(), 1);
    assert_eq!(cache.list().unwrap().into_iter().map(|entry| entry.key).collect::<Vec<_>>(), [second]);
    let again = fetch(&fetcher, &repo.uri("@v1"), &world.cx()).await.unwrap();
    assert_eq!(read(again.path.join("mods/tool-x/x.py")), "1\n", "what was cleared is fetched anew");
    cache.clear(&Selection::All).unwrap();
    assert_eq!(cache.list().unwrap(), []);
    assert_eq!(names(world.path("cache/git/.meta")), [""; 0]);
    assert_eq!(names(world.path("cache/git/.refs")), [""; 0]);
}

#[tokio::test]
async fn a_shortened_commit_that_means_two_is_refused() {
    use std::fmt::Write as _;
    let world = World::new();
    let repo = world.repo("repos/many");
    let mut script = String::new();
    for at in 0..1_500 {
        let text = format!("{at}");
        let head = "commit refs/heads/main\ncommitter T <t@example.invalid> 1767225600 +0000\n";
        write!(script, "{head}data {}\n{text}\n", text.len()).unwrap();
    }
    std::fs::write(repo.path.join("script"), script).unwrap();
    let input = std::fs::File::open(repo.path.join("script")).unwrap();
    let mut import = std::process::Command::new("git");
    import.args(["fast-import", "--quiet"]).current_dir(&repo.path).env_clear().envs(world.variables());
    assert!(import.stdin(input).status().unwrap().success());
    let commits = repo.run(&["rev-list", "main"]);
    let mut prefixes: Vec<_> = commits.lines().map(|commit| &commit[..4]).collect();
    prefixes.sort_unstable();
    let twice =
        prefixes.windows(2).find(|pair| pair[0] == pair[1]).expect("among 1,500 commits two begin alike")[0];
    let error = fetch(&world.fetcher(), &repo.uri(&format!("@{twice}")), &world.cx()).await.unwrap_err();
    assert!(matches!(&error, FetchError::AmbiguousCommit { prefix, .. } if prefix == twice), "{error}");
}
