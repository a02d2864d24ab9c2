//! Generated types read and write what the documents say, and say what is wrong with anything else.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::positive::*;

/// Reads JSON; the message of a refusal without its line and column.
///
/// Whatever a test reads is also read as a server reads a body: both must take the same, and what is told of what is
/// refused must not be in serde's words.
pub fn read<T: DeserializeOwned + JsonSchema>(value: Value) -> Result<T, String> {
    let text = value.to_string();
    let read = serde_json::from_str(&text).map_err(|error| {
        let text = error.to_string();
        text.split(" at line ").next().unwrap_or_default().to_string()
    });
    match codegen_runtime::json::read::<T>(text.as_bytes()) {
        Ok(_) => assert!(read.is_ok(), "{text}"),
        Err(faults) => {
            assert!(read.is_err(), "{text}: {faults}");
            let said = faults.to_string();
            for words in [
                "invalid type",
                "missing field",
                "unknown field",
                "duplicate field",
                "struct ",
                "sequence",
            ] {
                assert!(!said.contains(words), "{text}: {said}");
            }
        }
    }
    read
}

/// Reads a query.
pub fn query<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_urlencoded::from_str(text).map_err(|error| error.to_string())
}

pub fn refused<T: DeserializeOwned + JsonSchema>(value: Value) -> String {
    read::<T>(value).err().unwrap_or_else(|| "accepted".into())
}

#[test]
fn items_and_values_keep_their_rules() {
    use arrays::server::types::Lists;
    let lists = |codes: Value, matrix: Value, names: Value| json!({ "plain": [], "codes": codes, "matrix": matrix, "names": names });
    assert!(read::<Lists>(lists(json!(["ABC"]), json!([[1, 9]]), json!(["a"]))).is_ok());
    assert_eq!(
        refused::<Lists>(lists(json!([]), json!([]), json!([]))),
        "must have 1 to 3 items, has 0"
    );
    assert_eq!(
        refused::<Lists>(lists(json!(["abc"]), json!([]), json!([]))),
        "must match ^[A-Z]{3}$"
    );
    assert_eq!(
        refused::<Lists>(lists(json!(["ABC"]), json!([[10]]), json!([]))),
        "must be from 0 to 9, is 10"
    );
    assert_eq!(
        refused::<Lists>(lists(json!(["ABC"]), json!([[1, 2, 3]]), json!([]))),
        "must have at most 2 items, has 3"
    );
    assert_eq!(
        refused::<Lists>(lists(json!(["ABC"]), json!([]), json!([""]))),
        "must not be empty"
    );

    use maps::server::types::Maps;
    let maps = |texts: Value, lists: Value| json!({ "texts": texts, "readings": { "a": 1.50 }, "lists": lists, "counts": { "a": 1 } });
    assert!(read::<Maps>(maps(json!({ "a": "b" }), json!({ "x": [1] }))).is_ok());
    assert_eq!(
        refused::<Maps>(maps(json!({}), json!({}))),
        "must have 1 to 3 members, has 0"
    );
    assert_eq!(
        refused::<Maps>(maps(json!({ "A": "b" }), json!({}))),
        "the name \"A\" must match ^[a-z]+$"
    );
    assert_eq!(
        refused::<Maps>(maps(json!({ "a": "toolong" }), json!({}))),
        "must have at most 5 characters, has 7"
    );
    assert_eq!(
        refused::<Maps>(maps(json!({ "a": "b" }), json!({ "x": [] }))),
        "must have at least 1 item, has 0"
    );
}

#[test]
fn a_null_is_a_member_that_is_left_out_where_it_may_be() {
    use nullable::server::types::Values;
    let read_one = |name: &str, value: Value| {
        let mut whole = json!({ "must_be_there": null });
        whole[name] = value;
        read::<Values>(whole)
    };
    assert_eq!(refused::<Values>(json!({})), "missing field `must_be_there`");
    assert_eq!(read_one("may_be_null", Value::Null).unwrap().may_be_null, None);
    assert_eq!(read_one("may_not_be_null", Value::Null).unwrap().may_not_be_null, None);
    let items = read_one("items", json!(["ab", null])).unwrap().items;
    assert_eq!(items, Some(vec![Some("ab".to_string()), None]));
    assert_eq!(
        read_one("items", json!(["a"])).unwrap_err(),
        "must have at least 2 characters, has 1"
    );
    assert_eq!(
        read_one("values", json!({ "a": 2 })).unwrap_err(),
        "must be at most 1, is 2"
    );
    assert!(read_one("values", json!({ "a": null })).is_ok());
    assert_eq!(
        serde_json::to_value(read_one("may_be_null", Value::Null).unwrap()).unwrap(),
        json!({ "must_be_there": null })
    );
}

#[test]
fn parts_of_an_all_of_are_one_object() {
    use all_of::server::types::{Cat, Kitten, PetOwner};
    let cat: Cat = read(json!({ "name": "Minka", "lives": 9, "owner": { "name": "Ada" } })).unwrap();
    assert_eq!(cat.lives, 9);
    assert_eq!(
        cat.owner,
        Some(PetOwner {
            name: Some("Ada".into())
        })
    );
    assert_eq!(refused::<Cat>(json!({ "name": "Minka" })), "missing field `lives`");
    assert_eq!(refused::<Cat>(json!({ "name": "", "lives": 1 })), "must not be empty");
    let kitten = Kitten {
        name: "M".into(),
        owner: PetOwner { name: None },
        lives: 1,
        born: None,
    };
    assert_eq!(
        serde_json::to_value(kitten).unwrap(),
        json!({ "name": "M", "owner": {}, "lives": 1 })
    );
}

#[test]
fn alternatives_are_told_apart_by_their_discriminator() {
    use one_of::server::types::{Circle, CircleType, Drawn, Event, Rectangle, Shape};
    let circle = Shape::Circle(Circle {
        r#type: CircleType::Circle,
        radius: 1.0,
    });
    assert_eq!(
        read::<Shape>(json!({ "radius": 1.0, "type": "circle" })),
        Ok(circle.clone())
    );
    let square = read::<Shape>(json!({ "type": "square", "width": 2.0 })).unwrap();
    assert!(matches!(&square, Shape::Rectangle(Rectangle { r#type, .. }) if r#type == "square"));
    assert_eq!(
        refused::<Shape>(json!({ "type": "star" })),
        "type: must be one of circle, square, rectangle, is \"star\""
    );
    assert_eq!(refused::<Shape>(json!({ "radius": 1 })), "must have the member type");
    assert_eq!(refused::<Shape>(json!({ "type": 1 })), "type: must be a string");
    assert_eq!(refused::<Shape>(json!([])), "must be an object");
    assert_eq!(
        refused::<Shape>(json!({ "type": "circle", "radius": -1 })),
        "radius: must be at least 0, is -1"
    );
    let event = |kind: &str| {
        Event::Drawn(Drawn {
            kind: kind.into(),
            shape: circle.clone(),
        })
    };
    assert_eq!(
        serde_json::to_value(event("Drawn")).unwrap(),
        json!({ "kind": "Drawn", "shape": { "type": "circle", "radius": 1.0 } })
    );
    assert_eq!(
        serde_json::to_value(event("Shown")).unwrap_err().to_string(),
        "kind is \"Shown\", but must be one of Drawn in this alternative"
    );
}

#[test]
fn named_scalars_validate_in_bodies_and_parameters() {
    use scalars::server::types::{Alias, Code, Count, PutValuesPath, PutValuesQuery, Values};
    let values: Values = read(json!({ "code": "ABC", "counts": [1], "prices": { "a": "1.5" } })).unwrap();
    assert_eq!(serde_json::to_value(&values).unwrap()["prices"]["a"], "1.50");
    assert_eq!(
        refused::<Values>(json!({ "code": "abc", "prices": {} })),
        "must match ^[A-Z]{3}$"
    );
    assert_eq!(
        refused::<Values>(json!({ "code": "ABC", "counts": [0], "prices": {} })),
        "must be at least 1, is 0"
    );
    assert_eq!(
        query::<PutValuesPath>("code=ABC").unwrap().code,
        Code::from("ABC".to_string())
    );
    assert_eq!(query::<PutValuesQuery>("count=2").unwrap().count, Some(Count(2)));
    assert_eq!(
        query::<PutValuesQuery>("alias=ABC").unwrap().alias,
        Some(Alias(Code("ABC".into())))
    );
    assert_eq!(
        query::<PutValuesQuery>("alias=abc").unwrap_err(),
        "alias: must match ^[A-Z]{3}$"
    );
    assert_eq!(
        query::<PutValuesQuery>("count=0").unwrap_err(),
        "count: must be a whole number at least 1, is \"0\""
    );
    assert_eq!(
        query::<PutValuesQuery>("on=2026-13-01").unwrap_err(),
        "on: must be a day such as 2026-05-01; is \"2026-13-01\""
    );
}

#[test]
fn what_is_left_out_has_its_default() {
    use defaults::server::types::{Kind, Values, ValuesInline};
    let values: Values = read(json!({})).unwrap();
    assert!(values.flag);
    assert_eq!((values.count, values.share, values.name.as_str()), (-3, 0.5, "none"));
    assert_eq!((values.inline, values.kind), (ValuesInline::B, Kind::Dog));
    assert_eq!(
        (values.perhaps, &values.nothing, values.default_flag),
        (Some(7), &None, None)
    );
    assert!(values.list.is_empty() && values.map.is_empty());
    let written = serde_json::to_value(&values).unwrap();
    for (name, expected) in [
        ("size", json!(4)),
        ("usual", json!("usual")),
        ("on", json!("2026-05-01")),
        ("at", json!("2026-05-01T06:30:00Z")),
        ("id", json!("01974d1a-7c00-7b21-9a51-6f0c2d3e4f50")),
        ("bytes", json!("AAE=")),
        ("price", json!("1.50")),
        ("exact", json!(0.25)),
        ("anything", json!({ "a": [1, null] })),
        ("sizes", json!([1, 2])),
        ("counts", json!({ "a": 1 })),
        ("crate", json!({ "width": 2, "height": 7 })),
        ("shape", json!({ "square": { "width": 3, "height": 7 } })),
    ] {
        assert_eq!(written[name], expected, "{name}");
    }
    assert_eq!(read::<Values>(json!({ "perhaps": null })).unwrap().perhaps, None);
    assert_eq!(
        refused::<Values>(json!({ "name": "too long" })),
        "must have at most 5 characters, has 8"
    );
    let query: query_parameters::server::types::ListPetsQuery = query("kind=cat").unwrap();
    assert_eq!(query.limit, 25);
    assert_eq!(query.sort, query_parameters::server::types::ListPetsSort::Name);
}

#[test]
fn members_without_a_name_are_kept_or_refused() {
    use other_members::server::types::{ValuesLabels, ValuesLoose, ValuesStrict};
    let labels: ValuesLabels = read(json!({ "name": "a", "x": "b" })).unwrap();
    assert_eq!(labels.additional_properties["x"], "b");
    assert_eq!(serde_json::to_value(&labels).unwrap(), json!({ "name": "a", "x": "b" }));
    assert_eq!(
        refused::<ValuesLabels>(json!({ "name": "a", "x": "long" })),
        "must have at most 3 characters, has 4"
    );
    let labels: ValuesLabels = read(json!({ "name": "a", "note": null })).unwrap();
    assert_eq!(labels.note, None);
    use formats::server::types::{ValuesClosed, ValuesClosedOther};
    let closed: ValuesClosed = read(json!({ "a": "b", "c": "x" })).unwrap();
    assert_eq!(closed.additional_properties["c"], ValuesClosedOther::X);
    assert_eq!(
        refused::<ValuesClosed>(json!({ "c": "z" })),
        "must be one of x, y, is \"z\""
    );
    assert_eq!(
        refused::<ValuesStrict>(json!({ "x": 1 })),
        "unknown field `x`, expected `name`"
    );
    assert_eq!(
        read::<ValuesLoose>(json!({ "x": [1] })).unwrap().additional_properties["x"],
        json!([1])
    );
}

#[test]
fn numbers_times_and_bytes_are_within_their_types() {
    use numbers::server::types::Numbers;
    let number = |name: &str, value: Value| {
        let mut whole = json!({ "i8": 1, "u64": u64::MAX });
        whole[name] = value;
        refused::<Numbers>(whole)
    };
    assert_eq!(number("i16", json!(5)), "accepted");
    assert_eq!(number("i16", json!(6)), "must be from -5 to 5, is 6");
    assert_eq!(number("i64", json!(10)), "must be less than 10, is 10");
    assert_eq!(number("open", json!(1)), "must be more than 0 and less than 1, is 1");
    assert_eq!(number("far", json!(255)), "accepted");
    assert_eq!(number("i8", json!(128)), "invalid value: integer `128`, expected i8");
    assert_eq!(number("u8", json!(-1)), "invalid value: integer `-1`, expected u8");

    use times_and_bytes::server::types::Values;
    let value = json!({
        "at": "2026-05-01T09:30:00Z", "on": "2026-05-01", "bytes": "AAEC", "id": "01974d1a-7c00-7b21-9a51-6f0c2d3e4f50"
    });
    let values: Values = read(value.clone()).unwrap();
    assert_eq!(values.bytes.0, [0, 1, 2]);
    assert_eq!(serde_json::to_value(&values).unwrap(), value);
    for (name, wrong, message) in [
        ("on", "2026-5-1", "must be a day such as 2026-05-01; is \"2026-5-1\""),
        ("bytes", "AAE", "must be Base64 with padding"),
        ("perhaps_on", "x", "must be a day such as 2026-05-01; is \"x\""),
    ] {
        let mut changed = value.clone();
        changed[name] = wrong.into();
        assert_eq!(refused::<Values>(changed), message);
    }
}

#[test]
fn names_on_the_wire_are_the_documents() {
    use cases::server::types::PetOwner;
    let owner: PetOwner =
        read(json!({ "firstName": "Ada", "@id": "1", "2nd": "x", "HTTPServer": "apache-2" })).unwrap();
    assert_eq!(
        (owner.first_name.as_str(), owner.id.as_deref(), owner.n2nd.as_deref()),
        ("Ada", Some("1"), Some("x"))
    );
    assert_eq!(
        serde_json::to_value(&owner).unwrap(),
        json!({ "firstName": "Ada", "@id": "1", "2nd": "x", "HTTPServer": "apache-2" })
    );
    use keywords::server::types::MatchPath;
    assert_eq!(
        query::<MatchPath>("type=a&self=b").unwrap(),
        MatchPath {
            r#type: "a".into(),
            self_: "b".into()
        }
    );
}
