//! Inspections: the list, the detail, and the visibility check of sub-resources.
//!
//! Every statement contains the visibility conditions: the statuses that partners may see, and the grants as two parameters,
//! the organizations granted in full and the branches granted individually. Nothing is filtered after a `LIMIT`.

mod changes;
mod detail;
mod list;
mod newest_first;
mod places;
mod row;
mod statements;
mod visible;

pub use self::{
    detail::{Detail, Pdf, PdfLookup, detail, pdf},
    list::{ListFilter, ListItem, ListPage, list},
    row::{Status, Vehicle},
    visible::Visible,
};
pub(crate) use self::{
    row::Columns,
    visible::{where_visible, with_visible},
};
