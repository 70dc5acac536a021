//! The table on the terminal: fixed columns, numbers to the right.

use super::goals::{Row, Verdict};
use super::measurement::Measurement;

/// The whole table, header included. `beside` names what ours is measured beside.
pub(crate) fn render(rows: &[Row], beside: &str) -> String {
    let mut cells = vec![["name", "ours", beside, "ratio", "goal", ""].map(str::to_owned)];
    for row in rows {
        let show = |value: Option<Measurement>| value.map_or("-".to_owned(), Measurement::show);
        let ratio = row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}×"));
        let verdict = word(row.verdict).to_owned();
        cells.push([row.name.to_owned(), show(row.ours), show(row.public), ratio, row.goal.clone(), verdict]);
    }
    let width =
        |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &cells {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match column {
                1..=3 => line.push_str(&format!("{cell:>width$}  ")),
                _ => line.push_str(&format!("{cell:<width$}  ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// One line that says how many goals were met.
pub(crate) fn summary(rows: &[Row]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let judged = rows.iter().filter(|row| row.verdict != Verdict::NoGoal).count();
    let met = count(Verdict::Met) + count(Verdict::MetAlone);
    format!(
        "{met} of {judged} goals met, {} not met, {} not measured",
        count(Verdict::NotMet),
        count(Verdict::Missing)
    )
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::MetAlone => "met (ratio not measured)",
        Verdict::NotMet => "NOT MET",
        Verdict::Missing => "not measured",
        Verdict::NoGoal => "",
    }
}

#[cfg(test)]
mod tests {
    use super::super::goals::{KERNEL, judge};
    use super::super::measurement::Run;
    use super::*;

    #[test]
    fn the_table_lines_up_and_the_summary_counts() {
        let ours = Run::read("{\"name\":\"emit_0\",\"value\":300,\"unit\":\"ns\"}");
        let public = Run::read("{\"name\":\"emit_0\",\"value\":340,\"unit\":\"us\"}");
        let rows = judge(KERNEL, &ours, &public);
        let text = render(&rows, "public");
        let line = text.lines().find(|line| line.starts_with("emit_0")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words,
            ["emit_0", "300", "ns", "340", "µs", "1133.3×", "≤", "600", "ns,", "≥", "500×", "met"]
        );
        assert_eq!(summary(&rows), "1 of 11 goals met, 0 not met, 10 not measured");
    }
}
