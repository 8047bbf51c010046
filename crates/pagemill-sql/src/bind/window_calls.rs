//! Calls with OVER as expressions: of the query engine where it computes the same, else of [`crate::functions::windows`].
//!
//! Source: `transformWindowFuncCall` in `src/backend/parser/parse_agg.c`, `src/backend/utils/adt/windowfuncs.c`, PostgreSQL 14
//! to 18.

use datafusion::common::tree_node::TreeNode as _;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{Expr, WindowFrame, WindowFunctionDefinition, lit};
use pagemill_types::builtin::oid;

use super::Binder;
use super::frame_offsets::whole_number;
use super::windows::WindowParts;
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::KernelCall;
use crate::functions::windows::{Asked, Edge, Framed};
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

/// A call for [`crate::functions::windows`].
struct OwnCall<'c> {
    values: Vec<Expr>,
    filter: Option<Expr>,
    /// Its result.
    typed: &'c Typed,
}

impl Binder<'_> {
    /// A function that only windows have.
    pub(super) fn function_over(
        &self,
        key: &str,
        given: Vec<Typed>,
        result: PgType,
        parts: &WindowParts,
    ) -> Result<(Expr, Typed)> {
        let (asked, values) = self.asked(key, given)?;
        let is_ranking = values.is_empty() || asked == Asked::Ntile;
        let typed = match () {
            // The engine counts without a sign; nobody has more rows than a bigint.
            () if is_ranking => Typed::new(lit(0), result, crate::types::carrier(result.oid, -1)),
            () => values[0].clone(),
        };
        if let Some(refusal) = parts.framing.refusal.as_ref().filter(|_| !is_ranking) {
            return Err(refusal.clone().into());
        }
        let is_plain = parts.framing.offsets.is_empty() || parts.framing.of_engine.is_some();
        let engine = match &parts.framing.of_engine {
            Some(frame) => Some(frame.clone()),
            // What no frame changes.
            None if is_plain && (is_ranking || matches!(asked, Asked::Lag | Asked::Lead)) => {
                let sorts = parts.order.iter().map(|(sort, _)| sort.clone()).collect();
                Some((WindowFrame::new(None), sorts))
            }
            None => None,
        };
        if let Some((window_frame, order_by)) = engine
            && let Some(mut call) = Self::of_engine(&asked, &values)
        {
            call.params.partition_by = parts.partition_by.clone();
            call.params.order_by = order_by;
            call.params.window_frame = window_frame;
            return Ok((Expr::from(call), typed));
        }
        let values = values.into_iter().map(|typed| typed.expr).collect();
        let call = OwnCall { values, filter: None, typed: &typed };
        Ok((self.framed(asked, call, parts), typed))
    }

    pub(super) fn aggregate_over(
        &self,
        name: &str,
        typed: &Typed,
        parts: &WindowParts,
    ) -> Result<Expr> {
        let Expr::AggregateFunction(inner) = &typed.expr else {
            return unsupported(format!("{name} as a window function"));
        };
        if let Some(refusal) = &parts.framing.refusal {
            return Err(refusal.clone().into());
        }
        let (func, params) = (inner.func.clone(), inner.params.clone());
        let may_move = parts.framing.frame.start != Edge::Unbounded;
        if let Some((window_frame, order_by)) = &parts.framing.of_engine
            && !(may_move && is_only_growing(func.name()))
            && params.null_treatment.is_none()
        {
            let params = WindowFunctionParams {
                args: params.args,
                partition_by: parts.partition_by.clone(),
                order_by: order_by.clone(),
                window_frame: window_frame.clone(),
                filter: params.filter,
                null_treatment: None,
                distinct: false,
            };
            let fun = WindowFunctionDefinition::AggregateUDF(func);
            return Ok(Expr::from(WindowFunction { fun, params }));
        }
        let filter = params.filter.map(|filter| *filter);
        let call = OwnCall { values: params.args, filter, typed };
        let ignores_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
        Ok(self.framed(Asked::Aggregate(func, ignores_nulls), call, parts))
    }

    /// The functions that only windows have: what is asked, and of what.
    fn asked(&self, key: &str, given: Vec<Typed>) -> Result<(Asked, Vec<Typed>)> {
        let asked = match key {
            "window_row_number" => Asked::RowNumber,
            "window_rank" => Asked::Rank,
            "window_dense_rank" => Asked::DenseRank,
            "window_percent_rank" => Asked::PercentRank,
            "window_cume_dist" => Asked::CumeDist,
            "window_ntile" => Asked::Ntile,
            "window_first_value" => Asked::First,
            "window_last_value" => Asked::Last,
            "window_nth_value" => Asked::Nth(given.get(1).is_some_and(is_constant)),
            _ if key.starts_with("window_lag") => Asked::Lag,
            _ if key.starts_with("window_lead") => Asked::Lead,
            _ => return unsupported(format!("the window function {key}")),
        };
        let whole = |typed: Typed| {
            coerce(&self.catalog, typed, PgType::new(oid::INT4), CastContext::Implicit)
        };
        let mut given = given.into_iter();
        let Some(first) = given.next() else { return Ok((asked, Vec::new())) };
        if asked == Asked::Ntile {
            return Ok((asked, vec![whole(first)?]));
        }
        if first.ty.oid == UNKNOWN {
            let message = "could not determine polymorphic type because input has type unknown";
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let offset = given.next().map(whole).transpose()?;
        let mut values: Vec<Typed> = std::iter::once(first).chain(given).collect();
        if values.len() > 1 {
            values = self.in_common("", values)?;
        }
        if values[1..].iter().any(|default| default.expr.contains_outer()) {
            return unsupported("a default of lag or lead of the row around a query");
        }
        if let Some(offset) = offset {
            values.insert(1, offset);
        }
        Ok((asked, values))
    }

    /// What the query engine has of the functions that only windows have.
    fn of_engine(asked: &Asked, given: &[Typed]) -> Option<WindowFunction> {
        use datafusion::functions_window::{
            cume_dist, lead_lag, nth_value, ntile, rank, row_number,
        };
        let udf = match asked {
            Asked::RowNumber => row_number::row_number_udwf(),
            Asked::Rank => rank::rank_udwf(),
            Asked::DenseRank => rank::dense_rank_udwf(),
            Asked::PercentRank => rank::percent_rank_udwf(),
            Asked::CumeDist => cume_dist::cume_dist_udwf(),
            Asked::Ntile => ntile::ntile_udwf(),
            Asked::First => nth_value::first_value_udwf(),
            Asked::Last => nth_value::last_value_udwf(),
            Asked::Nth(_) => nth_value::nth_value_udwf(),
            Asked::Lag => lead_lag::lag_udwf(),
            Asked::Lead => lead_lag::lead_udwf(),
            Asked::Aggregate(..) => return None,
        };
        let number = |typed: &Typed| whole_number(&typed.expr);
        let positive = |typed: &Typed| number(typed).filter(|number| *number > 0).map(lit);
        let args = match (asked, given) {
            (Asked::Ntile, [count]) => vec![positive(count)?],
            (Asked::Nth(_), [value, place]) => vec![value.expr.clone(), positive(place)?],
            (Asked::Lag | Asked::Lead, [value, offset, defaults @ ..]) => {
                if !defaults.iter().all(is_constant) {
                    return None;
                }
                let defaults = defaults.iter().map(|typed| typed.expr.clone());
                [value.expr.clone(), lit(number(offset)?)].into_iter().chain(defaults).collect()
            }
            (_, given) => given.iter().map(|typed| typed.expr.clone()).collect(),
        };
        Some(WindowFunction::new(udf, args))
    }

    /// A call that the query engine has not.
    fn framed(&self, asked: Asked, call: OwnCall<'_>, parts: &WindowParts) -> Expr {
        let framing = &parts.framing;
        let mut args = call.values;
        let values = args.len();
        let has_filter = call.filter.is_some();
        args.extend(call.filter);
        args.extend(parts.order.iter().map(|(sort, _)| sort.expr.clone()));
        if framing.measured.is_some() {
            args.extend(parts.order.iter().map(|(_, typed)| typed.expr.clone()));
        }
        args.extend(framing.offsets.iter().map(|offset| offset.expr.clone()));
        let known = KernelCall {
            catalog: self.catalog.clone(),
            key: "window".into(),
            arguments: [].into(),
            result: call.typed.ty,
            carrier: call.typed.carrier.clone(),
        };
        let framed = Framed {
            asked,
            frame: framing.frame,
            values,
            has_filter,
            keys: parts.order.len(),
            measured: framing.measured,
            call: known,
        };
        let fun = WindowFunctionDefinition::WindowUDF(framed.function(args.len()));
        let params = WindowFunctionParams {
            args,
            partition_by: parts.partition_by.clone(),
            order_by: parts.order.iter().map(|(sort, _)| sort.clone()).collect(),
            window_frame: WindowFrame::new(None),
            filter: None,
            null_treatment: None,
            distinct: false,
        };
        Expr::from(WindowFunction { fun, params })
    }
}

/// True for what is the same in all rows.
fn is_constant(typed: &Typed) -> bool {
    let is_query = |inner: &Expr| Ok(matches!(inner, Expr::ScalarSubquery(_)));
    typed.expr.column_refs().is_empty() && !typed.expr.exists(is_query).unwrap_or(true) // default: not known to be one
}

/// Aggregates of the engine from which no row is taken again.
fn is_only_growing(name: &str) -> bool {
    !matches!(name, "count" | "sum" | "min" | "max") && !name.starts_with("pg_")
}
