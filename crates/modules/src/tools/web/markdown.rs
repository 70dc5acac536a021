//! Writes Markdown as a page is told to it: what begins, what ends, and the text between.
//!
//! It trusts that what is told is properly nested (`tidy.rs` sees to it) and never looks back further than the marks of a
//! line, so it takes time in proportion to the page. `sheet.rs` holds the lines, `mark.rs` what stands in them,
//! `escape.rs` keeps text from reading as marks, `table.rs` and `listing.rs` gather what is known only at its end.

mod escape;
mod listing;
mod mark;
mod sheet;
mod table;

use listing::Listing;
use mark::Mark;
use sheet::{Gap, Sheet};
use table::Table;

/// What an element means to the reader of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Strong,
    Em,
    Code,
    Link,
    Block,
    Paragraph,
    Heading(usize),
    Bullets,
    Numbers,
    Item,
    Terms,
    Term,
    Detail,
    Table,
    Row,
    Cell,
    Pre,
    Quote,
}

/// What has no inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Void {
    Break,
    Rule,
    Image,
}

impl Tag {
    fn is_inline(self) -> bool {
        matches!(self, Self::Strong | Self::Em | Self::Code | Self::Link)
    }
}

/// What is to do when an open element ends.
#[derive(Debug)]
enum Part {
    /// Something else than text follows at this distance.
    Plain(Gap),
    Mark,
    Heading,
    /// Lines begin as they did before.
    Margin(Gap),
    List {
        /// The next number, for a list that has some.
        number: Option<u32>,
        begun: bool,
        /// Whether it stands after an item of a list, and not in it as it should.
        bare: bool,
    },
    Pre,
    /// A block inside a listing.
    Line,
    /// A link inside a listing, which may be the number of a line.
    LineNumber,
    Table,
    Cell,
}

/// The writer.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// Where text goes: the page, or the cell that is open.
    sheet: Sheet,
    /// The sheets around the cells that are open.
    outer: Vec<Sheet>,
    open: Vec<Part>,
    tables: Vec<Table>,
    listing: Option<Listing>,
}

impl Markdown {
    /// An element begins; `attribute` is the address of a link, the language of code or the first number of a list.
    pub(super) fn begin(&mut self, tag: Tag, attribute: &str) {
        let part = if let Some(listing) = &mut self.listing {
            listing.begin(tag, attribute);
            match tag {
                Tag::Link => Part::LineNumber,
                tag if tag.is_inline() => Part::Plain(Gap::None),
                _ => Part::Line,
            }
        } else if self.sheet.is_heading() && !tag.is_inline() {
            // A heading is one line, whatever is in it.
            self.sheet.raise(Gap::Space);
            Part::Plain(Gap::Space)
        } else {
            self.begin_part(tag, attribute)
        };
        self.open.push(part);
    }

    fn begin_part(&mut self, tag: Tag, attribute: &str) -> Part {
        match tag {
            Tag::Strong => self.begin_mark(Mark::Strong),
            Tag::Em => self.begin_mark(Mark::Em),
            Tag::Code => self.begin_mark(Mark::Code),
            Tag::Link if attribute.is_empty() => Part::Plain(Gap::None),
            Tag::Link => self.begin_mark(Mark::Link(attribute.to_owned())),
            Tag::Block | Tag::Paragraph | Tag::Terms => self.begin_block(),
            Tag::Heading(level) => {
                self.sheet.raise(Gap::Block);
                self.sheet.begin_heading(level);
                Part::Heading
            }
            Tag::Bullets => self.begin_list(None),
            Tag::Numbers => self.begin_list(Some(attribute.trim().parse().unwrap_or(1))),
            Tag::Item => self.begin_item(),
            Tag::Term => {
                self.sheet.raise(Gap::Line);
                Part::Plain(Gap::Line)
            }
            Tag::Detail => {
                self.sheet.set(Gap::Line);
                self.sheet.begin_margin(": ".into(), "  ".into());
                Part::Margin(Gap::Block)
            }
            Tag::Quote => {
                self.sheet.raise(Gap::Block);
                self.sheet.begin_margin("> ".into(), "> ".into());
                Part::Margin(Gap::Block)
            }
            Tag::Pre => {
                self.sheet.raise(Gap::Block);
                self.listing = Some(Listing::new(attribute));
                Part::Pre
            }
            Tag::Table => {
                self.sheet.raise(Gap::Block);
                self.tables.push(Table::default());
                Part::Table
            }
            Tag::Row if self.tables.len() > self.outer.len() => {
                if let Some(table) = self.tables.last_mut() {
                    table.begin_row();
                }
                Part::Plain(Gap::None)
            }
            Tag::Cell if self.tables.len() > self.outer.len() => {
                self.outer.push(std::mem::take(&mut self.sheet));
                self.sheet.begin_cell();
                Part::Cell
            }
            Tag::Row | Tag::Cell => self.begin_block(),
        }
    }

    /// The element that began last ends.
    pub(super) fn end(&mut self) {
        match self.open.pop() {
            None => {}
            Some(Part::Plain(gap)) => self.sheet.raise(gap),
            Some(Part::Mark) => self.sheet.end_mark(),
            Some(Part::Heading) => self.sheet.end_heading(),
            Some(Part::Margin(gap)) => {
                self.sheet.end_margin();
                self.sheet.raise(gap);
            }
            Some(Part::List { bare, .. }) => {
                if bare {
                    self.sheet.end_margin();
                }
                self.sheet.raise(Gap::Block);
            }
            Some(Part::Line) => {
                if let Some(listing) = &mut self.listing {
                    listing.line();
                }
            }
            Some(Part::LineNumber) => {
                if let Some(listing) = &mut self.listing {
                    listing.end_number();
                }
            }
            Some(Part::Pre) => self.end_pre(),
            Some(Part::Cell) => {
                let cell = std::mem::replace(&mut self.sheet, self.outer.pop().unwrap_or_default());
                if let Some(table) = self.tables.last_mut() {
                    table.cell(cell.finish());
                }
            }
            Some(Part::Table) => {
                let text = self.tables.pop().unwrap_or_default().finish();
                if !text.is_empty() {
                    self.sheet.block(&text);
                    self.spread_table();
                }
            }
        }
    }

    /// Text, with its references decoded.
    pub(super) fn text(&mut self, text: &str) {
        match &mut self.listing {
            Some(listing) => listing.text(text),
            None => self.sheet.text(text),
        }
    }

    pub(super) fn line_break(&mut self) {
        match &mut self.listing {
            Some(listing) => listing.text("\n"),
            None => self.sheet.line_break(),
        }
    }

    pub(super) fn rule(&mut self) {
        match &mut self.listing {
            Some(listing) => listing.line(),
            None if self.sheet.is_heading() => {}
            // In a cell it would be a row of signs.
            None if !self.outer.is_empty() => self.sheet.raise(Gap::Block),
            None => self.sheet.block("---"),
        }
    }

    /// A picture; without an address its description is all there is.
    pub(super) fn image(&mut self, alt: &str, address: &str) {
        match &mut self.listing {
            Some(listing) => listing.text(alt),
            None if alt.trim().is_empty() && address.is_empty() => {}
            None => self.sheet.image(alt, address),
        }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.end();
        }
        self.sheet.finish()
    }

    fn begin_mark(&mut self, mark: Mark) -> Part {
        if self.sheet.begin_mark(mark) { Part::Mark } else { Part::Plain(Gap::None) }
    }

    fn begin_block(&mut self) -> Part {
        self.sheet.raise(Gap::Block);
        Part::Plain(Gap::Block)
    }

    fn begin_list(&mut self, number: Option<u32>) -> Part {
        let bare = matches!(self.open.last(), Some(Part::List { begun: true, .. }));
        if bare {
            self.sheet.set(Gap::Line);
            self.sheet.begin_indent();
        } else if !self.sheet.is_indented() {
            self.sheet.raise(Gap::Block);
        }
        Part::List { number, begun: false, bare }
    }

    fn begin_item(&mut self) -> Part {
        let list = self.open.iter_mut().rev().take_while(|part| !matches!(part, Part::Cell));
        let (mut marker, mut first) = ("- ".to_owned(), false);
        for part in list {
            if let Part::List { number, begun, .. } = part {
                first = !*begun;
                *begun = true;
                if let Some(number) = number {
                    marker = format!("{number}. ");
                    *number = number.saturating_add(1);
                }
                break;
            }
        }
        if first && !self.sheet.is_indented() {
            self.sheet.raise(Gap::Block);
        } else {
            self.sheet.set(Gap::Line);
        }
        let indent = " ".repeat(marker.len().min(5));
        self.sheet.begin_margin(marker.into(), indent.into());
        Part::Margin(Gap::Line)
    }

    fn end_pre(&mut self) {
        let Some(listing) = self.listing.take() else { return };
        if !self.outer.is_empty() {
            // A cell may be one line of a table.
            if let Some(line) = listing.one_line() {
                self.begin(Tag::Block, "");
                self.begin(Tag::Code, "");
                self.sheet.text(line);
                self.end();
                return self.end();
            }
            self.spread_table();
        }
        let text = listing.finish();
        if text.is_empty() {
            self.sheet.raise(Gap::Block);
        } else {
            self.sheet.block(&text);
        }
    }

    /// The cell that is open, if one is, holds what no line of a table can hold.
    fn spread_table(&mut self) {
        if !self.outer.is_empty()
            && let Some(table) = self.tables.last_mut()
        {
            table.spread();
        }
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
