//! The sandbox's inspectors, who can sign in to the inspectors' page.

use partner_api_domain::inspector_token::{self, InspectorToken, RANDOM_BYTES};
use partner_api_store::connection::Connection;
use partner_api_store::secrets::MasterKey;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SandboxError;
use super::catalog::places::{FULL, MASKED};
use super::data::{Branch, Dataset};

partner_api_store::statement! {
    INSPECTOR = "INSERT INTO inspectors (id, organization_id, name, token_hash, token_hint) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT DO NOTHING";
    BRANCHES = "INSERT INTO inspector_branches (inspector_id, organization_id, branch_id) SELECT $1, $2, unnest($3::uuid[])";
}

/// The purpose string for deriving the tokens from the master key.
const PURPOSE: &str = "partner-api/sandbox-inspectors/v1/";

/// An inspector and the token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inspector {
    /// The name, as it appears in reports.
    pub name: String,
    /// A description.
    pub about: String,
    /// The token to sign in with.
    pub token: String,
    /// Slug of the organization.
    pub organization: String,
    /// Codes of the branches.
    pub branches: Vec<String>,
}

struct InspectorSpec {
    name: &'static str,
    about: &'static str,
    organization: usize,
    codes: &'static [&'static str],
}

const INSPECTORS: [InspectorSpec; 2] = [
    InspectorSpec {
        name: "Ayşe Yılmaz",
        about: "Works at four branches of one organization. Some of their drafts have pending measurements.",
        organization: MASKED,
        codes: &["IST-KADIKOY", "IST-BESIKTAS", "IST-UMRANIYE", "ANK-CANKAYA"],
    },
    InspectorSpec {
        name: "Mehmet Demir",
        about: "Works at one branch of another organization and cannot see the first organization's reports.",
        organization: FULL,
        codes: &["GAZ-SEHITKAMIL"],
    },
];

/// Returns the inspectors with their tokens.
pub(crate) fn all(data: &Dataset, master_key: &MasterKey) -> Vec<Inspector> {
    let with_token = |spec: &InspectorSpec| Inspector {
        name: spec.name.to_owned(),
        about: spec.about.to_owned(),
        token: token(spec, master_key).expose().to_owned(),
        organization: data.organizations[spec.organization].slug.to_owned(),
        branches: spec.codes.iter().map(|code| (*code).to_owned()).collect(),
    };
    INSPECTORS.iter().map(with_token).collect()
}

/// Inserts the inspectors that do not exist. A revoked inspector stays revoked.
pub(crate) async fn ensure(
    connection: &Connection,
    data: &Dataset,
    master_key: &MasterKey,
) -> Result<(), SandboxError> {
    for spec in &INSPECTORS {
        let token = token(spec, master_key);
        let (id, hash) = (Uuid::now_v7(), inspector_token::hash(token.expose()));
        let organization = data.organizations[spec.organization].id;
        let is_theirs =
            |branch: &&Branch| branch.organization == spec.organization && spec.codes.contains(&branch.code);
        let branches: Vec<Uuid> = data.branches.iter().filter(is_theirs).map(|branch| branch.id).collect();
        let transaction = connection.transaction();
        let insert = transaction.prepare(INSPECTOR).await?;
        let bind = transaction.prepare(BRANCHES).await?;
        let inserted = transaction
            .execute(
                &insert,
                &[&id, &organization, &spec.name, &hash.as_slice(), &token.hint()],
            )
            .await?;
        if inserted > 0 {
            transaction.execute(&bind, &[&id, &organization, &branches]).await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}

/// Derives an inspector's token. The database does not store tokens; a derived one is the same at each start.
fn token(spec: &InspectorSpec, master_key: &MasterKey) -> InspectorToken {
    let derived = master_key.derive(&format!("{PURPOSE}{}", spec.name));
    let mut random = [0; RANDOM_BYTES];
    random.copy_from_slice(&derived.signing()[..RANDOM_BYTES]);
    InspectorToken::generate(&random)
}
