//! Where tables of WITH are named: which of them depend on which, and whether one that names itself does so where it may.
//!
//! Invariants: a name means the innermost WITH around it that has it; a query in an expression is another place, whatever is around it.
//! What names no table of WITH, or one of a schema, is not looked at.
//!
//! Source: `makeDependencyGraphWalker`, `TopologicalSort`, `checkWellFormedRecursionWalker` in
//! `src/backend/parser/parse_cte.c`, PostgreSQL 14 to 18.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Cte, Join, JoinConstraint, JoinOperator, Query, Select, SetExpr, SetOperator, SetQuantifier,
    TableFactor, TableWithJoins, Visit, Visitor,
};

use super::columns::last_name;
use super::scope::folded;
use crate::error::{Error, Result, SqlState, fail};

/// `ERRCODE_INVALID_RECURSION`.
pub(super) const INVALID_RECURSION: SqlState = SqlState("42P19");

/// Where a query that names itself may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It may.
    Good,
    First,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl Place {
    fn refuse<T>(self, name: &str) -> Result<T> {
        let place = match self {
            Self::Good => return fail(INVALID_RECURSION, twice(name)),
            Self::First => "its non-recursive term",
            Self::Subquery => "a subquery",
            Self::OuterJoin => "an outer join",
            Self::Intersect => "INTERSECT",
            Self::Except => "EXCEPT",
        };
        let message =
            format!("recursive reference to query \"{name}\" must not appear within {place}");
        fail(INVALID_RECURSION, message)
    }
}

fn twice(name: &str) -> String {
    format!("recursive reference to query \"{name}\" must not appear more than once")
}

/// How often a table is named in a place of a query that names itself.
///
/// # Errors
/// Where it may not be named there, or once more.
pub(super) fn check_place(name: &str, part: &SetExpr, place: Place) -> Result<usize> {
    let mut count = 0_usize;
    let mut found = |table: &str, place: Place| {
        if table != name {
            return Ok(());
        }
        count += 1;
        match place == Place::Good && count == 1 {
            true => Ok(()),
            false => place.refuse(name),
        }
    };
    Walk::new(place, &mut found).body(part)?;
    Ok(count)
}

/// The same for queries of a WITH around its parts.
///
/// # Errors
/// As [`check_place`].
pub(super) fn check_tables(name: &str, tables: &[Cte]) -> Result<()> {
    let mut found = |table: &str, place: Place| match table == name {
        true => place.refuse(name),
        false => Ok(()),
    };
    let mut walk = Walk::new(Place::Subquery, &mut found);
    tables.iter().try_for_each(|table| walk.query(&table.query))
}

/// The tables of WITH RECURSIVE in an order in which each comes behind those that it names, and whether it names itself.
///
/// # Errors
/// When there is none.
pub(super) fn in_order(tables: &[Cte]) -> Result<Vec<(&Cte, bool)>> {
    let names: Vec<String> = tables.iter().map(|table| folded(&table.alias.name)).collect();
    let mut left = Vec::with_capacity(tables.len());
    for (own, table) in tables.iter().enumerate() {
        let (mut needed, mut names_itself) = (Vec::new(), false);
        let mut found = |name: &str, _: Place| {
            match names.iter().position(|known| known == name) {
                Some(at) if at == own => names_itself = true,
                Some(at) => needed.push(at),
                None => {}
            }
            Ok(())
        };
        Walk::new(Place::Good, &mut found).query(&table.query)?;
        left.push((own, table, needed, names_itself));
    }
    let mut ordered = Vec::with_capacity(tables.len());
    while !left.is_empty() {
        let Some(next) = left.iter().position(|(_, _, needed, _)| needed.is_empty()) else {
            let message = "mutual recursion between WITH items is not implemented";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
        };
        let (own, table, _, names_itself) = left.remove(next);
        left.iter_mut().for_each(|(_, _, needed, _)| needed.retain(|at| *at != own));
        ordered.push((table, names_itself));
    }
    Ok(ordered)
}

/// Goes through a query, and tells each name of a table that no WITH in it has.
struct Walk<'f> {
    place: Place,
    /// The names that each WITH around has.
    inner: Vec<Vec<String>>,
    found: &'f mut dyn FnMut(&str, Place) -> Result<()>,
}

impl<'f> Walk<'f> {
    fn new(place: Place, found: &'f mut dyn FnMut(&str, Place) -> Result<()>) -> Self {
        Self { place, inner: Vec::new(), found }
    }

    /// Goes on in another place.
    fn within(&mut self, place: Place, go: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let before = std::mem::replace(&mut self.place, place);
        let done = go(self);
        self.place = before;
        done
    }

    fn query(&mut self, query: &Query) -> Result<()> {
        self.inner.push(Vec::new());
        let done = self.query_with(query);
        self.inner.pop();
        done
    }

    fn query_with(&mut self, query: &Query) -> Result<()> {
        let names = |table: &Cte| folded(&table.alias.name);
        if let Some(with) = &query.with {
            if with.recursive {
                self.inner.extend([with.cte_tables.iter().map(names).collect()]);
                let mut tables = with.cte_tables.iter();
                let done = tables.try_for_each(|table| self.query(&table.query));
                let all = self.inner.pop().unwrap_or_default(); // default: what was pushed above is there
                self.inner.iter_mut().rev().take(1).for_each(|names| names.extend(all.clone()));
                done?;
            } else {
                for table in &with.cte_tables {
                    self.query(&table.query)?;
                    self.inner.iter_mut().rev().take(1).for_each(|all| all.push(names(table)));
                }
            }
        }
        self.body(&query.body)?;
        self.expressions(&query.order_by)?;
        self.expressions(&query.limit_clause)?;
        self.expressions(&query.fetch)
    }

    fn body(&mut self, body: &SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let is_all = *set_quantifier == SetQuantifier::All;
                let (first, second) = match (op, self.place) {
                    (SetOperator::Intersect, Place::Good) if is_all => {
                        (Place::Intersect, Place::Intersect)
                    }
                    (SetOperator::Except, Place::Good) if is_all => (Place::Except, Place::Except),
                    (SetOperator::Except, Place::Good) => (Place::Good, Place::Except),
                    (_, place) => (place, place),
                };
                self.within(first, |walk| walk.body(left))?;
                self.within(second, |walk| walk.body(right))
            }
            SetExpr::Values(values) => self.expressions(values),
            _ => Ok(()),
        }
    }

    fn select(&mut self, select: &Select) -> Result<()> {
        self.expressions(&select.distinct)?;
        self.expressions(&select.projection)?;
        select.from.iter().try_for_each(|item| self.joins(item))?;
        self.expressions(&select.selection)?;
        self.expressions(&select.group_by)?;
        self.expressions(&select.having)?;
        self.expressions(&select.named_window)
    }

    /// An item of FROM. What a join adds rows without is no place.
    fn joins(&mut self, item: &TableWithJoins) -> Result<()> {
        let is_outer = |place| if place == Place::Good { Place::OuterJoin } else { place };
        let here = self.place;
        // Of the joins behind one, any that keeps rows of its right side.
        let around = |at: usize| match item.joins[at..].iter().any(keeps_right) {
            true => is_outer(here),
            false => here,
        };
        self.within(around(0), |walk| walk.factor(&item.relation))?;
        for (at, join) in item.joins.iter().enumerate() {
            let outside = around(at + 1);
            let place = if keeps_left(join) { is_outer(outside) } else { outside };
            self.within(place, |walk| walk.factor(&join.relation))?;
            if let Some(JoinConstraint::On(condition)) = constraint(join) {
                self.within(outside, |walk| walk.expressions(condition))?;
            }
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } if name.0.len() == 1 => {
                let name = last_name(name);
                let is_inner = self.inner.iter().flatten().any(|known| *known == name);
                if is_inner { Ok(()) } else { (self.found)(&name, self.place) }
            }
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.joins(table_with_joins),
            TableFactor::Table { args: Some(arguments), .. } => self.expressions(&arguments.args),
            other => self.expressions(other),
        }
    }

    /// Queries within expressions.
    fn expressions(&mut self, syntax: &impl Visit) -> Result<()> {
        match syntax.visit(&mut Queries { walk: self, depth: 0 }) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

/// Finds the outermost queries of an expression.
struct Queries<'w, 'f> {
    walk: &'w mut Walk<'f>,
    depth: usize,
}

impl Visitor for Queries<'_, '_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.depth += 1;
        if self.depth > 1 {
            return ControlFlow::Continue(());
        }
        match self.walk.within(Place::Subquery, |walk| walk.query(query)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

fn keeps_right(join: &Join) -> bool {
    use JoinOperator::{FullOuter, Right, RightOuter};
    matches!(join.join_operator, Right(_) | RightOuter(_) | FullOuter(_))
}

fn keeps_left(join: &Join) -> bool {
    use JoinOperator::{FullOuter, Left, LeftOuter};
    matches!(join.join_operator, Left(_) | LeftOuter(_) | FullOuter(_))
}

fn constraint(join: &Join) -> Option<&JoinConstraint> {
    use JoinOperator::{FullOuter, Inner, Left, LeftOuter, Right, RightOuter};
    match &join.join_operator {
        JoinOperator::Join(found)
        | Inner(found)
        | Left(found)
        | LeftOuter(found)
        | Right(found)
        | RightOuter(found)
        | FullOuter(found) => Some(found),
        _ => None,
    }
}
