//! `load_skill`: the list of skills, what is known about one, its text, and the files in its folder.

use std::io::Read;
use std::path::{Component, Path};
use std::sync::Arc;

use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::Effects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::SkillLoaded;
use super::front_matter::part;
use super::{Found, Shelf, Skill, find, lock};
use crate::files::blocking;
use crate::reminder::cut_bytes;

/// The most files of a skill that are named.
const FILES: usize = 100;
/// The largest file that is opened at all, in bytes.
const LARGEST: u64 = 10 * 1024 * 1024;

/// Reads skills: folders of knowledge for certain tasks.
///
/// `list` or `search` shows which there are, `info` what is known about one, `skill_name` loads its text. A skill may
/// name further files; read one with `skill_name` and `file`. Read a skill before you do what it is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The skill to load.
    #[serde(default)]
    skill_name: Option<String>,
    /// A file inside the skill's folder, relative to it; needs `skill_name`.
    #[serde(default)]
    file: Option<String>,
    /// Show all skills.
    #[serde(default)]
    list: bool,
    /// Show the skills with this text in their name or description.
    #[serde(default)]
    search: Option<String>,
    /// Show what is known about this skill, without its text.
    #[serde(default)]
    info: Option<String>,
    /// Not supported: skills are not fetched from elsewhere.
    #[serde(default)]
    source: Option<String>,
}

/// A skill in a list.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    name: String,
    description: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output {
    List {
        message: String,
        skills: Vec<Line>,
    },
    Search {
        message: String,
        matches: Vec<Line>,
    },
    Info {
        name: String,
        description: String,
        version: Option<String>,
        license: Option<String>,
        compatibility: Option<String>,
        allowed_tools: Vec<String>,
        path: String,
    },
    Loaded {
        content: String,
        skill_name: String,
        skill_directory: String,
        loaded_from: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        allowed_tools: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        total_bytes: Option<u64>,
    },
    File {
        content: String,
        skill_name: String,
        file: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        total_bytes: Option<u64>,
    },
}

pub(super) struct LoadSkill(pub(super) Arc<Shelf>);

impl TypedTool for LoadSkill {
    const NAME: &'static str = "load_skill";
    const EFFECTS: Effects = Effects::READS;
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        if input.source.is_some() {
            let message = "`source` is not supported: skills are not fetched from elsewhere; the person can put the \
                           folder under `.amplifier/skills` or name it in the config";
            return Err(ToolFailure::new(message).of_kind("Unsupported"));
        }
        if cx.cancel.is_cancelled() {
            return Err(ToolFailure::new("cancelled").of_kind("Cancelled"));
        }
        let found = self.0.look().await;
        match (input.list, input.search, input.info, input.skill_name) {
            (true, ..) => Ok(list(&found)),
            (_, Some(search), ..) => Ok(matching(&found, &search)),
            (_, _, Some(name), _) => known(&found, &name).map(info),
            (_, _, _, Some(name)) => {
                let skill = known(&found, &name)?.clone();
                match input.file {
                    Some(file) => self.file(skill, file).await,
                    None => self.load(skill).await,
                }
            }
            _ => Err(invalid("give `skill_name`, `list`, `search` or `info`")),
        }
    }
}

impl LoadSkill {
    async fn load(&self, skill: Skill) -> Result<Output, ToolFailure> {
        let (most, wanted) = (self.0.max_bytes, skill.clone());
        let (text, total_bytes, files) = blocking(move || {
            let (text, total) = read(&wanted, "SKILL.md", most)?;
            Ok((text, total, find::files_of(&wanted, FILES)))
        })
        .await?;
        let body = part(&text).map_or(text.as_str(), |parted| parted.body).trim().to_owned();
        let content = format!("# {}\n\n{body}", skill.name);
        lock(&self.0.loaded).push(skill.name.clone());
        self.0.coordinator.emit(SkillLoaded::of(&skill, content.chars().count())).await;
        Ok(Output::Loaded {
            content,
            skill_name: skill.name,
            skill_directory: skill.folder.display().to_string(),
            loaded_from: skill.root.display().to_string(),
            allowed_tools: skill.allowed_tools,
            files,
            total_bytes,
        })
    }

    async fn file(&self, skill: Skill, file: String) -> Result<Output, ToolFailure> {
        let (most, wanted, name) = (self.0.max_bytes, file.clone(), skill.name.clone());
        let (content, total_bytes) = blocking(move || read(&skill, &wanted, most)).await?;
        Ok(Output::File { content, skill_name: name, file, total_bytes })
    }
}

/// A text file of a skill, and its size when not all of it is shown. Links are followed before anything is decided.
fn read(skill: &Skill, file: &str, most: usize) -> Result<(String, Option<u64>), ToolFailure> {
    let path = Path::new(file);
    let missing = || {
        ToolFailure::new(format!(
            "skill `{}` has no file `{file}`; loading the skill names its files",
            skill.name
        ))
        .of_kind("NotFound")
    };
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if file.trim().is_empty() || !path.components().all(plain) {
        return Err(invalid("`file` must be relative to the skill's folder and stay in it"));
    }
    let real = skill.folder.join(path).canonicalize().map_err(|_| missing())?;
    if !real.starts_with(&skill.folder) {
        return Err(
            ToolFailure::new(format!("`{file}` leads out of the skill's folder")).of_kind("AccessDenied")
        );
    }
    let metadata = real.metadata().map_err(|_| missing())?;
    if !metadata.is_file() {
        return Err(invalid(format!("`{file}` is no file; loading the skill names its files")));
    }
    let failed = |error: std::io::Error| ToolFailure::new(format!("`{file}`: {error}")).of_kind("OSError");
    let mut bytes = Vec::new();
    // A little more than is shown, so that a character at the edge is whole.
    let wanted = u64::try_from(most).unwrap_or(LARGEST).saturating_add(8).min(LARGEST);
    std::fs::File::open(&real).map_err(failed)?.take(wanted).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.contains(&0) {
        return Err(invalid(format!("`{file}` is not text; its path is `{}`", real.display())));
    }
    let text = String::from_utf8_lossy(&bytes);
    if metadata.len() <= u64::try_from(most).unwrap_or(u64::MAX) {
        return Ok((text.into_owned(), None));
    }
    let note = format!("\n[cut: {most} of {} bytes are shown]", metadata.len());
    Ok((format!("{}{note}", cut_bytes(&text, most)), Some(metadata.len())))
}

fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(message).of_kind("InvalidInput")
}

fn known<'a>(found: &'a Found, name: &str) -> Result<&'a Skill, ToolFailure> {
    found.skill(name).ok_or_else(|| {
        let names: Vec<_> = found.skills.iter().take(50).map(|skill| skill.name.as_str()).collect();
        let there = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
        ToolFailure::new(format!("Skill '{name}' not found. Available: {there}")).of_kind("NotFound")
    })
}

fn lines<'a>(skills: impl Iterator<Item = &'a Skill>) -> Vec<Line> {
    skills.map(|skill| Line { name: skill.name.clone(), description: skill.description.clone() }).collect()
}

fn list(found: &Found) -> Output {
    let skills = lines(found.skills.iter());
    let message = if skills.is_empty() {
        "No skills found; the person can put skill folders under `.amplifier/skills`".to_owned()
    } else {
        format!("Available skills: {}", skills.len())
    };
    Output::List { message, skills }
}

fn matching(found: &Found, search: &str) -> Output {
    let wanted = search.to_lowercase();
    let fits = |skill: &&Skill| {
        skill.name.to_lowercase().contains(&wanted) || skill.description.to_lowercase().contains(&wanted)
    };
    let matches = lines(found.skills.iter().filter(fits));
    Output::Search { message: format!("{} skills match '{search}'", matches.len()), matches }
}

fn info(skill: &Skill) -> Output {
    Output::Info {
        name: skill.name.clone(),
        description: skill.description.clone(),
        version: skill.version.clone(),
        license: skill.license.clone(),
        compatibility: skill.compatibility.clone(),
        allowed_tools: skill.allowed_tools.clone(),
        path: skill.folder.join("SKILL.md").display().to_string(),
    }
}
