//! One external id, one record: repeats and races.

use partner_api::db::measurements::{self, Package, Replay, SkipReason, Status};
use partner_api::recorder::Outcome;
use partner_api::rules::plate::Plate;
use uuid::Uuid;

use crate::world::{OPEN, PLATE, World, replay_of, skipped};

/// MEA-10, MEA-13
#[tokio::test]
async fn a_replay_answers_the_present_state_and_records_nothing() {
    let world = World::new().await;
    let package = world.package(PLATE, Some("M-1"), &[("ABS", "1"), ("SLIP_FRONT", "1")]);
    let Outcome::Recorded { id, applied: None } = world.submit(package.clone()).await else {
        panic!("pending expected")
    };
    let replay = replay_of(world.submit(package.clone()).await);
    let pending = Replay {
        id,
        status: Status::Pending,
        plate: PLATE.into(),
        inspection_id: None,
        skipped: vec![],
        same_raw: true,
    };
    assert_eq!(replay, pending);

    // Another body, plate and key: the first package stands. Another case of the id is another id.
    let other = Package {
        raw: (&b"{}"[..]).into(),
        key_id: "second".into(),
        plate: Plate::parse("06Z99").unwrap(),
        ..package.clone()
    };
    assert_eq!(
        replay_of(world.submit(other).await),
        Replay {
            same_raw: false,
            ..pending.clone()
        }
    );
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 1);

    // Applied by an inspector later; then the replay says so.
    let report = world.report(PLATE, OPEN, "30 hours", None).await;
    let wrong = world.report("06Z99", OPEN, "1 hour", None).await;
    let closed = world.report(PLATE, "IN_REVIEW", "1 hour", None).await;
    let client = world.client().await;
    for unfit in [wrong, closed, Uuid::now_v7()] {
        assert_eq!(world.click(id, unfit).await, None);
    }
    let applied = world.click(id, report).await.unwrap();
    assert_eq!(applied.applied, ["SLIP_FRONT"]);
    assert_eq!(world.click(id, report).await, None, "it waits no more");
    let db = world.db().await;
    assert!(
        !measurements::discard(&db, id, "Ayşe", &[world.branch.id])
            .await
            .unwrap()
    );
    let skipped = vec![skipped("ABS", SkipReason::UnknownPoint)];
    let replay = replay_of(world.submit(package.clone()).await);
    assert_eq!(
        replay,
        Replay {
            status: Status::Applied,
            inspection_id: Some(report),
            skipped,
            ..pending.clone()
        }
    );
    let row = client
        .query_one("SELECT settled_by FROM measurements", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, &str>(0), "Ayşe");

    // Or ignored.
    let ignored = world.package("06Z99", Some("m-1"), &[("ABS", "1")]);
    client
        .execute("UPDATE inspections SET status = 'IN_REVIEW'", &[])
        .await
        .unwrap();
    let Outcome::Recorded { id, applied: None } = world.submit(ignored.clone()).await else {
        panic!("pending expected")
    };
    assert!(
        measurements::discard(&db, id, "Ayşe", &[world.branch.id])
            .await
            .unwrap()
    );
    let replay = replay_of(world.submit(ignored).await);
    assert_eq!(
        (replay.id, replay.status, replay.inspection_id),
        (id, Status::Discarded, None)
    );
}

/// MEA-11
#[tokio::test]
async fn the_bytes_of_every_other_body_are_kept_beside_the_record_once_and_for_ever() {
    let world = World::new().await;
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    for (plate, external_id) in [("06Z99", "waits"), (PLATE, "applied")] {
        let package = |raw: &'static [u8], key_id: &str| Package {
            raw: raw.into(),
            key_id: key_id.into(),
            ..world.package(plate, Some(external_id), &[("SLIP_FRONT", "1")])
        };
        let Outcome::Recorded { id, .. } = world.submit(package(b"first", "first")).await else {
            panic!("recorded expected")
        };
        let others: [(&[u8], bool); 6] = [
            (b"first", true),
            (b"\0 \xff other", false),
            (b"\0 \xff other", false),
            (b"", false),
            (b"first", true),
            (b"first ", false),
        ];
        for (raw, is_same) in others {
            let replay = replay_of(world.submit(package(raw, "second")).await);
            assert_eq!((replay.id, replay.same_raw), (id, is_same), "{raw:?}");
        }
        let sql = "SELECT raw, raw_sha256 = sha256(raw), key_id FROM measurement_mismatches WHERE measurement_id = $1
                   ORDER BY raw";
        let kept = world.client().await.query(sql, &[&id]).await.unwrap();
        let kept: Vec<(&[u8], bool, &str)> = kept.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let expected: [&[u8]; 3] = [b"", b"\0 \xff other", b"first "];
        assert_eq!(kept, expected.map(|raw| (raw, true, "second")), "{external_id}");
    }
    assert_eq!(
        world.answers(report).await.len(),
        1,
        "the first package alone was applied"
    );
    for lose in [
        "DELETE FROM measurement_mismatches",
        "UPDATE measurement_mismatches SET raw = ''",
        "UPDATE measurement_mismatches SET key_id = ''",
        "TRUNCATE measurement_mismatches",
    ] {
        assert!(world.client().await.execute(lose, &[]).await.is_err(), "{lose}");
    }
    assert_eq!(world.count("SELECT count(*) FROM measurement_mismatches").await, 6);
}
