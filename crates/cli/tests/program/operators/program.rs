//! Runs the program as an operator does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use partner_api_tests::cluster::{self, Database};
use serde_json::Value;

/// The deployment of a test: a database, and a folder with the master key.
pub struct Deployment {
    pub folder: tempfile::TempDir,
    /// The connection settings of a superuser.
    pub config: tokio_postgres::Config,
    /// The user of the commands.
    pub user: String,
    _database: Option<Database>,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Asserts that the command failed with this code, printed this text to standard error, and nothing to standard output.
    pub fn failed(&self, code: i32, text: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        assert!(self.stderr.contains(text), "{text:?} is not in {:?}", self.stderr);
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Deployment {
    /// Creates a deployment with an empty schema, whose commands have the rights of the operators' role.
    pub async fn new() -> Self {
        Self::of(Database::without_rows().await)
    }

    /// Creates a deployment that owns a database, whose commands have the rights of the operators' role.
    pub fn of(database: Database) -> Self {
        let mut deployment = Self::over(database.config(), Some(database));
        deployment.user = cluster::OPERATOR.to_owned();
        deployment
    }

    /// Returns the database's URL for a user.
    pub fn url_of(&self, user: &str) -> String {
        cluster::url(self.config.clone().user(user))
    }

    /// Creates a deployment over a database, which the caller may own.
    pub fn over(config: tokio_postgres::Config, database: Option<Database>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("master.key");
        fs::write(&key, "00112233445566778899aabbccddeeff".repeat(2)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Self {
            folder,
            user: config.get_user().unwrap().to_owned(),
            config,
            _database: database,
        }
    }

    /// Runs the program with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let mut program = Command::new(env!("CARGO_BIN_EXE_partner-api"));
        self.prepare(program.args(arguments)).output().unwrap().into()
    }

    /// Runs the program with these arguments and `--json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).json()
    }

    /// Runs a shell command in which `partner-api` is the program.
    pub fn shell(&self, line: &str) -> Ran {
        let mut shell = Command::new("sh");
        self.prepare(shell.args(["-c", line])).output().unwrap().into()
    }

    /// Sets the environment and the working folder of a command.
    pub fn prepare<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_partner-api")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        command
            .env("PATH", path)
            .env("PARTNER_API_DATABASE_URL", self.url_of(&self.user))
            .env("PARTNER_API_MASTER_KEY_FILE", self.folder.path().join("master.key"))
            // Free ports, because several services run at the same time.
            .env("PARTNER_API_INTERNAL_LISTEN", "127.0.0.1:0")
            .env("PARTNER_API_INSPECTORS_LISTEN", "127.0.0.1:0")
            .env_remove("SUDO_USER")
            .current_dir(self.folder.path())
    }

    /// Returns the content of the database without the audit log, expired keys, and revoked keys and inspectors.
    pub async fn state(&self) -> Value {
        let client = cluster::connect(&self.config).await;
        let state = client.query_one(STATE, &[]).await.unwrap();
        serde_json::from_str(state.get(0)).unwrap()
    }

    /// Returns the number of rows of a table, which may be followed by a condition.
    pub async fn count(&self, from_where: &str) -> i64 {
        let client = cluster::connect(&self.config).await;
        let row = client
            .query_one(&format!("SELECT count(*) FROM {from_where}"), &[])
            .await;
        row.unwrap().get(0)
    }

    /// Creates an organization with two branches and a partner with a grant for it. Returns the ID of the partner's key.
    pub fn with_one_of_each(&self) -> String {
        for line in [
            "partner-api partner create Acme",
            "partner-api organization create 'İzmir Vehicle Inspection' --slug izmir",
            "partner-api branch create izmir IZM-01 --name Bornova --city İzmir",
            "partner-api branch create izmir IZM-02 --name Konak --city İzmir --district Konak",
            "partner-api grant add Acme izmir",
            "partner-api threshold set izmir SLIP_FRONT --good -7..7 --borderline -9.5..9.5",
            "partner-api range set izmir SLIP_REAR -15..15",
            "partner-api inspector create 'Ayşe Yılmaz' --branch IZM-01",
        ] {
            let ran = self.shell(line);
            assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        }
        let key = self.json(&["key", "create", "Acme", "--scope", "test-line:write"]);
        key["result"]["key_id"].as_str().unwrap().to_owned()
    }
}

const STATE: &str = "\
SELECT jsonb_build_object(
  'partners', (SELECT jsonb_agg(p ORDER BY p.id) FROM partners p),
  'keys', (SELECT jsonb_agg(k ORDER BY k.key_id) FROM api_keys k
           WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())),
  'grants', (SELECT jsonb_agg(g ORDER BY g.partner_id, g.organization_id) FROM grants g),
  'grant_branches', (SELECT jsonb_agg(b ORDER BY b.partner_id, b.branch_id) FROM grant_branches b),
  'organizations', (SELECT jsonb_agg(to_jsonb(o) - 'reports_changed_at' ORDER BY o.id) FROM organizations o),
  'branches', (SELECT jsonb_agg(b ORDER BY b.id) FROM branches b),
  'thresholds', (SELECT jsonb_agg(to_jsonb(t) - 'valid_from' ORDER BY t.organization_id, t.point_code) FROM thresholds t),
  'inspectors', (SELECT jsonb_agg(i ORDER BY i.id) FROM inspectors i WHERE i.revoked_at IS NULL),
  'inspector_branches', (SELECT jsonb_agg(b ORDER BY b.inspector_id, b.branch_id)
                         FROM inspector_branches b JOIN inspectors i ON i.id = b.inspector_id WHERE i.revoked_at IS NULL),
  'plausible_ranges', (SELECT jsonb_agg(r ORDER BY r.organization_id, r.point_code) FROM plausible_ranges r),
  'templates', (SELECT jsonb_agg(t ORDER BY t.id) FROM form_templates t),
  'points', (SELECT jsonb_agg(p ORDER BY p.id) FROM form_template_points p))::text";
