//! Each rule about manifests, broken on purpose.

use std::path::PathBuf;

use super::*;

const LINTS: &str = "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n";

fn manifest(folder: &str, name: &str, used: &[(&str, Option<Kind>)]) -> Manifest {
    let path = format!("{folder}/Cargo.toml");
    let depend = |(name, kind): &(&str, Option<Kind>)| Dependency {
        name: (*name).into(),
        kind: *kind,
        features: Vec::new(),
    };
    let package = Package {
        name: name.into(),
        manifest_path: PathBuf::from(&path),
        dependencies: used.iter().map(depend).collect(),
    };
    Manifest { path, text: LINTS.into(), package }
}

fn rules(manifest: Manifest) -> Vec<&'static str> {
    check(&[manifest]).iter().map(|finding| finding.rule).collect()
}

#[test]
fn the_arrows_of_the_table_are_allowed() {
    let app = ["protocol", "core", "modules", "bundle", "sources", "profile", "host"].map(package_name);
    let app: Vec<_> = app.iter().map(|name| (name.as_str(), None)).collect();
    assert_eq!(rules(manifest("crates/app", "amplifier-app", &app)), [""; 0]);
    assert_eq!(rules(manifest("crates/daemon", "amplifierd", &[("amplifier-app", None)])), [""; 0]);
    assert_eq!(rules(manifest("crates/core", "amplifier-core", &[("amplifier-protocol", None)])), [""; 0]);
}

#[test]
fn an_arrow_that_points_up_is_named_with_its_cure() {
    let found = check(&[manifest("crates/core", "amplifier-core", &[("amplifier-modules", None)])]);
    let expected = Finding {
        place: "crates/core/Cargo.toml".into(),
        rule: "arrows",
        problem: "`amplifier-core` must not depend on `amplifier-modules`".into(),
        cure: "`core` may use only: protocol".into(),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn siblings_never_meet_and_nobody_uses_the_front_doors_or_the_tools() {
    for (folder, used) in [
        ("host", "amplifier-modules"),
        ("bundle", "amplifier-core"),
        ("bundle", "amplifier-sources"),
        ("app", "amplifier-guest"),
        ("app", "amplifier-cli"),
        ("cli", "amplifier-core"),
        ("cli", "amplifierd"),
        ("protocol", "amplifier-core"),
        ("app", "xtask"),
    ] {
        let found = rules(manifest(&format!("crates/{folder}"), &package_name(folder), &[(used, None)]));
        assert_eq!(found, ["arrows"], "{folder} -> {used}");
    }
}

#[test]
fn test_doubles_are_for_tests() {
    for row in TABLE {
        let (folder, name) = (format!("crates/{}", row.folder), package_name(row.folder));
        let in_tests = manifest(&folder, &name, &[("amplifier-testing", Some(Kind::Dev))]);
        assert_eq!(rules(in_tests), [""; 0], "{name}");
        for kind in [None, Some(Kind::Build)] {
            let in_product = manifest(&folder, &name, &[("amplifier-testing", kind)]);
            assert_eq!(rules(in_product), ["arrows"], "{name}");
        }
    }
}

#[test]
fn a_dev_dependency_opens_no_other_arrow() {
    let upward = manifest("crates/core", "amplifier-core", &[("amplifier-modules", Some(Kind::Dev))]);
    assert_eq!(rules(upward), ["arrows"]);
}

#[test]
fn a_crate_carries_the_name_of_its_folder() {
    assert_eq!(rules(manifest("crates/core", "amplifier-kernel", &[])), ["names"]);
    assert_eq!(rules(manifest("crates/daemon", "amplifier-daemon", &[])), ["names"]);
    assert_eq!(rules(manifest("xtask", "xtask", &[("amplifier-core", None)])), [""; 0]);
}

#[test]
fn a_crate_without_a_row_is_refused() {
    assert_eq!(rules(manifest("crates/extra", "amplifier-extra", &[])), ["arrows"]);
}

#[test]
fn lints_are_inherited_and_nothing_less_counts() {
    assert!(inherits_lints(LINTS));
    assert!(inherits_lints("lints.workspace = true\n[package]\n"));
    assert!(!inherits_lints("[package]\nname = \"x\"\n"));
    assert!(!inherits_lints("[lints]\n# workspace = true\n"));
    assert!(!inherits_lints("[lints]\nworkspace = false\n"));
    assert!(!inherits_lints("[package.metadata.lints]\nworkspace = true\n"));
    let mut own = manifest("crates/core", "amplifier-core", &[]);
    own.text = "[package]\n".into();
    assert_eq!(rules(own), ["lints"]);
}

#[test]
fn the_kernel_takes_no_crate_and_no_feature_that_does_io() {
    let client = manifest("crates/core", "amplifier-core", &[("reqwest", None)]);
    assert_eq!(rules(client), ["no-io"]);
    let in_tests = manifest("crates/core", "amplifier-core", &[("tempfile", Some(Kind::Dev))]);
    assert_eq!(rules(in_tests), [""; 0]);
    assert_eq!(rules(manifest("crates/app", "amplifier-app", &[("reqwest", None)])), [""; 0]);

    let mut runtime = manifest("crates/core", "amplifier-core", &[("tokio", None)]);
    runtime.package.dependencies[0].features = vec!["sync".into(), "time".into()];
    assert_eq!(rules(runtime.clone()), [""; 0]);
    runtime.package.dependencies[0].features.push("net".into());
    assert_eq!(rules(runtime), ["no-io"]);
}
