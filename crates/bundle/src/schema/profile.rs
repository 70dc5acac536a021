//! The shape of a `profile.md` head. The `profile` crate reads it and says more; a test keeps the keys the same.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;

use super::{ModuleEntry, SessionSection};

/// A profile: what a session is made of, with a source for each part. This is the head between `---` lines of a `.md` file;
/// the text below it is the instruction.
#[derive(JsonSchema, Serialize)]
#[schemars(title = "Amplifier profile")]
pub struct ProfileFile {
    /// Who the profile is. Everything else stands beside it, not in it.
    profile: ProfileHead,
    /// The two modules without which there is no session; a profile that extends another may leave them to it.
    session: Option<SessionSection>,
    /// Model providers; the first is the default one.
    providers: Option<Vec<ModuleEntry>>,
    /// Tools the model may call.
    tools: Option<Vec<ModuleEntry>>,
    /// Hooks that watch and steer.
    hooks: Option<Vec<ModuleEntry>>,
    /// Agents: a file each, by name.
    agents: Option<References>,
    /// Folders of files that `@name:path` reaches, by name.
    context: Option<References>,
    /// Hints for whoever shows the session.
    ui: Option<BTreeMap<String, Value>>,
    /// Hints about handing out tasks.
    task: Option<BTreeMap<String, Value>>,
}

/// Who a profile is.
#[derive(JsonSchema, Serialize)]
pub struct ProfileHead {
    /// The name: letters, digits and dashes.
    name: String,
    /// The version of the profile.
    version: Version,
    /// What it is for.
    description: Option<String>,
    /// The profile below: a name of the same collection, or `collection/profile`.
    extends: Option<String>,
    /// The version of this format.
    schema_version: SchemaVersion,
    /// A label for people.
    display_name: Option<String>,
}

/// A version, also where it reads like a number.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Version {
    /// As text.
    Text(String),
    /// As a number, such as `1.0`.
    Number(f64),
}

/// The version of the format, which is 2.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum SchemaVersion {
    /// The number.
    Number(#[schemars(extend("const" = 2))] u32),
    /// The number in quotes.
    Text(#[schemars(extend("const" = "2"))] String),
}

/// Things that are fetched: by name, or in a list, where they are named by their place in it.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum References {
    /// By name: a path from this file, or an address.
    Named(BTreeMap<String, Value>),
    /// In order.
    Listed(Vec<String>),
}

/// The schema of profile files.
pub fn profile_schema() -> Schema {
    schema_for!(ProfileFile)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let schema = profile_schema().to_value();
        let keys = |schema: &Value| -> BTreeSet<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let head = crate::bundle::HEADS.iter().find(|head| head.0 == "profile").unwrap().2;
        let head: BTreeSet<_> = head.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(keys(&schema["$defs"]["ProfileHead"]), head);
        let known = crate::bundle::BUNDLE_KEYS;
        // What a host may read of a profile beyond what it shares with bundles.
        let strange: Vec<_> =
            keys(&schema).into_iter().filter(|key| !known.contains(&key.as_str())).collect();
        assert_eq!(strange, ["task"]);
    }
}
