//! A log that nobody reads.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{PATIENCE, Serving};

/// How long an answer may take.
const ANSWERED: Duration = Duration::from_secs(20);

/// More lines than a pipe and the log's buffer take together.
const REQUESTS: usize = 12_000;

impl Serving {
    /// Sends requests that leave a line each, one after the other, and reads the answer of each.
    fn answers_all(&self) {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(ANSWERED)).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
        let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "nothing-here".repeat(20));
        for _ in 0..REQUESTS / 100 {
            (&stream).write_all(request.repeat(100).as_bytes()).unwrap();
            for _ in 0..100 {
                let status = answers.find(|line| line.as_ref().unwrap().contains("HTTP/1.1 "));
                let status = status.expect("an answer").unwrap();
                assert!(status.ends_with("404 Not Found"), "{status}");
            }
        }
    }
}

#[test]
fn a_service_whose_log_nobody_reads_goes_on_and_the_log_tells_how_much_is_missing() {
    let mut serving = Serving::start();
    serving.answers_all();
    let (read, log) = mpsc::channel();
    let pipe = BufReader::new(serving.process.stderr.take().unwrap());
    thread::spawn(move || {
        pipe.lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .try_for_each(|line| read.send(line))
    });
    let missing = |line: &Value| line["lines"].as_u64().filter(|_| line["level"] == "WARN");
    let mut lines = Vec::new();
    // From then on there is room for more.
    while lines.last().and_then(missing).is_none() {
        lines.push(log.recv_timeout(PATIENCE).expect("a line that tells it"));
    }
    assert!(serving.stop().success());
    lines.extend(log.iter());
    let requests = lines.iter().filter(|line| line["status"] == 404).count();
    let dropped: u64 = lines.iter().filter_map(missing).sum();
    assert_eq!(requests as u64 + dropped, REQUESTS as u64);
    let last = lines.iter().rfind(|line| line["message"] == "stopping");
    assert!(last.is_some(), "what came after is there");
}

#[test]
fn a_service_whose_log_nobody_reads_ends_when_it_is_told_to() {
    let mut serving = Serving::start();
    serving.answers_all();
    assert!(serving.stop().success());
}
