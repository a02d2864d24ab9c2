//! Who may call: data that is handed on, for nothing of it is checked by generated code.

use crate::Problem;
use crate::model::{Requirement, SecurityKind, SecurityScheme};
use crate::node::Node;

/// Reads the schemes.
///
/// # Errors
/// What is no security scheme, with its place.
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
                return Err(scheme.refuse(format!(
                    "a security scheme of type `{other}` is unknown; use apiKey, http, oauth2 or openIdConnect"
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

/// Reads what an operation asks of its callers: one of several lists of schemes. None of its own is the document's.
///
/// # Errors
/// A scheme that the document does not have.
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
                return Err(scopes.refuse(format!(
                    "`{name}` is no security scheme of this document; define it under components/securitySchemes"
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
