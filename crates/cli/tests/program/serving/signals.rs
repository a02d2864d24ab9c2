//! Handling of signals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::Signal;

use super::{Serving, TIMEOUT};

/// Returns the status of the response to a GET, or `None` without a response.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).ok()?;
    let response = String::from_utf8_lossy(&response);
    response.split(' ').nth(1)?.parse().ok()
}

/// OPS-9
#[test]
fn a_draining_service_is_not_ready_still_serves_and_stops_at_a_second_signal() {
    let mut serving = Serving::start_with(&["--drain", "1h"]);
    serving.until("it is not ready", |serving| {
        status(serving.internal, "/ready") == Some(200)
    });
    serving.signal(Signal::SIGTERM);
    serving.until("it does not drain", |serving| {
        status(serving.internal, "/ready") == Some(503)
    });
    assert_eq!(status(serving.address, "/openapi.yaml"), Some(200));
    assert_eq!(status(serving.internal, "/live"), Some(200));
    assert!(serving.stop().success());
    assert_eq!(status(serving.address, "/openapi.yaml"), None);
}

/// OPS-9
#[test]
fn sighup_does_not_stop_a_service() {
    let mut serving = Serving::start();
    for _ in 0..3 {
        serving.signal(Signal::SIGHUP);
        assert_eq!(status(serving.address, "/openapi.yaml"), Some(200));
    }
    assert!(serving.stop().success());
}

/// Sends requests until a connection is refused, all of them over one connection or each over a new one. Returns the numbers of
/// responses and of requests without one.
fn send_until_it_stops(address: SocketAddr, keeps_connection: bool, responses: &AtomicUsize) -> usize {
    let end = if keeps_connection { "" } else { "Connection: close\r\n" };
    let request = format!("GET /api/v1/partner/health HTTP/1.1\r\nHost: a\r\n{end}\r\n");
    let mut unanswered = 0;
    while let Ok(stream) = TcpStream::connect(address) {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut reader = BufReader::new(&stream);
        loop {
            // A request that was not sent as a whole has not arrived.
            if (&stream).write_all(request.as_bytes()).is_err() {
                break;
            }
            let Some(closes) = read_response(&mut reader) else {
                unanswered += 1;
                break;
            };
            responses.fetch_add(1, Ordering::Relaxed);
            if closes {
                break;
            }
        }
    }
    unanswered
}

/// Reads a response; returns whether it closes the connection, or `None` if it is not complete.
fn read_response(reader: &mut impl BufRead) -> Option<bool> {
    let (mut closes, mut length) = (false, 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        closes |= line == "connection: close";
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(closes)
}

/// OPS-9
#[test]
#[ignore = "takes minutes"]
fn two_hundred_stops_under_load_leave_no_request_without_a_response() {
    let responses = AtomicUsize::new(0);
    let mut unanswered = [0, 0];
    let mut serving = Serving::start();
    for stop in 0..200 {
        let address = serving.address;
        thread::scope(|scope| {
            let clients: Vec<_> = (0..8)
                .map(|client| {
                    let (keeps_connection, responses) = (client % 2 == 0, &responses);
                    (
                        keeps_connection,
                        scope.spawn(move || send_until_it_stops(address, keeps_connection, responses)),
                    )
                })
                .collect();
            let enough = responses.load(Ordering::Relaxed) + 100 + stop;
            serving.until("it does not respond", |_| responses.load(Ordering::Relaxed) >= enough);
            assert!(serving.stop().success());
            for (keeps_connection, client) in clients {
                unanswered[usize::from(keeps_connection)] += client.join().unwrap();
            }
        });
        serving.restart();
    }
    let [new, kept] = unanswered;
    println!(
        "{} responses; without one: {new} on new connections, {kept} on kept ones",
        responses.into_inner()
    );
    assert_eq!(unanswered, [0, 0]);
}
