//! What a hook answers: go on, stop, change the data, add to the context, or ask.
//!
//! In Rust an answer is one tagged choice, so a denial cannot carry an approval prompt; on the wire it is the one flat
//! object that the specification shows, every field present. How several answers are joined is the kernel's business.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::ModuleId;
use crate::message::Role;
use crate::tool::Effects;

/// How long an approval waits unless the hook says otherwise, in seconds.
pub const DEFAULT_APPROVAL_TIMEOUT: f64 = 300.0;
/// The longest wait that is taken for a time, in seconds: a year.
pub const LONGEST_APPROVAL_TIMEOUT: f64 = 366.0 * 24.0 * 3_600.0;

/// One hook's answer to one event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct HookResult {
    /// What shall happen.
    pub action: HookAction,
    /// Replacement data for [`HookAction::Modify`]; with any other action, what `emit_and_collect` gathers.
    pub data: Option<Map<String, Value>>,
    /// Something to show to the person, whatever the action.
    pub message: Option<UserMessage>,
    /// Why, for any action but a denial, which carries its own.
    pub reason: Option<String>,
    /// Hide the hook's own output.
    pub suppress_output: bool,
    /// Other keys.
    pub extra: Map<String, Value>,
}

/// What shall happen.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum HookAction {
    /// Go on.
    #[default]
    Continue,
    /// Do not do it.
    Deny {
        /// Why, for the model to read.
        reason: String,
    },
    /// Go on with other data; see [`HookResult::data`].
    Modify,
    /// Tell the model something.
    InjectContext(Injection),
    /// Let the person decide.
    AskUser(Question),
}

/// Text that a hook adds to the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Injection {
    /// The text.
    pub text: String,
    /// In whose name it is said.
    pub role: InjectionRole,
    /// Only for the next model call, never stored.
    pub ephemeral: bool,
    /// Put it at the end of the last tool result instead of a message of its own (ephemeral only).
    pub append_to_last_tool_result: bool,
}

/// In whose name an injection is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InjectionRole {
    /// As an instruction.
    #[default]
    System,
    /// As the person.
    User,
    /// As the model.
    Assistant,
}

impl From<InjectionRole> for Role {
    fn from(role: InjectionRole) -> Self {
        match role {
            InjectionRole::System => Self::System,
            InjectionRole::User => Self::User,
            InjectionRole::Assistant => Self::Assistant,
        }
    }
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// What is asked.
    pub prompt: String,
    /// The answers on offer. What each means is its decision; its text is only shown.
    pub options: Vec<ApprovalOption>,
    /// Seconds to wait.
    pub timeout: f64,
    /// What silence means.
    pub default: ApprovalDefault,
    /// The tool call it is about, as far as it is about one. The kernel fills it in for whoever is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<AskedCall>,
}

/// An answer on offer.
///
/// On the wire it is its text alone where that has the same meaning in English, such as `Allow once` or `No`, and
/// `{"text": "Ja", "decision": "allow_once"}` in every other case. A text that means nothing known denies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenOption", into = "WrittenOption")]
#[schemars(with = "WrittenOption")]
pub struct ApprovalOption {
    /// What the user reads.
    pub text: String,
    /// What choosing it means.
    pub decision: ApprovalDecision,
}

/// What an answer means. The later is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// Yes, and the same question is not asked again.
    AllowAlways,
    /// Yes, this time.
    AllowOnce,
    /// No.
    Deny,
}

/// An option as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenOption {
    Text(String),
    Typed { text: String, decision: ApprovalDecision },
}

impl ApprovalOption {
    /// The options that most questions have: once, always, or not.
    pub fn usual() -> Vec<Self> {
        ["Allow once", "Allow always", "Deny"].map(Self::from).to_vec()
    }

    /// The options of a question that is asked every time.
    pub fn once() -> Vec<Self> {
        ["Allow", "Deny"].map(Self::from).to_vec()
    }
}

impl ApprovalDecision {
    /// What a plain text means. What is not known is a no.
    fn of_text(text: &str) -> Self {
        match text.trim().to_lowercase().as_str() {
            "allow always" | "always allow" | "always" | "yes, always" => Self::AllowAlways,
            "allow" | "allow once" | "yes" | "yes, once" | "once" | "ok" | "okay" | "approve" | "accept"
            | "continue" | "proceed" => Self::AllowOnce,
            _ => Self::Deny,
        }
    }
}

impl From<&str> for ApprovalOption {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), decision: ApprovalDecision::of_text(text) }
    }
}

impl From<WrittenOption> for ApprovalOption {
    fn from(written: WrittenOption) -> Self {
        match written {
            WrittenOption::Text(text) => Self::from(text.as_str()),
            WrittenOption::Typed { text, decision } => Self { text, decision },
        }
    }
}

impl From<ApprovalOption> for WrittenOption {
    fn from(ApprovalOption { text, decision }: ApprovalOption) -> Self {
        match ApprovalDecision::of_text(&text) == decision {
            true => Self::Text(text),
            false => Self::Typed { text, decision },
        }
    }
}

impl Question {
    /// What an answer means: the decision of the option with this text, the strictest where two have it. One of the three
    /// words of the specification that was not offered still grants where something was offered that does. Anything else is
    /// a no.
    pub fn decision(&self, answer: &str) -> ApprovalDecision {
        let chosen = self.options.iter().filter(|option| option.text.eq_ignore_ascii_case(answer));
        if let Some(decision) = chosen.map(|option| option.decision).max() {
            return decision;
        }
        let grants = self.options.iter().any(|option| option.decision != ApprovalDecision::Deny);
        match answer.to_lowercase().as_str() {
            "allow" | "allow once" if grants => ApprovalDecision::AllowOnce,
            "allow always" if grants => ApprovalDecision::AllowAlways,
            _ => ApprovalDecision::Deny,
        }
    }

    /// The first option with this meaning.
    pub fn option(&self, decision: ApprovalDecision) -> Option<&ApprovalOption> {
        self.options.iter().find(|option| option.decision == decision)
    }

    /// How long it waits. Numbers that are no time, or longer than a year, are the usual time.
    pub fn patience(&self) -> Duration {
        let seconds =
            Some(self.timeout).filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_APPROVAL_TIMEOUT);
        Duration::from_secs_f64(seconds.unwrap_or(DEFAULT_APPROVAL_TIMEOUT))
    }
}

/// The tool call that a question is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedCall {
    /// The tool.
    pub tool_name: String,
    /// What it is called with.
    pub tool_input: Value,
    /// What it declares to touch; anything, for a tool that nobody mounted.
    pub effects: Effects,
    /// The module the tool is of, as the plan has it: two sessions may have two tools of one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Box<AskedModule>>,
}

/// The module of a tool that a question is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedModule {
    /// Its id.
    pub id: ModuleId,
    /// Where it comes from, as far as the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Value>,
    /// What it is configured with; references stand unexpanded.
    #[serde(default)]
    pub config: Map<String, Value>,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            prompt: "Allow this operation?".to_owned(),
            options: ApprovalOption::once(),
            timeout: DEFAULT_APPROVAL_TIMEOUT,
            default: ApprovalDefault::Deny,
            call: None,
        }
    }
}

/// What silence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDefault {
    /// Yes.
    Allow,
    /// No.
    #[default]
    Deny,
}

/// Something to show to the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// How serious it is.
    pub level: MessageLevel,
    /// Who says it, if not the hook's own name.
    pub source: Option<String>,
}

/// How serious a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageLevel {
    /// For information.
    #[default]
    Info,
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Error,
}

impl MessageLevel {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl HookResult {
    /// Go on.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Do not do it.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::from(HookAction::Deny { reason: reason.into() })
    }

    /// Go on with other data.
    pub fn modify(data: Map<String, Value>) -> Self {
        Self { action: HookAction::Modify, data: Some(data), ..Self::default() }
    }

    /// Tell the model something that stays in the conversation.
    pub fn inject(text: impl Into<String>) -> Self {
        Self::from(HookAction::InjectContext(Injection {
            text: text.into(),
            role: InjectionRole::default(),
            ephemeral: false,
            append_to_last_tool_result: false,
        }))
    }

    /// Let the person decide.
    pub fn ask(prompt: impl Into<String>) -> Self {
        Self::from(HookAction::AskUser(Question { prompt: prompt.into(), ..Question::default() }))
    }

    /// The same answer, with something to show to the person.
    #[must_use]
    pub fn showing(mut self, text: impl Into<String>, level: MessageLevel) -> Self {
        self.message = Some(UserMessage { text: text.into(), level, source: None });
        self
    }
}

impl From<HookAction> for HookResult {
    fn from(action: HookAction) -> Self {
        Self { action, ..Self::default() }
    }
}

/// The word of an action on the wire.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    #[default]
    Continue,
    Deny,
    Modify,
    InjectContext,
    AskUser,
}

/// The flat object of the specification. Readers forgive what is missing; the writer leaves nothing out.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    action: Word,
    #[serde(default)]
    data: Option<Map<String, Value>>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    context_injection: Option<String>,
    #[serde(default)]
    context_injection_role: InjectionRole,
    #[serde(default)]
    ephemeral: bool,
    #[serde(default)]
    approval_prompt: Option<String>,
    #[serde(default)]
    approval_options: Option<Vec<ApprovalOption>>,
    #[serde(default = "default_timeout")]
    approval_timeout: f64,
    #[serde(default)]
    approval_default: ApprovalDefault,
    #[serde(default)]
    suppress_output: bool,
    #[serde(default)]
    user_message: Option<String>,
    #[serde(default)]
    user_message_level: MessageLevel,
    #[serde(default)]
    user_message_source: Option<String>,
    #[serde(default)]
    append_to_last_tool_result: bool,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

fn default_timeout() -> f64 {
    DEFAULT_APPROVAL_TIMEOUT
}

impl From<Wire> for HookResult {
    fn from(wire: Wire) -> Self {
        let mut reason = wire.reason;
        let action = match wire.action {
            Word::Continue => HookAction::Continue,
            Word::Deny => {
                HookAction::Deny { reason: reason.take().unwrap_or_else(|| "denied by hook".to_owned()) }
            }
            Word::Modify => HookAction::Modify,
            Word::InjectContext => HookAction::InjectContext(Injection {
                text: wire.context_injection.unwrap_or_default(),
                role: wire.context_injection_role,
                ephemeral: wire.ephemeral,
                append_to_last_tool_result: wire.append_to_last_tool_result,
            }),
            Word::AskUser => {
                let usual = Question::default();
                let timeout_fits = wire.approval_timeout.is_finite() && wire.approval_timeout > 0.0;
                HookAction::AskUser(Question {
                    prompt: wire.approval_prompt.unwrap_or(usual.prompt),
                    options: wire
                        .approval_options
                        .filter(|options| !options.is_empty())
                        .unwrap_or(usual.options),
                    timeout: if timeout_fits { wire.approval_timeout } else { usual.timeout },
                    default: wire.approval_default,
                    call: None,
                })
            }
        };
        let message = wire.user_message.filter(|text| !text.is_empty()).map(|text| UserMessage {
            text,
            level: wire.user_message_level,
            source: wire.user_message_source,
        });
        let (data, suppress_output, extra) = (wire.data, wire.suppress_output, wire.extra);
        Self { action, data, message, reason, suppress_output, extra }
    }
}

impl From<HookResult> for Wire {
    fn from(result: HookResult) -> Self {
        let (text, level, source) = match result.message {
            Some(message) => (Some(message.text), message.level, message.source),
            None => (None, MessageLevel::default(), None),
        };
        let mut wire = Self {
            action: Word::Continue,
            data: result.data,
            reason: result.reason,
            context_injection: None,
            context_injection_role: InjectionRole::default(),
            ephemeral: false,
            approval_prompt: None,
            approval_options: None,
            approval_timeout: DEFAULT_APPROVAL_TIMEOUT,
            approval_default: ApprovalDefault::default(),
            suppress_output: result.suppress_output,
            user_message: text,
            user_message_level: level,
            user_message_source: source,
            append_to_last_tool_result: false,
            extra: result.extra,
        };
        match result.action {
            HookAction::Continue => {}
            HookAction::Deny { reason } => {
                wire.action = Word::Deny;
                wire.reason = Some(reason);
            }
            HookAction::Modify => wire.action = Word::Modify,
            HookAction::InjectContext(injection) => {
                wire.action = Word::InjectContext;
                wire.context_injection = Some(injection.text);
                wire.context_injection_role = injection.role;
                wire.ephemeral = injection.ephemeral;
                wire.append_to_last_tool_result = injection.append_to_last_tool_result;
            }
            HookAction::AskUser(question) => {
                wire.action = Word::AskUser;
                wire.approval_prompt = Some(question.prompt);
                wire.approval_options = Some(question.options);
                wire.approval_timeout = question.timeout;
                wire.approval_default = question.default;
            }
        }
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_default_answer_is_the_documented_object() {
        assert_eq!(
            serde_json::to_value(HookResult::proceed()).unwrap(),
            json!({
                "action": "continue", "data": null, "reason": null, "context_injection": null,
                "context_injection_role": "system", "ephemeral": false, "approval_prompt": null,
                "approval_options": null, "approval_timeout": 300.0, "approval_default": "deny",
                "suppress_output": false, "user_message": null, "user_message_level": "info",
                "user_message_source": null, "append_to_last_tool_result": false
            })
        );
        assert_eq!(serde_json::from_str::<HookResult>("{}").unwrap(), HookResult::proceed());
    }

    #[test]
    fn an_unknown_action_role_or_level_is_an_error() {
        for bad in [
            json!({"action": "explode"}),
            json!({"action": "inject_context", "context_injection_role": "System"}),
            json!({"user_message_level": "loud"}),
        ] {
            assert!(serde_json::from_value::<HookResult>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_answer_comes_back_equal() {
        let question = Question { timeout: 5.5, default: ApprovalDefault::Allow, ..Question::default() };
        for result in [
            HookResult::deny("no"),
            HookResult::modify(Map::from_iter([("a".to_owned(), json!(1))])),
            HookResult::inject("note").showing("seen", MessageLevel::Warning),
            HookAction::AskUser(question).into(),
            HookResult { reason: Some("it was asked for".to_owned()), ..HookResult::inject("note") },
            HookResult { reason: Some("all is well".to_owned()), ..HookResult::proceed() },
        ] {
            let json = serde_json::to_value(&result).unwrap();
            assert_eq!(serde_json::from_value::<HookResult>(json).unwrap(), result);
        }
    }

    #[test]
    fn an_option_means_what_it_says_or_what_its_text_means() {
        let asked = |options: Value| -> Question {
            let result: HookResult =
                serde_json::from_value(json!({"action": "ask_user", "approval_options": options})).unwrap();
            assert_eq!(serde_json::to_value(&result).unwrap()["approval_options"], options);
            match result.action {
                HookAction::AskUser(question) => question,
                other => panic!("{other:?}"),
            }
        };
        let english = asked(json!(["Yes", "No"]));
        assert_eq!(english.decision("yes"), ApprovalDecision::AllowOnce);
        assert_eq!(english.decision("No"), ApprovalDecision::Deny);
        assert_eq!(english.decision("Maybe"), ApprovalDecision::Deny, "it was not offered");
        assert_eq!(english.decision("Allow"), ApprovalDecision::AllowOnce, "a word of the specification");
        let typed = asked(json!([
            {"text": "Ja", "decision": "allow_once"}, {"text": "Yes", "decision": "deny"}, "Nein"
        ]));
        assert_eq!(typed.decision("Ja"), ApprovalDecision::AllowOnce);
        assert_eq!(typed.decision("Yes"), ApprovalDecision::Deny);
        assert_eq!(asked(json!(["Ja", "Nein"])).decision("Ja"), ApprovalDecision::Deny);
        let twice = asked(json!(["Ok", {"text": "Ok", "decision": "deny"}]));
        assert_eq!(twice.decision("Ok"), ApprovalDecision::Deny, "the strictest of one text");
    }

    #[test]
    fn no_number_makes_a_wait_that_cannot_be_counted() {
        for timeout in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e19, f64::MAX] {
            let question = Question { timeout, ..Question::default() };
            assert_eq!(question.patience(), Duration::from_secs(300), "{timeout}");
        }
        assert_eq!(Question { timeout: 2.5, ..Question::default() }.patience(), Duration::from_millis(2_500));
    }

    #[test]
    fn a_reader_forgives_a_missing_reason_and_a_foolish_timeout() {
        let deny: HookResult = serde_json::from_value(json!({"action": "deny"})).unwrap();
        assert_eq!(deny, HookResult::deny("denied by hook"));
        let ask: HookResult =
            serde_json::from_value(json!({"action": "ask_user", "approval_timeout": -1.0, "vendor": 1}))
                .unwrap();
        assert_eq!(ask.action, HookAction::AskUser(Question::default()));
        assert_eq!(ask.extra.get("vendor"), Some(&json!(1)));
    }
}
