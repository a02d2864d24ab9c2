//! Performance targets: ratios to the baselines of the same round, and the target for each ratio.

use std::time::Duration;

use crate::baselines::ADMISSION_BATCH;
use crate::measure::{LIST_WITHOUT_LOG, LIST_WITHOUT_REQUEST_LOG, Results};
use crate::peers;

/// A line of the table of targets.
pub struct Line {
    /// The ratio.
    pub name: String,
    /// Minimum, median and maximum of the rounds.
    pub values: [f64; 3],
    /// The target as text.
    pub target: String,
    /// Whether the median meets the target.
    pub met: bool,
}

/// Returns the lines for the measured operations.
pub fn lines(results: &Results) -> Vec<Line> {
    let rates = |name: &str| results.rates.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut lines = Vec::new();
    let mut at_least = |name: &str, values: Vec<f64>, target: f64| {
        if let Some(values) = min_median_max(&values) {
            lines.push(Line {
                name: name.to_owned(),
                values,
                target: format!("≥ {target:.2}"),
                met: values[1] >= target,
            });
        }
    };
    let over = |name: &str, other: &str| ratios(rates(name), rates(other));
    at_least("health ÷ hello", over("health", "hello"), 0.60);
    let requests: Vec<f64> = rates("sql-admission")
        .iter()
        .map(|batches| batches * ADMISSION_BATCH as f64)
        .collect();
    for (name, sql, target) in [
        ("organizations", "sql-organizations", 0.50),
        ("list", "sql-list", 0.75),
        ("detail", "sql-detail", 0.75),
        ("forms", "sql-forms", 0.75),
        ("photos", "sql-photos", 0.75),
    ] {
        // The rate if admission, the statement and the HTTP exchange ran one after the other.
        let bounds: Vec<f64> = rates(sql)
            .iter()
            .zip(rates("hello"))
            .zip(&requests)
            .map(|((sql, hello), requests)| 1.0 / (1.0 / sql + 1.0 / hello + 1.0 / requests))
            .collect();
        at_least(&format!("{name} ÷ its sum bound"), ratios(rates(name), &bounds), target);
    }
    at_least("pending ÷ sql-insert", over("pending", "sql-insert"), 0.60);
    at_least("applied ÷ sql-applied", over("applied", "sql-applied"), 0.60);
    for name in ["wrong-signature", "replay", "over-limit"] {
        at_least(&format!("{name} ÷ list"), over(name, "list"), 3.0);
    }
    for without in [LIST_WITHOUT_LOG, LIST_WITHOUT_REQUEST_LOG] {
        at_least(&format!("list ÷ {without}"), over("list", without), 0.95);
    }
    for operation in peers::OPERATIONS {
        let name = format!("{operation} ÷ best peer");
        at_least(&name, ratios(rates(operation), &best_peer(operation, results)), 2.0);
    }
    lines.extend(applied_to_one(results));
    for name in ["pending", "applied"] {
        if let Some(flushes) = results.flushes.get(name) {
            lines.push(Line {
                name: format!("WAL flushes per request, {name}"),
                values: [*flushes; 3],
                target: "≤ 0.10".to_owned(),
                met: *flushes <= 0.10,
            });
        }
    }
    lines
}

/// The target for many clients that write to one report: no request is rejected.
fn applied_to_one(results: &Results) -> Option<Line> {
    const MIN_RATE: f64 = 1_000.0;
    let values = min_median_max(results.rates.get("applied-one")?)?;
    let samples = results.samples.get("applied-one")?;
    let rejected: u64 = samples.iter().flat_map(|sample| sample.others.values()).sum();
    Some(Line {
        name: format!("applied-one per second, {rejected} rejected"),
        values,
        target: format!("none rejected, ≥ {MIN_RATE:.0}"),
        met: rejected == 0 && values[1] >= MIN_RATE,
    })
}

/// Returns the rate of the fastest peer in each round; empty without peers.
fn best_peer(operation: &str, results: &Results) -> Vec<f64> {
    let of_peer = |peer| results.rates.get(peers::name_of(operation, peer).as_str());
    let rates: Vec<&Vec<f64>> = peers::peers().filter_map(of_peer).collect();
    let rounds = rates.iter().map(|rates| rates.len()).min().unwrap_or_default();
    let best = |round: usize| rates.iter().map(|rates| rates[round]).fold(0.0, f64::max);
    (0..rounds).map(best).collect()
}

fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    over.iter().zip(under).map(|(over, under)| over / under).collect()
}

/// Returns minimum, median and maximum.
pub fn min_median_max(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let half = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        f64::midpoint(sorted[half - 1], sorted[half])
    };
    Some([first, median, last])
}

/// Returns the milliseconds within which this part of the sorted latencies lies; NaN if there are none.
pub fn millis_at(latencies: &[Duration], part: f64) -> f64 {
    let place = (latencies.len().saturating_sub(1) as f64 * part).round() as usize;
    latencies
        .get(place)
        .map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_values_lies_between_two() {
        assert_eq!(min_median_max(&[]), None);
        assert_eq!(min_median_max(&[3.0, 1.0, 2.0]), Some([1.0, 2.0, 3.0]));
        assert_eq!(min_median_max(&[4.0, 1.0, 2.0, 3.0]), Some([1.0, 2.5, 4.0]));
    }

    #[test]
    fn the_service_is_compared_with_the_fastest_peer_of_each_round() {
        let rates = [
            ("detail", vec![100.0, 100.0, 90.0]),
            ("detail-axum", vec![50.0, 40.0, 30.0]),
            ("detail-go", vec![40.0, 50.0, 20.0]),
        ];
        let results = Results {
            rates: rates.into(),
            ..Results::default()
        };
        let lines = lines(&results);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].name, "detail ÷ best peer");
        assert_eq!((lines[0].values, lines[0].met), ([2.0, 2.0, 3.0], true));
    }

    #[test]
    fn a_target_is_compared_with_the_ratios_of_the_rounds() {
        let rates = [
            ("hello", vec![100.0, 200.0]),
            ("health", vec![70.0, 110.0]),
            ("list", vec![10.0, 10.0]),
            ("sql-list", vec![25.0, 50.0]),
            ("sql-admission", vec![5.0, 10.0]),
        ];
        let results = Results {
            rates: rates.into(),
            ..Results::default()
        };
        let lines = lines(&results);
        let shown: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.met)).collect();
        assert_eq!(shown, [("health ÷ hello", true), ("list ÷ its sum bound", false)]);
        assert_eq!(lines[0].values, [0.55, 0.625, 0.7]);
        let rounded = lines[1].values.map(|value| (value * 100.0).round());
        assert_eq!(rounded, [30.0, 45.0, 60.0]);
    }
}
