//! Pictures, told by their first bytes and handed on as an image block.

use amplifier_core::contracts::ToolFailure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::files::paths::Asked;
use crate::files::place::Place;

/// How much of a file tells what it is.
pub(super) const HEAD: usize = 12;

/// A picture in the form of a content block, so that a loop can hand it to the model as one.
#[derive(Debug, Serialize)]
pub(super) struct Image {
    #[serde(rename = "type")]
    kind: &'static str,
    source: Source,
    pub(super) file_path: String,
    pub(super) bytes: u64,
}

#[derive(Debug, Serialize)]
struct Source {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'static str,
    data: String,
}

/// The media type, if these are the first bytes of a picture.
pub(super) fn media_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Reads a picture of at most `most` bytes.
pub(super) fn read(
    asked: &Asked,
    place: &Place,
    media_type: &'static str,
    most: u64,
) -> Result<Image, ToolFailure> {
    let bytes = place.read(most).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            let message = format!(
                "Cannot read file: {} ({media_type} of more than {most} bytes; make it smaller first)",
                asked.text
            );
            ToolFailure::new(message).of_kind("TooLarge")
        }
        _ => asked.unreadable(&error),
    })?;
    Ok(Image {
        kind: "image",
        source: Source { kind: "base64", media_type, data: STANDARD.encode(&bytes) },
        file_path: asked.shown.display().to_string(),
        bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_told_by_their_first_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\x01\x02\x03\x04WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"RIFF\x01\x02\x03\x04WAVE"), None);
        assert_eq!(media_type(b""), None);
    }
}
