//! Imported files: their names, encodings and folders.

use std::fs;

use partner_api_tests::cluster;
use serde_json::json;

use super::{deployment, ndjson, without};

#[tokio::test]
async fn a_file_of_the_wrong_type_is_rejected_with_its_actual_type() {
    let deployment = deployment().await;
    let long = [b"{\"plate\": \"".as_slice(), &vec![b'x'; 3 << 20], b"\"}\n"].concat();
    for (name, bytes, words) in [
        (
            "vehicles.ndjson",
            b"\xFF\xFE{\0".to_vec(),
            "vehicles.ndjson:1: the file: found UTF-16; expected text in UTF-8",
        ),
        ("vehicles.csv", b"\x1F\x8B\x08".to_vec(), "found a gzip file"),
        (
            "vehicles.csv",
            b"PK\x03\x04".to_vec(),
            "found a ZIP archive, such as a spreadsheet",
        ),
        (
            "vehicles.ndjson",
            b"\n{\"plate\": \"\xFF\"}".to_vec(),
            "2: the line: expected text in UTF-8",
        ),
        (
            "branches.csv",
            b"organization,code,name,city\nege-ekspertiz,X,\xFF,Z\n".to_vec(),
            "2: name: expected text in UTF-8",
        ),
        (
            "vehicles.ndjson",
            [b"{}\n".as_slice(), &long].concat(),
            "2: the line: expected at most 1048576 bytes in a line",
        ),
        (
            "vehicles.csv",
            long,
            "1: the line: expected at most 1048576 bytes in a line",
        ),
    ] {
        let ran = deployment.import(name, bytes, &[]);
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{words:?} is not in {}", ran.stderr);
    }
}

#[tokio::test]
async fn a_file_may_have_a_byte_order_mark_crlf_blank_lines_reordered_columns_or_no_content() {
    let deployment = deployment().await;
    let csv = "\u{feff}code,organization,city,name\r\n\r\n=1+1,ege-ekspertiz,\"İzmir, \"\"Alsancak\"\"\",Şube 1\r\n\
               @2,ege-ekspertiz,\"two\r\nlines\",Şube 2\r\n";
    let ran = deployment.import("branches.csv", csv, &[]);
    assert!(
        ran.stderr.contains("branches.csv:4: city: found `two\\r\\nlines`"),
        "{}",
        ran.stderr
    );
    let ran = deployment.import("branches.csv", csv.replace("two\r\nlines", "two"), &["--json"]);
    assert_eq!(
        (&ran.json()[0]["inserted"], &ran.json()[0]["lines"]),
        (&json!(2), &json!(2))
    );
    let client = cluster::connect(&deployment.config).await;
    let row = client
        .query_one(
            "SELECT code, city, code_folded FROM branches WHERE name = 'Şube 1'",
            &[],
        )
        .await
        .unwrap();
    let stored: [String; 3] = [row.get(0), row.get(1), row.get(2)];
    assert_eq!(stored, ["=1+1", "İzmir, \"Alsancak\"", "=1+1"]);
    for (name, content) in [
        ("photos.ndjson", ""),
        ("vehicles.ndjson", "\n \n"),
        ("thresholds.csv", "organization,point_code\n"),
    ] {
        let ran = deployment.import(name, content, &["--json"]).json();
        assert_eq!(
            (&ran[0]["lines"], &ran[0]["inserted"]),
            (&json!(0), &json!(0)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_unreadable_file_and_a_file_of_unknown_kind_are_reported() {
    let deployment = deployment().await;
    fs::create_dir(deployment.folder.path().join("empty")).unwrap();
    deployment.put("things.ndjson", "");
    deployment.put("vehicles.txt", "");
    for (arguments, words) in [
        (&["import", "vehicles.ndjson"][..], "vehicles.ndjson: No such file"),
        (&["import", "empty"], "no file to import"),
        (
            &["import", "things.ndjson"],
            "the file name does not start with a kind; give --kind",
        ),
        (
            &["import", "vehicles.txt"],
            "ends in neither .ndjson nor .csv; give --format",
        ),
        (&["import", "-"], "needs --kind and --format"),
        (
            &["import", "things.ndjson", "--kind", "vehicle"],
            "did you mean `vehicles`?",
        ),
        (&["import"], "FILE"),
    ] {
        deployment.run(arguments).failed(2, words);
    }
    let ran = deployment.shell("printf '' | partner-api import - --kind photos --format ndjson --json");
    assert_eq!(ran.json()[0]["lines"], 0);
}

/// IMP-5
#[tokio::test]
async fn a_second_import_of_a_folder_continues_with_the_remaining_files() {
    let deployment = deployment().await;
    fs::create_dir(deployment.folder.path().join("all")).unwrap();
    let branch = json!({ "organization": "yeni", "code": "Y-1", "name": "Yeni", "city": "İzmir" });
    deployment.put("all/branches.ndjson", ndjson(&[without(branch.clone(), "city")]));
    deployment.put(
        "all/organizations.csv",
        "slug,name,pii_mode\nyeni,Yeni Ekspertiz,MASKED\n",
    );
    deployment.put("all/notes.txt", "");
    let ran = deployment.run(&["import", "all"]);
    assert_eq!(ran.code, 2);
    let messages: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(
        messages,
        [
            "all: skipped, because the names do not start with a kind: notes.txt",
            "error: all/branches.ndjson:1: city: found nothing; expected a value (city)",
            "all/branches.ndjson: one error; nothing was imported from this file",
            "all/organizations.csv was imported: 1 lines, 1 new, 0 changed, 0 unchanged",
        ]
    );
    deployment.put("all/branches.ndjson", ndjson(&[branch]));
    let ran = deployment.json(&["import", "all"]);
    assert!(
        ran[0]["state"].as_str().unwrap().starts_with("already imported"),
        "{ran}"
    );
    assert_eq!(ran[1]["inserted"], 1);
}
