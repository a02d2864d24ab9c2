//! The object stores: a folder with signed links, and an S3-compatible server over real HTTP.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{net::Ipv4Addr, path::Path, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures::TryStreamExt;
use hyper_util::rt::TokioIo;
use partner_api::storage::{LINK_LIFETIME, LinkError, PresignedUrl, S3Settings, Storage, StorageError};
use reqwest::StatusCode;
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use tokio::net::TcpListener;
use url::Url;

const JPEG: &[u8] = b"not quite a picture";
const KEY: &str = "photos/0192/full.jpg";

fn folder(path: &Path) -> Storage {
    Storage::folder(path, "http://127.0.0.1:8080/", [7; 32].into()).unwrap()
}

async fn read(storage: &Storage, key: &str) -> (u64, String, Vec<u8>) {
    let object = storage.stream(key).await.unwrap();
    let pieces: Vec<Bytes> = object.stream.try_collect().await.unwrap();
    (object.content_length, object.content_type, pieces.concat())
}

/// Returns the key, the expiry time and the signature of a signed link.
fn parts(link: &PresignedUrl) -> (String, i64, String) {
    let url = Url::parse(&link.url).unwrap();
    let value = |name: &str| {
        url.query_pairs()
            .find(|(found, _)| found == name)
            .unwrap()
            .1
            .into_owned()
    };
    let key = url.path().strip_prefix("/files/").unwrap().to_owned();
    (key, value("expires").parse().unwrap(), value("signature"))
}

async fn put_read_and_replace(storage: &Storage) {
    assert!(!storage.exists(KEY).await.unwrap());
    assert!(matches!(storage.stream(KEY).await, Err(StorageError::NotFound(_))));
    storage
        .put(KEY, Bytes::from_static(b"older"), "image/jpeg")
        .await
        .unwrap();
    storage.put(KEY, Bytes::from_static(JPEG), "image/jpeg").await.unwrap();
    assert!(storage.exists(KEY).await.unwrap());
    assert_eq!(
        read(storage, KEY).await,
        (JPEG.len() as u64, "image/jpeg".to_owned(), JPEG.to_vec())
    );

    // Large enough to be read in several chunks.
    let large = Bytes::from(vec![b'x'; 3_000_000]);
    storage
        .put("reports/large.pdf", large.clone(), "application/pdf")
        .await
        .unwrap();
    let (length, content_type, bytes) = read(storage, "reports/large.pdf").await;
    assert_eq!((length, content_type.as_str()), (3_000_000, "application/pdf"));
    assert!(bytes == large);

    // An object can be deleted twice.
    for _ in 0..2 {
        storage.delete("reports/large.pdf").await.unwrap();
    }
    assert!(!storage.exists("reports/large.pdf").await.unwrap());

    for key in ["../outside.jpg", "/etc/passwd", "a//b", ""] {
        let rejected = storage.put(key, Bytes::new(), "image/jpeg").await;
        assert!(matches!(rejected, Err(StorageError::InvalidKey)), "{key}");
        assert!(
            matches!(storage.stream(key).await, Err(StorageError::InvalidKey)),
            "{key}"
        );
        assert!(
            matches!(storage.presign(key, LINK_LIFETIME).await, Err(StorageError::InvalidKey)),
            "{key}"
        );
    }
    let rejected = storage.put("a.jpg", Bytes::new(), "application/pdf").await;
    assert!(matches!(rejected, Err(StorageError::ContentType { .. })));
}

#[tokio::test]
async fn a_folder_stores_objects() {
    let temporary = tempfile::tempdir().unwrap();
    put_read_and_replace(&folder(&temporary.path().join("made/here"))).await;
    // The objects are still there after a restart.
    let again = folder(&temporary.path().join("made/here"));
    assert!(again.exists(KEY).await.unwrap());
    assert!(again.serves_links());
}

/// Returns how many files below a folder this process has open.
#[cfg(target_os = "linux")]
fn open_files(folder: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let open = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    open.filter(|file| file.starts_with(folder)).count()
}

/// REQ-13
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_reads_opens_at_most_64_files_at_a_time() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = folder(temporary.path());
    storage
        .put(KEY, vec![b'x'; 200_000].into(), "image/jpeg")
        .await
        .unwrap();
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..2_000 {
        let storage = storage.clone();
        reads.spawn(async move { read(&storage, KEY).await.2.len() });
    }
    let mut most = 0;
    while let Some(length) = reads.join_next().await {
        assert_eq!(length.unwrap(), 200_000);
        most = most.max(open_files(temporary.path()));
    }
    assert!((1..=64).contains(&most), "{most}");
}

/// REQ-13
#[cfg(target_os = "linux")]
#[tokio::test]
async fn reads_that_do_not_go_on_keep_no_file_open() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = folder(temporary.path());
    let large: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    storage.put(KEY, large.clone().into(), "image/jpeg").await.unwrap();
    let mut reads = Vec::new();
    for _ in 0..20 {
        let mut read = storage.stream(KEY).await.unwrap();
        let part = read.stream.try_next().await.unwrap().unwrap();
        reads.push((read, part.to_vec()));
    }
    assert_eq!(open_files(temporary.path()), 0);
    for (mut read, mut bytes) in reads {
        while let Some(part) = read.stream.try_next().await.unwrap() {
            bytes.extend_from_slice(&part);
        }
        assert!(bytes == large);
    }
}

#[tokio::test]
async fn a_read_fails_if_the_file_is_replaced_meanwhile() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = folder(temporary.path());
    let put = async |byte| {
        let bytes = Bytes::from(vec![byte; 100_000]);
        storage.put(KEY, bytes, "image/jpeg").await.unwrap();
    };
    put(b'a').await;
    let mut reading = storage.stream(KEY).await.unwrap();
    reading.stream.try_next().await.unwrap().unwrap();
    put(b'b').await;
    assert!(matches!(reading.stream.try_next().await, Err(StorageError::Store(_))));
}

/// REP-7
#[tokio::test]
async fn a_link_to_a_folder_is_valid_for_exactly_900_seconds() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = folder(temporary.path());
    let signed: DateTime<Utc> = "2026-05-04T10:00:00Z".parse().unwrap();
    let link = storage.presign_at(KEY, LINK_LIFETIME, signed).await.unwrap();
    assert!(
        link.url
            .starts_with("http://127.0.0.1:8080/files/photos/0192/full.jpg?expires="),
        "{}",
        link.url
    );
    assert_eq!(link.expires_at, signed + TimeDelta::seconds(900));
    let (key, expires, signature) = parts(&link);
    assert_eq!(expires, link.expires_at.timestamp());
    let verify = |now| storage.verify_link(&key, expires, &signature, now);
    assert_eq!(verify(signed), Ok(()));
    assert_eq!(verify(signed + TimeDelta::seconds(900)), Ok(()));
    assert_eq!(
        verify(signed + TimeDelta::milliseconds(900_001)),
        Err(LinkError::Expired)
    );
    assert_eq!(verify(signed + TimeDelta::seconds(901)), Err(LinkError::Expired));
}

#[tokio::test]
async fn an_altered_or_forged_link_is_invalid_whether_or_not_it_has_expired() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = folder(temporary.path());
    let signed: DateTime<Utc> = "2026-05-04T10:00:00Z".parse().unwrap();
    let link = storage.presign_at(KEY, LINK_LIFETIME, signed).await.unwrap();
    let (key, expires, signature) = parts(&link);
    let other = Storage::folder(temporary.path(), "http://127.0.0.1:8080", [8; 32].into()).unwrap();
    let foreign = parts(&other.presign_at(KEY, LINK_LIFETIME, signed).await.unwrap()).2;
    let flipped = format!(
        "{}{}",
        if signature.starts_with('0') { '1' } else { '0' },
        &signature[1..]
    );
    for now in [signed, signed + TimeDelta::days(1)] {
        for (what, key, expires, signature) in [
            ("another key", "photos/0192/other.jpg", expires, signature.as_str()),
            ("a later expiry", &key, expires + 1, &signature),
            ("one digit", &key, expires, &flipped),
            ("another signing key", &key, expires, &foreign),
            ("upper case", &key, expires, &signature.to_uppercase()),
            ("cut", &key, expires, &signature[..63]),
            ("none", &key, expires, ""),
            ("not hex", &key, expires, &"ö".repeat(32)),
        ] {
            assert_eq!(
                storage.verify_link(key, expires, signature, now),
                Err(LinkError::Invalid),
                "{what}"
            );
        }
    }
}

/// An S3-compatible server in this process, on loopback, and its settings.
async fn s3_server(root: &Path) -> S3Settings {
    std::fs::create_dir(root.join("reports-bucket")).unwrap();
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).unwrap());
    service.set_auth(SimpleAuth::from_single("AKIATEST", "a secret of the test"));
    let service = service.build();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    S3Settings {
        bucket: "reports-bucket".to_owned(),
        region: Some("eu-central-1".to_owned()),
        endpoint: Some(format!("http://{address}")),
        access_key_id: Some("AKIATEST".to_owned()),
        secret_access_key: Some("a secret of the test".to_owned().into()),
        ..S3Settings::default()
    }
}

#[tokio::test]
async fn an_s3_service_stores_objects() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = Storage::s3(&s3_server(temporary.path()).await).unwrap();
    put_read_and_replace(&storage).await;
    assert!(!storage.serves_links());
    assert_eq!(
        storage.verify_link(KEY, i64::MAX, "", Utc::now()),
        Err(LinkError::Invalid)
    );
}

#[tokio::test]
async fn an_s3_link_needs_no_credentials_and_an_altered_one_is_rejected() {
    let temporary = tempfile::tempdir().unwrap();
    let storage = Storage::s3(&s3_server(temporary.path()).await).unwrap();
    storage.put(KEY, Bytes::from_static(JPEG), "image/jpeg").await.unwrap();
    storage
        .put("photos/0192/other.jpg", Bytes::from_static(JPEG), "image/jpeg")
        .await
        .unwrap();
    let before = Utc::now();
    let link = storage.presign(KEY, LINK_LIFETIME).await.unwrap();
    assert!((link.expires_at - before - TimeDelta::seconds(900)).abs() <= TimeDelta::seconds(1));

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = http.get(&link.url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "image/jpeg");
    assert_eq!(answer.bytes().await.unwrap(), JPEG);

    let signature = link.url.split_once("X-Amz-Signature=").unwrap().1;
    let flipped = format!(
        "{}{}",
        if signature.starts_with('0') { '1' } else { '0' },
        &signature[1..]
    );
    for (from, to) in [
        ("X-Amz-Expires=900", "X-Amz-Expires=901"),
        ("full.jpg", "other.jpg"),
        (signature, &flipped),
    ] {
        let altered = link.url.replace(from, to);
        assert_ne!(altered, link.url);
        let answer = http.get(&altered).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{from}");
    }
}

#[tokio::test]
async fn wrong_s3_credentials_are_not_reported_as_a_missing_object() {
    let temporary = tempfile::tempdir().unwrap();
    let mut settings = s3_server(temporary.path()).await;
    settings.secret_access_key = Some("another secret".to_owned().into());
    let storage = Storage::s3(&settings).unwrap();
    assert!(matches!(storage.stream(KEY).await, Err(StorageError::Store(_))));
    assert!(!format!("{settings:?}").contains("another secret"));
}

#[tokio::test]
async fn links_use_the_public_endpoint_of_the_store() {
    let temporary = tempfile::tempdir().unwrap();
    let mut settings = s3_server(temporary.path()).await;
    settings.public_endpoint = Some("https://files.example.org".to_owned());
    let storage = Storage::s3(&settings).unwrap();
    let link = storage.presign(KEY, Duration::from_secs(60)).await.unwrap();
    assert!(
        link.url.starts_with("https://files.example.org/reports-bucket/photos/"),
        "{}",
        link.url
    );
}

#[test]
fn plain_http_requires_loopback_or_permission() {
    let settings = |endpoint: &str, allow_http| S3Settings {
        bucket: "b".to_owned(),
        region: Some("r".to_owned()),
        endpoint: Some(endpoint.to_owned()),
        access_key_id: Some("a".to_owned()),
        secret_access_key: Some("s".to_owned().into()),
        allow_http,
        ..S3Settings::default()
    };
    assert!(Storage::s3(&settings("http://localhost:9000", false)).is_ok());
    assert!(Storage::s3(&settings("http://[::1]:9000", false)).is_ok());
    assert!(Storage::s3(&settings("http://minio:9000", true)).is_ok());
    for endpoint in ["http://minio:9000", "http://10.0.0.4", "ftp://localhost", "not a url"] {
        let error = Storage::s3(&settings(endpoint, false)).unwrap_err().to_string();
        assert!(error.contains(endpoint), "{error}");
    }
}
