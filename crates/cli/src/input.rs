//! What was piped in: the prompt, or what the prompt is about.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use crate::render::{self, Remark};

/// The most that is taken from standard input. No model reads more at once.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// After how long a person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why there is nothing to ask.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("nothing was asked")]
    Nothing,
    #[error("the plan is read from standard input, and no prompt is given beside it")]
    Taken,
    #[error("the prompt on standard input is empty")]
    Empty,
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("standard input cannot be read")]
    Read(#[source] std::io::Error),
    #[error("standard input is not text: byte {at} is not UTF-8")]
    NotText { at: usize },
    #[error("standard input holds more than {}, the most that can be piped in", render::bytes(*most))]
    TooLarge { most: u64 },
}

impl InputError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::Empty | Self::EmptyPrompt => Some("give a prompt, or pipe one in"),
            Self::Taken => Some("give the prompt as an argument, or the plan as a file"),
            Self::NotText { .. } => Some(
                "convert text of another encoding, such as with `iconv -f LATIN1 -t UTF-8`; save what is no text to a file \
                 and ask the agent to look at that",
            ),
            Self::TooLarge { .. } => Some("save it to a file and ask the agent to look at that file"),
            Self::Read(_) => None,
        }
    }
}

/// What somebody asks.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub prompt: String,
    /// What was piped in beside the prompt.
    pub piped: Option<String>,
}

impl Asked {
    /// The prompt, as it became, with what was piped in behind it.
    pub fn joined(prompt: String, piped: Option<&str>) -> String {
        match piped {
            None => prompt,
            Some(piped) => format!("{prompt}\n\n<stdin>\n{}\n</stdin>", piped.trim_end_matches('\n')),
        }
    }
}

/// Whom standard input belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardInput {
    /// Whoever asks.
    Asker,
    /// Somebody who reads it for another purpose.
    Other,
}

/// The prompt that stands for standard input, as in other programs.
const STANDARD_INPUT: &str = "-";

/// The prompt of the command line with what was piped in, else standard input alone.
pub async fn read(prompt: Option<String>, owner: StandardInput) -> Result<Asked, InputError> {
    let is_wanted = prompt.as_deref() == Some(STANDARD_INPUT);
    let prompt = prompt.filter(|_| !is_wanted);
    if prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(InputError::EmptyPrompt);
    }
    if owner == StandardInput::Other {
        let prompt = prompt.ok_or(InputError::Taken)?;
        return Ok(Asked { prompt, piped: None });
    }
    if std::io::stdin().is_terminal() && !is_wanted {
        let prompt = prompt.ok_or(InputError::Nothing)?;
        return Ok(Asked { prompt, piped: None });
    }
    let reading = tokio::task::spawn_blocking(|| read_text(MAX_BYTES));
    tokio::pin!(reading);
    // A pipe that nobody closes would be waited for in silence for ever.
    let piped = match tokio::time::timeout(PATIENCE, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            Remark::note("waiting for the end of standard input; `</dev/null` leaves it out").tell();
            reading.await
        }
    };
    let piped = piped.map_err(|error| InputError::Read(std::io::Error::other(error)))??;
    join(prompt, piped)
}

/// All of standard input, if it is text and not more than so many bytes. Blocks until its end.
pub fn read_text(most: u64) -> Result<String, InputError> {
    text_of(std::io::stdin().lock(), most)
}

fn text_of(source: impl Read, most: u64) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(InputError::Read)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(InputError::TooLarge { most });
    }
    String::from_utf8(bytes).map_err(|error| InputError::NotText { at: error.utf8_error().valid_up_to() })
}

fn join(prompt: Option<String>, piped: String) -> Result<Asked, InputError> {
    let piped = Some(piped).filter(|text| !text.trim().is_empty());
    match (prompt, piped) {
        (Some(prompt), piped) => Ok(Asked { prompt, piped }),
        (None, Some(prompt)) => Ok(Asked { prompt, piped: None }),
        (None, None) => Err(InputError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_in_is_the_prompt_or_stands_behind_it() {
        let asked =
            |prompt: Option<&str>, piped: &str| join(prompt.map(str::to_owned), piped.into()).unwrap();
        assert_eq!(asked(None, "hi\n"), Asked { prompt: "hi\n".to_owned(), piped: None });
        assert_eq!(asked(Some("hi"), "\n"), Asked { prompt: "hi".to_owned(), piped: None });
        let both = asked(Some("why?"), "a\nb\n");
        assert_eq!(Asked::joined(both.prompt, both.piped.as_deref()), "why?\n\n<stdin>\na\nb\n</stdin>");
    }

    #[test]
    fn what_cannot_be_a_prompt_is_refused() {
        assert!(matches!(join(None, String::new()), Err(InputError::Empty)));
        assert!(matches!(text_of(&[b'a', 0xff][..], 9), Err(InputError::NotText { at: 1 })));
        assert!(matches!(text_of(&b"abc"[..], 2), Err(InputError::TooLarge { most: 2 })));
        assert_eq!(text_of(&b"ab"[..], 2).unwrap(), "ab");
    }
}
