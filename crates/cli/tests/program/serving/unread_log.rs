//! The service must not block when nobody reads its log.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Serving, TIMEOUT};

/// Timeout for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// More lines than a pipe and the log's buffer can hold.
const REQUESTS: usize = 12_000;

impl Serving {
    /// Sends requests that are logged with one line each, and checks that each gets a response.
    fn send_requests(&self) {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        let mut responses = BufReader::new(stream.try_clone().unwrap()).lines();
        let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "nothing-here".repeat(20));
        for _ in 0..REQUESTS / 100 {
            (&stream).write_all(request.repeat(100).as_bytes()).unwrap();
            for _ in 0..100 {
                let status = responses.find(|line| line.as_ref().unwrap().contains("HTTP/1.1 "));
                let status = status.expect("a response").unwrap();
                assert!(status.ends_with("404 Not Found"), "{status}");
            }
        }
    }
}

#[test]
fn a_service_with_an_unread_log_continues_and_logs_the_number_of_dropped_lines() {
    let mut serving = Serving::start();
    serving.send_requests();
    let (read, log) = mpsc::channel();
    let pipe = BufReader::new(serving.process.stderr.take().unwrap());
    thread::spawn(move || {
        pipe.lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .try_for_each(|line| read.send(line))
    });
    let dropped = |line: &Value| line["lines"].as_u64().filter(|_| line["level"] == "WARN");
    let logged = |line: &Value| u64::from(line["status"] == 404);
    let (mut lines, mut counted) = (Vec::new(), 0);
    // The process ends without the lines that are not read within a second of a stop, so all are read first.
    while counted < REQUESTS as u64 {
        let line = log
            .recv_timeout(TIMEOUT)
            .expect("every line is logged or reported as dropped");
        counted += dropped(&line).unwrap_or(0) + logged(&line);
        lines.push(line);
    }
    assert_eq!(counted, REQUESTS as u64);
    assert!(
        lines.iter().any(|line| dropped(line).is_some()),
        "some lines must be dropped"
    );
    assert!(serving.stop().success());
    lines.extend(log.iter());
    let last = lines.iter().rfind(|line| line["message"] == "stopping");
    assert!(last.is_some(), "later lines must be logged");
}

#[test]
fn a_service_with_an_unread_log_stops_on_sigterm() {
    let mut serving = Serving::start();
    serving.send_requests();
    assert!(serving.stop().success());
}
