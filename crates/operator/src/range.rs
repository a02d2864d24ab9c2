//! Plausible ranges of device values, which narrow those of the API document per organization (MEA-17).

use clap::{Args, Subcommand};
use partner_api::plausible;
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::output::{Output, Row};
use crate::point::{ListArgs, PointArgs, Range, check_point, not_found, range};
use crate::session::{Changed, Query, Session};

partner_api_store::statement! {
    LIST = "SELECT o.slug AS organization, r.point_code, r.minimum, r.maximum \
            FROM plausible_ranges r JOIN organizations o ON o.id = r.organization_id \
            WHERE ($1::uuid IS NULL OR r.organization_id = $1) AND ($2::text IS NULL OR r.point_code = $2) \
            ORDER BY o.slug, r.point_code";
    SET = "INSERT INTO plausible_ranges AS r (organization_id, point_code, minimum, maximum) VALUES ($1, $2, $3, $4) \
           ON CONFLICT (organization_id, point_code) DO UPDATE SET minimum = $3, maximum = $4 \
           WHERE (r.minimum, r.maximum) IS DISTINCT FROM ($3, $4)";
    REMOVE = "DELETE FROM plausible_ranges WHERE organization_id = $1 AND point_code = $2";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
A value outside the range that the API document states for its point is recorded but not written to a report; the response \
to the device says `implausible`. Organizations can narrow these ranges. Both bounds are included; an omitted bound is the \
document's.

Examples:
  partner-api range set izmir-vehicle BRAKE_FRONT_LEFT 0.1..12     cars only
  partner-api range list izmir-vehicle
  partner-api range remove izmir-vehicle BRAKE_FRONT_LEFT          back to the document's range";

/// Commands on ranges.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Narrow the range of a point, for measurements applied from now on
    Set(SetArgs),
    /// Remove an organization's range of a point
    Remove(PointArgs),
    /// List the ranges of organizations
    List(ListArgs),
}

/// The arguments of `range set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The organization, by slug, name or ID
    organization: String,
    /// The code of the measurement point
    point: String,
    /// Range of plausible values
    #[arg(value_name = "MIN..MAX", value_parser = range, allow_hyphen_values = true)]
    range: Range,
}

/// The range of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Narrowed {
    organization: String,
    point: String,
    range: Range,
    /// The document's.
    documented: Option<Range>,
}

impl Narrowed {
    fn command(&self) -> String {
        format!(
            "partner-api range set {} {} {}",
            self.organization, self.point, self.range
        )
    }
}

impl Row for Narrowed {
    const COLUMNS: &'static [&'static str] = &["ORGANIZATION", "POINT", "RANGE", "DOCUMENT"];

    fn cells(&self) -> Vec<String> {
        let documented = self
            .documented
            .map_or_else(|| "-".to_owned(), |range| range.to_string());
        vec![
            self.organization.clone(),
            self.point.clone(),
            self.range.to_string(),
            documented,
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
                    "There are no ranges. Set one with: partner-api range set ORGANIZATION POINT MIN..MAX",
                ))
            }
        }
    }
}

/// Returns the rules of the API document for a point.
fn documented(point: &str) -> Option<Range> {
    plausible::documented(point).map(|(minimum, maximum)| Range::of(Some(minimum), Some(maximum)))
}

/// Returns the document's range of a point if `range` is not within it.
pub(crate) fn widened(point: &str, range: Range) -> Option<Range> {
    documented(point).filter(|whole| !whole.holds(range.within(*whole)))
}

async fn load(query: &impl Query, organization: Option<Uuid>, point: Option<&str>) -> Result<Vec<Narrowed>, DbError> {
    let rows = query.query(LIST, &[&organization, &point]).await?;
    rows.iter()
        .map(|row| {
            let point: String = row.try_get("point_code")?;
            Ok(Narrowed {
                organization: row.try_get("organization")?,
                range: Range::of(row.try_get("minimum")?, row.try_get("maximum")?),
                documented: documented(&point),
                point,
            })
        })
        .collect()
}

async fn set(session: &Session, args: &SetArgs) -> Result<Output, Failure> {
    check_point(&args.point)?;
    if args.range.is_open() {
        return Err(Failure::Usage(
            "at least one bound is required, like 0.. or ..12".to_owned(),
        ));
    }
    if let Some(whole) = widened(&args.point, args.range) {
        return Err(Failure::Usage(format!(
            "{} is not within {whole}, the document's range of {}: a range can only be narrowed",
            args.range, args.point
        )));
    }
    session
        .change("range set", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            let before = load(change, Some(organization.id), Some(&args.point)).await?.pop();
            let (minimum, maximum) = args.range.bounds();
            let changed = change
                .execute(SET, &[&organization.id, &args.point, &minimum, &maximum])
                .await?
                > 0;
            let after = Narrowed {
                organization: organization.slug.clone(),
                point: args.point.clone(),
                range: args.range,
                documented: documented(&args.point),
            };
            let what = format!(
                "{} of `{}` has the plausible range {}. Values outside it are not written to reports.",
                args.point, organization.slug, args.range
            );
            let id = format!("{}/{}", organization.id, args.point);
            if !changed {
                return Ok(Changed::unchanged("range", id, what, after));
            }
            let undo = match &before {
                Some(before) => before.command(),
                None => format!("partner-api range remove {} {}", organization.slug, args.point),
            };
            Ok(Changed::of("range", id, what, after).before(&before).undo(undo))
        })
        .await
}

async fn remove(session: &Session, args: &PointArgs) -> Result<Output, Failure> {
    session
        .change("range remove", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            let all = load(change, Some(organization.id), None).await?;
            let Some(before) = all.iter().find(|narrowed| narrowed.point == args.point) else {
                let known = all.iter().map(|narrowed| narrowed.point.clone());
                return Err(not_found(Kind::Range, &args.point, known));
            };
            change.execute(REMOVE, &[&organization.id, &args.point]).await?;
            let what = match before.documented {
                Some(whole) => format!(
                    "{} of `{}` has the range of the API document again: {whole}.",
                    args.point, organization.slug
                ),
                None => format!("{} of `{}` can have any value again.", args.point, organization.slug),
            };
            let id = format!("{}/{}", organization.id, args.point);
            let mut changed = Changed::of("range", id, what, before.clone())
                .before(before)
                .undo(before.command());
            changed.after = None;
            Ok(changed)
        })
        .await
}
