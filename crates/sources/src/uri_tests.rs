use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> SourceUri {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn git(text: &str) -> GitUri {
    match parsed(text) {
        SourceUri::Git(uri) => uri,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn every_git_form_of_the_reference_is_read() {
    let rows = [
        ("git+https://github.com/o/r", "https://github.com/o/r", None, None),
        (
            "git+https://h/o/r@feat/2026/q1#subdirectory=b/c",
            "https://h/o/r",
            Some("feat/2026/q1"),
            Some("b/c"),
        ),
        (
            "git+ssh://git@github.com/o/r@v1#subdirectory=a/b&egg=z",
            "ssh://git@github.com/o/r",
            Some("v1"),
            Some("a/b"),
        ),
        ("git+ssh://git@github.com/o/r", "ssh://git@github.com/o/r", None, None),
        ("git+https://u:t@host/o/r@main", "https://host/o/r", Some("main"), None),
        (
            "git+https://h/o/r@main#subdirectory=a#subdirectory=b",
            "https://h/o/r",
            Some("main"),
            Some("a#subdirectory=b"),
        ),
        ("git+file:///abs/repo@main", "file:///abs/repo", Some("main"), None),
        ("git+file://./repo@main", "file://./repo", Some("main"), None),
        ("git+https://h/@org/r.git@release@2", "https://h/@org/r.git", Some("release@2"), None),
        (
            "git+http://h:8080/r@abc123#experts/code.md",
            "http://h:8080/r",
            Some("abc123"),
            Some("experts/code.md"),
        ),
        ("git+https://h/o/r?x=1@main", "https://h/o/r?x=1", Some("main"), None),
        ("GIT+HTTPS://h/o/r@main", "https://h/o/r", Some("main"), None),
    ];
    for (text, address, reference, subdirectory) in rows {
        let uri = git(text);
        let found = uri.fragment.subdirectory.as_ref().map(Subpath::as_str);
        assert_eq!(
            (uri.address().as_str(), uri.reference.as_deref(), found),
            (address, reference, subdirectory),
            "{text}"
        );
    }
}

#[test]
fn files_paths_and_archives_are_read() {
    let file = |form, path: &str, subdirectory: &str| {
        let fragment = Fragment { subdirectory: Subpath::parse(subdirectory).unwrap(), rest: Vec::new() };
        SourceUri::File(FileUri { form, path: path.to_owned(), fragment })
    };
    assert_eq!(parsed("file:///a/b#subdirectory=c"), file(FileForm::Url, "/a/b", "c"));
    assert_eq!(parsed("file://./rel"), file(FileForm::Url, "./rel", ""));
    assert_eq!(parsed("file://localhost/a"), file(FileForm::Url, "/a", ""));
    assert_eq!(parsed("file:///C:/x"), file(FileForm::Url, "C:/x", ""));
    for plain in ["/abs#subdirectory=x", "./rel", "../rel", "~/x", "C:/x/y", r"C:\x", r"\\server\share", "."]
    {
        assert_eq!(parsed(plain), file(FileForm::Plain, plain, ""), "{plain}");
    }
    assert_eq!(
        parsed("zip+https://h/a.zip?t=1#subdirectory=x").to_string(),
        "zip+https://h/a.zip?t=1#subdirectory=x"
    );
    assert_eq!(
        parsed("zip+file:///a.zip#subdirectory=x/./y").to_string(),
        "zip+file:///a.zip#subdirectory=x/y"
    );
    assert_eq!(
        parsed("https://h/p/b.md?t=1#subdirectory=x").to_string(),
        "https://h/p/b.md?t=1#subdirectory=x"
    );
}

#[test]
fn names_are_recognised_as_names() {
    let named = |name: &str, subpath: Option<&str>| SourceUri::Named {
        name: name.to_owned(),
        subpath: subpath.map(str::to_owned),
    };
    assert_eq!(parsed("foundation"), named("foundation", None));
    assert_eq!(parsed("foundation/providers/a"), named("foundation", Some("providers/a")));
    let namespaced = SourceUri::Namespaced { namespace: "foundation".into(), path: "providers/a".into() };
    assert_eq!(parsed("foundation:providers/a"), namespaced);
}

#[test]
fn credentials_are_neither_displayed_nor_debugged() {
    let shown = [
        ("git+https://u:s3cret@h/o/r@v1", "git+https://***@h/o/r@v1"),
        ("git+https://s3cret@h/o/r", "git+https://***@h/o/r"),
        ("git+ssh://git:s3cret@h/o/r", "git+ssh://git:***@h/o/r"),
        ("git+ssh://git@h/o/r", "git+ssh://git@h/o/r"),
        ("https://u:s3cret@h/b.md", "https://***@h/b.md"),
        ("zip+https://s3cret@h/b.zip", "zip+https://***@h/b.zip"),
        (
            "https://h/b.md?a=1&X-Amz-Signature=s3cret&access_token=s3cret",
            "https://h/b.md?a=1&X-Amz-Signature=***&access_token=***",
        ),
        ("git+https://h/o/r?private_token=s3cret@v1", "git+https://h/o/r?private_token=***@v1"),
    ];
    for (text, expected) in shown {
        let uri = parsed(text);
        assert_eq!(uri.to_string(), expected);
        assert!(!format!("{uri:?}").contains("s3cret"), "{text}");
    }
    let uri = git("git+https://u:s3cret@h/o/r@v1");
    assert_eq!(uri.secret_origin(), Some(("https://u:s3cret@h/".to_owned(), "https://h/".to_owned())));
    assert_eq!(git("git+ssh://git@h/o/r").secret_origin(), None);
    assert_eq!(uri.secrets(), ["u:s3cret", "s3cret"]);
}

#[test]
fn what_is_no_source_is_refused_with_a_reason() {
    let refused = [
        ("", "a source is empty"),
        ("git+https://h/o/r@", "`` is no ref: nothing follows the `@`"),
        (
            "git+https://h/o/r@--upload-pack=x",
            "`--upload-pack=x` is no ref: it begins or ends with something git forbids",
        ),
        ("git+https://h/o/r@a:b", "`a:b` is no ref: it holds something git forbids"),
        ("git+https://h/o/r@main#subdirectory=../..", "`../..` leaves the source"),
        ("git+https://h/o/r@main#subdirectory=a/../../b", "`a/../../b` leaves the source"),
        ("file:///a#subdirectory=/etc", "`/etc` is absolute; it is meant inside the source"),
        (
            "git+ssh://-oProxyCommand=x/o/r",
            "`git+ssh` needs an address of the form `git+ssh://git@host/owner/repo@ref`",
        ),
        ("git@github.com:o/r", "an address like `user@host:path` is written `git+ssh://user@host/path`"),
        ("a\nb", "a source holds a control character"),
    ];
    for (text, message) in refused {
        assert_eq!(text.parse::<SourceUri>().unwrap_err().to_string(), message, "{text}");
    }
    for text in ["s3://b/k", "git+ext::sh -c x", "git+ext://x/y", "zip+s3://x", "https://"] {
        text.parse::<SourceUri>().unwrap_err();
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        host in "[a-z]{1,8}(:[1-9][0-9]{1,3})?",
        path in "(/[a-zA-Z0-9_.-]{1,6}){1,3}",
        reference in proptest::option::of("[a-z0-9]{1,5}(/[a-z0-9]{1,5}){0,2}"),
        subdirectory in proptest::option::of("[a-z]{1,5}(/[a-z]{1,5}){0,2}"),
        scheme in "(git\\+https|git\\+ssh|https|zip\\+http|file)",
    ) {
        let mut text = if scheme == "file" { format!("file://{path}") } else { format!("{scheme}://{host}{path}") };
        if let (Some(reference), true) = (&reference, scheme.starts_with("git")) {
            text.push_str(&format!("@{reference}"));
        }
        if let Some(subdirectory) = subdirectory {
            text.push_str(&format!("#subdirectory={subdirectory}"));
        }
        if let Ok(uri) = text.parse::<SourceUri>() {
            prop_assert_eq!(uri.to_string().parse::<SourceUri>().unwrap(), uri);
        }
    }

    #[test]
    fn no_text_breaks_the_reader_and_every_source_is_read_back(text in "\\PC{0,60}") {
        if let Ok(uri) = text.parse::<SourceUri>() {
            let again = uri.to_string().parse::<SourceUri>().map(|uri| uri.to_string());
            prop_assert_eq!(again, Ok(uri.to_string()));
        }
    }
}
