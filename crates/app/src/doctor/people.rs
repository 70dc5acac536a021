//! Whom a session talks to: model services and servers on one side, the terminal of a person on the other.

use super::{Check, Finding, Patient, Reach, chain, some};
use crate::detect::{Standing, by_keys, standings};
use crate::env;
use crate::keys::Problem;
use crate::lack::{self, Lack};
use crate::library::Access;

/// The narrowest terminal that reads well.
const NARROW: u16 = 40;

const CONNECT: &str = "`amplifier init` connects one; a key such as ANTHROPIC_API_KEY or a server such as Ollama is found by itself";

/// What is known about the terminal without asking the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terminal {
    /// Whether somebody can type.
    pub input: bool,
    /// Whether somebody sees the output.
    pub output: bool,
    /// How many characters a line has.
    pub columns: Option<u16>,
}

/// The providers that the settings name. Nobody is asked: what they lack is known here.
pub(super) async fn providers(patient: &Patient) -> Vec<Finding> {
    let check = Check::Providers;
    let access = &patient.access;
    let configured = access.settings.providers();
    let (mut ready, mut lacking) = (Vec::new(), Vec::new());
    for entry in &configured {
        match lack::of_configured(entry, &access.settings, &access.environment).await {
            Ok(None) => ready.push(entry.name().to_owned()),
            Ok(Some(lack)) => lacking.push((entry, lack)),
            Err(error) => return vec![check.problem(chain(&error))],
        }
    }
    let mut findings = match (configured.is_empty(), ready.is_empty()) {
        (true, _) => vec![check.ok("the settings name none")],
        (_, true) => Vec::new(),
        (_, false) => vec![check.ok(format!("{} in the settings", some(&ready)))],
    };
    for (entry, lack) in lacking {
        let place = match &lack {
            Lack::Unset { pointer, .. } => access.settings.place_in(entry, pointer),
            Lack::Declined { .. } => entry.place.clone(),
        };
        let told = format!("`{}` cannot be used: {lack} ({place})", entry.name());
        // Where another one can be asked, sessions run.
        let finding = if ready.is_empty() { check.problem(told) } else { check.warning(told) };
        findings.push(finding.cure(lack.cure()));
    }
    findings
}

/// The services whose key is set. Values are never told.
pub(super) async fn keys(patient: &Patient) -> Vec<Finding> {
    let check = Check::Keys;
    let environment = &patient.access.environment;
    let standings = match by_keys(environment).await {
        Ok(standings) => standings,
        Err(error) => return vec![check.problem(chain(&error))],
    };
    let stored = environment.problems();
    let broken = |problem: Problem| match problem {
        // The check of permissions says so, and how to mend it.
        Problem::Open(_) => None,
        Problem::Unreadable(told) => Some(check.warning(told).cure("`amplifier init` keeps the keys again")),
        Problem::Twice(told) => Some(check.warning(told).cure("`amplifier provider set` with `--key-stdin`")),
    };
    let mut findings: Vec<_> = stored.into_iter().filter_map(broken).collect();
    let variables = standings.iter().flat_map(|standing| &standing.variables).filter(|variable| variable.set);
    for variable in variables {
        let value = environment.get(&variable.name).unwrap_or_default();
        if value.trim() != value || value.starts_with(['"', '\'']) {
            findings.push(
                check
                    .warning(format!("{} has blanks or quotes around its value", variable.name))
                    .cure("set it again without them; services refuse such a key"),
            );
        }
    }
    let usable: Vec<_> = standings.iter().filter(|standing| standing.usable).map(told).collect();
    match usable.is_empty() {
        false => findings.insert(0, check.ok(usable.join("; "))),
        // The server's check has the last word about whether anybody can be asked.
        true => findings.insert(0, check.ok("no key of a model service is set")),
    }
    findings
}

fn told(standing: &Standing) -> String {
    format!("{}: {}", standing.name, standing.reason)
}

/// The servers on this machine.
pub(super) async fn servers(patient: &Patient) -> Vec<Finding> {
    let check = Check::Servers;
    let Access { environment, settings, .. } = &patient.access;
    // What the settings name has its own check.
    let is_named = !settings.providers().is_empty();
    if patient.reach == Reach::Nothing {
        return match by_keys(environment).await {
            Ok(standings) if is_named || standings.iter().any(|standing| standing.usable) => {
                vec![check.ok("not asked, as `--offline` says")]
            }
            Ok(_) => {
                let told =
                    "no model is connected: no key is set, and servers are not asked, as `--offline` says";
                vec![check.warning(told).cure(CONNECT)]
            }
            Err(error) => vec![check.problem(chain(&error))],
        };
    }
    let standings = match standings(environment, &patient.places).await {
        Ok(standings) => standings,
        Err(error) => return vec![check.problem(chain(&error))],
    };
    let found = |standing: &&Standing| standing.usable && standing.reason.contains(" server at ");
    let found: Vec<_> = standings.providers.iter().filter(found).map(told).collect();
    vec![match (found.is_empty(), &standings.detected) {
        (false, _) => check.ok(found.join("; ")),
        (true, Some(module)) => check.ok(format!("none on this machine; `{module}` is asked")),
        (true, None) if is_named => check.ok("none on this machine"),
        (true, None) => {
            check.warning("no model can be asked here: no key is set and no server answers").cure(CONNECT)
        }
    }]
}

pub(super) fn terminal(patient: &Patient) -> Vec<Finding> {
    let check = Check::Terminal;
    let Terminal { input, output, columns } = patient.terminal;
    if !output {
        return vec![check.ok("the output is no terminal: plain text, no colours")];
    }
    let environment = &patient.access.environment;
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let mut findings = Vec::new();
    let locale = [env::LC_ALL, env::LC_CTYPE, env::LANG].into_iter().find_map(set).unwrap_or_default();
    let spelled = locale.to_ascii_lowercase();
    if cfg!(unix) && !spelled.contains("utf-8") && !spelled.contains("utf8") {
        let told = if locale.is_empty() {
            "no locale is set".to_owned()
        } else {
            format!("the locale is `{locale}`")
        };
        findings.push(
            check
                .warning(format!("{told}; letters beyond ASCII may not be shown"))
                .cure("set LANG to a locale with UTF-8, such as C.UTF-8"),
        );
    }
    if let Some(columns) = columns.filter(|columns| *columns < NARROW) {
        let told = format!("it is {columns} columns wide; from {NARROW} on it reads well");
        findings.push(check.warning(told).cure("make the window wider"));
    }
    let dumb = set(env::TERM).is_none_or(|term| term == "dumb");
    let colour = match (dumb, set(env::NO_COLOR)) {
        (true, _) => "no colours, because TERM names none that can show them",
        (false, Some(_)) => "no colours, because NO_COLOR is set",
        (false, None) => "colours",
    };
    let width = columns.map(|columns| format!("{columns} columns, ")).unwrap_or_default();
    let typing = if input { "" } else { ", nobody can type" };
    findings.insert(0, check.ok(format!("{width}{colour}{typing}")));
    findings
}
