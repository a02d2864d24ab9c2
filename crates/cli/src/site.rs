//! The documentation site of the API, which is built into the program.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use bytes::Bytes;
use partner_api::gateway::public::{SPEC_JSON, SPEC_YAML};
use partner_api_gateway::pages::{Caching, FOLDER, Page, Pages};
use partner_api_site::{FILES, File};

use crate::Failure;

/// The list of the site's pages for language models, which look for it at the root.
const LLMS: &str = "llms.txt";

/// Returns the site as pages of the service.
pub fn pages() -> Pages {
    let mut pages = Pages::default();
    for File {
        path,
        content_type,
        immutable,
        bytes,
        gzip,
    } in FILES
    {
        let page = Page {
            content_type,
            caching: if *immutable {
                Caching::Immutable
            } else {
                Caching::Revalidate
            },
            body: Bytes::from_static(bytes),
            gzip: Some(Bytes::from_static(gzip)).filter(|gzip| !gzip.is_empty()),
        };
        if *path == LLMS {
            pages.add(&format!("/{LLMS}"), page.clone());
        }
        pages.add(&format!("{FOLDER}{path}"), page);
    }
    pages
}

/// Writes the site and the API document into a folder.
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path) -> Result<ExitCode, Failure> {
    let put = |path: &str, bytes: &[u8]| -> Result<(), Failure> {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| format!("failed to create {}: {error}", parent.display()))?;
        }
        Ok(fs::write(&path, bytes).map_err(|error| format!("failed to write {}: {error}", path.display()))?)
    };
    for file in FILES {
        put(&format!("{}{}", FOLDER.trim_start_matches('/'), file.path), file.bytes)?;
    }
    put("openapi.yaml", SPEC_YAML.as_bytes())?;
    put("openapi.json", SPEC_JSON.as_bytes())?;
    println!(
        "Wrote {} files to {}; start with {}.",
        FILES.len() + 2,
        folder.display(),
        folder.join("docs/index.html").display()
    );
    Ok(ExitCode::SUCCESS)
}
