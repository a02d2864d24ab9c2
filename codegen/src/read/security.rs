//! Authentication. The generated code passes it on as data and does not check it.

use crate::error::Problem;
use crate::model::{Requirement, SecurityKind, SecurityScheme};
use crate::node::Node;

/// Reads the security schemes.
///
/// # Errors
/// The first scheme that is invalid.
pub fn schemes(root: &Node<'_>) -> Result<Vec<SecurityScheme>, Problem> {
    let Some(list) = root
        .get("components")
        .and_then(|components| components.get("securitySchemes"))
    else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for (name, place) in list.members()? {
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
        all.push(SecurityScheme {
            name: name.to_string(),
            kind,
        });
    }
    Ok(all)
}

/// Reads the `security` of an operation, or that of the document if the operation has none.
///
/// # Errors
/// If the document does not declare the scheme.
pub fn requirements(root: &Node<'_>, operation: &Node<'_>) -> Result<Vec<Vec<Requirement>>, Problem> {
    let Some(list) = operation.get("security").or_else(|| root.get("security")) else {
        return Ok(Vec::new());
    };
    let known = root
        .get("components")
        .and_then(|components| components.get("securitySchemes"));
    let mut all = Vec::new();
    for alternative in list.items()? {
        let mut together = Vec::new();
        for (name, scopes) in alternative.members()? {
            if known.as_ref().and_then(|known| known.get(name)).is_none() {
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
