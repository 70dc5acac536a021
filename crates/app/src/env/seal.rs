//! Keeps the secrets of this process's environment from the programs it starts.
//!
//! A program of the same user can read the environment that another one was started with (`/proc/<pid>/environ`), its memory
//! and its files. So the process makes itself unreadable, and since root reads it all the same, it overwrites the values.

use amplifier_core::redact::{names_a_secret, redact_text};
#[cfg(target_os = "linux")]
use amplifier_modules::environment;

/// Takes the secrets of the environment out of reach of other programs. Call it first, before there are threads; variables are
/// read from a copy from then on.
///
/// Where the system has no such thing, or forbids it, everything stays readable as it was.
pub fn seal() {
    #[cfg(target_os = "linux")]
    {
        let holds_secret = environment::own()
            .iter()
            .any(|(name, value)| is_secret(name.as_encoded_bytes(), value.as_encoded_bytes()));
        if holds_secret {
            // First: afterwards not even this process may open its own memory.
            overwrite().ok();
        }
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).ok();
    }
}

/// Whether no other program gets this variable unless it is named. An address that carries a password is no secret where the
/// variable is that of a proxy: libraries look for it later.
pub(super) fn is_secret(name: &[u8], value: &[u8]) -> bool {
    let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
    let upper = name.to_ascii_uppercase();
    let is_named = names_a_secret(&name)
        || ["KEY", "TOKEN", "_PAT", "IDENTITY_HEADER"].iter().any(|end| upper.ends_with(end));
    let looks = || !upper.ends_with("_PROXY") && matches!(redact_text(&value), std::borrow::Cow::Owned(_));
    !value.is_empty() && (is_named || looks())
}

/// Overwrites the secrets in the variables that the system handed over when the process began.
#[cfg(target_os = "linux")]
fn overwrite() -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;

    let unknown = || std::io::Error::other("`/proc/self/stat` does not say where the environment is");
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in brackets, may hold blanks; the environment is the last but two of what follows.
    let (_, fields) = stat.rsplit_once(')').ok_or_else(unknown)?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let place = |field: usize| fields.get(field - 3).and_then(|field| field.parse::<u64>().ok());
    let (begin, end) = place(50).zip(place(51)).ok_or_else(unknown)?;
    let size = usize::try_from(end.saturating_sub(begin)).unwrap_or_default();
    let memory = std::fs::File::options().read(true).write(true).open("/proc/self/mem")?;
    let mut variables = vec![0; size];
    memory.read_exact_at(&mut variables, begin)?;
    let mut at = begin;
    for variable in variables.split_inclusive(|byte| *byte == 0) {
        let next = at + variable.len() as u64;
        if let Some(equals) = variable.iter().position(|byte| *byte == b'=') {
            let (name, value) = variable.split_at(equals);
            let value = value.strip_prefix(b"=").unwrap_or_default();
            let value = value.strip_suffix(b"\0").unwrap_or(value);
            if is_secret(name, value) {
                memory.write_all_at(&vec![0; value.len()], at + equals as u64 + 1)?;
            }
        }
        at = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn keys_are_secret_and_what_programs_need_is_not() {
        let secret = [
            ("ANTHROPIC_API_KEY", "x"),
            ("AZURE_OPENAI_KEY", "x"),
            ("IDENTITY_HEADER", "x"),
            ("GITHUB_TOKEN", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("NPM_PAT", "x"),
            ("DB_PASSWORD", "x"),
            ("DATABASE_URL", "postgres://me:hunter2@localhost/x"),
            ("MY_THING", "sk-ant-0123456789abcdef"),
        ];
        let plain = [
            ("PATH", "/usr/bin"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1/bus"),
            ("XDG_SESSION_ID", "3"),
            ("XAUTHORITY", "/run/x"),
            ("HTTPS_PROXY", "http://me:hunter2@localhost:1"),
            ("AMPLIFIER_MAX_TOKENS", "5"),
            ("OPENAI_API_KEY", ""),
        ];
        for (name, value) in secret {
            assert!(is_secret(name.as_bytes(), value.as_bytes()), "{name}");
        }
        for (name, value) in plain {
            assert!(!is_secret(name.as_bytes(), value.as_bytes()), "{name}");
        }
    }
}
