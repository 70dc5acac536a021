//! Three layers of anything, judged by a model that knows nothing of nodes: which layer set each value of the plan, and the
//! complete list of what it overrode.
//!
//! The model keeps one plain value for each layer and asks, for one way into the plan at a time, what each layer said about
//! it. Lists of modules are mappings by id to it; agents are replaced as wholes.

use amplifier_bundle::explain::{Setting, Step};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::memory::Memory;

const LAYERS: [&str; 3] = ["/b/0.yaml", "/b/1.yaml", "/b/2.yaml"];
const LISTS: [&str; 3] = ["providers", "tools", "hooks"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Merge,
    Replace,
    Delete,
}

/// What a layer says at one place.
#[derive(Debug, Clone)]
struct Said {
    mark: Mark,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    One(Value),
    Items(Vec<Value>),
    Keys(Vec<(String, Said)>),
}

impl Said {
    fn keys(keys: Vec<(String, Self)>) -> Self {
        Self { mark: Mark::Merge, what: What::Keys(keys) }
    }

    fn key(&self, key: &str) -> Option<&Self> {
        let What::Keys(keys) = &self.what else { return None };
        keys.iter().find(|(name, _)| name == key).map(|(_, said)| said)
    }

    /// As YAML in one line; lists of modules are lists again.
    fn text(&self, key: &str) -> String {
        let mark = match self.mark {
            Mark::Merge => "",
            Mark::Replace => "!replace ",
            Mark::Delete => "!delete ",
        };
        let body = match &self.what {
            What::One(value) => value.to_string(),
            What::Items(items) => json!(items).to_string(),
            What::Keys(entries) if LISTS.contains(&key) => {
                format!("[{}]", entries.iter().map(|(_, said)| said.text("")).collect::<Vec<_>>().join(", "))
            }
            What::Keys(keys) => {
                let pairs = keys.iter().map(|(key, said)| format!("{}: {}", json!(key), said.text(key)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{mark}{body}")
    }
}

/// What stands at one place after some layers. What was deleted keeps its place in the order.
#[derive(Debug, Clone)]
enum Now {
    Gone,
    One(Value),
    Items(Vec<Value>),
    Keys(Vec<(String, Now)>),
}

impl Now {
    fn of(said: &Said) -> Self {
        match &said.what {
            _ if said.mark == Mark::Delete => Self::Gone,
            What::One(value) => Self::One(value.clone()),
            What::Items(items) => Self::Items(items.clone()),
            What::Keys(keys) => {
                Self::Keys(keys.iter().map(|(key, said)| (key.clone(), Self::of(said))).collect())
            }
        }
    }

    /// The rules of merging, the short way.
    fn under(self, said: &Said) -> Self {
        match (self, &said.what) {
            (Self::Keys(mut below), What::Keys(above)) if said.mark == Mark::Merge => {
                for (key, said) in above {
                    match below.iter_mut().find(|(name, _)| name == key) {
                        Some((_, now)) => *now = std::mem::replace(now, Self::Gone).under(said),
                        None => below.push((key.clone(), Self::of(said))),
                    }
                }
                Self::Keys(below)
            }
            (Self::Items(below), What::Items(above)) if said.mark == Mark::Merge => {
                Self::Items(joined(&below, above))
            }
            _ => Self::of(said),
        }
    }

    fn at(&self, way: &[String]) -> Option<&Self> {
        let Some((key, rest)) = way.split_first() else {
            return (!matches!(self, Self::Gone)).then_some(self);
        };
        let Self::Keys(keys) = self else { return None };
        keys.iter().find(|(name, _)| name == key)?.1.at(rest)
    }

    fn value(&self, key: &str) -> Value {
        match self {
            Self::Gone => Value::Null,
            Self::One(value) => value.clone(),
            Self::Items(items) => json!(items),
            Self::Keys(keys) => {
                let present = keys.iter().filter(|(_, now)| !matches!(now, Self::Gone));
                let pairs = present.map(|(key, now)| (key.clone(), now.value(key)));
                match LISTS.contains(&key) {
                    true => pairs.map(|(_, value)| value).collect(),
                    false => Value::Object(pairs.collect::<Map<_, _>>()),
                }
            }
        }
    }
}

fn joined(below: &[Value], above: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for item in below.iter().chain(above) {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    items
}

/// What a layer did to one way into the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Nothing,
    /// It took away what was there.
    Removed,
    /// It wrote a value that owes nothing to what was there.
    Set,
    /// It added to what was there.
    Added,
}

fn did(layer: &Said, before: &Now, way: &[String]) -> Did {
    let mut at = layer;
    let mut fresh = false;
    for (depth, key) in way.iter().enumerate() {
        let below = before.at(&way[..depth]);
        if at.mark == Mark::Delete || !matches!(at.what, What::Keys(_)) {
            return Did::Removed;
        }
        fresh |= at.mark == Mark::Replace || !matches!(below, Some(Now::Keys(_)));
        match at.key(key) {
            Some(next) => at = next,
            None => return if fresh { Did::Removed } else { Did::Nothing },
        }
    }
    let merges = matches!(
        (&at.what, before.at(way)),
        (What::Keys(_), Some(Now::Keys(_))) | (What::Items(_), Some(Now::Items(_)))
    );
    match at.mark {
        Mark::Delete => Did::Removed,
        Mark::Merge if merges && !fresh => Did::Added,
        _ => Did::Set,
    }
}

/// The layer that set the value at a way, and what it overrode with the layers that had set those; oldest first. With an
/// index, of an item of the list there.
fn judge(
    layers: &[Said],
    states: &[Now],
    way: &[String],
    index: Option<usize>,
) -> (usize, Vec<(usize, Value)>) {
    let (mut owner, mut lost) = (None, Vec::new());
    let mut items: Vec<(Value, usize)> = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let before = &states[number];
        let done = did(layer, before, way);
        let own = || match states[number + 1].at(way) {
            Some(Now::Items(items)) => items.iter().map(|item| (item.clone(), number)).collect(),
            _ => Vec::new(),
        };
        if matches!(done, Did::Removed | Did::Set) {
            match (index, owner.take()) {
                (Some(index), _) => {
                    lost.extend(items.get(index).map(|(value, layer)| (*layer, value.clone())))
                }
                (None, Some(layer)) => {
                    let key = way.last().map_or("", String::as_str);
                    lost.extend(before.at(way).map(|now| (layer, now.value(key))));
                }
                (None, None) => {}
            }
            items = if done == Did::Set { own() } else { Vec::new() };
        }
        if done == Did::Added {
            // An item belongs to the first layer that has it.
            let known: Vec<(Value, usize)> = std::mem::take(&mut items);
            items = own();
            for (value, layer) in &mut items {
                *layer = known.iter().find(|(other, _)| other == value).map_or(number, |(_, first)| *first);
            }
        }
        if matches!(done, Did::Set | Did::Added) && owner.is_none() {
            owner = Some(number);
        }
    }
    match index {
        Some(index) => (items[index].1, lost),
        None => (owner.unwrap(), lost),
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0_i64..3).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "[a-b]".prop_map(Value::from)
    ]
}

fn mark() -> impl Strategy<Value = Mark> {
    select(vec![Mark::Merge, Mark::Merge, Mark::Merge, Mark::Merge, Mark::Replace, Mark::Delete])
}

/// Keys with values: small, so that layers collide and say the same.
fn mapping() -> impl Strategy<Value = Said> {
    let leaf = (mark(), scalar()).prop_map(|(mark, value)| Said { mark, what: What::One(value) });
    let list = (mark(), proptest::collection::vec(scalar(), 0..3))
        .prop_map(|(mark, items)| Said { mark, what: What::Items(items) });
    let inner = prop_oneof![3 => leaf, 1 => list].prop_recursive(3, 12, 3, |inner| {
        (mark(), proptest::collection::btree_map("[x-z]", inner, 0..3))
            .prop_map(|(mark, keys)| Said { mark, what: What::Keys(keys.into_iter().collect()) })
    });
    proptest::collection::btree_map("[x-z]", inner, 0..4)
        .prop_map(|keys| Said::keys(keys.into_iter().collect()))
}

/// A list of modules, each with a config.
fn modules() -> impl Strategy<Value = Said> {
    let entries = proptest::collection::btree_map("[p-r]", (mark(), mapping()), 0..3);
    (select(vec![Mark::Merge, Mark::Merge, Mark::Merge, Mark::Replace]), entries).prop_map(
        |(list, entries)| {
            let entry = |(id, (mark, config)): (String, (Mark, Said))| {
                let module = Said { mark: Mark::Merge, what: What::One(json!(id)) };
                let keys = vec![("module".to_owned(), module), ("config".to_owned(), config)];
                (id, Said { mark, what: What::Keys(keys) })
            };
            Said { mark: list, what: What::Keys(entries.into_iter().map(entry).collect()) }
        },
    )
}

/// Agents by name; one that is written again replaces the whole of the one below.
fn agents() -> impl Strategy<Value = Said> {
    let definition = ("[a-b]", proptest::option::of("[a-b]"));
    proptest::collection::btree_map("[p-r]", definition, 0..3).prop_map(|agents| {
        let agent = |(name, (description, role)): (String, (String, Option<String>))| {
            let text = |text: String| Said { mark: Mark::Merge, what: What::One(json!(text)) };
            let mut keys = vec![("description".to_owned(), text(description))];
            keys.extend(role.map(|role| ("model_role".to_owned(), text(role))));
            (name, Said { mark: Mark::Replace, what: What::Keys(keys) })
        };
        Said::keys(agents.into_iter().map(agent).collect())
    })
}

fn layer() -> impl Strategy<Value = Said> {
    let spawn = (mark(), mapping()).prop_map(|(mark, said)| Said { mark, ..said });
    (mapping(), spawn, modules(), modules(), modules(), agents()).prop_map(
        |(metadata, spawn, providers, tools, hooks, agents)| {
            let session = Said::keys(vec![("metadata".to_owned(), metadata)]);
            let sections = [
                ("session", session),
                ("spawn", spawn),
                ("providers", providers),
                ("tools", tools),
                ("hooks", hooks),
                ("agents", agents),
            ];
            Said::keys(sections.into_iter().map(|(key, said)| (key.to_owned(), said)).collect())
        },
    )
}

/// The way of a setting as the model goes it, and the index of an item if it is one.
fn way(setting: &Setting, plan: &Value) -> (Vec<String>, Option<usize>) {
    let mut way: Vec<String> = Vec::new();
    let mut index = None;
    for step in &setting.path {
        match step {
            Step::Key(key) => way.push(key.clone()),
            Step::Index(at) if way.len() == 1 => {
                way.push(plan[&way[0]][at]["module"].as_str().unwrap().to_owned());
            }
            Step::Index(at) => index = Some(*at),
        }
    }
    (way, index)
}

/// Leaves out what a plan leaves out.
fn written(now: &Now) -> Value {
    let mut plan = now.value("");
    if plan["session"]["metadata"] == json!({}) {
        plan["session"].as_object_mut().unwrap().remove("metadata");
    }
    for section in LISTS {
        for entry in plan[section].as_array_mut().into_iter().flatten() {
            if entry["config"] == json!({}) {
                entry.as_object_mut().unwrap().remove("config");
            }
        }
    }
    for (name, agent) in plan["agents"].as_object_mut().unwrap() {
        agent["name"] = json!(name);
    }
    plan.as_object_mut().unwrap().retain(|_, value| *value != json!([]) && *value != json!({}));
    plan
}

/// A layer as a file that includes the one below.
fn text(layer: &Said, number: usize) -> String {
    let What::Keys(sections) = &layer.what else { panic!("a layer has sections") };
    let mut text = match number.checked_sub(1) {
        Some(below) => format!("includes: [./{below}.yaml]\n"),
        None => String::new(),
    };
    for (key, said) in sections {
        // The marks of agents are the rule, not something people write.
        let plain =
            |(name, agent): &(String, Said)| (name.clone(), Said { mark: Mark::Merge, ..agent.clone() });
        let said = match (&said.what, key.as_str()) {
            (What::Keys(agents), "agents") => Said::keys(agents.iter().map(plain).collect()),
            _ => said.clone(),
        };
        text.push_str(&format!("{key}: {}\n", said.text(key)));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_leaf_names_its_layer_and_everything_below_it(layers in [layer(), layer(), layer()]) {
        let texts: Vec<_> = layers.iter().enumerate().map(|(number, layer)| text(layer, number)).collect();
        let files: Vec<_> = LAYERS.into_iter().zip(texts.iter().map(String::as_str)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let loaded = runtime.block_on(Memory::new(&files).load(LAYERS[2])).unwrap();
        let plan = loaded.plan.to_json();

        let mut states = vec![Now::Keys(Vec::new())];
        for layer in &layers {
            let next = states[states.len() - 1].clone().under(layer);
            states.push(next);
        }
        prop_assert_eq!(&plan, &written(&states[3]), "{:#?}", texts);

        for setting in loaded.plan.explain() {
            let (way, index) = way(&setting, &plan);
            // The name of an agent is its key.
            if way[0] == "agents" && way[2] == "name" {
                continue;
            }
            let (owner, lost) = judge(&layers, &states, &way, index);
            let layer_of = |name: &str| LAYERS.iter().position(|layer| *layer == name).unwrap();
            let found: Vec<_> = setting
                .overrode
                .iter()
                .map(|lost| (layer_of(&lost.place.file.name), lost.value.clone()))
                .collect();
            let at = layer_of(&setting.place.file.name);
            prop_assert_eq!((at, found), (owner, lost), "{} of {:#?}", setting.pointer(), texts);
        }
    }
}
