//! Rules that need more than a comparison, and values that are not what they seem: null, and numbers of a closed set.

use serde_json::{Value, json};

use crate::behaviour::{query, read, refused};
use crate::positive::{nulls, number_enums, rules};

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
