use super::*;
use crate::hooks::logging::file::Sharing;
use crate::hooks::logging::line::{Entry, Level};
use amplifier_core::contracts::EventStamp;
use amplifier_protocol::time::Timestamp;
use serde_json::{Map, Value, json};
use std::path::Path;

fn event(number: u64) -> Line {
    event_at(Level::Info, number)
}

fn event_at(level: Level, number: u64) -> Line {
    let stamp = EventStamp {
        session_id: "s".parse().unwrap(),
        parent_id: None,
        turn: 0,
        sequence: number,
        timestamp: Timestamp::default(),
    };
    Line::Event(Box::new(Entry {
        name: "test:event".parse().unwrap(),
        stamp,
        level,
        data: Map::from_iter([("n".to_owned(), json!(number))]),
    }))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_full_queue_counts_what_it_leaves_out_and_the_log_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log.jsonl");
    let config = Config { max_waiting_lines: 3, ..Config::default() };
    let queue = Queue::start(LogFile::new(path.clone(), Sharing::Own, 1_000_000, 2), &config);
    // One thread: the writer cannot run before the first await, so exactly three fit.
    for number in 1..=10 {
        queue.offer(event(number));
    }
    queue.flush().await.unwrap();
    queue.offer(event(11));
    queue.flush().await.unwrap();
    let lines = lines(&path);
    let dropped: Vec<_> = lines.iter().filter(|line| line["event"] == "log:dropped").collect();
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0]["data"], json!({"lines": 7}));
    let written: Vec<_> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(written, [1, 2, 3, 11]);
}

#[tokio::test]
async fn a_disk_that_fails_is_told_once_and_counted_and_the_log_goes_on() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("logs");
    let path = folder.join("log.jsonl");
    std::fs::write(&folder, "a file where a folder should be").unwrap();
    let queue = Queue::start(LogFile::new(path.clone(), Sharing::Own, 1_000_000, 2), &Config::default());
    for number in 1..=4 {
        queue.offer(event(number));
        assert!(queue.flush().await.unwrap_err().contains("cannot be written"));
    }
    assert!(queue.trouble().unwrap().contains("cannot be written"));
    assert_eq!(queue.trouble(), None);
    std::fs::remove_file(&folder).unwrap();
    queue.offer(event(5));
    queue.flush().await.unwrap();
    let lines = lines(&path);
    assert_eq!(lines[0]["data"], json!({"lines": 4}));
    assert_eq!(lines[1]["seq"], json!(5));
}

#[tokio::test]
async fn a_line_that_is_too_long_keeps_its_head() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log.jsonl");
    let config = Config { max_line_bytes: 10, ..Config::default() };
    let queue = Queue::start(LogFile::new(path.clone(), Sharing::Own, 1_000_000, 2), &config);
    queue.offer(event(1));
    queue.flush().await.unwrap();
    let line = &lines(&path)[0];
    assert_eq!((line["seq"].as_u64(), line.get("data")), (Some(1), None));
    assert!(line["omitted_bytes"].as_u64().unwrap() > 10);
}

#[tokio::test(start_paused = true)]
async fn lines_wait_for_each_other_a_moment_and_an_error_or_a_filling_queue_for_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log.jsonl");
    let config = Config { max_waiting_lines: 8, ..Config::default() };
    let queue = Queue::start(LogFile::new(path.clone(), Sharing::Own, 1_000_000, 2), &config);
    // The clock stands still until somebody waits for it, and the disk takes its own time.
    let written = async |count: usize| {
        while std::fs::read_to_string(&path).unwrap_or_default().lines().count() < count {
            tokio::task::yield_now().await;
        }
    };
    let began = tokio::time::Instant::now();
    queue.offer(event_at(Level::Error, 1));
    written(1).await;
    (2..=7).for_each(|number| queue.offer(event(number)));
    written(7).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    queue.offer(event(8));
    tokio::time::sleep(MOMENT / 2).await;
    queue.offer(event(9));
    assert_eq!(lines(&path).len(), 7);
    tokio::time::sleep(MOMENT).await;
    written(9).await;
}
