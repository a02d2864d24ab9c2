//! Refusals by their cause.

use crate::Problem;

/// The refusals of one cause.
#[derive(Debug)]
pub struct Group {
    /// The cause: the reason without the names that differ from place to place.
    pub cause: String,
    /// The refusals, in the document's order.
    pub problems: Vec<Problem>,
}

/// Groups refusals by cause, the most frequent first.
pub fn groups(problems: Vec<Problem>) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for problem in problems {
        let cause = match &problem {
            Problem::Refused { reason, .. } => cause(reason),
            other => other.to_string(),
        };
        match all.iter_mut().find(|group| group.cause == cause) {
            Some(group) => group.problems.push(problem),
            None => all.push(Group {
                cause,
                problems: vec![problem],
            }),
        }
    }
    all.sort_by_key(|group| std::cmp::Reverse(group.problems.len()));
    all
}

/// Words of OpenAPI, which are the cause and not a name in the document.
const KEYWORDS: &str = " $ref additionalProperties allOf allowEmptyValue allowReserved anyOf byte binary callbacks \
    components content date date-time decimal default deprecated description discriminator enum exclusiveMaximum \
    exclusiveMinimum explode format head items links mapping maxItems maxLength maxProperties maximum minItems minLength \
    minProperties minimum multipleOf not nullable oneOf operationId options parameters pattern patternProperties \
    properties readOnly requestBody required responses schema security servers style summary tags time title trace type \
    uniqueItems writeOnly xml ";

fn cause(reason: &str) -> String {
    let mut out = String::new();
    for (index, piece) in reason.split('`').enumerate() {
        if index % 2 == 0 {
            // A pointer stands bare.
            let words = piece
                .split(' ')
                .map(|word| if word.starts_with("#/") { "…" } else { word });
            out += &words.collect::<Vec<_>>().join(" ");
            continue;
        }
        let first = piece.split([':', ' ']).next().unwrap_or_default();
        let is_media_type = !piece.starts_with('/') && piece.contains('/') && !piece.contains(['{', '#', ' ']);
        let is_keyword = KEYWORDS.contains(&format!(" {first} ")) || first.starts_with("x-") || first.ends_with("XX");
        out += &match is_media_type || is_keyword {
            true => format!("`{piece}`"),
            false => "…".into(),
        };
    }
    out
}
