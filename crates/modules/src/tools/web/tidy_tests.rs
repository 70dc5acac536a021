//! Pages that are written wrongly, and what is told of them.

use super::*;

fn page(text: &str) -> Tidied {
    tidy(text, &Url::parse("http://example.com/a/b").unwrap())
}

fn text(html: &str) -> String {
    page(html).text
}

#[test]
fn tags_are_nested_and_ended() {
    assert_eq!(text("<ul><li>a<li>b</ul>c"), "- a\n- b\n\nc");
    assert_eq!(text("<p>a<p>b<div>c"), "a\n\nb\n\nc");
    assert_eq!(text("<b>x<i>y</b>z"), "**x*y***z");
    assert_eq!(text("<table><tr><td>1<td>2<tr><td>3"), "| 1 | 2 |\n| --- | --- |\n| 3 |");
    assert_eq!(text("<table><td></p></div>x</table>y"), "| x |\n| --- |\n\ny");
    assert_eq!(text("<table><tr><td>1</tr><td>2<td>3</table>"), "| 1 |  |\n| --- | --- |\n| 2 | 3 |");
    assert_eq!(text("<b>a</b><strong>b</strong>"), "**ab**");
    assert_eq!(text("<h1>a<h2>b</h1>c<h3>d<ul><li>e"), "# a\n\n## b\n\nc\n\n### d\n\n- e");
    assert_eq!(text("<dl><dt>a<dd>b<dt>c<dd>d"), "a\n: b\n\nc\n: d");
    assert_eq!(text("<a href=x>a<a href=y>b"), "[a](http://example.com/a/x)[b](http://example.com/a/y)");
}

#[test]
fn stray_ends_end_nothing() {
    assert_eq!(text("a</b></div></table></ul>b</br>c</td>d"), "ab\ncd");
    assert_eq!(text("<table><tr><td><b>a</table></b>b"), "| **a** |\n| --- |\n\nb");
    assert_eq!(text("<li>a<td>b<tr>c<dd>d"), "- a\n\n  b\n\n  c\n  : d");
}

#[test]
fn what_a_browser_does_not_show_is_gone() {
    assert_eq!(text("a<script>if (1 < 2) { '<p>' }</SCRIPT >b<!-- <p> -->c<style>x"), "abc");
    assert_eq!(text("<?xml version='1.0'?><!DOCTYPE html>a<svg><text>b</text></svg></ x>c"), "ac");
}

#[test]
fn signs_that_begin_no_tag_are_text() {
    assert_eq!(text("1 < 2 & <3 <- a<"), "1 < 2 & <3 <- a\\<");
    assert_eq!(text("a &lt; b &amp; c &copy 2020 &eacute;&#33;&nope;"), "a < b & c © 2020 é!\\&nope;");
}

#[test]
fn links_are_whole_and_harmless() {
    assert_eq!(text("<a href='c?x=1&amp;y=2&copy=3'>l</a>"), "[l](http://example.com/a/c?x=1&y=2&copy=3)");
    assert_eq!(text("<a href=\"javascript:alert('>')\" onclick=x>l</a>"), "l");
    assert_eq!(text("<a href='&#106;avascript:x'>l</a><a>m</a><a href=http://[>n</a>"), "lmn");
    assert_eq!(text("<a href='mailto:a@b.c'>l</a>"), "[l](mailto:a@b.c)");
    assert_eq!(text("<img src=data:image/png;base64,AAAA alt='a \" b &amp; c'>"), "![a \" b & c]()");
    assert_eq!(text(&format!("<a href='/{}'>l</a>", "x".repeat(3_000))), "l");
}

#[test]
fn a_place_on_the_same_page_is_named_by_itself() {
    assert_eq!(text("<a href='#c'>l</a> <a href='b#d'>m</a> <a href='#'>n</a>"), "[l](#c) [m](#d) n");
    assert_eq!(text("<a href='/a/c#d'>l</a>"), "[l](http://example.com/a/c#d)");
}

#[test]
fn short_links_on_a_page_with_a_long_address_do_not_flood_the_text() {
    let base = Url::parse(&format!("http://example.com/{}/", "x".repeat(1_900))).unwrap();
    let html = "<a href=y>z</a>".repeat(20_000);
    let text = tidy(&html, &base).text;
    assert!(text.starts_with("[z](http://example.com/xxx") && text.ends_with('z'));
    assert!(text.len() < 5 * html.len() + 70_000, "{}", text.len());
}

#[test]
fn the_title_is_found() {
    let page = page("<head><TITLE> A &amp; B\n&eacute;</title></head>x<title>no</title>");
    assert_eq!((page.title.as_deref(), page.text.as_str()), (Some("A & B é"), "x"));
}

#[test]
fn what_is_too_deep_keeps_its_text() {
    let deep = text(&format!("{}x", "<blockquote>".repeat(100)));
    assert_eq!(deep, format!("{}x", "> ".repeat(8)));
    let listed = text(&"<ul><li>y".repeat(100));
    assert_eq!(listed.matches('y').count(), 100);
    assert!(listed.lines().all(|line| line.len() <= 8 * 2 + 3), "{listed}");
    assert_eq!(text(&format!("{}x<b>y", "<div>".repeat(100))), "xy");
}

/// Words in the order they are written, whatever marks stand around them.
fn words(text: &str) -> Vec<String> {
    let letters = |word: &str| word.chars().filter(|c| c.is_ascii_lowercase()).collect::<String>();
    let text = text.replace("http://example.com/a/h", "");
    text.split(|c: char| !c.is_ascii_lowercase()).map(letters).filter(|word| word.starts_with('w')).collect()
}

const TAGS: &[&str] = &[
    "b",
    "i",
    "code",
    "p",
    "div",
    "h1",
    "h3",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "tr",
    "td",
    "th",
    "a",
    "blockquote",
    "pre",
    "span",
    "caption",
];
const OTHERS: &[&str] = &[
    "<br>",
    "<hr>",
    "<img alt=X>",
    "\n",
    " ",
    "*",
    "_",
    "`",
    "#",
    "|",
    "&amp;",
    "[",
    "]",
    "(",
    ")",
    "\\",
    "!",
    "1.",
    ">",
    "-",
    "é",
    "wone ",
    " wtwo ",
    "wthree ",
    " wfour\n",
    "wfive ",
    " wsix ",
];

/// One piece of soup: a begin, an end, or something between tags.
fn piece(number: usize) -> String {
    let (kind, number) = (number % 3, number / 3);
    let tag = TAGS[number % TAGS.len()];
    match kind {
        0 => format!("<{tag} href=h>"),
        1 => format!("</{tag}>"),
        _ => OTHERS[number % OTHERS.len()].to_owned(),
    }
}

proptest::proptest! {
    #[test]
    fn tag_soup_never_loses_a_word_and_never_grows_much(
        numbers in proptest::collection::vec(0..3 * TAGS.len() * OTHERS.len(), 0..300)
    ) {
        let html: String = numbers.iter().map(|number| piece(*number)).collect();
        let text = text(&html);
        // In a table a word may stand after those of another cell, as in a browser.
        let (mut expected, mut found) = (words(&html), words(&text));
        expected.sort();
        found.sort();
        proptest::prop_assert_eq!(expected, found, "{}", text);
        proptest::prop_assert!(text.len() <= 12 * html.len() + 100, "{} from {}", text.len(), html.len());
        proptest::prop_assert!(!text.contains("\n\n\n") || html.contains("<pre"), "{}", text);
        proptest::prop_assert_eq!(text.trim(), text.as_str());
    }

    #[test]
    fn nothing_written_makes_it_fail(html in "[<>/!a-c&;#x\"'= \n*`|é-]{0,300}|\\PC{0,100}") {
        let text = text(&html);
        proptest::prop_assert!(text.len() <= 12 * html.len() + 100);
    }
}
