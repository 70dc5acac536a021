//! What several commands need: the home, a runtime, and a bundle that is ready, with everything worth telling told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_app::bundles;
use amplifier_app::env::Environment;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, find_home};
use amplifier_app::prepare::{self, BundleFault, PlanFile, PrepareError, PrepareOptions, PreparedBundle};
use amplifier_app::profiles::PreparedProfile;
use amplifier_app::settings::{Settings, SettingsError, SettingsFiles, Target};
use amplifier_app::{BundleLock, Notice, Place, Severity};
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::run::RunPlace;

use super::profile;
use crate::args::PlanChoice;
use crate::exit::Exit;
use crate::progress::Fetching;
use crate::render::{self, Palette, Remark, Weight};

/// The home, the working folder and the settings, as every command sees them. What is worth telling about the settings is
/// told.
pub fn access(home: Option<PathBuf>) -> Result<Access, Exit> {
    let mut access = access_without_settings(home)?;
    let files = settings_files(&access);
    let settings = Settings::load(&files, &access.environment).map_err(|error| refuse_settings(&error))?;
    settings.notices().iter().for_each(tell_notice);
    access.environment.learn(&settings.plain());
    access.settings = Arc::new(settings);
    Ok(access)
}

/// The same for who looks into what is wrong: settings that cannot be used are as if there were none.
pub fn access_or_defaults(home: Option<PathBuf>) -> Result<Access, Exit> {
    let mut access = access_without_settings(home)?;
    if let Ok(settings) = Settings::load(&settings_files(&access), &access.environment) {
        access.settings = Arc::new(settings);
    }
    Ok(access)
}

/// The home and the working folder, for what must work while the settings are broken.
pub fn access_without_settings(home: Option<PathBuf>) -> Result<Access, Exit> {
    let environment = Environment::Process;
    let home = find_home(home, &environment).map_err(|error: AppError| {
        render::error(&error, error.hint().as_deref());
        Exit::Usage
    })?;
    let environment = environment.with_keys(&home);
    let mut access = Access::new(home, environment, working_dir());
    access.progress = Arc::new(Fetching::default());
    Ok(access)
}

/// Whether the settings want colours. What is wrong with them is told by whoever uses them.
pub fn palette(home: Option<PathBuf>, cwd: Option<&Path>) -> Palette {
    let environment = Environment::Process;
    let Ok(home) = find_home(home, &environment) else { return Palette::default() };
    let folder = cwd.map_or_else(working_dir, Path::to_path_buf);
    let settings = Settings::load(&SettingsFiles::find(&home, &environment, &folder), &environment);
    match settings.as_ref().map(Settings::color) {
        Ok("never") => Palette::Plain,
        Ok("always") => Palette::Always,
        _ => Palette::Colors,
    }
}

/// Tells what went wrong while stored keys were looked for.
pub fn tell_key_problems(access: &Access) {
    access.environment.problems().iter().for_each(|problem| Remark::warning(problem.to_string()).tell());
}

/// Where the settings are.
pub fn settings_files(access: &Access) -> SettingsFiles {
    SettingsFiles::find(&access.home, &access.environment, &access.base)
}

/// Tells why settings cannot be used.
pub fn refuse_settings(error: &SettingsError) -> Exit {
    error.complaints().iter().for_each(complain);
    if error.complaints().is_empty() {
        Remark::of(error).maybe_hint(error.hint()).at(error.place()).tell();
    }
    for line in error.excerpt().iter().flat_map(|excerpt| excerpt.lines()) {
        render::note(&format!("  {line}"));
    }
    if error.is_usage() { Exit::Usage } else { Exit::Failure }
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
    let named = reference.is_some();
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
    prepared.map_err(|fault| {
        if access.cancel.is_cancelled() {
            return Exit::Interrupted;
        }
        let near = if fault.is_unknown() { bundles::near(&reference, access) } else { Vec::new() };
        let exit = match near.is_empty() {
            true => refuse(&fault),
            false => {
                let hint =
                    format!("did you mean {}? `amplifier bundle list` shows all names", near.join(" or "));
                refuse_with(&fault, Some(&hint))
            }
        };
        if let (false, Some((_, place))) = (named, access.settings.bundle()) {
            render::note(&format!("  the settings name it: {place}"));
        }
        exit
    })
}

/// Tells why there is no bundle.
pub fn refuse(fault: &BundleFault) -> Exit {
    refuse_with(fault, fault.hint().as_deref())
}

fn refuse_with(fault: &BundleFault, hint: Option<&str>) -> Exit {
    if let BundleFault::Load(error) = fault {
        let complaints = prepare::complaints(error);
        complaints.iter().for_each(complain);
        if !complaints.is_empty() {
            return Exit::Usage;
        }
    }
    Remark::of(fault).maybe_hint(hint.map(str::to_owned)).at(fault.place()).tell();
    if let BundleFault::Load(error) = fault {
        for excerpt in prepare::rendered(error) {
            excerpt.lines().for_each(|line| render::note(&format!("  {line}")));
        }
    }
    match fault {
        BundleFault::Drift { .. } => Exit::Refused,
        fault if fault.is_failure() => Exit::Failure,
        _ => Exit::Usage,
    }
}

/// Tells something that keeps a file from being used, with the line it is in.
fn complain(notice: &Notice) {
    let place = notice.place.as_ref();
    Remark::error(notice.to_string())
        .excerpt(place.and_then(Place::excerpt))
        .maybe_hint(notice.hint.clone())
        .at(place.map(RunPlace::from))
        .tell();
}

/// Tells why there is no plan.
pub fn refuse_plan(error: &PrepareError) -> Exit {
    Remark::of(error).maybe_hint(error.hint().map(str::to_owned)).at(Some(error.place())).tell();
    Exit::Usage
}

/// Tells what is worth telling about a bundle that is ready.
pub fn tell(bundle: &PreparedBundle) {
    bundle.notices().iter().for_each(tell_notice);
    for problem in &bundle.missing {
        Remark::warning(problem.to_string()).tell();
    }
}

/// Tells a notice, with its advice.
pub fn tell_notice(notice: &Notice) {
    let weight = match notice.severity {
        Severity::Note => Weight::Note,
        Severity::Warning => Weight::Warning,
        Severity::Error => Weight::Error,
    };
    Remark::new(weight, notice.to_string()).maybe_hint(notice.hint.clone()).tell();
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
                Ok(file) => {
                    let file = file.with_settings(&access.settings);
                    access.environment.learn(file.plain());
                    Ok(Self::File(Box::new(file)))
                }
                Err(error) => Err(refuse_plan(&error)),
            };
        }
        if let Some(id) = &choice.profile {
            let profile = profile::prepared(id, access, options.strictness).await?;
            return Ok(Self::Profile(Box::new(profile)));
        }
        // A plan is what a session runs with.
        let options = PrepareOptions { target: Target::Session, ..options };
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
                    warnings.for_each(|check| render::aside(&file.describe(check)));
                    Ok(plan)
                }
                Err(error) => Err(refuse_plan(&error)),
            },
            Self::Bundle(bundle) => {
                tell(bundle);
                bundle.plan().map_err(|fault| refuse(&fault))
            }
            Self::Profile(prepared) => {
                prepared.notices().iter().for_each(tell_notice);
                prepared.plan().map_err(|fault| profile::refuse(&fault))
            }
        }
    }
}
