//! An array apart: its bounds and the payloads of its elements.
//!
//! Invariant: as many elements as the bounds say; an array without elements has no bounds.
//!
//! Source: `src/include/utils/array.h`, `construct_md_array` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_format::tuple::AttributeLayout;
use pagemill_types::array::element_payloads;

use super::super::rows::Outcome;
use super::super::text_form::{payload_of, scalar_of_payload};
use crate::catalog::Catalog;
use crate::coerce::collated;
use crate::error::{SqlState, StatementError};
use crate::types::PgType;

/// The length word in front of a payload, from which alignment counts.
const LENGTH_WORD: usize = 4;
/// Dimensions, offset, element type.
const FIXED_WORDS: usize = 3;
/// `MaxArraySize` in `src/include/utils/array.h`, for elements of a pointer's length.
const MOST_ELEMENTS: usize = 134_217_727;

/// How many elements a dimension has, and the subscript of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) count: i32,
    pub(crate) lower: i32,
}

impl Bound {
    /// The subscript of the last.
    pub(crate) fn upper(self) -> i32 {
        self.lower.wrapping_add(self.count).wrapping_sub(1)
    }
}

/// An array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayParts {
    pub(crate) bounds: Vec<Bound>,
    /// In row-major order.
    pub(crate) elements: Vec<Option<Vec<u8>>>,
}

impl ArrayParts {
    /// An array of one dimension, from 1.
    pub(crate) fn of(elements: Vec<Option<Vec<u8>>>) -> Self {
        let bound = Bound { count: elements.len() as i32, lower: 1 };
        let bounds = if elements.is_empty() { Vec::new() } else { vec![bound] };
        Self { bounds, elements }
    }

    /// Takes a payload apart.
    pub(crate) fn read(elements: &ElementType<'_>, payload: &[u8]) -> Outcome<Self> {
        let number = |at: usize| {
            let bytes = payload.get(at * 4..).and_then(|bytes| bytes.first_chunk::<4>());
            bytes.map_or(0, |bytes| i32::from_le_bytes(*bytes))
        };
        let found = element_payloads(payload, elements.layout)
            .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
        if found.is_empty() {
            return Ok(Self::of(found));
        }
        let count = number(0).max(0) as usize;
        let bound = |at: usize| Bound {
            count: number(FIXED_WORDS + at),
            lower: number(FIXED_WORDS + count + at),
        };
        Ok(Self { bounds: (0..count).map(bound).collect(), elements: found })
    }

    /// The payload.
    pub(crate) fn payload(&self, elements: &ElementType<'_>) -> Outcome<Vec<u8>> {
        if self.elements.len() > MOST_ELEMENTS {
            return Err(too_many());
        }
        let has_null = self.elements.contains(&None);
        let header = LENGTH_WORD + (FIXED_WORDS + 2 * self.bounds.len()) * 4;
        let bits = if has_null { self.elements.len().div_ceil(8) } else { 0 };
        let data = (header + bits).next_multiple_of(8);
        let mut out = Vec::with_capacity(data);
        let offset = if has_null { data as i32 } else { 0 };
        let counts = self.bounds.iter().map(|bound| bound.count);
        let lowers = self.bounds.iter().map(|bound| bound.lower);
        let words = [self.bounds.len() as i32, offset, elements.ty.oid.0 as i32].into_iter();
        words.chain(counts).chain(lowers).for_each(|word| out.extend(word.to_le_bytes()));
        if self.elements.is_empty() {
            return Ok(out);
        }
        let begin = out.len();
        out.resize(begin + bits, 0);
        if has_null {
            let present = self.elements.iter().enumerate().filter(|(_, element)| element.is_some());
            present.for_each(|(number, _)| out[begin + number / 8] |= 1 << (number % 8));
        }
        out.resize(data - LENGTH_WORD, 0);
        self.elements.iter().flatten().for_each(|element| push(elements.layout, element, &mut out));
        Ok(out)
    }
}

/// Appends an element behind what alignment wants. Lengths count the word in front of the payload.
fn push(layout: AttributeLayout, element: &[u8], out: &mut Vec<u8>) {
    let aligned = (out.len() + LENGTH_WORD).next_multiple_of(usize::from(layout.align));
    out.resize(aligned - LENGTH_WORD, 0);
    if layout.len == -1 {
        out.extend((((element.len() + LENGTH_WORD) as u32) << 2).to_le_bytes());
    }
    out.extend_from_slice(element);
}

#[cold]
pub(crate) fn too_many() -> StatementError {
    let message = format!("array size exceeds the maximum allowed ({MOST_ELEMENTS})");
    StatementError::new(SqlState("54000"), message)
}

/// The type of an array's elements.
pub(crate) struct ElementType<'c> {
    pub(crate) catalog: &'c Catalog,
    pub(crate) ty: PgType,
    /// What carries them outside of arrays.
    pub(crate) carrier: DataType,
    layout: AttributeLayout,
}

impl<'c> ElementType<'c> {
    /// The elements of an array type, or of a domain over one.
    pub(crate) fn of_array(catalog: &'c Catalog, array: PgType) -> Outcome<Self> {
        let (base, modifier) = catalog.base_type(array.oid, array.modifier);
        let row = catalog.type_row(base).filter(|row| row.is_array());
        let element = row.map_or(Oid(0), |row| row.element);
        let mut ty = collated(catalog, element).with_modifier(modifier);
        if ty.collation != Oid(0) && array.collation != Oid(0) {
            ty.collation = array.collation;
        }
        Self::new(catalog, ty)
    }

    fn new(catalog: &'c Catalog, ty: PgType) -> Outcome<Self> {
        let value_type = catalog
            .values()
            .value_type(ty.oid)
            .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
        let layout = value_type.layout;
        if layout.len < -1 {
            return Err(StatementError::unsupported("an array of C strings"));
        }
        let carrier = crate::coerce::carrier_of(catalog, ty);
        Ok(Self { catalog, ty, carrier, layout })
    }

    /// An element as a value by itself.
    pub(crate) fn value(&self, element: Option<&[u8]>) -> Outcome<ScalarValue> {
        match element {
            Some(payload) => scalar_of_payload(self.catalog, self.ty, &self.carrier, payload),
            None => ScalarValue::try_from(&self.carrier).map_err(unexpected),
        }
    }

    /// A payload as long as those of the type are.
    pub(crate) fn padded(&self, mut payload: Vec<u8>) -> Vec<u8> {
        if let Ok(length) = usize::try_from(self.layout.len) {
            payload.resize(length, 0);
        }
        payload
    }

    /// A value as an element.
    pub(crate) fn element(&self, column: &ArrayRef, row: usize) -> Outcome<Option<Vec<u8>>> {
        if column.is_null(row) {
            return Ok(None);
        }
        let payload = payload_of(self.catalog, self.ty, column, row)?;
        Ok(Some(self.padded(payload)))
    }

    /// A column of such values.
    pub(crate) fn column(&self, values: Vec<ScalarValue>) -> Outcome<ArrayRef> {
        match values.is_empty() {
            true => Ok(arrow::array::new_empty_array(&self.carrier)),
            false => ScalarValue::iter_to_array(values).map_err(unexpected),
        }
    }
}

#[cold]
pub(crate) fn unexpected(error: datafusion::error::DataFusionError) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}
