//! The known values of the partner contract's vocabularies that reports are written with. The database accepts no others.

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
