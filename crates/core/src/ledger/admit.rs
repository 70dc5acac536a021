//! Which model calls may run at once under a limit on tokens or money, whose spending is known only when they end.
//!
//! Prices are unknown here, so a call is taken to cost what the one before it in its session did: where that is more than
//! is left it is refused. A limit is passed by one call at most, one that cost more than the one before it. Others run beside
//! it only while there is room for the most that each of them may take, as its provider says; what does not fit, and what no
//! provider can bound, waits until it is alone. What calls took before is no bound for the next.

use std::pin::pin;
use std::time::Duration;

use amplifier_protocol::spend::{Amounts, Unit};
use amplifier_protocol::usage::Usd;

use super::{Accounts, Ledger, LimitReached, Reservation, lineage, refuse_over_limit};
use crate::sync::lock;

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

/// The most that a model call may take, as far as that is known before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallBound {
    /// Tokens, sent and received.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Usd>,
}

impl CallBound {
    fn of(self, unit: Unit) -> Option<u64> {
        if unit == Unit::Tokens { self.tokens } else { self.cost.map(Usd::as_nanos) }
    }
}

impl Ledger {
    /// Admits a model call that asks for these amounts, here and in every ancestor, or says which limit stands against it:
    /// for good as an error, else until another call has ended.
    pub fn admit(&self, spender: &str, asked: Amounts, bound: CallBound) -> Result<Admission, LimitReached> {
        let mut accounts = lock(&self.0.tree.accounts);
        refuse_over_limit(&accounts, self.0.number, &asked, spender, &KNOWN)?;
        self.refuse_late(&accounts, spender)?;
        let mut expected = asked;
        for unit in MEASURED {
            match self.room(&accounts, unit, &asked, bound, spender)? {
                Ok(amount) if unit == Unit::Tokens => expected.tokens = amount,
                Ok(amount) => expected.cost_nanos = amount,
                Err(later) => return Ok(Admission::Later(later)),
            }
        }
        Ok(Admission::Now(self.hold(&mut accounts, spender, asked, expected.minus(&asked))))
    }

    /// Admits a model call as soon as there is room for it. It waits as long as other calls end within `patience` of each
    /// other, then the limit stands against it.
    pub async fn admit_later(
        &self,
        spender: &str,
        asked: Amounts,
        bound: CallBound,
        patience: Duration,
    ) -> Result<Reservation, LimitReached> {
        loop {
            let mut settled = pin!(self.0.tree.settled.notified());
            // Enrol before asking, or an end between the two would be slept through.
            settled.as_mut().enable();
            match self.admit(spender, asked, bound)? {
                Admission::Now(reserved) => return Ok(reserved),
                Admission::Later(limit) => {
                    tokio::time::timeout(patience, settled).await.map_err(|_| limit)?
                }
            }
        }
    }

    /// What the call is taken for in this unit, if there is room for that wherever the unit is limited.
    fn room(
        &self,
        accounts: &Accounts,
        unit: Unit,
        asked: &Amounts,
        bound: CallBound,
        spender: &str,
    ) -> Result<Result<u64, LimitReached>, LimitReached> {
        let own = accounts.get(&self.0.number);
        let last = own.filter(|_| unit == Unit::CostNanos).map_or(0, |account| account.last_cost_nanos);
        let expected = bound.of(unit).unwrap_or(u64::MAX).max(asked.of(unit));
        let mut taken = asked.of(unit);
        for account in lineage(accounts, self.0.number) {
            let Some(limit) = account.limits.of(unit) else { continue };
            let spent = account.total.of(unit);
            // A limit that is used up refuses even a call that cannot tell what it will need.
            let wants = asked.of(unit).max(last).max(u64::from(spent >= limit));
            if let Some(refusal) = account.refusal(unit, spent, wants, spender) {
                return Err(refusal);
            }
            let used = account.total.plus(&account.reserved).plus(&account.guessed).of(unit);
            let alone = account.reserved.steps == 0;
            if !alone && let Some(later) = account.refusal(unit, used, expected, spender) {
                return Ok(Err(later));
            }
            taken = expected;
        }
        Ok(Ok(taken))
    }
}
