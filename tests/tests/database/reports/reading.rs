//! A report with its forms, photos and PDF, which is visible if it is granted and in one of three statuses.

use partner_api_domain::{grants::Grants, pdf_key, privacy::PiiMode};
use partner_api_store::{
    branches, forms,
    inspections::{self, PdfLookup, Status},
    organizations, photos,
};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::setup::{Report, Setup};

fn whole(organization: Uuid) -> Grants {
    Grants::new([organization], [])
}

fn restricted(branch: Uuid) -> Grants {
    Grants::new([], [(Uuid::nil(), vec![branch])])
}

/// Adds a published report; returns its organization, its branch and its ID.
async fn published(setup: &Setup) -> (Uuid, Uuid, Uuid) {
    let organization = setup.organization("one", "FULL").await;
    let branch = setup.branch(organization, "A", "Ankara", true).await.id;
    let report = Report {
        organization,
        branch,
        status: "PUBLISHED",
        created: 0,
        lag: 1,
        unchanged_for: 0,
    };
    (organization, branch, setup.reports(&[report]).await[0])
}

/// REP-1
#[tokio::test]
async fn a_report_is_visible_in_three_statuses_and_only_with_a_grant() {
    let setup = Setup::new().await;
    let db = setup.reader().await;
    let (one, other) = (
        setup.organization("one", "FULL").await,
        setup.organization("other", "NONE").await,
    );
    let (mine, second) = (
        setup.branch(one, "A", "Ankara", true).await.id,
        setup.branch(one, "B", "Ankara", true).await.id,
    );
    let foreign = setup.branch(other, "C", "Ankara", true).await.id;
    for (status, visible) in [
        ("PUBLISHED", Some(Status::Published)),
        ("ARCHIVED", Some(Status::Archived)),
        ("CANCELLED", Some(Status::Cancelled)),
        ("DRAFT", None),
        ("IN_REVIEW", None),
        ("REVISION_REQUESTED", None),
        ("CANCEL_REQUESTED", None),
    ] {
        let report = Report {
            organization: one,
            branch: mine,
            status,
            created: 0,
            lag: 1,
            unchanged_for: 0,
        };
        let id = setup.reports(&[report]).await[0];
        for grants in [whole(one), restricted(mine)] {
            let expected = visible.map(|_| (id, PiiMode::Full));
            let found = forms::list(&db, &grants, id).await.unwrap();
            assert_eq!(found.map(|(found, _)| (found.id(), found.pii_mode())), expected);
            let found = photos::list(&db, &grants, id).await.unwrap();
            assert_eq!(found.map(|(found, _)| (found.id(), found.pii_mode())), expected);
            let detail = inspections::detail(&db, &grants, id).await.unwrap();
            assert_eq!(detail.map(|detail| detail.status), visible, "{status}");
        }
        for grants in [Grants::default(), whole(other), restricted(second), restricted(foreign)] {
            assert!(forms::list(&db, &grants, id).await.unwrap().is_none());
            assert!(photos::list(&db, &grants, id).await.unwrap().is_none());
            assert!(inspections::detail(&db, &grants, id).await.unwrap().is_none());
        }
    }
    let never = Uuid::now_v7();
    assert!(forms::list(&db, &whole(one), never).await.unwrap().is_none());
}

/// REP-9
#[tokio::test]
async fn amounts_have_two_decimals_and_the_vehicle_is_as_stored() {
    let setup = Setup::new().await;
    let db = setup.reader().await;
    let (organization, branch, id) = published(&setup).await;
    let detail = inspections::detail(&db, &whole(organization), id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(detail.final_price.to_string(), "2700.00");
    assert_eq!(detail.discount_percent.to_string(), "10.00");
    assert_eq!(
        (
            detail.pii_mode.plate(&detail.vehicle.plate).as_str(),
            detail.vehicle.mileage_km
        ),
        ("34 ABC 123", 48_210)
    );
    assert_eq!((detail.organization_id, detail.branch_id), (organization, branch));
    assert_eq!((detail.snapshot_mileage_km, detail.currency.as_str()), (48_195, "TRY"));
}

#[tokio::test]
async fn a_pdf_requires_a_published_report_a_public_slug_and_a_current_object() {
    let setup = Setup::new().await;
    let db = setup.db().await;
    let organization = setup.organization("one", "FULL").await;
    let branch = setup.branch(organization, "A", "Ankara", true).await.id;
    for (status, has_slug, stored, found) in [
        ("PUBLISHED", true, "current", Some(true)),
        ("PUBLISHED", true, "older", Some(false)),
        ("PUBLISHED", true, "none", Some(false)),
        ("PUBLISHED", false, "current", None),
        ("ARCHIVED", true, "current", None),
        ("CANCELLED", true, "current", None),
        ("DRAFT", true, "current", None),
    ] {
        let report = Report {
            organization,
            branch,
            status,
            created: 0,
            lag: 1,
            unchanged_for: 0,
        };
        let id = setup.reports(&[report]).await[0];
        let slug = has_slug.then(|| id.to_string());
        // The PDF contains the link to the public page.
        let named = "UPDATE inspections SET public_slug = $2 WHERE id = $1";
        setup.client().await.execute(named, &[&id, &slug]).await.unwrap();
        let fingerprint = "SELECT report_fingerprint($1)";
        let fingerprint: String = setup
            .client()
            .await
            .query_one(fingerprint, &[&id])
            .await
            .unwrap()
            .get(0);
        let key = match stored {
            "current" => Some(pdf_key::new_key(id, &fingerprint)),
            "older" => Some(format!("reports/{id}.pdf")),
            _ => None,
        };
        setup
            .client()
            .await
            .execute(
                "UPDATE inspections SET public_slug = $2, pdf_object_key = $3 WHERE id = $1",
                &[&id, &slug, &key],
            )
            .await
            .unwrap();
        let pdf = inspections::pdf(&db, &whole(organization), id).await.unwrap();
        let current = match pdf {
            PdfLookup::Some(pdf) => Some(pdf.current_key().map(ToOwned::to_owned)),
            // Nothing is found of a report that partners do not see.
            PdfLookup::None => {
                assert!(
                    ["PUBLISHED", "ARCHIVED", "CANCELLED"].contains(&status),
                    "{status} {stored}"
                );
                None
            }
            PdfLookup::ReportNotVisible => {
                assert!(
                    !["PUBLISHED", "ARCHIVED", "CANCELLED"].contains(&status),
                    "{status} {stored}"
                );
                None
            }
        };
        let key = key.filter(|_| found == Some(true));
        assert_eq!(current, found.map(|_| key), "{status} {stored}");
        let foreign = inspections::pdf(&db, &Grants::default(), id).await.unwrap();
        assert_eq!(foreign, PdfLookup::ReportNotVisible);
    }
}

/// REP-7
#[tokio::test]
async fn hidden_photos_are_never_returned() {
    let setup = Setup::new().await;
    let db = setup.reader().await;
    let (organization, _, id) = published(&setup).await;
    let grants = whole(organization);
    assert!(photos::list(&db, &grants, id).await.unwrap().unwrap().1.is_empty());
    for (position, kind, shown) in [
        (3, "DAMAGE", true),
        (1, "EXTERIOR", true),
        (2, "REGISTRATION", true),
        (4, "OTOSICIL_PDF", true),
        (5, "ENGINE", false),
        (6, "REGISTRATION", false),
    ] {
        setup
            .client()
            .await
            .execute(
                "INSERT INTO photos (id, organization_id, inspection_id, position, kind, object_key, mime_type, size_bytes,
                 show_in_report) VALUES ($1, $2, $3, $4, $5, 'photos/x.jpg', 'image/jpeg', 7, $6)",
                &[&Uuid::now_v7(), &organization, &id, &position, &kind, &shown],
            )
            .await
            .unwrap();
    }
    let kinds: Vec<String> = photos::list(&db, &grants, id)
        .await
        .unwrap()
        .unwrap()
        .1
        .into_iter()
        .map(|photo| photo.kind)
        .collect();
    assert_eq!(kinds, ["EXTERIOR", "DAMAGE"]);
}

#[tokio::test]
async fn forms_merge_the_template_with_the_answers_in_the_templates_order() {
    let setup = Setup::new().await;
    let db = setup.reader().await;
    let (organization, _, id) = published(&setup).await;
    let grants = whole(organization);
    assert!(forms::list(&db, &grants, id).await.unwrap().unwrap().1.is_empty());
    setup
        .client()
        .await
        .batch_execute(&format!(
            "INSERT INTO form_templates VALUES
                ('{t1}', '{organization}', 'BODY', 'Kaporta', 'BODY', 2, false),
                ('{t2}', '{organization}', 'TEST_LINE', 'Test hattı', 'MECHANICAL', 1, true),
                ('{t3}', '{organization}', 'EMPTY', 'Boş', 'OTHER', 3, false),
                ('{t4}', '{organization}', 'UNUSED', 'Kullanılmayan', 'OTHER', 4, false);
             INSERT INTO form_template_points VALUES
                ('{p1}', '{organization}', '{t2}', 'SLIP_REAR', 'Arka', 'm/km', 2),
                ('{p2}', '{organization}', '{t2}', 'SLIP_FRONT', 'Ön', 'm/km', 1),
                ('{p3}', '{organization}', '{t1}', 'HOOD', 'Kaput', NULL, 1);
             INSERT INTO inspection_forms VALUES ('{f1}', '{organization}', '{id}', '{t1}', ''),
                ('{f2}', '{organization}', '{id}', '{t2}', 'Genel'), ('{f3}', '{organization}', '{id}', '{t3}', '');
             INSERT INTO inspection_form_answers VALUES
                ('{f2}', '{p2}', '{organization}', 'GOOD', 'İyi', 'NONE', -1.250, 'Not', false, NULL, 'Ayşe', now())",
            t1 = Uuid::from_u128(1),
            t2 = Uuid::from_u128(2),
            t3 = Uuid::from_u128(3),
            t4 = Uuid::from_u128(4),
            p1 = Uuid::from_u128(11),
            p2 = Uuid::from_u128(12),
            p3 = Uuid::from_u128(13),
            f1 = Uuid::from_u128(21),
            f2 = Uuid::from_u128(22),
            f3 = Uuid::from_u128(23),
        ))
        .await
        .unwrap();
    let found = forms::list(&db, &grants, id).await.unwrap().unwrap().1;
    let codes: Vec<&str> = found.iter().map(|form| form.code.as_str()).collect();
    assert_eq!(codes, ["TEST_LINE", "BODY", "EMPTY"]);
    let points: Vec<(&str, bool)> = found[0]
        .points
        .iter()
        .map(|point| (point.code.as_str(), point.answer.is_some()))
        .collect();
    assert_eq!(points, [("SLIP_FRONT", true), ("SLIP_REAR", false)]);
    let answer = found[0].points[0].answer.as_ref().unwrap();
    assert_eq!(answer.numeric_value, Some(Decimal::new(-1250, 3)));
    assert_eq!(answer.numeric_value.unwrap().to_string(), "-1.250");
    assert_eq!(found[1].points[0].unit, None);
    assert!(found[2].points.is_empty());
}

#[tokio::test]
async fn only_granted_organizations_and_branches_are_listed() {
    let setup = Setup::new().await;
    let db = setup.reader().await;
    let (one, other) = (
        setup.organization("Bir", "FULL").await,
        setup.organization("Ada", "NONE").await,
    );
    setup.organization("Yabancı", "NONE").await;
    let ankara = setup.branch(one, "A2", "Ankara", true).await.id;
    let izmir = setup.branch(one, "A1", "İzmir", true).await.id;
    let closed = setup.branch(one, "A3", "Ankara", false).await.id;
    let (mine, _) = (
        setup.branch(other, "B1", "Ankara", true).await.id,
        setup.branch(other, "B2", "Ankara", true).await.id,
    );
    let grants = Grants::new([one], [(other, vec![mine])]);
    let listed = organizations::list(&db, &grants).await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|found| (found.name.as_str(), found.pii_mode, found.branch_count))
        .collect();
    assert_eq!(listed, [("Ada", PiiMode::None, 1), ("Bir", PiiMode::Full, 3)]);

    let list = async |grants: Grants, organization, active, city| -> Vec<Uuid> {
        let found = branches::list(&db, &grants, organization, active, city).await.unwrap();
        found.into_iter().map(|branch| branch.id).collect()
    };
    assert_eq!(list(grants.clone(), one, true, None).await, [izmir, ankara]);
    assert_eq!(list(grants.clone(), one, false, None).await, [closed]);
    assert_eq!(list(grants.clone(), one, true, Some("Ankara")).await, [ankara]);
    assert_eq!(list(grants.clone(), one, true, Some("ankara")).await, [] as [Uuid; 0]);
    assert_eq!(list(grants.clone(), other, true, None).await, [mine]);
    assert_eq!(list(Grants::default(), one, true, None).await, [] as [Uuid; 0]);
}
