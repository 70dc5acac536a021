//! Which changed files are worth a line: what tools make is counted, what editors and locks leave is listed sparingly.

use super::Config;

/// Folders that tools fill.
const MADE: [&str; 22] = [
    "node_modules/",
    "bower_components/",
    ".venv/",
    "venv/",
    "env/",
    "__pycache__/",
    ".tox/",
    ".eggs/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    "target/",
    "dist/",
    "build/",
    "out/",
    ".next/",
    ".nuxt/",
    ".gradle/",
    ".cache/",
    "coverage/",
    "*.pyc",
    "*.egg-info/",
];

/// What changes by itself.
const SIDE: [&str; 14] = [
    "*.lock",
    "*.lockb",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "go.sum",
    "*.log",
    "*.swp",
    "*.swo",
    "*~",
    ".DS_Store",
    "*.tmp",
    ".idea/",
    ".vscode/",
];

/// How much a path matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// Counted.
    Made,
    /// Listed sparingly.
    Side,
    /// Listed.
    Own,
}

/// Sorts paths into tiers.
#[derive(Debug)]
pub(super) struct Sieve<'a> {
    made: Vec<&'a str>,
    side: Vec<&'a str>,
}

impl<'a> Sieve<'a> {
    pub(super) fn of(config: &'a Config) -> Self {
        if !config.git_status_enable_path_filtering {
            return Self { made: Vec::new(), side: Vec::new() };
        }
        let more = |patterns: &'a [String]| patterns.iter().map(String::as_str);
        let made = MADE.into_iter().chain(more(&config.git_status_tier1_patterns_extend)).collect();
        let side = SIDE.into_iter().chain(more(&config.git_status_tier2_patterns_extend)).collect();
        Self { made, side }
    }

    pub(super) fn tier(&self, path: &str) -> Tier {
        if self.made.iter().any(|pattern| fits(pattern, path)) {
            return Tier::Made;
        }
        if self.side.iter().any(|pattern| fits(pattern, path)) { Tier::Side } else { Tier::Own }
    }
}

/// Whether a path fits a pattern: `folder/` or `folder/**` anywhere on its way, else the file's name; part by part, so
/// that `env/` is not `environment.py`.
fn fits(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_start_matches("./").trim_start_matches("**/");
    let folder = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix('/'));
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if folder.is_some() && !path.ends_with('/') {
        parts.pop();
    }
    let wanted: Vec<&str> = folder.unwrap_or(pattern).split('/').collect();
    let same = |parts: &[&str]| parts.iter().zip(&wanted).all(|(part, wanted)| wild(wanted, part));
    match folder {
        Some(_) => parts.windows(wanted.len()).any(same),
        None => parts.len().checked_sub(wanted.len()).and_then(|at| parts.get(at..)).is_some_and(same),
    }
}

/// `*` for any text, `?` for one character.
fn wild(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || Some(wanted) == text.get(from) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, from) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_part_by_part() {
        let config = Config {
            git_status_tier1_patterns_extend: vec!["gen/api/**".to_owned(), "*.pb.go".to_owned()],
            ..Config::default()
        };
        let sieve = Sieve::of(&config);
        for (path, tier) in [
            ("env/bin/python", Tier::Made),
            ("environment.py", Tier::Own),
            ("a/node_modules/", Tier::Made),
            ("target", Tier::Own),
            ("src/gen/api/x.rs", Tier::Made),
            ("gen/x.rs", Tier::Own),
            ("x.pb.go", Tier::Made),
            ("Cargo.lock", Tier::Side),
            ("a/.idea/x.xml", Tier::Side),
            ("src/main.rs", Tier::Own),
            ("foo.egg-info/PKG", Tier::Made),
        ] {
            assert_eq!(sieve.tier(path), tier, "{path}");
        }
        let open = Config { git_status_enable_path_filtering: false, ..Config::default() };
        assert_eq!(Sieve::of(&open).tier("node_modules/x"), Tier::Own);
    }
}
