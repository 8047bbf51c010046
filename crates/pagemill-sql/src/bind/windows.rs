//! Window functions: calls with OVER, and the WINDOW clause.
//!
//! Source: `transformWindowFuncCall` and `transformWindowDefinitions` in `src/backend/parser`, PostgreSQL 18.

use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowFunctionDefinition,
};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use sqlparser::ast::{
    Expr as Syntax, Function, NamedWindowDefinition, NamedWindowExpr, Value,
    WindowFrame as FrameSyntax, WindowFrameBound as BoundSyntax, WindowFrameUnits as UnitsSyntax,
    WindowSpec, WindowType,
};

use super::Binder;
use super::functions::CallArguments;
use super::query::sort;
use super::scope::{Allowed, folded};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::keys;
use crate::resolve;
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    /// Takes note of the WINDOW clause.
    pub(super) fn name_windows(&mut self, given: &[NamedWindowDefinition]) -> Result<()> {
        let mut named: Vec<(String, WindowSpec)> = Vec::new();
        for NamedWindowDefinition(name, window) in given {
            let NamedWindowExpr::WindowSpec(spec) = window else {
                return fail(SqlState::SYNTAX_ERROR, "syntax error in WINDOW");
            };
            if spec.window_name.is_some() {
                return unsupported("a window made from another one");
            }
            let name = folded(name);
            if named.iter().any(|(known, _)| *known == name) {
                let message = format!("window \"{name}\" is already defined");
                return fail(SqlState::WINDOWING_ERROR, message);
            }
            named.push((name, spec.clone()));
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
            return unsupported("DISTINCT in a window function");
        }
        if call.null_treatment.is_some() {
            return unsupported("IGNORE NULLS");
        }
        let spec = match over {
            WindowType::WindowSpec(spec) if spec.window_name.is_none() => spec.clone(),
            WindowType::WindowSpec(_) => return unsupported("a window made from another one"),
            WindowType::NamedWindow(ident) => {
                let wanted = folded(ident);
                let known = self.level().windows_of_query.iter().find(|(name, _)| *name == wanted);
                match known {
                    Some((_, spec)) => spec.clone(),
                    None => {
                        let message = format!("window \"{wanted}\" does not exist");
                        return fail(SqlState::UNDEFINED_OBJECT, message);
                    }
                }
            }
        };
        self.level().allowed = Allowed::Aggregates;
        let parts = self.window_parts(&spec);
        self.level().allowed = Allowed::All;
        let (partition_by, order_by, window_frame) = parts?;
        let given: Vec<Oid> = arguments.typed.iter().map(|typed| typed.ty.oid).collect();
        let catalog = self.catalog.clone();
        let chosen = resolve::function(&catalog, schema, name, &given)?;
        let typed = match chosen.function.kind {
            b'w' => {
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
            order_by.push(sort(keys::order_key(&self.catalog, &typed)?, item));
        }
        let frame = match &spec.window_frame {
            // All peers of the row: RANGE and GROUPS are the same there, and the engine has RANGE for numbers only.
            None if !order_by.is_empty() => WindowFrame::new_bounds(
                WindowFrameUnits::Groups,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow,
            ),
            None => WindowFrame::new(None),
            Some(frame) if frame.units == UnitsSyntax::Groups && order_by.is_empty() => {
                let message = "GROUPS mode requires an ORDER BY clause";
                return fail(SqlState::WINDOWING_ERROR, message);
            }
            Some(frame) => self.frame(frame)?,
        };
        Ok((partition_by, order_by, frame))
    }

    fn frame(&mut self, frame: &FrameSyntax) -> Result<WindowFrame> {
        let units = match frame.units {
            UnitsSyntax::Rows => WindowFrameUnits::Rows,
            // Without an offset, which is refused, a range ends where its group of peers does.
            UnitsSyntax::Range => WindowFrameUnits::Groups,
            UnitsSyntax::Groups => WindowFrameUnits::Groups,
        };
        let is_range = matches!(frame.units, UnitsSyntax::Range);
        let start = frame_bound(&frame.start_bound, is_range)?;
        let end = match &frame.end_bound {
            Some(bound) => frame_bound(bound, is_range)?,
            None => WindowFrameBound::CurrentRow,
        };
        Ok(WindowFrame::new_bounds(units, start, end))
    }

    /// The functions that only windows have.
    fn ranking(&self, key: &str, arguments: Vec<Typed>, result: PgType) -> Result<Typed> {
        use datafusion::functions_window::{rank, row_number};
        let udf = match key {
            "window_row_number" => row_number::row_number_udwf(),
            "window_rank" => rank::rank_udwf(),
            "window_dense_rank" => rank::dense_rank_udwf(),
            _ => return unsupported(format!("the window function {key}")),
        };
        assert!(arguments.is_empty(), "ranks take no arguments");
        // The engine counts without a sign; nobody has more rows than a bigint.
        let call = WindowFunction::new(udf, Vec::new());
        let carrier = crate::types::carrier(result.oid, -1);
        Ok(Typed::new(Expr::from(call), result, carrier))
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
                arrow::datatypes::DataType::Int64 => {
                    datafusion::logical_expr::cast(value, stand_in.carrier.clone())
                }
                _ => value,
            };
            exprs.push(value.alias(name.name()));
        }
        Ok(builder.project(exprs)?.build()?)
    }
}

fn frame_bound(bound: &BoundSyntax, is_range: bool) -> Result<WindowFrameBound> {
    let count = |syntax: &Option<Box<Syntax>>| -> Result<ScalarValue> {
        let Some(syntax) = syntax else { return Ok(ScalarValue::UInt64(None)) };
        if is_range {
            return unsupported("RANGE with an offset");
        }
        match &**syntax {
            Syntax::Value(value) => match &value.value {
                Value::Number(digits, _) if digits.parse::<u64>().is_ok() => {
                    Ok(ScalarValue::UInt64(digits.parse().ok()))
                }
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
