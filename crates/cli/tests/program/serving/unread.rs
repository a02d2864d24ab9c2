//! Memory of a service whose clients send requests and read no responses.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, join_all};
use nix::unistd::Pid;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::service::try_send;
use partner_api_tests::{ALPHA, BETA, Request};
use tokio::net::TcpSocket;

use super::Serving;

const CONNECTIONS: usize = 200;
const ADDRESSES: usize = 16;

/// The memory that the connections may occupy in all.
const MEGABYTES: u64 = 64;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";
const INSPECTIONS: &str = "/api/v1/partner/inspections?limit=100";

/// Returns a line of the process's status, such as `VmRSS`, in bytes.
fn memory(process: Pid, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    let kilobytes = value.trim_matches([':', ' ', '\t', 'k', 'B']);
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// Uses all streams of an HTTP/2 connection, and reads only the heads of the responses. Returns when all have arrived or the
/// connection is closed. The returned value keeps it open.
async fn ask(service: SocketAddr, from: Ipv4Addr, target: &'static str) -> Box<dyn Send> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let stream = socket.connect(service).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let Ok((client, connection)) = builder.initial_window_size(0).handshake::<_, &[u8]>(stream).await else {
        return Box::new(());
    };
    let connection = tokio::spawn(connection);
    let send = async || {
        let (head, _) = Request::get(target).signed_by(&ALPHA).build("a").into_parts();
        let mut request = http::Request::get(format!("http://a{target}")).body(()).unwrap();
        *request.headers_mut() = head.headers;
        request.headers_mut().remove("host");
        let mut client = client.clone().ready().await.ok()?;
        let (response, _) = client.send_request(request, true).ok()?;
        response.await.ok()
    };
    // The service's settings have arrived before its first response.
    let first = send().await;
    let more = client.current_max_send_streams().saturating_sub(1);
    let responses = join_all((0..more).map(|_| send())).await;
    Box::new((client, connection, first, responses))
}

/// REQ-13
#[tokio::test(flavor = "multi_thread")]
async fn responses_that_nobody_reads_occupy_little_memory_and_disturb_nobody() {
    let database = Database::create().await;
    let url = cluster::url(&database.config());
    let serving = Serving::start_with(&["--database-url", &url, "--renderers", "0"]);
    let process = Pid::from_raw(serving.process.id().try_into().unwrap());
    let service = serving.address;
    let read = async || {
        let request = Request::get(ORGANIZATIONS).signed_by(&BETA);
        try_send(service, &request)
            .await
            .map(|response| response.status.as_u16())
            .unwrap_or(0)
    };
    for _ in 0..100 {
        assert_eq!(read().await, 200);
    }
    let before = memory(process, "VmRSS");
    // Resets `VmHWM`.
    fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let attack = async {
        let connections = (0..CONNECTIONS).map(|number| -> BoxFuture<'_, Box<dyn Send>> {
            let from = Ipv4Addr::new(127, 0, 1, u8::try_from(1 + number % ADDRESSES).unwrap());
            let target = if number % 5 == 0 { "/openapi.json" } else { INSPECTIONS };
            Box::pin(ask(service, from, target))
        });
        let open = join_all(connections).await;
        is_over.store(true, Ordering::Relaxed);
        open
    };
    let others = async {
        let mut statuses = Vec::new();
        while !is_over.load(Ordering::Relaxed) || statuses.len() < 10 {
            statuses.push(read().await);
        }
        statuses
    };
    let (open, statuses) = futures::join!(attack, others);
    let grown = memory(process, "VmHWM").saturating_sub(before);
    println!(
        "{before} bytes before, at most {grown} more, {} reads of others",
        statuses.len()
    );
    assert!(grown < MEGABYTES << 20, "{grown}");
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    drop(open);
}
