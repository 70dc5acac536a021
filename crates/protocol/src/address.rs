//! Addresses as they may be shown: without the credentials in them. The one rule for it, for messages, excerpts of files, locks,
//! lists and logs.

use std::borrow::Cow;
use std::ops::Range;

/// What stands where a credential was.
pub const HIDDEN: &str = "***";

/// Parts of the names of query parameters that hold credentials.
const SECRET_PARTS: [&str; 10] =
    ["sig", "token", "secret", "credential", "auth", "pass", "pwd", "cookie", "apikey", "jwt"];

/// A text with the credentials of its addresses hidden: what stands before a host, and secret parameters.
///
/// ```
/// use amplifier_protocol::address::hide;
///
/// assert_eq!(hide("get https://me:pw@h/b.md?v=1&token=t now"), "get https://***@h/b.md?v=1&token=*** now");
/// assert_eq!(hide("git+ssh://git@h/r@v1"), "git+ssh://git@h/r@v1");
/// ```
pub fn hide(text: &str) -> Cow<'_, str> {
    let secrets = secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut copied) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        shown.push_str(text.get(copied..secret.start).unwrap_or_default());
        shown.push_str(HIDDEN);
        copied = secret.end;
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

/// The same with a star for each character, so that what follows keeps its column.
pub fn star(text: &str) -> String {
    let secrets = secrets(text);
    let mut secrets = secrets.iter().peekable();
    let star = |(at, c): (usize, char)| {
        while secrets.next_if(|secret| secret.end <= at).is_some() {}
        if secrets.peek().is_some_and(|secret| secret.contains(&at)) { '*' } else { c }
    };
    text.char_indices().map(star).collect()
}

/// The pairs of a query or a fragment, without the values of secret parameters.
pub fn hide_pairs(pairs: &str) -> String {
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if is_secret_parameter(name) => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    };
    pairs.split('&').map(hide).collect::<Vec<_>>().join("&")
}

/// Whether a parameter of this name holds a credential.
pub fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "code"
        || ["key", "keys"].iter().any(|end| name.ends_with(end))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// The credentials in the addresses of a text, in order.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (mark, _) in text.match_indices("://") {
        let start = mark + "://".len();
        let before = text.get(..mark).unwrap_or_default();
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let scheme = before.get(before.trim_end_matches(is_scheme).len()..).unwrap_or_default();
        let rest = text.get(start..).unwrap_or_default();
        let rest = rest.get(..end_of(rest, "")).unwrap_or_default();
        let authority = rest.get(..end_of(rest, "/?#")).unwrap_or_default();
        let user = authority.rfind('@').filter(|_| !scheme.ends_with("file"));
        if let Some(end) = user {
            let name = authority.get(..end).and_then(|user| user.find(':'));
            match (scheme.ends_with("ssh"), name) {
                // The name is part of the address there, and no secret.
                (true, Some(colon)) => found.push(start + colon + 1..start + end),
                (true, None) => {}
                (false, _) => found.push(start..start + end),
            }
        }
        // A commit or branch follows the query of a repository.
        let ends = if scheme.starts_with("git+") { "&#@" } else { "&#" };
        parameters(rest, start, ends, &mut found);
    }
    // An address may stand in a parameter of another one.
    found.sort_unstable_by_key(|secret| secret.start);
    found.dedup_by(|next, secret| {
        let is_inside = next.start < secret.end;
        if is_inside {
            secret.end = secret.end.max(next.end);
        }
        is_inside
    });
    found
}

/// The values of secret parameters in the rest of an address, which begins at `start`; a pair ends at one of `ends`.
fn parameters(rest: &str, start: usize, ends: &str, found: &mut Vec<Range<usize>>) {
    let Some(query) = rest.find(['?', '#']) else { return };
    let mut at = query + 1;
    while let Some(pairs) = rest.get(at..) {
        let length = end_of(pairs, ends);
        let pair = pairs.get(..length).unwrap_or_default();
        if let Some((name, value)) = pair.split_once('=')
            && is_secret_parameter(name.trim_start_matches('?'))
            && !value.is_empty()
        {
            found.push(start + at + name.len() + 1..start + at + length);
        }
        at += length + 1;
    }
}

/// Where a part of an address ends: at one of these, or where the address does.
fn end_of(text: &str, ends: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || "\"'`<>".contains(c) || ends.contains(c);
    text.find(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_and_the_rest_stays() {
        for (text, shown) in [
            ("git+https://u:t0k@h/o/r@main#subdirectory=x", "git+https://***@h/o/r@main#subdirectory=x"),
            ("https://t0k@h", "https://***@h"),
            ("https://u:p,w@h/x, https://v@h", "https://***@h/x, https://***@h"),
            ("git+ssh://git:pw@h/x", "git+ssh://git:***@h/x"),
            (
                "git+https://h/r?a=1&private_token=t@v1#subdirectory=x",
                "git+https://h/r?a=1&private_token=***@v1#subdirectory=x",
            ),
            ("{bundle: \"https://h/b.md?token=a@b\", x: 1}", "{bundle: \"https://h/b.md?token=***\", x: 1}"),
            ("https://h/?u=http://a:b@z/&token=t", "https://h/?u=http://***@z/&token=***"),
            ("https://h/?token=http://a:b@z", "https://h/?token=***"),
            (
                "https://h/b?X-Amz-Signature=s&code=c#access_token=t",
                "https://h/b?X-Amz-Signature=***&code=***#access_token=***",
            ),
        ] {
            assert_eq!(hide(text), shown);
            assert_eq!(star(text).chars().count(), text.chars().count());
        }
        for plain in [
            "git+ssh://git@host/o/r@v1",
            "git+https://host/o/r@main",
            "git+file://./r@main",
            "ns:path",
            "./x@y",
            "file:///a@b",
            "https://h/a?max=1&b=2#subdirectory=x",
            "token=abc and me@example.com",
        ] {
            assert!(matches!(hide(plain), Cow::Borrowed(_)), "{plain}");
        }
    }

    #[test]
    fn stars_keep_the_columns() {
        assert_eq!(star("a: git+https://u:tök@h/o/r@main, x: 1"), "a: git+https://*****@h/o/r@main, x: 1");
        assert_eq!(star("[http://t@a, \"http://u:v@b/c\"]"), "[http://*@a, \"http://***@b/c\"]");
        assert_eq!(star("https://h/b?token=abc x"), "https://h/b?token=*** x");
    }
}
