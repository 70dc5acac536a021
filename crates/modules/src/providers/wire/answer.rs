//! Joins pieces to an answer: stream events as they come, the whole answer at the end. Pure.

use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::content::{ContentBlock, Extra, TextBlock, ThinkingBlock, ToolCallBlock};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use amplifier_protocol::usage::Usage;
use serde_json::{Map, Value};

use super::Piece;

/// An answer that forms.
pub(super) struct Answer {
    request_id: String,
    // Blocks of an earlier try that broke off behind them, and how many numbers earlier tries have used up.
    kept: Vec<ContentBlock>,
    base: u32,
    blocks: Vec<Forming>,
    usage: Option<Usage>,
    finish: Option<String>,
    notes: Map<String, Value>,
    ended: bool,
    shown: usize,
}

struct Forming {
    key: u32,
    content: Content,
    extra: Extra,
    whole: bool,
}

enum Content {
    Text(String),
    Thinking { text: String, signature: Option<String>, state: Option<Vec<Value>> },
    Call { id: String, name: String, arguments: String },
    Whole(ContentBlock),
}

/// What a try that broke off leaves to the next.
pub(super) enum Broken {
    /// Nothing that a person saw: the next try begins where this one did.
    Afresh { kept: Vec<ContentBlock>, base: u32 },
    /// Whole blocks, behind which the next try goes on.
    Behind { kept: Vec<ContentBlock>, base: u32 },
    /// Part of a block was shown; there is no next try. So many characters of it.
    Shown { characters: usize },
}

impl Answer {
    /// An answer behind what earlier tries left.
    pub(super) fn after(request_id: &str, kept: Vec<ContentBlock>, base: u32) -> Self {
        Self {
            request_id: request_id.to_owned(),
            kept,
            base,
            blocks: Vec::new(),
            usage: None,
            finish: None,
            notes: Map::new(),
            ended: false,
            shown: 0,
        }
    }

    /// Takes a piece; what listeners shall hear of it comes back.
    pub(super) fn take(&mut self, piece: Piece) -> Vec<StreamEvent> {
        match piece {
            Piece::Text { text, .. } | Piece::Thinking { text, .. } if text.is_empty() => Vec::new(),
            Piece::Text { block, text } => {
                let index = self.text(block, &text);
                vec![StreamEvent::TextDelta { index, text }]
            }
            Piece::Thinking { block, text } => {
                let (index, forming) = self.thinking(block);
                if let Content::Thinking { text: so_far, .. } = &mut forming.content {
                    so_far.push_str(&text);
                }
                vec![StreamEvent::ThinkingDelta { index, text }]
            }
            Piece::Signature { block, signature } => {
                if let Content::Thinking { signature: kept, .. } = &mut self.thinking(block).1.content {
                    *kept = Some(signature);
                }
                Vec::new()
            }
            Piece::ThinkingState { block, content } => {
                if let Content::Thinking { state, .. } = &mut self.thinking(block).1.content {
                    *state = Some(content);
                }
                Vec::new()
            }
            Piece::CallStart { block, id, name } => self.begin_call(block, id, name),
            Piece::CallArguments { block, fragment } => self.arguments(block, fragment),
            Piece::BlockEnd { block } => self.end_block(block),
            other => {
                self.note(other);
                Vec::new()
            }
        }
    }

    /// What nobody hears of before the end.
    fn note(&mut self, piece: Piece) {
        match piece {
            Piece::Extra { block, key, value } => {
                if let Some(forming) = self.blocks.iter_mut().find(|forming| forming.key == block) {
                    forming.extra.insert(key, value);
                }
            }
            Piece::Block { block, content } => {
                let (_, forming) = self.find(block, || Content::Whole(content));
                forming.whole = true;
            }
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Finish(reason) => self.finish = Some(reason),
            Piece::Note(key, value) => {
                self.notes.insert(key, value);
            }
            Piece::End => self.ended = true,
            _ => {}
        }
    }

    fn text(&mut self, block: u32, text: &str) -> u32 {
        let (index, forming) = self.find(block, || Content::Text(String::new()));
        if let Content::Text(so_far) = &mut forming.content {
            so_far.push_str(text);
        }
        index
    }

    fn thinking(&mut self, block: u32) -> (u32, &mut Forming) {
        self.find(block, || Content::Thinking { text: String::new(), signature: None, state: None })
    }

    fn begin_call(&mut self, block: u32, id: Option<String>, name: String) -> Vec<StreamEvent> {
        // A service that names no calls would make all results collide.
        let number = self.base as usize + self.blocks.len();
        let id =
            id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call-{}-{number}", self.request_id));
        let content = || Content::Call { id: id.clone(), name: name.clone(), arguments: String::new() };
        let (index, _) = self.find(block, content);
        vec![StreamEvent::ToolCallStart { index, id, name }]
    }

    fn arguments(&mut self, block: u32, fragment: String) -> Vec<StreamEvent> {
        let Some(at) = self.blocks.iter().position(|forming| forming.key == block) else { return Vec::new() };
        let index = self.number(at);
        match self.blocks.get_mut(at).map(|forming| &mut forming.content) {
            Some(Content::Call { arguments, .. }) if !fragment.is_empty() => {
                arguments.push_str(&fragment);
                vec![StreamEvent::ToolCallDelta { index, arguments_fragment: fragment }]
            }
            _ => Vec::new(),
        }
    }

    fn end_block(&mut self, block: u32) -> Vec<StreamEvent> {
        let Some(at) = self.blocks.iter().position(|forming| forming.key == block) else { return Vec::new() };
        let index = self.number(at);
        match self.blocks.get_mut(at) {
            Some(forming) if !forming.whole => {
                forming.whole = true;
                match &forming.content {
                    Content::Call { arguments, .. } => {
                        vec![StreamEvent::ToolCallEnd { index, arguments: read_arguments(arguments) }]
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn find(&mut self, key: u32, make: impl FnOnce() -> Content) -> (u32, &mut Forming) {
        let at = self.blocks.iter().position(|forming| forming.key == key);
        let at = at.unwrap_or_else(|| {
            self.blocks.push(Forming { key, content: make(), extra: Extra::new(), whole: false });
            self.blocks.len() - 1
        });
        let index = self.number(at);
        #[expect(clippy::indexing_slicing, reason = "the place was found or made above")]
        (index, &mut self.blocks[at])
    }

    fn number(&self, at: usize) -> u32 {
        self.base.saturating_add(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// Notes that a listener saw this many characters of text or thinking.
    pub(super) fn showed(&mut self, characters: usize) {
        self.shown += characters;
    }

    /// Whether anything of it was shown.
    pub(super) fn was_shown(&self) -> bool {
        self.shown > 0
    }

    /// Whether the service said all it wanted to say.
    pub(super) fn is_complete(&self) -> bool {
        self.ended || self.finish.is_some()
    }

    /// Whether the service said that nothing more comes.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// The ends of the calls that no `BlockEnd` ended.
    pub(super) fn close(&mut self) -> Vec<StreamEvent> {
        let keys: Vec<_> = self.blocks.iter().map(|forming| forming.key).collect();
        keys.into_iter().flat_map(|key| self.end_block(key)).collect()
    }

    /// What the next try can build on. A block is whole when it was ended or another began behind it.
    pub(super) fn broken(self) -> Broken {
        let base = self.number(self.blocks.len());
        if self.shown == 0 {
            return Broken::Afresh { kept: self.kept, base };
        }
        let last = self.blocks.len().saturating_sub(1);
        let whole = |(at, forming): (usize, &Forming)| forming.whole || at < last;
        let shown_in_part =
            self.blocks.iter().enumerate().any(|(at, forming)| {
                !whole((at, forming)) && !matches!(forming.content, Content::Call { .. })
            });
        if shown_in_part {
            return Broken::Shown { characters: self.shown };
        }
        // A call stands only behind its end: half of its arguments are none.
        let is_kept = |forming: &Forming| forming.whole || !matches!(forming.content, Content::Call { .. });
        let mut kept = self.kept;
        kept.extend(self.blocks.into_iter().take_while(is_kept).map(Forming::block));
        Broken::Behind { kept, base }
    }

    /// The whole answer.
    pub(super) fn finish(self) -> Result<ChatResponse, LlmError> {
        let reason = self.finish.or_else(|| self.ended.then(|| "stop".to_owned()));
        let content: Vec<_> =
            self.kept.into_iter().chain(self.blocks.into_iter().map(Forming::block)).collect();
        if content.is_empty() && reason.as_deref() == Some("content_filter") {
            return Err(LlmError::new(
                LlmErrorKind::ContentFilter,
                "the service refused to answer this content",
            ));
        }
        let calls: Vec<_> = content.iter().filter_map(call_of).collect();
        Ok(ChatResponse {
            tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
            content,
            usage: self.usage,
            finish_reason: reason,
            metadata: Some(self.notes).filter(|notes| !notes.is_empty()),
            ..ChatResponse::default()
        })
    }
}

fn call_of(block: &ContentBlock) -> Option<ToolCall> {
    let ContentBlock::ToolCall(block) = block else { return None };
    let call = ToolCall::new(block.id.clone(), block.name.clone(), block.input.clone());
    Some(ToolCall { extra: block.extra.clone(), ..call })
}

/// Nothing is no arguments; what is not JSON stays the text it is, so that the model is told what it wrote.
fn read_arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

impl Forming {
    fn block(self) -> ContentBlock {
        let extra = self.extra;
        match self.content {
            Content::Text(text) => ContentBlock::Text(TextBlock { text, visibility: None, extra }),
            Content::Thinking { text: thinking, signature, state: content } => {
                ContentBlock::Thinking(ThinkingBlock {
                    thinking,
                    signature,
                    content,
                    visibility: None,
                    extra,
                })
            }
            Content::Call { id, name, arguments } => {
                let input = read_arguments(&arguments);
                ContentBlock::ToolCall(ToolCallBlock { id, name, input, visibility: None, extra })
            }
            Content::Whole(block) => block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(block: u32, text: &str) -> Piece {
        Piece::Text { block, text: text.to_owned() }
    }

    fn call(block: u32) -> Piece {
        Piece::CallStart { block, id: Some("c".to_owned()), name: "t".to_owned() }
    }

    fn broken(pieces: Vec<Piece>, shown: usize) -> Broken {
        let mut answer = Answer::after("r", Vec::new(), 0);
        pieces.into_iter().for_each(|piece| drop(answer.take(piece)));
        answer.showed(shown);
        answer.broken()
    }

    #[test]
    fn what_nobody_saw_is_begun_again_under_new_numbers() {
        let Broken::Afresh { kept, base } = broken(vec![call(7)], 0) else { panic!() };
        assert_eq!((kept.len(), base), (0, 1));
    }

    #[test]
    fn whole_blocks_are_kept_and_half_a_call_is_not() {
        let fragment = "{\"a".to_owned();
        let pieces = vec![text(0, "whole"), call(1), Piece::CallArguments { block: 1, fragment }];
        let Broken::Behind { kept, base } = broken(pieces, 5) else { panic!() };
        assert_eq!((kept, base), (vec![ContentBlock::text("whole")], 2));
        let pieces = vec![text(0, "whole"), call(1), Piece::BlockEnd { block: 1 }, call(2)];
        let Broken::Behind { kept, base } = broken(pieces, 5) else { panic!() };
        assert_eq!((kept.len(), base), (2, 3));
    }

    #[test]
    fn half_a_text_that_was_shown_is_the_end() {
        let Broken::Shown { characters } = broken(vec![call(1), text(0, "ha")], 2) else { panic!() };
        assert_eq!(characters, 2);
        let ended = vec![text(0, "whole"), Piece::BlockEnd { block: 0 }];
        assert!(matches!(broken(ended, 5), Broken::Behind { .. }));
    }

    #[test]
    fn a_refusal_without_a_word_is_an_error() {
        let mut answer = Answer::after("r", Vec::new(), 0);
        answer.take(Piece::Finish("content_filter".to_owned()));
        assert_eq!(answer.finish().unwrap_err().kind, LlmErrorKind::ContentFilter);
    }
}
