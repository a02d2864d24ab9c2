//! The arguments of `partner-api sandbox` and its configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use partner_api::config::{Config, ConfigError, Layer, MasterKeySource, MaybeListen, PublicReportUrl};

/// The end of the help text.
pub const EXAMPLES: &str = "\
Examples:
  partner-api sandbox               serve until Ctrl-C; the keys are in .sandbox/sandbox.json
  partner-api sandbox --port 9000   use another port
  partner-api sandbox --check       run the scenarios and exit
  partner-api sandbox --reset alpha free its external_ids, and restore its key, grants and quota";

/// The options of `sandbox`.
#[derive(Args, Clone, Debug)]
pub struct SandboxArgs {
    /// The port on 127.0.0.1; the inspectors' page uses the next one; 0 selects free ports
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// The folder for the sandbox's data
    #[arg(long, value_name = "FOLDER", default_value = ".sandbox")]
    pub data_dir: PathBuf,
    /// Run the acceptance scenarios and exit; the exit code is 1 if one failed
    #[arg(long)]
    pub check: bool,
    /// Reset this partner and exit, also while the sandbox runs: its key, grants, quota and measurements
    #[arg(long, value_name = "PARTNER", conflicts_with_all = ["check", "port"])]
    #[arg(value_parser = ["alpha", "beta", "gamma", "delta"])]
    pub reset: Option<String>,
    /// Requests per minute and client address; 0 for no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub ip_limit: u32,
}

impl SandboxArgs {
    /// Returns the address to listen on.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns the address of the inspectors' page: the port after that of the API, so that it survives a restart.
    #[must_use]
    pub fn inspectors_listen(&self) -> SocketAddr {
        let port = if self.port == 0 {
            0
        } else {
            self.port.checked_add(1).unwrap_or(0)
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Returns the address of the sandbox's public pages of reports; a placeholder if the port is not known yet.
    fn public_report_url(&self) -> String {
        match self.port {
            0 => "https://reports.example/{slug}".to_owned(),
            _ => format!("http://{}/r/{{slug}}", self.listen()),
        }
    }

    /// Returns the configuration with this process's environment.
    ///
    /// # Errors
    /// See [`config_in`](Self::config_in).
    pub fn config(&self) -> Result<Config, ConfigError> {
        self.config_in(Layer::from_environment(|name| std::env::var(name).ok())?)
    }

    /// Returns the configuration. It takes only the log options and the folder of the PostgreSQL programs from the environment.
    /// A production database whose URL happens to be set therefore does not become a sandbox.
    ///
    /// # Errors
    /// One of those variables is invalid.
    pub fn config_in(&self, environment: Layer) -> Result<Config, ConfigError> {
        let flags = Layer {
            listen: Some(self.listen()),
            internal_listen: Some(MaybeListen::At((Ipv4Addr::LOCALHOST, 0).into())),
            inspectors_listen: Some(MaybeListen::At(self.inspectors_listen())),
            data_dir: Some(self.data_dir.clone()),
            ip_limit: Some(self.ip_limit),
            public_report_url: Some(PublicReportUrl::At(self.public_report_url())),
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
    fn the_inspectors_page_has_the_same_port_after_a_restart() {
        let inspectors_listen = |port| {
            let args = SandboxArgs {
                port,
                data_dir: ".sandbox".into(),
                check: false,
                reset: None,
                ip_limit: 0,
            };
            args.inspectors_listen().to_string()
        };
        assert_eq!(inspectors_listen(8080), "127.0.0.1:8081");
        assert_eq!(inspectors_listen(0), "127.0.0.1:0");
    }

    #[test]
    fn the_sandbox_ignores_an_operators_environment() {
        let args = SandboxArgs {
            port: 0,
            data_dir: ".sandbox".into(),
            check: false,
            reset: None,
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
