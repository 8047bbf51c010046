//! Window functions: calls with OVER, and the WINDOW clause.
//!
//! Source: `transformWindowFuncCall` and `transformWindowDefinitions` in `src/backend/parser`, PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use pagemill_format::Oid;
use sqlparser::ast::{
    Function, Ident, NamedWindowDefinition, NamedWindowExpr, WindowSpec, WindowType,
};

use super::Binder;
use super::defaults::FunctionName;
use super::functions::CallArguments;
use super::query::sort;
use super::scope::{Allowed, folded};
use super::window_frames::{Framing, Order};
use crate::coerce::result_type;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::keys;
use crate::typed::Typed;

/// What OVER says.
pub(super) struct WindowParts {
    pub(super) partition_by: Vec<Expr>,
    pub(super) order: Order,
    pub(super) framing: Framing,
}

/// Windows, each with the column that stands for it.
type Lifted = Vec<(Expr, Typed)>;

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
        mut arguments: CallArguments<'_>,
        over: &WindowType,
    ) -> Result<Typed> {
        match self.level().allowed {
            Allowed::All => {}
            Allowed::PlainIn(clause) if clause.starts_with("window ") => {
                let message = "window functions are not allowed in window definitions";
                return fail(SqlState::WINDOWING_ERROR, message);
            }
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
        let parts = parts?;
        let catalog = self.catalog.clone();
        let has_names = !arguments.names.is_empty();
        let chosen = self.chosen(&catalog, FunctionName { schema, name }, &mut arguments)?;
        let (expr, typed) = match chosen.function.kind {
            b'w' => {
                catalog.check_function(chosen.function)?;
                if call.filter.is_some() {
                    let message = "FILTER is not implemented for non-aggregate window functions";
                    return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
                }
                let result = result_type(&catalog, chosen.result, &arguments.typed)?;
                self.function_over(&chosen.function.key, arguments.typed, result, &parts)?
            }
            b'a' if has_names => return unsupported("arguments by name, of aggregates,"),
            b'a' => {
                let typed = self.aggregate_expr(&chosen, call, arguments)?;
                (self.aggregate_over(name, &typed, &parts)?, typed)
            }
            _ => {
                let message = format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                );
                return fail(SqlState("42809"), message);
            }
        };
        let is_known = |(known, _): &&(Expr, Typed)| *known == expr && !expr.is_volatile();
        if let Some((_, stand_in)) = self.level().windows.iter().find(is_known) {
            return Ok(stand_in.clone());
        }
        let fresh = self.fresh(name);
        let stand_in = typed.with_expr(super::query::column(&fresh));
        self.level().windows.push((expr, stand_in.clone()));
        Ok(stand_in)
    }

    fn window_parts(&mut self, spec: &WindowSpec) -> Result<WindowParts> {
        let mut partition_by = Vec::new();
        for syntax in &spec.partition_by {
            let typed = self.expr(syntax)?;
            partition_by.push(keys::equality_key(&self.catalog, &typed)?);
        }
        let mut order = Order::new();
        for item in &spec.order_by {
            let typed = self.expr(&item.expr)?;
            order.push((sort(keys::order_key(&self.catalog, &typed)?, item), typed));
        }
        let framing = self.framing(spec.window_frame.as_ref(), &order)?;
        Ok(WindowParts { partition_by, order, framing })
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
        let (windows, lifted) = self.with_lifted_queries(windows)?;
        if !lifted.is_empty() {
            builder = builder.project(exprs.iter().cloned().chain(lifted))?;
        }
        for (expr, stand_in) in windows {
            let Expr::Column(name) = &stand_in.expr else { continue };
            // Two windows can look alike.
            builder = builder.window([expr.alias(self.fresh("window"))])?;
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

    /// Windows over columns in the place of queries, and those columns: the engine joins queries to rows that it projects. So are keys in
    /// which there is a CASE, which the engine does not know again where rows were sorted by one.
    fn with_lifted_queries(&mut self, windows: Vec<(Expr, Typed)>) -> Result<(Lifted, Vec<Expr>)> {
        let (mut found, mut lifted) = (Lifted::new(), Vec::new());
        for (expr, stand_in) in windows {
            let Expr::WindowFunction(mut call) = expr else {
                found.push((expr, stand_in));
                continue;
            };
            for argument in &mut call.params.args {
                let is_query = |inner: &Expr| Ok(matches!(inner, Expr::ScalarSubquery(_)));
                if argument.exists(is_query)? {
                    let name = self.fresh("lifted");
                    let value = std::mem::replace(argument, super::query::column(&name));
                    lifted.push(value.alias(name));
                }
            }
            let sorts = call.params.order_by.iter_mut().map(|sort| &mut sort.expr);
            for key in call.params.partition_by.iter_mut().chain(sorts) {
                if is_lifted(key)? {
                    *key = self.lifted_key(key, &mut lifted);
                }
            }
            found.push((Expr::WindowFunction(call), stand_in));
        }
        Ok((found, lifted))
    }
}

impl Binder<'_> {
    /// A column in the place of a key, which is computed once for all that sort by it.
    pub(super) fn lifted_key(&mut self, key: &Expr, lifted: &mut Vec<Expr>) -> Expr {
        let known = lifted.iter().find_map(|expr| match expr {
            Expr::Alias(alias) if *alias.expr == *key => Some(alias.name.clone()),
            _ => None,
        });
        let name = known.unwrap_or_else(|| {
            let name = self.fresh("key");
            lifted.push(key.clone().alias(&name));
            name
        });
        super::query::column(&name)
    }
}

/// True for an expression with a CASE or a query in it.
pub(super) fn is_lifted(expr: &Expr) -> Result<bool> {
    Ok(expr.exists(|inner| Ok(matches!(inner, Expr::Case(_) | Expr::ScalarSubquery(_))))?)
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
