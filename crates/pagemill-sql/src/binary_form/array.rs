//! Arrays in binary form: dimensions, whether there are NULLs, the type of the elements, bounds, and elements behind their lengths.
//!
//! Invariants: there are as many elements as the bounds say; an element's type is that of the array.
//!
//! Source: `array_recv`, `array_send` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 18.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use pagemill_format::Oid;

use super::inner::framed;
use super::{BinaryForm, constant, wrong};
use crate::catalog::{Catalog, TypeRow};
use crate::error::{Result, SqlState, fail};
use crate::functions::arrays::value::{ArrayParts, Bound, ElementType, unexpected};
use crate::functions::text_form::Printer;
use crate::types::PgType;

/// `MAXDIM` in `src/include/utils/array.h`.
const MOST_DIMENSIONS: i32 = 6;
/// The length of NULL.
pub(super) const NULL: i32 = -1;

/// The type of an array's elements; `None` for another type.
pub(super) fn element(catalog: &Catalog, array: Oid) -> Option<PgType> {
    let row = catalog.type_row(array).filter(|row| TypeRow::is_array(row))?;
    Some(PgType::new(row.element))
}

/// Appends the binary form of an array's payload.
pub(super) fn put(
    catalog: &Arc<Catalog>,
    (ty, form): (PgType, &BinaryForm),
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let elements = ElementType::of_array(catalog, ty)?;
    let parts = ArrayParts::read(&elements, payload)?;
    let mut word = |word: i32| out.extend(word.to_be_bytes());
    word(parts.bounds.len() as i32);
    word(i32::from(parts.elements.contains(&None)));
    word(elements.ty.oid.0 as i32);
    for bound in &parts.bounds {
        word(bound.count);
        word(bound.lower);
    }
    let mut printer = Printer::new(catalog, elements.ty)?;
    for element in &parts.elements {
        let Some(payload) = element else {
            out.extend(NULL.to_be_bytes());
            continue;
        };
        framed(out, |out| match form {
            BinaryForm::Text | BinaryForm::Versioned | BinaryForm::Numeric => {
                let value = elements.value(Some(payload))?;
                let value = value.to_array().map_err(unexpected)?;
                super::print((&mut printer, form), &value, 0, out)
            }
            _ => super::put((catalog, elements.ty), form, payload, out),
        })?;
    }
    Ok(())
}

/// Words and elements of a value that comes in.
pub(super) struct Incoming<'b>(pub(super) &'b [u8]);

impl<'b> Incoming<'b> {
    pub(super) fn word(&mut self) -> Result<i32> {
        let Some((word, rest)) = self.0.split_first_chunk::<4>() else { return wrong() };
        self.0 = rest;
        Ok(i32::from_be_bytes(*word))
    }

    pub(super) fn element(&mut self) -> Result<Option<&'b [u8]>> {
        let length = self.word()?;
        if length == NULL {
            return Ok(None);
        }
        let found = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let Some((element, rest)) = found else { return wrong() };
        self.0 = rest;
        Ok(Some(element))
    }
}

/// The payload of an array by its binary form.
///
/// # Errors
/// When it is none, or an element is none of its type.
pub(super) fn payload(catalog: &Arc<Catalog>, ty: PgType, bytes: &[u8]) -> Result<Vec<u8>> {
    let elements = ElementType::of_array(catalog, ty)?;
    let mut incoming = Incoming(bytes);
    let (dimensions, flags, type_oid) = (incoming.word()?, incoming.word()?, incoming.word()?);
    if !(0..=MOST_DIMENSIONS).contains(&dimensions) || !(0..=1).contains(&flags) {
        return wrong();
    }
    if type_oid as u32 != elements.ty.oid.0 {
        let (given, wanted) = (type_oid as u32, elements.ty.oid.0);
        let message = format!(
            "binary data has array element type {given} ({}) instead of expected {wanted} ({})",
            catalog.type_name(Oid(given)),
            catalog.type_name(elements.ty.oid)
        );
        return fail(SqlState("42804"), message);
    }
    let bounds = (0..dimensions).map(|_| {
        let (count, lower) = (incoming.word()?, incoming.word()?);
        match count >= 0 && lower.checked_add(count).is_some() {
            true => Ok(Bound { count, lower }),
            false => wrong(),
        }
    });
    let bounds = bounds.collect::<Result<Vec<Bound>>>()?;
    let count = bounds.iter().try_fold(1_usize, |all, bound| all.checked_mul(bound.count as usize));
    // Each has a length of four bytes: what says more is refused before anything is made of it.
    let count = match count {
        _ if bounds.is_empty() => 0,
        Some(count) if count <= incoming.0.len() / 4 => count,
        _ => return wrong(),
    };
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        found.push(match incoming.element()? {
            None => None,
            Some(bytes) => element_payload(catalog, &elements, bytes)?,
        });
    }
    if !incoming.0.is_empty() {
        return wrong();
    }
    let bounds = if count == 0 { Vec::new() } else { bounds };
    Ok(ArrayParts { bounds, elements: found }.payload(&elements)?)
}

fn element_payload(
    catalog: &Arc<Catalog>,
    elements: &ElementType<'_>,
    bytes: &[u8],
) -> Result<Option<Vec<u8>>> {
    let Expr::Literal(value, _) = constant(catalog, elements.ty, bytes)?.expr else {
        return wrong();
    };
    let value = value.to_array().map_err(unexpected)?;
    Ok(elements.element(&value, 0)?)
}
