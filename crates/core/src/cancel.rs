//! Cancellation: none, then graceful, then immediate; from a parent down to its children; never back but by `reset`.
//!
//! Graceful lets running tools finish, or end what they started in order, and starts nothing new. Immediate stops now. The token can be polled or awaited.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Weak};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::sync::lock;

/// How urgently to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelLevel {
    /// Do not stop.
    #[default]
    None,
    /// Finish what runs, start nothing new. A tool that cannot know how long its work takes, such as a shell, ends it.
    Graceful,
    /// Stop now.
    Immediate,
}

impl CancelLevel {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Graceful => "graceful",
            Self::Immediate => "immediate",
        }
    }

    fn from_code(code: u8) -> Self {
        match code {
            0 => Self::None,
            1 => Self::Graceful,
            _ => Self::Immediate,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Graceful => 1,
            Self::Immediate => 2,
        }
    }
}

impl fmt::Display for CancelLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A shared wish to stop. Clones are the same token.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    level: AtomicU8,
    // The highest level that hooks and journal know of.
    told: AtomicU8,
    changed: Notify,
    // Guards every change of the level too, so that a child registered during a request is never missed.
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    children: Vec<Weak<Inner>>,
    running_tools: BTreeMap<String, String>,
    callbacks: Vec<Arc<dyn Fn(CancelLevel) + Send + Sync>>,
}

impl CancelToken {
    /// A token that asks for nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How urgently to stop.
    pub fn level(&self) -> CancelLevel {
        CancelLevel::from_code(self.0.level.load(Ordering::Acquire))
    }

    /// Whether to stop at all.
    pub fn is_cancelled(&self) -> bool {
        self.level() != CancelLevel::None
    }

    /// Whether to stop now.
    pub fn is_immediate(&self) -> bool {
        self.level() == CancelLevel::Immediate
    }

    /// Raises the level, here and in every child. True when it changed here; it never falls this way.
    pub fn request(&self, level: CancelLevel) -> bool {
        let (children, callbacks): (Vec<_>, _) = {
            let links = lock(&self.0.links);
            if self.level() >= level {
                return false;
            }
            self.0.level.store(level.code(), Ordering::Release);
            (links.children.iter().filter_map(Weak::upgrade).collect(), links.callbacks.clone())
        };
        self.0.changed.notify_waiters();
        for child in children {
            CancelToken(child).request(level);
        }
        for callback in callbacks {
            // One that panics has said nothing; the others are called all the same.
            drop(catch_unwind(AssertUnwindSafe(|| callback(level))));
        }
        true
    }

    /// Calls this at each step up from now on, on the thread that asks for it. It must not wait: who wants to do more awaits
    /// [`CancelToken::cancelled`] instead.
    pub fn on_cancel(&self, callback: impl Fn(CancelLevel) + Send + Sync + 'static) {
        lock(&self.0.links).callbacks.push(Arc::new(callback));
    }

    /// Notes that a level is told. True for the first who tells it.
    pub(crate) fn tell(&self, level: CancelLevel) -> bool {
        self.0.told.fetch_max(level.code(), Ordering::AcqRel) < level.code()
    }

    /// Asks for a graceful stop. True when that is news.
    pub fn request_graceful(&self) -> bool {
        self.request(CancelLevel::Graceful)
    }

    /// Asks for an immediate stop. True when that is news.
    pub fn request_immediate(&self) -> bool {
        self.request(CancelLevel::Immediate)
    }

    /// Asks for nothing again, here only, and forgets which tools run.
    pub fn reset(&self) {
        let mut links = lock(&self.0.links);
        self.0.level.store(CancelLevel::None.code(), Ordering::Release);
        self.0.told.store(CancelLevel::None.code(), Ordering::Release);
        links.running_tools.clear();
    }

    /// Waits until the level is at least `level`.
    pub async fn cancelled(&self, level: CancelLevel) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // Enrol before looking, or a request between the two would be slept through.
            changed.as_mut().enable();
            if self.level() >= level {
                return;
            }
            changed.await;
        }
    }

    /// Ties a child to this token: it takes the level of now and every later one.
    pub fn register_child(&self, child: &Self) {
        let level = {
            let mut links = lock(&self.0.links);
            links.children.retain(|known| known.strong_count() > 0);
            links.children.push(Arc::downgrade(&child.0));
            self.level()
        };
        if level != CancelLevel::None {
            child.request(level);
        }
    }

    /// Unties a child; one that was not tied is no matter.
    pub fn unregister_child(&self, child: &Self) {
        let child = Arc::downgrade(&child.0);
        lock(&self.0.links).children.retain(|known| !known.ptr_eq(&child));
    }

    /// Notes that a tool runs, for "waiting for …" displays.
    pub fn register_tool_start(&self, call_id: &str, name: &str) {
        lock(&self.0.links).running_tools.insert(call_id.to_owned(), name.to_owned());
    }

    /// Notes that a tool ended; an unknown call is no matter.
    pub fn register_tool_complete(&self, call_id: &str) {
        lock(&self.0.links).running_tools.remove(call_id);
    }

    /// The tools that run now: call id and name.
    pub fn running_tools(&self) -> Vec<(String, String)> {
        lock(&self.0.links).running_tools.iter().map(|(id, name)| (id.clone(), name.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn levels_rise_once_and_never_fall() {
        let token = CancelToken::new();
        assert!(token.request_graceful());
        assert!(!token.request_graceful());
        assert!(token.request_immediate());
        assert!(!token.request_immediate());
        assert!(!token.request_graceful());
        assert!(token.is_immediate());
        token.register_tool_start("a", "bash");
        token.reset();
        assert_eq!((token.level(), token.running_tools().len()), (CancelLevel::None, 0));
    }

    #[test]
    fn running_tools_are_those_that_started_and_did_not_end() {
        let token = CancelToken::new();
        token.register_tool_start("a", "bash");
        token.register_tool_start("b", "web");
        token.register_tool_complete("a");
        token.register_tool_complete("unknown");
        assert_eq!(token.running_tools(), [("b".to_owned(), "web".to_owned())]);
    }

    #[test]
    fn children_follow_their_parent_until_they_are_untied() {
        let (parent, early, late, free) =
            (CancelToken::new(), CancelToken::new(), CancelToken::new(), CancelToken::new());
        parent.register_child(&early);
        parent.register_child(&free);
        parent.unregister_child(&free);
        parent.request_graceful();
        parent.register_child(&late);
        assert_eq!(
            (early.level(), late.level(), free.level()),
            (CancelLevel::Graceful, CancelLevel::Graceful, CancelLevel::None)
        );
        parent.request_immediate();
        assert!(early.is_immediate() && late.is_immediate());
        early.reset();
        assert!(parent.is_immediate());
    }

    #[tokio::test]
    async fn a_waiter_wakes_at_its_level_and_not_before() {
        let token = CancelToken::new();
        let waiter = tokio::spawn({
            let token = token.clone();
            async move { token.cancelled(CancelLevel::Immediate).await }
        });
        token.request_graceful();
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        token.request_immediate();
        waiter.await.unwrap();
    }

    #[test]
    fn every_callback_hears_each_step_although_one_panics() {
        let (token, heard) = (CancelToken::new(), Arc::new(Mutex::new(Vec::new())));
        token.on_cancel(|_| panic!("first"));
        let second = Arc::clone(&heard);
        token.on_cancel(move |level| lock(&second).push(level));
        let parent = CancelToken::new();
        parent.register_child(&token);
        parent.request_graceful();
        token.request_graceful();
        token.request_immediate();
        assert_eq!(*lock(&heard), [CancelLevel::Graceful, CancelLevel::Immediate]);
    }

    #[test]
    fn of_many_requesters_exactly_one_makes_each_step() {
        let token = CancelToken::new();
        let steps: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        usize::from(token.request_graceful()) + usize::from(token.request_immediate())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Graceful may be skipped when an immediate request is first, never doubled.
        assert!(steps == 1 || steps == 2, "{steps}");
        assert!(token.is_immediate());
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Graceful,
        Immediate,
        Reset,
    }

    proptest! {
        #[test]
        fn the_state_is_the_highest_request_since_the_last_reset(
            steps in prop::collection::vec(prop_oneof![Just(Step::Graceful), Just(Step::Immediate), Just(Step::Reset)], 0..40)
        ) {
            let (token, child) = (CancelToken::new(), CancelToken::new());
            token.register_child(&child);
            let (mut expected, mut child_expected) = (CancelLevel::None, CancelLevel::None);
            for step in steps {
                let level = match step {
                    Step::Graceful => CancelLevel::Graceful,
                    Step::Immediate => CancelLevel::Immediate,
                    Step::Reset => {
                        token.reset();
                        expected = CancelLevel::None;
                        continue;
                    }
                };
                prop_assert_eq!(token.request(level), level > expected);
                expected = expected.max(level);
                child_expected = child_expected.max(expected);
                prop_assert_eq!(token.level(), expected);
                prop_assert_eq!(child.level(), child_expected);
            }
        }
    }
}
