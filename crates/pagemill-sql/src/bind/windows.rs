//! Window functions: calls with OVER, and the WINDOW clause.
//!
//! Source: `transformWindowFuncCall` and `transformWindowDefinitions` in `src/backend/parser`, PostgreSQL 18.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowFunctionDefinition, WindowUDF, cast, lit,
};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    DataType as Named, Expr as Syntax, Function, Ident, NamedWindowDefinition, NamedWindowExpr,
    Value, WindowFrame as FrameSyntax, WindowFrameBound as BoundSyntax,
    WindowFrameUnits as UnitsSyntax, WindowSpec, WindowType,
};

use super::Binder;
use super::functions::CallArguments;
use super::query::sort;
use super::scope::{Allowed, folded};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::keys;
use crate::resolve;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

impl Binder<'_> {
    /// Takes note of the WINDOW clause.
    pub(super) fn name_windows(&mut self, given: &[NamedWindowDefinition]) -> Result<()> {
        let mut named: Vec<(String, WindowSpec)> = Vec::new();
        for NamedWindowDefinition(name, window) in given {
            let NamedWindowExpr::WindowSpec(spec) = window else {
                return fail(SqlState::SYNTAX_ERROR, "syntax error in WINDOW");
            };
            let name = folded(name);
            if named.iter().any(|(known, _)| *known == name) {
                let message = format!("window \"{name}\" is already defined");
                return fail(SqlState::WINDOWING_ERROR, message);
            }
            let spec = completed(spec, &named)?;
            named.push((name, spec));
        }
        self.level().windows_of_query = named;
        Ok(())
    }

    pub(super) fn window_call(
        &mut self,
        (schema, name): (Option<Oid>, &str),
        call: &Function,
        arguments: CallArguments<'_>,
        over: &WindowType,
    ) -> Result<Typed> {
        match self.level().allowed {
            Allowed::All => {}
            Allowed::PlainIn(clause) => {
                let message = format!("window functions are not allowed in {clause}");
                return fail(SqlState::WINDOWING_ERROR, message);
            }
            _ => return fail(SqlState::WINDOWING_ERROR, "window functions are not allowed here"),
        }
        if arguments.distinct {
            let message = "DISTINCT is not implemented for window functions";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
        }
        if !arguments.order_by.is_empty() {
            let message = "aggregate ORDER BY is not implemented for window functions";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
        }
        if call.null_treatment.is_some() {
            return unsupported("IGNORE NULLS");
        }
        let spec = match over {
            WindowType::WindowSpec(spec) => completed(spec, &self.level().windows_of_query)?,
            WindowType::NamedWindow(ident) => {
                named_window(ident, &self.level().windows_of_query)?.clone()
            }
        };
        self.level().allowed = Allowed::Aggregates;
        let parts = self.window_parts(&spec);
        self.level().allowed = Allowed::All;
        let (partition_by, order_by, window_frame) = parts?;
        let given: Vec<Oid> = arguments.typed.iter().map(|typed| typed.ty.oid).collect();
        let catalog = self.catalog.clone();
        let chosen = resolve::whole_function(&catalog, schema, name, &given)?;
        let typed = match chosen.function.kind {
            b'w' => {
                catalog.check_function(chosen.function)?;
                self.ranking(&chosen.function.key, arguments.typed, PgType::new(chosen.result))?
            }
            b'a' => self.aggregate_expr(&chosen, call, arguments)?,
            _ => {
                let message = format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                );
                return fail(SqlState("42809"), message);
            }
        };
        let (fun, args, filter) = match &typed.expr {
            Expr::AggregateFunction(inner) => {
                let fun = WindowFunctionDefinition::AggregateUDF(inner.func.clone());
                (fun, inner.params.args.clone(), inner.params.filter.clone())
            }
            Expr::WindowFunction(inner) => (inner.fun.clone(), inner.params.args.clone(), None),
            _ => return unsupported(format!("{name} as a window function")),
        };
        let params = WindowFunctionParams {
            args,
            partition_by,
            order_by,
            window_frame,
            filter,
            null_treatment: None,
            distinct: false,
        };
        let expr = Expr::from(WindowFunction { fun, params });
        let fresh = self.fresh(name);
        let stand_in = typed.with_expr(super::query::column(&fresh));
        self.level().windows.push((expr, stand_in.clone()));
        Ok(stand_in)
    }

    fn window_parts(
        &mut self,
        spec: &WindowSpec,
    ) -> Result<(Vec<Expr>, Vec<SortExpr>, WindowFrame)> {
        let mut partition_by = Vec::new();
        for syntax in &spec.partition_by {
            let typed = self.expr(syntax)?;
            partition_by.push(keys::equality_key(&self.catalog, &typed)?);
        }
        let mut order_by = Vec::new();
        for item in &spec.order_by {
            let typed = self.expr(&item.expr)?;
            order_by.push((sort(keys::order_key(&self.catalog, &typed)?, item), typed));
        }
        let frame = match &spec.window_frame {
            // All peers of the row: RANGE and GROUPS are the same there, and the engine has RANGE for numbers only.
            None if !order_by.is_empty() => WindowFrame::new_bounds(
                WindowFrameUnits::Groups,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow,
            ),
            None => WindowFrame::new(None),
            Some(frame) => frame_over(&self.with_numbers(frame)?, &mut order_by)?,
        };
        let order_by = order_by.into_iter().map(|(sort, _)| sort).collect();
        Ok((partition_by, order_by, frame))
    }

    /// The frame with the numbers that constant expressions of its offsets are.
    fn with_numbers(&mut self, frame: &FrameSyntax) -> Result<FrameSyntax> {
        let mut frame = frame.clone();
        for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
            let (BoundSyntax::Preceding(Some(offset)) | BoundSyntax::Following(Some(offset))) =
                bound
            else {
                continue;
            };
            if matches!(&**offset, Syntax::Value(_)) {
                continue;
            }
            let typed = self.expr(offset)?;
            let is_whole = matches!(typed.ty.oid, oid::INT2 | oid::INT4 | oid::INT8);
            let number = written_number(offset).or_else(|| cast_number(&typed.expr));
            match number.filter(|number| is_whole && *number >= 0) {
                Some(number) => {
                    let value = Value::Number(number.to_string(), false);
                    **offset = Syntax::Value(value.into());
                }
                None => return unsupported("a frame offset that is no constant"),
            }
        }
        Ok(frame)
    }

    /// The functions that only windows have.
    fn ranking(&self, key: &str, arguments: Vec<Typed>, result: PgType) -> Result<Typed> {
        use datafusion::functions_window::{cume_dist, ntile, rank, row_number};
        if let Some(of_value) = value_function(key) {
            return self.value_call(of_value, key, arguments);
        }
        let udf = match key {
            "window_row_number" => row_number::row_number_udwf(),
            "window_rank" => rank::rank_udwf(),
            "window_dense_rank" => rank::dense_rank_udwf(),
            "window_percent_rank" => rank::percent_rank_udwf(),
            "window_cume_dist" => cume_dist::cume_dist_udwf(),
            "window_ntile" => ntile::ntile_udwf(),
            _ => return unsupported(format!("the window function {key}")),
        };
        let arguments = match &arguments[..] {
            [] => Vec::new(),
            [count, ..] => vec![positive(count, "ntile")?],
        };
        // The engine counts without a sign; nobody has more rows than a bigint.
        let call = WindowFunction::new(udf, arguments);
        let carrier = crate::types::carrier(result.oid, -1);
        Ok(Typed::new(Expr::from(call), result, carrier))
    }

    /// A function that gives the value of another row.
    fn value_call(
        &self,
        udf: Arc<WindowUDF>,
        key: &str,
        mut arguments: Vec<Typed>,
    ) -> Result<Typed> {
        let offset = (arguments.len() > 1).then(|| arguments.remove(1));
        if arguments[0].ty.oid == UNKNOWN {
            let message = "could not determine polymorphic type because input has type unknown";
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        if arguments.len() > 1 {
            arguments = self.in_common("", arguments)?;
        }
        let mut exprs = vec![arguments[0].expr.clone()];
        if let Some(offset) = offset {
            exprs.push(match key {
                "window_nth_value" => positive(&offset, "nth_value")?,
                _ => match whole_number(&offset.expr) {
                    Some(number) => lit(number),
                    None => return unsupported("an offset of lag or lead that is no constant"),
                },
            });
        }
        for default in &arguments[1..] {
            if !default.expr.column_refs().is_empty() || default.expr.contains_outer() {
                return unsupported("a default of lag or lead that is no constant");
            }
            exprs.push(default.expr.clone());
        }
        let call = WindowFunction::new(udf, exprs);
        Ok(arguments[0].with_expr(Expr::from(call)))
    }

    /// The plan with the window functions that were met, each under the name that stands for it.
    pub(super) fn windowed(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let windows = std::mem::take(&mut self.level().windows);
        if windows.is_empty() {
            return Ok(plan);
        }
        let below: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        let mut builder = LogicalPlanBuilder::from(plan);
        let mut exprs = below;
        for (expr, stand_in) in windows {
            let Expr::Column(name) = &stand_in.expr else { continue };
            builder = builder.window([expr.clone()])?;
            let made = builder.schema().columns().pop().expect("a window adds a column"); // infallible: just added
            let value = Expr::Column(made);
            let value = match stand_in.carrier {
                DataType::Int64 | DataType::Int32 => cast(value, stand_in.carrier.clone()),
                _ => value,
            };
            exprs.push(value.alias(name.name()));
        }
        Ok(builder.project(exprs)?.build()?)
    }
}

/// The functions of another row's value.
fn value_function(key: &str) -> Option<Arc<WindowUDF>> {
    use datafusion::functions_window::{lead_lag, nth_value};
    Some(match key {
        "window_lag" | "window_lag_with_offset" | "window_lag_with_offset_and_default" => {
            lead_lag::lag_udwf()
        }
        "window_lead" | "window_lead_with_offset" | "window_lead_with_offset_and_default" => {
            lead_lag::lead_udwf()
        }
        "window_first_value" => nth_value::first_value_udwf(),
        "window_last_value" => nth_value::last_value_udwf(),
        "window_nth_value" => nth_value::nth_value_udwf(),
        _ => return None,
    })
}

/// A constant whole number.
fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => number,
            _ => None,
        },
        Expr::Negative(inner) => whole_number(inner)?.checked_neg(),
        _ => None,
    }
}

/// A constant whole number, perhaps as another integer type.
fn cast_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Cast(cast) => cast_number(&cast.expr),
        other => whole_number(other),
    }
}

/// A number as it is written, perhaps as one of another integer type, which every such type has.
fn written_number(syntax: &Syntax) -> Option<i64> {
    match syntax {
        Syntax::Nested(inner) => written_number(inner),
        Syntax::Cast { expr, data_type, format: None, .. } if is_integer(data_type) => {
            written_number(expr)
        }
        Syntax::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<i16>().ok().map(i64::from),
            _ => None,
        },
        _ => None,
    }
}

fn is_integer(name: &Named) -> bool {
    matches!(
        name,
        Named::SmallInt(None)
            | Named::Int2(None)
            | Named::Int(None)
            | Named::Integer(None)
            | Named::Int4(None)
            | Named::BigInt(None)
            | Named::Int8(None)
    )
}

/// A constant above zero; others are errors of some rows only.
fn positive(typed: &Typed, name: &str) -> Result<Expr> {
    match whole_number(&typed.expr) {
        Some(number) if number > 0 => Ok(lit(number)),
        _ => unsupported(format!("an argument of {name} that is no constant above zero")),
    }
}

fn named_window<'w>(ident: &Ident, known: &'w [(String, WindowSpec)]) -> Result<&'w WindowSpec> {
    let wanted = folded(ident);
    match known.iter().find(|(name, _)| *name == wanted) {
        Some((_, spec)) => Ok(spec),
        None => {
            let message = format!("window \"{wanted}\" does not exist");
            fail(SqlState::UNDEFINED_OBJECT, message)
        }
    }
}

/// A window with what it takes over from another.
fn completed(spec: &WindowSpec, known: &[(String, WindowSpec)]) -> Result<WindowSpec> {
    let Some(ident) = &spec.window_name else { return Ok(spec.clone()) };
    let (from, name) = (named_window(ident, known)?, folded(ident));
    let refused = |message: String| fail(SqlState::WINDOWING_ERROR, message);
    if !spec.partition_by.is_empty() {
        return refused(format!("cannot override PARTITION BY clause of window \"{name}\""));
    }
    if !spec.order_by.is_empty() && !from.order_by.is_empty() {
        return refused(format!("cannot override ORDER BY clause of window \"{name}\""));
    }
    if from.window_frame.is_some() {
        return refused(format!("cannot copy window \"{name}\" because it has a frame clause"));
    }
    let mut completed = spec.clone();
    completed.window_name = None;
    completed.partition_by = from.partition_by.clone();
    if completed.order_by.is_empty() {
        completed.order_by = from.order_by.clone();
    }
    Ok(completed)
}

/// A frame; `order_by` becomes what an offset is added to.
fn frame_over(frame: &FrameSyntax, order_by: &mut [(SortExpr, Typed)]) -> Result<WindowFrame> {
    check_frame(frame)?;
    if frame.units == UnitsSyntax::Groups && order_by.is_empty() {
        let message = "GROUPS mode requires an ORDER BY clause";
        return fail(SqlState::WINDOWING_ERROR, message);
    }
    let has_offset = |bound: &BoundSyntax| {
        matches!(bound, BoundSyntax::Preceding(Some(_)) | BoundSyntax::Following(Some(_)))
    };
    let by_offset =
        has_offset(&frame.start_bound) || frame.end_bound.as_ref().is_some_and(has_offset);
    let (units, of): (_, fn(u64) -> ScalarValue) = match frame.units {
        UnitsSyntax::Rows => (WindowFrameUnits::Rows, |n| ScalarValue::UInt64(Some(n))),
        UnitsSyntax::Range if by_offset => {
            let [(sort, typed)] = order_by else {
                let message =
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                return fail(SqlState::WINDOWING_ERROR, message);
            };
            // Where no sum is out of range.
            if !matches!(typed.ty.oid, oid::INT2 | oid::INT4) {
                return unsupported("RANGE with an offset, but of integer and smallint,");
            }
            sort.expr = cast(sort.expr.clone(), DataType::Int64);
            (WindowFrameUnits::Range, |n| ScalarValue::Int64(i64::try_from(n).ok()))
        }
        // Without an offset a range ends where its group of peers does.
        UnitsSyntax::Range | UnitsSyntax::Groups => {
            (WindowFrameUnits::Groups, |n| ScalarValue::UInt64(Some(n)))
        }
    };
    let none = match units {
        WindowFrameUnits::Range => ScalarValue::Int64(None),
        _ => ScalarValue::UInt64(None),
    };
    let start = frame_bound(&frame.start_bound, of, &none)?;
    let end = match &frame.end_bound {
        Some(bound) => frame_bound(bound, of, &none)?,
        None => WindowFrameBound::CurrentRow,
    };
    Ok(WindowFrame::new_bounds(units, start, end))
}

/// Refuses a frame that ends before it starts, in the server's words.
///
/// Source: `frame_extent` in `src/backend/parser/gram.y`, PostgreSQL 18.
fn check_frame(frame: &FrameSyntax) -> Result<()> {
    use BoundSyntax::{CurrentRow, Following, Preceding};
    let message = match (&frame.start_bound, &frame.end_bound) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (Following(Some(_)), None) => {
            "frame starting from following row cannot end with current row"
        }
        (_, Some(Preceding(None))) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Some(Preceding(Some(_)))) => {
            "frame starting from current row cannot have preceding rows"
        }
        (Following(Some(_)), Some(Preceding(Some(_)) | CurrentRow)) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    fail(SqlState::WINDOWING_ERROR, message)
}

fn frame_bound(
    bound: &BoundSyntax,
    of: fn(u64) -> ScalarValue,
    unbounded: &ScalarValue,
) -> Result<WindowFrameBound> {
    let count = |syntax: &Option<Box<Syntax>>| -> Result<ScalarValue> {
        let Some(syntax) = syntax else { return Ok(unbounded.clone()) };
        match &**syntax {
            Syntax::Value(value) => match &value.value {
                // Of an int4, to which the server brings it where it is none.
                Value::Number(digits, _) => match digits.parse::<u64>() {
                    Ok(number) if i32::try_from(number).is_ok() => Ok(of(number)),
                    _ => unsupported("a frame offset that is no integer"),
                },
                _ => unsupported("a frame offset that is no whole number"),
            },
            _ => unsupported("a frame offset that is no constant"),
        }
    };
    Ok(match bound {
        BoundSyntax::CurrentRow => WindowFrameBound::CurrentRow,
        BoundSyntax::Preceding(offset) => WindowFrameBound::Preceding(count(offset)?),
        BoundSyntax::Following(offset) => WindowFrameBound::Following(count(offset)?),
    })
}
