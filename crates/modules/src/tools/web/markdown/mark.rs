//! What stands in a line: strong, emphasised, code, links and images.
//!
//! A mark is written when the first word inside it is and ended right after the last one, so blanks stay outside. Where an
//! empty line parts what is inside, the mark ends before it and begins again after it; a link does not begin again.

use super::listing::longest_run;
use super::sheet::Sheet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    Strong,
    Em,
    Code,
    Link(String),
    /// A link inside code; it counts if it is all of it.
    CodeLink(String),
}

#[derive(Debug)]
pub(super) struct OpenMark {
    pub(super) mark: Mark,
    /// Where it is written, if it is.
    at: Option<usize>,
    is_spent: bool,
    /// For code: the first link inside, from where to where.
    link: Option<(usize, usize, String)>,
}

impl OpenMark {
    /// A link to a place of the same page, without text so far.
    pub(super) fn is_unwritten_anchor(&self) -> bool {
        self.at.is_none() && matches!(&self.mark, Mark::Link(address) if address.starts_with('#'))
    }
}

impl Sheet {
    /// Begins a mark, unless it would say nothing new.
    pub(super) fn begin_mark(&mut self, mark: Mark) -> bool {
        let in_code = self.marks.iter().any(|open| open.mark == Mark::Code);
        let mark = match mark {
            Mark::Link(address) if in_code => Mark::CodeLink(address),
            _ if in_code => return false,
            mark if self.marks.iter().any(|open| open.mark == mark) => return false,
            mark => mark,
        };
        self.marks.push(OpenMark { mark, at: None, is_spent: false, link: None });
        true
    }

    pub(super) fn end_mark(&mut self) {
        let Some(ended) = self.marks.pop() else { return };
        let Some(at) = ended.at else { return };
        match ended.mark {
            Mark::Strong | Mark::Em | Mark::Code => self.ended.push(ended),
            Mark::Link(_) => {
                self.settle();
                self.write_end(&ended);
            }
            Mark::CodeLink(address) => {
                let end = self.out.len();
                if let Some(code) = self.marks.iter_mut().rfind(|open| open.mark == Mark::Code) {
                    code.link.get_or_insert((at, end, address));
                }
            }
        }
    }

    /// Writes the beginnings of marks that have none.
    pub(super) fn open_marks(&mut self) {
        for open in self.marks.iter_mut().filter(|open| open.at.is_none() && !open.is_spent) {
            match open.mark {
                Mark::Link(_) if self.out.ends_with('!') => {
                    // Else it would be an image.
                    self.out.pop();
                    self.out.push_str("\\!");
                }
                _ => {}
            }
            open.at = Some(self.out.len());
            self.out.push_str(match open.mark {
                Mark::Strong => "**",
                Mark::Em => "*",
                Mark::Link(_) => "[",
                // How many backticks are needed is known at its end.
                Mark::Code | Mark::CodeLink(_) => "",
            });
        }
    }

    /// Goes on with marks that ended just here, where the same ones begin again, and ends the others.
    pub(super) fn rejoin(&mut self) {
        for open in self.marks.iter_mut().filter(|open| open.at.is_none() && !open.is_spent) {
            match self.ended.pop_if(|ended| ended.mark == open.mark) {
                // Whatever link it had is not all of it any more.
                Some(ended) => open.at = ended.at,
                None => break,
            }
        }
        self.settle();
    }

    /// Writes the ends of marks that ended.
    pub(super) fn settle(&mut self) {
        for ended in std::mem::take(&mut self.ended) {
            self.write_end(&ended);
        }
    }

    /// Ends the marks that are open before an empty line; they begin again after it.
    pub(super) fn suspend(&mut self) {
        let mut marks = std::mem::take(&mut self.marks);
        for open in marks.iter_mut().rev().filter(|open| open.at.is_some()) {
            self.write_end(open);
            open.at = None;
            open.link = None;
            open.is_spent = matches!(open.mark, Mark::Link(_) | Mark::CodeLink(_));
        }
        self.marks = marks;
    }

    fn write_end(&mut self, ended: &OpenMark) {
        let Some(at) = ended.at else { return };
        match &ended.mark {
            Mark::Strong => self.out.push_str("**"),
            Mark::Em => self.out.push('*'),
            Mark::Code => self.write_code(at, ended.link.as_ref()),
            Mark::Link(address) => self.write_link(at, address),
            Mark::CodeLink(_) => {}
        }
    }

    fn write_code(&mut self, at: usize, link: Option<&(usize, usize, String)>) {
        let code = self.out.split_off(at.min(self.out.len()));
        let fence = "`".repeat(longest_run(&code) + 1);
        let blank = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        let whole = link.filter(|(from, to, _)| (*from, *to) == (at, at + code.len()));
        // A link inside a link is none.
        let whole = whole.filter(|_| !self.marks.iter().any(|open| matches!(open.mark, Mark::Link(_))));
        let (begins, ends) = match whole {
            Some((_, _, address)) => ("[", format!("]({})", destination(address))),
            None => ("", String::new()),
        };
        for piece in [begins, &fence, blank, &code, blank, &fence, &ends] {
            self.out.push_str(piece);
        }
    }

    fn write_link(&mut self, at: usize, address: &str) {
        let text = self.out.get(at + 1..).unwrap_or_default();
        if self.is_heading() && address.starts_with('#') {
            // It leads to where it stands.
            self.out.remove(at);
            return;
        }
        if text == address {
            self.out.truncate(at);
            self.out.push('<');
            self.out.push_str(address);
            self.out.push('>');
            return;
        }
        if let Some(balanced) = balanced(text) {
            self.out.truncate(at + 1);
            self.out.push_str(&balanced);
        }
        self.out.push_str("](");
        self.out.push_str(&destination(address));
        self.out.push(')');
    }
}

pub(super) fn image(out: &mut String, alt: &str, address: &str) {
    out.push_str("![");
    let words = alt.split_whitespace().collect::<Vec<_>>().join(" ");
    out.push_str(&balanced(&words).unwrap_or(words));
    out.push_str("](");
    out.push_str(&destination(address));
    out.push(')');
}

/// The text with a backslash before each bracket that has no partner, if there is such a one.
fn balanced(text: &str) -> Option<String> {
    let (mut alone, mut opened, mut escaped) = (Vec::new(), Vec::new(), false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'[' => opened.push(at),
            b']' if opened.pop().is_none() => alone.push(at),
            _ => {}
        }
    }
    alone.append(&mut opened);
    if alone.is_empty() {
        return None;
    }
    alone.sort_unstable();
    let (mut out, mut from) = (String::with_capacity(text.len() + alone.len()), 0);
    for at in alone {
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push('\\');
        from = at;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Some(out)
}

/// An address that ends where the link ends.
fn destination(address: &str) -> String {
    let address = address.replace(' ', "%20");
    let (mut depth, mut lost) = (0_usize, false);
    for byte in address.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => lost = true,
            b')' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 || lost { address.replace('(', "%28").replace(')', "%29") } else { address }
}
