//! The time of a file, which the UUID in the name of a claimed file contains.

use std::time::SystemTime;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::{Builder, NoContext, Timestamp, Uuid};

/// 2020-01-01 in UNIX seconds. Earlier file times come from a clock that has lost its time, and are not used.
const EARLIEST: i64 = 1_577_836_800;

/// Returns a random UUID that contains the file's time, by the service's clock. If the time is not usable, the UUID contains none.
pub(super) fn uuid_at(modified: Option<SystemTime>, now: DateTime<Utc>, ahead: TimeDelta) -> Uuid {
    // A later time can only be that of a wrong clock.
    let time = modified.map(|modified| DateTime::from(modified).min(now));
    match time.and_then(|time| time.checked_add_signed(ahead)) {
        Some(time) if time.timestamp() >= EARLIEST => Uuid::new_v7(Timestamp::from_unix(
            NoContext,
            u64::try_from(time.timestamp()).unwrap_or_default(),
            time.timestamp_subsec_nanos(),
        )),
        _ => Uuid::new_v4(),
    }
}

/// Returns a UUID that contains this time, in milliseconds, and otherwise depends only on the digest.
pub(super) fn uuid_with(time: Option<DateTime<Utc>>, digest: &[u8; 32]) -> Uuid {
    let milliseconds = time.and_then(|time| u64::try_from(time.timestamp_millis()).ok());
    let builder = match (milliseconds, digest) {
        (Some(milliseconds), [a, b, c, d, e, f, g, h, i, j, ..]) => {
            Builder::from_unix_timestamp_millis(milliseconds, &[*a, *b, *c, *d, *e, *f, *g, *h, *i, *j])
        }
        (None, [first @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _]) => Builder::from_custom_bytes(*first),
    };
    builder.into_uuid()
}

/// Returns the time in a UUID of version 7, in milliseconds.
pub(super) fn time_of(uuid: Uuid) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = uuid.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEA-10
    #[test]
    fn a_uuid_of_a_digest_depends_on_time_and_digest_only() {
        let time: DateTime<Utc> = "2026-11-22T20:01:00.123Z".parse().unwrap();
        let uuid = uuid_with(Some(time), &[7; 32]);
        assert_eq!(time_of(uuid), Some(time));
        assert_eq!(uuid_with(Some(time), &[7; 32]), uuid);
        assert_ne!(uuid_with(Some(time), &[8; 32]), uuid);
        assert_eq!(time_of(uuid_with(None, &[7; 32])), None);
        assert_ne!(uuid_with(None, &[7; 32]), uuid_with(None, &[8; 32]));
    }

    #[test]
    fn a_uuid_contains_the_files_time_by_the_services_clock() {
        let now = "2026-11-23T09:30:00Z".parse().unwrap();
        let at = |modified: &str, ahead: i64| {
            let modified: DateTime<Utc> = modified.parse().unwrap();
            time_of(uuid_at(Some(modified.into()), now, TimeDelta::seconds(ahead))).map(|time| time.to_rfc3339())
        };
        for (modified, ahead, expected) in [
            ("2026-11-22T20:01:00.123456Z", 0, Some("2026-11-22T20:01:00.123+00:00")),
            ("2026-11-22T20:01:00Z", -600, Some("2026-11-22T19:51:00+00:00")),
            // The time of a wrong clock.
            ("2027-01-01T00:00:00Z", 0, Some("2026-11-23T09:30:00+00:00")),
            ("1970-01-01T00:00:09Z", 0, None),
        ] {
            assert_eq!(at(modified, ahead).as_deref(), expected, "{modified}");
        }
        assert_eq!(time_of(uuid_at(None, now, TimeDelta::zero())), None);
    }
}
