//! The clauses of the display contract.

use std::sync::Arc;

use amplifier_core::contracts::{DisplayMessage, DisplaySystem};
use amplifier_protocol::hook::MessageLevel;
use tokio::task::JoinSet;

use super::report::{Report, Suite};

/// Runs a display through its contract.
pub async fn display(make: impl AsyncFn() -> Arc<dyn DisplaySystem>) -> Report {
    let mut suite = Suite::new("display");
    suite
        .clause("every message is taken, whatever it holds", async {
            let display = make().await;
            for level in [MessageLevel::Info, MessageLevel::Warning, MessageLevel::Error] {
                for text in ["", "plain", "two\nlines", "\u{1b}[31mred\u{0}", &"long ".repeat(10_000)] {
                    display.show_message(message(level, text)).await;
                }
            }
            Ok(())
        })
        .await;
    suite
        .clause("messages side by side are all taken", async {
            let display = make().await;
            let mut shown = JoinSet::new();
            for n in 0..16 {
                let display = Arc::clone(&display);
                shown.spawn(async move {
                    display.show_message(message(MessageLevel::Info, &n.to_string())).await
                });
            }
            while let Some(done) = shown.join_next().await {
                done.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
        .await;
    suite.finish()
}

fn message(level: MessageLevel, text: &str) -> DisplayMessage {
    DisplayMessage { message: text.to_owned(), level, source: "hook:test".to_owned() }
}
