//! Names of the wire that are one name in Rust are each read, checked and written under their own.

use serde_json::{Value, json};

use crate::behaviour::{query, read, refused};
use crate::over_http::{REACHED, Served};
use crate::positive::meeting_names::client::{Client, types as sent};
use crate::positive::meeting_names::server::types::*;
use crate::stub::hooks::Hooks;

fn whole() -> Value {
    json!({
        "petName": "Minka", "pet_name": 1, "id": 7, "ID": "ab", "???": false, "!!": false,
    })
}

#[test]
fn members_keep_their_names_and_rules() {
    let pet: Pet = read(whole()).unwrap();
    assert_eq!(
        (pet.pet_name.as_str(), pet.pet_name2, pet.id, pet.id2.as_str()),
        ("Minka", 1, 7, "ab")
    );
    assert_eq!((pet.member, pet.member2), (Some(false), false));
    assert_eq!(serde_json::to_value(&pet).unwrap(), whole());
    for (name, wrong, message) in [
        ("petName", json!(""), "must not be empty"),
        ("pet_name", json!(0), "must be at least 1, is 0"),
        ("ID", json!("abc"), "must have at most 2 characters, has 3"),
    ] {
        let mut other = whole();
        other[name] = wrong;
        assert_eq!(refused::<Pet>(other), message, "{name}");
    }
}

#[test]
fn texts_that_tell_alternatives_apart_may_meet_in_rust() {
    use crate::positive::meeting_texts::server::types::*;
    let shape = |form: Value, size: Value| read::<Shape>(json!({ "form": form, "size": size }));
    let whole = shape(json!({ "kind": "ROUND", "edges": 3 }), json!({ "Big": 9 })).unwrap();
    assert!(matches!(whole.form, Form::Round2(FormRound2 { edges: 3, .. })));
    assert_eq!(whole.size, Size::Big3(9));
    assert_eq!(
        serde_json::to_value(&whole).unwrap(),
        json!({ "form": { "kind": "ROUND", "edges": 3 }, "size": { "Big": 9 } })
    );
    for (form, size, message) in [
        (
            json!({ "kind": "ROUND", "edges": 2 }),
            json!("big"),
            "edges: must be at least 3, is 2",
        ),
        (
            json!({ "kind": "Round" }),
            json!("big"),
            "kind: must be one of round, ROUND, *, is \"Round\"; did you mean round?",
        ),
        (json!({ "kind": "*" }), json!({ "Big": 10 }), "must be at most 9, is 10"),
        (
            json!({ "kind": "round" }),
            json!("Big"),
            "must be one of big, BIG, is \"Big\"; did you mean big?",
        ),
    ] {
        assert_eq!(shape(form, size).unwrap_err(), message);
    }
    for (value, size) in [("big", Size::Big), ("BIG", Size::Big2)] {
        assert_eq!(read::<Size>(json!(value)), Ok(size));
    }
}

#[test]
fn parameters_keep_their_names_and_rules() {
    let read = query::<AddPetQuery>("petName=abc&pet_name=4&%3F%3F%3F=true").unwrap();
    assert_eq!(
        (read.pet_name.as_str(), read.pet_name2, read.member),
        ("abc", 4, Some(true))
    );
    assert_eq!(
        query::<AddPetQuery>("petName=abcd&pet_name=4").unwrap_err(),
        "petName: must have at most 3 characters, has 4"
    );
}

#[tokio::test]
async fn a_client_sends_them_under_their_names() {
    let served = Served::new(crate::positive::meeting_names::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let body: sent::Pet = serde_json::from_value(whole()).unwrap();
    assert_eq!(serde_json::to_value(&body).unwrap(), whole());
    let request = client.add_pet().pet_name("abc").pet_name_query(4);
    // One that did not arrive under its name would be missing: 400.
    match request.pet_name_header(true).body(body).send().await {
        Err(progenitor_client::Error::UnexpectedResponse(answer)) => assert_eq!(answer.status().as_u16(), REACHED.0),
        other => panic!("{other:?}"),
    }
}
