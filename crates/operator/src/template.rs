//! Form templates, which inspectors and devices fill in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use partner_api_domain::template::{PLACES, PhotoKind, SEVERITIES, Status};
use partner_api_store::DbError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_postgres::types::Json;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, Organization};
use crate::output::{Output, Row, yes};
use crate::point::is_point;
use crate::session::{Change, Changed, Query, Session};

partner_api_store::statement! {
    LIST = "SELECT t.id, t.code, t.name, t.score_category, t.is_test_line, t.is_required, t.statuses, t.photo_kinds, \
              (SELECT coalesce(json_agg(json_build_object('code', p.code, 'name', p.name, 'unit', p.unit, \
                 'is_required', p.is_required, 'place', p.place) \
                 ORDER BY p.position, p.code), '[]') FROM form_template_points p \
                 WHERE p.template_id = t.id AND p.organization_id = t.organization_id) AS points \
            FROM form_templates t WHERE t.organization_id = $1 ORDER BY t.position, t.code";
    /// Serializes imports into one organization.
    LOCK = "SELECT id FROM organizations WHERE id = $1 FOR NO KEY UPDATE";
    /// Before another template becomes the test-line template.
    NO_TEST_LINE = "UPDATE form_templates SET is_test_line = false WHERE organization_id = $1 AND is_test_line AND code <> $2";
    /// Statuses (`$9`) and kinds of photos (`$10`) that the file lacks stay, or are the default ones in a new template.
    TEMPLATE = "INSERT INTO form_templates (id, organization_id, code, name, score_category, position, is_test_line, is_required, \
                  statuses, photo_kinds) \
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, default_statuses()), \
                  coalesce($10, default_photo_kinds())) \
                ON CONFLICT (organization_id, code) DO UPDATE SET name = excluded.name, \
                  score_category = excluded.score_category, position = excluded.position, is_test_line = excluded.is_test_line, \
                  is_required = excluded.is_required, statuses = coalesce($9, form_templates.statuses), \
                  photo_kinds = coalesce($10, form_templates.photo_kinds) \
                RETURNING id";
    POINT = "INSERT INTO form_template_points (id, organization_id, template_id, code, name, unit, position, is_required, place) \
             SELECT $1, t.organization_id, t.id, $3, $4, $5, $6, $7, $8 FROM form_templates t \
             WHERE t.id = $2 AND t.organization_id = $9 \
             ON CONFLICT (template_id, code, organization_id) DO UPDATE SET name = excluded.name, unit = excluded.unit, \
               position = excluded.position, is_required = excluded.is_required, place = excluded.place";
    /// Points that the file no longer has. Points that a report uses remain, at the end.
    UNUSED = "DELETE FROM form_template_points p \
              WHERE p.template_id = $1 AND p.organization_id = $3 AND p.code <> ALL ($2::text[]) AND NOT EXISTS ( \
                SELECT 1 FROM inspection_form_answers a WHERE a.point_id = p.id AND a.organization_id = p.organization_id)";
    RETAINED = "UPDATE form_template_points SET position = 1000000 \
                WHERE template_id = $1 AND organization_id = $3 AND code <> ALL ($2::text[]) RETURNING code";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
A file is a list of templates, as JSON or YAML. Reports show templates and points in the order of the file:

  - code: TEST_LINE
    name: Test line
    score_category: MECHANICAL
    is_test_line: true          # the form that devices write into
    is_required: false          # a report can be published without these points; the default is true
    points:
      - { code: BRAKE_FRONT_EFFICIENCY, name: Front brakes, unit: '%' }
      - { code: SLIP_FRONT, name: Side slip, unit: m/km, is_required: true }
  - code: BODY
    name: Body and paint
    score_category: BODY
    statuses:                   # best first; without the list, a new template gets a general one
      - { code: ORIGINAL, label: Orijinal, label_en: Original, severity: NONE, is_common: true }
      - { code: PAINTED, label: Boyalı, label_en: Painted, severity: MEDIUM, is_common: true }
      - { code: NOT_CHECKED, label: Kontrol edilmedi, severity: NONE }    # NOT_…: the point counts as not inspected
    photo_kinds:                # likewise
      - { code: EXTERIOR, label: Dış görünüm, label_en: Exterior, expected: 4 }
    points:
      - { code: HOOD, name: Motor kaputu, unit: µm, place: HOOD }      # drawn on the page's car

Examples:
  partner-api template import izmir-vehicle templates.yaml
  partner-api template list izmir-vehicle
  partner-api template list izmir-vehicle --json > templates.json    in the format that import reads";

/// Commands on templates.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Import templates from a file; those with the same code are updated, others stay
    Import(ImportArgs),
    /// List an organization's templates
    List(ListArgs),
}

/// The arguments of `template import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The organization, by slug, name or ID
    organization: String,
    /// JSON or YAML; - for standard input
    file: PathBuf,
}

/// The arguments of `template list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// The organization, by slug, name or ID
    organization: String,
}

/// A form.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Template {
    code: String,
    name: String,
    score_category: String,
    #[serde(default)]
    is_test_line: bool,
    /// Whether its points must have an answer before a report is published.
    #[serde(default = "required")]
    is_required: bool,
    /// The statuses of its points, the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    statuses: Option<Vec<Status>>,
    /// The kinds of photos that belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    photo_kinds: Option<Vec<PhotoKind>>,
    points: Vec<Point>,
}

/// A line of a form; on the test-line form the code of the measurement point.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Point {
    code: String,
    name: String,
    #[serde(default)]
    unit: Option<String>,
    /// Overrides the template's `is_required`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_required: Option<bool>,
    /// The panel of the car that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

fn required() -> bool {
    true
}

impl Row for Template {
    const COLUMNS: &'static [&'static str] = &["CODE", "NAME", "SCORE", "TEST LINE", "REQUIRED", "POINTS"];

    fn cells(&self) -> Vec<String> {
        let codes: Vec<_> = self.points.iter().map(|point| point.code.as_str()).collect();
        vec![
            self.code.clone(),
            self.name.clone(),
            self.score_category.clone(),
            yes(self.is_test_line),
            yes(self.is_required),
            codes.join(" "),
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Import(args) => import(session, &args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let organization = names::organization(&connection, &args.organization).await?;
                let templates: Vec<_> = load(&connection, &organization).await?.into_values().collect();
                Ok(Output::rows(
                    &templates,
                    "There are no templates. Import some with: partner-api template import ORGANIZATION FILE",
                ))
            }
        }
    }
}

/// Returns an organization's templates, in their order.
async fn load(query: &impl Query, organization: &Organization) -> Result<BTreeMap<usize, Template>, DbError> {
    let rows = query.query(LIST, &[&organization.id]).await?;
    rows.iter()
        .enumerate()
        .map(|(index, row)| {
            let template = Template {
                code: row.try_get("code")?,
                name: row.try_get("name")?,
                score_category: row.try_get("score_category")?,
                is_test_line: row.try_get("is_test_line")?,
                is_required: row.try_get("is_required")?,
                statuses: Some(document(row, "statuses")?),
                photo_kinds: Some(document(row, "photo_kinds")?),
                points: document(row, "points")?,
            };
            Ok((index, template))
        })
        .collect()
}

/// Returns the content of a column with JSON.
fn document<T: DeserializeOwned>(row: &tokio_postgres::Row, column: &str) -> Result<T, DbError> {
    let Json(content) = row.try_get(column)?;
    Ok(content)
}

async fn import(session: &Session, args: &ImportArgs) -> Result<Output, Failure> {
    let shown = args.file.display().to_string();
    let text = read(&args.file).map_err(|error| Failure::Usage(format!("{shown}: {error}")))?;
    let templates: Vec<Template> =
        serde_yaml::from_str(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}")))?;
    check(&templates).map_err(|problem| Failure::Usage(format!("{shown}: {problem}")))?;
    session
        .change("template import", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            change.query(LOCK, &[&organization.id]).await?;
            let before: Vec<_> = load(change, &organization).await?.into_values().collect();
            let mut retained = Vec::new();
            for (index, template) in templates.iter().enumerate() {
                let of_template = store(change, &organization, index, template).await?;
                retained.extend(of_template.into_iter().map(|code| format!("{}/{code}", template.code)));
            }
            let after: Vec<_> = load(change, &organization).await?.into_values().collect();
            let mut what = match templates.len() {
                1 => format!("A template was imported into `{}`.", organization.slug),
                several => format!("{several} templates were imported into `{}`.", organization.slug),
            };
            if !retained.is_empty() {
                what.push_str(&format!(" Points that reports use were kept at the end: {}.", retained.join(", ")));
            }
            if before == after {
                let what = format!("`{}` already has these templates.", organization.slug);
                return Ok(Changed::unchanged("template", organization.id, what, after));
            }
            let undo = format!(
                "partner-api audit list --kind template --subject {} --limit 1 --json shows the previous templates under `before`; \
                 import them",
                organization.id
            );
            Ok(Changed::of("template", organization.id, what, after).before(&before).undo(undo))
        })
        .await
}

/// Stores a template at its position. Returns the codes of points that remain although the file lacks them.
async fn store(
    change: &Change<'_>,
    organization: &Organization,
    index: usize,
    template: &Template,
) -> Result<Vec<String>, Failure> {
    if template.is_test_line {
        change
            .execute(NO_TEST_LINE, &[&organization.id, &template.code])
            .await?;
    }
    let (statuses, photo_kinds) = (
        template.statuses.as_ref().map(Json),
        template.photo_kinds.as_ref().map(Json),
    );
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 10] = [
        &Uuid::now_v7(),
        &organization.id,
        &template.code,
        &template.name,
        &template.score_category,
        &to_position(index),
        &template.is_test_line,
        &template.is_required,
        &statuses,
        &photo_kinds,
    ];
    let rows = change.query(TEMPLATE, &parameters).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let id: Uuid = row.try_get("id")?;
    for (index, point) in template.points.iter().enumerate() {
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 9] = [
            &Uuid::now_v7(),
            &id,
            &point.code,
            &point.name,
            &point.unit,
            &to_position(index),
            &point.is_required,
            &point.place,
            &organization.id,
        ];
        change.execute(POINT, &parameters).await?;
    }
    let codes: Vec<_> = template.points.iter().map(|point| point.code.as_str()).collect();
    change.execute(UNUSED, &[&id, &codes, &organization.id]).await?;
    let retained = change.query(RETAINED, &[&id, &codes, &organization.id]).await?;
    Ok(retained
        .iter()
        .map(|row| row.try_get("code"))
        .collect::<Result<_, _>>()?)
}

fn to_position(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

fn read(path: &std::path::Path) -> std::io::Result<String> {
    if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    }
}

/// Checks the rules that the schema does not enforce.
fn check(templates: &[Template]) -> Result<(), String> {
    let mut codes = BTreeSet::new();
    if templates.is_empty() {
        return Err("it has no templates".to_owned());
    }
    for template in templates {
        if template.code.is_empty() {
            return Err(format!("the template `{}` has no code", template.name));
        }
        if !codes.insert(&template.code) {
            return Err(format!("two templates have the code {}", template.code));
        }
        check_lists(template)?;
        let mut points = BTreeSet::new();
        for point in &template.points {
            if let Some(place) = &point.place
                && !PLACES.contains(&place.as_str())
            {
                let places = PLACES.join(", ");
                return Err(format!(
                    "the place of {} is `{place}` and must be one of {places}",
                    point.code
                ));
            }
            if point.code.is_empty() {
                return Err(format!("a point of {} has no code", template.code));
            }
            if !points.insert(&point.code) {
                return Err(format!("two points of {} have the code {}", template.code, point.code));
            }
        }
    }
    if templates.iter().filter(|template| template.is_test_line).count() > 1 {
        return Err("two templates are for the test line; only one is allowed".to_owned());
    }
    Ok(())
}

/// Checks the statuses and the kinds of photos of a template.
fn check_lists(template: &Template) -> Result<(), String> {
    let Template { code: of, .. } = template;
    let mut codes = BTreeSet::new();
    for status in template.statuses.iter().flatten() {
        let Status { code, severity, .. } = status;
        check_code("a status", code, &status.label, of)?;
        if !codes.insert(code) {
            return Err(format!("two statuses of {of} have the code {code}"));
        }
        if !SEVERITIES.contains(&severity.as_str()) {
            let severities = SEVERITIES.join(", ");
            return Err(format!(
                "the severity of {code} is `{severity}` and must be one of {severities}"
            ));
        }
    }
    if !template.is_test_line && template.statuses.as_ref().is_some_and(Vec::is_empty) {
        return Err(format!("{of} has no statuses; give some, or leave the list out"));
    }
    let mut codes = BTreeSet::new();
    for PhotoKind { code, label, .. } in template.photo_kinds.iter().flatten() {
        check_code("a kind of photo", code, label, of)?;
        if !codes.insert(code) {
            return Err(format!("two kinds of photos of {of} have the code {code}"));
        }
    }
    Ok(())
}

/// Checks that an entry of a template's list has a label, and a code as in the contract's measurements.
fn check_code(entry: &str, code: &str, label: &str, of: &str) -> Result<(), String> {
    if label.is_empty() {
        return Err(format!("{entry} of {of} has no label"));
    }
    match is_point(code) {
        true => Ok(()),
        false => Err(format!(
            "{entry} of {of} has the code `{code}`; it must have 1 to 64 characters of A-Z, 0-9 and _, and begin with a letter"
        )),
    }
}
