//! Boxes for types that contain themselves.

use std::collections::BTreeMap;

use proc_macro2::Ident;

use crate::model::{Shape, Type, TypeDefinition, closure};

/// Boxes the members and alternatives through which a type contains itself. Cycles that consist only of names remain.
pub fn place(types: &mut [TypeDefinition]) {
    let by_name: BTreeMap<Ident, usize> = types.iter().map(|it| it.ident.clone()).zip(0..).collect();
    for index in 0..types.len() {
        let mut count = 0;
        while let Some(ty) = nth(&mut types[index], count) {
            count += 1;
            let Some(held) = ty.held().cloned() else { continue };
            let reached = closure([held], |ident| {
                let definition = by_name.get(ident).map(|index| &types[*index]);
                definition.into_iter().flat_map(|it| it.held().cloned()).collect()
            });
            if !reached.contains(&types[index].ident) {
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

fn enclose(ty: &mut Type) {
    match ty {
        Type::Nullable(inner) => enclose(inner),
        other => *other = Type::Boxed(Box::new(std::mem::replace(other, Type::Any))),
    }
}
