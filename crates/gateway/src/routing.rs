//! Lookup of the operation for a method and a raw path.

use codegen_runtime::param::variables;
use http::Method;

use crate::{ApiError, Contract, Outcome};

/// The operation of a request.
pub(super) struct Found<R: 'static> {
    /// The route, from the contract's table.
    pub route: &'static R,
    /// The variables of the path.
    pub variables: Vec<(&'static str, String)>,
}

/// Finds the operation for a method and a raw path, and the template of the path. The error is 404 if no template matches, or 405
/// with the methods of the path if the path does not have this method.
pub(super) fn find<C: Contract>(method: &Method, path: &str) -> (&'static str, Outcome<Found<C::Route>, C>) {
    let describe = |route: &C::Route| {
        let operation = C::operation(route);
        (operation.method, operation.path)
    };
    match lookup(C::routes(), describe, method, path) {
        Lookup::Found(found) => (describe(found.route).1, Ok(found)),
        Lookup::OtherMethods { template, allowed } => {
            let mut error = ApiError::method_not_allowed(method, allowed);
            if let Some(hint) = C::method_hint(method, template) {
                error.message = format!("{}; {hint}", error.message);
            }
            (template, Err(error))
        }
        Lookup::UnknownPath => {
            let (template, error) = C::unknown_path(path);
            (template, Err(error))
        }
    }
}

enum Lookup<R: 'static> {
    Found(Found<R>),
    /// The path matches a template that has other methods.
    OtherMethods {
        template: &'static str,
        /// The methods, in the format of `Allow`.
        allowed: String,
    },
    /// The path matches no template.
    UnknownPath,
}

/// Looks up a method and a raw path. `describe` returns the method and the template of a route.
fn lookup<R>(
    routes: &'static [R],
    describe: impl Fn(&R) -> (&'static str, &'static str),
    method: &Method,
    path: &str,
) -> Lookup<R> {
    let (mut methods, mut matching) = (Vec::new(), None);
    for route in routes {
        let (known, template) = describe(route);
        let Some(variables) = variables(template, path) else {
            continue;
        };
        if known == method.as_str() {
            return Lookup::Found(Found { route, variables });
        }
        methods.push(known);
        matching = Some(template);
    }
    let Some(template) = matching else {
        return Lookup::UnknownPath;
    };
    methods.sort_unstable();
    Lookup::OtherMethods {
        template,
        allowed: methods.join(", "),
    }
}

/// Returns a suggestion for a path that matches no template, if a single change makes it match one.
pub fn near_miss<C: Contract>(path: &str) -> Option<&'static str> {
    // Splitting keeps the cost linear even for a path that consists only of slashes.
    let single = path.split('/').filter(|segment| !segment.is_empty());
    let single = format!("/{}", single.collect::<Vec<_>>().join("/"));
    let unescaped = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let candidates = [
        (path.trim_end_matches('/').to_string(), "remove the trailing slash"),
        (single, "remove the doubled slash"),
        (unescaped.into_owned(), "write it without percent escapes"),
        (path.to_ascii_lowercase(), "write it in lower case"),
    ];
    let matches = |path: &str| {
        let mut routes = C::routes().iter();
        routes.any(|route| variables(C::operation(route).path, path).is_some())
    };
    let found = candidates.into_iter().find(|(candidate, _)| matches(candidate));
    found.map(|(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    static ROUTES: &[(&str, &str)] = &[("POST", "/a/{id}"), ("GET", "/a"), ("DELETE", "/a/{id}")];

    fn found(method: &str, path: &str) -> Lookup<(&'static str, &'static str)> {
        lookup(ROUTES, |route| *route, &method.parse().unwrap(), path)
    }

    #[test]
    fn the_methods_of_a_path_are_listed_in_order() {
        for (method, path, expected) in [("GET", "/a", &ROUTES[1]), ("DELETE", "/a/1", &ROUTES[2])] {
            let Lookup::Found(found) = found(method, path) else {
                panic!("{method} {path}")
            };
            assert!(std::ptr::eq(expected, found.route), "{method} {path}");
        }
        assert!(matches!(found("GET", "/b"), Lookup::UnknownPath));
        let Lookup::OtherMethods { template, allowed } = found("PUT", "/a/1") else {
            panic!("another method")
        };
        assert_eq!((template, allowed.as_str()), ("/a/{id}", "DELETE, POST"));
    }
}
