//! The service and its database: the schema's migrations, statements, connections, and the sandbox's rows.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]
#![expect(
    clippy::disallowed_methods,
    reason = "what a test arranges is no statement of the service"
)]

mod connections;
mod locks;
mod migrations;
mod rolling;
mod sandbox;
mod scaling;
mod statements;
