//! More connections than connection slots or file descriptors.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};

use bounded_listener::Limits;
use nix::sys::resource::{Resource, setrlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::process::Command;

use super::setup::{GET_BLOCK, HELLO, ends, exchange, frame, opening, read_frame_kind, read_response, soon, start};

fn limits(connections: usize, connections_per_address: usize) -> Limits {
    Limits {
        connections,
        connections_per_address,
        ..Limits::default()
    }
}

/// REQ-13
#[tokio::test]
async fn when_all_slots_are_taken_the_longest_idle_connection_is_evicted() {
    let limits = Limits {
        exempt: vec!["127.0.0.1/32".parse().unwrap()],
        ..limits(4, 1)
    };
    let served = start(limits);
    let (mut busy, mut oldest) = (served.busy().await, served.idle().await);
    let (mut second, mut third) = (served.idle().await, served.idle().await);
    let mut newcomers = Vec::new();
    // After this request, the second connection is no longer the one that has been idle the longest.
    assert_eq!(exchange(&mut second, HELLO).await.status, 200);
    for (newcomer, evicted) in [(97, &mut oldest), (98, &mut third)] {
        let mut stream = served.connect_from(newcomer).await;
        assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
        ends(evicted).await;
        newcomers.push(stream);
    }
    assert_eq!(exchange(&mut second, HELLO).await.status, 200);
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut busy).await.status, 200);
    assert_eq!(served.running.metrics().evicted, 2);
}

#[tokio::test]
async fn any_number_of_idle_http2_connections_is_evicted_at_once() {
    let limits = Limits {
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        ..limits(100, 1)
    };
    let served = start(limits);
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = served.connect().await;
        let request = frame(1, 5, 1, GET_BLOCK);
        stream.write_all(&[opening(), request].concat()).await.unwrap();
        // After the HEADERS of the response the peer sends nothing more, whatever it receives.
        while soon(read_frame_kind(&mut stream)).await != 1 {}
        silent.push(stream);
    }
    let mut newcomers = Vec::new();
    for _ in 0..100 {
        let mut stream = served.connect().await;
        assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
        newcomers.push(stream);
    }
    for stream in &mut silent {
        ends(stream).await;
    }
    assert_eq!(served.running.metrics().rejected, 0);
}

#[tokio::test]
async fn when_all_slots_are_busy_a_new_connection_is_closed_at_once() {
    let limits = Limits {
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        ..limits(2, 1)
    };
    let served = start(limits);
    let (mut first, mut second) = (served.busy().await, served.busy().await);
    ends(&mut served.connect().await).await;
    assert_eq!(served.running.metrics().rejected, 1);
    served.hanging.release.add_permits(2);
    assert_eq!(read_response(&mut first).await.status, 200);
    assert_eq!(read_response(&mut second).await.status, 200);
    served.responds_to_others().await;
}

/// REQ-13
#[tokio::test]
async fn an_address_cannot_use_more_slots_than_its_limit() {
    let served = start(limits(8, 2));
    let (_first, _second) = (served.busy().await, served.busy().await);
    ends(&mut served.connect().await).await;
    assert_eq!(served.running.metrics().rejected, 1);
    served.responds_to_others().await;
}

#[tokio::test]
async fn a_process_out_of_descriptors_serves_the_next_client_and_recovers() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crowded::without_descriptors", "--ignored", "--nocapture"])
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // The harness also succeeds if the filter matches no test.
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
}

/// Runs in a separate process, because the limit applies to the whole process.
#[tokio::test]
#[ignore = "run by a_process_out_of_descriptors_serves_the_next_client_and_recovers"]
async fn without_descriptors() {
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    let served = start(Limits::default());
    let mut idle = served.idle().await;
    let prepared: Vec<TcpSocket> = (0..3).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let open_files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(open_files.len() > 20);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, served.running.address.port()));
    let mut streams = Vec::new();
    for socket in prepared {
        let mut stream = socket.connect(address).await.unwrap();
        assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
        streams.push(stream);
    }
    // Exactly one connection was evicted for each of the three.
    ends(&mut idle).await;
    ends(&mut streams[0]).await;
    ends(&mut streams[1]).await;
    assert_eq!(exchange(&mut streams[2], HELLO).await.status, 200);
    assert_eq!(served.running.metrics().evicted, 3);
    assert!(served.running.metrics().accept_failed > 0);
    drop(open_files);
    served.responds_to_others().await;
}
