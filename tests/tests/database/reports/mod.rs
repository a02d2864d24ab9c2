//! What partners read of reports: the list, its order, and what is hidden.

mod listing;
mod moving;
mod reading;
mod thresholds;
