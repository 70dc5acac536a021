//! What mentions are, and where they lead.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::disk::Disk;

fn bodies(text: &str) -> Vec<String> {
    scan(text, Quotes::Read).into_iter().map(|mention| mention.body).collect()
}

/// A working folder, a namespace beside it, and something outside of both.
struct World {
    dir: TempDir,
    roots: Roots,
    cache: FileCache,
}

impl World {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for folder in ["work", "lib", "home"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (name, bytes) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let roots = Roots {
            namespaces: vec![("lib".into(), root.join("lib"))],
            base: root.join("work"),
            home: Some(root.join("home")),
            ..Roots::default()
        };
        Self { dir, roots, cache: FileCache::default() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn gather(&mut self, text: &str, speaker: &Speaker) -> Gathered {
        let disk = Disk::default();
        let mut gatherer = Gatherer::new(&disk, &self.roots, &mut self.cache);
        gatherer.text(text, speaker);
        gatherer.finish()
    }

    fn texts(&mut self, text: &str) -> Vec<String> {
        self.gather(text, &Speaker::Instruction)
            .blocks
            .into_iter()
            .map(|block| block.text.to_string())
            .collect()
    }

    fn fault(&mut self, text: &str, speaker: &Speaker) -> MentionFault {
        let gathered = self.gather(text, speaker);
        assert_eq!(gathered.blocks, [], "{text}");
        gathered.failed.into_iter().next().unwrap().reason
    }
}

#[test]
fn w14_sentences_addresses_and_code_are_told_from_mentions() {
    let cases: &[(&str, &[&str])] = &[
        ("See @docs/guide.md.", &["docs/guide.md"]),
        ("See @a.md: yes", &["a.md"]),
        ("@A.md,@B.md;@C.md (@d.md) **@e.md** @f.md's", &["A.md", "B.md", "C.md", "d.md", "e.md", "f.md"]),
        ("bob@example.com foo@bar @user@example.com", &[]),
        ("@ü.md @a b.md", &["ü.md", "a"]),
        ("@~/x @.dir/y @./z @../w @ns:p/q @ns: @~", &["~/x", ".dir/y", "./z", "../w", "ns:p/q", "ns", "~"]),
        ("@\"a path/with spaces.md\" and @\"open", &["a path/with spaces.md"]),
        ("@a.md @a.md @a.md.", &["a.md"]),
        ("```\n@no.md\n```\n@yes.md\n", &["yes.md"]),
        ("~~~ md\n@no.md\n```\n@no2.md\n~~~\n@yes.md", &["yes.md"]),
        ("- item\n    ````\n    @no.md\n    ```\n    ````\n  @yes.md", &["yes.md"]),
        ("```\n@never-closed.md", &["never-closed.md"]),
        ("`@no.md` ``a ` @no.md`` @yes.md", &["yes.md"]),
        ("tick ` one\n\n@a.md\n\ntwo ` end", &["a.md"]),
        ("tick ` one\n@no.md\ntwo ` end", &[]),
        ("@mention a file with @ or @. or @:", &[]),
        ("\\@escaped.md", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(bodies(text), *expected, "{text:?}");
    }
}

#[test]
fn profiles_pass_over_quotations_but_not_over_apostrophes() {
    let text = "say \"@no.md\" and '@no2.md', don't skip @yes.md, it's fine, @\"a b.md\"";
    let found: Vec<_> = scan(text, Quotes::Skip).into_iter().map(|mention| mention.body).collect();
    assert_eq!(found, ["yes.md", "a b.md"]);
}

#[test]
fn scanning_hostile_text_takes_linear_time() {
    let text: String = (0..200_000).map(|n| format!("`{n}`@x{n} ")).collect();
    assert_eq!(scan(&text, Quotes::Skip).len(), 200_000);
    let runs: String = (1..1500).map(|n| format!("{} ", "`".repeat(n))).collect();
    assert_eq!(bodies(&runs), [""; 0]);
}

#[test]
fn names_paths_and_folders_are_found() {
    let mut world = World::new(&[
        ("work/a.md", b"A"),
        ("work/notes.md", b"N"),
        ("work/sub/b.txt", b"B"),
        ("lib/context/c.md", b"C"),
        ("lib/shared/d.md", b"D"),
        ("work/odd.", b"dot"),
    ]);
    assert_eq!(world.texts("@a.md @notes @sub/b.txt @lib:context/c.md"), ["A", "N", "B", "C"]);
    assert_eq!(world.texts("the folder of a profile: @lib:context/shared/d.md"), ["D"]);
    assert_eq!(world.texts("a name may end in a dot: @odd."), ["dot"]);
    let sub = world.path("work");
    assert_eq!(
        world.texts("@./"),
        [format!("Directory: {}\n\n  DIR  sub\n  FILE a.md\n  FILE notes.md\n  FILE odd.", sub.display())]
    );
    let lib = world.path("lib");
    assert!(world.texts("@lib:")[0].starts_with(&format!("Directory: {}", lib.display())));
}

#[test]
fn equal_texts_are_one_block_with_every_way_to_it() {
    let mut world = World::new(&[("work/a.md", b"same"), ("work/b.md", b"same"), ("work/sub/a.md", b"x")]);
    let gathered = world.gather("@a.md @b.md @./a.md", &Speaker::Instruction);
    assert_eq!(gathered.blocks.len(), 1);
    let keys: Vec<_> = gathered.blocks[0].sources.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["@a.md", "@b.md", "@./a.md"]);
    assert_eq!((gathered.repeated, gathered.found.len()), (2, 3));
}

#[test]
fn w16_a_file_speaks_of_its_neighbours_first_and_then_of_the_project() {
    let mut world = World::new(&[
        ("work/top.md", b"top @sub/one.md"),
        ("work/sub/one.md", b"one @two.md @three.md"),
        ("work/sub/two.md", b"near"),
        ("work/two.md", b"far"),
        ("work/three.md", b"project"),
        ("lib/l.md", b"lib @m.md"),
        ("lib/m.md", b"m"),
    ]);
    assert_eq!(world.texts("@top.md"), ["top @sub/one.md", "one @two.md @three.md", "near", "project"]);
    assert_eq!(world.texts("@lib:l.md"), ["lib @m.md", "m"]);
}

#[test]
fn circles_end_and_depth_is_bounded() {
    let mut world = World::new(&[("work/a.md", b"a @b.md"), ("work/b.md", b"b @a.md @b.md")]);
    assert_eq!(world.texts("@a.md"), ["a @b.md", "b @a.md @b.md"]);
    let names: Vec<_> = (0..8).map(|n| (format!("work/{n}.md"), format!("{n} @{}.md", n + 1))).collect();
    let files: Vec<_> = names.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let mut world = World::new(&files);
    let gathered = world.gather("@0.md", &Speaker::Instruction);
    assert_eq!(gathered.blocks.len(), 4);
    assert_eq!(gathered.failed[0].reason, MentionFault::TooDeep(3));
    assert_eq!(gathered.failed[0].within.as_deref(), Some(world.path("work/3.md").as_path()));
}

#[cfg(unix)]
#[test]
fn w13_nothing_outside_the_roots_is_read() {
    use std::os::unix::fs::symlink;
    let mut world = World::new(&[
        ("work/a.md", b"A"),
        ("lib/l.md", b"@../work/secret.md @/etc/hostname @~/h.md"),
        ("secret.md", b"S"),
        ("home/h.md", b"H"),
    ]);
    symlink(world.path("secret.md"), world.path("work/link.md")).unwrap();
    symlink(world.path(""), world.path("lib/up")).unwrap();
    for text in
        ["@../secret.md", "@/etc/passwd", "@link.md", "@lib:../secret.md", "@lib:up/secret.md", "@~/h.md"]
    {
        let fault = world.fault(text, &Speaker::Instruction);
        assert!(matches!(fault, MentionFault::Escape(_)), "{text}: {fault:?}");
        assert_eq!(fault.wire_name(), "path_traversal_rejected");
    }
    let gathered = world.gather("@lib:l.md", &Speaker::Person);
    assert_eq!(gathered.blocks.len(), 1, "a file's words reach no further than the file");
    assert_eq!(gathered.failed.len(), 3);
    // A person may be given more room, other homes never.
    world.roots.allowed = vec![world.path("home")];
    assert_eq!(world.gather("@~/h.md", &Speaker::Person).blocks.len(), 1);
    assert_eq!(world.fault("@~other/h.md", &Speaker::Person), MentionFault::NotFound);
    assert_eq!(
        world.fault("@nobody:x.md", &Speaker::Person),
        MentionFault::UnknownNamespace("nobody".into())
    );
}

#[test]
fn w15_files_that_are_not_text_are_reported_and_the_rest_is_read() {
    let mut world = World::new(&[
        ("work/a.md", b"A"),
        ("work/p.png", b"\x89PNG\r\n\xff\xfe"),
        ("work/z.bin", b"a\0b"),
        ("work/bom.md", b"\xef\xbb\xbfx\r\ny"),
    ]);
    let gathered = world.gather("@p.png @z.bin @gone.md @a.md @bom.md", &Speaker::Instruction);
    let texts: Vec<_> = gathered.blocks.iter().map(|block| block.text.to_string()).collect();
    assert_eq!(texts, ["A", "x\ny"]);
    let reasons: Vec<_> = gathered.failed.iter().map(|failed| failed.reason.wire_name()).collect();
    assert_eq!(reasons, ["not_text", "not_text", "not_found"]);
}

#[test]
fn large_files_and_large_numbers_are_bounded() {
    let mut world = World::new(&[("work/a.md", b"A"), ("work/b.md", b"B")]);
    let huge = fs::File::create(world.path("work/huge.md")).unwrap();
    huge.set_len(100 << 20).unwrap();
    let limit = MentionLimits::default().file_bytes;
    let fault = world.fault("@huge.md", &Speaker::Instruction);
    assert_eq!(fault, MentionFault::TooLarge { size: 100 << 20, limit });
    let limits = MentionLimits { files: 1, ..MentionLimits::default() };
    let disk = Disk::default();
    let mut gatherer = Gatherer::new(&disk, &world.roots, &mut world.cache).with_limits(limits);
    gatherer.text("@a.md @b.md", &Speaker::Instruction);
    let gathered = gatherer.finish();
    assert_eq!(gathered.blocks.len(), 1);
    assert!(matches!(gathered.failed[0].reason, MentionFault::Full { .. }));
    let many: String = (0..100_000).map(|n| format!("@x{n} ")).collect();
    let gathered = world.gather(&many, &Speaker::Instruction);
    assert_eq!(gathered.failed.len(), MentionLimits::default().mentions + 1);
}

#[test]
fn a_file_that_changed_is_read_again() {
    let mut world = World::new(&[("work/a.md", b"one")]);
    assert_eq!(world.texts("@a.md"), ["one"]);
    assert_eq!(world.texts("@a.md"), ["one"]);
    fs::write(world.path("work/a.md"), "another text").unwrap();
    assert_eq!(world.texts("@a.md"), ["another text"]);
    fs::remove_file(world.path("work/a.md")).unwrap();
    assert_eq!(world.fault("@a.md", &Speaker::Instruction), MentionFault::NotFound);
    assert!(Path::new(&world.path("work")).is_dir());
}
