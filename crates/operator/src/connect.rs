//! The options common to all commands.

use std::path::PathBuf;

use clap::Args;
use partner_api::config::{Config, ConfigError, Hidden, Layer, ServeArgs};

/// The database and the output format. Options that are not given come from the environment and the file, as for `serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct Connect {
    /// Configuration file of the service, as for serve [env: PARTNER_API_CONFIG]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Database")]
    pub config: Option<PathBuf>,
    /// PostgreSQL of the service. Put a URL with a password into the environment or the file
    /// [env: PARTNER_API_DATABASE_URL] [default: the private cluster in the data folder]
    #[arg(long, global = true, value_name = "URL", help_heading = "Database")]
    pub database_url: Option<Hidden>,
    /// Folder of the private cluster [env: PARTNER_API_DATA_DIR] [default: ./data]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "Database")]
    pub data_dir: Option<PathBuf>,
    /// File with the master key, for commands that create a secret [env: PARTNER_API_MASTER_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Database")]
    pub master_key_file: Option<PathBuf>,
    /// File with a second master key, during a change of the master key
    /// [env: PARTNER_API_OTHER_MASTER_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Database")]
    pub other_master_key_file: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
}

impl Connect {
    /// Loads the configuration from these options, the environment and the file.
    ///
    /// # Errors
    /// If the configuration is not valid.
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
