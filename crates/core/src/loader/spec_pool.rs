//! Specs of tools, kept once for all sessions of a loader: a thousand sessions with the same tools hold one schema each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use amplifier_protocol::tool::ToolSpec;

use crate::sync::lock;

/// The last spec of each tool name that some session still holds.
#[derive(Default)]
pub(super) struct SpecPool(Mutex<HashMap<String, Weak<ToolSpec>>>);

impl SpecPool {
    /// The spec, or an equal one that another session holds.
    pub(super) fn share(&self, spec: ToolSpec) -> Arc<ToolSpec> {
        let mut known = lock(&self.0);
        if let Some(same) = known.get(&spec.name).and_then(Weak::upgrade).filter(|known| **known == spec) {
            return same;
        }
        let spec = Arc::new(spec);
        known.insert(spec.name.clone(), Arc::downgrade(&spec));
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    #[test]
    fn equal_specs_are_one_and_different_ones_of_a_name_are_two() {
        let spec = |parameters: Value| {
            let (name, description, extra) = ("t".to_owned(), None, Map::new());
            ToolSpec { name, description, parameters, extra }
        };
        let pool = SpecPool::default();
        let (one, two, other) =
            (pool.share(spec(json!({}))), pool.share(spec(json!({}))), pool.share(spec(json!(1))));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!((&one.parameters, &other.parameters), (&json!({}), &json!(1)));
    }
}
