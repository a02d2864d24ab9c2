//! Types that carry the document's own schema.

use schemars::r#gen::SchemaGenerator;
use schemars::schema::{Schema, SchemaObject};

/// The schema written in the document, as the generator embedded it (JSON Schema in schemars' dialect).
///
/// What does not parse gives an empty schema, which the comparison of the emitted document with the source shows.
pub fn embedded(json: &str) -> Schema {
    // Dropshot gives a schema object a title; one that says nothing is to have none, either.
    if json == "{}" {
        return Schema::Bool(true);
    }
    Schema::Object(serde_json::from_str::<SchemaObject>(json).unwrap_or_default())
}

/// Makes sure that `T`'s definition is in the document of `generator`.
pub fn register<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}
