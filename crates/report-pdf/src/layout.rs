//! Page breaks in tables.
//!
//! A table must not begin at the end of a page, or end at the top of one, with fewer than [`MIN_ROWS`] rows. Therefore its first and
//! its last rows stay together, and a short table is not split at all.

/// The minimum number of rows of a table on a page.
const MIN_ROWS: usize = 4;
/// A row with more characters than this may break and is grouped with no other row, because it may be longer than a page.
const LONG_ROW: usize = 400;

/// A run of rows that stay on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Run {
    /// The number of rows.
    pub rows: usize,
    /// Whether the run is a single row that may break.
    pub breaks: bool,
}

/// Divides a table's rows into runs. `parts` are groups of rows that always stay together, such as those of an axle. Each row is
/// given by its number of characters.
pub(crate) fn runs(parts: &[Vec<usize>]) -> Vec<Run> {
    let mut runs = Vec::new();
    // A long row forms its own run and divides the table into segments, which are grouped separately.
    let mut segment: Vec<usize> = Vec::new();
    for part in parts {
        if part.iter().any(|length| *length > LONG_ROW) {
            runs.extend(group(&std::mem::take(&mut segment)));
            runs.extend(part.iter().map(|length| Run {
                rows: 1,
                breaks: *length > LONG_ROW,
            }));
        } else {
            segment.push(part.len());
        }
    }
    runs.extend(group(&segment));
    runs
}

/// Groups the parts of a segment into runs. Each part is given by its number of rows.
fn group(parts: &[usize]) -> Vec<Run> {
    let run = |rows| Run { rows, breaks: false };
    let all: usize = parts.iter().sum();
    if all == 0 {
        return Vec::new();
    }
    if all < 2 * MIN_ROWS {
        return vec![run(all)];
    }
    let mut runs: Vec<usize> = parts.to_vec();
    // Parts are merged at the front and at the back until there are enough rows.
    while runs.len() > 1 && runs[0] < MIN_ROWS {
        let first = runs.remove(0);
        runs[0] += first;
    }
    while runs.len() > 1 && runs.last().is_some_and(|last| *last < MIN_ROWS) {
        let last = runs.pop().unwrap_or_default();
        if let Some(before) = runs.last_mut() {
            *before += last;
        }
    }
    runs.into_iter().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(parts: &[Vec<usize>]) -> Vec<usize> {
        runs(parts).iter().map(|run| run.rows).collect()
    }

    fn singles(count: usize) -> Vec<Vec<usize>> {
        vec![vec![20]; count]
    }

    #[test]
    fn a_short_table_is_not_split_and_a_long_one_begins_and_ends_with_four_rows() {
        assert_eq!(sizes(&[]), Vec::<usize>::new());
        for count in 1..8 {
            assert_eq!(sizes(&singles(count)), [count], "{count}");
        }
        assert_eq!(sizes(&singles(8)), [4, 4]);
        assert_eq!(sizes(&singles(11)), [4, 1, 1, 1, 4]);
    }

    #[test]
    fn rows_of_an_axle_stay_together() {
        let axles = |rows: &[usize]| rows.iter().map(|rows| vec![20; *rows]).collect::<Vec<_>>();
        assert_eq!(sizes(&axles(&[4, 4, 4])), [4, 4, 4]);
        assert_eq!(sizes(&axles(&[3, 3])), [6]);
        assert_eq!(sizes(&axles(&[1, 4, 4])), [5, 4]);
        assert_eq!(sizes(&axles(&[4, 4, 2])), [4, 6]);
        assert_eq!(sizes(&axles(&[3, 3, 3, 3])), [6, 6]);
    }

    #[test]
    fn a_long_row_is_grouped_with_no_other_row() {
        let mut rows = singles(10);
        rows[4] = vec![5_000];
        let found = runs(&rows);
        assert_eq!(found.iter().map(|run| run.rows).collect::<Vec<_>>(), [4, 1, 5]);
        assert_eq!(
            found.iter().map(|run| run.breaks).collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    #[test]
    fn no_row_is_lost() {
        for count in 0..60 {
            assert_eq!(sizes(&singles(count)).iter().sum::<usize>(), count);
        }
    }
}
