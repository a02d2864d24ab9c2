//! The sandbox's inspectors: who may sign in to the page for inspectors, and where they work.

use partner_api_domain::inspector_token::{self, InspectorToken, RANDOM_BYTES};
use partner_api_store::connection::Connection;
use partner_api_store::secrets::MasterKey;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SandboxError;
use super::catalogue::places::{FULL, MASKED};
use super::data::{Branch, Dataset};

partner_api_store::statement! {
    INSPECTOR = "INSERT INTO inspectors (id, organization_id, name, token_hash, token_hint) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT DO NOTHING";
    BRANCHES = "INSERT INTO inspector_branches (inspector_id, organization_id, branch_id) SELECT $1, $2, unnest($3::uuid[])";
}

/// What tokens are derived for.
const PURPOSE: &str = "partner-api/sandbox-inspectors/v1/";

/// An inspector with the token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inspector {
    /// The name, as it stands in reports.
    pub name: String,
    /// What the inspector is for, as a sentence.
    pub about: String,
    /// The token to sign in with.
    pub token: String,
    /// Slug of the organisation.
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
        about: "Works at four branches of one organization; measurements wait for some of their drafts.",
        organization: MASKED,
        codes: &["IST-KADIKOY", "IST-BESIKTAS", "IST-UMRANIYE", "ANK-CANKAYA"],
    },
    InspectorSpec {
        name: "Mehmet Demir",
        about: "Works at one branch of another organization, and sees nothing of the first one's.",
        organization: FULL,
        codes: &["GAZ-SEHITKAMIL"],
    },
];

/// The inspectors with their tokens.
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

/// Makes the inspectors unless they are there. One that was revoked stays so.
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
        let made = transaction
            .execute(
                &insert,
                &[&id, &organization, &spec.name, &hash.as_slice(), &token.hint()],
            )
            .await?;
        if made > 0 {
            transaction.execute(&bind, &[&id, &organization, &branches]).await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}

/// The database keeps no token; this one is the same at each start.
fn token(spec: &InspectorSpec, master_key: &MasterKey) -> InspectorToken {
    let derived = master_key.derive(&format!("{PURPOSE}{}", spec.name));
    let mut random = [0; RANDOM_BYTES];
    random.copy_from_slice(&derived.signing()[..RANDOM_BYTES]);
    InspectorToken::generate(&random)
}
