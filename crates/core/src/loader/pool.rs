//! What all sessions of a loader hold alike, kept once: the specs of tools and the names modules are reached by. A
//! thousand sessions with the same tools hold one schema each.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::tool::ToolSpec;

use crate::sync::lock;

/// The last spec of each tool name, and the last names of each module, that some session still holds.
#[derive(Default)]
pub(super) struct Pool {
    specs: Mutex<HashMap<String, Weak<ToolSpec>>>,
    names: Mutex<HashMap<ModuleId, Weak<[String]>>>,
}

impl Pool {
    /// The spec, or an equal one that another session holds.
    pub(super) fn spec(&self, spec: ToolSpec) -> Arc<ToolSpec> {
        let mut known = lock(&self.specs);
        held(&known, spec.name.as_str(), &spec).unwrap_or_else(|| {
            let spec = Arc::new(spec);
            known.insert(spec.name.clone(), Arc::downgrade(&spec));
            spec
        })
    }

    /// The names of a module, or equal ones that another session holds.
    pub(super) fn names(&self, module: &ModuleId, names: Vec<String>) -> Arc<[String]> {
        let mut known = lock(&self.names);
        held(&known, module, names.as_slice()).unwrap_or_else(|| {
            let names: Arc<[String]> = Arc::from(names);
            known.insert(module.clone(), Arc::downgrade(&names));
            names
        })
    }
}

/// What is known under a key, if it is still held and the same.
fn held<K, Q, T>(known: &HashMap<K, Weak<T>>, key: &Q, wanted: &T) -> Option<Arc<T>>
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
    T: PartialEq + ?Sized,
{
    known.get(key).and_then(Weak::upgrade).filter(|known| **known == *wanted)
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
        let pool = Pool::default();
        let (one, two, other) =
            (pool.spec(spec(json!({}))), pool.spec(spec(json!({}))), pool.spec(spec(json!(1))));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!((&one.parameters, &other.parameters), (&json!({}), &json!(1)));
    }

    #[test]
    fn equal_names_of_a_module_are_one_list() {
        let (pool, id) = (Pool::default(), "tool-x".parse().unwrap());
        let (one, two) = (pool.names(&id, vec!["a".to_owned()]), pool.names(&id, vec!["a".to_owned()]));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(*pool.names(&id, vec!["b".to_owned()]), ["b".to_owned()]);
    }
}
