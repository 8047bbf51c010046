//! UNION, INTERSECT, EXCEPT and VALUES.
//!
//! Source: `transformSetOperationTree` in `src/backend/parser/analyze.c`, PostgreSQL 18.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, NullEquality, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprFunctionExt as _, JoinType, LogicalPlan, LogicalPlanBuilder,
    WindowFunctionDefinition, lit,
};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier, Values};

use super::query::{Tail, column};
use super::scope::{Allowed, Level};
use super::select::Shown;
use super::{Binder, Bound, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::row_forms::shown_row;
use crate::functions::row_payloads::taken_apart;
use crate::functions::{keys, numeric};
use crate::resolve::{common_type_of, pathway};
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD};

const NO_TAIL: Tail<'static> = Tail { order_by: &[], limit: None, offset: None, with_ties: false };

impl Binder<'_> {
    pub(super) fn set_expr(&mut self, body: &SetExpr) -> Result<Bound> {
        match body {
            SetExpr::Select(select) => self.select(select, &NO_TAIL),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let left = self.part(left)?;
                let right = self.part(right)?;
                self.set_operation(*op, *set_quantifier, left, right)
            }
            SetExpr::Values(values) => self.values(values),
            SetExpr::Table(_) => unsupported("TABLE in this place"),
            _ => fail(SqlState::READ_ONLY, "cannot change data: tables are only read here"),
        }
    }

    pub(super) fn part(&mut self, body: &SetExpr) -> Result<Bound> {
        let mut inner = body;
        while let SetExpr::Query(query) = inner {
            inner = &query.body;
        }
        self.keeps_literals = matches!(inner, SetExpr::Select(_));
        self.set_expr(body)
    }

    fn set_operation(
        &mut self,
        op: SetOperator,
        quantifier: SetQuantifier,
        left: Bound,
        right: Bound,
    ) -> Result<Bound> {
        let is_all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::Distinct | SetQuantifier::None => false,
            _ => return fail(SqlState::SYNTAX_ERROR, "syntax error: BY NAME is not PostgreSQL's"),
        };
        let name = match op {
            SetOperator::Union => "UNION",
            SetOperator::Intersect => "INTERSECT",
            SetOperator::Except | SetOperator::Minus => "EXCEPT",
        };
        if left.columns.len() != right.columns.len() {
            let message = format!("each {name} query must have the same number of columns");
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        if left.columns.is_empty() && !(is_all && op == SetOperator::Union) {
            return self.of_bare_rows((op, quantifier), left, right);
        }
        let (left, right) = self.unified(name, left, right)?;
        let builder = LogicalPlanBuilder::from(left.plan);
        let mut columns = left.columns;
        let plan = match op {
            SetOperator::Union => {
                let all = builder.union(right.plan)?.build()?;
                if is_all { all } else { self.distinct(all, &mut columns, Shown::AllAlike)? }
            }
            _ => {
                let is_both = op == SetOperator::Intersect;
                let kind = if is_both { JoinType::LeftSemi } else { JoinType::LeftAnti };
                let sides = (builder.build()?, right.plan);
                self.of_left((kind, is_all), sides, &mut columns)?
            }
        };
        Ok(Bound { plan, columns })
    }

    /// Rows without columns are all alike: as rows of one column that is the same in all.
    fn of_bare_rows(
        &mut self,
        (op, quantifier): (SetOperator, SetQuantifier),
        left: Bound,
        right: Bound,
    ) -> Result<Bound> {
        let mut with_column = |side: Bound| -> Result<Bound> {
            let constant = Typed::new(lit(true), PgType::new(oid::BOOL), DataType::Boolean);
            let (expr, typed) = self.named(&constant, "row");
            let plan = LogicalPlanBuilder::from(side.plan).project([expr])?.build()?;
            Ok(Bound { plan, columns: vec![BoundColumn { name: String::new(), typed }] })
        };
        let (left, right) = (with_column(left)?, with_column(right)?);
        let found = self.set_operation(op, quantifier, left, right)?;
        let plan = LogicalPlanBuilder::from(found.plan).project(Vec::<Expr>::new())?.build()?;
        Ok(Bound { plan, columns: Vec::new() })
    }

    /// The rows of the left side that have an equal one on the right, or that have none; `columns` are those of both. With ALL each row
    /// of one side is the equal of one of the other.
    fn of_left(
        &mut self,
        (kind, is_all): (JoinType, bool),
        (left, right): (LogicalPlan, LogicalPlan),
        columns: &mut [BoundColumn],
    ) -> Result<LogicalPlan> {
        for column in columns.iter_mut() {
            column.typed = taken_apart(&self.catalog, column.typed.clone())?;
        }
        let of_right = columns.to_vec();
        let left = match is_all {
            true => self.as_alike(left, columns)?,
            false => self.distinct(left, columns, Shown::AllAlike)?,
        };
        let (left, left_keys) = self.keyed((left, columns), is_all, true)?;
        let (right, right_keys) = self.keyed((right, &of_right), is_all, false)?;
        let equality = NullEquality::NullEqualsNull;
        let keys = (left_keys, right_keys);
        let found =
            LogicalPlanBuilder::from(left).join_detailed(right, kind, keys, None, equality)?;
        let mut shown = Vec::with_capacity(columns.len());
        for column_here in columns.iter_mut() {
            let fresh = self.fresh(&column_here.name);
            shown.push(column_here.typed.expr.clone().alias(&fresh));
            column_here.typed = column_here.typed.with_expr(column(&fresh));
        }
        Ok(found.project(shown)?.build()?)
    }

    /// Rows with the keys of their columns under fresh names, and with a number among those that are equal, so that they are told apart.
    fn keyed(
        &mut self,
        (plan, columns): (LogicalPlan, &[BoundColumn]),
        is_numbered: bool,
        keeps_columns: bool,
    ) -> Result<(LogicalPlan, Vec<Column>)> {
        let mut shown: Vec<Expr> = Vec::new();
        if keeps_columns {
            shown.extend(plan.schema().columns().into_iter().map(Expr::Column));
        }
        let mut names = Vec::new();
        for column_here in columns {
            let key = keys::equality_key(&self.catalog, &column_here.typed)?;
            names.push(self.fresh("key"));
            shown.extend(names.last().map(|name| key.alias(name)));
        }
        let mut plan = LogicalPlanBuilder::from(plan).project(shown)?;
        if is_numbered {
            let number = self.fresh("number");
            let keys = names.iter().map(|name| column(name)).collect();
            plan = plan.window([row_number().partition_by(keys).build()?.alias(&number)])?;
            names.push(number);
        }
        Ok((plan.build()?, names.iter().map(Column::new_unqualified).collect()))
    }

    /// With ALL: which one of equal values the server shows depends on its plan, so that there must be no two.
    fn as_alike(&mut self, plan: LogicalPlan, columns: &mut [BoundColumn]) -> Result<LogicalPlan> {
        let all_keys = columns
            .iter()
            .map(|column| keys::equality_key(&self.catalog, &column.typed))
            .collect::<Result<Vec<Expr>>>()?;
        let mut windows = Vec::new();
        for column_here in columns.iter_mut() {
            if keys::is_own_key(&self.catalog, &column_here.typed)? {
                continue;
            }
            if column_here.typed.is_row() {
                return unsupported("INTERSECT ALL and EXCEPT ALL of rows");
            }
            let value = column_here.typed.expr.clone();
            let mut end = |function: Arc<AggregateUDF>| -> Result<Typed> {
                let name = self.fresh(&column_here.name);
                let function = WindowFunctionDefinition::AggregateUDF(function);
                let call = Expr::from(WindowFunction::new(function, vec![value.clone()]));
                windows.push(call.partition_by(all_keys.clone()).build()?.alias(&name));
                Ok(column_here.typed.with_expr(column(&name)))
            };
            let pair = [end(min_udaf())?, end(max_udaf())?];
            column_here.typed = keys::alike(&self.catalog, &pair);
        }
        match windows.is_empty() {
            true => Ok(plan),
            false => Ok(LogicalPlanBuilder::from(plan).window(windows)?.build()?),
        }
    }

    /// Both with the same types and carriers, column by column, under the same names.
    fn unified(&mut self, name: &str, left: Bound, right: Bound) -> Result<(Bound, Bound)> {
        let (mut left_exprs, mut right_exprs, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (a, b) in left.columns.iter().zip(&right.columns) {
            let (x, y) = self.in_common(name, vec![a.typed.clone(), b.typed.clone()])?.pair();
            let fresh = self.fresh(&a.name);
            let typed = x.with_expr(column(&fresh));
            left_exprs.push(x.expr.alias(&fresh));
            right_exprs.push(y.expr.alias(&fresh));
            columns.push(BoundColumn { name: a.name.clone(), typed });
        }
        let under = |plan: LogicalPlan, exprs: Vec<Expr>| {
            LogicalPlanBuilder::from(plan).project(exprs)?.build()
        };
        let left_plan = under(left.plan, left_exprs)?;
        let right_plan = under(right.plan, right_exprs)?;
        let right = Bound { plan: right_plan, columns: Vec::new() };
        Ok((Bound { plan: left_plan, columns }, right))
    }

    /// Expressions of a form brought to the type that they have in common, and to one carrier.
    pub(super) fn in_common(&self, form: &str, given: Vec<Typed>) -> Result<Vec<Typed>> {
        if given.iter().any(|typed| typed.is_row()) {
            return match given.iter().any(|typed| typed.ty.oid == RECORD) {
                true => records_in_common(given),
                false => {
                    let stored = |typed: Typed| match typed.is_row() {
                        true => shown_row(&self.catalog, &typed),
                        false => typed,
                    };
                    self.in_common(form, given.into_iter().map(stored).collect())
                }
            };
        }
        let oids: Vec<Oid> = given.iter().map(|typed| typed.ty.oid).collect();
        let common = common_type_of(&self.catalog, &oids, form)?;
        // A modifier stays where all agree.
        let first = given.first().map_or(-1, |typed| typed.ty.modifier);
        let agree = given.iter().all(|t| t.ty.oid == common && t.ty.modifier == first);
        let target = PgType::new(common).with_modifier(if agree { first } else { -1 });
        let bring = |typed: Typed| {
            let own = typed.ty.oid;
            if own == common {
                return Ok(typed);
            }
            let is_open = typed.literal.is_some() || typed.parameter.is_some();
            let implicit = CastContext::Implicit;
            let is_told = !is_open && !matches!(form, "" | "CASE");
            if is_told && pathway(&self.catalog, own, common, implicit).is_none() {
                let (from, to) = (self.catalog.type_name(own), self.catalog.type_name(common));
                let message = format!("{form} could not convert type {from} to {to}");
                return fail(SqlState::CANNOT_COERCE, message);
            }
            coerce(&self.catalog, typed, PgType::new(common), implicit)
        };
        let mut brought = given.into_iter().map(bring).collect::<Result<Vec<Typed>>>()?;
        let collation = crate::coerce::result_collation(&self.catalog, &brought)?;
        for typed in &mut brought {
            typed.ty.modifier = target.modifier;
            if typed.ty.collation != Oid(0) {
                typed.ty.collation = collation;
            }
        }
        let wanted = brought.first().map(|typed| typed.carrier.clone());
        let same = brought.iter().all(|typed| Some(&typed.carrier) == wanted.as_ref());
        if !same {
            for typed in &mut brought {
                *typed = numeric::as_payload(&self.catalog, typed);
            }
        }
        Ok(brought)
    }

    fn values(&mut self, values: &Values) -> Result<Bound> {
        let width = values.rows.first().map_or(0, Vec::len);
        let allowed = Allowed::PlainIn("VALUES");
        self.levels.push(Level { allowed, ..Level::default() });
        let rows: Result<Vec<Vec<Typed>>> = values
            .rows
            .iter()
            .map(|row| {
                if row.len() != width {
                    let message = "VALUES lists must all be the same length";
                    return fail(SqlState::SYNTAX_ERROR, message);
                }
                row.iter().map(|syntax| self.expr(syntax)).collect()
            })
            .collect();
        self.levels.pop();
        let rows = rows?;
        let mut columns: Vec<Vec<Typed>> = Vec::new();
        for at in 0..width {
            columns
                .push(self.in_common("VALUES", rows.iter().map(|row| row[at].clone()).collect())?);
        }
        self.values_plan(rows.len(), columns)
    }

    fn values_plan(&mut self, count: usize, columns: Vec<Vec<Typed>>) -> Result<Bound> {
        let row = |at: usize| columns.iter().map(|column| column[at].expr.clone()).collect();
        let plan = LogicalPlanBuilder::values((0..count).map(row).collect())?.build()?;
        let (mut exprs, mut outputs) = (Vec::new(), Vec::new());
        for (at, values) in columns.iter().enumerate() {
            let name = format!("column{}", at + 1);
            let typed = values[0].with_expr(column(&name));
            let (expr, typed) = self.named(&typed, &name);
            exprs.push(expr);
            outputs.push(BoundColumn { name, typed });
        }
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        Ok(Bound { plan, columns: outputs })
    }
}

/// Records of the same fields, and NULLs beside them.
fn records_in_common(given: Vec<Typed>) -> Result<Vec<Typed>> {
    let refused = || unsupported("rows of different fields, of which one is chosen,");
    let Some(first) = given.iter().find(|typed| typed.is_row()).cloned() else { return refused() };
    let plain =
        |field: &RowField| RowField { is_never_null: false, is_nameless: true, ..field.clone() };
    let fields_of = |typed: &Typed| -> Option<Vec<RowField>> {
        Some(typed.row.as_deref()?.iter().map(plain).collect())
    };
    let Some(fields) = fields_of(&first) else { return refused() };
    let mut brought = Vec::with_capacity(given.len());
    for typed in given {
        let expr = match (&typed.literal, typed.ty.oid) {
            (Some(None), _) => Expr::Literal(ScalarValue::try_from(&first.carrier)?, None),
            (None, RECORD) if fields_of(&typed).as_ref() == Some(&fields) => typed.expr,
            _ => return refused(),
        };
        brought.push(Typed { row: Some(fields.clone().into()), ..first.with_expr(expr) });
    }
    Ok(brought)
}

/// Two of two.
pub(super) trait Pair<T> {
    fn pair(self) -> (T, T);
}

impl<T> Pair<T> for Vec<T> {
    fn pair(mut self) -> (T, T) {
        assert_eq!(self.len(), 2, "two went in");
        let second = self.pop().expect("two"); // infallible: checked above
        (self.pop().expect("two"), second) // infallible: checked above
    }
}
