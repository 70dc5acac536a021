//! `amplifier version`: what this program is, and which files it writes.

use std::path::PathBuf;

use amplifier_app::about::About;
use amplifier_app::env::Environment;
use amplifier_app::open::find_home;
use amplifier_app::spelling;
use serde_json::{Value, json};

use crate::args::{Form, VersionArgs};
use crate::exit::Exit;
use crate::render;

/// Where the column of values begins.
const VALUES: usize = 16;

/// `amplifier version`.
pub fn run(args: &VersionArgs, home: Option<PathBuf>) -> Exit {
    let about = About::new();
    // A machine without a home has a version all the same.
    let home =
        find_home(home, &Environment::Process).ok().map(|home| spelling::told(home.root()).into_owned());
    if args.json || args.output == Form::Json {
        let mut told = json!(about);
        if let Value::Object(told) = &mut told {
            told.insert("home".to_owned(), json!(home));
        }
        render::json(&told);
        return Exit::Success;
    }
    render::out(&format!("amplifier {}", about.version));
    let formats = &about.formats;
    let rows = [
        ("platform", format!("{} ({})", about.platform, about.build)),
        ("commit", about.commit.unwrap_or("not told by whoever built it").to_owned()),
        ("modules", format!("{} built in", about.modules)),
        (
            "writes",
            format!(
                "journal {}, registry {}, bundle.lock {}, profile.lock {}",
                formats.journal, formats.registry, formats.bundle_lock, formats.profile_lock
            ),
        ),
        ("home", home.unwrap_or_else(|| "none".to_owned())),
    ];
    rows.iter().for_each(|(name, text)| render::out(&render::entry(name, text, VALUES)));
    Exit::Success
}
