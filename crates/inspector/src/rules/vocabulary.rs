//! The statuses that an inspector can give a point, with their Turkish labels and severities.

use partner_api_domain::threshold::PointStatus;

use crate::generated::types::AnswerStatus;

/// A status as it is stored in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredStatus {
    /// The value of `status_code`.
    pub code: &'static str,
    /// The value of `status_label`, in Turkish.
    pub label: &'static str,
    /// The value of `severity`.
    pub severity: &'static str,
}

impl From<PointStatus> for StoredStatus {
    fn from(status: PointStatus) -> Self {
        StoredStatus {
            code: status.code(),
            label: status.label(),
            severity: status.severity(),
        }
    }
}

impl From<AnswerStatus> for StoredStatus {
    fn from(status: AnswerStatus) -> Self {
        let (code, label, severity) = match status {
            AnswerStatus::Good => return PointStatus::Good.into(),
            AnswerStatus::Borderline => return PointStatus::Borderline.into(),
            AnswerStatus::OutOfLimit => return PointStatus::OutOfLimit.into(),
            AnswerStatus::Original => ("ORIGINAL", "Orijinal", "NONE"),
            AnswerStatus::LocalPaint => ("LOCAL_PAINT", "Lokal boyalı", "LOW"),
            AnswerStatus::Painted => ("PAINTED", "Boyalı", "MEDIUM"),
            AnswerStatus::Replaced => ("REPLACED", "Değişen", "HIGH"),
            AnswerStatus::Worn => ("WORN", "Yıpranmış", "LOW"),
            AnswerStatus::Loose => ("LOOSE", "Boşluk var", "MEDIUM"),
            AnswerStatus::Leaking => ("LEAKING", "Kaçak var", "MEDIUM"),
            AnswerStatus::Corroded => ("CORRODED", "Paslı", "MEDIUM"),
            AnswerStatus::Missing => ("MISSING", "Eksik", "MEDIUM"),
            AnswerStatus::Faulty => ("FAULTY", "Arızalı", "HIGH"),
            AnswerStatus::Broken => ("BROKEN", "Kırık", "HIGH"),
        };
        StoredStatus { code, label, severity }
    }
}
