//! The vocabularies of vehicles and payments are the same in the partner contract, the inspectors' contract, the code and the
//! database.

use partner_api_domain::{template, vocabulary};
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::contract::{INSPECTORS, PARTNERS};
use serde_json::{Value, json};

/// The schema and the property of the partner contract, the enum of the inspectors' contract, the constraint, and the values.
const VOCABULARIES: [(&str, &str, &str, &str, &[&str]); 4] = [
    ("Vehicle", "type", "BodyType", "vehicles_type", vocabulary::BODY_TYPES),
    (
        "Vehicle",
        "fuel_type",
        "FuelType",
        "vehicles_fuel_type",
        vocabulary::FUEL_TYPES,
    ),
    (
        "Vehicle",
        "transmission",
        "Transmission",
        "vehicles_transmission",
        vocabulary::TRANSMISSIONS,
    ),
    (
        "Pricing",
        "payment_type",
        "PaymentType",
        "inspections_payment_type",
        vocabulary::PAYMENT_TYPES,
    ),
];

/// INS-18
#[tokio::test]
async fn the_contracts_the_code_and_the_database_have_the_same_values() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    for (schema, property, name, constraint, values) in VOCABULARIES {
        let known = &PARTNERS.document()["components"]["schemas"][schema]["properties"][property]["x-known-values"];
        assert_eq!(known, &json!(values), "{property}");
        let listed: &Value = &INSPECTORS.document()["components"]["schemas"][name]["enum"];
        assert_eq!(listed, &json!(values), "{name}");
        let definition: String = client
            .query_one(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1",
                &[&constraint],
            )
            .await
            .unwrap()
            .get(0);
        let accepted: Vec<&str> = definition.split('\'').skip(1).step_by(2).collect();
        assert_eq!(accepted, values, "{definition}");
    }
}

/// INS-21
#[tokio::test]
async fn the_inspectors_contract_the_code_and_the_database_have_the_same_panels_and_severities() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let schemas = &INSPECTORS.document()["components"]["schemas"];
    let known = |schema: &str, property: &str| schemas[schema]["properties"][property]["x-known-values"].clone();
    assert_eq!(known("Point", "place"), json!(template::PLACES));
    for schema in ["PointStatus", "Point", "EarlierAnswer"] {
        assert_eq!(known(schema, "severity"), json!(template::SEVERITIES), "{schema}");
    }
    let definition: String = client
        .query_one(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'form_template_points_place_check'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    let accepted: Vec<&str> = definition.split('\'').skip(1).step_by(2).collect();
    assert_eq!(accepted, template::PLACES, "{definition}");
    // The general lists can be read as those of a template.
    for (function, is_readable) in [
        (
            "default_statuses",
            (|text: &str| serde_json::from_str::<Vec<template::Status>>(text).is_ok()) as fn(&str) -> bool,
        ),
        ("default_photo_kinds", |text: &str| {
            serde_json::from_str::<Vec<template::PhotoKind>>(text).is_ok()
        }),
    ] {
        let query = format!("SELECT {function}()::text");
        let text: String = client.query_one(&query, &[]).await.unwrap().get(0);
        assert!(is_readable(&text), "{text}");
    }
}
