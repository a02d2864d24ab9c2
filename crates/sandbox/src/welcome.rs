//! The welcome page that the sandbox serves at `/`: the content of `sandbox.json` for people.

use bytes::Bytes;
use maud::{Markup, html};
use partner_api::gateway::public::SPEC_YAML;
use partner_api_gateway::pages::{Caching, Page};
use serde_json::Value;
use site_builder::{Document, Frame};

use super::fixtures::Fixture;
use super::manifest::{FILE_NAME, Manifest, Partner};

/// Returns the welcome page. It shows the partners' secrets, which give access only to made-up data on this machine.
pub fn page(manifest: &Manifest) -> Page {
    let html = match Document::parse(SPEC_YAML) {
        Ok(document) => Frame::beside_site(&document).page("", "Sandbox", &body(manifest)),
        // The server does not start with an invalid document.
        Err(_) => body(manifest),
    };
    Page {
        content_type: "text/html; charset=utf-8",
        caching: Caching::NoStore,
        body: Bytes::from(html.into_string()),
        gzip: None,
    }
}

fn body(manifest: &Manifest) -> Markup {
    let examples = serde_json::to_value(&manifest.examples).unwrap_or_default();
    html! {
        p {
            "The complete service with a private database, at " code { (manifest.base_url) } ". Organizations, vehicles, reports and "
            "measurements are made up, so the secrets below need no protection. Programs can read all of this from "
            code { (FILE_NAME) } "."
        }
        @if let Some(partner) = manifest.partners.first() { (request(manifest, partner)) }
        section {
            h2 #partners { "Partners" }
            @for partner in &manifest.partners { (of_partner(partner)) }
        }
        (inspectors(manifest))
        section {
            h2 #examples { "Examples" }
            (value_markup(&examples))
        }
        section {
            h2 #fixtures { "Example requests and their responses" }
            p {
                "Send them in this order to get these responses. " code { (FILE_NAME) } " contains the exact bytes of their bodies."
            }
            @for fixture in &manifest.fixtures { (of_fixture(fixture)) }
        }
        section {
            h2 #everything { "Everything else" }
            ul.cards {
                @for (address, title, what) in LINKS {
                    li { a href=(address) { (title) } p { (what) } }
                }
            }
        }
    }
}

const LINKS: [(&str, &str, &str); 8] = [
    (
        "docs/start.html",
        "Getting started",
        "From a key to the first response.",
    ),
    (
        "docs/signing.html",
        "Signing",
        "How to sign a request, with a calculator.",
    ),
    ("docs/kits.html", "Signing kits", "One file for each language."),
    ("docs/reference.html", "Reference", "Every operation."),
    (
        "docs/scenarios.html",
        "Acceptance scenarios",
        "The requests to pass before the go-live.",
    ),
    ("docs/errors.html", "Errors", "The cause and remedy of each code."),
    ("openapi.yaml", "OpenAPI", "The contract, for generators and tools."),
    (
        "docs/postman/partner-api.postman_collection.json",
        "Postman",
        "A collection that signs its requests.",
    ),
];

/// A plate without an open report.
const PLATE: &str = "34 INS 260";

/// Returns the section about the inspectors' page and its pending measurements.
fn inspectors(manifest: &Manifest) -> Markup {
    let (Some(partner), Some(inspector)) = (manifest.partners.first(), manifest.inspectors.first()) else {
        return html! {};
    };
    let branch = inspector.branches.first().map_or("", String::as_str);
    let send = format!(
        "export PARTNER_BASE_URL={}\nexport PARTNER_KEY_ID={}\nexport PARTNER_SECRET={}\n\
         curl --silent --remote-name $PARTNER_BASE_URL/docs/kits/python/partner.py\n\
         python3 partner.py POST /api/v1/partner/test-line/measurements - <<'JSON'\n{}\nJSON",
        manifest.base_url,
        partner.key_id,
        partner.secret,
        serde_json::json!({
            "branch_code": branch,
            "plate": PLATE,
            "measurements": { "BRAKE_FRONT_LEFT": 2.85, "BRAKE_FRONT_RIGHT": 1.62, "SUSP_FRONT_LEFT": 71, "SUSP_FRONT_RIGHT": 48, "SLIP_FRONT": -6.1 },
        }),
    );
    html! {
        section {
            h2 #inspectors { "Inspectors" }
            p {
                "Inspectors write reports at " a href=(manifest.inspectors_url) { (manifest.inspectors_url) }
                ". Sign in with a token:"
            }
            @for inspector in &manifest.inspectors {
                dl.facts {
                    div { dt { (inspector.name) } dd { (inspector.about) } }
                    div { dt { "Token" } dd { code { (inspector.token) } } }
                    div { dt { "Branches" } dd { code { (inspector.branches.join(" ")) } } }
                }
            }
            p { "A measurement for a plate without a report is pending:" }
            pre tabindex="0" role="group" aria-label="A pending measurement" { code { (send) } }
            p {
                "Sign in as " (inspector.name) " and open a report for " code { (PLATE) } " at " code { (branch) }
                ". The page offers the measurement, and one click writes it to the form."
            }
        }
    }
}

/// Returns the section with a request to copy, for two kits.
fn request(manifest: &Manifest, partner: &Partner) -> Markup {
    let key = format!(
        "export PARTNER_BASE_URL={}\nexport PARTNER_KEY_ID={}\nexport PARTNER_SECRET={}",
        manifest.base_url, partner.key_id, partner.secret
    );
    let fetch = |file: &str, run: &str| {
        let (_, name) = file.rsplit_once('/').unwrap_or(("", file));
        format!(
            "{key}\ncurl --silent --remote-name $PARTNER_BASE_URL/docs/kits/{file}\n{run} {name} GET /api/v1/partner/health"
        )
    };
    let kits = [
        ("curl", fetch("curl/partner.sh", "bash")),
        ("Python", fetch("python/partner.py", "python3")),
    ];
    html! {
        section {
            h2 #request { "A request to copy" }
            p { "As " code { (partner.name) } ", in a shell:" }
            div.tabs data-what="A request" {
                @for (name, text) in &kits {
                    section data-tab=(name) {
                        p.tab-title { (name) }
                        pre tabindex="0" role="group" aria-label={ "A request, " (name) } { code { (text) } }
                    }
                }
            }
        }
    }
}

/// Members of a partner that have their own description on the page.
const DESCRIBED_MEMBERS: [&str; 8] = [
    "name",
    "about",
    "key_id",
    "secret",
    "scopes",
    "organizations",
    "branches",
    "rate_limit",
];

fn of_partner(partner: &Partner) -> Markup {
    let members = serde_json::to_value(partner).unwrap_or_default();
    let others = members.as_object().into_iter().flatten();
    let others = others.filter(|(name, _)| !DESCRIBED_MEMBERS.contains(&name.as_str()));
    html! {
        h3 id=(partner.name) { (partner.name) }
        p { (partner.about) }
        dl.facts {
            div { dt { "Key id" } dd { code { (partner.key_id) } } }
            div { dt { "Secret" } dd { code { (partner.secret) } } }
            div { dt { "Scopes" } dd { @if partner.scopes.is_empty() { "none (read only)" } @else { code { (partner.scopes.join(" ")) } } } }
            div { dt { "Access" } dd {
                @match (partner.organizations.len(), &partner.branches) {
                    (0, _) => "none",
                    (1, None) => "one organization, all branches",
                    (many, None) => { (many) " organizations, all branches" },
                    (_, Some(branches)) => { (branches.len()) " branches of one organization" },
                }
            } }
            div { dt { "Limit" } dd { (partner.rate_limit) " requests per minute" } }
            @for (name, value) in others { div { dt { (name.replace('_', " ")) } dd { (value_markup(value)) } } }
        }
    }
}

/// Returns an example request with its expected response.
fn of_fixture(fixture: &Fixture) -> Markup {
    let status = fixture.status.to_string();
    let headers = fixture.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
    let body = fixture.body.as_deref().unwrap_or_default();
    let request = format!(
        "{} {}\n{}\n{body}",
        fixture.method,
        fixture.target,
        headers.collect::<String>()
    );
    html! {
        details.response {
            summary { span.status data-class=(&status[..1]) { (status) } " " (fixture.about) }
            p {
                "As " a href={ "#" (fixture.partner) } { (fixture.partner) }
                @if fixture.times > 1 { ", " (fixture.times) " times" }
                ":"
            }
            pre tabindex="0" role="group" aria-label={ "Request of " (fixture.name) } { code { (request.trim_end()) } }
            @if !fixture.holds.is_null() {
                p { "The response contains:" }
                pre tabindex="0" role="group" aria-label={ "Response of " (fixture.name) } {
                    code { (serde_json::to_string_pretty(&fixture.holds).unwrap_or_default()) }
                }
            }
        }
    }
}

/// Renders any value of `sandbox.json`.
fn value_markup(value: &Value) -> Markup {
    match value {
        Value::Object(members) => html! {
            dl.facts { @for (name, value) in members { div { dt { (name.replace('_', " ")) } dd { (value_markup(value)) } } } }
        },
        Value::Array(values) => html! { ul { @for value in values { li { (value_markup(value)) } } } },
        Value::String(text) if text.contains(' ') => html! { (text) },
        Value::String(text) => html! { code { (text) } },
        Value::Null => html! { "none" },
        other => html! { code { (other) } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{SEED, dataset};
    use crate::inspectors::Inspector;

    /// SVC-9
    #[test]
    fn the_page_shows_keys_examples_and_fixtures_and_is_not_cached() {
        let partner = Partner {
            name: "alpha".to_owned(),
            about: "It sends.".to_owned(),
            key_id: "vip_test_A".to_owned(),
            secret: "S<3".to_owned(),
            scopes: Vec::new(),
            organizations: Vec::new(),
            branches: None,
            rate_limit: 60,
        };
        let inspector = Inspector {
            name: "Ayşe".to_owned(),
            about: "She works.".to_owned(),
            token: "insp_T".to_owned(),
            organization: "kuzey-yildizi".to_owned(),
            branches: vec!["IST-KADIKOY".to_owned()],
        };
        let manifest = Manifest::new(&dataset(SEED), "http://127.0.0.1:8080", vec![partner], vec![inspector]);
        let page = page(&manifest);
        assert_eq!(page.caching, Caching::NoStore);
        let html = std::str::from_utf8(&page.body).expect("text");
        let Value::Object(examples) = serde_json::to_value(&manifest.examples).expect("JSON") else {
            panic!("an object");
        };
        let texts = examples.values().filter_map(Value::as_str);
        for shown in texts.chain([
            "vip_test_A",
            "S&lt;3",
            "insp_T",
            "60 requests per minute",
            "http://127.0.0.1:8080",
        ]) {
            assert!(html.contains(shown), "{shown}: {html}");
        }
        for fixture in &manifest.fixtures {
            assert!(
                html.contains(&format!("Request of {}\"", fixture.name)),
                "{}",
                fixture.name
            );
        }
        assert!(!manifest.fixtures.is_empty());
        let open_report = &manifest.examples.open_report;
        assert!(html.contains(&open_report.plate) && html.contains(&open_report.branch_code));
    }
}
