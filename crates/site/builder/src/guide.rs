//! The pages of the guide.

use maud::{Markup, html};
use regex::Regex;

use crate::document::{Chapter, Document, Operation, text};
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Page, Sources, asset, frame, kits};

/// The addresses of chapters of the document. All others are sections of `guide.html`.
const PLACES: [(&str, &str); 10] = [
    ("", "index.html"),
    ("At a glance", "index.html#at-a-glance"),
    ("Environments", "index.html#environments"),
    ("Signing", "signing.html"),
    ("Getting started", "start.html"),
    ("Keeping in sync", "sync.html"),
    ("Errors", "errors.html"),
    ("Limits", "limits.html"),
    ("Versions", "versions.html"),
    ("Conventions", "guide.html"),
];

fn place(title: &str) -> Option<&'static str> {
    let found = PLACES.iter().find(|(known, _)| *known == title);
    found.map(|(_, address)| *address)
}

/// Returns the address of a chapter of the document.
pub fn address(title: &str) -> String {
    place(title).map_or_else(|| format!("guide.html#{}", anchor(title)), str::to_owned)
}

/// Returns the chapter with this title.
///
/// # Errors
/// The chapter does not exist.
pub fn chapter<'a>(chapters: &'a [Chapter], title: &str) -> Result<&'a Chapter, BuildError> {
    let found = chapters.iter().find(|chapter| chapter.title == title);
    found.ok_or_else(|| BuildError::Missing(format!("the document's description must have a chapter `{title}`")))
}

/// Builds the pages: overview, getting started, signing, scenarios, conventions and limits.
///
/// # Errors
/// The document or another source lacks a chapter.
pub fn pages(sources: &Sources, links: &Links) -> Result<Vec<Page>, BuildError> {
    let document_chapters = sources.document.chapters();
    let limits = chapter(&document_chapters, "Limits")?;
    Ok(vec![
        overview(sources, &document_chapters, links)?,
        kits::start(sources, &document_chapters, links)?,
        signing(sources, &document_chapters, links)?,
        scenarios(sources)?,
        try_it(&sources.document),
        conventions(&document_chapters, links)?,
        sync(&document_chapters, links)?,
        Page::new(
            "limits.html",
            "Limits",
            "Requests per minute, sizes and timeouts.",
            render(&limits.markdown, -1, links),
        ),
    ])
}

fn section(chapter: &Chapter, links: &Links) -> Markup {
    html! {
        section { h2 id=(anchor(&chapter.title)) { (chapter.title) } (render(&chapter.markdown, 0, links)) }
    }
}

fn overview(sources: &Sources, document_chapters: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let body = html! {
        (render(&chapter(document_chapters, "")?.markdown, -1, links))
        ul.cards {
            li { a href="start.html" { "Getting started" } p { "From a key to the first response." } }
            li { a href="signing.html#calculator" { "Calculator" } p { "Compute each line of a request's signature in your browser." } }
            li { a href="tools.html" { "Tool and packages" } p { "The program " code { "partner" } ", and typed clients for TypeScript, Python and Rust." } }
            li { a href="try.html" { "Try a request" } p { "Send a signed request from your browser with a test key." } }
            li { a href="kits.html" { "Signing kits" } p { (frame::joined(sources.kits.iter().map(|kit| html! { (kit.name) }), ", ")) "." } }
            li { a href="reference.html" { "Reference" } p { (sources.document.operations().len()) " operations." } }
            li { a href="errors.html" { "Errors" } p { "The cause and remedy of each code." } }
            li { a href="scenarios.html" { "Acceptance scenarios" } p { "The requests to pass before the go-live." } }
        }
        (section(chapter(document_chapters, "At a glance")?, links))
        (section(chapter(document_chapters, "Environments")?, links))
        (contact(&sources.document))
    };
    Ok(Page::new(
        "index.html",
        "Overview",
        "The purpose of the API, its operations at a glance, its environments, and the contact.",
        body,
    ))
}

/// The section with the document's contact.
fn contact(document: &Document) -> Markup {
    let contact = |name: &str| text(document.root().pointer(&format!("/info/contact/{name}")));
    let (email, url) = (contact("email"), contact("url"));
    html! {
        section {
            h2 #contact { "Contact" }
            p {
                (contact("name")) ": " a href={ "mailto:" (email) } { (email) } ", " a href=(url) { (url) } ". Send the request ID "
                code { "X-Request-Id" } " of a response with your question: the operator finds the request by it."
            }
        }
    }
}

/// The page of the chapter on keeping in sync, with the program that does it.
fn sync(document_chapters: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let body = html! {
        (render(&chapter(document_chapters, "Keeping in sync")?.markdown, -1, links))
        section {
            h2 #with-the-program { "With one command" }
            p {
                "The program " a href="tools.html" { code { "partner" } } " keeps a copy in SQLite, NDJSON or CSV. It resumes an interrupted "
                "run, and leaves a part of the quota to other programs with the same key. " code { "--with" }
                " also fetches the details, forms, photos and PDFs. Each of them is a request: with 60 requests in a minute, the four parts "
                "of 10,000 reports take about 11 hours. The program prints the time first. See "
                a href="tools.html#partner-keep-a-full-copy" { "the program's page" } "."
            }
            (frame::code("Keeping in sync", "partner sync reports.sqlite\npartner sync reports.sqlite --with detail,forms,photos,pdf"))
        }
    };
    Ok(Page::new(
        "sync.html",
        "Keeping in sync",
        "How to keep a copy of all reports up to date, with code or with one command.",
        body,
    ))
}

/// The page from which a visitor sends signed requests. Its scripts are `assets/try.js` and `assets/mistakes.js`.
fn try_it(document: &Document) -> Page {
    let body = html! {
        p {
            "This page signs a request in your browser and sends it to this service. The secret stays in the page: it is not stored, and "
            "only the signature is sent. Live keys are not accepted here."
        }
        noscript { p { "This page requires JavaScript, which is disabled." } }
        form #try-form autocomplete="off" {
            div.fields {
                div.wide { label for="try-key" { "Key ID" } input #try-key spellcheck="false" placeholder="…_test_…"; }
                div { label for="try-secret" { "Secret" } input #try-secret type="password" spellcheck="false"; }
                div.full {
                    label for="try-operation" { "Operation" }
                    select #try-operation {
                        @for operation in document.operations() {
                            @let body = match operation.method {
                                "GET" => String::new(),
                                _ => serde_json::to_string_pretty(document.example_body(operation)).unwrap_or_default(),
                            };
                            option value=(document.example_target(operation)) data-method=(operation.method) data-body=(body) {
                                (operation.method) " " (operation.summary())
                            }
                        }
                    }
                }
                div { label for="try-method" { "Method" } input #try-method value="GET" spellcheck="false"; }
                div.wide { label for="try-target" { "Path and query" } input #try-target spellcheck="false"; }
                div.full { label for="try-body" { "Body" } textarea #try-body rows="8" spellcheck="false" {} }
            }
            button #try-send type="submit" { "Send" }
        }
        div #try-outcome role="status" {
            p #try-problem hidden {}
            div #try-results hidden {
                h2 #response { "Response" }
                p { span.status #try-status {} " " span #try-time {} }
                pre tabindex="0" role="group" aria-label="Response headers" { code #try-headers {} }
                pre tabindex="0" role="group" aria-label="Response body" { code #try-text {} }
                p #try-file hidden { a #try-link download="response" { "Save the file" } }
                h2 #sent { "Request" }
                pre tabindex="0" role="group" aria-label="Request" { code #try-sent {} }
            }
        }
        p {
            "If the signature is rejected, compare it with " a href="signing.html#calculator" { "the calculator" } "'s."
        }
        script src=(asset("mistakes", "js")) defer {}
        script src=(asset("try", "js")) defer {}
    };
    Page::new(
        "try.html",
        "Try a request",
        "A form that signs a request in the browser and sends it with a test key.",
        body,
    )
}

fn conventions(document_chapters: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let rest = document_chapters
        .iter()
        .filter(|chapter| place(&chapter.title).is_none());
    let body = html! {
        (render(&chapter(document_chapters, "Conventions")?.markdown, -1, links))
        @for chapter in rest { (section(chapter, links)) }
    };
    let summary = "Rules of all operations: times, numbers, IDs, bodies, caching and paths.";
    Ok(Page::new("guide.html", "Conventions", summary, body))
}

/// The page on signing: the document's chapter, common mistakes, and the calculator.
fn signing(sources: &Sources, document_chapters: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let body = html! {
        p { a href="#calculator" { "Go to the calculator" } }
        (render(&chapter(document_chapters, "Signing")?.markdown, -1, links))
        (section(&kits::pitfalls(sources)?, links))
        (calculator())
        script src=(asset("mistakes", "js")) defer {}
        script src=(asset("signing", "js")) defer {}
    };
    Ok(Page::new(
        "signing.html",
        "Signing",
        "How to sign a request, common mistakes, and a calculator that finds them.",
        body,
    ))
}

/// The calculator's form. Its scripts are `assets/signing.js` and `assets/mistakes.js`.
fn calculator() -> Markup {
    html! {
        section #calculator-section {
            h2 #calculator { "Calculator" }
            p { "The calculator runs in your browser and sends nothing." }
            noscript { p { "The calculator requires JavaScript, which is disabled." } }
            form #calculator-form autocomplete="off" {
                details {
                    summary { "Paste a request" }
                    p #raw-help { "The request as it is sent: the request line, headers, an empty line, the body." }
                    label for="raw" { "Request" }
                    textarea #raw rows="6" spellcheck="false" aria-describedby="raw-help" {}
                    button #take type="button" { "Fill in" }
                }
                div.fields {
                    div { label for="method" { "Method" } input #method value="GET" spellcheck="false"; }
                    div.wide { label for="target" { "Path and query, as sent" } input #target value="/api/v1/partner/health" spellcheck="false"; }
                    div { label for="timestamp" { "Timestamp" } input #timestamp value="1780000000" inputmode="numeric"; button #now type="button" { "Now" } }
                    div.wide { label for="nonce" { "Nonce" } input #nonce value="0123456789abcdef" spellcheck="false"; button #fresh type="button" { "New" } }
                    div.wide { label for="secret" { "Secret" } input #secret value="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" spellcheck="false"; }
                    div { label for="encoding" { "Body is" } select #encoding { option value="text" { "text (UTF-8)" } option value="base64" { "base64 of the bytes" } } }
                    div.full { label for="body-text" { "Body" } textarea #body-text rows="4" spellcheck="false" {} }
                }
                details #compare {
                    summary { "Compare with yours" }
                    label for="yours" { "The signature that your code computed" }
                    input #yours spellcheck="false" placeholder="sha256=…";
                    label for="theirs" { "A canonical string from your code or from the service's message" }
                    textarea #theirs rows="6" spellcheck="false" {}
                }
            }
            div #outcome role="status" {
                p #problem hidden {}
                div #results hidden {
                    h3 { "Canonical string" }
                    ol #lines {}
                    h3 { "Signature" }
                    pre tabindex="0" role="group" aria-label="Headers" { code #headers {} }
                    p #verdict hidden {}
                    ul #differences hidden {}
                }
            }
        }
    }
}

/// The page of the acceptance scenarios: the rule SVC-7, and commands that run them.
fn scenarios(sources: &Sources) -> Result<Page, BuildError> {
    let missing = |what: &str| BuildError::Missing(what.to_owned());
    let rule = sources
        .service_rules
        .split("- **SVC-")
        .find_map(|rule| rule.strip_prefix("7** "));
    let rule = rule.ok_or_else(|| missing("docs/contract/service.md must have a rule SVC-7"))?;
    let rule = rule.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = Regex::new(r"(?:^| )\d\. ").map_err(|error| missing(&error.to_string()))?;
    let mut parts = number.split(rule.trim_end_matches('.'));
    let intro = parts.next().unwrap_or_default().trim_end_matches(':').to_owned();
    let document = &sources.document;
    let operations = document.operations();
    let write = operations.iter().find(|operation| operation.method == "POST");
    let write = *write.ok_or_else(|| missing("the document must have a POST"))?;
    let links = Links::default();
    let body = html! {
        p { (intro) "." }
        ol { @for scenario in parts { li { (render(scenario.trim_end_matches(';').trim(), 0, &links)) } } }
        p {
            "All of them are requests to " a href=(write.page()) { code { (write.method) " " (document.example_target(write)) } }
            " with a test key that has the scope " code { "test-line:write" } "."
        }
        section {
            h2 #by-hand { "Try them in a shell" }
            p {
                "Download " a href="kits/curl/partner.sh" download { "the kit for curl" } ", and set your key:"
            }
            (frame::code("Key", "export PARTNER_BASE_URL=… PARTNER_KEY_ID=… PARTNER_SECRET=…"))
            p {
                "The first scenario needs an open report. Ask the operator for a branch code and a plate; a sandbox's " code { "sandbox.json" }
                " contains them. Then send the six requests:"
            }
            (frame::code("The six requests", &six_requests(document, write)))
            p { "Each request prints the status and the request ID, and then the response. The comments show the expected status." }
        }
        section {
            h2 #with-the-program { "Run them with one command" }
            p {
                "The command-line program " code { "partner" } " sends the same requests and writes a report for the operator:"
            }
            (frame::code("The report", &certify(document, write)))
            p {
                "For the go-live, your own program must pass the scenarios. The operator sees its requests, and decides on the "
                "acceptance."
            }
        }
        section {
            h2 #certificate { "Certify your own program" }
            p {
                "With " code { "--listen" } ", " code { "partner" } " forwards the requests of your program to the sandbox, forces "
                "failures, and grades each retry. It runs your program with the arguments of the kits:"
            }
            (frame::code("The certificate", "partner certify --sandbox sandbox.json --listen --html certificate.html -- python3 partner.py"))
            p {
                "Without a command, it tells you when to run your program. The report is signed with the secret of your test key. Attach "
                "it when you ask for a live key; the operator can verify the signature. The steps are on "
                a href="tools.html#partner-certify-your-program" { "the program's page" } "."
            }
        }
    };
    Ok(Page::new(
        "scenarios.html",
        "Acceptance scenarios",
        "The six requests to pass before the go-live, and how to certify a program.",
        body,
    ))
}

/// Returns the branch code and the plate of the document's example of a measurement.
fn example_report(document: &Document, write: Operation<'_>) -> (String, String) {
    let example = document.example_body(write);
    let text = |name: &str| example[name].as_str().unwrap_or_default().to_owned();
    (text("branch_code"), text("plate"))
}

/// Returns a script that sends the requests of the six scenarios with the kit for curl.
fn six_requests(document: &Document, write: Operation<'_>) -> String {
    let (branch, plate) = example_report(document, write);
    let target = document.example_target(write);
    format!(
        r#"branch='{branch}' plate='{plate}'
run=$(date +%s) # makes each external_id unique
package() {{ # BRANCH PLATE NUMBER
  printf '{{"branch_code":"%s","plate":"%s","external_id":"acceptance-%s-%s","measurements":{{"BRAKE_FRONT_LEFT":2.85}}}}' \
    "$1" "$2" "$run" "$3"
}}
send() {{ bash partner.sh POST {target} -; echo; }}

package "$branch" "$plate" 1 | send # 201, applied
package "$branch" "$plate" 1 | send # 200, idempotent_replay
package "$branch" '34 WQX 999' 2 | send # 201, pending
package 'NO-SUCH-BRANCH' "$plate" 3 | send # 404, not_found
package "$branch" "$plate" 4 | PARTNER_SECRET=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA send # 401, invalid_signature
package "$branch" 'ABCDEF' 5 | send # 400, invalid_request"#
    )
}

/// Returns the command that runs the scenarios.
fn certify(document: &Document, write: Operation<'_>) -> String {
    let (branch, plate) = example_report(document, write);
    format!("partner certify --branch {branch} --plate '{plate}' --html acceptance.html --junit acceptance.xml")
}
