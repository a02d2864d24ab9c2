//! Beside a version of the service that keeps points in rows of their own.

use partner_api::db::measurements::{SkipReason, Status};
use uuid::Uuid;

use crate::world::{OPEN, PLATE, World, replay_of, skipped};

/// Records as that version does.
async fn record(world: &World, external_id: &str, report: Option<Uuid>, points: &[(&str, &str, Option<&str>)]) -> Uuid {
    let (client, id) = (world.client().await, Uuid::now_v7());
    let sql = "INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, external_id,
                                         measured_at, raw, raw_sha256, status, inspection_id, settled_at)
               VALUES ($1, $2, 'first', $3, $4, $5, $6, now(), '{}', sha256('{}'),
                       CASE WHEN $7::uuid IS NULL THEN 'PENDING' ELSE 'APPLIED' END, $7,
                       CASE WHEN $7::uuid IS NULL THEN NULL ELSE now() END)";
    let branch = world.branch;
    client
        .execute(
            sql,
            &[
                &id,
                &world.partner,
                &branch.organization_id,
                &branch.id,
                &PLATE,
                &external_id,
                &report,
            ],
        )
        .await
        .unwrap();
    for ((code, text, outcome), position) in points.iter().zip(1..) {
        let sql = "INSERT INTO measurement_points (measurement_id, code, value, value_text, outcome, position)
                   VALUES ($1, $2, $3::text::numeric, $3, $4, $5)";
        client
            .execute(sql, &[&id, code, text, outcome, &position])
            .await
            .unwrap();
    }
    id
}

#[tokio::test]
async fn what_it_recorded_is_answered_with_the_points_that_were_skipped() {
    let world = World::new().await;
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    let points = [
        ("SUSP_FRONT_LEFT", "70", Some("no_status")),
        ("SLIP_FRONT", "1", Some("applied")),
        ("ABS", "1", Some("unknown_point")),
    ];
    let id = record(&world, "old", Some(report), &points).await;
    let replay = replay_of(world.submit(world.package(PLATE, Some("old"), &[("ABS", "1")])).await);
    assert_eq!((replay.id, replay.status), (id, Status::Applied));
    let expected = [
        skipped("SUSP_FRONT_LEFT", SkipReason::NoStatus),
        skipped("ABS", SkipReason::UnknownPoint),
    ];
    assert_eq!(replay.skipped, expected);
}

#[tokio::test]
async fn what_it_left_waiting_is_applied_with_its_points() {
    let world = World::new().await;
    let points = [("SLIP_FRONT", "-1.40", None), ("ABS", "1", None)];
    let id = record(&world, "old", None, &points).await;
    let replay = replay_of(world.submit(world.package(PLATE, Some("old"), &[("ABS", "1")])).await);
    assert_eq!((replay.status, replay.skipped.len()), (Status::Pending, 0));
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    let applied = world.click(id, report).await.unwrap();
    assert_eq!(applied.applied, ["SLIP_FRONT"]);
    assert_eq!(world.answers(report).await["SLIP_FRONT"].1.to_string(), "-1.40");
    let replay = replay_of(world.submit(world.package(PLATE, Some("old"), &[("ABS", "1")])).await);
    assert_eq!(replay.skipped, [skipped("ABS", SkipReason::UnknownPoint)]);
}

#[tokio::test]
async fn it_does_not_settle_what_it_sees_no_points_of() {
    let world = World::new().await;
    let (id, _) = world.send(PLATE, &[("SLIP_FRONT", "1")]).await;
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    let client = world.client().await;
    let settle = "UPDATE measurements SET status = 'APPLIED', inspection_id = $2, settled_at = now() WHERE id = $1";
    let refused = client.execute(settle, &[&id, &report]).await.unwrap_err();
    let constraint = refused.as_db_error().and_then(|error| error.constraint());
    assert_eq!(constraint, Some("measurements_points"));
    assert!(world.click(id, report).await.is_some());
}

#[tokio::test]
async fn a_partner_key_or_branch_that_measurements_name_stays() {
    let world = World::new().await;
    world.send(PLATE, &[("SLIP_FRONT", "1")]).await;
    let client = world.client().await;
    client.execute("DELETE FROM grants", &[]).await.unwrap();
    for lose in [
        "DELETE FROM branches",
        "UPDATE branches SET id = gen_random_uuid()",
        "DELETE FROM api_keys",
        "UPDATE api_keys SET key_id = 'third' WHERE key_id = 'first'",
    ] {
        let refused = client.execute(lose, &[]).await.unwrap_err();
        assert_eq!(
            refused.code().map(|code| code.code()),
            Some("23503"),
            "{lose}: {refused:?}"
        );
    }
    // The other key goes, and what keeps its id may change.
    for keep in [
        "DELETE FROM api_keys WHERE key_id = 'second'",
        "UPDATE api_keys SET key_id = key_id, rate_limit = 7",
        "UPDATE branches SET id = id, name = 'İzmir'",
    ] {
        assert_eq!(client.execute(keep, &[]).await.unwrap(), 1, "{keep}");
    }
    client
        .batch_execute("ALTER TABLE api_keys DROP CONSTRAINT api_keys_partner_id_fkey")
        .await
        .unwrap();
    let refused = client.execute("DELETE FROM partners", &[]).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("23503"));
}
