//! `partner health`, `orgs` and `branches`.

use clap::Args;
use partner_api_client::{Call as _, Client, ClientInfo as _, types};
use partner_api_terminal::names::similar;
use partner_api_terminal::output::{Output, Row, yes};
use partner_api_terminal::when;
use serde::Serialize;

use crate::failure::Failure;
use crate::profile::Connect;

/// The end of the help text of `health`.
pub const HEALTH_EXAMPLES: &str = "\
Examples:
  partner health
  partner --sandbox .sandbox/sandbox.json --as beta health";

/// The end of the help text of `orgs`.
pub const ORGS_EXAMPLES: &str = "\
Examples:
  partner orgs
  partner orgs --json";

/// The end of the help text of `branches`.
pub const BRANCHES_EXAMPLES: &str = "\
Examples:
  partner branches                     of all organizations
  partner branches anadolu --city Ankara
  partner branches anadolu --inactive";

/// The arguments of `branches`.
#[derive(Args, Debug)]
pub struct BranchesArgs {
    /// An organization's slug or ID [default: all that you can access]
    pub organization: Option<String>,
    /// Only branches in this city (exact match)
    #[arg(long)]
    pub city: Option<String>,
    /// List the inactive branches instead
    #[arg(long)]
    pub inactive: bool,
}

/// The service's health and the difference between the clocks.
#[derive(Serialize)]
struct Health {
    #[serde(flatten)]
    health: types::Health,
    /// Seconds by which the service's clock is ahead of this machine's.
    seconds_ahead: i64,
}

pub(crate) async fn health(connect: &Connect) -> Result<Output, Failure> {
    let client = connect.client()?;
    let answer = client.get_health().send().response().await?;
    let seconds_ahead = (answer.server_time - chrono::Utc::now()).num_seconds();
    let clock = match seconds_ahead.abs() {
        0..=2 => "agrees with this machine's".to_owned(),
        ..=300 => format!("{seconds_ahead:+} s from this machine's; at most 300 s are accepted"),
        _ => format!(
            "{seconds_ahead:+} s from this machine's: set the clock; this request was signed with the service's time"
        ),
    };
    let facts = [
        ("status", answer.status.clone()),
        ("address", client.baseurl().to_owned()),
        ("environment", answer.environment.to_string()),
        ("partner", answer.partner.to_string()),
        ("server time", format!("{} ({clock})", when::at(answer.server_time))),
        (
            "quota",
            answer.rate_limit().map_or_else(
                || "-".to_owned(),
                |limit| format!("{} requests left for {} s", limit.remaining, limit.resets_in.as_secs()),
            ),
        ),
    ];
    let health = Health {
        health: (*answer).clone(),
        seconds_ahead,
    };
    Ok(Output::facts(&health, &facts))
}

#[derive(Serialize)]
#[serde(transparent)]
struct Organization(types::Organization);

impl Row for Organization {
    const COLUMNS: &'static [&'static str] = &["SLUG", "NAME", "BRANCHES", "PII MODE", "ID"];

    fn cells(&self) -> Vec<String> {
        let Self(organization) = self;
        vec![
            organization.slug.clone(),
            organization.name.clone(),
            organization.branch_count.to_string(),
            organization.pii_mode.to_string(),
            organization.id.to_string(),
        ]
    }
}

pub(crate) async fn organizations(connect: &Connect) -> Result<Output, Failure> {
    let list = connect
        .client()?
        .list_organizations()
        .send()
        .response()
        .await?
        .into_inner();
    let rows: Vec<_> = list.data.into_iter().map(Organization).collect();
    Ok(Output::rows(
        &rows,
        "You cannot access any organization; ask the operator for a grant.",
    ))
}

#[derive(Serialize)]
struct Branch {
    organization: String,
    #[serde(flatten)]
    branch: types::Branch,
}

impl Row for Branch {
    const COLUMNS: &'static [&'static str] = &["CODE", "NAME", "CITY", "DISTRICT", "ACTIVE", "ORGANIZATION", "ID"];

    fn cells(&self) -> Vec<String> {
        let Self { organization, branch } = self;
        vec![
            branch.code.clone(),
            branch.name.clone(),
            branch.city.clone(),
            branch.district.clone(),
            yes(branch.is_active),
            organization.clone(),
            branch.id.to_string(),
        ]
    }
}

pub(crate) async fn branches(connect: &Connect, args: &BranchesArgs) -> Result<Output, Failure> {
    let client = connect.client()?;
    let organizations = client.list_organizations().send().response().await?.into_inner().data;
    let organizations = match &args.organization {
        None => organizations,
        Some(name) => vec![named(organizations, name)?],
    };
    let mut rows = Vec::new();
    for organization in organizations {
        let branches = branches_of(&client, &organization, args).await?;
        rows.extend(branches.into_iter().map(|branch| Branch {
            organization: organization.slug.clone(),
            branch,
        }));
    }
    Ok(Output::rows(&rows, "No branches match."))
}

async fn branches_of(
    client: &Client,
    organization: &types::Organization,
    args: &BranchesArgs,
) -> Result<Vec<types::Branch>, Failure> {
    let list = client
        .list_branches()
        .org_id(organization.id.to_string())
        .active(!args.inactive);
    let list = match &args.city {
        Some(city) => list.city(city.as_str()),
        None => list,
    };
    Ok(list.send().response().await?.into_inner().data)
}

/// Finds the organization with this slug, name or ID.
pub(crate) fn named(organizations: Vec<types::Organization>, name: &str) -> Result<types::Organization, Failure> {
    let slugs: Vec<_> = organizations
        .iter()
        .map(|organization| organization.slug.clone())
        .collect();
    let is_meant = |organization: &types::Organization| {
        organization.slug == name || organization.name == name || organization.id.to_string() == name
    };
    organizations.into_iter().find(is_meant).ok_or_else(|| {
        let hint = match similar(name, &slugs).first() {
            Some(slug) => format!("did you mean `{slug}`?"),
            None => "list them with: partner orgs".to_owned(),
        };
        Failure::NotFound(format!("you cannot access an organization `{name}`; {hint}"))
    })
}
