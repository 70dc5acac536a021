//! Builds the tree from the parser's events, with a stack of its own: nesting costs no call stack, and every bound is
//! checked while the tree grows.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use indexmap::map::Entry as Slot;

use super::{Document, Origin, YamlError, YamlFault, YamlLimits, scalar};
use crate::node::{Entry, Mapping, Mark, Node, NodeValue};
use crate::notice::{Code, Notice};
use crate::origin::Place;

/// A collection whose end has not come yet.
struct Open {
    kind: Kind,
    place: Place,
    mark: Mark,
    anchor: usize,
}

enum Kind {
    List(Vec<Node>),
    Map { mapping: Mapping, key: Option<(String, Place)>, merged: Vec<Node> },
}

/// The state of one read.
pub(super) struct Builder<'f> {
    origin: Origin<'f>,
    limits: YamlLimits,
    stack: Vec<Open>,
    /// Finished values by anchor, with their size.
    anchors: HashMap<usize, (Node, usize)>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
    notices: Vec<Notice>,
}

impl<'f> Builder<'f> {
    pub(super) fn new(origin: Origin<'f>, limits: YamlLimits) -> Self {
        Self {
            origin,
            limits,
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            nodes: 0,
            documents: 0,
            notices: Vec::new(),
        }
    }

    pub(super) fn run<'t>(mut self, mut parser: Parser<'t, StrInput<'t>>) -> Result<Document, YamlError> {
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| {
                let place = self.origin.fault_place(&error);
                YamlError { place, fault: YamlFault::Syntax(error.info()) }
            })?;
            let ends = matches!(event, Event::StreamEnd);
            self.take(event, &span)?;
            if ends {
                break;
            }
        }
        Ok(Document { node: self.root, notices: self.notices })
    }

    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlError> {
        let place = self.origin.place(&span.start);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(YamlError { place, fault: YamlFault::SecondDocument });
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => self.take_scalar(&text, style, anchor, tag, place),
            Event::SequenceStart(_, anchor, tag) => {
                let mark = collection_mark(tag, "seq", &place)?;
                self.open(Kind::List(Vec::new()), place, mark, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                let mark = collection_mark(tag, "map", &place)?;
                let kind = Kind::Map { mapping: Mapping::new(), key: None, merged: Vec::new() };
                self.open(kind, place, mark, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.repeat(anchor, place),
            _ => Ok(()),
        }
    }

    fn open(&mut self, kind: Kind, place: Place, mark: Mark, anchor: usize) -> Result<(), YamlError> {
        if self.key_is_due() {
            return Err(YamlError { place, fault: YamlFault::KeyNotText });
        }
        if self.stack.len() >= self.limits.depth {
            return Err(YamlError { place, fault: YamlFault::TooDeep(self.limits.depth) });
        }
        self.count(1, &place)?;
        self.stack.push(Open { kind, place, mark, anchor });
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(open) = self.stack.pop() else { return Ok(()) };
        let value = match open.kind {
            Kind::List(items) => NodeValue::List(items),
            Kind::Map { mapping, merged, .. } => NodeValue::Map(self.merge(mapping, merged)?),
        };
        let mut node = Node::new(value, open.place);
        node.mark = open.mark;
        self.finish(node, open.anchor)
    }

    /// Keys that come through `<<` stand first and give way to keys that are written out.
    fn merge(&mut self, own: Mapping, merged: Vec<Node>) -> Result<Mapping, YamlError> {
        if merged.is_empty() {
            return Ok(own);
        }
        let mut result = Mapping::new();
        for node in merged {
            let place = node.place.clone();
            let parts = match node.value {
                NodeValue::Map(mapping) => vec![mapping],
                NodeValue::List(items) => {
                    let mappings = items.into_iter().map(|item| match item.value {
                        NodeValue::Map(mapping) => Ok(mapping),
                        _ => Err(YamlError { place: item.place, fault: YamlFault::MergeKey }),
                    });
                    mappings.collect::<Result<_, _>>()?
                }
                _ => return Err(YamlError { place, fault: YamlFault::MergeKey }),
            };
            for (key, entry) in parts.into_iter().flatten() {
                result.entry(key).or_insert(entry);
            }
        }
        result.extend(own);
        Ok(result)
    }

    fn take_scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        place: Place,
    ) -> Result<(), YamlError> {
        self.count(1, &place)?;
        if self.key_is_due() {
            // A key is its spelling: `on:` and `1:` are names here.
            if anchor > 0 {
                let node = Node::text(text, &place);
                self.anchors.insert(anchor, (node, 1));
            }
            return self.take_key(text, style, place);
        }
        let mut mark = Mark::Merge;
        let value = match tag.as_deref() {
            Some(tag) => match our_tag(tag) {
                Some(ours) => {
                    mark = ours;
                    self.plain_value(text, style, &place)
                }
                None => tagged(text, tag)
                    .ok_or_else(|| YamlError { place: place.clone(), fault: tag_fault(tag, text) })?,
            },
            None => self.plain_value(text, style, &place),
        };
        let mut node = Node::new(value, place);
        node.mark = mark;
        self.finish(node, anchor)
    }

    fn plain_value(&mut self, text: &str, style: ScalarStyle, place: &Place) -> NodeValue {
        if style != ScalarStyle::Plain {
            return NodeValue::Text(text.to_owned());
        }
        let resolved = scalar::resolve(text);
        if let Some(doubt) = resolved.doubt {
            let hint = "write `true` or `false` for a truth, quote the value when it is text";
            self.notices.push(Notice::warning(Code::AmbiguousScalar, place, doubt).with_hint(hint));
        }
        resolved.value
    }

    fn take_key(&mut self, text: &str, style: ScalarStyle, place: Place) -> Result<(), YamlError> {
        if let Some(Open { kind: Kind::Map { key, .. }, .. }) = self.stack.last_mut() {
            // `"<<"` in quotes is an ordinary key; the marker is told apart by a name no plain key can have.
            let name = if style == ScalarStyle::Plain && text == MERGE { MERGE_MARKER } else { text };
            *key = Some((name.to_owned(), place));
        }
        Ok(())
    }

    fn repeat(&mut self, anchor: usize, place: Place) -> Result<(), YamlError> {
        // Counted before it is copied: a bomb must not go off first.
        let size = self.anchors.get(&anchor).map_or(0, |(_, size)| *size);
        self.count(size, &place)?;
        let Some(mut node) = self.anchors.get(&anchor).map(|(node, _)| node.clone()) else {
            return Err(YamlError { place, fault: YamlFault::EndlessAlias });
        };
        if self.key_is_due() {
            let Some(text) = node.spelled().map(str::to_owned) else {
                return Err(YamlError { place, fault: YamlFault::KeyNotText });
            };
            return self.take_key(&text, ScalarStyle::DoubleQuoted, place);
        }
        if depth(&node) + self.stack.len() > self.limits.depth {
            return Err(YamlError { place, fault: YamlFault::TooDeep(self.limits.depth) });
        }
        node.place = place;
        self.finish(node, 0)
    }

    /// Hands a finished value to the collection it belongs to.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        if anchor > 0 {
            let size = node.count();
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.stack.last_mut().map(|open| &mut open.kind) {
            None => self.root = Some(node),
            Some(Kind::List(items)) => items.push(node),
            Some(Kind::Map { mapping, key, merged }) => {
                let Some((name, place)) = key.take() else { return Ok(()) };
                if name == MERGE_MARKER {
                    merged.push(node);
                    return Ok(());
                }
                if let Some(notice) = insert(mapping, name, Entry { key: place, node }) {
                    self.notices.push(notice);
                }
            }
        }
        Ok(())
    }

    fn key_is_due(&self) -> bool {
        matches!(self.stack.last(), Some(Open { kind: Kind::Map { key: None, .. }, .. }))
    }

    fn count(&mut self, nodes: usize, place: &Place) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > self.limits.nodes {
            let fault = YamlFault::TooManyNodes(self.limits.nodes);
            return Err(YamlError { place: place.clone(), fault });
        }
        Ok(())
    }
}

const MERGE: &str = "<<";
const MERGE_MARKER: &str = "\u{0}<<";

/// The last of two equal keys counts, as everywhere; that there are two is told.
fn insert(mapping: &mut Mapping, name: String, entry: Entry) -> Option<Notice> {
    match mapping.entry(name) {
        Slot::Vacant(slot) => {
            slot.insert(entry);
            None
        }
        Slot::Occupied(mut slot) => {
            let message = format!(
                "`{}` is written twice; the first stands in line {}",
                slot.key(),
                slot.get().key.line
            );
            let notice = Notice::warning(Code::DuplicateKey, &entry.key, message)
                .with_hint("only the last one counts; remove the other");
            slot.insert(entry);
            Some(notice)
        }
    }
}

fn depth(node: &Node) -> usize {
    match &node.value {
        NodeValue::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        NodeValue::Map(mapping) => 1 + mapping.values().map(|entry| depth(&entry.node)).max().unwrap_or(0),
        _ => 0,
    }
}

fn our_tag(tag: &Tag) -> Option<Mark> {
    match tag.original().as_str() {
        "!replace" => Some(Mark::Replace),
        "!delete" => Some(Mark::Delete),
        _ => None,
    }
}

fn collection_mark(tag: Option<Cow<'_, Tag>>, own: &str, place: &Place) -> Result<Mark, YamlError> {
    let Some(tag) = tag else { return Ok(Mark::Merge) };
    if let Some(mark) = our_tag(&tag) {
        return Ok(mark);
    }
    if tag.core_suffix() == Some(own) || tag.original() == "!" {
        return Ok(Mark::Merge);
    }
    Err(YamlError { place: place.clone(), fault: YamlFault::UnknownTag(tag.original()) })
}

/// A scalar whose type its author named.
fn tagged(text: &str, tag: &Tag) -> Option<NodeValue> {
    if tag.original() == "!" {
        return Some(NodeValue::Text(text.to_owned()));
    }
    match tag.core_suffix()? {
        "str" => Some(NodeValue::Text(text.to_owned())),
        "null" => text.is_empty().then_some(NodeValue::Null).or_else(|| {
            let value = scalar::resolve(text).value;
            matches!(value, NodeValue::Null).then_some(value)
        }),
        "bool" => Some(scalar::resolve(text).value).filter(|value| matches!(value, NodeValue::Bool(..))),
        "int" => scalar::integer(text).map(|found| found.value),
        "float" => scalar::float(text).map(|found| found.value),
        _ => None,
    }
}

fn tag_fault(tag: &Tag, text: &str) -> YamlFault {
    match tag.core_suffix() {
        Some("str" | "null" | "bool" | "int" | "float" | "map" | "seq") => {
            YamlFault::TagMismatch { tag: tag.original(), text: text.to_owned() }
        }
        _ => YamlFault::UnknownTag(tag.original()),
    }
}
