//! Window functions and aggregates over frames that the query engine has not: those with EXCLUDE, with offsets that are known
//! when a statement runs, and by distances of other types than short integers.
//!
//! ```text
//! a partition's columns: values … | FILTER | keys of the order … | what RANGE measures | offset of the start | of the end
//!                            └─ values.rs        └─ peers ─┴────────── frame.rs, ranges.rs ──────────┘
//! ```
//!
//! Invariant: a partition is answered at once, its rows in the order of the window; an offset is the same in all rows.
//!
//! Source: `calculate_frame_offsets` in `src/backend/executor/nodeWindowAgg.c`, PostgreSQL 14 to 18.

mod frame;
mod ranges;
mod values;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

use super::KernelCall;
use super::rows::Outcome;
use crate::error::{SqlState, StatementError};
use frame::{Direction, Frames, Peers};
use ranges::Ranged;

pub(crate) use frame::{Edge, Exclusion, Frame, Side, Units};
pub(crate) use ranges::{Measure, bad_offset};
pub(crate) use values::Asked;

/// A window function with its frame.
#[derive(Clone)]
pub(crate) struct Framed {
    pub(crate) asked: Asked,
    pub(crate) frame: Frame,
    /// How many arguments the function itself has, which come first.
    pub(crate) values: usize,
    /// True where the next argument is FILTER.
    pub(crate) has_filter: bool,
    /// How many keys of the order come then.
    pub(crate) keys: usize,
    /// What RANGE with an offset measures, the next argument, in which order; offsets are the last ones.
    pub(crate) measured: Option<Measured>,
    /// For values that need the catalogs.
    pub(crate) call: KernelCall,
}

/// How RANGE with an offset goes along its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Measured {
    pub(crate) measure: Measure,
    pub(crate) is_descending: bool,
    pub(crate) nulls_first: bool,
}

impl Framed {
    /// As a function of the query engine, that takes so many arguments.
    pub(crate) fn function(self, arguments: usize) -> Arc<WindowUDF> {
        let signature = match arguments {
            0 => Signature::nullary(Volatility::Immutable),
            some => Signature::any(some, Volatility::Immutable),
        };
        let name = format!("pg_framed {self:?}");
        let function = OfWindow { framed: self, name, signature };
        Arc::new(WindowUDF::new_from_impl(function))
    }

    fn answer(&self, parts: &Parts<'_>, arguments: &Arguments) -> QueryResult<ArrayRef> {
        let distances = self.measured.zip(parts.measured).map(|(measured, values)| {
            let (measure, offsets) = (measured.measure, parts.offsets);
            let Measured { is_descending, nulls_first, .. } = measured;
            let ranged = Ranged { call: &self.call, measure, values, offsets };
            (ranged, Direction { is_descending, nulls_first })
        });
        let counts = match self.counts(&parts.offsets) {
            // The server looks at them or not, as other functions of the same window and its version have it.
            Err(_) if self.asked.has_no_frame() => {
                return Err(StatementError::unsupported("a frame that is none, of ranks,").into());
            }
            counts => counts?,
        };
        let frames = Frames::new(self.frame, &parts.peers, counts, distances);
        values::answered(self, (parts, arguments), frames)
    }

    /// The offsets, as the server looks at them before the first row.
    fn counts(&self, offsets: &[Option<&ArrayRef>; 2]) -> Outcome<[usize; 2]> {
        let mut counts = [0; 2];
        let edges = [("starting", self.frame.start), ("ending", self.frame.end)];
        for ((offset, count), (name, edge)) in offsets.iter().zip(&mut counts).zip(edges) {
            let Some(offset) = offset else { continue };
            if offset.is_null(0) {
                return Err(null_offset(name));
            }
            if self.frame.units == Units::Range {
                continue;
            }
            let number = offset.as_primitive::<Int64Type>().value(0);
            *count = usize::try_from(number).map_err(|_| negative_offset(name))?;
            // What is beyond all numbers came to be behind all rows in some minor release.
            let version = self.call.catalog.database().cluster().version().major();
            if edge == Edge::Following && number > MOST_ROWS && version < 18 {
                return Err(StatementError::unsupported("a frame offset of so many rows"));
            }
        }
        Ok(counts)
    }
}

/// More than any partition has.
const MOST_ROWS: i64 = i64::MAX >> 8;

/// Of the starting or ending offset.
pub(crate) fn null_offset(name: &str) -> StatementError {
    StatementError::new(SqlState("22004"), format!("frame {name} offset must not be null"))
}

pub(crate) fn negative_offset(name: &str) -> StatementError {
    StatementError::new(SqlState("22013"), format!("frame {name} offset must not be negative"))
}

/// The columns of a partition.
struct Parts<'p> {
    values: &'p [ArrayRef],
    filter: Option<&'p ArrayRef>,
    peers: Peers,
    measured: Option<&'p ArrayRef>,
    offsets: [Option<&'p ArrayRef>; 2],
}

impl<'p> Parts<'p> {
    fn new(framed: &Framed, columns: &'p [ArrayRef], rows: usize) -> QueryResult<Self> {
        let (values, rest) = columns.split_at(framed.values);
        let (filter, rest) = rest.split_at(usize::from(framed.has_filter));
        let (keys, rest) = rest.split_at(framed.keys);
        let (measured, offsets) = rest.split_at(usize::from(framed.measured.is_some()));
        let mut offsets = offsets.iter();
        let mut offset = |edge: Edge| edge.has_offset().then(|| offsets.next()).flatten();
        let offsets = [offset(framed.frame.start), offset(framed.frame.end)];
        let (peers, filter) = (peers(keys, rows)?, filter.first());
        Ok(Self { values, filter, peers, measured: measured.first(), offsets })
    }
}

/// Without an order all rows are peers.
fn peers(keys: &[ArrayRef], rows: usize) -> QueryResult<Peers> {
    if keys.is_empty() {
        return Ok(Peers::new(rows, |_| false));
    }
    let fields = keys.iter().map(|key| SortField::new(key.data_type().clone())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(keys)?;
    Ok(Peers::new(rows, |row| keys.row(row) != keys.row(row - 1)))
}

impl fmt::Debug for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, frame, values, has_filter, measured, .. } = self;
        write!(f, "{asked:?} of {values} {has_filter} {frame:?} {measured:?}")
    }
}

impl PartialEq for Framed {
    fn eq(&self, other: &Self) -> bool {
        self.asked == other.asked
            && self.frame == other.frame
            && (self.values, self.has_filter, self.keys)
                == (other.values, other.has_filter, other.keys)
            && self.measured == other.measured
            && self.call.carrier == other.call.carrier
    }
}

impl Eq for Framed {}

impl Hash for Framed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.asked.hash(state);
        self.frame.hash(state);
        self.values.hash(state);
        self.measured.hash(state);
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfWindow {
    framed: Framed,
    name: String,
    signature: Signature,
}

impl WindowUDFImpl for OfWindow {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(
        &self,
        given: PartitionEvaluatorArgs<'_>,
    ) -> QueryResult<Box<dyn PartitionEvaluator>> {
        let framed = self.framed.clone();
        let exprs = given.input_exprs().iter().take(framed.values).cloned().collect();
        let fields = given.input_fields().iter().take(framed.values).cloned().collect();
        Ok(Box::new(Evaluator { framed, arguments: Arguments { exprs, fields } }))
    }

    fn field(&self, given: WindowUDFFieldArgs<'_>) -> QueryResult<FieldRef> {
        let carrier = self.framed.call.carrier.clone();
        Ok(Arc::new(Field::new(given.name(), carrier, true)))
    }
}

/// What an aggregate is told of its arguments.
#[derive(Debug)]
struct Arguments {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
}

#[derive(Debug)]
struct Evaluator {
    framed: Framed,
    arguments: Arguments,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, columns: &[ArrayRef], rows: usize) -> QueryResult<ArrayRef> {
        let carrier: &DataType = &self.framed.call.carrier;
        if rows == 0 {
            return Ok(arrow::array::new_empty_array(carrier));
        }
        let parts = Parts::new(&self.framed, columns, rows)?;
        self.framed.answer(&parts, &self.arguments)
    }
}
