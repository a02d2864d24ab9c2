//! Which device values can be: what an organisation takes for possible, narrower than the document (MEA-17).

use clap::{Args, Subcommand};
use partner_api::db::DbError;
use partner_api::rules::plausible;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::output::{Output, Row};
use crate::query::Query;
use crate::session::{Changed, Session};
use crate::threshold::{Range, check_point, range};

partner_api::statement! {
    LIST = "SELECT o.slug AS organization, r.point_code, r.minimum, r.maximum \
            FROM plausible_ranges r JOIN organizations o ON o.id = r.organization_id \
            WHERE ($1::uuid IS NULL OR r.organization_id = $1) AND ($2::text IS NULL OR r.point_code = $2) \
            ORDER BY o.slug, r.point_code";
    SET = "INSERT INTO plausible_ranges AS r (organization_id, point_code, minimum, maximum) VALUES ($1, $2, $3, $4) \
           ON CONFLICT (organization_id, point_code) DO UPDATE SET minimum = $3, maximum = $4 \
           WHERE (r.minimum, r.maximum) IS DISTINCT FROM ($3, $4)";
    REMOVE = "DELETE FROM plausible_ranges WHERE organization_id = $1 AND point_code = $2";
}

/// Help of the group.
pub const EXAMPLES: &str = "\
A value outside the range that the API's document states of its point is recorded, but not written to a report: devices are told
`implausible`. An organisation may narrow these ranges. Bounds belong to their range; one that is left out is the document's.

Examples:
  partner-api range set izmir-vehicle BRAKE_FRONT_LEFT 0.1..12     of cars alone
  partner-api range list izmir-vehicle
  partner-api range remove izmir-vehicle BRAKE_FRONT_LEFT          the document's range is in force again";

/// Commands on ranges.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Narrow the range of a point; measurements that are applied from now on are judged by it
    Set(SetArgs),
    /// Take an organisation's range of a point away
    Remove(PointArgs),
    /// Print the ranges that organisations have narrowed
    List(ListArgs),
}

/// The arguments of `range set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The organisation, by slug, name or id
    organization: String,
    /// The measurement point's code
    point: String,
    /// Which values can be
    #[arg(value_name = "MIN..MAX", value_parser = range, allow_hyphen_values = true)]
    range: Range,
}

/// A point of an organisation.
#[derive(Args, Debug)]
pub struct PointArgs {
    /// The organisation, by slug, name or id
    organization: String,
    /// The measurement point's code
    point: String,
}

/// The options of `range list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only those of this organisation, by slug, name or id
    organization: Option<String>,
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
    const COLUMNS: &'static [&'static str] = &["ORGANISATION", "POINT", "RANGE", "DOCUMENT"];

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
                let organization = match &args.organization {
                    Some(text) => Some(names::organization(&connection, text).await?.id),
                    None => None,
                };
                Ok(Output::rows(
                    &load(&connection, organization, None).await?,
                    "No range is narrowed. Narrow one with: partner-api range set ORGANISATION POINT MIN..MAX",
                ))
            }
        }
    }
}

/// What the document says of a point.
fn documented(point: &str) -> Option<Range> {
    plausible::documented(point).map(|(minimum, maximum)| Range::of(Some(minimum), Some(maximum)))
}

/// The document's range of a point, where a range is not within it.
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
            "one bound at least is needed, like 0.. or ..12".to_owned(),
        ));
    }
    if let Some(whole) = widened(&args.point, args.range) {
        return Err(Failure::Usage(format!(
            "{} is not within {whole}, the document's range of {}: a range can be narrowed, not widened",
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
                "{} of `{}` can be {}; what lies outside is not written to reports.",
                args.point, organization.slug, args.range
            );
            let id = format!("{}/{}", organization.id, args.point);
            if !changed {
                return Ok(Changed::nothing("range", id, what, after));
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
                let known: Vec<_> = all.iter().map(|narrowed| narrowed.point.clone()).collect();
                return Err(Failure::NotFound {
                    kind: Kind::Range,
                    name: args.point.clone(),
                    suggestions: names::alike(&args.point, &known),
                });
            };
            change.execute(REMOVE, &[&organization.id, &args.point]).await?;
            let what = match before.documented {
                Some(whole) => format!(
                    "{} of `{}` can be {whole} again, as the document says.",
                    args.point, organization.slug
                ),
                None => format!("{} of `{}` can be any number again.", args.point, organization.slug),
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
