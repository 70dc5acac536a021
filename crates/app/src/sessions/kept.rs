//! What the transcript still has of records that a journal has lost. The transcript is the conversation in order, and so are
//! the messages of the journal: what stands between two of them there belongs between them here. Only a transcript whose
//! checksum holds is believed, and only where every message of the journal is found in it in one way; else nothing is.

use std::collections::HashMap;
use std::sync::Arc;

use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::record::RecordBody;

use crate::journal::{Around, JournalFileError, Passage};
use crate::paths::SessionFolder;
use crate::store::transcript_of;

/// Messages of the journal without anything missing between them, and the gap before them.
#[derive(Default)]
struct Run {
    gap: Option<Hole>,
    /// Gaps right behind that one: nothing stands between them, so nothing tells what was in which.
    more: Vec<u64>,
    messages: Messages,
}

/// A gap, by its first record; so many are missing.
#[derive(Clone, Copy)]
struct Hole {
    from: u64,
    records: u64,
}

/// The messages of lost records, by the first record of the gap they stood in; none where it is known that none did.
pub(super) fn kept_in_gaps(folder: &SessionFolder) -> HashMap<u64, Messages> {
    let Some((seq, said)) = transcript_of(folder) else { return HashMap::new() };
    // What cannot be read is told by whoever asked for this.
    let runs = runs(folder, seq).unwrap_or_default();
    fill(&runs, &said).unwrap_or_default()
}

/// The messages that the journal gives up to a record, since the conversation was last replaced.
fn runs(folder: &SessionFolder, last: u64) -> Result<Vec<Run>, JournalFileError> {
    let mut around = Around::open(folder, last)?;
    let mut runs = vec![Run::default()];
    loop {
        let hole = match around.advance()? {
            Passage::End => return Ok(runs),
            Passage::Gap(gap) if gap.from > last => return Ok(runs),
            Passage::Gap(gap) => Hole { from: gap.from, records: gap.records() },
            Passage::Line => {
                let Some(peek) = around.line() else { continue };
                if peek.seq > last {
                    return Ok(runs);
                }
                if !matches!(peek.kind(), "message" | "messages" | "$json") {
                    continue;
                }
                let seq = peek.seq;
                match peek.record_around() {
                    (Some(record), faults) if faults.is_empty() => {
                        take(&mut runs, record.body);
                        continue;
                    }
                    _ => Hole { from: seq, records: 1 },
                }
            }
        };
        match runs.last_mut() {
            Some(Run { gap: Some(before), messages, more }) if messages.is_empty() => {
                before.records = before.records.saturating_add(hole.records);
                more.push(hole.from);
            }
            _ => runs.push(Run { gap: Some(hole), ..Run::default() }),
        }
    }
}

fn take(runs: &mut Vec<Run>, body: RecordBody) {
    match (body, runs.last_mut()) {
        (RecordBody::Message(message), Some(run)) => run.messages.push(message),
        (RecordBody::Messages(messages), _) => *runs = vec![Run { messages, ..Run::default() }],
        _ => {}
    }
}

/// What stands in the gaps; nothing where that is not certain.
fn fill(runs: &[Run], said: &[Arc<Message>]) -> Option<HashMap<u64, Messages>> {
    let (first, later) = runs.split_first()?;
    let mut at = first.messages.len();
    if said.get(..at)? != first.messages.as_slice() {
        return None;
    }
    let mut filled = HashMap::new();
    for (number, run) in (1..).zip(later) {
        let hole = run.gap?;
        let length = run.messages.len();
        let fits = |begin: &usize| said.get(*begin..begin + length) == Some(run.messages.as_slice());
        let most = usize::try_from(hole.records).unwrap_or(usize::MAX).saturating_add(at);
        let begin = match number == later.len() {
            true => said.len().checked_sub(length).filter(|begin| (at..=most).contains(begin) && fits(begin)),
            false => {
                let mut places = (at..=most.min(said.len())).filter(fits);
                places.next().filter(|_| places.next().is_none())
            }
        }?;
        filled.insert(hole.from, said.get(at..begin)?.to_vec());
        filled.extend(run.more.iter().map(|from| (*from, Messages::new())));
        at = begin + length;
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &str) -> Messages {
        texts.chars().map(|text| Arc::new(Message::user(text))).collect()
    }

    /// Runs as letters, a number between two being how many records are missing there.
    fn filled(runs: &str, said: &str) -> Option<Vec<(u64, String)>> {
        let mut all = vec![Run::default()];
        for (at, letter) in (0..).zip(runs.chars()) {
            match letter.to_digit(10) {
                Some(records) => {
                    all.push(Run { gap: Some(Hole { from: at, records: records.into() }), ..Run::default() })
                }
                None => all.last_mut().unwrap().messages.extend(messages(&letter.to_string())),
            }
        }
        let text = |messages: &Messages| messages.iter().map(|m| m.content.visible_text()).collect();
        let mut filled: Vec<_> =
            fill(&all, &messages(said))?.iter().map(|(from, messages)| (*from, text(messages))).collect();
        filled.sort();
        Some(filled)
    }

    #[test]
    fn what_stands_between_is_found_where_it_can_be_only_that() {
        assert_eq!(filled("ab3e", "abcde"), Some(vec![(2, "cd".to_owned())]));
        assert_eq!(filled("2cde", "abcde"), Some(vec![(0, "ab".to_owned())]));
        assert_eq!(filled("ab9", "abcde"), Some(vec![(2, "cde".to_owned())]));
        assert_eq!(filled("9", "abc"), Some(vec![(0, "abc".to_owned())]));
        // Only an event was lost.
        assert_eq!(filled("ab1cd", "abcd"), Some(vec![(2, String::new())]));
        assert_eq!(filled("a1c1e", "abcde"), Some(vec![(1, "b".to_owned()), (3, "d".to_owned())]));
    }

    #[test]
    fn what_is_not_certain_is_not_taken() {
        // More than was lost, another conversation, and two places for the middle.
        assert_eq!(filled("ab1e", "abcde"), None);
        assert_eq!(filled("ax1e", "abcde"), None);
        assert_eq!(filled("a3c3e", "acxce"), None);
    }
}
