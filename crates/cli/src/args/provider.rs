//! What can be typed behind `amplifier provider`.

use std::time::Duration;

use amplifier_app::connect::fit;
use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;

use super::Form;
use super::config::{ScopeArgs, Store};

const ASK_CODES: &str = "Exit codes: 0 answered, 1 failed, 2 there is no such provider or it cannot be used here, 124 its time was up.";
const SET_CODES: &str = "What is not named stays as it is.\n\n\
     Exit codes: 0 changed, 1 failed, 2 no settings list it or nothing is to be changed.";

#[derive(Subcommand)]
pub enum ProviderCommand {
    /// All providers, whether each can be used here, and why.
    List(ProviderListArgs),
    /// The models that a provider has.
    Models(ProviderAskArgs),
    /// Ask a provider for one token, and see how long it takes and what it costs.
    Test(ProviderAskArgs),
    /// Put a provider into the settings.
    Add(ProviderAddArgs),
    /// Change a provider of the settings: its model, its place, its key.
    Set(ProviderSetArgs),
    /// Take a provider out of the settings.
    Remove(ProviderRemoveArgs),
}

/// Exit codes: 0 added, 1 failed, 2 something is missing or there is one of that name.
#[derive(clap::Args)]
pub struct ProviderAddArgs {
    /// The provider, such as `anthropic`; asked for when left out.
    #[arg(value_name = "TYPE")]
    pub name: Option<String>,

    /// A name of its own, to have several of one type.
    #[arg(long, value_name = "NAME", value_parser = fit::name)]
    pub id: Option<String>,

    /// The model to ask, instead of the provider's usual one.
    #[arg(long, short, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,

    /// Where the service is, instead of its usual place.
    #[arg(long, value_name = "URL", value_parser = fit::address)]
    pub base_url: Option<String>,

    #[command(flatten)]
    pub key: KeyArgs,

    /// The file to write; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
#[command(after_help = SET_CODES)]
pub struct ProviderSetArgs {
    /// The provider: its id, or its type.
    pub name: String,

    /// The model to ask.
    #[arg(long, short, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,

    /// Where the service is.
    #[arg(long, value_name = "URL", value_parser = fit::address)]
    pub base_url: Option<String>,

    #[command(flatten)]
    pub key: KeyArgs,

    /// Only in this file; where it stands when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

/// Where a key comes from, and where it is kept.
#[derive(clap::Args)]
pub struct KeyArgs {
    /// The variable that holds the key; nothing is stored.
    #[arg(long, value_name = "VAR", conflicts_with = "key_stdin", value_parser = fit::variable)]
    pub key_from_env: Option<String>,

    /// Read the key from standard input and store it.
    #[arg(long)]
    pub key_stdin: bool,

    /// Where the key is stored; the keyring when there is one.
    #[arg(long, value_enum, value_name = "PLACE")]
    pub store: Option<Store>,
}

#[derive(clap::Args)]
pub struct ProviderRemoveArgs {
    /// The provider: its id, or its type.
    pub name: String,

    /// Forget its stored key too; that of a provider that is gone already as well.
    #[arg(long)]
    pub forget_key: bool,

    /// Only in this file; wherever it stands when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
pub struct ProviderListArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
#[command(after_help = ASK_CODES)]
pub struct ProviderAskArgs {
    /// The provider, such as `anthropic`; without it the one that is found here.
    pub name: Option<String>,

    /// The model, instead of the provider's usual one.
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,

    /// Where the service is, instead of its usual place.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// How long it may take; 30 when left out.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| "not a positive number of seconds".to_owned())
}
