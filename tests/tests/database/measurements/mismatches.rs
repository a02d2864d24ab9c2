//! Different bodies with the external ID of a recorded package, each of which is kept once.

use partner_api::recorder::Outcome;
use partner_api_store::measurements::Package;

use super::{MeasurementSetup, OPEN, PLATE, replay_of};

/// MEA-11
#[tokio::test]
async fn each_different_body_is_kept_once_byte_for_byte_and_cannot_be_changed() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    for (plate, external_id) in [("06Z99", "waits"), (PLATE, "applied")] {
        let package = |raw: &'static [u8], key_id: &str| Package {
            raw: raw.into(),
            key_id: key_id.into(),
            ..setup.package(plate, Some(external_id), &[("SLIP_FRONT", "1")])
        };
        let Outcome::Recorded { id, .. } = setup.submit(package(b"first", "first")).await else {
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
            let replay = replay_of(setup.submit(package(raw, "second")).await);
            assert_eq!((replay.id, replay.same_raw), (id, is_same), "{raw:?}");
        }
        let sql = "SELECT raw, raw_sha256 = sha256(raw), key_id FROM measurement_mismatches WHERE measurement_id = $1
                   ORDER BY raw";
        let recorded = setup.client().await.query(sql, &[&id]).await.unwrap();
        let recorded: Vec<(&[u8], bool, &str)> = recorded
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2)))
            .collect();
        let expected: [&[u8]; 3] = [b"", b"\0 \xff other", b"first "];
        assert_eq!(recorded, expected.map(|raw| (raw, true, "second")), "{external_id}");
    }
    assert_eq!(
        setup.answers(report).await.len(),
        1,
        "the first package alone was applied"
    );
    for lose in [
        "DELETE FROM measurement_mismatches",
        "UPDATE measurement_mismatches SET raw = ''",
        "UPDATE measurement_mismatches SET key_id = ''",
        "TRUNCATE measurement_mismatches",
    ] {
        assert!(setup.client().await.execute(lose, &[]).await.is_err(), "{lose}");
    }
    assert_eq!(setup.count("SELECT count(*) FROM measurement_mismatches").await, 6);
}
