//! Rust expressions for JSON values. Building an expression also checks that the value matches the type.

use std::cell::RefCell;
use std::str::FromStr;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use serde_json::{Map, Value};

use crate::model::{Alternative, Field, IntegerKind, Others, Shape, Struct, Tagging, Type, TypeDefinition, Union};

/// The value does not match the type.
#[derive(Debug, PartialEq)]
pub struct NoValue;

/// The expression for a member that the client leaves out, from the document's default. `None` if there is no default
/// or if the member is required.
pub fn default(field: &Field, types: &[TypeDefinition]) -> Result<Option<TokenStream>, NoValue> {
    let Some(value) = &field.default else { return Ok(None) };
    let open = RefCell::default();
    let expression = Literals { types, open }.member(field, Some(value))?;
    Ok(Some(expression).filter(|_| field.is_optional_in_requests()))
}

struct Literals<'a> {
    types: &'a [TypeDefinition],
    /// The types whose literals are being built, each with its value. They detect endless recursion, such as a default that
    /// contains its own member, or a union of itself.
    open: RefCell<Vec<(Ident, Value)>>,
}

impl Literals<'_> {
    /// A member or parameter, which may be absent.
    fn member(&self, field: &Field, value: Option<&Value>) -> Result<TokenStream, NoValue> {
        let absent = || field.default.as_ref().filter(|_| field.is_optional_in_requests());
        let expression = match value.or_else(absent) {
            None if field.is_option() && field.is_optional_in_requests() => return Ok(quote! { None }),
            None => return Err(NoValue),
            Some(Value::Null) if field.nullable && field.ty != Type::Any => return Ok(quote! { None }),
            Some(value) => self.value(&field.ty, value)?,
        };
        Ok(match field.is_option() {
            true => quote! { Some(#expression) },
            false => expression,
        })
    }

    fn value(&self, ty: &Type, value: &Value) -> Result<TokenStream, NoValue> {
        let holds = |holds: bool| if holds { Ok(()) } else { Err(NoValue) };
        // Types without literals are parsed from JSON at run time. The value has been checked here.
        let read = |is_value: bool| {
            let json = value.to_string();
            holds(is_value).map(|()| quote! { codegen_runtime::constant(#json) })
        };
        match ty {
            Type::Boolean => {
                let value = value.as_bool().ok_or(NoValue)?;
                Ok(quote! { #value })
            }
            Type::Never => Err(NoValue),
            Type::Null => holds(value.is_null()).map(|()| quote! { () }),
            Type::Integer { kind, rules } => {
                let whole = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
                let whole = whole.ok_or(NoValue)?;
                let (low, high) = kind.range();
                holds((low..=high).contains(&whole) && rules.check(whole).is_ok())?;
                Ok(integer(whole, *kind))
            }
            Type::Number(rules) => {
                let number = value.as_f64().ok_or(NoValue)?;
                holds(rules.check(number).is_ok())?;
                Ok(quote! { #number })
            }
            Type::String(rules) => {
                let text = value.as_str().ok_or(NoValue)?;
                holds(rules.check(text).is_ok())?;
                Ok(quote! { #text.to_string() })
            }
            Type::Decimal { places } => read(codegen_runtime::decimal::read(value, *places).is_ok()),
            Type::ExactNumber { max_significant_digits } => {
                read(codegen_runtime::body::exact_number(value.clone(), *max_significant_digits).is_ok())
            }
            Type::DateTime => read(codegen_runtime::body::date_time(value).is_ok()),
            Type::Date => read(codegen_runtime::body::date(value).is_ok()),
            Type::Bytes => read(serde_json::from_value::<codegen_runtime::Base64>(value.clone()).is_ok()),
            Type::Uuid => read(codegen_runtime::param::uuid(value, "").is_ok()),
            Type::Any => read(true),
            Type::Array { items, rules } => {
                let all = value.as_array().ok_or(NoValue)?;
                holds(rules.check(all.len()).is_ok() && rules.check_items(all).is_ok())?;
                let all = all.iter().map(|item| self.value(items, item));
                let all: Vec<_> = all.collect::<Result<_, _>>()?;
                Ok(match all.is_empty() {
                    true => quote! { Vec::new() },
                    false => quote! { vec![#(#all),*] },
                })
            }
            Type::Map { values, rules } => {
                let members = value.as_object().ok_or(NoValue)?;
                holds(rules.check(members.len()).is_ok())?;
                holds(members.keys().all(|key| rules.check_key(key).is_ok()))?;
                self.map(values, members.iter())
            }
            Type::Nullable(_) if value.is_null() => Ok(quote! { None }),
            Type::Nullable(inner) => {
                let inner = self.value(inner, value)?;
                Ok(quote! { Some(#inner) })
            }
            Type::Boxed(inner) => {
                let inner = self.value(inner, value)?;
                Ok(quote! { Box::new(#inner) })
            }
            Type::Named(ident) => self.named(ident, value),
        }
    }

    fn map<'v>(
        &self,
        values: &Type,
        members: impl Iterator<Item = (&'v String, &'v Value)>,
    ) -> Result<TokenStream, NoValue> {
        let all = members.map(|(name, value)| {
            let value = self.value(values, value)?;
            Ok(quote! { (#name.to_string(), #value) })
        });
        let all: Vec<_> = all.collect::<Result<_, _>>()?;
        Ok(match all.is_empty() {
            true => quote! { std::collections::BTreeMap::new() },
            false => quote! { std::collections::BTreeMap::from([#(#all),*]) },
        })
    }

    fn named(&self, ident: &Ident, value: &Value) -> Result<TokenStream, NoValue> {
        let step = (ident.clone(), value.clone());
        if self.open.borrow().contains(&step) {
            return Err(NoValue);
        }
        self.open.borrow_mut().push(step);
        let expression = self.defined(ident, value);
        self.open.borrow_mut().pop();
        expression
    }

    fn defined(&self, ident: &Ident, value: &Value) -> Result<TokenStream, NoValue> {
        let definition = self.types.iter().find(|definition| definition.ident == *ident);
        match &definition.ok_or(NoValue)?.shape {
            Shape::Newtype(inner) => {
                let inner = self.value(inner, value)?;
                Ok(quote! { #ident(#inner) })
            }
            Shape::Enum(enumeration) => {
                let text = enumeration.kind.text(value).ok_or(NoValue)?;
                let mut variants = enumeration.variants.iter();
                let variant = &variants.find(|variant| variant.value == text).ok_or(NoValue)?.ident;
                Ok(quote! { #ident::#variant })
            }
            Shape::Struct(object) => self.structure(ident, object, value),
            Shape::Union(union) => self.union(ident, union, value),
            Shape::Joined(parts) => {
                let members = value.as_object().ok_or(NoValue)?;
                let mut fields = Vec::new();
                for part in parts {
                    let own = members.iter().filter(|(name, _)| !part.others.contains(name));
                    let own: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
                    let (name, value) = (&part.ident, self.value(&part.ty, &own.into())?);
                    fields.push(quote! { #name: #value });
                }
                Ok(quote! { #ident { #(#fields),* } })
            }
            Shape::Checked(alternatives) => {
                let fits = |it: &Alternative| it.content.as_ref().is_some_and(|ty| self.value(ty, value).is_ok());
                let json = value.to_string();
                match alternatives.iter().any(fits) {
                    true => Ok(quote! { #ident(codegen_runtime::RawJson::constant(#json)) }),
                    false => Err(NoValue),
                }
            }
        }
    }

    fn structure(&self, ident: &Ident, object: &Struct, value: &Value) -> Result<TokenStream, NoValue> {
        let members: &Map<String, Value> = value.as_object().ok_or(NoValue)?;
        let mut fields = Vec::new();
        for field in &object.fields {
            let name = &field.ident;
            let value = self.member(field, members.get(&field.name))?;
            fields.push(quote! { #name: #value });
        }
        let others = || {
            let is_named = |name: &String| object.fields.iter().any(|field| field.name == *name);
            members.iter().filter(move |(name, _)| !is_named(name))
        };
        if matches!(object.others, Others::Rejected) && others().next().is_some() {
            return Err(NoValue);
        }
        if let Some(Field {
            ident,
            ty: Type::Map { values, .. },
            ..
        }) = object.kept()
        {
            let map = self.map(values, others())?;
            fields.push(quote! { #ident: #map });
        }
        Ok(quote! { #ident { #(#fields),* } })
    }

    fn union(&self, ident: &Ident, union: &Union, value: &Value) -> Result<TokenStream, NoValue> {
        let built = |alternative: &Alternative, value: Option<&Value>| {
            let variant = &alternative.ident;
            match (&alternative.content, value) {
                (None, None) => Ok(quote! { #ident::#variant }),
                (Some(ty), Some(value)) => {
                    let content = self.value(ty, value)?;
                    Ok(quote! { #ident::#variant(#content) })
                }
                _ => Err(NoValue),
            }
        };
        let of_name = |name: &str| {
            let mut all = union.alternatives.iter();
            all.find(|alternative| alternative.values.iter().any(|value| value == name))
                .ok_or(NoValue)
        };
        match &union.tagging {
            Tagging::Member(tag) => {
                let tag = value.get(tag).and_then(Value::as_str).ok_or(NoValue)?;
                built(of_name(tag)?, Some(value))
            }
            Tagging::Name => match value {
                Value::String(name) => built(of_name(name)?, None),
                Value::Object(members) if members.len() == 1 => {
                    let (name, value) = members.iter().next().ok_or(NoValue)?;
                    built(of_name(name)?, Some(value))
                }
                _ => Err(NoValue),
            },
            Tagging::Value { exclusive } => {
                let all = union.alternatives.iter();
                let mut fitting = all.filter_map(|alternative| built(alternative, Some(value)).ok());
                let first = fitting.next().ok_or(NoValue)?;
                match *exclusive && fitting.next().is_some() {
                    true => Err(NoValue),
                    false => Ok(first),
                }
            }
        }
    }
}

/// An integer literal with its type.
pub(crate) fn integer(value: i128, kind: IntegerKind) -> TokenStream {
    TokenStream::from_str(&format!("{value}{}", kind.name())).unwrap_or_default()
}
