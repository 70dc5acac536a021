//! What a server offers: its tools, resources and prompts, fetched page by page up to a bound; and word of changes.

use std::time::Duration;

use rmcp::model::{PaginatedRequestParams, Prompt, Resource, ResourceTemplate, SubscriptionFilter, Tool};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::Notify;

use super::Link;
use crate::reminder::{cut_bytes, one_line};

/// The most of each kind that one server can offer.
const MOST: usize = 1_000;
/// The most pages that are fetched; a server whose pages never end is cut off.
const MOST_PAGES: usize = 50;
/// The longest description, in bytes.
const LONGEST_ABOUT: usize = 10_000;
/// The largest schema, in bytes.
const LARGEST_SCHEMA: usize = 100_000;

/// What a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in super::super) struct Offer {
    pub(in super::super) tools: Vec<OfferedTool>,
    pub(in super::super) resources: Vec<Value>,
    pub(in super::super) templates: Vec<Value>,
    pub(in super::super) prompts: Vec<OfferedPrompt>,
    /// How the server wants to be used, in its own words.
    pub(in super::super) instructions: Option<String>,
    pub(in super::super) protocol: String,
    /// What was left out, and why.
    pub(in super::super) left_out: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct OfferedTool {
    pub(in super::super) name: String,
    pub(in super::super) description: Option<String>,
    pub(in super::super) schema: Value,
    pub(in super::super) read_only: bool,
    pub(in super::super) idempotent: bool,
    pub(in super::super) open_world: bool,
}

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct OfferedPrompt {
    pub(in super::super) name: String,
    pub(in super::super) description: Option<String>,
    /// Names of its arguments; those that must be given end with `*`.
    pub(in super::super) arguments: Vec<String>,
}

impl Link {
    /// Asks the server for everything it offers.
    pub(in super::super) async fn offer(&self) -> Result<Offer, String> {
        let peer = &self.peer;
        let Some(info) = peer.peer_info() else {
            return Err("the server said nothing about itself".to_owned());
        };
        let capabilities = &info.capabilities;
        let mut offer = Offer {
            instructions: info.instructions.as_deref().map(|text| cut_bytes(text, LONGEST_ABOUT).to_owned()),
            protocol: info.protocol_version.to_string(),
            ..Offer::default()
        };
        let refused = |what: &str, error: ServiceError| {
            format!("`{what}` failed: {}", super::brief(&error.to_string()))
        };
        if capabilities.tools.is_some() {
            let tools = pages(tool_page, peer);
            for tool in tools.await.map_err(|error| refused("tools/list", error))? {
                match offered_tool(tool) {
                    Ok(tool) => offer.tools.push(tool),
                    Err(why) => offer.left_out.push(why),
                }
            }
        }
        if capabilities.resources.is_some() {
            let resources = pages(resource_page, peer);
            let resources = resources.await.map_err(|error| refused("resources/list", error))?;
            offer.resources = resources.into_iter().map(offered_resource).collect();
            let templates = pages(template_page, peer);
            // Many servers have resources and never heard of templates.
            let templates = templates.await.unwrap_or_default();
            offer.templates = templates.into_iter().map(offered_template).collect();
        }
        if capabilities.prompts.is_some() {
            let prompts = pages(prompt_page, peer);
            let prompts = prompts.await.map_err(|error| refused("prompts/list", error))?;
            offer.prompts = prompts.into_iter().map(offered_prompt).collect();
        }
        Ok(offer)
    }
}

type Page<T> = Result<(Vec<T>, Option<String>), ServiceError>;
type Cursor = Option<PaginatedRequestParams>;

async fn tool_page(peer: Peer<RoleClient>, cursor: Cursor) -> Page<Tool> {
    peer.list_tools(cursor).await.map(|page| (page.tools, page.next_cursor))
}

async fn resource_page(peer: Peer<RoleClient>, cursor: Cursor) -> Page<Resource> {
    peer.list_resources(cursor).await.map(|page| (page.resources, page.next_cursor))
}

async fn template_page(peer: Peer<RoleClient>, cursor: Cursor) -> Page<ResourceTemplate> {
    peer.list_resource_templates(cursor).await.map(|page| (page.resource_templates, page.next_cursor))
}

async fn prompt_page(peer: Peer<RoleClient>, cursor: Cursor) -> Page<Prompt> {
    peer.list_prompts(cursor).await.map(|page| (page.prompts, page.next_cursor))
}

/// Every page of a list, up to the bound.
async fn pages<T, Fetched>(
    page: impl Fn(Peer<RoleClient>, Cursor) -> Fetched,
    peer: &Peer<RoleClient>,
) -> Result<Vec<T>, ServiceError>
where
    Fetched: Future<Output = Page<T>>,
{
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let (items, next) = page(peer.clone(), params).await?;
        all.extend(items);
        cursor = next;
        if cursor.is_none() || all.len() >= MOST {
            break;
        }
    }
    all.truncate(MOST);
    Ok(all)
}

fn offered_tool(tool: Tool) -> Result<OfferedTool, String> {
    let mut schema = Value::Object((*tool.input_schema).clone());
    if let Value::Object(map) = &mut schema {
        map.shift_remove("$schema");
        // Services want an object with this key, also for tools without arguments.
        map.entry("type").or_insert_with(|| Value::from("object"));
        map.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    let size = schema.to_string().len();
    if size > LARGEST_SCHEMA {
        return Err(format!(
            "tool `{}`: its schema has {size} bytes, more than {LARGEST_SCHEMA}",
            one_line(&tool.name, 100)
        ));
    }
    let hints = tool.annotations.unwrap_or_default();
    let about = tool.description.as_deref().or(tool.title.as_deref()).or(hints.title.as_deref());
    Ok(OfferedTool {
        description: about.map(|text| cut_bytes(text, LONGEST_ABOUT).to_owned()),
        schema,
        // What a server does not say is assumed the worse way, as the protocol itself has it.
        read_only: hints.read_only_hint.unwrap_or(false),
        idempotent: hints.idempotent_hint.unwrap_or(false),
        open_world: hints.open_world_hint.unwrap_or(true),
        name: tool.name.into_owned(),
    })
}

fn offered_resource(resource: Resource) -> Value {
    described(&[
        ("uri", Some(resource.uri)),
        ("name", Some(resource.name)),
        ("description", resource.description.or(resource.title)),
        ("mime_type", resource.mime_type),
    ])
}

fn offered_template(template: ResourceTemplate) -> Value {
    described(&[
        ("uri_template", Some(template.uri_template)),
        ("name", Some(template.name)),
        ("description", template.description.or(template.title)),
        ("mime_type", template.mime_type),
    ])
}

fn described(fields: &[(&str, Option<String>)]) -> Value {
    let given = fields.iter().filter_map(|(key, value)| {
        value.as_deref().map(|value| ((*key).to_owned(), Value::String(cut_bytes(value, 2_000).to_owned())))
    });
    Value::Object(given.collect())
}

fn offered_prompt(prompt: Prompt) -> OfferedPrompt {
    let arguments = prompt.arguments.unwrap_or_default().into_iter();
    let arguments = arguments.map(|argument| match argument.required {
        Some(true) => format!("{}*", argument.name),
        _ => argument.name,
    });
    OfferedPrompt {
        name: prompt.name,
        description: prompt.description.or(prompt.title),
        arguments: arguments.collect(),
    }
}

/// Hears of changes in the newer generation, as long as the server lets us.
pub(super) async fn listen(peer: &Peer<RoleClient>, changed: &Notify) {
    let Some(info) = peer.peer_info() else { return };
    let capabilities = &info.capabilities;
    let mut filter = SubscriptionFilter::builder();
    let mut any = false;
    if capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true)) {
        (filter, any) = (filter.tools_list_changed(), true);
    }
    if capabilities.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true)) {
        (filter, any) = (filter.prompts_list_changed(), true);
    }
    if capabilities.resources.as_ref().is_some_and(|resources| resources.list_changed == Some(true)) {
        (filter, any) = (filter.resources_list_changed(), true);
    }
    if !any {
        return;
    }
    let filter = filter.build();
    let mut pause = Duration::from_secs(1);
    loop {
        // A server that takes no subscriptions is one whose lists are fetched once.
        let Ok(mut subscription) = peer.listen(filter.clone()).await else { return };
        while let Ok(Some(_)) = subscription.next().await {
            changed.notify_one();
            pause = Duration::from_secs(1);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
        // What changed in between was told to nobody.
        changed.notify_one();
    }
}
