//! Inspections: the list, the detail, and what the sub-resources need to know of one.
//!
//! Who may see a row stands in every statement: the statuses that partners see, and the scope as two parameters, the
//! organisations granted whole and the branches granted alone. Nothing is filtered after a `LIMIT`.

mod detail;
mod list;
mod row;
mod sources;
mod statements;

use self::{
    detail::{DETAIL, FIND, PDF},
    statements::LIST_STATEMENTS,
};
pub use self::{
    detail::{Detail, Visible, detail, find, pdf_object_key},
    list::{ListFilter, ListItem, ListPage, list},
    row::{Status, Vehicle},
    sources::Sources,
};

/// Every statement of this module with a name, so that a test can prepare them all.
pub const STATEMENTS: &[(&str, &str)] = &with_list([("detail", DETAIL), ("find", FIND), ("pdf", PDF)]);

const fn with_list(
    others: [(&'static str, &'static str); 3],
) -> [(&'static str, &'static str); LIST_STATEMENTS.len() + 3] {
    let mut all = [("", ""); LIST_STATEMENTS.len() + 3];
    let mut place = 0;
    while place < all.len() {
        all[place] = if place < others.len() {
            others[place]
        } else {
            LIST_STATEMENTS[place - others.len()]
        };
        place += 1;
    }
    all
}
