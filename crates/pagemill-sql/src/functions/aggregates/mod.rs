//! Aggregates, found by name and argument types as `pg_proc` has them.
//!
//! Those of the query engine are taken where they compute the same: count, sums of short integers, min and max of what is its
//! own key, the logical and bitwise ones. All others are ours.
//!
//! Source: `src/include/catalog/pg_aggregate.dat`, PostgreSQL 14 to 18.

mod amounts;
mod collected;
mod distinct_bits;
mod exact;
mod extreme;
mod floating;
mod function;
mod intervals;
mod ordered;
mod pairs;
mod reversible;
mod single;
mod sums;
mod transitions;
mod whole;

pub(crate) use function::extreme_collation;
pub(crate) use ordered::short_float;
pub(crate) use single::single;
pub(crate) use transitions::find;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::{AggregateUDF, Expr, SortExpr, cast, lit, when};
use pagemill_types::builtin::oid;

use super::KernelCall;
use super::extensions::{self, TypeOrder};
use super::keys::{self, check_order, equality_key, order_key};
use super::logic::JsonShape;
use super::numeric::decimal;
use super::row_forms::{json_of_row, shown_row, text_of_row};
use super::row_payloads::taken_apart;
use super::row_values::without_names;
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Result, unsupported};
use crate::typed::Typed;
use crate::types::{PgType, RECORD};
use collected::Collection;
use extreme::Extreme;
use function::{Kind, PgAggregate};
use intervals::OfIntervals;
use ordered::Place;
use pairs::OfPairs;
use sums::{Spread, Wanted};
use whole::{Making, Whole};

/// A call of an aggregate.
pub(crate) struct AggregateCall {
    /// Each of the type that the function declares.
    pub(crate) arguments: Vec<Typed>,
    pub(crate) distinct: bool,
    pub(crate) filter: Option<Expr>,
    /// By keys.
    pub(crate) order_by: Vec<SortExpr>,
    /// What stands before WITHIN GROUP.
    pub(crate) directs: Vec<Typed>,
}

/// The call with arguments that are not computed for rows that FILTER leaves out: the engine computes them first.
///
/// Source: `ExecBuildAggTrans` in `src/backend/executor/execExpr.c`, PostgreSQL 18.
fn of_chosen_rows(mut call: AggregateCall) -> Result<AggregateCall> {
    let Some(filter) = call.filter.clone() else { return Ok(call) };
    let guard = |expr: &mut Expr| -> Result<()> {
        if !matches!(expr, Expr::Column(_) | Expr::Literal(..) | Expr::OuterReferenceColumn(..)) {
            *expr = when(filter.clone(), expr.clone()).end()?;
        }
        Ok(())
    };
    call.arguments.iter_mut().try_for_each(|argument| guard(&mut argument.expr))?;
    call.order_by.iter_mut().try_for_each(|sort| guard(&mut sort.expr))?;
    Ok(call)
}

/// The aggregate of a key as [`crate::catalog::FunctionRow::key`] has it, `count()` for `count(*)`; none where it is not known
/// here.
///
/// # Errors
/// When DISTINCT, or min and max, need an equality or order that is not known here.
pub(crate) fn aggregate(
    catalog: &Arc<Catalog>,
    key: &str,
    call: AggregateCall,
    result: PgType,
) -> Result<Option<Typed>> {
    let Some((name, types)) = key.strip_suffix(')').and_then(|key| key.split_once('(')) else {
        return Ok(None);
    };
    let call = Call { catalog, name, call: of_chosen_rows(call)?, result };
    match (name, types) {
        ("count", "") => Ok(Some(call.engine(count_udaf(), lit(1i64), DataType::Int64))),
        ("count", "any") => call.count().map(Some),
        ("sum", "int2" | "int4") => {
            let wide = cast(call.argument().expr.clone(), DataType::Int64);
            Ok(Some(call.engine(sum_udaf(), wide, DataType::Int64)))
        }
        ("sum", "money") => call.of_amounts().map(Some),
        ("sum" | "avg", "interval") => call.of_intervals().map(Some),
        (name, "float8,float8") if let Some(wanted) = OfPairs::named(name) => {
            call.of_pairs(wanted).map(Some)
        }
        ("min" | "max", types) if EXTREMES.contains(&types) => call.extreme().map(Some),
        (name, _) if let Some(own) = call.extreme_of_extension(name) => {
            Call { name: own, ..call }.extreme().map(Some)
        }
        ("bool_and" | "every", "bool") => Ok(Some(call.same_carrier(bool_and_udaf()))),
        ("bool_or", "bool") => Ok(Some(call.same_carrier(bool_or_udaf()))),
        ("bit_and", "int2" | "int4" | "int8") => Ok(Some(call.same_carrier(bit_and_udaf()))),
        ("bit_or", "int2" | "int4" | "int8") => Ok(Some(call.same_carrier(bit_or_udaf()))),
        ("bit_xor", "int2" | "int4" | "int8") if call.call.distinct => {
            call.distinct_bits().map(Some)
        }
        ("bit_xor", "int2" | "int4" | "int8") => Ok(Some(call.same_carrier(bit_xor_udaf()))),
        ("string_agg", "text,text" | "bytea,bytea") => call.concatenation().map(Some),
        ("array_agg", "anynonarray") => call.whole(Making::Array).map(Some),
        ("array_agg", "anyarray") => call.whole(Making::ArrayOfArrays).map(Some),
        ("json_agg" | "jsonb_agg" | "json_agg_strict" | "jsonb_agg_strict", "anyelement") => {
            call.whole(Making::Json(JsonShape::Array)).map(Some)
        }
        (name, "any,any") if OF_MEMBERS.contains(&name) => {
            call.whole(Making::Json(JsonShape::Object)).map(Some)
        }
        ("any_value", "anyelement") => call.first_met().map(Some),
        ("range_agg", "anyrange" | "anymultirange") => call.of_ranges(Making::Union).map(Some),
        ("range_intersect_agg", "anyrange" | "anymultirange") => {
            call.of_ranges(Making::Intersection).map(Some)
        }
        (
            "percentile_cont",
            "float8,float8" | "_float8,float8" | "float8,interval" | "_float8,interval",
        ) => call.percentile(Place::Between).map(Some),
        ("percentile_disc", "float8,anyelement" | "_float8,anyelement") => {
            call.percentile(Place::At).map(Some)
        }
        (name, "any") if let Some(place) = Place::of_rank(name) => call.ranked(place).map(Some),
        ("mode", "anyelement") => call.mode().map(Some),
        (name, "int2" | "int4" | "int8" | "numeric") => match wanted(name) {
            Some(wanted) => call.exact(wanted).map(Some),
            None => Ok(None),
        },
        (name, "float4" | "float8") => match wanted(name) {
            Some(wanted) => call.float(wanted).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Aggregates that make an object of names and values.
const OF_MEMBERS: [&str; 8] = [
    "json_object_agg",
    "json_object_agg_strict",
    "json_object_agg_unique",
    "json_object_agg_unique_strict",
    "jsonb_object_agg",
    "jsonb_object_agg_strict",
    "jsonb_object_agg_unique",
    "jsonb_object_agg_unique_strict",
];

/// The types that have min and max.
const EXTREMES: [&str; 24] = [
    "anyarray",
    "anyenum",
    "bpchar",
    "bytea",
    "date",
    "float4",
    "float8",
    "inet",
    "int2",
    "int4",
    "int8",
    "interval",
    "money",
    "numeric",
    "oid",
    "pg_lsn",
    "record",
    "text",
    "tid",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "xid8",
];

/// What a name asks of sums.
fn wanted(name: &str) -> Option<Wanted> {
    let spread = |is_sample, is_root| Some(Wanted::Variance(Spread { is_sample, is_root }));
    match name {
        "sum" => Some(Wanted::Sum),
        "avg" => Some(Wanted::Average),
        "variance" | "var_samp" => spread(true, false),
        "var_pop" => spread(false, false),
        "stddev" | "stddev_samp" => spread(true, true),
        "stddev_pop" => spread(false, true),
        _ => None,
    }
}

struct Call<'c> {
    catalog: &'c Arc<Catalog>,
    name: &'c str,
    call: AggregateCall,
    result: PgType,
}

impl Call<'_> {
    fn argument(&self) -> &Typed {
        &self.call.arguments[0]
    }

    /// An aggregate of the query engine, in which no order shows.
    fn engine(self, function: Arc<AggregateUDF>, argument: Expr, carrier: DataType) -> Typed {
        let distinct = self.call.distinct;
        self.done(function, vec![argument], distinct, carrier)
    }

    fn same_carrier(self, function: Arc<AggregateUDF>) -> Typed {
        let Typed { expr, carrier, .. } = self.argument().clone();
        self.engine(function, expr, carrier)
    }

    fn done(
        self,
        function: Arc<AggregateUDF>,
        arguments: Vec<Expr>,
        distinct: bool,
        carrier: DataType,
    ) -> Typed {
        let filter = self.call.filter.map(Box::new);
        let call =
            AggregateFunction::new_udf(function, arguments, distinct, filter, Vec::new(), None);
        Typed::new(Expr::AggregateFunction(call), self.result, carrier)
    }

    /// Any value that is not NULL.
    fn first_met(self) -> Result<Typed> {
        if self.argument().is_row() {
            return unsupported("any_value of a row");
        }
        let Typed { expr, carrier, .. } = self.argument().clone();
        let filter = self.call.filter.map(Box::new);
        let nulls = Some(NullTreatment::IgnoreNulls);
        let (function, order) = (first_value_udaf(), self.call.order_by);
        let call = AggregateFunction::new_udf(function, vec![expr], false, filter, order, nulls);
        Ok(Typed::new(Expr::AggregateFunction(call), self.result, carrier))
    }

    /// Distinct values are counted by their keys.
    fn count(self) -> Result<Typed> {
        let argument = match self.call.distinct {
            true => {
                // The server sorts what it counts each once of.
                check_order(self.catalog, self.argument().ty.oid)?;
                equality_key(self.catalog, self.argument())?
            }
            false => self.argument().expr.clone(),
        };
        Ok(self.engine(count_udaf(), argument, DataType::Int64))
    }

    /// min and max that an extension brings for its type, in the schema of that.
    fn extreme_of_extension(&self, name: &str) -> Option<&'static str> {
        let (schema, name) = name.split_once('.')?;
        let row = self.catalog.type_row(self.call.arguments.first()?.ty.oid)?;
        let is_own = row.namespace.0.to_string() == schema
            && extensions::order(self.catalog, row.oid) == Some(TypeOrder::Caseless);
        ["min", "max"].into_iter().find(|own| is_own && *own == name)
    }

    fn extreme(mut self) -> Result<Typed> {
        let argument = self.argument().clone();
        let (key, collator) = match keys::collated(self.catalog, &argument)? {
            Some((text, collator)) => (text, Some(collator)),
            None => (order_key(self.catalog, &argument)?, None),
        };
        let is_greatest = self.name == "max";
        self.call.distinct = false;
        if collator.is_none()
            && key == argument.expr
            && !matches!(argument.carrier, DataType::Float32 | DataType::Float64)
        {
            return Ok(self.same_carrier(if is_greatest { max_udaf() } else { min_udaf() }));
        }
        let row = argument.row.clone();
        let keeps_first = argument.ty.oid == oid::BPCHAR;
        let kind = Kind::Extreme(Extreme { is_greatest, keeps_first, collator });
        match row.is_some() || extreme::is_key(&argument.carrier) {
            true => {
                let best = self.ours(kind, vec![argument.expr, key], argument.carrier)?;
                Ok(without_names(Typed { row, ..best }))
            }
            false => unsupported(format!("{} by a key", self.name)),
        }
    }

    fn distinct_bits(self) -> Result<Typed> {
        let Typed { expr, carrier, .. } = self.argument().clone();
        self.ours(Kind::DistinctBits, vec![expr], carrier)
    }

    fn exact(self, wanted: Wanted) -> Result<Typed> {
        let argument = self.argument().clone();
        let carrier = match wanted {
            Wanted::Sum => sum_carrier(&argument.carrier),
            _ => DataType::Binary,
        };
        self.ours(Kind::Exact(wanted), vec![argument.expr], carrier)
    }

    fn float(self, wanted: Wanted) -> Result<Typed> {
        let argument = self.argument().clone();
        let carrier = match wanted {
            Wanted::Sum => argument.carrier.clone(),
            _ => DataType::Float64,
        };
        self.ours(Kind::Float(wanted), vec![argument.expr], carrier)
    }

    /// By names of their own, as sums of intervals can have no room where those of numbers always have.
    fn of_intervals(mut self) -> Result<Typed> {
        let argument = self.argument().clone();
        let wanted = OfIntervals {
            is_average: self.name == "avg",
            has_infinity: self.catalog.database().cluster().version().major() >= 17,
        };
        self.name = if wanted.is_average { "interval_avg" } else { "interval_sum" };
        self.ours(Kind::Intervals(wanted), vec![argument.expr], DataType::Binary)
    }

    fn of_amounts(mut self) -> Result<Typed> {
        let argument = self.argument().clone();
        let is_checked = self.catalog.database().cluster().version().major() >= 18;
        self.name = "money_sum";
        self.ours(Kind::Amounts { is_checked }, vec![argument.expr], DataType::Int64)
    }

    fn of_pairs(self, wanted: OfPairs) -> Result<Typed> {
        let values = self.call.arguments.iter().map(|typed| typed.expr.clone()).collect();
        let carrier = match wanted {
            OfPairs::Count => DataType::Int64,
            _ => DataType::Float64,
        };
        self.ours(Kind::Pairs(wanted), values, carrier)
    }

    fn concatenation(self) -> Result<Typed> {
        let values = self.call.arguments.iter().map(|typed| typed.expr.clone()).collect();
        let carrier = self.argument().carrier.clone();
        self.ours(Kind::Concatenation, values, carrier)
    }

    /// An aggregate of all values at once.
    fn whole(mut self, mut making: Making) -> Result<Typed> {
        let mut made = self.result;
        for argument in &mut self.call.arguments {
            if matches!(making, Making::Json(_)) {
                *argument = taken_apart(self.catalog, argument.clone())?;
            }
            if !argument.is_row() {
                continue;
            }
            if self.call.distinct {
                return unsupported(format!("{} of distinct rows", self.name));
            }
            if making == Making::Array {
                (*argument, made) = element_of_rows(self.catalog, argument, made);
                continue;
            }
            *argument = json_of_row(self.catalog, argument, false);
            if making == Making::Json(JsonShape::Array) {
                making = Making::Json(JsonShape::Rows);
            }
        }
        let exprs = self.call.arguments.iter().map(|typed| typed.expr.clone()).collect();
        let carrier = carrier_of(self.catalog, made);
        let call = KernelCall {
            catalog: self.catalog.clone(),
            key: self.name.into(),
            arguments: self.call.arguments.iter().map(|typed| typed.ty).collect(),
            result: made,
            carrier: carrier.clone(),
        };
        self.ours(Kind::Whole(Arc::new(Whole { making, call })), exprs, carrier)
    }

    /// Neither repetitions nor the order of ranges show in what they are together.
    fn of_ranges(mut self, making: Making) -> Result<Typed> {
        self.call.distinct = false;
        self.call.order_by.clear();
        self.whole(making)
    }

    fn mode(mut self) -> Result<Typed> {
        let mut key = self.argument().clone();
        key.expr = equality_key(self.catalog, &key)?;
        self.call.arguments.push(key);
        self.in_order(Making::Mode)
    }

    /// The values keep their type and modifier's carrier.
    fn in_order(self, making: Making) -> Result<Typed> {
        let carrier = self.argument().carrier.clone();
        let exprs = self.call.arguments.iter().map(|typed| typed.expr.clone()).collect();
        let call = KernelCall {
            catalog: self.catalog.clone(),
            key: self.name.into(),
            arguments: self.call.arguments.iter().map(|typed| typed.ty).collect(),
            result: self.result,
            carrier: carrier.clone(),
        };
        self.ours(Kind::Whole(Arc::new(Whole { making, call })), exprs, carrier)
    }

    /// An aggregate of ours, with keys behind its arguments.
    fn ours(mut self, kind: Kind, mut exprs: Vec<Expr>, carrier: DataType) -> Result<Typed> {
        let mut collection = Collection { values: exprs.len(), distinct: 0, order: Vec::new() };
        let mut order_by = std::mem::take(&mut self.call.order_by);
        if self.call.distinct {
            for typed in &self.call.arguments {
                exprs.push(equality_key(self.catalog, typed)?);
                collection.distinct += 1;
            }
            // The server finds distinct values by sorting them.
            if order_by.is_empty() && !kind.is_any_order() {
                let key = |typed| Ok(order_key(self.catalog, typed)?.sort(true, false));
                order_by = self.call.arguments.iter().map(key).collect::<Result<_>>()?;
            }
        }
        if !kind.is_any_order() {
            for sort in order_by {
                let options = SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
                collection.order.push(options);
                exprs.push(sort.expr);
            }
        }
        let function = PgAggregate::new(self.name, kind, collection, carrier.clone());
        Ok(self.done(Arc::new(AggregateUDF::new_from_impl(function)), exprs, false, carrier))
    }
}

/// A row as an element, and of what type the array is made: records have none, and are there as their texts.
fn element_of_rows(catalog: &Arc<Catalog>, row: &Typed, array: PgType) -> (Typed, PgType) {
    match row.ty.oid {
        RECORD => {
            let texts = catalog.type_row(oid::TEXT).map_or(array.oid, |row| row.array);
            (text_of_row(catalog, row), PgType::new(texts))
        }
        _ => (shown_row(catalog, row), array),
    }
}

/// Sums of decimals are decimals while ten more digits fit.
fn sum_carrier(carrier: &DataType) -> DataType {
    let shape = match carrier {
        DataType::Int64 => Some((19, 0)),
        other => decimal::shape(other),
    };
    shape
        .and_then(|(precision, scale)| decimal::carrier_of((precision + 10, scale)))
        .unwrap_or(DataType::Binary)
}
