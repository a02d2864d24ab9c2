//! Insertion of lines into a file with similar lines.

/// Adds those lines of `new` that the text does not have. Lines in a block, `mod x {` … `}`, are added to the same
/// block.
pub fn with(text: &str, new: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let new: Vec<&str> = new.lines().filter(|line| !line.trim().is_empty()).collect();
    match new.as_slice() {
        [first, inner @ .., last] if first.ends_with('{') => {
            let Some(start) = lines.iter().position(|line| line == first) else {
                lines.extend(new.iter().map(|line| (*line).to_string()));
                return lines.join("\n") + "\n";
            };
            let end = |lines: &[String]| {
                let after = lines[start..].iter().position(|line| line == last);
                after.map_or(lines.len(), |after| start + after)
            };
            for line in inner {
                let end = end(&lines);
                insert(&mut lines, start + 1, end, line);
            }
        }
        _ => {
            for line in new {
                let end = lines.len();
                insert(&mut lines, 0, end, line);
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Inserts a line in alphabetical order among the lines of `start..end` with the same first word, or after the last.
fn insert(lines: &mut Vec<String>, start: usize, end: usize, line: &str) {
    let name = |line: &str| line.trim().trim_end_matches(';').replace("r#", "");
    let kind = line.rsplit_once(' ').map_or("", |(kind, _)| kind);
    let alike: Vec<usize> = (start..end)
        .filter(|index| lines[*index].rsplit_once(' ').is_some_and(|(other, _)| other == kind))
        .collect();
    if alike.iter().any(|index| lines[*index] == line) {
        return;
    }
    let place = alike.iter().find(|index| name(&lines[**index]) > name(line));
    let place = place.copied().or(alike.last().map(|last| last + 1)).unwrap_or(end);
    lines.insert(place, line.to_string());
}
