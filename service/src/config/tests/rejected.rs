//! Rejected configurations, and that error messages do not leak secrets.

use super::*;

#[test]
fn an_unknown_key_in_the_file_is_named_with_its_line_and_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.toml");
    fs::write(&path, "ip_limit = 5\n\npool_sise = 4\n").unwrap();
    let message = read_file(&path).unwrap_err().to_string();
    for part in ["service.toml", "line 3", "pool_sise", "pool_size"] {
        assert!(message.contains(part), "{message}");
    }
    let message = read_file(&folder.path().join("absent.toml")).unwrap_err().to_string();
    assert!(message.contains("absent.toml"), "{message}");
}

#[test]
fn a_bad_value_in_the_file_is_reported_without_showing_other_lines() {
    for (text, part) in [
        ("listen = 'nowhere'", "line 1: invalid socket address"),
        (
            "internal_listen = 'on'",
            "line 1: invalid socket address syntax; write an address",
        ),
        ("\nbody_timeout = '0s'", "line 2: must be longer than 0"),
        ("body_timeout = 'soon'", "write a duration as"),
        ("environment = 'staging'", "`test` or `live`"),
        ("log_format = 'xml'", "unknown variant `xml`"),
        ("trusted_proxies = ['10.0.0.0/99']", "line 1"),
        ("pool_size = 'many'", "invalid type"),
        ("s3_secret_access_key = 'hush\n", "line 1"),
    ] {
        let message = Layer::from_toml(text).unwrap_err();
        assert!(message.contains(part) && !message.contains("hush"), "{message}");
    }
}

#[test]
fn a_bad_variable_is_named_and_its_value_is_not_shown() {
    for (name, value, part) in [
        ("PARTNER_API_LISTEN", "sesame", "invalid socket address"),
        ("PARTNER_API_POOL_WAIT", "sesame", "write a duration as"),
        ("PARTNER_API_ENVIRONMENT", "sesame", "`test` or `live`"),
        ("PARTNER_API_LOG_FORMAT", "sesame", "expected one of auto, text, json"),
        (
            "PARTNER_API_TRUSTED_PROXIES",
            "10.0.0.0/8,sesame",
            "invalid IP address syntax",
        ),
        ("PARTNER_API_S3_ALLOW_HTTP", "sesame", "true, false"),
        ("PARTNER_API_IP_LIMIT", "-1", "is not in 0..="),
    ] {
        let message = try_environment(&[(name, value)]).unwrap_err().to_string();
        assert!(
            message.contains(name) && message.contains(part) && !message.contains("sesame"),
            "{message}"
        );
    }
}

#[test]
fn invalid_options_are_rejected_by_name() {
    for (text, parts) in [
        ("pool_size = 0", ["--pool-size", "1 to 1000"]),
        ("key_prefix = 'VIP'", ["--key-prefix", "a-z and 0-9"]),
        ("public_url = 'api.example.org'", ["--public-url", "relative URL"]),
        (
            "public_url = 'ftp://api.example.org'",
            ["--public-url", "expected a URL like"],
        ),
        (
            "public_url = 'https://api.example.org/?x'",
            ["--public-url", "expected a URL like"],
        ),
        ("listen = '0.0.0.0:80'", ["--public-url", "required"]),
        (
            "database_url = 'postgresql://u:hush@h:port/d'",
            ["--database-url", "expected postgresql://"],
        ),
        ("log_level = 'info,partner_api=loud'", ["--log-level", "loud"]),
        (
            "tls_certificate = 'c'",
            ["--tls-key", "required with --tls-certificate"],
        ),
        ("tls_key = 'k'", ["--tls-certificate", "required with --tls-key"]),
        ("request_log_days = 0", ["--request-log-days", "1 to 3650"]),
        ("report_years = 101", ["--report-years", "1 to 100"]),
        ("audit_years = 0", ["--audit-years", "1 to 100"]),
        (
            "unused_measurement_days = 0",
            ["--unused-measurement-days", "1 to 3650"],
        ),
        ("trace_share = 0.5", ["--trace-share", "--otlp-endpoint"]),
        (
            "otlp_endpoint = 'localhost:4318'",
            ["--otlp-endpoint", "http://127.0.0.1:4318"],
        ),
        (
            "otlp_endpoint = 'http://me:hush@collector'",
            ["--otlp-endpoint", "OTEL_EXPORTER_OTLP_HEADERS"],
        ),
        (
            "otlp_endpoint = 'http://collector'\ntrace_share = 1.5",
            ["--trace-share", "0 to 1"],
        ),
        ("s3_region = 'r'", ["--s3-bucket", "required"]),
        ("s3_bucket = 'b'\nstorage_dir = 'd'", ["--storage-dir", "not both"]),
        (
            "s3_bucket = 'b'\ns3_access_key_id = 'i'",
            ["--s3-access-key-id", "together"],
        ),
    ] {
        let message = error(none(), none(), file(text));
        assert!(
            parts.iter().all(|part| message.contains(part)) && !message.contains("hush"),
            "{text}: {message}"
        );
    }
}

#[test]
fn a_password_in_a_flag_is_rejected() {
    for option in ["database-url", "read-database-url"] {
        let flag = format!("--{option}");
        let message = error(
            flags(&[&flag, "postgresql://u:hush@h/d"]),
            none(),
            file("database_url = 'postgresql://u@h/d'"),
        );
        let variable = sources::variable_name(&option.replace('-', "_"));
        assert!(message.contains(&variable) && !message.contains("hush"), "{message}");
    }
    assert!(
        Config::resolve(
            flags(&["--database-url", "postgresql:///d?host=/run&user=u"]),
            none(),
            none()
        )
        .is_ok()
    );
}
