//! The config keys a type knows, and what each of them takes.
//!
//! The names come from the type's own reading, which costs nothing. The schema is made only for a text that spells a number
//! or a yes: it takes longer than all the rest of a mount.

use std::cell::OnceCell;

use schemars::{JsonSchema, schema_for};
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor, value};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

pub(super) struct Keys {
    /// What the type says it reads; nothing when it takes any map, as one with a flattened part does.
    fields: Option<&'static [&'static str]>,
    schema: OnceCell<Map<String, Value>>,
    make: fn() -> Map<String, Value>,
}

impl Keys {
    pub(super) fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        let mut fields = None;
        // It always fails: the names are all that is wanted.
        drop(T::deserialize(Asked(&mut fields)).err());
        Self { fields, schema: OnceCell::new(), make: properties::<T> }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        match self.fields {
            Some(fields) => fields.contains(&key),
            None => self.schema().contains_key(key),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let fields = self.fields.into_iter().flatten().map(|name| (*name).to_owned());
        let schema = self.fields.is_none().then(|| self.schema().keys().cloned());
        fields.chain(schema.into_iter().flatten())
    }

    /// A text where a number or a yes is wanted, as `${VAR}` and wizards give them, becomes what it spells.
    pub(super) fn tidy(&self, key: &str, value: Value) -> Value {
        let Value::String(text) = &value else { return value };
        let Ok(spelt @ (Value::Bool(_) | Value::Number(_))) = serde_json::from_str(text.trim()) else {
            return value;
        };
        let kinds = match self.schema().get(key).and_then(|schema| schema.get("type")) {
            Some(Value::Array(kinds)) => kinds.as_slice(),
            Some(kind) => std::slice::from_ref(kind),
            None => &[],
        };
        let takes = |kind: &str| kinds.iter().any(|one| one == kind);
        let fits = match spelt {
            _ if takes("string") => false,
            Value::Bool(_) => takes("boolean"),
            _ => takes("number") || takes("integer"),
        };
        if fits { spelt } else { value }
    }

    fn schema(&self) -> &Map<String, Value> {
        self.schema.get_or_init(self.make)
    }
}

fn properties<T: JsonSchema>() -> Map<String, Value> {
    match schema_for!(T).to_value().get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    }
}

/// Somebody who hands out nothing and remembers which fields were asked for.
struct Asked<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = Some(fields);
        Err(Error::custom("only the names were asked for"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Error::custom("only the names were asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its keys are looked at")]
    struct Plain {
        name: Option<String>,
        #[serde(rename = "count")]
        number: Option<u32>,
        share: f64,
        on: bool,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its keys are looked at")]
    struct Wrapped {
        own: bool,
        #[serde(flatten)]
        rest: Plain,
    }

    #[test]
    fn names_come_from_the_type_also_where_a_part_is_flattened() {
        let plain = Keys::of::<Plain>();
        assert_eq!(plain.names().collect::<Vec<_>>(), ["name", "count", "share", "on"]);
        assert!(plain.has("count") && !plain.has("number") && plain.schema.get().is_none());
        let mut wrapped: Vec<_> = Keys::of::<Wrapped>().names().collect();
        wrapped.sort();
        assert_eq!(wrapped, ["count", "name", "on", "own", "share"]);
        assert!(Keys::of::<Wrapped>().has("own"));
    }

    #[test]
    fn a_text_becomes_what_it_spells_where_that_is_wanted() {
        for keys in [Keys::of::<Plain>(), Keys::of::<Wrapped>()] {
            let tidied = |key: &str, text: &str| keys.tidy(key, json!(text));
            assert_eq!((tidied("count", " 7 "), tidied("share", "0.5")), (json!(7), json!(0.5)));
            assert_eq!((tidied("on", "true"), tidied("on", "1")), (json!(true), json!("1")));
            assert_eq!((tidied("name", "12"), tidied("count", "many")), (json!("12"), json!("many")));
            assert_eq!(keys.tidy("count", json!([1])), json!([1]));
        }
    }
}
