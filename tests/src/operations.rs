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
    /// Its ID.
    pub id: &'static str,
    /// Its path, with the variables in braces.
    pub template: &'static str,
    method: &'static str,
    operation: &'static Value,
    contract: &'static Contract,
}

/// Every operation of the partners' contract, by ID.
pub static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| operations(&contract::PARTNERS));

/// Every operation of the inspectors' contract, by ID.
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

/// Returns the operation with this ID.
#[track_caller]
pub fn operation(id: &str) -> Operation {
    let found = OPERATIONS.iter().find(|operation| operation.id == id);
    *found.unwrap_or_else(|| panic!("the document has no operation {id}"))
}

/// Returns the operation of the inspectors' contract with this ID.
#[track_caller]
pub fn inspector_operation(id: &str) -> Operation {
    let found = INSPECTOR_OPERATIONS.iter().find(|operation| operation.id == id);
    *found.unwrap_or_else(|| panic!("the inspectors' document has no operation {id}"))
}

/// Returns the parts of an item that GET operations read, as the rest of their paths after the item's ID, such as `/photos` for
/// `inspections`. The item itself is "".
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
    /// Returns its method.
    pub fn method(&self) -> Method {
        Method::from_bytes(self.method.to_uppercase().as_bytes()).unwrap()
    }

    /// Returns its contract.
    pub fn contract(&self) -> &'static Contract {
        self.contract
    }

    /// Returns the security schemes that it requires.
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

    /// Returns its tags.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        let tags = self.operation["tags"].as_array().into_iter().flatten();
        tags.filter_map(Value::as_str)
    }

    /// Returns whether it has a body.
    pub fn has_body(&self) -> bool {
        self.operation["requestBody"].is_object()
    }

    /// Returns the scope that a key needs for it, if any.
    pub fn required_scope(&self) -> Option<&'static str> {
        self.operation["x-required-scope"].as_str()
    }

    /// Returns whether it works while the database is down.
    pub fn needs_no_database(&self) -> bool {
        self.operation["x-admission"] == "memory"
    }

    /// Returns the schema of its successful responses; `None` if they are not JSON.
    pub fn response_schema(&self) -> Option<&'static Value> {
        let responses = self.operation["responses"].as_object().unwrap();
        let success = responses.iter().find(|(status, _)| status.starts_with('2'));
        let content = &self.contract.resolved(success.unwrap().1)["content"];
        content["application/json"].get("schema")
    }

    /// Returns a valid, unsigned request about the subject, with the document's examples for everything else that is required.
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

    /// Returns the same request, restricted to the subject's organization, and in a list to the first item.
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

    /// Returns whether a request can name an organization.
    pub fn can_be_narrowed(&self) -> bool {
        self.template.contains('{') || self.parameters("query").any(|it| it["name"] == "organization_id")
    }

    /// Returns its path, with the subject's IDs as variables. The preceding segment selects the ID.
    #[track_caller]
    fn path(&self, subject: &Subject) -> String {
        let mut path = String::new();
        let mut previous = "";
        for segment in self.template.split('/').skip(1) {
            path.push('/');
            path += match segment.starts_with('{') {
                true => subject.id_after(previous),
                false => segment,
            };
            previous = segment;
        }
        path
    }

    /// Returns the document's example of its body, without optional times, which may be in the future.
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
