//! Deserialization of parameters.

use codegen_runtime::{NumberRules, StringRules, param};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

fn read<T>(text: &str, read: impl FnOnce(StrDeserializer<'_, Error>) -> Result<T, Error>) -> Result<T, String> {
    read(text.into_deserializer()).map_err(|error| error.to_string())
}

#[test]
fn errors_of_integers_contain_their_bounds() {
    let rules = NumberRules {
        minimum: Some((1, false)),
        maximum: Some((100, false)),
        ..NumberRules::NONE
    };
    let limit = |text: &str| read(text, |text| param::integer::<_, i32>(text, "limit", rules));
    assert_eq!(limit("100"), Ok(100));
    for wrong in ["0", "101", "+5", "1.0", "", "abc"] {
        let expected = format!("limit: must be a whole number from 1 to 100, is {wrong:?}");
        assert_eq!(limit(wrong), Err(expected));
    }
    let page = |text: &str| read(text, |text| param::integer::<_, u32>(text, "page", NumberRules::NONE));
    assert_eq!(
        page("-1"),
        Err("page: must be a whole number of at most 32 bits, is \"-1\"".into())
    );
}

#[test]
fn numbers_within_their_bounds_must_still_be_multiples() {
    let rules = NumberRules {
        minimum: Some((1, false)),
        multiple_of: Some(5),
        ..NumberRules::NONE
    };
    let size = |text: &str| read(text, |text| param::integer::<_, i32>(text, "size", rules));
    assert_eq!(size("10"), Ok(10));
    assert_eq!(size("11"), Err("size: must be a multiple of 5, is 11".into()));
    assert_eq!(
        size("0"),
        Err("size: must be a whole number at least 1, is \"0\"".into())
    );
    let rules = NumberRules {
        multiple_of: Some(0.5),
        ..NumberRules::NONE
    };
    let share = |text: &str| read(text, |text| param::number(text, "share", rules));
    assert_eq!(share("1.5"), Ok(1.5));
    assert_eq!(share("1.6"), Err("share: must be a multiple of 0.5, is 1.6".into()));
}

#[test]
fn numbers_must_be_finite() {
    let rules = NumberRules {
        minimum: Some((0.0, true)),
        ..NumberRules::NONE
    };
    let weight = |text: &str| read(text, |text| param::number(text, "weight", rules));
    assert_eq!(weight("0.5"), Ok(0.5));
    for wrong in ["0", "NaN", "inf", "x"] {
        assert_eq!(weight(wrong), Err(format!("weight: must be more than 0, is {wrong:?}")));
    }
}

#[test]
fn booleans_are_true_or_false() {
    let flag = |text: &str| read(text, |text| param::boolean(text, "all"));
    assert_eq!((flag("true"), flag("false")), (Ok(true), Ok(false)));
    assert_eq!(flag("1"), Err("all: must be true or false, is \"1\"".into()));
}

#[test]
fn rules_of_strings_are_checked() {
    let rules = StringRules {
        max_length: Some(2),
        ..StringRules::NONE
    };
    let name = |text: &str| read(text, |text| param::string(text, "name", rules));
    assert_eq!(name("abc"), Err("name: must have at most 2 characters, has 3".into()));
}

#[test]
fn a_lost_plus_sign_gets_a_hint() {
    let from = |text: &str| read(text, |text| param::date_time(text, "from"));
    assert!(from("2026-05-01T12:30:00+03:00").is_ok());
    let lost = from("2026-05-01T12:30:00 03:00").unwrap_err();
    assert!(
        lost.starts_with("from: must be an RFC 3339 time with an offset"),
        "{lost}"
    );
    assert!(
        lost.ends_with("; a plus sign in a query means a space, send it as %2B"),
        "{lost}"
    );
    assert!(
        from("2026-05-01 12:30:00Z")
            .unwrap_err()
            .ends_with("; is \"2026-05-01 12:30:00Z\"")
    );
    assert!(
        from("2026-05-01T12:30:00")
            .unwrap_err()
            .ends_with("; the offset is missing")
    );
    assert!(from("yesterday").unwrap_err().ends_with("; is \"yesterday\""));
    assert!(from("1795383442").unwrap_err().ends_with("+03:00, not UNIX time"));
    #[derive(Debug, Deserialize)]
    struct Query {
        #[serde(deserialize_with = "a_time")]
        at: chrono::DateTime<chrono::Utc>,
    }
    fn a_time<'de, D: serde::Deserializer<'de>>(d: D) -> Result<chrono::DateTime<chrono::Utc>, D::Error> {
        param::date_time(d, "at")
    }
    assert!(
        serde_urlencoded::from_str::<Query>("at=2026-05-01T12:30:00+03:00")
            .unwrap_err()
            .to_string()
            .contains("%2B")
    );
    let query: Query = serde_urlencoded::from_str("at=2026-05-01T12:30:00%2B03:00").unwrap();
    assert_eq!(query.at.to_rfc3339(), "2026-05-01T09:30:00+00:00");
}

#[test]
fn errors_of_dates_uuids_and_enumerations_contain_valid_values() {
    assert!(read("2026-05-01", |text| param::date(text, "on")).is_ok());
    assert_eq!(
        read("1.5.2026", |text| param::date(text, "on")),
        Err("on: must be a date such as 2026-05-01, is \"1.5.2026\"".into())
    );
    assert_eq!(
        read("x", |text| param::uuid(text, "id")),
        Err("id: must be a UUID, is \"x\"".into())
    );
    let kind = |text: &str| {
        read(text, |text| {
            param::one_of(text, "kind", &["cat", "dog"], |value| (value == "cat").then_some(1))
        })
    };
    assert_eq!(kind("cat"), Ok(1));
    assert_eq!(kind("bird"), Err("kind: must be one of cat, dog, is \"bird\"".into()));
}

#[test]
fn values_that_are_not_text_are_read_from_their_own_form() {
    let photo = |text: &str| read(text, |text| param::base64(text, "photo")).map(|bytes| bytes.0);
    assert_eq!(photo("AAEC"), Ok(vec![0, 1, 2]));
    assert!(photo("?").unwrap_err().starts_with("photo: "));
    let price = |text: &str| read(text, |text| param::decimal(text, "price", 2)).map(|price| price.to_string());
    assert_eq!(price("1.50"), Ok("1.50".into()));
    let expected = "price: must be a decimal number with at most 2 decimals";
    assert_eq!(price("1.505"), Err(expected.into()));
    let weight = |text: &str| read(text, |text| param::exact_number(text, "weight", 3)).map(|weight| weight.text);
    assert_eq!(
        weight("1.250"),
        Err("weight: must have at most 3 significant digits, has 4; round it, for example to 1.25".into())
    );
    assert_eq!(weight("1.25"), Ok("1.25".into()));
    let sizes = |text: &str| read(text, |text| param::json::<_, Vec<u8>>(text, "sizes"));
    assert_eq!(sizes("[1, 2]"), Ok(vec![1, 2]));
    assert_eq!(
        sizes("1"),
        Err("sizes: must be JSON: must be an array, is a number".into())
    );
}
