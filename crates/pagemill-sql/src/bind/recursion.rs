//! WITH RECURSIVE: a first part, and one that is repeated on the rows of its last round until there are none.
//!
//! Invariant: the repeated part reads the rows of the last round in one place of its plan. The statement names the table once, as
//! `recursion_rules.rs` sees to; where a table of WITH in the repeated part is named twice, the plan would have two such places.
//!
//! Source: `checkWellFormedRecursion` and `analyzeCTE` in `src/backend/parser/parse_cte.c`,
//! `src/backend/executor/nodeRecursiveunion.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use pagemill_format::Oid;
use sqlparser::ast::{Cte, LimitClause, Query, SetExpr, SetOperator, SetQuantifier, With};

use super::query::rename;
use super::recursion_rules::{INVALID_RECURSION, Place, check_place, check_tables};
use super::{Binder, Bound, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::format_type::formatted_type;
use crate::functions::{keys, numeric};
use crate::resolve::common_type;
use crate::typed::Typed;
use crate::types::PgType;

/// The parts of a recursive query.
struct Parts<'q> {
    /// What stands around both.
    with: Option<&'q With>,
    first: &'q SetExpr,
    repeated: &'q SetExpr,
    is_distinct: bool,
}

impl Binder<'_> {
    /// A table of WITH that names itself.
    pub(super) fn recursive(&mut self, cte: &Cte, name: &str) -> Result<Bound> {
        let parts = parts_of(cte, name)?;
        self.with.push(HashMap::new());
        let bound = self.recursive_parts(cte, name, &parts);
        self.with.pop();
        bound
    }

    fn recursive_parts(&mut self, cte: &Cte, name: &str, parts: &Parts<'_>) -> Result<Bound> {
        if let Some(with) = parts.with {
            self.bind_with(with)?;
        }
        let mut first = self.set_expr(parts.first)?;
        rename(&mut first.columns, &cte.alias, "WITH query")?;
        let mut first = self.first_rows(first)?;
        let mark = match parts.is_distinct {
            false => None,
            true => {
                self.require_own_keys(&first.columns)?;
                Some(self.fresh("known_rows"))
            }
        };
        first.plan = marked(first.plan, mark.as_deref())?;
        let table = self.fresh(name);
        let work_table = work_table(&table, &first)?;
        let here = self.with.last_mut().expect("a query has its own tables"); // infallible: pushed above
        here.insert(name.to_owned(), work_table);
        let repeated = self.part(parts.repeated)?;
        let repeated = marked(self.next_rows(name, &first, repeated)?, mark.as_deref())?;
        check_plan(&repeated, &table)?;
        let plan = LogicalPlanBuilder::from(first.plan)
            .to_recursive_query(table, repeated, parts.is_distinct)?
            .build()?;
        // Run for each row around it, it has values in the place of columns; the engine makes no join of it.
        if !self.nests && !plan.all_out_ref_exprs().is_empty() {
            return unsupported("WITH RECURSIVE that refers to the query around it");
        }
        Ok(Bound { plan, columns: first.columns })
    }

    /// Numerics as payloads, which hold those of the next rounds too.
    fn first_rows(&mut self, bound: Bound) -> Result<Bound> {
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        for column in bound.columns {
            let value = self.held(&column.typed);
            let (expr, typed) = self.named(&value, &column.name);
            exprs.push(expr);
            columns.push(BoundColumn { name: column.name, typed });
        }
        let plan = LogicalPlanBuilder::from(bound.plan).project(exprs)?.build()?;
        Ok(Bound { plan, columns })
    }

    fn held(&self, typed: &Typed) -> Typed {
        let base = self.catalog.base_type(typed.ty.oid, -1).0;
        match base == pagemill_types::builtin::oid::NUMERIC {
            true => numeric::as_payload(&self.catalog, typed),
            false => typed.clone(),
        }
    }

    fn require_own_keys(&self, columns: &[BoundColumn]) -> Result<()> {
        for column in columns {
            if !keys::is_own_key(&self.catalog, &column.typed)? {
                let of = self.catalog.type_name(column.typed.ty.oid);
                return unsupported(format!("WITH RECURSIVE by UNION of type {of}"));
            }
        }
        Ok(())
    }

    /// The repeated part with the columns of the first.
    fn next_rows(&mut self, name: &str, first: &Bound, bound: Bound) -> Result<LogicalPlan> {
        if first.columns.len() != bound.columns.len() {
            let message = "each UNION query must have the same number of columns";
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        let mut exprs = Vec::new();
        for (number, (a, b)) in first.columns.iter().zip(bound.columns).enumerate() {
            let common = common_type(&self.catalog, &[a.typed.ty.oid, b.typed.ty.oid])?;
            // A length stays where both have it.
            let is_longer = a.typed.ty.modifier >= 0
                && (b.typed.ty.oid != common || b.typed.ty.modifier != a.typed.ty.modifier);
            if common != a.typed.ty.oid || is_longer {
                return self.other_type(name, number + 1, (a.typed.ty, common));
            }
            let ty = PgType::new(common);
            let next = match b.typed.ty.oid == common {
                true => b.typed,
                false => coerce(&self.catalog, b.typed, ty, CastContext::Implicit)?,
            };
            let next = self.held(&next);
            if next.ty.collation != a.typed.ty.collation {
                return unsupported("WITH RECURSIVE over texts of different collations");
            }
            if next.carrier != a.typed.carrier {
                let of = self.catalog.type_name(common);
                return unsupported(format!("WITH RECURSIVE over this form of type {of}"));
            }
            exprs.push(next.expr.alias(column_of(&a.typed).name()));
        }
        Ok(LogicalPlanBuilder::from(bound.plan).project(exprs)?.build()?)
    }

    #[cold]
    fn other_type<T>(&self, name: &str, number: usize, (own, all): (PgType, Oid)) -> Result<T> {
        let shown = |of: Oid, modifier| {
            formatted_type(&self.catalog, of, modifier)
                .unwrap_or_else(|| self.catalog.type_name(of))
        };
        let (own, all) = (shown(own.oid, own.modifier), shown(all, -1));
        let message = format!(
            "recursive query \"{name}\" column {number} has type {own} in non-recursive term but type {all} overall"
        );
        let hint = "Cast the output of the non-recursive term to the correct type.";
        Err(StatementError::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint).into())
    }
}

/// The rows with one more column, which nothing names, where rows that were there before are left out. By its type the engine keeps rows
/// whole to know them again; columns apart it numbers out of turn where hashes of two rows are the same, and takes a new row that comes
/// behind such numbers for a known one: of `(5, NULL, 1), (5, 1, NULL), (2, 2, 2)` the last was lost.
fn marked(plan: LogicalPlan, mark: Option<&str>) -> Result<LogicalPlan> {
    let Some(mark) = mark else { return Ok(plan) };
    let own = plan.schema().columns().into_iter().map(Expr::Column);
    let one = Expr::Literal(ScalarValue::Decimal32(Some(1), 1, 0), None).alias(mark);
    let all: Vec<Expr> = own.chain([one]).collect();
    Ok(LogicalPlanBuilder::from(plan).project(all)?.build()?)
}

fn column_of(typed: &Typed) -> &Column {
    match &typed.expr {
        Expr::Column(column) => column,
        other => unreachable!("{other} is no column"),
    }
}

/// The rows of the last round as a table.
fn work_table(table: &str, first: &Bound) -> Result<Bound> {
    let field = |field: &Arc<Field>| Field::new(field.name(), field.data_type().clone(), true);
    let fields: Vec<Field> = first.plan.schema().fields().iter().map(field).collect();
    let provider = CteWorkTable::new(table, Arc::new(Schema::new(fields)));
    let relation = TableReference::bare(table);
    let column = |column: &BoundColumn| {
        let own = Column::new(Some(relation.clone()), column_of(&column.typed).name());
        let typed = column.typed.with_expr(Expr::Column(own));
        BoundColumn { name: column.name.clone(), typed }
    };
    let columns = first.columns.iter().map(column).collect();
    let source = provider_as_source(Arc::new(provider));
    let plan = LogicalPlanBuilder::scan(relation.clone(), source, None)?.build()?;
    Ok(Bound { plan, columns })
}

/// True for the rows of the last round of a query that is being bound.
pub(super) fn is_work_table(plan: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = plan else { return false };
    source_as_provider(&scan.source).is_ok_and(|provider| provider.is::<CteWorkTable>())
}

/// The engine gives the rows of a round once.
fn check_plan(repeated: &LogicalPlan, table: &str) -> Result<()> {
    let (mut scans, mut is_nested) = (0_usize, false);
    repeated.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) if scan.table_name == TableReference::bare(table) => {
                scans += 1;
            }
            LogicalPlan::RecursiveQuery(_) => is_nested = true,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match (scans, is_nested) {
        (1, false) => Ok(()),
        (1, true) => unsupported("WITH RECURSIVE in the repeated part of another"),
        _ => unsupported("WITH RECURSIVE whose last rows are read other than once"),
    }
}

fn parts_of<'q>(cte: &'q Cte, name: &str) -> Result<Parts<'q>> {
    let (mut query, mut with, mut around) = (&*cte.query, None, Vec::new());
    loop {
        if with.is_some() && query.with.is_some() {
            return unsupported("this form of WITH RECURSIVE");
        }
        with = with.or(query.with.as_ref());
        around.push(query);
        match &*query.body {
            SetExpr::Query(inner) => query = inner,
            _ => break,
        }
    }
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
        &*query.body
    else {
        let message = format!(
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
        );
        return fail(INVALID_RECURSION, message);
    };
    if let Some(with) = with {
        check_tables(name, &with.cte_tables)?;
    }
    around.into_iter().try_for_each(refuse_tail)?;
    let is_distinct = match set_quantifier {
        SetQuantifier::All => false,
        SetQuantifier::Distinct | SetQuantifier::None => true,
        _ => return fail(SqlState::SYNTAX_ERROR, "syntax error: BY NAME is not PostgreSQL's"),
    };
    check_place(name, left, Place::First)?;
    match check_place(name, right, Place::Good)? {
        1 => Ok(Parts { with, first: left, repeated: right, is_distinct }),
        _ => unsupported("this form of WITH RECURSIVE"),
    }
}

/// What stands behind both parts would be of rows that are not there yet.
fn refuse_tail(query: &Query) -> Result<()> {
    let (mut limit, mut offset) = (query.fetch.is_some(), false);
    if let Some(LimitClause::LimitOffset { limit: some, offset: begin, .. }) = &query.limit_clause {
        limit |= some.is_some();
        offset = begin.is_some();
    }
    let clause = match () {
        () if query.order_by.is_some() => "ORDER BY",
        () if offset => "OFFSET",
        () if limit || query.limit_clause.is_some() => "LIMIT",
        () if !query.locks.is_empty() => "FOR UPDATE/SHARE",
        () => return Ok(()),
    };
    let message = format!("{clause} in a recursive query is not implemented");
    fail(SqlState::FEATURE_NOT_SUPPORTED, message)
}
