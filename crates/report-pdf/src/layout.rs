//! Which rows of a table stay on one page.
//!
//! A table neither begins at the end of a page with less than [`LEAST`] rows nor ends on top of one with less: its first rows and
//! its last ones are kept together, and a short table is kept whole.

/// The least number of rows of a table on a page.
const LEAST: usize = 4;
/// A row with more text than this may break, and is kept with no other one: it may be longer than a page.
const LONG: usize = 400;

/// A run of rows that stay on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Run {
    /// How many.
    pub rows: usize,
    /// Whether it is one row that may break.
    pub breaks: bool,
}

/// The runs of a table's rows. `parts` are the rows that belong together whatever happens, such as those of an axle: each is given
/// by the number of characters of its rows.
pub(crate) fn runs(parts: &[Vec<usize>]) -> Vec<Run> {
    let mut runs = Vec::new();
    // Long rows stand alone and divide the table into stretches that are looked at by themselves.
    let mut stretch: Vec<usize> = Vec::new();
    for part in parts {
        if part.iter().any(|length| *length > LONG) {
            runs.extend(kept(&std::mem::take(&mut stretch)));
            runs.extend(part.iter().map(|length| Run {
                rows: 1,
                breaks: *length > LONG,
            }));
        } else {
            stretch.push(part.len());
        }
    }
    runs.extend(kept(&stretch));
    runs
}

/// The runs of a stretch of parts of so many rows.
fn kept(parts: &[usize]) -> Vec<Run> {
    let run = |rows| Run { rows, breaks: false };
    let all: usize = parts.iter().sum();
    if all == 0 {
        return Vec::new();
    }
    if all < 2 * LEAST {
        return vec![run(all)];
    }
    let mut runs: Vec<usize> = parts.to_vec();
    // From the front and from the back, parts are taken together until there are enough rows.
    while runs.len() > 1 && runs[0] < LEAST {
        let first = runs.remove(0);
        runs[0] += first;
    }
    while runs.len() > 1 && runs.last().is_some_and(|last| *last < LEAST) {
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
    fn a_short_table_is_kept_whole_and_a_long_one_begins_and_ends_with_four_rows() {
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
    fn a_row_that_may_be_longer_than_a_page_is_kept_with_no_other() {
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
