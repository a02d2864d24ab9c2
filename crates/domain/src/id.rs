//! Ids as partners write them.

use uuid::Uuid;

/// The id that `text` is the canonical form of: lower-case, with dashes. Any other text, whatever UUID it may mean to
/// others, names nothing.
pub fn parse(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    (id.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_an_id() {
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
