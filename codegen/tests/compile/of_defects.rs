//! What the documents of defects are about, where compiling alone does not show it.

use serde_json::{Value, json};

use crate::behaviour::query;
use crate::defects as fixtures;
use crate::over_http::{REACHED, Served};

#[test]
fn what_is_read_only_is_not_asked_of_requests() {
    use fixtures::d15_readonly_required::server::types::Pet;
    let pet: Pet = serde_json::from_value(json!({ "name": "Minka" })).unwrap();
    assert_eq!((pet.id, pet.name.as_str()), (None, "Minka"));
}

#[test]
fn a_null_is_a_value_of_a_member_that_may_be_anything() {
    use fixtures::d16_any_null::server::types::Pet;
    let read = |value: Value| serde_json::from_value::<Pet>(value).unwrap().anything;
    assert_eq!(read(json!({ "anything": null })), Some(Value::Null));
    assert_eq!(read(json!({})), None);
}

#[test]
fn formats_are_checked() {
    use fixtures::d17_unknown_format::server::types::Host;
    let read = |ip: &str| serde_json::from_value::<Host>(json!({ "ip": ip, "n": 1 })).map(|host| host.ip);
    assert_eq!(read("10.0.0.1").unwrap(), "10.0.0.1");
    assert!(read("10.0.0.256").is_err());
}

#[test]
fn pages_and_errors_of_several_kinds_are_emitted() {
    let version = || semver::Version::new(1, 0, 0);
    let pages = fixtures::d19_pagination_lost::server::dispatch::description().unwrap();
    let pages = pages.openapi("pages", version()).json().unwrap();
    assert_eq!(
        pages["paths"]["/a"]["get"]["x-dropshot-pagination"],
        json!({ "required": [] })
    );
    let errors = fixtures::d43_same_shape_custom_error::server::dispatch::description().unwrap();
    let errors = errors.openapi("errors", version()).json().unwrap();
    for (path, name) in [("/a", "One"), ("/b", "Two")] {
        let reference = &errors["paths"][path]["get"]["responses"]["4XX"]["$ref"];
        assert_eq!(*reference, format!("#/components/responses/{name}"));
        assert!(
            errors["components"]["schemas"][name]["properties"].is_object(),
            "{name}"
        );
    }
}

#[test]
fn what_a_document_says_of_security_is_there_as_data() {
    use fixtures::d30_security_ignored::server::operations::{Operation, SECURITY_SCHEMES, SecurityKind};
    let operation = Operation::find("a").unwrap();
    let [[requirement]] = operation.security else {
        panic!("{:?}", operation.security)
    };
    assert_eq!((requirement.scheme, requirement.scopes), ("key", &["admin"][..]));
    let [scheme] = SECURITY_SCHEMES else { panic!() };
    assert!(matches!(
        scheme.kind,
        SecurityKind::ApiKey {
            location: "header",
            name: "X-Key"
        }
    ));
}

#[test]
fn json_with_parameters_of_its_media_type_is_typed() {
    use dropshot::HttpResponse;
    use fixtures::d31_json_parameters_media::server::{responses::AResponse, types::Pet};
    let answer = AResponse::Ok(Pet { name: "Minka".into() }).to_result().unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json; charset=utf-8");
}

#[test]
fn null_and_members_without_a_name_go_through_unions_lists_and_maps() {
    use fixtures::d37_flatten_nullable::server::types::Pet;
    let whole = json!({
        "any": { "kind": "Cat", "o": { "name": null, "n": 1, "other": [1] }, "fur": "red" },
        "list": [null, { "name": "Ada" }, { "name": null, "x": true }],
        "map": { "a": { "kind": "Dog" } },
        "when": null,
        "id": "9b2f3a52-7c1d-4a8e-9b57-1f2d3c4b5a69",
        "left": 4,
    });
    let pet: Pet = serde_json::from_value(whole.clone()).unwrap();
    // A null where the member may also be left out is left out.
    let mut written = whole.clone();
    for pointer in ["/any/o", "/list/2"] {
        written
            .pointer_mut(pointer)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove("name");
    }
    assert_eq!(serde_json::to_value(&pet).unwrap(), written);
    for (pointer, wrong) in [
        ("/any/fur", json!(1)),
        ("/any/o/n", json!(0)),
        ("/any/kind", json!("Cow")),
        ("/list/1/n", json!(0)),
        ("/map/a/kind", json!(null)),
        ("/left", json!("4")),
    ] {
        let mut other = whole.clone();
        let (around, last) = pointer.rsplit_once('/').unwrap();
        other.pointer_mut(around).unwrap()[last] = wrong;
        assert!(serde_json::from_value::<Pet>(other).is_err(), "{pointer}");
    }
}

#[tokio::test]
async fn patterns_mean_what_they_mean_in_ecmascript_and_a_slash_at_the_end_is_passed_over() {
    use dialect::types::{AQuery, DQuery};
    use fixtures::d38_pattern_dialect::server as dialect;
    assert_eq!(query::<AQuery>("n=12").unwrap().n, "12");
    // Digits of another script.
    assert!(query::<AQuery>("n=%D9%A1%D9%A2").is_err());
    assert!(query::<DQuery>("e=ada%40example.org").is_ok());
    assert!(query::<DQuery>("e=ada").is_err());
    let served = Served::new(dialect::dispatch::description);
    for path in ["/slash/", "/slash"] {
        let url = format!("http://{}{path}", served.server.local_addr());
        let answer = served.client.get(url).send().await.unwrap();
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            body["message"], REACHED.1,
            "{path}: the handler's answer, not the router's"
        );
    }
}

#[test]
fn a_newtype_of_a_newtype_keeps_its_rules_in_a_parameter() {
    use fixtures::d47_parameter_newtype_of_newtype::server::types::APath;
    let read = |key: String| serde_json::from_value::<APath>(json!({ "key": key }));
    assert!(read("k".repeat(63)).is_ok());
    assert!(read("k".repeat(64)).is_err());
}
