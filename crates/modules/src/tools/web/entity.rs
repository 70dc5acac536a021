//! Character references: `&amp;`, `&#8212;`, `&eacute;` and the old ones without their semicolon become what they mean.
//!
//! The table of names is the one of the Markdown parser that is in the program anyway.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;
use pulldown_cmark::{Event, Parser};

/// The longest name there is has 31 letters.
const LONGEST: usize = 32;

/// Where a reference stands: an address such as `?a=1&copy=2` means no sign by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    Attribute,
}

/// The text with its references decoded; those that are unknown stay as they are written.
pub(super) fn decode(text: &str, place: Place) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once('&') {
        out.push_str(before);
        rest = numeric(reference, &mut out)
            .or_else(|| named(reference, &mut out))
            .or_else(|| unended(reference, place, &mut out))
            .unwrap_or_else(|| {
                out.push('&');
                reference
            });
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// `#65;` and `#x41;`, with or without the semicolon.
fn numeric<'t>(text: &'t str, out: &mut String) -> Option<&'t str> {
    let digits = text.strip_prefix('#')?;
    let (digits, radix) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() {
        return None;
    }
    // What does not fit into 32 bits is no character either.
    let number = u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    match u8::try_from(number) {
        // Written by programs that thought in this character set.
        Ok(byte @ 128..=159) => out.push_str(&WINDOWS_1252.decode(&[byte]).0),
        _ => {
            let known = char::from_u32(number).filter(|c| !c.is_control() || c.is_ascii_whitespace());
            out.push(known.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }
    Some(rest.strip_prefix(';').unwrap_or(rest))
}

/// `eacute;`
fn named<'t>(text: &'t str, out: &mut String) -> Option<&'t str> {
    let end = text.bytes().take(LONGEST).position(|byte| !byte.is_ascii_alphanumeric())?;
    let name = text.get(..end).filter(|name| !name.is_empty())?;
    let rest = text.get(end..)?.strip_prefix(';')?;
    if let Some(common) = common(name) {
        out.push(common);
        return Some(rest);
    }
    let written = format!("&{name};");
    let mut meant = String::new();
    for event in Parser::new(&written) {
        if let Event::Text(part) = event {
            meant.push_str(&part);
        }
    }
    (meant != written).then(|| {
        out.push_str(&meant);
        rest
    })
}

/// `copy 2020`
fn unended<'t>(text: &'t str, place: Place, out: &mut String) -> Option<&'t str> {
    let names = ["amp", "lt", "gt", "quot", "nbsp", "copy", "reg"];
    let name = names.into_iter().find(|name| text.starts_with(name))?;
    let rest = text.get(name.len()..)?;
    if place == Place::Attribute && rest.starts_with(|c: char| c == '=' || c.is_ascii_alphanumeric()) {
        return None;
    }
    out.push(common(name)?);
    Some(rest)
}

fn common(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "reg" => '®',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Cow<'_, str> {
        decode(text, Place::Text)
    }

    #[test]
    fn names_mean_what_they_mean_in_a_browser() {
        assert_eq!(text("&lt;b&gt; &amp;amp; &quot;x&quot; &apos;&nbsp;."), "<b> &amp; \"x\" '\u{a0}.");
        assert_eq!(text("caf&eacute; &mdash; &hellip; &rarr; &AMP; &frac12;"), "café — … → & ½");
        assert_eq!(text("&NotEqualTilde;&CounterClockwiseContourIntegral;"), "≂̸∳");
        assert_eq!(text("&unknown; &; & &a b; R&D &no such; &é;"), "&unknown; &; & &a b; R&D &no such; &é;");
        assert!(matches!(text("nothing to do"), Cow::Borrowed(_)));
    }

    #[test]
    fn numbers_are_characters_also_the_old_and_the_wrong_ones() {
        assert_eq!(text("&#65;&#x42;&#X43;&#68 &#x1F600;"), "ABCD 😀");
        assert_eq!(text("&#150;&#x92;&#128;&#153;"), "–’€™");
        assert_eq!(
            text("&#0;&#xD800;&#x110000;&#99999999999999999999;&#27;"),
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(text("&#; &#x; &#xg; &#"), "&#; &#x; &#xg; &#");
    }

    #[test]
    fn the_old_names_need_no_semicolon_but_in_addresses() {
        assert_eq!(text("&copy 2020 &lt&gt AT&ampT &regx"), "© 2020 <> AT&T ®x");
        assert_eq!(decode("?a=1&copy=2&regs=3&amp;lt=4", Place::Attribute), "?a=1&copy=2&regs=3&lt=4");
        assert_eq!(decode("x &copy y &lt", Place::Attribute), "x © y <");
    }
}
