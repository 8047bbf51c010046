//! Aggregates that need all values at once: arrays, JSON documents, the most frequent value, sets of ranges.
//!
//! Source: `array_agg_finalfn` and `accumArrayResultArr` in `src/backend/utils/adt/arrayfuncs.c`, `json_agg_transfn` in `json.c`,
//! `mode_final` in `orderedsetaggs.c`, PostgreSQL 14 to 18.
//!
//! Invariant: the values come sorted where the aggregate was called with an order.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{filter, is_not_null};
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use crate::error::{SqlState, StatementError};
use crate::functions::KernelCall;
use crate::functions::arrays::array_at;
use crate::functions::arrays::value::{ArrayParts, Bound, ElementType, unexpected};
use crate::functions::logic::{JsonShape, collected_json};
use crate::functions::ranges::collected as collected_ranges;

/// What is made of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Making {
    Array,
    /// An array of arrays of one shape.
    ArrayOfArrays,
    Json(JsonShape),
    /// The most frequent, of the keys behind the values.
    Mode,
    /// All ranges together.
    Union,
    /// What all ranges have in common.
    Intersection,
}

/// An aggregate of all values.
#[derive(Clone)]
pub(super) struct Whole {
    pub(super) making: Making,
    pub(super) call: KernelCall,
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.call.key, self.making)
    }
}

impl PartialEq for Whole {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.call, &other.call);
        self.making == other.making
            && a.key == b.key
            && a.arguments == b.arguments
            && a.result == b.result
    }
}

impl Eq for Whole {}

impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.making.hash(state);
        self.call.key.hash(state);
        self.call.arguments.hash(state);
    }
}

impl OfAllRows for Whole {
    fn of(&self, columns: &[ArrayRef]) -> Result<ScalarValue, StatementError> {
        let null = || ScalarValue::try_from(&self.call.carrier).map_err(unexpected);
        let values = &columns[0];
        if values.is_empty() {
            return null();
        }
        let payload = |bytes: Vec<u8>| Ok(ScalarValue::Binary(Some(bytes)));
        match self.making {
            Making::Array => {
                let elements = ElementType::of_array(&self.call.catalog, self.call.result)?;
                let found = (0..values.len()).map(|row| elements.element(values, row));
                let found = found.collect::<Result<Vec<_>, _>>()?;
                payload(ArrayParts::of(found).payload(&elements)?)
            }
            Making::ArrayOfArrays => {
                let elements = ElementType::of_array(&self.call.catalog, self.call.result)?;
                payload(stacked(&elements, values)?.payload(&elements)?)
            }
            Making::Json(shape) => {
                let made = collected_json(&self.call, columns, shape)?;
                ScalarValue::try_from_array(&made, 0).map_err(unexpected)
            }
            Making::Union | Making::Intersection => {
                let is_common = self.making == Making::Intersection;
                match collected_ranges(&self.call, values, is_common)? {
                    Some(bytes) => payload(bytes),
                    None => null(),
                }
            }
            Making::Mode => {
                let present = |array: &ArrayRef| {
                    let mask = is_not_null(values).expect("any array has validity"); // infallible: of the kernel
                    filter(array, &mask).map_err(|error| unexpected(error.into()))
                };
                let columns = columns.iter().map(present).collect::<Result<Vec<_>, _>>()?;
                match columns[0].is_empty() {
                    true => null(),
                    false => Self::most_frequent(&columns),
                }
            }
        }
    }
}

impl Whole {
    /// The value that is there most often, the first one of several; none is NULL, equal ones are beside each other.
    fn most_frequent(columns: &[ArrayRef]) -> Result<ScalarValue, StatementError> {
        let keys = &columns[1];
        let count = keys.len();
        let (mut best, mut best_count, mut begin) = (0, 0, 0);
        for row in 1..=count {
            if row < count && keys.slice(row, 1).to_data() == keys.slice(begin, 1).to_data() {
                continue;
            }
            if row - begin > best_count {
                (best, best_count) = (begin, row - begin);
            }
            begin = row;
        }
        ScalarValue::try_from_array(&columns[0], best).map_err(unexpected)
    }
}

/// Arrays of one shape as an array of one dimension more.
fn stacked(elements: &ElementType<'_>, values: &ArrayRef) -> Result<ArrayParts, StatementError> {
    let error = |state: &'static str, what: &str| {
        Err(StatementError::new(SqlState(state), format!("cannot accumulate {what}")))
    };
    let mut all: Option<ArrayParts> = None;
    for row in 0..values.len() {
        let Some(mut parts) = array_at(elements, values, row)? else {
            return error("22004", "null arrays");
        };
        match &mut all {
            None if parts.bounds.is_empty() => return error("2202E", "empty arrays"),
            None => all = Some(parts),
            Some(before) if before.bounds == parts.bounds => {
                before.elements.append(&mut parts.elements);
            }
            Some(_) => return error("2202E", "arrays of different dimensionality"),
        }
    }
    let mut all = all.expect("there is a row"); // infallible: asked by the caller
    if all.bounds.len() >= 6 {
        let message = format!(
            "number of array dimensions ({}) exceeds the maximum allowed (6)",
            all.bounds.len() + 1
        );
        return Err(StatementError::new(SqlState("54000"), message));
    }
    all.bounds.insert(0, Bound { count: values.len() as i32, lower: 1 });
    Ok(all)
}

/// What is computed of all rows together.
pub(super) trait OfAllRows: fmt::Debug + Send + Sync + 'static {
    /// The value of columns of all rows.
    ///
    /// # Errors
    /// As the server's function.
    fn of(&self, columns: &[ArrayRef]) -> Result<ScalarValue, StatementError>;
}

/// Takes all rows at once, from what keeps them.
#[derive(Debug)]
pub(super) struct AtOnce {
    wanted: Arc<dyn OfAllRows>,
    columns: Vec<ArrayRef>,
}

impl AtOnce {
    pub(super) fn new(wanted: Arc<dyn OfAllRows>) -> Self {
        Self { wanted, columns: Vec::new() }
    }
}

impl Accumulator for AtOnce {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        assert!(self.columns.is_empty(), "all rows come at once");
        self.columns = values.to_vec();
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        self.wanted.of(&self.columns).map_err(DataFusionError::from)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        unreachable!("the rows are kept by another")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> QueryResult<()> {
        unreachable!("the rows are kept by another")
    }
}
