//! What several commands need: the home, a runtime, and a bundle that is ready, with everything worth telling told.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_app::env::Environment;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, find_home};
use amplifier_app::prepare::{self, BundleFault, PlanFile, PrepareOptions, PreparedBundle};
use amplifier_app::profiles::PreparedProfile;
use amplifier_app::{BundleLock, Notice, Severity};
use amplifier_protocol::mount_plan::MountPlan;

use super::profile;
use crate::args::PlanChoice;
use crate::exit::Exit;
use crate::progress::Fetching;
use crate::render;

/// The home and the working folder, as every command sees them.
pub fn access(home: Option<PathBuf>) -> Result<Access, Exit> {
    let environment = Environment::Process;
    let home = find_home(home, &environment).map_err(|error: AppError| {
        render::error(&error, error.hint());
        Exit::Usage
    })?;
    let mut access = Access::new(home, environment, working_dir());
    access.progress = Arc::new(Fetching::default());
    Ok(access)
}

pub fn working_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// Runs something that waits.
pub fn block_on(work: impl Future<Output = Exit>) -> Exit {
    match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => {
            let exit = runtime.block_on(work);
            // Something that blocks its thread must not keep the person waiting for the shell.
            runtime.shutdown_timeout(std::time::Duration::from_millis(200));
            exit
        }
        Err(error) => {
            render::error(&error, None);
            Exit::Failure
        }
    }
}

/// A bundle by reference, else the one in use. An interrupt stops its fetches.
pub async fn bundle(
    reference: Option<&str>,
    access: &Access,
    options: PrepareOptions,
) -> Result<PreparedBundle, Exit> {
    let reference = match reference {
        Some(reference) => reference.to_owned(),
        None => prepare::current(access).map_err(|fault| refuse(&fault))?,
    };
    let cancel = access.cancel.clone();
    let watch = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.request_immediate();
        }
    });
    let prepared = prepare::prepare_bundle(&reference, access, options).await;
    watch.abort();
    prepared.map_err(|fault| if access.cancel.is_cancelled() { Exit::Interrupted } else { refuse(&fault) })
}

/// Tells why there is no bundle.
pub fn refuse(fault: &BundleFault) -> Exit {
    if let BundleFault::Load(error) = fault {
        let complaints = prepare::complaints(error);
        complaints.iter().for_each(|complaint| render::note(&format!("error: {complaint}")));
        if !complaints.is_empty() {
            return Exit::Usage;
        }
    }
    let hint = fault.hint();
    render::error(fault, hint.as_deref());
    if let BundleFault::Load(error) = fault {
        for excerpt in prepare::rendered(error) {
            excerpt.lines().for_each(|line| render::note(&format!("  {line}")));
        }
    }
    match fault {
        BundleFault::Drift { .. } => Exit::Refused,
        BundleFault::Source(_) | BundleFault::File(_) => Exit::Failure,
        _ => Exit::Usage,
    }
}

/// Tells what is worth telling about a bundle that is ready.
pub fn tell(bundle: &PreparedBundle) {
    for notice in bundle.notices() {
        render::note(&line(notice));
    }
    for problem in &bundle.missing {
        render::note(&format!("warning: {problem}"));
    }
}

/// A notice with its weight, on one line, and the advice on another.
pub fn line(notice: &Notice) -> String {
    let hint = notice.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    format!("{}: {notice}{hint}", weight(notice.severity))
}

pub fn weight(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// A plan and where it came from.
pub enum Chosen {
    File(Box<PlanFile>),
    Bundle(Box<PreparedBundle>),
    Profile(Box<PreparedProfile>),
}

impl Chosen {
    /// The plan somebody chose, else that of the bundle in use.
    pub async fn find(choice: &PlanChoice, access: &Access, options: PrepareOptions) -> Result<Self, Exit> {
        if let Some(path) = &choice.plan {
            return match PlanFile::read(path) {
                Ok(file) => Ok(Self::File(Box::new(file))),
                Err(error) => {
                    render::error(&error, error.hint());
                    Err(Exit::Usage)
                }
            };
        }
        if let Some(id) = &choice.profile {
            let profile = profile::prepared(id, access, options.strictness).await?;
            return Ok(Self::Profile(Box::new(profile)));
        }
        let bundle = bundle(choice.bundle.as_deref(), access, options).await?;
        Ok(Self::Bundle(Box::new(bundle)))
    }

    /// What exactly its sources are, where that is locked.
    pub fn lock(&self) -> Option<Arc<BundleLock>> {
        match self {
            Self::Bundle(bundle) => bundle.lock(),
            Self::File(_) | Self::Profile(_) => None,
        }
    }

    /// The typed plan; what is worth telling is told.
    pub fn plan(&self) -> Result<MountPlan, Exit> {
        match self {
            Self::File(file) => match file.plan() {
                Ok(plan) => {
                    // That there is no provider is no warning here: one is named, or looked for.
                    let warnings =
                        file.validation.warnings().filter(|check| check.name != "providers_present");
                    warnings.for_each(|check| render::note(&file.describe(check)));
                    Ok(plan)
                }
                Err(error) => {
                    render::error(&error, error.hint());
                    Err(Exit::Usage)
                }
            },
            Self::Bundle(bundle) => {
                tell(bundle);
                bundle.plan().map_err(|fault| refuse(&fault))
            }
            Self::Profile(prepared) => {
                prepared.notices().iter().for_each(|notice| render::note(&line(notice)));
                prepared.plan().map_err(|fault| profile::refuse(&fault))
            }
        }
    }
}
