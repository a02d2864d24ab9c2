//! Generated cases of paging: partner, filters, reports, limits, and concurrent inserts.

use chrono::{DateTime, TimeDelta, Utc};
use partner_api_client::types::InspectionStatus;
use partner_api_tests::fixture::{branches, organizations};
use partner_api_tests::{ALPHA, BETA, GAMMA, TestKey};
use proptest::prelude::*;
use uuid::Uuid;

/// The branches of reports, with their organizations.
pub const PLACES: [(&str, &str); 5] = [
    (branches::KAP_01, organizations::NONE),
    (branches::IZMIR_01, organizations::MASKED),
    (branches::ANK_01, organizations::MASKED),
    (branches::ESK_01, organizations::MASKED),
    (branches::IST_02, organizations::FULL),
];
/// Partners with the branches that they see, indexed by [`Case::partner`].
pub const PARTNERS: [(TestKey, &[&str]); 3] = [
    (
        ALPHA,
        &[
            branches::KAP_01,
            branches::IZMIR_01,
            branches::ANK_01,
            branches::ESK_01,
            branches::IST_02,
        ],
    ),
    (BETA, &[branches::IZMIR_01, branches::ESK_01]),
    (GAMMA, &[]),
];
/// Mostly published, so that most reports are listed.
pub const STATUSES: [&str; 6] = ["PUBLISHED", "PUBLISHED", "PUBLISHED", "ARCHIVED", "CANCELLED", "DRAFT"];
/// The values of the filter `status`.
pub const FILTER_STATUSES: [(&str, InspectionStatus); 3] = [
    ("PUBLISHED", InspectionStatus::Published),
    ("ARCHIVED", InspectionStatus::Archived),
    ("CANCELLED", InspectionStatus::Cancelled),
];
pub const ORGANIZATIONS: [&str; 4] = [
    organizations::NONE,
    organizations::MASKED,
    organizations::FULL,
    partner_api_tests::fixture::inspections::UNKNOWN,
];

/// One of a few times, so that many reports share each. Two of them differ by a microsecond.
pub fn moment(index: usize) -> DateTime<Utc> {
    let base: DateTime<Utc> = "2026-05-12T08:00:00Z".parse().unwrap();
    base + [
        TimeDelta::zero(),
        TimeDelta::microseconds(1),
        TimeDelta::hours(1),
        TimeDelta::days(-60),
    ][index]
}

pub fn text(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[derive(Clone, Debug)]
pub struct Report {
    pub id: Uuid,
    pub branch: String,
    pub organization: String,
    pub status: String,
    pub created_at: DateTime<Utc>,
    pub published_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    pub organization: Option<&'static str>,
    pub branch: Option<&'static str>,
    pub status: Option<usize>,
    pub created: [Option<DateTime<Utc>>; 2],
    pub published: [Option<DateTime<Utc>>; 2],
}

impl Filters {
    pub fn query(&self) -> String {
        let times = [
            ("created_from", self.created[0]),
            ("created_to", self.created[1]),
            ("published_from", self.published[0]),
            ("published_to", self.published[1]),
        ];
        let mut query = String::new();
        let texts = [
            ("organization_id", self.organization.map(str::to_owned)),
            ("branch_id", self.branch.map(str::to_owned)),
            (
                "status",
                self.status.map(|status| FILTER_STATUSES[status].0.to_lowercase()),
            ),
        ];
        for (name, value) in texts
            .into_iter()
            .chain(times.map(|(name, time)| (name, time.map(text))))
        {
            if let Some(value) = value {
                query += &format!("&{name}={value}");
            }
        }
        query
    }

    pub fn admit(&self, report: &Report) -> bool {
        let status = match self.status {
            None => ["PUBLISHED", "ARCHIVED"].contains(&report.status.as_str()),
            Some(status) => report.status == FILTER_STATUSES[status].0,
        };
        let within = |[from, to]: [Option<DateTime<Utc>>; 2], time: DateTime<Utc>| {
            from.is_none_or(|from| time >= from) && to.is_none_or(|to| time <= to)
        };
        status
            && self.organization.is_none_or(|id| id == report.organization)
            && self.branch.is_none_or(|id| id == report.branch)
            && within(self.created, report.created_at)
            && report.published_at.is_some_and(|time| within(self.published, time))
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    pub partner: usize,
    pub filters: Filters,
    /// The reports in addition to the fixture data.
    pub reports: Vec<Report>,
    /// The limits of consecutive pages, repeated.
    pub limits: Vec<u32>,
    /// The reports that are inserted after each page.
    pub concurrent: Vec<Vec<Report>>,
    /// A position in a cursor, and the amount to change it by.
    pub altered: (prop::sample::Index, usize),
    pub other: Filters,
}

pub fn report() -> impl Strategy<Value = Report> {
    let published = prop_oneof![Just(0usize), Just(2)];
    (any::<u128>(), 0..PLACES.len(), 0..STATUSES.len(), 0..3usize, published).prop_map(
        |(id, place, status, created, published)| Report {
            id: Uuid::from_u128(id),
            branch: PLACES[place].0.to_owned(),
            organization: PLACES[place].1.to_owned(),
            status: STATUSES[status].to_owned(),
            created_at: moment(created),
            published_at: Some(moment(published)),
        },
    )
}

pub fn range() -> impl Strategy<Value = [Option<DateTime<Utc>>; 2]> {
    let bound = || prop::option::weighted(0.25, (0..4usize).prop_map(moment));
    [bound(), bound()].prop_map(|bounds| match bounds {
        [Some(from), Some(to)] => [Some(from.min(to)), Some(from.max(to))],
        other => other,
    })
}

pub fn filters() -> impl Strategy<Value = Filters> {
    (
        prop::option::weighted(0.3, prop::sample::select(&ORGANIZATIONS[..])),
        prop::option::weighted(0.2, prop::sample::select(&PLACES[..])),
        prop::option::weighted(0.3, 0..FILTER_STATUSES.len()),
        range(),
        range(),
    )
        .prop_map(|(organization, place, status, created, published)| Filters {
            organization,
            branch: place.map(|(branch, _)| branch),
            status,
            created,
            published,
        })
}

pub fn case() -> impl Strategy<Value = Case> {
    (
        prop_oneof![6 => Just(0usize), 3 => Just(1), 1 => Just(2)],
        filters(),
        prop::collection::vec(report(), 0..50),
        prop::collection::vec(prop_oneof![8 => 1..12u32, 1 => Just(100)], 1..4),
        prop::collection::vec(prop::collection::vec(report(), 0..5), 0..6),
        (any::<prop::sample::Index>(), 1..64usize),
        filters(),
    )
        .prop_map(|(partner, filters, reports, limits, concurrent, altered, other)| Case {
            partner,
            filters,
            reports,
            limits,
            concurrent,
            altered,
            other,
        })
}
