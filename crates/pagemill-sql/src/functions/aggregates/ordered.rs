//! Aggregates of rows in an order, that are asked for a place among them: percentiles, and the ranks of a row that is not there.
//!
//! ```text
//! direct arguments | values, or keys of the rows | FILTER | keys of the order, of percentiles
//! ```
//!
//! Direct arguments are the same for all rows of a group, and are there where a group has no rows.
//!
//! Source: `percentile_disc_final`, `percentile_cont_final_common`, `setup_pct_info`, `hypothetical_rank_common`,
//! `hypothetical_dense_rank_final` and their kin in `src/backend/utils/adt/orderedsetaggs.c`, PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, RecordBatch, RecordBatchOptions,
};
use arrow::compute::{SortOptions, filter, is_not_null};
use arrow::datatypes::{DataType, Float64Type, Schema};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::{Expr, SortExpr};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::scalar::ScalarValue;

use super::Call;
use super::function::Kind;
use super::whole::OfAllRows;
use crate::coerce::carrier_of;
use crate::error::{Result, SqlState, StatementError};
use crate::functions::KernelCall;
use crate::functions::arrays::array_at;
use crate::functions::arrays::value::{ArrayParts, ElementType, unexpected};
use crate::functions::datetime::interval::{Interval, minus, plus, scaled};
use crate::functions::keys::order_pair;
use crate::functions::rows::Outcome;
use crate::typed::Typed;

/// What is asked of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The first value at or above a share, or at each of an array of shares.
    At,
    /// Between the two values nearest to a share.
    Between,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

impl Place {
    /// The ranks that a row would have.
    pub(super) fn of_rank(name: &str) -> Option<Self> {
        Some(match name {
            "rank" => Self::Rank,
            "dense_rank" => Self::DenseRank,
            "percent_rank" => Self::PercentRank,
            "cume_dist" => Self::CumeDist,
            _ => return None,
        })
    }

    /// What it is where there are no rows, if not NULL: the row is the only one then.
    pub(super) fn of_no_rows(self) -> Option<ScalarValue> {
        match self {
            Self::At | Self::Between => None,
            Self::Rank | Self::DenseRank => Some(ScalarValue::Int64(Some(1))),
            Self::PercentRank => Some(ScalarValue::Float64(Some(0.0))),
            Self::CumeDist => Some(ScalarValue::Float64(Some(1.0))),
        }
    }
}

/// Such an aggregate.
#[derive(Clone)]
pub(super) struct Ordered {
    pub(super) place: Place,
    /// How many direct arguments come first.
    pub(super) directs: usize,
    pub(super) has_filter: bool,
    /// How the keys of ranks are sorted.
    pub(super) options: Vec<SortOptions>,
    pub(super) call: KernelCall,
}

impl fmt::Debug for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {:?}", self.call.key, self.directs, self.has_filter, self.options)
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.call, &other.call);
        (self.place, self.directs, self.has_filter)
            == (other.place, other.directs, other.has_filter)
            && self.options == other.options
            && a.arguments == b.arguments
            && a.carrier == b.carrier
    }
}

impl Eq for Ordered {}

impl Hash for Ordered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.place, self.directs, self.has_filter).hash(state);
        self.call.arguments.hash(state);
        // By that, and by names, the engine tells one from another.
        let options = self.options.iter().map(|each| (each.descending, each.nulls_first));
        options.for_each(|each| each.hash(state));
    }
}

/// Source: `interval_lerp`.
fn interval_between(first: Interval, second: Interval, share: f64) -> Outcome<Interval> {
    if first.is_infinite() || second.is_infinite() {
        return Err(StatementError::unsupported("what lies between infinite intervals"));
    }
    plus(scaled(minus(second, first)?, |number| number * share)?, first)
}

/// A direct argument that depends on no row.
pub(super) fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<ArrayRef> {
    if !collect_columns(expr).is_empty() {
        return None;
    }
    let one = RecordBatchOptions::new().with_row_count(Some(1));
    let schema = Arc::new(Schema::empty());
    let batch = RecordBatch::try_new_with_options(schema, Vec::new(), &one).ok()?;
    expr.evaluate(&batch).ok()?.into_array(1).ok()
}

impl OfAllRows for Ordered {
    fn of(&self, columns: &[ArrayRef]) -> Outcome<ScalarValue> {
        let (directs, rest) = columns.split_at(self.directs);
        let (values, mask) = rest.split_at(rest.len() - usize::from(self.has_filter));
        if directs.iter().any(|direct| direct.is_empty()) {
            let what = "direct arguments that depend on rows where there are none";
            return Err(StatementError::unsupported(what));
        }
        let values = match mask.first() {
            None => values.to_vec(),
            Some(mask) => {
                let chosen = values.iter().map(|column| filter(column, mask.as_boolean()));
                chosen
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|error| unexpected(error.into()))?
            }
        };
        match self.place {
            Place::At | Place::Between => self.percentile(&directs[0], &values[0]),
            _ => self.rank(directs, &values),
        }
    }
}

impl Ordered {
    fn null(&self) -> Outcome<ScalarValue> {
        ScalarValue::try_from(&self.call.carrier).map_err(unexpected)
    }

    fn percentile(&self, share: &ArrayRef, values: &ArrayRef) -> Outcome<ScalarValue> {
        let is_array = !matches!(share.data_type(), DataType::Float64);
        if !is_array {
            if share.is_null(0) {
                return self.null();
            }
            check_share(share.as_primitive::<Float64Type>().value(0))?;
        }
        let mask = is_not_null(values).map_err(|error| unexpected(error.into()))?;
        let values = filter(values, &mask).map_err(|error| unexpected(error.into()))?;
        match is_array {
            _ if values.is_empty() => self.null(),
            true => self.percentiles(share, &values),
            false => {
                let share = share.as_primitive::<Float64Type>().value(0);
                let found = self.at_share(share, &values)?;
                ScalarValue::try_from_array(&found, 0).map_err(unexpected)
            }
        }
    }

    /// The value at a share of those in order, as a column of one.
    fn at_share(&self, share: f64, values: &ArrayRef) -> Outcome<ArrayRef> {
        check_share(share)?;
        let count = values.len() as f64;
        if self.place == Place::At {
            let place = (share * count).ceil() as usize;
            return Ok(values.slice(place.max(1) - 1, 1));
        }
        let place = share * (count - 1.0);
        let (low, high) = (place.floor(), place.ceil());
        if low == high {
            return Ok(values.slice(low as usize, 1));
        }
        let share = place - low;
        if let Some(intervals) = values.as_binary_opt::<i32>() {
            let at = |place: f64| Interval::of_payload(intervals.value(place as usize));
            let between = interval_between(at(low), at(high), share)?.payload();
            return Ok(Arc::new(BinaryArray::from_iter_values([between])));
        }
        let floats = values.as_primitive::<Float64Type>();
        let (first, second) = (floats.value(low as usize), floats.value(high as usize));
        Ok(Arc::new(Float64Array::from(vec![first + share * (second - first)])))
    }

    /// The values at an array of shares, as an array of the same shape.
    fn percentiles(&self, shares: &ArrayRef, values: &ArrayRef) -> Outcome<ScalarValue> {
        let catalog = &self.call.catalog;
        let Some(ty) = self.call.arguments.first() else { return self.null() };
        let of_shares = ElementType::of_array(catalog, *ty)?;
        let Some(given) = array_at(&of_shares, shares, 0)? else { return self.null() };
        let elements = ElementType::of_array(catalog, self.call.result)?;
        let mut found = Vec::with_capacity(given.elements.len());
        for share in &given.elements {
            found.push(match of_shares.value(share.as_deref())? {
                ScalarValue::Float64(Some(share)) => {
                    elements.element(&self.at_share(share, values)?, 0)?
                }
                _ => None,
            });
        }
        let parts = ArrayParts { bounds: given.bounds, elements: found };
        Ok(ScalarValue::Binary(Some(parts.payload(&elements)?)))
    }

    /// The place that a row would have among those that there are, before its peers or behind them.
    fn rank(&self, directs: &[ArrayRef], keys: &[ArrayRef]) -> Outcome<ScalarValue> {
        let first: Vec<ArrayRef> = directs.iter().map(|direct| direct.slice(0, 1)).collect();
        let (row, rows) = self.sortable(&first, keys).map_err(unexpected)?;
        let (row, rows) = (row.row(0), &rows);
        let count = keys.first().map_or(0, |key| key.len());
        let before = || (0..count).filter(move |at| rows.row(*at) < row);
        let share =
            |part: usize, whole: usize| Ok(ScalarValue::Float64(Some(part as f64 / whole as f64)));
        match self.place {
            Place::DenseRank => {
                let different: HashSet<_> = before().map(|at| rows.row(at)).collect();
                Ok(ScalarValue::Int64(Some(different.len() as i64 + 1)))
            }
            Place::PercentRank if count == 0 => Ok(ScalarValue::Float64(Some(0.0))),
            Place::PercentRank => share(before().count(), count),
            Place::CumeDist => {
                let up_to = (0..count).filter(|at| rows.row(*at) <= row).count();
                share(up_to + 1, count + 1)
            }
            _ => Ok(ScalarValue::Int64(Some(before().count() as i64 + 1))),
        }
    }

    /// A row and others, to be compared.
    fn sortable(&self, first: &[ArrayRef], keys: &[ArrayRef]) -> QueryResult<(Rows, Rows)> {
        let field = |(key, options): (&ArrayRef, &SortOptions)| {
            SortField::new_with_options(key.data_type().clone(), *options)
        };
        let converter = RowConverter::new(keys.iter().zip(&self.options).map(field).collect())?;
        Ok((converter.convert_columns(first)?, converter.convert_columns(keys)?))
    }
}

impl Call<'_> {
    /// Of values in order those at shares of them.
    pub(super) fn percentile(self, place: Place) -> Result<Typed> {
        let is_array = self.call.directs.iter().any(|direct| direct.carrier == DataType::Binary);
        let carrier = match is_array {
            true => carrier_of(self.catalog, self.result),
            false => self.argument().carrier.clone(),
        };
        let directs = self.call.directs.iter().map(|direct| direct.expr.clone()).collect();
        let values = vec![self.argument().expr.clone()];
        self.of_place(place, (directs, values), Vec::new(), carrier)
    }

    /// The rank that a row of direct arguments would have.
    pub(super) fn ranked(mut self, place: Place) -> Result<Typed> {
        let (mut directs, mut values) = (Vec::new(), Vec::new());
        for (value, direct) in self.call.arguments.iter().zip(&self.call.directs) {
            let (value, direct) = order_pair(self.catalog, value, direct)?;
            values.push(value);
            directs.push(direct);
        }
        let options =
            |sort: &SortExpr| SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
        let options = self.call.order_by.iter().map(options).collect();
        self.call.order_by.clear();
        let carrier = carrier_of(self.catalog, self.result);
        self.of_place(place, (directs, values), options, carrier)
    }

    /// FILTER is another argument, so that direct arguments are there where it leaves no row.
    fn of_place(
        mut self,
        place: Place,
        (directs, values): (Vec<Expr>, Vec<Expr>),
        options: Vec<SortOptions>,
        carrier: DataType,
    ) -> Result<Typed> {
        let filter = self.call.filter.take();
        let arguments = self.call.directs.iter().chain(&self.call.arguments);
        let call = KernelCall {
            catalog: self.catalog.clone(),
            key: self.name.into(),
            arguments: arguments.map(|typed| typed.ty).collect(),
            result: self.result,
            carrier: carrier.clone(),
        };
        let (count, has_filter) = (directs.len(), filter.is_some());
        let ordered = Ordered { place, directs: count, has_filter, options, call };
        let exprs = directs.into_iter().chain(values).chain(filter).collect();
        self.ours(Kind::Ordered(Arc::new(ordered)), exprs, carrier)
    }
}

fn check_share(share: f64) -> Outcome<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    let message = format!("percentile value {} is not between 0 and 1", short_float(share));
    Err(StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
}

/// A number of six digits, as the server's `%g` writes it.
pub(crate) fn short_float(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return match () {
            () if number.is_nan() => "NaN".to_owned(),
            () if number < 0.0 => "-Infinity".to_owned(),
            () => "Infinity".to_owned(),
        };
    };
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent.parse::<i32>() {
        Ok(power @ -4..=5) => {
            let places = usize::try_from(5 - power).unwrap_or_default(); // default: not below zero
            short(&format!("{number:.places$}"))
        }
        Ok(power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", short(mantissa), power.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::short_float;

    #[test]
    fn numbers_have_six_digits() {
        for (number, text) in [
            (1.5, "1.5"),
            (-1.0, "-1"),
            (1.000_000_1, "1"),
            (1_000_000.0, "1e+06"),
            (123_456.0, "123456"),
            (-0.000_012_5, "-1.25e-05"),
            (1e300, "1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(short_float(number), text);
        }
    }
}
