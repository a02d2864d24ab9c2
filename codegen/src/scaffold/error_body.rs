//! The construction of an error body that the document declares, from what the server knows about an error.

use proc_macro2::Ident;

use crate::model::{Api, ErrorCode, ErrorMember, Field, Shape, StringRules, Type, error_member};

/// The expression of an error body in Rust.
pub struct ErrorBody<'a> {
    api: &'a Api,
    /// The types around the current one.
    around: Vec<&'a Ident>,
    /// Whether the expression uses `message` and `code`.
    pub uses: [bool; 2],
}

/// The reason of a status, such as "Not Found".
const REASON: &str = "status.as_status().canonical_reason().unwrap_or(\"error\")";

impl<'a> ErrorBody<'a> {
    /// An expression that uses nothing yet.
    pub fn new(api: &'a Api) -> Self {
        ErrorBody {
            api,
            around: Vec::new(),
            uses: [false; 2],
        }
    }

    /// An expression of the type from `status`, `message` and `code`; `None` if no value can be constructed. `name` is the
    /// name of the member, and `depth` the indentation.
    pub fn value(&mut self, ty: &'a Type, name: &str, depth: usize) -> Option<String> {
        let member = error_member(name);
        Some(match ty {
            Type::String(rules) => self.text(rules, member)?,
            Type::Uuid => "uuid::Uuid::nil()".into(),
            Type::Integer { kind, rules } => {
                let all = || (400..600).all(|status| rules.check(status).is_ok());
                let is_status = matches!(member, Some(ErrorMember::Code | ErrorMember::Status));
                match is_status && kind.range().1 >= u16::MAX.into() && all() {
                    true => "status.as_u16().into()".into(),
                    false => {
                        let bounds = [rules.minimum, rules.maximum].into_iter().flatten();
                        let mut all = [0, 1].into_iter().chain(bounds.map(|(bound, _)| bound));
                        all.find(|number| rules.check(*number).is_ok())?.to_string()
                    }
                }
            }
            Type::Number(rules) => {
                let bounds = [rules.minimum, rules.maximum].into_iter().flatten();
                let mut all = [0.0, 1.0].into_iter().chain(bounds.map(|(bound, _)| bound));
                format!("{:?}", all.find(|number| rules.check(*number).is_ok())?)
            }
            Type::Boolean => "false".into(),
            Type::DateTime => "chrono::Utc::now()".into(),
            Type::Date => "chrono::Utc::now().date_naive()".into(),
            Type::Array { items, rules } => match rules.min_items.unwrap_or(0) {
                0 => "Vec::new()".into(),
                1 => format!("vec![{}]", self.value(items, name, depth)?),
                _ => return None,
            },
            Type::Map { rules, .. } if rules.min_properties.unwrap_or(0) == 0 => "Default::default()".into(),
            Type::Nullable(inner) => format!("Some({})", self.value(inner, name, depth)?),
            Type::Boxed(inner) => format!("Box::new({})", self.value(inner, name, depth)?),
            Type::Bytes | Type::Null | Type::Any | Type::Decimal { .. } => "Default::default()".into(),
            Type::Named(ident) => self.named(ident, name, depth)?,
            Type::Map { .. } | Type::ExactNumber { .. } | Type::Never => return None,
        })
    }

    fn text(&mut self, rules: &StringRules, member: Option<ErrorMember>) -> Option<String> {
        let is_plain = rules.pattern.is_none() && rules.format.is_none();
        match member {
            Some(ErrorMember::Message) if is_plain => {
                self.uses[0] = true;
                return Some(match (rules.min_length.filter(|min| *min > 1), rules.max_length) {
                    (None, None) => "message.clone()".into(),
                    (min, max) => {
                        let min = min.map(|min| min.to_string()).unwrap_or_default();
                        let max = max.map(|max| format!(".{max}")).unwrap_or_default();
                        format!("format!(\"{{message:{min}{max}}}\")")
                    }
                });
            }
            Some(ErrorMember::Code) if !self.api.error_codes.is_empty() => {
                let all = &self.api.error_codes;
                return Some(by_status(all, |code| format!("{:?}", code.code)) + ".to_string()");
            }
            Some(ErrorMember::Code | ErrorMember::Status) => {
                let snake = format!("{REASON}.to_lowercase().replace(' ', \"_\")");
                let upper = format!("{REASON}.to_uppercase().replace(' ', \"_\")");
                let forms = [
                    ("not_found", snake),
                    ("NOT_FOUND", upper),
                    ("404", "status.as_u16().to_string()".into()),
                    ("NotFound", format!("{REASON}.replace(' ', \"\")")),
                ];
                let skipped = if member == Some(ErrorMember::Status) { 2 } else { 0 };
                let mut forms = forms.iter().skip(skipped);
                if let Some((_, form)) = forms.find(|(example, _)| rules.check(example).is_ok()) {
                    let is_free = *rules == StringRules::NONE && member == Some(ErrorMember::Code);
                    self.uses[1] |= is_free;
                    return Some(match is_free {
                        true => format!("code.clone().unwrap_or_else(|| {form})"),
                        false => form.clone(),
                    });
                }
            }
            _ => {}
        }
        let long = "x".repeat(rules.min_length.unwrap_or_default());
        let mut all = ["", "unknown", "error", "about:blank", "0", &long].into_iter();
        let constant = all.find(|text| rules.check(text).is_ok())?;
        Some(match constant {
            "" => "String::new()".into(),
            text => format!("{text:?}.to_string()"),
        })
    }

    fn named(&mut self, ident: &'a Ident, name: &str, depth: usize) -> Option<String> {
        if self.around.contains(&ident) {
            return None;
        }
        self.around.push(ident);
        let value = self.of_shape(ident, name, depth);
        self.around.pop();
        value
    }

    fn of_shape(&mut self, ident: &'a Ident, name: &str, depth: usize) -> Option<String> {
        let indent = "    ".repeat(depth + 1);
        let end = "    ".repeat(depth);
        match self.api.shape(ident)? {
            Shape::Struct(object) => {
                let mut members = String::new();
                for field in &object.fields {
                    members += &format!("{indent}{}: {},\n", field.ident, self.member(field, depth + 1)?);
                }
                if let Some(field) = object.kept() {
                    members += &format!("{indent}{}: Default::default(),\n", field.ident);
                }
                Some(format!("types::{ident} {{\n{members}{end}}}"))
            }
            Shape::Joined(parts) => {
                let mut members = String::new();
                for part in parts {
                    members += &format!("{indent}{}: {},\n", part.ident, self.value(&part.ty, name, depth + 1)?);
                }
                Some(format!("types::{ident} {{\n{members}{end}}}"))
            }
            Shape::Newtype(ty) => Some(format!("types::{ident}({})", self.value(ty, name, depth)?)),
            Shape::Enum(of) => {
                let known = self.api.error_codes.iter().filter_map(|code| {
                    let variant = of.variants.iter().find(|variant| variant.value == code.code)?;
                    Some((code.status, &variant.ident))
                });
                let normal = |text: &str| text.replace(|it: char| !it.is_ascii_alphanumeric(), "").to_lowercase();
                let by_reason = REASONS.iter().filter_map(|(status, reason)| {
                    let is_this = |text: &str| normal(text) == normal(reason) || text == status.to_string();
                    let variant = of.variants.iter().find(|it| is_this(&it.value))?;
                    Some((*status, &variant.ident))
                });
                let mut arms: Vec<(u16, &Ident)> = Vec::new();
                for (status, variant) in known.chain(by_reason) {
                    if arms.iter().all(|(before, _)| *before != status) {
                        arms.push((status, variant));
                    }
                }
                let internal = arms.iter().find(|(status, _)| *status == 500);
                let last = || Some(&of.variants.last()?.ident);
                let others = internal.map(|(_, variant)| *variant).or_else(last)?;
                let arms = arms.iter().filter(|(_, variant)| *variant != others);
                let arms = arms.map(|(status, variant)| format!("{status} => types::{ident}::{variant}"));
                let arms: Vec<String> = arms.collect();
                Some(chosen(&arms, &format!("types::{ident}::{others}")))
            }
            Shape::Union(_) | Shape::Checked(_) => None,
        }
    }

    /// The value of a member. An optional one is absent unless it contains something that the server knows.
    fn member(&mut self, field: &'a Field, depth: usize) -> Option<String> {
        let known = error_member(&field.name);
        if let (true, false, Some(ErrorMember::Code), Type::String(rules)) =
            (field.is_option(), field.required, known, &field.ty)
            && *rules == StringRules::NONE
            && self.api.error_codes.is_empty()
        {
            self.uses[1] = true;
            return Some("code.clone()".into());
        }
        let is_code = matches!(known, Some(ErrorMember::Code | ErrorMember::Status))
            && matches!(field.ty, Type::String(_) | Type::Integer { .. } | Type::Named(_));
        let before = self.uses;
        let value = self.value(&field.ty, &field.name, depth);
        match value {
            value if !field.is_option() => value,
            Some(value) if field.required || self.uses != before || is_code => Some(format!("Some({value})")),
            _ => {
                self.uses = before;
                Some("None".into())
            }
        }
    }
}

/// An expression that chooses by `status` the first code that has it, otherwise one of the server's errors.
fn by_status(all: &[ErrorCode], text: impl Fn(&ErrorCode) -> String) -> String {
    let mut firsts: Vec<&ErrorCode> = Vec::new();
    for code in all {
        if firsts.iter().all(|first| first.status != code.status) {
            firsts.push(code);
        }
    }
    let internal = firsts.iter().position(|code| code.status == 500);
    let others = text(firsts.remove(internal.unwrap_or(firsts.len() - 1)));
    let arms = firsts.iter().map(|code| format!("{} => {}", code.status, text(code)));
    chosen(&arms.collect::<Vec<_>>(), &others)
}

fn chosen(arms: &[String], others: &str) -> String {
    match arms {
        [] => others.to_string(),
        arms => format!("match status.as_u16() {{ {}, _ => {others} }}", arms.join(", ")),
    }
}

/// The reasons of the statuses that Dropshot or a handler usually responds with.
const REASONS: [(u16, &str); 14] = [
    (400, "bad request"),
    (400, "invalid request"),
    (401, "unauthorized"),
    (403, "forbidden"),
    (404, "not found"),
    (405, "method not allowed"),
    (409, "conflict"),
    (413, "payload too large"),
    (422, "unprocessable entity"),
    (429, "too many requests"),
    (500, "internal server error"),
    (500, "internal error"),
    (501, "not implemented"),
    (503, "service unavailable"),
];
