//! More connections than there are places for, or descriptors.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};

use bounded_listener::Limits;
use nix::sys::resource::{Resource, setrlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::process::Command;

use super::setup::{GET_BLOCK, HELLO, ask, ends, frame, opening, read_answer, read_frame_kind, soon, start};

fn places(connections: usize, connections_per_address: usize) -> Limits {
    Limits {
        connections,
        connections_per_address,
        ..Limits::default()
    }
}

/// REQ-13
#[tokio::test]
async fn when_all_places_are_taken_the_oldest_idle_connection_gives_way() {
    let limits = Limits {
        exempt: vec!["127.0.0.1/32".parse().unwrap()],
        ..places(4, 1)
    };
    let served = start(limits);
    let (mut busy, mut oldest) = (served.busy().await, served.idle().await);
    let (mut second, mut third) = (served.idle().await, served.idle().await);
    let mut newcomers = Vec::new();
    // The one that was used last is not the oldest any more, whenever it came.
    assert_eq!(ask(&mut second, HELLO).await.status, 200);
    for (newcomer, leaver) in [(97, &mut oldest), (98, &mut third)] {
        let mut stream = served.connect_from(newcomer).await;
        assert_eq!(ask(&mut stream, HELLO).await.status, 200);
        ends(leaver).await;
        newcomers.push(stream);
    }
    assert_eq!(ask(&mut second, HELLO).await.status, 200);
    served.hanging.release.add_permits(1);
    assert_eq!(read_answer(&mut busy).await.status, 200);
    assert_eq!(served.running.tally().gave_way, 2);
}

#[tokio::test]
async fn http2_connections_give_way_at_once_however_many_there_are() {
    let limits = Limits {
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        ..places(100, 1)
    };
    let served = start(limits);
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = served.connect().await;
        let request = frame(1, 5, 1, GET_BLOCK);
        stream.write_all(&[opening(), request].concat()).await.unwrap();
        // With the answer's HEADERS the request is over; from here on the peer says nothing, whatever it is told.
        while soon(read_frame_kind(&mut stream)).await != 1 {}
        silent.push(stream);
    }
    let mut newcomers = Vec::new();
    for _ in 0..100 {
        let mut stream = served.connect().await;
        assert_eq!(ask(&mut stream, HELLO).await.status, 200);
        newcomers.push(stream);
    }
    for stream in &mut silent {
        ends(stream).await;
    }
    assert_eq!(served.running.tally().refused, 0);
}

#[tokio::test]
async fn when_all_places_are_busy_a_new_connection_is_closed_at_once() {
    let limits = Limits {
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        ..places(2, 1)
    };
    let served = start(limits);
    let (mut first, mut second) = (served.busy().await, served.busy().await);
    ends(&mut served.connect().await).await;
    assert_eq!(served.running.tally().refused, 1);
    served.hanging.release.add_permits(2);
    assert_eq!(read_answer(&mut first).await.status, 200);
    assert_eq!(read_answer(&mut second).await.status, 200);
    served.answers_others().await;
}

/// REQ-13
#[tokio::test]
async fn an_address_cannot_have_more_than_its_share() {
    let served = start(places(8, 2));
    let (_first, _second) = (served.busy().await, served.busy().await);
    ends(&mut served.connect().await).await;
    assert_eq!(served.running.tally().refused, 1);
    served.answers_others().await;
}

#[tokio::test]
async fn a_process_out_of_descriptors_answers_who_is_next_and_goes_on() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crowded::without_descriptors", "--ignored", "--nocapture"])
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // The harness says so even where a filter matches nothing.
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
}

/// In a process of its own, since the limit is the whole process's.
#[tokio::test]
#[ignore = "run by a_process_out_of_descriptors_answers_who_is_next_and_goes_on"]
async fn without_descriptors() {
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    let served = start(Limits::default());
    let mut idle = served.idle().await;
    let prepared: Vec<TcpSocket> = (0..3).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(hoard.len() > 20);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, served.running.address.port()));
    let mut streams = Vec::new();
    for socket in prepared {
        let mut stream = socket.connect(address).await.unwrap();
        assert_eq!(ask(&mut stream, HELLO).await.status, 200);
        streams.push(stream);
    }
    // One had to go for each of the three, and no more than that.
    ends(&mut idle).await;
    ends(&mut streams[0]).await;
    ends(&mut streams[1]).await;
    assert_eq!(ask(&mut streams[2], HELLO).await.status, 200);
    assert_eq!(served.running.tally().gave_way, 3);
    assert!(served.running.tally().accept_failed > 0);
    drop(hoard);
    served.answers_others().await;
}
