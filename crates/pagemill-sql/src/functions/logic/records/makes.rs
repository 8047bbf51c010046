//! Types as the catalogs have them, for rows that are filled from documents, and their values as payloads.
//!
//! Values are read by the types' own input functions, as everywhere; arrays and rows are put together as the server lays them out.
//!
//! Source: `prepare_column_cache` in `src/backend/utils/adt/jsonfuncs.c`, `construct_md_array` in `arrayfuncs.c`, `heap_form_tuple`
//! in `src/backend/access/common/heaptuple.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::composite::{composite_fields, composite_payload};
use pagemill_types::input::tree::{InputType, TypeInput};
use pagemill_types::output::{CompositeAttribute, TypeOutput, ValueType};

use super::super::super::arrays::value::{ArrayParts, Bound, ElementType};
use super::super::super::rows::Outcome;
use super::super::super::text_form::{no_value, payload_of_text};
use super::fill::{Makes, Parts, Target, Value};
use crate::catalog::Catalog;
use crate::error::{Error, SqlState, StatementError};
use crate::types::PgType;

/// How deep types may be within each other.
const MOST_LEVELS: usize = 32;

/// Makes values of a database's types.
pub(super) struct Payloads<'c>(pub(super) &'c Catalog);

#[cold]
pub(super) fn damaged(error: impl std::fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

fn stored_type(catalog: &Catalog, oid: Oid) -> Outcome<Arc<ValueType>> {
    catalog.values().value_type(oid).map_err(damaged)
}

/// What values of a type are made of.
///
/// # Errors
/// For types that are not followed: vectors of numbers, which are no arrays here.
pub(super) fn target_of(catalog: &Catalog, ty: PgType) -> Outcome<Target> {
    let stored = stored_type(catalog, ty.oid)?;
    target((catalog, 0), &stored, ty.modifier)
}

fn target(
    (catalog, level): (&Catalog, usize),
    value_type: &ValueType,
    modifier: i32,
) -> Outcome<Target> {
    if level >= MOST_LEVELS {
        return Err(StatementError::unsupported("types so deep within each other"));
    }
    let inner = (catalog, level + 1);
    let parts = match &value_type.output {
        _ if value_type.oid != value_type.base => {
            let base = stored_type(catalog, value_type.base)?;
            Parts::Domain(Box::new(target(inner, &base, value_type.base_modifier)?))
        }
        _ if matches!(value_type.oid, oid::JSON | oid::JSONB) => Parts::Document,
        _ if matches!(value_type.oid, oid::INT2VECTOR | oid::OIDVECTOR) => {
            return Err(StatementError::unsupported("a vector of numbers from a document"));
        }
        TypeOutput::Array(element) => Parts::Elements(Box::new(target(inner, element, modifier)?)),
        TypeOutput::Composite(attributes) => Parts::Fields(fields(inner, attributes)?),
        _ => Parts::None,
    };
    Ok(Target { oid: value_type.oid.0, modifier, parts })
}

fn fields(
    inner: (&Catalog, usize),
    attributes: &[CompositeAttribute],
) -> Outcome<Vec<(String, Target)>> {
    let field = |attribute: &CompositeAttribute| {
        let name = String::from_utf8_lossy(&attribute.name).into_owned();
        let value_type = attribute.value_type.as_ref()?;
        Some(target(inner, value_type, attribute.type_modifier).map(|target| (name, target)))
    };
    attributes.iter().filter_map(field).collect()
}

impl Makes for Payloads<'_> {
    fn read(&mut self, target: &Target, text: &str) -> Outcome<Vec<u8>> {
        let ty = PgType::new(Oid(target.oid)).with_modifier(target.modifier);
        input_of(self.0, ty.oid)?;
        let checked = self.0.check_written_name(ty.oid, text);
        checked.map_err(|error: Error| error.report())?;
        payload_of_text(self.0, ty, text)
    }

    fn array(
        &mut self,
        target: &Target,
        lengths: &[usize],
        elements: Vec<Value>,
    ) -> Outcome<Vec<u8>> {
        let ty = PgType::new(Oid(target.oid)).with_modifier(target.modifier);
        let of = ElementType::of_array(self.0, ty)?;
        let elements = elements.into_iter().map(|value| value.map(|value| of.padded(value)));
        let elements: Vec<Value> = elements.collect();
        let bound = |length: &usize| Bound { count: *length as i32, lower: 1 };
        let bounds = match elements.is_empty() {
            true => Vec::new(),
            false => lengths.iter().map(bound).collect(),
        };
        ArrayParts { bounds, elements }.payload(&of)
    }

    fn row(&mut self, target: &Target, fields: Vec<Value>) -> Outcome<Vec<u8>> {
        let of = stored_type(self.0, Oid(target.oid))?;
        let made = composite_payload(of.oid, attributes_of(&of)?, fields.into_iter());
        made.map_err(|error| StatementError::new(SqlState("54000"), error.message))
    }

    fn fields(&mut self, target: &Target, row: &[u8]) -> Outcome<Vec<Value>> {
        let of = stored_type(self.0, Oid(target.oid))?;
        composite_fields(row, attributes_of(&of)?).map_err(damaged)
    }

    fn accept(&mut self, domain: &Target, value: Option<&[u8]>) -> Outcome<()> {
        match &input_of(self.0, Oid(domain.oid))?.input {
            TypeInput::Domain(known) => known.accept(value).map_err(no_value),
            _ => Ok(()),
        }
    }
}

/// How a type is read: refused where that is not known, as for domains whose checks cannot be made.
fn input_of(catalog: &Catalog, oid: Oid) -> Outcome<Arc<InputType>> {
    let inputs = catalog.inputs().map_err(|error| error.report())?;
    let what = |error| StatementError::unsupported(format!("a value from a document ({error})"));
    inputs.value_type(oid).map_err(what)
}

fn attributes_of(value_type: &ValueType) -> Outcome<&[CompositeAttribute]> {
    match &value_type.output {
        TypeOutput::Composite(attributes) => Ok(attributes),
        _ => Err(StatementError::unsupported("a row of a type that is none of rows")),
    }
}
