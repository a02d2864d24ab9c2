//! Reports as partners read them: the list, its order, and visibility.

mod listing;
mod moving;
mod reading;
mod thresholds;
