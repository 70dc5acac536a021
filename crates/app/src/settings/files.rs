//! Which files settings are read from and written to. It reads none.

use std::path::{Path, PathBuf};

use super::error::SettingsError;
use crate::env::{self, Environment};
use crate::paths::Home;
use crate::trust::repository_of;

/// The folder of a project's settings.
const FOLDER: &str = ".amplifier";
/// What modules leave in such a folder wherever a session works. It makes no project of it.
const LEFT: [&str; 2] = ["backups", "logs"];

/// A file of settings, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For everything this user does.
    User,
    /// For everybody who works in the project.
    Project,
    /// For this user in this project.
    Local,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];

    pub fn name(self) -> &'static str {
        match self {
            Self::User => "global",
            Self::Project => "project",
            Self::Local => "local",
        }
    }

    /// What names it on a command line, after the name of the command.
    pub fn flag(self) -> &'static str {
        match self {
            Self::User => "",
            Self::Project => " --project",
            Self::Local => " --local",
        }
    }

    /// What helps where its file says what cannot be meant.
    pub fn mend(self) -> String {
        format!("`{}` opens the file and checks it afterwards", self.edit())
    }

    /// The command that opens its file.
    pub fn edit(self) -> &'static str {
        match self {
            Self::User => "amplifier config edit",
            Self::Project => "amplifier config edit --project",
            Self::Local => "amplifier config edit --local",
        }
    }
}

/// Where the files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFiles {
    user: PathBuf,
    /// The folder above `.amplifier`; nothing where a project cannot have settings.
    project: Option<PathBuf>,
    root: Option<PathBuf>,
    top: Option<PathBuf>,
    pub(super) working_dir: PathBuf,
    trust: PathBuf,
}

impl SettingsFiles {
    /// The project is the nearest folder with an `.amplifier` that somebody made, up to the top of the repository; without
    /// one, the top of the repository, else the working folder. Outside of a repository nobody's folders further up are
    /// looked at.
    pub fn find(home: &Home, environment: &Environment, working_dir: &Path) -> Self {
        let here = working_dir.canonicalize().unwrap_or_else(|_| working_dir.to_path_buf());
        let own = environment.get(env::HOME).map(PathBuf::from);
        let own = own.and_then(|own| own.canonicalize().ok());
        let repository = repository_of(&here, own.as_deref());
        let top = repository.unwrap_or(&here);
        let within = here.ancestors().take_while(|folder| folder.starts_with(top));
        let is_own = |folder: &Path| own.as_deref() == Some(folder);
        let nearest = within.filter(|folder| !is_own(folder)).find(|folder| has_settings_folder(folder));
        let project = nearest.or_else(|| (!is_own(top)).then_some(top));
        let project = project.map(Path::to_path_buf);
        let root = project.clone().or_else(|| (!is_own(&here)).then(|| here.clone()));
        let top = repository.map(Path::to_path_buf);
        Self { user: home.settings(), project, root, top, working_dir: here.clone(), trust: home.trust() }
    }

    /// The directory that is trusted or not: the project, else the working directory. `None` in the user's own home directory.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The top of the repository that the project lies in.
    pub(crate) fn repository(&self) -> Option<&Path> {
        self.top.as_deref()
    }

    /// The file that says which projects are trusted.
    pub(crate) fn trust(&self) -> &Path {
        &self.trust
    }

    /// The folder of the project; nothing where the working folder is in none and stands for itself.
    pub fn project(&self) -> Option<&Path> {
        let is_marked = |folder: &&Path| self.top.as_deref() == Some(*folder) || has_settings_folder(folder);
        self.project.as_deref().filter(is_marked)
    }

    /// Where somebody works.
    pub fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    /// The file of a scope, whether it is there or not.
    pub fn path(&self, scope: Scope) -> Result<PathBuf, SettingsError> {
        let name = match scope {
            Scope::User => return Ok(self.user.clone()),
            Scope::Project => "settings.yaml",
            Scope::Local => "settings.local.yaml",
        };
        let project = self.project.as_ref().ok_or(SettingsError::HomeFolder { scope })?;
        Ok(project.join(FOLDER).join(name))
    }

    /// The files that are read, the lowest first.
    pub fn read_from(&self) -> Vec<(Scope, PathBuf)> {
        Scope::ALL.into_iter().filter_map(|scope| Some((scope, self.path(scope).ok()?))).collect()
    }

    /// What relative paths in a file are relative to: the project's folder, or the home.
    pub(super) fn base(&self, scope: Scope) -> PathBuf {
        let home = || self.user.parent().map(Path::to_path_buf).unwrap_or_default();
        match scope {
            Scope::User => home(),
            Scope::Project | Scope::Local => self.project.clone().unwrap_or_else(home),
        }
    }
}

/// Whether somebody made a folder for settings there: it is empty, or holds more than modules leave.
fn has_settings_folder(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder.join(FOLDER)) else { return false };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.is_empty() || names.iter().any(|name| LEFT.iter().all(|left| name != left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_nearest_folder_with_settings_and_never_the_persons_home() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["me/.amplifier", "me/repo/.git", "me/repo/a/b", "me/loose/x", "me/repo/a/.amplifier"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("me/repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let me = root.join("me").display().to_string();
        let environment = Environment::Fixed([("HOME".to_owned(), me)].into());
        let project = |at: &str| SettingsFiles::find(&Home::new("/h"), &environment, &root.join(at)).project;
        assert_eq!(project("me/repo/a/b"), Some(root.join("me/repo/a")));
        assert_eq!(project("me/repo"), Some(root.join("me/repo")));
        // Outside of a repository a folder stands for itself.
        assert_eq!(project("me/loose/x"), Some(root.join("me/loose/x")));
        assert_eq!(project("me"), None);
        // Copies of files that a session left below do not hide the settings of the project.
        std::fs::create_dir_all(root.join("me/repo/a/b/.amplifier/backups")).unwrap();
        assert_eq!(project("me/repo/a/b"), Some(root.join("me/repo/a")));
        let marked = |at: &str| {
            let files = SettingsFiles::find(&Home::new("/h"), &environment, &root.join(at));
            files.project().map(Path::to_path_buf)
        };
        assert_eq!(marked("me/repo/a/b"), Some(root.join("me/repo/a")));
        assert_eq!((marked("me/loose/x"), marked("me")), (None, None));
        let files = SettingsFiles::find(&Home::new("/h"), &environment, &root.join("me"));
        assert!(files.path(Scope::Local).is_err());
        assert_eq!(files.read_from(), [(Scope::User, PathBuf::from("/h/settings.yaml"))]);
    }
}
