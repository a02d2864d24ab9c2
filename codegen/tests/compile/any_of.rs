//! A value of `anyOf` is one that fits at least one alternative, and is kept as it came.

use codegen_runtime::ExactNumber;
use serde_json::{Value, json};

use crate::behaviour::{read, refused};
use crate::over_http::{REACHED, Served};
use crate::positive::any_of::server::types::*;

fn contact(json: &str) -> Contact {
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_value_is_seen_as_each_alternative_that_it_fits() {
    let both = contact(r#"{"phone":"+905551112233","mail":"ada@example.org","note":[1.10]}"#);
    assert_eq!(both.as_mail().unwrap().mail, "ada@example.org");
    assert_eq!(both.as_phone().unwrap().phone, "+905551112233");
    assert_eq!(both.as_exact(), None);
    let one = contact(r#"{"mail":"ada@example.org","phone":"none"}"#);
    assert!(one.as_mail().is_some() && one.as_phone().is_none());
    // On its bound, and outside.
    assert!(contact(r#"{"phone":"+1","extension":1}"#).as_phone().is_some());
    assert_eq!(
        refused::<Contact>(json!({ "phone": "+1", "extension": 0 })),
        "must be one of Mail, Phone, exact (as Mail: must have the member mail; as Phone: extension: must be at least 1, is 0; \
         as exact: phone: must not have the member phone; known are price)"
    );
    for other in [
        json!(null),
        json!([]),
        json!("ada@example.org"),
        json!({ "mail": "ada" }),
    ] {
        assert!(
            refused::<Contact>(other.clone()).starts_with("must be one of Mail, Phone, exact ("),
            "{other}"
        );
    }
}

#[test]
fn what_came_is_kept_to_the_last_digit_and_with_every_member() {
    let text = r#"{"phone":"+1","mail":"ada@example.org","unknown":{"n":12345678901234567890123.50}}"#;
    assert_eq!(serde_json::to_string(&contact(text)).unwrap(), text);
    let exact = contact(r#"{"price":1234567890123456789.10}"#);
    assert_eq!(exact.as_exact().unwrap().price.to_string(), "1234567890123456789.10");
    assert_eq!(exact.kept().json(), r#"{"price":1234567890123456789.10}"#);
    // Through lists, maps, unions and defaults.
    let whole = json!({
        "main": { "mail": "ada@example.org", "phone": "+1" },
        "others": [{ "phone": "+1", "x": 1 }, { "phone": "+1", "x": 2 }],
        "by_name": { "a": { "mail": "a@b", "y": null } },
        "usual": { "phone": "+2", "z": {} },
        "plain": "abc",
        "anything": { "mail": "a@b", "more": 1 },
        "maps": { "a": 1 },
    });
    assert_eq!(
        serde_json::to_value(read::<Contacts>(whole.clone()).unwrap()).unwrap(),
        whole
    );
    let usual = read::<Contacts>(json!({ "main": { "phone": "+1" } })).unwrap().usual;
    assert_eq!(
        usual.kept().value(),
        json!({ "mail": "ada@example.org", "phone": "+90" })
    );
}

#[test]
fn equal_is_what_means_the_same() {
    let main = |text: &str| contact(text);
    assert_eq!(main(r#"{"phone":"+1","n":1}"#), main(r#"{ "n": 1.0, "phone": "+1" }"#));
    assert_ne!(main(r#"{"phone":"+1","n":1}"#), main(r#"{"phone":"+1","n":2}"#));
    let others = |others: Value| refused::<Contacts>(json!({ "main": { "phone": "+1" }, "others": others }));
    assert_eq!(
        others(json!([{ "phone": "+1", "x": 1 }, { "phone": "+1", "x": 2 }])),
        "accepted"
    );
    assert_eq!(
        others(json!([{ "phone": "+1", "x": 1 }, { "x": 1.0, "phone": "+1" }])),
        "must not have the same item twice, items 0 and 1 are"
    );
}

#[test]
fn a_value_is_made_of_an_alternative() {
    let made = Contact::from_phone(&Phone {
        phone: "+1".into(),
        extension: None,
    })
    .unwrap();
    assert_eq!(made.kept().json(), r#"{"phone":"+1"}"#);
    let price: ExactNumber = serde_json::from_str("1.50").unwrap();
    let made = Contact::from_exact(&ContactExact { price }).unwrap();
    assert_eq!(serde_json::to_string(&made).unwrap(), r#"{"price":1.50}"#);
    // Of values that only leave, too.
    let pet = GetPetResponseBody::from_dog(&Dog {
        bark: "wau".into(),
        id: Some(1),
    })
    .unwrap();
    assert_eq!((pet.as_cat(), pet.as_dog().unwrap().bark), (None, "wau".into()));
    // And what fits several is read from its JSON.
    let both: GetPetResponseBody = read(json!({ "claws": 18, "bark": "wau" })).unwrap();
    assert!(both.as_cat().is_some() && both.as_dog().is_some());
}

#[test]
fn lists_and_maps_that_overlap_are_kept_and_what_does_not_is_an_enumeration() {
    let filter = |json: Value| read::<PutFilterBody>(json);
    assert_eq!(filter(json!(["a"])).unwrap().as_names(), Some(vec!["a".to_string()]));
    let none = filter(json!([])).unwrap();
    assert_eq!((none.as_names(), none.as_ids()), (None, Some(Vec::new())));
    for wrong in [json!([""]), json!([1, "a"]), json!({})] {
        assert!(filter(wrong.clone()).is_err(), "{wrong}");
    }
    let plain =
        |plain: Value| read::<Contacts>(json!({ "main": { "phone": "+1" }, "plain": plain })).map(|it| it.plain);
    assert_eq!(plain(json!(3)), Ok(Some(ContactsPlain::Integer(3))));
    assert_eq!(plain(json!("abc")), Ok(Some(ContactsPlain::String("abc".into()))));
    assert!(plain(json!("abcd")).is_err());
    let maps =
        |maps: Value| read::<Contacts>(json!({ "main": { "phone": "+1" }, "maps": maps })).map(|it| it.maps.unwrap());
    let empty = maps(json!({})).unwrap();
    assert!(empty.as_numbers().is_some() && empty.as_few().is_some());
    assert!(maps(json!({ "a": "1", "b": "2" })).unwrap().as_numbers().is_none());
    assert!(maps(json!({ "a": "1", "b": "2", "c": "3" })).is_err());
}

#[tokio::test]
async fn a_server_reads_them_and_says_what_is_wrong() {
    let served = Served::new(crate::positive::any_of::server::dispatch::description);
    let send = async |body: &'static str| served.send(reqwest::Method::POST, "/contacts", body).await;
    assert_eq!(send(r#"{"main":{"phone":"+1"}}"#).await, (REACHED.0, REACHED.1.into()));
    let (status, message) = send(r#"{"main":{"phone":"1"}}"#).await;
    assert_eq!(status, 400);
    assert!(
        message.contains("main: must be one of Mail, Phone, exact (")
            && message.contains("phone: must match ^\\+[0-9]+$"),
        "{message}"
    );
}

#[test]
fn the_emitted_schema_is_the_same() {
    let version = semver::Version::new(1, 0, 0);
    let emitted = crate::positive::any_of::server::dispatch::description().unwrap();
    let emitted = emitted.openapi("any of", version).json().unwrap();
    let schemas = &emitted["components"]["schemas"];
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/positive/any_of.yaml")).unwrap();
    let source: Value = serde_yaml::from_str(&text).unwrap();
    let source = &source["components"]["schemas"];
    assert_eq!(schemas["Contact"]["anyOf"].as_array().unwrap().len(), 3);
    assert_eq!(schemas["Contact"]["anyOf"], source["Contact"]["anyOf"]);
    assert_eq!(schemas["Contacts"]["properties"], source["Contacts"]["properties"]);
}
