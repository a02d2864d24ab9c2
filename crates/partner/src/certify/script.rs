//! The script of `partner certify --listen`: the steps, and the responses that the sandbox is made to send.

use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;

/// The default script. A response is a `Prefer` header of the sandbox (SVC-10).
pub(super) const DEFAULT: &str = r#"
[[step]]
name = "a measurement"

[[step]]
name = "rate limit"
responses = ["code=429, error=rate_limited"]

[[step]]
name = "service unavailable"
responses = ["code=503", "code=503"]

[[step]]
name = "dropped connection"
responses = ["drop"]

[[step]]
name = "slow response"
responses = ["delay=10"]

[[step]]
name = "skipped points"
responses = ["code=201, example=applied"]

[[step]]
name = "external_id of another measurement"
id_is_taken = true

[[step]]
name = "list with filters"
task = "list"

[[step]]
name = "revoked key"
responses = [
    "code=401, error=invalid_key",
    "code=401, error=invalid_key",
    "code=401, error=invalid_key",
    "code=401, error=invalid_key",
]
"#;

/// The steps in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    #[serde(rename = "step")]
    pub(super) steps: Vec<Step>,
}

/// One request of the program with its retries.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) name: String,
    /// The program's action.
    #[serde(default)]
    pub(super) task: Task,
    /// The `Prefer` header that is added to each attempt in turn. Further attempts get the sandbox's own response.
    #[serde(default)]
    pub(super) responses: Vec<String>,
    /// Whether another measurement gets the program's `external_id` first.
    #[serde(default)]
    pub(super) id_is_taken: bool,
}

/// The program's action in a step.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Task {
    /// Submits a new measurement.
    #[default]
    Measure,
    /// Lists reports with filters.
    List,
}

impl Script {
    /// Reads a script from a file, or the default one.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return toml::from_str(DEFAULT).map_err(|error| Failure::Failed(error.to_string()));
        };
        let text = crate::text::read(path).map_err(Failure::of(path))?;
        toml::from_str(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    }
}

impl Step {
    /// Returns what the user has to do if no command is given.
    pub(super) fn instruction(&self) -> &'static str {
        match self.task {
            Task::Measure => "submit one new measurement, with at least one value that has decimals",
            Task::List => {
                "list reports with a report_number that has Turkish letters, and with a time that has an offset such as +03:00"
            }
        }
    }
}
