//! `cargo xtask gen`: reference pages written from the types, and the check that the committed ones are current.
//! Pages that people write are none of its business.

mod bundles;
mod events;
mod modules;
mod run;
mod schema;
mod settings;

use std::fs;

use crate::Outcome;
use crate::output::{TaskError, say};
use crate::workspace::Workspace;

/// A generated page: where it lives, from the root, and its text.
struct Page {
    path: &'static str,
    text: String,
}

/// Every page we generate.
fn pages(workspace: &Workspace) -> Result<Vec<Page>, TaskError> {
    Ok(vec![
        Page { path: "docs/reference/events.md", text: events::page()? },
        Page { path: "docs/reference/modules.md", text: modules::page(workspace)? },
        Page { path: "docs/reference/settings.md", text: settings::page(workspace)? },
        Page { path: "schemas/settings.schema.json", text: settings::schema(workspace)? },
        Page { path: "schemas/bundle.schema.json", text: bundles::bundle()? },
        Page { path: "schemas/agent.schema.json", text: bundles::agent()? },
        Page { path: "schemas/profile.schema.json", text: bundles::profile()? },
        Page { path: "schemas/mount-plan.schema.json", text: bundles::plan()? },
        Page { path: "schemas/run-jsonl.schema.json", text: run::lines()? },
        Page { path: "schemas/failure.schema.json", text: run::failure()? },
    ])
}

/// Writes the pages that differ from what is on disk.
pub(crate) fn write(workspace: &Workspace) -> Result<Outcome, TaskError> {
    for page in pages(workspace)? {
        let path = workspace.root.join(page.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == page.text) {
            say(&format!("{} is current", page.path))?;
            continue;
        }
        let failed = |source| TaskError::Write { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&path, &page.text).map_err(failed)?;
        say(&format!("{} written", page.path))?;
    }
    Ok(Outcome::Clean)
}

/// Compares the pages with what is on disk and says where they differ.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome, TaskError> {
    let mut outcome = Outcome::Clean;
    for page in pages(workspace)? {
        let path = workspace.root.join(page.path);
        let hint = match fs::read_to_string(&path) {
            Ok(text) => first_difference(&text, &page.text),
            Err(error) => Some(format!("  it could not be read: {error}")),
        };
        match hint {
            None => say(&format!("{} is current", page.path))?,
            Some(hint) => {
                outcome = Outcome::Found;
                say(&format!(
                    "{}: [stale] it differs from the types\n{hint}\n  cure: run `cargo xtask gen` and commit the page",
                    page.path
                ))?;
            }
        }
    }
    Ok(outcome)
}

/// The first line that differs, both versions of it.
fn first_difference(found: &str, expected: &str) -> Option<String> {
    if found == expected {
        return None;
    }
    let mut theirs = found.split('\n');
    let mut ours = expected.split('\n');
    for number in 1_usize.. {
        let (found, expected) = (theirs.next(), ours.next());
        if found != expected {
            let show = |line: Option<&str>| line.map_or("(end of file)".to_owned(), str::to_owned);
            return Some(format!("  line {number}\n  - {}\n  + {}", show(found), show(expected)));
        }
        if found.is_none() {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_page_is_shown_at_its_first_difference() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").as_deref(), Some("  line 2\n  - b\n  + c"));
        assert_eq!(first_difference("a", "a\nb").as_deref(), Some("  line 2\n  - (end of file)\n  + b"));
        assert_eq!(first_difference("a\n", "a").as_deref(), Some("  line 2\n  - \n  + (end of file)"));
    }
}
