//! Who answers in a session: the provider that somebody names, else that of the plan, else one that is found here, else the
//! demo.

use amplifier_core::session::Strictness;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};

use super::Wish;
use super::error::ProviderFault;
use crate::detect::{self, Filled, Places};
use crate::library::Access;
use crate::told::{Teller, Told};
use crate::{inquire, providers};

/// The provider and the model that the person names, else the provider of the plan, else one that is found here.
pub(super) async fn choose(
    wish: &Wish,
    plan: &mut MountPlan,
    access: &Access,
    tell: Teller<'_>,
) -> Result<(), ProviderFault> {
    if let Some(provider) = &wish.provider {
        prefer(provider, plan, access).await?;
    }
    let environment = &access.environment;
    let places = Places::of(environment);
    // Who wants a certain model, or nothing but what was asked for, does not want the demo.
    let filled = if wish.strictness == Strictness::Strict || wish.model.is_some() {
        let found = detect::fill(plan, environment, &places).await?;
        found.map_or(Filled::Named, |found| Filled::Found(Box::new(found)))
    } else {
        detect::fill_or_demo(plan, environment, &places).await?
    };
    match filled {
        Filled::Named => {}
        Filled::Found(found) => tell(Told::Found(found)),
        Filled::Demo(nothing) => tell(Told::Demo(nothing)),
    }
    if let Some(model) = &wish.model {
        inquire::prefer_model(plan, model);
    }
    Ok(())
}

/// The same for a session that goes on: one that was begun without a model goes on with one as soon as there is one.
pub(super) async fn choose_again(
    wish: &Wish,
    plan: &mut MountPlan,
    access: &Access,
    tell: Teller<'_>,
) -> Result<(), ProviderFault> {
    match &wish.provider {
        Some(provider) => prefer(provider, plan, access).await?,
        None => relieve_demo(plan, access, tell).await?,
    }
    if let Some(model) = &wish.model {
        inquire::prefer_model(plan, model);
    }
    Ok(())
}

async fn relieve_demo(plan: &mut MountPlan, access: &Access, tell: Teller<'_>) -> Result<(), ProviderFault> {
    let (environment, places) = (&access.environment, Places::of(&access.environment));
    match detect::relieve_demo(plan, &configured(access), environment, &places).await? {
        Some(Filled::Demo(nothing)) => tell(Told::Demo(nothing)),
        Some(Filled::Named | Filled::Found(_)) => {
            let first = plan.providers.first().map(|spec| spec.module.clone());
            first.into_iter().for_each(|provider| tell(Told::Relieved { provider }));
        }
        None => {}
    }
    Ok(())
}

/// Makes the provider that the person names the first. One that is not there, or cannot be asked, is told before anything
/// begins: nobody who names one wants another.
async fn prefer(name: &str, plan: &mut MountPlan, access: &Access) -> Result<(), ProviderFault> {
    providers::prefer_among(plan, name, &configured(access))?;
    let Some(spec) = plan.providers.first() else { return Ok(()) };
    match detect::why_not(spec, &access.environment).await? {
        None => Ok(()),
        Some(reason) => Err(ProviderFault::NotUsable { name: name.to_owned(), reason }),
    }
}

/// The providers of the settings.
fn configured(access: &Access) -> Vec<ModuleSpec> {
    access.settings.providers().into_iter().map(|entry| entry.spec).collect()
}
