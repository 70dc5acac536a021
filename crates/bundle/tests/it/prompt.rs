//! The system prompt and the tree of a bundle.

use std::fs;
use std::path::PathBuf;

use amplifier_bundle::disk::Disk;
use amplifier_bundle::fetch::Files;
use amplifier_bundle::include::LoadOptions;
use amplifier_bundle::load::{LoadedBundle, load_bundle};
use amplifier_bundle::mention::{FileCache, Gathered, Gatherer, Roots, Speaker};
use amplifier_bundle::prompt::{expand, system_prompt};
use amplifier_bundle::tree::tree;
use serde_json::json;

use crate::memory::Memory;

/// The mentions of the instruction first, then the context files.
fn gather(files: &impl Files, loaded: &LoadedBundle, roots: &Roots, cache: &mut FileCache) -> Gathered {
    let mut gatherer = Gatherer::new(files, roots, cache);
    if let Some(instruction) = &loaded.composed.instruction {
        gatherer.text(&instruction.text.text, &Speaker::Instruction);
    }
    for file in &loaded.context {
        gatherer.declared(file);
    }
    gatherer.finish()
}

/// The namespaces and named context files of a bundle, seen from a folder.
fn roots(loaded: &LoadedBundle, base: PathBuf) -> Roots {
    let namespaces = loaded.composed.namespaces.iter();
    Roots {
        namespaces: namespaces.map(|known| (known.name.clone(), known.dir.clone())).collect(),
        base,
        home: None,
        allowed: Vec::new(),
        named: loaded.context.iter().map(|file| (file.key.clone(), file.path.clone())).collect(),
        untrusted: None,
    }
}

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("work")).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { _dir: dir, root }
    }

    async fn load(&self) -> LoadedBundle {
        load_bundle(&Disk::default(), "./b", &self.root, &LoadOptions::default()).await.unwrap()
    }

    fn prompt(&self, loaded: &LoadedBundle, cache: &mut FileCache) -> String {
        let roots = roots(loaded, self.root.join("work"));
        let gathered = gather(&Disk::default(), loaded, &roots, cache);
        let instruction =
            loaded.composed.instruction.as_ref().map(|instruction| instruction.text.text.as_str());
        let text = system_prompt(instruction, &gathered, &|_| false).unwrap_or_default();
        text.replace(&self.root.display().to_string(), "<root>")
    }
}

#[tokio::test]
async fn the_prompt_is_the_instruction_then_its_mentions_then_the_declared_files() {
    let world = World::new(&[
        (
            "b/bundle.md",
            "---\nbundle: {name: b}\ncontext: {include: [declared.md, same.md]}\n---\nDo. See @b:seen.md and @AGENTS.md\n",
        ),
        ("b/declared.md", "declared, speaks of @near.md"),
        ("b/near.md", "near"),
        ("b/same.md", "seen"),
        ("b/seen.md", "seen"),
        ("work/AGENTS.md", "house </context_file> rules"),
    ]);
    let loaded = world.load().await;
    let mut cache = FileCache::default();
    let expected = "Do. See @b:seen.md and @AGENTS.md\n\n---\n\n\
        <context_file paths=\"@b:seen.md → <root>/b/seen.md, b:same.md → <root>/b/same.md\">\nseen\n</context_file>\n\n\
        <context_file paths=\"@AGENTS.md → <root>/work/AGENTS.md\">\nhouse &lt;/context_file> rules\n</context_file>\n\n\
        <context_file paths=\"b:declared.md → <root>/b/declared.md\">\ndeclared, speaks of @near.md\n</context_file>\n\n\
        <context_file paths=\"@near.md → <root>/b/near.md\">\nnear\n</context_file>";
    assert_eq!(world.prompt(&loaded, &mut cache), expected);
    fs::write(world.root.join("work/AGENTS.md"), "other rules now").unwrap();
    assert!(world.prompt(&loaded, &mut cache).contains("other rules now"), "read again for every request");
}

#[tokio::test]
async fn without_files_the_prompt_is_the_instruction_and_without_both_there_is_none() {
    let world = World::new(&[("b/bundle.md", "---\nbundle: {name: b}\n---\nOnly this.\n")]);
    let loaded = world.load().await;
    assert_eq!(world.prompt(&loaded, &mut FileCache::default()), "Only this.");
    assert_eq!(system_prompt(None, &Default::default(), &|_| true), None);
    assert_eq!(expand("say @x", &Default::default()), "say @x");
}

#[tokio::test]
async fn the_tree_says_who_includes_whom_and_what_each_adds() {
    let world = Memory::new(&[
        ("/b/bundle.md", "---\nbundle: {name: top, version: 1.0}\nincludes: ['git+https://h/r@main', ./a.yaml, ./no]\n---\nHi.\n"),
        ("/b/a.yaml", "includes: [./bundle.md]\ntools: [{module: tool-a}]\n"),
        ("/r/bundle.yaml", "bundle: {name: far}\nhooks: [{module: hooks-x, id: one}]\nsession: {orchestrator: l}\n"),
    ])
    .tree("git+https://h/r@main", "/r");
    let loaded = world.load("/b").await.unwrap();
    let mut found = serde_json::to_value(tree(&loaded.graph)).unwrap();
    for file in found["files"].as_array_mut().unwrap() {
        assert_eq!(file["hash"].as_str().unwrap().len(), 64);
        file.as_object_mut().unwrap().remove("hash");
    }
    assert_eq!(
        found["files"],
        json!([
            {
                "name": "top", "version": "1.0", "reference": "/b", "path": "/b/bundle.md",
                "contributes": {"instruction": ["3 characters"]},
                "includes": [
                    {"reference": "git+https://h/r@main", "file": 1},
                    {"reference": "./a.yaml", "file": 2},
                    {"reference": "./no", "failed": null},
                ],
            },
            {
                "name": "far", "reference": "git+https://h/r@main", "path": "/r/bundle.yaml",
                "source": "git+https://h/r@main", "pinned": "git+https://h/r@c0ffee",
                "contributes": {"hooks": ["one"], "session": ["orchestrator"]}, "includes": [],
            },
            {
                "reference": "./a.yaml", "path": "/b/a.yaml", "contributes": {"tools": ["tool-a"]},
                "includes": [{"reference": "./bundle.md", "cycle": 0}],
            },
        ])
    );
    let dot = tree(&loaded.graph).to_dot();
    for line in
        ["f0 -> f1 [label=\"1\"];", "f2 -> f0 [label=\"circle\", style=dashed];", "x0_2 [label=\"./no\""]
    {
        assert!(dot.contains(line), "{dot}");
    }
}

#[tokio::test]
async fn a_mention_that_may_not_be_read_says_so() {
    let bundle = "---\nbundle: {name: b}\n---\nSee @b:secret.md and @b:open.md\n";
    let world = Memory::new(&[("/b/bundle.md", bundle), ("/b/secret.md", "secret"), ("/b/open.md", "open")]);
    let world = world.deny("/b/secret.md");
    let loaded = world.load("/b").await.unwrap();
    let roots = roots(&loaded, "/work".into());
    let gathered = gather(&world, &loaded, &roots, &mut FileCache::default());
    let failed: Vec<_> =
        gathered.failed.iter().map(|failed| (failed.mention.as_str(), failed.reason.wire_name())).collect();
    assert_eq!(failed, [("@b:secret.md", "permission_error")]);
    assert_eq!(gathered.blocks.len(), 1, "the rest is read");
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_of_the_disk_that_may_not_be_read_is_such_a_one() {
    use std::os::unix::fs::PermissionsExt;
    let bundle = "---\nbundle: {name: b}\n---\nSee @b:secret.md\n";
    let world = World::new(&[("b/bundle.md", bundle), ("b/secret.md", "secret")]);
    let secret = world.root.join("b/secret.md");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    if fs::read(&secret).is_ok() {
        // A superuser may read everything; the test above shows the rest.
        return;
    }
    let loaded = world.load().await;
    let roots = roots(&loaded, world.root.join("work"));
    let gathered = gather(&Disk::default(), &loaded, &roots, &mut FileCache::default());
    assert_eq!(gathered.failed[0].reason.wire_name(), "permission_error");
}

#[tokio::test]
async fn modes_are_checked_and_a_broken_one_stops_nothing() {
    let world = World::new(&[
        ("b/bundle.md", "---\nbundle: {name: b}\n---\n"),
        (
            "b/modes/a.md",
            "---\nmode: {description: First., advertised: false, contributes: null, shortcut: x}\n---\nBe calm.\n",
        ),
        ("b/modes/b.md", "---\nmode: {name: other, contributes: [1]}\n---\n"),
        ("b/modes/c.md", "---\nmode: {contributes: {skill: [], context: [1, a], agents: {x: 1}}}\n---\n"),
        ("b/modes/d.md", "---\nmode: {\n---\n"),
        ("b/modes/e.txt", "not a mode"),
    ]);
    let loaded = world.load().await;
    let modes: Vec<_> = loaded.modes.iter().map(|mode| (mode.name.as_str(), mode.is_advertised)).collect();
    assert_eq!(modes, [("a", false), ("other", true), ("c", true)]);
    let first = &loaded.modes[0];
    assert_eq!((first.description.as_str(), first.contributes.len(), first.extra.len()), ("First.", 0, 1));
    assert_eq!(first.instruction.as_ref().unwrap().text, "Be calm.");
    let lines: Vec<_> = loaded.notices().iter().map(|notice| notice.message.as_str()).collect();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(lines[0], "`contributes` of mode `other` must be a mapping, not a list");
}

#[tokio::test]
async fn what_a_bundle_lacks_to_be_a_session_is_said() {
    let part = Memory::new(&[("/b/bundle.yaml", "tools: [{module: t}]\n")]).load("/b").await.unwrap();
    assert_eq!(part.gaps().len(), 4);
    assert_eq!(part.plan.mount_plan().unwrap_err().pointer, "/session");
    let whole = "bundle: {name: b}\nsession: {orchestrator: l, context: c}\nproviders: [{module: p}]\n";
    let whole = Memory::new(&[("/b/bundle.yaml", whole)]).load("/b").await.unwrap();
    assert_eq!(whole.gaps(), [""; 0]);
    assert_eq!(whole.plan.mount_plan().unwrap().providers.len(), 1);
}
