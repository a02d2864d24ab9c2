//! Grants: the organizations and branches that partners can see (REP-2).

use clap::{Args, Subcommand};
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::{Output, Row};
use crate::session::{Change, Changed, Query, Session};

partner_api_store::statement! {
    LIST = "WITH granted AS MATERIALIZED ( \
              SELECT p.name, g.partner_id, g.organization_id, g.all_branches, gb.branch_id \
              FROM grants g JOIN partners p ON p.id = g.partner_id \
              LEFT JOIN grant_branches gb ON gb.partner_id = g.partner_id AND gb.organization_id = g.organization_id \
              WHERE ($1::uuid IS NULL OR g.partner_id = $1)) \
            SELECT g.name AS partner, o.id AS organization_id, o.slug AS organization, g.all_branches, \
              coalesce(array_agg(b.code ORDER BY b.code) FILTER (WHERE b.id IS NOT NULL), '{}') AS branches \
            FROM granted g JOIN organizations o ON o.id = g.organization_id \
            LEFT JOIN branches b ON b.id = g.branch_id AND b.organization_id = o.id \
            GROUP BY g.name, g.partner_id, o.id, o.slug, g.all_branches ORDER BY g.name, o.slug";
    /// Serializes changes to one partner's grants.
    LOCK = "SELECT id FROM partners WHERE id = $1 FOR NO KEY UPDATE";
    WHOLE = "INSERT INTO grants (partner_id, organization_id, all_branches) VALUES ($1, $2, true) \
             ON CONFLICT (partner_id, organization_id) DO UPDATE SET all_branches = true";
    RESTRICTED = "INSERT INTO grants (partner_id, organization_id, all_branches) VALUES ($1, $2, false) \
                  ON CONFLICT (partner_id, organization_id) DO UPDATE SET all_branches = false";
    BRANCH = "INSERT INTO grant_branches (partner_id, organization_id, branch_id) \
              SELECT $1, $2, unnest($3::uuid[]) ON CONFLICT DO NOTHING";
    NO_BRANCHES = "DELETE FROM grant_branches WHERE partner_id = $1 AND organization_id = $2 \
                   AND ($3::uuid[] IS NULL OR branch_id = ANY ($3))";
    REMOVE = "DELETE FROM grants WHERE partner_id = $1 AND organization_id = $2";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
ORGANIZATION is a slug, name or ID; PARTNER a name or ID; BRANCH a code or ID.

Examples:
  partner-api grant add 'Acme Devices' izmir-vehicle                          all branches, including future ones
  partner-api grant add 'Acme Devices' izmir-vehicle --branch IZM-01 --branch IZM-02
  partner-api grant add 'Acme Devices' izmir-vehicle --only --branch IZM-01   only these branches
  partner-api grant remove 'Acme Devices' izmir-vehicle
  partner-api grant list 'Acme Devices'";

/// Commands on grants.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Let a partner see an organization or some of its branches
    Add(AddArgs),
    /// Stop a partner from seeing an organization or some of its branches
    Remove(RemoveArgs),
    /// List what partners can see
    List(ListArgs),
}

/// The arguments of `grant add`.
#[derive(Args, Debug)]
pub struct AddArgs {
    /// The partner, by name or ID
    partner: String,
    /// The organization, by slug, name or ID
    organization: String,
    /// Only this branch, by code or ID; repeatable
    #[arg(long = "branch", value_name = "CODE")]
    branches: Vec<String>,
    /// Replace the branches granted before with the given ones
    #[arg(long, requires = "branches")]
    only: bool,
}

/// The arguments of `grant remove`.
#[derive(Args, Debug)]
pub struct RemoveArgs {
    /// The partner, by name or ID
    partner: String,
    /// The organization, by slug, name or ID
    organization: String,
    /// Only this branch, by code or ID; repeatable
    #[arg(long = "branch", value_name = "CODE")]
    branches: Vec<String>,
}

/// The options of `grant list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only of this partner, by name or ID
    partner: Option<String>,
}

/// The part of an organization that a partner can see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Grant {
    partner: String,
    organization: String,
    organization_id: Uuid,
    all_branches: bool,
    branches: Vec<String>,
}

impl Grant {
    /// One line for `partner show`.
    pub(crate) fn in_a_line(&self) -> String {
        format!("{}: {}", self.organization, self.open())
    }

    fn open(&self) -> String {
        if self.all_branches {
            "all branches".to_owned()
        } else {
            self.branches.join(", ")
        }
    }

    /// Returns the command that restores this grant.
    fn command(&self) -> String {
        let mut command = format!(
            "partner-api grant add {} {}",
            quoted(&self.partner),
            quoted(&self.organization)
        );
        if !self.all_branches {
            command.push_str(" --only");
            for code in &self.branches {
                command.push_str(&format!(" --branch {}", quoted(code)));
            }
        }
        command
    }
}

impl Row for Grant {
    const COLUMNS: &'static [&'static str] = &["PARTNER", "ORGANIZATION", "BRANCHES"];

    fn cells(&self) -> Vec<String> {
        vec![self.partner.clone(), self.organization.clone(), self.open()]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Add(args) => add(session, &args).await,
            Self::Remove(args) => remove(session, &args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let partner = match &args.partner {
                    Some(text) => Some(names::partner(&connection, text).await?.id),
                    None => None,
                };
                Ok(Output::rows(
                    &load(&connection, partner).await?,
                    "There are no grants. Add one with: partner-api grant add PARTNER ORGANIZATION",
                ))
            }
        }
    }
}

/// Loads the grants of one partner or of all.
pub(crate) async fn load(query: &impl Query, partner: Option<Uuid>) -> Result<Vec<Grant>, DbError> {
    let rows = query.query(LIST, &[&partner]).await?;
    rows.iter()
        .map(|row| {
            Ok(Grant {
                partner: row.try_get("partner")?,
                organization: row.try_get("organization")?,
                organization_id: row.try_get("organization_id")?,
                all_branches: row.try_get("all_branches")?,
                branches: row.try_get("branches")?,
            })
        })
        .collect()
}

/// The named partner, organization and branches, with the partner's grants locked.
struct Target {
    partner: names::Partner,
    organization: names::Organization,
    branches: Vec<names::Branch>,
    before: Option<Grant>,
}

async fn find_target(
    change: &Change<'_>,
    partner: &str,
    organization: &str,
    codes: &[String],
) -> Result<Target, Failure> {
    let partner = names::partner(change, partner).await?;
    let organization = names::organization(change, organization).await?;
    let mut branches = Vec::new();
    for code in codes {
        branches.push(names::branch(change, &organization, code).await?);
    }
    change.query(LOCK, &[&partner.id]).await?;
    let before = of(change, &partner, &organization).await?;
    Ok(Target {
        partner,
        organization,
        branches,
        before,
    })
}

async fn of(
    change: &Change<'_>,
    partner: &names::Partner,
    organization: &names::Organization,
) -> Result<Option<Grant>, DbError> {
    let all = load(change, Some(partner.id)).await?;
    Ok(all.into_iter().find(|grant| grant.organization_id == organization.id))
}

async fn add(session: &Session, args: &AddArgs) -> Result<Output, Failure> {
    session
        .change("grant add", async |change| {
            let target = find_target(change, &args.partner, &args.organization, &args.branches).await?;
            let (partner, organization) = (&target.partner, &target.organization);
            if let Some(before) = &target.before
                && before.all_branches
                && !args.branches.is_empty()
                && !args.only
            {
                return Err(Failure::Rejected(format!(
                    "partner `{}` already sees all of `{}`; to restrict it to these branches, add --only",
                    organization.slug, partner.name
                )));
            }
            if target.branches.is_empty() {
                change.execute(WHOLE, &[&partner.id, &organization.id]).await?;
                change
                    .execute(NO_BRANCHES, &[&partner.id, &organization.id, &None::<Vec<Uuid>>])
                    .await?;
            } else {
                change.execute(RESTRICTED, &[&partner.id, &organization.id]).await?;
                if args.only {
                    change
                        .execute(NO_BRANCHES, &[&partner.id, &organization.id, &None::<Vec<Uuid>>])
                        .await?;
                }
                let ids: Vec<Uuid> = target.branches.iter().map(|branch| branch.id).collect();
                change.execute(BRANCH, &[&partner.id, &organization.id, &ids]).await?;
            }
            outcome(change, target).await
        })
        .await
}

async fn remove(session: &Session, args: &RemoveArgs) -> Result<Output, Failure> {
    session
        .change("grant remove", async |change| {
            let target = find_target(change, &args.partner, &args.organization, &args.branches).await?;
            let (partner, organization) = (&target.partner, &target.organization);
            let ids: Vec<Uuid> = target.branches.iter().map(|branch| branch.id).collect();
            let Some(before) = &target.before else {
                return outcome(change, target).await;
            };
            if !ids.is_empty() && before.all_branches {
                return Err(Failure::Rejected(format!(
                    "partner `{1}` sees all of `{0}`; list the branches to keep instead: partner-api grant add {2} {3} \
                     --only --branch CODE …",
                    organization.slug,
                    partner.name,
                    quoted(&partner.name),
                    quoted(&organization.slug)
                )));
            }
            let removes_all = ids.is_empty()
                || before
                    .branches
                    .iter()
                    .all(|code| target.branches.iter().any(|branch| branch.code == *code));
            if removes_all {
                // This also deletes its restriction to branches.
                change.execute(REMOVE, &[&partner.id, &organization.id]).await?;
            } else {
                change
                    .execute(NO_BRANCHES, &[&partner.id, &organization.id, &Some(ids)])
                    .await?;
            }
            outcome(change, target).await
        })
        .await
}

/// Compares the grant with the one before.
async fn outcome(change: &Change<'_>, target: Target) -> Result<Changed<Option<Grant>>, Failure> {
    let Target {
        partner,
        organization,
        before,
        ..
    } = target;
    let after = of(change, &partner, &organization).await?;
    let what = match &after {
        Some(grant) => format!(
            "Partner `{}` sees {} of `{}`.",
            partner.name,
            grant.open(),
            organization.slug
        ),
        None => format!(
            "Partner `{}` sees nothing of `{}` ({}).",
            partner.name, organization.slug, organization.name
        ),
    };
    let id = format!("{}/{}", partner.id, organization.id);
    if before == after {
        return Ok(Changed::unchanged(
            "grant",
            id,
            format!("There was nothing to change: {what}"),
            after,
        ));
    }
    let undo = match &before {
        Some(grant) => grant.command(),
        None => format!(
            "partner-api grant remove {} {}",
            quoted(&partner.name),
            quoted(&organization.slug)
        ),
    };
    let what = format!("{what} Every replica applies this within 5 s.");
    Ok(Changed::of("grant", id, what, after).before(&before).undo(undo))
}
