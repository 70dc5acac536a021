//! The terminal between two prompts, while a command works: what is typed then waits, unseen, for whoever reads next, and
//! Enter stays Enter. Ctrl-C is still heard as a signal, and lines that are printed still begin at the left.
//!
//! The line editor and the watching of keys have their own state of the terminal and come back to this one.

#[cfg(unix)]
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// How the terminal was found and how it is hushed, until it is dropped.
pub struct Hush {
    #[cfg(unix)]
    found: Termios,
    #[cfg(unix)]
    hushed: Termios,
}

#[cfg(unix)]
impl Hush {
    /// Begins it; nothing when standard input is no terminal or cannot be changed.
    pub fn begin() -> Option<Self> {
        let found = tcgetattr(std::io::stdin()).ok()?;
        let mut hushed = found.clone();
        hushed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // Ctrl-C ends what runs, not what was typed meanwhile.
        hushed.local_modes.insert(LocalModes::NOFLSH);
        // An Enter that became a line feed would read as the key for a new line in a prompt.
        hushed.input_modes.remove(InputModes::ICRNL);
        let hush = Self { found, hushed };
        tcsetattr(std::io::stdin(), OptionalActions::Now, &hush.hushed).ok()?;
        Some(hush)
    }

    /// The terminal as it was found, for whoever has it meanwhile.
    pub fn lift(&self) {
        // A terminal that is gone needs nothing.
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.found).ok();
    }

    /// Hushed again, whatever somebody else made of it.
    pub fn renew(&self) {
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.hushed).ok();
    }
}

/// Other systems keep what is typed by themselves.
#[cfg(not(unix))]
impl Hush {
    pub fn begin() -> Option<Self> {
        None
    }

    pub fn lift(&self) {}

    pub fn renew(&self) {}
}

impl Drop for Hush {
    fn drop(&mut self) {
        self.lift();
    }
}
