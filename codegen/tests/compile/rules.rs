//! Rules that need more than a comparison, and values that are not what they seem: null, and numbers of a closed set.

use serde_json::{Value, json};

use crate::behaviour::{query, read, refused};
use crate::positive::{formats, nulls, number_enums, one_way, rules};

#[test]
fn multiples_and_patterns_are_checked() {
    use rules::server::types::{PutValuesQuery, Values};
    for value in [
        json!({ "step": 24, "price": 19.99, "size": 4 }),
        json!({ "user": "ada", "twice": "xx" }),
    ] {
        assert!(read::<Values>(value).is_ok());
    }
    for (value, message) in [
        (json!({ "step": 25 }), "must be a multiple of 12, is 25"),
        (json!({ "price": 19.999 }), "must be a multiple of 0.01, is 19.999"),
        (json!({ "size": 3 }), "must be a multiple of 2, is 3"),
        (json!({ "user": "admin" }), "must match ^(?!admin$)[a-z]+$"),
        (json!({ "twice": "xy" }), "must match ^(.)\\1$"),
    ] {
        assert_eq!(refused::<Values>(value), message);
    }
    assert_eq!(query::<PutValuesQuery>("").unwrap().step, 10);
    assert_eq!(query::<PutValuesQuery>("share=0.75").unwrap().share, Some(0.75));
    for (text, message) in [
        ("step=11", "step: must be a multiple of 5, is 11"),
        ("share=0.8", "share: must be a multiple of 0.25, is 0.8"),
        ("digits=%D9%A1", "digits: must match ^\\d+$"),
    ] {
        assert_eq!(query::<PutValuesQuery>(text).unwrap_err(), message);
    }
}

#[test]
fn no_item_comes_twice() {
    use rules::server::types::Values;
    for value in [
        json!({ "names": ["a", "b"] }),
        json!({ "names": [] }),
        json!({ "points": [{ "x": 1 }, { "x": 1, "on": "left" }] }),
        json!({ "mixed": [1, "1", null] }),
    ] {
        assert!(read::<Values>(value).is_ok());
    }
    for (value, message) in [
        (
            json!({ "names": ["a", "b", "a"] }),
            "must not have the same item twice, items 0 and 2 are",
        ),
        (json!({ "names": ["a", ""] }), "must not be empty"),
        (
            json!({ "points": [{ "x": 1, "on": "left" }, { "on": "left", "x": 1, "other": 2 }] }),
            "must not have the same item twice, items 0 and 1 are",
        ),
        (
            json!({ "points": [{ "x": 1 }, { "x": 2 }, { "x": 3 }, { "x": 4 }] }),
            "must have at most 3 items, has 4",
        ),
        (
            json!({ "mixed": [{ "a": 1 }, { "a": 1.0 }] }),
            "must not have the same item twice, items 0 and 1 are",
        ),
    ] {
        assert_eq!(refused::<Values>(value), message);
    }
}

#[test]
fn null_stands_where_the_document_has_it() {
    use nulls::server::types::{Pet, PutNothingBody, PutNothingResponseBody, PutPetBody};
    assert_eq!(read(Value::Null), Ok(PutNothingBody(())));
    assert_eq!(serde_json::to_value(PutNothingResponseBody(())).unwrap(), Value::Null);
    assert_eq!(
        refused::<PutNothingBody>(json!("")),
        "invalid type: string \"\", expected unit"
    );
    assert_eq!(read(Value::Null), Ok(PutPetBody(None)));
    assert_eq!(refused::<PutPetBody>(json!({})), "missing field `name`");
    let pet = json!({ "name": null, "owner": null, "kind": null, "names": [null, "Minka"], "anything": null, "nothing": null });
    let read_pet: Pet = read(pet).unwrap();
    assert_eq!(
        (&read_pet.name, &read_pet.owner, &read_pet.anything),
        (&None, &None, &Some(Value::Null))
    );
    assert_eq!(
        serde_json::to_value(&read_pet).unwrap(),
        json!({ "name": null, "owner": null, "names": [null, "Minka"], "anything": null, "nothing": null })
    );
    let pet = |name: &str, value: Value| {
        let mut pet = json!({ "name": "Minka", "owner": { "name": "Ada" } });
        pet[name] = value;
        refused::<Pet>(pet)
    };
    assert_eq!(pet("kind", json!("dog")), "accepted");
    assert_eq!(pet("kind", json!("bird")), "must be one of cat, dog, is \"bird\"");
    assert_eq!(pet("name", json!("M")), "must have at least 2 characters, has 1");
    assert_eq!(pet("owner", json!({})), "missing field `name`");
    assert_eq!(pet("nothing", json!(0)), "invalid type: integer `0`, expected unit");
}

#[test]
fn numbers_may_be_a_closed_set() {
    use number_enums::server::types::{Priority, PutValuesPath, PutValuesQuery, Values};
    let value = json!({ "priority": -1, "scale": 2.5, "always": true });
    let values: Values = read(value.clone()).unwrap();
    assert_eq!((values.priority, values.priority.value()), (Priority::Minus1, -1));
    assert_eq!(serde_json::to_value(values).unwrap(), value);
    assert_eq!(
        read::<Values>(json!({ "priority": 10, "scale": 1 }))
            .unwrap()
            .scale
            .unwrap()
            .value(),
        1.0
    );
    for (name, value, message) in [
        ("priority", json!(1), "must be one of -1, 0, 10, is 1"),
        (
            "priority",
            json!("0"),
            "invalid type: string \"0\", expected a number or a boolean",
        ),
        ("scale", json!(0.75), "must be one of 0.5, 1, 2.5, is 0.75"),
        ("always", json!(false), "must be one of true, is false"),
    ] {
        let mut whole = json!({ "priority": 0 });
        whole[name] = value;
        assert_eq!(refused::<Values>(whole), message);
    }
    assert_eq!(
        query::<PutValuesPath>("priority=-1").unwrap().priority,
        Priority::Minus1
    );
    assert_eq!(query::<PutValuesQuery>("").unwrap().scale.value(), 1.0);
    assert_eq!(
        query::<PutValuesQuery>("scale=3").unwrap_err(),
        "scale: must be one of 0.5, 1, 2.5, is \"3\""
    );
}

#[test]
fn formats_are_checked_and_values_need_no_names() {
    use formats::server::types::{Operator, PutValuesQuery, Values};
    for (name, inside, outside, expected) in [
        ("v4", "192.0.2.1", "::1", "an IPv4 address such as 192.0.2.1"),
        ("v6", "::1", "192.0.2.1", "an IPv6 address such as 2001:db8::1"),
        ("ip", "::1", "localhost", "an IP address"),
        ("host", "example.org", "a_b", "a host name"),
        ("mail", "ada@example.org", "ada", "an e-mail address"),
        ("link", "https://example.org", "/here", "a URI with its scheme"),
        ("at", "09:30:00Z", "09:30", "a time with an offset, such as 09:30:00Z"),
    ] {
        assert!(read::<Values>(json!({ name: inside })).is_ok(), "{name}");
        let message = format!("must be {expected}, is {outside:?}");
        assert_eq!(refused::<Values>(json!({ name: outside })), message);
    }
    // Nothing is known of which values there are.
    assert!(read::<Values>(json!({ "secret": "" })).is_ok());
    assert_eq!(
        query::<PutValuesQuery>("from=x").unwrap_err(),
        "from: must be an IPv4 address such as 192.0.2.1, is \"x\""
    );
    for (value, operator) in [
        ("<", Operator::Value1),
        ("", Operator::Value3),
        ("<=", Operator::Value4),
    ] {
        assert_eq!(read(json!(value)), Ok(operator));
    }
    assert!(read::<Values>(json!({ "order": "ASC" })).is_ok());
    assert_eq!(
        refused::<Values>(json!({ "order": "aSC" })),
        "must be one of asc, ASC, Asc, is \"aSC\"; did you mean asc?"
    );
    assert_eq!(
        refused::<Values>(json!({ "never": {} })),
        "must not be there: no value is one"
    );
}

#[test]
fn members_go_the_way_they_are_declared_to() {
    use one_way::server::types::Pet;
    let mut pet: Pet = read(json!({ "name": "Minka", "secret": "xy", "hint": "z" })).unwrap();
    assert_eq!(
        (pet.id, pet.secret.as_deref(), pet.hint.as_deref()),
        (None, Some("xy"), Some("z"))
    );
    assert_eq!(refused::<Pet>(json!({ "name": "Minka" })), "missing field `secret`");
    assert_eq!(
        refused::<Pet>(json!({ "name": "Minka", "secret": "x" })),
        "must have at least 2 characters, has 1"
    );
    assert_eq!(
        refused::<Pet>(json!({ "name": "Minka", "secret": null })),
        "invalid type: null, expected a string"
    );
    assert_eq!(
        serde_json::to_value(&pet).unwrap_err().to_string(),
        "a member that is `readOnly` and required must be set"
    );
    pet.id = Some(7);
    assert_eq!(serde_json::to_value(&pet).unwrap(), json!({ "id": 7, "name": "Minka" }));
}
