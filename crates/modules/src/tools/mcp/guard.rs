//! Reads what a server writes and breaks off when it writes without measure: one endless line, or noise without end.
//! What it lets through is still the protocol's to read.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest message, in bytes.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;
/// The most bytes in a row that are no messages: banners and log lines that belong elsewhere are forgiven, a flood is not.
const MOST_NOISE: usize = 16 * 1024 * 1024;

/// A reader that fails when its limits are passed. Why is kept, for the protocol only says that the stream ended.
pub(super) struct Guarded<R> {
    from: R,
    line: usize,
    noise: usize,
    begins: Begins,
    broken: Arc<OnceLock<&'static str>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// Nothing but blanks yet.
    Unknown,
    /// Like a message.
    Message,
    /// Like anything else.
    Noise,
}

impl<R> Guarded<R> {
    pub(super) fn new(from: R, broken: Arc<OnceLock<&'static str>>) -> Self {
        Self { from, line: 0, noise: 0, begins: Begins::Unknown, broken }
    }

    fn check(&mut self, bytes: &[u8]) -> Result<()> {
        for byte in bytes {
            if *byte == b'\n' {
                match self.begins {
                    Begins::Message => self.noise = 0,
                    Begins::Unknown | Begins::Noise => self.noise += self.line + 1,
                }
                (self.line, self.begins) = (0, Begins::Unknown);
            } else {
                self.line += 1;
                if self.begins == Begins::Unknown && !byte.is_ascii_whitespace() {
                    self.begins =
                        if *byte == b'{' || *byte == b'[' { Begins::Message } else { Begins::Noise };
                }
            }
        }
        if self.line > LONGEST {
            return self.fail("it wrote a message of more than 16 MiB");
        }
        if self.noise > MOST_NOISE {
            return self.fail("it floods its output with text that is no message");
        }
        Ok(())
    }

    fn fail(&self, why: &'static str) -> Result<()> {
        let why = self.broken.get_or_init(|| why);
        Err(Error::new(ErrorKind::InvalidData, *why))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Guarded<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.from).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = read {
            let fresh = into.filled().get(before..).unwrap_or_default();
            let checked = self.check(fresh);
            if checked.is_err() {
                // Whoever reads is promised that an error brings no bytes.
                into.set_filled(before);
            }
            return Poll::Ready(checked);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(bytes: Vec<u8>) -> Option<&'static str> {
        let broken = Arc::new(OnceLock::new());
        let mut guarded = Guarded::new(bytes.as_slice(), Arc::clone(&broken));
        let mut sink = Vec::new();
        assert_eq!(guarded.read_to_end(&mut sink).await.is_err(), broken.get().is_some());
        broken.get().copied()
    }

    #[tokio::test]
    async fn measure_is_let_through_and_floods_are_not() {
        let message = [b"{".as_slice(), &vec![b'a'; 1000], b"}\n"].concat();
        assert_eq!(read(message.repeat(20_000)).await, None);
        assert_eq!(read(b"starting...\n{}\n".to_vec()).await, None);
        assert!(read(vec![b'{'; LONGEST + 10]).await.unwrap().contains("16 MiB"));
        assert!(read(b"noise and more\n".repeat(1_200_000)).await.unwrap().contains("floods"));
        let talkative = [b"noise and more\n".repeat(600_000), b"{}\n".to_vec()].concat();
        assert_eq!(read(talkative.repeat(3)).await, None);
    }
}
