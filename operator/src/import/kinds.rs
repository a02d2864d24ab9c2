//! What can be imported and exported: the fields of each kind, which check, document and bring it in and out.
//! Long, for it is one table: a kind is read beside those that it refers to.

use rust_decimal::Decimal;

use super::fragments::{Fragments, fragments};
use super::value::Type;
use super::whole;

/// A kind of thing, in the order in which one refers to those before it.
#[derive(Debug)]
pub(crate) struct Kind {
    /// As in the name of its file, such as `inspections`.
    pub name: &'static str,
    /// One of it.
    pub one: &'static str,
    pub table: &'static str,
    /// What a line of it is.
    pub about: &'static str,
    pub fields: &'static [Field],
    /// What no field can say by itself.
    pub whole: whole::Check,
}

/// A field of a line.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub of: Type,
    pub is: Presence,
    pub about: &'static str,
}

/// Whether a field must be there. An empty cell, null and no field at all are one and the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
    /// This, where it is not there.
    Default(&'static str),
    /// Given by the import where it is not there, and then not compared with what stands.
    Filled,
    /// Given by the import where it is not there, to what is new; of what stands it is neither compared nor changed.
    New,
}

use Presence::{Default, Filled, New, Optional, Required};

impl Kind {
    /// The kind of this name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether it has an id of its own, which is its first field.
    pub(crate) fn has_id(&self) -> bool {
        self.fields.first().is_some_and(|field| field.of == Type::Id)
    }

    /// What is peculiar to it in SQL.
    pub(crate) fn sql(&self) -> &'static Fragments {
        fragments(self.name)
    }
}

const fn field(name: &'static str, of: Type, is: Presence, about: &'static str) -> Field {
    Field { name, of, is, about }
}

const LINE: Type = Type::Line { personal: false };
const PERSONAL: Type = Type::Line { personal: true };
const ORGANIZATION: Field = field(
    "organization",
    Type::Organization { stored: true },
    Required,
    "slug or id of its organisation",
);
const ID: Field = field(
    "id",
    Type::Id,
    Filled,
    "its id; without one it is known by its key, and given an id when it is new",
);
const MONEY: Type = Type::Decimal {
    whole: 10,
    scale: 2,
    min: Decimal::MIN,
    max: None,
};
const CREATED: Field = field(
    "created_at",
    Type::Time,
    Filled,
    "when it was made; without one, at the import",
);
const KILOMETRES: Type = Type::Integer {
    min: 0,
    max: 2_147_483_647,
};
const POSITION: Type = Type::Integer {
    min: -2_147_483_648,
    max: 2_147_483_647,
};

/// The statuses of a report, and those that it has only once it was published.
pub(crate) const STATUSES: [&str; 7] = [
    "DRAFT",
    "IN_REVIEW",
    "REVISION_REQUESTED",
    "CANCEL_REQUESTED",
    "PUBLISHED",
    "ARCHIVED",
    "CANCELLED",
];

/// The fields of a template's point.
pub(crate) const POINT_FIELDS: &[Field] = &[
    field(
        "code",
        Type::Line { personal: false },
        Required,
        "its code, one of its kind in the template",
    ),
    field("name", LINE, Required, "its name"),
    field("unit", LINE, Optional, "the unit of its numbers"),
];

/// The fields of a form's answer.
pub(crate) const ANSWER_FIELDS: &[Field] = &[
    field("point", LINE, Required, "the code of the template's point"),
    field("status_code", LINE, Required, "its status"),
    field("status_label", LINE, Required, "the status in words"),
    field("severity", LINE, Required, "NONE, LOW, MEDIUM or HIGH"),
    field(
        "numeric_value",
        Type::Number,
        Optional,
        "its number, in the point's unit",
    ),
    field("note", Type::Text, Default(""), "what the inspector wrote"),
    field(
        "written_by",
        PERSONAL,
        Required,
        "who wrote it, or device:<measurement id>",
    ),
    field("written_at", Type::Time, Required, "when"),
];

/// All kinds.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "organizations",
        one: "organisation",
        table: "organizations",
        about: "An organisation, known by its slug.",
        fields: &[
            ID,
            field("slug", Type::Slug, Required, "its name in addresses"),
            field("name", Type::Name, Required, "its name"),
            field(
                "pii_mode",
                Type::Words(&["NONE", "MASKED", "FULL"]),
                Required,
                "how much partners see of persons",
            ),
            CREATED,
        ],
        whole: whole::nothing,
    },
    Kind {
        name: "branches",
        one: "branch",
        table: "branches",
        about: "A branch, known by its organisation and code.",
        fields: &[
            ID,
            ORGANIZATION,
            field(
                "code",
                Type::BranchCode,
                Required,
                "the code that devices send; letter case does not count",
            ),
            field("name", Type::Name, Required, "its name"),
            field("city", LINE, Required, "its city"),
            field("district", LINE, Default(""), "its district"),
            field(
                "address",
                LINE,
                Default(""),
                "its street address, as it is printed on reports, without district and city",
            ),
            field(
                "telephone",
                LINE,
                Default(""),
                "its telephone, as it is printed on reports",
            ),
            field("is_active", Type::Bool, Default("true"), "whether it works"),
        ],
        whole: whole::nothing,
    },
    Kind {
        name: "templates",
        one: "template",
        table: "form_templates",
        about: "A template with its points, known by its organisation and code.",
        fields: &[
            ID,
            ORGANIZATION,
            field("code", LINE, Required, "its code"),
            field("name", LINE, Required, "its name"),
            field("score_category", LINE, Required, "what its result counts towards"),
            field(
                "position",
                POSITION,
                Required,
                "its place among the organisation's templates",
            ),
            field(
                "is_test_line",
                Type::Bool,
                Default("false"),
                "whether devices write into it; one for an organisation",
            ),
            field(
                "points",
                Type::Points,
                Required,
                "its points in their order, a list of the objects below; in CSV the same JSON in a cell",
            ),
        ],
        whole: whole::nothing,
    },
    Kind {
        name: "thresholds",
        one: "threshold",
        table: "thresholds",
        about: "The ranges of a measurement point, known by its organisation and the point's code.",
        fields: &[
            ORGANIZATION,
            field("point_code", Type::Point, Required, "the measurement point's code"),
            field(
                "good_min",
                Type::Number,
                Optional,
                "the least good value; without one the range is open",
            ),
            field("good_max", Type::Number, Optional, "the greatest good value"),
            field("borderline_min", Type::Number, Optional, "the least borderline value"),
            field(
                "borderline_max",
                Type::Number,
                Optional,
                "the greatest borderline value",
            ),
            field(
                "since",
                Type::Time,
                New,
                "from when on they hold: a report shows the limits of the time at which its values were written",
            ),
        ],
        whole: whole::threshold,
    },
    Kind {
        name: "ranges",
        one: "range",
        table: "plausible_ranges",
        about: "What an organisation takes for possible of a measurement point, narrower than the API's document, known by its \
                organisation and the point's code.",
        fields: &[
            ORGANIZATION,
            field("point_code", Type::Point, Required, "the measurement point's code"),
            field(
                "minimum",
                Type::Number,
                Optional,
                "the least possible value; without one that of the document",
            ),
            field("maximum", Type::Number, Optional, "the greatest possible value"),
        ],
        whole: whole::range,
    },
    Kind {
        name: "vehicles",
        one: "vehicle",
        table: "vehicles",
        about: "A vehicle, known by its id, or without one by its VIN.",
        fields: &[
            ID,
            field(
                "plate",
                Type::Plate,
                Required,
                "its plate; spaces and letter case do not count",
            ),
            field("vin", PERSONAL, Required, "its vehicle identification number"),
            field("brand", LINE, Required, "its maker"),
            field("model", LINE, Required, "its model"),
            field("year", Type::Integer { min: 1900, max: 2100 }, Required, "model year"),
            field("type", Type::Code, Required, "body type, such as SEDAN"),
            field("fuel_type", Type::Code, Required, "fuel, such as DIESEL"),
            field("transmission", Type::Code, Required, "transmission, such as MANUAL"),
            field("color", LINE, Required, "its colour"),
            field("mileage_km", KILOMETRES, Required, "registered mileage in km"),
            field(
                "factory_power_hp",
                Type::Decimal {
                    whole: 5,
                    scale: 2,
                    min: Decimal::from_parts(1, 0, 0, false, 2),
                    max: None,
                },
                Optional,
                "registered power in HP",
            ),
        ],
        whole: whole::nothing,
    },
    Kind {
        name: "inspections",
        one: "report",
        table: "inspections",
        about: "A report, known by its number. Its PDF is rendered in the background.",
        fields: &[
            ID,
            field("report_number", LINE, Required, "its number"),
            ORGANIZATION,
            field("branch", Type::Branch, Required, "code or id of its branch"),
            field("vehicle", Type::Vehicle, Required, "VIN or id of its vehicle"),
            field("status", Type::Words(&STATUSES), Required, "its status"),
            field("plate", Type::Plate, Required, "the plate under which it was opened"),
            field("package_name", LINE, Required, "the package's name"),
            field("package_base_price", MONEY, Required, "the package's list price"),
            field("base_price", MONEY, Required, "the price before the discount"),
            field(
                "discount_percent",
                Type::Decimal {
                    whole: 3,
                    scale: 2,
                    min: Decimal::ZERO,
                    max: Some(Decimal::ONE_HUNDRED),
                },
                Default("0"),
                "discount in percent",
            ),
            field("discount_name", LINE, Default(""), "the discount's name"),
            field("final_price", MONEY, Required, "what was paid"),
            field("payment_type", Type::Code, Required, "CASH, CARD or TRANSFER"),
            field("currency", Type::Code, Default("TRY"), "code of the currency"),
            field("snapshot_vin", PERSONAL, Required, "the VIN as it was read"),
            field(
                "snapshot_mileage_km",
                KILOMETRES,
                Required,
                "the mileage as it was read, in km",
            ),
            field("summary", Type::Text, Default(""), "the inspector's overall text"),
            field(
                "recommendation",
                Type::Text,
                Default(""),
                "the inspector's recommendation",
            ),
            field(
                "overall_score",
                Type::Integer { min: 0, max: 100 },
                Default("0"),
                "0 to 100",
            ),
            field(
                "inspector_name",
                PERSONAL,
                Default(""),
                "who inspected the vehicle and answers for the report",
            ),
            field(
                "public_slug",
                LINE,
                Optional,
                "the name of its public page; there is a PDF only with one",
            ),
            field(
                "published_at",
                Type::Time,
                Optional,
                "when it was published; needed from PUBLISHED on",
            ),
            CREATED,
        ],
        whole: whole::inspection,
    },
    Kind {
        name: "forms",
        one: "form",
        table: "inspection_forms",
        about: "A form of a report with its answers, known by the report and the template.",
        fields: &[
            ID,
            field(
                "organization",
                Type::Organization { stored: false },
                Required,
                "slug or id of the report's organisation",
            ),
            field("inspection", Type::Inspection, Required, "number or id of the report"),
            field("template", Type::Template, Required, "code or id of the template"),
            field(
                "general_note",
                Type::Text,
                Default(""),
                "what the inspector wrote about the whole form",
            ),
            field(
                "answers",
                Type::Answers,
                Required,
                "its answers, a list of the objects below; in CSV the same JSON in a cell",
            ),
        ],
        whole: whole::nothing,
    },
    Kind {
        name: "photos",
        one: "photo",
        table: "photos",
        about: "A photo of a report, known by its id, or without one by the report and the position. The files are brought \
                into the storage apart.",
        fields: &[
            ID,
            field("inspection", Type::Inspection, Required, "number or id of the report"),
            field("position", POSITION, Required, "its place among the report's photos"),
            field(
                "kind",
                Type::Code,
                Required,
                "its kind, such as EXTERIOR; REGISTRATION and OTOSICIL_PDF are never shown",
            ),
            field("point_code", LINE, Optional, "the point that it shows"),
            field("caption", Type::Text, Optional, "what the inspector wrote"),
            field(
                "object_key",
                Type::ObjectKey,
                Required,
                "the name of its file in the storage",
            ),
            field(
                "thumb_object_key",
                Type::ObjectKey,
                Optional,
                "the name of its small version",
            ),
            field("mime_type", LINE, Required, "its content type, such as image/jpeg"),
            field("size_bytes", Type::Size, Required, "its length in bytes"),
            field("show_in_report", Type::Bool, Default("true"), "whether partners see it"),
            CREATED,
        ],
        whole: whole::nothing,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A default is a value of its field.
    #[test]
    fn every_default_can_be_read() {
        for kind in KINDS {
            for field in kind.fields {
                if let Presence::Default(text) = field.is {
                    let read = super::super::cell::read(field.of, super::super::cell::Cell::Csv(text));
                    assert!(read.is_ok(), "{}.{}: {read:?}", kind.name, field.name);
                }
            }
        }
    }
}
