//! Whether what a person typed for a provider can be: an address, a name, a variable. What can never work is refused
//! before it is written. Whether somebody is at the address is not looked at here.

use url::Url;

use crate::expand::is_variable;

/// Why something typed cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// No address.
    #[error("`{0}` is no address of a service; one has a scheme and a host, as `http://localhost:8080/v1`")]
    Address(String),
    /// No name for an entry.
    #[error("`{0}` is no name for a provider; letters, digits, `-`, `_` and `.` make one, as `work-openai`")]
    Name(String),
    /// No name for a variable.
    #[error(
        "`{0}` is no name of a variable; letters, digits and `_` make one, and no digit is the first, as `OPENAI_API_KEY`"
    )]
    Variable(String),
}

/// Where a service is. A reference to a variable is taken as it is: what it says is known when it is used.
pub fn address(text: &str) -> Result<String, Unfit> {
    let text = text.trim();
    let parsed = Url::parse(text).ok();
    let fits = parsed.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match fits || text.contains("${") {
        true => Ok(text.to_owned()),
        false => Err(Unfit::Address(text.to_owned())),
    }
}

/// What an entry is called.
pub fn name(text: &str) -> Result<String, Unfit> {
    let text = text.trim();
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.starts_with(char::is_alphanumeric) && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(Unfit::Name(text.to_owned())),
    }
}

/// A variable.
pub fn variable(text: &str) -> Result<String, Unfit> {
    let text = text.trim();
    match is_variable(text) {
        true => Ok(text.to_owned()),
        false => Err(Unfit::Variable(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_work_is_refused() {
        for text in ["nonsense", "", "localhost:8080", "http://", "ftp://a/b", "a b"] {
            assert!(address(text).is_err(), "{text}");
        }
        for text in ["http://localhost:8080/v1", "https://a.example", "http://[::1]:1", "${PLACE}/v1"] {
            assert_eq!(address(text).as_deref(), Ok(text));
        }
        for text in ["a b", "", "-a", "a/b", "a:b"] {
            assert!(name(text).is_err(), "{text}");
        }
        assert_eq!(name(" my.work-2 ").as_deref(), Ok("my.work-2"));
        for text in ["not valid", "", "1A", "A-B", "${A}"] {
            assert!(variable(text).is_err(), "{text}");
        }
        assert_eq!(variable("_MY_KEY2").as_deref(), Ok("_MY_KEY2"));
    }
}
