//! The statuses that an inspector gives a point by hand: code, label in the language of the reports, severity.

use partner_api_domain::threshold::PointStatus;

use crate::generated::types::AnswerStatus;

/// A status as an answer holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// `status_code`
    pub code: &'static str,
    /// `status_label`
    pub label: &'static str,
    /// `severity`
    pub severity: &'static str,
}

impl From<PointStatus> for Word {
    fn from(status: PointStatus) -> Self {
        Word {
            code: status.code(),
            label: status.label(),
            severity: status.severity(),
        }
    }
}

impl From<AnswerStatus> for Word {
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
        Word { code, label, severity }
    }
}
