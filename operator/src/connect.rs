//! The options of all commands.

use std::path::PathBuf;

use clap::Args;
use partner_api::config::{Config, ConfigError, Hidden, Layer, ServeArgs};

/// Where the database is, and how to print. What is not given is taken from the environment and the file, as by `serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct Connect {
    /// TOML file of the service, as given to serve [env: PARTNER_API_CONFIG]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Database")]
    pub config: Option<PathBuf>,
    /// PostgreSQL of the service, without a password: that belongs into the environment or the file
    /// [env: PARTNER_API_DATABASE_URL] [default: the private cluster in the data folder]
    #[arg(long, global = true, value_name = "URL", value_parser = hidden, help_heading = "Database")]
    pub database_url: Option<Hidden>,
    /// Folder of the private cluster [env: PARTNER_API_DATA_DIR] [default: ./data]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "Database")]
    pub data_dir: Option<PathBuf>,
    /// File that holds the master key, for commands that make a secret [env: PARTNER_API_MASTER_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Database")]
    pub master_key_file: Option<PathBuf>,
    /// File of a second master key that is accepted, while one takes the other's place
    /// [env: PARTNER_API_OTHER_MASTER_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Database")]
    pub other_master_key_file: Option<PathBuf>,
    /// JSON on standard output instead of a table, for scripts
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
}

impl Connect {
    /// The configuration that these options, the environment and the file give.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn configuration(&self) -> Result<Config, ConfigError> {
        Config::load(&ServeArgs {
            config: self.config.clone(),
            flags: Layer {
                database_url: self.database_url.clone(),
                data_dir: self.data_dir.clone(),
                master_key_file: self.master_key_file.clone(),
                other_master_key_file: self.other_master_key_file.clone(),
                ..Layer::default()
            },
        })
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
fn hidden(text: &str) -> Result<Hidden, String> {
    Ok(Hidden::from(text.to_owned()))
}
