//! Sums of which values can be taken back: an accumulator for groups, and for windows that move on.
//!
//! Invariant: the state is all that is known of the values, in one payload.

use arrow::array::ArrayRef;
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use crate::error::StatementError;
use crate::functions::keys::payloads;

/// What is known of some values.
pub(super) trait Reversible: std::fmt::Debug + Send + Sync {
    /// Counts values in, or out again with `times` -1.
    fn add(&mut self, values: &ArrayRef, times: i128);

    /// All that is known.
    fn write(&self) -> Vec<u8>;

    /// Adds what is known of others.
    ///
    /// # Errors
    /// When that is damaged.
    fn merge(&mut self, state: &[u8]) -> Result<(), StatementError>;

    /// The result.
    ///
    /// # Errors
    /// When there is none.
    fn result(&self) -> Result<ScalarValue, StatementError>;
}

/// Of one group.
#[derive(Debug)]
pub(super) struct Sum<S>(pub(super) S);

impl<S: Reversible + 'static> Accumulator for Sum<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        self.0.add(&values[0], 1);
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        Ok(self.0.result()?)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.0.write()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        let mut states = payloads(&states[0]).iter().flatten();
        Ok(states.try_for_each(|state| self.0.merge(state))?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        self.0.add(&values[0], -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
