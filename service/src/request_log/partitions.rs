//! The log's partitions, one per day, and its retention.

use std::time::Duration;

use chrono::{DateTime, NaiveDate};
use deadpool_postgres::Pool;

use partner_api_store::connection::Connection;
use partner_api_store::partitions::Partitioned;
use partner_api_store::statement;

/// A partition's length.
const DAY: Duration = Duration::from_secs(86_400);

/// The timeout for deleting old counts of dropped entries.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// The format of a day in the name of its partition.
const NAME_FORMAT: &str = "%Y%m%d";

/// Returns the partitions of `request_log`: days in UTC. Today and the `days` before it are retained.
pub fn partitions(days: u32) -> Partitioned {
    Partitioned {
        table: "request_log",
        length: Some(DAY),
        // Maintenance may fail for two days without harm.
        ahead: 2,
        retained: i64::from(days),
        digits: (|day| date(day).format(NAME_FORMAT).to_string(), number),
        lock: 0x72_6571_5f6c_6f67,
    }
}

statement! {
    /// Deletes the counts of dropped entries of days past the retention.
    DELETE_DROPS = "\
DELETE FROM request_log_drops WHERE reported_at < date_trunc('day', now(), 'UTC') - $1::float8 * interval '1 day'";
}

/// Maintains the partitions forever: now, because a request may arrive at once, and then at each `interval`.
pub(super) async fn maintain_forever(partitions: Partitioned, pool: Pool, interval: Duration) {
    loop {
        let maintenance = async {
            partitions.maintain(&pool).await?;
            let client = Connection::take(&pool, DELETE_TIMEOUT).await?;
            client.execute(DELETE_DROPS, &[&(partitions.retained as f64)]).await
        };
        if let Err(error) = maintenance.await {
            tracing::warn!(%error, "failed to maintain the partitions of the request log; retrying");
        }
        tokio::time::sleep(interval).await;
    }
}

/// Converts a day's number since 1970 into its date.
fn date(day: i64) -> NaiveDate {
    DateTime::from_timestamp(day.saturating_mul(DAY.as_secs().cast_signed()), 0)
        .unwrap_or_default()
        .date_naive()
}

fn number(name: &str) -> Option<i64> {
    let date = NaiveDate::parse_from_str(name, NAME_FORMAT).ok()?;
    Some(date.signed_duration_since(self::date(0)).num_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_named_by_its_date() {
        let Partitioned {
            digits: (name, number), ..
        } = partitions(90);
        for (day, expected) in [(0, "19700101"), (20_779, "20261122"), (11_016, "20000229")] {
            assert_eq!(name(day), expected);
            assert_eq!(number(expected), Some(day));
        }
        for other in ["", "2026", "20261301", "202611220"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
