//! Tools for authors: typed input and output, the schema derived from the input.

use std::future::Future;

use amplifier_protocol::tool::{Effects, ToolSpec};
use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tool::{Tool, ToolCx, ToolFailure};

/// A tool with a typed input. Wrap it in [`Typed`] to mount it.
///
/// ```
/// use amplifier_core::contracts::{Tool, ToolCx, ToolFailure, Typed, TypedTool};
/// use amplifier_protocol::tool::Effects;
///
/// /// Counts the words in a text.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Input {
///     /// The text to count.
///     text: String,
/// }
///
/// struct WordCount;
///
/// impl TypedTool for WordCount {
///     const NAME: &'static str = "word_count";
///     const EFFECTS: Effects = Effects::PURE;
///     type Input = Input;
///     type Output = usize;
///
///     async fn run(&self, input: Input, _cx: &ToolCx) -> Result<usize, ToolFailure> {
///         Ok(input.text.split_whitespace().count())
///     }
/// }
///
/// assert_eq!(Typed(WordCount).spec().description.as_deref(), Some("Counts the words in a text."));
/// ```
pub trait TypedTool: Send + Sync {
    /// The name the model calls it by.
    const NAME: &'static str;
    /// What a call touches.
    const EFFECTS: Effects;
    /// The input; its doc comment is the description the model reads.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The answer.
    type Output: Serialize;

    /// Runs one call.
    fn run(
        &self,
        input: Self::Input,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<Self::Output, ToolFailure>> + Send;
}

/// Joins a typed tool to the contract of the kernel.
pub struct Typed<T>(pub T);

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> ToolSpec {
        let mut parameters = schema_for!(T::Input).to_value();
        let mut description = None;
        if let Value::Object(schema) = &mut parameters {
            schema.shift_remove("$schema");
            schema.shift_remove("title");
            description = schema.shift_remove("description");
        }
        let description = description.and_then(|text| text.as_str().map(str::to_owned));
        ToolSpec { name: T::NAME.to_owned(), description, parameters, extra: serde_json::Map::new() }
    }

    fn effects(&self) -> Effects {
        T::EFFECTS
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let input = serde_json::from_value(input).map_err(|error| {
            ToolFailure::new(format!("the input of `{}` does not fit: {error}", T::NAME))
                .of_kind("InvalidInput")
        })?;
        let output = self.0.run(input, cx).await?;
        serde_json::to_value(output).map_err(|error| {
            ToolFailure::new(format!("the answer of `{}` is not JSON: {error}", T::NAME))
                .of_kind("InvalidOutput")
        })
    }
}
