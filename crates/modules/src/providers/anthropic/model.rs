//! What the families of models take, told by their ids. Pure; a model nobody knows of is left as it is.

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Decides itself how long it thinks.
    pub(super) adaptive: bool,
    /// Takes a budget for thinking.
    pub(super) budget: bool,
    /// Can think at all.
    pub(super) thinks: bool,
    /// Takes `output_config.effort`.
    pub(super) effort: bool,
    /// Takes randomness.
    pub(super) sampling: bool,
    /// Has a larger window that must be asked for.
    pub(super) long_window: bool,
    /// Takes `speed`.
    pub(super) speed: bool,
    /// Takes a budget for a task, and how thinking is shown.
    pub(super) task_budget: bool,
    /// Wants to be told that thoughts may stand between calls, when it has a budget for them.
    pub(super) asks_to_interleave: bool,
    /// Takes the schema of an answer.
    pub(super) schemas: bool,
    /// Tokens of thinking when nobody says.
    pub(super) usual_budget: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Fable,
    Opus,
    Sonnet,
    Haiku,
}

impl Abilities {
    /// What the model of this id takes.
    pub(super) fn of(id: &str) -> Self {
        let id = id.to_lowercase();
        let families = [
            ("fable", Family::Fable),
            ("opus", Family::Opus),
            ("sonnet", Family::Sonnet),
            ("haiku", Family::Haiku),
        ];
        let family = families.iter().find(|(word, _)| id.contains(word));
        match family {
            Some((word, family)) => Self::of_family(*family, version(&id, word)),
            // A new family of the service is as its newest; what is not of this service takes what the API takes.
            None if id.starts_with("claude") => Self::of_family(Family::Sonnet, (99, 0)),
            None => Self {
                adaptive: false,
                budget: true,
                thinks: true,
                effort: false,
                sampling: true,
                long_window: false,
                speed: false,
                task_budget: false,
                asks_to_interleave: false,
                schemas: false,
                usual_budget: 4_096,
            },
        }
    }

    fn of_family(family: Family, version: (u32, u32)) -> Self {
        let fable = family == Family::Fable;
        let from = |opus: (u32, u32), sonnet: (u32, u32)| match family {
            Family::Fable => true,
            Family::Opus => version >= opus,
            Family::Sonnet => version >= sonnet,
            Family::Haiku => false,
        };
        let newest = from((4, 7), (5, 0));
        Self {
            adaptive: from((4, 6), (4, 6)),
            budget: !newest,
            thinks: fable || version >= (if family == Family::Haiku { (4, 5) } else { (3, 7) }),
            effort: newest,
            sampling: !newest,
            long_window: match family {
                Family::Opus => ((4, 6)..(4, 8)).contains(&version),
                Family::Sonnet => ((4, 0)..(5, 0)).contains(&version),
                Family::Fable | Family::Haiku => false,
            },
            speed: family == Family::Opus && version >= (4, 8),
            task_budget: newest,
            asks_to_interleave: family != Family::Haiku && version >= (4, 0),
            schemas: fable || version >= (if family == Family::Opus { (4, 1) } else { (4, 5) }),
            usual_budget: if family == Family::Opus && version >= (4, 6) { 64_000 } else { 32_000 },
        }
    }
}

/// `claude-opus-4-8-20260101` is 4.8, `claude-sonnet-5` is 5.0, `claude-3-7-sonnet-latest` is 3.7; what says nothing is the
/// newest.
fn version(id: &str, family: &str) -> (u32, u32) {
    let short = |part: &&str| (1..=2).contains(&part.len());
    let numbers = |text: &str| {
        let parts = text.split(['-', '.', '@', ':']).filter(|part| !part.is_empty());
        let told: Vec<u32> = parts.take_while(short).map_while(|part| part.parse().ok()).collect();
        told.first().map(|major| (*major, told.get(1).copied().unwrap_or_default()))
    };
    let (before, behind) = id.split_once(family).unwrap_or((id, ""));
    let before = before.rsplit_once("claude-").map_or("", |(_, before)| before);
    numbers(behind).or_else(|| numbers(before)).unwrap_or((99, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_wherever_they_stand() {
        let cases = [
            ("claude-opus-4-8", "opus", (4, 8)),
            ("claude-sonnet-4-5-20250929", "sonnet", (4, 5)),
            ("claude-sonnet-5", "sonnet", (5, 0)),
            ("claude-sonnet-4-20250514", "sonnet", (4, 0)),
            ("claude-3-7-sonnet-latest", "sonnet", (3, 7)),
            ("claude-opus-latest", "opus", (99, 0)),
            ("anthropic/claude-haiku-4.5", "haiku", (4, 5)),
        ];
        for (id, family, expected) in cases {
            assert_eq!(version(id, family), expected, "{id}");
        }
    }

    #[test]
    fn families_take_what_their_version_takes() {
        let of = |id| {
            let abilities = Abilities::of(id);
            (abilities.adaptive, abilities.budget, abilities.effort, abilities.sampling)
        };
        assert_eq!(of("claude-sonnet-4-5"), (false, true, false, true));
        assert_eq!(of("claude-opus-4-6"), (true, true, false, true));
        assert_eq!(of("claude-opus-4-8"), (true, false, true, false));
        assert_eq!(of("claude-fable-5"), (true, false, true, false));
        assert_eq!(of("claude-haiku-4-5"), (false, true, false, true));
        assert_eq!(of("smollm2"), (false, true, false, true));
        assert!(!Abilities::of("claude-3-5-haiku-latest").thinks);
    }
}
