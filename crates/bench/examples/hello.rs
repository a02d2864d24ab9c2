//! The baseline for HTTP: Dropshot's own server with one trivial endpoint and no log.
//!
//! Prints the address that it listens on, and serves until it is killed.

use dropshot::{
    ApiDescription, ConfigDropshot, HttpError, HttpResponseOk, HttpServer, RequestContext, ServerBuilder, endpoint,
};

/// The response.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Hello {
    status: &'static str,
}

/// Responds at once.
#[endpoint { method = GET, path = "/hello" }]
async fn hello(_context: RequestContext<()>) -> Result<HttpResponseOk<Hello>, HttpError> {
    Ok(HttpResponseOk(Hello { status: "ok" }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut description = ApiDescription::new();
    description.register(hello)?;
    let config = ConfigDropshot {
        bind_address: ([127, 0, 0, 1], 0).into(),
        ..ConfigDropshot::default()
    };
    let log = slog::Logger::root(slog::Discard, slog::o!());
    let server: HttpServer<()> = ServerBuilder::new(description, (), log).config(config).start()?;
    println!("{}", server.local_addr());
    server.await?;
    Ok(())
}
