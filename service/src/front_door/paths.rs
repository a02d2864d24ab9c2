//! Which operation a method and a raw path lead to, for any contract.

use http::Method;

/// An operation that a request leads to.
pub struct Found<R: 'static> {
    /// Its route, of the contract's own table.
    pub route: &'static R,
    /// The path's variables.
    pub variables: Vec<(&'static str, String)>,
}

/// Why a request leads to no operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Unrouted {
    /// The path fits no template.
    NoSuchPath,
    /// The path fits a template that has other methods.
    NoSuchMethod {
        /// The template.
        template: &'static str,
        /// The methods, as `Allow` has them.
        allow: String,
        /// What the caller is told.
        message: String,
    },
}

/// Finds the operation of a method and a raw path; `line` tells a route's method and template.
///
/// # Errors
/// [`Unrouted`].
pub fn find<R>(
    routes: &'static [R],
    line: impl Fn(&R) -> (&'static str, &'static str),
    method: &Method,
    path: &str,
) -> Result<Found<R>, Unrouted> {
    let (mut methods, mut fitting) = (Vec::new(), None);
    for route in routes {
        let (known, template) = line(route);
        let Some(variables) = variables(template, path) else {
            continue;
        };
        if known == method.as_str() {
            return Ok(Found { route, variables });
        }
        methods.push(known);
        fitting = Some(template);
    }
    let Some(template) = fitting else {
        return Err(Unrouted::NoSuchPath);
    };
    methods.sort_unstable();
    let allow = methods.join(", ");
    Err(Unrouted::NoSuchMethod {
        template,
        message: format!("{method} is not allowed; allowed: {allow}"),
        allow,
    })
}

/// The variables of a raw path that is an instance of a template, byte for byte; a variable is one segment without escapes.
pub(super) fn variables(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for wanted in template.split('/') {
        let segment = segments.next()?;
        match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(_) if segment.is_empty() || segment.contains('%') => return None,
            Some(name) => found.push((name, segment.to_string())),
            None if segment != wanted => return None,
            None => {}
        }
    }
    segments.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &[(&str, &str)] = &[("POST", "/a/{id}"), ("GET", "/a"), ("DELETE", "/a/{id}")];

    /// The place of the route that a request line leads to, or why there is none.
    fn led(method: &str, path: &str) -> Result<usize, Unrouted> {
        let found = find(ROUTES, |route| *route, &method.parse().unwrap(), path)?;
        let place = ROUTES.iter().position(|route| std::ptr::eq(route, found.route));
        Ok(place.unwrap())
    }

    #[test]
    fn a_path_of_other_methods_tells_them_in_their_order() {
        assert_eq!(led("GET", "/a"), Ok(1));
        assert_eq!(led("DELETE", "/a/1"), Ok(2));
        assert_eq!(led("GET", "/b"), Err(Unrouted::NoSuchPath));
        assert_eq!(
            led("PUT", "/a/1"),
            Err(Unrouted::NoSuchMethod {
                template: "/a/{id}",
                allow: "DELETE, POST".to_owned(),
                message: "PUT is not allowed; allowed: DELETE, POST".to_owned(),
            })
        );
    }

    #[test]
    fn a_path_fits_its_template_byte_for_byte() {
        let found = variables("/a/{id}/b", "/a/1/b");
        assert_eq!(found, Some(vec![("id", "1".to_string())]));
        for other in [
            "/a/1/b/", "/a//b", "//a/1/b", "/a/1/%62", "/a/%31/b", "/a/1", "/A/1/b", "/a/1/b/c",
        ] {
            assert_eq!(variables("/a/{id}/b", other), None, "{other}");
        }
    }
}
