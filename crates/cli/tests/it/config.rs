//! `amplifier config …`.

use amplifier_testing::write_program;
use insta::assert_snapshot;
use serde_json::json;

use crate::desk::{Desk, Ran, read};

fn settings(desk: &Desk) -> String {
    read(&desk.home().join("settings.yaml"))
}

#[test]
fn what_is_set_can_be_seen_and_taken_back() {
    let desk = Desk::new();
    let steps: &[&[&str]] = &[
        &["config", "set", "bundle.active", "minimal"],
        &["config", "set", "limits.max_cost_usd", "2.50"],
        &["config", "set", "overrides.tool-bash.config.timeout", "30"],
        &["config", "set", "bundle.app", "[./team, other]", "--project"],
        &["config", "set", "ui.color", "never", "--local"],
        &["config", "set", "ui.color", "always"],
        &["config", "show", "--origin"],
        &["config", "get", "limits"],
        &["config", "get", "bundle.active"],
        &["config", "unset", "overrides.tool-bash.config.timeout"],
        &["config", "unset", "overrides.tool-bash.config.timeout"],
        &["config", "get", "approve"],
        &["config", "path"],
    ];
    let told: Vec<_> = steps
        .iter()
        .map(|step| format!("$ amplifier {}\n{}", step.join(" "), desk.seen(&desk.amplifier(step))))
        .collect();
    assert_snapshot!("told", told.join("\n"));
    assert_eq!(
        settings(&desk),
        "bundle:\n  active: minimal\nlimits:\n  max_cost_usd: 2.5\nui:\n  color: always\n"
    );
    assert_eq!(
        read(&desk.work().join(".amplifier/settings.yaml")),
        "bundle:\n  app:\n    - ./team\n    - other\n"
    );
}

#[test]
fn comments_and_order_stay() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    let text = "# my settings\n\nui:   # how it looks\n    color: never # no colours\n\n# which bundle\nbundle: {active: x}\n# the end\n";
    let file = desk.home().join("settings.yaml");
    std::fs::write(&file, text).unwrap();
    assert_eq!(desk.amplifier(&["config", "set", "ui.color", "auto"]).code, 0);
    assert_eq!(settings(&desk), text.replace("never", "auto"));
    let refused = desk.amplifier(&["config", "set", "bundle.active", "y"]);
    assert_eq!(refused.code, 2);
    assert_snapshot!("in_braces", desk.seen(&refused));
    assert_eq!(settings(&desk), text.replace("never", "auto"));
    // A link into a repository of the person's own stays a link.
    let elsewhere = desk.work().join("dotfiles.yaml");
    std::fs::rename(&file, &elsewhere).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        assert_eq!(desk.amplifier(&["config", "set", "prefer", "source"]).code, 0);
        assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
        assert!(read(&elsewhere).contains("prefer: source"));
    }
}

#[test]
fn wrong_names_and_values_are_refused_with_what_is_right() {
    let desk = Desk::new();
    let steps: &[&[&str]] = &[
        &["config", "set", "bundle.activ", "x"],
        &["config", "set", "nonsense", "x"],
        &["config", "set", "overrides.tool-bash.confg.x", "1"],
        &["config", "set", "approve", "often"],
        &["config", "set", "limits.max_tokens", "0"],
        &["config", "set", "sources.modules", "x"],
        &["config", "get", "ui.colour"],
        &["config", "set", "ui.color", "never", "--local", "--global"],
    ];
    let told: Vec<_> = steps
        .iter()
        .map(|step| format!("$ amplifier {}\n{}", step.join(" "), desk.seen(&desk.amplifier(step))))
        .collect();
    assert_snapshot!("wrong", told.join("\n"));
    assert!(!desk.home().join("settings.yaml").exists());
}

#[test]
fn a_secret_is_not_written_and_not_shown() {
    let desk = Desk::new();
    let secret = "sk-ant-0123456789abcdef";
    let nested = format!("{{api_key: {secret}}}");
    let header = format!("{{headers: {{Authorization: Bearer {secret}}}}}");
    for (path, value) in [
        ("overrides.provider-anthropic.config.api_key", "hunter2-hunter2"),
        ("overrides.provider-anthropic.config", nested.as_str()),
        ("overrides.provider-anthropic.config", header.as_str()),
        ("bundle.active", "git+https://me:hunter2-hunter2@example.invalid/x"),
    ] {
        let ran = desk.amplifier(&["config", "set", path, value]);
        assert_eq!(ran.code, 2, "{}", ran.seen());
        assert!(!ran.seen().contains("hunter2") && !ran.seen().contains(secret), "{}", ran.seen());
        assert!(
            ran.stderr.contains("looks like a secret") && ran.stderr.contains("${NAME}"),
            "{}",
            ran.stderr
        );
    }
    assert!(!desk.home().join("settings.yaml").exists());
    let ran = desk.amplifier(&["config", "set", "overrides.provider-anthropic.config.api_key", "${MY_KEY}"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    // One that somebody wrote by hand is told, and not shown.
    desk.file(
        ".amplifier/settings.yaml",
        format!("overrides:\n  provider-openai:\n    config: {{api_key: {secret}}}\n"),
    );
    for args in [
        &["config", "show", "--origin"][..],
        &["config", "show", "--output", "json"],
        &["config", "get", "overrides"],
    ] {
        let ran = desk.amplifier(args);
        assert!(!ran.seen().contains(secret), "{}", ran.seen());
        assert!(
            ran.stderr.contains(
                "settings.yaml:3:23: `overrides.provider-openai.config.api_key` holds a key in plain text"
            ),
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.contains("${MY_KEY}"), "{}", ran.stdout);
    }
}

#[test]
fn eight_processes_lose_nothing_of_each_other() {
    let desk = Desk::new();
    let children: Vec<_> = (0..8)
        .map(|at| {
            desk.spawn(&["config", "set", &format!("sources.modules.tool-{at}"), &format!("/modules/{at}")])
        })
        .collect();
    for child in children {
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.seen());
    }
    let shown = desk.amplifier(&["config", "show", "--output", "json"]).json();
    let expected: serde_json::Map<_, _> =
        (0..8).map(|at| (format!("tool-{at}"), json!(format!("/modules/{at}")))).collect();
    let mut found = shown["sources"]["modules"].as_object().unwrap().clone();
    found.sort_keys();
    assert_eq!(found, expected);
    let left: Vec<_> =
        std::fs::read_dir(desk.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["settings.yaml"]);
}

#[cfg(unix)]
#[test]
fn the_editor_gets_a_copy_and_only_sense_comes_back() {
    let desk = Desk::new();
    assert_eq!(desk.amplifier(&["config", "set", "ui.color", "never"]).code, 0);
    let edit = |script: &str| {
        let program = desk.work().join("editor.sh");
        write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        let mut command = desk.command(&["config", "edit"]);
        command.env("EDITOR", format!("{} --wait", program.display())).env("PATH", "/usr/bin:/bin");
        Ran::of(command.output().unwrap())
    };
    let changed = edit("test \"$1\" = --wait && echo 'prefer: source' >> \"$2\"");
    assert_eq!(changed.code, 0, "{}", changed.seen());
    let good = "ui:\n  color: never\nprefer: source\n";
    assert_eq!(settings(&desk), good);
    assert_eq!(edit("true").stdout, "nothing was changed\n");
    let broken = edit("echo 'prefer: [' > \"$2\"");
    assert_eq!((broken.code, settings(&desk).as_str()), (2, good), "{}", broken.seen());
    assert!(
        broken.stderr.contains(":1:10: the YAML is broken") || broken.stderr.contains("the YAML is broken"),
        "{}",
        broken.stderr
    );
    assert!(broken.stderr.contains("stays as it was; what you wrote is kept in"), "{}", broken.stderr);
    let failed = edit("exit 3");
    assert_eq!((failed.code, settings(&desk).as_str()), (1, good), "{}", failed.seen());
    let nobody = desk.amplifier(&["config", "edit"]);
    assert_eq!(nobody.code, 2, "{}", nobody.seen());
    assert!(nobody.stderr.contains("neither `VISUAL` nor `EDITOR`"), "{}", nobody.stderr);
}

#[cfg(unix)]
#[test]
fn the_shell_reads_how_the_editor_is_named() {
    let desk = Desk::new();
    let folder = desk.work().join("my tools");
    std::fs::create_dir(&folder).unwrap();
    write_program(&folder.join("ed"), "#!/bin/sh\necho 'ui: {colour: never}' >> \"$1\"\n");
    write_program(&folder.join("vi"), "#!/bin/sh\necho 'prefer: source' > \"$1\"\n");
    let edit = |variables: &[(&str, String)], args: &[&str]| {
        let mut command = desk.command(&[&["config", "edit"], args].concat());
        Ran::of(command.envs(variables.iter().map(|(name, value)| (name, value))).output().unwrap())
    };
    let path = ("PATH", "/usr/bin:/bin".to_owned());
    let quoted = edit(&[("EDITOR", format!("'{}'", folder.join("ed").display())), path.clone()], &[]);
    assert_eq!(quoted.code, 0, "{}", quoted.seen());
    // What is saved and means nothing is told.
    assert!(quoted.stderr.contains("there is no setting `ui.colour`"), "{}", quoted.stderr);
    std::fs::remove_file(desk.home().join("settings.yaml")).unwrap();
    let bare = edit(&[("EDITOR", folder.join("ed").display().to_string()), path.clone()], &[]);
    assert_eq!(bare.code, 0, "{}", bare.seen());
    // Without a name the usual ones are looked for.
    let usual = edit(&[("PATH", folder.display().to_string())], &[]);
    assert_eq!((usual.code, settings(&desk).as_str()), (0, "prefer: source\n"), "{}", usual.seen());
    let untouched = edit(&[("EDITOR", "true".to_owned()), path.clone()], &["--project"]);
    assert_eq!(untouched.code, 0, "{}", untouched.seen());
    assert!(!desk.work().join(".amplifier").exists());
    let missing = edit(&[("EDITOR", "no-such-editor".to_owned()), path], &["--project"]);
    assert_eq!(missing.code, 1, "{}", missing.seen());
    assert!(missing.stderr.contains("cannot be started") && !desk.work().join(".amplifier").exists());
}

#[test]
fn a_value_in_a_list_is_refused_for_the_right_reason_and_never_shown() {
    let desk = Desk::new();
    let set = |value: &str| desk.amplifier(&["config", "set", "config.providers", value]);
    let secret = set("[{module: provider-openai, config: {api_key: hunter2}}]");
    assert_eq!(secret.code, 2, "{}", secret.seen());
    assert!(secret.stderr.contains("looks like a secret"), "{}", secret.stderr);
    assert!(!secret.seen().contains("hunter2"), "{}", secret.seen());
    let misspelled = set("[{modul: x}]");
    assert!(misspelled.stderr.contains("`config.providers.0.modul`"), "{}", misspelled.stderr);
    assert!(misspelled.stderr.contains("did you mean `module`?"), "{}", misspelled.stderr);
    assert_eq!(set("[{module: provider-openai}]").code, 0);
}

#[test]
fn broken_settings_can_be_mended() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("settings.yaml"), "approve: maybe\n").unwrap();
    assert_eq!(desk.amplifier(&["config", "show"]).code, 2);
    assert_eq!(desk.amplifier(&["config", "path", "--global"]).code, 0);
    assert_eq!(desk.amplifier(&["config", "set", "approve", "ask"]).code, 0);
    assert_eq!(desk.amplifier(&["config", "get", "approve"]).stdout, "ask\n");
}

#[cfg(unix)]
#[test]
fn a_home_that_cannot_be_written_is_told_and_a_project_still_can() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    // A file in the place of the home cannot be written whoever runs this; a mode stops everybody but root.
    std::fs::write(desk.home(), "").unwrap();
    let refused = desk.amplifier(&["config", "set", "ui.color", "never"]);
    assert_eq!(refused.code, 1, "{}", refused.seen());
    assert!(
        refused.stderr.contains("cannot create folder `") && refused.stderr.contains("AMPLIFIER_HOME"),
        "{}",
        refused.stderr
    );
    std::fs::remove_file(desk.home()).unwrap();
    std::fs::create_dir(desk.home()).unwrap();
    std::fs::set_permissions(desk.home(), PermissionsExt::from_mode(0o500)).unwrap();
    let here = desk.amplifier(&["config", "set", "ui.color", "never", "--project"]);
    assert_eq!(here.code, 0, "{}", here.seen());
    assert_eq!(desk.amplifier(&["config", "get", "ui.color"]).stdout, "never\n");
    std::fs::set_permissions(desk.home(), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn a_persons_home_folder_is_no_project() {
    let desk = Desk::new();
    let mut command = desk.command(&["config", "set", "ui.color", "never", "--project"]);
    let ran = Ran::of(command.env("HOME", desk.work()).output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("this is your home folder"), "{}", ran.stderr);
    assert!(!desk.work().join(".amplifier").exists());
}

#[test]
fn every_setting_is_listed() {
    let desk = Desk::new();
    assert_snapshot!("keys", desk.amplifier(&["config", "keys"]).seen());
    let keys = desk.amplifier(&["config", "keys", "--output", "json"]).json();
    let schema = desk.amplifier(&["config", "schema"]).json();
    for key in keys["keys"].as_array().unwrap() {
        let path = key["path"].as_str().unwrap().replace('.', "/properties/");
        assert!(schema.pointer(&format!("/properties/{path}")).is_some(), "{path}");
    }
    assert_snapshot!("help", desk.amplifier(&["config", "--help"]).seen());
    assert_snapshot!("set_help", desk.amplifier(&["config", "set", "--help"]).seen());
}
