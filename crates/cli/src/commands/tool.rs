//! `amplifier tool …`: which tools a session would have, and calling one by hand (`tool/invoke.rs`).

use std::path::PathBuf;

use amplifier_app::choice::Chosen;
use amplifier_app::library::Access;
use amplifier_app::prepare::PrepareOptions;
use amplifier_app::toolbox::{self, OfferedTool, Toolbox};
use amplifier_protocol::mount_plan::MountPlan;
use serde_json::json;

use super::module::{effects, key};
use super::{load, trust};
use crate::args::{Form, PlanChoice, ToolCommand, ToolInfoArgs, ToolListArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

mod invoke;

/// Where the column of descriptions begins.
const DESCRIPTIONS: usize = 22;

/// `amplifier tool …`.
pub fn run(command: &ToolCommand, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    match command {
        ToolCommand::List(args) => look(list(args, &access)),
        ToolCommand::Info(args) => look(info(args, &access)),
        ToolCommand::Invoke(args) => invoke::invoke(args, access),
    }
}

fn look(looking: impl Future<Output = Result<Exit, Exit>>) -> Exit {
    load::block_on(async { looking.await.unwrap_or_else(|exit| exit) })
}

/// What somebody chose, and its plan.
async fn plan(choice: &PlanChoice, access: &Access) -> Result<(Chosen, MountPlan), Exit> {
    let chosen = load::chosen(&load::choice(choice), access, PrepareOptions::default()).await?;
    let plan = load::plan(&chosen)?;
    trust::require(&load::choice(choice), &chosen, access)?;
    Ok((chosen, plan))
}

async fn toolbox(choice: &PlanChoice, access: &Access) -> Result<Toolbox, Exit> {
    let (chosen, plan) = plan(choice, access).await?;
    let resolver = chosen.resolver(&plan, access);
    let toolbox = toolbox::tools(&plan, access, resolver).await.map_err(|error| {
        render::error(&error, None);
        Exit::Failure
    })?;
    toolbox.missing.iter().for_each(|missing| Remark::warning(missing).tell());
    Ok(toolbox)
}

async fn list(args: &ToolListArgs, access: &Access) -> Result<Exit, Exit> {
    let toolbox = toolbox(&args.choice, access).await?;
    if args.output == Form::Json {
        render::json(&json!({ "tools": toolbox.tools, "missing": toolbox.missing }));
        return Ok(Exit::Success);
    }
    if toolbox.tools.is_empty() {
        render::out("there are no tools");
    }
    let mut module = None;
    for tool in &toolbox.tools {
        if module != Some(&tool.module) {
            if module.is_some() {
                render::out("");
            }
            render::out(tool.module.as_ref().map_or("Of no module", |module| module.as_str()));
            module = Some(&tool.module);
        }
        render::out(&render::entry(&tool.details.spec.name, &about(tool), DESCRIPTIONS));
    }
    Ok(Exit::Success)
}

/// The first paragraph; the others are for the model.
fn about(tool: &OfferedTool) -> String {
    let text = tool.details.spec.description.as_deref().unwrap_or_default().trim();
    let first = text.split("\n\n").next().unwrap_or_default();
    format!("{first} ({})", effects(tool.details.effects))
}

async fn info(args: &ToolInfoArgs, access: &Access) -> Result<Exit, Exit> {
    let toolbox = toolbox(&args.choice, access).await?;
    let Some(tool) = toolbox.tools.iter().find(|tool| tool.details.spec.name == args.name) else {
        let known: Vec<_> =
            toolbox.tools.iter().map(|tool| format!("`{}`", tool.details.spec.name)).collect();
        Remark::error(format!("there is no tool `{}` in this plan", args.name))
            .hint(match known.is_empty() {
                true => "the plan has no tools; `--bundle REF` names another".to_owned(),
                false => format!("there are {}", known.join(", ")),
            })
            .tell();
        return Err(Exit::Usage);
    };
    if args.output == Form::Json {
        render::json(&json!(tool));
        return Ok(Exit::Success);
    }
    let of = tool.module.as_ref().map(|module| format!(" of `{module}`")).unwrap_or_default();
    render::out(&format!("{}{of} ({})", tool.details.spec.name, effects(tool.details.effects)));
    if let Some(description) = &tool.details.spec.description {
        render::out(&render::wrapped(description, 0));
    }
    let input = &tool.details.input;
    render::out(if input.is_empty() { "\nIt takes no input." } else { "\nInput" });
    input.iter().for_each(|input| render::out(&key(input, 2)));
    Ok(Exit::Success)
}
