//! The statuses of a report, and which follows which (INS-6).

use crate::generated::types::{OpenStatus, ReportStatus};

/// A report's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Being written.
    Draft,
    /// Written, and read by somebody else.
    InReview,
    /// Sent back to be written on.
    RevisionRequested,
    /// Somebody wants it withdrawn.
    CancelRequested,
    /// Finished, and shown to the customer.
    Published,
    /// Kept, no longer current.
    Archived,
    /// Withdrawn.
    Cancelled,
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
    }
}

use Status::{Archived, CancelRequested, Cancelled, Draft, InReview, Published, RevisionRequested};

impl Status {
    /// All.
    pub const ALL: [Status; 7] = [
        Draft,
        InReview,
        RevisionRequested,
        CancelRequested,
        Published,
        Archived,
        Cancelled,
    ];

    /// Those that partners do not see.
    pub const OPEN: [Status; 4] = [Draft, InReview, RevisionRequested, CancelRequested];

    /// Whether the report may be written in: its texts, answers and photos.
    pub fn is_writing(self) -> bool {
        matches!(self, Draft | RevisionRequested)
    }

    /// What a report in this status may become; `before` is the status from which its cancellation was requested, if it was.
    pub fn may_become(self, before: Option<Status>) -> Vec<Status> {
        match self {
            Draft => vec![InReview, Published],
            InReview => vec![RevisionRequested, Published],
            RevisionRequested => vec![InReview],
            Published => vec![Archived, CancelRequested],
            Archived => vec![CancelRequested],
            CancelRequested => before.into_iter().chain([Cancelled]).collect(),
            Cancelled => vec![],
        }
    }

    /// Whether a move to this status must say why.
    pub fn needs_reason(self) -> bool {
        matches!(self, RevisionRequested | CancelRequested)
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
        }
    }
}

impl From<OpenStatus> for Status {
    fn from(status: OpenStatus) -> Self {
        match status {
            OpenStatus::Draft => Draft,
            OpenStatus::InReview => InReview,
            OpenStatus::RevisionRequested => RevisionRequested,
            OpenStatus::CancelRequested => CancelRequested,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-6
    #[test]
    fn what_partners_have_seen_never_becomes_a_draft_again_and_a_cancelled_report_stays_so() {
        for from in Status::ALL {
            for before in [None, Some(Published), Some(Archived)] {
                let next = from.may_become(before);
                assert!(!next.contains(&Draft), "{from:?}");
                if matches!(from, Published | Archived | CancelRequested | Cancelled) {
                    assert!(!next.iter().any(|status| status.is_writing() || *status == InReview));
                }
                assert_eq!(next.is_empty(), from == Cancelled);
                assert!(!next.contains(&from));
            }
        }
        assert_eq!(CancelRequested.may_become(Some(Archived)), [Archived, Cancelled]);
    }
}
