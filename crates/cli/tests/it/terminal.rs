//! A terminal without a person: it holds the screen, answers what programs ask terminals, and types.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::desk::Desk;

/// How long anything may take; a machine that does much at a time is slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a program sends to ask where the cursor is.
const WHERE: &[u8] = b"\x1b[6n";
/// What erases everything from the cursor on.
const ERASE: &[u8] = b"\x1b[J";

pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    // Dropped last: without it the other side is gone.
    master: Box<dyn MasterPty + Send>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    over: bool,
    erased_from_home: bool,
}

impl Terminal {
    /// Runs the binary in a terminal of this size.
    pub fn open(desk: &Desk, args: &[&str], size: (u16, u16), term: &str) -> Self {
        Self::open_with(desk, args, size, &[("TERM", term)])
    }

    /// The same, with these variables.
    pub fn open_with(desk: &Desk, args: &[&str], size: (u16, u16), variables: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_amplifier"));
        command.args(args);
        Self::of(command, desk, size, variables)
    }

    /// Runs a script of the shell, in which `$AMPLIFIER` is the binary.
    pub fn open_script(desk: &Desk, script: &str, size: (u16, u16), variables: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", script]);
        let variables = [variables, &[("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier"))]].concat();
        Self::of(command, desk, size, &variables)
    }

    /// A shell with jobs, in which `$AMPLIFIER` is the binary; its prompt is `$`.
    pub fn open_shell(desk: &Desk, size: (u16, u16), variables: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-i"]);
        let own = [("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier")), ("PS1", "$ ")];
        Self::of(command, desk, size, &[variables, &own].concat())
    }

    fn of(
        mut command: CommandBuilder,
        desk: &Desk,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
    ) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        command.env_clear();
        command.env("AMPLIFIER_HOME", desk.home());
        variables.iter().for_each(|(name, value)| command.env(name, value));
        command.cwd(desk.work());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let keys = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let screen = vt100::Parser::new(rows, columns, 1_000);
        let seen = Arc::new((
            Mutex::new(Seen { screen, bytes: Vec::new(), over: false, erased_from_home: false }),
            Condvar::new(),
        ));
        let mut output = pair.master.try_clone_reader().unwrap();
        let (shared, answers) = (Arc::clone(&seen), Arc::clone(&keys));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut rest = Vec::new();
            loop {
                let read = output.read(&mut buffer).unwrap_or(0);
                let mut seen = shared.0.lock().unwrap();
                if read == 0 {
                    seen.over = true;
                    shared.1.notify_all();
                    return;
                }
                rest.extend_from_slice(&buffer[..read]);
                seen.take(&mut rest, &answers);
                drop(seen);
                shared.1.notify_all();
            }
        });
        Self { child, master: pair.master, keys, seen }
    }

    /// The number of the program's process.
    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Makes the window narrower or wider. What stands on this terminal is cut then, not wrapped.
    pub fn resize(&self, (columns, rows): (u16, u16)) {
        let mut seen = self.seen.0.lock().unwrap();
        seen.screen.screen_mut().set_size(rows, columns);
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
        drop(seen);
    }

    /// Whether everything was ever erased from the very first place of the screen on: some terminals keep that.
    pub fn erased_from_home(&self) -> bool {
        self.seen.0.lock().unwrap().erased_from_home
    }

    pub fn types(&self, text: &str) {
        let mut keys = self.keys.lock().unwrap();
        keys.write_all(text.as_bytes()).unwrap();
        keys.flush().unwrap();
    }

    /// What stands on the screen, without the blanks at the ends of lines and the empty lines at the end.
    pub fn screen(&self) -> String {
        self.seen.0.lock().unwrap().text()
    }

    /// Looks at the screen with its colours.
    pub fn with_screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.seen.0.lock().unwrap().screen.screen())
    }

    /// Everything that came, as it came.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap().bytes.clone()
    }

    /// Waits until the screen fits; returns it.
    pub fn until(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            let text = seen.text();
            if fits(&text) {
                return text;
            }
            let left = PATIENCE.saturating_sub(began.elapsed());
            assert!(!left.is_zero() && !seen.over, "waited for {what}; the screen is\n{text}");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits for a text on the screen.
    pub fn sees(&self, text: &str) -> String {
        self.until(&format!("`{text}`"), |screen| screen.contains(text))
    }

    /// Waits for the prompt: the last line is its mark and nothing else.
    pub fn prompt(&self) -> String {
        self.until("the prompt", |screen| screen.lines().last() == Some(">"))
    }

    /// Waits for the prompt with something on its line: while a turn runs, what it does stands above what is typed.
    pub fn prompt_with(&self, line: &str) -> String {
        self.until("the prompt with a line on it", |screen| {
            let mut from_below = screen.lines().rev();
            from_below.next() == Some(&format!("> {line}")) && from_below.next() == Some("")
        })
    }

    /// Waits until a question takes its answer: its keys stand at the end.
    pub fn question(&self) -> String {
        let has_keys = |line: &str| line.starts_with("y once") || line.starts_with("n no");
        self.until("a question", |screen| screen.lines().rev().take(4).any(has_keys))
    }

    /// Waits for the end of the program; returns its exit code.
    pub fn end(&mut self) -> u32 {
        let began = Instant::now();
        let mut seen = self.seen.0.lock().unwrap();
        while !seen.over {
            let left = PATIENCE.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "the program did not end; the screen is\n{}", seen.text());
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
        drop(seen);
        self.child.wait().unwrap().exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        self.child.kill().ok();
    }
}

impl Seen {
    /// Takes what came, and tells where the cursor is whenever that is asked.
    fn take(&mut self, rest: &mut Vec<u8>, answers: &Mutex<Box<dyn Write + Send>>) {
        while let Some(at) = rest.windows(WHERE.len()).position(|window| window == WHERE) {
            let before: Vec<u8> = rest.drain(..at + WHERE.len()).collect();
            self.show(before);
            let (row, column) = self.screen.screen().cursor_position();
            let mut keys = answers.lock().unwrap();
            write!(keys, "\x1b[{};{}R", row + 1, column + 1).unwrap();
            keys.flush().unwrap();
        }
        // The beginning of a question may come before its end.
        let kept = (1..WHERE.len()).rev().find(|size| rest.ends_with(&WHERE[..*size])).unwrap_or(0);
        let before: Vec<u8> = rest.drain(..rest.len() - kept).collect();
        self.show(before);
    }

    fn show(&mut self, bytes: Vec<u8>) {
        for byte in &bytes {
            self.screen.process(&[*byte]);
            self.bytes.push(*byte);
            // The cursor stays where it is when something is erased.
            self.erased_from_home |=
                self.bytes.ends_with(ERASE) && self.screen.screen().cursor_position() == (0, 0);
        }
    }

    fn text(&self) -> String {
        let rows: Vec<String> =
            self.screen.screen().contents().lines().map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}
