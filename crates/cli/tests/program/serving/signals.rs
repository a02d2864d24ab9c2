//! Handling of signals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::Signal;
use tokio_util::io::InspectReader;

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

/// Sends requests over HTTP/2, four at a time on a connection, until a connection is refused. Returns the number of requests without
/// a response. A request after the last one that the server's GOAWAY names has not arrived (RFC 9113, section 6.8).
#[tokio::main(flavor = "current_thread")]
async fn send_over_http2_until_it_stops(address: SocketAddr, responses: &AtomicUsize) -> usize {
    let mut unanswered = 0;
    while let Ok(stream) = tokio::net::TcpStream::connect(address).await {
        let mut received = Vec::new();
        let stream = InspectReader::new(stream, |bytes: &[u8]| received.extend_from_slice(bytes));
        let Ok((client, connection)) = h2::client::Builder::new().handshake(stream).await else {
            continue;
        };
        let [first, second, third, fourth] = std::array::from_fn(|_| send_on(client.clone(), responses));
        // The connection ends with its last handle.
        drop(client);
        let (_, failed) = tokio::join!(connection, async { tokio::join!(first, second, third, fourth) });
        let last = last_accepted_stream(&received);
        let failed = [failed.0, failed.1, failed.2, failed.3];
        unanswered += failed.into_iter().flatten().filter(|id| *id <= last).count();
    }
    unanswered
}

/// Returns the ID in the last GOAWAY frame of a connection.
fn last_accepted_stream(mut received: &[u8]) -> u32 {
    const GOAWAY: u8 = 7;
    let mut last = u32::MAX;
    while let Some((header, rest)) = received.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            break;
        };
        if header[3] == GOAWAY {
            last = u32::from_be_bytes(*payload.first_chunk().unwrap());
        }
        received = rest;
    }
    last
}

/// Sends requests one after the other until the connection accepts no more. Returns the stream of the request without a response.
async fn send_on(client: h2::client::SendRequest<&'static [u8]>, responses: &AtomicUsize) -> Option<u32> {
    // After the server's GOAWAY, no request is sent.
    while let Ok(mut ready) = client.clone().ready().await {
        let request = http::Request::get("http://a/api/v1/partner/health").body(()).unwrap();
        let Ok((response, _)) = ready.send_request(request, true) else {
            return None;
        };
        let id = response.stream_id().as_u32();
        let Ok(response) = response.await else {
            return Some(id);
        };
        let mut body = response.into_body();
        while let Some(bytes) = body.data().await {
            let Ok(bytes) = bytes else { return Some(id) };
            body.flow_control().release_capacity(bytes.len()).unwrap();
        }
        responses.fetch_add(1, Ordering::Relaxed);
    }
    None
}

/// OPS-9. `STOPS=200` repeats it as often.
#[test]
fn stops_under_load_leave_no_request_without_a_response() {
    let stops = std::env::var("STOPS").map_or(10, |stops| stops.parse().unwrap());
    let responses: [AtomicUsize; 3] = Default::default();
    let mut unanswered = [0; 3];
    let mut serving = Serving::start();
    for _ in 0..stops {
        let address = serving.address;
        thread::scope(|scope| {
            let clients: Vec<_> = (0..9)
                .map(|client| {
                    let kind = client % 3;
                    let responses = &responses[kind];
                    let send = move || match kind {
                        0 => send_until_it_stops(address, false, responses),
                        1 => send_until_it_stops(address, true, responses),
                        _ => send_over_http2_until_it_stops(address, responses),
                    };
                    (kind, scope.spawn(send))
                })
                .collect();
            let before = responses.each_ref().map(|count| count.load(Ordering::Relaxed));
            serving.until("it does not respond", |_| {
                let mut counts = responses.iter().zip(before);
                counts.all(|(count, before)| count.load(Ordering::Relaxed) > before + 30)
            });
            assert!(serving.stop().success());
            for (kind, client) in clients {
                unanswered[kind] += client.join().unwrap();
            }
        });
        serving.restart();
    }
    println!(
        "{stops} stops; on new connections, on kept ones, over HTTP/2: {responses:?} responses, {unanswered:?} requests without one"
    );
    assert_eq!(unanswered, [0; 3]);
}
