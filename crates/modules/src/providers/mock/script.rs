//! The script of a mock: what a plan may write for each answer. A misspelt key is an error, not an empty answer.

use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::usage::Usage;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One answer of a script: text, or an object that says more.
#[derive(Debug, Serialize)]
pub(in crate::providers) struct Scripted(pub(in crate::providers) Reply);

impl<'de> Deserialize<'de> for Scripted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(Reply { text: Some(text), ..Reply::default() })),
            object @ Value::Object(_) => {
                let reply: Reply = serde_json::from_value(object).map_err(D::Error::custom)?;
                reply.check().map_err(D::Error::custom)?;
                Ok(Self(reply))
            }
            other => Err(D::Error::custom(format!("a response is text or an object, not {other}"))),
        }
    }
}

impl JsonSchema for Scripted {
    fn schema_name() -> Cow<'static, str> {
        "Response".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<Reply>()] })
    }
}

/// Everything an answer may be.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::providers) struct Reply {
    /// The text.
    pub(in crate::providers) text: Option<String>,
    /// A thought before the text.
    pub(in crate::providers) thinking: Option<String>,
    /// Tools to call.
    pub(in crate::providers) tool_calls: Vec<ScriptedCall>,
    /// What it claims to have consumed; estimated from the conversation without.
    pub(in crate::providers) usage: Option<Usage>,
    /// How long it takes to answer.
    pub(in crate::providers) delay_ms: u64,
    /// Fail instead.
    pub(in crate::providers) error: Option<ScriptedError>,
    /// How the text is streamed: in how many pieces, or exactly these.
    pub(in crate::providers) chunks: Option<Chunks>,
}

impl Reply {
    fn check(&self) -> Result<(), String> {
        if let (Some(text), Some(Chunks::Pieces(pieces))) = (&self.text, &self.chunks)
            && pieces.concat() != *text
        {
            return Err("`chunks` joined must be the same as `text`; leave `text` out or mend it".to_owned());
        }
        Ok(())
    }

    /// The whole text.
    pub(in crate::providers) fn whole_text(&self) -> Option<Cow<'_, str>> {
        match (&self.text, &self.chunks) {
            (Some(text), _) => Some(Cow::Borrowed(text)),
            (None, Some(Chunks::Pieces(pieces))) => Some(Cow::Owned(pieces.concat())),
            _ => None,
        }
    }
}

/// A tool to call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::providers) struct ScriptedCall {
    /// The tool.
    #[serde(alias = "tool")]
    pub(in crate::providers) name: String,
    /// Its input.
    #[serde(default, alias = "input")]
    pub(in crate::providers) arguments: Map<String, Value>,
    /// The call's id; made up when absent.
    #[serde(default)]
    pub(in crate::providers) id: Option<String>,
}

/// How a text is streamed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::providers) enum Chunks {
    /// In this many pieces.
    Count(usize),
    /// In these pieces.
    Pieces(Vec<String>),
}

impl Chunks {
    /// The pieces of a text; none of them empty.
    pub(in crate::providers) fn split<'a>(chunks: Option<&'a Self>, text: &'a str) -> Vec<&'a str> {
        let count = match chunks {
            Some(Self::Pieces(pieces)) => {
                return pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
            }
            Some(Self::Count(count)) => (*count).max(1),
            None => 1,
        };
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let size = starts.len().div_ceil(count).max(1);
        let mut edges: Vec<usize> = starts.into_iter().step_by(size).collect();
        edges.push(text.len());
        edges.windows(2).filter_map(|edge| text.get(*edge.first()?..*edge.last()?)).collect()
    }
}

/// A failure to play.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::providers) struct ScriptedError {
    /// The kind: a name of the taxonomy such as `RateLimitError`, or `rate_limit`.
    #[serde(deserialize_with = "read_kind")]
    #[schemars(with = "String")]
    kind: LlmErrorKind,
    /// What it says.
    #[serde(default)]
    message: Option<String>,
    /// Whether trying again can help; as its kind says without.
    #[serde(default)]
    retryable: Option<bool>,
    /// Seconds the service asks to wait.
    #[serde(default)]
    retry_after: Option<f64>,
    /// The HTTP status.
    #[serde(default)]
    status_code: Option<u16>,
}

impl ScriptedError {
    pub(in crate::providers) fn to_llm_error(&self) -> LlmError {
        let message = self.message.clone().unwrap_or_else(|| "scripted failure".to_owned());
        let mut error = LlmError::new(self.kind, message);
        error.retryable = self.retryable.unwrap_or(error.retryable);
        error.retry_after = self.retry_after;
        error.status_code = self.status_code;
        error
    }
}

fn read_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LlmErrorKind, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wanted = plain(&text);
    let known = |kind: &LlmErrorKind| plain(kind.name()) == wanted || plain(&format!("{kind:?}")) == wanted;
    LlmErrorKind::ALL.into_iter().find(known).ok_or_else(|| {
        let names: Vec<_> = LlmErrorKind::ALL.into_iter().map(LlmErrorKind::name).collect();
        D::Error::custom(format!("`{text}` is no kind of error; known are {}", names.join(", ")))
    })
}

/// A name without what spellings differ in: case, underscores, and the words around it.
fn plain(name: &str) -> String {
    let name = name.to_lowercase().replace(['_', '-'], "");
    let name = name.strip_prefix("llm").unwrap_or(&name);
    name.strip_suffix("error").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(json: Value) -> Result<Reply, String> {
        serde_json::from_value::<Scripted>(json).map(|scripted| scripted.0).map_err(|error| error.to_string())
    }

    #[test]
    fn kinds_of_errors_are_read_in_every_spelling() {
        for (spelling, kind) in [
            ("RateLimitError", LlmErrorKind::RateLimit),
            ("rate_limit", LlmErrorKind::RateLimit),
            ("LLMTimeoutError", LlmErrorKind::Timeout),
            ("timeout", LlmErrorKind::Timeout),
            ("LLMError", LlmErrorKind::Unclassified),
            ("unclassified", LlmErrorKind::Unclassified),
            ("context-length", LlmErrorKind::ContextLength),
        ] {
            let reply = read(json!({"error": {"kind": spelling}})).unwrap();
            assert_eq!(reply.error.unwrap().kind, kind, "{spelling}");
        }
        assert!(read(json!({"error": {"kind": "gremlins"}})).unwrap_err().contains("RateLimitError"));
    }

    #[test]
    fn a_misspelt_key_is_an_error_that_names_it() {
        assert!(read(json!({"txt": "hi"})).unwrap_err().contains("txt"));
        assert!(read(json!(7)).unwrap_err().contains("text or an object"));
    }

    #[test]
    fn pieces_join_to_the_text() {
        let pieces = |chunks: Option<Chunks>| Chunks::split(chunks.as_ref(), "äöüß!").concat();
        assert_eq!(pieces(None), "äöüß!");
        assert_eq!(pieces(Some(Chunks::Count(3))), "äöüß!");
        assert_eq!(Chunks::split(Some(&Chunks::Count(3)), "äöüß!"), ["äö", "üß", "!"]);
        assert_eq!(Chunks::split(Some(&Chunks::Count(9)), "ab"), ["a", "b"]);
        assert!(Chunks::split(None, "").is_empty());
        assert!(read(json!({"text": "ab", "chunks": ["a", "c"]})).is_err());
        assert_eq!(read(json!({"chunks": ["a", "c"]})).unwrap().whole_text().unwrap(), "ac");
    }
}
