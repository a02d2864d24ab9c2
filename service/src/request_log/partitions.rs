//! The log's partitions: days, of which so many are kept.

use std::time::Duration;

use chrono::{DateTime, NaiveDate};
use deadpool_postgres::Pool;

use partner_api_store::connection::Connection;
use partner_api_store::partitions::Partitioned;
use partner_api_store::statement;

/// A partition's length.
const DAY: Duration = Duration::from_secs(86_400);

/// How long forgetting drops may take.
const FORGET_WITHIN: Duration = Duration::from_secs(2);

/// How a day stands in the name of its partition.
const NAME: &str = "%Y%m%d";

/// The partitions of `request_log`: days of UTC. Whole `days` before today are kept.
pub fn partitions(days: u32) -> Partitioned {
    Partitioned {
        table: "request_log",
        column: "arrived_at",
        length: Some(DAY),
        // Two nights in which maintenance may fail without harm.
        ahead: 2,
        kept: i64::from(days),
        digits: (|day| date(day).format(NAME).to_string(), number),
        begins: |day| date(day).format("TIMESTAMPTZ '%Y-%m-%d 00:00:00+00'").to_string(),
        lock: 0x72_6571_5f6c_6f67,
    }
}

statement! {
    /// Forgets the drops of days that are not kept.
    FORGET_DROPS = "\
DELETE FROM request_log_drops WHERE reported_at < date_trunc('day', now(), 'UTC') - $1::float8 * interval '1 day'";
}

/// Looks after the log for ever: at once, for a request may come at once, and then so often.
pub(super) async fn keep(partitions: Partitioned, pool: Pool, every: Duration) {
    loop {
        let looking = async {
            partitions.look_after(&pool).await?;
            let client = Connection::take(&pool, FORGET_WITHIN).await?;
            client.execute(FORGET_DROPS, &[&(partitions.kept as f64)]).await
        };
        if let Err(error) = looking.await {
            tracing::warn!(%error, "the request log's partitions could not be looked after; trying again");
        }
        tokio::time::sleep(every).await;
    }
}

/// A day by its number since 1970.
fn date(day: i64) -> NaiveDate {
    DateTime::from_timestamp(day.saturating_mul(DAY.as_secs().cast_signed()), 0)
        .unwrap_or_default()
        .date_naive()
}

fn number(name: &str) -> Option<i64> {
    let date = NaiveDate::parse_from_str(name, NAME).ok()?;
    Some(date.signed_duration_since(self::date(0)).num_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_date_as_its_name_and_midnight_as_its_beginning() {
        let Partitioned {
            digits: (name, number),
            begins,
            ..
        } = partitions(90);
        for (day, expected) in [(0, "19700101"), (20_779, "20261122"), (11_016, "20000229")] {
            assert_eq!(name(day), expected);
            assert_eq!(number(expected), Some(day));
        }
        assert_eq!(begins(20_779), "TIMESTAMPTZ '2026-11-22 00:00:00+00'");
        for other in ["", "2026", "20261301", "202611220"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
