//! Finding skills: folders with a `SKILL.md` below the roots, links not followed out of them, everything bounded.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::front_matter::part;

/// How deep below a root is looked.
const DEPTH: usize = 6;
/// How many folders and files are looked at below one root.
const ENTRIES: usize = 20_000;
/// How many skills there may be.
const SKILLS: usize = 500;
/// How much of a `SKILL.md` is read for its head.
const HEAD: u64 = 64 * 1024;
/// Folders nobody keeps skills in.
const SKIPPED: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];

/// A skill.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) version: Option<String>,
    pub(super) license: Option<String>,
    pub(super) compatibility: Option<String>,
    pub(super) allowed_tools: Vec<String>,
    /// Its folder, links followed.
    pub(super) folder: PathBuf,
    /// The folder it was looked for in.
    pub(super) root: PathBuf,
}

/// What was found, by name.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) skills: Vec<Skill>,
    pub(super) warnings: Vec<String>,
}

impl Found {
    pub(super) fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

/// Everything below the roots; of two skills with one name the first counts. Touches the disk.
pub(super) fn skills(roots: &[PathBuf]) -> Found {
    let (mut skills, mut warnings): (BTreeMap<String, Skill>, _) = (BTreeMap::new(), Vec::new());
    for root in roots {
        // A root that is not there holds nothing.
        let Ok(root) = root.canonicalize() else { continue };
        for file in files(&root, &mut warnings) {
            let skill = match read(&file, &root) {
                Ok(skill) => skill,
                Err(why) => {
                    warnings.push(format!("`{}` is no skill: {why}", file.display()));
                    continue;
                }
            };
            warnings.extend(doubts(&skill));
            if let Some(first) = skills.get(&skill.name) {
                let (name, first) = (&skill.name, first.folder.display());
                warnings
                    .push(format!("skill `{name}` in `{}` is hidden by `{first}`", skill.folder.display()));
            } else if skills.len() >= SKILLS {
                warnings.push(format!("more than {SKILLS} skills; the rest is left out"));
                break;
            } else {
                skills.insert(skill.name.clone(), skill);
            }
        }
    }
    Found { skills: skills.into_values().collect(), warnings }
}

/// Every `SKILL.md` below a root, in the order of their paths.
fn files(root: &Path, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let (mut found, mut folders, mut looked_at) = (Vec::new(), vec![(root.to_path_buf(), 0)], 0);
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES {
                warnings.push(format!("`{}` holds too much; not all of it was looked at", root.display()));
                found.sort();
                return found;
            }
            let (name, path) = (entry.file_name(), entry.path());
            // Links lead elsewhere: a link to a folder is followed only when it stays inside the root.
            let inside = || path.canonicalize().is_ok_and(|real| real.starts_with(root));
            let kind = entry.file_type();
            let is_link = kind.as_ref().is_ok_and(|kind| kind.is_symlink());
            if name == "SKILL.md" && path.is_file() && inside() {
                found.push(path);
            } else if !is_link && kind.is_ok_and(|kind| kind.is_dir()) && depth < DEPTH {
                let name = name.to_string_lossy();
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_ref()) {
                    folders.push((path, depth + 1));
                }
            }
        }
    }
    found.sort();
    found
}

fn read(file: &Path, root: &Path) -> Result<Skill, String> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    opened.take(HEAD).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let parted = part(&text).ok_or("it does not begin with a head between two lines of `---`")?;
    let needed = |key: &str| {
        let value = parted.key(key).map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        value.ok_or_else(|| format!("its head has no `{key}`"))
    };
    let own = |key: &str| parted.key(key).map(str::to_owned);
    let folder = file.parent().unwrap_or(root);
    Ok(Skill {
        name: needed("name")?,
        description: needed("description")?,
        version: own("version"),
        license: own("license"),
        compatibility: own("compatibility"),
        allowed_tools: parted
            .key("allowed-tools")
            .into_iter()
            .flat_map(|tools| tools.split([' ', ',']).filter(|tool| !tool.is_empty()).map(str::to_owned))
            .collect(),
        folder: folder.canonicalize().map_err(|error| error.to_string())?,
        root: root.to_path_buf(),
    })
}

/// What is not as it should be, although the skill can be used.
fn doubts(skill: &Skill) -> Vec<String> {
    let (name, mut doubts) = (&skill.name, Vec::new());
    let fits =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if name.len() > 64 || !name.split('-').all(fits) {
        doubts.push(format!("the name of skill `{name}` should be at most 64 of a-z, 0-9 and single `-`"));
    }
    if skill.folder.file_name().is_none_or(|folder| folder != name.as_str()) {
        doubts.push(format!(
            "skill `{name}` should be in a folder of that name, not `{}`",
            skill.folder.display()
        ));
    }
    if skill.description.chars().count() > 1_024 {
        doubts.push(format!("the description of skill `{name}` is longer than 1024 characters"));
    }
    if skill.compatibility.as_ref().is_some_and(|text| text.chars().count() > 500) {
        doubts.push(format!("`compatibility` of skill `{name}` is longer than 500 characters"));
    }
    doubts
}

/// The files of a skill beside its `SKILL.md`, relative to its folder; at most so many. Touches the disk.
pub(super) fn files_of(skill: &Skill, most: usize) -> Vec<String> {
    let (mut files, mut folders, mut looked_at) = (Vec::new(), vec![(skill.folder.clone(), 0)], 0);
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if looked_at > ENTRIES {
                break;
            } else if kind.is_dir() && depth < DEPTH && !entry.file_name().to_string_lossy().starts_with('.')
            {
                folders.push((path, depth + 1));
            } else if kind.is_file()
                && entry.file_name() != "SKILL.md"
                && let Ok(inner) = path.strip_prefix(&skill.folder)
            {
                files.push(inner.display().to_string());
            }
        }
    }
    files.sort();
    files.truncate(most);
    files
}
