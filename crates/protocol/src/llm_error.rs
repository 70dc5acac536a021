//! What can go wrong in a model call, as kinds that callers treat differently.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a failed model call. Names on the wire are the specification's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// Nothing more is known.
    #[default]
    #[serde(rename = "LLMError")]
    Unclassified,
    /// Too many requests; later is fine.
    #[serde(rename = "RateLimitError")]
    RateLimit,
    /// The quota or the money is used up.
    #[serde(rename = "QuotaExceededError")]
    QuotaExceeded,
    /// The key is missing or wrong.
    #[serde(rename = "AuthenticationError")]
    Authentication,
    /// The key is right and may not do this.
    #[serde(rename = "AccessDeniedError")]
    AccessDenied,
    /// The request does not fit the model's window.
    #[serde(rename = "ContextLengthError")]
    ContextLength,
    /// The service refused the content.
    #[serde(rename = "ContentFilterError")]
    ContentFilter,
    /// The request is malformed.
    #[serde(rename = "InvalidRequestError")]
    InvalidRequest,
    /// The service is down or overloaded.
    #[serde(rename = "ProviderUnavailableError")]
    ProviderUnavailable,
    /// The service could not be reached.
    #[serde(rename = "NetworkError")]
    Network,
    /// No answer in time.
    #[serde(rename = "LLMTimeoutError")]
    Timeout,
    /// The answer broke off.
    #[serde(rename = "StreamError")]
    Stream,
    /// No such model or endpoint.
    #[serde(rename = "NotFoundError")]
    NotFound,
    /// The caller cancelled.
    #[serde(rename = "AbortError")]
    Abort,
    /// The model called a tool in a way that cannot be read.
    #[serde(rename = "InvalidToolCallError")]
    InvalidToolCall,
    /// The provider is not set up.
    #[serde(rename = "ConfigurationError")]
    Configuration,
}

impl LlmErrorKind {
    /// Every kind, the general one first.
    pub const ALL: [Self; 16] = [
        Self::Unclassified,
        Self::RateLimit,
        Self::QuotaExceeded,
        Self::Authentication,
        Self::AccessDenied,
        Self::ContextLength,
        Self::ContentFilter,
        Self::InvalidRequest,
        Self::ProviderUnavailable,
        Self::Network,
        Self::Timeout,
        Self::Stream,
        Self::NotFound,
        Self::Abort,
        Self::InvalidToolCall,
        Self::Configuration,
    ];

    /// The more general kind, if there is one.
    pub fn parent(self) -> Option<Self> {
        match self {
            Self::Unclassified => None,
            Self::QuotaExceeded => Some(Self::RateLimit),
            Self::AccessDenied => Some(Self::Authentication),
            Self::Network => Some(Self::ProviderUnavailable),
            _ => Some(Self::Unclassified),
        }
    }

    /// Whether this is `kind` or a special case of it.
    pub fn is(self, kind: Self) -> bool {
        self == kind || self.parent().is_some_and(|parent| parent.is(kind))
    }

    /// Whether trying again can help, unless the error itself says otherwise.
    pub fn retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::ProviderUnavailable | Self::Network | Self::Timeout | Self::Stream
        )
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unclassified => "LLMError",
            Self::RateLimit => "RateLimitError",
            Self::QuotaExceeded => "QuotaExceededError",
            Self::Authentication => "AuthenticationError",
            Self::AccessDenied => "AccessDeniedError",
            Self::ContextLength => "ContextLengthError",
            Self::ContentFilter => "ContentFilterError",
            Self::InvalidRequest => "InvalidRequestError",
            Self::ProviderUnavailable => "ProviderUnavailableError",
            Self::Network => "NetworkError",
            Self::Timeout => "LLMTimeoutError",
            Self::Stream => "StreamError",
            Self::NotFound => "NotFoundError",
            Self::Abort => "AbortError",
            Self::InvalidToolCall => "InvalidToolCallError",
            Self::Configuration => "ConfigurationError",
        }
    }

    /// The kind of a failure known only by its status and text. The status wins; the text decides what it leaves open.
    pub fn classify(status: Option<u16>, message: &str) -> Self {
        match status {
            Some(401) => return Self::Authentication,
            Some(403) => return Self::AccessDenied,
            Some(404) => return Self::NotFound,
            Some(408) => return Self::Timeout,
            Some(413) => return Self::ContextLength,
            Some(429) => return Self::RateLimit,
            Some(500..) => return Self::ProviderUnavailable,
            _ => {}
        }
        let text = message.to_lowercase();
        let by_text = PHRASES.iter().find(|(phrases, _)| phrases.iter().any(|phrase| text.contains(phrase)));
        let by_number = || {
            let mut numbers = text.split(|c: char| !c.is_ascii_alphanumeric());
            numbers.find_map(|word| NUMBERS.iter().find(|(number, _)| *number == word))
        };
        match (by_text.map(|(_, kind)| kind).or_else(|| by_number().map(|(_, kind)| kind)), status) {
            (Some(kind), _) => *kind,
            (None, Some(400 | 409 | 422)) => Self::InvalidRequest,
            (None, _) => Self::Unclassified,
        }
    }
}

/// What services say, most telling first: the agreed phrases in their order, then what some say besides. The order matters
/// where one text has two: "rate limit reached for tokens, token limit 30000" is a matter of time, not of size.
const PHRASES: &[(&[&str], LlmErrorKind)] = &[
    (&["context length", "too many tokens", "maximum context"], LlmErrorKind::ContextLength),
    (&["rate limit", "too many requests"], LlmErrorKind::RateLimit),
    (&["authentication", "api key", "unauthorized"], LlmErrorKind::Authentication),
    (&["not found"], LlmErrorKind::NotFound),
    (&["content filter", "safety", "blocked"], LlmErrorKind::ContentFilter),
    (&["context window", "token limit", "too long"], LlmErrorKind::ContextLength),
    (&["timeout", "timed out"], LlmErrorKind::Timeout),
    (&["overloaded", "unavailable"], LlmErrorKind::ProviderUnavailable),
];

/// Statuses inside a text, as words of their own; the last resort, for a number may mean anything.
const NUMBERS: &[(&str, LlmErrorKind)] = &[
    ("429", LlmErrorKind::RateLimit),
    ("401", LlmErrorKind::Authentication),
    ("404", LlmErrorKind::NotFound),
    ("502", LlmErrorKind::ProviderUnavailable),
    ("503", LlmErrorKind::ProviderUnavailable),
];

/// A failed model call. The original error stays reachable as its source.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LlmError {
    /// What kind of failure.
    #[serde(default, rename = "type")]
    pub kind: LlmErrorKind,
    /// What the service or the transport said.
    pub message: String,
    /// The provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// Whether trying again can help.
    #[serde(default)]
    pub retryable: bool,
    /// Seconds the service asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<f64>,
    /// Stretches the computed delay, for services that need more patience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_multiplier: Option<f64>,
    /// The call that failed, as events name it. The kernel fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The tool of an unreadable call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The arguments of an unreadable call, as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_arguments: Option<String>,
    /// The error underneath. It does not travel; the message does.
    #[serde(skip)]
    pub cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl LlmError {
    /// An error that is retryable as its kind is.
    pub fn new(kind: LlmErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retryable: kind.retryable(), ..Self::default() }
    }

    /// The same error with the one it came from.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }
}

impl PartialEq for LlmError {
    fn eq(&self, other: &Self) -> bool {
        let key = |e: &Self| {
            (e.kind, e.message.clone(), e.provider.clone(), e.model.clone(), e.status_code, e.retryable)
        };
        key(self) == key(other)
            && self.retry_after == other.retry_after
            && self.delay_multiplier == other.delay_multiplier
            && self.tool_name == other.tool_name
            && self.raw_arguments == other.raw_arguments
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(provider) = &self.provider {
            write!(f, "{provider}: ")?;
        }
        f.write_str(&self.message)?;
        match self.status_code {
            Some(status) => write!(f, " ({}, status {status})", self.kind.name()),
            None => write!(f, " ({})", self.kind.name()),
        }
    }
}

impl Error for LlmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LlmErrorKind as Kind;

    #[test]
    fn kinds_are_retryable_as_the_table_says() {
        let retryable: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.retryable()).collect();
        assert_eq!(
            retryable,
            [Kind::RateLimit, Kind::ProviderUnavailable, Kind::Network, Kind::Timeout, Kind::Stream]
        );
    }

    #[test]
    fn special_kinds_are_caught_as_their_parents() {
        assert!(Kind::QuotaExceeded.is(Kind::RateLimit));
        assert!(Kind::Network.is(Kind::ProviderUnavailable));
        assert!(Kind::AccessDenied.is(Kind::Authentication));
        assert!(Kind::Stream.is(Kind::Unclassified));
        assert!(!Kind::RateLimit.is(Kind::QuotaExceeded));
    }

    #[test]
    fn the_status_wins_over_the_text() {
        assert_eq!(Kind::classify(Some(429), "authentication"), Kind::RateLimit);
        assert_eq!(Kind::classify(Some(400), "Context Length exceeded"), Kind::ContextLength);
        assert_eq!(Kind::classify(Some(422), "bad"), Kind::InvalidRequest);
        assert_eq!(Kind::classify(Some(529), "overloaded"), Kind::ProviderUnavailable);
        assert_eq!(Kind::classify(None, "Request timed out"), Kind::Timeout);
        assert_eq!(Kind::classify(None, "?"), Kind::Unclassified);
    }

    #[test]
    fn the_agreed_phrases_come_first_then_the_others_then_numbers() {
        for (text, kind) in [
            ("Rate limit reached: token limit of 30000 per minute", Kind::RateLimit),
            ("request blocked: token limit", Kind::ContentFilter),
            ("too many tokens; rate limit", Kind::ContextLength),
            ("prompt is too long", Kind::ContextLength),
            ("upstream said 429", Kind::RateLimit),
            ("HTTP/1.1 401", Kind::Authentication),
            ("got 404.", Kind::NotFound),
            ("error code: 502", Kind::ProviderUnavailable),
            ("503", Kind::ProviderUnavailable),
            ("timed out after 404 ms", Kind::Timeout),
            ("id 14290 is odd", Kind::Unclassified),
        ] {
            assert_eq!(Kind::classify(None, text), kind, "{text}");
        }
        assert_eq!(Kind::classify(Some(400), "Rate limit, token limit"), Kind::RateLimit);
    }

    #[test]
    fn names_on_the_wire_match_and_errors_round_trip() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), serde_json::json!(kind.name()));
        }
        let mut error = LlmError::new(Kind::RateLimit, "slow down");
        error.retryable = false;
        error.retry_after = Some(12.0);
        let json = serde_json::to_string(&error).unwrap();
        assert_eq!(serde_json::from_str::<LlmError>(&json).unwrap(), error);
        assert!(!json.contains("status_code"));
    }

    #[test]
    fn the_original_error_stays_reachable() {
        let error = LlmError::new(Kind::Network, "no route").caused_by(std::io::Error::other("refused"));
        assert_eq!(error.source().unwrap().to_string(), "refused");
    }
}
