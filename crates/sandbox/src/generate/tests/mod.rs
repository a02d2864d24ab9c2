//! Properties of the generated data.

mod measurements;
mod reports;
mod texts;

use std::collections::HashSet;
use std::sync::LazyLock;

use partner_api_domain::branch_code;

use super::*;
use crate::catalog::places::{BETA_CODES, BRANCHES};
use crate::data::Branch;

static DATA: LazyLock<Dataset> = LazyLock::new(|| dataset(SEED));

fn count(wanted: impl Fn(&Inspection) -> bool) -> usize {
    DATA.inspections.iter().filter(|inspection| wanted(inspection)).count()
}

#[test]
fn the_same_seed_gives_the_same_data() {
    assert!(*DATA == dataset(SEED));
}

#[test]
fn another_seed_gives_other_ids() {
    assert_ne!(DATA.organizations[0].id, dataset(SEED + 1).organizations[0].id);
}

#[test]
fn all_ids_are_unique() {
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

fn branch(code: &str) -> Vec<&'static Branch> {
    DATA.branches.iter().filter(|branch| branch.code == code).collect()
}

#[test]
fn there_is_one_organization_for_each_privacy_mode() {
    let modes: HashSet<_> = DATA
        .organizations
        .iter()
        .map(|organization| organization.pii_mode)
        .collect();
    assert_eq!(modes, HashSet::from(["NONE", "MASKED", "FULL"]));
    assert_eq!(DATA.organizations.len(), 3);
}

#[test]
fn one_branch_is_inactive_and_one_code_is_ambiguous() {
    assert!(DATA.branches.len() >= 12);
    assert_eq!(DATA.branches.iter().filter(|branch| !branch.is_active).count(), 1);
    let closed = branch(DATA.examples.inactive_branch_code);
    assert!(closed.len() == 1 && !closed[0].is_active);
    let ambiguous = branch(DATA.examples.ambiguous_branch_code);
    assert_eq!(ambiguous.len(), 2);
    assert_ne!(ambiguous[0].organization, ambiguous[1].organization);
    let folded: HashSet<_> = BRANCHES.iter().map(|branch| branch_code::folded(branch.code)).collect();
    assert_eq!(folded.len(), DATA.branches.len() - 1, "only one code must be ambiguous");
}

#[test]
fn the_branch_that_is_not_granted_to_beta_belongs_to_another_organization() {
    let beta: HashSet<_> = BETA_CODES
        .iter()
        .flat_map(|code| branch(code))
        .map(|branch| branch.organization)
        .collect();
    assert_eq!(beta.len(), 1);
    let outside = branch(DATA.examples.not_granted_branch_code);
    assert!(outside.len() == 1 && outside[0].is_active && !beta.contains(&outside[0].organization));
}
