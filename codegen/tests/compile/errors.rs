//! Errors whose bodies differ from operation to operation.

use codegen_runtime::Failure;
use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use http::Response;
use serde_json::{Value, json};

use crate::positive::error_types;
use crate::stub::error::{self, ApiError};

use error_types::server::types::{AddPetError, AddPetError422, Conflict};

fn emitted() -> Value {
    let description = error_types::server::dispatch::description().unwrap();
    description
        .openapi("errors", semver::Version::new(1, 0, 0))
        .json()
        .unwrap()
}

#[test]
fn each_operation_is_emitted_with_its_own_kind_of_errors() {
    let emitted = emitted();
    let schema = |method: &str| {
        let response = emitted["paths"]["/pets"][method]["responses"]["4XX"]["$ref"]
            .as_str()
            .unwrap();
        emitted.pointer(&response[1..]).unwrap()["content"]["application/json"]["schema"].clone()
    };
    assert_eq!(schema("get"), json!({ "$ref": "#/components/schemas/Error" }));
    assert_eq!(schema("delete"), json!({ "$ref": "#/components/schemas/Conflict" }));
    let both = schema("post");
    assert_eq!(both["oneOf"][0], json!({ "$ref": "#/components/schemas/Conflict" }));
    assert_eq!(both["oneOf"][1]["required"], json!(["field"]));
    assert_eq!(
        emitted["components"]["schemas"]["Error"]["required"],
        json!(["message"]),
        "the document's own, not Dropshot's"
    );
}

#[tokio::test]
async fn an_error_has_the_status_and_the_body_that_it_is_made_with() {
    let conflict = Conflict { with: "Minka".into() };
    let failure: Failure<AddPetError, ApiError> = Failure::Declared {
        status: ErrorStatusCode::CONFLICT,
        body: AddPetError::Conflict(conflict),
    };
    assert_eq!(failure.status_code(), ErrorStatusCode::CONFLICT);
    // Bodies are the client's.
    assert_eq!(failure.to_string(), "answered 409 Conflict");
    assert_eq!(serde_json::to_value(&failure).unwrap(), json!({ "with": "Minka" }));
    let response: Response<dropshot::Body> = failure.answer().unwrap();
    assert_eq!(response.status().as_u16(), 409);
    let other = AddPetError::AddPetError422(AddPetError422 { field: "name".into() });
    assert_eq!(serde_json::to_value(other).unwrap(), json!({ "field": "name" }));
}

#[test]
fn what_is_refused_before_the_handler_is_of_the_servers_own_kind() {
    let refused: Failure<Conflict, ApiError> = HttpError::for_bad_request(None, "limit: no".into()).into();
    assert_eq!(refused.status_code(), ErrorStatusCode::BAD_REQUEST);
    assert_eq!(serde_json::to_value(&refused).unwrap()["message"], "limit: no");
    let refused: Failure<Conflict, ApiError> = error::nothing_here().into();
    assert_eq!(refused.answer().unwrap_err().status_code(), ErrorStatusCode::NOT_FOUND);
}
