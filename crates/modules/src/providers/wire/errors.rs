//! From what came back to one taxonomy. Pure: status, headers, body and transport in, an [`LlmError`] out.

use amplifier_core::redact::redact_text;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind as Kind};
use amplifier_protocol::text::shorten;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use serde_json::Value;
use url::Url;

use crate::http::Redirected;

/// How much of what a service said is told.
const TOLD: usize = 2_000;

/// Words in `type` and `code` of error bodies that say more than the status.
const CODES: &[(&str, Kind)] = &[
    ("context_length_exceeded", Kind::ContextLength),
    ("exceed_context_size", Kind::ContextLength),
    ("model_context_window_exceeded", Kind::ContextLength),
    ("string_above_max_length", Kind::ContextLength),
    ("insufficient_quota", Kind::QuotaExceeded),
    ("billing", Kind::QuotaExceeded),
    ("quota_exceeded", Kind::QuotaExceeded),
    ("content_filter", Kind::ContentFilter),
    ("content_policy", Kind::ContentFilter),
    ("invalid_api_key", Kind::Authentication),
    ("authentication_error", Kind::Authentication),
    ("permission_error", Kind::AccessDenied),
    ("model_not_found", Kind::NotFound),
    ("not_found_error", Kind::NotFound),
    ("overloaded_error", Kind::ProviderUnavailable),
    ("server_error", Kind::ProviderUnavailable),
    ("api_error", Kind::ProviderUnavailable),
    ("rate_limit", Kind::RateLimit),
];

/// Phrases of messages that the taxonomy's own list does not know.
const PHRASES: &[(&str, Kind)] = &[
    ("context size", Kind::ContextLength),
    ("maximum number of tokens", Kind::ContextLength),
    ("exceeded your current quota", Kind::QuotaExceeded),
    ("credit balance", Kind::QuotaExceeded),
];

/// What a gateway says while a service starts.
const WARMING_UP: &[&str] = &["starting", "warming", "loading", "please wait", "try again"];

/// An answer that is not a success, from the service at `base`.
pub(super) fn from_status(status: StatusCode, headers: &HeaderMap, body: &[u8], base: &str) -> LlmError {
    let code = status.as_u16();
    let text = String::from_utf8_lossy(body);
    let mut error = if status.is_redirection() {
        redirect(headers, base)
    } else {
        match serde_json::from_str::<Value>(&text) {
            Ok(body) => from_body(Some(code), &body),
            Err(_) => from_page(code, &text, headers),
        }
    };
    error.status_code = Some(code);
    error.retry_after = retry_after(headers);
    if code == 409 && error.kind == Kind::InvalidRequest {
        // Another request held what this one needed; the vendors' own clients try again.
        error.retryable = true;
    }
    error
}

/// An error told as JSON: in the body of a failed answer, or in the middle of a stream that began well.
pub(crate) fn from_body(status: Option<u16>, body: &Value) -> LlmError {
    let inner = body.get("error").filter(|inner| !inner.is_null()).unwrap_or(body);
    let said = ["message", "detail", "error", "msg"].iter().find_map(|key| inner.get(key)?.as_str());
    let message = match (said, inner) {
        (Some(said), _) => said.to_owned(),
        (None, Value::String(said)) => said.clone(),
        (None, other) => other.to_string(),
    };
    let words: Vec<_> =
        ["type", "code", "status"].iter().filter_map(|key| inner.get(key)?.as_str()).collect();
    // Inside a stream the status is a word of the body.
    let status = status
        .or_else(|| inner.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()));
    let kind = classify(status, &words, &message);
    let message = redact_text(&message).into_owned();
    LlmError { status_code: status, ..LlmError::new(kind, shorten(&message, TOLD)) }
}

fn classify(status: Option<u16>, words: &[&str], message: &str) -> Kind {
    let word = |(code, _): &&(&str, Kind)| words.iter().any(|word| word.contains(code));
    let by_word = CODES.iter().find(word).map(|(_, kind)| *kind);
    let lower = message.to_lowercase();
    let by_phrase = PHRASES.iter().find(|(phrase, _)| lower.contains(phrase)).map(|(_, kind)| *kind);
    let plain = Kind::classify(status, message);
    match (by_word.or(by_phrase), plain) {
        // What the status says stands, unless the words only make it more exact.
        (Some(Kind::QuotaExceeded), Kind::RateLimit) => Kind::QuotaExceeded,
        (Some(kind), _) if matches!(status, None | Some(400 | 409 | 422)) => kind,
        (
            Some(kind @ (Kind::ContextLength | Kind::ContentFilter)),
            Kind::ProviderUnavailable | Kind::InvalidRequest,
        ) => kind,
        _ => plain,
    }
}

/// A page instead of a document: a gateway or a guard in front of the service.
fn from_page(code: u16, text: &str, headers: &HeaderMap) -> LlmError {
    let is_page = is_html(headers) || text.trim_start().starts_with('<');
    let lower = text.to_lowercase();
    if code == 403 && is_page && (lower.contains("cloudflare") || lower.contains("challenge")) {
        return LlmError::new(
            Kind::ProviderUnavailable,
            "a guard in front of the service answered instead of it",
        );
    }
    if matches!(code, 404 | 425) && is_page && WARMING_UP.iter().any(|phrase| lower.contains(phrase)) {
        return LlmError::new(Kind::ProviderUnavailable, "a gateway says that the service is still starting");
    }
    let said = text.trim();
    let said = if said.is_empty() {
        "the service gave no reason".to_owned()
    } else {
        redact_text(said).into_owned()
    };
    LlmError::new(classify(Some(code), &[], &said), shorten(&said, TOLD))
}

fn redirect(headers: &HeaderMap, base: &str) -> LlmError {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let redirected = match Url::parse(base) {
        Ok(base) => Redirected::new(&base, location).to_string(),
        Err(error) => format!("the service redirects and its address cannot be read: {error}"),
    };
    let message = format!("{redirected}; set `base_url` if that is where the service is");
    LlmError::new(Kind::Configuration, message)
}

/// A success whose body is of the wrong type.
pub(super) fn wrong_type(headers: &HeaderMap, body: &[u8]) -> LlmError {
    let found = content_type(headers);
    let text = String::from_utf8_lossy(body);
    let start = redact_text(text.trim()).into_owned();
    let message =
        format!("the answer is `{found}`, not JSON and not a stream; it begins: {}", shorten(&start, 200));
    LlmError::new(Kind::ProviderUnavailable, message)
}

pub(super) fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_html(headers: &HeaderMap) -> bool {
    content_type(headers).contains("html")
}

/// Seconds the service asks to wait: in milliseconds, in seconds, or as a date.
fn retry_after(headers: &HeaderMap) -> Option<f64> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        let millis = text(HeaderName::from_static(name)).and_then(|value| value.parse::<f64>().ok());
        if let Some(millis) = millis.filter(|millis| millis.is_finite() && *millis >= 0.0) {
            return Some(millis / 1_000.0);
        }
    }
    let value = text(RETRY_AFTER)?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Some(seconds).filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    }
    // The service's own clock says how far away its date is.
    let parser = DateTimeParser::new();
    let until = parser.parse_timestamp(value).ok()?;
    let now = parser.parse_timestamp(text(DATE)?).ok()?;
    Some(until.duration_since(now).as_secs_f64().max(0.0))
}

/// Whether nobody took the connection.
pub(super) fn is_refused(error: &reqwest::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::ConnectionRefused)
    })
}

/// What the transport said.
pub(super) fn from_transport(error: reqwest::Error) -> LlmError {
    let kind = if error.is_timeout() && error.is_connect() {
        Kind::Network
    } else if error.is_timeout() {
        Kind::Timeout
    } else if error.is_body() || error.is_decode() {
        Kind::Stream
    } else if error.is_builder() {
        Kind::Configuration
    } else {
        Kind::Network
    };
    // The address may hold a key; the provider's name says where it was.
    let error = error.without_url();
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let told = causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"));
    LlmError::new(kind, redact_text(&told).into_owned()).caused_by(error)
}

/// An answer that broke off or cannot be read.
pub(super) fn broken(message: impl Into<String>) -> LlmError {
    LlmError::new(Kind::Stream, message)
}

/// An answer that is larger than allowed. Trying again would give the same.
pub(super) fn too_large(limit: u64) -> LlmError {
    let message =
        format!("the answer is larger than {limit} bytes; raise `max_response_bytes` if that is right");
    LlmError { retryable: false, ..LlmError::new(Kind::Stream, message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(status: u16, body: &str) -> (Kind, bool) {
        let error =
            from_status(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes(), "");
        assert_eq!(error.status_code, Some(status));
        (error.kind, error.retryable)
    }

    #[test]
    fn bodies_make_statuses_more_exact() {
        let cases = [
            (
                400,
                r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
                Kind::ContextLength,
                false,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                Kind::ContextLength,
                false,
            ),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
                Kind::ContextLength,
                false,
            ),
            (400, r#"{"error":"bad field"}"#, Kind::InvalidRequest, false),
            (401, r#"{"detail":"no key"}"#, Kind::Authentication, false),
            (403, "<html>just a moment, cloudflare</html>", Kind::ProviderUnavailable, true),
            (403, "{}", Kind::AccessDenied, false),
            (404, "<html>model is loading</html>", Kind::ProviderUnavailable, true),
            (404, r#"{"error":{"message":"no such model"}}"#, Kind::NotFound, false),
            (409, "{}", Kind::InvalidRequest, true),
            (429, r#"{"error":{"message":"slow","type":"requests"}}"#, Kind::RateLimit, true),
            (429, r#"{"error":{"message":"pay","type":"insufficient_quota"}}"#, Kind::QuotaExceeded, false),
            (500, "", Kind::ProviderUnavailable, true),
            (
                529,
                r#"{"error":{"type":"overloaded_error","message":"busy"}}"#,
                Kind::ProviderUnavailable,
                true,
            ),
        ];
        for (status, body, expected, retryable) in cases {
            assert_eq!(kind(status, body), (expected, retryable), "{status} {body}");
        }
    }

    #[test]
    fn a_wait_is_read_in_every_form_a_service_writes_it() {
        let with = |pairs: &[(&'static str, &'static str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            retry_after(&pairs.collect::<HeaderMap>())
        };
        assert_eq!(with(&[("retry-after", "7")]), Some(7.0));
        assert_eq!(with(&[("retry-after-ms", "250"), ("retry-after", "7")]), Some(0.25));
        let date = ("date", "Mon, 16 Nov 2026 10:00:00 GMT");
        assert_eq!(with(&[("retry-after", "Mon, 16 Nov 2026 10:00:30 GMT"), date]), Some(30.0));
        for nonsense in ["-1", "nan", "soon"] {
            assert_eq!(with(&[("retry-after", nonsense)]), None);
        }
    }

    #[test]
    fn an_error_inside_a_stream_has_the_status_of_its_body() {
        let error = from_body(None, &json!({"error": {"code": 429, "message": "later"}}));
        assert_eq!((error.kind, error.status_code, error.retryable), (Kind::RateLimit, Some(429), true));
    }
}
