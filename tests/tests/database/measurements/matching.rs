//! How a code selects a branch and a plate selects a report.

use std::time::Duration;

use partner_api::recorder::Outcome;
use partner_api_store::connection::Connection;
use partner_api_store::measurements::{self, Package, Target, Verdict};
use uuid::Uuid;

use super::{MeasurementSetup, OPEN, PLATE};
use crate::setup::Branch;

/// MEA-1
#[tokio::test]
async fn a_branch_code_selects_only_active_granted_branches() {
    let setup = MeasurementSetup::new().await;
    let client = setup.client().await;
    let (ours, other) = (setup.branch, setup.organization("other", "FULL").await);
    let twin = setup.branch(other, "IZM-01", "", true).await;
    setup.branch(ours.organization_id, "OLD", "", false).await;
    // The grants, and the branch that is found; `Err`: none or several.
    let find = async |code: &str, whole: &[Uuid], restricted: &[Branch]| {
        for table in ["grant_branches", "grants"] {
            client.execute(&format!("DELETE FROM {table}"), &[]).await.unwrap();
        }
        for organization in whole {
            setup.grant(setup.partner, *organization).await;
        }
        for branch in restricted {
            let sql = "INSERT INTO grants (partner_id, organization_id, all_branches) VALUES ($1, $2, false)
                       ON CONFLICT DO NOTHING";
            let (partner, organization) = (setup.partner, branch.organization_id);
            client.execute(sql, &[&partner, &organization]).await.unwrap();
            let sql = "INSERT INTO grant_branches (partner_id, organization_id, branch_id) VALUES ($1, $2, $3)";
            client
                .execute(sql, &[&partner, &organization, &branch.id])
                .await
                .unwrap();
        }
        let package = Package {
            branch_code: code.into(),
            ..setup.package(PLATE, None, &[("SLIP_FRONT", "1")])
        };
        let id = package.id;
        match setup.submit(package).await {
            Outcome::Recorded { .. } => {
                let sql = "SELECT branch_id, organization_id FROM measurements WHERE id = $1";
                let row = client.query_one(sql, &[&id]).await.unwrap();
                Ok(Branch {
                    id: row.get(0),
                    organization_id: row.get(1),
                })
            }
            other => Err(other),
        }
    };
    let (org, none, several) = (
        ours.organization_id,
        Err(Outcome::UnknownBranch),
        Err(Outcome::AmbiguousBranch),
    );
    assert_eq!(find("IZM-01", &[org], &[]).await, Ok(ours));
    assert_eq!(find("IZM-01", &[], &[ours]).await, Ok(ours));
    assert_eq!(
        find("IZM-01", &[org], &[ours]).await,
        Ok(ours),
        "granted twice is one branch"
    );
    assert_eq!(find("IZM-01", &[other], &[]).await, Ok(twin));
    assert_eq!(find("IZM-01", &[org, other], &[]).await, several);
    assert_eq!(find("IZM-01", &[org], &[twin]).await, several);
    let elsewhere = setup.branch(other, "ANK-01", "", true).await;
    assert_eq!(
        find("IZM-01", &[], &[elsewhere]).await,
        none,
        "only its organization's other branch is granted"
    );
    assert_eq!(find("IZM-01", &[], &[]).await, none, "nothing is granted");
    assert_eq!(find("IZM-02", &[org, other], &[]).await, none, "unknown");
    assert_eq!(find("OLD", &[org], &[]).await, none, "inactive");
    // An inactive branch with the same code does not make the code ambiguous.
    setup.branch(org, "IZM-01", "", false).await;
    assert_eq!(find("IZM-01", &[org], &[]).await, Ok(ours));
    assert_eq!(setup.count("SELECT count(*) FROM measurements").await, 5);
}

/// MEA-6
#[tokio::test]
async fn values_are_applied_to_the_newest_open_report_of_the_last_24_hours() {
    let setup = MeasurementSetup::new().await;
    let sent = [("SLIP_FRONT", "1")];
    for status in ["IN_REVIEW", "CANCEL_REQUESTED"] {
        setup.report(PLATE, status, "1 hour", None).await;
    }
    setup.report(PLATE, OPEN, "24 hours 1 second", None).await;
    setup.report("06Z99", OPEN, "1 hour", None).await;
    let (id, applied) = setup.send(PLATE, &sent).await;
    assert_eq!(applied, None, "too old, not open, or another plate");
    let sql = "SELECT status, inspection_id, settled_at IS NULL FROM measurements WHERE id = $1";
    let row = setup.client().await.query_one(sql, &[&id]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), ("PENDING", None::<Uuid>, true));
    assert_eq!(
        setup
            .count("SELECT count(*) FROM measurements WHERE point_codes = '{SLIP_FRONT}' AND point_outcomes IS NULL")
            .await,
        1
    );

    let matched = async || setup.send(PLATE, &sent).await.1.unwrap().0;
    let oldest = setup.report(PLATE, OPEN, "23 hours 59 minutes", None).await;
    assert_eq!(matched().await, oldest);
    let revised = setup.report(PLATE, "REVISION_REQUESTED", "5 hours", None).await;
    assert_eq!(matched().await, revised);
    let newest = setup.report(PLATE, OPEN, "1 hour", None).await;
    setup.report(PLATE, OPEN, "6 hours", None).await;
    assert_eq!(matched().await, newest);
    // The report of another branch is not selected.
    setup.branch(setup.branch.organization_id, "ANK-01", "", true).await;
    let package = Package {
        branch_code: "ANK-01".into(),
        ..setup.package(PLATE, None, &sent)
    };
    assert!(matches!(
        setup.submit(package).await,
        Outcome::Recorded { applied: None, .. }
    ));
}

/// MEA-6
#[tokio::test]
async fn exactly_24_hours_is_within_the_window() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let package = setup.package(PLATE, None, &[("SLIP_FRONT", "1")]);
    // One session, so that its open transaction is still there when it is taken from the pool again.
    let session = setup.session();
    for (age, is_matched) in [("24 hours", true), ("24 hours 1 microsecond", false)] {
        let client = session.get().await.unwrap();
        // now() is constant in a transaction.
        client.batch_execute("BEGIN").await.unwrap();
        let sql = "UPDATE inspections SET created_at = now() - $2::text::interval WHERE id = $1";
        client.execute(sql, &[&report, &age]).await.unwrap();
        drop(client);
        let db = Connection::take(&session, Duration::from_secs(60)).await.unwrap();
        let verdicts = measurements::record(&db, &[&package]).await.unwrap();
        drop(db);
        let verdicts: Vec<Verdict> = verdicts.into_iter().map(Result::unwrap).collect();
        let target = Target {
            inspection_id: report,
            organization_id: setup.branch.organization_id,
            branch_id: setup.branch.id,
            plate: PLATE.into(),
        };
        let expected = if is_matched {
            Verdict::ForReport(target)
        } else {
            Verdict::Recorded
        };
        assert_eq!(verdicts, [expected], "{age}");
        let client = session.get().await.unwrap();
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn a_report_that_is_being_published_receives_no_values() {
    let setup = MeasurementSetup::new().await;
    let older = setup.report(PLATE, OPEN, "2 hours", None).await;
    let newer = setup.report(PLATE, OPEN, "1 hour", None).await;
    let mut client = setup.client().await;
    let publishing = client.transaction().await.unwrap();
    publishing
        .execute("UPDATE inspections SET status = 'IN_REVIEW' WHERE id = $1", &[&newer])
        .await
        .unwrap();
    let ((_, applied), ()) = tokio::join!(setup.send(PLATE, &[("SLIP_FRONT", "1")]), async {
        setup.until_lock_wait().await;
        publishing.commit().await.unwrap();
    });
    assert_eq!(applied.map(|(report, _)| report), Some(older));
    assert!(setup.answers(newer).await.is_empty());
}
