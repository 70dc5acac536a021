//! What differs between two plans, value by value. Modules are compared by their id, not by their place in a list, so that
//! one that was added does not make all behind it look changed.

use amplifier_protocol::locate::join;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// One difference. Paths are JSON pointers in which modules stand by their id.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Difference {
    Added { path: String, value: Value },
    Removed { path: String, value: Value },
    Changed { path: String, from: Value, to: Value },
}

/// Every difference, in the order of the first plan, then what only the second has.
pub fn differences(a: &Value, b: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(a, b, "", &mut found);
    found
}

fn compare(a: &Value, b: &Value, path: &str, found: &mut Vec<Difference>) {
    let (a_keyed, b_keyed) = (by_module(a), by_module(b));
    match (a_keyed.as_ref().unwrap_or(a), b_keyed.as_ref().unwrap_or(b)) {
        (Value::Object(a), Value::Object(b)) => {
            compare_maps(a, b, path, found);
            let order = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            let mut sorted = (order(a), order(b));
            sorted.0.sort_unstable();
            sorted.1.sort_unstable();
            // Order is meaning in lists of modules, and only there.
            if a_keyed.is_some() && b_keyed.is_some() && sorted.0 == sorted.1 && order(a) != order(b) {
                let (from, to) = (json!(order(a)), json!(order(b)));
                found.push(Difference::Changed { path: join(path, "(order)"), from, to });
            }
        }
        (a, b) if a == b => {}
        (a, b) => {
            found.push(Difference::Changed { path: path.to_owned(), from: a.clone(), to: b.clone() });
        }
    }
}

fn compare_maps(a: &Map<String, Value>, b: &Map<String, Value>, path: &str, found: &mut Vec<Difference>) {
    for (key, value) in a {
        let path = join(path, key);
        match b.get(key) {
            Some(other) => compare(value, other, &path, found),
            None => found.push(Difference::Removed { path, value: value.clone() }),
        }
    }
    for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
        found.push(Difference::Added { path: join(path, key), value: value.clone() });
    }
}

/// A list of modules as a mapping; nothing when it is none, or when two of them have one name.
fn by_module(value: &Value) -> Option<Value> {
    let items = value.as_array().filter(|items| !items.is_empty())?;
    let mut keyed = Map::new();
    for item in items {
        let module = item.get("module")?.as_str()?;
        let key = match item.get("instance_id").and_then(Value::as_str) {
            Some(instance) => format!("{module}:{instance}"),
            None => module.to_owned(),
        };
        if keyed.insert(key, item.clone()).is_some() {
            return None;
        }
    }
    Some(Value::Object(keyed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_compared_by_id_and_order_is_told() {
        let a = json!({"tools": [{"module": "t-a", "config": {"x": 1}}, {"module": "t-b"}], "k": 1});
        let b = json!({"tools": [{"module": "t-b"}, {"module": "t-a", "config": {"x": 2}}], "n": null});
        let told = differences(&a, &b);
        let expected = [
            Difference::Changed { path: "/tools/t-a/config/x".into(), from: json!(1), to: json!(2) },
            Difference::Changed {
                path: "/tools/(order)".into(),
                from: json!(["t-a", "t-b"]),
                to: json!(["t-b", "t-a"]),
            },
            Difference::Removed { path: "/k".into(), value: json!(1) },
            Difference::Added { path: "/n".into(), value: json!(null) },
        ];
        assert_eq!(told, expected);
        assert_eq!(differences(&a, &a), []);
    }

    #[test]
    fn other_lists_are_values() {
        let told = differences(&json!({"x": [1, 2]}), &json!({"x": [1]}));
        assert_eq!(told, [Difference::Changed { path: "/x".into(), from: json!([1, 2]), to: json!([1]) }]);
    }
}
