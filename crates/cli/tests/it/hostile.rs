//! Input that means harm, through the binary: it ends in time, in little memory, with words that say what was too much.

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

use crate::desk::Desk;

/// Far more than any honest bundle needs, and far less than a bomb would take.
const MOST_MEGABYTES: i64 = 300;
const LONGEST: Duration = Duration::from_secs(60);
const VARIABLE: &str = "AMPLIFIER_TEST_HOSTILE";

/// Not a test of its own: runs one command and tells its end and its peak of memory. A process of its own, because the
/// system counts the children of a process together.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test hands its child what to do, as no argument reaches a test"
)]
fn measuring_child() {
    let Ok(text) = std::env::var(VARIABLE) else { return };
    let words: Vec<String> = serde_json::from_str(&text).unwrap();
    let [program, work, home, args @ ..] = words.as_slice() else { panic!("{words:?}") };
    let mut command = Command::new(program);
    command.args(args).current_dir(work).env_clear().env("AMPLIFIER_HOME", home).stdin(Stdio::null());
    let output = command.output().unwrap();
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    let code = output.status.code().unwrap_or(-1);
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said).chars().take(4_000).collect::<String>();
    println!("\nmeasured {}", json!({"code": code, "kilobytes": peak, "said": said}));
}

struct Measured {
    code: i64,
    said: String,
}

/// Runs a command within the bounds.
fn run(desk: &Desk, args: &[&str]) -> Measured {
    let (work, home) = (desk.work().display().to_string(), desk.home().display().to_string());
    let words = [&[env!("CARGO_BIN_EXE_amplifier"), work.as_str(), home.as_str()], args].concat();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::measuring_child", "--nocapture", "--test-threads", "1"])
        .env(VARIABLE, json!(words).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("{args:?} takes longer than {LONGEST:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let line =
        text.lines().find_map(|line| line.strip_prefix("measured ")).unwrap_or_else(|| panic!("{text}"));
    let found: serde_json::Value = serde_json::from_str(line).unwrap();
    // Linux counts in kilobytes.
    let megabytes = found["kilobytes"].as_i64().unwrap() / 1024;
    let said = found["said"].as_str().unwrap().to_owned();
    println!("{args:?}: exit {}, {megabytes} MB, {} ms", found["code"], begun.elapsed().as_millis());
    assert!(megabytes > 0 && megabytes < MOST_MEGABYTES, "{args:?} took {megabytes} MB\n{said}");
    Measured { code: found["code"].as_i64().unwrap(), said }
}

/// What `bundle validate` and `plan show` say of the bundle `b`; both must refuse it and say these words.
fn refused(desk: &Desk, words: &str) {
    for args in [&["bundle", "validate", "b", "--strict"][..], &["plan", "show", "--bundle", "b", "--strict"]]
    {
        let ran = run(desk, args);
        assert!(ran.code == 1 || ran.code == 2, "{args:?}: exit {}\n{}", ran.code, ran.said);
        assert!(ran.said.contains(words), "{args:?}: `{words}` is not in\n{}", ran.said);
    }
}

fn of(text: &str) -> Desk {
    let desk = Desk::new();
    desk.file("b/bundle.yaml", text);
    desk
}

#[test]
fn bombs_and_deep_nesting_are_refused_in_little_memory() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        writeln!(bomb, "a{level}: &a{level} [{}]", format!("*a{}, ", level - 1).repeat(10)).unwrap();
    }
    refused(&of(&bomb), "the YAML holds more than 200000 values");
    refused(&of(&format!("tools: {}", "[".repeat(1_000_000))), "recursion limit exceeded");
    refused(&of(&format!("tools: {}", "{a: ".repeat(1_000_000))), "the YAML is nested deeper than 64 levels");
    refused(&of(&format!("bundle: {{name: {}}}\n", "x".repeat(5 << 20))), "at most 4194304 are read");
    let desk = Desk::new();
    let file = std::fs::File::create(desk.file("b/x", "").work().join("b/bundle.md")).unwrap();
    file.set_len(2 << 30).unwrap();
    refused(&desk, "it is 2147483648 bytes long");
}

#[test]
fn thousands_of_includes_are_refused_in_little_memory() {
    let many = (0..10_000).fold(String::from("includes:\n"), |mut text, n| {
        writeln!(text, "- ./{n}.yaml").unwrap();
        text
    });
    refused(&of(&many), "the number of includes");
    let desk = of("includes: [./0.yaml]\n");
    for n in 0..10_000 {
        let children: Vec<_> = (1..=3).map(|child| format!("./{}.yaml", n * 3 + child)).collect();
        desk.file(&format!("b/{n}.yaml"), format!("includes: {children:?}\n"));
    }
    refused(&desk, "the number of bundle files");
    let desk = of("includes: [./0.yaml]\n");
    for n in 0..200 {
        desk.file(&format!("b/{n}.yaml"), format!("includes: [./{}.yaml]\n", n + 1));
    }
    refused(&desk, "the depth of includes");
}

#[test]
fn circles_of_every_kind_end() {
    let desk = of("includes: [./0.yaml]\n");
    let all: Vec<_> = (0..60).map(|n| format!("./{n}.yaml")).collect();
    for n in 0..60 {
        desk.file(&format!("b/{n}.yaml"), format!("includes: {all:?}\ntools: [{{module: tool-t{n}}}]\n"));
    }
    refused(&desk, "the includes form a circle");
    // Of mentions, and of profiles.
    let desk = Desk::new();
    desk.file("b/bundle.md", "---\nbundle: {name: b}\nincludes: [minimal]\nproviders: [{module: provider-mock, config: {responses: [ok]}}]\n---\n@one.md\n");
    desk.file("one.md", "@two.md @one.md")
        .file("two.md", "@one.md @c/")
        .file("c/d.md", "@one.md @two.md @c/d.md");
    let ran = run(&desk, &["run", "--bundle", "b", "hi @one.md"]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    let desk = Desk::new();
    for (name, base) in [("a", "b"), ("b", "a")] {
        let text = format!(
            "---\nprofile: {{name: {name}, version: 1, schema_version: 2, extends: {base}}}\nsession: {{orchestrator: loop-basic, context: context-simple}}\n---\n"
        );
        let path = desk.home().join(format!("share/profiles/local/{name}/profile.md"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let ran = run(&desk, &["plan", "show", "--profile", "local/a"]);
    assert_eq!(ran.code, 2, "{}", ran.said);
    assert!(ran.said.contains("extend each other in a circle: local/a → local/b → local/a"), "{}", ran.said);
}

#[test]
fn a_mention_of_a_huge_file_is_refused_in_little_memory() {
    let desk = Desk::new();
    desk.file("b/bundle.md", "---\nbundle: {name: b}\nincludes: [minimal]\ncontext: {include: [big.md]}\nproviders: [{module: provider-mock, config: {responses: [ok]}}]\n---\n@big.txt\n");
    for name in ["big.txt", "b/big.md"] {
        let file = std::fs::File::create(desk.work().join(name)).unwrap();
        file.set_len(100 << 20).unwrap();
    }
    let ran = run(&desk, &["run", "--bundle", "b", "look at @big.txt"]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    assert!(ran.said.contains("mention `@big.txt`: it is 104857600 bytes long"), "{}", ran.said);
}

#[test]
fn ways_out_of_a_bundle_are_refused() {
    let desk = of("bundle: {name: b}\nincludes: [minimal]\nagents: {include: [../../secret]}\n");
    desk.file("secret.md", "SECRET");
    refused(&desk, "leads out of");
    let desk = of(
        "bundle: {name: b}\nincludes: [minimal]\ncontext: {include: [link.md, ../secret.md], abs: /etc/hostname}\n",
    );
    desk.file("secret.md", "SECRET");
    std::os::unix::fs::symlink(desk.work().join("secret.md"), desk.work().join("b/link.md")).unwrap();
    refused(&desk, "leads out of");
    let desk = Desk::new();
    let archive = desk.path("work/evil.zip");
    std::fs::write(&archive, ESCAPING).unwrap();
    desk.file(
        "b/bundle.yaml",
        format!("bundle: {{name: b}}\nincludes: [minimal, \"zip+file://{}\"]\n", archive.display()),
    );
    refused(&desk, "entry `../evil.yaml` leaves the archive");
    assert!(!desk.work().join("evil.yaml").exists());
}

/// An archive with one entry, `../evil.yaml`, whose name leads out of wherever it is unpacked.
const ESCAPING: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0\0\0!\0[$t]\n\0\0\0\n\0\0\0\x0c\0\0\0../evil.yamlbundle: {}\
    PK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0!\0[$t]\n\0\0\0\n\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\x80\x01\0\0\0\0../evil.yaml\
    PK\x05\x06\0\0\0\0\x01\0\x01\0:\0\0\x004\0\0\0\0\0";
