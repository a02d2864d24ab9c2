//! Measures how soon each of two replicas succeeds again after an outage of PostgreSQL. `script/histories --reconnecting` prints the
//! times, and asserts nothing about them.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use partner_api_tests::service::try_send;
use partner_api_tests::suspended_processes::SuspendedProcesses;
use partner_api_tests::{ALPHA, Request};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::config::Host;

use super::clients::{ORGANIZATIONS, PATIENCE};
use super::proxy::Proxy;
use super::replica::{Addresses, Replica};
use super::setting::Setting;
use super::{Kind, REPLICAS};

/// The number of outages of each kind and duration; 3 by default.
const VARIABLE: &str = "HISTORY_ROUNDS";

/// Set by `script/histories` where `nft` can drop packets, in a network namespace of this process.
const HAS_NFT: &str = "HISTORY_NFT";

/// The clients of each replica.
const CLIENTS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Outage {
    Killed,
    Frozen,
    /// The kernel drops all packets, also those of new connections.
    Dropped,
    /// Connections are established, and nothing is forwarded.
    BlackHole,
    Refused,
}

/// The outages, with their durations in seconds.
const OUTAGES: [(Outage, &[u64]); 5] = [
    (Outage::Killed, &[1, 20]),
    (Outage::Frozen, &[5, 20, 60]),
    (Outage::Dropped, &[5, 20, 60]),
    (Outage::BlackHole, &[5, 20]),
    (Outage::Refused, &[1, 20]),
];

/// Sends reads to a replica, and publishes the time of each success.
async fn read(addresses: Addresses, name: String, successes: watch::Sender<Instant>) {
    for number in 0.. {
        let request = Request::get(ORGANIZATIONS)
            .signed_by(&ALPHA)
            .nonce(&format!("{name}-{number}"));
        if let Ok(Ok(response)) = timeout(PATIENCE, try_send(addresses.public, &request)).await
            && response.status == 200
        {
            successes.send_replace(Instant::now());
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Runs commands of nftables.
async fn nft(commands: &str) {
    let mut nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    nft.stdin.take().unwrap().write_all(commands.as_bytes()).await.unwrap();
    assert!(nft.wait().await.unwrap().success(), "nft must accept {commands}");
}

/// Lets an outage strike, and returns the time at which PostgreSQL is back.
async fn strike(outage: Outage, time: Duration, setting: &mut Setting, proxies: &[Proxy]) -> Instant {
    let cluster = setting.cluster.as_mut().unwrap();
    match outage {
        Outage::Killed => {
            cluster.kill().await;
            sleep(time).await;
            let config = cluster.config();
            let returns = async {
                while config.connect(tokio_postgres::NoTls).await.is_err() {
                    sleep(Duration::from_millis(5)).await;
                }
                Instant::now()
            };
            futures::join!(returns, cluster.restart()).0
        }
        Outage::Frozen => {
            let frozen = SuspendedProcesses::processes(cluster.processes().await);
            sleep(time).await;
            drop(frozen);
            Instant::now()
        }
        Outage::Dropped => {
            for proxy in proxies {
                let port = proxy.address.port();
                nft(&format!(
                    "add table inet outage; add chain inet outage input {{ type filter hook input priority 0; }}; \
                    add rule inet outage input tcp dport {port} drop; add rule inet outage input tcp sport {port} drop"
                ))
                .await;
            }
            sleep(time).await;
            nft("delete table inet outage").await;
            Instant::now()
        }
        Outage::BlackHole => {
            futures::future::join_all(proxies.iter().map(|proxy| proxy.black_hole(time))).await;
            Instant::now()
        }
        Outage::Refused => {
            futures::future::join_all(proxies.iter().map(|proxy| proxy.refuse(time))).await;
            Instant::now()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes and asserts nothing; script/histories --reconnecting runs it"]
async fn the_time_until_each_replica_succeeds_again() {
    let rounds = std::env::var(VARIABLE).map_or(3, |rounds| rounds.parse().unwrap());
    let mut setting = Setting::new(Kind::Database).await;
    let database = setting.cluster.as_ref().unwrap().config();
    let [Host::Unix(socket)] = database.get_hosts() else {
        panic!("a private cluster has one socket");
    };
    let (user, name) = (database.get_user().unwrap(), database.get_dbname().unwrap());
    let (mut proxies, mut replicas, mut successes) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..REPLICAS {
        let proxy = Proxy::start(socket.join(".s.PGSQL.5432")).await;
        let url = format!("postgresql://{user}@{}/{name}?sslmode=disable", proxy.address);
        let addresses = Addresses::new();
        let replica = Replica::start(addresses, &url, setting.folder.path(), &[]).await;
        let (sender, received) = watch::channel(Instant::now());
        for client in 0..CLIENTS {
            let nonces = format!("reconnecting-{number}-{client}");
            tokio::spawn(read(addresses, nonces, sender.clone()));
        }
        proxies.push(proxy);
        replicas.push(replica);
        successes.push(received);
    }
    println!("| Outage | Duration | Outages | Median | Longest | Load average |\n|---|---|---|---|---|---|");
    for (outage, durations) in OUTAGES {
        if matches!(outage, Outage::Dropped) && std::env::var_os(HAS_NFT).is_none() {
            eprintln!(
                "leaving out outages in which the kernel drops packets: they need root, ip and nft (packages iproute2 and nftables)"
            );
            continue;
        }
        for seconds in durations {
            let mut times = Vec::new();
            for _ in 0..rounds {
                // Both replicas are well.
                for replica in &mut successes {
                    replica.mark_unchanged();
                    replica.changed().await.unwrap();
                }
                let back = strike(outage, Duration::from_secs(*seconds), &mut setting, &proxies).await;
                for replica in &mut successes {
                    let first = *replica.wait_for(|success| *success >= back).await.unwrap();
                    times.push(first - back);
                }
                eprintln!("{outage:?} for {seconds} s: {:?}", &times[times.len() - REPLICAS..]);
            }
            times.sort();
            let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!(
                "| {outage:?} | {seconds} s | {rounds} | {:.2} s | {:.2} s | {} |",
                times[times.len() / 2].as_secs_f64(),
                times[times.len() - 1].as_secs_f64(),
                load.split(' ').next().unwrap_or_default()
            );
        }
    }
}
