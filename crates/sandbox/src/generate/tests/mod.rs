//! What the data promises, whatever is drawn.

mod measurements;
mod reports;
mod tenants;
mod texts;

use std::collections::HashSet;
use std::sync::LazyLock;

use super::*;

static DATA: LazyLock<Dataset> = LazyLock::new(|| dataset(SEED));

fn count(wanted: impl Fn(&Inspection) -> bool) -> usize {
    DATA.inspections.iter().filter(|inspection| wanted(inspection)).count()
}

#[test]
fn the_same_seed_makes_the_same_data() {
    assert!(*DATA == dataset(SEED));
}

#[test]
fn another_seed_makes_other_ids() {
    assert_ne!(DATA.organizations[0].id, dataset(SEED + 1).organizations[0].id);
}

#[test]
fn every_id_is_its_own() {
    let mut ids = HashSet::new();
    let data = &*DATA;
    let all = (data.organizations.iter().map(|row| row.id))
        .chain(data.branches.iter().map(|row| row.id))
        .chain(data.vehicles.iter().map(|row| row.id))
        .chain(data.measurements.iter().map(|row| row.id))
        .chain(data.inspections.iter().flat_map(|row| {
            let forms = row.forms.iter().map(|form| form.id);
            forms.chain(row.photos.iter().map(|photo| photo.id)).chain([row.id])
        }));
    for id in all {
        assert_eq!(id.get_version_num(), 7);
        assert!(ids.insert(id));
    }
}
