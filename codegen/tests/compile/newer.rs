//! OpenAPI 3.1 said as 3.0, and documents of several files.

use serde_json::{Value, json};

use crate::behaviour::query;
use crate::positive::{files, openapi_3_1};

#[test]
fn what_3_1_says_of_values_is_checked() {
    use openapi_3_1::server::types::{AddPetQuery, Pet};
    let whole = json!({
        "kind": "pet", "name": null, "id": 3, "owner": null, "keeper": { "name": "Ada" }, "weight": 1, "colour": null,
        "photo": "YWJj", "nothing": null, "anything": [null], "animal": { "kind": "Bird", "wings": 2 },
        "others": [{ "name": "Ada" }],
    });
    let read = |pointer: &str, value: Value| {
        let mut other = whole.clone();
        let (around, last) = pointer.rsplit_once('/').unwrap();
        other.pointer_mut(around).unwrap()[last] = value;
        serde_json::from_value::<Pet>(other).map_err(|error| error.to_string())
    };
    for (pointer, value) in [
        ("/name", json!("Minka")),
        ("/id", json!("a")),
        ("/owner", json!({ "name": "Ada" })),
        ("/weight", json!(99.5)),
        ("/colour", json!("red")),
    ] {
        read(pointer, value).unwrap_or_else(|error| panic!("{pointer}: {error}"));
    }
    for (pointer, value) in [
        ("/kind", json!("cat")),
        ("/name", json!("")),
        ("/id", json!(true)),
        ("/owner", json!({})),
        ("/animal/wings", json!(3)),
        ("/animal/kind", json!("Dog")),
        ("/others/0/name", json!(1)),
        ("/weight", json!(0.5)),
        ("/weight", json!(100)),
        ("/colour", json!("green")),
        ("/photo", json!("*")),
        ("/nothing", json!(1)),
    ] {
        assert!(read(pointer, value.clone()).is_err(), "{pointer}: {value}");
    }
    assert!(query::<AddPetQuery>("limit=1").is_ok());
    assert!(query::<AddPetQuery>("limit=0").is_err());
}

/// A handler takes and gives the very types of the references.
#[test]
fn what_is_said_beside_a_reference_makes_no_type_of_its_own() {
    use openapi_3_1::server::responses::AddPetResponse;
    use openapi_3_1::server::types::{Animal, Bird, BirdKind, Owner, Pet};
    let _: fn(Pet) -> AddPetResponse = AddPetResponse::Ok;
    type References = (Option<Owner>, Option<Vec<Owner>>, Option<Animal>);
    let pet: fn(Pet) -> References = |pet| (pet.keeper, pet.others, pet.animal);
    let bird = Bird {
        kind: BirdKind::Bird,
        wings: 2,
    };
    let read = json!({ "kind": "pet", "name": "Tom", "id": 1, "animal": { "kind": "Bird", "wings": 2 } });
    assert_eq!(pet(serde_json::from_value(read).unwrap()).2, Some(Animal::Bird(bird)));
}

#[test]
fn what_other_files_hold_has_its_rules() {
    use files::server::types::{Pet, ReadPetPath};
    let read = |value: Value| serde_json::from_value::<Pet>(value);
    let pet = json!({
        "name": "Minka", "default": "cat", "mother": { "name": "Tom", "default": "dog" },
        "owner": { "name": "Ada" }, "other_owner": { "phone": "1" },
    });
    assert!(read(pet.clone()).is_ok());
    for (pointer, wrong) in [
        ("/default", json!("cow")),
        ("/mother/name", json!("")),
        ("/owner", json!({ "name": "A" })),
        ("/other_owner", json!({ "name": "Ada" })),
    ] {
        let mut other = pet.clone();
        *other.pointer_mut(pointer).unwrap() = wrong;
        assert!(read(other).is_err(), "{pointer}");
    }
    assert!(query::<ReadPetPath>("id=1").is_ok());
    assert!(query::<ReadPetPath>("id=0").is_err());
}
