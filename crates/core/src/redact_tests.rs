//! What is hidden, what is not, and that any text is survived.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn keys_that_end_in_a_secret_word_lose_their_value() {
    let keys = [
        "api_key",
        "apikey",
        "api-key",
        "API_KEY",
        "apiKey",
        "APIKey",
        "openai_api_key",
        "x-api-key",
        "openaiApiKey",
        "secret",
        "client_secret",
        "clientSecret",
        "password",
        "db-password",
        "token",
        "access_token",
        "accessToken",
        "refresh_tokens",
        "credential",
        "credentials",
        "private_key",
        "privatekey",
        "auth",
        "authorization",
        "Proxy-Authorization",
        "aws_secret_access_key",
        "OPENAIAPIKEY",
    ];
    for key in keys {
        assert_eq!(redact(&json!({ key: "v" })), json!({ key: "[REDACTED]" }), "{key}");
    }
}

#[test]
fn keys_that_only_mention_such_a_word_keep_their_value() {
    let keys = [
        "max_tokens",
        "token_budget",
        "tokens",
        "input_tokens",
        "cost_per_token",
        "eos_token",
        "api_key_env",
        "author",
        "key",
        "primary_key",
        "private_key_path",
        "auth_type",
        "keys",
        "secretary",
        "",
    ];
    for key in keys {
        assert_eq!(redact(&json!({ key: "v" })), json!({ key: "v" }), "{key}");
    }
}

#[test]
fn redaction_reaches_every_depth_and_leaves_what_holds_no_secret() {
    let value = json!({
        "list": [{ "password": 1234 }, [{ "token": { "deep": true } }]],
        "auth": null, "require_auth": false, "secret": "", "n": 1.5, "order": { "z": 1, "a": 2 },
    });
    let expected = json!({
        "list": [{ "password": "[REDACTED]" }, [{ "token": "[REDACTED]" }]],
        "auth": null, "require_auth": false, "secret": "", "n": 1.5, "order": { "z": 1, "a": 2 },
    });
    assert_eq!(redact(&value).to_string(), expected.to_string());
}

#[test]
fn references_stay_but_their_defaults_do_not() {
    let cases = [
        ("${KEY}", "${KEY}"),
        ("${KEY:-}", "${KEY:-}"),
        ("Bearer ${KEY}", "Bearer ${KEY}"),
        ("${A}${B}", "${A}${B}"),
        ("${KEY:-hunter2}", "${KEY:-[REDACTED]}"),
        ("${KEY:hunter2}", "${KEY:-[REDACTED]}"),
        ("hunter2${KEY}", "[REDACTED]"),
        ("${KEY}hunter2", "[REDACTED]"),
        ("${hunter2", "[REDACTED]"),
        ("${hunter 2}", "[REDACTED]"),
    ];
    for (value, expected) in cases {
        assert_eq!(redact(&json!({ "api_key": value })), json!({ "api_key": expected }), "{value}");
    }
}

#[test]
fn well_known_secrets_are_found_inside_any_text() {
    let cases = [
        ("use sk-abc123def456 now", "use [REDACTED] now"),
        ("sk-proj-aaaaaaaaaaaaaaaaaaaaaaaa", "[REDACTED]"),
        ("key=sk-ant-api03-xyz_ABC", "key=[REDACTED]"),
        ("AKIAIOSFODNN7EXAMPLE, and", "[REDACTED], and"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[REDACTED]"),
        ("(github_pat_11ABCDEFG0123456789_abc)", "([REDACTED])"),
        ("xoxb-123456789012-abcdef", "[REDACTED]"),
        ("xai-0123456789abcdefghijkl", "[REDACTED]"),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuvw", "[REDACTED]"),
        ("curl -H 'Authorization: Bearer abc'", "curl -H 'Authorization: Bearer [REDACTED]'"),
        (r#"{"authorization": "Basic dXNlcg=="}"#, r#"{"authorization": "Basic [REDACTED]"}"#),
        ("bearer a1b2c3d4", "bearer [REDACTED]"),
        ("postgres://me:p@ss:w0rd@db/x", "postgres://me:[REDACTED]@db/x"),
        ("https://ghp_0123456789abcdefghij:x@github.com/a", "https://[REDACTED]:[REDACTED]@github.com/a"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n[REDACTED]\nb"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", "[REDACTED]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[REDACTED]"),
        ("ä sk-abc123def456ö", "ä [REDACTED]ö"),
    ];
    for (text, expected) in cases {
        assert_eq!(redact_text(text), expected, "{text}");
    }
    assert_eq!(
        redact(&json!({ "sk-abc123def456": ["sk-abc123def456"] })),
        json!({ "[REDACTED]": ["[REDACTED]"] })
    );
}

#[test]
fn ordinary_text_is_borrowed_unchanged() {
    let texts = [
        "",
        "a risk-assessment-of-the-highest-order",
        "task-0123456789abcdef",
        "sk-learn",
        "the bearer of good news",
        "Bearer authentication",
        "basic arithmetics",
        "https://example.org:8080/a@b",
        "git@github.com:org/repo",
        "http://user@host",
        "postgres://me:${PW}@db",
        "-----BEGIN CERTIFICATE-----\nMIIE",
        "ghp_short",
        "AKIA",
        "Bearer ${TOKEN}",
        "xox",
        "eyJ",
        "::://",
        "ключ",
    ];
    for text in texts {
        assert!(matches!(redact_text(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn long_text_is_cut_at_180_characters_and_says_how_many_are_missing() {
    let exact = "é".repeat(180);
    assert!(matches!(truncate(&exact), Cow::Borrowed(_)));
    assert_eq!(truncate(&format!("{exact}abc")), format!("{exact}... (truncated 3 chars)"));
}

/// Each of these would take minutes if any pattern looked at its text more than a constant number of times.
#[test]
fn hostile_text_takes_linear_time() {
    for piece in [
        "sk-",
        "://",
        "://a:",
        "-----BEGIN PRIVATE KEY",
        "bearer ",
        "eyJ.",
        "eyJ",
        "xoxb-",
        "AKIA",
        "${",
        "@:",
    ] {
        let text = piece.repeat(200_000);
        assert!(redact_text(&text).len() <= text.len() + REDACTED.len() * 200_000);
        redact(&json!({ "token": text }));
    }
}

proptest! {
    #[test]
    fn any_text_is_survived_and_redacting_twice_changes_nothing(
        text in "(sk-|://|:|@|Bearer |-----BEGIN |PRIVATE KEY-----|é|[a-z0-9]{1,9}|\\$\\{|\\}|-| ){0,12}",
    ) {
        let once = redact_text(&text).into_owned();
        prop_assert_eq!(redact_text(&once), once.as_str());
        redact(&json!({ "password": text }));
    }

    #[test]
    fn a_key_never_survives_its_surroundings(before in "[ é\"'(,=]{0,4}", after in "[ é\"'),;]{0,4}") {
        let secret = "sk-ant-0123456789abcdef";
        let text = format!("{before}{secret}{after}");
        prop_assert_eq!(redact_text(&text), format!("{before}{REDACTED}{after}"));
    }
}

#[test]
fn the_secret_parameters_of_an_address_are_hidden() {
    assert_eq!(
        redact_text("GET https://h/b.md?v=1&token=abc#x and `https://h/c?sig=d`"),
        "GET https://h/b.md?v=1&token=[REDACTED]#x and `https://h/c?sig=[REDACTED]`"
    );
    for text in ["f(a, &key=1)", "a?token=b", "https://h/?max=1", "https://h/?token=${TOKEN}"] {
        assert_eq!(redact_text(text), text);
    }
}
