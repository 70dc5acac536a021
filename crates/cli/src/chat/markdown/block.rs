//! One finished block of Markdown as lines: a paragraph, a heading, an item, a quotation, a table.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::chat::highlight::Highlighter;
use crate::chat::paint::{Hue, Line, Margin, Span, Style, line_width, width, wrap};

/// The narrowest column of a table.
const NARROWEST: usize = 4;

/// Renders a block that stands `indent` columns to the right.
pub fn render(text: &str, indent: usize, room: usize) -> Vec<Line> {
    let text = if indent == 0 { text.to_owned() } else { outdented(text, indent) };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(room, indent);
    for event in Parser::new_ext(&text, options) {
        page.take(event);
    }
    page.end_text();
    page.lines
}

fn outdented(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        out.push_str(line.get(blanks.min(indent)..).unwrap_or_default());
        out.push('\n');
    }
    out
}

struct Page {
    room: usize,
    lines: Vec<Line>,
    text: Line,
    styles: Vec<Style>,
    margins: Vec<Margin>,
    lists: Vec<Option<u64>>,
    links: Vec<(String, usize)>,
    table: Option<Table>,
    code: Option<(String, String)>,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
    cell: Line,
}

impl Page {
    fn new(room: usize, indent: usize) -> Self {
        let margin = vec![Span::plain(" ".repeat(indent.min(room / 2)))];
        Self {
            room,
            lines: Vec::new(),
            text: Line::new(),
            styles: Vec::new(),
            margins: vec![Margin { first: margin.clone(), rest: margin }],
            lists: Vec::new(),
            links: Vec::new(),
            table: None,
            code: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: impl Into<String>, style: Style) {
        let span = Span::new(text, style);
        match &mut self.table {
            Some(table) => table.cell.push(span),
            None => self.text.push(span),
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(text.into_string(), self.style()),
            },
            Event::Code(text) => self.push(text.into_string(), Style::of(Hue::Cyan)),
            Event::Html(text) | Event::InlineHtml(text) => {
                self.push(text.trim_end_matches('\n').to_owned(), Style::DIM);
            }
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.push("\n", self.style()),
            Event::Rule => {
                let across = "─".repeat(self.room.min(40));
                self.lines.push(vec![Span::new(across, Style::DIM)]);
            }
            Event::TaskListMarker(done) => self.push(if done { "☑ " } else { "☐ " }, self.style()),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => self.styles.push(heading(level)),
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().struck()),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.text.len()));
                self.styles.push(Style::of(Hue::Blue).underlined());
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                self.indent("│ ", "│ ", Style::DIM);
            }
            Tag::List(first) => {
                self.end_text();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::CodeBlock(kind) => {
                self.end_text();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::Table(alignments) => self.table = Some(Table { alignments, ..Table::default() }),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Paragraph => self.end_text(),
            TagEnd::HtmlBlock => self.end_text(),
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_text();
                self.margins.pop();
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell);
                    }
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// What comes stands further to the right, behind a mark.
    fn indent(&mut self, mark: &str, below: &str, style: Style) {
        let around = self.margins.last().cloned().unwrap_or_default();
        let mut margin = Margin { first: around.rest.clone(), rest: around.rest };
        margin.first.push(Span::new(mark, style));
        margin.rest.push(Span::new(below, style));
        self.margins.push(margin);
    }

    fn item(&mut self) {
        self.end_text();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        let below = " ".repeat(width(&mark));
        self.indent(&mark, &below, Style::DIM);
    }

    fn end_text(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        let margin = self.margins.last().cloned().unwrap_or_default();
        self.lines.extend(wrap(&text, self.room, &margin));
        if let Some(margin) = self.margins.last_mut() {
            // A second paragraph of an item has no mark.
            margin.first = margin.rest.clone();
        }
    }

    /// A link whose text does not tell where it leads is followed by its address.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, from)) = self.links.pop() else { return };
        let shown: String =
            self.text.get(from..).unwrap_or_default().iter().map(|span| span.text.as_str()).collect();
        if shown != address && self.table.is_none() && !address.is_empty() {
            self.push(format!(" ({address})"), Style::DIM);
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let mut colours = Highlighter::new(&language);
        let margin = self.margins.last().map(|margin| margin.rest.clone()).unwrap_or_default();
        for text in code.lines() {
            let mut line = margin.clone();
            line.push(Span::plain("  "));
            match &mut colours {
                Some(colours) => line.extend(colours.line(text)),
                None => line.push(Span::plain(text)),
            }
            self.lines.push(line);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest =
            |at: usize| table.rows.iter().filter_map(|row| row.get(at)).map(|cell| line_width(cell)).max();
        let natural: Vec<usize> = (0..columns).map(|at| widest(at).unwrap_or_default().max(1)).collect();
        let widths = fitted(&natural, self.room.saturating_sub(columns.saturating_sub(1) * 2));
        for (number, row) in table.rows.iter().enumerate() {
            self.row(row, &widths, &table.alignments, number);
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.lines.push(vec![Span::new(rules.join("  "), Style::DIM)]);
            }
        }
    }

    fn row(&mut self, row: &[Line], widths: &[usize], alignments: &[Alignment], number: usize) {
        let bold = |span: &Span| Span::new(span.text.clone(), span.style.bold());
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| {
                let cell = row.get(at).cloned().unwrap_or_default();
                let cell: Line = if number == 0 { cell.iter().map(bold).collect() } else { cell };
                wrap(&cell, *width, &Margin::default())
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..height {
            let mut line = Line::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push(Span::plain("  "));
                }
                let text = cell.get(at).cloned().unwrap_or_default();
                let left = width.saturating_sub(line_width(&text));
                let before = match alignments.get(column) {
                    Some(Alignment::Right) => left,
                    Some(Alignment::Center) => left / 2,
                    _ => 0,
                };
                line.push(Span::plain(" ".repeat(before)));
                line.extend(text);
                line.push(Span::plain(" ".repeat(left - before)));
            }
            self.lines.push(line);
        }
    }
}

fn heading(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 => Style::BOLD.underlined(),
        HeadingLevel::H2 => Style::BOLD,
        _ => Style::BOLD.italic(),
    }
}

/// Widths of columns that fit: the widest give way first.
fn fitted(natural: &[usize], room: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    while over > 0 {
        let Some(widest) = widths.iter().copied().max().filter(|width| *width > NARROWEST) else { break };
        let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(NARROWEST);
        let many = widths.iter().filter(|width| **width == widest).count();
        let step = (widest - next).min(over.div_ceil(many)).max(1);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            let less = step.min(over);
            *width -= less;
            over -= less;
        }
    }
    widths
}
