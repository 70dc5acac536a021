//! `grep` and `glob` over real trees.

use std::time::{Duration, SystemTime};

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::ToolCx;
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::BuiltIns;
use amplifier_testing::TestSession;
use serde_json::{Value, json};

use crate::workshop::Workshop;

async fn tree(config: Value) -> Workshop {
    let shop = Workshop::new("tool-search", config).await;
    shop.put("a.py", "import os\nprint(os)\n")
        .put("src/b.rs", "fn main() {\n    let os = 1;\n}\n")
        .put("src/deep/c.txt", "os\nOS\nlos\n")
        .put(".hid/d.py", "os\n")
        .put("node_modules/e.py", "os\n")
        .put("bin.dat", b"os\0os\n");
    std::fs::create_dir(shop.path(".git")).unwrap();
    shop.put(".gitignore", "*.log\n").put("f.log", "os\n");
    shop
}

async fn grep(shop: &Workshop, input: Value) -> Value {
    shop.call("grep", input).await.unwrap()
}

fn names(answer: &Value) -> Vec<&str> {
    answer["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// Golden case 11.5: files, hidden and excluded. Better: hidden files need asking for.
#[tokio::test]
async fn files_are_named_in_order_with_ripgreps_rules() {
    let shop = tree(json!({})).await;
    let answer = grep(&shop, json!({"pattern": "os"})).await;
    // Better than the known behaviour without ripgrep: hidden, ignored and binary files are passed over.
    let expected = json!({
        "pattern": "os", "output_mode": "files_with_matches", "total_matches": 3, "matches_count": 3,
        "files": ["a.py", "src/b.rs", "src/deep/c.txt"],
    });
    assert_eq!(answer, expected);
    let all = grep(&shop, json!({"pattern": "os", "include_ignored": true})).await;
    let everything = [".hid/d.py", "a.py", "f.log", "node_modules/e.py", "src/b.rs", "src/deep/c.txt"];
    assert_eq!(names(&all), everything);
    let hidden = tree(json!({"grep": {"hidden": true}})).await;
    assert_eq!(
        names(&grep(&hidden, json!({"pattern": "os", "type": "python"})).await),
        [".hid/d.py", "a.py"]
    );
}

/// Golden case 11.5: content, with and without context.
#[tokio::test]
async fn lines_come_with_numbers_and_context() {
    let shop = tree(json!({})).await;
    let answer = grep(&shop, json!({"pattern": "let", "output_mode": "content", "-C": 1})).await;
    let expected = json!([{
        "file": "src/b.rs", "line_number": 2, "content": "    let os = 1;",
        "context": [
            {"line_number": 1, "content": "fn main() {", "is_match": false},
            {"line_number": 2, "content": "    let os = 1;", "is_match": true},
            {"line_number": 3, "content": "}", "is_match": false},
        ],
    }]);
    assert_eq!(answer["results"], expected);
    let bare = grep(&shop, json!({"pattern": "let", "output_mode": "content", "-n": false})).await;
    assert_eq!(bare["results"], json!([{"file": "src/b.rs", "content": "    let os = 1;"}]));
    let before = json!({"pattern": "^os|^OS|^los", "output_mode": "content", "-B": 1, "path": "src/deep"});
    let results = grep(&shop, before).await["results"].clone();
    let context = |at: usize| results[at]["context"].as_array().unwrap().len();
    assert_eq!((context(0), context(1), context(2)), (1, 2, 2));
}

/// Golden case 11.5: counts.
#[tokio::test]
async fn cases_globs_types_and_counts() {
    let shop = tree(json!({})).await;
    let counts = grep(&shop, json!({"pattern": "OS", "-i": true, "output_mode": "count"})).await;
    assert_eq!(counts["counts"], json!({"a.py": 2, "src/b.rs": 1, "src/deep/c.txt": 3}));
    assert_eq!((&counts["total_matches"], &counts["matches_count"]), (&json!(6), &json!(3)));
    assert_eq!(names(&grep(&shop, json!({"pattern": "os", "glob": "*.rs"})).await), ["src/b.rs"]);
    assert_eq!(
        names(&grep(&shop, json!({"pattern": "os", "glob": "*.{py,txt}"})).await),
        ["a.py", "src/deep/c.txt"]
    );
    assert_eq!(names(&grep(&shop, json!({"pattern": "os", "type": "rs"})).await), ["src/b.rs"]);
    assert_eq!(names(&grep(&shop, json!({"pattern": "os", "type": ""})).await).len(), 3);
    let one = grep(&shop, json!({"pattern": "os", "path": "src/deep/c.txt", "output_mode": "count"})).await;
    assert_eq!(one["counts"], json!({"src/deep/c.txt": 2}));
    let smart = tree(json!({"grep": {"smart_case": true}})).await;
    let small = grep(&smart, json!({"pattern": "os", "output_mode": "count", "path": "src/deep"})).await;
    assert_eq!(small["total_matches"], 3);
    let large = grep(&smart, json!({"pattern": "OS", "output_mode": "count", "path": "src/deep"})).await;
    assert_eq!(large["total_matches"], 1);
}

#[tokio::test]
async fn a_pattern_may_span_lines_when_asked() {
    let shop = tree(json!({})).await;
    let input = json!({"pattern": r"main.*?let", "multiline": true, "output_mode": "content"});
    let answer = grep(&shop, input).await;
    assert_eq!(answer["results"][0]["content"], "fn main() {\n    let os = 1;");
    let failure = shop.refused("grep", json!({"pattern": r"main\(\) \{\n"})).await;
    assert!(failure.message.contains("set `multiline`"), "{failure}");
}

/// Golden case 11.5: capped results.
#[tokio::test]
async fn what_is_too_much_is_cut_the_same_way_each_time_and_counted() {
    let shop = Workshop::new("tool-search", json!({"grep": {"default_limits": {"content": 3}}})).await;
    for file in ["b", "a", "c"] {
        shop.put(file, "x\nx\n");
    }
    for _ in 0..20 {
        let answer = grep(&shop, json!({"pattern": "x", "output_mode": "content"})).await;
        let shown: Vec<_> =
            answer["results"].as_array().unwrap().iter().map(|hit| hit["file"].clone()).collect();
        assert_eq!(shown, ["a", "a", "b"]);
        assert_eq!((&answer["total_matches"], &answer["results_capped"]), (&json!(6), &json!(true)));
    }
    let rest =
        grep(&shop, json!({"pattern": "x", "output_mode": "content", "offset": 3, "head_limit": 0})).await;
    assert_eq!((&rest["matches_count"], rest.get("results_capped")), (&json!(3), None));
    let small = Workshop::new("tool-search", json!({"grep": {"max_output_bytes": 20}})).await;
    small.put("a", "x1234567\n".repeat(9));
    let answer = grep(&small, json!({"pattern": "x", "output_mode": "content"})).await;
    assert_eq!((&answer["matches_count"], &answer["results_capped"]), (&json!(2), &json!(true)));
}

/// Golden case 11.5: an unknown type, a bad pattern, a missing path, no match.
#[tokio::test]
async fn what_cannot_be_searched_says_why() {
    let shop = tree(json!({"grep": {"max_file_size": 4}})).await;
    let failure = shop.refused("grep", json!({"pattern": "("})).await;
    assert!(failure.message.starts_with("Invalid regex pattern: "), "{failure}");
    assert_eq!(
        shop.refused("grep", json!({"pattern": "x", "path": "nope"})).await.message,
        "Path not found: nope"
    );
    let failure = shop.refused("grep", json!({"pattern": "x", "type": "klingon"})).await;
    assert!(failure.message.starts_with("Unknown file type: klingon"), "{failure}");
    let failure = shop.refused("grep", json!({"pattern": r"(\w{1,1000}){1,1000}"})).await;
    assert!(failure.message.starts_with("Invalid regex pattern: "), "{failure}");
    let none = grep(&shop, json!({"pattern": "os"})).await;
    assert_eq!((&none["files"], &none["total_matches"]), (&json!([]), &json!(0)));
    assert!(none["warning"].as_str().unwrap().contains("files of more than 4 bytes were not searched"));
    grep(&shop, json!({"pattern": "--files"})).await;
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_outside_the_allowed_paths_is_searched() {
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "os").unwrap();
    let shop = tree(json!({})).await;
    std::os::unix::fs::symlink(outside.path(), shop.path("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), shop.path("file")).unwrap();
    assert_eq!(names(&grep(&shop, json!({"pattern": "os", "include_ignored": true})).await).len(), 6);
    for path in ["folder", "file", "..", "/etc"] {
        for tool in ["grep", "glob"] {
            let failure = shop.refused(tool, json!({"pattern": "*", "path": path})).await;
            let denied = failure.kind.as_deref() == Some("AccessDenied");
            assert!(denied || failure.message.starts_with("Invalid regex"), "{tool} {path}: {failure}");
        }
        let failure = shop.refused("grep", json!({"pattern": "os", "path": path})).await;
        assert_eq!(failure.kind.as_deref(), Some("AccessDenied"));
    }
    let narrow = tree(json!({"allowed_paths": ["src"]})).await;
    assert_eq!(names(&grep(&narrow, json!({"pattern": "os", "path": "src"})).await).len(), 2);
    assert!(narrow.call("grep", json!({"pattern": "os"})).await.is_err());
}

#[tokio::test]
async fn a_wish_to_stop_and_a_deadline_end_a_search() {
    let shop = tree(json!({"grep": {"timeout": 0.000001}})).await;
    let cx = ToolCx { cancel: CancelToken::new(), ..ToolCx::default() };
    cx.cancel.request_immediate();
    for tool in ["grep", "glob"] {
        let stopped = shop.hub.tool(tool).unwrap().execute(json!({"pattern": "x"}), &cx).await;
        assert_eq!(stopped.unwrap_err().kind.as_deref(), Some("Cancelled"));
    }
    let late = grep(&shop, json!({"pattern": "os"})).await;
    assert!(late["warning"].as_str().unwrap().starts_with("stopped after"), "{late}");
}

/// Golden case 11.5: glob.
#[tokio::test]
async fn names_are_found_newest_first() {
    let shop = tree(json!({})).await;
    for (age, name) in ["a.py", "src/b.rs", "src/deep/c.txt"].iter().enumerate() {
        let file = std::fs::File::options().write(true).open(shop.path(name)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        file.set_modified(time).unwrap();
    }
    let answer = shop.call("glob", json!({"pattern": "**/*.{py,rs,txt}"})).await.unwrap();
    let item = |name: &str, size: u64| json!({"path": shop.path(name), "type": "file", "size": size});
    assert_eq!(
        answer["matches"],
        json!([item("a.py", 20), item("src/b.rs", 30), item("src/deep/c.txt", 10)])
    );
    assert_eq!((&answer["total_files"], &answer["count"]), (&json!(3), &json!(3)));
    let found = async |input: Value| shop.call("glob", input).await.unwrap()["count"].clone();
    assert_eq!(found(json!({"pattern": "*.py"})).await, 1);
    assert_eq!(found(json!({"pattern": "**/*.py", "include_ignored": true})).await, 3);
    assert_eq!(found(json!({"pattern": ".hid/*.py"})).await, 1);
    assert_eq!(found(json!({"pattern": "**", "type": "dir"})).await, 2);
    assert_eq!(found(json!({"pattern": "**/*", "type": "any", "exclude": ["deep"]})).await, 4);
    assert_eq!(found(json!({"pattern": format!("{}/*.rs", shop.path("src"))})).await, 1);
    let failure = shop.refused("glob", json!({"pattern": "../*"})).await;
    assert!(failure.message.contains("give the folder as `path`"), "{failure}");
}

#[tokio::test]
async fn a_project_in_a_folder_called_build_is_searched() {
    let shop = Workshop::new("tool-search", json!({"working_dir": "build"})).await;
    shop.put("build/a", "os").put("build/build/b", "os");
    assert_eq!(names(&grep(&shop, json!({"pattern": "os"})).await), ["a"]);
    assert_eq!(shop.call("glob", json!({"pattern": "**/*"})).await.unwrap()["count"], 1);
}

#[tokio::test]
async fn a_plan_with_both_modules_has_the_glob_of_the_search_module_without_a_warning() {
    let files = Workshop::files(json!({})).await;
    files.put("a.rs", "");
    assert_eq!(files.call("glob", json!({"pattern": "*.rs"})).await.unwrap()["count"], 1);

    let built_in = async |id: &str| BuiltIns.find(&id.parse().unwrap()).await.unwrap().unwrap();
    for order in [["tool-filesystem", "tool-search"], ["tool-search", "tool-filesystem"]] {
        let mut builder = TestSession::builder();
        for id in order {
            builder = builder.module(built_in(id).await);
        }
        let session = builder.open().await.unwrap();
        let warnings: Vec<_> =
            session.report().modules.iter().flat_map(|entry| entry.warnings.clone()).collect();
        assert_eq!(warnings, Vec::<String>::new());
        let specs = session.coordinator().tool_specs();
        assert_eq!(specs.iter().filter(|spec| spec.name == "glob").count(), 1);
    }
}
