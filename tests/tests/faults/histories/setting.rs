//! The shared setting of the histories of a kind: a PostgreSQL cluster, a small disk, an object store, and a wrong clock.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use embedded_postgres::{Binaries, Options, standard_folders};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use partner_api::storage::S3Settings;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;

use super::super::durable_cluster::DurableCluster;
use super::Kind;

/// The shared setting of the histories of a kind.
pub struct Setting {
    // In this order: the server stops before its files are removed.
    pub cluster: Option<DurableCluster>,
    pub disk: Option<SmallDisk>,
    pub objects: Option<ObjectStore>,
    pub folder: TempDir,
}

impl Setting {
    pub async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let mut setting = Self {
            cluster: None,
            disk: None,
            objects: None,
            folder,
        };
        let mut options = Options::of("partner-api");
        match kind {
            // The suite's cluster.
            Kind::Connections | Kind::Replicas => return setting,
            Kind::Database => {}
            Kind::Storage => {
                setting.disk = Some(SmallDisk::mount(setting.folder.path()));
                setting.objects = Some(ObjectStore::start(setting.folder.path()).await);
                options.settings = vec![
                    ("max_wal_size".into(), "64MB".into()),
                    ("min_wal_size".into(), "32MB".into()),
                ];
            }
            Kind::Clocks => {
                set_clock(setting.folder.path(), 0);
                options.search = Some(vec![programs_with_clock(setting.folder.path())]);
            }
        }
        let within = setting.disk.as_ref().map_or(setting.folder.path(), |disk| &disk.folder);
        let folder = tempfile::tempdir_in(within).unwrap();
        setting.cluster = Some(DurableCluster::start_in(folder, options).await);
        setting
    }
}

/// A file system of limited size, which is unmounted when it is dropped.
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    fn mount(parent: &Path) -> Self {
        let folder = parent.join("disk");
        fs::create_dir(&folder).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256m,mode=755", "tmpfs"])
            .arg(&folder)
            .status();
        assert!(status.unwrap().success(), "failed to mount a small file system");
        Self { folder }
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Fills it.
    pub fn fill(&self) {
        let mut ballast = fs::File::create(self.ballast()).unwrap();
        // Ends with an error when nothing more fits.
        let _ = std::io::copy(&mut std::io::repeat(0), &mut ballast);
    }

    /// Frees what [`fill`](Self::fill) has used.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

/// How an object store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// It closes connections without a response.
    Closes,
    /// It responds with 500.
    Responds500,
    /// It responds only when the fault is over, with 500.
    Hangs,
}

/// An S3-compatible server in this process, which can fail.
pub struct ObjectStore {
    /// Its URL.
    pub url: String,
    /// The folder of its objects, each under its key.
    pub folder: PathBuf,
    fault: watch::Sender<Option<StoreFault>>,
}

impl ObjectStore {
    const BUCKET: &str = "reports";
    const KEY: &str = "AKIATEST";
    const SECRET: &str = "a secret of the test";

    async fn start(parent: &Path) -> Self {
        let root = parent.join("objects");
        let folder = root.join(Self::BUCKET);
        fs::create_dir_all(&folder).unwrap();
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(&root).unwrap());
        service.set_auth(SimpleAuth::from_single(Self::KEY, Self::SECRET));
        let service = service.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (fault, current) = watch::channel(None);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, current) = (service.clone(), current.clone());
                let respond = service_fn(move |request: http::Request<Incoming>| {
                    let (service, mut current) = (service.clone(), current.clone());
                    async move {
                        let fault = *current.borrow();
                        match fault {
                            None => {
                                let response = service.call(request.map(s3s::Body::from)).await;
                                return response.map_err(|error| format!("{error:?}"));
                            }
                            Some(StoreFault::Closes) => return Err("the connection is closed".to_owned()),
                            Some(StoreFault::Responds500) => {}
                            // The store may be gone.
                            Some(StoreFault::Hangs) => drop(current.wait_for(Option::is_none).await),
                        }
                        let response = http::Response::builder()
                            .status(500)
                            .body(s3s::Body::from(String::new()));
                        Ok(response.unwrap())
                    }
                });
                tokio::spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(TokioIo::new(socket), respond).await;
                });
            }
        });
        Self { url, folder, fault }
    }

    /// Returns the settings of a replica that uses the store at `url`.
    pub fn settings(url: &str) -> S3Settings {
        S3Settings {
            bucket: Self::BUCKET.to_owned(),
            region: Some("eu-central-1".to_owned()),
            endpoint: Some(url.to_owned()),
            access_key_id: Some(Self::KEY.to_owned()),
            secret_access_key: Some(Self::SECRET.to_owned().into()),
            ..S3Settings::default()
        }
    }

    /// Fails for a time.
    pub async fn fail(&self, fault: StoreFault, time: Duration) {
        self.fault.send_replace(Some(fault));
        sleep(time).await;
        self.fault.send_replace(None);
    }
}

/// Returns libfaketime, which Debian's package `faketime` installs.
pub fn faketime() -> Option<PathBuf> {
    let found = glob::glob("/usr/lib/*/faketime/libfaketimeMT.so.1").unwrap();
    found.flatten().next()
}

/// Writes the file by which PostgreSQL's clock is wrong.
pub fn set_clock(folder: &Path, seconds: i32) {
    let (file, new) = (folder.join("clock"), folder.join("clock.new"));
    fs::write(&new, format!("{seconds:+}\n")).unwrap();
    fs::rename(new, file).unwrap();
}

/// Returns a folder with PostgreSQL's programs that reads the clock from the file of [`set_clock`].
fn programs_with_clock(folder: &Path) -> PathBuf {
    let binaries = Binaries::find(&standard_folders(), None).unwrap();
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["postgres", "initdb", "pg_ctl"] {
        let clock = match name {
            "postgres" => format!(
                "export LD_PRELOAD='{}' FAKETIME_TIMESTAMP_FILE='{}' FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n",
                faketime().unwrap().display(),
                folder.join("clock").display()
            ),
            _ => String::new(),
        };
        let script = programs.join(name);
        let text = format!("#!/bin/sh\n{clock}exec '{}' \"$@\"\n", binaries.program(name).display());
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    }
    programs
}
