//! `amplifier update --check`: what has newer commits than what is here.

use std::path::PathBuf;

use amplifier_app::updates::{self, News};
use serde_json::json;

use super::load;
use crate::args::{Form, UpdateCheckArgs};
use crate::exit::Exit;
use crate::render;

/// `amplifier update --check`.
pub fn run(args: &UpdateCheckArgs, home: Option<PathBuf>) -> Exit {
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
        let is_quiet = news.iter().all(|news| news.changes.is_empty() && news.problem.is_none());
        if is_quiet { Exit::Success } else { Exit::Failure }
    })
}

fn tell(news: &[News]) {
    if news.is_empty() {
        render::out("no bundle is registered and there are no collections");
    }
    for news in news {
        let what = format!("{} {}", news.kind.name(), news.name);
        match (&news.problem, news.changes.is_empty()) {
            (Some(problem), _) => render::out(&format!("{what}: cannot be told: {problem}")),
            (None, true) => render::out(&format!("{what}: nothing is new")),
            (None, false) => render::out(&format!("{what}: `{}` brings what is new", news.command)),
        }
        news.changes.iter().for_each(|change| render::out(&format!("  {change}")));
        for source in &news.unknown {
            render::out(&format!("  `{source}` tells nothing without being fetched"));
        }
    }
}
