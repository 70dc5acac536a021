//! Landlock and seccomp by trying them; with bubblewrap at hand the tests through the tool never come to them.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::process::Stdio;

use tempfile::TempDir;

use super::*;
use crate::tools::bash::process::{self, Ended, Launch};

/// Runs a command behind Landlock and returns its exit code.
#[expect(clippy::unwrap_used, reason = "the exemption for tests does not reach their helper functions")]
async fn code(level: Level, folders: &Folders, command: &str) -> Ended {
    let fence = Fence::Landlock { because: String::new(), filter: Filter::On, gaps: Vec::new() };
    let sandbox = if level == Level::Off { Sandbox::Off } else { Sandbox::Fenced { level, fence } };
    let arguments = vec!["-c".into(), command.into()];
    let (program, arguments, confinement) =
        sandbox.command_line("/bin/bash".into(), arguments, &folders.workspace, folders);
    let launch = Launch {
        program,
        arguments,
        folder: folders.workspace.clone(),
        variables: BTreeMap::new(),
        mark: "landlock-test.1;".to_owned(),
        limit: 1_000,
        confinement,
    };
    process::start(launch).await.unwrap().finished().await
}

#[tokio::test]
async fn landlock_keeps_writes_inside_and_read_only_cuts_connections() {
    for level in [Level::WorkspaceWrite, Level::ReadOnly] {
        if let Err(why) = landlock::tried(level).await {
            return eprintln!("SKIPPED: {why}");
        }
    }
    let (work, own, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let folders = Folders {
        workspace: work.path().to_path_buf(),
        notes: own.path().to_path_buf(),
        temporary: own.path().to_path_buf(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let write = |folder: &TempDir| format!("echo x 2>/dev/null > {}/x", folder.path().display());
    for (level, command, expected) in [
        (Level::WorkspaceWrite, write(&work), 0),
        (Level::WorkspaceWrite, write(&own), 0),
        (Level::WorkspaceWrite, write(&outside), 1),
        (Level::WorkspaceWrite, "echo x > /dev/stdout; echo x > /dev/stderr".to_owned(), 0),
        (Level::WorkspaceWrite, connect.clone(), 0),
        (Level::ReadOnly, "cat x".to_owned(), 0),
        (Level::ReadOnly, write(&work), 1),
        (Level::ReadOnly, write(&own), 0),
        (Level::ReadOnly, connect, 1),
    ] {
        assert_eq!(code(level, &folders, &command).await, Ended::With(expected), "{level:?} {command}");
    }
    assert!(!outside.path().join("x").exists());
    // The fence ends with the thread that put it up.
    std::fs::write(outside.path().join("y"), "").unwrap();
}

/// Something to try, what it gives at `off`, `workspace-write` and `read-only`.
const TABLE: &[(&str, [Given; 3])] = &[
    ("read-outside", [WORKS, WORKS, WORKS]),
    ("write-workspace", [WORKS, WORKS, REFUSED]),
    ("write-outside", [WORKS, REFUSED, REFUSED]),
    ("truncate-outside", [WORKS, REFUSED, REFUSED]),
    // No rule of Landlock and no filter can tell one path from another here.
    ("chmod-outside", [WORKS, WORKS, REFUSED]),
    ("utimes-outside", [WORKS, WORKS, REFUSED]),
    ("chmod-setuid", [WORKS, REFUSED, REFUSED]),
    ("chown-outside", [WORKS, WORKS, REFUSED]),
    ("setxattr-outside", [DEPENDS, REFUSED, REFUSED]),
    ("tcp-connect", [WORKS, WORKS, REFUSED]),
    ("tcp-listen", [WORKS, WORKS, REFUSED]),
    ("udp", [WORKS, WORKS, REFUSED]),
    ("raw-socket", [DEPENDS, REFUSED, REFUSED]),
    ("packet-socket", [DEPENDS, REFUSED, REFUSED]),
    ("netlink-audit", [DEPENDS, REFUSED, REFUSED]),
    ("unix-socket", [WORKS, REFUSED, REFUSED]),
    ("unix-datagram", [WORKS, REFUSED, REFUSED]),
    ("unix-datagram-pair", [WORKS, REFUSED, REFUSED]),
    ("unix-stream-pair", [WORKS, WORKS, WORKS]),
    ("abstract-socket", [WORKS, REFUSED, REFUSED]),
    ("signal-outside", [WORKS, REFUSED, REFUSED]),
    ("signal-own-child", [WORKS, WORKS, WORKS]),
    ("ptrace-outside", [DEPENDS, REFUSED, REFUSED]),
    ("environ-outside", [WORKS, REFUSED, REFUSED]),
    ("unshare", [WORKS, REFUSED, REFUSED]),
];

/// `None` where it depends on the user and the machine.
type Given = Option<bool>;
const WORKS: Given = Some(true);
const REFUSED: Given = Some(false);
const DEPENDS: Given = None;

/// The table of `docs/security.md`, cell by cell.
#[tokio::test]
async fn each_level_stops_what_its_table_says() {
    for level in [Level::WorkspaceWrite, Level::ReadOnly] {
        match landlock::tried(level).await {
            Ok((Filter::On, gaps)) if gaps.is_empty() => {}
            other => return eprintln!("SKIPPED: {other:?}"),
        }
    }
    let (work, own, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let folders = Folders {
        workspace: work.path().to_path_buf(),
        notes: own.path().to_path_buf(),
        temporary: own.path().to_path_buf(),
    };
    let file = outside.path().join("file");
    std::fs::write(&file, "text").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let named = outside.path().join("socket");
    let _unix = UnixListener::bind(&named).unwrap();
    let hidden = format!("amplifier-test-{}", std::process::id());
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(hidden.as_bytes()).unwrap()).unwrap();
    let mut other = std::process::Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let given = [
        file.display().to_string(),
        named.display().to_string(),
        hidden,
        tcp.local_addr().unwrap().port().to_string(),
        other.id().to_string(),
    ];
    let program = std::env::current_exe().unwrap();
    let mut wrong = Vec::new();
    for (what, columns) in TABLE {
        for (level, expected) in [Level::Off, Level::WorkspaceWrite, Level::ReadOnly].into_iter().zip(columns)
        {
            let command = format!(
                "GIVEN='{what},{}' exec '{}' --ignored --exact tools::bash::sandbox::tests::attempt",
                given.join(","),
                program.display()
            );
            let found = match code(level, &folders, &command).await {
                Ended::With(0) => true,
                Ended::With(101) => false,
                other => panic!("{what} {level:?}: {other:?}"),
            };
            if expected.is_some_and(|expected| expected != found) {
                wrong.push(format!("{what} at {level:?}: {}", if found { "works" } else { "is refused" }));
            }
        }
    }
    assert!(other.try_wait().unwrap().is_none(), "it only gets signals that it outlives");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(wrong, [""; 0]);
}

/// What the table tries, in a process of its own; it fails when it is refused.
#[test]
#[ignore = "run by `each_level_stops_what_its_table_says`"]
#[expect(clippy::disallowed_methods, reason = "the table says what to try in a variable")]
fn attempt() {
    use std::os::unix::fs::PermissionsExt;
    let Ok(given) = std::env::var("GIVEN") else { return };
    let [what, file, named, hidden, port, other] = given.split(',').collect::<Vec<_>>().try_into().unwrap();
    let address = format!("127.0.0.1:{port}");
    let other: i32 = other.parse().unwrap();
    let done: std::io::Result<()> = match what {
        "read-outside" => std::fs::read(file).map(drop),
        "write-workspace" => std::fs::write("made", ""),
        "write-outside" => std::fs::write(format!("{file}.new"), ""),
        "truncate-outside" => truncate(file),
        "chmod-outside" => std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o640)),
        "utimes-outside" => {
            std::fs::File::open(file).and_then(|file| file.set_modified(std::time::SystemTime::UNIX_EPOCH))
        }
        "chmod-setuid" => std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o4711)),
        "chown-outside" => {
            let meta = std::fs::metadata(file).unwrap();
            let (user, group) =
                (std::os::unix::fs::MetadataExt::uid(&meta), std::os::unix::fs::MetadataExt::gid(&meta));
            std::os::unix::fs::chown(file, Some(user), Some(group))
        }
        "setxattr-outside" => {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(file, "user.amplifier", b"x", flags).map_err(Into::into)
        }
        "tcp-connect" => TcpStream::connect(address).map(drop),
        "tcp-listen" => TcpListener::bind("127.0.0.1:0").map(drop),
        "udp" => UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", address)).map(drop),
        "unix-socket" => UnixStream::connect(named).map(drop),
        "unix-datagram" => UnixDatagram::unbound().map(drop),
        "unix-datagram-pair" => UnixDatagram::pair().map(drop),
        "unix-stream-pair" => UnixStream::pair().map(drop),
        "abstract-socket" => {
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(hidden).unwrap()).map(drop)
        }
        "signal-outside" => send(other),
        "signal-own-child" => {
            let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
            let sent = send(i32::try_from(child.id()).unwrap()).and_then(|()| child.kill());
            child.wait().unwrap();
            sent
        }
        "ptrace-outside" => {
            let id = nix::unistd::Pid::from_raw(other);
            nix::sys::ptrace::seize(id, nix::sys::ptrace::Options::empty()).map_err(Into::into)
        }
        "environ-outside" => std::fs::read(format!("/proc/{other}/environ")).map(drop),
        "unshare" => nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).map_err(Into::into),
        other => rare_socket(other).map(drop).map_err(Into::into),
    };
    done.unwrap();
}

fn rare_socket(what: &str) -> nix::Result<std::os::fd::OwnedFd> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
    let flags = SockFlag::empty();
    match what {
        "raw-socket" => socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp),
        "packet-socket" => socket(AddressFamily::Packet, SockType::Raw, flags, None),
        "netlink-audit" => socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkAudit),
        other => unreachable!("no row for `{other}`"),
    }
}

/// A signal that ends nothing.
fn send(id: i32) -> std::io::Result<()> {
    let id = rustix::process::Pid::from_raw(id).ok_or(std::io::ErrorKind::InvalidInput)?;
    rustix::process::kill_process(id, rustix::process::Signal::CONT).map_err(Into::into)
}

fn truncate(file: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).truncate(true).open(file).map(drop)
}

/// What people do in a workspace works inside; a program that this machine lacks is passed over.
#[tokio::test]
async fn ordinary_work_is_not_disturbed() {
    for level in [Level::WorkspaceWrite, Level::ReadOnly] {
        if let Err(why) = landlock::tried(level).await {
            return eprintln!("SKIPPED: {why}");
        }
    }
    let (work, own) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let folders = Folders {
        workspace: work.path().to_path_buf(),
        notes: own.path().to_path_buf(),
        temporary: own.path().to_path_buf(),
    };
    let both = [
        "set -o pipefail; seq 100 | sort -n | tail -1 | grep -q 100",
        "timeout 20 true; timeout 0.1 sleep 20; [ $? = 124 ]",
        "sleep 600 & kill $!; wait $!; [ $? = 143 ]",
        "set -m; sleep 600 & kill %1; wait; true",
        "command -v ps >/dev/null || exit 0; ps aux | grep -q bash",
        "command -v python3 >/dev/null || exit 0; python3 -c 'import subprocess; subprocess.check_output([\"true\"])'",
        "command -v node >/dev/null || exit 0; node -e 'require(\"child_process\").execSync(\"true\")'",
    ];
    let writing = [
        "touch -d yesterday a && cp -p a b && chmod +x b && mv b c && ln -s c d && rm a d",
        "mkdir -p p/q && touch p/q/r && tar cf p.tar p && rm -r p && tar xf p.tar && [ -f p/q/r ]",
        "command -v git >/dev/null || exit 0; git init -q r && cd r && echo x > x && git add x \
         && git -c user.name=a -c user.email=a@example.invalid commit -qm x && git status --short && git log --oneline",
        "command -v cc >/dev/null || exit 0; echo 'int main(){return 0;}' > m.c && cc m.c -o m && ./m",
        "command -v python3 >/dev/null || exit 0; python3 -c 'import multiprocessing as m; p = m.Process(target=print); p.start(); p.join()'",
    ];
    let all = both.iter().flat_map(|text| [(Level::WorkspaceWrite, text), (Level::ReadOnly, text)]);
    for (level, command) in all.chain(writing.iter().map(|text| (Level::WorkspaceWrite, text))) {
        let command = format!("export PATH HOME=$PWD TMPDIR={}; {command}", own.path().display());
        assert_eq!(code(level, &folders, &command).await, Ended::With(0), "{level:?} {command}");
    }
}
