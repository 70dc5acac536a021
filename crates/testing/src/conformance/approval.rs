//! The clauses of the approval contract.

use std::sync::Arc;

use amplifier_core::contracts::ApprovalSystem;
use amplifier_protocol::hook::{ApprovalOption, Question};
use tokio::task::JoinSet;

use super::report::{Report, Seen, Suite, ensure};

/// Runs an approval system through its contract. Whoever stands behind it must answer without a person.
pub async fn approval(make: impl AsyncFn() -> Arc<dyn ApprovalSystem>) -> Report {
    let mut suite = Suite::new("approval");
    suite
        .clause("the answer is one of the options, or there is an error", async {
            let approval = make().await;
            for options in [&["Allow", "Deny"][..], &["Allow once", "Allow always", "Deny"]] {
                asked(&*approval, options).await?;
            }
            Ok(())
        })
        .await;
    suite
        .clause("a question that is asked twice is answered twice", async {
            let approval = make().await;
            asked(&*approval, &["Allow", "Deny"]).await?;
            asked(&*approval, &["Allow", "Deny"]).await
        })
        .await;
    suite
        .clause("questions side by side are all answered", async {
            let approval = make().await;
            let mut questions = JoinSet::new();
            for _ in 0..4 {
                let approval = Arc::clone(&approval);
                questions.spawn(async move { asked(&*approval, &["Allow", "Deny"]).await });
            }
            while let Some(seen) = questions.join_next().await {
                seen.map_err(|error| error.to_string())??;
            }
            Ok(())
        })
        .await;
    suite.finish()
}

async fn asked(approval: &dyn ApprovalSystem, options: &[&str]) -> Seen {
    let options: Vec<_> = options.iter().copied().map(ApprovalOption::from).collect();
    let question = Question {
        prompt: "May it?".to_owned(),
        options: options.clone(),
        timeout: 1.0,
        ..Question::default()
    };
    match approval.request_approval(question).await {
        Ok(answer) => ensure(options.iter().any(|option| option.text == answer), || {
            format!("`{answer}` was not on offer")
        }),
        Err(error) => ensure(!error.to_string().is_empty(), || "an error without a message".to_owned()),
    }
}
