//! A parsed page of metrics.

use std::collections::{BTreeMap, BTreeSet};

use crate::Service;

/// A sample: its name, its labels and its value.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// All samples of a page.
#[derive(Debug)]
pub struct Page(pub Vec<Sample>);

impl Page {
    /// Scrapes a service.
    pub async fn of(service: &Service) -> Self {
        let (status, text) = service.internal("/metrics").await;
        assert_eq!(status, 200, "{text}");
        Self::read(&text)
    }

    /// Parses the text. Each family must be described once, and the page must end with `# EOF`.
    pub fn read(text: &str) -> Self {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let mut described = BTreeSet::new();
        let mut samples = Vec::new();
        for line in text.lines() {
            if let Some(described_now) = line.strip_prefix("# TYPE ") {
                let name = described_now.split(' ').next().unwrap();
                assert!(described.insert(name.to_owned()), "{name} is described twice");
            } else if !line.starts_with('#') {
                samples.push(sample(line));
            }
        }
        Page(samples)
    }

    /// Returns the value of the one sample with this name and at least these labels.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found: Vec<_> = self.0.iter().filter(|sample| sample.is(name, labels)).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
        found[0].value
    }

    /// Returns the sum of all samples with this name and at least these labels; 0 if there are none.
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found = self.0.iter().filter(|sample| sample.is(name, labels));
        found.map(|sample| sample.value).sum()
    }
}

impl Sample {
    fn is(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let has = |(label, value): &(&str, &str)| self.labels.get(*label).is_some_and(|found| found == value);
        self.name == name && labels.iter().all(has)
    }
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"))),
        None => (series, ""),
    };
    let labels = labels.split(',').filter(|label| !label.is_empty()).map(|label| {
        // The service writes no label values with commas or quotes.
        let (label, value) = label.split_once('=').unwrap_or_else(|| panic!("{line}"));
        (label.to_owned(), value.trim_matches('"').to_owned())
    });
    Sample {
        name: name.to_owned(),
        labels: labels.collect(),
        value: value.parse().unwrap_or_else(|_| panic!("{line}")),
    }
}
