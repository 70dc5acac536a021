//! Cuts bytes into frames: server-sent events, or lines. Pure and incremental; it does not know what is in a frame.

use super::Framing;

/// One frame: an event's name and its data, or a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// The `event:` field; empty for a line or an event without one.
    pub(crate) event: String,
    /// The data; several `data:` fields are joined by a line break.
    pub(crate) data: String,
}

/// Takes bytes as they come and gives the frames they complete.
pub(super) struct Cutter {
    framing: Framing,
    // What came after the last line break.
    rest: Vec<u8>,
    // How much of it was looked at already.
    seen: usize,
    event: String,
    data: Option<String>,
    begun: bool,
}

impl Cutter {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, rest: Vec::new(), seen: 0, event: String::new(), data: None, begun: false }
    }

    /// The frames that these bytes complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        self.rest.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let rest = std::mem::take(&mut self.rest);
        let (mut start, mut at) = (0, self.seen);
        while let Some(offset) =
            rest.get(at..).and_then(|tail| tail.iter().position(|b| matches!(b, b'\n' | b'\r')))
        {
            let end = at + offset;
            let width = match rest.get(end..end + 2) {
                Some(b"\r\n") => 2,
                // The other half of this line break may still be on its way.
                None if rest.get(end) == Some(&b'\r') => break,
                _ => 1,
            };
            if let Some(line) = rest.get(start..end) {
                frames.extend(self.line(line));
            }
            start = end + width;
            at = start;
        }
        self.rest = rest.get(start..).map(<[u8]>::to_vec).unwrap_or_default();
        let held_back = usize::from(self.rest.last() == Some(&b'\r'));
        self.seen = self.rest.len() - held_back;
        frames
    }

    /// What is left when the bytes have ended. A last line without its break is a line; an event without its blank line
    /// was cut off and is none.
    pub(super) fn finish(&mut self) -> Option<Frame> {
        let rest = std::mem::take(&mut self.rest);
        let line = rest.strip_suffix(b"\r").unwrap_or(&rest);
        let frame = if line.is_empty() { None } else { self.line(line) };
        match self.framing {
            Framing::Lines => frame,
            // Some servers forget the last blank line behind a whole event; half a document fails in its reader.
            Framing::Events => self.end_event(),
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<Frame> {
        let text = String::from_utf8_lossy(line);
        let mut text = text.as_ref();
        if !self.begun {
            self.begun = true;
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        match self.framing {
            Framing::Lines if text.trim().is_empty() => None,
            Framing::Lines => Some(Frame { event: String::new(), data: text.to_owned() }),
            Framing::Events if text.is_empty() => self.end_event(),
            Framing::Events => {
                self.field(text);
                None
            }
        }
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments keep the connection alive; ids and delays are for clients that reconnect, which we do not.
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<Frame> {
        let event = std::mem::take(&mut self.event);
        self.data.take().map(|data| Frame { event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(event: &str, data: &str) -> Frame {
        Frame { event: event.to_owned(), data: data.to_owned() }
    }

    fn cut(framing: Framing, parts: &[&[u8]]) -> Vec<Frame> {
        let mut cutter = Cutter::new(framing);
        let mut frames: Vec<_> = parts.iter().flat_map(|part| cutter.push(part)).collect();
        frames.extend(cutter.finish());
        frames
    }

    const STREAM: &str = "\u{feff}event: a\r\ndata: {\"x\":1}\r\n\r\n: alive\n\ndata:one\ndata: two\n\nid: 7\rdata: é\r\rdata: [DONE]\n\n";

    #[test]
    fn every_line_ending_comments_and_joined_data_are_read() {
        let expected = [frame("a", "{\"x\":1}"), frame("", "one\ntwo"), frame("", "é"), frame("", "[DONE]")];
        assert_eq!(cut(Framing::Events, &[STREAM.as_bytes()]), expected);
    }

    #[test]
    fn lines_are_frames_and_blank_ones_are_none() {
        let expected = [frame("", "{\"a\":1}"), frame("", "{\"b\":2}")];
        assert_eq!(cut(Framing::Lines, &[b"{\"a\":1}\n\n{\"b\"", b":2}"]), expected);
    }

    proptest! {
        #[test]
        fn where_the_network_cuts_makes_no_difference(cuts in prop::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut parts, mut from) = (Vec::new(), 0);
            for to in cuts.into_iter().chain([STREAM.len()]) {
                parts.push(&STREAM.as_bytes()[from..to]);
                from = to;
            }
            prop_assert_eq!(cut(Framing::Events, &parts), cut(Framing::Events, &[STREAM.as_bytes()]));
        }
    }
}
