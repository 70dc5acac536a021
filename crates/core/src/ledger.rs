//! The ledger: what a tree of sessions has spent, and the refusal to spend more.
//!
//! Amounts are reserved before a call and settled after it. A reservation counts against every session up to the root:
//! whatever is counted before it happens never passes a limit, however many children there are. What a model call takes is
//! known only afterwards, so tokens and money pass a limit by one call at most (`ledger/admit.rs`). The kernel counts and
//! refuses; which limits there are is policy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::spend::{Amounts, Limits, Unit};
use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::sync::lock;

mod admit;

pub use admit::{Admission, CallBound};

/// The spender under which a session that goes on books what its earlier runs spent.
pub const EARLIER: &str = "earlier";

/// A limit stands against the next call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", self.describe())]
pub struct LimitReached {
    /// Which limit.
    pub unit: Unit,
    /// The session whose limit it is.
    pub session_id: SessionId,
    /// The limit.
    pub limit: u64,
    /// What was spent or reserved already.
    pub used: u64,
    /// What was asked for on top.
    pub asked: u64,
    /// Who asked.
    pub asked_by: String,
    /// Who spent, the largest first.
    pub spent_by: Vec<(String, u64)>,
}

impl LimitReached {
    fn describe(&self) -> String {
        let (limit, used) = (self.amount(self.limit), self.amount(self.used));
        let spenders: Vec<_> =
            self.spent_by.iter().take(3).map(|(who, much)| format!("{who} {}", self.amount(*much))).collect();
        let by =
            if spenders.is_empty() { String::new() } else { format!(" (spent by {})", spenders.join(", ")) };
        let units = self.unit.to_string();
        let unit = if self.limit == 1 { units.strip_suffix('s').unwrap_or(&units) } else { &units };
        format!(
            "limit of {limit} {unit} reached in session `{}`: {used} used{by}, `{}` asked for {} more",
            self.session_id,
            self.asked_by,
            self.amount(self.asked)
        )
    }

    fn amount(&self, raw: u64) -> String {
        match self.unit {
            Unit::CostNanos => format!("${}", amplifier_protocol::usage::Usd::from_nanos(raw)),
            Unit::WallMillis => format!("{:.1} s of", Duration::from_millis(raw).as_secs_f64()),
            _ => raw.to_string(),
        }
    }
}

/// One session's account in the ledger of its tree. Clones are the same account.
#[derive(Clone)]
pub struct Ledger(Arc<Holder>);

/// Keeps an account and those above it in the tree: as long as anybody can spend here, it counts there.
struct Holder {
    tree: Arc<Tree>,
    number: usize,
    _parent: Option<Ledger>,
}

impl Drop for Holder {
    fn drop(&mut self) {
        let account = lock(&self.tree.accounts).remove(&self.number);
        drop(account);
    }
}

struct Tree {
    clock: Arc<dyn Clock>,
    // One lock for the whole tree: a reservation must see all its ancestors in one state. Held for additions only.
    // Boxed, because a node of the map has room for eleven and most trees are one session.
    accounts: Mutex<Accounts>,
    // A call ended, so there may be room for one that waits.
    settled: Notify,
}

type Accounts = BTreeMap<usize, Box<Account>>;

struct Account {
    session_id: SessionId,
    parent: Option<usize>,
    depth: u64,
    live_children: u64,
    closed: bool,
    limits: Limits,
    opened: Timestamp,
    reserved: Amounts,
    // What running calls may take on top of what they asked for. Other calls wait for it; nothing is refused for it.
    guessed: Amounts,
    // Few spenders, and a map would take more room than all of them.
    spent: Vec<(Arc<str>, Amounts)>,
    total: Amounts,
    // What the last of this session's own model calls cost.
    last_cost_nanos: u64,
}

impl Account {
    fn new(
        session_id: SessionId,
        parent: Option<usize>,
        depth: u64,
        limits: Limits,
        opened: Timestamp,
    ) -> Self {
        Self {
            session_id,
            parent,
            depth,
            live_children: 0,
            closed: false,
            limits,
            opened,
            reserved: Amounts::default(),
            guessed: Amounts::default(),
            spent: Vec::new(),
            total: Amounts::default(),
            last_cost_nanos: 0,
        }
    }

    fn refusal(&self, unit: Unit, used: u64, asked: u64, asked_by: &str) -> Option<LimitReached> {
        let limit = self.limits.of(unit)?;
        if used.saturating_add(asked) <= limit {
            return None;
        }
        let mut spent_by: Vec<_> = self
            .spent
            .iter()
            .map(|(who, much)| (who.to_string(), much.of(unit)))
            .filter(|(_, much)| *much > 0)
            .collect();
        spent_by.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let (session_id, asked_by) = (self.session_id.clone(), asked_by.to_owned());
        Some(LimitReached { unit, session_id, limit, used, asked, asked_by, spent_by })
    }

    fn spend(&mut self, spender: &Arc<str>, amounts: &Amounts) {
        self.total = self.total.plus(amounts);
        match self.spent.iter_mut().find(|(who, _)| who == spender) {
            Some((_, of_spender)) => *of_spender = of_spender.plus(amounts),
            None => self.spent.push((Arc::clone(spender), *amounts)),
        }
    }
}

/// What an account says about itself: its own spending and that of its children.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Everything spent.
    pub total: Amounts,
    /// Held back for calls that still run.
    pub reserved: Amounts,
    /// By whom; the parts sum to the total.
    pub by_spender: BTreeMap<String, Amounts>,
}

impl Ledger {
    /// The ledger of a root session.
    pub fn root(session_id: SessionId, limits: Limits, clock: Arc<dyn Clock>) -> Self {
        let account = Account::new(session_id, None, 0, limits, clock.now());
        let accounts = Mutex::new(Accounts::from([(0, Box::new(account))]));
        let tree = Arc::new(Tree { clock, accounts, settled: Notify::new() });
        Self(Arc::new(Holder { tree, number: 0, _parent: None }))
    }

    /// The account of a new child, if depth, width and number of spawned sessions allow one.
    pub fn child(&self, session_id: SessionId, limits: Limits) -> Result<Self, LimitReached> {
        let spawner: Arc<str> = Arc::from("session.spawn");
        let one = Amounts { spawns: 1, ..Amounts::default() };
        let mut accounts = lock(&self.0.tree.accounts);
        refuse_over_limit(&accounts, self.0.number, &one, &spawner, &Unit::SPENT)?;
        let (depth, live) = accounts.get(&self.0.number).map_or((0, 0), |a| (a.depth, a.live_children));
        for ancestor in lineage(&accounts, self.0.number) {
            let below = (depth + 1).saturating_sub(ancestor.depth);
            if let Some(refusal) = ancestor.refusal(Unit::SpawnDepth, below - 1, 1, &spawner) {
                return Err(refusal);
            }
        }
        if let Some(parent) = accounts.get(&self.0.number)
            && let Some(refusal) = parent.refusal(Unit::SpawnWidth, live, 1, &spawner)
        {
            return Err(refusal);
        }
        each_in_lineage(&mut accounts, self.0.number, |ancestor| ancestor.spend(&spawner, &one));
        if let Some(parent) = accounts.get_mut(&self.0.number) {
            parent.live_children += 1;
        }
        let number = accounts.keys().next_back().map_or(0, |last| last + 1);
        let account =
            Account::new(session_id, Some(self.0.number), depth + 1, limits, self.0.tree.clock.now());
        accounts.insert(number, Box::new(account));
        let (tree, parent) = (Arc::clone(&self.0.tree), Some(self.clone()));
        Ok(Self(Arc::new(Holder { tree, number, _parent: parent })))
    }

    /// Ends this account: its parent may have another child in its place. What it spent, or a call that still runs will
    /// have spent, stays spent above.
    pub fn close(&self) {
        let mut accounts = lock(&self.0.tree.accounts);
        let Some(account) = accounts.get_mut(&self.0.number) else { return };
        let parent = if std::mem::replace(&mut account.closed, true) { None } else { account.parent };
        if let Some(parent) = parent.and_then(|parent| accounts.get_mut(&parent)) {
            parent.live_children = parent.live_children.saturating_sub(1);
        }
    }

    /// Holds amounts back for a call, here and in every ancestor, or says which limit stands against it.
    pub fn reserve(&self, spender: &str, amounts: Amounts) -> Result<Reservation, LimitReached> {
        let mut accounts = lock(&self.0.tree.accounts);
        refuse_over_limit(&accounts, self.0.number, &amounts, spender, &Unit::SPENT)?;
        self.refuse_late(&accounts, spender)?;
        Ok(self.hold(&mut accounts, spender, amounts, Amounts::default()))
    }

    fn hold(
        &self,
        accounts: &mut Accounts,
        spender: &str,
        amounts: Amounts,
        guessed: Amounts,
    ) -> Reservation {
        each_in_lineage(accounts, self.0.number, |account| {
            account.reserved = account.reserved.plus(&amounts);
            account.guessed = account.guessed.plus(&guessed);
        });
        Reservation { ledger: self.clone(), spender: Arc::from(spender), amounts, guessed, open: true }
    }

    /// Whether any limit of this unit stands here or above, so that an estimate is worth making.
    pub fn limits(&self, unit: Unit) -> bool {
        let accounts = lock(&self.0.tree.accounts);
        lineage(&accounts, self.0.number).any(|account| account.limits.of(unit).is_some())
    }

    /// How much of the wall time is left, where it is limited.
    pub fn wall_time_left(&self) -> Option<Duration> {
        let now = self.0.tree.clock.now();
        let accounts = lock(&self.0.tree.accounts);
        let left = lineage(&accounts, self.0.number).filter_map(|account| {
            let limit = Duration::from_millis(account.limits.of(Unit::WallMillis)?);
            Some(limit.saturating_sub(now.since(account.opened)))
        });
        left.min()
    }

    /// The refusal of a session that is out of time, if it is.
    pub fn out_of_time(&self, asked_by: &str) -> Result<(), LimitReached> {
        self.refuse_late(&lock(&self.0.tree.accounts), asked_by)
    }

    /// What was spent, here and below.
    pub fn total(&self) -> Amounts {
        lock(&self.0.tree.accounts).get(&self.0.number).map_or_else(Amounts::default, |account| account.total)
    }

    /// What was spent, and by whom.
    pub fn statement(&self) -> Statement {
        let accounts = lock(&self.0.tree.accounts);
        let account = accounts.get(&self.0.number);
        Statement {
            total: account.map_or_else(Amounts::default, |account| account.total),
            reserved: account.map_or_else(Amounts::default, |account| account.reserved),
            by_spender: account
                .into_iter()
                .flat_map(|account| account.spent.iter())
                .map(|(who, much)| (who.to_string(), *much))
                .collect(),
        }
    }

    /// Books what this session spent before it was opened, so that limits outlive a restart. The sessions above have it in
    /// their own books: they were told of it when it was spent.
    pub fn carry_over(&self, spender: &str, amounts: &Amounts) {
        if let Some(account) = lock(&self.0.tree.accounts).get_mut(&self.0.number) {
            account.spend(&Arc::from(spender), amounts);
        }
    }

    fn refuse_late(&self, accounts: &Accounts, asked_by: &str) -> Result<(), LimitReached> {
        let now = self.0.tree.clock.now();
        for account in lineage(accounts, self.0.number) {
            let used = u64::try_from(now.since(account.opened).as_millis()).unwrap_or(u64::MAX);
            if let Some(refusal) = account.refusal(Unit::WallMillis, used, 0, asked_by) {
                return Err(refusal);
            }
        }
        Ok(())
    }
}

fn refuse_over_limit(
    accounts: &Accounts,
    account: usize,
    asked: &Amounts,
    asked_by: &str,
    units: &[Unit],
) -> Result<(), LimitReached> {
    for ancestor in lineage(accounts, account) {
        let used = ancestor.total.plus(&ancestor.reserved);
        for unit in units.iter().copied() {
            // A unit whose limit is used up refuses even a call that cannot tell what it will need of it.
            let exhausted = ancestor.limits.of(unit).is_some_and(|limit| used.of(unit) >= limit);
            let counts = matches!(unit, Unit::Tokens | Unit::CostNanos) && asked.steps > 0;
            let asks = if counts && exhausted { asked.of(unit).max(1) } else { asked.of(unit) };
            if asks == 0 {
                continue;
            }
            if let Some(refusal) = ancestor.refusal(unit, used.of(unit), asks, asked_by) {
                return Err(refusal);
            }
        }
    }
    Ok(())
}

/// An account and its ancestors, up to the root.
fn lineage(accounts: &Accounts, from: usize) -> impl Iterator<Item = &Account> {
    std::iter::successors(accounts.get(&from).map(Box::as_ref), |account| {
        account.parent.and_then(|parent| accounts.get(&parent)).map(Box::as_ref)
    })
}

fn each_in_lineage(accounts: &mut Accounts, from: usize, mut visit: impl FnMut(&mut Account)) {
    let mut next = Some(from);
    while let Some(account) = next.and_then(|number| accounts.get_mut(&number)) {
        visit(account);
        next = account.parent;
    }
}

/// Amounts held back for a running call.
///
/// Dropping it unsettled books everything that was held back: a call that was cut off may have spent it, and a ledger
/// that guesses low lets a session overspend.
#[must_use = "settle it with what the call really spent"]
pub struct Reservation {
    ledger: Ledger,
    spender: Arc<str>,
    amounts: Amounts,
    guessed: Amounts,
    open: bool,
}

impl Reservation {
    /// Books what was really spent and gives the rest back.
    pub fn settle(mut self, spent: Amounts) {
        self.close(&spent);
    }

    /// Gives everything back: the call never began.
    pub fn release(self) {
        self.settle(Amounts::default());
    }

    fn close(&mut self, spent: &Amounts) {
        if std::mem::take(&mut self.open) {
            let (tree, number) = (&self.ledger.0.tree, self.ledger.0.number);
            let mut accounts = lock(&tree.accounts);
            each_in_lineage(&mut accounts, number, |account| {
                account.reserved = account.reserved.minus(&self.amounts);
                account.guessed = account.guessed.minus(&self.guessed);
                if *spent != Amounts::default() {
                    account.spend(&self.spender, spent);
                }
            });
            // A call that failed or told nothing says nothing about the next.
            let tells = spent.steps > 0 && (spent.tokens > 0 || spent.cost_nanos > 0);
            if let Some(account) = accounts.get_mut(&number).filter(|_| tells) {
                account.last_cost_nanos = spent.cost_nanos;
            }
            drop(accounts);
            tree.settled.notify_waiters();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let amounts = self.amounts;
        self.close(&amounts);
    }
}
