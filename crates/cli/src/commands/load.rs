//! What several commands need: the home, a runtime, and a bundle that is ready, with everything worth telling told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_app::choice::{self, Choice, ChoiceError, Chosen, NoBundle};
use amplifier_app::env::Environment;
use amplifier_app::library::{Access, load_settings};
use amplifier_app::open::{AppError, find_home};
use amplifier_app::prepare::{self, BundleFault, PrepareError, PrepareOptions, PreparedBundle};
use amplifier_app::settings::SettingsError;
use amplifier_app::told::Told;
use amplifier_app::trust::Mode;
use amplifier_app::{Notice, Place, Severity};
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::run::RunPlace;

use super::{profile, start, trust};
use crate::args::PlanChoice;
use crate::exit::Exit;
use crate::progress::Fetching;
use crate::render::{self, Palette, Remark, Weight};

/// The home, the working folder and the settings, as every command sees them. What is worth telling about the settings is
/// told.
pub fn access(home: Option<PathBuf>) -> Result<Access, Exit> {
    let access = access_without_settings(home)?.with_settings().map_err(|error| refuse_settings(&error))?;
    access.settings.notices().iter().for_each(tell_notice);
    trust::tell_left_out(&access);
    Ok(access)
}

/// The same for a command that opens a session: it is settled whether the project is trusted.
pub fn session_access(home: Option<PathBuf>, mode: Mode) -> Result<Access, Exit> {
    let access = access_without_settings(home)?.with_settings_trusting(mode);
    let access = access.map_err(|error| refuse_settings(&error))?;
    let access = trust::settle(access)?;
    access.settings.notices().iter().for_each(tell_notice);
    Ok(access)
}

/// The same for who looks into what is wrong: settings that cannot be used are as if there were none.
pub fn access_or_defaults(home: Option<PathBuf>) -> Result<Access, Exit> {
    let mut access = access_without_settings(home)?;
    if let Ok(known) = access.clone().with_settings() {
        access = known;
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
    let settings = load_settings(&home, &environment, &folder, Mode::Recorded);
    match settings.as_ref().map(|(_, settings)| settings.color()) {
        Ok("never") => Palette::Plain,
        Ok("always") => Palette::Always,
        _ => Palette::Colors,
    }
}

/// Tells what went wrong while stored keys were looked for.
pub fn tell_key_problems(access: &Access) {
    access.environment.problems().into_iter().map(Told::Key).for_each(start::tell);
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

/// Brings something to this machine; an interrupt stops its fetches, and then nothing is said about what they missed.
async fn brought<T, E>(
    bringing: impl Future<Output = Result<T, E>>,
    access: &Access,
    refuse: impl FnOnce(E) -> Exit,
) -> Result<T, Exit> {
    let cancel = access.cancel.clone();
    let watch = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.request_immediate();
        }
    });
    let brought = bringing.await;
    watch.abort();
    brought.map_err(|error| if access.cancel.is_cancelled() { Exit::Interrupted } else { refuse(error) })
}

/// What was named to run.
pub fn choice(args: &PlanChoice) -> Choice {
    match (&args.bundle, &args.profile, &args.plan) {
        (_, _, Some(path)) => Choice::Plan(path.clone()),
        (_, Some(id), None) => Choice::Profile(id.clone()),
        (Some(reference), None, None) => Choice::Bundle(reference.clone()),
        (None, None, None) => Choice::Nothing,
    }
}

/// What somebody chose, else the bundle in use; why there is none has been told.
pub async fn chosen(choice: &Choice, access: &Access, options: PrepareOptions) -> Result<Chosen, Exit> {
    let (finding, refuse) = (Chosen::find(choice, access, options), |error| refuse_choice(&error));
    match choice {
        // Nothing is fetched for a file; who interrupts that ends the program.
        Choice::Plan(_) => finding.await.map_err(refuse),
        _ => brought(finding, access, refuse).await,
    }
}

/// The typed plan of what was chosen; what is worth telling has been told.
pub fn plan(chosen: &Chosen) -> Result<MountPlan, Exit> {
    chosen.told().into_iter().for_each(start::tell);
    chosen.plan().map_err(|error| refuse_choice(&error))
}

/// A bundle by reference, else the one in use; why there is none has been told.
pub async fn bundle(
    reference: Option<&str>,
    access: &Access,
    options: PrepareOptions,
) -> Result<PreparedBundle, Exit> {
    let bringing = choice::bundle(reference, access, options);
    brought(bringing, access, |error| refuse_bundle(&error)).await
}

/// Tells why what was chosen gives no plan.
pub fn refuse_choice(error: &ChoiceError) -> Exit {
    match error {
        ChoiceError::Bundle(error) => refuse_bundle(error),
        ChoiceError::Profile(fault) => profile::refuse(fault),
        ChoiceError::File(error) => refuse_plan(error),
        error => {
            render::error(error, error.hint().as_deref());
            Exit::Usage
        }
    }
}

fn refuse_bundle(error: &NoBundle) -> Exit {
    let exit = refuse_with(&error.fault, error.hint().as_deref());
    if let Some(place) = &error.set_at {
        render::note(&format!("  the settings name it: {place}"));
    }
    exit
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
    Remark::of(error).hint(error.hint()).at(Some(error.place())).tell();
    Exit::Usage
}

/// Tells what is worth telling about a bundle that is ready.
pub fn tell(bundle: &PreparedBundle) {
    Told::of_bundle(bundle).into_iter().for_each(start::tell);
}

/// Tells a notice, with its advice.
pub fn tell_notice(notice: &Notice) {
    start::tell(Told::Notice(notice.clone()));
}

/// A notice with its weight, on one line, and the advice on another.
pub fn line(notice: &Notice) -> String {
    let hint =
        notice.hint.as_ref().map(|hint| format!("\n  hint: {}", render::typed(hint))).unwrap_or_default();
    format!("{}: {notice}{hint}", weight(notice.severity).label())
}

pub fn weight(severity: Severity) -> Weight {
    match severity {
        Severity::Note => Weight::Note,
        Severity::Warning => Weight::Warning,
        Severity::Error => Weight::Error,
    }
}
