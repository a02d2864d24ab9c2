//! The precise reason why a request was rejected or failed, for operators. The caller sees only the error code, which is less
//! specific on purpose (ERR-3).

use partner_api_store::DbError;
use partner_api_store::directory::KeyProblem;

/// Declares the reasons with their texts and descriptions.
macro_rules! reasons {
    ($($(#[doc = $about:literal])+ $name:ident = $text:literal,)+) => {
        /// Why a request was rejected or failed. Its text is one of a fixed list and never contains text that a caller sent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[doc = $about])+ $name,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// Returns the text of the reason in the request log.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Reason::$name => $text,)+
                }
            }

            /// Returns a description for operators, in a sentence.
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
    /// Too many bytes of bodies from this address were in progress at once.
    AddressBodies = "address_bodies",
    /// Too many bytes of bodies were in progress at once, from all addresses together.
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
    /// X-Partner-Timestamp was not a plain integer.
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

    /// The text sent as a key ID does not have its format. It is not logged, because it may be a secret.
    KeyMalformed = "key_malformed",
    /// No key has this ID.
    KeyUnknown = "key_unknown",
    /// The key belongs to the other environment.
    KeyOfOtherEnvironment = "key_of_other_environment",
    /// The key was revoked.
    KeyRevoked = "key_revoked",
    /// The key has expired.
    KeyExpired = "key_expired",
    /// The key's partner is disabled.
    PartnerDisabled = "partner_disabled",
    /// The key's row is unusable: its secret cannot be decrypted with this master key, or its allowlist is malformed.
    KeyUnusable = "key_unusable",
    /// The key's allowlist does not contain the address.
    AddressNotAllowed = "address_not_allowed",

    /// The caller's clock is too far behind, or the caller sent a request that it had signed long before.
    TimestampBehind = "timestamp_behind",
    /// The caller's clock is too far ahead.
    TimestampAhead = "timestamp_ahead",
    /// The timestamp was current when the head arrived, and expired before the body arrived.
    TimestampOutrun = "timestamp_outrun",

    /// The signature does not begin with `sha256=`.
    SignaturePrefix = "signature_prefix",
    /// The text after `sha256=` does not have 64 characters.
    SignatureLength = "signature_length",
    /// The signature's hex is in upper case.
    SignatureUpperCase = "signature_upper_case",
    /// The text after `sha256=` is not hexadecimal.
    SignatureNotHex = "signature_not_hex",
    /// The signature has the right format but differs: it was computed with another secret or from another canonical string.
    SignatureDiffers = "signature_differs",

    /// The nonce was used before.
    NonceUsed = "nonce_used",
    /// The key had used up its requests of this minute.
    KeyOverLimit = "key_over_limit",
    /// Too many requests waited for admission, of this key or of all keys, or the request had waited for one second because too many
    /// were in progress.
    AdmissionCrowded = "admission_crowded",
    /// The database did not respond to the admission in time.
    AdmissionOverdue = "admission_overdue",
    /// No database connection was available for the admission.
    AdmissionNoConnection = "admission_no_connection",
    /// The database rejected the admission statement, or the connection was lost.
    AdmissionFailed = "admission_failed",
    /// The database's clock was set back too far to recognize used nonces.
    AdmissionClockBehind = "admission_clock_behind",
    /// The cached keys and grants had not been compared with the database for too long.
    DirectoryStale = "directory_stale",

    /// Nothing exists at the path.
    NoSuchPath = "no_such_path",
    /// The path does not have the method.
    NoSuchMethod = "no_such_method",
    /// The key does not have the scope that the operation requires.
    ScopeMissing = "scope_missing",
    /// The query cannot be decoded.
    QueryMalformed = "query_malformed",
    /// The query has a parameter that the operation does not have.
    ParameterUnknown = "parameter_unknown",
    /// The query has a parameter more than once.
    ParameterRepeated = "parameter_repeated",
    /// A parameter, header or body does not match the contract.
    ArgumentRejected = "argument_rejected",
    /// The object does not exist, or is outside of the partner's grants; the service does not determine which.
    NotVisible = "not_visible",
    /// The file's link was forged or has expired, or the file is gone.
    LinkRejected = "link_rejected",

    /// The announced length of the body was over the limit.
    BodyAnnouncedTooLarge = "body_announced_too_large",
    /// The body was longer than the limit.
    BodyTooLarge = "body_too_large",
    /// The body did not arrive in time.
    BodyTooSlow = "body_too_slow",
    /// The connection was lost before the end of the body.
    BodyBrokeOff = "body_broke_off",

    /// All database connections were in use, or none could be established.
    NoConnection = "no_connection",
    /// The database did not respond in time.
    DatabaseOverdue = "database_overdue",
    /// The database was busy, starting or stopping, or a lock was not available.
    DatabaseUnavailable = "database_unavailable",
    /// The database rejected a statement; the log on standard error has its message.
    StatementFailed = "statement_failed",
    /// A row had a value that the schema rules out; the log on standard error has the details.
    RowUnexpected = "row_unexpected",
    /// Too many measurements were in progress, of this partner or of all partners.
    RecorderCrowded = "recorder_crowded",
    /// A measurement was not recorded in time.
    RecorderOverdue = "recorder_overdue",
    /// The PDF is not rendered yet, or its data has changed since.
    PdfNotReady = "pdf_not_ready",
    /// The storage did not respond.
    StorageUnavailable = "storage_unavailable",
    /// The storage failed, or does not have an object that the database references.
    StorageFailed = "storage_failed",
    /// The request exceeded its time limit.
    RequestOverdue = "request_overdue",
    /// The handler panicked; the log on standard error has the location.
    Panicked = "panicked",
    /// The response could not be built.
    AnswerUnbuildable = "answer_unbuildable",
    /// The caller requested this response (`Prefer`), in the sandbox.
    AnswerOrdered = "answer_ordered",
}

impl Reason {
    /// Returns the reason with this text, or `None` if only another version of the service knows it.
    pub fn from_text(text: &str) -> Option<Self> {
        Reason::ALL.iter().copied().find(|reason| reason.as_str() == text)
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
    fn each_reason_has_a_unique_text_and_a_description() {
        let texts: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(texts.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(Reason::from_text(reason.as_str()), Some(*reason));
            let about = reason.about();
            assert!(about.ends_with('.') && !about.contains("  "), "{about}");
        }
        assert_eq!(Reason::from_text("of another version"), None);
    }
}
