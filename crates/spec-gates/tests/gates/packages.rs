//! Checks the crates that partners use.

use std::fs;

use crate::contracts::root;

#[test]
fn a_crate_for_partners_contains_its_licenses_and_its_metadata() {
    for folder in ["client", "crates/signing"] {
        let folder = root().join(folder);
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let package = &manifest["package"];
        assert_eq!(package["publish"].as_bool(), Some(true), "{}", folder.display());
        for name in [
            "description",
            "documentation",
            "license",
            "repository",
            "readme",
            "keywords",
            "categories",
        ] {
            assert!(package.get(name).is_some(), "{}: {name}", folder.display());
        }
        for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = fs::read(folder.join(license)).unwrap_or_default();
            assert!(
                text == fs::read(root().join(license)).unwrap(),
                "{}: {license}",
                folder.display()
            );
        }
        let included = package["include"].as_array().unwrap();
        assert!(included.contains(&"/LICENSE-*".into()), "{included:?}");
    }
    assert!(root().join("client/examples/reports.rs").is_file());
}
