//! Kills `partner measure --watch` at random while files arrive, connections break and the service is replaced.
//!
//! The times come from a fixed seed. `script/watch-trial` does the same with the real programs for as long as you like.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use partner_api_tests::{ALPHA, Service};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::sleep;

use crate::gateway::Gateway;
use crate::program::Program;
use crate::watch::{ONCE, names, package};

const FILES: usize = 60;
const SEED: u64 = 20_261_122;

fn random_pause(random: &mut StdRng, max: u64) -> Duration {
    Duration::from_millis(random.random_range(5..max))
}

/// Writes files to the folder as devices do. Half of them are renamed into it, the others are written there in two parts with a
/// pause. Half of them have an `external_id`, and their names repeat.
async fn devices(folder: &Path, mut random: StdRng) {
    for number in 0..FILES {
        let mut package = package(&format!("D-{number}"));
        if random.random_bool(0.5) {
            package = package.replacen('{', &format!(r#"{{"external_id":"own-{number}","#), 1);
        }
        let path = folder.join(format!("result-{}.json", number % 7));
        // A device that reuses a name waits until the previous file has been claimed.
        while path.exists() {
            sleep(Duration::from_millis(20)).await;
        }
        if random.random_bool(0.5) {
            let beside = folder.join(format!("result-{number}.part"));
            fs::write(&beside, &package).unwrap();
            fs::rename(&beside, &path).unwrap();
        } else {
            let half = random.random_range(1..package.len());
            let mut file = fs::File::create(&path).unwrap();
            file.write_all(&package.as_bytes()[..half]).unwrap();
            sleep(random_pause(&mut random, 900)).await;
            file.write_all(&package.as_bytes()[half..]).unwrap();
        }
        sleep(random_pause(&mut random, 100)).await;
    }
}

/// MEA-5, MEA-10, MEA-16, SVC-2
#[tokio::test]
async fn a_watch_killed_at_random_records_every_file_exactly_once() {
    let mut service = Service::start().await;
    let gateway = Gateway::to(&service.base_url).await;
    let program = Program::at(&gateway.base_url, &ALPHA);
    let folder = program.path("spool");
    fs::create_dir(&folder).unwrap();
    let mut random = StdRng::seed_from_u64(SEED);
    let devices = tokio::spawn({
        let (folder, random) = (folder.clone(), StdRng::seed_from_u64(SEED + 1));
        async move { devices(&folder, random).await }
    });
    let (mut kills, mut replaced) = (0, 0);
    while !devices.is_finished() {
        let mut watch = program.command(&ONCE[..ONCE.len() - 1]);
        let mut child = watch
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..random.random_range(1..4) {
            sleep(random_pause(&mut random, 300)).await;
            gateway.cut();
        }
        if random.random_bool(0.3) {
            gateway.point(None);
            let next = service.replica().await;
            service.stop().await;
            service = next;
            gateway.point(Some(&service.base_url));
            replaced += 1;
        }
        sleep(random_pause(&mut random, 400)).await;
        child.kill().await.unwrap();
        kills += 1;
    }
    devices.await.unwrap();
    let ran = program.run(&ONCE).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(kills > 5 && replaced > 0, "{kills} kills, {replaced} services");

    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for row in service
        .rows("SELECT device_serial FROM measurements")
        .await
        .as_array()
        .unwrap()
    {
        *recorded
            .entry(row["device_serial"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    let expected: BTreeMap<_, _> = (0..FILES).map(|number| (format!("D-{number}"), 1)).collect();
    assert_eq!(recorded, expected, "seed {SEED}, {kills} kills, {replaced} services");
    assert_eq!(names(&program, "sent").len(), 2 * FILES);
    for folder in ["", "sending", "rejected"] {
        assert_eq!(names(&program, folder), [""; 0], "{folder}");
    }
}
