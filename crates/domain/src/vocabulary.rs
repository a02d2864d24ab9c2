//! The known values of the partner contract's vocabularies that reports are written with, of which the database accepts no others,
//! and the model years.

use chrono::{DateTime, Datelike as _, Utc};

/// The latest model year of a vehicle that exists `now`: the next year, because manufacturers sell its models in advance.
#[must_use]
pub fn latest_model_year(now: DateTime<Utc>) -> i32 {
    now.year() + 1
}

/// Body types of vehicles.
pub const BODY_TYPES: &[&str] = &[
    "SEDAN",
    "HATCHBACK",
    "STATION_WAGON",
    "SUV",
    "COUPE",
    "CABRIO",
    "PICKUP",
    "VAN",
    "OTHER",
];

/// Fuels of vehicles.
pub const FUEL_TYPES: &[&str] = &["GASOLINE", "DIESEL", "LPG", "HYBRID", "ELECTRIC", "OTHER"];

/// Transmissions of vehicles.
pub const TRANSMISSIONS: &[&str] = &["MANUAL", "AUTOMATIC", "SEMI_AUTOMATIC", "OTHER"];

/// Payment methods.
pub const PAYMENT_TYPES: &[&str] = &["CASH", "CARD", "TRANSFER"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_model_year_is_the_next_year() {
        assert_eq!(latest_model_year("2026-12-31T23:59:59Z".parse().unwrap()), 2027);
    }
}
