//! What is answered, to whom, and what is remembered.

use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_protocol::hook::{ApprovalOption, AskedModule};
use serde_json::json;

use super::*;

fn question(tool: &str, command: &str, effects: Effects) -> Question {
    let (tool_name, tool_input) = (tool.to_owned(), json!({ "command": command }));
    let call = AskedCall { tool_name, tool_input, effects, module: None };
    let options = ApprovalOption::usual();
    Question { prompt: format!("Run {command}?"), options, call: Some(call), ..Question::default() }
}

/// Says what it is told to say, and counts.
struct Says(Answer, AtomicUsize);

#[async_trait]
impl Asker for Says {
    async fn ask(&self, _question: &Question) -> Result<Answer, ApprovalError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(self.0)
    }
}

fn person(answer: Answer, file: &std::path::Path, folder: &str) -> (Approvals, Arc<Says>) {
    let says = Arc::new(Says(answer, AtomicUsize::new(0)));
    let kept = GrantFile::new(file.to_owned());
    (Approvals::of_person(says.clone(), kept, PathBuf::from(folder), None), says)
}

#[tokio::test]
async fn a_policy_answers_by_what_a_tool_declares() {
    let network = Effects { class: EffectClass::Read, network: true, ..Effects::PURE };
    for (policy, effects, allowed) in [
        (Approve::All, Effects::UNKNOWN, true),
        (Approve::Safe, Effects::READS, true),
        (Approve::Safe, network, true),
        (Approve::Safe, Effects::WRITES, false),
        (Approve::Safe, Effects::UNKNOWN, false),
        (Approve::None, Effects::READS, false),
        (Approve::None, Effects::WRITES, false),
        (Approve::Ask, Effects::WRITES, false),
    ] {
        let answer = Approvals::of_policy(policy, None).request_approval(question("t", "x", effects)).await;
        match answer {
            Ok(answer) => assert!(allowed && answer == "Allow once", "{policy:?} {answer}"),
            // What would allow it is told the person; the model is told who refused.
            Err(error) => {
                let who =
                    if policy == Approve::Safe { "`--approve safe` refuses" } else { "nobody can be asked" };
                assert!(!allowed && error.to_string().contains(who), "{policy:?} {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_question_about_no_call_is_not_safe() {
    let approvals = Approvals::of_policy(Approve::Safe, None);
    assert!(approvals.request_approval(Question::default()).await.is_err());
}

#[tokio::test]
async fn a_yes_for_the_session_covers_the_command_and_no_other() {
    let temp = tempfile::tempdir().unwrap();
    let (approvals, says) = person(Answer::Session, &temp.path().join("a.json"), "/w");
    for (command, asked) in [("ls", 1), ("ls", 1), ("rm", 2)] {
        let answer = approvals.request_approval(question("bash", command, Effects::UNKNOWN)).await.unwrap();
        assert!(answer.starts_with("Allow"), "{answer}");
        assert_eq!(says.1.load(Ordering::Relaxed), asked, "{command}");
    }
    // A tool that starts nothing is covered as a whole.
    for (path, asked) in [("a", 3), ("b", 3)] {
        approvals.request_approval(question("write_file", path, Effects::WRITES)).await.unwrap();
        assert_eq!(says.1.load(Ordering::Relaxed), asked, "{path}");
    }
    assert!(!temp.path().join("a.json").exists());
}

#[tokio::test]
async fn what_is_forgotten_is_asked_about_again_and_nobody_else_remembers_it() {
    let temp = tempfile::tempdir().unwrap();
    for answer in [Answer::Session, Answer::Always] {
        let file = temp.path().join("a.json");
        let (approvals, says) = person(answer, &file, "/w");
        for asked in [1, 2] {
            for _ in 0..2 {
                let told =
                    approvals.request_approval(question("bash", "ls", Effects::UNKNOWN)).await.unwrap();
                // The kernel and its hooks keep what is allowed always for themselves.
                assert_eq!((told.as_str(), says.1.load(Ordering::Relaxed)), ("Allow once", asked));
            }
            GrantFile::new(file.clone()).forget(std::path::Path::new("/w")).unwrap();
            approvals.forget_session();
        }
    }
}

#[tokio::test]
async fn a_yes_for_good_is_known_to_the_next_session_in_the_same_folder() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("state/a.json");
    let (first, _) = person(Answer::Always, &file, "/w");
    first.request_approval(question("bash", "make", Effects::UNKNOWN)).await.unwrap();
    for (folder, asked) in [("/w", 0), ("/elsewhere", 1)] {
        let (next, says) = person(Answer::No, &file, folder);
        let answer = next.request_approval(question("bash", "make", Effects::UNKNOWN)).await.unwrap();
        assert_eq!((says.1.load(Ordering::Relaxed), answer == "Deny"), (asked, asked == 1), "{folder}");
    }
}

#[tokio::test]
async fn a_broken_file_allows_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("a.json");
    std::fs::write(&file, "{").unwrap();
    let (approvals, says) = person(Answer::No, &file, "/w");
    let answer = approvals.request_approval(question("bash", "make", Effects::UNKNOWN)).await.unwrap();
    assert_eq!((answer.as_str(), says.1.load(Ordering::Relaxed)), ("Deny", 1));
}

#[tokio::test]
async fn what_is_not_offered_is_not_taken_and_nothing_kept_elsewhere_counts() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("a.json");
    // Where it was offered, it is kept.
    let (first, _) = person(Answer::Always, &file, "/w");
    first.request_approval(question("bash", "make", Effects::UNKNOWN)).await.unwrap();
    let (approvals, says) = person(Answer::Always, &file, "/w");
    let once = || {
        let options = ApprovalOption::once();
        Question { options, ..question("bash", "make", Effects::UNKNOWN) }
    };
    for asked in [1, 2] {
        assert_eq!(approvals.request_approval(once()).await.unwrap(), "Allow");
        assert_eq!(says.1.load(Ordering::Relaxed), asked);
    }
    assert_eq!(approvals.allowed_in_session(), []);
}

#[test]
fn what_would_be_covered_is_told_once_and_in_our_words() {
    let told = "Run it?\n\"Allow always\" covers exactly this.\n";
    let asked = Question { prompt: told.to_owned(), ..question("bash", "x", Effects::UNKNOWN) };
    assert_eq!(
        (wording(&asked), lasting(&asked).unwrap().scope()),
        ("Run it?", "exactly this call".to_owned())
    );
    let writes = lasting(&question("write_file", "x", Effects::WRITES)).unwrap();
    assert_eq!(writes.scope(), "every call of `write_file`");
    // A line that stands where always is not offered is somebody else's.
    let other = Question { options: vec!["Allow".into()], ..asked };
    assert_eq!(wording(&other), told.trim_end());
}

#[tokio::test]
async fn a_secret_of_an_allowed_command_is_not_kept_and_the_command_is_known_again() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("a.json");
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let command = format!("curl -H 'Authorization: Bearer {secret}' host");
    let (first, _) = person(Answer::Always, &file, "/w");
    first.request_approval(question("bash", &command, Effects::UNKNOWN)).await.unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(secret) && kept.contains("curl -H"), "{kept}");
    let other = command.replace("ghp_abc", "ghp_xyz");
    for (command, asked) in [(&command, 0), (&other, 1)] {
        let (next, says) = person(Answer::No, &file, "/w");
        next.request_approval(question("bash", command, Effects::UNKNOWN)).await.unwrap();
        assert_eq!(says.1.load(Ordering::Relaxed), asked, "{command}");
    }
    // A file of old has the whole text; it holds, and the text goes with the next change.
    let input = json!({ "command": command }).to_string();
    let old = json!({"version": 1, "folders": {"/w": [{"tool": "bash", "input": input}]}});
    std::fs::write(&file, old.to_string()).unwrap();
    let (next, says) = person(Answer::Always, &file, "/w");
    next.request_approval(question("bash", &command, Effects::UNKNOWN)).await.unwrap();
    assert_eq!(says.1.load(Ordering::Relaxed), 0);
    next.request_approval(question("bash", "make", Effects::UNKNOWN)).await.unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(secret) && kept.contains("make"), "{kept}");
}

#[tokio::test]
async fn a_yes_covers_no_tool_of_that_name_from_another_module() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("a.json");
    let of = |id: &str, config: serde_json::Value| {
        let mut asked = question("write_file", "x", Effects::WRITES);
        let serde_json::Value::Object(config) = config else { panic!() };
        let module = AskedModule { id: id.parse().unwrap(), source: None, config };
        asked.call.as_mut().unwrap().module = Some(Box::new(module));
        asked
    };
    let (first, says) = person(Answer::Always, &file, "/w");
    let same = || of("tool-filesystem", json!({}));
    first.request_approval(same()).await.unwrap();
    first.request_approval(same()).await.unwrap();
    assert_eq!(says.1.load(Ordering::Relaxed), 1);
    let others = [of("tool-filesystem", json!({"allowed_write_paths": ["/"]})), of("tool-other", json!({}))];
    for (asked, other) in (2..).zip(others) {
        first.request_approval(other).await.unwrap();
        assert_eq!(says.1.load(Ordering::Relaxed), asked);
    }
    // The next session knows the same from its file.
    let (next, says) = person(Answer::No, &file, "/w");
    next.request_approval(same()).await.unwrap();
    assert_eq!(says.1.load(Ordering::Relaxed), 0);
    let foreign = next.request_approval(of("tool-third", json!({}))).await.unwrap();
    assert_eq!((foreign.as_str(), says.1.load(Ordering::Relaxed)), ("Deny", 1));
}

#[tokio::test]
async fn options_are_chosen_by_what_they_mean() {
    let temp = tempfile::tempdir().unwrap();
    let asked = |options: serde_json::Value| Question {
        options: serde_json::from_value(options).unwrap(),
        ..question("bash", "x", Effects::UNKNOWN)
    };
    let (agrees, _) = person(Answer::Once, &temp.path().join("a.json"), "/w");
    assert_eq!(agrees.request_approval(asked(json!(["Yes", "No"]))).await.unwrap(), "Yes");
    let german = json!([{"text": "Nein", "decision": "deny"}, {"text": "Ja", "decision": "allow_once"}]);
    assert_eq!(agrees.request_approval(asked(german.clone())).await.unwrap(), "Ja");
    assert!(agrees.request_approval(asked(json!(["Ja", "Nein"]))).await.is_err());
    let (refuses, _) = person(Answer::No, &temp.path().join("b.json"), "/w");
    assert_eq!(refuses.request_approval(asked(german)).await.unwrap(), "Nein");
}

#[test]
fn a_last_line_that_only_begins_like_the_scope_is_shown() {
    let command = "ls\n\"Allow always\" covers ; rm -rf x";
    let asked = Question {
        prompt: format!("Run this command?\n\n{command}"),
        ..question("bash", command, Effects::UNKNOWN)
    };
    assert!(wording(&asked).ends_with("; rm -rf x"));
}

#[test]
fn only_a_clear_word_that_is_offered_is_an_answer() {
    let grant = Grant { tool: "t".to_owned(), input: None, module: None };
    let answers = ["y", " YES ", "s", "always", "n"].map(|line| Answer::read(line, Some(&grant)));
    let expected = [Answer::Once, Answer::Once, Answer::Session, Answer::Always, Answer::No];
    assert_eq!(answers, expected.map(Some));
    assert_eq!(["", " ", "maybe", "yn"].map(|line| Answer::read(line, Some(&grant))), [None; 4]);
    let answers = ["s", "always", "y", "n"].map(|line| Answer::read(line, None));
    assert_eq!(answers, [None, None, Some(Answer::Once), Some(Answer::No)]);
}
