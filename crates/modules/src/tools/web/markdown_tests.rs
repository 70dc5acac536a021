//! What each element becomes.

use pulldown_cmark::{Event, Parser, Tag as CmarkTag, TagEnd};
use url::Url;

use super::super::tidy::tidy;

fn text(html: &str) -> String {
    tidy(html, &Url::parse("http://e.com/").unwrap()).text
}

#[test]
fn headings_are_one_line_each() {
    assert_eq!(text("<h1>A</h1><h2>B</h2>c<h6>D</h6>"), "# A\n\n## B\n\nc\n\n###### D");
    assert_eq!(text("<h2> a<br>b <div>c</div><p>d</p></h2>"), "## a b c d");
    assert_eq!(text("<h2>a <b> b </b><i>c</i></h2>"), "## a **b** *c*");
    assert_eq!(text("<h2></h2><h3><b> </b></h3>x"), "x");
    assert_eq!(text("<h2># 1. C #</h2><h2>C#</h2>"), "## # 1. C \\#\n\n## C#");
    assert_eq!(text("<b><h2>a</h2></b>"), "## **a**");
}

#[test]
fn anchors_of_headings_are_left_out() {
    assert_eq!(text("<h2><a href=#a>§</a>A</h2>"), "## A");
    assert_eq!(text("<h2>A<a href=#a>¶</a></h2><h3>B <a href='#b'>#</a></h3>"), "## A\n\n### B");
    assert_eq!(text("<h2><a href=#a>A</a></h2>"), "## A");
    assert_eq!(
        text("<h2><a href=a>A</a></h2><p># <a href=b>#</a>"),
        "## [A](http://e.com/a)\n\n\\# [#](http://e.com/b)"
    );
}

#[test]
fn paragraphs_and_breaks_part_lines() {
    assert_eq!(text("<p>a</p>b<p>c</p>\n\n<div>d<div>e</div>f</div>"), "a\n\nb\n\nc\n\nd\n\ne\n\nf");
    assert_eq!(text("<br>a<br>b <br> c<br><br><br>d<br><p>e<br></p>"), "a\nb\nc\n\nd\n\ne");
    assert_eq!(text("a<hr>b<hr><hr>"), "a\n\n---\n\nb\n\n---\n\n---");
}

#[test]
fn whitespace_is_what_a_browser_makes_of_it() {
    assert_eq!(text(" a\n\t b&nbsp;&nbsp;c <span> d</span>e<span>f </span>\n g "), "a b c def g");
    assert_eq!(text("a<span></span>b<b> </b>c"), "ab c");
    assert_eq!(text("so\u{ad}me\u{200b}thing&shy;s\u{0}"), "somethings");
}

#[test]
fn strong_and_emphasised_text_has_its_blanks_outside() {
    assert_eq!(text("a<b> b </b>c<i> d</i> e"), "a **b** c *d* e");
    assert_eq!(text("a<b></b><i> </i>b<b><i></i></b>"), "a b");
    assert_eq!(text("<b>a <b>b</b></b> <i><b>c</b></i>"), "**a b** ***c***");
    assert_eq!(text("<b>a</b><b>b</b> <b>c</b>"), "**ab** **c**");
    assert_eq!(text("<b><i>a</i></b><b><i>b</i></b><b>c</b>"), "***ab*c**");
    assert_eq!(text("<b>a<p>b</p><ul><li>c<li>d</ul></b>e"), "**a**\n\n**b**\n\n- **c**\n- **d**\n\ne");
    assert_eq!(text("<b>a<br>b</b>"), "**a\nb**");
}

#[test]
fn code_has_backticks_enough() {
    assert_eq!(text("a <code> x_y*z  &lt;b> </code>c <kbd>K</kbd>"), "a `x_y*z <b>` c `K`");
    assert_eq!(text("<code>a`b</code> <code>`</code> <code>``x</code>"), "``a`b`` `` ` `` ``` ``x ```");
    assert_eq!(text("<code>a</code><code>b`</code><tt>c</tt> <code></code>"), "``ab`c``");
    assert_eq!(text("<code>a <b>b</b> <i>c</i></code> <b><code>d</code></b>"), "`a b c` **`d`**");
    assert_eq!(
        text("<code><a href=v>Vec</a></code> <code><a href=v>Vec</a>&lt;T></code>"),
        "[`Vec`](http://e.com/v) `Vec<T>`"
    );
    assert_eq!(text("<a href=x><code>b</code></a>"), "[`b`](http://e.com/x)");
}

#[test]
fn listings_are_as_they_are() {
    assert_eq!(
        text("<pre class=language-rust>\nfn  a() {\n\n\n  <b>b</b> * &lt;c>&nbsp;d\r\n}  </pre>x"),
        "```rust\nfn  a() {\n\n\n  b * <c> d\n}\n```\n\nx"
    );
    assert_eq!(text("<pre><code class='x language-c++,ignore'>a</code></pre>"), "```c++\na\n```");
    assert_eq!(text("<pre class='language-<x>'>a<br>b<div>c</div>d</pre>"), "```\na\nb\nc\nd\n```");
    assert_eq!(text("<pre>```\na\n````</pre>"), "`````\n```\na\n````\n`````");
    assert_eq!(text("a<pre> \n </pre>b<pre>c<img alt=d></pre>"), "a\n\nb\n\n```\ncd\n```");
    assert_eq!(text("<pre>  a\n\tb</pre>"), "```\n  a\n\tb\n```");
    assert_eq!(
        text("<pre><a href=#1>1</a>a\n<a href=#2>2</a>b<a>3</a>c\n<a>d</a>e</pre>"),
        "```\n1 a\n2 b3c\nde\n```"
    );
}

#[test]
fn lists_nest_and_hold_blocks() {
    assert_eq!(text("a<ul><li>b<li>c<ul><li>d</ul><li>e</ul>f"), "a\n\n- b\n- c\n  - d\n- e\n\nf");
    assert_eq!(text("<ol><li>a<ul><li>b</ul><li>c</ol>"), "1. a\n   - b\n2. c");
    assert_eq!(
        text("<ol start=9><li>a<li>b<p>c</p></ol><ol start=x><li>d</ol>"),
        "9. a\n10. b\n\n    c\n\n1. d"
    );
    assert_eq!(text("<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>"), "- a\n\n  b\n- c");
    assert_eq!(
        text("<ul><li>a<pre>b\n\nc</pre><blockquote>d<p>e</blockquote>f</ul>"),
        "- a\n\n  ```\n  b\n\n  c\n  ```\n\n  > d\n  >\n  > e\n\n  f"
    );
    assert_eq!(text("<ul><li>a<ul><li>b</ul>c<li></li><li> <li>d</ul>"), "- a\n  - b\n\n  c\n- d");
    assert_eq!(text("<ul><li>a</li><ul><li>b</li></ul><li>c</ul>d"), "- a\n  - b\n- c\n\nd");
    assert_eq!(text("<ul><li><ul><li>a</ul></ul>"), "- - a");
    assert_eq!(text("<ul><ul>x<li>a</ul></ul>"), "x\n\n- a");
    assert_eq!(text("<ul><li><h3>a</h3>b</ul>"), "- ### a\n\n  b");
    assert_eq!(text("<ul><li>a<br>b<table><tr><td>c</table></ul>"), "- a\n  b\n\n  | c |\n  | --- |");
}

#[test]
fn quotes_are_marked_on_every_line() {
    assert_eq!(
        text("a<blockquote>b<br>c<p>d<blockquote>e</blockquote></blockquote>f"),
        "a\n\n> b\n> c\n>\n> d\n>\n> > e\n\nf"
    );
    assert_eq!(text("<blockquote>a</blockquote><blockquote><ul><li>b</ul></blockquote>"), "> a\n\n> - b");
    assert_eq!(text("<blockquote><pre>a\n\nb</pre></blockquote>"), "> ```\n> a\n>\n> b\n> ```");
    assert_eq!(text("a<blockquote> </blockquote>b"), "a\n\nb");
}

#[test]
fn terms_stand_above_what_they_mean() {
    assert_eq!(
        text("x<dl><dt>a<dt>b<dd>c<p>d<dd>e<dt><code>f</code><dd><ul><li>g</ul></dl>h"),
        "x\n\na\nb\n: c\n\n  d\n: e\n\n`f`\n: - g\n\nh"
    );
}

#[test]
fn links_without_text_are_left_out() {
    assert_eq!(
        text("a <a href=x></a><a href=y> </a>b <a href=z> c <b>d</b> </a>."),
        "a b [c **d**](http://e.com/z) ."
    );
    assert_eq!(text("<a href=x><img src=i alt=j></a>"), "[![j](http://e.com/i)](http://e.com/x)");
    assert_eq!(
        text("<a href=x>a</a><a href=x>b</a>!<a href=x>c</a>"),
        "[a](http://e.com/x)[b](http://e.com/x)\\![c](http://e.com/x)"
    );
    assert_eq!(text("<a href='http://e.com/_x_'>http://e.com/_x_</a>"), "<http://e.com/_x_>");
    assert_eq!(
        text("<a href=x>[1]</a> <a href=x>a] [b</a>"),
        "[[1]](http://e.com/x) [a\\] \\[b](http://e.com/x)"
    );
    assert_eq!(
        text("<a href='x_(y)'>a</a> <a href='x)'>b</a>"),
        "[a](http://e.com/x_(y)) [b](http://e.com/x%29)"
    );
}

#[test]
fn a_link_around_blocks_is_one_link_at_its_first_words() {
    assert_eq!(text("<a href=x><h3>a</h3><p>b</p></a>c"), "### [a](http://e.com/x)\n\nb\n\nc");
    assert_eq!(
        text("<a href=x><div></div><div>a <b>b</div><div>c</b></div></a>"),
        "[a **b**](http://e.com/x)\n\nc"
    );
}

#[test]
fn images_keep_their_description() {
    assert_eq!(text("a<img src=b.png alt=' c\n d '>e"), "a![c d](http://e.com/b.png)e");
    assert_eq!(text("<img src=b><img alt='[x'><img>"), "![](http://e.com/b)![\\[x]()");
}

#[test]
fn tables_are_narrow_and_their_cells_are_lines() {
    assert_eq!(
        text(
            "<table><caption>T</caption><tr><th>a<th>b|c<tr><td><p>d</p><p>e</p><td><ul><li>f<li>g</ul></table>"
        ),
        "T\n\n| a | b\\|c |\n| --- | --- |\n| d e | - f - g |"
    );
    assert_eq!(text("<table><tr><td>a<tr><td>b<td>c</table>"), "| a |  |\n| --- | --- |\n| b | c |");
    assert_eq!(text("<table><tr><td> <td></table>x<table></table>"), "x");
    assert_eq!(
        text("<table><tr><td>-<td># x<td>#<td>1.<td><code>a|b</code></table>"),
        "| - | \\# x | # | 1. | `a\\|b` |\n| --- | --- | --- | --- | --- |"
    );
    assert_eq!(
        text("<table><tr><th><h3>a</h3><th><pre>b c</pre><tr><td>d</table>"),
        "| a | `b c` |\n| --- | --- |\n| d |"
    );
    assert_eq!(
        text("<b>a<table><tr><td>b<td><i>c</table>d</b>"),
        "**a**\n\n| b | *c* |\n| --- | --- |\n\n**d**"
    );
}

#[test]
fn a_table_that_lays_out_a_page_becomes_blocks() {
    assert_eq!(text("<table><tr><td>a<td><pre>b\nc</pre></table>"), "a\n\n```\nb\nc\n```");
    assert_eq!(
        text("<table><tr><td>a<td><table><tr><td>b<td>c</table>d</table>"),
        "a\n\n| b | c |\n| --- | --- |\n\nd"
    );
    assert_eq!(text("<table><tr><td>m<td><h1>a</h1><p>b</table>"), "m\n\n# a\n\nb");
    assert_eq!(text("<table><tr><th>a<tr><td><ul><li>b<li>c</ul></table>"), "a\n\n- b\n- c");
}

#[test]
fn text_that_would_read_as_marks_is_escaped() {
    assert_eq!(
        text("*a* _b_ __c__ `d` [e](f) \\* \\[ &lt;b> &amp;lt;"),
        "\\*a\\* \\_b\\_ \\_\\_c\\_\\_ \\`d\\` [e]\\(f) \\\\\\* \\\\[ \\<b> \\&lt;"
    );
    for line in
        ["# a", "## b", "> c", ">d", "- e", "+ f", "* g", "---", "***", "___", "~~~", "=====", "[a]: b"]
    {
        assert_eq!(text(&format!("<p>{line}")), format!("\\{line}"));
        assert_eq!(text(&format!("x<br>{line}")), format!("x\n\\{line}"));
        assert_eq!(text(&format!("<li>{line}")), format!("- \\{line}"));
    }
    assert_eq!(text("<p>1. a<p>12) b<p>2024.<p><b>3. c</b>"), "1\\. a\n\n12\\) b\n\n2024\\.\n\n**3. c**");
}

#[test]
fn text_that_reads_as_text_is_left_alone() {
    for line in [
        "snake_case and a * b and 2 _ 3",
        "x # y - z > 1. + 2",
        "#tag -5 +1 1.5 1.a C:\\dir a[0] [1] [x] :",
        "https://e.com/_a_*b*?c_=1&d=2 www.e.com/_x_",
        "a < b > c & d; AT&T 50% ~ ~5 | = !",
        "(a) f(x) \"q\" 'r' <3",
    ] {
        assert_eq!(text(&format!("<p>{}", line.replace('&', "&amp;"))), line);
    }
}

/// What a reader of Markdown sees of one paragraph; `None` when it is something else.
fn seen(markdown: &str) -> Option<String> {
    let mut events = Parser::new(markdown);
    if events.next() != Some(Event::Start(CmarkTag::Paragraph)) {
        return None;
    }
    let mut seen = String::new();
    for event in events {
        match event {
            Event::Text(text) => seen.push_str(&text),
            Event::End(TagEnd::Paragraph) => {}
            _ => return None,
        }
    }
    Some(seen)
}

proptest::proptest! {
    #[test]
    fn text_reads_back_as_it_was(written in "a?[a1*_`#>+.=~<&;!|: \\[\\]()\\\\-]{0,12}( [a1*_`\\[\\](-]{1,6}){0,3}[a.]") {
        let html = written.replace('&', "&amp;").replace('<', "&lt;");
        let markdown = text(&format!("<p>{html}</p>"));
        let words = written.split_whitespace().collect::<Vec<_>>().join(" ");
        // What has an address in it is left as it is.
        proptest::prop_assume!(!words.contains("://"));
        proptest::prop_assert_eq!(seen(&markdown), Some(words), "{}", markdown);
    }
}
