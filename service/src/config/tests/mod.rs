mod rejected;
mod sample;

use clap::{Args, FromArgMatches};

use partner_api_signing::Environment;

use super::*;
use crate::logging::LogFormat;

fn flags(arguments: &[&str]) -> Layer {
    let serve = ServeArgs::augment_args(clap::Command::new("serve")).no_binary_name(true);
    let matches = serve.try_get_matches_from(arguments).unwrap();
    ServeArgs::from_arg_matches(&matches).unwrap().flags
}

fn environment(variables: &[(&str, &str)]) -> Layer {
    try_environment(variables).unwrap()
}

fn try_environment(variables: &[(&str, &str)]) -> Result<Layer, ConfigError> {
    let variables: Vec<(String, String)> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Layer::from_environment(|name| {
        variables
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.clone())
    })
}

fn file(text: &str) -> Layer {
    Layer::from_toml(text).unwrap()
}

fn none() -> Layer {
    Layer::default()
}

fn error(flags: Layer, environment: Layer, file: Layer) -> String {
    Config::resolve(flags, environment, file).unwrap_err().to_string()
}

#[test]
fn defaults_are_as_documented() {
    let config = Config::resolve(none(), none(), none()).unwrap();
    assert_eq!(config.options.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(
        serde_json::to_value(config.options.internal_listen).unwrap(),
        "127.0.0.1:9464"
    );
    assert_eq!(
        serde_json::to_value(config.options.inspectors_listen).unwrap(),
        "127.0.0.1:9466"
    );
    assert_eq!((&config.options.public_url, &config.tls), (&None, &None));
    assert_eq!(config.options.public_report_url, None);
    assert_eq!(config.options.environment, Environment::Test);
    assert_eq!(config.options.key_prefix, "vip");
    assert_eq!(config.database, Database::Embedded { postgres_bin: None });
    assert_eq!(config.options.data_dir, Path::new("data"));
    assert_eq!(
        (config.options.pool_size, config.options.pool_wait),
        (16, Span::millis(250))
    );
    assert_eq!(config.options.statement_timeout, Span::secs(5));
    assert_eq!(config.options.ip_limit, 1200);
    assert_eq!(config.options.trusted_proxies, None);
    assert_eq!(config.options.body_timeout, Span::secs(30));
    assert!(matches!(&config.storage, StorageChoice::Folder(folder) if folder == Path::new("data/files")));
    assert_eq!(config.master_key, None);
    assert!(
        config
            .master_key()
            .unwrap_err()
            .to_string()
            .contains("openssl rand -hex 32")
    );
    assert_eq!(
        (config.options.log_level.as_str(), config.options.log_format),
        ("info", LogFormat::Auto)
    );
    assert_eq!(
        (config.options.request_log, config.options.request_log_days),
        (Switch::On, 90)
    );
    assert_eq!(
        (
            config.options.report_years,
            config.options.unused_measurement_days,
            config.options.audit_years
        ),
        (None, None, None)
    );
    assert_eq!(config.traces, None);
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let in_file = || file("pool_size = 1\nip_limit = 1\nkey_prefix = 'file'\nbody_timeout = '1s'");
    let in_environment = || {
        environment(&[
            ("PARTNER_API_POOL_SIZE", "2"),
            ("PARTNER_API_IP_LIMIT", "2"),
            ("PARTNER_API_BODY_TIMEOUT", "2s"),
            // An empty variable counts as unset.
            ("PARTNER_API_KEY_PREFIX", ""),
        ])
    };
    let config = Config::resolve(flags(&["--pool-size", "3"]), in_environment(), in_file()).unwrap();
    assert_eq!((config.options.pool_size, config.options.ip_limit), (3, 2));
    assert_eq!(
        (config.options.key_prefix.as_str(), config.options.body_timeout),
        ("file", Span::secs(2))
    );
}

#[test]
fn every_option_is_understood_in_all_three_layers() {
    let text = r#"
        listen = "[::1]:9000"
        internal_listen = "off"
        inspectors_listen = "off"
        public_url = "https://api.example.org/"
        public_report_url = "https://reports.example/{slug}"
        tls_certificate = "/etc/tls.crt"
        tls_key = "/etc/tls.key"
        environment = "live"
        deployment = "01939b97-5c00-74ad-a4d9-83e75accf8ea"
        key_prefix = "abc"
        master_key_file = "/etc/key"
        other_master_key_file = "/etc/other-key"
        database_url = "postgresql://u:p@db/x"
        read_database_url = "postgresql://u:p@standby/x"
        read_max_lag = "3s"
        data_dir = "/srv"
        postgres_bin = "/opt/pg"
        pool_size = 4
        pool_wait = "100ms"
        statement_timeout = "2s"
        ip_limit = 0
        trusted_proxies = ["10.0.0.0/8", "fd00::/8"]
        body_timeout = "10s"
        request_timeout = "11s"
        shutdown_deadline = "12s"
        drain = "3s"
        renderers = 2
        s3_bucket = "b"
        s3_region = "r"
        s3_endpoint = "https://s3.example.org"
        s3_public_endpoint = "https://files.example.org"
        s3_access_key_id = "id"
        s3_secret_access_key = "hush"
        s3_path_style = true
        s3_allow_http = false
        report_years = 10
        unused_measurement_days = 30
        audit_years = 10
        log_level = "warn"
        log_format = "json"
        request_log = "off"
        request_log_days = 7
        otlp_endpoint = "http://127.0.0.1:4318"
        trace_share = 0.25
    "#;
    let from_file = Config::resolve(none(), none(), file(text)).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let as_text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(values) => values
            .iter()
            .filter_map(toml::Value::as_str)
            .collect::<Vec<_>>()
            .join(","),
        value => value.to_string(),
    };
    let variables: Vec<(String, String)> = table
        .iter()
        .map(|(key, value)| (sources::variable_name(key), as_text(value)))
        .collect();
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let from_environment = Config::resolve(none(), environment(&variables), none()).unwrap();
    // The debug output redacts hidden values, so these are compared separately.
    assert_eq!(format!("{from_file:?}"), format!("{from_environment:?}"));
    assert_eq!(from_file.database, from_environment.database);
    assert_eq!(from_file.read_database, from_environment.read_database);

    let given: Vec<String> = table
        .iter()
        .filter(|(key, _)| !["s3_secret_access_key", "database_url", "read_database_url"].contains(&key.as_str()))
        .map(|(key, value)| format!("--{}={}", key.replace('_', "-"), as_text(value)))
        .collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let rest = || {
        file(
            "s3_secret_access_key = 'hush'\ndatabase_url = 'postgresql://u:p@db/x'\n\
             read_database_url = 'postgresql://u:p@standby/x'",
        )
    };
    let from_flags = Config::resolve(flags(&given), none(), rest()).unwrap();
    assert_eq!(format!("{from_file:?}"), format!("{from_flags:?}"));
    assert_eq!(from_file.options.public_url.as_deref(), Some("https://api.example.org"));
    let known = Layer::augment_args(clap::Command::new("x")).get_arguments().count();
    // All flags except storage_dir, which excludes the bucket, plus the secret that has no flag.
    assert_eq!(table.len(), known - 1 + 1);
}

/// KEY-2
#[test]
fn nothing_printed_shows_a_secret() {
    let layer = file(
        "database_url = 'postgresql://u:hunter2@db/x'\nread_database_url = 'postgresql://u:hunter2@standby/x'\ns3_bucket='b'\ns3_access_key_id='i'\ns3_secret_access_key='hush'",
    );
    let key = "ab".repeat(32);
    let with_key = environment(&[("PARTNER_API_MASTER_KEY", &key)]);
    let config = Config::resolve(none(), with_key, layer).unwrap();
    assert!(config.master_key().is_ok());
    for shown in [format!("{config:?}"), serde_json::to_string(&config.options).unwrap()] {
        for secret in ["hunter2", "hush", &key] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

#[test]
fn the_master_key_follows_the_layers_too() {
    let key = "ab".repeat(32);
    let both = || {
        environment(&[
            ("PARTNER_API_MASTER_KEY", &key),
            ("PARTNER_API_MASTER_KEY_FILE", "/env"),
        ])
    };
    let in_file = || file("master_key_file = '/file'");
    let source = |flags, environment| {
        Config::resolve(flags, environment, in_file())
            .unwrap()
            .master_key
            .unwrap()
    };
    assert_eq!(
        source(flags(&["--master-key-file", "/flag"]), both()),
        MasterKeySource::File("/flag".into())
    );
    assert_eq!(
        source(none(), both()),
        MasterKeySource::Given(Hidden::from(key.clone()))
    );
    let only_file = environment(&[("PARTNER_API_MASTER_KEY_FILE", "/env")]);
    assert_eq!(source(none(), only_file), MasterKeySource::File("/env".into()));
    assert_eq!(source(none(), none()), MasterKeySource::File("/file".into()));
}

#[test]
fn standbys_require_a_database_url_and_a_minimum_lag() {
    let with = |rest: &str| file(&format!("database_url = 'postgresql://u@h/d'\n{rest}"));
    let read = |rest: &str| Config::resolve(none(), none(), with(rest)).unwrap().read_database;
    assert_eq!(read(""), None);
    let standby = "read_database_url = 'postgresql://u@standby/d'";
    assert_eq!(read(standby).unwrap().max_lag, Span::secs(2));
    assert_eq!(
        read(&format!("{standby}\nread_max_lag = '100ms'")).unwrap().max_lag,
        Span::millis(100)
    );
    for (layer, option) in [
        (with("read_max_lag = '1s'"), "--read-max-lag"),
        (with(&format!("{standby}\nread_max_lag = '99ms'")), "--read-max-lag"),
        (file(standby), "--read-database-url"),
        (with("read_database_url = 'nonsense'"), "--read-database-url"),
    ] {
        let message = error(none(), none(), layer);
        assert!(message.starts_with(option), "{message}");
    }
}

#[test]
fn help_shows_each_options_variable_and_default() {
    for argument in Layer::augment_args(clap::Command::new("x")).get_arguments() {
        let help = argument.get_help().unwrap().to_string();
        let variable = format!(" [env: {}]", sources::variable_name(argument.get_id().as_str()));
        assert!(help.contains(&variable), "{}: {help}", argument.get_id());
        assert!(help.contains(" [default: "), "{}: {help}", argument.get_id());
    }
}

/// REP-20
#[test]
fn the_url_of_public_reports_is_checked_at_startup_and_can_be_removed() {
    let of = |text: &str| Layer::from_toml(&format!("public_report_url = '{text}'"));
    for (text, address) in [
        ("https://reports.example/{slug}", Some("https://reports.example/{slug}")),
        ("off", None),
    ] {
        let config = Config::resolve(none(), none(), of(text).unwrap()).unwrap();
        assert_eq!(config.options.public_report_url.unwrap().address(), address);
    }
    for wrong in ["https://reports.example/", "reports.example/{slug}", ""] {
        let message = of(wrong).unwrap_err();
        assert!(
            message.contains("line 1") && message.contains("https://reports.example/{slug}"),
            "{message}"
        );
    }
}
