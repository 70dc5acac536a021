//! The one canonical text of a JSON value (RFC 8785) and the hash of a mount plan.
//!
//! Two plans with one hash mount the same modules with the same settings, whichever dialect they were written in.
//! This file compares nothing and stores nothing: what a changed hash means is the session's business.

use std::fmt;
use std::str::FromStr;

use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

const PREFIX: &str = "sha256:";

/// A value has no canonical text, such as one that holds a number JSON cannot write.
#[derive(Debug, thiserror::Error)]
#[error("value has no canonical JSON")]
pub struct CanonicalError(#[source] serde_json::Error);

/// The hash of a plan's canonical nested form: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanHash(String);

/// A text is not the hash of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plan hash `{0}` is not `sha256:` and 64 lower-case hexadecimal digits")]
pub struct PlanHashError(String);

/// The canonical text of a value: keys sorted by UTF-16 code units, no spaces, numbers as ECMAScript writes them.
///
/// Numbers are IEEE doubles there, so integers beyond 2^53 are rounded; identity of such values needs a string.
///
/// # Errors
/// [`CanonicalError`] if the value cannot be written as JSON; values that were parsed from JSON always can.
pub fn canonical_json(value: &Value) -> Result<String, CanonicalError> {
    serde_json_canonicalizer::to_string(value).map_err(CanonicalError)
}

/// The hash that identifies a plan, equal for both dialects of it.
///
/// # Errors
/// As [`canonical_json`].
pub fn plan_hash(plan: &MountPlan) -> Result<PlanHash, CanonicalError> {
    let text = canonical_json(&plan.write(PlanForm::Nested))?;
    let mut hash = String::with_capacity(PREFIX.len() + 64);
    hash.push_str(PREFIX);
    for byte in Sha256::digest(text.as_bytes()) {
        for digit in [byte >> 4, byte & 0xf] {
            hash.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    Ok(PlanHash(hash))
}

impl PlanHash {
    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PlanHash {
    type Err = PlanHashError;

    fn from_str(text: &str) -> Result<Self, PlanHashError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        match text.strip_prefix(PREFIX) {
            Some(digits) if digits.len() == 64 && digits.bytes().all(is_digit) => Ok(Self(text.to_owned())),
            _ => Err(PlanHashError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for PlanHash {
    type Error = PlanHashError;

    fn try_from(text: String) -> Result<Self, PlanHashError> {
        text.parse()
    }
}

impl From<PlanHash> for String {
    fn from(hash: PlanHash) -> Self {
        hash.0
    }
}

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(text: &str) -> String {
        canonical_json(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn the_sample_of_the_rfc_comes_out_as_printed_there() {
        let sample = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let expected = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#,
        );
        assert_eq!(canonical(sample), expected);
    }

    #[test]
    fn keys_are_sorted_by_utf_16_code_units() {
        let sample = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O"}"#;
        let order: Vec<_> = ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"].into();
        let text = canonical(sample);
        let places: Vec<_> = order.iter().map(|word| text.find(word).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        let cases = [
            ("-0.0", "0"),
            ("5e-324", "5e-324"),
            ("-5e-324", "-5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740992", "9007199254740992"),
            ("295147905179352830000", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("1e23", "1e+23"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
            ("333333333.3333332", "333333333.3333332"),
            ("1.0", "1"),
        ];
        for (number, expected) in cases {
            assert_eq!(canonical(number), expected, "{number}");
        }
    }

    #[test]
    fn both_dialects_of_a_plan_share_a_hash_and_a_changed_value_does_not() {
        let read = |plan| plan_hash(&MountPlan::read(&plan).unwrap()).unwrap();
        let strings = read(json!({
            "session": { "orchestrator": "l", "context": "c" }, "context": { "config": { "a": 1, "b": 2 } },
        }));
        let nested = read(json!({
            "tools": [],
            "session": { "context": { "config": { "b": 2, "a": 1 }, "module": "c" }, "orchestrator": { "module": "l" } },
        }));
        let other = read(json!({ "session": { "orchestrator": "l", "context": "c" } }));
        assert_eq!(strings, nested);
        assert_ne!(strings, other);
        let bytes = r#"{"session":{"context":{"module":"c"},"orchestrator":{"module":"l"}}}"#;
        let digits: String =
            Sha256::digest(bytes.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(other.as_str(), format!("sha256:{digits}"));
        assert_eq!(other.as_str().parse(), Ok(other.clone()));
        assert!("sha256:00".parse::<PlanHash>().is_err());
    }
}
