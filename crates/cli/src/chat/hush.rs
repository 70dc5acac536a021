//! The terminal between two prompts, while a command works: what is typed then waits, unseen, for whoever reads next, and
//! Enter stays Enter. Ctrl-C is still heard as a signal, and lines that are printed still begin at the left.
//!
//! The line editor and the watching of keys have their own state of the terminal and come back to this one.

#[cfg(unix)]
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// How the terminal was found, until it is dropped.
pub struct Hush {
    #[cfg(unix)]
    found: Termios,
}

impl Hush {
    /// Begins it; nothing when standard input is no terminal or cannot be changed.
    #[cfg(unix)]
    pub fn begin() -> Option<Self> {
        let found = tcgetattr(std::io::stdin()).ok()?;
        let mut hushed = found.clone();
        hushed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // An Enter that became a line feed would read as the key for a new line in a prompt.
        hushed.input_modes.remove(InputModes::ICRNL);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &hushed).ok()?;
        Some(Self { found })
    }

    /// Other systems keep what is typed by themselves.
    #[cfg(not(unix))]
    pub fn begin() -> Option<Self> {
        None
    }
}

impl Drop for Hush {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        #[cfg(unix)]
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.found).ok();
    }
}
