//! Every statement of the service, so that a test can prepare each against the migrated schema.

use super::{branches, forms, inspections, measurements, organizations, photos, thresholds};
use crate::directory;
use crate::front_door::{admission, nonces};

/// The statements of each module: the module's name, and its statements by name.
pub const ALL: &[(&str, &[(&str, &str)])] = &[
    ("admission", admission::STATEMENTS),
    ("branches", branches::STATEMENTS),
    ("directory", directory::STATEMENTS),
    ("forms", forms::STATEMENTS),
    ("inspections", inspections::STATEMENTS),
    ("measurements", measurements::STATEMENTS),
    ("nonces", nonces::STATEMENTS),
    ("organizations", organizations::STATEMENTS),
    ("photos", photos::STATEMENTS),
    ("thresholds", thresholds::STATEMENTS),
];
