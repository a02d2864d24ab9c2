//! Inspectors and their tokens (INS-1 to INS-3).

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use partner_api_domain::inspector_token::{self, InspectorToken};
use partner_api_store::DbError;
use partner_api_store::secrets::new_inspector_token;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::{Output, Row, list, to_json};
use crate::session::{Change, Changed, Query, Session};
use crate::when;

partner_api_store::statement! {
    CREATE = "INSERT INTO inspectors (id, organization_id, name, token_hash, token_hint) VALUES ($1, $2, $3, $4, $5) \
              ON CONFLICT (organization_id, lower(name)) WHERE revoked_at IS NULL DO NOTHING";
    BRANCHES = "INSERT INTO inspector_branches (inspector_id, organization_id, branch_id) SELECT $1, $2, unnest($3::uuid[])";
    LIST = "SELECT i.id, i.name, o.slug AS organization, i.token_hint, i.created_at, i.revoked_at, \
              (SELECT array_agg(b.code ORDER BY b.code) FROM inspector_branches ib \
                JOIN branches b ON b.id = ib.branch_id AND b.organization_id = ib.organization_id \
                WHERE ib.inspector_id = i.id AND ib.organization_id = o.id) AS branches \
            FROM inspectors i JOIN organizations o ON o.id = i.organization_id \
            WHERE ($1::uuid IS NULL OR i.organization_id = $1) AND ($2::uuid IS NULL OR i.id = $2) \
              AND ($3 OR i.revoked_at IS NULL) ORDER BY o.slug, lower(i.name), i.created_at, i.id";
    LEAVE = "DELETE FROM inspector_branches WHERE inspector_id = $1 AND organization_id = $3 AND branch_id <> ALL ($2::uuid[])";
    /// Without `RETURNING`, a distributed database would count rows that it did not insert.
    JOIN = "INSERT INTO inspector_branches (inspector_id, organization_id, branch_id) \
            SELECT i.id, i.organization_id, unnest($2::uuid[]) FROM inspectors i WHERE i.id = $1 \
            ON CONFLICT DO NOTHING RETURNING branch_id";
    REVOKE = "UPDATE inspectors SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
INSPECTOR is a name or ID; BRANCH a code, name or ID; ORGANIZATION a slug, name or ID.

Examples:
  partner-api inspector create 'Ayşe Yılmaz' --branch IZM-01 --branch IZM-02
  partner-api inspector create 'Ayşe Yılmaz' --branch Merkez --organization izmir-vehicle    if the name is ambiguous
  partner-api inspector branches 'Ayşe Yılmaz' --branch IZM-02 --branch IZM-03    the token stays
  partner-api inspector list
  partner-api inspector revoke 'Ayşe Yılmaz'    signed out on every replica at once";

/// Commands on inspectors.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an inspector for some branches; prints the token once
    Create(CreateArgs),
    /// Set the branches at which an inspector works; the token and the sessions stay
    Branches(BranchesArgs),
    /// List inspectors
    List(ListArgs),
    /// Show an inspector
    Show(InspectorArgs),
    /// Revoke an inspector's token and end the sessions, on every replica at once; cannot be undone
    Revoke(InspectorArgs),
}

/// The arguments of `inspector create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The name that reports and histories show
    name: String,
    /// A branch to work at, by code, name or ID; repeatable
    #[arg(long = "branch", value_name = "BRANCH", required = true)]
    branches: Vec<String>,
    /// The organization of the branches, by slug, name or ID; required if several have a branch of that code or name
    #[arg(long, value_name = "ORGANIZATION")]
    organization: Option<String>,
}

/// The arguments of `inspector branches`.
#[derive(Args, Debug)]
pub struct BranchesArgs {
    #[command(flatten)]
    inspector: InspectorArgs,
    /// A branch to work at, by code, name or ID; repeatable. The inspector no longer works at branches that are not given
    #[arg(long = "branch", value_name = "BRANCH", required = true)]
    branches: Vec<String>,
}

/// The options of `inspector list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only of this organization, by slug, name or ID
    organization: Option<String>,
    /// Include revoked inspectors
    #[arg(long)]
    all: bool,
}

/// An inspector.
#[derive(Args, Debug)]
pub struct InspectorArgs {
    /// The name or ID
    inspector: String,
    /// The organization, by slug, name or ID; required if several have an inspector of that name
    #[arg(long, value_name = "ORGANIZATION")]
    organization: Option<String>,
}

/// An inspector without the token.
#[derive(Debug, Serialize)]
struct Inspector {
    id: Uuid,
    name: String,
    organization: String,
    branches: Vec<String>,
    /// The last characters of the token.
    token_hint: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
}

impl Inspector {
    fn token(&self) -> String {
        format!("insp_…{}", self.token_hint)
    }

    /// Returns the command that creates a similar inspector.
    fn recreate_command(&self) -> String {
        let branches: String = self
            .branches
            .iter()
            .map(|code| format!(" --branch {}", quoted(code)))
            .collect();
        format!(
            "partner-api inspector create {}{branches} --organization {}",
            quoted(&self.name),
            quoted(&self.organization)
        )
    }
}

impl Row for Inspector {
    const COLUMNS: &'static [&'static str] = &["NAME", "ORGANIZATION", "BRANCHES", "TOKEN", "CREATED", "REVOKED", "ID"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.organization.clone(),
            list(&self.branches),
            self.token(),
            when::at(self.created_at),
            when::at_or_none(self.revoked_at),
            self.id.to_string(),
        ]
    }
}

/// A new inspector with the token, which is shown only once.
#[derive(Serialize)]
struct NewInspector {
    #[serde(flatten)]
    inspector: Inspector,
    token: String,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create(session, &args).await,
            Self::Branches(args) => set_branches(session, &args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let organization = organization(&connection, args.organization.as_deref()).await?;
                let none = match args.all {
                    true => "There are no inspectors.",
                    false => {
                        "There are no inspectors. Create one with: partner-api inspector create NAME --branch BRANCH (--all lists those that \
                         are revoked)"
                    }
                };
                let only = organization.map(|organization| organization.id);
                Ok(Output::rows(&load(&connection, only, None, args.all).await?, none))
            }
            Self::Show(args) => show(session, &args).await,
            Self::Revoke(args) => revoke(session, &args).await,
        }
    }
}

/// Returns the organization, if one was given.
async fn organization(query: &impl Query, text: Option<&str>) -> Result<Option<names::Organization>, Failure> {
    match text {
        Some(text) => Ok(Some(names::organization(query, text).await?)),
        None => Ok(None),
    }
}

/// Loads inspectors of one organization, of all, or the one with an ID; revoked ones only if `all`.
async fn load(
    query: &impl Query,
    organization: Option<Uuid>,
    id: Option<Uuid>,
    all: bool,
) -> Result<Vec<Inspector>, DbError> {
    let rows = query.query(LIST, &[&organization, &id, &all]).await?;
    rows.iter()
        .map(|row| {
            Ok(Inspector {
                id: row.try_get("id")?,
                name: row.try_get("name")?,
                organization: row.try_get("organization")?,
                branches: row.try_get::<_, Option<_>>("branches")?.unwrap_or_default(),
                token_hint: row.try_get("token_hint")?,
                created_at: row.try_get("created_at")?,
                revoked_at: row.try_get("revoked_at")?,
            })
        })
        .collect()
}

/// Loads the inspector with this ID.
async fn load_one(query: &impl Query, id: Uuid) -> Result<Inspector, Failure> {
    let removed = || Failure::Rejected("the inspector was removed in the meantime".to_owned());
    load(query, None, Some(id), true).await?.pop().ok_or_else(removed)
}

/// Finds an inspector.
async fn find(query: &impl Query, args: &InspectorArgs) -> Result<Inspector, Failure> {
    let organization = organization(query, args.organization.as_deref()).await?;
    let id = names::inspector(query, organization.as_ref(), &args.inspector).await?;
    load_one(query, id).await
}

/// Returns the distinct branches and their organization.
async fn branches(
    change: &Change<'_>,
    only: Option<&str>,
    texts: &[String],
) -> Result<(names::Organization, Vec<Uuid>), Failure> {
    let only = organization(change, only).await?;
    let mut first: Option<names::BranchOfAny> = None;
    let mut ids = Vec::new();
    for text in texts {
        let branch = names::branch_of_any(change, only.as_ref(), text).await?;
        if !ids.contains(&branch.id) {
            ids.push(branch.id);
        }
        match &first {
            Some(first) if first.organization.id != branch.organization.id => {
                return Err(Failure::Rejected(format!(
                    "`{}` is a branch of `{}` and `{}` one of `{}`: an inspector belongs to one organization; create one for each",
                    first.code, first.organization.slug, branch.code, branch.organization.slug
                )));
            }
            Some(_) => {}
            None => first = Some(branch),
        }
    }
    match first {
        Some(branch) => Ok((branch.organization, ids)),
        None => Err(Failure::Usage(
            "an inspector needs at least one branch: --branch BRANCH".to_owned(),
        )),
    }
}

async fn create(session: &Session, args: &CreateArgs) -> Result<Output, Failure> {
    names::check("inspector", &args.name)?;
    session
        .change("inspector create", async |change| {
            let (organization, branches) = branches(change, args.organization.as_deref(), &args.branches).await?;
            let token = new_inspector_token()?;
            let id = Uuid::now_v7();
            let hash = inspector_token::hash(token.expose());
            let row = change
                .execute(
                    CREATE,
                    &[&id, &organization.id, &args.name, &hash.as_slice(), &token.hint()],
                )
                .await?;
            if row == 0 {
                return Err(Failure::Rejected(format!(
                    "inspector `{0}` already exists in `{1}`, and reports identify inspectors by name; show it with: \
                     partner-api inspector show {2} --organization {3}",
                    args.name,
                    organization.slug,
                    quoted(&args.name),
                    quoted(&organization.slug)
                )));
            }
            change.execute(BRANCHES, &[&id, &organization.id, &branches]).await?;
            Ok(created(load_one(change, id).await?, &token))
        })
        .await
}

async fn set_branches(session: &Session, args: &BranchesArgs) -> Result<Output, Failure> {
    session
        .change("inspector branches", async |change| {
            let before = find(change, &args.inspector).await?;
            if before.revoked_at.is_some() {
                let create = before.recreate_command();
                return Err(Failure::Rejected(format!(
                    "the token of inspector `{}` was revoked; create a new one with: {create}",
                    before.name
                )));
            }
            let (organization, ids) = branches(change, Some(before.organization.as_str()), &args.branches).await?;
            let left = change.execute(LEAVE, &[&before.id, &ids, &organization.id]).await?;
            let joined = change.execute(JOIN, &[&before.id, &ids]).await?;
            let after = load_one(change, before.id).await?;
            let now = list(&after.branches);
            if left + joined == 0 {
                let what = format!("Inspector `{}` already works at {now}.", after.name);
                return Ok(Changed::unchanged("inspector", after.id, what, after));
            }
            let what = format!(
                "Inspector `{}` of `{}` now works at {now}.",
                after.name, after.organization
            );
            let again: String = before
                .branches
                .iter()
                .map(|code| format!(" --branch {}", quoted(code)))
                .collect();
            let undo = format!("partner-api inspector branches {}{again}", after.id);
            Ok(Changed::of("inspector", after.id, what, after)
                .before(&before)
                .undo(undo))
        })
        .await
}

/// Creates the change for a new inspector. The token is printed but not written to the audit log.
fn created(inspector: Inspector, token: &InspectorToken) -> Changed<NewInspector> {
    let what = format!(
        "Inspector `{}` of `{}` may write reports of {}.",
        inspector.name,
        inspector.organization,
        list(&inspector.branches)
    );
    let facts = vec![
        ("id", inspector.id.to_string()),
        ("token", token.expose().to_owned()),
        (
            "",
            "Shown only once. Deliver it over a separate channel and do not store a copy.".to_owned(),
        ),
    ];
    let undo = format!("partner-api inspector revoke {}", inspector.id);
    let (id, after) = (inspector.id, to_json(&inspector));
    let new = NewInspector {
        token: token.expose().to_owned(),
        inspector,
    };
    let mut changed = Changed::of("inspector", id, what, new).facts(facts).undo(undo);
    changed.after = Some(after);
    changed
}

async fn show(session: &Session, args: &InspectorArgs) -> Result<Output, Failure> {
    let inspector = find(&session.read().await?, args).await?;
    let facts = [
        ("name", inspector.name.clone()),
        ("id", inspector.id.to_string()),
        ("organization", inspector.organization.clone()),
        ("branches", list(&inspector.branches)),
        ("token", inspector.token()),
        ("created", when::at(inspector.created_at)),
        ("revoked", when::at_or_none(inspector.revoked_at)),
    ];
    Ok(Output::facts(&inspector, &facts))
}

async fn revoke(session: &Session, args: &InspectorArgs) -> Result<Output, Failure> {
    session
        .change("inspector revoke", async |change| {
            let before = find(change, args).await?;
            let changed = change.execute(REVOKE, &[&before.id]).await? > 0;
            let after = load_one(change, before.id).await?;
            if !changed {
                let since = when::at_or_none(after.revoked_at);
                let what = format!(
                    "The token of inspector `{}` was already revoked at {since}.",
                    after.name
                );
                return Ok(Changed::unchanged("inspector", after.id, what, after));
            }
            let what = format!(
                "The token of inspector `{}` of `{}` was revoked and its sessions were ended on every replica.",
                after.name, after.organization
            );
            let undo = format!(
                "cannot be undone: revoked tokens are never reactivated. Create a new one with: {}",
                after.recreate_command()
            );
            Ok(Changed::of("inspector", after.id, what, after)
                .before(&before)
                .undo(undo))
        })
        .await
}
