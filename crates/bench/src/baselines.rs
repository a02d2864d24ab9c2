//! Baselines: the statements of an operation, run by pgbench without the service.
//!
//! The statements come from the service's own list. Before the measurement, [`crate::statement_costs`] records the statements
//! that the service sends, and the benchmark fails if a baseline has others. Each `$n` is replaced by a variable or an expression
//! that draws from the data; nothing else is changed. pgbench receives results as text, the service in binary.

use partner_api::admission::{WINDOW, nonces};
use partner_api_store::statement::{STATEMENTS, Statement};
use uuid::Uuid;

use crate::error::BenchError;
use crate::fixture::{FULL_REPORTS, Fixture, OPEN_REPORTS, REPORTS};
use crate::pgbench::Script;

/// Sessions for statements, equal to the default size of the service's pool.
const POOL: usize = 16;
/// Sessions for the minimal insert. All that wait at the same time share a flush.
const CLIENTS: usize = 64;

/// Requests in one statement of the `sql-admission` baseline. With 64 connections, the service flushes the log of the database 0.05 times
/// per request (docs/benchmarks.md).
pub const ADMISSION_BATCH: usize = 20;
/// Sessions for the batches, enough to keep two processors busy. The service sends one batch at a time.
const ADMISSION_CLIENTS: usize = 4;

/// Statements that are measured without the service.
pub struct Baseline {
    /// Its name in the table and for `--only`.
    pub name: &'static str,
    /// The operation that has the same statements, if any.
    pub operation: Option<&'static str>,
    /// The statements by module and name, in the operation's order, without those of admission.
    pub statements: &'static [(&'static str, &'static str)],
    kind: Kind,
}

enum Kind {
    /// Reads a report; `number` is the variable with its number.
    Read {
        number: &'static str,
    },
    Insert,
    /// Admits [`ADMISSION_BATCH`] requests.
    Admit,
    /// Applies a package to one of the open reports.
    Apply,
}

/// The service's lock, which skips reports that another session has locked.
const LOCK_SKIPPING: (&str, &str) = ("measurements::report", "LOCK_SKIPPING");
/// The lock for pgbench, which cannot skip a report.
const LOCK: (&str, &str) = ("measurements::report", "LOCK");

/// All baselines.
pub const ALL: [Baseline; 8] = [
    Baseline {
        name: "sql-admission",
        operation: None,
        statements: &[],
        kind: Kind::Admit,
    },
    read(
        "sql-organizations",
        "organizations",
        "any",
        &[("organizations", "LIST")],
    ),
    read(
        "sql-list",
        "list",
        "any",
        &[("inspections::statements::default", "WHOLE_3")],
    ),
    read("sql-detail", "detail", "any", &[("inspections::detail", "DETAIL")]),
    read("sql-forms", "forms", "full", &[("forms", "LIST")]),
    read("sql-photos", "photos", "full", &[("photos", "LIST")]),
    Baseline {
        name: "sql-insert",
        operation: None,
        statements: &[],
        kind: Kind::Insert,
    },
    Baseline {
        name: "sql-applied",
        operation: Some("applied"),
        statements: &[
            ("measurements::record", "RECORD"),
            LOCK_SKIPPING,
            ("measurements::report", "READ"),
            ("measurements::apply", "RECORD_APPLIED"),
            ("measurements::answers", "KEEP_ANSWERS"),
            ("measurements::answers", "WRITE_ANSWERS"),
        ],
        kind: Kind::Apply,
    },
];

const fn read(
    name: &'static str,
    operation: &'static str,
    number: &'static str,
    statements: &'static [(&'static str, &'static str)],
) -> Baseline {
    Baseline {
        name,
        operation: Some(operation),
        statements,
        kind: Kind::Read { number },
    }
}

impl Baseline {
    /// Returns the script for pgbench.
    ///
    /// # Errors
    /// If the service has no statement of a name, or the data lack a required row.
    pub async fn script(&self, fixture: &Fixture) -> Result<Script, BenchError> {
        let mut variables = vec![
            ("whole", array(&fixture.organizations)),
            ("none", "{}".to_owned()),
            ("null", "-".to_owned()),
        ];
        let (text, clients) = match self.kind {
            Kind::Insert => (
                "INSERT INTO bench.minimal (client) VALUES (:client_id);\n".to_owned(),
                CLIENTS,
            ),
            Kind::Admit => {
                let keys: Vec<&str> = fixture.keys.iter().map(|key| key.id.as_str()).collect();
                variables.push(("keys", format!("{{{}}}", keys.join(","))));
                let from = format!("FROM generate_series(1, {ADMISSION_BATCH}) request");
                let arguments = [
                    format!(
                        "(SELECT array_agg((:keys::text[])[1 + request % {}]) {from})",
                        keys.len()
                    ),
                    format!("(SELECT array_agg(gen_random_uuid()) {from})"),
                    nonces::BUCKET.as_secs().to_string(),
                    nonces::MARGIN.as_secs().to_string(),
                    WINDOW.as_secs().to_string(),
                    "5".to_owned(),
                    nonces::LATER_BUCKETS.to_string(),
                ];
                (
                    placed("admission::batch", "ADMIT", &arguments)? + ";\n",
                    ADMISSION_CLIENTS,
                )
            }
            Kind::Read { number } => {
                variables.extend([
                    ("latest", "10000-01-01 00:00:00+00".to_owned()),
                    ("nil", Uuid::nil().to_string()),
                    ("earliest", "0001-01-01 00:00:00+00".to_owned()),
                    ("rows", "26".to_owned()),
                ]);
                let mut text = format!(
                    "\\set full random(0, {})\n\\set any random(0, {})\n",
                    FULL_REPORTS - 1,
                    REPORTS - 1
                );
                for (module, name) in self.statements {
                    text.push_str(&placed(module, name, &arguments(module, name, number))?);
                    text.push_str(";\n");
                }
                (text, POOL)
            }
            Kind::Apply => {
                variables.extend(applied(fixture).await?);
                let mut text = format!(
                    "\\set open random({}, {})\n\\set count :count + 1\n\\set run :base + :client_id * 1000000 + :count\n",
                    OPEN_REPORTS.start,
                    OPEN_REPORTS.end - 1
                );
                for (place, (module, name)) in self.statements.iter().enumerate() {
                    // The first statement records the package; the others are the transaction that applies it.
                    if place == 1 {
                        text.push_str("BEGIN;\n");
                    }
                    let (module, name) = if (*module, *name) == LOCK_SKIPPING {
                        LOCK
                    } else {
                        (*module, *name)
                    };
                    text.push_str(&placed(module, name, &arguments_to_apply(name))?);
                    text.push_str(";\n");
                }
                text.push_str("COMMIT;\n");
                (text, POOL)
            }
        };
        Ok(Script {
            text,
            variables,
            clients,
        })
    }
}

/// Returns the arguments of a statement that reads; `number` is the variable with the report's number.
fn arguments(module: &str, name: &str, number: &str) -> Vec<String> {
    let id = format!("('00000004' || lpad(to_hex(:{number}::bigint), 24, '0'))::uuid");
    let arguments: &[&str] = match (module, name) {
        ("inspections::statements::default", "WHOLE_3") => &[":whole", ":latest", ":nil", ":earliest", ":rows"],
        ("organizations", "LIST") => &[":whole", ":whole", ":none"],
        _ => &[&id, ":whole", ":none"],
    };
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Returns the variables of [`arguments_to_apply`] with the contents of a package for an open report.
async fn applied(fixture: &Fixture) -> Result<Vec<(&'static str, String)>, BenchError> {
    let sql = "\
SELECT s.id::text, t.id::text, s.organization_id::text, array_agg(p.id ORDER BY p.code)::text, array_agg(p.code ORDER BY p.code)::text
FROM bench.station s
JOIN form_templates t ON t.organization_id = s.organization_id AND t.is_test_line
JOIN form_template_points p ON p.template_id = t.id AND p.code = ANY ($1)
GROUP BY s.id, t.id, s.organization_id";
    let row = fixture.client.query_one(sql, &[&fixture.points]).await?;
    let key = &fixture.keys[0];
    let partner = "SELECT partner_id::text FROM api_keys WHERE key_id = $1";
    let each = |text: &str| format!("{{{}}}", vec![text; fixture.points.len()].join(","));
    Ok(vec![
        ("count", "0".to_owned()),
        ("branch", row.get(0)),
        ("template", row.get(1)),
        ("organization", row.get(2)),
        ("points", row.get(3)),
        ("codes", row.get(4)),
        (
            "partner",
            fixture.client.query_one(partner, &[&key.id.as_str()]).await?.get(0),
        ),
        ("key", key.id.as_str().to_owned()),
        ("code", partner_api_domain::branch_code::folded(&fixture.branch_code)),
        // As long as the bodies of the load generator.
        ("raw", format!("\\x{}", "7b".repeat(400))),
        ("hash", format!("\\x{}", "00".repeat(32))),
        ("texts", each("1.07")),
        ("outcomes", each("applied")),
        ("statuses", each("GOOD")),
        ("labels", each("İyi")),
        ("severities", each("NONE")),
        ("points_count", fixture.points.len().to_string()),
    ])
}

/// Returns the arguments of a statement that records or applies a package.
fn arguments_to_apply(name: &str) -> Vec<String> {
    const REPORT: &str = "('00000008' || lpad(to_hex(:open::bigint), 24, '0'))::uuid";
    const ID: &str = "('00000009' || lpad(to_hex(:run::bigint), 24, '0'))::uuid";
    const PLATE: &str = "'34BNC' || :open::bigint";
    const ORGANIZATION: &str = ":organization::uuid";
    let one = |value: &str| format!("ARRAY[{value}]");
    let for_each_point = |value: &str| format!("array_fill({value}, ARRAY[:points_count::integer])");
    let id = [ID, ":partner::uuid", ":key::text"].map(one);
    let place = [":code::text", PLATE].map(one);
    let package = [
        "'b' || :run::bigint",
        "'BRK2000-A'::text",
        "NULL::timestamptz",
        ":raw::bytea",
        ":hash::bytea",
        ":codes::text",
        ":texts::text",
    ]
    .map(one);
    match name {
        "RECORD" => [&id[..], &place, &package].concat(),
        "LOCK" => [REPORT, ":branch", PLATE, "false", ORGANIZATION]
            .map(str::to_owned)
            .into(),
        "READ" => vec![one(REPORT), ORGANIZATION.to_owned()],
        // The report determines the branch and the plate.
        "RECORD_APPLIED" => [
            &[one(REPORT)][..],
            &id,
            &package,
            &[one(":outcomes::text"), ORGANIZATION.to_owned()],
        ]
        .concat(),
        "KEEP_ANSWERS" => vec![
            one(REPORT),
            one(":template::uuid"),
            for_each_point(REPORT),
            ":points".to_owned(),
            "now()".to_owned(),
            ORGANIZATION.to_owned(),
        ],
        _ => {
            let mut arguments = vec![one(REPORT), one(":template::uuid")];
            arguments.extend([
                for_each_point(REPORT),
                ":points".to_owned(),
                ":statuses".to_owned(),
                ":labels".to_owned(),
                ":severities".to_owned(),
                ":texts".to_owned(),
                for_each_point(ID),
            ]);
            arguments.push(ORGANIZATION.to_owned());
            arguments
        }
    }
}

/// Returns the service's statement of this name with each `$n` replaced by the nth argument.
fn placed(module: &str, name: &str, arguments: &[String]) -> Result<String, BenchError> {
    let sql = statement(module, name)?;
    let mut text = String::with_capacity(sql.len() * 2);
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('$') {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: usize = after[..digits].parse().unwrap_or_default();
        let argument = number.checked_sub(1).and_then(|place| arguments.get(place));
        let argument = argument.ok_or_else(|| {
            BenchError::Unexpected(format!(
                "{module}.{name} has a parameter ${number} that the benchmark does not know"
            ))
        })?;
        text.push_str(before);
        text.push_str(argument);
        rest = &after[digits..];
    }
    text.push_str(rest);
    Ok(text)
}

/// Returns the service's statement of this name.
///
/// # Errors
/// If there is none.
pub fn statement(module: &str, name: &str) -> Result<&'static str, BenchError> {
    STATEMENTS
        .iter()
        .find(|statement| parts(statement) == (module, name))
        .map(|statement| statement.sql())
        .ok_or_else(|| BenchError::Unexpected(format!("the service has no statement {module}::{name}")))
}

/// Returns the module and the name of a statement of the service.
pub fn name_of(sql: &str) -> Option<(&'static str, &'static str)> {
    let found = STATEMENTS.iter().find(|statement| statement.sql() == sql)?;
    Some(parts(found))
}

/// Returns the module, relative to the crate of the store or the service, and the name.
fn parts(statement: &Statement) -> (&'static str, &'static str) {
    let name = statement.name();
    let name = name.strip_prefix("partner_api_store::").unwrap_or(name);
    let name = name.strip_prefix("partner_api::").unwrap_or(name);
    name.rsplit_once("::").unwrap_or(("", name))
}

fn array(ids: &[Uuid]) -> String {
    let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    format!("{{{}}}", ids.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_replaced_by_number_and_an_unknown_one_is_an_error() {
        let arguments: Vec<String> = [":a", ":b", ":c"].map(str::to_owned).into();
        let text = placed("inspections::detail", "DETAIL", &arguments).unwrap();
        assert!(
            text.contains("i.id = :a::uuid") && text.contains("ANY (:c::uuid[])"),
            "{text}"
        );
        assert!(!text.contains('$'), "{text}");
        assert!(placed("inspections::detail", "DETAIL", &arguments[..2]).is_err());
        assert!(placed("inspections", "no such", &arguments).is_err());
    }

    #[test]
    fn every_statement_of_a_baseline_exists_in_the_service() {
        for baseline in &ALL {
            for (module, name) in baseline.statements {
                assert!(statement(module, name).is_ok(), "{module}.{name}");
            }
        }
    }
}
