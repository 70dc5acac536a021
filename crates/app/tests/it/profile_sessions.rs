//! Sessions of profiles: their agents, and their mentions (reference §6.6), as the model sees them.

use amplifier_app::Speaker;
use amplifier_app::open::{OpenRequest, OpenSession, Which, open};
use amplifier_app::profiles::prepare_profile;
use serde_json::{Value, json};

use crate::model::{Model, calls, says, system, whole};
use crate::workshop::Workshop;

/// A profile written by hand, with a folder of documents; the model is this one.
fn shop(model: &Model, more: &str, body: &str) -> Workshop {
    let shop = Workshop::new();
    for (name, text) in [
        ("docs/USAGE.md", "USAGE, see @docs:more.md\n"),
        ("docs/more.md", "MORE, see @docs:USAGE.md\n"),
        ("docs/same.md", "SAME\n"),
        ("notes/x.md", "NOTES\n"),
        ("notes/same.md", "SAME\n"),
    ] {
        shop.file(name, text);
    }
    let work = shop.path("work").display().to_string();
    let more = more.replace("WORK", &work);
    let text = format!(
        "---\nprofile: {{name: base, version: 1.0.0, schema_version: 2}}\nsession: {{orchestrator: {{module: loop-basic}}, \
         context: {{module: context-simple}}}}\nproviders: [{}]\ncontext: {{docs: {work}/docs}}\n{more}\n---\n\n{body}\n",
        model.provider(),
    );
    let dir = shop.path("home/share/profiles/mine/base");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("profile.md"), text).unwrap();
    shop
}

/// Prepares and opens the profile as the front ends do.
async fn session(shop: &Workshop) -> OpenSession {
    let id = "mine/base".parse().unwrap();
    let profile = prepare_profile(&id, &shop.access(), Default::default()).await.unwrap();
    let plan = profile.plan().unwrap();
    let (prompt, resolver) = (Some(profile.prompt().unwrap()), profile.resolver(&plan));
    let request = shop.request(Which::New(Box::new(plan)));
    open(OpenRequest { prompt, resolver, ..request }).await.unwrap()
}

/// Asks as a person does.
async fn ask(session: &OpenSession, text: &str) -> String {
    let (asked, _) = session.expand(text.to_owned(), Speaker::Person).await;
    session.session.execute(asked).await.unwrap()
}

#[tokio::test]
async fn an_agent_of_a_profile_is_described_and_has_its_own_words() {
    let task = json!({"agent": "expert", "instruction": "look at it"});
    let model = Model::start(vec![calls("task", &task), says("child done"), says("parent done")]).await;
    let more =
        "agents: {expert: WORK/agents/expert.md, plain: WORK/agents/plain.md}\ntools: [{module: tool-task}]";
    let shop = shop(&model, more, "Parent words.");
    let expert =
        "---\nmeta: {name: expert, description: Knows everything.}\n---\nExpert words, see @docs:same.md\n";
    shop.file("agents/expert.md", expert).file("agents/plain.md", "Plain words.\n");
    let session = session(&shop).await;
    assert_eq!(ask(&session, "go").await, "parent done");
    let asked = model.asked();
    let description = asked[0]["tools"][0]["function"]["description"].as_str().unwrap();
    assert!(
        description.ends_with("Agents:\n- expert: Knows everything.\n- plain: (no description)"),
        "{description}"
    );
    let child = system(&asked[1]);
    assert!(child.starts_with("Expert words") && child.contains("SAME"), "{child}");
    assert!(!child.contains("Parent words"), "{child}");
    assert!(system(&asked[2]).starts_with("Parent words"));
    // One that is handed over as the plan has it is read as well, and one that is only text is all instruction.
    let about = session.session.coordinator().plan().agents["plain"].clone();
    assert_eq!(about["content"], json!("Plain words.\n"));
    let spawn = json!({"agent_name": "plain", "agent_config": about, "instruction": "x"});
    session.session.coordinator().call_capability("session.spawn", spawn).await.unwrap();
    assert_eq!(system(&model.asked()[3]).split('\n').next(), Some("Plain words."));
    session.session.cleanup().await;
}

/// What the model gets to see of a body, a system prompt, and what was asked.
async fn said(body: &str, question: &str) -> (String, Value) {
    let model = Model::start(vec![says("ok")]).await;
    let shop = shop(&model, "", body);
    let session = session(&shop).await;
    ask(&session, question).await;
    let asked = model.asked().remove(0);
    session.session.cleanup().await;
    (system(&asked), asked)
}

#[tokio::test]
async fn mentions_of_the_body_bring_files_of_its_context_folders_each_once() {
    let (system, _) = said("Words. @docs:USAGE.md\n\n@docs:context/more.md", "hi").await;
    for words in ["USAGE, see", "MORE, see"] {
        assert_eq!(system.matches(words).count(), 1, "{words} in {system}");
    }
    assert!(system.starts_with("Words. @docs:USAGE.md"), "{system}");
}

#[tokio::test]
async fn code_quotes_and_addresses_are_no_mentions_in_profiles() {
    let not = [
        "`@docs:same.md`",
        "\"@docs:same.md\"",
        "'@docs:same.md'",
        "user@host.com",
        "```\n@docs:same.md\n```",
    ];
    for text in not {
        let (system, asked) = said(text, text).await;
        assert!(!system.contains("SAME") && !whole(&asked).contains("SAME"), "{text}: {asked}");
    }
    let (system, asked) = said("don't miss @docs:same.md, it's short", "see @notes/x.md.").await;
    assert!(system.contains("SAME"), "{system}");
    assert!(whole(&asked).contains("NOTES"), "{asked}");
}

#[tokio::test]
async fn equal_bytes_are_one_text_that_credits_both() {
    let (system, _) = said("@docs:same.md and @notes/same.md", "hi").await;
    assert_eq!(system.matches("SAME").count(), 1, "{system}");
    let block = system.split("<context_file").nth(1).unwrap().lines().next().unwrap();
    assert!(block.contains("@docs:same.md → ") && block.contains(", @notes/same.md → "), "{block}");
}

#[tokio::test]
async fn what_is_missing_is_told_and_what_leads_out_is_refused() {
    let model = Model::start(vec![says("ok")]).await;
    let body = "@docs:nothing.md @docs:../../profile.md @../secret.md @link.md @unknown:x.md";
    let shop = shop(&model, "", body);
    std::fs::write(shop.path("secret.md"), "SECRET").unwrap();
    std::os::unix::fs::symlink(shop.path("secret.md"), shop.path("work/link.md")).unwrap();
    let session = session(&shop).await;
    ask(&session, "hi").await;
    session.session.cleanup().await;
    assert!(!whole(&model.asked()[0]).contains("SECRET"));
    let (_, journal) = shop.journals().remove(0);
    let event = journal.lines().find(|line| line.contains("\"mentions:resolved\"")).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    let failed = event["body"]["event"]["data"]["failed"].as_array().unwrap();
    let reasons: Vec<_> = failed.iter().map(|failed| failed["reason"].as_str().unwrap()).collect();
    let refused = "path_traversal_rejected";
    assert_eq!(reasons, ["not_found", refused, refused, refused, "bundle_not_registered"]);
}

#[tokio::test]
async fn profile_project_and_mention_keep_their_order_and_are_there_once_in_every_turn() {
    let model = Model::start(vec![says("one"), says("two")]).await;
    let shop = shop(&model, "", "BODY, see @docs:same.md");
    shop.file("AGENTS.md", "PROJECT WORDS");
    let session = session(&shop).await;
    ask(&session, "QUESTION about @notes/x.md").await;
    ask(&session, "AGAIN").await;
    session.session.cleanup().await;
    let asked = model.asked();
    let text = whole(&asked[0]);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in {text}"));
    let order = ["BODY", "SAME", "PROJECT WORDS", "NOTES", "QUESTION"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    let text = whole(&asked[1]);
    for words in ["BODY", "SAME", "PROJECT WORDS", "NOTES", "AGAIN"] {
        assert_eq!(text.matches(words).count(), 1, "{words} in {text}");
    }
    // What was said stays said; the profile's own words are no part of the conversation.
    let roles = |request: &Value| {
        let messages = request["messages"].as_array().unwrap().clone();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles(&asked[1]), ["system", "user", "assistant", "user"]);
}

#[tokio::test]
async fn a_resumed_session_of_a_profile_reads_mentions_as_before() {
    let model = Model::start(vec![says("ok")]).await;
    let shop = shop(&model, "", "See @docs:more.md and \"@docs:same.md\"");
    let first = session(&shop).await;
    ask(&first, "hi").await;
    let id = first.session.id().clone();
    first.session.cleanup().await;
    drop(first);
    let again = open(shop.request(Which::Resume(id, None))).await.unwrap();
    ask(&again, "and now?").await;
    let system = system(&model.asked()[1]);
    assert!(system.contains("MORE, see") && !system.contains("SAME"), "{system}");
    again.session.cleanup().await;
}
