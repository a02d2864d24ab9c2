//! Inspections: the list, the detail, and what the sub-resources need to know of one.
//!
//! Who may see a row stands in every statement: the statuses that partners see, and the grants as two parameters, the
//! organisations granted whole and the branches granted alone. Nothing is filtered after a `LIMIT`.

mod changes;
mod detail;
mod list;
mod row;
mod statements;
mod visible;

pub use self::{
    detail::{Detail, OfPdf, Pdf, detail, pdf},
    list::{ListFilter, ListItem, ListPage, list},
    row::{Status, Vehicle},
    visible::Visible,
};
pub(crate) use self::{
    row::Columns,
    visible::{where_visible, with_seen},
};
