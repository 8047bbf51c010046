//! Functions that are written in SQL, put in the place of their calls.
//!
//! ```text
//! f(a, b) ──► body of one expression      ──► that expression, with a and b for $1 and $2
//!         └─► body of any other query     ──► a query of one value, with columns of the query around it in a and b
//! STRICT  ──► CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE … END
//! ```
//!
//! What such a function does not declare to be is what it becomes by assignment; its arguments have the types that it
//! declares, without modifiers. A body sees its arguments and no column around it.
//!
//! Invariant: an argument may stand in the body as often as it likes, unless each time it is computed it is another value. A
//! function that is variadic, gives a row of tables, is called by itself, or stands on too many others is refused by name.
//!
//! Source: `inline_function` in `src/backend/optimizer/util/clauses.c`, `sql_fn_post_column_ref` and `check_sql_fn_retval` in
//! `src/backend/executor/functions.c`, PostgreSQL 14 to 18.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, is_null, lit, when};
use pagemill_format::Oid;
use sqlparser::ast::{Expr as Syntax, GroupByExpr, Query, Select, SelectItem, SetExpr};

use super::functions::CallArguments;
use super::inlined_rows::listed_expressions;
use super::scope::Allowed;
use super::{Binder, Bound};
use crate::catalog::{CastContext, Catalog, FunctionRow, SQL_LANGUAGE};
use crate::coerce::{brought_with_rows, call_chosen, coerce, result_collation, signature};
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::functions::implementation;
use crate::functions::row_payloads::taken_apart;
use crate::functions::row_values::{any_null, field};
use crate::resolve::{Chosen, is_compatible_range};
use crate::sql_functions::SqlFunction;
use crate::typed::Typed;
use crate::types::{PgType, RECORD};

/// How deep functions may stand in each other; the server has no limit but its stack.
const DEEPEST: usize = 32;

/// How large an expression may grow by functions that name an argument many times, and stand in each other.
const LARGEST: usize = 50_000;

/// What a function in SQL is called with.
#[derive(Debug)]
pub(super) struct BodyArguments {
    function: Arc<SqlFunction>,
    values: Vec<Typed>,
    /// Those that the body has named.
    used: Vec<Cell<bool>>,
    /// How many queries stood around the place that the values are seen from.
    pub(super) depth: usize,
    /// What carries the columns in the values.
    carriers: HashMap<Column, DataType>,
}

/// A call of a function in SQL, ready to be put in its place.
pub(super) struct SqlCall {
    pub(super) function: Arc<SqlFunction>,
    pub(super) query: Arc<Query>,
    pub(super) arguments: Vec<Typed>,
    pub(super) oid: Oid,
    /// The types of the arguments as declared.
    pub(super) declared: Vec<Oid>,
    pub(super) is_strict: bool,
    pub(super) result: PgType,
    /// How messages name it.
    pub(super) shown: String,
}

/// True for a function that is there as SQL only, and not as code of ours.
pub(super) fn is_inlined(row: &FunctionRow) -> bool {
    row.language == SQL_LANGUAGE && row.kind == b'f' && implementation(&row.key).is_none()
}

impl BodyArguments {
    /// True where the body does not name an argument that is computed.
    pub(super) fn has_unused(&self) -> bool {
        let mut all = self.values.iter().zip(&self.used);
        all.any(|(value, used)| !used.get() && !matches!(value.expr, Expr::Literal(..)))
    }
}

impl Binder<'_> {
    /// The call, with its arguments as it takes them.
    pub(super) fn sql_call(
        &mut self,
        chosen: &Chosen<'_>,
        arguments: CallArguments<'_>,
    ) -> Result<SqlCall> {
        let catalog = self.catalog.clone();
        let (row, shown) = (chosen.function, signature(&catalog, chosen.function));
        catalog.check_function(row)?;
        if arguments.distinct || arguments.is_star || !arguments.order_by.is_empty() {
            let message = format!("{} is not an aggregate function", row.name);
            return fail(SqlState("42809"), message);
        }
        let declared = &row.arguments;
        if row.variadic != Oid(0) || declared.iter().any(|oid| is_compatible_range(*oid)) {
            return unsupported(format!("function {shown}, of any number or compatible ranges,"));
        }
        let depth = self.inlined.len();
        if depth == DEEPEST || self.inlined.contains(&row.oid) {
            return unsupported(format!("function {shown}, which calls itself or many others,"));
        }
        let within = |error| in_function(error, &shown);
        let function = catalog.sql_function(row.oid).map_err(within)?;
        let query = function.query(&catalog).map_err(within)?;
        let mut typed = brought_with_rows(&catalog, chosen, arguments.typed)?;
        // All of them have the one collation that the call has.
        let collation = result_collation(&catalog, &typed)?;
        for argument in typed.iter_mut().filter(|argument| argument.ty.collation != Oid(0)) {
            argument.ty.collation = collation;
        }
        let mut result = PgType::new(chosen.result);
        if result.collation != Oid(0) {
            result.collation = collation;
        }
        let (oid, is_strict, declared) = (row.oid, row.is_strict, declared.clone());
        Ok(SqlCall { function, query, arguments: typed, oid, declared, is_strict, result, shown })
    }

    /// A function that was chosen by its name or an operator's.
    pub(super) fn call_of(&mut self, chosen: &Chosen<'_>, arguments: Vec<Typed>) -> Result<Typed> {
        match is_inlined(chosen.function) {
            true => self.inlined(chosen, CallArguments::plain(arguments)),
            false => match self.with_limit(chosen, &arguments)? {
                Some(made) => Ok(made),
                None => call_chosen(&self.catalog, chosen, arguments),
            },
        }
    }

    /// A call that gives one value.
    pub(super) fn inlined(
        &mut self,
        chosen: &Chosen<'_>,
        arguments: CallArguments<'_>,
    ) -> Result<Typed> {
        let call = self.sql_call(chosen, arguments)?;
        let kind = self.catalog.type_row(call.result.oid).map_or(b'p', |row| row.kind);
        if kind == b'c' && listed_expressions(&call.query).is_some() {
            let row = self.row_of_body(&call).map_err(|error| in_function(error, &call.shown))?;
            return if call.is_strict { self.unless_null(&call, row) } else { Ok(row) };
        }
        if kind == b'c' || kind == b'p' || call.result.oid == RECORD {
            return unsupported(format!("function {}, which gives a row or nothing,", call.shown));
        }
        let value = match one_expression(&call.query) {
            Some(syntax) if !self.is_of_rows(syntax) => self.value_of_body(&call, syntax),
            _ => self.value_of_query(&call),
        };
        let value = value.and_then(|value| refuse_large(&value.expr).map(|()| value));
        let value = value.map_err(|error| in_function(error, &call.shown))?;
        match call.is_strict {
            true => self.unless_null(&call, value),
            false => with_constants(&self.catalog, value, &call.arguments),
        }
    }

    /// A body that is an expression, in the place of the call.
    fn value_of_body(&mut self, call: &SqlCall, syntax: &Syntax) -> Result<Typed> {
        let (value, body) = self.in_place_of_call(call, |binder| {
            let value = binder.expr(syntax)?;
            binder.as_result(value, call.result)
        })?;
        with_unused(value, &body)
    }

    /// Binds expressions of a body where the call stands.
    pub(super) fn in_place_of_call<T>(
        &mut self,
        call: &SqlCall,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Rc<BodyArguments>)> {
        let around = self.levels.len();
        let body = self.body_arguments(call, around);
        let scope = std::mem::take(&mut self.level().scope);
        let allowed = std::mem::replace(&mut self.level().allowed, Allowed::Plain);
        let may_stand = std::mem::replace(&mut self.level().sets.may_stand, false);
        let bound = self.within_body(call.oid, body.clone(), around.saturating_sub(1), bind);
        let level = self.level();
        (level.scope, level.allowed, level.sets.may_stand) = (scope, allowed, may_stand);
        Ok((bound?, body))
    }

    /// A body that asks tables, or has several clauses: the value of its first row.
    fn value_of_query(&mut self, call: &SqlCall) -> Result<Typed> {
        let around = self.levels.len();
        let body = self.body_arguments(call, around);
        let mut bound =
            self.within_body(call.oid, body.clone(), around, |binder| binder.query(&call.query))?;
        let [column] = &mut bound.columns[..] else {
            return unsupported("a body of several columns");
        };
        let shown = self.as_result(column.typed.clone(), call.result)?;
        let (expr, typed) = self.named(&shown, "result");
        let mut plan = LogicalPlanBuilder::from(bound.plan);
        // Which row comes first is told by an order alone; without one, two are an error.
        let is_sorted = call.query.order_by.is_some();
        plan = plan.project([expr])?;
        if is_sorted {
            plan = plan.limit(0, Some(1))?;
        }
        let value = self.value_of_rows(plan.build()?, &typed)?;
        with_unused(value, &body)
    }

    /// A query that takes the place of a call in FROM, with its columns as declared.
    pub(super) fn rows_of_body(&mut self, call: &SqlCall, columns: &[PgType]) -> Result<Bound> {
        let around = self.levels.len();
        let body = self.body_arguments(call, around + 1);
        let bound = self.within_body(call.oid, body, around, |binder| binder.query(&call.query));
        let Bound { plan, columns: found } = bound?;
        if found.len() != columns.len() || found.iter().any(|column| column.typed.is_row()) {
            return unsupported("a body of other columns than it declares");
        }
        let (mut exprs, mut shown) = (Vec::new(), Vec::new());
        for (mut column, wanted) in found.into_iter().zip(columns) {
            let value = self.as_result(column.typed.clone(), *wanted)?;
            let (expr, typed) = self.named(&value, &column.name);
            column.typed = typed;
            exprs.push(expr);
            shown.push(column);
        }
        let mut plan = LogicalPlanBuilder::from(plan).project(exprs)?;
        if call.is_strict
            && let Some(is_null) = any_null(&self.catalog, &call.arguments)?
        {
            plan = plan.filter(is_null.expr.is_not_true())?;
        }
        Ok(Bound { plan: plan.build()?, columns: shown })
    }

    /// Binds a part of a body: it sees its arguments, and none of the queries before `hidden`.
    pub(super) fn within_body<T>(
        &mut self,
        function: Oid,
        body: Rc<BodyArguments>,
        hidden: usize,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let with = std::mem::take(&mut self.with);
        let body = self.body.replace(body);
        let hidden = std::mem::replace(&mut self.hidden, hidden);
        let keeps_literals = std::mem::replace(&mut self.keeps_literals, false);
        // In a view, too, a function reads with the rights of whoever asks, and not of the view's owner.
        let reader = self.reader.take();
        let is_stored = std::mem::replace(&mut self.is_stored, false);
        self.inlined.push(function);
        let bound = bind(self);
        self.inlined.pop();
        (self.reader, self.is_stored) = (reader, is_stored);
        (self.with, self.body, self.hidden) = (with, body, hidden);
        self.keeps_literals = keeps_literals;
        bound
    }

    /// The arguments, seen from a place with so many queries around it.
    pub(super) fn body_arguments(&self, call: &SqlCall, depth: usize) -> Rc<BodyArguments> {
        let mut carriers = self.carriers();
        // In a body within another, they are also what that one has of its own.
        carriers.extend(self.body.iter().flat_map(|body| body.carriers.clone()));
        let values = call.arguments.clone();
        let used = values.iter().map(|_| Cell::new(false)).collect();
        Rc::new(BodyArguments { function: call.function.clone(), values, used, depth, carriers })
    }

    /// What carries the columns of the tables around.
    fn carriers(&self) -> HashMap<Column, DataType> {
        let tables = self.levels.iter().flat_map(|level| &level.scope.tables);
        let columns = tables.flat_map(|table| table.all_columns());
        let named = columns.filter_map(|column| match &column.typed.expr {
            Expr::Column(named) => Some((named.clone(), column.typed.carrier.clone())),
            _ => None,
        });
        named.collect()
    }

    /// A value as a query right within this one sees it.
    pub(super) fn seen_from_query(&self, value: &Typed) -> Result<Typed> {
        self.seen_from_within(value, 1, &self.carriers())
    }

    /// The value as what the function declares to give.
    pub(super) fn as_result(&self, value: Typed, result: PgType) -> Result<Typed> {
        if value.is_row() {
            return unsupported("a row as what a function gives");
        }
        let mut typed = coerce(&self.catalog, value, result, CastContext::Assignment)?;
        typed.ty = PgType { modifier: -1, ..result };
        Ok(typed)
    }

    /// A STRICT function is NULL where an argument is, and its body is not looked at.
    fn unless_null(&self, call: &SqlCall, value: Typed) -> Result<Typed> {
        let is_null = any_null(&self.catalog, &call.arguments);
        let is_null = is_null.map_err(|error| in_function(error, &call.shown))?;
        let Some(is_null) = is_null else { return Ok(value) };
        let null = Expr::Literal(ScalarValue::try_from(&value.carrier)?, None);
        Ok(value.with_expr(when(is_null.expr, null).otherwise(value.expr.clone())?))
    }

    /// `$1` in a body.
    pub(super) fn numbered_argument(&self, name: &str) -> Result<Typed> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let place = number.and_then(|number| number.checked_sub(1));
        let count = self.body.as_ref().map_or(0, |body| body.values.len());
        match place.filter(|place| *place < count) {
            Some(place) => self.argument(place),
            None => fail(SqlState("42P02"), format!("there is no parameter {name}")),
        }
    }

    /// What a name means that is no column: `argument`, `function.argument`, and a field of either.
    pub(super) fn named_argument(&self, names: &[&str]) -> Option<Result<Typed>> {
        let body = self.body.as_ref()?;
        let place = |name: &str| {
            body.function.arguments.iter().position(|own| own == name && !name.is_empty())
        };
        let is_own = |name: &str| body.function.name == name;
        let (place, of_row) = match names {
            [name] => (place(name)?, None),
            [first, name] if is_own(first) && place(name).is_some() => (place(name)?, None),
            [first, name] => (place(first)?, Some(name)),
            [first, name, of_row] if is_own(first) => (place(name)?, Some(of_row)),
            _ => return None,
        };
        let argument = self.argument(place);
        let Some(name) = of_row else { return Some(argument) };
        Some(argument.and_then(|row| {
            let row = taken_apart(&self.catalog, row)?;
            if !row.is_row() {
                return unsupported("a field of a row");
            }
            let missing = || {
                let message = format!("column \"{name}\" not found in an argument");
                StatementError::new(SqlState::UNDEFINED_COLUMN, message).into()
            };
            field(&row, name)?.ok_or_else(missing)
        }))
    }

    /// An argument as it is seen from here.
    fn argument(&self, place: usize) -> Result<Typed> {
        let body = self.body.as_ref();
        let found = body.and_then(|body| Some((body, body.values.get(place)?)));
        let Some((body, value)) = found else {
            return fail(SqlState("42P02"), format!("there is no parameter ${}", place + 1));
        };
        let was_used = body.used.get(place).is_some_and(|used| used.replace(true));
        let is_once = !was_used && self.levels.len() == body.depth;
        if value.expr.is_volatile() && !is_once {
            return unsupported(
                "an argument by chance that it names more than once, or in a query",
            );
        }
        let Some(depth) = self.levels.len().checked_sub(body.depth) else {
            return unsupported("an argument outside of the query that it is of");
        };
        match depth {
            0 => Ok(value.clone()),
            _ => self.seen_from_within(value, depth, &body.carriers),
        }
    }

    /// A value of the query around, seen from so many queries further in.
    fn seen_from_within(
        &self,
        value: &Typed,
        depth: usize,
        carriers: &HashMap<Column, DataType>,
    ) -> Result<Typed> {
        let refused = || unsupported("a reference to a query two levels further out");
        let has_outer = value.expr.exists(|inner| {
            Ok(matches!(inner, Expr::OuterReferenceColumn(..)) || has_correlated_query(inner))
        })?;
        let has_columns = !value.expr.column_refs().is_empty();
        if !self.nests && (has_outer || has_columns && depth > 1) {
            return refused();
        }
        let of_queries = value.expr.exists(|inner| Ok(has_correlated_query(inner)))?;
        let known = value.expr.column_refs().iter().all(|column| carriers.contains_key(*column));
        if of_queries || !known {
            return unsupported("an argument that is made of queries or groups");
        }
        let turned = value.expr.clone().transform_up(|inner| {
            Ok(match inner {
                Expr::Column(column) => {
                    let carrier = carriers.get(&column).cloned().unwrap_or(DataType::Null);
                    let field = Arc::new(Field::new(column.name(), carrier, true));
                    Transformed::yes(Expr::OuterReferenceColumn(field, column))
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(value.with_expr(turned.data))
    }

    /// True for what asks groups, windows or several rows, and can be no plain expression.
    pub(super) fn is_of_rows(&self, syntax: &Syntax) -> bool {
        let is_one = |inner: &Syntax| match inner {
            Syntax::Function(call) => {
                let name = super::columns::last_name(&call.name);
                let mut named = self.catalog.functions_named(&name);
                call.over.is_some() || named.any(|row| row.kind != b'f' || row.returns_set)
            }
            _ => false,
        };
        let found = sqlparser::ast::visit_expressions(syntax, |inner| match is_one(inner) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }
}

fn refuse_large(expr: &Expr) -> Result<()> {
    let mut count = 0;
    expr.apply(|_| {
        count += 1;
        Ok(if count > LARGEST { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    match count > LARGEST {
        true => unsupported("an expression of so many parts"),
        false => Ok(()),
    }
}

fn has_correlated_query(expr: &Expr) -> bool {
    let subquery = match expr {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::Exists(exists) => &exists.subquery,
        Expr::InSubquery(found) => &found.subquery,
        _ => return false,
    };
    !subquery.outer_ref_columns.is_empty()
}

/// Constants are computed before anything else, whether the body comes to look at them or not.
fn with_constants(catalog: &Arc<Catalog>, value: Typed, arguments: &[Typed]) -> Result<Typed> {
    let is_computed = |argument: &&Typed| {
        let is_literal = matches!(argument.expr, Expr::Literal(..));
        !is_literal && argument.expr.column_refs().is_empty() && !argument.expr.contains_outer()
    };
    let constants: Vec<Typed> = arguments.iter().filter(is_computed).cloned().collect();
    let Some(looked_at) = any_null(catalog, &constants)? else { return Ok(value) };
    // It is true or false, so that this comes to be looked at and never is.
    let null = Expr::Literal(ScalarValue::try_from(&value.carrier)?, None);
    let expr = when(is_null(looked_at.expr), null).otherwise(value.expr.clone())?;
    Ok(value.with_expr(expr))
}

/// An argument that the body does not name is still one of the call, where columns have to be those of groups.
fn with_unused(value: Typed, body: &BodyArguments) -> Result<Typed> {
    let unused = body.values.iter().zip(&body.used).filter(|(_, used)| !used.get());
    let unused = unused
        .filter(|(argument, _)| argument.row.is_none() && !argument.expr.column_refs().is_empty());
    let mut expr = value.expr.clone();
    for (argument, _) in unused {
        // The second branch is never looked at.
        let never = is_null(argument.expr.clone());
        let mut either = when(lit(true), expr.clone()).when(never, expr.clone());
        expr = either.otherwise(expr)?;
    }
    Ok(value.with_expr(expr))
}

/// The one expression that a query is, if it has no other clause.
fn one_expression(query: &Query) -> Option<&Syntax> {
    let select = plain_select(query)?;
    match &select.projection[..] {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }]
            if select.from.is_empty() =>
        {
            Some(expr)
        }
        _ => None,
    }
}

/// The SELECT that a query is, if it has a list and FROM and no other clause.
pub(super) fn plain_select(query: &Query) -> Option<&Select> {
    let has_more = query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.locks.is_empty();
    let select = match &*query.body {
        SetExpr::Select(select) if !has_more => select,
        SetExpr::Query(inner) if !has_more => return plain_select(inner),
        _ => return None,
    };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(items, modifiers)
        if items.is_empty() && modifiers.is_empty());
    let is_plain = !is_grouped
        && select.distinct.is_none()
        && select.selection.is_none()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.into.is_none();
    is_plain.then_some(select)
}

/// What a body has that is not known here, and where: places in it are none in the statement.
pub(super) fn in_function(error: Error, function: &str) -> Error {
    match error {
        Error::Statement(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => {
            let what = error.message.trim_end_matches(" is not supported here");
            StatementError::unsupported(format!("function {function} ({what})")).into()
        }
        Error::Statement(error) => error.without_position().into(),
        other => other,
    }
}
