//! The line editor at the prompt: history, several lines, paste, completion.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nu_ansi_term::{Color as Paint, Style};
use reedline::{
    Color, ColumnarMenu, EditCommand, Emacs, FileBackedHistory, Highlighter, HistoryItem, KeyCode,
    KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus,
    Reedline, ReedlineEvent, ReedlineMenu, Signal, StyledText, default_emacs_keybindings,
};

use super::ahead::{Ahead, Keys};
use super::complete::Completion;
use super::discreet::{Discreet, Unsaid};
use super::draft::Draft;
use super::input::Typed;
use super::paint::Colour;

/// How many lines the history keeps.
const HISTORY: usize = 5_000;
const MENU: &str = "completion";
/// What the editor gives back for Ctrl-C, and for Ctrl-Z.
const INTERRUPT: &str = "interrupt";
const SUSPEND: &str = "suspend";

/// What the editor is made of.
pub struct Setup {
    /// Where the history is kept; without it, it is forgotten at the end.
    pub history: Option<PathBuf>,
    /// What the history may not hold.
    pub unsaid: Unsaid,
    pub completion: Completion,
    pub colour: Colour,
}

pub struct Editor {
    reedline: Reedline,
    colour: Colour,
    nudge: Nudge,
    ahead: Ahead,
}

/// Why a line is interrupted by somebody who has no key for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// As Ctrl-C does it.
    Interrupt,
    /// The chat ends; what stands on the line is kept in the history.
    Leave,
    /// Somebody else had the terminal: the line is shown again and goes on.
    Redraw,
}

/// Interrupts the line that is being read.
#[derive(Clone, Default)]
pub struct Nudge {
    flag: Arc<AtomicBool>,
    why: Arc<Mutex<Option<Break>>>,
}

impl Nudge {
    pub fn give(&self, why: Break) {
        let mut given = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        // What is wanted more is not forgotten for it.
        *given = Some(given.filter(|_| why == Break::Redraw).unwrap_or(why));
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Takes it back; what it was, if nobody has heeded it.
    pub fn take(&self) -> Option<Break> {
        self.flag.store(false, Ordering::Relaxed);
        self.why.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Editor {
    pub fn new(setup: Setup, nudge: Nudge) -> Self {
        let mut keys = default_emacs_keybindings();
        let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
        );
        // The editor's own Ctrl-C throws away what is on the line before anybody has seen it. In a search it ends the search.
        let given_back = vec![ReedlineEvent::Esc, ReedlineEvent::ExecuteHostCommand(INTERRUPT.to_owned())];
        keys.add_binding(
            KeyModifiers::CONTROL,
            KeyCode::Char('c'),
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Multiple(given_back), ReedlineEvent::Esc]),
        );
        // As everywhere on a terminal; the editor would undo something.
        let suspend = ReedlineEvent::ExecuteHostCommand(SUSPEND.to_owned());
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('z'), suspend);
        keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
        let (chosen, described) = match setup.colour {
            Colour::On => (Style::new().reverse(), Style::new().dimmed()),
            Colour::Off => (Style::new(), Style::new()),
        };
        let menu = ColumnarMenu::default()
            .with_name(MENU)
            .with_columns(1)
            .with_text_style(Style::new())
            .with_match_text_style(Style::new())
            .with_selected_text_style(chosen)
            .with_selected_match_text_style(chosen)
            .with_description_text_style(described)
            .with_marker("> ");
        let ahead = Ahead::default();
        let mut reedline = Reedline::create()
            .use_bracketed_paste(true)
            .with_break_signal(Arc::clone(&nudge.flag))
            .with_ansi_colors(setup.colour == Colour::On)
            .with_highlighter(Box::new(Plain(ahead.clone())))
            .with_completer(Box::new(setup.completion))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Keys { emacs: Emacs::new(keys), ahead: ahead.clone() }));
        // A history that cannot be opened is one of this chat alone; the chat says so when it starts.
        if let Some(Ok(history)) = setup.history.map(|file| FileBackedHistory::with_file(HISTORY, file)) {
            reedline = reedline.with_history(Box::new(Discreet { inner: history, unsaid: setup.unsaid }));
        }
        Self { reedline, colour: setup.colour, nudge, ahead }
    }

    /// Reads one line, which may be several; what was begun elsewhere stands in it.
    pub fn line(&mut self, mark: &str, begun: &Draft) -> Typed {
        self.insert(begun);
        let prompt = Mark { text: mark.to_owned(), colour: self.colour };
        let mut interrupt = Typed::Interrupt;
        loop {
            let read = self.reedline.read_line(&prompt);
            // On disk at once: a chat that is killed has not lost what was typed. Where the disk refuses, the line is still
            // said, and only the next chat does not offer it again.
            self.reedline.sync_history().ok();
            let given = matches!(read, Ok(Signal::ExternalBreak(_))).then(|| self.nudge.take()).flatten();
            match given {
                Some(Break::Leave) => {
                    self.set_aside();
                    return Typed::End;
                }
                Some(Break::Redraw) => continue,
                Some(Break::Interrupt) | None => {}
            }
            return match read {
                Ok(Signal::Success(line)) => Typed::Line(line),
                Ok(Signal::HostCommand(what)) if what == SUSPEND => {
                    below_the_prompt();
                    Typed::Suspend
                }
                Ok(Signal::HostCommand(_) | Signal::ExternalBreak(_))
                    if !self.reedline.current_buffer_contents().is_empty() =>
                {
                    self.set_aside();
                    if self.ahead.is_empty() {
                        interrupt = Typed::InterruptAnew;
                        continue;
                    }
                    below_the_prompt();
                    Typed::Emptied
                }
                Ok(Signal::HostCommand(_) | Signal::ExternalBreak(_) | Signal::CtrlC) => {
                    below_the_prompt();
                    interrupt
                }
                Ok(Signal::CtrlD) => Typed::End,
                Ok(_) => Typed::Line(String::new()),
                Err(error) => Typed::Broken(error.to_string()),
            };
        }
    }

    /// What was typed behind the end of the last line.
    pub fn typed_ahead(&self) -> Vec<Typed> {
        self.ahead.take().into_iter().filter_map(Typed::of).collect()
    }

    /// Puts a line that was begun elsewhere where the cursor is, with its own cursor.
    fn insert(&mut self, begun: &Draft) {
        if begun.text().is_empty() {
            return;
        }
        let position = self.reedline.current_insertion_point() + begun.parts().0.len();
        self.reedline.run_edit_commands(&[
            EditCommand::InsertString(begun.text().to_owned()),
            EditCommand::MoveToPosition { position, select: false },
        ]);
    }

    /// Keeps a line that was typed elsewhere in the history.
    pub fn remember(&mut self, line: &str) {
        // One that cannot be kept is only not offered again.
        self.reedline.history_mut().save(HistoryItem::from_command_line(line)).ok();
        self.reedline.sync_history().ok();
    }

    /// Empties the line; the history has it.
    fn set_aside(&mut self) {
        let line = self.reedline.current_buffer_contents().to_owned();
        if !line.trim().is_empty() {
            self.remember(&line);
        }
        self.reedline.run_edit_commands(&[EditCommand::Clear]);
    }
}

/// What is said next stands below the prompt, also where the cursor was in the middle of it.
fn below_the_prompt() {
    // A terminal that is gone is told by the next reading.
    crossterm::execute!(std::io::stdout(), crossterm::style::Print("\r\n\u{1b}[J")).ok();
}

/// What is typed has the colour of the terminal; the editor's own white is not seen on a light one.
struct Plain(Ahead);

impl Highlighter for Plain {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        self.0.go_on();
        let mut text = StyledText::new();
        text.push((Style::new(), line.to_owned()));
        text
    }
}

/// What stands before the line.
struct Mark {
    text: String,
    colour: Colour,
}

impl Prompt for Mark {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing like ",
        };
        Cow::Owned(format!("({found}`{}`) > ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        self.hue(Paint::Yellow)
    }

    fn get_indicator_color(&self) -> Color {
        self.hue(Paint::Green)
    }
}

impl Mark {
    fn hue(&self, hue: Color) -> Color {
        if self.colour == Colour::On { hue } else { Color::Default }
    }
}
