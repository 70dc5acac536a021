//! Frames: calls between processes as JSON-RPC 2.0, one frame a line, in both directions.
//!
//! Parameters and results stay text until their reader parses them into a type, so that unknown content blocks cross a
//! wire byte for byte. What methods there are is not said here.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The version in every frame.
const VERSION: &str = "2.0";

/// The largest frame that is read.
pub const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// One line on the wire.
#[derive(Debug, Clone)]
pub enum Frame {
    /// A call that wants an answer.
    Request(Request),
    /// The answer to a call.
    Response(Response),
    /// A word that wants none.
    Notification(Notification),
}

/// A call that wants an answer.
#[derive(Debug, Clone)]
pub struct Request {
    /// Joins the call and its answer; each side numbers its own calls.
    pub id: RequestId,
    /// What is called, such as `tool.execute`.
    pub method: String,
    /// What it is called with.
    pub params: Box<RawValue>,
}

/// The answer to a call.
#[derive(Debug, Clone)]
pub struct Response {
    /// The call; `None` when the frame that caused an error could not be read.
    pub id: Option<RequestId>,
    /// What came of it.
    pub outcome: Result<Box<RawValue>, RpcError>,
}

/// A word that wants no answer, such as `cancel` or a piece of a stream.
#[derive(Debug, Clone)]
pub struct Notification {
    /// What it is about.
    pub method: String,
    /// What it says.
    pub params: Box<RawValue>,
}

/// The id of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number, as we make them.
    Number(u64),
    /// Text, as others may.
    Text(String),
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// Which kind of failure; see [`code`].
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// The error of the contract itself, as JSON, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// The agreed codes of errors.
pub mod code {
    /// The line is no JSON.
    pub const PARSE: i64 = -32_700;
    /// The JSON is no frame.
    pub const INVALID_REQUEST: i64 = -32_600;
    /// Nobody serves the method.
    pub const METHOD_NOT_FOUND: i64 = -32_601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32_602;
    /// The server broke.
    pub const INTERNAL: i64 = -32_603;
    /// The method ran and failed; `data` holds the contract's own error.
    pub const FAILED: i64 = -32_000;
    /// The other side went away before it answered.
    pub const GONE: i64 = -32_001;
}

impl RpcError {
    /// An error told by its code and message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// Why a line is no frame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The line is too long.
    #[error("a frame of {bytes} bytes is longer than the {MAX_FRAME_BYTES} allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The line is no JSON object with the keys of a frame.
    #[error("the line is no frame")]
    Json(#[from] serde_json::Error),
    /// The keys do not make a frame.
    #[error("the line is no frame: {reason}")]
    Shape {
        /// What is wrong.
        reason: &'static str,
    },
}

/// The keys of all frames.
#[derive(Serialize, Deserialize)]
struct Keys {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    id: Option<Option<RequestId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

/// A key that is there with `null` is not the same as a key that is not there.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Frame {
    /// Reads a line.
    pub fn read(line: &str) -> Result<Self, FrameError> {
        if line.len() > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong { bytes: line.len() });
        }
        let keys: Keys = serde_json::from_str(line)?;
        let shape = |reason| Err(FrameError::Shape { reason });
        if keys.jsonrpc != VERSION {
            return shape("`jsonrpc` is not \"2.0\"");
        }
        let params = keys.params.unwrap_or_else(|| RawValue::NULL.to_owned());
        match (keys.method, keys.id, keys.result, keys.error) {
            (Some(method), Some(Some(id)), None, None) => Ok(Self::Request(Request { id, method, params })),
            (Some(method), None, None, None) => Ok(Self::Notification(Notification { method, params })),
            (None, Some(id), Some(result), None) => Ok(Self::Response(Response { id, outcome: Ok(result) })),
            (None, Some(id), None, Some(error)) => Ok(Self::Response(Response { id, outcome: Err(error) })),
            (None, Some(_), _, _) => shape("an answer has either `result` or `error`"),
            (None, None, _, _) => shape("neither `method` nor `id` is there"),
            (Some(_), _, _, _) => shape("a call has an `id` that is no null, and no `result` or `error`"),
        }
    }

    /// The frame as one line, without its end.
    pub fn to_line(&self) -> Result<String, FrameError> {
        let mut keys = Keys {
            jsonrpc: VERSION.to_owned(),
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
        };
        match self.clone() {
            Self::Request(Request { id, method, params }) => {
                (keys.id, keys.method, keys.params) = (Some(Some(id)), Some(method), Some(params));
            }
            Self::Notification(Notification { method, params }) => {
                (keys.method, keys.params) = (Some(method), Some(params));
            }
            Self::Response(Response { id, outcome }) => {
                keys.id = Some(id);
                match outcome {
                    Ok(result) => keys.result = Some(result),
                    Err(error) => keys.error = Some(error),
                }
            }
        }
        let line = serde_json::to_string(&keys)?;
        // Raw text may bring line breaks along. JSON allows them only between tokens, where a space means the same.
        Ok(if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(line: &str) -> Frame {
        let frame = Frame::read(line).unwrap();
        assert_eq!(frame.to_line().unwrap(), line);
        frame
    }

    #[test]
    fn every_frame_comes_back_as_it_was_written() {
        let call = same(r#"{"jsonrpc":"2.0","id":1,"method":"tool.execute","params":{"n": 1.50}}"#);
        assert!(matches!(call, Frame::Request(Request { id: RequestId::Number(1), .. })));
        let word = same(r#"{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}"#);
        assert!(matches!(word, Frame::Notification(_)));
        let nothing = same(r#"{"jsonrpc":"2.0","id":"a","result":null}"#);
        assert!(matches!(nothing, Frame::Response(Response { outcome: Ok(_), .. })));
        let unread = same(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#);
        assert!(matches!(unread, Frame::Response(Response { id: None, outcome: Err(_) })));
    }

    #[test]
    fn a_call_without_params_is_a_call_with_null() {
        let frame = Frame::read(r#"{"jsonrpc":"2.0","id":1,"method":"hello"}"#).unwrap();
        assert!(matches!(frame, Frame::Request(Request { params, .. }) if params.get() == "null"));
    }

    #[test]
    fn line_breaks_inside_raw_text_do_not_break_the_line() {
        let params = RawValue::from_string("{\n  \"text\": \"a\\nb\"\r\n}".to_owned()).unwrap();
        let frame = Frame::Notification(Notification { method: "m".to_owned(), params });
        let line = frame.to_line().unwrap();
        assert!(!line.contains(['\n', '\r']), "{line}");
        let Frame::Notification(back) = Frame::read(&line).unwrap() else { panic!("{line}") };
        let value: Value = serde_json::from_str(back.params.get()).unwrap();
        assert_eq!(value, serde_json::json!({"text": "a\nb"}));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            r#"{"jsonrpc":"2.0","id":-1.5,"method":"m"}"#,
        ] {
            assert!(Frame::read(bad).is_err(), "{bad}");
        }
    }
}
