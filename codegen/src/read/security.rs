//! Authentication. The generated code passes it on as data and does not check it.

use crate::error::Problem;
use crate::model::{Requirement, SecurityKind, SecurityScheme};
use crate::node::Node;

pub fn schemes(root: &Node<'_>) -> Result<Vec<SecurityScheme>, Problem> {
    let mut all = Vec::new();
    for (name, place) in declared(root)? {
        let scheme = place.resolved()?;
        let text = |key: &str| Ok(scheme.need(key)?.text()?.to_string());
        let kind = match scheme.need("type")?.text()? {
            "apiKey" => SecurityKind::ApiKey {
                location: text("in")?,
                name: text("name")?,
            },
            "http" => SecurityKind::Http {
                scheme: text("scheme")?,
            },
            "oauth2" => SecurityKind::OAuth2,
            "openIdConnect" => SecurityKind::OpenIdConnect {
                url: text("openIdConnectUrl")?,
            },
            "mutualTLS" => SecurityKind::MutualTls,
            other => {
                return Err(scheme.reject(format!(
                    "the security scheme type `{other}` does not exist in OpenAPI; use apiKey, http, oauth2 or \
                     openIdConnect"
                )));
            }
        };
        all.push((name.to_string(), kind));
    }
    Ok(all)
}

fn declared<'a>(root: &Node<'a>) -> Result<Vec<(&'a str, Node<'a>)>, Problem> {
    let components = root.get("components");
    components.map_or(Ok(Vec::new()), |it| it.members_of("securitySchemes"))
}

/// Reads the `security` of an operation, or that of the document if the operation has none.
pub fn requirements(root: &Node<'_>, operation: &Node<'_>) -> Result<Vec<Vec<Requirement>>, Problem> {
    let Some(list) = operation.get("security").or_else(|| root.get("security")) else {
        return Ok(Vec::new());
    };
    let known = declared(root)?;
    let mut all = Vec::new();
    for alternative in list.items()? {
        let mut together = Vec::new();
        for (name, scopes) in alternative.members()? {
            if !known.iter().any(|(known, _)| *known == name) {
                return Err(scopes.reject(format!(
                    "the security scheme `{name}` is not defined; define it in components/securitySchemes"
                )));
            }
            let scopes = scopes.items()?;
            let scopes = scopes.iter().map(|scope| scope.text().map(str::to_string));
            together.push(Requirement {
                scheme: name.to_string(),
                scopes: scopes.collect::<Result<_, _>>()?,
            });
        }
        all.push(together);
    }
    Ok(all)
}
