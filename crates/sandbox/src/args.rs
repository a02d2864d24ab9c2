//! The arguments of `partner-api sandbox`, and the configuration that it runs with.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use partner_api::config::{Config, ConfigError, Layer, MasterKeySource, MaybeListen, PublicReportUrl};

/// What the help says at its end.
pub const EXAMPLES: &str = "\
Examples:
  partner-api sandbox               serve until Ctrl-C; keys are in .sandbox/sandbox.json
  partner-api sandbox --port 9000   use another port
  partner-api sandbox --check       run the scenarios and exit";

/// The options of `sandbox`.
#[derive(Args, Clone, Debug)]
pub struct SandboxArgs {
    /// Port on 127.0.0.1; 0 picks a free port
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Folder for the data of the sandbox
    #[arg(long, value_name = "FOLDER", default_value = ".sandbox")]
    pub data_dir: PathBuf,
    /// Run the acceptance scenarios and exit; the exit code is 1 if one failed
    #[arg(long)]
    pub check: bool,
    /// Requests per minute and client address; 0 means no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub ip_limit: u32,
}

impl SandboxArgs {
    /// The address to listen on.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The sandbox's configuration, with this process's environment.
    ///
    /// # Errors
    /// As [`config_in`](Self::config_in).
    pub fn config(&self) -> Result<Config, ConfigError> {
        self.config_in(Layer::from_environment(|name| std::env::var(name).ok())?)
    }

    /// The sandbox's configuration. Of the environment it takes the log's options and the server programs' folder alone: a
    /// production database's URL that happens to be set must not become a sandbox.
    ///
    /// # Errors
    /// One of those variables cannot be used.
    pub fn config_in(&self, environment: Layer) -> Result<Config, ConfigError> {
        let flags = Layer {
            listen: Some(self.listen()),
            // Two sandboxes may run side by side.
            internal_listen: Some(MaybeListen::At((Ipv4Addr::LOCALHOST, 0).into())),
            data_dir: Some(self.data_dir.clone()),
            ip_limit: Some(self.ip_limit),
            // Nobody answers there: the sandbox has no public pages.
            public_report_url: Some(PublicReportUrl::At("https://reports.example/{slug}".to_owned())),
            ..Layer::default()
        };
        let Layer {
            postgres_bin,
            log_level,
            log_format,
            ..
        } = environment;
        let environment = Layer {
            postgres_bin,
            log_level,
            log_format,
            ..Layer::default()
        };
        let mut config = Config::resolve(flags, environment, Layer::default())?;
        config.master_key = Some(MasterKeySource::FileOrNew(config.options.data_dir.join("master.key")));
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use partner_api::config::Database;
    use partner_api_signing::Environment;

    use super::*;

    #[test]
    fn the_sandbox_ignores_an_operators_environment() {
        let args = SandboxArgs {
            port: 0,
            data_dir: ".sandbox".into(),
            check: false,
            ip_limit: 0,
        };
        let variables = |name: &str| {
            let value = match name {
                "PARTNER_API_DATABASE_URL" => "postgresql://u@production/d",
                "PARTNER_API_ENVIRONMENT" => "live",
                "PARTNER_API_POSTGRES_BIN" => "/opt/pg",
                "PARTNER_API_LOG_LEVEL" => "debug",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let environment = Layer::from_environment(variables).expect("a layer");
        assert!(environment.database_url.is_some() && environment.environment.is_some());
        let config = args.config_in(environment).expect("a configuration");
        assert_eq!(
            config.database,
            Database::Embedded {
                postgres_bin: Some("/opt/pg".into())
            }
        );
        assert_eq!(
            (config.options.environment, config.options.ip_limit),
            (Environment::Test, 0)
        );
        assert_eq!(
            (
                config.options.listen.to_string().as_str(),
                config.options.log_level.as_str()
            ),
            ("127.0.0.1:0", "debug")
        );
        assert_eq!(config.options.data_dir, Path::new(".sandbox"));
        assert_eq!(
            config.master_key,
            Some(MasterKeySource::FileOrNew(".sandbox/master.key".into()))
        );
    }
}
