//! Schemas of OpenAPI 3.0 as JSON Schema.

use serde_json::{Map, Value, json};

/// Returns the document's `components/schemas` as JSON Schema that rejects unknown members.
///
/// Clients must ignore unknown members, because later versions may add some; but the service must not send one that its own
/// document does not have.
pub(crate) fn strict(components: &Value) -> Value {
    let mut schemas = components["schemas"].clone();
    for schema in schemas.as_object_mut().into_iter().flat_map(Map::values_mut) {
        convert(schema);
    }
    json!({ "schemas": schemas })
}

fn convert(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    // Keywords that JSON Schema does not have, or defines differently.
    members
        .retain(|name, _| !name.starts_with("x-") && !matches!(name.as_str(), "example" | "description" | "default"));
    if members
        .get("format")
        .is_some_and(|format| !matches!(format.as_str(), Some("uuid" | "date-time" | "uri")))
    {
        members.remove("format");
    }
    if members.remove("nullable") == Some(json!(true))
        && let Some(kind) = members.get("type").cloned()
    {
        members.insert("type".to_owned(), json!([kind, "null"]));
    }
    if members.contains_key("properties") && !members.contains_key("additionalProperties") {
        members.insert("additionalProperties".to_owned(), json!(false));
    }
    for (name, value) in members.iter_mut() {
        match name.as_str() {
            "properties" => value
                .as_object_mut()
                .into_iter()
                .flat_map(Map::values_mut)
                .for_each(convert),
            "items" | "additionalProperties" | "not" => convert(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array_mut().into_iter().flatten().for_each(convert),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nullable_members_and_closed_objects_are_converted() {
        let components = json!({ "schemas": { "Photo": {
            "type": "object", "example": {}, "required": ["caption"],
            "properties": {
                "caption": { "type": "string", "nullable": true, "x-known-values": [] },
                "size": { "type": "integer", "format": "int64" },
                "id": { "type": "string", "format": "uuid" }
            }
        }}});
        let expected = json!({ "schemas": { "Photo": {
            "type": "object", "required": ["caption"], "additionalProperties": false,
            "properties": {
                "caption": { "type": ["string", "null"] },
                "size": { "type": "integer" },
                "id": { "type": "string", "format": "uuid" }
            }
        }}});
        assert_eq!(strict(&components), expected);
    }
}
