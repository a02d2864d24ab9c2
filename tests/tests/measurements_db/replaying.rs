//! One external id, one record: repeats and races.

use partner_api::db::measurements::{self, NewMeasurement, Replay, SkipReason, Status, Submitted};
use partner_api::rules::plate::Plate;
use uuid::Uuid;

use crate::world::{OPEN, PLATE, World, points_of, replay_of, skipped};

#[tokio::test]
async fn a_replay_answers_the_present_state_and_records_nothing() {
    let world = World::new().await;
    let plate = Plate::parse(PLATE).unwrap();
    let points = points_of(&[("ABS", "1"), ("SLIP_FRONT", "1")]);
    let package = world.package(&plate, Some("M-1"), &points);
    let Submitted::Recorded { id, applied: None } = world.submit(&package).await else {
        panic!("pending expected")
    };
    let replay = replay_of(world.submit(&package).await);
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
    let other_plate = Plate::parse("06Z99").unwrap();
    let other = NewMeasurement {
        raw: b"{}",
        key_id: "second",
        ..world.package(&other_plate, Some("M-1"), &points)
    };
    assert_eq!(
        replay_of(world.submit(&other).await),
        Replay {
            same_raw: false,
            ..pending.clone()
        }
    );
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM measurement_points").await, 2);

    // Applied by an inspector later; then the replay says so.
    let report = world.report(PLATE, OPEN, "30 hours", None).await;
    let wrong = world.report("06Z99", OPEN, "1 hour", None).await;
    let closed = world.report(PLATE, "IN_REVIEW", "1 hour", None).await;
    let client = world.client().await;
    for unfit in [wrong, closed, Uuid::now_v7()] {
        assert_eq!(measurements::apply(&client, id, unfit, "Ayşe").await.unwrap(), None);
    }
    let applied = measurements::apply(&client, id, report, "Ayşe").await.unwrap().unwrap();
    assert_eq!(applied.applied, ["SLIP_FRONT"]);
    assert_eq!(
        measurements::apply(&client, id, report, "Ayşe").await.unwrap(),
        None,
        "it waits no more"
    );
    assert!(!measurements::discard(&client, id, "Ayşe").await.unwrap());
    let skipped = vec![skipped("ABS", SkipReason::UnknownPoint)];
    let replay = replay_of(world.submit(&package).await);
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
    let ignored = world.package(&other_plate, Some("m-1"), &points);
    client
        .execute("UPDATE inspections SET status = 'IN_REVIEW'", &[])
        .await
        .unwrap();
    let Submitted::Recorded { id, applied: None } = world.submit(&ignored).await else {
        panic!("pending expected")
    };
    assert!(measurements::discard(&client, id, "Ayşe").await.unwrap());
    let replay = replay_of(world.submit(&ignored).await);
    assert_eq!(
        (replay.id, replay.status, replay.inspection_id),
        (id, Status::Discarded, None)
    );
}

#[tokio::test]
async fn of_two_with_one_external_id_one_records_and_the_other_waits_for_it() {
    let world = World::new().await;
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    let (plate, points) = (Plate::parse(PLATE).unwrap(), points_of(&[("SLIP_FRONT", "1")]));
    for (external_id, commits) in [("committed", true), ("rolled back", false)] {
        let package = world.package(&plate, Some(external_id), &points);
        let mut client = world.client().await;
        let winner = client.transaction().await.unwrap();
        let Submitted::Recorded { id, .. } = measurements::submit(&winner, &package).await.unwrap() else {
            panic!("the first records");
        };
        let (loser, ()) = tokio::join!(world.submit(&package), async {
            world.until_someone_waits().await;
            if commits {
                winner.commit().await.unwrap()
            } else {
                winner.rollback().await.unwrap()
            }
        });
        match loser {
            Submitted::Replayed(replay) if commits => {
                assert_eq!(
                    (replay.id, replay.inspection_id, replay.same_raw),
                    (id, Some(report), true)
                );
            }
            Submitted::Recorded {
                id: own,
                applied: Some(_),
            } if !commits => assert_ne!(own, id),
            other => panic!("{external_id}: {other:?}"),
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 2);
}

#[tokio::test]
async fn of_many_at_once_with_one_external_id_exactly_one_records() {
    let world = World::new().await;
    let (plate, points) = (Plate::parse(PLATE).unwrap(), points_of(&[("SLIP_FRONT", "1")]));
    let package = world.package(&plate, Some("M-1"), &points);
    let submitted = futures::future::join_all((0..24).map(|_| world.submit(&package))).await;
    let recorded = submitted
        .iter()
        .filter(|one| matches!(one, Submitted::Recorded { .. }))
        .count();
    assert_eq!(recorded, 1);
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 1);
}
