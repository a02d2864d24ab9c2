//! Boxes for types that contain themselves.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;

use crate::model::{Shape, Type, TypeDefinition};

/// Boxes the members and alternatives through which a type contains itself. Cycles that consist only of names remain.
pub fn place(types: &mut [TypeDefinition]) {
    let by_name: BTreeMap<Ident, usize> = types.iter().map(|it| it.ident.clone()).zip(0..).collect();
    for index in 0..types.len() {
        let mut count = 0;
        while let Some(ty) = nth(&mut types[index], count) {
            count += 1;
            let Some(held) = ty.held().cloned() else { continue };
            if !reaches(types, &by_name, &held, index) {
                continue;
            }
            if let Some(ty) = nth(&mut types[index], count - 1) {
                enclose(ty);
            }
        }
    }
}

/// The type of the nth member or alternative.
fn nth(definition: &mut TypeDefinition, index: usize) -> Option<&mut Type> {
    match &mut definition.shape {
        Shape::Struct(object) => object.fields.get_mut(index).map(|field| &mut field.ty),
        Shape::Union(union) => {
            let mut contents = union.alternatives.iter_mut().filter_map(|it| it.content.as_mut());
            contents.nth(index)
        }
        Shape::Joined(parts) => parts.get_mut(index).map(|part| &mut part.ty),
        Shape::Checked(_) | Shape::Newtype(_) | Shape::Enum(_) => None,
    }
}

/// Whether a value of type `from` contains a value of the type at index `to`.
fn reaches(types: &[TypeDefinition], by_name: &BTreeMap<Ident, usize>, from: &Ident, to: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(ident) = next.pop() {
        if *ident == types[to].ident {
            return true;
        }
        if seen.insert(ident)
            && let Some(index) = by_name.get(ident)
        {
            next.extend(types[*index].held());
        }
    }
    false
}

fn enclose(ty: &mut Type) {
    match ty {
        Type::Nullable(inner) => enclose(inner),
        other => *other = Type::Boxed(Box::new(std::mem::replace(other, Type::Any))),
    }
}
