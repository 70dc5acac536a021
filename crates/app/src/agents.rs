//! `@agent:NAME` in a prompt: the person wants that agent to do it. The model is told to hand the work over; it still decides
//! what exactly the agent is asked.

use amplifier_bundle::mention::{FailedMention, MentionFault};
use amplifier_bundle::notice::quoted;
use amplifier_core::coordinator::Coordinator;

/// How the mention of an agent begins.
const MARK: &str = "@agent:";
/// The tools that hand work to an agent, the first that is there is used. Both take `agent` and `instruction`.
const TOOLS: [&str; 2] = ["task", "delegate"];

/// Takes the mentions of agents out of those that led to no file; gives what the model is told about them. One that cannot be
/// asked stays, with the reason.
pub(crate) fn take_mentions(failed: &mut Vec<FailedMention>, at: &Coordinator) -> Option<String> {
    let tool = TOOLS.into_iter().find(|name| at.tool(name).is_some());
    let known = &at.plan().agents;
    let mut wanted = Vec::new();
    failed.retain_mut(|mention| {
        let Some(name) = mention.mention.strip_prefix(MARK) else { return true };
        let why = match (known.contains_key(name), tool) {
            (true, Some(_)) => {
                wanted.push(name.to_owned());
                return false;
            }
            (true, None) => "the session has no tool that hands work to agents, such as `task`".to_owned(),
            (false, _) if known.is_empty() => "the session has no agents".to_owned(),
            (false, _) => {
                format!("there is no such agent; known are {}", quoted(known.keys().map(String::as_str)))
            }
        };
        mention.reason = MentionFault::NoAgent(why);
        true
    });
    let tool = tool.filter(|_| !wanted.is_empty())?;
    let (agents, them) = match wanted.as_slice() {
        [one] => (format!("the agent `{one}`"), "it"),
        many => (format!("the agents {}", quoted(many.iter().map(String::as_str))), "each of them"),
    };
    Some(format!(
        "<system-reminder source=\"mention\">The person names {agents} and wants this done by {them}: call `{tool}` with the \
         name as `agent` and the whole task as `instruction`, then answer with what came of it.</system-reminder>"
    ))
}
