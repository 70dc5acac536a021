//! `amplifier agents …`: whom tasks can be handed to.

use std::path::PathBuf;

use amplifier_app::choice::Chosen;
use amplifier_app::library::Access;
use amplifier_app::prepare::PrepareOptions;
use amplifier_app::profiles::unfolded;
use serde_json::{Map, Value, json};

use super::load;
use crate::args::{AgentsCommand, AgentsListArgs, AgentsShowArgs, Form, PlanChoice};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// Where the column of descriptions begins.
const DESCRIPTIONS: usize = 22;
/// Where the column of what is known about one begins.
const FACTS: usize = 16;

/// `amplifier agents …`.
pub fn run(command: &AgentsCommand, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        let done = match command {
            AgentsCommand::List(args) => list(args, &access).await,
            AgentsCommand::Show(args) => show(args, &access).await,
        };
        done.unwrap_or_else(|exit| exit)
    })
}

/// An agent of a plan.
struct Agent {
    name: String,
    /// What the plan says about it.
    entry: Map<String, Value>,
    /// The file and line it was written at.
    at: Option<String>,
}

async fn agents(choice: &PlanChoice, access: &Access) -> Result<Vec<Agent>, Exit> {
    let chosen = load::chosen(&load::choice(choice), access, PrepareOptions::default()).await?;
    let plan = load::plan(&chosen)?;
    let agents = plan.agents.iter().filter_map(|(name, entry)| {
        let entry = unfolded(entry.as_object()?);
        Some(Agent { at: place(&chosen, name), name: name.clone(), entry })
    });
    Ok(agents.collect())
}

/// Where an agent was written: its words where it has any, else where it is listed.
fn place(chosen: &Chosen, name: &str) -> Option<String> {
    let name = name.replace('~', "~0").replace('/', "~1");
    let pointers = ["instruction", "content", "description"].map(|key| format!("/agents/{name}/{key}"));
    let all = pointers.iter().map(String::as_str);
    let draft = match chosen {
        Chosen::File(file) => {
            let path = file.path.display();
            let position = file.position_of(&format!("/agents/{name}"))?;
            return Some(format!("{path}:{}:{}", position.line, position.column));
        }
        Chosen::Bundle(bundle) => &bundle.loaded.plan,
        Chosen::Profile(profile) => profile.draft(),
    };
    let json = draft.to_json();
    let pointer = all.into_iter().find(|pointer| json.pointer(pointer).is_some());
    let place = draft.place_of(pointer.unwrap_or(&format!("/agents/{name}")));
    place.map(|place| place.to_string())
}

impl Agent {
    fn text(&self, key: &str) -> Option<&str> {
        self.entry.get(key).and_then(Value::as_str)
    }

    fn modules(&self, list: &str) -> Option<Vec<String>> {
        let list = self.entry.get(list)?.as_array()?;
        let name = |entry: &Value| entry.get("module").unwrap_or(entry).as_str().map(str::to_owned);
        Some(list.iter().filter_map(name).collect())
    }

    /// Which model it asks for, in the words of the plan.
    fn model(&self) -> Option<String> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let preference = |entry: &Value| {
            let part = |key: &str| entry.get(key).and_then(Value::as_str);
            match (part("provider"), part("model")) {
                (Some(provider), Some(model)) => format!("{provider}/{model}"),
                (Some(one), None) | (None, Some(one)) => one.to_owned(),
                (None, None) => entry.to_string(),
            }
        };
        if let Some(wanted) = self.entry.get("provider_preferences").and_then(Value::as_array) {
            return Some(wanted.iter().map(preference).collect::<Vec<_>>().join(", "));
        }
        ["model", "model_role"].iter().find_map(|key| self.entry.get(*key)).map(text)
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.text("description"),
            "at": self.at,
            "tools": self.modules("tools"),
            "model": self.model(),
        })
    }
}

async fn list(args: &AgentsListArgs, access: &Access) -> Result<Exit, Exit> {
    let agents = agents(&args.choice, access).await?;
    if args.output == Form::Json {
        render::json(&json!({ "agents": agents.iter().map(Agent::to_json).collect::<Vec<_>>() }));
        return Ok(Exit::Success);
    }
    if agents.is_empty() {
        render::out("there are no agents");
    }
    for agent in &agents {
        let about = agent.text("description").unwrap_or("says nothing about itself");
        // The first sentence is for lists; the rest is for the model that chooses.
        let about = about.trim().lines().next().unwrap_or_default();
        render::out(&render::entry(&agent.name, about, DESCRIPTIONS));
    }
    Ok(Exit::Success)
}

async fn show(args: &AgentsShowArgs, access: &Access) -> Result<Exit, Exit> {
    let agents = agents(&args.choice, access).await?;
    let Some(agent) = agents.iter().find(|agent| agent.name == args.name) else {
        let known: Vec<_> = agents.iter().map(|agent| format!("`{}`", agent.name)).collect();
        Remark::error(format!("there is no agent `{}`", args.name))
            .hint(match known.is_empty() {
                true => "the plan has no agents; `--bundle REF` names another".to_owned(),
                false => format!("there are {}", known.join(", ")),
            })
            .tell();
        return Err(Exit::Usage);
    };
    if args.output == Form::Json {
        let mut told = agent.to_json();
        if let Value::Object(told) = &mut told {
            told.insert("entry".to_owned(), Value::Object(agent.entry.clone()));
        }
        render::json(&told);
        return Ok(Exit::Success);
    }
    render::out(&agent.name);
    if let Some(about) = agent.text("description") {
        render::out(&render::wrapped(about.trim(), 0));
    }
    render::out("");
    let modules = |list: &str, otherwise: &str| match agent.modules(list) {
        Some(names) if names.is_empty() => "none".to_owned(),
        Some(names) => names.join(", "),
        None => otherwise.to_owned(),
    };
    let facts = [
        ("written at", agent.at.clone().unwrap_or_else(|| "not known".to_owned())),
        ("model", agent.model().unwrap_or_else(|| "that of whoever hands it a task".to_owned())),
        ("tools", modules("tools", "those of whoever hands it a task")),
        ("hooks", modules("hooks", "those of whoever hands it a task")),
    ];
    facts.iter().for_each(|(name, text)| render::out(&render::entry(name, text, FACTS)));
    match agent.text("instruction") {
        Some(instruction) => render::out(&format!("\n{}", instruction.trim_end())),
        None => render::out("\nIt has no instruction of its own."),
    }
    Ok(Exit::Success)
}
