//! Bounds that give a device value its status (MEA-12).

use clap::{Args, Subcommand};
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::output::{Output, Row};
use crate::point::{ListArgs, PointArgs, Range, check_point, not_found, range};
use crate::session::{Changed, Query, Session};

partner_api_store::statement! {
    LIST = "SELECT o.slug AS organization, t.point_code, t.good_min, t.good_max, t.borderline_min, t.borderline_max \
            FROM thresholds t JOIN organizations o ON o.id = t.organization_id \
            WHERE ($1::uuid IS NULL OR t.organization_id = $1) AND ($2::text IS NULL OR t.point_code = $2) \
            ORDER BY o.slug, t.point_code";
    SET = "INSERT INTO thresholds AS t (organization_id, point_code, good_min, good_max, borderline_min, borderline_max) \
           VALUES ($1, $2, $3, $4, $5, $6) \
           ON CONFLICT (organization_id, point_code) DO UPDATE SET good_min = $3, good_max = $4, borderline_min = $5, \
             borderline_max = $6 \
           WHERE (t.good_min, t.good_max, t.borderline_min, t.borderline_max) IS DISTINCT FROM ($3, $4, $5, $6)";
    REMOVE = "DELETE FROM thresholds WHERE organization_id = $1 AND point_code = $2";
    /// The points of the test-line form.
    POINTS = "SELECT p.code FROM form_template_points p \
                JOIN form_templates t ON t.id = p.template_id AND t.organization_id = p.organization_id \
              WHERE t.organization_id = $1 AND t.is_test_line ORDER BY p.code";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
A value in the good range is GOOD, else a value in the borderline range is BORDERLINE, else OUT_OF_LIMIT. A range is \
MIN..MAX, including both bounds; omit a bound to leave that side open. Numbers have a decimal point.

Examples:
  partner-api threshold set izmir-vehicle BRAKE_FRONT_EFFICIENCY --good 50.. --borderline 45..
  partner-api threshold set izmir-vehicle SLIP_FRONT --good=-7..7 --borderline=-9.5..9.5
  partner-api threshold list izmir-vehicle
  partner-api threshold remove izmir-vehicle SLIP_FRONT          its values are no longer written to reports";

/// Commands on thresholds.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set the ranges of a point, for measurements applied from now on
    Set(SetArgs),
    /// Remove the ranges of a point
    Remove(PointArgs),
    /// List the ranges
    List(ListArgs),
}

/// The arguments of `threshold set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The organization, by slug, name or ID
    organization: String,
    /// The code of the measurement point
    point: String,
    /// Range of good values
    #[arg(long, value_name = "MIN..MAX", value_parser = range, allow_hyphen_values = true)]
    good: Range,
    /// Range of borderline values, which includes the good range [default: none]
    #[arg(long, value_name = "MIN..MAX", value_parser = range, allow_hyphen_values = true)]
    borderline: Option<Range>,
}

/// The ranges of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Threshold {
    organization: String,
    point: String,
    good: Range,
    borderline: Range,
}

impl Threshold {
    fn command(&self) -> String {
        let mut command = format!(
            "partner-api threshold set {} {} --good={}",
            self.organization, self.point, self.good
        );
        if !self.borderline.is_open() {
            command.push_str(&format!(" --borderline={}", self.borderline));
        }
        command
    }
}

impl Row for Threshold {
    const COLUMNS: &'static [&'static str] = &["ORGANIZATION", "POINT", "GOOD", "BORDERLINE"];

    fn cells(&self) -> Vec<String> {
        let borderline = match self.borderline.is_open() {
            true => "-".to_owned(),
            false => self.borderline.to_string(),
        };
        vec![
            self.organization.clone(),
            self.point.clone(),
            self.good.to_string(),
            borderline,
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Set(args) => set(session, &args).await,
            Self::Remove(args) => remove(session, &args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let organization = args.organization_id(&connection).await?;
                Ok(Output::rows(
                    &load(&connection, organization, None).await?,
                    "There are no thresholds. Set one with: partner-api threshold set ORGANIZATION POINT --good MIN..MAX",
                ))
            }
        }
    }
}

async fn load(query: &impl Query, organization: Option<Uuid>, point: Option<&str>) -> Result<Vec<Threshold>, DbError> {
    let rows = query.query(LIST, &[&organization, &point]).await?;
    rows.iter()
        .map(|row| {
            Ok(Threshold {
                organization: row.try_get("organization")?,
                point: row.try_get("point_code")?,
                good: Range {
                    min: row.try_get("good_min")?,
                    max: row.try_get("good_max")?,
                },
                borderline: Range {
                    min: row.try_get("borderline_min")?,
                    max: row.try_get("borderline_max")?,
                },
            })
        })
        .collect()
}

async fn set(session: &Session, args: &SetArgs) -> Result<Output, Failure> {
    check_point(&args.point)?;
    if args.good.is_open() {
        return Err(Failure::Usage(
            "--good: at least one bound is required, like 50.. or ..4".to_owned(),
        ));
    }
    if let Some(borderline) = args.borderline
        && !borderline.holds(args.good)
    {
        return Err(Failure::Usage(format!(
            "--borderline: {borderline} must include the good range {}",
            args.good
        )));
    }
    session
        .change("threshold set", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            let before = load(change, Some(organization.id), Some(&args.point)).await?.pop();
            let borderline = args.borderline.unwrap_or_default();
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
                &organization.id,
                &args.point,
                &args.good.min,
                &args.good.max,
                &borderline.min,
                &borderline.max,
            ];
            let changed = change.execute(SET, &parameters).await? > 0;
            let after = Threshold {
                organization: organization.slug.clone(),
                point: args.point.clone(),
                good: args.good,
                borderline,
            };
            let mut what = format!("{} of `{}`: good {}", args.point, organization.slug, args.good);
            if let Some(borderline) = args.borderline {
                what.push_str(&format!(", borderline {borderline}"));
            }
            what.push_str(", else out of limit.");
            let known: Vec<String> = change
                .query(POINTS, &[&organization.id])
                .await?
                .iter()
                .map(|row| row.try_get(0))
                .collect::<Result<_, _>>()?;
            if !known.contains(&args.point) {
                let similar = names::similar(&args.point, &known);
                let hint = similar
                    .first()
                    .map(|point| format!(" (it has `{point}`)"))
                    .unwrap_or_default();
                what.push_str(&format!(
                    " The test-line form of `{}` has no such point{hint}.",
                    organization.slug
                ));
            }
            let id = format!("{}/{}", organization.id, args.point);
            if !changed {
                return Ok(Changed::unchanged("threshold", id, what, after));
            }
            let undo = match &before {
                Some(before) => before.command(),
                None => format!("partner-api threshold remove {} {}", organization.slug, args.point),
            };
            Ok(Changed::of("threshold", id, what, after).before(&before).undo(undo))
        })
        .await
}

async fn remove(session: &Session, args: &PointArgs) -> Result<Output, Failure> {
    session
        .change("threshold remove", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            let all = load(change, Some(organization.id), None).await?;
            let Some(before) = all.iter().find(|threshold| threshold.point == args.point) else {
                let known = all.iter().map(|threshold| threshold.point.clone());
                return Err(not_found(Kind::Threshold, &args.point, known));
            };
            change.execute(REMOVE, &[&organization.id, &args.point]).await?;
            let what = format!(
                "{} of `{}` has no thresholds anymore. The API reports `no_status` to devices and does not write its values to reports.",
                args.point, organization.slug
            );
            let mut changed = Changed::of(
                "threshold",
                format!("{}/{}", organization.id, args.point),
                what,
                before.clone(),
            )
            .before(before)
            .undo(before.command());
            changed.after = None;
            Ok(changed)
        })
        .await
}
