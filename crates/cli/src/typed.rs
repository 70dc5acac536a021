//! Commands in what is told to people: whoever copies one gets what is meant, also who gave a home or a folder of their own.

use std::borrow::Cow;
use std::path::Path;

use amplifier_app::spelling::quoted;

/// How a command begins in a text.
const COMMAND: &str = "`amplifier";

/// The flags that say where this process works, as a command that does the same needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags(String);

impl Flags {
    pub fn of(home: Option<&Path>, folder: Option<&Path>) -> Self {
        let flag = |name: &str, path: Option<&Path>| path.map(|path| format!(" {name} {}", quoted(path)));
        Self([flag("--home", home), flag("--cwd", folder)].into_iter().flatten().collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A text whose commands have them.
    pub fn put_into<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() || !text.contains(COMMAND) {
            return Cow::Borrowed(text);
        }
        let mut parts = text.split(COMMAND);
        let mut put = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            put.push_str(COMMAND);
            // Another word, such as a path, or a command that has them already.
            if part.starts_with([' ', '`']) && !part.starts_with(&self.0) {
                put.push_str(&self.0);
            }
            put.push_str(part);
        }
        Cow::Owned(put)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_the_flags_once_and_nothing_else_does() {
        let flags = Flags::of(Some(Path::new("/my home")), None);
        let text = "`amplifier` talks, `amplifier run -` asks; `amplifiers` and amplifier do not";
        let put = flags.put_into(text);
        assert_eq!(
            put,
            "`amplifier --home '/my home'` talks, `amplifier --home '/my home' run -` asks; `amplifiers` and amplifier do not"
        );
        assert_eq!(flags.put_into(&put), put);
        assert_eq!(Flags::default().put_into(text), text);
    }
}
