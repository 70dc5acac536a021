//! What a bench prints: one JSON object a line, `{"name": "emit_0", "value": 250, "unit": "ns"}`, or a note
//! `{"name": "note", "text": "…"}`. Other lines are somebody's chatter and are passed over.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A measured value in the one unit its kind is compared in: nanoseconds, bytes, or a count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) value: f64,
    pub(crate) kind: Kind,
}

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nanoseconds,
    Bytes,
    Count,
}

/// Everything one bench printed.
#[derive(Debug, Default)]
pub(crate) struct Run {
    values: BTreeMap<String, Measurement>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Value { name: String, value: f64, unit: Unit },
    Note { text: String },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Ns,
    Us,
    Ms,
    Bytes,
    Count,
}

impl Run {
    /// Reads what a bench printed.
    pub(crate) fn read(text: &str) -> Self {
        let mut run = Self::default();
        for line in text.lines().filter(|line| line.trim_start().starts_with('{')) {
            match serde_json::from_str(line) {
                Ok(Line::Value { name, value, unit }) => {
                    run.values.insert(name, Measurement::new(value, unit));
                }
                Ok(Line::Note { text }) => run.notes.push(text),
                Err(error) => run.notes.push(format!("a line could not be read ({error}): {line}")),
            }
        }
        run
    }

    pub(crate) fn add_nanoseconds(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), Measurement { value, kind: Kind::Nanoseconds });
    }

    pub(crate) fn add_bytes(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), Measurement { value, kind: Kind::Bytes });
    }

    /// Something a reader must know.
    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// What both measured. Where a name stands in both, the other's value holds.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.values.extend(other.values);
        self.notes.extend(other.notes);
        self
    }

    /// Values of this run under the names of those they are compared with, as `(compared, value)`.
    pub(crate) fn beside(&self, pairs: &[(&str, &str)]) -> Self {
        let found = |(compared, name): &(&str, &str)| Some(((*compared).to_owned(), self.find(name)?));
        Self { values: pairs.iter().filter_map(found).collect(), notes: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Measurement> {
        self.values.get(name).copied()
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Measurement {
    fn new(value: f64, unit: Unit) -> Self {
        let (factor, kind) = match unit {
            Unit::Ns => (1.0, Kind::Nanoseconds),
            Unit::Us => (1e3, Kind::Nanoseconds),
            Unit::Ms => (1e6, Kind::Nanoseconds),
            Unit::Bytes => (1.0, Kind::Bytes),
            Unit::Count => (1.0, Kind::Count),
        };
        Self { value: value * factor, kind }
    }

    /// For people: three digits and a unit that fits.
    pub(crate) fn show(self) -> String {
        let scaled = |steps: &[(f64, &str)]| {
            let step = steps.iter().find(|(size, _)| self.value.abs() >= *size).or(steps.last());
            let (size, unit) = step.copied().unwrap_or((1.0, ""));
            let value = self.value / size;
            let digits = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            format!("{value:.digits$} {unit}")
        };
        match self.kind {
            Kind::Nanoseconds => scaled(&[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
            Kind::Bytes => scaled(&[(1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")]),
            Kind::Count => format!("{:.0}", self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_unit_are_read_and_chatter_is_passed_over() {
        let run = Run::read(
            "warming up\n{\"name\":\"emit_0\",\"value\":1.5,\"unit\":\"us\"}\n\
             {\"name\":\"live_sessions\",\"value\":1000,\"unit\":\"count\"}\n{\"name\":\"note\",\"text\":\"own loop\"}\n",
        );
        assert_eq!(run.find("emit_0"), Some(Measurement { value: 1500.0, kind: Kind::Nanoseconds }));
        assert_eq!(run.find("live_sessions").unwrap().show(), "1000");
        assert_eq!(run.notes(), ["own loop"]);
        assert!(run.find("turn_0").is_none());
    }

    #[test]
    fn a_line_that_is_no_measurement_is_told_not_lost() {
        let run = Run::read("{\"name\":\"emit_0\",\"value\":\"fast\"}");
        assert!(run.is_empty());
        assert_eq!(run.notes().len(), 1);
    }

    #[test]
    fn values_are_shown_in_a_unit_that_fits() {
        let time = |value| Measurement { value, kind: Kind::Nanoseconds }.show();
        assert_eq!([time(250.0), time(3400.0), time(12.6e9)], ["250 ns", "3.40 µs", "12.6 s"]);
        assert_eq!(Measurement { value: 10240.0, kind: Kind::Bytes }.show(), "10.0 KiB");
    }
}
