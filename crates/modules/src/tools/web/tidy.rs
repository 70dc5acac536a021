//! HTML before it is parsed: only tags that mean something in Markdown, properly nested, not too deep.
//!
//! A parser of HTML repairs what is written wrongly, and there are pages whose repair takes all memory or all time. What
//! leaves here needs no repair: it is made in one pass over the text and is never much longer than it. What a browser
//! would not show is left out, and links are made whole.

use url::Url;

mod scan;
mod tags;

use scan::{after, attributes, content, name, plain_title, value};
use tags::{Fate, ends, fate};

/// How deep tags nest; what is deeper keeps its text and loses its tags.
const DEPTH: usize = 60;
/// How deep what indents nests.
const INDENT: usize = 8;
/// The longest address that is kept.
const ADDRESS: usize = 2_048;

/// A page, tidied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tidied {
    pub(super) html: String,
    pub(super) title: Option<String>,
}

/// Makes a page fit to be parsed.
pub(super) fn tidy(text: &str, base: &Url) -> Tidied {
    let mut desk = Desk { out: String::with_capacity(text.len()), open: Vec::new(), title: None, base };
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        desk.text(before);
        rest = desk.tag(tag);
    }
    desk.text(rest);
    desk.close_to(0);
    Tidied { html: desk.out, title: desk.title }
}

struct Desk<'a> {
    out: String,
    open: Vec<&'static str>,
    title: Option<String>,
    base: &'a Url,
}

impl Desk<'_> {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Takes one tag, which the text begins with, and gives what comes after it.
    fn tag<'t>(&mut self, text: &'t str) -> &'t str {
        let inner = text.get(1..).unwrap_or_default();
        if let Some(comment) = inner.strip_prefix("!--") {
            return after(comment, "-->");
        }
        if inner.starts_with(['!', '?']) {
            return after(inner, ">");
        }
        if let Some(end) = inner.strip_prefix('/') {
            let (name, rest) = name(end);
            if !name.is_empty() {
                self.end(&name);
                return after(rest, ">");
            }
            return after(inner, ">");
        }
        let (name, rest) = name(inner);
        if name.is_empty() {
            self.out.push_str("&lt;");
            return inner;
        }
        let (attributes, rest) = attributes(rest);
        match fate(&name) {
            _ if name == "title" => {
                let (title, rest) = content(rest, &name);
                self.title = self.title.take().or_else(|| plain_title(title));
                rest
            }
            Fate::Gone => content(rest, &name).1,
            Fate::Dropped => rest,
            Fate::Void(name) => {
                self.void(name, &attributes);
                rest
            }
            Fate::Kept(name) => {
                self.begin(name, &attributes);
                rest
            }
        }
    }

    fn begin(&mut self, name: &'static str, attributes: &[(String, &str)]) {
        let (ended, stops) = ends(name);
        let above = self.open.iter().rposition(|open| stops.contains(open)).map_or(0, |at| at + 1);
        let first = self.open.iter().enumerate().skip(above).find(|(_, open)| ended.contains(*open));
        if let Some((at, _)) = first {
            self.close_to(at);
        }
        let indents = |name: &str| matches!(name, "ul" | "ol" | "blockquote" | "table");
        let indented = self.open.iter().filter(|open| indents(open)).count();
        if self.open.len() >= DEPTH || (indents(name) && indented >= INDENT) {
            return;
        }
        // Two of the same side by side are one; the converter would join them with more effort.
        let end = format!("</{name}>");
        if matches!(name, "strong" | "em" | "code") && self.out.ends_with(&end) {
            self.out.truncate(self.out.len() - end.len());
            self.open.push(name);
            return;
        }
        self.out.push('<');
        self.out.push_str(name);
        match name {
            "a" => self.address("href", value(attributes, "href")),
            "code" | "pre" => self.language(value(attributes, "class")),
            _ => {}
        }
        self.out.push('>');
        self.open.push(name);
    }

    fn void(&mut self, name: &str, attributes: &[(String, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        if name == "img" {
            self.address("src", value(attributes, "src"));
            self.attribute("alt", value(attributes, "alt").unwrap_or_default());
        }
        self.out.push('>');
    }

    fn end(&mut self, name: &str) {
        let Fate::Kept(name) = fate(name) else { return };
        let part_of_table = matches!(name, "table" | "tr" | "td" | "th");
        for (at, open) in self.open.iter().enumerate().rev() {
            if *open == name {
                return self.close_to(at);
            }
            // A stray end does not end the table it strayed into.
            if !part_of_table && matches!(*open, "table" | "td" | "th") {
                return;
            }
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(name) = self.open.pop() {
                self.out.push_str("</");
                self.out.push_str(name);
                self.out.push('>');
            }
        }
    }

    fn address(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value.map(|value| value.replace("&amp;", "&")) else { return };
        let Ok(url) = self.base.join(value.trim()) else { return };
        if matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= ADDRESS {
            self.attribute(key, &url.as_str().replace('&', "&amp;"));
        }
    }

    fn language(&mut self, class: Option<&str>) {
        let language = |class: &&str| class.starts_with("language-") && class.len() < 40;
        if let Some(class) = class.and_then(|classes| classes.split_whitespace().find(language)) {
            self.attribute("class", class);
        }
    }

    fn attribute(&mut self, key: &str, value: &str) {
        let value: String = value.chars().take(ADDRESS).collect();
        self.out.push_str(&format!(" {key}=\"{}\"", value.replace('"', "&quot;")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(text: &str) -> String {
        tidy(text, &Url::parse("http://example.com/a/b").unwrap()).html
    }

    #[test]
    fn tags_are_nested_and_ended() {
        assert_eq!(tidied("<ul><li>a<li>b</ul>"), "<ul><li>a</li><li>b</li></ul>");
        assert_eq!(tidied("<p>a<p>b<div>c"), "<p>a</p><p>b</p><div>c</div>");
        assert_eq!(tidied("<b>x<i>y</b>z"), "<strong>x<em>y</em></strong>z");
        assert_eq!(
            tidied("<table><tr><td>1<td>2<tr><td>3"),
            "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>"
        );
        assert_eq!(tidied("<table><td></p></div>x</table>"), "<table><td>x</td></table>");
        assert_eq!(tidied("<b>a</b><strong>b</strong>"), "<strong>ab</strong>");
    }

    #[test]
    fn what_a_browser_does_not_show_is_gone() {
        assert_eq!(tidied("a<script>if (1 < 2) { '<p>' }</SCRIPT >b<!-- <p> -->c<style>x"), "abc");
        assert_eq!(tidied("1 < 2 & <3"), "1 &lt; 2 & &lt;3");
    }

    #[test]
    fn links_are_whole_and_harmless() {
        assert_eq!(
            tidied("<a href='c?x=1&amp;y=2'>l</a>"),
            "<a href=\"http://example.com/a/c?x=1&amp;y=2\">l</a>"
        );
        assert_eq!(tidied("<a href=\"javascript:alert('>')\" onclick=x>l</a>"), "<a>l</a>");
        assert_eq!(tidied("<img src=data:image/png;base64,AAAA alt='a \" b'>"), "<img alt=\"a &quot; b\">");
    }

    #[test]
    fn the_title_is_found() {
        let page = tidy("<head><TITLE> A &amp; B\n</title></head>x", &Url::parse("http://e.com").unwrap());
        assert_eq!((page.title.as_deref(), page.html.as_str()), (Some("A & B"), "x"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_written_makes_it_much_longer_or_deeper(
            parts in proptest::collection::vec("(<(/)?(b|p|div|li|table|td|a|blockquote|script|x)( href=.)?>)|[<>/!a&\"'=-]|é", 0..200)
        ) {
            let text = parts.concat();
            let html = tidied(&text);
            let (mut depth, mut most) = (0_i64, 0);
            for piece in html.split('<').skip(1).filter(|piece| !piece.starts_with(['b', 'h', 'i']) || piece.starts_with("blockquote")) {
                depth += if piece.starts_with('/') { -1 } else { 1 };
                most = most.max(depth);
            }
            proptest::prop_assert_eq!(depth, 0);
            proptest::prop_assert!(most <= 60);
        }
    }
}
