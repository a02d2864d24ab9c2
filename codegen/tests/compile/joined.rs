//! Objects with alternatives beside their members: what serde flattens, and schemars writes so.

use serde_json::{Value, json};

use crate::behaviour::{read, refused};
use crate::positive::joined::server::types::*;
use crate::round_trip::odds::server::types as odds;
use crate::round_trips::odds as by_hand;

const ID: &str = "01974d1a-7c00-7b21-9a51-6f0c2d3e4f50";

#[test]
fn each_part_is_read_under_its_rules_and_written_back_as_one_object() {
    let whole = json!({
        "size": 1, "label": "abc", "image": ID, "exact": 1.5,
        "spare": { "size": 2, "copyOf": { "size": 3, "image": ID, "all": [] }, "all": [] },
        "all": [{ "id": 1, "kind": "blank", "path": "/a" }, { "kind": "cut", "id": 2, "sectors": -1, "host": "a.b" }],
    });
    let disk: Disk = read(whole.clone()).unwrap();
    assert_eq!((disk.members.size, disk.members.label.as_deref()), (1, Some("abc")));
    assert!(matches!(*disk.alternative, DiskAlternative::Image(_)));
    assert!(matches!(
        disk.members.all[1].alternative,
        TaggedAlternative::Cut(TaggedAlternativeCut { sectors: -1, .. })
    ));
    assert_eq!(disk.members.all[1].alternative2.as_remote().unwrap().host, "a.b");
    assert_eq!(serde_json::to_value(&disk).unwrap(), whole);
    for (pointer, wrong, message) in [
        ("/size", json!(0), "must be at least 1, is 0"),
        ("/label", json!("abcd"), "must have at most 3 characters, has 4"),
        ("/image", json!("x"), "UUID parsing failed"),
        ("/more", json!(1), "must have exactly one member: image or copyOf"),
        (
            "/copyOf",
            json!({ "size": 1, "image": ID }),
            "must have exactly one member: image or copyOf",
        ),
        ("/spare/copyOf/size", json!(0), "copyOf: size: must be at least 1, is 0"),
        ("/all/0/kind", json!("cut"), "must have the member sectors"),
        ("/all/0/kind", json!("ab"), "must have at least 3 characters, has 2"),
        ("/all/1/sectors", json!(0), "sectors: must not be 0"),
        ("/all/1/host", json!("-"), "accepted"),
        ("/all/1/path", json!(1), "accepted"),
    ] {
        let mut other = whole.clone();
        let (around, last) = pointer.rsplit_once('/').unwrap();
        other.pointer_mut(around).unwrap()[last] = wrong;
        let found = refused::<Disk>(other);
        assert!(found.contains(message), "{pointer}: {found}");
    }
    assert_eq!(refused::<Disk>(json!([])), "invalid type: sequence, expected an object");
}

#[test]
fn a_default_is_of_the_parts() {
    let disk: Disk = read(json!({ "size": 1, "image": ID })).unwrap();
    assert_eq!((disk.members.all.len(), disk.members.all[0].members.id), (1, 1));
}

/// What a service of Dropshot sends, the server that is generated from its document reads, and sends the same.
#[test]
fn what_the_traits_own_types_write_comes_back_the_same() {
    let common = || by_hand::Common {
        id: ID.parse().unwrap(),
        labels: Default::default(),
    };
    let failed = || {
        by_hand::State::Failed(by_hand::Failure {
            reason: "old".into(),
            inner: None,
        })
    };
    let machine = |state| by_hand::Machine {
        common: common(),
        name: "web".into(),
        state,
    };
    let sources = [
        by_hand::Source::DiskImage(ID.parse().unwrap()),
        by_hand::Source::Snapshot {
            name: "a".into(),
            at: u64::MAX,
        },
    ];
    for state in [
        by_hand::State::Idle,
        by_hand::State::Running {
            since: "2026-05-01T09:30:00Z".parse().unwrap(),
        },
        failed(),
    ] {
        same::<odds::Machine>(serde_json::to_value(machine(state)).unwrap());
    }
    for source in sources {
        same::<odds::Disk>(serde_json::to_value(by_hand::Disk { size: 1, source }).unwrap());
    }
    for layered in [by_hand::Layered::Machine(common()), by_hand::Layered::State(failed())] {
        same::<odds::Layered>(serde_json::to_value(layered).unwrap());
    }
    same::<odds::Loose>(
        serde_json::to_value(by_hand::Loose::Full {
            name: "a".into(),
            size: 1,
        })
        .unwrap(),
    );
    // What the first alternative does not know is kept.
    same::<odds::Loose>(json!({ "name": "a", "size": 300 }));
    let kinds = || {
        by_hand::Nested::Many(vec![
            [("a".to_string(), by_hand::Source::DiskImage(ID.parse().unwrap()))].into(),
        ])
    };
    for nested in [
        kinds(),
        by_hand::Nested::Maybe(None),
        by_hand::Nested::Unit(()),
        by_hand::Nested::State(failed()),
    ] {
        same::<odds::Nested>(serde_json::to_value(nested).unwrap());
    }
}

/// Without members that are null: where the document lets them be left out, they are.
fn same<T: serde::de::DeserializeOwned + serde::Serialize + schemars::JsonSchema>(value: Value) {
    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Object(members) => {
                let members = members
                    .into_iter()
                    .filter(|(name, value)| !value.is_null() || name == "content");
                members.map(|(name, value)| (name, without_nulls(value))).collect()
            }
            Value::Array(items) => items.into_iter().map(without_nulls).collect(),
            other => other,
        }
    }
    let read: T = read(value.clone()).unwrap_or_else(|problem| panic!("{problem}: {value}"));
    assert_eq!(without_nulls(serde_json::to_value(read).unwrap()), without_nulls(value));
}

#[test]
fn numbers_of_any_width_and_times_without_an_offset_are_read_and_checked() {
    let widths = || {
        json!({
            "huge": 0, "signedHuge": 0, "size": 1, "offset": -1, "small": -128, "single": 0.5, "notZero": 1, "notZeroSigned": -1,
            "letter": "x", "when": "2026-05-01T09:30:00", "at": "09:30:00.5", "on": "2026-05-01", "wait": { "secs": 1, "nanos": 0 },
            "system": { "secs_since_epoch": 1, "nanos_since_epoch": 0 }, "v6": "::1", "version": "1", "fixed": [1, 2, 3],
            "bytes": [255], "byNumber": {}, "byId": {}, "byName": { "a": ["large"] }, "kinds": ["large"], "nested": [[null]],
            "outcome": { "Ok": "large" }, "pair": { "one": "Self", "other": ["a"] }, "otherPair": { "one": 1 }, "bounded": 9,
            "mail": "a@b", "link": "https://example.org", "type": "other kind: 2 %", "anyMap": { "a": [1] },
        })
    };
    let text = widths()
        .to_string()
        .replace("\"huge\":0", &format!("\"huge\":{}", u128::MAX));
    let text = text.replace("\"signedHuge\":0", &format!("\"signedHuge\":{}", i128::MIN));
    let read: odds::Widths = serde_json::from_str(&text).unwrap();
    assert_eq!((read.huge, read.signed_huge), (u128::MAX, i128::MIN));
    assert!(serde_json::from_str::<by_hand::Widths>(&text).is_ok());
    for (name, wrong) in [
        ("huge", json!(-1)),
        ("offset", json!(0.5)),
        ("small", json!(128)),
        ("notZero", json!(0)),
        ("notZeroSigned", json!(0)),
        ("letter", json!("xy")),
        ("when", json!("2026-05-01T09:30:00Z")),
        ("at", json!("09:30:00Z")),
        ("on", json!("2026-5-1")),
        ("v6", json!("127.0.0.1")),
        ("fixed", json!([1, 2])),
        ("bytes", json!([256])),
        ("kinds", json!(["large", "large"])),
        ("nested", json!([null])),
        ("outcome", json!({ "Ok": "tiny" })),
        ("bounded", json!(10)),
        ("mail", json!("a")),
        ("link", json!("a")),
        ("type", json!("self")),
        ("system", json!(1)),
        ("wait", json!({ "secs": 1 })),
    ] {
        let mut other = widths();
        other[name] = wrong;
        assert_ne!(refused::<odds::Widths>(other), "accepted", "{name}");
    }
}
