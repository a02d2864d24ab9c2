//! The operations of the documents, each with a valid request, for tests that go through all of them.

use std::sync::LazyLock;

use http::Method;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use crate::contract::{self, Contract};
use crate::fixture::Subject;
use crate::request::Request;

/// An operation of the document.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its id.
    pub id: &'static str,
    /// Its path, with the variables in braces.
    pub template: &'static str,
    method: &'static str,
    operation: &'static Value,
    contract: &'static Contract,
}

/// Every operation of the partners' contract, by id.
pub static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| operations(&contract::PARTNERS));

/// Every operation of the inspectors' contract, by id.
pub static INSPECTOR_OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| operations(&contract::INSPECTORS));

fn operations(contract: &'static Contract) -> Vec<Operation> {
    let mut all = Vec::new();
    for (template, item) in contract.document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(id) = operation["operationId"].as_str() {
                all.push(Operation {
                    id,
                    template,
                    method,
                    operation,
                    contract,
                });
            }
        }
    }
    // The order of a JSON object depends on serde_json's features.
    all.sort_by_key(|operation| operation.id);
    all
}

/// The operation with this id.
#[track_caller]
pub fn operation(id: &str) -> Operation {
    let found = OPERATIONS.iter().find(|operation| operation.id == id);
    *found.unwrap_or_else(|| panic!("the document has no operation {id}"))
}

/// The operation of the inspectors' contract with this id.
#[track_caller]
pub fn inspector_operation(id: &str) -> Operation {
    let found = INSPECTOR_OPERATIONS.iter().find(|operation| operation.id == id);
    *found.unwrap_or_else(|| panic!("the inspectors' document has no operation {id}"))
}

/// The parts of an item that GET operations read: what follows its id in their paths, as `/photos` follows the id of one of the
/// `inspections`; "" is the item itself.
pub fn readable_parts(list: &str) -> Vec<&'static str> {
    let of_one = format!("/{list}/{{");
    let parts = OPERATIONS.iter().filter(|operation| operation.method() == Method::GET);
    let parts = parts.filter_map(|operation| {
        let (_, variable) = operation.template.split_once(&of_one)?;
        Some(variable.split_once('}')?.1)
    });
    parts.collect()
}

impl Operation {
    /// Its method.
    pub fn method(&self) -> Method {
        Method::from_bytes(self.method.to_uppercase().as_bytes()).unwrap()
    }

    /// Its contract.
    pub fn contract(&self) -> &'static Contract {
        self.contract
    }

    /// The security schemes that it requires.
    pub fn security(&self) -> Vec<&'static str> {
        let own = &self.operation["security"];
        let all = match own {
            Value::Null => &self.contract.document()["security"],
            own => own,
        };
        let lists = all.as_array().into_iter().flatten();
        lists
            .filter_map(Value::as_object)
            .flat_map(|list| list.keys().map(String::as_str))
            .collect()
    }

    /// Its tags.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        let tags = self.operation["tags"].as_array().into_iter().flatten();
        tags.filter_map(Value::as_str)
    }

    /// Whether it has a body.
    pub fn has_body(&self) -> bool {
        self.operation["requestBody"].is_object()
    }

    /// The scope that a key needs for it, if any.
    pub fn required_scope(&self) -> Option<&'static str> {
        self.operation["x-required-scope"].as_str()
    }

    /// Whether it answers while the database is down: neither its nonce nor its answer needs the database.
    pub fn needs_no_database(&self) -> bool {
        self.operation["x-admission"] == "memory"
    }

    /// The schema of its successful answers; `None` if they are not JSON.
    pub fn answer_schema(&self) -> Option<&'static Value> {
        let responses = self.operation["responses"].as_object().unwrap();
        let success = responses.iter().find(|(status, _)| status.starts_with('2'));
        let content = &self.contract.resolved(success.unwrap().1)["content"];
        content["application/json"].get("schema")
    }

    /// A valid request, unsigned: about the subject, with the document's examples for everything else that is required.
    #[track_caller]
    pub fn request(&self, subject: &Subject) -> Request {
        let mut request = Request::new(self.method().as_str(), &self.path(subject));
        for parameter in self.parameters("query") {
            if parameter["required"] == true {
                let name = parameter["name"].as_str().unwrap();
                request = request.with_query(&format!("{name}={}", self.example(parameter, name)));
            }
        }
        match self.body() {
            Some(body) => request
                .body(body.to_string())
                .header("content-type", "application/json"),
            None => request,
        }
    }

    /// The same, as narrow as possible: for the subject's organization, and in a list for its first item.
    #[track_caller]
    pub fn narrowed_request(&self, subject: &Subject) -> Request {
        let mut request = self.request(subject);
        for (name, value) in [("organization_id", subject.organization), ("limit", "1")] {
            if self.parameters("query").any(|parameter| parameter["name"] == name) {
                request = request.with_query(&format!("{name}={value}"));
            }
        }
        request
    }

    /// Whether a request can name an organization.
    pub fn can_be_narrowed(&self) -> bool {
        self.template.contains('{') || self.parameters("query").any(|it| it["name"] == "organization_id")
    }

    /// Its path, with the subject's ids as variables: each is chosen by the segment before it.
    #[track_caller]
    fn path(&self, subject: &Subject) -> String {
        let mut path = String::new();
        let mut before = "";
        for segment in self.template.split('/').skip(1) {
            path.push('/');
            path += match segment.starts_with('{') {
                true => subject.id_behind(before),
                false => segment,
            };
            before = segment;
        }
        path
    }

    /// The document's example of its body, without optional times: they may be in the future.
    #[track_caller]
    fn body(&self) -> Option<Value> {
        let media = self.operation.pointer("/requestBody/content/application~1json")?;
        let mut example = media["example"].clone();
        assert!(
            example.is_object(),
            "the document has no example of the body of {}",
            self.id
        );
        let schema = self.contract.resolved(&media["schema"]);
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        example.as_object_mut().unwrap().retain(|name, _| {
            let is_time = schema["properties"][name]["format"] == "date-time";
            !is_time || required.iter().any(|required| required == name)
        });
        Some(example)
    }

    fn parameters(&self, place: &'static str) -> impl Iterator<Item = &'static Value> {
        let parameters = self.operation["parameters"].as_array().into_iter().flatten();
        let contract = self.contract;
        parameters
            .map(|it| contract.resolved(it))
            .filter(move |it| it["in"] == place)
    }

    #[track_caller]
    fn example(&self, parameter: &Value, name: &str) -> String {
        let text = match &parameter["example"] {
            Value::Null => panic!("the document has no example of {name} of {}", self.id),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        byte_serialize(text.as_bytes()).collect()
    }
}
