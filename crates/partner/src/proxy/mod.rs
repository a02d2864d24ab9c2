//! `partner proxy`: signs for whatever cannot sign by itself. It listens on this machine alone, and what it is sent it sends on
//! byte for byte, with the four headers; answers are streamed back as they come.

mod forward;
mod guard;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::profile::Connect;
use forward::Forward;
use guard::Guard;

/// What the help says at its end.
pub const EXAMPLES: &str = "\
While it runs, whoever works on this machine can send requests with your key. Pages of other sites cannot: a request that a browser
makes for another origin is refused, unless --allow-origin names it, and so is one for another host name (DNS rebinding).
What is not below /api/v1/partner is passed on unsigned.

Examples:
  partner --profile sandbox proxy --port 8099
  curl http://127.0.0.1:8099/api/v1/partner/health
  schemathesis run http://127.0.0.1:8099/openapi.yaml --url http://127.0.0.1:8099";

/// How long a client may take for its headers.
const HEADERS: Duration = Duration::from_secs(30);

/// The arguments of `proxy`.
#[derive(Args, Debug)]
pub struct ProxyArgs {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 8099)]
    pub port: u16,
    /// An origin whose pages may use it, such as https://tools.example.org; can be given several times
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Do not print a line for each request
    #[arg(long)]
    pub quiet: bool,
}

pub(crate) async fn run(connect: &Connect, args: &ProxyArgs) -> Result<ExitCode, Failure> {
    let account = connect.account()?;
    // What cannot be an address is found out before anything listens.
    account.client()?;
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)))
        .await
        .map_err(|error| Failure::Failed(format!("port {} on 127.0.0.1: {error}", args.port)))?;
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
            "http://{address} signs for {} with {}. Ctrl-C stops.",
            account.base_url, account.key_id
        );
    }
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, say: others are given back in a moment.
                eprintln!("a connection could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&shared, request));
            // How a connection ends is its client's business.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS)
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

async fn answer(
    shared: &Shared,
    request: hyper::Request<hyper::body::Incoming>,
) -> Result<hyper::Response<forward::Body>, Infallible> {
    let began = Instant::now();
    let (method, target) = (request.method().clone(), request.uri().to_string());
    let origin = shared.guard.allowed_origin(request.headers());
    let mut answer = match shared.guard.judge(&request) {
        Err(refused) => forward::told(refused.0, refused.1),
        Ok(()) if origin.is_some() && method == http::Method::OPTIONS => guard::preflight(request.headers()),
        Ok(()) => shared.forward.send(request).await,
    };
    if let Some(origin) = origin {
        guard::share(answer.headers_mut(), origin);
    }
    if !shared.quiet {
        let (status, took) = (answer.status().as_u16(), began.elapsed().as_millis());
        eprintln!("{method} {target} {status} {took} ms");
    }
    Ok(answer)
}
