use partner_api_tests::{ALPHA, Service};
use serde_json::json;

use crate::program::Program;

const MAPPING: &str = r#"
encoding = "windows-1254"
separator = ";"
decimal = ","
branch_code = { value = "IZMIR-01" }
plate = { column = "Plaka" }
device_serial = { column = "Cihaz" }

[points]
BRAKE_FRONT_LEFT = { column = "Ön sol", unit = "daN" }
SLIP_FRONT = { column = "Kayma" }
"#;

const TIME: &str = r#"measured_at = { column = "Tarih", format = "%d.%m.%Y %H:%M", offset = "+03:00" }"#;

/// An export with the letters of Windows-1254: 0xD6 is Ö, 0xDE is Ş.
const EXPORT: &[u8] =
    b"Plaka;Cihaz;Tarih;\xd6n sol;Kayma\r\n35 OPN 205;\xde-1;15.06.2026 09:15;285,5;-1,4\r\n34 ABC 123;;;162;\r\n";

fn program(service: &Service, mapping: &str, name: &str, export: &[u8]) -> Program {
    let program = Program::new(service, &ALPHA);
    std::fs::write(program.path("mapping.toml"), mapping).unwrap();
    std::fs::write(program.path(name), export).unwrap();
    program
}

/// MEA-4, MEA-10
#[tokio::test]
async fn each_row_of_a_csv_file_is_recorded_once_with_converted_values() {
    let service = Service::start().await;
    let program = program(&service, MAPPING, "export.csv", EXPORT);
    let measure = ["measure", "--map", "mapping.toml", "export.csv"];
    let first = program.json(&measure).await;
    assert_eq!(
        (&first[0]["record"], &first[0]["status"], &first[0]["is_replay"]),
        (&json!("line 2"), &json!("applied"), &json!(false)),
        "{first}"
    );
    assert_eq!(
        (&first[1]["record"], &first[1]["status"]),
        (&json!("line 3"), &json!("pending"))
    );
    let raw = service
        .rows("SELECT convert_from(raw, 'UTF8') AS raw FROM measurements ORDER BY received_at, id")
        .await;
    let packages: Vec<serde_json::Value> = raw
        .as_array()
        .unwrap()
        .iter()
        .map(|row| serde_json::from_str(row["raw"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(
        packages[0]["measurements"],
        json!({ "BRAKE_FRONT_LEFT": 2.855, "SLIP_FRONT": -1.4 })
    );
    assert_eq!(packages[0]["device_serial"], "Ş-1");
    assert_eq!(packages[1]["measurements"], json!({ "BRAKE_FRONT_LEFT": 1.62 }));
    assert_eq!(packages[1].get("device_serial"), None);

    let again = program.json(&measure).await;
    assert_eq!(
        (&again[0]["is_replay"], &again[1]["is_replay"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(service.count("measurements").await, 2);
}

#[tokio::test]
async fn the_records_of_an_xml_file_have_paths_and_a_dry_run_sends_nothing() {
    let service = Service::start().await;
    let mapping = r#"
        record = "Test"
        branch_code = { value = "IZMIR-01" }
        plate = { column = "Vehicle/@plate" }
        measured_at = { column = "@time", format = "%d.%m.%Y %H:%M", offset = "+03:00" }
        points.BRAKE_FRONT_LEFT = { column = "Brake/FrontLeft", unit = "N" }
    "#;
    let export = "<Export><Test time=\"15.06.2026 09:15\"><Vehicle plate=\"35 OPN 205\"/><Brake><FrontLeft> 2850 </FrontLeft></Brake></Test></Export>";
    let program = program(&service, mapping, "export.xml", export.as_bytes());
    let ran = program
        .run(&["measure", "--map", "mapping.toml", "--dry-run", "export.xml"])
        .await;
    let package: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&package["plate"], &package["measurements"]),
        (&json!("35 OPN 205"), &json!({ "BRAKE_FRONT_LEFT": 2.850 }))
    );
    assert_eq!(package["measured_at"], "2026-06-15T06:15:00Z");
    assert_eq!(service.count("measurements").await, 0);
}

#[tokio::test]
async fn nothing_is_sent_if_a_record_or_the_mapping_is_invalid() {
    let service = Service::start().await;
    let run = async |mapping: &str, export: &[u8]| {
        let program = program(&service, mapping, "export.csv", export);
        program.run(&["measure", "--map", "mapping.toml", "export.csv"]).await
    };
    let wrong =
        b"Plaka;Cihaz;Tarih;\xd6n sol;Kayma\r\n35 OPN 205;;;2.85;\r\n35 OPN 205;;;;\r\n34 ABC 123;;yesterday;162;\r\n";
    let ran = run(&MAPPING.replace("[points]", &format!("{TIME}\n[points]")), wrong).await;
    for words in [
        "line 2: Ön sol: `2.85` contains '.', but the decimal separator is ','",
        "line 3: has no measured values",
        "line 4: Tarih: `yesterday` does not have the format",
    ] {
        ran.failed(2, words);
    }
    let ran = run(&MAPPING.replace("\"Kayma\"", "\"Kaymaa\""), EXPORT).await;
    ran.failed(2, "has no column `Kaymaa`; did you mean `Kayma`?");
    let ran = run(&MAPPING.replace("encoding = \"windows-1254\"", ""), EXPORT).await;
    ran.failed(2, "name its encoding in the mapping");
    let ran = run(&MAPPING.replace("daN", "kp"), EXPORT).await;
    ran.failed(2, "unknown variant `kp`");
    assert_eq!(service.count("measurements").await, 0);
}
