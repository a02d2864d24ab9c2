//! Handling of signals.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

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
