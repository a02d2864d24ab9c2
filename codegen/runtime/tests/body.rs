//! Deserialization of members of JSON bodies.

use std::collections::BTreeMap;

use codegen_runtime::{ArrayRules, Base64, ExactNumber, MapRules, NumberRules, StringRules, body, decimal, unions};
use serde::Deserialize;

type Json<'a> = serde_json::Deserializer<serde_json::de::StrRead<'a>>;

/// Reads `text` with `read`. Returns the error message without its position.
fn read<T>(text: &str, read: impl FnOnce(&mut Json<'_>) -> serde_json::Result<T>) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    read(&mut deserializer).map_err(|error| {
        let text = error.to_string();
        text.split(" at line ").next().unwrap_or_default().to_string()
    })
}

#[test]
fn rules_of_strings_and_numbers_are_checked() {
    let rules = StringRules {
        max_length: Some(2),
        ..StringRules::NONE
    };
    assert_eq!(read("\"ab\"", |json| body::string(json, rules)), Ok("ab".into()));
    assert_eq!(
        read("\"abc\"", |json| body::string(json, rules)),
        Err("must have at most 2 characters, has 3".into())
    );
    assert_eq!(
        read("1", |json| body::string(json, rules)),
        Err("invalid type: integer `1`, expected a string".into())
    );
    let rules = NumberRules {
        minimum: Some((1, false)),
        ..NumberRules::NONE
    };
    assert_eq!(read("1", |json| body::number(json, rules)), Ok(1));
    assert_eq!(
        read("0", |json| body::number(json, rules)),
        Err("must be at least 1, is 0".into())
    );
}

#[test]
fn a_repeated_name_in_a_map_is_rejected() {
    let rules = MapRules::NONE;
    let map = |text: &str| read(text, |json| body::map::<_, i32>(json, rules));
    assert_eq!(
        map("{\"a\":1,\"b\":2}"),
        Ok(BTreeMap::from([("a".into(), 1), ("b".into(), 2)]))
    );
    assert_eq!(map("{\"a\":1,\"a\":1}"), Err("the name \"a\" occurs twice".into()));
    let numbers = read("{\"a\":1,\"a\":2}", |json| body::exact_number_map(json, rules, 18));
    assert_eq!(numbers, Err("the name \"a\" occurs twice".into()));
}

#[test]
fn an_oversized_map_is_rejected_at_the_first_excess_member() {
    let rules = MapRules {
        max_properties: Some(1),
        ..MapRules::NONE
    };
    // The rest is not read, so that its syntax error is not reported.
    let result = read("{\"a\":1,\"b\":2,!", |json| body::map::<_, i32>(json, rules));
    assert_eq!(result, Err("must have at most 1 members, has more".into()));
}

#[test]
fn the_length_of_an_array_is_checked() {
    let rules = ArrayRules {
        min_items: Some(2),
        ..ArrayRules::NONE
    };
    assert_eq!(
        read("[1]", |json| body::array::<_, i32>(json, rules)),
        Err("must have at least 2 items, has 1".into())
    );
}

#[derive(Debug, Deserialize, PartialEq)]
struct Members {
    #[serde(default, deserialize_with = "optional")]
    optional: Option<i32>,
    #[serde(default = "seven", deserialize_with = "or_seven")]
    or_seven: i32,
}

fn seven() -> i32 {
    7
}

fn optional<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    body::optional(deserializer)
}

fn or_seven<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    body::or_default(deserializer, seven)
}

#[test]
fn null_counts_as_an_omitted_optional_member() {
    let members = |text: &str| read(text, |json| Members::deserialize(json));
    let of = |optional, or_seven| Members { optional, or_seven };
    assert_eq!(members("{}"), Ok(of(None, 7)));
    assert_eq!(members("{\"optional\": 1, \"or_seven\": 2}"), Ok(of(Some(1), 2)));
    assert_eq!(members("{\"optional\": null, \"or_seven\": null}"), Ok(of(None, 7)));
    assert_eq!(
        members("{\"optional\": \"x\"}"),
        Err("invalid type: string \"x\", expected i32".into())
    );
}

#[test]
fn times_and_dates_are_checked() {
    let time = |text: &str| read(text, |json| body::date_time(json));
    assert_eq!(
        time("\"2026-05-01T12:30:00+03:00\"").unwrap().to_rfc3339(),
        "2026-05-01T09:30:00+00:00"
    );
    assert!(
        time("\"2026-05-01T12:30:00\"")
            .unwrap_err()
            .ends_with("; the offset is missing")
    );
    assert!(time("\"2026-05-01\"").unwrap_err().ends_with("; is \"2026-05-01\""));
    assert!(read("\"2026-05-01\"", |json| body::date(json)).is_ok());
    for wrong in ["2026-5-1", "2026-02-30", "26-05-01", "2026-05-01Z", " 2026-05-01"] {
        let expected = format!("must be a date such as 2026-05-01, is \"{wrong}\"");
        assert_eq!(read(&format!("\"{wrong}\""), |json| body::date(json)), Err(expected));
    }
}

#[test]
fn amounts_have_a_fixed_number_of_decimal_places() {
    let amount = |text: &str| read(text, |json| decimal::read(json, 2)).map(|value| value.to_string());
    assert_eq!(amount("\"12.5\""), Ok("12.5".into()));
    for wrong in ["\"1.234\"", "\"\"", "\"1,5\""] {
        assert_eq!(
            amount(wrong),
            Err("must be a decimal number with at most 2 decimals".into())
        );
    }
    let mut out = Vec::new();
    let value = "12.345".parse().unwrap();
    decimal::serialize::<2, _>(&value, &mut serde_json::Serializer::new(&mut out)).unwrap();
    assert_eq!(out, b"\"12.35\"");
}

#[test]
fn bytes_are_base64_and_hidden_in_debug_output() {
    let bytes: Base64 = serde_json::from_str("\"AP8=\"").unwrap();
    assert_eq!(bytes.0, [0, 255]);
    assert_eq!(serde_json::to_string(&bytes).unwrap(), "\"AP8=\"");
    assert_eq!(format!("{bytes:?}"), "Base64(2 bytes)");
    assert!(serde_json::from_str::<Base64>("\"AP8\"").is_err());
}

#[test]
fn errors_of_unions_name_the_discriminator() {
    let tagged = |text: &str| read(text, |json| unions::Tagged::of(json, "kind").map(|tagged| tagged.tag));
    assert_eq!(tagged("{\"a\": 1, \"kind\": \"x\"}"), Ok("x".into()));
    assert_eq!(tagged("{\"a\": 1}"), Err("must have the member kind".into()));
    assert_eq!(tagged("{\"kind\": 1}"), Err("kind: must be a string".into()));
    assert_eq!(tagged("3"), Err("must be an object".into()));
}

#[test]
fn exact_numbers_keep_their_text_and_value() {
    for (text, value) in [
        ("12.50", "12.50"),
        ("-0.1", "-0.1"),
        ("1.25e1", "12.5"),
        ("125E-2", "1.25"),
        ("1e3", "1000"),
        ("0e999", "0"),
        ("123456789012345678", "123456789012345678"),
        ("0.000000000123456789", "0.000000000123456789"),
        ("7.9e28", "79000000000000000000000000000"),
        ("-1e-28", "-0.0000000000000000000000000001"),
        ("10.00e-27", "0.0000000000000000000000000100"),
        ("0.00000000000000000000000000000001e5", "0.000000000000000000000000001"),
        ("0e-99999999999999999999", "0"),
    ] {
        let number = ExactNumber::parse(text, 18).unwrap();
        assert_eq!((number.text.as_str(), number.value.to_string().as_str()), (text, value));
        let read: ExactNumber = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

#[test]
fn exact_numbers_reject_values_that_cannot_be_represented() {
    let rejected = |text: &str| ExactNumber::parse(text, 18).unwrap_err();
    assert_eq!(
        rejected("1234567890123456789"),
        "must have at most 18 significant digits, has 19"
    );
    assert_eq!(
        rejected("2.8500000000000000888"),
        "must have at most 18 significant digits, has 20; round it, for example to 2.85"
    );
    let out_of_range = "is too large or has too many decimals; send a plain number such as 2.85";
    for text in [
        "1e29",
        "-9e28",
        "1e-29",
        "123e45",
        "11e-29",
        "1e99999999999999999999",
        "1e-99999999999999999999",
    ] {
        assert_eq!(rejected(text), out_of_range, "{text}");
    }
    for text in ["", "-", ".", "1x", "1e", "+1", "1e1.5", "١"] {
        assert_eq!(rejected(text), "must be a number", "{text}");
    }
    for (text, kind) in [
        ("\"1\"", "a string"),
        ("null", "null"),
        ("true", "a boolean"),
        ("[1]", "an array"),
        ("{}", "an object"),
    ] {
        let expected = format!("must be a number, is {kind}");
        assert_eq!(read(text, |json| body::exact_number(json, 18)), Err(expected));
    }
}
