//! One server of a session: kept running by a task of its own, started again when it ends, woken by calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amplifier_core::cancel::{CancelLevel, CancelToken};
use amplifier_core::contracts::ToolFailure;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::config::{Protocol, Settings};
use super::content::Limits;
use super::events::{News, ServerFailed, ServerReady, Teller, ToolsChanged};
use super::shelf::Shelf;
use super::wire::{self, Link, Offer, Surroundings};

/// The pause before the first new start; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that ran this long is not failing at its start.
const STEADY: Duration = Duration::from_secs(60);
/// Word of changes often comes in bursts, and one look is enough for all of it.
const BURST: Duration = Duration::from_millis(100);

/// One server of a session.
pub(super) struct Server {
    pub(super) settings: Settings,
    pub(super) limits: Limits,
    around: Surroundings,
    teller: Arc<Teller>,
    shelf: Arc<Shelf>,
    max_restarts: u32,
    state: watch::Sender<State>,
    wanted: Notify,
    stop: CancelToken,
    // Once a server spoke the older generation it is not asked for the newer one again.
    old_fashioned: AtomicBool,
}

/// How a server stands.
#[derive(Clone)]
pub(super) struct State {
    /// How often it was started.
    pub(super) attempt: u64,
    pub(super) phase: Phase,
}

#[derive(Clone)]
pub(super) enum Phase {
    Starting,
    Up { link: Arc<Link>, offer: Arc<Offer> },
    Down { why: String },
    Closed,
}

/// What all servers of a session share.
pub(super) struct Common {
    pub(super) teller: Arc<Teller>,
    pub(super) shelf: Arc<Shelf>,
    pub(super) limits: Limits,
    pub(super) max_restarts: u32,
}

impl Server {
    pub(super) fn new(settings: Settings, around: Surroundings, common: &Common) -> Arc<Self> {
        Arc::new(Self {
            settings,
            around,
            limits: common.limits,
            max_restarts: common.max_restarts,
            teller: Arc::clone(&common.teller),
            shelf: Arc::clone(&common.shelf),
            state: watch::Sender::new(State { attempt: 0, phase: Phase::Starting }),
            wanted: Notify::new(),
            stop: CancelToken::new(),
            old_fashioned: AtomicBool::new(false),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until the first start has come to something.
    pub(super) async fn settled(&self) {
        let mut state = self.state.subscribe();
        drop(state.wait_for(|state| !matches!(state.phase, Phase::Starting)).await);
    }

    /// Ends the server and its task.
    pub(super) async fn close(&self) {
        self.stop.request(CancelLevel::Immediate);
        let mut state = self.state.subscribe();
        drop(state.wait_for(|state| matches!(state.phase, Phase::Closed)).await);
    }

    /// A connection to use now. A server that is down is started at once, whatever pause it was in.
    pub(super) async fn link(&self) -> Result<Arc<Link>, ToolFailure> {
        let mut state = self.state.subscribe();
        let seen = state.borrow_and_update().attempt;
        if let Phase::Up { link, .. } = &state.borrow().phase
            && !link.is_ended()
        {
            return Ok(Arc::clone(link));
        }
        self.wanted.notify_one();
        let usable = |state: &State| match &state.phase {
            Phase::Up { link, .. } => !link.is_ended(),
            Phase::Down { .. } => state.attempt > seen,
            Phase::Closed => true,
            Phase::Starting => false,
        };
        let limit = self.settings.start_timeout + Duration::from_secs(1);
        let settled = tokio::time::timeout(limit, state.wait_for(usable)).await;
        match settled.ok().and_then(Result::ok).map(|state| state.phase.clone()) {
            Some(Phase::Up { link, .. }) => Ok(link),
            Some(Phase::Down { why }) => Err(self.unavailable(&why)),
            Some(Phase::Closed) => Err(self.unavailable("the session is ending")),
            Some(Phase::Starting) | None => Err(self.unavailable("it is still starting; try again later")),
        }
    }

    fn unavailable(&self, why: &str) -> ToolFailure {
        ToolFailure::new(format!("MCP server `{}` is not available: {why}", self.name()))
            .of_kind("McpServerUnavailable")
    }

    /// Says that a connection is of no more use although it has not ended: the next call gets a fresh one.
    pub(super) async fn give_up(&self, link: &Arc<Link>) {
        link.close().await;
    }

    /// Keeps the server running until the session ends.
    pub(super) async fn run(self: Arc<Self>) {
        let mut failures = 0_u32;
        let mut attempt = 0_u64;
        loop {
            attempt += 1;
            self.set(attempt, Phase::Starting);
            let began = Instant::now();
            let started = tokio::select! {
                started = tokio::time::timeout(self.settings.start_timeout, self.start()) => started,
                () = self.stop.cancelled(CancelLevel::Immediate) => break,
            };
            let why = match started {
                Ok(Ok((link, offer))) => {
                    self.announce(attempt, &link, offer, began).await;
                    let up_since = Instant::now();
                    let Some(why) = self.attend(attempt, &link).await else { break };
                    if up_since.elapsed() >= STEADY {
                        failures = 0;
                    }
                    format!("it ended: {why}")
                }
                Ok(Err(why)) => why,
                Err(_) => format!(
                    "it did not start within {:.1} s; `start_timeout` sets how long it may take",
                    self.settings.start_timeout.as_secs_f64()
                ),
            };
            failures = failures.saturating_add(1);
            if !self.pause(attempt, failures, why).await {
                break;
            }
        }
        self.set(attempt, Phase::Closed);
    }

    async fn start(&self) -> Result<(Arc<Link>, Offer), String> {
        let protocol = match self.settings.protocol {
            Protocol::Auto if self.old_fashioned.load(Ordering::Relaxed) => Protocol::Initialize,
            chosen => chosen,
        };
        let link = wire::connect(&self.settings, protocol, &self.around).await?;
        let offer = link.offer().await?;
        self.old_fashioned.store(!link.is_stateless(), Ordering::Relaxed);
        Ok((Arc::new(link), offer))
    }

    async fn announce(self: &Arc<Self>, attempt: u64, link: &Arc<Link>, offer: Offer, began: Instant) {
        let offer = Arc::new(offer);
        let changes = self.shelf.put(self, &offer);
        self.set(attempt, Phase::Up { link: Arc::clone(link), offer: Arc::clone(&offer) });
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (server, protocol) = (self.name().to_owned(), offer.protocol.clone());
        self.teller.tell(News::Ready(ServerReady { server, protocol, tools: changes.all, took_ms })).await;
    }

    /// Stays with a server that is up, until it ends (and why) or the session does.
    async fn attend(self: &Arc<Self>, attempt: u64, link: &Arc<Link>) -> Option<String> {
        loop {
            tokio::select! {
                why = link.ended() => return Some(why),
                () = self.stop.cancelled(CancelLevel::Immediate) => {
                    link.close().await;
                    return None;
                }
                () = link.changed() => {}
            }
            tokio::time::sleep(BURST).await;
            let looked = tokio::time::timeout(self.settings.start_timeout, link.offer()).await;
            let Ok(Ok(offer)) = looked else { continue };
            let offer = Arc::new(offer);
            let changes = self.shelf.put(self, &offer);
            self.set(attempt, Phase::Up { link: Arc::clone(link), offer });
            if !changes.added.is_empty() || !changes.removed.is_empty() {
                let server = self.name().to_owned();
                let (added, removed) = (changes.added, changes.removed);
                self.teller.tell(News::Changed(ToolsChanged { server, added, removed })).await;
            }
        }
    }

    /// Waits before the next start: until the pause is over, a call wants the server, or the session ends.
    async fn pause(&self, attempt: u64, failures: u32, why: String) -> bool {
        let pause = (failures <= self.max_restarts).then(|| pause_after(failures));
        self.set(attempt, Phase::Down { why: why.clone() });
        let retry_in_ms = pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        let server = self.name().to_owned();
        self.teller.tell(News::Failed(ServerFailed { server, error: why, retry_in_ms })).await;
        let over = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => true,
            () = self.wanted.notified() => true,
            () = self.stop.cancelled(CancelLevel::Immediate) => false,
        }
    }

    fn set(&self, attempt: u64, phase: Phase) {
        self.state.send_replace(State { attempt, phase });
    }
}

fn pause_after(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bounded() {
        let millis = |failures| pause_after(failures).as_millis();
        assert_eq!([1, 2, 3, 4].map(millis), [250, 500, 1_000, 2_000]);
        assert_eq!([20, u32::MAX].map(millis), [60_000, 60_000]);
    }
}
