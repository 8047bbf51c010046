//! A range type or a multirange type: its values apart, as the bounds of their ranges, and together again.
//!
//! Invariant: how bounds compare is known to be as on the server, the library that orders texts included; else the type is
//! refused.
//!
//! Source: `range_deserialize`, `range_serialize` in `src/backend/utils/adt/rangetypes.c`, `multirange_deserialize` in
//! `multirangetypes.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use pagemill_cluster::ValueLookups;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::decode::{decode, payload};
use pagemill_types::input::InputError;
use pagemill_types::input::range::{Bound, Bounds};
use pagemill_types::input::tree::{MultirangeInput, RangeInput, TypeInput};
use pagemill_types::output::ValueType;
use pagemill_types::value::{Bound as Stored, RangeValue, Value};

use super::super::collations;
use super::super::keys::{payloads, sorts_by_bytes};
use super::super::rows::Outcome;
use super::super::text_form::{no_value, payload_of};
use crate::catalog::{Catalog, RangeRow, TypeRow};
use crate::error::{SqlState, StatementError};
use crate::types::{DEFAULT_COLLATION, PgType};

/// How values of the type are put together.
enum Parts {
    One(Arc<RangeInput>),
    Several(Arc<MultirangeInput>),
}

/// A type whose values are ranges, or several of them.
pub(in crate::functions) struct RangeKind<'c> {
    catalog: &'c Catalog,
    parts: Parts,
    values: Arc<ValueType>,
    lookups: ValueLookups,
    /// The row of `pg_range`.
    pub(super) row: RangeRow,
}

impl<'c> RangeKind<'c> {
    /// A range type, a multirange type, or a domain over one.
    ///
    /// # Errors
    /// When it is none, or the order of its bounds is not known.
    pub(in crate::functions) fn new(catalog: &'c Catalog, ty: PgType) -> Outcome<Self> {
        let (base, _) = catalog.base_type(ty.oid, -1);
        let refused = |why: &dyn std::fmt::Display| {
            StatementError::unsupported(format!("type {} ({why})", catalog.type_name(base)))
        };
        let row = catalog.range_row(base).ok_or_else(|| refused(&"no range"))?;
        let inputs = catalog.inputs().map_err(|error| refused(&error))?;
        let input = inputs.value_type(base).map_err(|error| refused(&error))?;
        let parts = match &input.input {
            TypeInput::Range(range) => Parts::One(range.clone()),
            TypeInput::Multirange(ranges) => Parts::Several(ranges.clone()),
            _ => return Err(refused(&"no range")),
        };
        check_order(catalog, row)?;
        let values = catalog.values().value_type(base).map_err(|error| refused(&error))?;
        let lookups = catalog.values().lookups();
        Ok(Self { catalog, parts, values, lookups, row: *row })
    }

    /// The ranges.
    pub(super) fn range(&self) -> &RangeInput {
        match &self.parts {
            Parts::One(range) => range,
            Parts::Several(ranges) => &ranges.range,
        }
    }

    /// True for a type of several ranges.
    pub(in crate::functions) fn is_multirange(&self) -> bool {
        matches!(self.parts, Parts::Several(_))
    }

    /// The ranges of a value: one or none of a range.
    ///
    /// # Errors
    /// When the payload is damaged.
    pub(in crate::functions) fn read(&mut self, bytes: &[u8]) -> Outcome<Vec<Bounds>> {
        let Self { values, lookups, .. } = self;
        match decode(values, bytes).map_err(damaged)? {
            Value::Range(range) => Ok(bounds(lookups, &range)?.into_iter().collect()),
            Value::Multirange(several) => {
                let one = |range: pagemill_format::error::Result<RangeValue<'_>>| {
                    bounds(lookups, &range.map_err(damaged)?)
                };
                let all = several.ranges().map(one).collect::<Outcome<Vec<_>>>()?;
                Ok(all.into_iter().flatten().collect())
            }
            _ => Err(StatementError::new(SqlState::DATA_CORRUPTED, "a value that is no range")),
        }
    }

    /// The ranges of a row; `None` for NULL.
    ///
    /// # Errors
    /// When the value is damaged.
    pub(super) fn at(&mut self, column: &ArrayRef, row: usize) -> Outcome<Option<Vec<Bounds>>> {
        match column.is_null(row) {
            true => Ok(None),
            false => self.read(payloads(column).value(row)).map(Some),
        }
    }

    /// The payload of a value of such ranges: at most one for a range.
    ///
    /// # Errors
    /// When it is too long.
    pub(super) fn payload(&self, ranges: &[Bounds]) -> Outcome<Vec<u8>> {
        match &self.parts {
            Parts::One(range) => range.payload(ranges.first()),
            Parts::Several(several) => several.payload(ranges),
        }
        .map_err(failed)
    }

    /// The type of the bounds.
    pub(super) fn subtype(&self) -> PgType {
        PgType::new(self.row.subtype)
    }

    /// A value of the bounds' type as one lies in a range; `None` for NULL.
    ///
    /// # Errors
    /// When its bytes cannot be had.
    pub(super) fn element(&self, column: &ArrayRef, row: usize) -> Outcome<Option<Vec<u8>>> {
        if column.is_null(row) {
            return Ok(None);
        }
        let mut value = payload_of(self.catalog, self.subtype(), column, row)?;
        // A name is carried without the zeros behind it.
        if let Ok(length) = usize::try_from(self.range().subtype.layout.len) {
            value.resize(length, 0);
        }
        Ok(Some(value))
    }
}

/// What an input function, or what makes a range, says.
#[cold]
pub(super) fn failed(error: InputError) -> StatementError {
    no_value(error)
}

#[cold]
fn damaged(error: pagemill_format::Error) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

fn bounds(lookups: &mut ValueLookups, range: &RangeValue<'_>) -> Outcome<Option<Bounds>> {
    if range.is_empty {
        return Ok(None);
    }
    let length = range.subtype.layout.len;
    let mut bound = |stored: Option<Stored<'_>>, is_lower| -> Outcome<Bound> {
        let Some(stored) = stored else {
            return Ok(Bound { value: None, inclusive: false, is_lower });
        };
        let mut buffer = Vec::new();
        let value = payload(lookups, length, stored.value, &mut buffer).map_err(damaged)?;
        Ok(Bound { value: Some(value.to_vec()), inclusive: stored.inclusive, is_lower })
    };
    Ok(Some(Bounds { lower: bound(range.lower, true)?, upper: bound(range.upper, false)? }))
}

/// Refuses bounds whose order depends on a library that is not known to be the server's. Rows have one order to each column.
fn check_order(catalog: &Catalog, range: &RangeRow) -> Outcome<()> {
    let (mut base, _) = catalog.base_type(range.subtype, -1);
    while let Some(row) = catalog.type_row(base).filter(|row| TypeRow::is_array(row)) {
        base = catalog.base_type(row.element, -1).0;
    }
    let refused = |why: &str| {
        let name = catalog.type_name(range.range);
        StatementError::unsupported(format!("the order of the bounds of type {name} ({why})"))
    };
    if catalog.type_row(base).is_some_and(|row| row.kind == b'c') {
        return Err(refused("they are rows"));
    }
    if let Some(inner) = catalog.range_row(base) {
        return check_order(catalog, inner);
    }
    // The strings of documents are in the order of the database.
    let collation = if base == oid::JSONB { DEFAULT_COLLATION } else { range.collation };
    if collation == Oid(0) || sorts_by_bytes(catalog, collation) {
        return Ok(());
    }
    collations::locale(catalog, collation).map(drop).map_err(|why| refused(&why))
}
