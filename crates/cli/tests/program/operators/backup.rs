//! `partner-api backup`: dumps that are restored and compared with the stored files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use partner_api_tests::cluster;

use super::program::{Deployment, Ran};

/// A deployment with a report, its photo, and a measurement.
async fn deployment() -> Deployment {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let client = cluster::connect(&deployment.config).await;
    let rows = "
        INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km)
        VALUES (gen_random_uuid(), '35ABC123', 'VF1AAAAAAAA000001', 'Renault', 'Clio', 2019, 'HATCHBACK', 'GASOLINE', 'MANUAL',
                'white', 45000);
        INSERT INTO inspections (id, organization_id, branch_id, vehicle_id, report_number, status, plate, package_name,
               package_base_price, base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km)
        SELECT gen_random_uuid(), b.organization_id, b.id, v.id, 'R-1', 'DRAFT', v.plate, 'Full', 1500, 1500, 1500, 'CARD', v.vin, 45000
        FROM vehicles v, branches b WHERE b.code = 'IZM-01';
        INSERT INTO photos (id, organization_id, inspection_id, position, kind, object_key, mime_type, size_bytes)
        SELECT gen_random_uuid(), organization_id, id, 1, 'EXTERIOR', 'photos/one.jpg', 'image/jpeg', 5 FROM inspections";
    client.batch_execute(rows).await.unwrap();
    measure(&deployment).await;
    fs::create_dir_all(deployment.folder.path().join("data/files/photos")).unwrap();
    fs::write(deployment.folder.path().join("data/files/photos/one.jpg"), "photo").unwrap();
    deployment
}

/// Records a package, which waits for an inspector.
async fn measure(deployment: &Deployment) {
    let client = cluster::connect(&deployment.config).await;
    // The ID is a UUIDv7.
    let row = "
        INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, measured_at, raw, raw_sha256, status,
               point_codes, point_texts)
        SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid,
               k.partner_id, k.key_id, b.organization_id, b.id, '35ABC123', now(), '{}', sha256('{}'), 'PENDING', '{}', '{}'
        FROM api_keys k, branches b WHERE b.code = 'IZM-01'";
    client.batch_execute(row).await.unwrap();
}

/// Dumps the database as its owner, who may read all tables.
fn create(deployment: &mut Deployment, file: &str) -> Ran {
    as_owner(deployment, &format!("partner-api backup create {file}"))
}

/// Runs a command as the owner of the database.
fn as_owner(deployment: &mut Deployment, line: &str) -> Ran {
    let operator = deployment.user.clone();
    deployment.user = deployment.config.get_user().unwrap().to_owned();
    let ran = deployment.shell(line);
    deployment.user = operator;
    ran
}

#[tokio::test]
async fn a_dump_is_restored_checked_with_the_stored_files_and_recorded() {
    let mut deployment = deployment().await;
    // Operators may not read used nonces; no half dump remains.
    deployment
        .run(&["backup", "create", "a.dump"])
        .failed(1, "permission denied");
    let dumps = || {
        let files = fs::read_dir(deployment.folder.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.contains("backup") || name.contains("dump"))
            .count()
    };
    assert_eq!(dumps(), 0);
    assert_eq!(create(&mut deployment, "a.dump").code, 0);
    // It contains personal data.
    let mode = fs::metadata(deployment.folder.path().join("a.dump"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    create(&mut deployment, "a.dump").failed(2, "exists already");

    measure(&deployment).await;
    let verified = deployment.json(&["backup", "verify", "a.dump"]);
    let result = &verified["result"];
    for (count, expected) in [
        ("reports", 1),
        ("measurements", 1),
        ("lost_measurements", 1),
        ("secrets", 1),
        ("files", 1),
    ] {
        assert_eq!(result[count], expected, "{count}: {verified}");
    }
    let audit = deployment.json(&["audit", "list", "--limit", "1"]);
    assert!(
        audit.to_string().contains("The backup a.dump can be restored."),
        "{audit}"
    );
    let checks = deployment.run(&["doctor"]).stdout;
    assert!(checks.contains("last verified at"), "{checks}");
}

#[tokio::test]
async fn each_defect_of_a_backup_is_named() {
    let mut deployment = deployment().await;
    assert_eq!(create(&mut deployment, "a.dump").code, 0);
    let folder = deployment.folder.path().to_owned();
    let file = folder.join("data/files/photos/one.jpg");
    let verify =
        |setting: &str, arguments: &str| deployment.shell(&format!("{setting} partner-api backup verify {arguments}"));

    fs::create_dir(folder.join("copy")).unwrap();
    verify("", "a.dump --files copy").failed(1, "the file photos/one.jpg is missing");
    fs::write(&file, "pho").unwrap();
    verify("", "a.dump").failed(1, "the file photos/one.jpg has 3 bytes");
    fs::write(&file, "photo").unwrap();

    fs::write(folder.join("other.key"), "ff".repeat(32)).unwrap();
    let chmod = deployment.shell("chmod 600 other.key");
    assert_eq!(chmod.code, 0);
    verify("PARTNER_API_MASTER_KEY_FILE=other.key", "a.dump").failed(1, "1 secrets cannot be decrypted");

    let dump = fs::read(folder.join("a.dump")).unwrap();
    fs::write(folder.join("half.dump"), &dump[..dump.len() / 2]).unwrap();
    verify("", "half.dump").failed(1, "pg_restore failed");
    verify("", "absent.dump").failed(2, "there is no such file");

    // A restored database that is not the original.
    let client = cluster::connect(&deployment.config).await;
    let alter = "ALTER TABLE measurements DISABLE TRIGGER protect_raw_package; UPDATE measurements SET raw = '[]'";
    client.batch_execute(alter).await.unwrap();
    let altered = verify("", "--restored \"$PARTNER_API_DATABASE_URL\"");
    altered.failed(1, "1 measurements differ from the SHA-256");
    altered.failed(1, "missing: trigger protect_raw_package");
    client
        .batch_execute("UPDATE deployment SET id = gen_random_uuid()")
        .await
        .unwrap();
    verify("", "a.dump").failed(1, "it is a backup of the test deployment");

    let recorded = "SELECT count(*) FROM audit_log WHERE command = 'backup verify'";
    assert_eq!(client.query_one(recorded, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// The files that a dump refers to are copied after it, and only once.
#[tokio::test]
async fn a_backup_of_database_and_files_is_complete_whatever_changes_while_it_is_made() {
    let mut deployment = deployment().await;
    let folder = deployment.folder.path().to_owned();
    fs::create_dir_all(folder.join("backup/files")).unwrap();
    let made = as_owner(
        &mut deployment,
        "partner-api backup create backup --files backup/files --json",
    )
    .json();
    assert_eq!((&made["files"], &made["new_files"]), (&1.into(), &1.into()), "{made}");
    assert_eq!(fs::read(folder.join("backup/files/photos/one.jpg")).unwrap(), b"photo");
    let bytes = fs::read(folder.join(made["file"].as_str().unwrap())).unwrap();
    assert_eq!(made["size_bytes"], bytes.len());
    let sha256 = deployment.shell(&format!("sha256sum {}", made["file"])).stdout;
    assert_eq!(made["sha256"], sha256.split(' ').next().unwrap());

    // A file that was copied in part is copied again, others are not.
    fs::write(folder.join("backup/files/photos/one.jpg"), "pho").unwrap();
    let line = "partner-api backup create backup/second.dump --files backup/files --json";
    let made = as_owner(&mut deployment, line).json();
    assert_eq!((&made["files"], &made["new_files"]), (&1.into(), &1.into()), "{made}");
    let line = "partner-api backup create backup/third.dump --files backup/files --json";
    let made = as_owner(&mut deployment, line).json();
    assert_eq!((&made["files"], &made["new_files"]), (&1.into(), &0.into()), "{made}");

    // The storage of the service may be lost. The newest dump of the folder is verified with the copy.
    fs::remove_file(folder.join("data/files/photos/one.jpg")).unwrap();
    let verified = deployment.json(&["backup", "verify", "backup", "--files", "backup/files"]);
    assert!(verified["what"].as_str().unwrap().contains("third.dump"), "{verified}");
    deployment
        .run(&["backup", "verify", "backup"])
        .failed(1, "the file photos/one.jpg is missing");

    fs::remove_file(folder.join("backup/files/photos/one.jpg")).unwrap();
    as_owner(
        &mut deployment,
        "partner-api backup create fourth.dump --files backup/files",
    )
    .failed(
        1,
        "1 files that it refers to are missing in the storage, for example photos/one.jpg",
    );
    deployment
        .run(&["backup", "verify", "data"])
        .failed(2, "there is no file *.dump");
}

#[tokio::test]
async fn a_dump_is_restored_into_an_empty_database_and_never_into_another_one() {
    let mut deployment = deployment().await;
    let folder = deployment.folder.path().to_owned();
    fs::create_dir(folder.join("files")).unwrap();
    let made = create(&mut deployment, "a.dump --files files");
    assert_eq!(made.code, 0, "{made:?}");
    fs::remove_file(folder.join("data/files/photos/one.jpg")).unwrap();
    let client = cluster::connect(&deployment.config).await;
    let content = async |client: &tokio_postgres::Client| -> String {
        let content = "SELECT count(*) || ' ' || (SELECT count(*) FROM audit_log) FROM pg_class WHERE relkind = 'r'";
        client.query_one(content, &[]).await.unwrap().get(0)
    };
    let before = content(&client).await;
    as_owner(&mut deployment, "partner-api backup restore a.dump").failed(4, "the database is not empty");
    assert_eq!(content(&client).await, before);

    // A failed restore leaves an empty database, into which another one succeeds.
    let name = format!("{}_restored", deployment.config.get_dbname().unwrap());
    let dump = fs::read(folder.join("a.dump")).unwrap();
    fs::write(folder.join("half.dump"), &dump[..dump.len() / 2]).unwrap();
    as_owner(
        &mut deployment,
        &format!("partner-api backup restore half.dump --into {name}"),
    )
    .failed(1, "nothing was restored");
    let line = format!("partner-api backup restore a.dump --files files --into {name}");
    let restored = as_owner(&mut deployment, &format!("{line} --json")).json();
    for (count, expected) in [("reports", 1), ("measurements", 1), ("files", 1)] {
        assert_eq!(restored[count], expected, "{restored}");
    }
    assert_eq!(fs::read(folder.join("data/files/photos/one.jpg")).unwrap(), b"photo");
    as_owner(&mut deployment, &line).failed(4, "the database is not empty");

    // By URL, too; and the restored database is usable and knows where it comes from.
    let mut config = deployment.config.clone();
    let url = cluster::url(config.dbname(&name));
    let by_url = format!("PARTNER_API_DATABASE_URL= partner-api backup restore a.dump --database-url '{url}'");
    as_owner(&mut deployment, &by_url).failed(4, "the database is not empty");
    let listed = deployment.shell(&format!(
        "PARTNER_API_DATABASE_URL='{url}' partner-api audit list --limit 1"
    ));
    assert!(
        listed
            .stdout
            .contains("The backup a.dump was restored into this database."),
        "{listed:?}"
    );
    let keys = deployment.shell(&format!("PARTNER_API_DATABASE_URL='{url}' partner-api key list"));
    assert!(keys.stdout.contains("Acme"), "{keys:?}");
    client.batch_execute(&format!("DROP DATABASE {name}")).await.unwrap();
}
