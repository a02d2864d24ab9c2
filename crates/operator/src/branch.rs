//! Branches of organizations.

use clap::{Args, Subcommand};
use partner_api_domain::branch_code;
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::{Output, Row, yes};
use crate::session::{Changed, Query, Session};

partner_api_store::statement! {
    /// Branches with the same code: a measurement is rejected if its partner sees several of them (MEA-1).
    SAME_CODE = "SELECT o.slug, b.code FROM branches b JOIN organizations o ON o.id = b.organization_id \
                 WHERE b.code_folded = $1 ORDER BY o.slug";
    CREATE = "INSERT INTO branches (id, organization_id, code, code_folded, name, city, district, address, telephone) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    LIST = "SELECT b.id, o.slug AS organization, b.code, b.name, b.city, b.district, b.address, b.telephone, b.is_active \
            FROM branches b JOIN organizations o ON o.id = b.organization_id \
            WHERE ($1::uuid IS NULL OR b.organization_id = $1) AND ($2::uuid IS NULL OR b.id = $2) ORDER BY o.slug, b.code, b.id";
    SET = "UPDATE branches SET name = coalesce($2, name), city = coalesce($3, city), district = coalesce($4, district), \
             is_active = coalesce($5, is_active), address = coalesce($6, address), telephone = coalesce($7, telephone) \
           WHERE id = $1 AND organization_id = $8 AND (name, city, district, is_active, address, telephone) IS DISTINCT FROM \
             (coalesce($2, name), coalesce($3, city), coalesce($4, district), coalesce($5, is_active), \
              coalesce($6, address), coalesce($7, telephone))";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
ORGANIZATION is a slug, name or ID; BRANCH is a code or ID.

Examples:
  partner-api branch create izmir-vehicle IZM-01 --name 'İzmir Bornova' --city İzmir --district Bornova
  partner-api branch set izmir-vehicle IZM-01 --address 'Kazımdirik Mah. 372 Sok. No: 14' --telephone '0232 555 01 04'
  partner-api branch set izmir-vehicle IZM-01 --active false     shown to partners; its reports stay visible
  partner-api branch list izmir-vehicle                          --json also has addresses and telephone numbers";

/// Commands on branches.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a branch
    Create(CreateArgs),
    /// List branches
    List(ListArgs),
    /// Change a branch
    Set(SetArgs),
}

/// The arguments of `branch create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The organization, by slug, name or ID
    organization: String,
    /// The code that devices send; letter case does not count
    code: String,
    /// The name
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The city
    #[arg(long, value_name = "CITY")]
    city: String,
    /// The district
    #[arg(long, value_name = "DISTRICT", default_value = "")]
    district: String,
    /// The street address for reports, without district and city
    #[arg(long, value_name = "ADDRESS", default_value = "")]
    address: String,
    /// The telephone number for reports
    #[arg(long, value_name = "NUMBER", default_value = "")]
    telephone: String,
}

/// The options of `branch list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only of this organization, by slug, name or ID
    organization: Option<String>,
}

/// The arguments of `branch set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The organization, by slug, name or ID
    organization: String,
    /// The branch, by code or ID
    branch: String,
    /// The new name
    #[arg(long, value_name = "NAME", required_unless_present_any = ["city", "district", "address", "telephone", "active"])]
    name: Option<String>,
    /// The new city
    #[arg(long, value_name = "CITY")]
    city: Option<String>,
    /// The new district
    #[arg(long, value_name = "DISTRICT")]
    district: Option<String>,
    /// The new street address for reports, without district and city
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// The new telephone number for reports
    #[arg(long, value_name = "NUMBER")]
    telephone: Option<String>,
    /// Whether the branch is active
    #[arg(long, value_name = "true|false")]
    active: Option<bool>,
}

/// A branch.
#[derive(Debug, Serialize)]
struct Branch {
    id: Uuid,
    organization: String,
    code: String,
    name: String,
    city: String,
    district: String,
    address: String,
    telephone: String,
    is_active: bool,
}

impl Row for Branch {
    const COLUMNS: &'static [&'static str] = &["ORGANIZATION", "CODE", "NAME", "CITY", "DISTRICT", "ACTIVE", "ID"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.organization.clone(),
            self.code.clone(),
            self.name.clone(),
            self.city.clone(),
            self.district.clone(),
            yes(self.is_active),
            self.id.to_string(),
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create(session, &args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let organization = match &args.organization {
                    Some(text) => Some(names::organization(&connection, text).await?.id),
                    None => None,
                };
                Ok(Output::rows(
                    &load(&connection, organization, None).await?,
                    "There are no branches. Create one with: partner-api branch create ORGANIZATION CODE --name NAME --city CITY",
                ))
            }
            Self::Set(args) => set(session, &args).await,
        }
    }
}

async fn load(query: &impl Query, organization: Option<Uuid>, id: Option<Uuid>) -> Result<Vec<Branch>, DbError> {
    let rows = query.query(LIST, &[&organization, &id]).await?;
    rows.iter()
        .map(|row| {
            Ok(Branch {
                id: row.try_get("id")?,
                organization: row.try_get("organization")?,
                code: row.try_get("code")?,
                name: row.try_get("name")?,
                city: row.try_get("city")?,
                district: row.try_get("district")?,
                address: row.try_get("address")?,
                telephone: row.try_get("telephone")?,
                is_active: row.try_get("is_active")?,
            })
        })
        .collect()
}

async fn load_one(query: &impl Query, organization: Uuid, id: Uuid) -> Result<Branch, Failure> {
    let removed = || Failure::Rejected("the branch was removed in the meantime".to_owned());
    load(query, Some(organization), Some(id))
        .await?
        .pop()
        .ok_or_else(removed)
}

async fn create(session: &Session, args: &CreateArgs) -> Result<Output, Failure> {
    names::check("branch", &args.code)?;
    names::check("branch", &args.name)?;
    check_printed("address", &args.address)?;
    check_printed("telephone", &args.telephone)?;
    session
        .change("branch create", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            let folded = branch_code::folded(&args.code);
            let mut elsewhere = Vec::new();
            for row in change.query(SAME_CODE, &[&folded]).await? {
                let slug: String = row.try_get("slug")?;
                if slug == organization.slug {
                    return Err(Failure::Rejected(format!(
                        "`{slug}` already has a branch `{}`; change it with: partner-api branch set {slug} {}",
                        row.try_get::<_, String>("code")?,
                        quoted(&args.code)
                    )));
                }
                elsewhere.push(slug);
            }
            let id = Uuid::now_v7();
            change
                .execute(
                    CREATE,
                    &[
                        &id,
                        &organization.id,
                        &args.code,
                        &folded,
                        &args.name,
                        &args.city,
                        &args.district,
                        &args.address,
                        &args.telephone,
                    ],
                )
                .await?;
            let branch = load_one(change, organization.id, id).await?;
            let mut what = format!("Branch `{}` of `{}` was created.", args.code, organization.slug);
            if !elsewhere.is_empty() {
                what.push_str(&format!(
                    " {} has one of the same code: a device of a partner who sees both gets its measurements rejected until the codes differ.",
                    elsewhere.join(", ")
                ));
            }
            Ok(Changed::of("branch", id, what, branch)
                .facts(vec![("id", id.to_string())])
                .undo(format!("partner-api branch set {} {} --active false", organization.slug, quoted(&args.code))))
        })
        .await
}

async fn set(session: &Session, args: &SetArgs) -> Result<Output, Failure> {
    if let Some(name) = &args.name {
        names::check("branch", name)?;
    }
    for (option, value) in [("address", &args.address), ("telephone", &args.telephone)] {
        if let Some(value) = value {
            check_printed(option, value)?;
        }
    }
    session
        .change("branch set", async |change| {
            let organization = names::organization(change, &args.organization).await?;
            let found = names::branch(change, &organization, &args.branch).await?;
            let before = load_one(change, organization.id, found.id).await?;
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 8] = [
                &found.id,
                &args.name,
                &args.city,
                &args.district,
                &args.active,
                &args.address,
                &args.telephone,
                &organization.id,
            ];
            let changed = change.execute(SET, &parameters).await? > 0;
            let after = load_one(change, organization.id, found.id).await?;
            let works = if after.is_active { "active" } else { "not active" };
            let mut what = format!(
                "Branch `{}` of `{}`: `{}`, {} {}, {works}",
                after.code, after.organization, after.name, after.city, after.district
            );
            for printed in [&after.address, &after.telephone] {
                if !printed.is_empty() {
                    what.push_str(&format!(", {printed}"));
                }
            }
            what.push('.');
            if !changed {
                return Ok(Changed::unchanged("branch", found.id, what, after));
            }
            let mut undo = format!("partner-api branch set {} {}", organization.slug, quoted(&found.code));
            for (flag, old, new) in [
                ("name", &before.name, &after.name),
                ("city", &before.city, &after.city),
                ("district", &before.district, &after.district),
                ("address", &before.address, &after.address),
                ("telephone", &before.telephone, &after.telephone),
            ] {
                if old != new {
                    undo.push_str(&format!(" --{flag} {}", quoted(old)));
                }
            }
            if before.is_active != after.is_active {
                undo.push_str(&format!(" --active {}", before.is_active));
            }
            Ok(Changed::of("branch", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

/// Checks that a text can be printed on a report.
fn check_printed(option: &str, text: &str) -> Result<(), Failure> {
    if text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err(Failure::Usage(format!(
            "--{option}: expected one line of up to 200 printable characters"
        )));
    }
    Ok(())
}
