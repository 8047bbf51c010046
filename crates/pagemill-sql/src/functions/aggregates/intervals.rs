//! Sums and averages of intervals.
//!
//! Of months, days and microseconds the sums of what is above and of what is below zero are kept. A server adds row by row,
//! and ends in an error where a sum has no room on the way. Where the whole sum has none that is so in any order of the
//! rows; where only one of the two has none it depends on their order, which is not known here: then there is no answer.
//!
//! Source: `interval_accum`, `interval_avg_accum`, `do_interval_accum`, `interval_avg`, `interval_sum` in
//! `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;

use super::reversible::{Reversible, Sum};
use crate::error::{SqlState, StatementError};
use crate::functions::datetime::calendar::interval_out_of_range;
use crate::functions::datetime::interval::{Interval, divided};
use crate::functions::keys::payloads;

/// What is asked of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OfIntervals {
    pub(super) is_average: bool,
    /// Intervals may be infinite, as from 17 on.
    pub(super) has_infinity: bool,
}

/// Numbers of a state, each of 16 bytes.
const STATE_NUMBERS: usize = 9;

/// What is known of the values so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    count: i128,
    infinity: i128,
    negative_infinity: i128,
    /// Months, days and microseconds.
    above: [i128; 3],
    below: [i128; 3],
}

impl Sums {
    /// Counts a value in, or out again with `times` -1.
    fn add(&mut self, value: Interval, times: i128, has_infinity: bool) {
        if has_infinity && value.is_infinite() {
            let count =
                if value.months > 0 { &mut self.infinity } else { &mut self.negative_infinity };
            *count += times;
            return;
        }
        self.count += times;
        let parts = [value.months.into(), value.days.into(), i128::from(value.micros)];
        for (place, part) in parts.into_iter().enumerate() {
            let sums = if part < 0 { &mut self.below } else { &mut self.above };
            sums[place] += times * part;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.infinity += other.infinity;
        self.negative_infinity += other.negative_infinity;
        for place in 0..3 {
            self.above[place] += other.above[place];
            self.below[place] += other.below[place];
        }
    }

    fn numbers(&self) -> [i128; STATE_NUMBERS] {
        let ([a, b, c], [d, e, f]) = (self.above, self.below);
        [self.count, self.infinity, self.negative_infinity, a, b, c, d, e, f]
    }

    fn write(&self) -> Vec<u8> {
        self.numbers().iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn read(state: &[u8]) -> Result<Self, StatementError> {
        let (numbers, rest) = state.as_chunks::<16>();
        let numbers: Vec<i128> = numbers.iter().map(|bytes| i128::from_le_bytes(*bytes)).collect();
        match (numbers.as_slice(), rest) {
            (&[count, infinity, negative_infinity, a, b, c, d, e, f], []) => {
                let (above, below) = ([a, b, c], [d, e, f]);
                Ok(Self { count, infinity, negative_infinity, above, below })
            }
            _ => Err(StatementError::new(SqlState::DATA_CORRUPTED, "a damaged sum of intervals")),
        }
    }

    fn result(&self, wanted: OfIntervals) -> Result<Option<Interval>, StatementError> {
        match (self.infinity > 0, self.negative_infinity > 0) {
            (true, true) => return Err(interval_out_of_range()),
            (true, false) => return Ok(Some(Interval::new(i32::MAX, i32::MAX, i64::MAX))),
            (false, true) => return Ok(Some(Interval::new(i32::MIN, i32::MIN, i64::MIN))),
            (false, false) if self.count == 0 => return Ok(None),
            (false, false) => {}
        }
        let mut total = self.above;
        (0..3).for_each(|place| total[place] += self.below[place]);
        let fits = |sum: &Interval| !(wanted.has_infinity && sum.is_infinite());
        let total = interval(total).filter(fits).ok_or_else(interval_out_of_range)?;
        if [self.above, self.below].into_iter().any(|sums| interval(sums).filter(fits).is_none()) {
            let what = "a sum of intervals that has no room in some order of its rows";
            return Err(StatementError::unsupported(what));
        }
        match wanted.is_average {
            true => divided(total, self.count as f64).map(Some),
            false => Ok(Some(total)),
        }
    }
}

/// Months, days and microseconds, if an interval has room for them.
fn interval([months, days, micros]: [i128; 3]) -> Option<Interval> {
    let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
    Some(Interval::new(months, days, i64::try_from(micros).ok()?))
}

/// Of intervals.
#[derive(Debug)]
pub(super) struct Intervals {
    wanted: OfIntervals,
    sums: Sums,
}

impl Intervals {
    pub(super) fn new(wanted: OfIntervals) -> Sum<Self> {
        Sum(Self { wanted, sums: Sums::default() })
    }
}

impl Reversible for Intervals {
    fn add(&mut self, values: &ArrayRef, times: i128) {
        for payload in payloads(values).iter().flatten() {
            self.sums.add(Interval::of_payload(payload), times, self.wanted.has_infinity);
        }
    }

    fn write(&self) -> Vec<u8> {
        self.sums.write()
    }

    fn merge(&mut self, state: &[u8]) -> Result<(), StatementError> {
        self.sums.merge(&Sums::read(state)?);
        Ok(())
    }

    fn result(&self) -> Result<ScalarValue, StatementError> {
        let found = self.sums.result(self.wanted)?;
        Ok(ScalarValue::Binary(found.map(|interval| interval.payload().to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: &[Interval]) -> Sums {
        let mut sums = Sums::default();
        values.iter().for_each(|value| sums.add(*value, 1, true));
        sums
    }

    #[test]
    fn a_sum_without_room_is_an_error_and_one_on_the_way_no_answer() {
        let wanted = OfIntervals { is_average: false, has_infinity: true };
        let (day, last) = (Interval::new(0, 1, 0), Interval::new(0, i32::MAX, 0));
        let error = sums(&[last, day]).result(wanted).unwrap_err();
        assert_eq!(error.message, "interval out of range");
        let back = Interval::new(0, -1, 0);
        let error = sums(&[last, day, back]).result(wanted).unwrap_err();
        assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(sums(&[last, back]).result(wanted).unwrap().unwrap().days, i32::MAX - 1);
    }

    #[test]
    fn what_was_added_is_taken_back_and_states_are_merged() {
        let values = [Interval::new(1, -2, 3), Interval::new(-4, 5, -6), Interval::new(7, 8, 9)];
        let mut all = sums(&values);
        all.add(values[2], -1, true);
        let mut merged = sums(&values[..1]);
        merged.merge(&Sums::read(&sums(&values[1..2]).write()).unwrap());
        assert_eq!(all, merged);
        let wanted = OfIntervals { is_average: true, has_infinity: true };
        let average = merged.result(wanted).unwrap().unwrap();
        assert_eq!((average.months, average.days), (-1, -14));
        assert_eq!(sums(&[]).result(wanted).unwrap(), None);
    }

    #[test]
    fn infinities_of_both_signs_have_no_sum() {
        let wanted = OfIntervals { is_average: true, has_infinity: true };
        let most = Interval::new(i32::MAX, i32::MAX, i64::MAX);
        let least = Interval::new(i32::MIN, i32::MIN, i64::MIN);
        assert_eq!(sums(&[most, most]).result(wanted).unwrap(), Some(most));
        assert!(sums(&[most, least]).result(wanted).is_err());
    }
}
