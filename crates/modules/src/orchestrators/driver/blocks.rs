//! The blocks of a forming answer: which begins, which goes on, which is whole. Pure: pieces in, what to tell out.
//!
//! Every block begins once and ends once under one index, whatever a provider numbers its pieces with and whether or not
//! its whole answer holds the same blocks.

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::{ContentBlockDelta, ContentBlockStart};
use amplifier_protocol::stream::StreamEvent;
use serde_json::{Value, json};

/// The blocks of one answer, as far as they were told.
#[derive(Default)]
pub(super) struct Blocks(Vec<Forming>);

struct Forming {
    // What the provider numbers it with.
    place: u32,
    kind: &'static str,
    // What it is told under.
    index: u64,
    so_far: String,
    call_id: Option<String>,
    ended: bool,
}

/// What to tell of one piece.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) start: Option<ContentBlockStart>,
    pub(super) delta: Option<ContentBlockDelta>,
}

/// Where a block of the whole answer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u64,
    /// Whether its beginning was told.
    pub(super) begun: bool,
}

impl Blocks {
    /// Takes the next piece.
    pub(super) fn take(&mut self, piece: StreamEvent) -> Piece {
        match piece {
            StreamEvent::TextDelta { index, text } => self.grow(index, "text", text),
            StreamEvent::ThinkingDelta { index, text } => self.grow(index, "thinking", text),
            StreamEvent::ToolCallDelta { index, arguments_fragment } => {
                self.grow(index, "tool_call", arguments_fragment)
            }
            StreamEvent::ToolCallStart { index, id, name } => {
                let (at, start) = self.find(index, "tool_call");
                let metadata = Some(json!({"id": id, "name": name}));
                if let Some(block) = self.0.get_mut(at) {
                    block.call_id = Some(id);
                }
                Piece { start: start.map(|start| ContentBlockStart { metadata, ..start }), delta: None }
            }
            // The whole answer says the rest.
            _ => Piece::default(),
        }
    }

    fn grow(&mut self, place: u32, kind: &'static str, text: String) -> Piece {
        if text.is_empty() {
            return Piece::default();
        }
        let (at, start) = self.find(place, kind);
        let Some(block) = self.0.get_mut(at) else { return Piece::default() };
        block.so_far.push_str(&text);
        let delta = ContentBlockDelta { block_type: kind.to_owned(), block_index: block.index, text };
        Piece { start, delta: Some(delta) }
    }

    /// The block of a piece and, when this is its first one, its beginning.
    fn find(&mut self, place: u32, kind: &'static str) -> (usize, Option<ContentBlockStart>) {
        if let Some(at) = self.0.iter().position(|block| block.place == place && block.kind == kind) {
            return (at, None);
        }
        let index = self.free(u64::from(place));
        let (so_far, call_id, ended) = (String::new(), None, false);
        self.0.push(Forming { place, kind, index, so_far, call_id, ended });
        let (block_type, block_index) = (kind.to_owned(), index);
        let start = ContentBlockStart { block_type, block_index, ..ContentBlockStart::default() };
        (self.0.len() - 1, Some(start))
    }

    fn free(&self, wanted: u64) -> u64 {
        let taken = self.0.iter().any(|block| block.index == wanted);
        let behind = self.0.iter().map(|block| block.index + 1).max();
        if taken { behind.unwrap_or(wanted) } else { wanted }
    }

    /// Where each block of the whole answer is told: under the index of its pieces, or under its own when it had none.
    pub(super) fn settle(&mut self, content: &[ContentBlock]) -> Vec<Place> {
        if self.0.is_empty() {
            return (0..).take(content.len()).map(|index| Place { index, begun: false }).collect();
        }
        let mut places: Vec<Option<u64>> = content.iter().map(|_| None).collect();
        // Those that stand where their pieces said come first, so that a block without pieces cannot take another's.
        for exactly in [true, false] {
            for ((at, block), place) in (0_u64..).zip(content).zip(&mut places) {
                if place.is_none() {
                    *place = self.end_like(block, exactly.then_some(at));
                }
            }
        }
        let mut settled = Vec::with_capacity(content.len());
        for (at, place) in (0_u64..).zip(places) {
            settled.push(match place {
                Some(index) => Place { index, begun: true },
                None => Place { index: self.reserve(at), begun: false },
            });
        }
        settled
    }

    /// Ends the first open block of this kind, or the one at that index.
    fn end_like(&mut self, whole: &ContentBlock, at: Option<u64>) -> Option<u64> {
        let kind = whole.kind();
        let id = match whole {
            ContentBlock::ToolCall(call) => Some(&call.id),
            _ => None,
        };
        let fits = |block: &&mut Forming| {
            let same_call = block.call_id.is_none() || block.call_id.as_ref() == id;
            !block.ended && block.kind == kind && same_call && at.is_none_or(|at| at == block.index)
        };
        let block = self.0.iter_mut().find(fits)?;
        block.ended = true;
        Some(block.index)
    }

    fn reserve(&mut self, wanted: u64) -> u64 {
        let index = self.free(wanted);
        let (so_far, call_id, ended) = (String::new(), None, true);
        self.0.push(Forming { place: u32::MAX, kind: "", index, so_far, call_id, ended });
        index
    }

    /// The blocks that were begun and are not in the whole answer, or that have none because it broke off. Each is what
    /// came of it, marked as such.
    pub(super) fn broken_off(self) -> Vec<(u64, Value)> {
        let open = self.0.into_iter().filter(|block| !block.ended);
        let told = |block: Forming| {
            let key = if block.kind == "tool_call" { "arguments" } else { block.kind };
            (block.index, json!({"type": block.kind, key: block.so_far, "incomplete": true}))
        };
        open.map(told).collect()
    }

    /// Whether a person saw anything of the answer: words or thoughts, not the arguments of a call.
    pub(super) fn shown(&self) -> bool {
        self.0.iter().any(|block| matches!(block.kind, "text" | "thinking") && !block.so_far.is_empty())
    }

    /// The text so far, as a person reads it.
    pub(super) fn text(&self) -> String {
        let texts = self.0.iter().filter(|block| block.kind == "text").map(|block| block.so_far.as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::content::{ThinkingBlock, ToolCallBlock};

    fn text(index: u32, text: &str) -> StreamEvent {
        StreamEvent::TextDelta { index, text: text.to_owned() }
    }

    fn thinking(index: u32, text: &str) -> StreamEvent {
        StreamEvent::ThinkingDelta { index, text: text.to_owned() }
    }

    fn thought(text: &str) -> ContentBlock {
        ContentBlock::Thinking(ThinkingBlock { thinking: text.to_owned(), ..ThinkingBlock::default() })
    }

    fn call(id: &str) -> ContentBlock {
        ContentBlock::ToolCall(ToolCallBlock { id: id.to_owned(), ..ToolCallBlock::default() })
    }

    fn begun(index: u64) -> Place {
        Place { index, begun: true }
    }

    fn fresh(index: u64) -> Place {
        Place { index, begun: false }
    }

    #[test]
    fn a_block_begins_with_its_first_piece_and_only_with_that() {
        let mut blocks = Blocks::default();
        let first = blocks.take(text(0, "a"));
        assert_eq!(first.start.unwrap().block_index, 0);
        assert_eq!(first.delta.unwrap().text, "a");
        assert_eq!(blocks.take(text(0, "b")).start, None);
        assert_eq!(blocks.take(text(0, "")), Piece::default());
        assert_eq!(blocks.settle(&[ContentBlock::text("ab")]), [begun(0)]);
        assert!(blocks.broken_off().is_empty());
    }

    #[test]
    fn kinds_that_share_a_number_are_told_apart() {
        let mut blocks = Blocks::default();
        blocks.take(thinking(0, "hm"));
        let start = blocks.take(text(0, "hi")).start.unwrap();
        assert_eq!((start.block_index, start.block_type.as_str()), (1, "text"));
        assert_eq!(blocks.settle(&[thought("hm"), ContentBlock::text("hi")]), [begun(0), begun(1)]);
    }

    #[test]
    fn a_block_without_pieces_takes_no_index_of_one_that_has_them() {
        let mut blocks = Blocks::default();
        blocks.take(text(1, "x"));
        assert_eq!(blocks.settle(&[ContentBlock::text(""), ContentBlock::text("x")]), [fresh(0), begun(1)]);
        let mut blocks = Blocks::default();
        blocks.take(text(0, "x"));
        assert_eq!(blocks.settle(&[thought(""), ContentBlock::text("x")]), [fresh(1), begun(0)]);
    }

    #[test]
    fn calls_are_joined_by_their_ids() {
        let mut blocks = Blocks::default();
        for (index, id) in [(0, "b"), (1, "a")] {
            blocks.take(StreamEvent::ToolCallStart { index, id: id.to_owned(), name: "t".to_owned() });
        }
        let piece = StreamEvent::ToolCallDelta { index: 1, arguments_fragment: "{}".to_owned() };
        assert_eq!(blocks.take(piece).start, None);
        assert_eq!(blocks.settle(&[call("a"), call("b")]), [begun(1), begun(0)]);
    }

    #[test]
    fn what_broke_off_is_told_as_such() {
        let mut blocks = Blocks::default();
        blocks.take(StreamEvent::ToolCallStart { index: 2, id: "a".to_owned(), name: "t".to_owned() });
        assert!(!blocks.shown(), "a call is nothing that was said");
        let mut blocks = Blocks::default();
        blocks.take(thinking(0, "hm"));
        assert!(blocks.shown());
        blocks.take(text(1, "so f"));
        assert_eq!(blocks.text(), "so f");
        let thought = json!({"type": "thinking", "incomplete": true, "thinking": "hm"});
        let said = json!({"type": "text", "incomplete": true, "text": "so f"});
        assert_eq!(blocks.broken_off(), [(0, thought), (1, said)]);
    }
}
