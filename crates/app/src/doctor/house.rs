//! The home folder and what a session is made from: settings, names of bundles, the bundle in use, collections.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_bundle::notice::Severity;
use amplifier_sources::fetch::Freshness;

use super::{Check, Finding, Patient, chain, count, some};
use crate::files::OTHER_HOME;
use crate::library::{Access, load_settings};
use crate::prepare::{BundleFault, PrepareOptions, current, prepare_bundle};
use crate::profiles;
use crate::registry::Registry;
use crate::settings::SettingsFiles;
use crate::spelling::told;
use crate::trust::Mode;

/// Below this nothing works for long, and below that it is time to know.
const TOO_LITTLE: u64 = 64 << 20;
const LITTLE: u64 = 1 << 30;

pub(super) fn home(patient: &Patient) -> Vec<Finding> {
    let root = patient.access.home.root();
    let check = Check::Home;
    let finding = match std::fs::metadata(root) {
        Ok(found) if !found.is_dir() => {
            check.problem(format!("`{}` is not a folder", told(root))).cure(OTHER_HOME)
        }
        Ok(_) => match may_write(root) {
            Ok(()) => check.ok(format!("`{}` can be read and written", told(root))),
            Err(error) => {
                check.problem(format!("`{}` cannot be written: {error}", told(root))).cure(OTHER_HOME)
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound && root.is_symlink() => {
            let leads = std::fs::read_link(root).unwrap_or_default();
            let told = format!("`{}` is a link to `{}`, which is not there", told(root), told(&leads));
            check.problem(told).cure(format!("make that folder, or remove the link; {OTHER_HOME}"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => match may_write(&nearest(root)) {
            Ok(()) => check.ok(format!("`{}` is not there yet; it is made when it is needed", told(root))),
            Err(error) => check.problem(format!("`{}` cannot be made: {error}", told(root))).cure(OTHER_HOME),
        },
        Err(error) => {
            check.problem(format!("`{}` cannot be looked at: {error}", told(root))).cure(OTHER_HOME)
        }
    };
    vec![finding]
}

/// The folder itself, or the nearest above it that is there.
fn nearest(path: &Path) -> PathBuf {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new(".")).to_path_buf()
}

#[cfg(unix)]
pub(super) fn may_write(folder: &Path) -> std::io::Result<()> {
    use rustix::fs::Access as Mode;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Ok(rustix::fs::access(folder, Mode::READ_OK | Mode::WRITE_OK | Mode::EXEC_OK)?)
}

#[cfg(not(unix))]
pub(super) fn may_write(folder: &Path) -> std::io::Result<()> {
    match std::fs::metadata(folder)?.permissions().readonly() {
        true => Err(ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

pub(super) fn disk(patient: &Patient) -> Vec<Finding> {
    let root = patient.access.home.root();
    let check = Check::Disk;
    let finding = match room(&nearest(root)) {
        Err(error) => check.warning(format!("the room on the disk cannot be told: {error}")),
        Ok(Room { bytes, files: Some(files) }) if files < 1_000 => check
            .problem(format!("only {files} more files can be made on the disk of the home ({})", mib(bytes))),
        Ok(Room { bytes, .. }) if bytes < TOO_LITTLE => {
            check.problem(format!("only {} are free on the disk of the home", mib(bytes)))
        }
        Ok(Room { bytes, .. }) if bytes < LITTLE => {
            check.warning(format!("only {} are free on the disk of the home", mib(bytes)))
        }
        Ok(Room { bytes, .. }) => check.ok(format!("{} are free", mib(bytes))),
    };
    let needs_cure = finding.level != super::Level::Ok;
    let cure = "make room; `amplifier cache clear` removes what can be fetched again";
    vec![if needs_cure { finding.cure(cure) } else { finding }]
}

fn mib(bytes: u64) -> String {
    match bytes >> 20 {
        mib if mib >= 10 << 10 => format!("{} GiB", mib >> 10),
        mib => format!("{mib} MiB"),
    }
}

/// What is left on a disk.
struct Room {
    bytes: u64,
    /// How many more files; some file systems do not count them.
    files: Option<u64>,
}

#[cfg(unix)]
fn room(folder: &Path) -> std::io::Result<Room> {
    let told = rustix::fs::statvfs(folder)?;
    let files = (told.f_files > 0).then_some(told.f_favail);
    Ok(Room { bytes: told.f_bavail.saturating_mul(told.f_frsize), files })
}

#[cfg(not(unix))]
fn room(_folder: &Path) -> std::io::Result<Room> {
    Err(ErrorKind::Unsupported.into())
}

pub(super) fn settings(patient: &Patient) -> Vec<Finding> {
    let check = Check::Settings;
    let Access { home, base, environment, .. } = &patient.access;
    let files = SettingsFiles::find(home, environment, base);
    let settings = match load_settings(home, environment, base, Mode::Recorded) {
        Ok((_, settings)) => settings,
        Err(error) => {
            let cure = "correct the value where it stands; until then no command that needs settings runs"
                .to_owned();
            return vec![check.problem(chain(&error)).cure(error.hint().unwrap_or(cure))];
        }
    };
    let mut findings = Vec::new();
    for notice in settings.notices().iter().filter(|notice| notice.severity != Severity::Note) {
        let finding = check.warning(notice.to_string());
        let cure =
            notice.hint.clone().unwrap_or_else(|| "`amplifier config keys` lists all settings".to_owned());
        findings.push(finding.cure(cure));
    }
    if findings.is_empty() {
        let read = files.read_from().iter().filter(|(_, path)| path.is_file()).count();
        findings.push(check.ok(match read {
            0 => "there are no settings files; the defaults hold".to_owned(),
            read => format!("{} can be read", count(read, "file", "files")),
        }));
    }
    findings
}

pub(super) fn registry(patient: &Patient) -> Vec<Finding> {
    let check = Check::Registry;
    let registered = match Registry::new(&patient.access.home).read() {
        Ok(registered) => registered,
        Err(error) => {
            let cure = error.hint().unwrap_or("make the file readable, or move it away");
            return vec![check.problem(chain(&error)).cure(cure)];
        }
    };
    let mut findings = Vec::new();
    if let Some(active) = registered.active.as_ref().filter(|active| !registered.knows(active)) {
        findings.push(
            check
                .problem(format!("the bundle in use, `{active}`, is not registered"))
                .cure("`amplifier bundle use NAME` puts another one in use"),
        );
    }
    let gone = registered.bundles.iter().filter(|(_, entry)| {
        let path = entry.uri.strip_prefix("file://").map(|path| path.split('#').next().unwrap_or(path));
        path.is_some_and(|path| !Path::new(path).exists())
    });
    for (name, entry) in gone {
        findings.push(
            check
                .warning(format!("`{name}` stands for `{}`, which is not there", entry.uri))
                .cure(format!("`amplifier bundle remove {name}` forgets it")),
        );
    }
    if findings.is_empty() {
        let names = count(registered.bundles.len(), "bundle", "bundles");
        findings.push(check.ok(format!("{names} registered")));
    }
    findings
}

pub(super) async fn bundle(patient: &Patient) -> Vec<Finding> {
    let check = Check::Bundle;
    let access = Access { freshness: Freshness::Offline, ..patient.access.clone() };
    let name = match current(&access) {
        Ok(name) => name,
        // The registry's own check says why.
        Err(_) => {
            return vec![check.problem("which bundle is in use cannot be told: the registry cannot be read")];
        }
    };
    if load_settings(&access.home, &access.environment, &access.base, Mode::Recorded).is_err() {
        // The check of the settings says why.
        let told = "which bundle is in use cannot be told: the settings cannot be read";
        return vec![check.warning(told).cure("mend the settings first")];
    }
    let cure = format!("`amplifier bundle validate {name}` says more");
    let prepared = match prepare_bundle(&name, &access, PrepareOptions::default()).await {
        Ok(prepared) => prepared,
        Err(fault) => return vec![not_ready(&name, &fault, &access)],
    };
    let mut findings = Vec::new();
    if let Err(fault) = prepared.plan() {
        findings.push(check.problem(fault.to_string()).cure(fault.hint().unwrap_or(cure.clone())));
    }
    for problem in &prepared.missing {
        findings.push(
            check
                .warning(format!("`{name}`: {problem}"))
                .cure(format!("`amplifier bundle show {name}` fetches what is missing")),
        );
    }
    let amiss = prepared.notices().iter().filter(|notice| notice.severity != Severity::Note).count();
    if amiss > 0 {
        let amiss = count(amiss, "thing", "things");
        findings.push(
            check.warning(format!("`{name}` is in use; {amiss} about it should be looked at")).cure(cure),
        );
    }
    if findings.is_empty() {
        findings.push(check.ok(format!("`{name}` is in use and makes a session")));
    }
    findings
}

fn not_ready(name: &str, fault: &BundleFault, access: &Access) -> Finding {
    let check = Check::Bundle;
    let told = chain(fault);
    // What was never fetched is not broken, and nothing is fetched here.
    if told.contains("is not in the cache") {
        return check
            .warning(format!("`{name}` is in use and not wholly here yet"))
            .cure(format!("`amplifier bundle show {name}` fetches it"));
    }
    let place = access.settings.bundle().map(|(_, place)| format!(" ({place})")).unwrap_or_default();
    let cure = match (fault.is_unknown(), place.is_empty()) {
        (true, false) => "`amplifier bundle use NAME` puts another one in use, `amplifier config unset bundle.active` \
                          (`--project` or `--local` for those files) the usual one; `amplifier bundle list` shows all"
            .to_owned(),
        (true, true) => {
            "`amplifier bundle use NAME` puts another one in use; `amplifier bundle list` shows all".to_owned()
        }
        (false, _) => fault.hint().unwrap_or_else(|| format!("`amplifier bundle validate {name}` says more")),
    };
    check.problem(format!("`{name}` is in use and cannot be loaded: {told}{place}")).cure(cure)
}

pub(super) fn collections(patient: &Patient) -> Vec<Finding> {
    let check = Check::Collections;
    let profiles = profiles::profiles(&patient.access);
    let (collections, listed) = match profiles.collections().and_then(|found| Ok((found, profiles.list()?))) {
        Ok(found) => found,
        Err(error) => {
            let cure = error.hint().unwrap_or_else(|| "mend the file, or move it away".to_owned());
            return vec![check.problem(error.chain()).cure(cure)];
        }
    };
    let broken: Vec<_> = listed
        .iter()
        .filter(|profile| profile.problem.is_some())
        .map(|profile| profile.id.to_string())
        .collect();
    if !broken.is_empty() {
        let told =
            format!("{} cannot be read: {}", count(broken.len(), "profile", "profiles"), some(&broken));
        return vec![check.warning(told).cure("`amplifier profile list` says why")];
    }
    let (collections, all) =
        (count(collections.len(), "collection", "collections"), count(listed.len(), "profile", "profiles"));
    vec![check.ok(format!("{collections}, {all}"))]
}
