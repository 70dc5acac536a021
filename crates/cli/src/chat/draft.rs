//! The line that is typed while something runs. Small on purpose: the line editor has everything else.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key meant.
#[derive(Debug, PartialEq, Eq)]
pub enum Meant {
    /// The line changed, or nothing happened.
    Nothing,
    /// The line is whole.
    Line(String),
    Interrupt,
    End,
}

/// A line in the making.
#[derive(Debug, Default)]
pub struct Draft {
    text: String,
}

impl Draft {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Puts back what was set aside.
    pub fn put(&mut self, text: String) {
        self.text = text;
    }

    pub fn paste(&mut self, text: &str) {
        self.text.push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    pub fn key(&mut self, key: KeyEvent) -> Meant {
        let (control, alt) =
            (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        match key.code {
            KeyCode::Char('c') if control => return Meant::Interrupt,
            KeyCode::Char('d') if control && self.text.is_empty() => return Meant::End,
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char('w') if control => self.drop_word(),
            KeyCode::Char('j') if control => self.text.push('\n'),
            KeyCode::Char('h') if control => drop(self.text.pop()),
            KeyCode::Enter if alt => self.text.push('\n'),
            KeyCode::Enter => return Meant::Line(self.take()),
            KeyCode::Backspace if alt => self.drop_word(),
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char(c) if !control && !alt => self.text.push(c),
            KeyCode::Tab => self.text.push_str("    "),
            _ => {}
        }
        Meant::Nothing
    }

    fn drop_word(&mut self) {
        let kept = self.text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.text.truncate(self.text.ceil_char_boundary(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(draft: &mut Draft, keys: &[(KeyCode, KeyModifiers)]) -> Meant {
        let mut meant = Meant::Nothing;
        for (code, modifiers) in keys {
            meant = draft.key(KeyEvent::new(*code, *modifiers));
        }
        meant
    }

    #[test]
    fn a_line_is_typed_mended_and_sent() {
        let mut draft = Draft::default();
        draft.paste("stop at\r\nonce nw");
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        typed(
            &mut draft,
            &[(KeyCode::Backspace, none), (KeyCode::Backspace, none), (KeyCode::Char('w'), control)],
        );
        assert_eq!(draft.text(), "stop at\n");
        typed(
            &mut draft,
            &[(KeyCode::Char('x'), none), (KeyCode::Char('j'), control), (KeyCode::Char('é'), none)],
        );
        assert_eq!(typed(&mut draft, &[(KeyCode::Enter, none)]), Meant::Line("stop at\nx\né".to_owned()));
        assert_eq!(draft.text(), "");
    }

    #[test]
    fn control_keys_are_no_text() {
        let mut draft = Draft::default();
        let control = KeyModifiers::CONTROL;
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('c'), control)]), Meant::Interrupt);
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('d'), control)]), Meant::End);
        draft.put("a".to_owned());
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('d'), control)]), Meant::Nothing);
        typed(&mut draft, &[(KeyCode::Char('u'), control), (KeyCode::Char('q'), control)]);
        assert_eq!(draft.text(), "");
    }
}
