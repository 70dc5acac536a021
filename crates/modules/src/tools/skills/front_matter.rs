//! The head of a `SKILL.md`: the few keys of it that matter here, from the small part of YAML such heads are written in.
//!
//! It reads `key: value` at the margin, quoted or plain, folded (`>`) and literal (`|`) blocks, and lists. What is
//! deeper is left alone; this is no YAML parser.

/// A text with its head apart.
#[derive(Debug, PartialEq)]
pub(super) struct Parted<'a> {
    pub(super) head: Vec<(String, String)>,
    pub(super) body: &'a str,
}

impl Parted<'_> {
    /// A key's value; empty counts as none.
    pub(super) fn key(&self, key: &str) -> Option<&str> {
        let value = self.head.iter().find(|(known, _)| known == key).map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    }
}

/// Parts a text into head and body; `None` when it does not begin with a head. Only a line that is `---` ends one: the
/// same signs inside a value or the body are text.
pub(super) fn part(text: &str) -> Option<Parted<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let (mut end, mut head) = (first.len(), Vec::new());
    for line in lines {
        end += line.len();
        if line.trim_end() == "---" {
            return Some(Parted { head: pairs(&head), body: text.get(end..).unwrap_or_default() });
        }
        head.push(line.trim_end());
    }
    None
}

fn pairs(lines: &[&str]) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines {
        let is_deeper = line.starts_with([' ', '\t', '-']) || line.is_empty();
        match line.split_once(':').filter(|_| !is_deeper && !line.starts_with('#')) {
            Some((key, value)) => pairs.push((key.trim().to_owned(), vec![value.trim()])),
            None => {
                if let Some((_, value)) = pairs.last_mut().filter(|_| !line.starts_with('#')) {
                    value.push(line.trim());
                }
            }
        }
    }
    pairs.into_iter().map(|(key, lines)| (key, value(&lines))).collect()
}

/// The text that the lines of a value mean.
fn value(lines: &[&str]) -> String {
    let (first, rest) = lines.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    match first.chars().next() {
        Some('|') => rest.join("\n"),
        Some('>') => folded(rest),
        Some('"') => joined(first, rest).trim_matches('"').replace("\\\"", "\"").replace("\\n", "\n"),
        Some('\'') => joined(first, rest).trim_matches('\'').replace("''", "'"),
        Some('[') => {
            let list = joined(first, rest);
            let items =
                list.trim_matches(['[', ']']).split(',').map(|item| item.trim().trim_matches(['"', '\'']));
            items.filter(|item| !item.is_empty()).collect::<Vec<_>>().join(" ")
        }
        _ if rest.iter().any(|line| line.starts_with("- ")) => {
            let items = rest.iter().filter_map(|line| line.strip_prefix("- "));
            items.map(|item| item.trim().trim_matches(['"', '\''])).collect::<Vec<_>>().join(" ")
        }
        _ => {
            let plain = joined(first, rest);
            plain.split_once(" #").map_or(plain.as_str(), |(plain, _)| plain).trim().to_owned()
        }
    }
}

fn joined(first: &str, rest: &[&str]) -> String {
    folded(&[&[first], rest].concat())
}

/// Lines joined by spaces; an empty one is a line end.
fn folded(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        if line.is_empty() {
            text.push('\n');
        } else {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(' ');
            }
            text.push_str(line);
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_way_to_write_a_value_is_read() {
        let text = "---\nname: pdf-tools\ndescription: >\n  Works with\n  PDF files.\nversion: \"1.0\" \nlicense: 'It''s \
                    MIT'\nallowed-tools:\n  - bash\n  - read_file\ncompatibility: any # for now\nmetadata:\n  deep: 1\n---\n\
                    # Body\n---\nmore";
        let parted = part(text).unwrap();
        assert_eq!(parted.key("name"), Some("pdf-tools"));
        assert_eq!(parted.key("description"), Some("Works with PDF files."));
        assert_eq!(parted.key("version"), Some("1.0"));
        assert_eq!(parted.key("license"), Some("It's MIT"));
        assert_eq!(parted.key("allowed-tools"), Some("bash read_file"));
        assert_eq!(parted.key("compatibility"), Some("any"));
        assert_eq!(parted.body, "# Body\n---\nmore");
    }

    #[test]
    fn three_dashes_inside_a_value_end_nothing() {
        let parted = part("---\r\nname: a\r\ndescription: x --- y\r\n---\r\nbody").unwrap();
        assert_eq!((parted.key("description"), parted.body), (Some("x --- y"), "body"));
    }

    #[test]
    fn a_text_without_a_whole_head_has_none() {
        for text in ["", "# Title", "---\nname: a\n", " ---\nname: a\n---\n", "----\n---\n"] {
            assert_eq!(part(text), None, "{text:?}");
        }
    }
}
