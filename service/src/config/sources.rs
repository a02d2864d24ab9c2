//! Reads options from their sources: flags, environment and file.

use std::path::PathBuf;

use clap::{Arg, Args, Command, FromArgMatches};
use partner_api_signing::Environment;
use serde::{Deserialize, Deserializer, Serializer};

use super::options::UNSET;
use super::{ConfigError, Hidden, Layer};
use partner_api_store::secrets::MASTER_KEY_VARIABLE;

/// The prefix of every option's environment variable.
const PREFIX: &str = "PARTNER_API_";
const S3_SECRET_VARIABLE: &str = "PARTNER_API_S3_SECRET_ACCESS_KEY";

/// The options of `serve` and `migrate`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// TOML file with any of the options below, named like their flags with _ instead of - (pool_size = 16)
    /// [env: PARTNER_API_CONFIG] [default: none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The options given as flags.
    #[command(flatten)]
    pub flags: Layer,
}

impl Layer {
    /// Reads the environment; `variable` returns the value of a variable.
    ///
    /// # Errors
    /// If a value is not valid. The error names the variable and does not repeat its value.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        // Each value goes through the parser of its flag, so that both accept the same. clap's own `env` does not fit: its
        // errors repeat the value, which may be a secret, and it takes an empty variable for a value.
        let mut command = Self::augment_args(Command::new("environment").disable_help_flag(true).no_binary_name(true));
        command.build();
        let value_of = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut layer = Self::default();
        for argument in command.clone().get_arguments() {
            let id = argument.get_id().as_str();
            let name = variable_name(id);
            let Some(value) = value_of(&name) else {
                continue;
            };
            let flag = format!("--{}={value}", id.replace('_', "-"));
            command
                .clone()
                .try_get_matches_from([flag])
                .and_then(|matches| layer.update_from_arg_matches(&matches))
                .map_err(|error| ConfigError::Variable {
                    name,
                    reason: reason(&error),
                })?;
        }
        layer.s3_secret_access_key = value_of(S3_SECRET_VARIABLE).map(Hidden::from);
        layer.master_key = value_of(MASTER_KEY_VARIABLE).map(Hidden::from);
        Ok(layer)
    }

    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// If the text is not valid. The message has the line and the error; for an unknown key, its name and the known ones.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            // The error's own text would show the line, which may hold a secret.
            let before = &text.as_bytes()[..error.span().map_or(0, |span| span.start.min(text.len()))];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            format!("line {line}: {}", error.message())
        })
    }
}

/// Adds an option's environment variable and default to its help.
pub(super) fn describe(argument: Arg) -> Arg {
    let id = argument.get_id().as_str();
    let (Some(default), Some(help)) = (default_of(id), argument.get_help()) else {
        return argument;
    };
    let help = format!("{help} [env: {}] [default: {default}]", variable_name(id));
    argument.help(help)
}

/// Returns an option's default as text: its value, or its behavior while it is unset.
pub(super) fn default_of(option: &str) -> Option<String> {
    let (_, unset) = UNSET.iter().find(|(name, _)| *name == option)?;
    if !unset.is_empty() {
        return Some((*unset).to_owned());
    }
    let defaults = toml::Table::try_from(Layer::default().with_defaults()).ok()?;
    defaults.get(option).map(|value| match value {
        toml::Value::String(text) => text.clone(),
        value => value.to_string(),
    })
}

/// Returns the name of an option's environment variable: `PARTNER_API_POOL_SIZE` for `pool_size`.
pub(super) fn variable_name(option: &str) -> String {
    format!("{PREFIX}{}", option.to_ascii_uppercase())
}

/// Returns the reason why clap rejects a value, without the value.
fn reason(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    if let Some(cause) = std::error::Error::source(error) {
        return cause.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => format!("expected one of {}", values.join(", ")),
        _ => "the value is not valid".to_owned(),
    }
}

pub(super) fn environment_to_text<S: Serializer>(environment: &Environment, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(environment.as_str())
}

pub(super) fn environment_from_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Environment>, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map(Some)
        .map_err(serde::de::Error::custom)
}
