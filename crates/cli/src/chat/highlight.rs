//! Colours for code. The grammars are read when the first block of code comes, and never in a session without one.

use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::paint::{Hue, Line, Span, Style};

/// A line longer than this is shown as it is: grammars take too long for what nobody reads.
const LONGEST: usize = 2_000;

static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// Which scopes have which style; the first that fits counts.
static STYLES: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let styles = [
        ("comment", Style::DIM),
        ("string", Style::of(Hue::Green)),
        ("constant", Style::of(Hue::Cyan)),
        ("entity.name.function", Style::of(Hue::Blue)),
        ("support.function", Style::of(Hue::Blue)),
        ("variable.function", Style::of(Hue::Blue)),
        ("entity.name", Style::of(Hue::Yellow)),
        ("support.type", Style::of(Hue::Yellow)),
        ("storage", Style::of(Hue::Magenta)),
        ("keyword.operator", Style::PLAIN),
        ("keyword", Style::of(Hue::Magenta)),
        ("markup.inserted", Style::of(Hue::Green)),
        ("markup.deleted", Style::of(Hue::Red)),
        ("meta.diff.range", Style::of(Hue::Cyan)),
        ("punctuation.definition.comment", Style::DIM),
    ];
    styles.into_iter().filter_map(|(name, style)| Some((Scope::new(name).ok()?, style))).collect()
});

/// One block of code, line after line.
pub struct Highlighter {
    state: ParseState,
    scopes: ScopeStack,
}

impl Highlighter {
    /// For a language as it stands behind a fence; nothing when nobody knows it.
    pub fn new(language: &str) -> Option<Self> {
        let word = language.split([',', ' ', '{', ':']).next().unwrap_or_default().trim();
        let syntax = find(word)?;
        Some(Self { state: ParseState::new(syntax), scopes: ScopeStack::new() })
    }

    /// The next line, in colours.
    pub fn line(&mut self, text: &str) -> Line {
        if text.len() > LONGEST {
            return vec![Span::plain(text)];
        }
        let whole = format!("{text}\n");
        let Ok(changes) = self.state.parse_line(&whole, &GRAMMARS) else { return vec![Span::plain(text)] };
        let (mut line, mut from) = (Line::new(), 0);
        for (at, change) in changes {
            self.piece(whole.get(from..at).unwrap_or_default(), &mut line);
            from = at.max(from);
            if self.scopes.apply(&change).is_err() {
                self.scopes = ScopeStack::new();
            }
        }
        self.piece(whole.get(from..).unwrap_or_default(), &mut line);
        line
    }

    fn piece(&self, text: &str, line: &mut Line) {
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            line.push(Span::new(text, self.style()));
        }
    }

    /// The style of the innermost scope that has one.
    fn style(&self) -> Style {
        let known = |scope: &Scope| STYLES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
        self.scopes.as_slice().iter().rev().find_map(known).map_or(Style::PLAIN, |(_, style)| *style)
    }
}

fn find(word: &str) -> Option<&'static SyntaxReference> {
    let known = match word.to_lowercase().as_str() {
        "" | "text" | "txt" | "plain" | "console" => return None,
        "shell" | "zsh" | "shellscript" => "bash".to_owned(),
        "ts" | "typescript" | "tsx" | "jsx" | "mjs" => "js".to_owned(),
        "jsonc" | "json5" | "jsonl" => "json".to_owned(),
        "py3" | "python3" => "python".to_owned(),
        "golang" => "go".to_owned(),
        "patch" => "diff".to_owned(),
        other => other.to_owned(),
    };
    GRAMMARS.find_syntax_by_token(&known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::paint::{Colour, written};

    #[test]
    fn code_is_coloured_and_its_text_stays() {
        let mut rust = Highlighter::new("rust").unwrap();
        let line = rust.line("let x = \"a\"; // why");
        assert_eq!(written(&line, Colour::Off), "let x = \"a\"; // why");
        let coloured = written(&line, Colour::On);
        assert!(
            coloured.contains("\u{1b}[35mlet\u{1b}[0m") && coloured.contains("\u{1b}[2m"),
            "{coloured:?}"
        );
        assert!(Highlighter::new("no-such-language").is_none());
    }

    #[test]
    fn what_a_line_opens_the_next_one_knows() {
        let mut rust = Highlighter::new("rs").unwrap();
        rust.line("/* a");
        assert_eq!(rust.line("b").first().map(|span| span.style), Some(Style::DIM));
    }
}
