//! Organizations.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use partner_api_domain::privacy::PiiMode;
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::{Output, Row};
use crate::session::{Changed, Query, Session};
use crate::when;

partner_api_store::statement! {
    /// Without `RETURNING`, a distributed database would count a row that it did not insert.
    CREATE = "INSERT INTO organizations (id, slug, name, pii_mode) SELECT $1, $2, $3, $4 \
              WHERE NOT EXISTS (SELECT 1 FROM organizations WHERE slug = $2) ON CONFLICT DO NOTHING RETURNING id";
    LIST = "SELECT o.id, o.slug, o.name, o.pii_mode, o.needs_review, o.created_at, \
              (SELECT count(*) FROM branches b WHERE b.organization_id = o.id) AS branches \
            FROM organizations o WHERE $1::uuid IS NULL OR o.id = $1 ORDER BY o.slug";
    SET = "UPDATE organizations SET name = coalesce($2, name), pii_mode = coalesce($3, pii_mode), \
             needs_review = coalesce($4, needs_review) WHERE id = $1 \
           AND (name, pii_mode, needs_review) IS DISTINCT FROM \
             (coalesce($2, name), coalesce($3, pii_mode), coalesce($4, needs_review))";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
The privacy mode controls how partners see plates, vehicle numbers and texts: NONE omits personal data, MASKED hides parts, FULL \
shows everything. A stricter mode applies at once, including to existing PDFs.

Examples:
  partner-api organization create 'İzmir Vehicle Inspection' --slug izmir-vehicle
  partner-api organization set izmir-vehicle --pii-mode NONE
  partner-api organization set izmir-vehicle --needs-review true    a second inspector publishes each report
  partner-api organization list";

/// Commands on organizations.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an organization
    Create(CreateArgs),
    /// List all organizations
    List,
    /// Change an organization's name, privacy mode or rule about reviews
    Set(SetArgs),
}

/// The arguments of `organization create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The name
    name: String,
    /// The name in URLs and commands: a-z, 0-9 and hyphens; cannot be changed later
    #[arg(long, value_name = "SLUG", value_parser = slug)]
    slug: String,
    /// How personal data is shown to partners: NONE, MASKED or FULL
    #[arg(long, value_name = "MODE", default_value = "MASKED", value_parser = pii_mode)]
    pii_mode: PiiMode,
}

/// The arguments of `organization set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The organization, by slug, name or ID
    organization: String,
    /// The new name
    #[arg(long, value_name = "NAME", required_unless_present_any = ["pii_mode", "needs_review"])]
    name: Option<String>,
    /// How personal data is shown to partners: NONE, MASKED or FULL
    #[arg(long, value_name = "MODE", value_parser = pii_mode)]
    pii_mode: Option<PiiMode>,
    /// Whether a report is published only after a review, by a second inspector: true or false
    #[arg(long, value_name = "BOOL")]
    needs_review: Option<bool>,
}

/// An organization.
#[derive(Debug, Serialize)]
struct Organization {
    id: Uuid,
    slug: String,
    name: String,
    pii_mode: String,
    needs_review: bool,
    branches: i64,
    created_at: DateTime<Utc>,
}

impl Row for Organization {
    const COLUMNS: &'static [&'static str] = &["SLUG", "NAME", "PRIVACY", "BRANCHES", "CREATED", "ID"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.slug.clone(),
            self.name.clone(),
            self.pii_mode.clone(),
            self.branches.to_string(),
            when::at(self.created_at),
            self.id.to_string(),
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create(session, &args).await,
            Self::List => Ok(Output::rows(
                &load(&session.read().await?, None).await?,
                "There are no organizations. Create one with: partner-api organization create NAME --slug SLUG",
            )),
            Self::Set(args) => set(session, &args).await,
        }
    }
}

async fn load(query: &impl Query, id: Option<Uuid>) -> Result<Vec<Organization>, DbError> {
    let rows = query.query(LIST, &[&id]).await?;
    rows.iter()
        .map(|row| {
            Ok(Organization {
                id: row.try_get("id")?,
                slug: row.try_get("slug")?,
                name: row.try_get("name")?,
                pii_mode: row.try_get("pii_mode")?,
                needs_review: row.try_get("needs_review")?,
                branches: row.try_get("branches")?,
                created_at: row.try_get("created_at")?,
            })
        })
        .collect()
}

async fn load_one(query: &impl Query, id: Uuid) -> Result<Organization, Failure> {
    let removed = || Failure::Rejected("the organization was removed in the meantime".to_owned());
    load(query, Some(id)).await?.pop().ok_or_else(removed)
}

async fn create(session: &Session, args: &CreateArgs) -> Result<Output, Failure> {
    names::check("organization", &args.name)?;
    session
        .change("organization create", async |change| {
            let id = Uuid::now_v7();
            if change
                .execute(CREATE, &[&id, &args.slug, &args.name, &args.pii_mode.as_str()])
                .await?
                == 0
            {
                return Err(Failure::Rejected(format!(
                    "organization `{}` already exists; change it with: partner-api organization set {0}",
                    args.slug
                )));
            }
            let organization = load_one(change, id).await?;
            let what = format!(
                "Organization `{}` was created, privacy mode {}.",
                args.slug, organization.pii_mode
            );
            Ok(Changed::of("organization", id, what, organization)
                .facts(vec![
                    ("id", id.to_string()),
                    (
                        "next",
                        format!("partner-api branch create {} CODE --name NAME --city CITY", args.slug),
                    ),
                ])
                .undo("not needed: no partner sees it until it is granted (partner-api grant add)"))
        })
        .await
}

async fn set(session: &Session, args: &SetArgs) -> Result<Output, Failure> {
    if let Some(name) = &args.name {
        names::check("organization", name)?;
    }
    session
        .change("organization set", async |change| {
            let found = names::organization(change, &args.organization).await?;
            let before = load_one(change, found.id).await?;
            let changed = change
                .execute(
                    SET,
                    &[
                        &found.id,
                        &args.name,
                        &args.pii_mode.map(PiiMode::as_str),
                        &args.needs_review,
                    ],
                )
                .await?
                > 0;
            let after = load_one(change, found.id).await?;
            let review = match after.needs_review {
                true => " Its reports are published after a review, by a second inspector.",
                false => "",
            };
            let what = format!(
                "Organization `{}` has the name `{}` and the privacy mode {}.{review}",
                after.slug, after.name, after.pii_mode
            );
            if !changed {
                return Ok(Changed::unchanged("organization", found.id, what, after));
            }
            let mut undo = format!("partner-api organization set {}", after.slug);
            if before.name != after.name {
                undo.push_str(&format!(" --name {}", quoted(&before.name)));
            }
            if before.pii_mode != after.pii_mode {
                undo.push_str(&format!(" --pii-mode {}", before.pii_mode));
            }
            if before.needs_review != after.needs_review {
                undo.push_str(&format!(" --needs-review {}", before.needs_review));
            }
            Ok(Changed::of("organization", found.id, what, after)
                .before(&before)
                .undo(undo))
        })
        .await
}

fn pii_mode(text: &str) -> Result<PiiMode, String> {
    PiiMode::from_text(&text.to_ascii_uppercase()).ok_or_else(|| "expected NONE, MASKED or FULL".to_owned())
}

/// Parses a slug.
pub(crate) fn slug(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits =
        (1..=64).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-') && !text.ends_with('-');
    if fits {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 64 characters of a-z, 0-9 and inner hyphens, like izmir-vehicle".to_owned())
    }
}
