//! What somebody chooses to run, and what it gives: a plan, with everything else that a session is opened with.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::origin::Place;
use amplifier_core::contracts::ModuleSourceResolver;
use amplifier_protocol::event::{OriginKind, SessionOrigin};
use amplifier_protocol::mount_plan::MountPlan;

use crate::files::{is_handed_over, is_standard_input};
use crate::library::Access;
use crate::prepare::{
    self, BundleFault, PlanFile, PrepareError, PrepareOptions, PreparedBundle, prepare_bundle,
};
use crate::profiles::{self, PreparedProfile, ProfileFault};
use crate::prompt::{self, PromptParts};
use crate::sessions::drift;
use crate::settings::Target;
use crate::start::Parts;
use crate::store::Metadata;
use crate::told::Told;
use crate::{bundles, credentials, spelling};

/// What somebody names to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// Nothing: a session that goes on keeps its plan, a new one is made of the bundle in use.
    #[default]
    Nothing,
    /// A bundle: a folder, a file, an address or a registered name.
    Bundle(String),
    /// A profile of a collection.
    Profile(String),
    /// A plan file.
    Plan(PathBuf),
}

impl Choice {
    /// What a session was started from, to be taken as it is now; nothing where nobody wrote it down, or where it is gone.
    pub fn of_origin(metadata: &Metadata) -> Option<Self> {
        let origin = metadata.bundle.as_ref()?;
        // A path is relative to the folder the session was started in.
        let there = metadata.working_dir.as_ref().map(|dir| dir.join(&origin.reference));
        let path = there.filter(|path| path.exists()).map(|path| path.display().to_string());
        Self::named(origin.kind, path.unwrap_or_else(|| origin.reference.clone()))
    }

    /// What an origin names; nothing where it was handed over to the process that began with it, and is gone with that.
    pub(crate) fn named(kind: OriginKind, reference: String) -> Option<Self> {
        if is_handed_over(Path::new(&reference)) {
            return None;
        }
        Some(match kind {
            OriginKind::Bundle => Self::Bundle(reference),
            OriginKind::Profile => Self::Profile(reference),
            OriginKind::Plan => Self::Plan(reference.into()),
        })
    }

    /// Whether it is read from standard input, which then has no room for anything else.
    pub fn takes_standard_input(&self) -> bool {
        matches!(self, Self::Plan(path) if is_standard_input(path))
    }

    /// It, as it may be shown; nothing where nothing is named.
    pub fn shown(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Bundle(reference) => Some(credentials::shown(reference)),
            Self::Profile(id) => Some(id.clone()),
            Self::Plan(path) => Some(spelling::told(path).into_owned()),
        }
    }
}

/// What was chosen, ready to give a plan.
pub enum Chosen {
    File(Box<PlanFile>),
    Bundle(Box<PreparedBundle>),
    Profile(Box<PreparedProfile>),
}

/// Why it gives no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    #[error(transparent)]
    File(#[from] PrepareError),
    #[error(transparent)]
    Bundle(#[from] Box<NoBundle>),
    #[error(transparent)]
    Profile(#[from] ProfileFault),
}

impl ChoiceError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => Some(error.hint()),
            Self::Bundle(error) => error.hint(),
            Self::Profile(fault) => fault.hint(),
        }
    }
}

/// A bundle that is not ready, and what helps whoever named it.
#[derive(Debug)]
pub struct NoBundle {
    pub fault: BundleFault,
    /// Where the settings name it, when nobody else did.
    pub set_at: Option<Place>,
    /// The bundles that are called nearly so, when nothing is known by the name.
    near: Vec<String>,
}

impl fmt::Display for NoBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl Error for NoBundle {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.fault.source()
    }
}

impl NoBundle {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self.near.is_empty() {
            true => self.fault.hint(),
            false => {
                let near = self.near.join(" or ");
                Some(format!("did you mean {near}? `amplifier bundle list` shows all names"))
            }
        }
    }
}

/// A bundle by reference, else the one in use.
pub async fn bundle(
    reference: Option<&str>,
    access: &Access,
    options: PrepareOptions,
) -> Result<PreparedBundle, Box<NoBundle>> {
    let set_at = match reference {
        Some(_) => None,
        None => access.settings.bundle().map(|(_, place)| place.clone()),
    };
    let named = reference.map_or_else(|| prepare::current(access), |reference| Ok(reference.to_owned()));
    let (prepared, near) = match named {
        Ok(reference) => {
            let prepared = prepare_bundle(&reference, access, options).await;
            let is_unknown = prepared.as_ref().is_err_and(BundleFault::is_unknown);
            (prepared, if is_unknown { bundles::near(&reference, access) } else { Vec::new() })
        }
        Err(fault) => (Err(fault), Vec::new()),
    };
    prepared.map_err(|fault| Box::new(NoBundle { fault, set_at, near }))
}

impl Chosen {
    /// What somebody chose, else the bundle in use.
    pub async fn find(
        choice: &Choice,
        access: &Access,
        options: PrepareOptions,
    ) -> Result<Self, ChoiceError> {
        let reference = match choice {
            Choice::Plan(path) => {
                let file = PlanFile::read(path)?.with_settings(&access.settings);
                access.environment.learn(file.plain());
                return Ok(Self::File(Box::new(file)));
            }
            Choice::Profile(id) => {
                let id = id.parse().map_err(ProfileFault::from)?;
                let profile = profiles::prepare_profile(&id, access, options.strictness).await?;
                return Ok(Self::Profile(Box::new(profile)));
            }
            Choice::Bundle(reference) => Some(reference.as_str()),
            Choice::Nothing => None,
        };
        // A plan is what a session runs with.
        let options = PrepareOptions { target: Target::Session, ..options };
        Ok(Self::Bundle(Box::new(bundle(reference, access, options).await?)))
    }

    /// What is worth telling about it.
    pub fn told(&self) -> Vec<Told> {
        match self {
            // What is wrong with a file that failed its checks is told by the error.
            Self::File(file) if !file.validation.passed() => Vec::new(),
            Self::File(file) => {
                // That there is no provider is no warning here: one is named, or looked for.
                let warnings = file.validation.warnings().filter(|check| check.name != "providers_present");
                warnings.map(|check| Told::Check(file.describe(check))).collect()
            }
            Self::Bundle(bundle) => Told::of_bundle(bundle),
            Self::Profile(profile) => profile.notices().iter().cloned().map(Told::Notice).collect(),
        }
    }

    /// The typed plan.
    pub fn plan(&self) -> Result<MountPlan, ChoiceError> {
        match self {
            Self::File(file) => Ok(file.plan()?),
            Self::Bundle(bundle) => bundle.plan().map_err(|fault| {
                let (near, set_at) = (Vec::new(), None);
                Box::new(NoBundle { fault, near, set_at }).into()
            }),
            Self::Profile(profile) => Ok(profile.plan()?),
        }
    }

    /// What the plan comes from, and what it gave, before the person's wishes are put in.
    pub fn origin(&self, plan: &MountPlan) -> SessionOrigin {
        match self {
            Self::File(file) => {
                let path = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
                let origin = drift::origin(OriginKind::Plan, &spelling::told(&path), plan);
                match path.to_str() {
                    Some(_) => origin,
                    // It cannot be found again by what is written down, so nothing can be compared.
                    None => SessionOrigin { plan_hash: None, ..origin },
                }
            }
            Self::Bundle(bundle) => {
                drift::origin(OriginKind::Bundle, &prompt::without_credentials(&bundle.reference), plan)
            }
            Self::Profile(profile) => drift::origin(OriginKind::Profile, &profile.id.to_string(), plan),
        }
    }

    /// What the system prompt is made from; a plan file has no words.
    pub fn prompt(&self) -> Result<Option<PromptParts>, ChoiceError> {
        match self {
            Self::File(_) => Ok(None),
            Self::Bundle(bundle) => Ok(Some(bundle.prompt())),
            Self::Profile(profile) => Ok(Some(profile.prompt()?)),
        }
    }

    /// Where the modules of a plan that it gave come from.
    pub fn resolver(&self, plan: &MountPlan, access: &Access) -> Option<Arc<dyn ModuleSourceResolver>> {
        match self {
            Self::File(file) => file.resolver(plan, access),
            Self::Bundle(bundle) => bundle.resolver(plan),
            Self::Profile(profile) => profile.resolver(plan),
        }
    }

    /// What a session of a plan that it gave is opened with, but for where that comes from.
    pub fn parts(&self, plan: &MountPlan, access: &Access) -> Result<Parts, ChoiceError> {
        let lock = match self {
            Self::Bundle(bundle) => bundle.lock(),
            Self::File(_) | Self::Profile(_) => None,
        };
        let (prompt, resolver) = (self.prompt()?, self.resolver(plan, access));
        Ok(Parts { prompt, resolver, lock, ..Parts::default() })
    }
}
