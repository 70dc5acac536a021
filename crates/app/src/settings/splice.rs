//! Changes to the text of a YAML file that leave everything else as it was written: comments, order, spelling. It works on
//! lines of block style; what stands in `{…}` or is shared by aliases is refused. The caller reads the result again and
//! compares, so a change this file gets wrong is never written.

use amplifier_bundle::node::{Entry, Mark, Node, NodeValue};
use amplifier_bundle::origin::Place;
use serde_json::Value;

/// Why a change is not made: the place and the reason.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) place: Place,
    pub(super) reason: String,
}

impl Refusal {
    fn new(place: &Place, reason: impl Into<String>) -> Self {
        Self { place: place.clone(), reason: reason.into() }
    }
}

/// A text as lines, to be put together as it was.
pub(super) struct Lines {
    lines: Vec<String>,
    newline: &'static str,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { lines: text.lines().map(str::to_owned).collect(), newline }
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), self.newline]).collect()
    }

    fn line(&self, place: &Place) -> (usize, &str) {
        let at = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
        (at, self.lines.get(at).map_or("", String::as_str))
    }

    /// The character at a place.
    fn first_of(&self, place: &Place) -> Option<char> {
        self.line(place).1.chars().nth(column(place))
    }

    fn replace(&mut self, first: usize, last: usize, new: Vec<String>) {
        let end = last.saturating_add(1).min(self.lines.len());
        self.lines.splice(first.min(end)..end, new);
    }

    /// The last line of what begins in a line at an indent: whatever is indented more, blank lines and comments only
    /// when more follows. Items of a list may stand as far left as the key they belong to.
    fn last_of(&self, first: usize, indent: usize, content: Content) -> usize {
        let mut last = first;
        for (at, line) in self.lines.iter().enumerate().skip(first + 1) {
            let trimmed = line.trim_start();
            let own = line.len() - trimmed.len();
            let is_item = trimmed == "-" || trimmed.starts_with("- ");
            if trimmed.is_empty()
                || (trimmed.starts_with('#') && !(content == Content::Literal && own > indent))
            {
                continue;
            }
            if own > indent || (content == Content::List && own == indent && is_item) {
                last = at;
            } else {
                break;
            }
        }
        last
    }
}

/// What stands behind a key, as far as it matters where it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    List,
    Literal,
    Anything,
}

fn column(place: &Place) -> usize {
    usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// Sets the value at a path.
pub(super) fn set(
    lines: &mut Lines,
    root: Option<&Node>,
    path: &[&str],
    value: &Value,
) -> Result<(), Refusal> {
    let Some(root) = root.filter(|root| !root.is_null()) else {
        let new = nested(path, value, 0);
        lines.lines.extend(new);
        return Ok(());
    };
    let (mut node, mut entry, mut rest) = (root, None, path);
    while let Some((word, after)) = rest.split_first()
        && let Some(found) = node.as_map().and_then(|map| map.get(*word))
    {
        block(lines, node)?;
        (node, entry, rest) = (&found.node, Some(found), after);
    }
    match (&node.value, entry) {
        (_, Some(entry)) if rest.is_empty() => replace_value(lines, entry, value),
        (NodeValue::Map(mapping), _) if !mapping.is_empty() => {
            block(lines, node)?;
            append(lines, node, rest, value)
        }
        (NodeValue::Map(_) | NodeValue::Null, Some(entry)) => {
            replace_value(lines, entry, &wrapped(rest, value))
        }
        _ => Err(Refusal::new(&node.place, format!("{} stands where a mapping belongs", node.type_name()))),
    }
}

/// Takes the entry at a path out, and the mappings that are empty without it.
pub(super) fn unset(lines: &mut Lines, root: &Node, path: &[&str]) -> Result<(), Refusal> {
    let (mut node, mut found) = (root, None::<(&Node, &Entry)>);
    for word in path {
        let Some(entry) = node.as_map().and_then(|map| map.get(*word)) else { break };
        // Above a mapping with one entry the whole chain goes.
        let alone = node.as_map().is_some_and(|map| map.len() == 1);
        found = match found {
            Some(above) if alone => Some(above),
            _ => Some((node, entry)),
        };
        node = &entry.node;
    }
    let Some((owner, entry)) = found else { return Ok(()) };
    block(lines, owner)?;
    let (first, _) = lines.line(&entry.key);
    let last = lines.last_of(first, column(&entry.key), content(lines, entry));
    lines.replace(first, last, Vec::new());
    Ok(())
}

/// Puts an item at the end of a list of block style.
pub(super) fn push(lines: &mut Lines, list: &Node, item: &Value) -> Result<(), Refusal> {
    let last = list.as_list().and_then(<[Node]>::last);
    let Some(last) = last else { return Err(Refusal::new(&list.place, "the list is empty")) };
    let (first, indent) = item_line(lines, last)?;
    let end = lines.last_of(first, indent, Content::Anything);
    let new = item_lines(item, indent);
    lines.lines.splice(end + 1..end + 1, new);
    Ok(())
}

/// Takes an item out of a list of block style.
pub(super) fn pull(lines: &mut Lines, item: &Node) -> Result<(), Refusal> {
    let (first, indent) = item_line(lines, item)?;
    let last = lines.last_of(first, indent, Content::Anything);
    lines.replace(first, last, Vec::new());
    Ok(())
}

/// The line of an item, and how far its dash is indented.
fn item_line(lines: &Lines, item: &Node) -> Result<(usize, usize), Refusal> {
    let (at, line) = lines.line(&item.place);
    let trimmed = line.trim_start();
    if trimmed.starts_with("- ") && item.mark == Mark::Merge {
        return Ok((at, line.len() - trimmed.len()));
    }
    Err(Refusal::new(&item.place, "the list is not written with a dash on each line"))
}

/// Whether a mapping stands in `{…}`.
pub(super) fn is_flow(lines: &Lines, node: &Node) -> bool {
    lines.first_of(&node.place) == Some('{')
}

/// Only mappings whose keys have lines of their own are changed.
fn block(lines: &Lines, node: &Node) -> Result<(), Refusal> {
    if is_flow(lines, node) {
        return Err(Refusal::new(&node.place, "this stands in `{…}`, where lines cannot be changed"));
    }
    Ok(())
}

fn content(lines: &Lines, entry: &Entry) -> Content {
    let (_, line) = lines.line(&entry.key);
    let behind = behind_key(line, column(&entry.key)).map_or("", |(_, behind)| behind.trim());
    match &entry.node.value {
        NodeValue::List(_) => Content::List,
        _ if behind.starts_with(['|', '>']) => Content::Literal,
        _ => Content::Anything,
    }
}

/// A line parted behind the colon of the key that begins at a column.
fn behind_key(line: &str, column: usize) -> Option<(&str, &str)> {
    let start = line.char_indices().nth(column)?.0;
    let from = line.get(start..)?;
    let end = match from.chars().next()? {
        quote @ ('"' | '\'') => from.get(1..)?.find(quote)? + 2,
        _ => from.find(": ").or_else(|| from.strip_suffix(':').map(str::len))?,
    };
    let colon = from.get(end..)?.find(':')?;
    line.split_at_checked(start + end + colon + 1)
}

fn replace_value(lines: &mut Lines, entry: &Entry, value: &Value) -> Result<(), Refusal> {
    if entry.node.mark != Mark::Merge {
        return Err(Refusal::new(&entry.node.place, "the value has a tag, which would be lost"));
    }
    let indent = column(&entry.key);
    let (first, line) = lines.line(&entry.key);
    let Some((head, behind)) = behind_key(line, indent) else {
        return Err(Refusal::new(&entry.key, "the key cannot be told from its value"));
    };
    let comment = comment_of(behind, &entry.node);
    let (head, last) = (head.to_owned(), lines.last_of(first, indent, content(lines, entry)));
    let new = match scalar(value) {
        Some(text) => vec![format!("{head} {text}{comment}")],
        None => {
            let mut new = vec![format!("{head}{comment}")];
            new.extend(block_lines(value, indent + 2));
            new
        }
    };
    lines.replace(first, last, new);
    Ok(())
}

/// The comment at the end of a line, with the blanks before it.
fn comment_of(behind: &str, node: &Node) -> String {
    let from = match &node.value {
        // What is quoted or bracketed may hold a `#`; a comment can only follow its end.
        NodeValue::Text(_) if behind.trim_start().starts_with(['"', '\'']) => behind.rfind(['"', '\'']),
        NodeValue::List(_) | NodeValue::Map(_) => behind.rfind([']', '}']),
        _ => Some(0),
    };
    let rest = behind.get(from.unwrap_or(0)..).unwrap_or_default();
    let Some(at) = rest.find(" #") else { return String::new() };
    let blanks = rest.get(..=at).map_or(0, |before| before.len() - before.trim_end().len());
    rest.get(at + 1 - blanks..).unwrap_or_default().to_owned()
}

fn append(lines: &mut Lines, owner: &Node, rest: &[&str], value: &Value) -> Result<(), Refusal> {
    let entries = owner.as_map().into_iter().flat_map(|map| map.values());
    let Some(last) = entries.max_by_key(|entry| entry.key.line) else {
        return Err(Refusal::new(&owner.place, "the mapping is empty"));
    };
    let (first, _) = lines.line(&last.key);
    let indent = column(&last.key);
    let end = lines.last_of(first, indent, content(lines, last));
    let new = nested(rest, value, indent);
    lines.lines.splice(end + 1..end + 1, new);
    Ok(())
}

fn wrapped(path: &[&str], value: &Value) -> Value {
    path.iter()
        .rev()
        .fold(value.clone(), |below, word| Value::Object([((*word).to_owned(), below)].into_iter().collect()))
}

fn nested(path: &[&str], value: &Value, indent: usize) -> Vec<String> {
    block_lines(&wrapped(path, value), indent)
}

/// A mapping or a list as lines.
fn block_lines(value: &Value, indent: usize) -> Vec<String> {
    let blanks = " ".repeat(indent);
    match value {
        Value::Object(map) => {
            let mut lines = Vec::new();
            for (key, value) in map {
                let key = quoted(key);
                match scalar(value) {
                    Some(text) => lines.push(format!("{blanks}{key}: {text}")),
                    None => {
                        lines.push(format!("{blanks}{key}:"));
                        lines.extend(block_lines(value, indent + 2));
                    }
                }
            }
            lines
        }
        Value::Array(items) => items.iter().flat_map(|item| item_lines(item, indent)).collect(),
        other => vec![format!("{blanks}{}", scalar(other).unwrap_or_default())],
    }
}

fn item_lines(item: &Value, indent: usize) -> Vec<String> {
    let blanks = " ".repeat(indent);
    if let Some(text) = scalar(item) {
        return vec![format!("{blanks}- {text}")];
    }
    let mut lines = block_lines(item, indent + 2);
    if let Some(first) = lines.first_mut() {
        *first = format!("{blanks}- {}", first.trim_start());
    }
    lines
}

/// A value that fits behind a colon.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("null".to_owned()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::String(text) => Some(quoted(text)),
        Value::Array(items) if items.is_empty() => Some("[]".to_owned()),
        Value::Object(map) if map.is_empty() => Some("{}".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A text without quotes where nobody can take it for anything else.
fn quoted(text: &str) -> String {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '$' | '_'))
        || text.starts_with("./")
        || text.starts_with("../");
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./:@+=${}~".contains(c);
    let is_plain = begins
        && text.chars().all(fits)
        && !text.ends_with(':')
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
#[path = "splice_tests.rs"]
mod tests;
