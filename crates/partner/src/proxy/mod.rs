//! `partner proxy`: signs requests for clients that cannot sign.
//!
//! The proxy listens on the loopback address only. It forwards each request byte for byte with the four headers of the signature,
//! and streams the response back.

pub(crate) mod forward;
mod guard;

use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::profile::Connect;
use forward::{Body, Forward};
use guard::Guard;

/// The end of the help text.
pub const EXAMPLES: &str = "\
While the proxy runs, every user of this machine can send requests with your key. Web pages cannot: the proxy rejects requests from \
other origins, unless --allow-origin names the origin, and requests with another host name (DNS rebinding). It does not sign requests \
to paths outside /api/v1/partner.

Examples:
  partner proxy --profile sandbox --port 8099
  curl http://127.0.0.1:8099/api/v1/partner/health
  schemathesis run http://127.0.0.1:8099/openapi.yaml \\
      --url http://127.0.0.1:8099";

/// Timeout for receiving the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of `proxy`.
#[derive(Args, Debug)]
pub struct ProxyArgs {
    /// The port on 127.0.0.1; 0 selects a free one
    #[arg(long, default_value_t = 8099)]
    pub port: u16,
    /// An origin whose pages may use the proxy, such as https://tools.example.org; can be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Do not print a line for each request
    #[arg(long)]
    pub quiet: bool,
}

pub(crate) async fn run(connect: &Connect, args: &ProxyArgs) -> Result<ExitCode, Failure> {
    let account = connect.account()?;
    // Rejects an invalid URL before the proxy listens.
    account.client()?;
    let listener = bind(args.port).await?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        guard: Guard::new(address.port(), args.allow_origin.clone()),
        forward: Forward::new(&account)?,
        quiet: args.quiet,
    });
    if connect.json {
        println!(
            "{}",
            serde_json::json!({ "address": format!("http://{address}"), "signs_for": account.base_url })
        );
    } else {
        println!(
            "http://{address} signs requests for {} with key {}. Press Ctrl-C to stop.",
            account.base_url, account.key_id
        );
    }
    let handle = move |request| {
        let shared = shared.clone();
        async move { handle(&shared, request).await }
    };
    tokio::select! {
        () = serve(listener, handle) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Listens on a port of the loopback address; 0 selects a free one.
pub(crate) async fn bind(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .await
        .map_err(|error| Failure::Failed(format!("failed to listen on 127.0.0.1:{port}: {error}")))
}

/// Serves connections and never returns. An error of the handler closes the connection without a response.
pub(crate) async fn serve<H, F, E>(listener: TcpListener, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<Body>, E>> + Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // For example, no file descriptors are left: wait until some are closed.
                eprintln!("failed to accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let handle = handle.clone();
        tokio::spawn(async move {
            let service = service_fn(handle);
            // Errors of a connection are visible to its client.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

struct Shared {
    guard: Guard,
    forward: Forward,
    quiet: bool,
}

async fn handle(shared: &Shared, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let started = Instant::now();
    let (method, target) = (request.method().clone(), request.uri().to_string());
    let origin = shared.guard.allowed_origin(request.headers());
    let mut response = match shared.guard.check(&request) {
        Err((status, message)) => forward::error_response(status, message),
        Ok(()) if origin.is_some() && method == http::Method::OPTIONS => guard::preflight(request.headers()),
        Ok(()) => shared.forward.send(request).await,
    };
    if let Some(origin) = origin {
        guard::add_cors_headers(response.headers_mut(), origin);
    }
    if !shared.quiet {
        let (status, elapsed) = (response.status().as_u16(), started.elapsed().as_millis());
        eprintln!("{method} {target} {status} {elapsed} ms");
    }
    Ok(response)
}
