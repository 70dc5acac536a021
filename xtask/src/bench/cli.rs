//! `cargo xtask bench cli`: the `amplifier` program as a person starts it, beside other agents that npm offers, all against
//! the one model server that this process keeps (`server.rs`).
//!
//! `cli/stage.rs` makes the folders and plans, `cli/peers.rs` installs the others and knows their flags, `cli/runs.rs` runs
//! programs and reads what they took. Here is what is measured and what it shall be.

mod peers;
mod runs;
mod stage;

use std::process::Command;

use self::peers::Peer;
use self::runs::Runs;
use self::stage::Stage;
use super::goals::{Goal, Share, judge};
use super::measurement::Run;
use super::server::Server;
use super::{OUR_LIMIT, chain, show};
use crate::output::{TaskError, say};
use crate::process::{capture, cargo};
use crate::workspace::Workspace;

const MS: f64 = 1_000_000.0;
const MIB: f64 = 1_048_576.0;
/// How many sessions a busy home has.
const SESSIONS: usize = 10_000;

const fn row(name: &'static str, at_most: Option<f64>, times: Option<f64>) -> Goal {
    Goal { name, at_most, over: None, times, share: Share::Whole }
}

/// In the order of the table. Beside: the static hello-world for the first row, codex for the others.
const GOALS: &[Goal] = &[
    // At most two and a half times as long.
    row("version_wall", None, Some(0.4)),
    row("run_0_wall", Some(20.0 * MS), Some(12.0)),
    row("run_10_wall", Some(80.0 * MS), Some(12.0)),
    row("run_10_shell_wall", None, None),
    row("floor_0_wall", None, None),
    row("floor_10_wall", None, None),
    row("run_0_cpu", None, None),
    row("run_10_cpu", None, None),
    row("run_0_peak_bytes", Some(20.0 * MIB), None),
    row("run_10_peak_bytes", Some(20.0 * MIB), None),
    row("binary_bytes", Some(25.0 * MIB), None),
    row("chat_empty", Some(30.0 * MS), None),
    row("chat_10k", Some(60.0 * MS), None),
    row("list_10k_wall", Some(20.0 * MS), None),
    row("list_10k_cpu", None, None),
    row("list_10k_peak_bytes", None, None),
    row("resume_5k_wall", None, None),
    row("resume_5k_cpu", None, None),
    row("resume_5k_peak_bytes", None, None),
];

/// The rows that other agents have too.
const SHARED: &[&str] = &[
    "version_wall",
    "run_0_wall",
    "run_10_wall",
    "run_10_shell_wall",
    "run_0_cpu",
    "run_10_cpu",
    "run_0_peak_bytes",
    "run_10_peak_bytes",
    "binary_bytes",
];

/// Measures and prints the tables. Returns how many goals were not met.
pub(crate) fn cli(workspace: &Workspace) -> Result<usize, TaskError> {
    let program = build(workspace)?;
    let server = Server::start()?;
    let stage = Stage::set(workspace, &program, &server.url())?;
    let mut ours = Runs::new(&stage);
    let hello = stage.hello()?;
    let mut version = Command::new(&program);
    version.arg("--version");
    ours.measure_in_turn(
        101,
        &mut [("hello", &mut Command::new(hello), ""), ("version", &mut version, "amplifier")],
    )?;
    for (name, requests) in [("floor_0", 1), ("floor_10", 11)] {
        ours.measure(name, 41, &mut stage.floor(workspace, requests)?, "word")?;
    }
    ours.measure("run_0", 41, &mut stage.run("mock"), "\"tool_calls\": 0")?;
    ours.measure("run_10", 21, &mut stage.run("read-10"), "\"tool_calls\": 10")?;
    ours.measure("run_10_shell", 21, &mut stage.run("shell-10"), "\"tool_calls\": 10")?;
    ours.bytes("binary_bytes", stage::size(&program)?);
    ours.launch("chat_empty", &mut stage.chat_launch(workspace, "chat_empty", "new-home"))?;
    let long = stage.long_session()?;
    ours.measure("resume_5k", 11, &mut stage.resume(&long), "\"answer\": \"word")?;
    ours.note(stage.fill(&long, SESSIONS)?);
    if let Err(error) = ours.measure("list_10k", 21, &mut stage.list(), "") {
        ours.note(format!("`session list` was not measured: {}", chain(&error)));
    }
    ours.launch("chat_10k", &mut stage.chat_launch(workspace, "chat_10k", "home"))?;
    let ours = ours.run();

    let codex = measure_peer(&stage, &Peer::codex(workspace, &server.url()))?;
    let opencode = measure_peer(&stage, &Peer::opencode(workspace, &server.url()))?;
    let beside = codex.and(ours.beside(&[("version_wall", "hello_wall")]));
    let unmet = show(&judge(GOALS, &ours, &beside), "codex", &[("ours", &ours), ("codex", &beside)])?;
    say(
        "codex: `@openai/codex`; in the first row: a static hello-world; floor: the same requests and nothing else\n",
    )?;
    let plain: Vec<_> = SHARED.iter().map(|name| row(name, None, None)).collect();
    show(&judge(&plain, &ours, &opencode), "opencode", &[("opencode", &opencode)])?;
    Ok(unmet)
}

fn build(workspace: &Workspace) -> Result<std::path::PathBuf, TaskError> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "-p", "amplifier-cli"]).current_dir(&workspace.root);
    capture(&mut command, OUR_LIMIT)?;
    Ok(workspace.target.join("release").join(format!("amplifier{}", std::env::consts::EXE_SUFFIX)))
}

/// What another agent takes for the same; what cannot be had is told and left out.
fn measure_peer(stage: &Stage, peer: &Peer) -> Result<Run, TaskError> {
    let mut runs = Runs::new(stage);
    if let Err(error) = peer.install() {
        runs.note(format!("{} is not measured, it cannot be installed: {}", peer.name, chain(&error)));
        return Ok(runs.run());
    }
    let wanted = [("version", "--"), ("run_0", "mock"), ("run_10", "shell-10"), ("run_10_shell", "shell-10")];
    for (name, model) in wanted {
        let mut command = if name == "version" { peer.version(stage) } else { peer.run(stage, model) };
        let expected = if name == "version" { "" } else { "word" };
        if let Err(error) = runs.measure(name, 5, &mut command, expected) {
            runs.note(format!("`{name}` of {} was not measured: {}", peer.name, chain(&error)));
        }
    }
    runs.bytes("binary_bytes", peer.size()?);
    Ok(runs.run())
}
