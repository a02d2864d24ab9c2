//! Which branch a code finds, and which report a plate.

use partner_api::db::measurements::{self, BranchMatch, NewMeasurement, Submitted};
use partner_api::rules::plate::Plate;
use uuid::Uuid;

use crate::world::{OPEN, PLATE, World, branch, organization, points_of};

#[tokio::test]
async fn a_branch_is_found_by_its_code_among_active_ones_in_scope_only() {
    let world = World::new().await;
    let client = world.client().await;
    let other = organization(&client).await;
    let ours = world.branch;
    let twin = branch(&client, other, "IZM-01", true).await;
    let inactive = branch(&client, ours.organization_id, "OLD", false).await;
    let find = async |code: &str, whole: &[Uuid], restricted: &[Uuid]| {
        measurements::find_branch(&client, code, whole, restricted)
            .await
            .unwrap()
    };
    let (org, none) = (ours.organization_id, BranchMatch::None);
    assert_eq!(find("IZM-01", &[org], &[]).await, BranchMatch::One(ours));
    assert_eq!(find("IZM-01", &[], &[ours.id]).await, BranchMatch::One(ours));
    assert_eq!(
        find("IZM-01", &[org], &[ours.id]).await,
        BranchMatch::One(ours),
        "granted twice is one branch"
    );
    assert_eq!(find("IZM-01", &[org, other], &[]).await, BranchMatch::Several);
    assert_eq!(find("IZM-01", &[org], &[twin.id]).await, BranchMatch::Several);
    assert_eq!(find("IZM-01", &[], &[]).await, none, "nothing is granted");
    assert_eq!(find("IZM-02", &[org, other], &[]).await, none, "unknown");
    assert_eq!(find("OLD", &[org], &[inactive.id]).await, none, "inactive");
    // An inactive twin makes a code ambiguous to nobody.
    branch(&client, org, "IZM-01", false).await;
    assert_eq!(find("IZM-01", &[org], &[]).await, BranchMatch::One(ours));
}

#[tokio::test]
async fn only_an_open_report_of_the_last_24_hours_takes_values_and_the_newest_of_several() {
    let world = World::new().await;
    let sent = [("SLIP_FRONT", "1")];
    for status in ["IN_REVIEW", "CANCEL_REQUESTED"] {
        world.report(PLATE, status, "1 hour", None).await;
    }
    world.report(PLATE, OPEN, "24 hours 1 second", None).await;
    world.report("06Z99", OPEN, "1 hour", None).await;
    let (id, applied) = world.send(PLATE, &sent).await;
    assert_eq!(applied, None, "too old, not open, or another plate");
    let sql = "SELECT status, inspection_id, settled_at IS NULL FROM measurements WHERE id = $1";
    let row = world.client().await.query_one(sql, &[&id]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), ("PENDING", None::<Uuid>, true));
    assert_eq!(
        world
            .count("SELECT count(*) FROM measurement_points WHERE outcome IS NULL")
            .await,
        1
    );

    let matched = async || world.send(PLATE, &sent).await.1.unwrap().0;
    let oldest = world.report(PLATE, OPEN, "23 hours 59 minutes", None).await;
    assert_eq!(matched().await, oldest);
    let revised = world.report(PLATE, "REVISION_REQUESTED", "5 hours", None).await;
    assert_eq!(matched().await, revised);
    let newest = world.report(PLATE, OPEN, "1 hour", None).await;
    world.report(PLATE, OPEN, "6 hours", None).await;
    assert_eq!(matched().await, newest);
    // Another branch's report is none of this branch's.
    let elsewhere = branch(&world.client().await, world.branch.organization_id, "ANK-01", true).await;
    let (plate, points) = (Plate::parse(PLATE).unwrap(), points_of(&sent));
    let package = NewMeasurement {
        branch: elsewhere,
        ..world.package(&plate, None, &points)
    };
    assert!(matches!(
        world.submit(&package).await,
        Submitted::Recorded { applied: None, .. }
    ));
}

#[tokio::test]
async fn exactly_24_hours_is_within_the_window() {
    let world = World::new().await;
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    let (plate, points) = (Plate::parse(PLATE).unwrap(), points_of(&[("SLIP_FRONT", "1")]));
    let mut client = world.client().await;
    // now() stands still in a transaction.
    for (age, is_matched) in [("24 hours", true), ("24 hours 1 microsecond", false)] {
        let transaction = client.transaction().await.unwrap();
        let sql = "UPDATE inspections SET created_at = now() - $2::text::interval WHERE id = $1";
        transaction.execute(sql, &[&report, &age]).await.unwrap();
        let submitted = measurements::submit(&transaction, &world.package(&plate, None, &points))
            .await
            .unwrap();
        let Submitted::Recorded { applied, .. } = submitted else {
            panic!("{submitted:?}")
        };
        assert_eq!(applied.is_some(), is_matched, "{age}");
        transaction.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_report_that_is_being_published_takes_no_values() {
    let world = World::new().await;
    let older = world.report(PLATE, OPEN, "2 hours", None).await;
    let newer = world.report(PLATE, OPEN, "1 hour", None).await;
    let mut client = world.client().await;
    let publishing = client.transaction().await.unwrap();
    publishing
        .execute("UPDATE inspections SET status = 'IN_REVIEW' WHERE id = $1", &[&newer])
        .await
        .unwrap();
    let ((_, applied), ()) = tokio::join!(world.send(PLATE, &[("SLIP_FRONT", "1")]), async {
        world.until_someone_waits().await;
        publishing.commit().await.unwrap();
    });
    assert_eq!(applied.map(|(report, _)| report), Some(older));
    assert!(world.answers(newer).await.is_empty());
}
