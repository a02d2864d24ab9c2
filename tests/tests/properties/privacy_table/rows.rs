//! The privacy table's rows.

use partner_api_tests::fixture::Subject;
use partner_api_tests::{ALPHA, BETA, DELTA, TestKey};

/// The columns of the tables, each with its organization and report and the partners that may see them.
pub const MODES: [&str; 3] = ["NONE", "MASKED", "FULL"];
pub const SUBJECTS: [(Subject, &[TestKey]); 3] = [
    (Subject::NONE, &[ALPHA]),
    (Subject::MASKED, &[ALPHA, BETA]),
    (Subject::FULL, &[ALPHA, DELTA]),
];

/// Tags of operations that show only the caller's data: health describes the caller, and the response to a measurement repeats
/// the plate that was sent.
pub const EXEMPT: &[&str] = &["health", "measurements"];

pub const PLATE: [&str; 3] = ["***", "35***01", "34 FUL 301"];
pub const VIN: [&str; 3] = ["***", "NM0***0201", "5YJ3E7EB9KF000301"];
pub const SNAPSHOT_VIN: [&str; 3] = ["***", "SNP***9201", "SNPZZZAUZLW009301"];
pub const SUMMARY: [&str; 3] = [
    "Sahibi [removed], kimlik [removed], 132.450 km.",
    "Sahibi [removed], kimlik [removed], 132.450 km.",
    "Sahibi 0532 700 00 01, kimlik 28765432101, 132.450 km.",
];
pub const RECOMMENDATION: [&str; 3] = [
    "[removed] aranmalı, kimlik [removed], 1.250.000 TL.",
    "[removed] aranmalı, kimlik [removed], 1.250.000 TL.",
    "+90 (532) 700-00-02 aranmalı, kimlik 287 654 321 02, 1.250.000 TL.",
];
pub const GENERAL_NOTE: [&str; 3] = [
    "Telefon [removed]; kimlik [removed].",
    "Telefon [removed]; kimlik [removed].",
    "Telefon 532 700 00 03; kimlik 28765432103.",
];
pub const NOTE: [&str; 3] = [
    "Boyacı [removed], kimlik [removed], 12345 mikron.",
    "Boyacı [removed], kimlik [removed], 12345 mikron.",
    "Boyacı 0532.700.00.04, kimlik 28765432104, 12345 mikron.",
];
pub const CAPTION: [&str; 3] = [
    "Çizik, sahibi [removed], kimlik [removed]",
    "Çizik, sahibi [removed], kimlik [removed]",
    "Çizik, sahibi 0532-700-00-05, kimlik 28765432105",
];
pub const PACKAGE: [&str; 3] = ["Tam, [removed]", "Tam, [removed]", "Tam, 0532 700 00 07"];
pub const DISCOUNT: [&str; 3] = ["Bahar [removed]", "Bahar [removed]", "Bahar 0532/700 00 08"];
/// The caption of a hidden photo.
pub const HIDDEN_CAPTION: &str = "Saklı, sahibi 0532 700 00 06, kimlik 28765432106";

/// Operation, field, and the value of the field in each mode.
pub const PERSONAL: &[(&str, &str, [&str; 3])] = &[
    ("list_organizations", "/data/*/pii_mode", MODES),
    ("list_inspections", "/data/*/vehicle/plate_masked", PLATE),
    ("list_inspections", "/data/*/vehicle/vin_masked", VIN),
    ("list_inspections", "/data/*/package_name", PACKAGE),
    ("get_inspection", "/package/name", PACKAGE),
    ("get_inspection", "/pricing/discount_name", DISCOUNT),
    ("get_inspection", "/vehicle/plate_masked", PLATE),
    ("get_inspection", "/vehicle/vin_masked", VIN),
    ("get_inspection", "/snapshot/vin_masked", SNAPSHOT_VIN),
    ("get_inspection", "/summary", SUMMARY),
    ("get_inspection", "/recommendation", RECOMMENDATION),
    ("get_inspection_forms", "/forms/*/general_note", GENERAL_NOTE),
    ("get_inspection_forms", "/forms/*/points/*/note", NOTE),
    ("get_inspection_photos", "/photos/*/caption", CAPTION),
];

/// The inspector, who is named only in the PDF (PII-6).
pub const INSPECTOR: [&str; 3] = ["***", "Ş. Y.", "Şule Yılmazer"];

/// The personal fields in the PDF, which prints a mark in its own language for `[removed]`.
pub const PDF: &[(&str, [&str; 3])] = &[
    ("inspector_name", INSPECTOR),
    ("plate", PLATE),
    ("vin", SNAPSHOT_VIN),
    ("package_name", PACKAGE),
    ("discount_name", DISCOUNT),
    ("summary", SUMMARY),
    ("recommendation", RECOMMENDATION),
    ("general_note", GENERAL_NOTE),
    ("note", NOTE),
    ("caption", CAPTION),
];

/// The kind of a photo, its flag `show_in_report`, and whether it is shown in each mode.
pub const PHOTOS: &[(&str, bool, [bool; 3])] = &[
    ("EXTERIOR", true, [true, true, true]),
    ("EXTERIOR", false, [false, false, false]),
    ("INTERIOR", true, [true, true, true]),
    ("INTERIOR", false, [false, false, false]),
    ("ENGINE", true, [true, true, true]),
    ("ENGINE", false, [false, false, false]),
    ("UNDERBODY", true, [true, true, true]),
    ("UNDERBODY", false, [false, false, false]),
    ("DAMAGE", true, [true, true, true]),
    ("DAMAGE", false, [false, false, false]),
    ("ODOMETER", true, [true, true, true]),
    ("ODOMETER", false, [false, false, false]),
    ("REGISTRATION", true, [false, false, false]),
    ("REGISTRATION", false, [false, false, false]),
    ("OTOSICIL_PDF", true, [false, false, false]),
    ("OTOSICIL_PDF", false, [false, false, false]),
    // Kinds are an open vocabulary.
    ("A_KIND_TO_COME", true, [true, true, true]),
    ("A_KIND_TO_COME", false, [false, false, false]),
];

/// Fields without personal data, which are the same in every mode.
pub const PUBLIC: &[(&str, &[&str])] = &[
    ("list_organizations", &["/data/*/id", "/data/*/slug", "/data/*/name"]),
    (
        "list_branches",
        &[
            "/data/*/id",
            "/data/*/code",
            "/data/*/name",
            "/data/*/city",
            "/data/*/district",
        ],
    ),
    (
        "list_inspections",
        &[
            "/data/*/id",
            "/data/*/report_number",
            "/data/*/organization_id",
            "/data/*/branch_id",
            "/data/*/status",
            "/data/*/final_price_try",
            "/data/*/vehicle/brand",
            "/data/*/vehicle/model",
            "/data/*/vehicle/type",
            "/data/*/vehicle/fuel_type",
            "/data/*/vehicle/transmission",
            "/data/*/vehicle/color",
            "/data/*/published_at",
            "/data/*/created_at",
            "/data/*/updated_at",
            "/page/next_cursor",
        ],
    ),
    (
        "get_inspection",
        &[
            "/id",
            "/report_number",
            "/organization/id",
            "/organization/slug",
            "/organization/name",
            "/branch/id",
            "/branch/name",
            "/branch/city",
            "/status",
            "/package/base_price_try",
            "/pricing/base_price_try",
            "/pricing/discount_percent",
            "/pricing/final_price_try",
            "/pricing/payment_type",
            "/pricing/currency",
            "/vehicle/brand",
            "/vehicle/model",
            "/vehicle/type",
            "/vehicle/fuel_type",
            "/vehicle/transmission",
            "/vehicle/color",
            "/updated_at",
            "/links/forms",
            "/links/photos",
            "/links/pdf",
        ],
    ),
    (
        "get_inspection_forms",
        &[
            "/inspection_id",
            "/forms/*/code",
            "/forms/*/name",
            "/forms/*/score_category",
            "/forms/*/points/*/code",
            "/forms/*/points/*/name",
            "/forms/*/points/*/status_code",
            "/forms/*/points/*/status_label",
            "/forms/*/points/*/severity",
            "/forms/*/points/*/unit",
        ],
    ),
    (
        "get_inspection_photos",
        &[
            "/inspection_id",
            "/photos/*/id",
            "/photos/*/kind",
            "/photos/*/point_code",
            "/photos/*/url",
            "/photos/*/thumb_url",
            "/photos/*/expires_at",
            "/photos/*/mime_type",
        ],
    ),
];
