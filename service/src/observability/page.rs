//! Helpers that encode metrics.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Writes metrics whose values are read during the scrape.
pub(super) struct Page<'e>(pub DescriptorEncoder<'e>);

impl Page<'_> {
    /// Writes a gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Number) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value.number()).encode(metric)
    }

    /// Writes a counter; its name gets the suffix `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Number) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value.number()).encode(metric)
    }

    /// Writes a gauge for each value of the label.
    pub fn gauges<V: Number>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        rows: impl IntoIterator<Item = (&'static str, V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (of, value) in rows {
            ConstGauge::new(value.number()).encode(metric.encode_family(&[(label, of)])?)?;
        }
        Ok(())
    }

    /// Writes a counter for each value of the label.
    pub fn counters<V: Number>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        rows: impl IntoIterator<Item = (&'static str, V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in rows {
            ConstCounter::new(value.number()).encode(metric.encode_family(&[(label, of)])?)?;
        }
        Ok(())
    }
}

/// A value of a metric; Prometheus reads all of them as floating-point numbers.
pub(super) trait Number {
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($kind:ty),+) => {$(
        impl Number for $kind {
            fn number(self) -> f64 {
                self as f64
            }
        }
    )+};
}

numbers!(f64, i64, u64, usize);

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

impl Number for std::time::Duration {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}
