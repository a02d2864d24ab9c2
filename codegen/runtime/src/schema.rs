//! Schemas of the document in generated types.

use schemars::r#gen::SchemaGenerator;
use schemars::schema::{Schema, SchemaObject};

/// The schema that the generator embedded, as JSON Schema in schemars' dialect.
///
/// Invalid JSON becomes an empty schema.
pub fn embedded(json: &str) -> Schema {
    // Dropshot adds a title to schema objects. An empty schema must not get one.
    if json == "{}" {
        return Schema::Bool(true);
    }
    Schema::Object(serde_json::from_str::<SchemaObject>(json).unwrap_or_default())
}

/// Adds the definition of `T` to the document of `generator`.
pub fn register<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}
