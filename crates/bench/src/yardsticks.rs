//! What the service is held against: the very statements of an operation, alone under pgbench.
//!
//! The statements come from the service's own list, and before anything is measured the service is overheard
//! ([`crate::anatomy`]): a yardstick with other statements than the operation sends is refused. Each `$n` becomes a
//! variable, or an expression that draws from the data; nothing else is changed. pgbench takes results as text where the
//! service takes them in binary.

use partner_api_store::statement::{STATEMENTS, Statement};
use uuid::Uuid;

use crate::error::BenchError;
use crate::pgbench::Script;
use crate::world::{FULL_REPORTS, OPEN_REPORTS, REPORTS, World};

/// Sessions for statements: as many as the service's pool has connections by default.
const POOL: usize = 16;
/// Sessions for the minimal insert, whose flushes are shared by as many as wait for one.
const CLIENTS: usize = 64;

/// Statements that are measured alone.
pub struct Yardstick {
    /// Its name in the table and for `--only`.
    pub name: &'static str,
    /// The operation whose statements it repeats; none: a statement of its own.
    pub operation: Option<&'static str>,
    /// These, by module and name, in the operation's order; admission's are not among them.
    pub statements: &'static [(&'static str, &'static str)],
    what: What,
}

enum What {
    /// Of any report, or of the first ones, which have forms and photos.
    Read {
        number: &'static str,
    },
    Insert,
    /// A package for one of the open reports.
    Apply,
}

/// The lock that the service asks for several reports, each of which may be somebody else's.
const LOCK_FREE: (&str, &str) = ("measurements::report", "LOCK_FREE");
/// What pgbench asks for instead: it cannot leave out a report that another session has.
const LOCK: (&str, &str) = ("measurements::report", "LOCK");

/// All of them.
pub const ALL: [Yardstick; 6] = [
    read(
        "sql-list",
        "list",
        "any",
        &[("inspections::statements::default", "WHOLE_3")],
    ),
    read("sql-detail", "detail", "any", &[("inspections::detail", "DETAIL")]),
    read("sql-forms", "forms", "full", &[("forms", "LIST")]),
    read("sql-photos", "photos", "full", &[("photos", "LIST")]),
    Yardstick {
        name: "sql-insert",
        operation: None,
        statements: &[],
        what: What::Insert,
    },
    Yardstick {
        name: "sql-applied",
        operation: Some("applied"),
        statements: &[
            ("measurements::record", "RECORD"),
            LOCK_FREE,
            ("measurements::report", "READ"),
            ("measurements::apply", "RECORD_APPLIED"),
            ("measurements::report", "WRITE_ANSWERS"),
        ],
        what: What::Apply,
    },
];

const fn read(
    name: &'static str,
    operation: &'static str,
    number: &'static str,
    statements: &'static [(&'static str, &'static str)],
) -> Yardstick {
    Yardstick {
        name,
        operation: Some(operation),
        statements,
        what: What::Read { number },
    }
}

impl Yardstick {
    /// Its script for pgbench.
    ///
    /// # Errors
    /// The service has no such statement, or the world does not hold what it needs.
    pub async fn script(&self, world: &World) -> Result<Script, BenchError> {
        let mut variables = vec![
            ("whole", array(&world.organizations)),
            ("none", "{}".to_owned()),
            ("null", "-".to_owned()),
        ];
        let (text, clients) = match self.what {
            What::Insert => (
                "INSERT INTO bench.minimal (client) VALUES (:client_id);\n".to_owned(),
                CLIENTS,
            ),
            What::Read { number } => {
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
            What::Apply => {
                variables.extend(applied(world).await?);
                let mut text = format!(
                    "\\set open random({}, {})\n\\set count :count + 1\n\\set run :base + :client_id * 1000000 + :count\n",
                    OPEN_REPORTS.start,
                    OPEN_REPORTS.end - 1
                );
                for (place, (module, name)) in self.statements.iter().enumerate() {
                    // The first finds the report, the others are the transaction that fills it.
                    if place == 1 {
                        text.push_str("BEGIN;\n");
                    }
                    let (module, name) = if (*module, *name) == LOCK_FREE {
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

/// The arguments of a statement that reads; `number` is the variable that says which report.
fn arguments(module: &str, name: &str, number: &str) -> Vec<String> {
    let id = format!("('00000004' || lpad(to_hex(:{number}::bigint), 24, '0'))::uuid");
    let arguments: &[&str] = match (module, name) {
        ("inspections::statements::default", "WHOLE_3") => &[":whole", ":latest", ":nil", ":earliest", ":rows"],
        _ => &[&id, ":whole", ":none"],
    };
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// What a package for an open report is made of, by the names in [`arguments_to_apply`].
async fn applied(world: &World) -> Result<Vec<(&'static str, String)>, BenchError> {
    let sql = "\
SELECT s.id::text, t.id::text, array_agg(p.id ORDER BY p.code)::text, array_agg(p.code ORDER BY p.code)::text
FROM bench.station s
JOIN form_templates t ON t.organization_id = s.organization_id AND t.is_test_line
JOIN form_template_points p ON p.template_id = t.id AND p.code = ANY ($1)
GROUP BY s.id, t.id";
    let row = world.client.query_one(sql, &[&world.points]).await?;
    let key = &world.keys[0];
    let partner = "SELECT partner_id::text FROM api_keys WHERE key_id = $1";
    let each = |text: &str| format!("{{{}}}", vec![text; world.points.len()].join(","));
    Ok(vec![
        ("count", "0".to_owned()),
        ("branch", row.get(0)),
        ("template", row.get(1)),
        ("points", row.get(2)),
        ("codes", row.get(3)),
        (
            "partner",
            world.client.query_one(partner, &[&key.id.as_str()]).await?.get(0),
        ),
        ("key", key.id.as_str().to_owned()),
        ("code", partner_api_domain::branch_code::folded(&world.branch_code)),
        // As long as what the generator sends.
        ("raw", format!("\\x{}", "7b".repeat(400))),
        ("hash", format!("\\x{}", "00".repeat(32))),
        ("texts", each("1.07")),
        ("outcomes", each("applied")),
        ("statuses", each("GOOD")),
        ("labels", each("İyi")),
        ("severities", each("NONE")),
        ("points_count", world.points.len().to_string()),
    ])
}

/// The arguments of a statement that records or applies a package.
fn arguments_to_apply(name: &str) -> Vec<String> {
    const REPORT: &str = "('00000008' || lpad(to_hex(:open::bigint), 24, '0'))::uuid";
    const ID: &str = "('00000009' || lpad(to_hex(:run::bigint), 24, '0'))::uuid";
    const PLATE: &str = "'34BNC' || :open::bigint";
    let one = |value: &str| format!("ARRAY[{value}]");
    let for_each_point = |value: &str| format!("array_fill({value}, ARRAY[:points_count::integer])");
    let package = |point_codes: &str| {
        let columns = [
            ID,
            ":partner::uuid",
            ":key::text",
            ":code::text",
            PLATE,
            "'b' || :run::bigint",
            "'BRK2000-A'::text",
            "NULL::timestamptz",
            ":raw::bytea",
            ":hash::bytea",
            point_codes,
            ":texts::text",
        ];
        columns.map(one)
    };
    match name {
        "RECORD" => package(":codes::text").into(),
        "LOCK" => [REPORT, ":branch", PLATE, "false"].map(str::to_owned).into(),
        "READ" => vec![one(REPORT)],
        "RECORD_APPLIED" => {
            let [
                id,
                partner,
                key,
                _,
                _,
                external_id,
                device,
                measured_at,
                raw,
                hash,
                codes,
                texts,
            ] = package(":codes::text");
            vec![
                one(REPORT),
                id,
                partner,
                key,
                external_id,
                device,
                measured_at,
                raw,
                hash,
                codes,
                texts,
                one(":outcomes::text"),
            ]
        }
        _ => {
            let form = format!(
                "(SELECT id FROM inspection_forms WHERE inspection_id = {REPORT} AND template_id = :template::uuid)"
            );
            let mut arguments = vec![
                one(REPORT),
                one(&form),
                one(":template::uuid"),
                one("gen_random_uuid()"),
            ];
            arguments.extend([
                for_each_point(REPORT),
                ":points".to_owned(),
                ":statuses".to_owned(),
                ":labels".to_owned(),
                ":severities".to_owned(),
                ":texts".to_owned(),
                for_each_point(ID),
            ]);
            arguments.extend(vec!["'{}'".to_owned(); 7]);
            arguments
        }
    }
}

/// The service's statement of this name with each `$n` replaced by the nth argument.
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

/// The service's statement of this name.
fn statement(module: &str, name: &str) -> Result<&'static str, BenchError> {
    STATEMENTS
        .iter()
        .find(|statement| parts(statement) == (module, name))
        .map(|statement| statement.sql())
        .ok_or_else(|| BenchError::Unexpected(format!("the service has no statement {module}::{name} any more")))
}

/// The module and the name of a statement of the service.
pub fn name_of(sql: &str) -> Option<(&'static str, &'static str)> {
    let found = STATEMENTS.iter().find(|statement| statement.sql() == sql)?;
    Some(parts(found))
}

/// The module, below the store's root or the service's, and the name.
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
    fn parameters_are_replaced_by_number_and_one_too_many_is_an_error() {
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
    fn every_statement_of_a_yardstick_is_one_of_the_services() {
        for yardstick in &ALL {
            for (module, name) in yardstick.statements {
                assert!(statement(module, name).is_ok(), "{module}.{name}");
            }
        }
    }
}
