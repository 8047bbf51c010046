//! `bit_xor(DISTINCT x)`: the engine's own forgets DISTINCT where rows are grouped.
//!
//! Invariant: a value taken twice is as if it had not been taken, so that taking one back is the same as taking it.

use arrow::array::{ArrayRef, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::scalar::ScalarValue;

use super::reversible::{Reversible, Sum};
use crate::error::{SqlState, StatementError};

/// Of integers.
#[derive(Debug)]
pub(super) struct DistinctBits {
    result: DataType,
    count: i64,
    bits: i64,
}

impl DistinctBits {
    pub(super) fn new(result: &DataType) -> Sum<Self> {
        Sum(Self { result: result.clone(), count: 0, bits: 0 })
    }
}

impl Reversible for DistinctBits {
    fn add(&mut self, values: &ArrayRef, times: i128) {
        let wide = cast(values, &DataType::Int64).expect("an integer"); // infallible: only taken for integers
        for value in wide.as_primitive::<Int64Type>().iter().flatten() {
            self.bits ^= value;
            self.count += times as i64;
        }
    }

    fn write(&self) -> Vec<u8> {
        [self.count, self.bits].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn merge(&mut self, state: &[u8]) -> Result<(), StatementError> {
        let ([count, bits], []) = state.as_chunks::<8>() else {
            let message = format!("bits of {} bytes, not 16", state.len());
            return Err(StatementError::new(SqlState::DATA_CORRUPTED, message));
        };
        self.count += i64::from_le_bytes(*count);
        self.bits ^= i64::from_le_bytes(*bits);
        Ok(())
    }

    fn result(&self) -> Result<ScalarValue, StatementError> {
        let bits = (self.count > 0).then_some(self.bits);
        Ok(match self.result {
            DataType::Int16 => ScalarValue::Int16(bits.map(|bits| bits as i16)),
            DataType::Int32 => ScalarValue::Int32(bits.map(|bits| bits as i32)),
            _ => ScalarValue::Int64(bits),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int16Array;

    use super::*;

    #[test]
    fn bits_keep_their_sign_in_the_narrow_type() {
        let mut bits = DistinctBits::new(&DataType::Int16).0;
        assert_eq!(bits.result().unwrap(), ScalarValue::Int16(None));
        let values: ArrayRef = Arc::new(Int16Array::from(vec![Some(-32768), None, Some(1)]));
        bits.add(&values, 1);
        assert_eq!(bits.result().unwrap(), ScalarValue::Int16(Some(-32767)));
        let state = bits.write();
        let mut other = DistinctBits::new(&DataType::Int16).0;
        other.merge(&state).unwrap();
        assert_eq!(other.result().unwrap(), ScalarValue::Int16(Some(-32767)));
        assert!(other.merge(&state[1..]).is_err());
    }
}
