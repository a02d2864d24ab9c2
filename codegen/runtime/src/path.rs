//! Matching of paths against the templates of the document, for routers of code generated with `--dispatch calls`.

/// The variables of a raw path that matches a template byte for byte. A variable is a non-empty part of one segment without
/// escapes. Of several variables in a segment, each ends at the first occurrence of the literal that follows it.
pub fn variables<'t>(template: &'t str, path: &str) -> Option<Vec<(&'t str, String)>> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for wanted in template.split('/') {
        of_segment(wanted, segments.next()?, &mut found)?;
    }
    segments.next().is_none().then_some(found)
}

fn of_segment<'t>(wanted: &'t str, segment: &str, found: &mut Vec<(&'t str, String)>) -> Option<()> {
    let mut parts = wanted.split('{');
    let mut rest = segment.strip_prefix(parts.next()?)?;
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let (name, literal) = part.split_once('}')?;
        let end = match parts.peek() {
            // The last variable ends where the literal at the end of the segment begins.
            None => rest.strip_suffix(literal)?.len(),
            // At least one character belongs to the variable.
            Some(_) => {
                rest.char_indices()
                    .skip(1)
                    .find(|(at, _)| rest[*at..].starts_with(literal))?
                    .0
            }
        };
        let (value, after) = rest.split_at(end);
        if value.is_empty() || value.contains('%') {
            return None;
        }
        found.push((name, value.to_string()));
        rest = &after[literal.len()..];
    }
    rest.is_empty().then_some(())
}
