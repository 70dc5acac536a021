//! What modules offer each other by name: capabilities and contribution channels.

use std::future::poll_fn;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::Coordinator;
use super::calls::Watched;
use crate::contracts::{Capability, CapabilityError, Contributor, Pulse};
use crate::sync::{read, write};
use crate::watch::{poll_once, within};

#[derive(Default)]
pub(super) struct Capabilities {
    by_name: IndexMap<String, Capability>,
    channels: IndexMap<String, Vec<NamedContributor>>,
}

impl Capabilities {
    pub(super) fn shrink(&mut self) {
        self.by_name.shrink_to_fit();
        self.channels.shrink_to_fit();
        self.channels.values_mut().for_each(Vec::shrink_to_fit);
    }
}

type NamedContributor = (String, Arc<dyn Contributor>);

impl Coordinator {
    /// Offers something under a name; the last offer counts.
    pub fn register_capability(&self, name: &str, capability: Capability) {
        let old = write(&self.0.capabilities).by_name.insert(name.to_owned(), capability);
        drop(old);
    }

    /// What is offered under a name. Callers must do without when nobody offers it.
    #[doc(alias = "get_capability")]
    pub fn capability(&self, name: &str) -> Option<Capability> {
        read(&self.0.capabilities).by_name.get(name).cloned()
    }

    /// Text offered under a name, such as `session.working_dir`.
    pub fn capability_text(&self, name: &str) -> Option<String> {
        match self.capability(name)? {
            Capability::Value(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The names of everything offered.
    pub fn capability_names(&self) -> Vec<String> {
        read(&self.0.capabilities).by_name.keys().cloned().collect()
    }

    /// Calls what is offered under a name. One that hangs or panics costs this call; a cancel ends it.
    pub async fn call_capability(&self, name: &str, arguments: Value) -> Result<Value, CapabilityError> {
        let call = match self.capability(name) {
            Some(Capability::Call(call)) => call,
            Some(Capability::Value(_)) => return Err(CapabilityError::NotCallable { name: name.to_owned() }),
            None => return Err(CapabilityError::Absent { name: name.to_owned() }),
        };
        let failed = |message: String| CapabilityError::Failed { name: name.to_owned(), message };
        let mut future = Box::pin(async move { call.call(arguments).await });
        let mut answer = None;
        poll_fn(|cx| poll_once(future.as_mut(), cx, &mut answer)).await;
        // Most know their answer at once, and should not pay for a task.
        if let Some(answer) = answer {
            return answer.unwrap_or_else(|fault| Err(failed(format!("`{name}` {fault}"))));
        }
        let deadline = self.deadlines().capability;
        let watched = Watched { owner: name, operation: "capability", deadline, pulse: Pulse::default() };
        self.watch(watched, future).await.unwrap_or_else(|error| Err(failed(error.to_string())))
    }

    /// Adds a contributor to a channel. One name may contribute more than once.
    pub fn register_contributor(&self, channel: &str, name: &str, contributor: Arc<dyn Contributor>) {
        let mut capabilities = write(&self.0.capabilities);
        capabilities.channels.entry(channel.to_owned()).or_default().push((name.to_owned(), contributor));
    }

    /// Asks every contributor of a channel, in the order they came. One that fails, panics or takes too long gives
    /// nothing and is named in the second list.
    pub async fn collect_contributions(&self, channel: &str) -> (Vec<Value>, Vec<String>) {
        let contributors = read(&self.0.capabilities).channels.get(channel).cloned().unwrap_or_default();
        let (mut gathered, mut failed) = (Vec::new(), Vec::new());
        for (name, contributor) in contributors {
            match within(self.deadlines().contributor, contributor.contribute()).await {
                Ok(Ok(given)) => gathered.extend(given.filter(|value| !value.is_null())),
                Ok(Err(failure)) => failed.push(format!("`{name}`: {failure}")),
                Err(fault) => failed.push(format!("`{name}`: {fault}")),
            }
        }
        (gathered, failed)
    }
}
