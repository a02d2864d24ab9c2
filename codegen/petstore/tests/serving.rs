//! Tests of the running server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use petstore::generated::operations::OPERATIONS;

/// The body of all errors.
type Error = petstore::generated::types::Error;

/// The schema of all errors, in the dialect of OpenAPI 3.0.
fn schema_of_errors() -> serde_json::Value {
    let generator = schemars::r#gen::SchemaSettings::openapi3().into_generator();
    let root = generator.into_root_schema_for::<Error>();
    let mut schema = serde_json::to_value(root).expect("a schema is JSON");
    let members = schema.as_object_mut().expect("a schema is an object");
    if let Some(definitions) = members.remove("definitions") {
        schema["components"]["schemas"] = definitions;
    }
    schema
}

/// Sends a request without a body and returns the status and the body of the response.
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
    let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    (status.expect("the response has a status"), body.to_string())
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
    let schema = schema_of_errors();
    let schema = jsonschema::draft4::new(&schema).expect("the schema is valid");
    for operation in OPERATIONS {
        let (status, body) = send(address, operation.method, &concrete(operation.path));
        // Operations with required parameters or a body return 400.
        assert!(
            ![404, 405, 500].contains(&status),
            "{} returns {status}",
            operation.id
        );
        if status >= 400 && operation.method != "HEAD" {
            let body: serde_json::Value = serde_json::from_str(&body).expect("an error is JSON");
            let problem = schema.validate(&body).err();
            assert!(problem.is_none(), "{}: {problem:?}: {body}", operation.id);
        }
    }
    assert_eq!(send(address, "GET", "/no/such/path").0, 404);
    server.close().await.expect("the server stops");
}
