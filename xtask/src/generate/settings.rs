//! `docs/reference/settings.md` and `schemas/settings.schema.json`: what `amplifier config keys` and `amplifier config schema`
//! tell, with the words around it.

use serde::Deserialize;
use serde_json::Value;

use super::modules::{ask, printed};
use super::schema::cell;
use crate::output::TaskError;
use crate::workspace::Workspace;

#[derive(Deserialize)]
struct Listed {
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    path: String,
    takes: String,
    variable: Option<String>,
    usual: Option<String>,
    about: String,
}

/// The schema of a settings file.
pub(crate) fn schema(workspace: &Workspace) -> Result<String, TaskError> {
    let schema: Value = printed(workspace, &["config", "schema"])?;
    Ok(format!("{schema:#}\n"))
}

/// The page of settings.
pub(crate) fn page(workspace: &Workspace) -> Result<String, TaskError> {
    let listed: Listed = ask(workspace, &["config", "keys"])?;
    let mut page = format!("{BEFORE}\n| key | takes | meaning |\n|---|---|---|\n");
    for key in &listed.keys {
        let usual = key.usual.as_ref().map(|usual| format!(" Usually `{usual}`.")).unwrap_or_default();
        let about = format!("{}{usual}", key.about);
        page.push_str(&format!("| `{}` | {} | {} |\n", key.path, cell(&key.takes), cell(&about)));
    }
    page.push_str("\n## Variables\n\nEach sets a key for one process and goes before every file.\n\n");
    page.push_str("| variable | key |\n|---|---|\n");
    for key in &listed.keys {
        if let Some(variable) = &key.variable {
            page.push_str(&format!("| `{variable}` | `{}` |\n", key.path));
        }
    }
    page.push_str(AFTER);
    Ok(page)
}

const BEFORE: &str = "\
<!-- Written by `cargo xtask gen`; the keys come from `amplifier config keys`, the words from `xtask/src/generate/settings.rs`. -->

# Settings

What a person, a project and a machine have set for every session. From the lowest layer to the highest, each going before
the one above it in this list:

| layer | where | for |
|---|---|---|
| built in | the program | everybody |
| global | `~/.amplifierd/settings.yaml` (`AMPLIFIER_HOME` or `--home` moves it) | everything you do |
| project | `.amplifier/settings.yaml` | everybody who works in the project |
| local | `.amplifier/settings.local.yaml` | you, in this project; keep it out of version control |
| environment | `AMPLIFIER_…`, below | one process |
| flags | `--bundle`, `--max-cost`, … | one command |

The project is the nearest folder with `.amplifier` up to the top of the repository; outside of a repository only the working
folder itself is looked at. Your home folder is no project, and what modules leave in `.amplifier` (`backups`, `logs`) makes none.

Mappings are merged key by key, lists are replaced. Only `config.providers` is merged by `id`, else by `module`, and the
entries of the higher layer come first. `!replace` before a value keeps what is below from being merged, `!delete` takes it
away, and so does `null`.

A file that is no YAML, or a value that cannot be meant, is an error with file, line and column, and nothing runs. A key that
nobody knows is a warning with the nearest one.

```console
$ amplifier config show --origin           # every value, the line that set it, and what it overrode
$ amplifier config get bundle.active
$ amplifier config set ui.color never      # --global, --project or --local
$ amplifier config unset ui.color
$ amplifier config edit --project          # in $VISUAL, $EDITOR, vi or nano; what makes no sense is not kept
$ amplifier config path
$ amplifier config keys                    # this list
```

`config set` changes the text of the file: comments and order stay. What cannot be changed line by line (such as `{a: b}`) is
refused, and so is a value that looks like a secret. Several processes may change a file at the same time.

Relative paths (`./x`) start at the project's folder; in the global file at the home, in a variable at the working folder.

`schemas/settings.schema.json` (`amplifier config schema`) checks a file while it is written:

```yaml
# yaml-language-server: $schema=https://…/schemas/settings.schema.json
bundle:
  active: ./bundles/team.md
config:
  providers:
    - module: provider-anthropic
      config:
        default_model: claude-sonnet-4-5
        api_key: ${ANTHROPIC_API_KEY}
```

## Keys
";

const AFTER: &str = "
## What they do to a session

`amplifier plan show` prints the plan with the settings laid over it, the same that `amplifier run` uses, and `amplifier plan
explain` names the file and line of the settings for each value they set. The order, each step over the one before:
the bundle, the bundles of `bundle.app`, `sources.modules`, `overrides`, `config.providers`, `prefer`, `limits`, flags.

A module that `sources.modules` or `overrides` gives a source comes from there, also when it is built in. The `source` of a
provider in `config.providers` counts only when the module is not built in, or with `prefer: source`, or with `native: false`
on the entry. Under a `bundle.lock` a source that the lock does not have is refused.

A mount plan that is given as a file stays as it is written. It gets the providers of the settings when it names none, and
their limits.

Anyone may have written the files of a project. Until you trust the project (`amplifier trust`), they can ask for more care,
and nothing else in them counts: `approve` and `limits` when they are stricter than yours, `ui`. See
[what is trusted when](../security.md).

## Keys of model services

A provider finds its key in the process's environment, else among the stored keys, under the same name: `${ANTHROPIC_API_KEY}`
in a config means both. `amplifier init` and `amplifier provider add` store keys in the keyring of the system, where there is
one: the secret service on Linux (when `DBUS_SESSION_BUS_ADDRESS` is set), the keychain on macOS, the credential manager on
Windows. Elsewhere they are in `keys.env` of the home, in plain text and readable by their owner alone, which is said when
it happens; `--key-from-env NAME` stores nothing. `amplifier init --no-test` asks nothing of the service you choose: no list
of models, you type the name. A key is stored in one place: storing it in the other takes it out of the first. Where both have
one, the key in `keys.env` is used, and a warning says so. Stored keys are looked for when a variable is wanted that is not set, and
are never printed or written to a session.

`amplifier provider set NAME --model … --base-url … --key-from-env …` changes an entry where it stands and leaves the rest of
it as it is written; `init` mends one that lacks its key in the same way. `provider remove NAME --forget-key` forgets the
stored key too, also of an entry that is gone already.

A key that stands in plain text in a config, in settings, a plan or a bundle, is used and told with its line, and nothing that
is shown or kept holds it: plans have a reference in its place, such as `${PLAIN_OPENAI_API_KEY}`, and so have their hashes, so
another key is no other plan. A session that goes on takes the key from where it stands: the settings, or what the session was
started from. Where it stands no more, the provider is reported as lacking it. The values of keys that are known when a session
is opened (variables of model services, stored keys, those in plain text), if they have at least 8 characters, are `[REDACTED]`
in its journal and everything made from it, in the log of `hooks-logging`, in the conversations that `context-persistent` and
`hooks-backup` keep, in what was typed in the chat and in the commands that are allowed always, whoever says them. One that a
model streams in pieces is hidden as well: the end of a piece that may be the beginning of a key is written with the next
piece, and with none where the block ends. Of an answer that breaks off within a key, what was said of it stays.
";
