//! WITH RECURSIVE: a first part, and one that is repeated on the rows of its last round until there are none.
//!
//! Only the plainest form is known: `first UNION [ALL] SELECT … FROM itself …`, where the second part names the table once, in
//! FROM itself, and neither groups nor sorts.
//!
//! Source: `src/backend/parser/parse_cte.c`, `src/backend/executor/nodeRecursiveunion.c`, PostgreSQL 18.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{
    Cte, GroupByExpr, JoinOperator, Select, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, Visit, visit_relations,
};

use super::query::{Tail, rename};
use super::scope::folded;
use super::{Binder, Bound, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::{keys, numeric};
use crate::resolve::common_type;
use crate::typed::Typed;
use crate::types::PgType;

const NO_TAIL: Tail<'static> = Tail { order_by: &[], limit: None, offset: None, with_ties: false };

/// The parts of a recursive query.
struct Parts<'q> {
    first: &'q SetExpr,
    repeated: &'q Select,
    is_distinct: bool,
}

impl Binder<'_> {
    /// A table of WITH that names itself.
    pub(super) fn recursive(&mut self, cte: &Cte, name: &str) -> Result<Bound> {
        let parts = parts_of(cte, name)?;
        let mut first = self.set_expr(parts.first)?;
        rename(&mut first.columns, &cte.alias, "WITH query")?;
        let first = self.first_rows(first)?;
        if parts.is_distinct {
            self.require_own_keys(&first.columns)?;
        }
        let table = self.fresh(name);
        let work_table = work_table(&table, &first)?;
        let here = self.with.last_mut().expect("a query has its own tables"); // infallible: WITH is bound in one
        here.insert(name.to_owned(), work_table);
        self.keeps_literals = true;
        let repeated = self.select(parts.repeated, &NO_TAIL);
        let here = self.with.last_mut().expect("a query has its own tables"); // infallible: as above
        here.remove(name);
        let repeated = self.next_rows(name, &first, repeated?)?;
        let plan = LogicalPlanBuilder::from(first.plan)
            .to_recursive_query(table, repeated, parts.is_distinct)?
            .build()?;
        if !plan.all_out_ref_exprs().is_empty() {
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
        if has_node(&bound.plan, |node| {
            matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_))
        }) {
            return unsupported("groups in the repeated part of WITH RECURSIVE");
        }
        if first.columns.len() != bound.columns.len() {
            let message = "each UNION query must have the same number of columns";
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        let mut exprs = Vec::new();
        for (number, (a, b)) in first.columns.iter().zip(bound.columns).enumerate() {
            let common = common_type(&self.catalog, &[a.typed.ty.oid, b.typed.ty.oid])?;
            if common != a.typed.ty.oid {
                let (own, all) =
                    (self.catalog.type_name(a.typed.ty.oid), self.catalog.type_name(common));
                let message = format!(
                    "recursive query \"{name}\" column {} has type {own} in non-recursive term but type {all} overall",
                    number + 1
                );
                return fail(SqlState::DATATYPE_MISMATCH, message);
            }
            let ty = PgType::new(common);
            let next = match b.typed.ty.oid == common {
                true => b.typed,
                false => coerce(&self.catalog, b.typed, ty, CastContext::Implicit)?,
            };
            let next = self.held(&next);
            if next.ty.modifier != a.typed.ty.modifier || next.ty.collation != a.typed.ty.collation
            {
                return unsupported("WITH RECURSIVE over types of different lengths or collations");
            }
            if next.carrier != a.typed.carrier {
                let of = self.catalog.type_name(common);
                return unsupported(format!("WITH RECURSIVE over this form of type {of}"));
            }
            exprs.push(next.expr.alias(column_of(&a.typed).name()));
        }
        Ok(LogicalPlanBuilder::from(bound.plan).project(exprs)?.build()?)
    }
}

fn column_of(typed: &Typed) -> &Column {
    match &typed.expr {
        Expr::Column(column) => column,
        other => unreachable!("{other} is no column"),
    }
}

/// The rows of the last round as a table.
fn work_table(table: &str, first: &Bound) -> Result<Bound> {
    let field = |column: &BoundColumn| {
        Field::new(column_of(&column.typed).name(), column.typed.carrier.clone(), true)
    };
    let fields: Vec<Field> = first.columns.iter().map(field).collect();
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

fn has_node(plan: &LogicalPlan, wanted: fn(&LogicalPlan) -> bool) -> bool {
    wanted(plan) || plan.inputs().into_iter().any(|input| has_node(input, wanted))
}

/// How often a table is named.
fn mentions(syntax: &impl Visit, name: &str) -> usize {
    let mut found = 0;
    let _ = visit_relations(syntax, |relation| {
        found += usize::from(relation.to_string().trim_matches('"').eq_ignore_ascii_case(name));
        ControlFlow::<()>::Continue(())
    });
    found
}

fn parts_of<'q>(cte: &'q Cte, name: &str) -> Result<Parts<'q>> {
    let query = &*cte.query;
    let is_bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
        &*query.body
    else {
        return unsupported("WITH RECURSIVE but of UNION");
    };
    let SetExpr::Select(repeated) = &**right else {
        return unsupported("WITH RECURSIVE whose repeated part is no SELECT");
    };
    let is_distinct = match set_quantifier {
        SetQuantifier::All => false,
        SetQuantifier::Distinct | SetQuantifier::None => true,
        _ => return fail(SqlState::SYNTAX_ERROR, "syntax error: BY NAME is not PostgreSQL's"),
    };
    if !is_bare || mentions(&**left, name) > 0 || !is_plain(repeated, name) {
        return unsupported("this form of WITH RECURSIVE");
    }
    Ok(Parts { first: left, repeated, is_distinct })
}

/// True for a SELECT that names the table once, in FROM itself, where no join adds rows to it, and that neither groups nor
/// takes rows away for others' sake.
fn is_plain(select: &Select, name: &str) -> bool {
    let is_grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(items, _) if items.is_empty());
    let is_itself = |factor: &TableFactor| {
        matches!(factor, TableFactor::Table { name: table, args: None, .. }
            if table.0.len() == 1 && super::columns::last_name(table) == name)
    };
    let is_inner = |operator: &JoinOperator| {
        matches!(
            operator,
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
        )
    };
    let own = |item: &TableWithJoins| {
        let all_inner = item.joins.iter().all(|join| is_inner(&join.join_operator));
        let joined = item.joins.iter().filter(|join| is_itself(&join.relation)).count();
        match all_inner {
            true => usize::from(is_itself(&item.relation)) + joined,
            false => 0,
        }
    };
    select.distinct.is_none()
        && select.having.is_none()
        && !is_grouped
        && mentions(select, name) == 1
        && select.from.iter().map(own).sum::<usize>() == 1
}

/// Refuses tables that name one which comes later: which table they mean depends on what the server makes of it.
pub(super) fn refuse_later_names(tables: &[Cte]) -> Result<()> {
    for (at, table) in tables.iter().enumerate() {
        let names = tables[at + 1..].iter().map(|later| folded(&later.alias.name));
        for name in names {
            if mentions(&table.query, &name) > 0 {
                return unsupported("a table of WITH RECURSIVE that names a later one");
            }
        }
    }
    Ok(())
}
