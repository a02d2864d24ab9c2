//! `codegen watch`: generates the code whenever a document changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use dropshot_codegen::{Problem, load};

use crate::{Cli, project, run_all};

/// The interval at which the files are polled.
const PAUSE: Duration = Duration::from_millis(300);

/// When each file was last changed, and its size; `None` for a file that cannot be read.
type State = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

/// Generates the code now and after every change. Errors are printed; the next change may fix them.
pub fn watch(cli: Cli) -> Result<ExitCode, Problem> {
    loop {
        // The state is read first, so that changes made while the code is generated are detected.
        let before = state(&cli);
        if let Err(problem) = run_all(&cli) {
            eprintln!("error: {problem}");
        }
        eprintln!("watching {} files; Ctrl-C ends", before.len());
        while state_of(before.keys().cloned()) == before {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The state of all files from which the code is generated.
fn state(cli: &Cli) -> State {
    let specs = match &cli.project {
        Some(file) => project::specs(file).unwrap_or_default(),
        None => cli.spec.clone(),
    };
    let parts = specs
        .iter()
        .filter_map(|spec| load::from_file(spec).ok())
        .flat_map(|document| {
            let files: Vec<PathBuf> = document.positions.files().map(Path::to_path_buf).collect();
            files
        });
    let parts: Vec<PathBuf> = parts.collect();
    state_of(cli.project.iter().cloned().chain(specs).chain(parts))
}

fn state_of(files: impl Iterator<Item = PathBuf>) -> State {
    let state = |file: &Path| {
        let about = std::fs::metadata(file).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    files.map(|file| (file.clone(), state(&file))).collect()
}
