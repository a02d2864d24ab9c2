//! The defects that this generator had, each with a minimal document in `fixtures/defects`, and what would be red if it
//! came back.
//!
//! Of each document, the kept code (or the kept refusal) is compared by `fixtures.rs`, and the code is compiled and its
//! routes registered by `compile`: a crash, a false refusal, code that does not compile and a panic at the start need no
//! more. Where the defect is in what the code does, the table names the test that asks it.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use support::{documents, folder, generated, name};

/// What is red if the defect comes back, beyond the comparison of kept files.
enum Shown {
    /// The generated code compiles, and Dropshot takes its routes.
    Compiles,
    /// So does the client.
    ClientCompiles,
    /// The refusal says this, at this place.
    Refused(&'static str),
    /// A test in this file of `tests`, besides.
    By(&'static str, &'static str),
}

use Shown::{By, ClientCompiles, Compiles, Refused};

const OF_DEFECTS: &str = "compile/of_defects.rs";

const DEFECTS: [(&str, &str, Shown); 50] = [
    ("d01", "an `allOf` of one scalar overflowed the stack", Compiles),
    ("d02", "an `allOf` within itself overflowed the stack", ClientCompiles),
    ("d03", "a member `gen` is a keyword in edition 2024", Compiles),
    ("d04", "surrogate escapes in JSON were refused", Compiles),
    (
        "d05",
        "two ids that meet after conversion defined types twice",
        Refused(":7:5: #/paths/~1b/get: `list_v_1` and `list_v1`"),
    ),
    ("d06", "a helper's name shadowed a schema", Compiles),
    ("d07", "a helper was defined twice", Compiles),
    ("d08", "a schema named like a type parameter", Compiles),
    ("d09", "a hyphen in a path's variable", Compiles),
    (
        "d10",
        "paths that differ by a slash at the end: Dropshot panicked",
        Refused(":7:5: #/paths/~1pets~1/get: Dropshot does not tell"),
    ),
    ("d11", "a shared parameter's enumeration was refused", Compiles),
    ("d12", "a path's parameter's enumeration was refused", Compiles),
    ("d13", "the type of a shared response was undefined", Compiles),
    ("d14", "the type of a shared body was undefined", Compiles),
    (
        "d15",
        "`readOnly` members were asked of requests",
        By(OF_DEFECTS, "what_is_read_only_is_not_asked_of_requests"),
    ),
    (
        "d16",
        "null was refused where anything may stand",
        By(OF_DEFECTS, "a_null_is_a_value_of_a_member_that_may_be_anything"),
    ),
    ("d17", "formats were passed over", By(OF_DEFECTS, "formats_are_checked")),
    ("d18", "OPTIONS in a client", ClientCompiles),
    (
        "d19",
        "`x-dropshot-pagination` was dropped",
        By(OF_DEFECTS, "pages_and_errors_of_several_kinds_are_emitted"),
    ),
    ("d20", "a slash at the end beside a variable was refused", Compiles),
    ("d21", "an extension of `paths` was refused", Compiles),
    (
        "d22",
        "what is OpenAPI 3.1 had the wrong place",
        Refused(":16:50: #/components/schemas/Pet/properties/deep/properties/inner/properties/age/exclusiveMinimum"),
    ),
    (
        "d23",
        "a structural error had the wrong place",
        Refused(":8:9: #/paths/~1a/get/responses/200: not a valid OpenAPI 3.0 document: missing field `description`"),
    ),
    ("d24", "statuses as numbers in YAML", Compiles),
    ("d25", "tabs in JSON", Compiles),
    ("d26", "a long key in JSON", Compiles),
    (
        "d27",
        "deep JSON was refused",
        By("load.rs", "json_may_nest_far_deeper_than_yaml"),
    ),
    ("d28", "errors of different schemas had no client", ClientCompiles),
    (
        "d29",
        "a name of generated code was refused, at the wrong place",
        Compiles,
    ),
    (
        "d30",
        "`security` was ignored",
        By(OF_DEFECTS, "what_a_document_says_of_security_is_there_as_data"),
    ),
    (
        "d31",
        "JSON with parameters of its media type was opaque",
        By(OF_DEFECTS, "json_with_parameters_of_its_media_type_is_typed"),
    ),
    ("d32", "a schema `Default` in a client", ClientCompiles),
    ("d33", "keywords everywhere", Compiles),
    (
        "d34",
        "bounds beyond the integer's type",
        Refused(":9:35: #/paths/~1a/get/parameters/1/schema: no value of this format"),
    ),
    ("d35", "a union that holds itself was refused", Compiles),
    ("d36", "a member of the type itself was refused", Compiles),
    (
        "d37",
        "nulls and free members within unions",
        By(
            OF_DEFECTS,
            "null_and_members_without_a_name_go_through_unions_lists_and_maps",
        ),
    ),
    (
        "d38",
        "`\\d` took digits of any script; a slash at the end",
        By(
            OF_DEFECTS,
            "patterns_mean_what_they_mean_in_ecmascript_and_a_slash_at_the_end_is_passed_over",
        ),
    ),
    ("d39", "an operation `new` in a client", ClientCompiles),
    ("d40", "a misleading refusal of an enumeration", Compiles),
    ("d41", "values without a Rust name", Compiles),
    ("d42", "values with equal Rust names", Compiles),
    (
        "d43",
        "two kinds of errors both vanished",
        By(OF_DEFECTS, "pages_and_errors_of_several_kinds_are_emitted"),
    ),
    (
        "d44",
        "a reference inside an extension: its type was undefined",
        Compiles,
    ),
    ("d45", "the same enumeration in two parts of an `allOf`", Compiles),
    (
        "d46",
        "a title that is another schema's name, in a client",
        ClientCompiles,
    ),
    (
        "d47",
        "a newtype of a newtype as a parameter",
        By(OF_DEFECTS, "a_newtype_of_a_newtype_keeps_its_rules_in_a_parameter"),
    ),
    ("d48", "the default of a named number was refused", Compiles),
    ("d49", "merge keys in YAML were refused", Compiles),
    (
        "d50",
        "an unquoted version was refused in words of no use",
        Refused(":2:18: #/info/version: not a valid OpenAPI 3.0 document: must be text: put it in quotes"),
    ),
];

#[test]
fn every_defect_is_shown_by_what_the_table_says() {
    let all = [documents("defects", "yaml"), documents("defects", "json")].concat();
    let kept = generated("defects");
    let listed = std::fs::read_to_string(folder("defects").join("mod.rs")).unwrap();
    assert_eq!(all.len(), DEFECTS.len());
    for (number, about, shown) in &DEFECTS {
        let document = all.iter().find(|path| name(path).starts_with(&format!("{number}_")));
        let document = document.unwrap_or_else(|| panic!("{number} has no document: {about}"));
        let name = name(document);
        assert_eq!(kept.contains(document), !matches!(shown, Refused(_)), "{name}");
        match shown {
            Refused(said) => {
                let message = std::fs::read_to_string(document.with_extension("txt")).unwrap();
                assert!(message.contains(said), "{name}: {message}");
            }
            Compiles | ClientCompiles | By(..) => {
                assert!(listed.contains(&format!("pub mod {name};")), "{name} is not compiled");
            }
        }
        match shown {
            ClientCompiles => assert!(folder("defects").join(&name).join("client/mod.rs").exists(), "{name}"),
            By(file, test) => {
                let tests = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
                let tests = std::fs::read_to_string(tests).unwrap();
                assert!(
                    tests.contains(&format!("fn {test}()")),
                    "{name}: {file} has no test `{test}`"
                );
            }
            Compiles | Refused(_) => {}
        }
    }
}
