//! From a trait written by hand to its document, to a generated trait, and to that one's document: nothing is lost.

use serde_json::Value;

use crate::round_trip;

#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/accounts.rs"]
mod accounts;
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/everything.rs"]
mod everything;
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/odds.rs"]
pub mod odds;
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/pets.rs"]
mod pets;
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/telemetry.rs"]
mod telemetry;
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/versions.rs"]
mod versions;

/// Major, minor and patch.
type Version = (u64, u64, u64);

/// The traits, and the versions whose documents they emit: the newest is kept beside the trait, the others in its folder.
const TRAITS: [(&str, &[Version]); 6] = [
    ("accounts", &[(1, 0, 0)]),
    ("everything", &[(1, 1, 0), (1, 0, 0)]),
    ("odds", &[(1, 0, 0)]),
    ("pets", &[(1, 0, 0)]),
    ("telemetry", &[(1, 0, 0)]),
    ("versions", &[(2, 1, 0), (2, 0, 0), (1, 0, 0)]),
];

fn by_hand(name: &str, version: semver::Version) -> Value {
    match name {
        "accounts" => accounts::accounts_mod::stub_api_description()
            .unwrap()
            .openapi(name, version)
            .json(),
        "everything" => everything::everything_api_mod::stub_api_description()
            .unwrap()
            .openapi(name, version)
            .json(),
        "odds" => odds::odds_api_mod::stub_api_description()
            .unwrap()
            .openapi(name, version)
            .json(),
        "pets" => pets::pets_mod::stub_api_description()
            .unwrap()
            .openapi(name, version)
            .json(),
        "telemetry" => telemetry::telemetry_mod::stub_api_description()
            .unwrap()
            .openapi(name, version)
            .json(),
        "versions" => versions::versions_mod::stub_api_description()
            .unwrap()
            .openapi(name, version)
            .json(),
        other => panic!("no trait for {other}"),
    }
    .unwrap()
}

/// Lists whose order means nothing are sorted.
fn normalised(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let mut value = normalised(value);
                if let (true, Some(items)) = (
                    ["required", "parameters", "tags"].contains(&key.as_str()),
                    value.as_array_mut(),
                ) {
                    items.sort_by_key(ToString::to_string);
                }
                (key.clone(), value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(normalised).collect(),
        other => other.clone(),
    }
}

/// Where two documents differ: the pointer and both values.
fn differences(one: &Value, other: &Value, pointer: &str, found: &mut Vec<(String, Value, Value)>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let get = |members: &serde_json::Map<String, Value>| members.get(key).cloned().unwrap_or(Value::Null);
                differences(&get(one), &get(other), &format!("{pointer}/{key}"), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(one, other, &format!("{pointer}/{index}"), found);
            }
        }
        _ if one == other => {}
        _ => found.push((pointer.into(), one.clone(), other.clone())),
    }
}

#[test]
fn documents_that_dropshot_emitted_come_back_the_same() {
    let mut problems = Vec::new();
    let all = TRAITS.iter().flat_map(|(name, versions)| {
        versions
            .iter()
            .map(move |version| (*name, *version, *version == versions[0]))
    });
    for (name, (major, minor, patch), is_newest) in all {
        let version = semver::Version::new(major, minor, patch);
        let first = by_hand(name, version.clone());
        let folder = format!("{}/fixtures/round_trip", env!("CARGO_MANIFEST_DIR"));
        let path = match is_newest {
            true => format!("{folder}/{name}.json"),
            false => format!("{folder}/{name}/older/{version}.json"),
        };
        if std::env::var_os("CODEGEN_UPDATE").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&first).unwrap() + "\n").unwrap();
        }
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap();
        assert_eq!(
            kept, first,
            "{path} is not what the trait says; run again with CODEGEN_UPDATE=1"
        );
        let Some((_, description)) = round_trip::ALL.iter().find(|(known, _)| *known == name) else {
            problems.push(format!("{name}: not generated"));
            continue;
        };
        let second = description().unwrap().openapi(name, version.clone()).json().unwrap();
        let mut found = Vec::new();
        differences(&normalised(&first), &normalised(&second), "#", &mut found);
        // Nothing is excepted: so far the generator loses nothing of what Dropshot says.
        problems.extend(
            found
                .iter()
                .map(|(pointer, one, other)| format!("{name} {version}: {pointer}: {one} became {other}")),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_difference_is_found_and_the_order_of_lists_of_names_is_none() {
    let mut changed = by_hand("pets", semver::Version::new(1, 0, 0));
    let same = changed.clone();
    changed["components"]["schemas"]["NewPet"]["required"]
        .as_array_mut()
        .unwrap()
        .reverse();
    let mut found = Vec::new();
    differences(&normalised(&same), &normalised(&changed), "#", &mut found);
    assert!(found.is_empty(), "{found:?}");
    changed["components"]["schemas"]["NewPet"]["properties"]["name"]["maxLength"] = 41.into();
    differences(&normalised(&same), &normalised(&changed), "#", &mut found);
    let places: Vec<&str> = found.iter().map(|(pointer, ..)| pointer.as_str()).collect();
    assert_eq!(places, ["#/components/schemas/NewPet/properties/name/maxLength"]);
}
