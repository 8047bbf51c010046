//! What window functions give for each row of a partition.
//!
//! An aggregate is computed anew where rows leave its frame, and goes on where they only come; the server does the same for
//! all that it cannot take back, and where EXCLUDE stands.
//!
//! Source: `eval_windowaggregates` in `src/backend/executor/nodeWindowAgg.c`, `leadlag_common`, `window_ntile`,
//! `window_nth_value` and their kin in `src/backend/utils/adt/windowfuncs.c`, PostgreSQL 14 to 18.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, UInt64Array, new_null_array,
};
use arrow::compute::{filter, interleave, take};
use arrow::datatypes::{Int32Type, Schema};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};
use datafusion::scalar::ScalarValue;

use super::frame::{Frames, Seeker};
use super::ranges::Ranged;
use super::{Arguments, Framed, Parts};
use crate::error::{SqlState, StatementError};

/// A function that is asked for every row.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    /// An aggregate; whether it takes no notice of NULLs.
    Aggregate(Arc<AggregateUDF>, bool),
    First,
    Last,
    /// `nth_value`, whose second argument is the place; whether that is a constant.
    Nth(bool),
    /// The value of a row so many before, or behind: value, offset, default.
    Lag,
    Lead,
    Ntile,
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aggregate(function, _) => function.name(),
            Self::First => "first_value",
            Self::Last => "last_value",
            Self::Nth(_) => "nth_value",
            Self::Lag => "lag",
            Self::Lead => "lead",
            Self::Ntile => "ntile",
            Self::RowNumber => "row_number",
            Self::Rank => "rank",
            Self::DenseRank => "dense_rank",
            Self::PercentRank => "percent_rank",
            Self::CumeDist => "cume_dist",
        })
    }
}

impl Asked {
    /// True where it says nothing of the frame. From 16 on the server leaves such a frame out, and does not look at its offsets.
    pub(super) fn has_no_frame(&self) -> bool {
        use Asked::{CumeDist, DenseRank, Ntile, PercentRank, Rank, RowNumber};
        matches!(self, Ntile | RowNumber | Rank | DenseRank | PercentRank | CumeDist)
    }
}

type OfPartition<'p> = Frames<'p, Ranged<'p>>;

/// What the function gives for each row.
pub(super) fn answered(
    framed: &Framed,
    (parts, arguments): (&Parts<'_>, &Arguments),
    frames: OfPartition<'_>,
) -> QueryResult<ArrayRef> {
    match &framed.asked {
        Asked::Aggregate(function, ignores_nulls) => {
            let aggregate = Aggregate { function, ignores_nulls: *ignores_nulls, arguments };
            aggregate.answered(parts, frames)
        }
        Asked::First | Asked::Last | Asked::Nth(_) => of_frame(&framed.asked, parts, frames),
        Asked::Lag => of_other_row(parts, -1),
        Asked::Lead => of_other_row(parts, 1),
        Asked::Ntile => ntile(parts),
        _ => Ok(ranked(&framed.asked, parts)),
    }
}

struct Aggregate<'a> {
    function: &'a AggregateUDF,
    ignores_nulls: bool,
    arguments: &'a Arguments,
}

impl Aggregate<'_> {
    fn accumulator(&self) -> QueryResult<Box<dyn Accumulator>> {
        let Arguments { exprs, fields } = self.arguments;
        self.function.accumulator(AccumulatorArgs {
            return_field: self.function.return_field(fields)?,
            schema: &Schema::empty(),
            ignore_nulls: self.ignores_nulls,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            is_distinct: false,
            exprs,
            expr_fields: fields,
        })
    }

    fn answered(&self, parts: &Parts<'_>, mut frames: OfPartition<'_>) -> QueryResult<ArrayRef> {
        let chosen = Chosen::of(parts)?;
        let mut last: Option<(Places, Box<dyn Accumulator>)> = None;
        let mut found: Vec<ScalarValue> = Vec::with_capacity(parts.peers.rows());
        for row in 0..parts.peers.rows() {
            let bounds = frames.bounds(row)?;
            let wanted = frames.parts(row, &bounds).map(|part| chosen.places(&part));
            if let (Some((known, _)), Some(same)) = (&last, found.last())
                && *known == wanted
            {
                let same = same.clone();
                found.push(same);
                continue;
            }
            let (known, mut accumulator) = match last.take() {
                Some((known, accumulator)) if goes_on(&known, &wanted) => (known, accumulator),
                _ => ([0..0, 0..0, 0..0], self.accumulator()?),
            };
            for (known, wanted) in known.iter().zip(&wanted) {
                let start = if known.is_empty() { wanted.start } else { known.end };
                chosen.give(&mut *accumulator, start..wanted.end)?;
            }
            found.push(accumulator.evaluate()?);
            last = Some((wanted, accumulator));
        }
        ScalarValue::iter_to_array(found)
    }
}

/// The places of a frame's parts among the rows that are chosen.
type Places = [Range<usize>; 3];

/// True where rows have only come behind those that were there: so is a frame without EXCLUDE that starts where it did.
fn goes_on(known: &Places, wanted: &Places) -> bool {
    !known[0].is_empty()
        && known[0].start == wanted[0].start
        && known[0].end <= wanted[0].end
        && known[1..].iter().chain(&wanted[1..]).all(Range::is_empty)
}

/// The rows of a partition that FILTER leaves.
struct Chosen {
    columns: Vec<ArrayRef>,
    /// For each row how many before it are left; none where all are.
    before: Option<Vec<usize>>,
}

impl Chosen {
    fn of(parts: &Parts<'_>) -> QueryResult<Self> {
        let Some(mask) = parts.filter else {
            return Ok(Self { columns: parts.values.to_vec(), before: None });
        };
        let mask = mask.as_boolean();
        let columns = parts.values.iter().map(|column| filter(column, mask));
        let mut before = vec![0];
        for row in 0..mask.len() {
            let is_left = mask.is_valid(row) && mask.value(row);
            before.push(before[row] + usize::from(is_left));
        }
        Ok(Self { columns: columns.collect::<Result<_, _>>()?, before: Some(before) })
    }

    /// Where the rows are among those that are left.
    fn places(&self, rows: &Range<usize>) -> Range<usize> {
        match &self.before {
            _ if rows.is_empty() => 0..0,
            None => rows.clone(),
            Some(before) => before[rows.start]..before[rows.end],
        }
    }

    fn give(&self, accumulator: &mut dyn Accumulator, rows: Range<usize>) -> QueryResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let slice = |column: &ArrayRef| column.slice(rows.start, rows.len());
        let columns: Vec<ArrayRef> = self.columns.iter().map(slice).collect();
        accumulator.update_batch(&columns)
    }
}

fn number_at(array: &ArrayRef, row: usize) -> Option<i32> {
    array.is_valid(row).then(|| array.as_primitive::<Int32Type>().value(row))
}

/// The index of a place of `nth_value`.
fn index(place: i32) -> Result<usize, StatementError> {
    usize::try_from(place).ok().and_then(|place| place.checked_sub(1)).ok_or_else(|| {
        let message = "argument of nth_value must be greater than zero";
        StatementError::new(SqlState("22016"), message)
    })
}

/// A value of a row of the frame.
fn of_frame(
    asked: &Asked,
    parts: &Parts<'_>,
    mut frames: OfPartition<'_>,
) -> QueryResult<ArrayRef> {
    let mut found: Vec<Option<u64>> = Vec::with_capacity(parts.peers.rows());
    let mut seeker = Seeker::new(*asked != Asked::Nth(false));
    for row in 0..parts.peers.rows() {
        let place = match (asked, parts.values.get(1)) {
            (Asked::Last, _) => None,
            (Asked::Nth(_), Some(places)) => match number_at(places, row) {
                None => {
                    found.push(None);
                    continue;
                }
                Some(place) => Some(index(place)?),
            },
            _ => Some(0),
        };
        let bounds = frames.bounds(row)?;
        let at = seeker.find(&frames, (row, &bounds), place).map_err(|_| {
            let message = "cannot fetch row before WindowObject's mark position";
            StatementError::new(SqlState("XX000"), message)
        })?;
        found.push(at.map(|at| at as u64));
    }
    Ok(take(&parts.values[0], &UInt64Array::from(found), None)?)
}

/// The value of a row so many rows away, or a default where there is none.
fn of_other_row(parts: &Parts<'_>, direction: i64) -> QueryResult<ArrayRef> {
    let values = &parts.values[0];
    let nothing = new_null_array(values.data_type(), 1);
    let rows = parts.peers.rows();
    let mut found: Vec<(usize, usize)> = Vec::with_capacity(rows);
    for row in 0..rows {
        let by = match parts.values.get(1) {
            None => Some(1),
            Some(offsets) => number_at(offsets, row),
        };
        let Some(by) = by else {
            found.push((0, 0));
            continue;
        };
        let at = usize::try_from(row as i64 + direction * i64::from(by)).ok();
        found.push(match at.filter(|at| *at < rows) {
            Some(at) => (1, at),
            None if parts.values.len() > 2 => (2, row),
            None => (0, 0),
        });
    }
    let mut columns: Vec<&dyn Array> = vec![&*nothing, &**values];
    columns.extend(parts.values.get(2).map(|default| &**default));
    Ok(interleave(&columns, &found)?)
}

/// Buckets of rows of the same size, those in front with one more.
fn ntile(parts: &Parts<'_>) -> QueryResult<ArrayRef> {
    let rows = parts.peers.rows();
    let mut found: Vec<Option<i32>> = Vec::with_capacity(rows);
    // The first argument that is not NULL counts, from its row on.
    let first = (0..rows).find_map(|row| Some((row, number_at(&parts.values[0], row)?)));
    let Some((start, count)) = first else {
        return Ok(Arc::new(Int32Array::from(vec![None::<i32>; rows])));
    };
    let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        let message = "argument of ntile must be greater than zero";
        StatementError::new(SqlState("22014"), message)
    })?;
    found.resize(start, None);
    let (size, longer) = ((rows / count).max(1), if rows < count { 0 } else { rows % count });
    for row in 0..rows - start {
        let of_longer = longer * (size + 1);
        let bucket = match row < of_longer {
            true => row / (size + 1),
            false => longer + (row - of_longer) / size,
        };
        found.push(i32::try_from(bucket + 1).ok());
    }
    Ok(Arc::new(Int32Array::from(found)))
}

fn ranked(asked: &Asked, parts: &Parts<'_>) -> ArrayRef {
    let (peers, rows) = (&parts.peers, parts.peers.rows());
    let whole = |of: &dyn Fn(usize) -> usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(|row| of(row) as i64)))
    };
    let share = |of: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..rows).map(of)))
    };
    match asked {
        Asked::Rank => whole(&|row| peers.of(row).start + 1),
        Asked::DenseRank => whole(&|row| peers.number(row) + 1),
        Asked::PercentRank if rows < 2 => share(&|_| 0.0),
        Asked::PercentRank => share(&|row| peers.of(row).start as f64 / (rows - 1) as f64),
        Asked::CumeDist => share(&|row| peers.of(row).end as f64 / rows as f64),
        _ => whole(&|row| row + 1),
    }
}
