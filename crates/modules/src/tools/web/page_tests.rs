//! Documents of many kinds, and pages that mean harm.

use std::time::{Duration, Instant};

use super::*;
use url::Url;

fn page(content_type: &str, bytes: impl Into<Vec<u8>>) -> Page {
    let url = Url::parse("http://example.com/doc/").unwrap();
    read(Got { url, content_type: content_type.to_owned(), bytes: bytes.into(), cut: false }, Form::Markdown)
        .unwrap()
}

fn html(text: &str) -> String {
    page("text/html; charset=utf-8", text).text
}

#[test]
fn html_becomes_markdown() {
    let text = html(
        "<html><head><title>T</title><style>p{}</style></head><body><h1>Head</h1><p>One <b>two</b> <a href='/x'>three</a>.</p>\
         <ul><li>a<li>b<ul><li>c</ul></ul><pre><code class='language-rust'>fn  main() {}\n</code></pre></body></html>",
    );
    let expected = "# Head\n\nOne **two** [three](http://example.com/x).\n\n- a\n- b\n  - c\n\n```rust\nfn  main() {}\n```";
    assert_eq!(text, expected);
}

#[test]
fn tables_are_tables() {
    let text = html(
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1<td>two<br>lines</tr></tbody></table>after",
    );
    assert_eq!(text, "| a | b |\n| --- | --- |\n| 1 | two lines |\n\nafter");
}

#[test]
fn json_and_text_stay_as_they_are() {
    assert_eq!(page("application/json", "{ \"a\": \"<b>\" }").text, "{ \"a\": \"<b>\" }");
    assert_eq!(page("text/plain", "a\n\n\n\nb").text, "a\n\n\n\nb");
    assert_eq!(page("application/ld+json", "[]").text, "[]");
    assert_eq!(page("", "plain").text, "plain");
    assert_eq!(page("", "<!DOCTYPE html><h2>x</h2>").text, "## x");
}

#[test]
fn what_is_no_text_is_refused_with_its_type_and_size() {
    let refused = wanted("application/pdf", Some(12_345)).unwrap_err();
    assert!(refused.message.contains("application/pdf") && refused.message.contains("12345"), "{refused}");
    assert!(wanted("image/png", None).is_err());
    assert!(wanted("text/html", None).is_ok());
}

#[test]
fn character_sets_are_found_in_the_header_the_page_and_the_bytes() {
    assert_eq!(page("text/plain; charset=iso-8859-1", b"caf\xe9".to_vec()).text, "café");
    assert_eq!(page("text/html", b"<meta charset=\"shift_jis\"><p>\x93\xfa\x96\x7b".to_vec()).text, "日本");
    assert_eq!(page("text/plain", b"\xff\xfea\x00b\x00".to_vec()).text, "ab");
    assert_eq!(page("text/plain", b"caf\xe9 cr\xe8me".to_vec()).text, "café crème");
    assert_eq!(page("text/plain", b"caf\xc3\xa9".to_vec()).text, "café");
    assert_eq!(page("text/plain", b"cut caf\xc3".to_vec()).text, "cut caf\u{fffd}");
}

/// Pages that make parsers of HTML take quadratic time, endless memory or the whole stack.
#[test]
fn hostile_pages_end_soon_and_stay_small() {
    let many = 20_000;
    let pages = [
        "<div>".repeat(many),
        "<b>x</b>".repeat(many),
        "<p><b><i>x".repeat(many),
        (0..many).map(|at| format!("<div><b id={at}></div>")).collect(),
        (0..many).map(|at| format!("<font id={at}><p>x</p>")).collect(),
        "<b><table></b></table>".repeat(many),
        "<blockquote>".repeat(100) + &"x<br>".repeat(many),
        "<table>".to_owned() + &"<tr><td>".repeat(many) + &"y".repeat(many),
        "<table><tr>".to_owned() + &"<td>".repeat(many) + &"<tr><td>".repeat(many),
        "<ul><li>".repeat(many),
        "<a href=x>".repeat(many),
        "<a <a ".repeat(many),
        "</".repeat(many) + "<script>" + &"</".repeat(many),
        "<h1>".repeat(many),
        "&lt;".repeat(many),
        "&aacute;&nope;".repeat(many),
        "<code>x</code>".repeat(many),
        "<code>`</code> ".repeat(many),
        "<blockquote><b><i>".repeat(8) + &"<p>x".repeat(many),
        "<blockquote>".repeat(8) + "<pre>" + &"x\n".repeat(many),
        "<blockquote>".repeat(8) + "<pre>" + &"\n".repeat(many),
        "<ol start=4000000000><li>".repeat(8) + &"x<br>".repeat(many),
        "<dl><dt>x<dd>".repeat(many),
        "<table><tr><td>x".repeat(many),
        "<table><tr><td><table><tr><td>".to_owned() + &"<h1>#</h1>".repeat(many),
        "<a href=x>".to_owned() + &"[".repeat(many) + "</a>" + &"]*_`\\".repeat(many),
        "<a href=x>[</a>".repeat(many),
        "<h1><a href=#x>x</a>".repeat(many),
        "<ul><ul><li>".repeat(many) + &"<hr>".repeat(many),
    ];
    for page in pages {
        let began = Instant::now();
        let text = html(&page);
        let start: String = page.chars().take(40).collect();
        assert!(began.elapsed() < Duration::from_secs(20), "{start}");
        assert!(text.len() < 10 * page.len(), "{start}: {} from {}", text.len(), page.len());
    }
}
