//! References that fit into memory: organizations, branches, templates and their points. An unknown name is an error of its line,
//! with similar names.

use std::collections::{HashMap, HashSet};

use partner_api_domain::branch_code;
use tokio_postgres::Client;
use uuid::Uuid;

use super::value::{CellError, shown, suggestion};

partner_api_store::statement! {
    ORGANIZATIONS = "SELECT id, slug FROM organizations ORDER BY slug";
    BRANCHES = "SELECT id, organization_id, code, code_folded FROM branches";
    TEMPLATES = "SELECT t.id, t.organization_id, t.code, \
                   (SELECT coalesce(array_agg(p.code), '{}') FROM form_template_points p \
                     WHERE p.template_id = t.id AND p.organization_id = t.organization_id) AS points \
                 FROM form_templates t";
}

/// The existing organizations, branches and templates.
#[derive(Debug, Default)]
pub(crate) struct References {
    organizations: HashMap<String, Uuid>,
    slugs: HashMap<Uuid, String>,
    branches: HashMap<(Uuid, String), ByCode>,
    branch_ids: HashMap<Uuid, Uuid>,
    templates: HashMap<(Uuid, String), Uuid>,
    template_ids: HashMap<Uuid, (Uuid, HashSet<String>)>,
}

#[derive(Debug)]
enum ByCode {
    One(Uuid, String),
    Several,
}

impl References {
    pub(crate) async fn load(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let mut references = Self::default();
        for row in client.query(ORGANIZATIONS.sql(), &[]).await? {
            let (id, slug): (Uuid, String) = (row.try_get("id")?, row.try_get("slug")?);
            references.organizations.insert(slug.clone(), id);
            references.slugs.insert(id, slug);
        }
        for row in client.query(BRANCHES.sql(), &[]).await? {
            let (id, organization): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organization_id")?);
            references.branch_ids.insert(id, organization);
            let code: String = row.try_get("code")?;
            references
                .branches
                .entry((organization, row.try_get("code_folded")?))
                .and_modify(|found| *found = ByCode::Several)
                .or_insert(ByCode::One(id, code));
        }
        for row in client.query(TEMPLATES.sql(), &[]).await? {
            let (id, organization): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organization_id")?);
            references.templates.insert((organization, row.try_get("code")?), id);
            let points: Vec<String> = row.try_get("points")?;
            references
                .template_ids
                .insert(id, (organization, points.into_iter().collect()));
        }
        Ok(references)
    }

    pub(crate) fn organization(&self, text: &str) -> Result<Uuid, CellError> {
        if let Some(id) = self.organizations.get(text) {
            return Ok(*id);
        }
        match Uuid::try_parse(text) {
            Ok(id) if self.slugs.contains_key(&id) => Ok(id),
            _ => {
                let slugs: Vec<_> = self.organizations.keys().collect();
                Err(missing(text, "the slug or ID of an existing organization", &slugs))
            }
        }
    }

    pub(crate) fn branch(&self, organization: Uuid, text: &str) -> Result<Uuid, CellError> {
        match self.branches.get(&(organization, branch_code::folded(text))) {
            Some(ByCode::One(id, _)) => return Ok(*id),
            Some(ByCode::Several) => {
                return Err(cell_error(
                    text,
                    "the ID of the branch, because several in the organization have this code".to_owned(),
                ));
            }
            None => {}
        }
        match Uuid::try_parse(text) {
            Ok(id) if self.branch_ids.get(&id) == Some(&organization) => Ok(id),
            _ => {
                let of_it = |(key, found): (&(Uuid, String), &ByCode)| match found {
                    ByCode::One(_, code) if key.0 == organization => Some(code.clone()),
                    _ => None,
                };
                let codes: Vec<_> = self.branches.iter().filter_map(of_it).collect();
                let expected = format!("the code or ID of a branch of `{}`", self.slug(organization));
                Err(missing(text, &expected, &codes))
            }
        }
    }

    pub(crate) fn template(&self, organization: Uuid, text: &str) -> Result<Uuid, CellError> {
        if let Some(id) = self.templates.get(&(organization, text.to_owned())) {
            return Ok(*id);
        }
        match Uuid::try_parse(text) {
            Ok(id) if self.template_ids.get(&id).is_some_and(|(of, _)| *of == organization) => Ok(id),
            _ => {
                let of_it = |(of, _): &&(Uuid, String)| *of == organization;
                let codes: Vec<_> = self.templates.keys().filter(of_it).map(|(_, code)| code).collect();
                let expected = format!("the code or ID of a template of `{}`", self.slug(organization));
                Err(missing(text, &expected, &codes))
            }
        }
    }

    /// Returns whether a template has a point.
    pub(crate) fn point(&self, template: Uuid, code: &str) -> Result<(), CellError> {
        match self.template_ids.get(&template) {
            Some((_, points)) if points.contains(code) => Ok(()),
            Some((_, points)) => {
                let codes: Vec<_> = points.iter().collect();
                Err(missing(code, "the code of a point of the template", &codes))
            }
            None => Ok(()),
        }
    }

    fn slug(&self, organization: Uuid) -> &str {
        self.slugs.get(&organization).map_or("?", String::as_str)
    }
}

fn missing<S: AsRef<str>>(text: &str, expected: &str, known: &[S]) -> CellError {
    cell_error(text, format!("{expected}{}", suggestion(text, known)))
}

fn cell_error(text: &str, expected: String) -> CellError {
    CellError {
        found: Some(shown(text)),
        expected: expected.into(),
    }
}
