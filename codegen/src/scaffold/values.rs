//! The names that templates can use, for one operation.

use quote::ToTokens;
use syn::ext::IdentExt;

use crate::emit::{Dispatch, operation_type};
use crate::model::{Api, BodyContent, Operation};
use crate::naming::is_used_by_generated_code;

pub struct Values {
    all: Vec<(&'static str, String)>,
    has_tag: bool,
}

/// Names that are undefined for an operation without tags. Templates that use them are skipped.
const OF_TAGS: [&str; 2] = ["{{tag}}", "{{tag_name}}"];

const WIDTH: usize = 100;

impl Values {
    pub fn of(api: &Api, operation: &Operation, dispatch: Dispatch) -> Self {
        let (bytes, raw) = match dispatch {
            Dispatch::Dropshot => ("dropshot::UntypedBody", "Vec<u8>"),
            Dispatch::Calls => ("bytes::Bytes", "bytes::Bytes"),
        };
        let mut types = Vec::new();
        let mut arguments = vec![("context", "&Context".to_string()), ("caller", "&Caller".to_string())];
        for (_, name, suffix) in operation.groups() {
            let ty = operation_type(api, operation, suffix).to_string();
            arguments.push((name, ty.clone()));
            types.push(ty);
        }
        if let Some(body) = &operation.body {
            match &body.content {
                BodyContent::Json(ident) => {
                    let plain = ident.unraw().to_string();
                    // Names that conflict with those of this file are qualified.
                    match is_used_by_generated_code(&plain) {
                        true => arguments.push(("body", format!("crate::generated::types::{plain}"))),
                        false => {
                            arguments.push(("body", plain.clone()));
                            types.push(plain);
                        }
                    }
                }
                BodyContent::Form(_) => {
                    let ty = operation_type(api, operation, "Form").to_string();
                    arguments.push(("body", ty.clone()));
                    types.push(ty);
                }
                BodyContent::Bytes => arguments.push(("body", bytes.into())),
                BodyContent::Multipart => arguments.push(("body", "dropshot::MultipartBody".into())),
            }
            if !matches!(body.content, BodyContent::Bytes)
                && body.optional
                && let Some((_, ty)) = arguments.last_mut()
            {
                *ty = format!("Option<{ty}>");
            }
            if body.raw {
                arguments.push(("raw", raw.into()));
            }
        }
        if operation.websocket {
            arguments.push(("upgrade", "dropshot::WebsocketUpgrade".into()));
        }
        types.sort();
        let types = match types.as_slice() {
            [] => String::new(),
            [one] => format!("use crate::generated::types::{one};"),
            several => format!("use crate::generated::types::{{{}}};", several.join(", ")),
        };
        let summary = match operation.docs.lines().next().unwrap_or_default().trim() {
            "" => format!("Handles `{} {}`.", operation.method, operation.path),
            text => text.to_string(),
        };
        let response = operation_type(api, operation, "Response").to_string();
        // A response that the handler builds itself has no declared status.
        let status = operation.successes.first().and_then(|success| success.status);
        let status = status.map_or("default".to_string(), |status| status.to_string());
        let tag = operation.tag.as_ref().map(ToString::to_string).unwrap_or_default();
        let all = vec![
            ("arguments", signature(&arguments, "", &response)),
            ("id", operation.id.clone()),
            ("method", operation.method.clone()),
            ("operation", operation.ident.to_token_stream().to_string()),
            ("path", operation.path.clone()),
            ("response", response.clone()),
            ("status", status),
            ("summary", summary),
            ("tag", tag),
            ("tag_name", operation.tags.first().cloned().unwrap_or_default()),
            ("types", types),
            ("unused_arguments", signature(&arguments, "_", &response)),
        ];
        Values {
            all,
            has_tag: operation.tag.is_some(),
        }
    }

    /// Replaces the names in a template's path.
    pub fn path(&self, template: &str) -> String {
        let plain = |name: &str| self.get(name).unwrap_or_default().trim_start_matches("r#").to_string();
        let path = match self.has_tag {
            true => template.replace("{tag}/", &(plain("tag") + "/")),
            false => template.replace("{tag}/", ""),
        };
        path.replace("{operation}", &plain("operation"))
    }

    /// Replaces the names in a template's content; the error is an unknown name.
    pub fn text(&self, template: &str) -> Result<String, String> {
        if !self.has_tag && OF_TAGS.iter().any(|name| template.contains(name)) {
            return Ok(String::new());
        }
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                break;
            };
            let value = self.get(name).ok_or_else(|| name.to_string())?;
            out += before;
            out += value;
            // A line that becomes empty is removed.
            let is_alone = value.is_empty() && (before.is_empty() || before.ends_with('\n'));
            let line = after.strip_prefix('\n').filter(|_| is_alone);
            rest = line.unwrap_or(after);
        }
        Ok(out + rest)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let known = self.all.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| value.as_str())
    }
}

/// The parameters of `handle`, on one line or one per line.
fn signature(arguments: &[(&str, String)], prefix: &str, response: &str) -> String {
    let all = arguments.iter().map(|(name, ty)| format!("{prefix}{name}: {ty}"));
    let all: Vec<String> = all.collect();
    let line = all.join(", ");
    let around = "pub async fn handle() -> Result<, ApiError> {".len() + response.len();
    match line.len() + around <= WIDTH {
        true => line,
        false => format!("\n    {},\n", all.join(",\n    ")),
    }
}
