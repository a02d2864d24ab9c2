//! The reason why a request was rejected or failed, for operators. The caller sees the error code only, which says less on purpose
//! (ERR-3).

use partner_api_store::DbError;
use partner_api_store::directory::KeyProblem;

/// Declares the reasons, each with its word and its meaning.
macro_rules! reasons {
    ($($(#[doc = $about:literal])+ $name:ident = $word:literal,)+) => {
        /// Why a request was rejected or failed: one of a fixed list of words, never a text that a caller sent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[doc = $about])+ $name,)+
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// The word under which it is kept.
            pub fn word(self) -> &'static str {
                match self {
                    $(Reason::$name => $word,)+
                }
            }

            /// What it means, in a sentence for whoever runs the service.
            pub fn about(self) -> &'static str {
                match self {
                    $(Reason::$name => concat!($($about),+).trim_ascii(),)+
                }
            }
        }
    };
}

reasons! {
    /// The address had used up its requests of this minute.
    AddressOverLimit = "address_over_limit",
    /// Too many bytes of bodies from this address were under way at once.
    AddressBodies = "address_bodies",
    /// Too many bytes of bodies were under way at once, from all addresses together.
    AllBodies = "all_bodies",

    /// X-Partner-Key-Id was not sent.
    KeyIdMissing = "key_id_missing",
    /// X-Partner-Key-Id was sent empty.
    KeyIdEmpty = "key_id_empty",
    /// X-Partner-Key-Id was sent more than once.
    KeyIdRepeated = "key_id_repeated",
    /// X-Partner-Timestamp was not sent.
    TimestampMissing = "timestamp_missing",
    /// X-Partner-Timestamp was sent empty.
    TimestampEmpty = "timestamp_empty",
    /// X-Partner-Timestamp was sent more than once.
    TimestampRepeated = "timestamp_repeated",
    /// X-Partner-Timestamp was no plain integer.
    TimestampMalformed = "timestamp_malformed",
    /// X-Partner-Nonce was not sent.
    NonceMissing = "nonce_missing",
    /// X-Partner-Nonce was sent empty.
    NonceEmpty = "nonce_empty",
    /// X-Partner-Nonce was sent more than once.
    NonceRepeated = "nonce_repeated",
    /// X-Partner-Nonce was too short, too long, or not of visible ASCII.
    NonceMalformed = "nonce_malformed",
    /// X-Partner-Signature was not sent.
    SignatureMissing = "signature_missing",
    /// X-Partner-Signature was sent empty.
    SignatureEmpty = "signature_empty",
    /// X-Partner-Signature was sent more than once.
    SignatureRepeated = "signature_repeated",

    /// What was sent as a key id has not the shape of one, and is not kept: it may be a secret.
    KeyMalformed = "key_malformed",
    /// Nobody here has the key id.
    KeyUnknown = "key_unknown",
    /// The key is one of the other environment.
    KeyOfOtherEnvironment = "key_of_other_environment",
    /// The key was revoked.
    KeyRevoked = "key_revoked",
    /// The key has expired.
    KeyExpired = "key_expired",
    /// The key's partner is disabled.
    PartnerDisabled = "partner_disabled",
    /// The key's row cannot be used: its secret does not open under this master key, or its allowlist is malformed.
    KeyUnusable = "key_unusable",
    /// The key's allowlist does not have the address.
    AddressNotAllowed = "address_not_allowed",

    /// The caller's clock is too far behind, or it sent a request that it had signed long before.
    TimestampBehind = "timestamp_behind",
    /// The caller's clock is too far ahead.
    TimestampAhead = "timestamp_ahead",
    /// The timestamp was current when the head arrived, and no longer when the body had.
    TimestampOutrun = "timestamp_outrun",

    /// The signature does not begin with `sha256=`.
    SignaturePrefix = "signature_prefix",
    /// What follows `sha256=` has not 64 characters.
    SignatureLength = "signature_length",
    /// The signature's hex is in upper case.
    SignatureUpperCase = "signature_upper_case",
    /// What follows `sha256=` is no hex.
    SignatureNotHex = "signature_not_hex",
    /// The signature has the right shape and is another one: another secret, or another canonical string was signed.
    SignatureDiffers = "signature_differs",

    /// The nonce was used before.
    NonceUsed = "nonce_used",
    /// The key had used up its requests of this minute.
    KeyOverLimit = "key_over_limit",
    /// Too many requests waited for admission, of this key or of all.
    AdmissionCrowded = "admission_crowded",
    /// Admission did not get an answer from the database in time.
    AdmissionOverdue = "admission_overdue",
    /// Admission got no connection to the database.
    AdmissionNoConnection = "admission_no_connection",
    /// The database refused to admit, or lost the statement.
    AdmissionFailed = "admission_failed",
    /// Keys and grants had not been compared with the database for too long to be relied on.
    DirectoryStale = "directory_stale",

    /// Nothing is at the path.
    NoSuchPath = "no_such_path",
    /// The path has no such method.
    NoSuchMethod = "no_such_method",
    /// The key has not the scope that the operation asks for.
    ScopeMissing = "scope_missing",
    /// The query cannot be read.
    QueryMalformed = "query_malformed",
    /// The query has a parameter that the operation does not.
    ParameterUnknown = "parameter_unknown",
    /// The query has a parameter twice.
    ParameterRepeated = "parameter_repeated",
    /// A parameter, header or body is not what the document says.
    ArgumentRefused = "argument_refused",
    /// There is no such thing, or it is outside of what the partner was granted: nobody looks which.
    NotVisible = "not_visible",
    /// The file's link was forged or has expired, or the file is gone.
    LinkRefused = "link_refused",

    /// The body was announced as too large.
    BodyAnnouncedTooLarge = "body_announced_too_large",
    /// More of the body came than may.
    BodyTooLarge = "body_too_large",
    /// The body did not arrive in time.
    BodyTooSlow = "body_too_slow",
    /// The body broke off.
    BodyBrokeOff = "body_broke_off",

    /// All connections to the database were taken, or none could be made.
    NoConnection = "no_connection",
    /// The database did not answer in time.
    DatabaseOverdue = "database_overdue",
    /// The database was busy, starting or stopping, or a lock was not to be had.
    DatabaseUnavailable = "database_unavailable",
    /// The database refused a statement: the log to standard error has its words.
    StatementFailed = "statement_failed",
    /// A row was not what the schema promises: the log to standard error has its words.
    RowUnexpected = "row_unexpected",
    /// Too many measurements were under way, of this partner or of all.
    RecorderCrowded = "recorder_crowded",
    /// A measurement was not recorded in time.
    RecorderOverdue = "recorder_overdue",
    /// The PDF is not rendered yet, or what it was rendered from has changed.
    PdfNotReady = "pdf_not_ready",
    /// The store of files did not answer.
    StorageUnavailable = "storage_unavailable",
    /// The store of files failed, or has not what the database names.
    StorageFailed = "storage_failed",
    /// The request took longer than one may.
    RequestOverdue = "request_overdue",
    /// What answers the request panicked: the log to standard error has where.
    Panicked = "panicked",
    /// The answer could not be built.
    AnswerUnbuildable = "answer_unbuildable",
    /// The caller ordered this answer (`Prefer`), in the sandbox.
    AnswerOrdered = "answer_ordered",
}

impl Reason {
    /// The reason of a word; none for one that only another version knows.
    pub fn of_word(word: &str) -> Option<Self> {
        Reason::ALL.iter().copied().find(|reason| reason.word() == word)
    }
}

impl From<&DbError> for Reason {
    fn from(error: &DbError) -> Self {
        match error {
            DbError::Pool(_) => Reason::NoConnection,
            DbError::TimedOut => Reason::DatabaseOverdue,
            DbError::Query(_) if error.is_unavailable() => Reason::DatabaseUnavailable,
            DbError::Query(_) => Reason::StatementFailed,
            DbError::Data { .. } => Reason::RowUnexpected,
        }
    }
}

impl From<KeyProblem> for Reason {
    fn from(problem: KeyProblem) -> Self {
        match problem {
            KeyProblem::Malformed => Self::KeyMalformed,
            KeyProblem::Unknown => Self::KeyUnknown,
            KeyProblem::OfOtherEnvironment => Self::KeyOfOtherEnvironment,
            KeyProblem::Expired => Self::KeyExpired,
            KeyProblem::Revoked => Self::KeyRevoked,
            KeyProblem::PartnerDisabled => Self::PartnerDisabled,
            KeyProblem::Unusable => Self::KeyUnusable,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_reason_has_a_word_of_its_own_and_a_sentence() {
        let words: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.word()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(Reason::of_word(reason.word()), Some(*reason));
            let about = reason.about();
            assert!(about.ends_with('.') && !about.contains("  "), "{about}");
        }
        assert_eq!(Reason::of_word("of another version"), None);
    }
}
