//! The system prompt: what is in it, that it follows the files, and that it is no part of the conversation.

use std::sync::Arc;

use amplifier_app::Speaker;
use amplifier_app::open::{Which, open};
use amplifier_core::contracts::RequestBudget;
use amplifier_protocol::message::{Message, Role};
use serde_json::json;

use crate::workshop::{Workshop, seen, system};

#[tokio::test]
async fn instruction_mentions_and_context_files_are_one_prompt() {
    let shop = Workshop::new();
    shop.scripted(
        "context: {include: [rules.md]}",
        &json!(["ok"]),
        "Be kind. See @mine:notes/a.md and @here.md.",
    );
    shop.file("rules.md", "RULES\n").file("notes/a.md", "NOTE A, see @b.md\n").file("notes/b.md", "NOTE B\n");
    shop.file("here.md", "HERE\n");
    let session = shop.session().await;
    let text = system(&session).await;
    let places: Vec<_> = ["Be kind.", "NOTE A", "NOTE B", "HERE", "RULES"]
        .map(|word| text.find(word).unwrap_or(usize::MAX))
        .into();
    assert!(places.is_sorted() && !places.contains(&usize::MAX), "{text}");
    assert_eq!(session.session.execute("hi").await.unwrap(), "ok");
    let stored = session.session.coordinator().context().unwrap().messages().await.unwrap();
    assert_eq!(stored.len(), 2, "the prompt is no part of the conversation");
    assert_eq!(seen(&session).await.len(), 3);
}

#[tokio::test]
async fn what_changed_on_disk_is_in_the_next_request_and_a_resumed_session_has_its_prompt() {
    let shop = Workshop::new();
    shop.scripted("", &json!(["ok"]), "See @live.md").file("live.md", "first version");
    let session = shop.session().await;
    assert!(system(&session).await.contains("first version"));
    shop.file("live.md", "second, longer version");
    let text = system(&session).await;
    assert!(text.contains("second, longer") && !text.contains("first"), "{text}");
    session.session.execute("hi").await.unwrap();
    let id = session.session.id().clone();
    session.session.cleanup().await;
    drop(session);
    // The bundle itself is gone; the session goes on.
    std::fs::remove_file(shop.path("work/bundle.md")).unwrap();
    let again = open(shop.request(Which::Resume(id, None))).await.unwrap();
    assert!(system(&again).await.contains("second, longer version"));
    assert_eq!(seen(&again).await.len(), 3);
}

#[tokio::test]
async fn the_projects_own_words_belong_to_what_builds_on_the_default_bundle() {
    let shop = Workshop::new();
    shop.file("AGENTS.md", "TOP WORDS").file("crates/x/AGENTS.md", "INNER WORDS, see @more.md");
    shop.file("crates/x/more.md", "MORE WORDS");
    let foundation = shop.open(&shop.prepare("foundation").await.unwrap()).await;
    let text = system(&foundation).await;
    for words in ["TOP WORDS", "INNER WORDS", "MORE WORDS", "Ways of working"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    shop.file("AGENTS.md", "NEW TOP WORDS");
    assert!(system(&foundation).await.contains("NEW TOP WORDS"));
    let minimal = shop.open(&shop.prepare("minimal").await.unwrap()).await;
    assert!(!system(&minimal).await.contains("WORDS"));
}

#[tokio::test]
async fn w15_a_file_that_is_no_text_is_told_and_breaks_nothing() {
    let shop = Workshop::new();
    shop.scripted("", &json!(["ok"]), "See @picture.png and @gone.md and @text.md");
    shop.file("picture.png", [0xff, 0xfe, 0]).file("text.md", "TEXT");
    let session = shop.session().await;
    assert!(system(&session).await.contains("TEXT"));
    session.session.execute("hi").await.unwrap();
    let (_, journal) = shop.journals().remove(0);
    let events: Vec<_> = journal.lines().filter(|line| line.contains("\"mentions:resolved\"")).collect();
    assert_eq!(events.len(), 1, "told once, not with every request");
    assert!(events[0].contains("not_text") && events[0].contains("not_found"), "{}", events[0]);
}

#[tokio::test]
async fn w13_a_bundle_cannot_bring_other_files_of_the_machine_into_its_prompt() {
    let shop = Workshop::new();
    std::fs::write(shop.path("secret.md"), "SECRET").unwrap();
    std::fs::write(shop.path("user/key.md"), "KEY").unwrap();
    let body = "@../secret.md @mine:../secret.md @~/key.md";
    shop.scripted("", &json!(["ok"]), &format!("{body} @{}", shop.path("secret.md").display()));
    let session = shop.session().await;
    let text = system(&session).await;
    assert!(!text.contains("SECRET") && !text.contains("KEY"), "{text}");
    // The person's own words reach their own folder.
    let (said, failed) =
        session.expand("look at @~/key.md and @../secret.md".to_owned(), Speaker::Person).await;
    assert!(said.contains("KEY") && !said.contains("SECRET"), "{said}");
    assert_eq!(failed.len(), 1);
}

#[tokio::test]
async fn the_conversation_gets_the_room_that_the_prompt_leaves() {
    let shop = Workshop::new();
    shop.scripted("", &json!(["ok"]), &"word ".repeat(400));
    let session = shop.session().await;
    let context = session.session.coordinator().context().unwrap();
    let budget = |tokens| RequestBudget { token_budget: Some(tokens), provider: None };
    assert!(context.messages_for_request(budget(400)).await.unwrap_err().to_string().contains("400"));
    assert!(context.messages_for_request(budget(4_000)).await.is_ok());
}

#[tokio::test]
async fn instruction_project_and_mention_keep_their_order_before_what_is_asked() {
    let shop = Workshop::new();
    shop.file("AGENTS.md", "PROJECT WORDS")
        .file("usage.md", "BUNDLE WORDS")
        .file("note.md", "MENTIONED WORDS");
    shop.file(
        "bundle.md",
        "---\nbundle: {name: mine}\nincludes: [foundation]\nproviders: [{module: provider-mock, config: {responses: [one, \
         two]}}]\n---\nINSTRUCTION, see @mine:usage.md\n",
    );
    let session = shop.session().await;
    let (asked, failed) = session.expand("QUESTION about @note.md".to_owned(), Speaker::Person).await;
    assert!(failed.is_empty(), "{failed:?}");
    session.session.execute(asked).await.unwrap();
    let whole = |messages: &[Arc<Message>]| {
        messages
            .iter()
            .map(|message| message.content.visible_text().into_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let first = seen(&session).await;
    let text = whole(&first);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in {text}"));
    let order = ["INSTRUCTION", "BUNDLE WORDS", "PROJECT WORDS", "MENTIONED WORDS", "QUESTION"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    // Second turn: what belongs to the bundle is there once, however often something is asked.
    session.session.execute("AGAIN").await.unwrap();
    let second = seen(&session).await;
    let text = whole(&second);
    for words in ["INSTRUCTION", "BUNDLE WORDS", "PROJECT WORDS", "MENTIONED WORDS", "AGAIN"] {
        assert_eq!(text.matches(words).count(), 1, "{words} in {text}");
    }
    let systems = second.iter().filter(|message| message.role == Role::System).count();
    assert_eq!((systems, second.len()), (1, first.len() + 2));
}

#[tokio::test]
async fn mentions_of_what_is_asked_are_told_as_an_event_too() {
    let shop = Workshop::new();
    shop.scripted("", &json!(["ok"]), "Be brief.").file("note.md", "NOTE");
    let session = shop.session().await;
    session.expand("@note.md and @gone.md".to_owned(), Speaker::Person).await;
    session.expand("@note.md and @gone.md".to_owned(), Speaker::Person).await;
    session.session.cleanup().await;
    let (_, journal) = shop.journals().remove(0);
    let events: Vec<_> = journal.lines().filter(|line| line.contains("\"mentions:resolved\"")).collect();
    assert_eq!(events.len(), 1, "told once: {events:?}");
    for word in ["\"prompt\"", "note.md", "relative_path", "@gone.md", "not_found"] {
        assert!(events[0].contains(word), "{word} is not in {}", events[0]);
    }
}
