//! A table, gathered cell by cell: rows of narrow cells, or one block after the other when it only laid out a page.
//!
//! Rows are as narrow as they are: one long cell would otherwise widen every row to its own length.

/// A cell longer than this holds no datum but a page.
const LONG: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// Whether a cell holds what no line can hold.
    is_spread: bool,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn cell(&mut self, text: String) {
        self.is_spread |= text.len() > LONG || (text.contains("\n\n") && text.lines().any(is_heading));
        if self.rows.is_empty() {
            self.begin_row();
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(text);
        }
    }

    pub(super) fn spread(&mut self) {
        self.is_spread = true;
    }

    /// The text; empty when every cell is.
    pub(super) fn finish(mut self) -> String {
        self.rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let lists = columns == 1 && self.rows.iter().flatten().any(|cell| cell.contains('\n'));
        if self.is_spread || lists { self.blocks() } else { self.lines(columns) }
    }

    fn blocks(self) -> String {
        let cells = self.rows.into_iter().flatten().filter(|cell| !cell.is_empty());
        cells.collect::<Vec<_>>().join("\n\n")
    }

    fn lines(self, columns: usize) -> String {
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            text.push('|');
            for cell in row {
                put_cell(&mut text, cell);
            }
            if at == 0 {
                // The first row says how many columns there are.
                text.push_str(&"  |".repeat(columns - row.len()));
                text.push_str("\n|");
                text.push_str(&" --- |".repeat(columns));
            }
        }
        text
    }
}

fn put_cell(text: &mut String, cell: &str) {
    for line in cell.lines() {
        let line = if is_heading(line) { line.trim_start_matches('#') } else { line };
        for word in line.split_whitespace() {
            text.push(' ');
            for c in word.chars() {
                if c == '|' {
                    text.push('\\');
                }
                text.push(c);
            }
        }
    }
    text.push_str(if cell.is_empty() { "  |" } else { " |" });
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}
