//! Finds objects by name or ID (OPS-3), and suggests similar names.

use chrono::{DateTime, Utc};
use partner_api_store::statement::Statement;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::session::Query;

pub(crate) use partner_api_terminal::names::{quoted, similar};

partner_api_store::statement! {
    PARTNER = "SELECT id, name FROM partners WHERE id::text = lower($1) OR name = $1";
    PARTNERS = "SELECT name FROM partners ORDER BY name LIMIT 10000";
    ORGANIZATION = "SELECT id, slug, name FROM organizations WHERE id::text = lower($1) OR slug = $1 OR name = $1";
    ORGANIZATIONS = "SELECT slug FROM organizations ORDER BY slug LIMIT 10000";
    BRANCH = "SELECT id, code FROM branches WHERE organization_id = $1 AND (id::text = lower($2) OR code_folded = $3)";
    BRANCHES = "SELECT code FROM branches WHERE organization_id = $1 ORDER BY code LIMIT 10000";
    /// Branches of one organization or of all.
    BRANCH_OF_ANY = "SELECT b.id, b.code, o.id AS organization_id, o.slug, o.name \
                     FROM branches b JOIN organizations o ON o.id = b.organization_id \
                     WHERE ($1::uuid IS NULL OR o.id = $1) AND (b.id::text = lower($2) OR b.code_folded = $3 OR b.name = $2) \
                     ORDER BY o.slug, b.code LIMIT 10";
    BRANCHES_OF_ANY = "SELECT t.text FROM branches b, LATERAL (VALUES (b.code), (b.name)) t (text) \
                       WHERE $1::uuid IS NULL OR b.organization_id = $1 ORDER BY t.text LIMIT 10000";
    /// Active inspectors first, then revoked ones, latest first.
    INSPECTOR = "SELECT i.id, i.revoked_at, o.slug FROM inspectors i JOIN organizations o ON o.id = i.organization_id \
                 WHERE ($1::uuid IS NULL OR o.id = $1) AND (i.id::text = lower($2) OR lower(i.name) = lower($2)) \
                 ORDER BY i.revoked_at DESC NULLS FIRST, o.slug, i.id LIMIT 10";
    INSPECTORS = "SELECT name FROM inspectors WHERE ($1::uuid IS NULL OR organization_id = $1) AND revoked_at IS NULL \
                  ORDER BY name LIMIT 10000";
    /// By the whole ID or a unique prefix.
    KEY = "SELECT k.key_id, k.partner_id, p.name FROM api_keys k JOIN partners p ON p.id = k.partner_id \
           WHERE k.key_id = $1 OR length($1) >= 8 AND starts_with(k.key_id, $1) ORDER BY k.key_id = $1 DESC LIMIT 3";
    KEYS = "SELECT key_id FROM api_keys ORDER BY created_at DESC LIMIT 10000";
}

/// A partner.
#[derive(Debug)]
pub(crate) struct Partner {
    pub id: Uuid,
    pub name: String,
}

/// An organization.
#[derive(Debug)]
pub(crate) struct Organization {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
}

/// A branch of an organization.
#[derive(Debug)]
pub(crate) struct Branch {
    pub id: Uuid,
    pub code: String,
}

/// A branch and its organization.
#[derive(Debug)]
pub(crate) struct BranchOfAny {
    pub id: Uuid,
    pub code: String,
    pub organization: Organization,
}

/// A key and its partner.
#[derive(Debug)]
pub(crate) struct Key {
    pub id: String,
    pub partner: Partner,
}

pub(crate) async fn partner(query: &impl Query, text: &str) -> Result<Partner, Failure> {
    match query.query(PARTNER, &[&text]).await?.as_slice() {
        [row] => Ok(Partner {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
        }),
        [] => Err(not_found(query, Kind::Partner, text, PARTNERS, &[]).await?),
        several => Err(ambiguous(Kind::Partner, text, several.len())),
    }
}

pub(crate) async fn organization(query: &impl Query, text: &str) -> Result<Organization, Failure> {
    match query.query(ORGANIZATION, &[&text]).await?.as_slice() {
        [row] => Ok(Organization {
            id: row.try_get("id")?,
            slug: row.try_get("slug")?,
            name: row.try_get("name")?,
        }),
        [] => Err(not_found(query, Kind::Organization, text, ORGANIZATIONS, &[]).await?),
        several => Err(ambiguous(Kind::Organization, text, several.len())),
    }
}

pub(crate) async fn branch(query: &impl Query, organization: &Organization, text: &str) -> Result<Branch, Failure> {
    let folded = partner_api_domain::branch_code::folded(text);
    match query
        .query(BRANCH, &[&organization.id, &text, &folded])
        .await?
        .as_slice()
    {
        [row] => Ok(Branch {
            id: row.try_get("id")?,
            code: row.try_get("code")?,
        }),
        [] => Err(not_found(query, Kind::Branch, text, BRANCHES, &[&organization.id]).await?),
        several => Err(ambiguous(Kind::Branch, text, several.len())),
    }
}

/// Finds a branch by code, name or ID, in one organization or in whichever has it.
pub(crate) async fn branch_of_any(
    query: &impl Query,
    organization: Option<&Organization>,
    text: &str,
) -> Result<BranchOfAny, Failure> {
    let only = organization.map(|organization| organization.id);
    let folded = partner_api_domain::branch_code::folded(text);
    let rows = query.query(BRANCH_OF_ANY, &[&only, &text, &folded]).await?;
    match rows.as_slice() {
        [row] => Ok(BranchOfAny {
            id: row.try_get("id")?,
            code: row.try_get("code")?,
            organization: Organization {
                id: row.try_get("organization_id")?,
                slug: row.try_get("slug")?,
                name: row.try_get("name")?,
            },
        }),
        [] => Err(not_found(query, Kind::Branch, text, BRANCHES_OF_ANY, &[&only]).await?),
        several => Err(of_several(Kind::Branch, text, several)?),
    }
}

/// Finds the ID of an inspector by name or ID, in one organization or in whichever has one. A name refers to the inspector
/// whose token is active, or else to the one whose token was revoked last.
pub(crate) async fn inspector(
    query: &impl Query,
    organization: Option<&Organization>,
    text: &str,
) -> Result<Uuid, Failure> {
    let only = organization.map(|organization| organization.id);
    let rows = query.query(INSPECTOR, &[&only, &text]).await?;
    let mut active = Vec::new();
    for row in &rows {
        if row.try_get::<_, Option<DateTime<Utc>>>("revoked_at")?.is_none() {
            active.push(row);
        }
    }
    match (active.as_slice(), rows.first()) {
        ([one], _) => Ok(one.try_get("id")?),
        ([], Some(last)) => Ok(last.try_get("id")?),
        ([], None) => Err(not_found(query, Kind::Inspector, text, INSPECTORS, &[&only]).await?),
        (several, _) => Err(of_several(Kind::Inspector, text, several.iter().copied())?),
    }
}

/// Returns the error for a name that several objects have, in one organization or in several.
fn of_several<'r>(kind: Kind, text: &str, rows: impl IntoIterator<Item = &'r Row>) -> Result<Failure, Failure> {
    let mut slugs: Vec<String> = Vec::new();
    let mut count = 0;
    for row in rows {
        count += 1;
        slugs.push(row.try_get("slug")?);
    }
    slugs.dedup();
    Ok(match slugs.as_slice() {
        [] | [_] => ambiguous(kind, text, count),
        [others @ .., last] => Failure::Usage(format!(
            "`{text}` matches several of kind {kind}, in `{}` and `{last}`; choose with --organization",
            others.join("`, `")
        )),
    })
}

pub(crate) async fn key(query: &impl Query, text: &str) -> Result<Key, Failure> {
    let rows = query.query(KEY, &[&text]).await?;
    let first = match rows.as_slice() {
        [] => return Err(mistyped_key(query, text).await?),
        [first] => first,
        [first, ..] if first.try_get::<_, &str>("key_id")? == text => first,
        several => return Err(ambiguous(Kind::Key, text, several.len())),
    };
    Ok(Key {
        id: first.try_get("key_id")?,
        partner: Partner {
            id: first.try_get("partner_id")?,
            name: first.try_get("name")?,
        },
    })
}

/// Suggests keys that differ in at most two characters. All IDs share a prefix, so similarity of names would match any key.
async fn mistyped_key(query: &impl Query, text: &str) -> Result<Failure, Failure> {
    let mut suggestions = Vec::new();
    for row in query.query(KEYS, &[]).await? {
        let known: String = row.try_get(0)?;
        if strsim::osa_distance(text, &known) <= 2 {
            suggestions.push(known);
        }
    }
    Ok(Failure::NotFound {
        kind: Kind::Key,
        name: text.to_owned(),
        suggestions,
    })
}

fn ambiguous(kind: Kind, name: &str, count: usize) -> Failure {
    Failure::Usage(format!("`{name}` matches {count} or more of kind {kind}; use the ID"))
}

async fn not_found(
    query: &impl Query,
    kind: Kind,
    name: &str,
    all: &'static Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Failure, Failure> {
    let mut known = Vec::new();
    for row in query.query(all, parameters).await? {
        known.push(row.try_get::<_, String>(0)?);
    }
    Ok(Failure::NotFound {
        kind,
        name: name.to_owned(),
        suggestions: similar(name, &known),
    })
}

/// Checks a new name, which must be printable and distinguishable from IDs.
pub(crate) fn check(kind: &str, name: &str) -> Result<(), Failure> {
    match invalid_name(name) {
        None => Ok(()),
        Some(reason) => Err(Failure::Usage(format!(
            "`{name}` cannot be the name of a {kind}: {reason}"
        ))),
    }
}

/// Why a name is not valid.
pub(crate) fn invalid_name(name: &str) -> Option<&'static str> {
    if name.trim() != name || name.is_empty() {
        Some("it is empty, or starts or ends with a space")
    } else if name.chars().count() > 120 {
        Some("it has more than 120 characters")
    } else if name.chars().any(char::is_control) {
        Some("it has unprintable characters")
    } else if Uuid::parse_str(name).is_ok() {
        Some("it looks like an ID")
    } else {
        None
    }
}
