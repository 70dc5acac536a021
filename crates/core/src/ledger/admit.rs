//! Which model calls may run at once under a limit on tokens or money, whose spending is known only when they end.
//!
//! Prices are unknown here, so a call is taken to cost what the one before it in its session did: where that is more than
//! is left it is refused. A limit is passed by one call at most, one that cost more than the one before it. Others run beside
//! it only while there is room for all of them, each taken for as large as it may be; what does not fit waits until one has
//! ended. How large that is, is read from what was asked for and from the calls before it.

use std::pin::pin;

use amplifier_protocol::spend::{Amounts, Unit};

use super::{Accounts, Ledger, LimitReached, Reservation, lineage, refuse_over_limit};
use crate::sync::lock;

/// A conversation grows from call to call, but hardly to more than twice its size in one.
const GROWTH: u64 = 2;
/// A session's first call may be made to another model, which may cost this many times as much.
const STRANGER: u64 = 16;
/// What a call's end alone tells.
const MEASURED: [Unit; 2] = [Unit::Tokens, Unit::CostNanos];
/// What is known before a call.
const KNOWN: [Unit; 4] = [Unit::Steps, Unit::ToolCalls, Unit::Spawns, Unit::InjectedTokens];

/// The answer to a model call that wants to begin.
pub enum Admission {
    /// It may.
    Now(Reservation),
    /// It may not while the others run: together they could pass this limit.
    Later(LimitReached),
}

/// The most that one model call took, and the cost of the last. Nothing is known before the first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Largest {
    tokens: u64,
    cost_nanos: u64,
    last_cost_nanos: u64,
    seen: bool,
}

impl Largest {
    pub(super) fn see(&mut self, spent: &Amounts) {
        // A call that failed or told nothing says nothing about the next.
        if spent.steps > 0 && (spent.tokens > 0 || spent.cost_nanos > 0) {
            self.tokens = self.tokens.max(spent.tokens);
            self.cost_nanos = self.cost_nanos.max(spent.cost_nanos);
            self.last_cost_nanos = spent.cost_nanos;
            self.seen = true;
        }
    }

    fn of(self, unit: Unit, times: u64) -> Option<u64> {
        let largest = if unit == Unit::Tokens { self.tokens } else { self.cost_nanos };
        self.seen.then(|| largest.saturating_mul(times))
    }
}

impl Ledger {
    /// Admits a model call that asks for these amounts, here and in every ancestor, or says which limit stands against it:
    /// for good as an error, else until another call has ended.
    pub fn admit(&self, spender: &str, asked: Amounts) -> Result<Admission, LimitReached> {
        let mut accounts = lock(&self.0.tree.accounts);
        refuse_over_limit(&accounts, self.0.number, &asked, spender, &KNOWN)?;
        self.refuse_late(&accounts, spender)?;
        let mut expected = asked;
        for unit in MEASURED {
            match self.room(&accounts, unit, &asked, spender)? {
                Ok(amount) if unit == Unit::Tokens => expected.tokens = amount,
                Ok(amount) => expected.cost_nanos = amount,
                Err(later) => return Ok(Admission::Later(later)),
            }
        }
        Ok(Admission::Now(self.hold(&mut accounts, spender, asked, expected.minus(&asked))))
    }

    /// Admits a model call as soon as there is room for it. Whoever waits bounds the wait.
    pub async fn admit_later(&self, spender: &str, asked: Amounts) -> Result<Reservation, LimitReached> {
        loop {
            let mut settled = pin!(self.0.tree.settled.notified());
            // Enrol before asking, or an end between the two would be slept through.
            settled.as_mut().enable();
            match self.admit(spender, asked)? {
                Admission::Now(reserved) => return Ok(reserved),
                Admission::Later(_) => settled.await,
            }
        }
    }

    /// What the call is taken for in this unit, if there is room for that wherever the unit is limited.
    fn room(
        &self,
        accounts: &Accounts,
        unit: Unit,
        asked: &Amounts,
        spender: &str,
    ) -> Result<Result<u64, LimitReached>, LimitReached> {
        let own = accounts.get(&self.0.number).map(|account| account.largest_own).unwrap_or_default();
        // The largest call would be too much to take here: the first often is, for it fills a service's cache.
        let last = if unit == Unit::CostNanos { own.last_cost_nanos } else { 0 };
        let own = own.of(unit, GROWTH);
        let mut taken = asked.of(unit);
        for account in lineage(accounts, self.0.number) {
            let Some(limit) = account.limits.of(unit) else { continue };
            let spent = account.total.of(unit);
            // A limit that is used up refuses even a call that cannot tell what it will need.
            let wants = asked.of(unit).max(last).max(u64::from(spent >= limit));
            if let Some(refusal) = account.refusal(unit, spent, wants, spender) {
                return Err(refusal);
            }
            let guess = own.or_else(|| account.largest.of(unit, STRANGER));
            let expected = guess.unwrap_or(u64::MAX).max(asked.of(unit));
            let used = account.total.plus(&account.reserved).plus(&account.guessed).of(unit);
            let alone = account.reserved.steps == 0;
            if !alone && let Some(later) = account.refusal(unit, used, expected, spender) {
                return Ok(Err(later));
            }
            taken = taken.max(guess.unwrap_or(0));
        }
        Ok(Ok(taken))
    }
}
