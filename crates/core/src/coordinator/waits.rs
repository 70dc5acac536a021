//! Waiting for modules that are called in place, not in a task of their own: whoever takes long is told with its name.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::time::Duration;

use amplifier_protocol::event::CallStalled;

use super::Coordinator;
use super::calls::millis;
use crate::sync::lock;
use crate::watch::{Fault, poll_once, waiting};

impl Coordinator {
    /// Waits for a module that is called in place, at most `deadline` long, and turns a panic into a value. One that
    /// takes long is told with its owner; one that answers at once pays for nothing of this.
    pub(crate) async fn wait_for<T>(
        &self,
        owner: &str,
        operation: &str,
        deadline: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Fault> {
        let mut future = pin!(future);
        let mut answer = None;
        poll_fn(|cx| poll_once(future.as_mut(), cx, &mut answer)).await;
        match answer {
            Some(answer) => answer,
            // Boxed: seldom needed, and every call would carry its size.
            None => Box::pin(self.wait_long(owner, operation, deadline, future)).await,
        }
    }

    async fn wait_long<T, F>(
        &self,
        owner: &str,
        operation: &str,
        deadline: Duration,
        mut future: Pin<&mut F>,
    ) -> Result<T, Fault>
    where
        F: Future<Output = T> + ?Sized,
    {
        let _entered = self.enter(owner, operation);
        let stall = self.deadlines().stall;
        if stall >= deadline {
            return waiting(deadline, future).await;
        }
        match waiting(stall, future.as_mut()).await {
            Err(Fault::Late { .. }) => {}
            answered => return answered,
        }
        let stalled = CallStalled {
            owner: owner.to_owned(),
            operation: operation.to_owned(),
            waited_ms: millis(stall),
            deadline_ms: millis(deadline),
        };
        let told = async {
            self.report(stalled).await;
            std::future::pending().await
        };
        let late = |fault| match fault {
            Fault::Late { .. } => Fault::Late { deadline },
            other => other,
        };
        tokio::select! {
            biased;
            answer = waiting(deadline - stall, future) => answer.map_err(late),
            answer = told => answer,
        }
    }

    /// Tells once when a turn stands still although nothing is called and nothing happens: then the loop itself hangs.
    /// Never ends; whoever runs the turn drops it.
    pub(crate) async fn watch_loop(&self) {
        let stall = self.deadlines().stall;
        loop {
            let before = self.0.recorder.sequence();
            tokio::time::sleep(stall).await;
            if self.0.recorder.sequence() == before && lock(&self.0.in_flight).is_empty() {
                break;
            }
        }
        let owner = self.plan().session.orchestrator.module.to_string();
        let deadline_ms = self.ledger().wall_time_left().map_or(0, millis);
        let operation = "orchestrator.execute".to_owned();
        self.report(CallStalled { owner, operation, waited_ms: millis(stall), deadline_ms }).await;
        std::future::pending().await
    }
}
