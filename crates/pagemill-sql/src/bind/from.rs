//! FROM: tables, queries, joins.
//!
//! Source: `transformFromClauseItem` in `src/backend/parser/parse_clause.c`, PostgreSQL 18.

use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use pagemill_cluster::ClassRow;
use pagemill_format::Oid;

use sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, TableAlias, TableFactor,
    TableWithJoins,
};

use super::query::{boolean, rename};
use super::scope::{Allowed, Level, Scope, at, folded};
use super::{Binder, Bound, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::keys;
use crate::resolve::common_type;
use crate::types::PgType;

impl Binder<'_> {
    pub(super) fn bind_from(&mut self, from: &[TableWithJoins]) -> Result<(LogicalPlan, Scope)> {
        let mut all: Option<(LogicalPlan, Scope)> = None;
        for item in from {
            let (plan, scope) = self.with_joins(item)?;
            all = Some(match all {
                None => (plan, scope),
                Some((left, left_scope)) => {
                    let joined = LogicalPlanBuilder::from(left).cross_join(plan)?.build()?;
                    let scope = left_scope.beside(scope);
                    scope.check_names()?;
                    (joined, scope)
                }
            });
        }
        match all {
            Some(found) => Ok(found),
            None => Ok((LogicalPlanBuilder::empty(true).build()?, Scope::default())),
        }
    }

    fn with_joins(&mut self, item: &TableWithJoins) -> Result<(LogicalPlan, Scope)> {
        let mut left = self.factor(&item.relation)?;
        for join in &item.joins {
            left = self.join(left, join)?;
        }
        Ok(left)
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<(LogicalPlan, Scope)> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                sample: None,
                with_ordinality: false,
                ..
            } => self.table(name, alias.as_ref()),
            TableFactor::Derived { lateral, subquery, alias } => {
                if *lateral {
                    return unsupported("LATERAL");
                }
                let bound = self.query(subquery)?;
                self.as_table(bound, alias.as_ref(), "")
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.with_joins(table_with_joins)
            }
            TableFactor::Table { sample: Some(_), .. } => unsupported("TABLESAMPLE"),
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
                unsupported(format!("the function {name} in FROM"))
            }
            TableFactor::UNNEST { .. } => unsupported("unnest() in FROM"),
            _ => unsupported("this item of FROM"),
        }
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
            let again = self.renamed(again)?;
            return self.as_table(again, alias, &table);
        }
        // The parser takes ONLY for a table's name, and the name for its alias.
        if table == "only" && last.quote_style.is_none() && alias.is_some() {
            return unsupported("ONLY");
        }
        let class = self.class(&parts)?.clone();
        let fresh = self.fresh(&table);
        let bound = self.tables.scan(&class, &fresh)?;
        self.as_table(bound, alias, &table)
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

    fn as_table(
        &mut self,
        bound: Bound,
        alias: Option<&TableAlias>,
        name: &str,
    ) -> Result<(LogicalPlan, Scope)> {
        let Bound { plan, mut columns } = bound;
        let mut shown = name.to_owned();
        if let Some(alias) = alias {
            shown = folded(&alias.name);
            rename(&mut columns, alias)?;
        }
        Ok((plan, Scope::of_table(shown, columns)))
    }

    /// The relation of a name: in its schema, or the first in the search path.
    pub(super) fn class(&self, parts: &[&Ident]) -> Result<&ClassRow> {
        let database = self.catalog.database();
        let last = parts.last().expect("a name has a part"); // infallible: of the parser
        let table = folded(last);
        let of = |namespace: Oid| {
            let is_it = |class: &&ClassRow| {
                class.namespace == namespace && *class.name == *table.as_bytes()
            };
            database.classes().iter().find(is_it)
        };
        let found = match parts {
            [_] => self.catalog.search_path().iter().find_map(|namespace| of(*namespace)),
            [schema, _] => of(self.namespace(schema)?),
            [db, schema, _] => {
                let (wanted, own) = (folded(db), String::from_utf8_lossy(&database.row().name));
                if wanted != own {
                    return unsupported(format!("a table of another database, \"{wanted}\","));
                }
                of(self.namespace(schema)?)
            }
            _ => {
                return fail(
                    SqlState::SYNTAX_ERROR,
                    "improper qualified name (too many dotted names)",
                );
            }
        };
        found.ok_or_else(|| {
            let shown: Vec<String> = parts.iter().map(|part| folded(part)).collect();
            let message = format!("relation \"{}\" does not exist", shown.join("."));
            let error = StatementError::new(SqlState::UNDEFINED_TABLE, message);
            at(self.with_near_tables(error, &table), parts[0])
        })
    }

    #[cold]
    fn with_near_tables(&self, error: StatementError, wanted: &str) -> StatementError {
        let classes = self.catalog.database().classes().iter();
        let names: Vec<String> = classes
            .filter(|class| {
                class.kind.has_rows() && class.namespace.0 >= 16384 || class.namespace.0 == 2200
            })
            .map(|class| String::from_utf8_lossy(&class.name).into_owned())
            .collect();
        let near = pagemill_cluster::names::nearest(wanted, names.iter().map(String::as_str), 3);
        match near[..] {
            [] => error,
            _ => {
                let near: Vec<String> = near.iter().map(|near| format!("\"{near}\"")).collect();
                error.with_hint(format!("Perhaps you meant {}.", near.join(", ")))
            }
        }
    }

    fn namespace(&self, schema: &Ident) -> Result<Oid> {
        let wanted = folded(schema);
        let namespaces = self.catalog.database().namespaces()?;
        let found = namespaces.iter().find(|(_, name)| ***name == *wanted.as_bytes());
        found.map(|(oid, _)| *oid).ok_or_else(|| {
            let message = format!("schema \"{wanted}\" does not exist");
            at(StatementError::new(SqlState("3F000"), message), schema)
        })
    }

    fn join(&mut self, left: (LogicalPlan, Scope), join: &Join) -> Result<(LogicalPlan, Scope)> {
        let right = self.factor(&join.relation)?;
        let (kind, constraint) = match &join.join_operator {
            JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinType::Inner, c),
            JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinType::Left, c),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinType::Right, c),
            JoinOperator::FullOuter(c) => (JoinType::Full, c),
            JoinOperator::CrossJoin(c) => (JoinType::Inner, c),
            _ => return fail(SqlState::SYNTAX_ERROR, "syntax error: no join of PostgreSQL's"),
        };
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

    fn join_on(
        &mut self,
        (left, left_scope): (LogicalPlan, Scope),
        (right, right_scope): (LogicalPlan, Scope),
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
        let plan = joined(left, right, kind, vec![condition.expr])?;
        Ok((plan, level.scope))
    }

    fn join_using(
        &mut self,
        (left, mut left_scope): (LogicalPlan, Scope),
        (right, mut right_scope): (LogicalPlan, Scope),
        kind: JoinType,
        names: &[String],
    ) -> Result<(LogicalPlan, Scope)> {
        let (mut conditions, mut merged) = (Vec::new(), Vec::new());
        for name in names {
            let (a, b) =
                (take(&mut left_scope, name, "left")?, take(&mut right_scope, name, "right")?);
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
            let typed = match kind {
                JoinType::Right => y,
                JoinType::Full => super::cases::coalesce(&self.catalog, vec![x, y])?,
                _ => x,
            };
            merged.push(BoundColumn { name: name.clone(), typed });
        }
        let plan = joined(left, right, kind, conditions)?;
        let mut scope = left_scope.beside(right_scope);
        scope.check_names()?;
        merged.append(&mut scope.bare);
        scope.bare = merged;
        Ok((plan, scope))
    }
}

fn joined(
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
