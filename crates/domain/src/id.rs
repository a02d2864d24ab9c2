//! Parsing of IDs in requests.

use uuid::Uuid;

/// Parses an ID in its canonical form, lower case with hyphens. Returns `None` for any other text, even if it is another form of
/// a UUID.
pub fn parse(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    (id.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_of_an_id_is_accepted() {
        let text = "0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f";
        assert_eq!(parse(text).unwrap().to_string(), text);
        for other in [
            "",
            "0197C2A4-6F00-7D33-8E4F-5A6B7C8D9E0F",
            "0197c2a46f007d338e4f5a6b7c8d9e0f",
            "{0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f}",
            "urn:uuid:0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f",
            "0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0",
            "0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f ",
            "1' OR '1'='1",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
