//! What a provider says about itself: the keys all providers have beside its own, and the events all of them emit.

use amplifier_core::loader::MountCx;
use amplifier_protocol::event::{
    LlmRequest, LlmResponse, LlmStreamAborted, LlmStreamBlockDelta, LlmStreamBlockEnd, LlmStreamBlockStart,
    ProviderRetry, ProviderToolSequenceRepaired,
};
use amplifier_protocol::module_info::ModuleInfo;
use schemars::JsonSchema;
use serde_json::Value;

use super::Settings;
use super::events::ProviderConcurrency;

/// A config as the plan writes it: both kinds of keys side by side.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is wanted")]
struct Both<T> {
    #[serde(flatten)]
    shared: Settings,
    #[serde(flatten)]
    own: T,
}

/// The same description with what all providers share.
pub(crate) fn described<T: JsonSchema>(info: ModuleInfo) -> ModuleInfo {
    info.config::<Both<T>>()
        .emits::<LlmRequest>()
        .emits::<LlmResponse>()
        .emits::<LlmStreamBlockStart>()
        .emits::<LlmStreamBlockDelta>()
        .emits::<LlmStreamBlockEnd>()
        .emits::<LlmStreamAborted>()
        .emits::<ProviderRetry>()
        .emits::<ProviderToolSequenceRepaired>()
        .emits::<ProviderConcurrency>()
        .uses("environment.variable")
        .uses(super::environment::KEYS)
        .uses("session.working_dir")
}

/// The same with the defaults that this provider has instead of the shared ones, as they are handed to [`super::read`].
pub(crate) fn with_defaults(mut info: ModuleInfo, defaults: &Value) -> ModuleInfo {
    let properties = info.config_schema.as_mut().and_then(|schema| schema.get_mut("properties"));
    if let (Some(properties), Some(defaults)) = (properties, defaults.as_object()) {
        for (key, value) in defaults {
            if let Some(property) = properties.get_mut(key).and_then(Value::as_object_mut) {
                property.insert("default".to_owned(), value.clone());
            }
        }
    }
    info
}

/// Takes keys out of a config that have no effect here, and says why.
pub(crate) fn leave_out(cx: &MountCx, config: &mut Value, keys: &[(&str, &str)]) {
    let Value::Object(config) = config else { return };
    for (key, reason) in keys {
        if config.shift_remove(*key).is_some() {
            cx.warn(format!("config key `{key}` has no effect: {reason}"));
        }
    }
}
