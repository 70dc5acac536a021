//! Settings in layers: which one wins, where a value came from, and what they do to a session.

use serde_json::json;

use crate::desk::{Desk, Ran, plan, says};

impl Desk {
    /// Puts a file into the home.
    fn in_home(&self, name: &str, text: &str) -> &Self {
        std::fs::create_dir_all(self.home()).unwrap();
        std::fs::write(self.home().join(name), text).unwrap();
        self
    }
}

fn get(desk: &Desk, path: &str) -> String {
    let ran = desk.amplifier(&["config", "get", path]);
    assert!(ran.code <= 1, "{}", ran.seen());
    ran.stdout.trim().to_owned()
}

fn trust(desk: &Desk) {
    let ran = desk.amplifier(&["trust"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
}

#[test]
fn each_layer_wins_over_the_one_below() {
    let desk = Desk::new();
    let color = || get(&desk, "ui.color");
    assert_eq!(color(), "auto", "built in");
    desk.in_home("settings.yaml", "ui:\n  color: always\nlimits:\n  max_tokens: 1\n");
    assert_eq!(color(), "always", "the user's file");
    desk.file(".amplifier/settings.yaml", "ui:\n  color: never\nlimits:\n  max_cost_usd: 2\n");
    assert_eq!(color(), "never", "the project's file");
    desk.file(".amplifier/settings.local.yaml", "ui:\n  color: auto\nlimits:\n  max_tokens: 3\n");
    assert_eq!(get(&desk, "limits.max_tokens"), "1", "an untrusted project raises no limit");
    trust(&desk);
    assert_eq!(color(), "auto", "the local file");
    let mut command = desk.command(&["config", "show", "--origin", "--output", "json"]);
    let ran = Ran::of(command.env("AMPLIFIER_COLOR", "always").output().unwrap());
    let rows = ran.json()["settings"].as_array().unwrap().clone();
    let row = |path: &str| rows.iter().find(|row| row["path"] == path).unwrap().clone();
    assert_eq!(row("ui.color")["value"], "always", "the variable");
    let origin = |row: &serde_json::Value| row["origin"]["layer"].as_str().unwrap().to_owned();
    assert_eq!(origin(&row("ui.color")), "environment");
    let overrode = row("ui.color")["overrode"].as_array().unwrap().clone();
    let layers: Vec<_> = overrode.iter().map(origin).collect();
    assert_eq!(layers, ["local", "project", "global", "built in"]);
    // Mappings are merged: what a layer does not say comes from below.
    assert_eq!(
        (row("limits.max_tokens")["value"].clone(), origin(&row("limits.max_tokens"))),
        (json!(3), "local".to_owned())
    );
    assert_eq!(
        (row("limits.max_cost_usd")["value"].clone(), origin(&row("limits.max_cost_usd"))),
        (json!(2), "project".to_owned())
    );
    let at = row("limits.max_cost_usd")["origin"]["at"].as_str().unwrap().to_owned();
    assert!(at.ends_with("work/.amplifier/settings.yaml:4:17"), "{at}");
}

#[test]
fn lists_are_replaced_and_providers_are_merged_by_name() {
    let desk = Desk::new();
    desk.in_home(
        "settings.yaml",
        "bundle:\n  app: [a, b]\nconfig:\n  providers:\n  - module: provider-openai\n    config: {default_model: x, timeout: 5}\n  - module: provider-ollama\n",
    );
    desk.file(
        ".amplifier/settings.yaml",
        "bundle:\n  app: [c]\nconfig:\n  providers:\n  - module: provider-anthropic\n  - module: provider-openai\n    config: {default_model: y}\n",
    );
    trust(&desk);
    let ran = desk.amplifier(&["config", "show", "--output", "json"]);
    let shown = ran.json();
    assert_eq!(shown["bundle"]["app"], json!(["c"]));
    let expected = json!([
        {"module": "provider-anthropic"},
        {"module": "provider-openai", "config": {"default_model": "y", "timeout": 5}},
        {"module": "provider-ollama"},
    ]);
    assert_eq!(shown["config"]["providers"], expected);
}

#[test]
fn a_broken_file_is_never_skipped() {
    let desk = Desk::new();
    let plan = json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "providers": [{"module": "provider-mock"}]});
    desk.plan("p.json", &plan);
    let run = || desk.amplifier(&["run", "--plan", "p.json", "hi"]);
    assert_eq!(run().code, 0, "{}", run().seen());
    desk.file(".amplifier/settings.yaml", "ui:\n  color: [never\n");
    let broken = run();
    assert_eq!((broken.code, broken.stdout.as_str()), (2, ""), "{}", broken.seen());
    insta::assert_snapshot!("broken", desk.seen(&broken));
    desk.file(
        ".amplifier/settings.yaml",
        "ui:\n  color: sometimes\napprove: maybe\nlimits:\n  max_tokens: many\n",
    );
    insta::assert_snapshot!("wrong_values", desk.seen(&run()));
    desk.file(".amplifier/settings.yaml", [0xff, 0xfe]);
    assert_eq!(run().code, 2, "{}", run().seen());
    assert!(run().stderr.contains("is no text in UTF-8"), "{}", run().stderr);
    let mut command = desk.command(&["run", "--plan", "p.json", "hi"]);
    std::fs::remove_file(desk.work().join(".amplifier/settings.yaml")).unwrap();
    let wrong = Ran::of(command.env("AMPLIFIER_MAX_TOKENS", "few").output().unwrap());
    assert_eq!(wrong.code, 2, "{}", wrong.seen());
    assert!(
        wrong.stderr.contains("$AMPLIFIER_MAX_TOKENS: `limits.max_tokens` takes a whole number"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_and_the_rest_holds() {
    let desk = Desk::new();
    desk.in_home("settings.yaml", "bundle:\n  actve: x\nui:\n  color: never\nconfig:\n  providers:\n  - module: provider-mock\n    modle: y\nrouting: {matrix: z}\n");
    let ran = desk.amplifier(&["config", "show"]);
    assert_eq!(ran.code, 0);
    insta::assert_snapshot!("unknown_keys", desk.seen(&ran));
}

#[test]
fn settings_shape_the_plan_and_every_value_is_traced_to_them() {
    let desk = Desk::new();
    let bundle = "bundle:\n  name: b\nsession:\n  orchestrator: {module: loop-basic}\n  context: {module: context-simple}\nproviders:\n- module: provider-mock\n  config: {priority: 7}\ntools:\n- module: tool-bash\n  source: git+https://example.invalid/x@main\n  config: {timeout: 5}\n";
    desk.file("b.yaml", bundle);
    desk.file(
        ".amplifier/settings.yaml",
        "bundle:\n  active: ./b.yaml\nconfig:\n  providers:\n  - module: provider-ollama\n    id: near\n    config: {default_model: m}\n  - module: provider-mock\n    config: {priority: 1}\noverrides:\n  tool-bash:\n    config: {timeout: 9}\nlimits:\n  max_cost_usd: 1.5\n",
    );
    trust(&desk);
    let shown = desk.amplifier(&["plan", "show"]);
    let plan = shown.json();
    let providers = json!([
        {"module": "provider-ollama", "instance_id": "near", "config": {"default_model": "m"}},
        {"module": "provider-mock", "config": {"priority": 1}},
    ]);
    assert_eq!(plan["providers"], providers, "{}", shown.seen());
    assert_eq!(plan["tools"][0]["config"], json!({"timeout": 9}));
    assert_eq!(plan["session"]["limits"], json!({"cost_usd": "1.5"}));
    let explained = desk.amplifier(&["plan", "explain", "/tools/0/config"]);
    let text = desk.seen(&explained);
    assert!(text.contains("/tools/0/config/timeout = 9  <desk>/work/.amplifier/settings.yaml:12:"), "{text}");
    assert!(text.contains("overrode 5  <desk>/work/b.yaml:"), "{text}");
    // What runs is what was shown.
    let ran = desk.amplifier(&["run", "-p", "mock", "--output", "json", "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let kept = std::fs::read_to_string(desk.sessions()[0].join("mount_plan.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["tools"], plan["tools"]);
    assert_eq!(kept["session"], plan["session"]);
    // The bundle itself is not changed by them.
    let own = desk.amplifier(&["bundle", "show", "./b.yaml", "--output", "json"]);
    assert!(!own.stdout.contains("provider-ollama"), "{}", own.stdout);
}

#[test]
fn a_plan_file_stays_as_it_is_and_gets_a_provider_when_it_names_none() {
    let desk = Desk::new();
    desk.in_home("settings.yaml", "config:\n  providers:\n  - module: provider-mock\n    config: {priority: 3}\noverrides:\n  context-simple: {config: {max_tokens: 5}}\n");
    let session = json!({"orchestrator": "loop-basic", "context": "context-simple"});
    desk.plan("none.json", &json!({"session": session}));
    desk.plan("own.json", &json!({"session": session, "providers": [{"module": "provider-ollama"}]}));
    let plan = |file: &str| desk.amplifier(&["plan", "show", "--plan", file]).json();
    assert_eq!(
        plan("none.json")["providers"],
        json!([{"module": "provider-mock", "config": {"priority": 3}}])
    );
    assert_eq!(plan("own.json")["providers"], json!([{"module": "provider-ollama"}]));
    assert_eq!(plan("own.json")["session"]["context"], json!({"module": "context-simple"}));
    let ran = desk.amplifier(&["run", "--plan", "none.json", "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
}

#[test]
fn sources_of_the_settings_lead_away_from_what_is_built_in() {
    let desk = Desk::new();
    let entry = "- module: tool-bash\n  source: file:///bundle\n";
    desk.file("b.yaml", format!("bundle: {{name: b}}\nsession:\n  orchestrator: {{module: loop-basic}}\n  context: {{module: context-simple}}\ntools:\n{entry}"));
    let tool = |settings: &str| {
        desk.file(".amplifier/settings.yaml", settings);
        trust(&desk);
        let ran = desk.amplifier(&["plan", "show", "--bundle", "./b.yaml"]);
        (ran.json()["tools"][0].clone(), ran.stderr)
    };
    assert_eq!(tool("").0, json!({"module": "tool-bash", "source": "file:///bundle"}));
    let (preferred, said) = tool("prefer: source\n");
    assert_eq!(preferred, json!({"module": "tool-bash", "source": "file:///bundle", "native": false}));
    // The source is looked for now, and that it is not there is told.
    assert!(said.contains("tool-bash"), "{said}");
    let mine = desk.path("work/mine").display().to_string();
    let (sourced, _) = tool("sources:\n  modules:\n    tool-bash: ./mine\n");
    assert_eq!(sourced, json!({"module": "tool-bash", "source": mine, "native": false}));
    let (overridden, _) =
        tool("sources:\n  modules:\n    tool-bash: ./other\noverrides:\n  tool-bash:\n    source: ./mine\n");
    assert_eq!(overridden["source"], json!(mine));
}

#[test]
fn app_bundles_lie_on_top_of_every_bundle() {
    let desk = Desk::new();
    desk.file("b.yaml", "bundle: {name: b}\nsession:\n  orchestrator: {module: loop-basic}\n  context: {module: context-simple}\nproviders:\n- module: provider-mock\n");
    desk.file("team.yaml", "bundle: {name: team}\nhooks:\n- module: hooks-logging\n");
    desk.file(".amplifier/settings.yaml", "bundle:\n  app: [./team.yaml]\n");
    trust(&desk);
    let ran = desk.amplifier(&["plan", "show", "--bundle", "./b.yaml"]);
    assert_eq!(ran.json()["hooks"], json!([{"module": "hooks-logging"}]), "{}", ran.seen());
    let explained = desk.amplifier(&["plan", "explain", "/hooks", "--bundle", "./b.yaml"]);
    assert!(explained.stdout.contains("work/team.yaml:3:"), "{}", explained.stdout);
    desk.file(".amplifier/settings.yaml", "bundle:\n  app: [./gone.yaml]\n");
    trust(&desk);
    let gone = desk.amplifier(&["plan", "show", "--bundle", "./b.yaml"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (2, ""), "{}", gone.seen());
    assert!(gone.stderr.contains("settings.yaml:2:9: the bundle `"), "{}", gone.stderr);
}

#[test]
fn a_project_cannot_allow_tools_more_than_its_user() {
    let desk = Desk::new();
    desk.file(".amplifier/settings.yaml", "approve: all\n");
    let ran = desk.amplifier(&["config", "get", "approve"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.seen());
    assert!(ran.stderr.contains("settings.yaml:1:1: a project cannot allow tools more"), "{}", ran.stderr);
    desk.in_home("settings.yaml", "approve: safe\n");
    assert_eq!(get(&desk, "approve"), "safe");
    desk.file(".amplifier/settings.yaml", "approve: none\n");
    assert_eq!(get(&desk, "approve"), "none");
}

#[test]
fn the_bundle_of_the_settings_goes_before_the_one_of_the_registry() {
    let desk = Desk::new();
    desk.in_home("registry.json", r#"{"version": 1, "active": "minimal", "bundles": {}}"#);
    let current = || desk.amplifier(&["bundle", "current"]).stdout.trim().to_owned();
    assert_eq!(current(), "minimal");
    assert_eq!(desk.amplifier(&["bundle", "use", "foundation"]).code, 0);
    assert_eq!(current(), "foundation");
    assert_eq!(desk.amplifier(&["bundle", "use", "minimal", "--project"]).code, 0);
    assert_eq!(current(), "minimal");
    let again = desk.amplifier(&["bundle", "use", "foundation"]);
    assert!(again.stderr.contains("goes before"), "{}", again.seen());
    assert_eq!(desk.amplifier(&["bundle", "clear", "--project"]).code, 0);
    assert_eq!(current(), "foundation");
    assert_eq!(desk.amplifier(&["bundle", "clear"]).code, 0);
    assert_eq!(current(), "foundation", "the built-in one");
    let registry = std::fs::read_to_string(desk.home().join("registry.json")).unwrap();
    assert!(!registry.contains("active"), "{registry}");
    let unknown = desk.amplifier(&["bundle", "use", "nobody"]);
    assert_eq!(unknown.code, 2, "{}", unknown.seen());
}

#[test]
fn names_of_the_settings_lead_to_bundles() {
    let desk = Desk::new();
    desk.file("b.yaml", "bundle: {name: b}\nsession:\n  orchestrator: {module: loop-basic}\n  context: {module: context-simple}\n");
    desk.file(
        ".amplifier/settings.yaml",
        "bundle:\n  active: mine\nsources:\n  bundles:\n    mine: ./b.yaml\n",
    );
    trust(&desk);
    std::fs::create_dir_all(desk.work().join("below")).unwrap();
    let mut command = desk.command(&["plan", "show"]);
    // Paths of a project start at its folder, from wherever one looks; outside of a repository a folder stands for itself.
    std::fs::create_dir(desk.work().join(".git")).unwrap();
    let ran = Ran::of(command.current_dir(desk.work().join("below")).output().unwrap());
    assert_eq!(ran.json()["session"]["context"]["module"], "context-simple", "{}", ran.seen());
    desk.file(".amplifier/settings.yaml", "bundle:\n  active: nobody\n");
    trust(&desk);
    let lost = desk.amplifier(&["plan", "show"]);
    assert_eq!(lost.code, 2);
    assert!(lost.stderr.contains("the settings name it: "), "{}", lost.stderr);
}

#[test]
fn what_is_wrong_with_the_settings_is_told_once_by_whatever_opens_a_session() {
    let desk = Desk::new();
    desk.plan("p.json", &plan(says("well"))).in_home("settings.yaml", "ui:\n  colour: never\n");
    let ways: [&[&str]; 4] =
        [&["run", "--plan", "p.json", "hi"], &["continue", "on"], &["chat", "--plan", "p.json"], &["resume"]];
    for way in ways {
        let ran = desk.amplifier_with_input(way, b"more\n");
        assert_eq!(ran.code, 0, "{}", ran.seen());
        let told = ran.stderr.matches("there is no setting `ui.colour`").count();
        assert_eq!(told, 1, "{way:?}: {}", ran.seen());
    }
}

/// What is told about a value that cannot be meant, and the commands that are told to help.
fn cured(ran: &Ran) -> Vec<String> {
    let hint = ran.stderr.lines().find_map(|line| line.strip_prefix("  hint: "));
    let words = hint.unwrap_or_else(|| panic!("no cure is told: {}", ran.seen())).split('`');
    words.skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn a_value_that_cannot_be_meant_is_told_as_it_is_spelled_and_the_cure_works() {
    let rows = [
        ("limits:\n  max_cost_usd: -3\n", "takes a number of dollars, 0 or more, found `-3`"),
        // More than can be counted would be no limit at all.
        ("limits:\n  max_cost_usd: 1e300\n", "takes a number of dollars, 0 or more, found `1e300`"),
        ("limits:\n  max_tokens: 1e3\n", "takes a whole number above 0, found `1e3`"),
        ("limits:\n  max_tokens: true\n", "takes a whole number above 0, found `true`"),
        ("limits:\n  timeout_seconds: \"5\"\n", "takes a number of seconds above 0, found the text `5`"),
        ("ui:\n  color: nevr\n", "takes `auto`, `always` or `never`, found `nevr`"),
        ("approve: \"\"\n", "takes `ask`, `all`, `safe` or `none`, found an empty text"),
    ];
    for (text, words) in rows {
        for (file, place) in [
            ("../home/settings.yaml", "home/settings.yaml:"),
            (".amplifier/settings.yaml", ".amplifier/settings.yaml:"),
        ] {
            let desk = Desk::new();
            desk.file(file, text);
            let ran = desk.amplifier(&["config", "show"]);
            assert!(
                ran.code == 2 && ran.stderr.contains(words) && ran.stderr.contains(place),
                "{}",
                ran.seen()
            );
            // Each of the commands alone mends it.
            for command in cured(&ran) {
                desk.file(file, text);
                let words: Vec<_> = command.split(' ').skip(1).collect();
                let mended = desk.amplifier(&words);
                assert_eq!(mended.code, 0, "{command}: {}", mended.seen());
                let after = desk.amplifier(&["config", "show"]);
                assert_eq!(after.code, 0, "{command}: {}", after.seen());
            }
        }
    }
    let desk = Desk::new();
    for (text, words) in [
        (
            "limits: {max_tokens: 0}\n",
            "settings.yaml:1:22: `limits.max_tokens` takes a whole number above 0, found `0`",
        ),
        ("limits: 5\n", "`limits` takes a mapping, found `5`"),
        ("- a\n", "settings are a mapping, found a list"),
        ("bundle: {app: [a, []]}\n", "`bundle.app.1` takes a text, found a list"),
        (
            "sources:\n  modules: {a: {}}\n",
            "settings.yaml:2:16: `sources.modules.a` takes a text, found a mapping",
        ),
        ("config:\n  providers: [{module: a b}]\n", "module id `a b`"),
    ] {
        let ran = desk.file("../home/settings.yaml", text).amplifier(&["config", "show"]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{}", ran.seen());
        assert_eq!(cured(&ran), ["amplifier config edit"], "{}", ran.seen());
    }
    for text in ["", "---\n", "# nothing\n", "limits:\n  max_cost_usd: null\n"] {
        let ran = desk.file("../home/settings.yaml", text).amplifier(&["config", "show"]);
        assert!(ran.code == 0 && ran.stderr.is_empty(), "{}", ran.seen());
    }
}

#[test]
fn a_variable_that_cannot_be_meant_is_told_with_what_takes_it_out() {
    let desk = Desk::new();
    for (name, value, words) in [
        (
            "AMPLIFIER_MAX_COST_USD",
            "-3",
            "`limits.max_cost_usd` takes a number of dollars, 0 or more, found `-3`",
        ),
        ("AMPLIFIER_MAX_TOKENS", "1e300", "`limits.max_tokens` takes a whole number above 0, found `1e300`"),
        (
            "AMPLIFIER_TIMEOUT_SECONDS",
            "soon",
            "`limits.timeout_seconds` takes a number of seconds above 0, found `soon`",
        ),
        ("AMPLIFIER_COLOR", "alwys", "`ui.color` takes `auto`, `always` or `never`, found `alwys`"),
    ] {
        let run = |value: &str| Ran::of(desk.command(&["config", "show"]).env(name, value).output().unwrap());
        let ran = run(value);
        assert!(ran.code == 2 && ran.stderr.contains(&format!("${name}: {words}")), "{}", ran.seen());
        let cures = cured(&ran);
        assert_eq!(cures[0], format!("unset {name}"));
        let fitting = cures[1].strip_prefix(&format!("export {name}=")).unwrap();
        assert_eq!(run(fitting).code, 0, "{fitting}");
        assert_eq!(run("").code, 0, "an empty variable is none");
    }
}

#[test]
fn a_project_is_refused_what_it_may_not_hold_before_it_is_written() {
    let desk = Desk::new();
    for scope in ["--project", "--local"] {
        let ran = desk.amplifier(&["config", "set", "approve", "all", scope]);
        assert!(
            ran.code == 2 && ran.stderr.contains("a project cannot allow tools more than its user"),
            "{}",
            ran.seen()
        );
        assert_eq!(cured(&ran)[0], "amplifier config set approve all");
        assert!(!desk.work().join(".amplifier").exists(), "nothing is written");
    }
    desk.file(".amplifier/settings.yaml", "approve: al\n");
    let ran = desk.amplifier(&["config", "show"]);
    assert_eq!(cured(&ran)[0], "amplifier config set --project approve none");
    // What makes it stricter is its own, and so is what the user allows.
    assert_eq!(desk.amplifier(&["config", "set", "approve", "none", "--project"]).code, 0);
    assert_eq!(desk.amplifier(&["config", "set", "approve", "all"]).code, 0);
    assert_eq!(
        desk.amplifier(&["config", "set", "approve", "safe", "--local"]).code,
        2,
        "the project said `none`"
    );
    assert_eq!(desk.amplifier(&["config", "set", "approve", "all", "--project"]).code, 0);
}
