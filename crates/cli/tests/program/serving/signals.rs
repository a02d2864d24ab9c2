//! What signals do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use nix::sys::signal::Signal;

use super::{PATIENCE, Serving};

/// The status of what is answered there to a GET; none if nobody answers.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1)?.parse().ok()
}

/// OPS-9
#[test]
fn a_service_that_drains_says_so_serves_on_and_ends_at_once_when_it_is_told_again() {
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
fn a_service_outlives_a_hangup() {
    let mut serving = Serving::start();
    for _ in 0..3 {
        serving.signal(Signal::SIGHUP);
        assert_eq!(status(serving.address, "/openapi.yaml"), Some(200));
    }
    assert!(serving.stop().success());
}
