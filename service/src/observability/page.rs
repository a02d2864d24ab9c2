//! A page of metrics while it is written.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Writes what is read at the moment of a scrape.
pub(super) struct Page<'e>(pub DescriptorEncoder<'e>);

impl Page<'_> {
    /// Something that is so much now.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Number) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value.number()).encode(metric)
    }

    /// Something that has come to so much since the process began; its name gets the suffix `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Number) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value.number()).encode(metric)
    }

    /// A gauge for each value of the label.
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

    /// A counter for each value of the label.
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

/// What can be the value of a metric, all of which are floating-point numbers to those who read them.
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
