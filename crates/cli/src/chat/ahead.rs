//! What was typed ahead: keys that came in one piece with one that ends the line, behind it.
//!
//! The line editor takes all keys that are there at once, and forgets those behind the one that ends its line. Here they are
//! kept for whoever reads next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use reedline::{EditMode, Emacs, PromptEditMode, ReedlineEvent, ReedlineRawEvent};

/// The keys behind the end of a line; the editor's side and its owner's.
#[derive(Clone, Default)]
pub struct Ahead(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_over: bool,
    keys: Vec<Event>,
}

impl Ahead {
    /// Takes the keys.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().keys)
    }

    pub fn is_empty(&self) -> bool {
        self.state().keys.is_empty()
    }

    /// A line is drawn, so it is not over: that key only ended a search, or a new line was begun.
    pub fn go_on(&self) {
        self.state().is_over = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a key was kept, because the line is over.
    fn keeps(&self, event: &Event) -> bool {
        let mut state = self.state();
        if state.is_over && matches!(event, Event::Key(_) | Event::Paste(_)) {
            state.keys.push(event.clone());
            return true;
        }
        state.is_over |= ends(event);
        false
    }
}

/// Whether the editor gives the line back for this key.
fn ends(event: &Event) -> bool {
    let Event::Key(KeyEvent { code: KeyCode::Char('c' | 'z'), modifiers, .. }) = event else { return false };
    *modifiers == KeyModifiers::CONTROL
}

/// The keys of the editor, without those that come behind the end of a line.
pub struct Keys {
    pub emacs: Emacs,
    pub ahead: Ahead,
}

impl EditMode for Keys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        if self.ahead.keeps(&event) {
            return ReedlineEvent::None;
        }
        match ReedlineRawEvent::try_from(event) {
            Ok(event) => self.emacs.parse_event(event),
            Err(()) => ReedlineEvent::None,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.emacs.edit_mode()
    }
}
