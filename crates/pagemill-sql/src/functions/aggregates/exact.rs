//! The accumulators of exact numbers: of one group, and of many at a time.
//!
//! Invariant: no sum wraps or rounds; what a decimal of 38 digits does not hold goes on as a number of any length, or ends in
//! an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanArray, Decimal128Array,
    PrimitiveArray,
};
use arrow::datatypes::DataType;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::scalar::ScalarValue;

use super::sums::{Sums, Wanted};
use crate::error::StatementError;
use crate::functions::keys::payloads;
use crate::functions::numeric::column::{self, Numbers};
use crate::functions::numeric::value::{Integer, Value};

/// What is computed, and what carries it.
#[derive(Debug, Clone)]
pub(super) struct Exact {
    pub(super) wanted: Wanted,
    pub(super) carrier: DataType,
}

impl Exact {
    /// Results, one for each group.
    fn results(&self, groups: &[Sums]) -> Result<ArrayRef, StatementError> {
        match &self.carrier {
            DataType::Decimal128(..) => {
                let found: Decimal128Array =
                    groups.iter().map(Sums::decimal).collect::<Result<_, StatementError>>()?;
                Ok(Arc::new(found.with_data_type(self.carrier.clone())))
            }
            _ => column::build(groups.len(), |group| groups[group].result(self.wanted)),
        }
    }

    /// Adds the rows that `group_of` has a group for.
    fn add(
        &self,
        array: &ArrayRef,
        groups: &mut [Sums],
        group_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), StatementError> {
        let column = Numbers::of(array);
        if let Wanted::Sum | Wanted::Average = self.wanted {
            match &column {
                Numbers::Short(array) => add_all(array, 0, groups, group_of),
                Numbers::Integer(array) => add_all(array, 0, groups, group_of),
                Numbers::Long(array) => add_all(array, 0, groups, group_of),
                Numbers::Decimal(array, scale) => add_all(array, *scale, groups, group_of),
                Numbers::Payload(_) => {
                    return self.add_each(&column, array.len(), groups, group_of);
                }
            }
            return Ok(());
        }
        self.add_each(&column, array.len(), groups, group_of)
    }

    fn add_each(
        &self,
        column: &Numbers<'_>,
        rows: usize,
        groups: &mut [Sums],
        group_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), StatementError> {
        for row in 0..rows {
            if let Some(group) = group_of(row)
                && let Some(value) = column.get(row)?
            {
                groups[group].add(&value, self.wanted);
            }
        }
        Ok(())
    }
}

#[inline]
fn add_all<T: ArrowPrimitiveType<Native: Into<i128>>>(
    array: &PrimitiveArray<T>,
    scale: u32,
    groups: &mut [Sums],
    group_of: impl Fn(usize) -> Option<usize>,
) {
    for row in 0..array.len() {
        if let Some(group) = group_of(row)
            && array.is_valid(row)
        {
            groups[group].add_small(array.value(row).into(), scale);
        }
    }
}

fn states(groups: &[Sums]) -> ArrayRef {
    let mut column = BinaryBuilder::with_capacity(groups.len(), groups.len() * 72);
    let mut state = Vec::new();
    for group in groups {
        state.clear();
        group.write(&mut state);
        column.append_value(&state);
    }
    Arc::new(column.finish())
}

/// Of one group.
#[derive(Debug)]
pub(super) struct One {
    exact: Exact,
    sums: [Sums; 1],
    takes_back: bool,
}

impl One {
    /// Values of one scale can be taken back, as a window that moves on does.
    pub(super) fn new(exact: Exact, takes: &DataType) -> Self {
        let is_sum = !matches!(exact.wanted, Wanted::Variance(_));
        let takes_back = is_sum && !matches!(takes, DataType::Binary);
        Self { exact, sums: [Sums::default()], takes_back }
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        Ok(self.exact.add(&values[0], &mut self.sums, |_| Some(0))?)
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        ScalarValue::try_from_array(&self.exact.results(&self.sums)?, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::try_from_array(&states(&self.sums), 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        for state in payloads(&states[0]).iter().flatten() {
            self.sums[0].merge(Sums::read(state)?);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        let column = Numbers::of(&values[0]);
        let scale = match &column {
            Numbers::Decimal(_, scale) => *scale,
            _ => 0,
        };
        for row in 0..values[0].len() {
            if let Some(Value::Finite(number)) = column.get(row)?
                && let Integer::Small(small) = number.integer
            {
                self.sums[0].subtract_small(small, scale);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.takes_back
    }
}

/// Of many groups.
pub(super) struct Many {
    exact: Exact,
    groups: Vec<Sums>,
}

impl Many {
    pub(super) fn new(exact: Exact) -> Self {
        Self { exact, groups: Vec::new() }
    }
}

fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> QueryResult<()> {
        self.groups.resize_with(total, Sums::default);
        let added = match filter {
            None => self.exact.add(&values[0], &mut self.groups, |row| Some(group_indices[row])),
            Some(_) => self.exact.add(&values[0], &mut self.groups, |row| {
                passes(filter, row).then_some(group_indices[row])
            }),
        };
        Ok(added?)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> QueryResult<ArrayRef> {
        Ok(self.exact.results(&emit_to.take_needed(&mut self.groups))?)
    }

    fn state(&mut self, emit_to: EmitTo) -> QueryResult<Vec<ArrayRef>> {
        Ok(vec![states(&emit_to.take_needed(&mut self.groups))])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total: usize,
    ) -> QueryResult<()> {
        self.groups.resize_with(total, Sums::default);
        for (state, group) in payloads(&values[0]).iter().zip(group_indices) {
            if let Some(state) = state {
                self.groups[*group].merge(Sums::read(state)?);
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> QueryResult<Vec<ArrayRef>> {
        let mut rows = vec![Sums::default(); values[0].len()];
        self.exact
            .add(&values[0], &mut rows, |row| passes(filter, row).then_some(row))
            .map_err(DataFusionError::from)?;
        Ok(vec![states(&rows)])
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Sums>()
    }
}
