//! Bounds that give a device value its status (MEA-12).

use clap::{Args, Subcommand};
use partner_api::db::DbError;
use rust_decimal::Decimal;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::output::{Output, Row};
use crate::query::Query;
use crate::session::{Changed, Session};

partner_api::statement! {
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
    POINTS = "SELECT p.code FROM form_template_points p JOIN form_templates t ON t.id = p.template_id \
              WHERE t.organization_id = $1 AND t.is_test_line ORDER BY p.code";
}

/// Help of the group.
pub const EXAMPLES: &str = "\
A value inside the good range is GOOD, else inside the borderline range BORDERLINE, else OUT_OF_LIMIT. Bounds belong to their
range; one that is left out is open. A range is MIN..MAX, with a point in its numbers.

Examples:
  partner-api threshold set izmir-vehicle BRAKE_FRONT_EFFICIENCY --good 50.. --borderline 45..
  partner-api threshold set izmir-vehicle SLIP_FRONT --good=-7..7 --borderline=-9.5..9.5
  partner-api threshold list izmir-vehicle
  partner-api threshold remove izmir-vehicle SLIP_FRONT          values are no longer written to reports";

/// Commands on thresholds.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set the ranges of a point; measurements that are applied from now on are judged by them
    Set(SetArgs),
    /// Take a point's ranges away
    Remove(PointArgs),
    /// Print the ranges
    List(ListArgs),
}

/// The arguments of `threshold set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The organisation, by slug, name or id
    organization: String,
    /// The measurement point's code
    point: String,
    /// Where a value is good
    #[arg(long, value_name = "MIN..MAX", value_parser = range, allow_hyphen_values = true)]
    good: Range,
    /// Where it is borderline; nowhere, unless told
    #[arg(long, value_name = "MIN..MAX", value_parser = range, allow_hyphen_values = true)]
    borderline: Option<Range>,
}

/// A point of an organisation.
#[derive(Args, Debug)]
pub struct PointArgs {
    /// The organisation, by slug, name or id
    organization: String,
    /// The measurement point's code
    point: String,
}

/// The options of `threshold list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only those of this organisation, by slug, name or id
    organization: Option<String>,
}

/// A range whose bounds belong to it; one that is left out is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Range {
    min: Option<Decimal>,
    max: Option<Decimal>,
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = |bound: Option<Decimal>| bound.map(|value| value.normalize().to_string()).unwrap_or_default();
        write!(f, "{}..{}", bound(self.min), bound(self.max))
    }
}

impl Range {
    pub(crate) fn of(min: Option<Decimal>, max: Option<Decimal>) -> Self {
        Self { min, max }
    }

    pub(crate) fn is_open(self) -> bool {
        self == Self::default()
    }

    /// Its least and its greatest.
    pub(crate) fn bounds(self) -> (Option<Decimal>, Option<Decimal>) {
        (self.min, self.max)
    }

    /// With the bounds of `whole` where it has none.
    pub(crate) fn within(self, whole: Self) -> Self {
        Self {
            min: self.min.or(whole.min),
            max: self.max.or(whole.max),
        }
    }

    /// Whether its least is more than its greatest.
    pub(crate) fn is_reversed(self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if min > max)
    }

    /// Whether all of `other` lies in it.
    pub(crate) fn holds(self, other: Self) -> bool {
        let low = self.min.is_none_or(|min| other.min.is_some_and(|other| min <= other));
        let high = self.max.is_none_or(|max| other.max.is_some_and(|other| other <= max));
        low && high
    }
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
    const COLUMNS: &'static [&'static str] = &["ORGANISATION", "POINT", "GOOD", "BORDERLINE"];

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
                let organization = match &args.organization {
                    Some(text) => Some(names::organization(&connection, text).await?.id),
                    None => None,
                };
                Ok(Output::rows(
                    &load(&connection, organization, None).await?,
                    "There are no thresholds. Set one with: partner-api threshold set ORGANISATION POINT --good MIN..MAX",
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
            "--good: one bound at least is needed, like 50.. or ..4".to_owned(),
        ));
    }
    if let Some(borderline) = args.borderline
        && !borderline.holds(args.good)
    {
        return Err(Failure::Usage(format!(
            "--borderline: {borderline} is not around the good range {}: what is good would lie outside of it",
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
                let like = names::alike(&args.point, &known);
                let like = like
                    .first()
                    .map(|like| format!(" (it has `{like}`)"))
                    .unwrap_or_default();
                what.push_str(&format!(
                    " The test-line form of `{}` has no such point{like}.",
                    organization.slug
                ));
            }
            let id = format!("{}/{}", organization.id, args.point);
            if !changed {
                return Ok(Changed::nothing("threshold", id, what, after));
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
                let known: Vec<_> = all.iter().map(|threshold| threshold.point.clone()).collect();
                return Err(Failure::NotFound {
                    kind: Kind::Threshold,
                    name: args.point.clone(),
                    suggestions: names::alike(&args.point, &known),
                });
            };
            change.execute(REMOVE, &[&organization.id, &args.point]).await?;
            let what = format!(
                "{} of `{}` has no ranges any more: devices are told `no_status`, and its values are not written.",
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

/// The grammar of points, as in measurements (MEA-4).
pub(crate) fn is_point(code: &str) -> bool {
    let first = code.starts_with(|first: char| first.is_ascii_uppercase());
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    first && code.len() <= 64 && code.bytes().all(plain)
}

pub(crate) fn check_point(code: &str) -> Result<(), Failure> {
    if is_point(code) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "`{code}` is no measurement point: it has 1 to 64 of A-Z, 0-9 and _, the first a letter, like BRAKE_FRONT_EFFICIENCY"
    )))
}

pub(crate) fn range(text: &str) -> Result<Range, String> {
    let (min, max) = text
        .split_once("..")
        .ok_or_else(|| "expected MIN..MAX, like -7..7; a bound that is left out is open, like 50..".to_owned())?;
    let range = Range {
        min: bound(min)?,
        max: bound(max)?,
    };
    match (range.min, range.max) {
        (Some(min), Some(max)) if min > max => Err(format!("{min} is more than {max}")),
        _ => Ok(range),
    }
}

fn bound(text: &str) -> Result<Option<Decimal>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.contains(',') {
        return Err(format!(
            "`{text}`: a point stands before decimals, like {}",
            text.replace(',', ".")
        ));
    }
    text.parse().map(Some).map_err(|_| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_says_what_is_wrong_with_it() {
        for (text, expected) in [
            ("50..", Ok("50..")),
            ("..4", Ok("..4")),
            ("-9.50..9.5", Ok("-9.5..9.5")),
            ("50", Err("expected MIN..MAX")),
            ("1,5..2", Err("a point stands before decimals, like 1.5")),
            ("4..3", Err("4 is more than 3")),
            ("low..high", Err("`low` is no number")),
        ] {
            match (range(text), expected) {
                (Ok(range), Ok(expected)) => assert_eq!(range.to_string(), expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{text}: {error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_borderline_range_lies_around_the_good_one() {
        let of = |text| range(text).unwrap();
        for (outer, inner, holds) in [
            ("45..", "50..", true),
            ("45..", "50..60", true),
            ("45..55", "50..", false),
            ("..", "1..2", true),
            ("2..", "..4", false),
            ("-9..9", "-7..7", true),
            ("-7..7", "-7..7", true),
        ] {
            assert_eq!(of(outer).holds(of(inner)), holds, "{outer} around {inner}");
        }
    }
}
