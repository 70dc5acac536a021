//! What happens in a session, for whoever tells people of it in one line: what says the most about a tool call, why something
//! takes longer.

use std::time::Duration;

use amplifier_modules::preview::patched_files;
use amplifier_protocol::event::ProviderRetry;
use amplifier_protocol::text::shorten;
use serde_json::Value;

/// How much is told of why a provider is asked again, in characters.
const WHY: usize = 100;

/// Keys of inputs that say the most, the first that is there counts.
const TELLING: [&str; 14] = [
    "command",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "agent",
    "agent_name",
    "skill_name",
    "name",
    "instruction",
    "prompt",
    "message",
    "text",
];

/// The files that a patch is about, else the one argument that says the most; nothing where no argument is known to.
pub fn argument(input: &Value) -> Option<String> {
    let files = patched_files(input);
    match files.is_empty() {
        true => TELLING.iter().find_map(|key| input.get(key)?.as_str().map(str::to_owned)),
        false => Some(files.join(", ")),
    }
}

/// That a provider is asked again, when and why.
pub fn retry(retry: &ProviderRetry) -> String {
    let why = retry.error_message.split_whitespace().collect::<Vec<_>>().join(" ");
    let ProviderRetry { provider, attempt, max_retries, delay, .. } = retry;
    let (wait, why) = (time(Duration::from_secs_f64(delay.clamp(0.0, 1e6))), shorten(&why, WHY));
    format!("`{provider}`: asking again in {wait}: {why} ({attempt} of {max_retries})")
}

/// A time in a unit that fits.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_said_in_a_unit_that_fits() {
        let said = [5, 1_500, 75_000].map(|millis| time(Duration::from_millis(millis)));
        assert_eq!(said, ["5 ms", "1.5 s", "1 min 15 s"]);
    }

    #[test]
    fn files_of_a_patch_come_first_and_then_the_first_key_that_tells() {
        let patch = "*** Begin Patch\n*** Add File: a b\n+x\n*** Delete File: c\n*** End Patch";
        assert_eq!(argument(&json!({"patch": patch, "path": "x"})).as_deref(), Some("a b, c"));
        assert_eq!(argument(&json!({"text": "t", "path": 1, "query": "q"})).as_deref(), Some("q"));
        assert_eq!([argument(&json!({"x": "y"})), argument(&json!("text"))], [None, None]);
    }
}
