//! Arrays filled from arrays of documents, one within the other for each dimension.
//!
//! How many dimensions there are is what the first element of the first element … says: the first that is no array, or is empty.
//! Below that arrays are values of the elements' own type.
//!
//! Invariant: all arrays of a dimension are of the same length.
//!
//! Source: `populate_array`, `populate_array_dim_jsonb`, `populate_array_json` and their kin in `src/backend/utils/adt/jsonfuncs.c`,
//! PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use super::super::documents::{Kind, elements};
use super::fill::{Filler, Target, Value};
use crate::error::{SqlState, StatementError};

/// `MAXDIM` in `src/include/c.h`.
const MOST_DIMENSIONS: usize = 6;
/// How deep arrays may be: deeper ones are refused.
const MOST_LEVELS: usize = 100;

/// An array that grows.
pub(super) struct Dimensions<'t> {
    element: &'t Target,
    /// The name of the field.
    name: Option<&'t str>,
    /// How many there are; 0 while that is not known.
    count: usize,
    /// The length of each, once one of its arrays has ended.
    lengths: Vec<Option<usize>>,
    /// How many elements the array of each that has not ended has so far.
    sizes: Vec<usize>,
    elements: Vec<Value>,
}

impl<'t> Dimensions<'t> {
    pub(super) fn new(element: &'t Target, name: Option<&'t str>) -> Self {
        let (lengths, sizes, elements) = (Vec::new(), Vec::new(), Vec::new());
        Self { element, name, count: 0, lengths, sizes, elements }
    }

    /// Takes the elements of a document.
    ///
    /// # Errors
    /// Where it is no array, or arrays of it have several lengths, or an element is none of its type.
    pub(super) fn fill(&mut self, filler: &mut Filler<'_>, document: &str) -> Outcome<()> {
        self.dimension(filler, document, 1)?;
        if self.count > MOST_DIMENSIONS {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({MOST_DIMENSIONS})",
                self.count
            );
            return Err(StatementError::new(SqlState("54000"), message));
        }
        Ok(())
    }

    /// The length of each dimension, and the elements.
    pub(super) fn done(self) -> (Vec<usize>, Vec<Value>) {
        let outermost = self.sizes.first().copied();
        let inner = self.lengths.into_iter().skip(1).map(Option::unwrap_or_default);
        (outermost.into_iter().chain(inner).collect(), self.elements)
    }

    /// The elements of an array so deep, from 1.
    fn dimension(&mut self, filler: &mut Filler<'_>, document: &str, depth: usize) -> Outcome<()> {
        if Kind::of(document) != Kind::Array {
            return Err(self.no_array(depth - 1));
        }
        if depth > MOST_LEVELS {
            return Err(StatementError::unsupported("arrays so deep within each other"));
        }
        let parts = elements(document);
        let is_innermost = parts.first().is_none_or(|first| Kind::of(first) != Kind::Array);
        if self.count == 0 && is_innermost {
            (self.count, self.lengths, self.sizes) = (depth, vec![None; depth], vec![0; depth]);
        }
        for part in parts {
            if self.count > 0 && depth >= self.count {
                let value = filler.field(self.element, Some(part), None, None)?;
                self.elements.push(value);
                self.sizes[depth - 1] += 1;
            } else {
                self.dimension(filler, part, depth + 1)?;
                self.ended(depth)?;
            }
        }
        Ok(())
    }

    /// An array of the dimension below this one ended.
    fn ended(&mut self, depth: usize) -> Outcome<()> {
        let size = std::mem::take(&mut self.sizes[depth]);
        if *self.lengths[depth].get_or_insert(size) != size {
            return Err(StatementError::new(SqlState::INVALID_TEXT, "malformed JSON array"));
        }
        self.sizes[depth - 1] += 1;
        Ok(())
    }

    #[cold]
    fn no_array(&self, depth: usize) -> StatementError {
        let error = StatementError::new(SqlState::INVALID_TEXT, "expected JSON array");
        let sizes = self.sizes.iter().take(depth);
        let place: String = sizes.map(|size| format!("[{size}]")).collect();
        match (place.is_empty(), self.name) {
            (true, None) => error,
            (true, Some(name)) => error.with_hint(format!("See the value of key \"{name}\".")),
            (false, None) => error.with_hint(format!("See the array element {place}.")),
            (false, Some(name)) => {
                error.with_hint(format!("See the array element {place} of key \"{name}\"."))
            }
        }
    }
}
