//! Tests of the running server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use petstore::generated::operations::OPERATIONS;

/// The members of every error.
const ERROR_MEMBERS: &[&str] = &["message"];

/// Sends a request without a body and returns the status and the text of the response.
fn send(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )
    .expect("the server reads");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .expect("the server responds");
    let status = response
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("the response has a status"), response)
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
        let (status, response) = send(address, operation.method, &concrete(operation.path));
        // Operations with required parameters or a body return 400.
        assert!(
            ![404, 405, 500].contains(&status),
            "{} returns {status}",
            operation.id
        );
        for member in ERROR_MEMBERS {
            let has_member = response.contains(&format!("\"{member}\":"));
            assert!(
                status < 400 || operation.method == "HEAD" || has_member,
                "{} returns an error without `{member}`: {response}",
                operation.id
            );
        }
    }
    assert_eq!(send(address, "GET", "/no/such/path").0, 404);
    server.close().await.expect("the server stops");
}
