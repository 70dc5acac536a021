//! The checks against homes that are well and homes that are not. No server is asked but on dead ports of this machine.

use std::path::Path;
use std::sync::Mutex;

use amplifier_testing::write_program;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::env::Environment;
use crate::paths::Home;

/// Remembers what was waited for.
#[derive(Default)]
struct Heard(Mutex<Vec<Check>>);

impl Watcher for Heard {
    fn waits_for(&self, checks: &[Check]) {
        self.0.lock().unwrap().extend(checks);
    }
}

struct Ward {
    dir: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Ward {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "programs must be found")]
        let path = std::env::var("PATH").unwrap();
        Self { dir, variables: vec![("PATH", path)] }
    }

    fn home(&self) -> Home {
        Home::new(self.dir.path().join("home"))
    }

    /// Puts a file into the home, for nobody else.
    fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.home().root().join(name);
        crate::files::create_private_dir(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn patient(&self) -> Patient {
        let variables = self.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let environment = Environment::Fixed(variables.collect());
        // A port that was just given back.
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let places = Places {
            ollama: dead.clone(),
            llama_cpp: dead,
            vllm: None,
            patience: Duration::from_millis(500),
        };
        Patient {
            access: Access::new(self.home(), environment, self.dir.path().join("work")),
            places,
            reach: Reach::Servers,
            terminal: Terminal::default(),
            patience: Duration::from_secs(20),
        }
    }

    async fn findings(&self) -> Vec<Finding> {
        examine(&self.patient(), &Heard::default()).await
    }
}

fn of(findings: &[Finding], check: Check) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.check == check).collect()
}

fn levels(findings: &[Finding], check: Check) -> Vec<Level> {
    of(findings, check).iter().map(|finding| finding.level).collect()
}

#[cfg(unix)]
fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_machine_where_nothing_was_done_yet_is_well_and_stays_untouched() {
    let ward = Ward::new();
    let findings = ward.findings().await;
    assert!(is_well(&findings), "{findings:#?}");
    // Every check says something, in its order, and whatever is amiss has a cure.
    let told: Vec<_> = findings.iter().map(|finding| finding.check).collect();
    assert!(told.is_sorted() && Check::ALL.iter().all(|check| told.contains(check)), "{told:?}");
    let bare = findings.iter().find(|finding| finding.level != Level::Ok && finding.cure.is_none());
    assert_eq!(bare, None);
    assert!(!ward.home().root().exists(), "looking makes nothing");
    // Without a key and a server nobody can be asked, which is told and no reason to fail.
    assert_eq!(levels(&findings, Check::Servers), [Level::Warning]);
}

#[tokio::test]
async fn broken_files_of_the_home_are_problems_with_their_place() {
    let ward = Ward::new();
    ward.file("settings.yaml", "bundle:\n  active: [a\n").file("registry.json", "{broken");
    ward.file("share/collections.yaml", "collections: 7\n");
    let findings = ward.findings().await;
    assert!(!is_well(&findings));
    for check in [Check::Settings, Check::Registry, Check::Bundle, Check::Collections] {
        assert_eq!(levels(&findings, check), [Level::Problem], "{check:?}: {:?}", of(&findings, check));
    }
    let settings = &of(&findings, Check::Settings)[0].message;
    assert!(settings.contains("settings.yaml:"), "{settings}");
    ward.file("settings.yaml", "- a\n- b\n");
    assert_eq!(levels(&ward.findings().await, Check::Settings), [Level::Problem]);
    ward.file("settings.yaml", "bundel: x\n");
    assert_eq!(levels(&ward.findings().await, Check::Settings), [Level::Warning]);
}

#[tokio::test]
async fn a_bundle_that_is_gone_is_told_by_its_name() {
    let ward = Ward::new();
    let gone = ward.dir.path().join("gone.md").display().to_string();
    let registered =
        json!({"version": 1, "active": "mine", "bundles": {"mine": {"uri": format!("file://{gone}")}}});
    ward.file("registry.json", &registered.to_string());
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Registry), [Level::Warning]);
    assert_eq!(levels(&findings, Check::Bundle), [Level::Problem], "{findings:#?}");
    // Never fetched is not broken.
    let registered =
        json!({"version": 1, "active": "far", "bundles": {"far": {"uri": "git+https://127.0.0.1:1/a@main"}}});
    ward.file("registry.json", &registered.to_string());
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Bundle), [Level::Warning], "{findings:#?}");
    assert_eq!(
        of(&findings, Check::Bundle)[0].cure.as_deref(),
        Some("`amplifier bundle show far` fetches it")
    );
    ward.file("registry.json", &json!({"version": 1, "active": "nobody"}).to_string());
    assert_eq!(levels(&ward.findings().await, Check::Registry), [Level::Problem]);
}

#[cfg(unix)]
#[tokio::test]
async fn what_others_can_read_or_change_is_a_problem() {
    let ward = Ward::new();
    ward.file("keys.env", "A=b\n").file("state/sessions/s-1/events.jsonl", "");
    let home = ward.home();
    chmod(&home.root().join("keys.env"), 0o600);
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Permissions), [Level::Ok], "{findings:#?}");
    chmod(&home.root().join("keys.env"), 0o644);
    chmod(&home.sessions(), 0o755);
    chmod(&home.sessions().join("s-1"), 0o755);
    chmod(home.root(), 0o777);
    let findings = ward.findings().await;
    let told = of(&findings, Check::Permissions);
    assert!(told.iter().all(|finding| finding.level == Level::Problem), "{told:#?}");
    let cures: Vec<_> = told.iter().map(|finding| finding.cure.clone().unwrap()).collect();
    let (root, sessions) = (home.root().display(), home.sessions());
    let expected = [
        format!("`chmod go-w {root}`"),
        format!("`chmod go= {}`", sessions.display()),
        format!("`chmod go= {root}/keys.env`"),
        format!("`chmod -R go= {}`", sessions.display()),
    ];
    assert_eq!(cures, expected);
}

#[tokio::test]
async fn a_home_that_is_a_file_is_a_problem() {
    let ward = Ward::new();
    std::fs::write(ward.home().root(), "").unwrap();
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Home), [Level::Problem]);
    assert!(of(&findings, Check::Home)[0].cure.as_ref().unwrap().contains("--home"), "{findings:?}");
}

#[tokio::test]
async fn an_examination_changes_nothing() {
    let ward = Ward::new();
    ward.file("state/sessions/s-1/events.jsonl", "");
    ward.file("state/sessions/s-2/mount_plan.json", "{}");
    let files = || {
        let mut names: Vec<_> = ignore::WalkBuilder::new(ward.home().root())
            .standard_filters(false)
            .build()
            .map(|entry| entry.unwrap().into_path())
            .collect();
        names.sort();
        names
    };
    let before = files();
    ward.findings().await;
    assert_eq!(files(), before);
}

#[tokio::test]
async fn a_session_that_cannot_be_listed_is_told_unless_it_is_at_work() {
    let ward = Ward::new();
    ward.file("state/sessions/s-1/events.jsonl", "");
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Sessions), [Level::Warning]);
    assert!(of(&findings, Check::Sessions)[0].message.contains("`s-1`"), "{findings:?}");
    let clock = crate::clock::SystemClock::default();
    let owner = crate::journal::Owner::this_process("test", amplifier_core::clock::Clock::now(&clock));
    let lease = ward.home().session(&"s-1".parse().unwrap()).lease();
    let held = crate::journal::Lease::acquire(&lease, owner).unwrap();
    assert_eq!(levels(&ward.findings().await, Check::Sessions), [Level::Ok]);
    drop(held);
}

#[tokio::test]
async fn what_a_resume_would_stumble_over_is_told_with_what_helps() {
    let ward = Ward::new();
    let plan = r#"{"session": {"orchestrator": "loop-basic", "context": "context-simple"}}"#;
    // Views know five records of a journal that is empty or gone, and one has no plan that can be read.
    let views = r#"{"session_id":"x","parent_id":null,"created":"2025-11-15T22:24:49.000100+00:00",
        "updated":"2025-11-15T22:24:49.000100+00:00","turns":1,"title":"t","plan_hash":"sha256:1","status":"completed",
        "views":{"version":2,"seq":5}}"#;
    let opened = concat!(
        r#"{"v":1,"seq":1,"ts":"2025-11-15T22:24:49.000100+00:00","turn":0,"body":{"opened":{"session_id":"#,
        r#""019a8a1e-7f10-7c3a-9d52-3b1f0e6c4a11","parent_id":null,"plan_hash":"sha256:4f0c"}},"crc":"cf975250"}"#,
        "\n"
    );
    for (id, file, text) in [
        ("s-1", "events.jsonl", ""),
        ("s-1", "metadata.json", views),
        ("s-2", "metadata.json", views),
        ("s-3", "events.jsonl", opened),
        ("s-3", "mount_plan.json", "garbage"),
        ("s-4", "events.jsonl", opened),
        ("s-5", "events.jsonl", opened),
        ("s-5", "mount_plan.json", plan),
    ] {
        ward.file(&format!("state/sessions/{id}/{file}"), text);
    }
    let findings = ward.findings().await;
    let found = of(&findings, Check::Sessions);
    assert!(found.iter().all(|finding| finding.level == Level::Warning), "{found:#?}");
    let told: Vec<_> = found.iter().map(|finding| finding.message.as_str()).collect();
    assert!(told[0].contains("`s-2`") && told[0].contains("is not there"), "{told:#?}");
    assert!(told[1].contains("`s-1`") && told[1].contains("holds no record"), "{told:#?}");
    assert_eq!(told[2], "the plan of 2 sessions cannot be read: `s-4`, `s-3`");
    let cures: Vec<_> = found.iter().map(|finding| finding.cure.clone().unwrap()).collect();
    assert!(cures[0].contains("session delete s-2") && cures[2].contains("--bundle"), "{cures:#?}");
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_home_that_is_a_link_to_nothing_and_settings_that_are_broken_are_told() {
    let ward = Ward::new();
    std::os::unix::fs::symlink("nowhere", ward.home().root()).unwrap();
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Home), [Level::Problem]);
    assert!(of(&findings, Check::Home)[0].message.contains("is a link to `nowhere`"), "{findings:#?}");
    let ward = Ward::new();
    ward.file("settings.yaml", "a: [");
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Bundle), [Level::Warning]);
    assert!(of(&findings, Check::Bundle)[0].message.contains("the settings cannot be read"), "{findings:#?}");
}

#[tokio::test]
async fn keys_are_told_by_name_and_never_by_value() {
    let mut ward = Ward::new();
    ward.variables.push(("OPENAI_API_KEY", "\"sk-secret-value\"".to_owned()));
    let findings = ward.findings().await;
    assert_eq!(levels(&findings, Check::Keys), [Level::Ok, Level::Warning]);
    let told = json!(findings).to_string();
    assert!(told.contains("OPENAI_API_KEY") && !told.contains("sk-secret"), "{told}");
    assert_eq!(levels(&findings, Check::Servers), [Level::Ok], "somebody can be asked");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_does_not_answer_is_told_in_time_and_costs_nobody_else() {
    let mut ward = Ward::new();
    let bin = ward.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    write_program(&bin.join("git"), "#!/bin/sh\nexec sleep 600\n");
    let (_, path) = ward.variables.remove(0);
    ward.variables.push(("PATH", format!("{}:{path}", bin.display())));
    let mut patient = ward.patient();
    patient.patience = Duration::from_secs(5);
    let heard = Heard::default();
    let begun = std::time::Instant::now();
    let findings = examine(&patient, &heard).await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(of(&findings, Check::Git)[0].message, "no answer within 5.0 s");
    assert_eq!(levels(&findings, Check::Home), [Level::Ok]);
    assert!(heard.0.lock().unwrap().contains(&Check::Git));
}

#[tokio::test]
async fn without_programs_and_offline_it_is_told_what_will_not_work() {
    let mut ward = Ward::new();
    ward.variables.clear();
    ward.variables.push(("PATH", ward.dir.path().display().to_string()));
    let mut patient = ward.patient();
    patient.reach = Reach::Nothing;
    patient.terminal = Terminal { input: true, output: true, columns: Some(30) };
    let findings = examine(&patient, &Heard::default()).await;
    assert!(is_well(&findings), "{findings:#?}");
    assert_eq!(levels(&findings, Check::Git), [Level::Warning]);
    assert_eq!(levels(&findings, Check::Python), [Level::Warning]);
    assert_eq!(levels(&findings, Check::Node), [Level::Ok]);
    let servers = &of(&findings, Check::Servers)[0];
    let told = "no model is connected: no key is set, and servers are not asked, as `--offline` says";
    assert_eq!((servers.level, servers.message.as_str()), (Level::Warning, told));
    assert!(servers.cure.as_ref().is_some_and(|cure| cure.contains("`amplifier init`")));
    assert_eq!(levels(&findings, Check::Terminal), [Level::Ok, Level::Warning, Level::Warning]);
}
