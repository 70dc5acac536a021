//! What came of going from one session of a chat to another, for people and for scripts.

use amplifier_app::failure::Failure;
use amplifier_app::open::AppError;
use amplifier_app::seat::{self, Unopened};

use super::{Farewell, Move, Seat};
use crate::commands::start;
use crate::exit::Exit;
use crate::stop::{Stop, Stops};

/// What came of going elsewhere.
pub struct Arrival {
    /// What is said now, or why the session goes on as it was.
    pub outcome: Result<String, Failure>,
    /// What the program would end with.
    pub exit: Exit,
    /// What went wrong beside it.
    pub problems: Vec<String>,
}

/// There is nothing to go on with: neither session is open.
pub struct Lost {
    /// Why the old one did not open again; nothing where that was not waited for.
    pub error: Option<Box<AppError>>,
    pub exit: Exit,
    pub farewell: Farewell,
}

impl Seat {
    /// Leaves the session for another one, or for itself in another form, and comes back where that does not open.
    pub async fn go(self, to: Move, stops: &mut Stops) -> Result<(Self, Arrival), Lost> {
        let Self { taken, seen, asked } = self;
        let (taken, arrival) = taken.go(to.to, stops).await.map_err(lost)?;
        let seat::Arrival { outcome, problems } = arrival;
        let (outcome, exit) = match outcome {
            Ok(arrived) => {
                start::tell_about(&taken.opened, arrived.before.as_ref());
                let anew = "; what was allowed for the session before is asked about again";
                let told = format!("{}{}", to.told, if arrived.forgot_grants { anew } else { "" });
                (Ok(told), Exit::Success)
            }
            Err(why) => (Err(told(&why)), exit(&why)),
        };
        Ok((Self { taken, seen, asked }, Arrival { outcome, exit, problems }))
    }
}

fn lost(lost: seat::Lost<Stop>) -> Lost {
    let (exit, farewell) = (exit(&lost.why), lost.ending.into());
    let error = match lost.why {
        Unopened::Failed(error) => Some(error),
        Unopened::Unwanted(_) | Unopened::Stopped(_) => None,
    };
    Lost { error, exit, farewell }
}

fn told(why: &Unopened<Stop>) -> Failure {
    let (message, hint) = match why {
        Unopened::Failed(error) => (amplifier_app::chain(error), error.hint()),
        Unopened::Unwanted(reason) => (reason.clone(), None),
        Unopened::Stopped(stop) => (stop.reason().to_owned(), None),
    };
    Failure { message, hint }
}

fn exit(why: &Unopened<Stop>) -> Exit {
    match why {
        Unopened::Failed(_) | Unopened::Unwanted(_) => Exit::Failure,
        Unopened::Stopped(stop) => stop.exit(),
    }
}
