//! The answer as it forms: the call, its pieces, and the blocks that come of them, told as events.

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::DeltaSink;
use amplifier_core::coordinator::CallError;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::{
    ContentBlockDelta, ContentBlockEnd, ContentBlockStart, Event, ThinkingDelta, ThinkingFinal,
};
use amplifier_protocol::stream::StreamEvent;
use serde_json::Value;
use tokio::time::Instant;

use super::blocks::{Blocks, Place};
use super::{Streaming, Turn};

impl Turn<'_> {
    /// Makes the call; where the answer is wanted as it forms, the pieces are told as they come.
    pub(super) async fn call(
        &mut self,
        name: &str,
        request: ChatRequest,
        blocks: &mut Blocks,
    ) -> Result<ChatResponse, CallError> {
        let hooks = self.coordinator.hooks();
        let watched = || hooks.has(ContentBlockDelta::NAME) || hooks.has(ThinkingDelta::NAME);
        let answer = if self.policy.streaming == Streaming::Always || watched() {
            // Boxed here and in the other places that are passed seldom: every turn would carry their size.
            Box::pin(self.call_streaming(name, request, blocks)).await
        } else {
            self.coordinator.call_provider(name, request, DeltaSink::default()).await
        };
        if !self.config.min_delay().is_zero() {
            self.last_call = Some(Instant::now());
        }
        answer
    }

    async fn call_streaming(
        &self,
        name: &str,
        mut request: ChatRequest,
        blocks: &mut Blocks,
    ) -> Result<ChatResponse, CallError> {
        request.stream = Some(true);
        let (sink, mut pieces) = DeltaSink::open();
        let cancel = self.coordinator.cancel();
        let mut call = std::pin::pin!(self.coordinator.call_provider(name, request, sink));
        let answer = loop {
            tokio::select! {
                biased;
                // Not after an immediate cancel: a provider that never stops sending must not keep the turn.
                Some(piece) = pieces.recv(), if !cancel.is_immediate() => self.tell_piece(piece, blocks).await,
                answer = call.as_mut() => break answer,
            }
        };
        while let Ok(piece) = pieces.try_recv()
            && !cancel.is_immediate()
        {
            self.tell_piece(piece, blocks).await;
        }
        answer
    }

    async fn tell_piece(&self, piece: StreamEvent, blocks: &mut Blocks) {
        let is_text = matches!(piece, StreamEvent::TextDelta { .. });
        let piece = blocks.take(piece);
        if let Some(start) = piece.start {
            self.coordinator.emit(start).await;
        }
        let Some(delta) = piece.delta else { return };
        if delta.block_type == "thinking" {
            self.coordinator.emit(ThinkingDelta { text: delta.text.clone() }).await;
        }
        self.coordinator.emit(delta).await;
        let pause = self.config.stream_delay();
        if is_text && !pause.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.coordinator.cancel().cancelled(CancelLevel::Immediate) => {}
            }
        }
    }

    /// Tells the end of every block, and the beginning of those that had no pieces.
    pub(super) async fn tell_blocks(&self, response: &ChatResponse, mut blocks: Blocks) {
        let total = response.content.len();
        let total_blocks = u64::try_from(total).ok();
        let places = blocks.settle(&response.content);
        for (at, (block, Place { index: block_index, begun })) in
            response.content.iter().zip(places).enumerate()
        {
            if !begun {
                let block_type = block.kind();
                let start = ContentBlockStart { block_type, block_index, total_blocks, metadata: None };
                self.coordinator.emit(start).await;
            }
            let usage = response.usage.clone().filter(|_| at + 1 == total);
            // A block that is not JSON cannot exist: it came from JSON or is made of texts and JSON values.
            let whole = serde_json::to_value(block).unwrap_or(Value::Null);
            self.coordinator.emit(ContentBlockEnd { block_index, total_blocks, block: whole, usage }).await;
            if let ContentBlock::Thinking(thinking) = block {
                self.coordinator.emit(ThinkingFinal { text: thinking.thinking.clone() }).await;
            }
        }
        self.tell_broken_off(blocks).await;
    }

    /// Ends what was begun and will not be whole, so that nobody waits for it.
    pub(super) async fn tell_broken_off(&self, blocks: Blocks) {
        for (block_index, block) in blocks.broken_off() {
            let end = ContentBlockEnd { block_index, total_blocks: None, block, usage: None };
            self.coordinator.emit(end).await;
        }
    }
}
