//! `provider-azure-openai`: the Responses API of a resource in Azure. Thin over `openai.rs`: another place, another way to
//! prove whose a request is, and deployments instead of models.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::openai::{self, Proof, Responses};
use super::wire::{self, About, WireProvider};
use crate::table::BuiltIn;

mod identity;

use identity::Identity;

const NAME: &str = "azure-openai";
const KEYS: &[&str] = &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_KEY"];
const TOKENS: &[&str] = &["AZURE_OPENAI_AD_TOKEN"];
const PLACES: &[&str] = &["AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL"];
const IDENTITIES: [&str; 2] = ["AZURE_USE_MANAGED_IDENTITY", "AZURE_USE_DEFAULT_CREDENTIAL"];
const VERSION: &str = "AZURE_OPENAI_API_VERSION";
const MODEL: &str = "gpt-5.4";
/// The first dated version of the API that has responses.
const FIRST_VERSION: &str = "2025-03-01";

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Where the resource is, such as `https://NAME.openai.azure.com`.
    azure_endpoint: Option<String>,
    /// The deployment that is asked when a request names none; the same as `default_model`.
    default_deployment: Option<String>,
    /// `v1`, `preview`, or a date; requests go to `/openai/v1` unless it is a date that has responses.
    api_version: Option<String>,
    /// A token of Entra ID instead of a key; `${VAR}` reads a variable.
    entra_token: Option<String>,
    /// `PTU` for a deployment that is paid by the hour, whose tokens cost nothing.
    deployment_type: Option<String>,
    /// Whether tokens of the identity that this machine or application has in Azure are fetched, where no key is set.
    use_managed_identity: Option<bool>,
    /// The same as `use_managed_identity`: of the ways it stands for elsewhere only that one is gone here.
    use_default_credential: Option<bool>,
    /// Which identity, where there are several.
    managed_identity_client_id: Option<String>,
    #[serde(flatten)]
    openai: openai::Config,
}

/// The module, as the table lists it.
pub(crate) struct AzureOpenAi;

#[async_trait]
impl Module for AzureOpenAi {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-azure-openai")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, mut config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        wire::leave_out(cx, &mut config, openai::WITHOUT_EFFECT);
        let (is_token, defaults) = (token_as_key(&mut config), prices(&config));
        let (mut settings, config) = wire::read::<Config>(cx, config, defaults)?;
        settings.base_url = config.azure_endpoint.clone().or(settings.base_url);
        settings.default_model = settings.default_model.or_else(|| config.default_deployment.clone());
        settings.default_model.get_or_insert_with(|| MODEL.to_owned());
        let mut settings = settings.with_base_url(cx, PLACES, None).await.with_key(cx, KEYS).await;
        let Some(endpoint) = settings.base_url.clone() else {
            let reason =
                "no resource: set `AZURE_OPENAI_ENDPOINT` or `azure_endpoint` in its config".to_owned();
            return Ok(Mounted::Skipped { reason });
        };
        let is_token = is_token || settings.key().is_none();
        settings = settings.with_key(cx, TOKENS).await;
        let proof = match settings.key() {
            Some(token) if is_token => Proof::Bearer(token.to_owned()),
            Some(key) => Proof::Header("api-key", key.to_owned()),
            None if config.wants_identity(cx).await => {
                let identity = Identity::find(cx, config.managed_identity_client_id.as_deref()).await;
                let refused = |message| LoadError::Mount { id: cx.module().clone(), message };
                Proof::Fetched(Box::new(identity.map_err(refused)?))
            }
            None => return Ok(nothing_to_show()),
        };
        let version = match &config.api_version {
            Some(version) => Some(version.clone()),
            None => wire::variable(&cx.coordinator, VERSION).await,
        };
        let (base, query) = place(&endpoint, version.as_deref());
        settings.base_url = Some(base);
        let settings = openai::narrowed(settings, &config.openai);
        let about = About {
            id: NAME.to_owned(),
            display_name: "Azure OpenAI".to_owned(),
            credential_env_vars: KEYS,
            capabilities: openai::CAPABILITIES,
            default_model: MODEL.to_owned(),
        };
        // What a resource lists are models that could be deployed, not those that are.
        let service = Responses { about, config: config.openai, proof, query, models: None };
        cx.mount_provider(Arc::new(WireProvider::new(service, settings, cx).await?));
        Ok(Mounted::Ready)
    }
}

/// A token takes the place of the key, so that it is kept out of everything that is told. Whether there is one.
fn token_as_key(config: &mut Value) -> bool {
    let Value::Object(config) = config else { return false };
    match config.shift_remove("entra_token") {
        Some(Value::String(token)) if !token.trim().is_empty() => {
            config.insert("api_key".to_owned(), Value::String(token.trim().to_owned()));
            true
        }
        _ => false,
    }
}

/// A deployment that is paid by the hour has no price by the token.
fn prices(config: &Value) -> Value {
    let text = |key: &str| config.get(key).and_then(Value::as_str);
    let names = ["default_model", "model", "default_deployment"];
    let model = names.iter().find_map(|name| text(name)).unwrap_or(MODEL);
    match text("deployment_type") {
        Some(kind) if kind.eq_ignore_ascii_case("ptu") => {
            json!({"prices": {model: {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}}})
        }
        _ => json!({}),
    }
}

impl Config {
    /// Whether tokens shall be fetched, by the config or by a variable.
    async fn wants_identity(&self, cx: &MountCx) -> bool {
        let said = [self.use_managed_identity, self.use_default_credential];
        if said.contains(&Some(true)) || said.contains(&Some(false)) {
            return said.contains(&Some(true));
        }
        for name in IDENTITIES {
            let value = wire::variable(&cx.coordinator, name).await.unwrap_or_default();
            if ["1", "true", "yes"].contains(&value.trim().to_lowercase().as_str()) {
                return true;
            }
        }
        self.managed_identity_client_id.is_some()
    }
}

fn nothing_to_show() -> Mounted {
    let reason = "no key: set `AZURE_OPENAI_API_KEY` or `api_key` in its config, or a token as `AZURE_OPENAI_AD_TOKEN` or \
        `entra_token`, or `use_managed_identity` on a machine of Azure";
    Mounted::Skipped { reason: reason.to_owned() }
}

/// Where requests go, and what stands behind their paths. The endpoint may be given with or without its path.
fn place(endpoint: &str, version: Option<&str>) -> (String, String) {
    let endpoint = endpoint.trim().trim_end_matches('/');
    let resource =
        endpoint.strip_suffix("/openai/v1").or_else(|| endpoint.strip_suffix("/openai")).unwrap_or(endpoint);
    match version.map(str::trim).unwrap_or_default() {
        date if date.starts_with("20") && date >= FIRST_VERSION => {
            (format!("{resource}/openai"), format!("?api-version={date}"))
        }
        // Older dates are for older paths, which have no responses.
        "" | "v1" => (format!("{resource}/openai/v1"), String::new()),
        date if date.starts_with("20") => (format!("{resource}/openai/v1"), String::new()),
        word => (format!("{resource}/openai/v1"), format!("?api-version={word}")),
    }
}

impl BuiltIn for AzureOpenAi {
    fn info(&self) -> ModuleInfo {
        wire::described::<Config>(self.about("Asks a deployment of OpenAI's models in Azure."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_the_place_leads_to_it() {
        let v1 = ("https://r.openai.azure.com/openai/v1".to_owned(), String::new());
        for endpoint in ["https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/"] {
            for version in [None, Some("v1"), Some("2024-10-01-preview")] {
                assert_eq!(place(endpoint, version), v1, "{endpoint} {version:?}");
            }
        }
        assert_eq!(place("https://r/openai", Some("preview")).1, "?api-version=preview");
        let dated = ("https://r/openai".to_owned(), "?api-version=2025-04-01-preview".to_owned());
        assert_eq!(place("https://r/", Some("2025-04-01-preview")), dated);
    }
}
