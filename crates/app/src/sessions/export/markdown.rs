//! A session as Markdown. What tools got and gave stands in fences that their text cannot close.

use std::io::{self, Write};

use super::{Document, pretty, second};
use crate::sessions::story::{Happening, Moment, lost_words};
use crate::sessions::turns::Turn;

pub(super) fn begin(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(out, "# {}\n", document.title())?;
    for (name, value) in document.facts() {
        writeln!(out, "- {name}: `{}`", value.replace('`', "'"))?;
    }
    Ok(())
}

pub(super) fn moment(out: &mut dyn Write, begun: Option<&Turn>, moment: &Moment) -> io::Result<()> {
    if let Some(turn) = begun {
        writeln!(out, "\n## Turn {} ({})", turn.number, second(turn.begun))?;
    }
    match &moment.what {
        Happening::Prompt { text } => writeln!(out, "\n**You:**\n\n{}", text.trim_end()),
        Happening::Said { text } => writeln!(out, "\n**Answer:**\n\n{}", text.trim_end()),
        Happening::Thought { text } => {
            let quoted: Vec<_> = text.trim_end().lines().map(|line| format!("> {line}")).collect();
            writeln!(out, "\n**Thought:**\n\n{}", quoted.join("\n"))
        }
        Happening::Injected { by, text } => {
            writeln!(out, "\n**Added by {by}:**\n\n{}", fenced(text, "text"))
        }
        Happening::Called { tool, input, .. } => {
            writeln!(out, "\n**Called `{tool}`:**\n\n{}", fenced(&pretty(input), "json"))
        }
        Happening::Answered { tool, text, .. } => {
            writeln!(out, "\n**`{tool}` answered:**\n\n{}", fenced(text, "text"))
        }
        Happening::Shown { kind } => writeln!(out, "\n*({kind})*"),
        Happening::Lost { records, line, kept } => {
            writeln!(out, "\n**[{}]**", lost_words(*records, *line, *kept))
        }
        _ => Ok(()),
    }
}

/// A text in a fence longer than any in it.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.lines().map(|line| line.trim_start().chars().take_while(|c| *c == '`').count()).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_closes_its_fence() {
        assert_eq!(fenced("a\n", "text"), "```text\na\n```");
        assert_eq!(fenced("x\n````\ny", "text"), "`````text\nx\n````\ny\n`````");
    }
}
