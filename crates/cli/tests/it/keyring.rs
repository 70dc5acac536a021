//! Keys in the keyring of the system: the real GNOME keyring, on a message bus of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::desk::{Desk, Ran};
use crate::parts::apt;
use crate::provider::{Manner, Server, closed};

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir=DIR</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A message bus and the keyring on it; both end with the value.
struct Keyring {
    bus: Child,
    daemon: Child,
    address: String,
}

impl Keyring {
    /// An empty keyring that is open.
    fn unlocked(desk: &Desk) -> Self {
        let programs = apt("keyring", &["dbus", "gnome-keyring"]);
        let runtime = desk.path("runtime");
        std::fs::create_dir_all(runtime.join("keyring")).unwrap();
        let config = runtime.join("bus.conf");
        std::fs::write(&config, CONFIG.replace("DIR", runtime.to_str().unwrap())).unwrap();
        let mut bus = program(&programs, "dbus-daemon");
        bus.arg("--config-file").arg(&config).args(["--nofork", "--nopidfile", "--print-address"]);
        let mut bus = bus.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        let mut daemon = program(&programs, "gnome-keyring-daemon");
        daemon.args(["--foreground", "--unlock", "--components=secrets", "--control-directory"]);
        daemon.arg(runtime.join("keyring")).env("DBUS_SESSION_BUS_ADDRESS", &address);
        daemon.env("HOME", desk.path("")).env("XDG_RUNTIME_DIR", &runtime);
        let mut daemon = daemon.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        daemon.stdin.take().unwrap().write_all(b"the person's password").unwrap();
        let keyring = Self { bus, daemon, address };
        keyring.wait(&programs);
        keyring
    }

    /// Until somebody on the bus calls itself the keeper of secrets.
    fn wait(&self, programs: &std::path::Path) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            let mut ask = program(programs, "dbus-send");
            ask.env("DBUS_SESSION_BUS_ADDRESS", &self.address).args(["--session", "--print-reply"]);
            ask.args(["--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner"]);
            let told = ask.arg("string:org.freedesktop.secrets").output().unwrap();
            if String::from_utf8_lossy(&told.stdout).contains("true") {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the keyring did not come up");
    }

    fn amplifier(&self, desk: &Desk, args: &[&str], input: &[u8]) -> Ran {
        let nobody = closed().to_string();
        let mut command = desk.command(args);
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        command.env("OLLAMA_HOST", &nobody).env("LLAMA_CPP_HOST", &nobody);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        for child in [&mut self.daemon, &mut self.bus] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// A program of the system, or the one that was unpacked, with its libraries.
fn program(root: &std::path::Path, name: &str) -> Command {
    let unpacked = root.join("usr/bin").join(name);
    let mut command = Command::new(if unpacked.exists() { unpacked } else { PathBuf::from(name) });
    let libraries = std::fs::read_dir(root.join("usr/lib")).into_iter().flatten().flatten();
    let libraries = libraries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>().join(":");
    command.env("LD_LIBRARY_PATH", libraries).stderr(Stdio::null());
    command
}

fn everything_below(folder: &std::path::Path, text: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            everything_below(&path, text);
        } else {
            text.extend(std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_key_in_the_keyring_is_used_by_a_run_is_in_no_file_and_is_forgotten_when_told() {
    let desk = Desk::new();
    let (keyring, server) = (Keyring::unlocked(&desk), Server::start(Manner::Well));
    let url = server.url();
    let add = ["provider", "add", "chat-completions", "--base-url", &url, "--model", "smol", "--key-stdin"];
    let added = keyring.amplifier(&desk, &add, b"key-of-the-keyring-1");
    assert_eq!(added.code, 0, "{}", added.seen());
    assert!(added.stderr.contains("the key is in the keyring of the system"), "{}", added.seen());

    let ran = keyring.amplifier(&desk, &["run", "--bundle", "minimal", "hi"], b"");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(server.last_key().as_deref(), Some("key-of-the-keyring-1"));
    let mut text = Vec::new();
    everything_below(&desk.home(), &mut text);
    assert!(!String::from_utf8_lossy(&text).contains("key-of-the-keyring-1"), "a file of ours holds the key");

    let removed = keyring.amplifier(&desk, &["provider", "remove", "chat-completions", "--forget-key"], b"");
    assert_eq!(removed.code, 0, "{}", removed.seen());
    keyring.amplifier(&desk, &add[..add.len() - 1], b"");
    let ran = keyring.amplifier(&desk, &["run", "--bundle", "minimal", "hi"], b"");
    assert_ne!(server.last_key().as_deref(), Some("key-of-the-keyring-1"), "{}", ran.seen());
}

/// Point 12 of issue 25: the old key in the file stayed, and went before the new one.
#[test]
fn a_key_that_moves_to_the_keyring_leaves_the_file() {
    let desk = Desk::new();
    let (keyring, server) = (Keyring::unlocked(&desk), Server::start(Manner::Well));
    let url = server.url();
    let add = ["provider", "add", "chat-completions", "--base-url", &url, "--model", "smol", "--key-stdin"];
    let set = ["provider", "set", "chat-completions", "--key-stdin"];
    let stored = |command: &[&str], place: &str, key: &str| {
        let args = [command, &["--store", place]].concat();
        let added = keyring.amplifier(&desk, &args, key.as_bytes());
        assert_eq!(added.code, 0, "{}", added.seen());
        let ran = keyring.amplifier(&desk, &["run", "--bundle", "minimal", "hi"], b"");
        assert_eq!(ran.code, 0, "{}", ran.seen());
        assert_eq!(server.last_key().as_deref(), Some(key), "{}", ran.seen());
        let file = std::fs::read_to_string(desk.home().join("keys.env")).unwrap_or_default();
        let listed = std::fs::read_to_string(desk.home().join("keyring.json")).unwrap_or_default();
        (file.contains("key-"), listed.contains("CHAT_COMPLETIONS_API_KEY"))
    };
    assert_eq!(stored(&add, "file", "key-of-the-file-1"), (true, false));
    assert_eq!(stored(&set, "keyring", "key-of-the-keyring-2"), (false, true));
    assert_eq!(stored(&set, "file", "key-of-the-file-3"), (true, false));
}

#[test]
fn without_a_keyring_the_key_is_not_stored_anywhere_and_the_cure_is_named() {
    let desk = Desk::new();
    let args = ["provider", "add", "anthropic", "--key-stdin", "--store", "keyring"];
    let ran = desk.amplifier_with_input(&args, b"key-without-a-home");
    assert_ne!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stderr.contains("keyring") && ran.stderr.contains("hint:"), "{}", ran.seen());
    let mut text = Vec::new();
    everything_below(&desk.home(), &mut text);
    assert!(!String::from_utf8_lossy(&text).contains("key-without-a-home"));
}
