//! File types by name: ripgrep's, and the names models use for them.

use amplifier_core::contracts::ToolFailure;
use ignore::types::{Types, TypesBuilder};

/// Other names of types.
const ALIASES: [(&str, &str); 16] = [
    ("typescript", "ts"),
    ("javascript", "js"),
    ("python", "py"),
    ("ruby", "rb"),
    ("markdown", "md"),
    ("shell", "sh"),
    ("bash", "sh"),
    ("csharp", "cs"),
    ("c#", "cs"),
    ("c++", "cpp"),
    ("cplusplus", "cpp"),
    ("golang", "go"),
    ("rs", "rust"),
    ("yml", "yaml"),
    ("tsx", "ts"),
    ("jsx", "js"),
];

/// What is named when a type is unknown; ripgrep knows more than anybody wants to read.
const COMMON: [&str; 25] = [
    "c", "cpp", "cs", "css", "go", "html", "java", "js", "json", "kotlin", "lua", "md", "perl", "php", "py",
    "ruby", "rust", "scala", "sh", "sql", "swift", "toml", "ts", "xml", "yaml",
];

/// The files of a type.
pub(super) fn types(name: &str) -> Result<Types, ToolFailure> {
    let lower = name.trim().to_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, kind)| *kind);
    let kind = match alias.unwrap_or(&lower) {
        // ripgrep spells it out.
        "rb" => "ruby",
        "cs" => "csharp",
        "md" => "markdown",
        kind => kind,
    };
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    builder.select(kind);
    builder.build().map_err(|_| {
        let message = format!("Unknown file type: {name}. Known types: {} and more", COMMON.join(", "));
        ToolFailure::new(message).of_kind("InvalidInput")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_and_every_common_name_is_known() {
        for name in ALIASES.iter().map(|(alias, _)| *alias).chain(COMMON) {
            assert!(types(name).is_ok(), "{name}");
        }
        let matches = |name: &str, file: &str| types(name).unwrap().matched(file, false).is_whitelist();
        assert!(matches("tsx", "a.tsx") && matches("python", "a.py") && matches("cs", "a.cs"));
        assert!(!matches("python", "a.rs"));
    }

    #[test]
    fn an_unknown_type_names_known_ones() {
        let failure = types("klingon").unwrap_err();
        assert!(failure.message.starts_with("Unknown file type: klingon. Known types: c, cpp,"));
    }
}
