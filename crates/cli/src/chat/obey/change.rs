//! Commands that change how the session goes on.

use amplifier_app::CancelToken;
use amplifier_app::approval::Grant;
use amplifier_app::compact::compact;
use amplifier_app::conversation::Cleared;
use amplifier_app::modes::Mode;
use serde_json::Value;

use crate::chat::markdown::literal;
use crate::chat::paint::Style;
use crate::chat::turn::tokens;
use crate::chat::{Chat, Next, Past};

impl Chat {
    pub(super) async fn model(&mut self, name: &str) -> Next {
        if name.is_empty() {
            return self.models().await;
        }
        Next::Go(Box::new(self.seat.with_model(name, format!("from now on `{name}` is asked"))), Past::Hidden)
    }

    /// The models of the provider that is asked.
    async fn models(&mut self) -> Next {
        let (provider, model) = self.seat.model();
        let model = model.unwrap_or_else(|| "its usual one".to_owned());
        self.say(&format!("{model} of {provider}"), Style::BOLD);
        match self.stops.unless_stopped(self.seat.models(), &CancelToken::new()).await {
            Ok(Ok(models)) => {
                let rows: Vec<_> =
                    models.iter().map(|model| (model.id.clone(), model.display_name.clone())).collect();
                let mut known = self.seat.known();
                known.models = models.into_iter().map(|model| model.id).collect();
                self.known.set(known);
                self.table(&rows);
            }
            Ok(Err(error)) => self.fault(&error, None),
            Err(stop) => return self.stopped(stop),
        }
        Next::Prompt
    }

    pub(super) fn provider(&mut self, name: &str) -> Next {
        if name.is_empty() {
            let providers = self.seat.opened.session.coordinator().providers();
            let model = |info: amplifier_protocol::provider::ProviderInfo| {
                info.defaults.get("model").and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let rows: Vec<_> =
                providers.iter().map(|(name, provider)| (name.clone(), model(provider.info()))).collect();
            self.table(&rows);
            return Next::Prompt;
        }
        match self.seat.with_provider(name, format!("from now on `{name}` is asked")) {
            Ok(to) => Next::Go(Box::new(to), Past::Hidden),
            Err(error) => {
                let hint = "`amplifier provider list` shows the providers that are built in";
                self.fault(&error, Some(hint.to_owned()));
                Next::Prompt
            }
        }
    }

    pub(super) async fn bundle(&mut self, reference: &str) -> Next {
        if reference.is_empty() {
            let made_of = self.seat.made_of.clone();
            self.say(&made_of, Style::PLAIN);
            return Next::Prompt;
        }
        let cancel = CancelToken::new();
        let found = self.seat.with_bundle(reference, cancel.clone());
        match self.stops.unless_stopped(found, &cancel).await {
            Ok(Ok(to)) => Next::Go(Box::new(to), Past::Hidden),
            // Whoever looked for it has said why.
            Ok(Err(exit)) => {
                self.ended(exit);
                Next::Prompt
            }
            Err(stop) => self.stopped(stop),
        }
    }

    pub(super) async fn compact(&mut self, wish: &str) -> Next {
        let session = self.seat.opened.session.clone();
        session.reset_cancel();
        let wish = Some(wish.to_owned()).filter(|wish| !wish.is_empty());
        let work = async move {
            let compacted = compact(&session, wish.as_deref()).await?;
            let (before, after) = compacted.tokens;
            let (count, sizes) =
                (compacted.before, format!("about {} tokens became {}", tokens(before), tokens(after)));
            Ok::<_, amplifier_app::compact::CompactError>(format!(
                "{}\n\n---\n\n{count} messages, {sizes}.",
                compacted.summary
            ))
        };
        let over = self.watch(work, |result| result.as_ref().ok().cloned()).await;
        self.screen.end_raw();
        match over.result {
            Some(Ok(_)) => self.keep_views().await,
            Some(Err(error)) => self.fault(&error, None),
            None => self.refuse("the summary broke off"),
        }
        over.next
    }

    pub(super) async fn clear(&mut self) {
        match self.seat.opened.clear().await {
            Ok(Cleared { stale }) => {
                stale.iter().for_each(|error| self.tell_stale(error));
                self.done("the model knows nothing of what was said; `/rewind` brings it back");
            }
            Err(error) => self.fault(&error, None),
        }
    }

    pub(super) fn mode(&mut self, name: &str) {
        if name.is_empty() {
            let mode = self.seat.modes.mode();
            return self.say(mode.as_str(), Style::PLAIN);
        }
        match name.parse::<Mode>() {
            Ok(mode) => {
                self.seat.modes.set(mode);
                let told = match mode {
                    Mode::Normal => "all tools can be used",
                    Mode::Plan => "nothing is changed and nothing is run until `/mode normal`",
                };
                self.done(told);
            }
            Err(error) => self.fault(&error, None),
        }
    }

    pub(super) fn allow(&mut self, argument: &str) {
        match argument {
            "" => self.allowed(),
            "forget" => match self.seat.grants().forget(self.seat.approvals().folder()) {
                Ok(()) => {
                    self.seat.approvals().forget_session();
                    self.done("what was allowed in this folder and in this session is forgotten: it is asked about again");
                }
                Err(error) => self.fault(&error, None),
            },
            tool => {
                let known = self.seat.opened.session.coordinator().tool(tool);
                let Some(effects) = known.map(|tool| tool.effects()) else {
                    return self.refuse(&format!("there is no tool `{tool}`; `/tools` lists them"));
                };
                if effects.executes {
                    let told =
                        format!("`{tool}` runs programs: answer its questions with `s` or `a`, one by one");
                    return self.refuse(&told);
                }
                let grant = Grant { tool: tool.to_owned(), input: None, module: None };
                self.seat.approvals().allow_in_session(grant);
                self.done(&format!("`{tool}` is not asked about in this session; `/allow forget` ends that"));
            }
        }
    }

    /// What needs no question any more.
    fn allowed(&mut self) {
        let row = |grant: &Grant, long: &str| {
            let what = literal(grant.input.as_ref().map_or("every call", |input| &input.shown));
            (grant.tool.clone(), format!("{what} ({long})"))
        };
        let mut rows = match self.seat.grants().list(self.seat.approvals().folder()) {
            Ok(grants) => grants.iter().map(|grant| row(grant, "always, in this folder")).collect(),
            Err(error) => {
                self.fault(&error, None);
                Vec::new()
            }
        };
        rows.extend(
            self.seat.approvals().allowed_in_session().iter().map(|grant| row(grant, "this session")),
        );
        match rows.is_empty() {
            true => self.say("everything that asks is asked about", Style::DIM),
            false => self.table(&rows),
        }
    }
}
