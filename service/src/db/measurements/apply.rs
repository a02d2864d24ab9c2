//! Values into a report: which points are written, with which status, and what becomes of the rest.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::GenericClient;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Point, SkipReason, Skipped, statements};
use crate::db::{DbError, thresholds};
use crate::rules::dyno;
use crate::rules::threshold::{self, Bounds, PointStatus};

/// What became of a measurement's points when it was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Codes written to the report, in their order; the computed `DYNO_RATIO` last.
    pub applied: Vec<String>,
    /// Codes not written, and why.
    pub skipped: Vec<Skipped>,
}

/// Applies a waiting measurement to a report, as an inspector does with one click (contract 3.2).
///
/// The report must be in its writing phase, at the measurement's branch and for its plate; how old it is does not matter
/// here. `by` says who applies it. `None`: the measurement does not wait (any more), or the report is none for it; nothing
/// has changed then.
///
/// # Errors
/// What the database says. Call it inside a transaction, and roll that back after an error.
pub async fn apply<C: GenericClient>(
    client: &C,
    measurement_id: Uuid,
    inspection_id: Uuid,
    by: &str,
) -> Result<Option<Applied>, DbError> {
    // Measurement before report, as a new measurement takes its locks: two that meet cannot wait for each other.
    let statement = client.prepare_cached(statements::LOCK_WAITING).await?;
    let Some(waiting) = client.query_opt(&statement, &[&measurement_id]).await? else {
        return Ok(None);
    };
    let (branch_id, plate): (Uuid, String) = (waiting.try_get(0)?, waiting.try_get(1)?);
    let statement = client.prepare_cached(statements::LOCK_REPORT).await?;
    if client
        .query_opt(&statement, &[&inspection_id, &branch_id, &plate])
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let statement = client.prepare_cached(statements::POINTS).await?;
    let points = client.query(&statement, &[&measurement_id]).await?;
    let points = points.iter().map(Point::from_row).collect::<Result<Vec<_>, _>>()?;
    apply_points(client, measurement_id, inspection_id, &points, Some(by))
        .await
        .map(Some)
}

/// Applies the points of a waiting measurement to a report that the transaction has locked.
pub(super) async fn apply_points<C: GenericClient>(
    client: &C,
    measurement_id: Uuid,
    inspection_id: Uuid,
    points: &[Point],
    by: Option<&str>,
) -> Result<Applied, DbError> {
    let template = read_template(client, inspection_id, points).await?;
    let decisions = decide(points, &template);
    write(client, measurement_id, inspection_id, template.id, &decisions, by).await?;

    let mut result = Applied::default();
    let mut skipped_codes = BTreeSet::new();
    for decision in decisions {
        match decision.outcome {
            Ok(_) => result.applied.push(decision.point.code),
            // A code is skipped once, though a device may have sent the computed one.
            Err(reason) if skipped_codes.insert(decision.point.code.clone()) => {
                result.skipped.push(Skipped {
                    code: decision.point.code,
                    reason,
                });
            }
            Err(_) => {}
        }
    }
    Ok(result)
}

/// The part of a report's test-line template that concerns a measurement.
#[derive(Debug, Default)]
struct Template {
    /// Nil when the organisation has no test-line form, or the form none of the points.
    id: Uuid,
    points: BTreeMap<String, TemplatePoint>,
    /// The vehicle's registered factory power, in HP.
    factory_power_hp: Option<Decimal>,
}

#[derive(Clone, Copy, Debug)]
struct TemplatePoint {
    id: Uuid,
    bounds: Option<Bounds>,
}

/// A point, and its answer or the reason why it has none.
#[derive(Debug)]
struct Decision {
    point: Point,
    outcome: Result<(Uuid, PointStatus), SkipReason>,
}

async fn read_template<C: GenericClient>(
    client: &C,
    inspection_id: Uuid,
    points: &[Point],
) -> Result<Template, DbError> {
    let codes: Vec<&str> = points
        .iter()
        .map(|point| point.code.as_str())
        .chain([dyno::RATIO])
        .collect();
    let statement = client.prepare_cached(statements::TEST_LINE_POINTS).await?;
    let mut template = Template::default();
    for row in client.query(&statement, &[&inspection_id, &codes]).await? {
        template.id = row.try_get("template_id")?;
        template.factory_power_hp = row.try_get("factory_power_hp")?;
        template.points.insert(row.try_get("code")?, template_point(&row)?);
    }
    Ok(template)
}

fn template_point(row: &Row) -> Result<TemplatePoint, DbError> {
    let bounds = match row.try_get("has_bounds")? {
        true => Some(thresholds::bounds(row)?),
        false => None,
    };
    Ok(TemplatePoint {
        id: row.try_get("point_id")?,
        bounds,
    })
}

/// Decides each point, and computes `DYNO_RATIO` after them (contract 2.10, rules 2 to 4).
///
/// The ratio is decided as if it had been sent, but for a template without the point: then nobody asked for it, and it is
/// left out without a word.
fn decide(points: &[Point], template: &Template) -> Vec<Decision> {
    let outcome = |point: &Point| {
        let known = template.points.get(&point.code).ok_or(SkipReason::UnknownPoint)?;
        let status = threshold::status(point.value, known.bounds.as_ref()).ok_or(SkipReason::NoStatus)?;
        Ok((known.id, status))
    };
    let mut decisions: Vec<Decision> = points
        .iter()
        .map(|point| Decision {
            // A device does not send the ratio: to it the point is unknown.
            outcome: if point.code == dyno::RATIO {
                Err(SkipReason::UnknownPoint)
            } else {
                outcome(point)
            },
            point: point.clone(),
        })
        .collect();
    let measured = points.iter().find(|point| point.code == dyno::MEASURED_HP);
    if let (Some(measured), Some(factory), true) = (
        measured,
        template.factory_power_hp,
        template.points.contains_key(dyno::RATIO),
    ) && let Some(value) = dyno::ratio(measured.value, factory)
    {
        let point = Point {
            code: dyno::RATIO.to_string(),
            value,
            text: value.to_string(),
        };
        decisions.push(Decision {
            outcome: outcome(&point),
            point,
        });
    }
    decisions
}

async fn write<C: GenericClient>(
    client: &C,
    measurement_id: Uuid,
    inspection_id: Uuid,
    template_id: Uuid,
    decisions: &[Decision],
    by: Option<&str>,
) -> Result<(), DbError> {
    let (mut point_ids, mut status_codes, mut labels, mut severities, mut numbers) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut codes, mut values, mut texts, mut outcomes, mut positions) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::<i32>::new());
    let mut sent = BTreeSet::new();
    for (decision, position) in decisions.iter().zip(1..) {
        if let Ok((point_id, status)) = decision.outcome {
            point_ids.push(point_id);
            status_codes.push(status.code());
            labels.push(status.label());
            severities.push(status.severity());
            numbers.push(decision.point.value);
        }
        // Where a device sent the computed point, what it sent stays in the record.
        if sent.insert(decision.point.code.as_str()) {
            codes.push(decision.point.code.as_str());
            values.push(decision.point.value);
            texts.push(decision.point.text.as_str());
            outcomes.push(decision.outcome.map_or_else(SkipReason::as_str, |_| "applied"));
            positions.push(position);
        }
    }
    let form_id = Uuid::now_v7();
    let statement = client.prepare_cached(statements::APPLY).await?;
    let settled = client
        .execute(
            &statement,
            &[
                &measurement_id,
                &inspection_id,
                &form_id,
                &template_id,
                &point_ids,
                &status_codes,
                &labels,
                &severities,
                &numbers,
                &codes,
                &values,
                &texts,
                &outcomes,
                &positions,
                &by,
            ],
        )
        .await?;
    match settled {
        1 => Ok(()),
        _ => Err(DbError::Data {
            table: "measurements",
            detail: format!("{measurement_id} no longer waits"),
        }),
    }
}
