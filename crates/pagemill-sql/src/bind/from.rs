//! FROM: tables, queries, joins.
//!
//! Source: `transformFromClauseItem` in `src/backend/parser/parse_clause.c`, PostgreSQL 18.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use pagemill_cluster::RelationKind;
use sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, TableAlias,
    TableFactor, TableWithJoins,
};

use super::expressions::truth_value;
use super::inheritance::after_only;
use super::lateral::outer_columns;
use super::query::{boolean, rename};
use super::recursion::is_work_table;
use super::scope::{Allowed, Level, Scope, at, folded, refuse_unreadable};
use super::set_calls::{FromFunctions, is_function};
use super::table_names::FoundTable;
use super::{Binder, Bound, BoundColumn, TableRows};
use crate::catalog::CastContext;
use crate::coerce::{coerce, result_type};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::expand::Expansion;
use crate::functions::keys;
use crate::resolve::common_type;
use crate::typed::Typed;
use crate::types::PgType;

/// The items of FROM before one, which its functions may refer to.
#[derive(Default)]
struct Earlier {
    scope: Scope,
    /// Their rows, where the item is to be put on top of them.
    plan: Option<LogicalPlan>,
    /// True once a function referred to them.
    is_used: bool,
    /// True where functions of rows would rather see those that are left of all before them.
    gains: bool,
}

/// The columns that expressions use, those that queries in them refer to included.
fn used_columns(arguments: &[Typed]) -> Result<Vec<Expr>> {
    let mut used = Vec::new();
    for argument in arguments {
        argument.expr.apply(|inner| {
            match inner {
                Expr::Column(_) => used.push(inner.clone()),
                Expr::ScalarSubquery(query) => {
                    used.extend(query.outer_ref_columns.iter().filter_map(|outer| match outer {
                        Expr::OuterReferenceColumn(_, column) => Some(Expr::Column(column.clone())),
                        _ => None,
                    }));
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(used)
}

/// The right side of a join.
enum Right {
    Table(LogicalPlan),
    /// Functions of the row on the left.
    Rows(Expansion, Vec<Typed>),
    /// A query that refers to the row on the left.
    Query(LogicalPlan),
}

impl Binder<'_> {
    pub(super) fn bind_from(&mut self, from: &[TableWithJoins]) -> Result<(LogicalPlan, Scope)> {
        let mut all: Option<(LogicalPlan, Scope)> = None;
        for item in from {
            all = Some(match all {
                None => self.with_joins(item, &mut Earlier::default())?,
                Some(earlier) => self.beside_earlier(earlier, item)?,
            });
        }
        match all {
            Some(found) => Ok(found),
            None => Ok((LogicalPlanBuilder::empty(true).build()?, Scope::default())),
        }
    }

    /// An item beside those before it: on its own, or on top of them where its functions refer to them.
    fn beside_earlier(
        &mut self,
        (left, left_scope): (LogicalPlan, Scope),
        item: &TableWithJoins,
    ) -> Result<(LogicalPlan, Scope)> {
        let mut earlier = Earlier { scope: left_scope.clone(), ..Earlier::default() };
        let alone = self.with_joins(item, &mut earlier);
        let mut on_top = None;
        if earlier.is_used || earlier.gains {
            let scope = left_scope.clone();
            let plan = Some(left.clone());
            let mut earlier = Earlier { scope, plan, is_used: true, gains: false };
            on_top = Some(self.with_joins(item, &mut earlier));
        }
        let (plan, scope) = match (on_top, alone) {
            (Some(Ok(joined)), _) => joined,
            (_, Ok((plan, scope))) => {
                (LogicalPlanBuilder::from(left).cross_join(plan)?.build()?, scope)
            }
            (on_top, Err(error)) => return Err(on_top.and_then(Result::err).unwrap_or(error)),
        };
        let scope = left_scope.beside(scope);
        scope.check_names()?;
        Ok((plan, scope))
    }

    fn with_joins(
        &mut self,
        item: &TableWithJoins,
        earlier: &mut Earlier,
    ) -> Result<(LogicalPlan, Scope)> {
        let (first, scope) = self.factor(&item.relation, &Scope::default(), earlier)?;
        let first = match (earlier.plan.take(), first) {
            (None, Right::Table(plan)) => plan,
            (Some(below), first) => self.joined(below, first, JoinType::Inner, Vec::new())?,
            (None, first) => {
                let nothing = LogicalPlanBuilder::empty(true).build()?;
                self.joined(nothing, first, JoinType::Inner, Vec::new())?
            }
        };
        let mut left = (first, scope);
        for join in &item.joins {
            left = self.join(left, join, earlier)?;
            left.1.tables.iter_mut().for_each(|table| table.in_join = true);
        }
        Ok(left)
    }

    /// An item; `left` is what it is joined to.
    fn factor(
        &mut self,
        factor: &TableFactor,
        left: &Scope,
        earlier: &mut Earlier,
    ) -> Result<(Right, Scope)> {
        let sample = match factor {
            TableFactor::Table { sample, .. } => sample.as_ref(),
            _ => None,
        };
        if let Some((syntax, alias)) = after_only(factor) {
            let found = self.only(syntax, alias)?;
            let (plan, scope) = match sample {
                Some(sample) => self.sampled(found, sample)?,
                None => found,
            };
            return Ok((Right::Table(plan), scope));
        }
        if sample.is_some()
            && !matches!(factor, TableFactor::Table { args: None, with_ordinality: false, .. })
        {
            return unsupported("TABLESAMPLE of what is no table");
        }
        if is_function(factor) {
            let before = left.clone().beside(earlier.scope.clone());
            if let Some((plan, scope)) = self.inlined_item(factor, &before)? {
                return Ok((Right::Table(plan), scope));
            }
            return self.functions(factor, left, earlier);
        }
        let (plan, scope) = match factor {
            TableFactor::Table { name, alias, args: None, with_ordinality: false, .. } => {
                let found = self.table(name, alias.as_ref())?;
                match sample {
                    Some(sample) => self.sampled(found, sample)?,
                    None => found,
                }
            }
            TableFactor::Derived { lateral: true, subquery, alias } => {
                return self.lateral_item(subquery, (alias.as_ref(), left), earlier);
            }
            TableFactor::Derived { lateral: false, subquery, alias } => {
                let bound = self.query(subquery)?;
                self.as_table(bound, alias.as_ref(), "")?
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let scope = left.clone().beside(earlier.scope.clone());
                let mut around = Earlier { scope, ..Earlier::default() };
                match self.with_joins(table_with_joins, &mut around) {
                    Err(_) if around.is_used => {
                        return unsupported("a join in parentheses that refers to what is before");
                    }
                    joined => self.join_under(joined?, alias.as_ref())?,
                }
            }
            _ => return unsupported("this item of FROM"),
        };
        Ok((Right::Table(plan), scope))
    }

    /// A join in parentheses, whose alias hides the names in it.
    fn join_under(
        &mut self,
        (plan, scope): (LogicalPlan, Scope),
        alias: Option<&TableAlias>,
    ) -> Result<(LogicalPlan, Scope)> {
        let Some(alias) = alias else { return Ok((plan, scope)) };
        let Bound { plan, mut columns } = self.renamed(Bound { plan, columns: scope.bare })?;
        rename(&mut columns, alias, "join expression")?;
        Ok((plan, Scope::of_table(folded(&alias.name), columns)))
    }

    fn functions(
        &mut self,
        factor: &TableFactor,
        left: &Scope,
        earlier: &mut Earlier,
    ) -> Result<(Right, Scope)> {
        let before = left.clone().beside(earlier.scope.clone());
        let found = self.functions_of_item(factor, before)?;
        let used = used_columns(&found.arguments)?;
        let refers_to = |scope: &Scope| {
            let mut columns = scope.tables.iter().flat_map(|table| table.all_columns());
            columns.any(|column| used.contains(&column.typed.expr))
        };
        let uses_earlier = refers_to(&earlier.scope);
        if uses_earlier && !earlier.is_used {
            // Once more, on top of what is before.
            earlier.is_used = true;
            return unsupported("LATERAL");
        }
        let is_lateral = uses_earlier || refers_to(left);
        earlier.gains |= is_lateral;
        let FromFunctions { expansion, arguments, scope } = found;
        match is_lateral {
            true => Ok((Right::Rows(expansion, arguments), scope)),
            false => {
                let nothing = LogicalPlanBuilder::empty(true).build()?;
                Ok((Right::Table(self.expanded(nothing, expansion, arguments)?), scope))
            }
        }
    }

    /// A query that may refer to what is before it.
    fn lateral_item(
        &mut self,
        query: &Query,
        (alias, left): (Option<&TableAlias>, &Scope),
        earlier: &mut Earlier,
    ) -> Result<(Right, Scope)> {
        let bound = self.lateral(query, left.clone().beside(earlier.scope.clone()))?;
        let outer = outer_columns(&bound.plan);
        let (plan, scope) = self.as_table(bound, alias, "")?;
        let refers_to = |scope: &Scope| {
            let mut columns = scope.tables.iter().flat_map(|table| {
                table.all_columns().map(|column| &column.typed).chain(&table.present)
            });
            columns.any(|typed| match &typed.expr {
                Expr::Column(column) => outer.iter().any(|(known, _)| known == column),
                _ => false,
            })
        };
        let uses_earlier = refers_to(&earlier.scope);
        if uses_earlier && !earlier.is_used {
            // Once more, on top of what is before.
            earlier.is_used = true;
            return unsupported("LATERAL");
        }
        let is_lateral = uses_earlier || refers_to(left);
        Ok((if is_lateral { Right::Query(plan) } else { Right::Table(plan) }, scope))
    }

    fn table(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
    ) -> Result<(LogicalPlan, Scope)> {
        let parts = name_parts(name)?;
        let last = parts.last().expect("a name has a part"); // infallible: of the parser
        let table = folded(last);
        if let [only] = &parts[..]
            && let Some(bound) = self.with.iter().rev().find_map(|tables| tables.get(&folded(only)))
        {
            let again = bound.clone();
            self.names_itself |= is_work_table(&again.plan);
            let again = self.renamed(again)?;
            return self.as_table(again, alias, &table);
        }
        if let [only] = &parts[..] {
            let name = self.fresh(&table);
            if let Some(bound) = self.tables.file(&table, &name)? {
                // Neither hides the other in silence.
                if self.find_table(&parts).is_ok() {
                    let message = format!("\"{table}\" is the name of a file and of a relation");
                    return Err(at(StatementError::new(SqlState("42P09"), message), only));
                }
                return self.as_table(bound, alias, &table);
            }
        }
        let found = self.find_table(&parts)?;
        let readable = self.check_rights(&found)?;
        let mut rows = match found.class.kind {
            RelationKind::View => self.view(&found)?.into(),
            _ => {
                let rows = self.with_children(&found, &table)?;
                self.with_policies(&found, rows)?
            }
        };
        found.mark(&readable, &mut rows);
        self.as_relation(&found, rows, alias, &table)
    }

    /// The rows of a relation as an item of FROM.
    pub(super) fn as_relation(
        &mut self,
        found: &FoundTable,
        rows: TableRows,
        alias: Option<&TableAlias>,
        name: &str,
    ) -> Result<(LogicalPlan, Scope)> {
        let (plan, mut scope) = self.as_table(rows.bound, alias, name)?;
        if !Arc::ptr_eq(&found.catalog, &self.catalog) {
            // Numbers of another database tell a client nothing.
            let table = scope.tables.iter_mut().flat_map(|table| &mut table.columns);
            table.chain(&mut scope.bare).for_each(|column| column.typed.origin = None);
        }
        scope.tables[0].present = rows.system.first().map(|ctid| ctid.typed.clone());
        scope.tables[0].system = rows.system;
        found.put_path(&mut scope, alias);
        Ok((plan, scope))
    }

    fn joined(
        &mut self,
        left: LogicalPlan,
        right: Right,
        kind: JoinType,
        conditions: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        match right {
            Right::Table(right) => joined(left, right, kind, conditions),
            Right::Query(query) => self.joined_to_query(left, query, kind, conditions),
            Right::Rows(mut expansion, arguments) => {
                let conditions: Vec<Expr> =
                    conditions.into_iter().filter(|condition| *condition != lit(true)).collect();
                expansion.keeps_all = match kind {
                    JoinType::Inner => false,
                    JoinType::Left if conditions.is_empty() => true,
                    JoinType::Left => {
                        return self.left_joined_rows(left, (expansion, arguments), conditions);
                    }
                    _ => {
                        return unsupported(
                            "an outer join by a condition to functions that refer to what is before",
                        );
                    }
                };
                let plan = self.expanded(left, expansion, arguments)?;
                Ok(match conditions.into_iter().reduce(Expr::and) {
                    None => plan,
                    Some(condition) => LogicalPlanBuilder::from(plan).filter(condition)?.build()?,
                })
            }
        }
    }

    /// The same rows under new names, so that a table of WITH can stand beside itself.
    fn renamed(&mut self, bound: Bound) -> Result<Bound> {
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        for column in bound.columns {
            let (expr, typed) = self.named(&column.typed, &column.name);
            exprs.push(expr);
            columns.push(BoundColumn { name: column.name, typed });
        }
        let plan = LogicalPlanBuilder::from(bound.plan).project(exprs)?.build()?;
        Ok(Bound { plan, columns })
    }

    pub(super) fn as_table(
        &mut self,
        bound: Bound,
        alias: Option<&TableAlias>,
        name: &str,
    ) -> Result<(LogicalPlan, Scope)> {
        let Bound { plan, mut columns } = bound;
        let mut shown = name.to_owned();
        if let Some(alias) = alias {
            shown = folded(&alias.name);
            rename(&mut columns, alias, "table")?;
        }
        Ok((plan, Scope::of_table(shown, columns)))
    }

    fn join(
        &mut self,
        mut left: (LogicalPlan, Scope),
        join: &Join,
        earlier: &mut Earlier,
    ) -> Result<(LogicalPlan, Scope)> {
        let mut right = self.factor(&join.relation, &left.1, earlier)?;
        let (kind, constraint) = match &join.join_operator {
            JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinType::Inner, c),
            JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinType::Left, c),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinType::Right, c),
            JoinOperator::FullOuter(c) => (JoinType::Full, c),
            JoinOperator::CrossJoin(c) => (JoinType::Inner, c),
            _ => return fail(SqlState::SYNTAX_ERROR, "syntax error: no join of PostgreSQL's"),
        };
        if matches!(kind, JoinType::Left | JoinType::Full) {
            right.0 = match right.0 {
                Right::Table(plan) => Right::Table(self.with_presence(plan, &mut right.1)?),
                Right::Query(plan) => Right::Query(self.with_presence(plan, &mut right.1)?),
                rows => rows,
            };
            right.1.tables.iter_mut().for_each(|table| table.is_nullable = true);
        }
        if matches!(kind, JoinType::Right | JoinType::Full) {
            left.0 = self.with_presence(left.0, &mut left.1)?;
            left.1.tables.iter_mut().for_each(|table| table.is_nullable = true);
        }
        // What is before has come into the plan, where such a join would add rows to it.
        if earlier.is_used && matches!(kind, JoinType::Right | JoinType::Full) {
            return unsupported("RIGHT or FULL JOIN behind functions that refer to what is before");
        }
        let is_cross = matches!(join.join_operator, JoinOperator::CrossJoin(_));
        let names = match constraint {
            JoinConstraint::Using(names) => names.iter().map(super::columns::last_name).collect(),
            JoinConstraint::Natural => common_names(&left.1, &right.1),
            JoinConstraint::On(condition) => {
                return self.join_on(left, right, kind, condition);
            }
            JoinConstraint::None if is_cross => Vec::new(),
            JoinConstraint::None => {
                return fail(SqlState::SYNTAX_ERROR, "syntax error: JOIN without ON or USING");
            }
        };
        self.join_using(left, right, kind, &names)
    }

    /// The same rows with a column by which each table of an outer join is told from no row of it.
    fn with_presence(&mut self, plan: LogicalPlan, scope: &mut Scope) -> Result<LogicalPlan> {
        if scope.tables.iter().all(|table| table.present.is_some() || table.is_nullable) {
            return Ok(plan);
        }
        // Beside what is shown, so that a query that becomes a join stays one of columns.
        let (mut exprs, plan) = match plan {
            LogicalPlan::Projection(shown) => (shown.expr, Arc::unwrap_or_clone(shown.input)),
            plan => (plan.schema().columns().into_iter().map(Expr::Column).collect(), plan),
        };
        for table in scope.tables.iter_mut().filter(|t| t.present.is_none() && !t.is_nullable) {
            let (expr, present) = self.named(&truth_value(lit(true)), "present");
            exprs.push(expr);
            table.present = Some(present);
        }
        Ok(LogicalPlanBuilder::from(plan).project(exprs)?.build()?)
    }

    fn join_on(
        &mut self,
        (left, left_scope): (LogicalPlan, Scope),
        (right, right_scope): (Right, Scope),
        kind: JoinType,
        condition: &sqlparser::ast::Expr,
    ) -> Result<(LogicalPlan, Scope)> {
        let scope = left_scope.beside(right_scope);
        scope.check_names()?;
        let allowed = Allowed::PlainIn("JOIN conditions");
        self.levels.push(Level { scope, allowed, ..Level::default() });
        let bound = self.expr(condition);
        let level = self.levels.pop().expect("pushed above"); // infallible: pushed above
        let condition = boolean(bound?, "JOIN/ON", &self.catalog)?;
        if let (JoinType::Full, Right::Table(right)) = (kind, &right)
            && !can_be_full(&condition.expr, &left, right)
        {
            return unsupported("FULL JOIN without an equality of both sides");
        }
        let plan = self.joined(left, right, kind, vec![condition.expr])?;
        Ok((plan, level.scope))
    }

    fn join_using(
        &mut self,
        (left, mut left_scope): (LogicalPlan, Scope),
        (right, mut right_scope): (Right, Scope),
        kind: JoinType,
        names: &[String],
    ) -> Result<(LogicalPlan, Scope)> {
        let (mut conditions, mut merged) = (Vec::new(), Vec::new());
        for name in names {
            let (a, b) =
                (take(&mut left_scope, name, "left")?, take(&mut right_scope, name, "right")?);
            [&a, &b].into_iter().try_for_each(|column| refuse_unreadable(&column.typed))?;
            let common = common_type(&self.catalog, &[a.typed.ty.oid, b.typed.ty.oid])?;
            let bring =
                |typed| coerce(&self.catalog, typed, PgType::new(common), CastContext::Implicit);
            let same = a.typed.ty.oid == b.typed.ty.oid;
            let (x, y) = match same {
                true => (a.typed.clone(), b.typed.clone()),
                false => (bring(a.typed.clone())?, bring(b.typed.clone())?),
            };
            let (left_key, right_key) = keys::equality_pair(&self.catalog, &x, &y)?;
            conditions.push(left_key.eq(right_key));
            let mut typed = match kind {
                JoinType::Right => y,
                JoinType::Full => {
                    let ty = result_type(&self.catalog, common, &[x.clone(), y.clone()])?;
                    let mut both = super::cases::coalesce(&self.catalog, vec![x, y])?;
                    both.ty.collation = ty.collation;
                    both
                }
                _ => x,
            };
            if !same || a.typed.ty.modifier != b.typed.ty.modifier {
                typed.origin = None;
            }
            merged.push(BoundColumn { name: name.clone(), typed });
        }
        let plan = self.joined(left, right, kind, conditions)?;
        let mut scope = left_scope.beside(right_scope);
        scope.check_names()?;
        merged.append(&mut scope.bare);
        scope.bare = merged;
        Ok((plan, scope))
    }
}

/// True where the server finds the rows of a FULL JOIN by a value of each side, or by a constant; it refuses others, if it
/// does not see that WHERE makes them joins of another kind.
fn can_be_full(condition: &Expr, left: &LogicalPlan, right: &LogicalPlan) -> bool {
    let of = |plan: &LogicalPlan, expr: &Expr| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|column| plan.schema().has_column(column))
    };
    let is_between =
        |a: &Expr, b: &Expr| of(left, a) && of(right, b) || of(right, a) && of(left, b);
    let parts = split_conjunction(condition);
    let is_hashed = |part: &&Expr| match part {
        Expr::BinaryExpr(pair) => pair.op == Operator::Eq && is_between(&pair.left, &pair.right),
        _ => false,
    };
    // Days and moments are equal by an operator that sorts, and does not hash.
    let is_sorted = |part: &&Expr| match part {
        Expr::ScalarFunction(call) => {
            call.name().contains("_eq_") && matches!(&call.args[..], [a, b] if is_between(a, b))
        }
        part => part.column_refs().is_empty(),
    };
    parts.iter().any(is_hashed) || parts.iter().all(is_sorted)
}

pub(super) fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    conditions: Vec<Expr>,
) -> Result<LogicalPlan> {
    let builder = LogicalPlanBuilder::from(left);
    if conditions.is_empty() {
        return Ok(match kind {
            JoinType::Inner => builder.cross_join(right)?,
            _ => builder.join_on(right, kind, [lit(true)])?,
        }
        .build()?);
    }
    Ok(builder.join_on(right, kind, conditions)?.build()?)
}

/// Takes the column of this name out of the bare ones.
fn take(scope: &mut Scope, name: &str, side: &str) -> Result<BoundColumn> {
    let mut found = (0..scope.bare.len()).filter(|at| scope.bare[*at].name == name);
    let (first, second) = (found.next(), found.next());
    match (first, second) {
        (Some(at), None) => Ok(scope.bare.remove(at)),
        (Some(_), Some(_)) => {
            let message =
                format!("common column name \"{name}\" appears more than once in {side} table");
            fail(SqlState::AMBIGUOUS_COLUMN, message)
        }
        (None, _) => {
            let message = format!(
                "column \"{name}\" specified in USING clause does not exist in {side} table"
            );
            fail(SqlState::UNDEFINED_COLUMN, message)
        }
    }
}

fn common_names(left: &Scope, right: &Scope) -> Vec<String> {
    let is_right = |name: &String| right.bare.iter().any(|column| column.name == *name);
    left.bare.iter().map(|column| column.name.clone()).filter(is_right).collect()
}

/// The parts of a table's name.
pub(super) fn name_parts<'n>(name: &'n ObjectName) -> Result<Vec<&'n Ident>> {
    let part = |part: &'n ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Ok(ident),
        _ => fail(SqlState::SYNTAX_ERROR, format!("{name} is no name")),
    };
    name.0.iter().map(part).collect()
}
