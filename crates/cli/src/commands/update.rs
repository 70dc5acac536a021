//! `amplifier update --check`: what has newer commits than what is here. Bringing it is the business of other commands.

use std::path::PathBuf;

use amplifier_app::updates::{self, News};
use serde_json::json;

use super::load;
use crate::args::{Form, UpdateCheckArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// `amplifier update --check`.
pub fn run(args: &UpdateCheckArgs, home: Option<PathBuf>) -> Exit {
    if !args.check {
        Remark::error("`amplifier update` only looks, with `--check`")
            .hint(
                "`amplifier bundle update` brings what is new in bundles, `amplifier collection sync --refresh` in collections",
            )
            .tell();
        return Exit::Usage;
    }
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        let cancel = access.cancel.clone();
        let watch = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                cancel.request_immediate();
            }
        });
        let looked = updates::look(&access).await;
        watch.abort();
        if access.cancel.is_cancelled() {
            return Exit::Interrupted;
        }
        let news = match looked {
            Ok(news) => news,
            Err(error) => {
                render::error(&error, error.hint().as_deref());
                return Exit::Failure;
            }
        };
        match args.output {
            Form::Json => render::json(&json!({ "news": news })),
            Form::Text => tell(&news),
        }
        if news.iter().any(|news| news.problem.is_some()) {
            return Exit::Failure;
        }
        if news.iter().any(|news| !news.changes.is_empty()) { Exit::News } else { Exit::Success }
    })
}

fn tell(news: &[News]) {
    if news.is_empty() {
        render::out("no bundle is registered and there are no collections");
    }
    for news in news {
        let what = format!("{} {}", news.kind.name(), news.name);
        match (&news.problem, news.changes.is_empty()) {
            (Some(problem), _) => {
                Remark::error(format!("{what}: cannot be told: {problem}"))
                    .maybe_hint(news.hint.clone())
                    .tell();
            }
            (None, true) => render::out(&format!("{what}: nothing is new")),
            (None, false) => render::say(&format!("{what}: `{}` brings what is new", news.command)),
        }
        news.changes.iter().for_each(|change| render::out(&format!("  {change}")));
        for source in &news.unknown {
            render::out(&format!("  `{source}` tells nothing without being fetched"));
        }
    }
}
