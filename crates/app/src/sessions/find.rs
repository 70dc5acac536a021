//! From what somebody typed to a session: the whole id, or a beginning that only one has.

use amplifier_protocol::ids::SessionId;

use super::SessionError;
use crate::store::SessionStore;

/// How many near misses are told.
const NEAR: usize = 3;
/// How many characters a near miss must have in common at its beginning.
const COMMON: usize = 4;

/// The session whose id is this text or begins with it. A sub-session's id begins with its parent's; the parent is meant.
pub fn resolve(store: &SessionStore, text: &str) -> Result<SessionId, SessionError> {
    let asked: SessionId = text.trim().parse()?;
    if store.open(&asked).is_ok() {
        return Ok(asked);
    }
    let ids = store.ids()?;
    let mut found: Vec<_> = ids.iter().filter(|id| id.as_str().starts_with(asked.as_str())).collect();
    found.sort_by_key(|id| id.as_str().len());
    let Some(shortest) = found.first().copied() else {
        return Err(SessionError::Unknown { text: asked.to_string(), near: near(&ids, asked.as_str()) });
    };
    match found.iter().all(|id| is_below(id, shortest)) {
        true => Ok(shortest.clone()),
        false => {
            let mut candidates: Vec<_> = found.into_iter().cloned().collect();
            candidates.sort_by(|a, b| b.cmp(a));
            Err(SessionError::Ambiguous { text: asked.to_string(), candidates })
        }
    }
}

pub(super) fn is_below(id: &SessionId, parent: &SessionId) -> bool {
    let rest = id.as_str().strip_prefix(parent.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The ids that have the most in common with a text at its beginning.
fn near(ids: &[SessionId], text: &str) -> Vec<SessionId> {
    let common = |id: &SessionId| id.as_str().chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    let mut near: Vec<_> = ids.iter().map(|id| (common(id), id)).filter(|(n, _)| *n >= COMMON).collect();
    near.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.cmp(a.1)));
    near.into_iter().take(NEAR).map(|(_, id)| id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Home;

    fn store(ids: &[&str]) -> (tempfile::TempDir, SessionStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(Home::new(dir.path()));
        for id in ids {
            std::fs::create_dir_all(store.home().sessions().join(id)).unwrap();
        }
        (dir, store)
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_and_a_parent_is_meant_before_its_children() {
        let (_dir, store) = store(&["0199-aa", "0199-aa-child", "0199-ab", "other"]);
        let found = |text: &str| resolve(&store, text).map(|id| id.to_string()).map_err(|e| e.to_string());
        assert_eq!(found("0199-aa"), Ok("0199-aa".to_owned()));
        assert_eq!(found("oth"), Ok("other".to_owned()));
        assert_eq!(found("0199-aa-c"), Ok("0199-aa-child".to_owned()));
        assert_eq!(found("0199"), Err("3 sessions begin with `0199`".to_owned()));
        let Err(SessionError::Unknown { near, .. }) = resolve(&store, "0199-x") else { panic!() };
        assert_eq!(near.len(), NEAR);
        assert!(matches!(resolve(&store, "../x"), Err(SessionError::Id(_))));
        assert!(resolve(&store, "zzz").unwrap_err().hint().unwrap().contains("--all"));
    }
}
