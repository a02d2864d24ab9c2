//! The page that the sandbox serves at `/`: what `sandbox.json` says, to be read by people.

use bytes::Bytes;
use maud::{Markup, html};
use partner_api::gateway::public::SPEC_YAML;
use partner_api_gateway::pages::{Keep, Page};
use serde_json::Value;
use site_builder::{Document, Frame};

use super::fixtures::Fixture;
use super::manifest::{FILE_NAME, Manifest, Partner};

/// The page of a sandbox. It shows the partners' secrets, which open nothing but made-up data on this machine.
pub fn page(manifest: &Manifest) -> Page {
    let html = match Document::parse(SPEC_YAML) {
        Ok(document) => Frame::beside_site(&document).page("", "Sandbox", &body(manifest)),
        // The server does not start with such a document.
        Err(_) => body(manifest),
    };
    Page {
        content_type: "text/html; charset=utf-8",
        keep: Keep::Never,
        body: Bytes::from(html.into_string()),
        gzip: None,
    }
}

fn body(manifest: &Manifest) -> Markup {
    let examples = serde_json::to_value(&manifest.examples).unwrap_or_default();
    html! {
        p {
            "The whole service with a database of its own, at " code { (manifest.base_url) } ". Organizations, vehicles, reports and "
            "measurements are made up; so it does not matter who sees the secrets below. Programs find all of this in "
            code { (FILE_NAME) } "."
        }
        @if let Some(partner) = manifest.partners.first() { (request(manifest, partner)) }
        section {
            h2 #partners { "Partners" }
            @for partner in &manifest.partners { (of_partner(partner)) }
        }
        (inspectors(manifest))
        section {
            h2 #examples { "To try" }
            (shown(&examples))
        }
        section {
            h2 #fixtures { "Each answer, and the request that brings it about" }
            p {
                "In this order each shows what it says. A program takes them from " code { (FILE_NAME) } ", where their bodies are byte "
                "for byte."
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
    ("docs/start.html", "Getting started", "From a key to the first answer."),
    (
        "docs/signing.html",
        "Signing",
        "How a request is signed, with a calculator.",
    ),
    ("docs/kits.html", "Signing kits", "One file for each language."),
    ("docs/reference.html", "Reference", "Every operation."),
    (
        "docs/scenarios.html",
        "Acceptance scenarios",
        "What decides on going live.",
    ),
    ("docs/errors.html", "Errors", "Cause and remedy of each code."),
    ("openapi.yaml", "OpenAPI", "The document, for generators and tools."),
    (
        "docs/postman/partner-api.postman_collection.json",
        "Postman",
        "A collection that signs.",
    ),
];

/// A plate that no report is open for.
const PLATE: &str = "34 INS 260";

/// The page for inspectors, and how a measurement is met there.
fn inspectors(manifest: &Manifest) -> Markup {
    let (Some(partner), Some(inspector)) = (manifest.partners.first(), manifest.inspectors.first()) else {
        return html! {};
    };
    let branch = inspector.branches.first().map_or("", String::as_str);
    let send = format!(
        "export PARTNER_BASE_URL={}\nexport PARTNER_KEY_ID={}\nexport PARTNER_SECRET={}\n\
         curl --silent --remote-name $PARTNER_BASE_URL/docs/kits/python/partner.py\n\
         python3 partner.py POST /api/v1/partner/test-line/measurements '{}'",
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
                ", on the listener that the public never reaches. Sign in with a token:"
            }
            @for inspector in &manifest.inspectors {
                dl.facts {
                    div { dt { (inspector.name) } dd { (inspector.about) } }
                    div { dt { "Token" } dd { code { (inspector.token) } } }
                    div { dt { "Branches" } dd { code { (inspector.branches.join(" ")) } } }
                }
            }
            p { "A measurement for a plate without a report waits:" }
            pre tabindex="0" role="group" aria-label="A measurement that waits" { code { (send) } }
            p { "Open a report for " code { (PLATE) } " at " code { (branch) } " as " (inspector.name) ": it is offered, and one click writes it into the form." }
        }
    }
}

/// A request to copy, in two languages.
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
            p { "As " code { (partner.name) } ", into a shell:" }
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

/// Members of a partner that are shown in words of their own.
const IN_WORDS: [&str; 8] = [
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
    let others = others.filter(|(name, _)| !IN_WORDS.contains(&name.as_str()));
    html! {
        h3 id=(partner.name) { (partner.name) }
        p { (partner.about) }
        dl.facts {
            div { dt { "Key id" } dd { code { (partner.key_id) } } }
            div { dt { "Secret" } dd { code { (partner.secret) } } }
            div { dt { "Scopes" } dd { @if partner.scopes.is_empty() { "none: it reads" } @else { code { (partner.scopes.join(" ")) } } } }
            div { dt { "Sees" } dd {
                @match (partner.organizations.len(), &partner.branches) {
                    (0, _) => "nothing",
                    (1, None) => "one organization, all of its branches",
                    (many, None) => { (many) " organizations, all of their branches" },
                    (_, Some(branches)) => { (branches.len()) " branches of an organization" },
                }
            } }
            div { dt { "Limit" } dd { (partner.rate_limit) " requests a minute" } }
            @for (name, value) in others { div { dt { (name.replace('_', " ")) } dd { (shown(value)) } } }
        }
    }
}

/// What is sent, by whom, and what is answered.
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
        details.answer {
            summary { span.status data-class=(&status[..1]) { (status) } " " (fixture.about) }
            p {
                "As " a href={ "#" (fixture.partner) } { (fixture.partner) }
                @if fixture.times > 1 { ", " (fixture.times) " times" }
                ":"
            }
            pre tabindex="0" role="group" aria-label={ "Request of " (fixture.name) } { code { (request.trim_end()) } }
            @if !fixture.holds.is_null() {
                p { "The answer holds:" }
                pre tabindex="0" role="group" aria-label={ "Answer of " (fixture.name) } {
                    code { (serde_json::to_string_pretty(&fixture.holds).unwrap_or_default()) }
                }
            }
        }
    }
}

/// A value of `sandbox.json`, whatever is added to it.
fn shown(value: &Value) -> Markup {
    match value {
        Value::Object(members) => html! {
            dl.facts { @for (name, value) in members { div { dt { (name.replace('_', " ")) } dd { (shown(value)) } } } }
        },
        Value::Array(values) => html! { ul { @for value in values { li { (shown(value)) } } } },
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
    fn the_page_shows_the_keys_and_all_there_is_to_try_and_nobody_keeps_it() {
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
        assert_eq!(page.keep, Keep::Never);
        let html = std::str::from_utf8(&page.body).expect("text");
        let Value::Object(examples) = serde_json::to_value(&manifest.examples).expect("JSON") else {
            panic!("an object");
        };
        let texts = examples.values().filter_map(Value::as_str);
        for shown in texts.chain([
            "vip_test_A",
            "S&lt;3",
            "insp_T",
            "60 requests a minute",
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
