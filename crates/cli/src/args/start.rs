//! What a session is started with, by `run` and by the chat, and what can be typed after `amplifier run`.

use std::time::Duration;

use amplifier_app::overrides::Override;
use amplifier_protocol::usage::Usd;
use clap::ValueEnum;

use super::{Output, PlanChoice};

/// What a session is started with.
#[derive(clap::Args, Clone)]
pub struct StartArgs {
    /// What to run; without either the bundle in use, else the built-in `foundation`.
    #[command(flatten)]
    pub choice: PlanChoice,

    /// The provider to ask, such as `anthropic`, before those of the plan or bundle; where none is named, one that is
    /// found here.
    #[arg(long, short, value_name = "PROVIDER", value_parser = named)]
    pub provider: Option<String>,

    /// The model to ask, instead of the provider's usual one.
    #[arg(long, short, value_name = "MODEL", value_parser = named)]
    pub model: Option<String>,

    /// The most tokens an answer of the first provider may have.
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub max_tokens: Option<u64>,

    /// The most the session and its agents may cost together, in US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars, allow_hyphen_values = true)]
    pub max_cost: Option<Usd>,

    /// Set one value of the plan, such as `tools.tool-bash.config.timeout=5`. May be given again.
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<Override>,

    /// What to answer when a tool needs permission; without it a person is asked, and where there is none: none.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub approve: Option<Approve>,

    /// Trust the project and everything that this command runs, this time only.
    #[arg(long)]
    pub trust: bool,

    /// Fetch nothing: use what is here.
    #[arg(long)]
    pub offline: bool,

    /// Fail when any module of the plan does not load, a server it names is not there, or no provider is found.
    #[arg(long)]
    pub strict: bool,
}

/// What to answer when a tool needs permission.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Approve {
    /// Yes to everything that no rule denies.
    All,
    /// Yes to tools that declare to change nothing, no to the others.
    Safe,
    /// No.
    None,
}

/// How `run` and `continue` end.
pub const EXIT_CODES: &str = "Exit codes: 0 answered, 1 failed, 2 usage or configuration, 3 denied or limit reached, \
                              124 out of time, 130 interrupted; 129, 141 and 143 when the terminal, the reader or \
                              another program ended it.";

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct RunArgs {
    #[command(flatten)]
    pub ask: AskArgs,

    /// Go on with this session instead of opening a new one. A provider or a model that is named is asked from here on.
    #[arg(long, value_name = "SESSION", required_if_eq("go_on", "true"))]
    pub resume: Option<String>,
}

/// What `run` and `continue` share: what is asked, and how it is answered.
#[derive(clap::Args, Clone)]
pub struct AskArgs {
    /// What to ask; read from standard input when it is left out or `-`. With both, what is piped in is added to the prompt.
    pub prompt: Option<String>,

    #[command(flatten)]
    pub start: StartArgs,

    /// Finish the turn that was interrupted or failed, instead of asking something new.
    #[arg(long = "continue", conflicts_with = "prompt")]
    pub go_on: bool,

    /// Give up after this time: seconds, or a number with `ms`, `s`, `m` or `h`.
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,

    /// What to print on standard output. Text comes as it forms where standard output is a terminal; into a pipe or a file
    /// goes the final answer alone, when it is whole.
    #[arg(long, alias = "output-format", value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub output: Output,

    /// Say nothing but the final answer, and errors.
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Tell every tool call, and what it all took, on standard error.
    #[arg(long, short)]
    pub verbose: bool,
}

/// What is said of a number that leaves nothing to work with.
const TOO_LITTLE: &str = "it must be more than 0";

fn named(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty; leave it out to have the usual one".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err(TOO_LITTLE.to_owned()),
        Ok(count) => Ok(count),
        Err(_) if text.starts_with('-') => Err(TOO_LITTLE.to_owned()),
        Err(_) => Err("not a whole number, such as 4096".to_owned()),
    }
}

fn dollars(text: &str) -> Result<Usd, String> {
    let number = text.trim_start_matches('$');
    if number.starts_with('-') {
        return Err(TOO_LITTLE.to_owned());
    }
    match number.parse() {
        Ok(amount) if amount == Usd::from_nanos(0) => Err(TOO_LITTLE.to_owned()),
        Ok(amount) => Ok(amount),
        Err(_) => Err("not an amount of dollars, such as 0.50".to_owned()),
    }
}

/// A time as people write it: `90`, `1.5s`, `5m`, `2h`, `250ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let unit = units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, seconds) = unit.unwrap_or((text, 1.0));
    let wrong = || format!("`{text}` is no time; write seconds, or such as 90s, 5m or 1h");
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    if number < 0.0 {
        return Err(TOO_LITTLE.to_owned());
    }
    // A number above 0 may be less than can be measured.
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if time.is_zero() => Err(TOO_LITTLE.to_owned()),
        Ok(time) => Ok(time),
        Err(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, millis) in
            [("90", 90_000), ("1.5s", 1_500), ("5m", 300_000), ("1h", 3_600_000), ("250ms", 250)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "soon", "-1", "0", "-0", "1e-10", "5d", "nan", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_dollars_and_more_than_nothing() {
        assert_eq!(dollars("$0.50").map(|amount| amount.to_string()), Ok("0.50".to_owned()));
        for text in ["-1", "-$1", "0", "$0.00", "cheap"] {
            assert!(dollars(text).is_err(), "{text}");
        }
    }
}
