//! Organisations and their branches.

use std::collections::HashSet;

use partner_api_domain::branch_code;

use super::DATA;
use crate::catalogue::places::{BETA_CODES, BRANCHES};
use crate::data::Branch;

fn branch(code: &str) -> Vec<&'static Branch> {
    DATA.branches.iter().filter(|branch| branch.code == code).collect()
}

#[test]
fn there_is_one_organisation_for_each_privacy_mode() {
    let modes: HashSet<_> = DATA
        .organizations
        .iter()
        .map(|organization| organization.pii_mode)
        .collect();
    assert_eq!(modes, HashSet::from(["NONE", "MASKED", "FULL"]));
    assert_eq!(DATA.organizations.len(), 3);
}

#[test]
fn branches_are_many_one_is_closed_and_one_code_is_ambiguous() {
    assert!(DATA.branches.len() >= 12);
    assert_eq!(DATA.branches.iter().filter(|branch| !branch.is_active).count(), 1);
    let closed = branch(DATA.examples.inactive_branch_code);
    assert!(closed.len() == 1 && !closed[0].is_active);
    let twins = branch(DATA.examples.ambiguous_branch_code);
    assert_eq!(twins.len(), 2);
    assert_ne!(twins[0].organization, twins[1].organization);
    let folded: HashSet<_> = BRANCHES.iter().map(|branch| branch_code::folded(branch.code)).collect();
    assert_eq!(
        folded.len(),
        DATA.branches.len() - 1,
        "no other code names two branches"
    );
}

#[test]
fn the_code_out_of_betas_scope_is_of_another_organisation() {
    let beta: HashSet<_> = BETA_CODES
        .iter()
        .flat_map(|code| branch(code))
        .map(|branch| branch.organization)
        .collect();
    assert_eq!(beta.len(), 1);
    let outside = branch(DATA.examples.not_granted_branch_code);
    assert!(outside.len() == 1 && outside[0].is_active && !beta.contains(&outside[0].organization));
}
