//! Paths and their templates.

use codegen_runtime::path::variables;

/// The values of the variables, separated by commas.
fn values(template: &str, path: &str) -> Option<String> {
    let found = variables(template, path)?;
    Some(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(","))
}

#[test]
fn variables_may_be_parts_of_a_segment() {
    for (template, path, expected) in [
        ("/a/{id}/b", "/a/1/b", "1"),
        ("/a", "/a", ""),
        ("/{page}.{format}", "/4.png", "4,png"),
        ("/{page}.{format}", "/4.tar.gz", "4,tar.gz"),
        ("/{page}t.{format}", "/4t.png", "4,png"),
        ("/cover.{format}", "/cover.png", "png"),
        ("/{name}:cancel", "/job:1:cancel", "job:1"),
        ("/{id}-{of}!", "/a-b-c!", "a,b-c"),
    ] {
        assert_eq!(values(template, path).as_deref(), Some(expected), "{template} {path}");
    }
    assert_eq!(variables("/{page}.{format}", "/4.png").unwrap()[1].0, "format");
}

#[test]
fn a_path_must_match_its_template_byte_for_byte() {
    for (template, path) in [
        ("/a/{id}/b", "/a/1/b/"),
        ("/a/{id}/b", "/a//b"),
        ("/a/{id}/b", "//a/1/b"),
        ("/a/{id}/b", "/a/1/%62"),
        ("/a/{id}/b", "/a/%31/b"),
        ("/a/{id}/b", "/a/1"),
        ("/a/{id}/b", "/A/1/b"),
        ("/a/{id}/b", "/a/1/b/c"),
        ("/{page}.{format}", "/.png"),
        ("/{page}.{format}", "/4."),
        ("/{page}.{format}", "/4png"),
        ("/{name}:cancel", "/:cancel"),
        ("/{name}:cancel", "/1:cancel2"),
    ] {
        assert_eq!(values(template, path), None, "{template} {path}");
    }
}
