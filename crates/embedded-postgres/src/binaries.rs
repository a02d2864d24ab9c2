//! Lookup of PostgreSQL's server programs on this machine.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{EmbeddedPostgresError, account::clean_command};

/// The required programs. A folder must contain all of them.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];

/// A folder that contains PostgreSQL's server programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    major: u32,
}

impl Binaries {
    /// Returns the major version, for example 17.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Returns the path of a program.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the first suitable programs in `folders`: of the version `needed` for an existing cluster, or of any version.
    ///
    /// # Errors
    /// If nothing or only other versions are installed.
    pub fn find(folders: &[PathBuf], needed: Option<(u32, &Path)>) -> Result<Self, EmbeddedPostgresError> {
        let mut found: Vec<Self> = Vec::new();
        for folder in folders {
            let Some(candidate) = Self::in_folder(folder) else {
                continue;
            };
            if needed.is_none_or(|(major, _)| major == candidate.major) {
                return Ok(candidate);
            }
            if !found.contains(&candidate) {
                found.push(candidate);
            }
        }
        match needed {
            Some((needed, cluster)) if !found.is_empty() => Err(EmbeddedPostgresError::VersionMissing {
                cluster: cluster.to_owned(),
                needed,
                found: found
                    .iter()
                    .map(|binaries| format!("{} in {}", binaries.major, binaries.folder.display()))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
            _ => Err(EmbeddedPostgresError::NotInstalled {
                searched: folders.to_vec(),
            }),
        }
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        // In the PATH, `postgres` is often a link into the folder with the other programs.
        let folder = folder.join("postgres").canonicalize().ok()?.parent()?.to_owned();
        if !PROGRAMS.iter().all(|program| folder.join(program).is_file()) {
            return None;
        }
        let version = clean_command(folder.join("postgres")).arg("--version").output().ok()?;
        let major = major_version(&String::from_utf8_lossy(&version.stdout))?;
        Some(Self { folder, major })
    }
}

/// Returns the folders that are searched by default: those of `PATH`, the output of `pg_config --bindir`, and those of Debian and
/// Homebrew, newest version first.
#[must_use]
pub fn standard_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    if let Ok(output) = clean_command("pg_config".into()).arg("--bindir").output() {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !folder.is_empty() {
            folders.push(folder.into());
        }
    }
    folders.extend(versioned(Path::new("/usr/lib/postgresql"), |_| true));
    for cellar in ["/opt/homebrew/opt", "/usr/local/opt"] {
        folders.extend(versioned(Path::new(cellar), |name| name.starts_with("postgresql")));
    }
    folders
}

/// Returns the `bin` folders of the versions in `parent`, newest first.
fn versioned(parent: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = parent
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str().filter(|name| wanted(name))?;
            // `17` or `postgresql@17`. The version of a plain `postgresql`, Homebrew's newest, is unknown; it sorts last.
            let digits = name.trim_start_matches(|character: char| !character.is_ascii_digit());
            Some((digits.parse().unwrap_or(0), entry.path().join("bin")))
        })
        .collect();
    versions.sort_by(|left, right| right.cmp(left));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

/// Parses the major version, for example 15 from `postgres (PostgreSQL) 15.18 (Debian 15.18-0)`.
fn major_version(text: &str) -> Option<u32> {
    let number = text
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    number
        .split(|character: char| !character.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_parsed_from_the_output_of_postgres() {
        for (text, major) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres (PostgreSQL) 17.2 (Homebrew)\n", Some(17)),
            ("nothing of the sort", None),
        ] {
            assert_eq!(major_version(text), major, "{text}");
        }
    }

    #[test]
    fn versions_are_sorted_numerically_with_the_newest_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9.6", "17", "postgresql@16", "unrelated"] {
            std::fs::create_dir_all(root.path().join(name).join("bin")).unwrap();
        }
        let found = versioned(root.path(), |name| name != "unrelated");
        let expected: Vec<_> = ["17", "postgresql@16", "9.6"]
            .map(|name| root.path().join(name).join("bin"))
            .into();
        assert_eq!(found, expected);
    }

    #[test]
    fn without_programs_the_error_tells_what_to_install() {
        let empty = tempfile::tempdir().unwrap();
        let error = Binaries::find(&[empty.path().to_owned()], None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("apt-get install postgresql"), "{error}");
        assert!(error.contains("brew install postgresql@17"), "{error}");
        assert!(error.contains(&empty.path().display().to_string()), "{error}");
    }

    #[test]
    fn for_a_cluster_of_another_version_the_error_tells_which_version_to_install() {
        let folders = standard_folders();
        let cluster = Path::new("/somewhere/data");
        let error = Binaries::find(&folders, Some((8, cluster))).unwrap_err().to_string();
        assert!(error.contains("created by PostgreSQL 8"), "{error}");
        assert!(error.contains("postgresql-8"), "{error}");
    }
}
