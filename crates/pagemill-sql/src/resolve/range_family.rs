//! What `anyrange` and `anymultirange` in the declaration of a function stand for, given its arguments.
//!
//! Invariant: ranges, multiranges and elements of one call belong together; else the function does not fit.
//!
//! Source: `check_generic_type_consistency` and `enforce_generic_type_consistency` in `src/backend/parser/parse_coerce.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::Oid;

use super::{polymorphic, polymorphic_element};
use crate::catalog::{Catalog, RangeRow};
use crate::error::{Result, SqlState, StatementError};
use crate::types::UNKNOWN;

/// What `anyrange` and `anymultirange` of one function are.
pub(super) struct RangeFamily<'c>(pub(super) Option<&'c RangeRow>);

impl<'c> RangeFamily<'c> {
    /// As the arguments have it that are of known types.
    ///
    /// # Errors
    /// When they are not all of one type, or ranges of it.
    pub(super) fn of(catalog: &'c Catalog, declared: &[Oid], given: &[Oid]) -> Result<Self> {
        let mut found: Option<&'c RangeRow> = None;
        for (declared, given) in declared.iter().zip(given) {
            if *given == UNKNOWN || !polymorphic::is_range(*declared) {
                continue;
            }
            let base = catalog.base_type(*given, -1).0;
            let is_it = |row: &&RangeRow| named(row, *declared) == base;
            let row = catalog.range_row(base).filter(is_it);
            if row.is_none() || found.is_some_and(|found| Some(found) != row) {
                let message = "arguments declared \"anyrange\" are not all alike";
                return Err(StatementError::new(SqlState::DATATYPE_MISMATCH, message).into());
            }
            found = row;
        }
        Ok(Self(found))
    }

    /// The type of elements: that of the bounds, where there are ranges.
    pub(super) fn element(
        &self,
        catalog: &Catalog,
        declared: &[Oid],
        given: &[Oid],
    ) -> Result<Option<Oid>> {
        match self.0 {
            Some(row) => Ok(Some(row.subtype)),
            None => polymorphic_element(catalog, declared, given),
        }
    }

    /// What stands for a polymorphic type of ranges; nothing where no argument tells.
    pub(super) fn settled(&self, wanted: Oid) -> Option<Oid> {
        self.0.map(|row| named(row, wanted))
    }
}

/// The type of a family that a polymorphic type of ranges stands for.
fn named(row: &RangeRow, wanted: Oid) -> Oid {
    match polymorphic::is_multirange(wanted) {
        true => row.multirange,
        false => row.range,
    }
}
