//! `generate_series` over timestamps.
//!
//! Source: `generate_series_timestamp` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int64Type;
use pagemill_types::time_zone::Zone;

use super::super::keys::{payloads, strings};
use super::super::rows::Outcome;
use super::super::sets::{Cells, Series, SetCall};
use super::arithmetic::plus;
use super::interval::Interval;
use super::session_zone::plus_in;
use super::zones::zone_named;
use crate::error::{SqlState, StatementError};

struct Timestamps {
    next: i64,
    finish: i64,
    step: Interval,
    /// In which days begin, if the series is one of moments and that is not UTC.
    zone: Option<Arc<Zone>>,
}

impl Series for Timestamps {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        let is_up = self.step.length() > 0;
        if if is_up { self.next > self.finish } else { self.next < self.finish } {
            return Ok(false);
        }
        out[0].int8(self.next);
        // Computed ahead, as the server does, so that the same series are out of range.
        self.next = match &self.zone {
            Some(zone) => plus_in(zone, self.next, self.step)?,
            None => plus(self.next, self.step)?,
        };
        Ok(true)
    }
}

/// Begins a series from one timestamp to another by an interval.
pub(crate) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let at = |number: usize| arguments[number].as_primitive::<Int64Type>().value(row);
    let step = Interval::of_payload(payloads(&arguments[2]).value(row));
    if step.is_infinite() {
        return Err(match call.catalog.database().cluster().version().major() {
            17.. => {
                StatementError::new(SqlState::INVALID_PARAMETER, "step size cannot be infinite")
            }
            _ => StatementError::unsupported("a series by so long an interval"),
        });
    }
    if step.length() == 0 {
        let message = "step size cannot equal zero";
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    let zone = match &*call.key {
        "generate_series_timestamptz" => call.catalog.time_zone().cloned(),
        "generate_series_timestamptz_at_zone" => {
            Some(zone_named(&call.catalog, strings(&arguments[3]).value(row))?)
        }
        _ => None,
    };
    Ok(Box::new(Timestamps { next: at(0), finish: at(1), step, zone }))
}
