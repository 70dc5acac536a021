//! A session as one HTML page: no scripts, nothing from elsewhere, every text escaped.

use std::io::{self, Write};

use super::{Document, pretty, second};
use crate::sessions::story::{Happening, Moment, lost_words};
use crate::sessions::turns::Turn;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1rem;margin-top:2rem;opacity:.7;border-top:1px solid;padding-top:.5rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;font-size:.9rem}dt{opacity:.7}dd{margin:0}\
.text{white-space:pre-wrap;overflow-wrap:anywhere}\
.prompt{border-left:.25rem solid;padding-left:.75rem;font-weight:600}\
details{margin:.5rem 0;font-size:.9rem}summary{cursor:pointer;opacity:.8}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;max-height:30rem;overflow:auto;border:1px solid;padding:.5rem}";

pub(super) fn begin(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let title = escaped(&document.title());
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n<dl>\n"
    )?;
    for (name, value) in document.facts() {
        writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
    }
    writeln!(out, "</dl>")
}

pub(super) fn moment(out: &mut dyn Write, begun: Option<&Turn>, moment: &Moment) -> io::Result<()> {
    if let Some(turn) = begun {
        writeln!(out, "<h2>Turn {} · {}</h2>", turn.number, second(turn.begun))?;
    }
    match &moment.what {
        Happening::Prompt { text } => writeln!(out, "<div class=\"text prompt\">{}</div>", escaped(text)),
        Happening::Said { text } => writeln!(out, "<div class=\"text\">{}</div>", escaped(text)),
        Happening::Thought { text } => folded(out, "thought", text),
        Happening::Injected { by, text } => folded(out, &format!("added by {by}"), text),
        Happening::Called { tool, input, .. } => folded(out, &format!("called {tool}"), &pretty(input)),
        Happening::Answered { tool, text, .. } => folded(out, &format!("{tool} answered"), text),
        Happening::Shown { kind } => writeln!(out, "<p>({})</p>", escaped(kind)),
        Happening::Lost { records, line, kept } => {
            writeln!(out, "<p><strong>[{}]</strong></p>", escaped(&lost_words(*records, *line, *kept)))
        }
        _ => Ok(()),
    }
}

pub(super) fn end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</body>\n</html>")
}

fn folded(out: &mut dyn Write, summary: &str, text: &str) -> io::Result<()> {
    let (summary, text) = (escaped(summary), escaped(text.trim_end()));
    writeln!(out, "<details><summary>{summary}</summary><pre>{text}</pre></details>")
}

/// A text that is nothing but text in HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Browsers read these as something else, or as nothing.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            escaped("<img src=x onerror='a(\"b\")'>&\u{7}"),
            "&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt;&amp;\u{fffd}"
        );
    }
}
