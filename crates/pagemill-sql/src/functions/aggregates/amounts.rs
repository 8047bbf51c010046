//! Sums of money.
//!
//! A server adds row by row, and has no room for a sum on the way that is too great. Where the whole sum has none, that is so in any order
//! of the rows; where only one on the way may have none, it depends on their order: then there is no answer.
//!
//! Source: `cash_pl` in `src/backend/utils/adt/cash.c`, PostgreSQL 14 to 18, whose first releases before 18 go on at the other end.

use arrow::array::{ArrayRef, AsArray as _};
use arrow::datatypes::Int64Type;
use datafusion::scalar::ScalarValue;

use super::reversible::{Reversible, Sum};
use crate::error::{SqlState, StatementError};

/// Bytes of a state: three numbers.
const STATE_BYTES: usize = 48;

/// What is known of the values so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    count: i128,
    above: i128,
    below: i128,
}

impl Sums {
    /// Counts a value in, or out again with `times` -1.
    fn add(&mut self, value: i64, times: i128) {
        self.count += times;
        let sum = if value < 0 { &mut self.below } else { &mut self.above };
        *sum += times * i128::from(value);
    }

    fn write(&self) -> Vec<u8> {
        [self.count, self.above, self.below]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    fn merge(&mut self, state: &[u8]) -> Result<(), StatementError> {
        let (numbers, rest) = state.as_chunks::<16>();
        let ([count, above, below], []) = (numbers, rest) else {
            let message = format!("a sum of money of {} bytes, not {STATE_BYTES}", state.len());
            return Err(StatementError::new(SqlState::DATA_CORRUPTED, message));
        };
        self.count += i128::from_le_bytes(*count);
        self.above += i128::from_le_bytes(*above);
        self.below += i128::from_le_bytes(*below);
        Ok(())
    }

    fn result(&self, is_checked: bool) -> Result<Option<i64>, StatementError> {
        if self.count == 0 {
            return Ok(None);
        }
        let fits = |sum: i128| i64::try_from(sum).ok();
        match (fits(self.above + self.below), fits(self.above), fits(self.below)) {
            (Some(total), Some(_), Some(_)) => Ok(Some(total)),
            (None, ..) if is_checked => {
                Err(StatementError::new(SqlState("22003"), "money out of range"))
            }
            _ => Err(StatementError::unsupported(
                "a sum of money that has no room in some order of its rows",
            )),
        }
    }
}

/// Of money.
#[derive(Debug)]
pub(super) struct Amounts {
    /// Whether all releases of the version have an error where there is no room.
    is_checked: bool,
    sums: Sums,
}

impl Amounts {
    pub(super) fn new(is_checked: bool) -> Sum<Self> {
        Sum(Self { is_checked, sums: Sums::default() })
    }
}

impl Reversible for Amounts {
    fn add(&mut self, values: &ArrayRef, times: i128) {
        let amounts = values.as_primitive::<Int64Type>();
        amounts.iter().flatten().for_each(|value| self.sums.add(value, times));
    }

    fn write(&self) -> Vec<u8> {
        self.sums.write()
    }

    fn merge(&mut self, state: &[u8]) -> Result<(), StatementError> {
        self.sums.merge(state)
    }

    fn result(&self) -> Result<ScalarValue, StatementError> {
        Ok(ScalarValue::Int64(self.sums.result(self.is_checked)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: &[i64]) -> Sums {
        let mut sums = Sums::default();
        values.iter().for_each(|value| sums.add(*value, 1));
        sums
    }

    #[test]
    fn a_sum_without_room_is_an_error_and_one_on_the_way_no_answer() {
        assert_eq!(sums(&[i64::MAX - 1, 1]).result(true).unwrap(), Some(i64::MAX));
        assert_eq!(sums(&[]).result(true).unwrap(), None);
        let error = sums(&[i64::MAX, 1]).result(true).unwrap_err();
        assert_eq!(error.message, "money out of range");
        for (values, is_checked) in [([i64::MAX, 1, -1], true), ([i64::MAX, 1, 0], false)] {
            let error = sums(&values).result(is_checked).unwrap_err();
            assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
        }
    }

    #[test]
    fn what_was_added_is_taken_back_and_states_are_merged() {
        let mut all = sums(&[5, -7, 9]);
        all.add(9, -1);
        let mut merged = sums(&[5]);
        merged.merge(&sums(&[-7]).write()).unwrap();
        assert_eq!(all, merged);
        assert!(merged.merge(&[1, 2, 3]).is_err());
    }
}
