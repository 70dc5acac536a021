//! Tells on standard error how fetches go, once one takes longer than a person likes to wait without a word.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use amplifier_app::{Progress, Report, Stage};

use crate::render;

/// How long nothing is said, and how often something is said after that.
const PATIENCE: Duration = Duration::from_secs(1);

/// When each fetch was first and last spoken of.
#[derive(Default)]
pub struct Fetching {
    known: Mutex<HashMap<String, Since>>,
}

struct Since {
    begun: Instant,
    told: Option<Instant>,
}

impl Progress for Fetching {
    fn report(&self, report: &Report) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let since =
            known.entry(report.source.clone()).or_insert_with(|| Since { begun: Instant::now(), told: None });
        let text = match &report.stage {
            // Worth saying at once: something went wrong and may take a while.
            Stage::Retrying { attempt, because } => format!("trying again ({attempt}): {because}"),
            Stage::Done if since.told.is_none() => return,
            Stage::Done => "done".to_owned(),
            stage => {
                let due = since.told.map_or(since.begun.elapsed(), |told| told.elapsed()) >= PATIENCE;
                match (due, words(stage)) {
                    (true, Some(words)) => words,
                    _ => return,
                }
            }
        };
        since.told = Some(Instant::now());
        drop(known);
        render::aside(&format!("fetching `{}`: {text}", report.source));
    }
}

fn words(stage: &Stage) -> Option<String> {
    Some(match stage {
        Stage::Waiting { holder: Some(holder), seconds } => format!("waiting for {holder} ({seconds} s)"),
        Stage::Waiting { holder: None, seconds } => format!("waiting for another process ({seconds} s)"),
        Stage::Resolving => "looking up the ref".to_owned(),
        Stage::Git { phase, percent } => format!("{phase} {percent}%"),
        Stage::Receiving { bytes, of: Some(of) } => {
            format!("{} of {}", render::bytes(*bytes), render::bytes(*of))
        }
        Stage::Receiving { bytes, of: None } => render::bytes(*bytes),
        Stage::Extracting { files } => format!("{files} files unpacked"),
        _ => return None,
    })
}
