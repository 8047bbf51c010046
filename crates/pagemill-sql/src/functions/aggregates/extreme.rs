//! min and max of types whose order is not that of what carries them: by the key, and of equal ones the last or first as the
//! server has it.
//!
//! Source: `float8larger` in `float.c`, `numeric_larger` in `numeric.c`, `interval_larger` in `timestamp.c`, `bpchar_larger` in
//! `varchar.c`, PostgreSQL 18.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use crate::functions::collations::Collator;

/// Which value is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Extreme {
    /// The greatest, not the least.
    pub(super) is_greatest: bool,
    /// Of equal ones the first, not the last.
    pub(super) keeps_first: bool,
    /// The collation that keys are compared in which are texts that their bytes do not sort.
    pub(super) collator: Option<Collator>,
}

impl Extreme {
    fn is_better(&self, new: &Key<'_>, best: &Key<'_>) -> bool {
        let order = match (&self.collator, new, best) {
            (Some(collator), Key::Text(new), Key::Text(best)) => collator.order.compare(new, best),
            _ => new.compare(best),
        };
        match order {
            Ordering::Equal => !self.keeps_first,
            Ordering::Greater => self.is_greatest,
            Ordering::Less => !self.is_greatest,
        }
    }
}

/// A key by which values are compared.
#[derive(Debug, Clone, Copy)]
enum Key<'a> {
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Key<'a> {
    fn of(array: &'a ArrayRef, row: usize) -> Self {
        match array.data_type() {
            DataType::Float32 => Self::Float(array.as_primitive::<Float32Type>().value(row).into()),
            DataType::Float64 => Self::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Self::Text(array.as_string::<i32>().value(row)),
            _ => Self::Bytes(array.as_binary::<i32>().value(row)),
        }
    }

    /// Of a float's key zeros and NaN are one each, and NaN is positive.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            _ => unreachable!("keys of one column are of one kind"),
        }
    }
}

/// True for the keys that are compared here.
pub(super) fn is_key(carrier: &DataType) -> bool {
    matches!(carrier, DataType::Float32 | DataType::Float64 | DataType::Utf8 | DataType::Binary)
}

/// The best value so far and its key, as columns of one row.
#[derive(Debug)]
pub(super) struct Best {
    extreme: Extreme,
    best: Option<[ArrayRef; 2]>,
    carriers: [DataType; 2],
}

impl Best {
    pub(super) fn new(extreme: Extreme, value: &DataType, key: &DataType) -> Self {
        Self { extreme, best: None, carriers: [value.clone(), key.clone()] }
    }

    fn scalars(&self) -> QueryResult<[ScalarValue; 2]> {
        match &self.best {
            None => Ok([(&self.carriers[0]).try_into()?, (&self.carriers[1]).try_into()?]),
            Some([value, key]) => {
                Ok([ScalarValue::try_from_array(value, 0)?, ScalarValue::try_from_array(key, 0)?])
            }
        }
    }
}

impl Accumulator for Best {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        let (value, key) = (&values[0], &values[1]);
        let mut best: Option<(usize, Key<'_>)> = None;
        for row in (0..value.len()).filter(|row| value.is_valid(*row)) {
            let new = Key::of(key, row);
            if best.is_none_or(|(_, old)| self.extreme.is_better(&new, &old)) {
                best = Some((row, new));
            }
        }
        let Some((row, new)) = best else { return Ok(()) };
        let is_better = match &self.best {
            None => true,
            Some([_, old]) => self.extreme.is_better(&new, &Key::of(old, 0)),
        };
        if is_better {
            let copy = |array: &ArrayRef| ScalarValue::try_from_array(array, row)?.to_array();
            self.best = Some([copy(value)?, copy(key)?]);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        let [value, _] = self.scalars()?;
        Ok(value)
    }

    fn size(&self) -> usize {
        let arrays = self.best.iter().flatten().map(|array| array.get_array_memory_size());
        size_of::<Self>() + arrays.sum::<usize>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        Ok(self.scalars()?.to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        self.update_batch(states)
    }
}
