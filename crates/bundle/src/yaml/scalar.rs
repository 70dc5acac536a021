//! What a plain scalar means: the core types of YAML 1.2, and the booleans of 1.1 that people still write.
//! Quoted text never comes here.

use serde_json::Number;

use crate::node::NodeValue;

/// A value, and why its spelling deserves a word.
pub(super) struct Resolved {
    pub(super) value: NodeValue,
    pub(super) doubt: Option<String>,
}

/// Reads a scalar that stands without quotes.
pub(super) fn resolve(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return plain(NodeValue::Null),
        "true" | "True" | "TRUE" => return plain(NodeValue::Bool(true, text.into())),
        "false" | "False" | "FALSE" => return plain(NodeValue::Bool(false, text.into())),
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return old_boolean(text, Truth::Yes),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => return old_boolean(text, Truth::No),
        _ => {}
    }
    if !text.starts_with(['-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return plain(NodeValue::Text(text.to_owned()));
    }
    integer(text).or_else(|| float(text)).unwrap_or_else(|| plain(NodeValue::Text(text.to_owned())))
}

/// Reads an integer in one of the notations of the core types.
pub(super) fn integer(text: &str) -> Option<Resolved> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(text, digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(text, digits, 8);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    let Ok(number) = number else {
        return Some(Resolved {
            value: NodeValue::Text(text.to_owned()),
            doubt: Some(format!("`{text}` does not fit into 64 bits and is kept as text")),
        });
    };
    let doubt = (digits.len() > 1 && digits.starts_with('0'))
        .then(|| format!("`{text}` is read as the decimal number {number}, not as an octal one"));
    Some(Resolved { value: NodeValue::Number(number, text.into()), doubt })
}

/// Reads a decimal fraction; what JSON cannot say stays text.
pub(super) fn float(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Resolved {
            value: NodeValue::Text(text.to_owned()),
            doubt: Some(format!("`{text}` has no counterpart in a mount plan and is kept as text")),
        });
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) || !exponent_fits {
        return None;
    }
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    Some(match number {
        Some(number) => plain(NodeValue::Number(number, text.into())),
        None => Resolved {
            value: NodeValue::Text(text.to_owned()),
            doubt: Some(format!("`{text}` is too large for a number and is kept as text")),
        },
    })
}

fn radix(text: &str, digits: &str, radix: u32) -> Option<Resolved> {
    // `from_str_radix` would take a sign here, which YAML does not.
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    Some(plain(NodeValue::Number(Number::from(number), text.into())))
}

enum Truth {
    Yes,
    No,
}

fn old_boolean(text: &str, truth: Truth) -> Resolved {
    let flag = matches!(truth, Truth::Yes);
    Resolved { value: NodeValue::Bool(flag, text.into()), doubt: Some(format!("`{text}` is read as {flag}")) }
}

fn plain(value: NodeValue) -> Resolved {
    Resolved { value, doubt: None }
}
