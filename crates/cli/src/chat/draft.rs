//! The line that is typed while something runs: edited like the one at the prompt, without its history and its completion.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use reedline::LineBuffer;

/// What a key meant.
#[derive(Debug, PartialEq, Eq)]
pub enum Meant {
    /// The line changed, or nothing happened.
    Nothing,
    /// The line is whole.
    Line(String),
    Interrupt,
    /// Ctrl-Z: the shell shall have the terminal.
    Suspend,
    End,
}

/// A line in the making.
#[derive(Debug, Default)]
pub struct Draft {
    line: LineBuffer,
}

impl Draft {
    pub fn text(&self) -> &str {
        self.line.get_buffer()
    }

    /// What stands before the cursor, and what stands behind it.
    pub fn parts(&self) -> (&str, &str) {
        self.text().split_at_checked(self.line.insertion_point()).unwrap_or((self.text(), ""))
    }

    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.line).get_buffer().to_owned()
    }

    /// Puts back what was set aside.
    pub fn put(&mut self, text: String) {
        self.line = LineBuffer::from(text.as_str());
    }

    /// Puts lines that were ended already, but are not to be sent, before what is being typed.
    pub fn put_before(&mut self, mut lines: Vec<String>) {
        if !lines.is_empty() {
            lines.extend(Some(self.take()).filter(|text| !text.is_empty()));
            self.put(lines.join("\n"));
        }
    }

    pub fn paste(&mut self, text: &str) {
        self.line.insert_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    pub fn key(&mut self, key: KeyEvent) -> Meant {
        let (control, alt) =
            (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        match key.code {
            KeyCode::Char(c) if control => return self.controlled(c),
            KeyCode::Char(c) if alt => self.by_words(c),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.line.insert_newline()
            }
            KeyCode::Enter => return Meant::Line(self.take()),
            KeyCode::Backspace if alt || control => self.line.delete_word_left(),
            KeyCode::Backspace => self.line.delete_left_grapheme(),
            KeyCode::Delete if alt || control => self.line.delete_word_right(),
            KeyCode::Delete => self.line.delete_right_grapheme(),
            KeyCode::Left if alt || control => self.by_words('b'),
            KeyCode::Right if alt || control => self.by_words('f'),
            KeyCode::Left => self.line.move_left(),
            KeyCode::Right => self.line.move_right(),
            KeyCode::Up => self.line.move_line_up(),
            KeyCode::Down => self.line.move_line_down(),
            KeyCode::Home => self.line.move_to_line_start(),
            KeyCode::End => self.line.move_to_line_end(),
            KeyCode::Char(c) => self.line.insert_char(c),
            KeyCode::Tab => self.line.insert_str("    "),
            _ => {}
        }
        Meant::Nothing
    }

    /// A letter with Ctrl.
    fn controlled(&mut self, letter: char) -> Meant {
        match letter {
            'c' => return Meant::Interrupt,
            'z' => return Meant::Suspend,
            'd' if self.line.is_empty() => return Meant::End,
            'd' => self.line.delete_right_grapheme(),
            'a' => self.line.move_to_line_start(),
            'e' => self.line.move_to_line_end(),
            'b' => self.line.move_left(),
            'f' => self.line.move_right(),
            'h' => self.line.delete_left_grapheme(),
            'j' => self.line.insert_newline(),
            'k' => self.line.clear_to_line_end(),
            'u' => self.line.clear_to_insertion_point(),
            'w' => self.line.delete_word_left(),
            't' => self.line.swap_graphemes(),
            _ => {}
        }
        Meant::Nothing
    }

    /// A letter with Alt. Where a word ends is asked of its deletion: the line tells it in no other way.
    fn by_words(&mut self, letter: char) {
        let mut without = self.line.clone();
        match letter {
            'd' => self.line.delete_word_right(),
            'b' => {
                without.delete_word_left();
                self.line.set_insertion_point(without.insertion_point());
            }
            'f' => {
                without.delete_word_right();
                let word = self.line.len() - without.len();
                self.line.set_insertion_point(self.line.insertion_point() + word);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: KeyModifiers = KeyModifiers::NONE;
    const CONTROL: KeyModifiers = KeyModifiers::CONTROL;
    const ALT: KeyModifiers = KeyModifiers::ALT;

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
        typed(
            &mut draft,
            &[(KeyCode::Backspace, NONE), (KeyCode::Backspace, NONE), (KeyCode::Char('w'), CONTROL)],
        );
        assert_eq!(draft.text(), "stop at\n");
        typed(
            &mut draft,
            &[(KeyCode::Char('x'), NONE), (KeyCode::Char('j'), CONTROL), (KeyCode::Char('é'), NONE)],
        );
        assert_eq!(typed(&mut draft, &[(KeyCode::Enter, NONE)]), Meant::Line("stop at\nx\né".to_owned()));
        assert_eq!(draft.text(), "");
    }

    #[test]
    fn control_keys_are_no_text() {
        let mut draft = Draft::default();
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('c'), CONTROL)]), Meant::Interrupt);
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('z'), CONTROL)]), Meant::Suspend);
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('d'), CONTROL)]), Meant::End);
        draft.put("a".to_owned());
        assert_eq!(typed(&mut draft, &[(KeyCode::Char('d'), CONTROL)]), Meant::Nothing);
        typed(&mut draft, &[(KeyCode::Char('u'), CONTROL), (KeyCode::Char('q'), CONTROL)]);
        assert_eq!(draft.text(), "");
    }

    #[test]
    fn the_cursor_moves_by_what_is_seen_and_by_words() {
        let mut draft = Draft::default();
        draft.put("one two 👩\u{200d}👧e\u{301}".to_owned());
        let mut after = |code: KeyCode, modifiers: KeyModifiers| {
            typed(&mut draft, &[(code, modifiers)]);
            let (before, behind) = draft.parts();
            format!("{before}|{behind}")
        };
        assert_eq!(after(KeyCode::Left, NONE), "one two 👩\u{200d}👧|e\u{301}");
        assert_eq!(after(KeyCode::Backspace, NONE), "one two |e\u{301}");
        assert_eq!(after(KeyCode::Delete, NONE), "one two |");
        assert_eq!(after(KeyCode::Left, CONTROL), "one |two ");
        assert_eq!(after(KeyCode::Char('b'), ALT), "|one two ");
        assert_eq!(after(KeyCode::Char('f'), ALT), "one| two ");
        assert_eq!(after(KeyCode::Char('x'), NONE), "onex| two ");
        assert_eq!(after(KeyCode::Right, CONTROL), "onex two| ");
        assert_eq!(after(KeyCode::Home, NONE), "|onex two ");
        assert_eq!(after(KeyCode::Char('e'), CONTROL), "onex two |");
        assert_eq!(after(KeyCode::Char('a'), CONTROL), "|onex two ");
        assert_eq!(after(KeyCode::Char('d'), ALT), "| two ");
        assert_eq!(after(KeyCode::End, NONE), " two |");
        assert_eq!(after(KeyCode::Left, NONE), " two| ");
        assert_eq!(after(KeyCode::Char('u'), CONTROL), "| ");
        assert_eq!(after(KeyCode::Char('k'), CONTROL), "|");
    }
}
