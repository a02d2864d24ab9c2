//! The statuses of a report and the transitions between them (INS-6).

use uuid::Uuid;

use crate::caller::Inspector;
use crate::generated::types::ReportStatus;

/// A report's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The inspector is writing the report.
    Draft,
    /// Another inspector is reviewing the report.
    InReview,
    /// The review has returned the report for changes.
    RevisionRequested,
    /// The cancellation has been requested and not yet decided.
    CancelRequested,
    /// The report is final, and partners and the customer see it.
    Published,
    /// The report is visible but no longer current.
    Archived,
    /// The report has been cancelled.
    Cancelled,
    /// The report was opened by mistake, and nothing was entered.
    Discarded,
}

partner_api_store::column! {
    Status {
        Draft = "DRAFT",
        InReview = "IN_REVIEW",
        RevisionRequested = "REVISION_REQUESTED",
        CancelRequested = "CANCEL_REQUESTED",
        Published = "PUBLISHED",
        Archived = "ARCHIVED",
        Cancelled = "CANCELLED",
        Discarded = "DISCARDED",
    }
}

use Status::{Archived, CancelRequested, Cancelled, Discarded, Draft, InReview, Published, RevisionRequested};

impl Status {
    /// All statuses.
    pub const ALL: [Status; 8] = [
        Draft,
        InReview,
        RevisionRequested,
        CancelRequested,
        Published,
        Archived,
        Cancelled,
        Discarded,
    ];

    /// The statuses of reports that inspectors still work on.
    pub const OPEN: [Status; 4] = [Draft, InReview, RevisionRequested, CancelRequested];

    /// Whether the report's texts, answers and photos can be edited.
    pub fn is_editable(self) -> bool {
        matches!(self, Draft | RevisionRequested)
    }

    /// The statuses to which a report can be moved. `before` is the status from which its cancellation was requested, if it was.
    pub fn may_become(self, before: Option<Status>) -> Vec<Status> {
        match self {
            Draft => vec![InReview, Published, Discarded],
            InReview => vec![RevisionRequested, Published],
            RevisionRequested => vec![InReview, Published],
            Published => vec![RevisionRequested, Archived, CancelRequested],
            Archived => vec![CancelRequested],
            CancelRequested => before.into_iter().chain([Cancelled]).collect(),
            Cancelled | Discarded => vec![],
        }
    }

    /// Whether a transition from this status to `to` requires a reason.
    pub fn needs_reason(self, to: Status) -> bool {
        match to {
            RevisionRequested | CancelRequested => true,
            Archived => self == Published,
            _ => false,
        }
    }
}

/// The rule that a second inspector publishes a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// Whether the organization has the rule.
    pub is_needed: bool,
    /// The inspector who sent the report to its last review.
    pub sent_by: Option<Uuid>,
    /// The name of the inspector who wrote its last answer.
    pub last_author: Option<String>,
}

impl Review {
    /// Whether the inspector may publish a report that has the status `from`. To take back the request of a cancellation is no
    /// publication.
    pub fn allows(&self, from: Status, inspector: &Inspector) -> bool {
        self.allows_person(from, inspector.id(), inspector.name())
    }

    fn allows_person(&self, from: Status, id: Uuid, name: &str) -> bool {
        match from {
            _ if !self.is_needed => true,
            CancelRequested => true,
            InReview => self.sent_by != Some(id) && self.last_author.as_deref() != Some(name),
            _ => false,
        }
    }
}

impl From<Status> for ReportStatus {
    fn from(status: Status) -> Self {
        match status {
            Draft => ReportStatus::Draft,
            InReview => ReportStatus::InReview,
            RevisionRequested => ReportStatus::RevisionRequested,
            CancelRequested => ReportStatus::CancelRequested,
            Published => ReportStatus::Published,
            Archived => ReportStatus::Archived,
            Cancelled => ReportStatus::Cancelled,
            Discarded => ReportStatus::Discarded,
        }
    }
}

impl From<ReportStatus> for Status {
    fn from(status: ReportStatus) -> Self {
        match status {
            ReportStatus::Draft => Draft,
            ReportStatus::InReview => InReview,
            ReportStatus::RevisionRequested => RevisionRequested,
            ReportStatus::CancelRequested => CancelRequested,
            ReportStatus::Published => Published,
            ReportStatus::Archived => Archived,
            ReportStatus::Cancelled => Cancelled,
            ReportStatus::Discarded => Discarded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-6
    #[test]
    fn a_published_report_is_edited_only_in_a_revision_and_final_statuses_are_final() {
        for from in Status::ALL {
            for before in [None, Some(Published), Some(Archived)] {
                let next = from.may_become(before);
                assert!(!next.contains(&Draft), "{from:?}");
                if matches!(from, Archived | CancelRequested | Cancelled) {
                    assert!(!next.iter().any(|status| status.is_editable() || *status == InReview));
                }
                assert_eq!(next.is_empty(), matches!(from, Cancelled | Discarded));
                assert!(!next.contains(&from));
            }
        }
        assert_eq!(
            Published.may_become(None),
            [RevisionRequested, Archived, CancelRequested]
        );
        assert_eq!(CancelRequested.may_become(Some(Archived)), [Archived, Cancelled]);
    }

    /// INS-20
    #[test]
    fn where_a_review_is_needed_neither_its_sender_nor_the_last_author_publishes() {
        let [sender, author, other] =
            [(1, "Ayşe"), (2, "Mehmet"), (3, "Derya")].map(|(id, name)| (Uuid::from_u128(id), name));
        let review = Review {
            is_needed: true,
            sent_by: Some(sender.0),
            last_author: Some(author.1.to_owned()),
        };
        let allows = |from, (id, name): (Uuid, &str)| review.allows_person(from, id, name);
        assert!(allows(InReview, other) && !allows(InReview, sender) && !allows(InReview, author));
        assert!(!allows(Draft, other) && !allows(RevisionRequested, other));
        assert!(allows(CancelRequested, author));
        assert!(Review::default().allows_person(Draft, author.0, author.1));
    }

    /// INS-6
    #[test]
    fn a_transition_that_takes_a_report_from_partners_or_archives_it_needs_a_reason() {
        assert!(Published.needs_reason(RevisionRequested) && InReview.needs_reason(RevisionRequested));
        assert!(Published.needs_reason(Archived) && Archived.needs_reason(CancelRequested));
        // The request has its own reason.
        assert!(!CancelRequested.needs_reason(Archived) && !CancelRequested.needs_reason(Cancelled));
    }
}
