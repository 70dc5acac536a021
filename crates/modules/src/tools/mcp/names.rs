//! Names under which the model calls what servers offer: `mcp__server__tool`, valid for every model service and unique.

use sha2::{Digest, Sha256};

/// What model services allow.
const LONGEST: usize = 64;

/// The name of a server's tool. Another than `taken` already says; the same input always gives the same name.
pub(super) fn tool_name(server: &str, tool: &str, taken: impl Fn(&str) -> bool) -> String {
    let plain = format!("mcp__{}__{}", tidy(server), tidy(tool));
    let changed = plain.len() > LONGEST || taken(&plain);
    if !changed {
        return plain;
    }
    let mut number = 0_u32;
    loop {
        let seed = format!("{server}\0{tool}\0{number}");
        let digest = Sha256::digest(seed.as_bytes());
        let mark: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let kept: String = plain.chars().take(LONGEST - mark.len() - 1).collect();
        let name = format!("{kept}_{mark}");
        if !taken(&name) {
            return name;
        }
        number = number.wrapping_add(1);
    }
}

fn tidy(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let tidy: String = text.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if tidy.is_empty() { "_".to_owned() } else { tidy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn usual_names_stay_readable_and_clashes_are_told_apart() {
        let free = |_: &str| false;
        assert_eq!(tool_name("git", "git_status", free), "mcp__git__git_status");
        assert_eq!(tool_name("my server", "a/b.c", free), "mcp__my_server__a_b_c");
        let first = tool_name("a b", "t", free);
        let second = tool_name("a_b", "t", |name| name == first);
        assert_ne!(first, second);
        assert!(second.starts_with("mcp__a_b__t_"), "{second}");
    }

    proptest! {
        #[test]
        fn every_name_is_valid_and_unique(pairs in prop::collection::vec((".{0,90}", ".{0,90}"), 1..20)) {
            let mut taken = BTreeSet::new();
            for (server, tool) in pairs {
                let name = tool_name(&server, &tool, |name| taken.contains(name));
                prop_assert!(name.len() <= LONGEST && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
                prop_assert!(taken.insert(name));
            }
        }
    }
}
