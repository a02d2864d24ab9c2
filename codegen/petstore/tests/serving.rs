//! Tests of the running server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use petstore::generated::operations::OPERATIONS;

/// Sends a request without a body and returns the status of the response.
fn status(address: SocketAddr, method: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )
    .expect("the server reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the server answers");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.expect("the answer has a status")
}

/// Replaces each variable of a path with 1.
fn concrete(path: &str) -> String {
    let segments = path.split('/').map(|segment| {
        if segment.starts_with('{') {
            "1"
        } else {
            segment
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_and_nothing_else_is_served() {
    let server = petstore::serve(Default::default()).expect("the server starts");
    let address = server.local_addr();
    for operation in OPERATIONS {
        let status = status(address, operation.method, &concrete(operation.path));
        // Operations with required parameters or a body answer 400.
        assert!(
            ![404, 405, 500].contains(&status),
            "{} answers {status}",
            operation.id
        );
    }
    assert_eq!(status(address, "GET", "/no/such/path"), 404);
    server.close().await.expect("the server stops");
}
