//! GROUP BY, aggregates and HAVING: the plan that groups, and what is left of the expressions above it.
//!
//! GROUPING SETS, ROLLUP and CUBE are as many groupings of the same rows, one behind the other, in which what a row is not
//! grouped by is NULL.
//!
//! Aggregates are put aside where they are met, and a column stands in their place. Then every expression above the groups
//! may hold only these columns and what the rows are grouped by.
//!
//! Source: `parseCheckAggregates` in `src/backend/parser/parse_agg.c`, PostgreSQL 18.

use std::collections::HashSet;

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
};

use super::columns::is_marked;
use super::functions::contains_outer;
use super::ordered_sets::{DirectArguments, with_nulls};
use super::query::{column, ordinal};
use super::recursion_rules::INVALID_RECURSION;
use super::scope::{Allowed, folded};
use super::{Binder, BoundColumn};
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::forms::DISTINCT_SETS;
use crate::functions::keys;
use crate::functions::row_values::is_made_row;
use crate::typed::Typed;
use crate::types::PgType;

/// Sets of groups of one query at most; each reads the rows once more.
const MOST_SETS: usize = 64;

/// What rows are grouped by.
pub(super) struct Groups {
    exprs: Vec<Typed>,
    /// The sets of GROUPING SETS and the like, one of all without them: places among the expressions.
    sets: Vec<Vec<usize>>,
}

/// All that the plans of the sets have in common.
struct Grouping {
    groups: Groups,
    /// The columns that stand for the expressions above the groups.
    seen: Vec<Typed>,
    aggregates: Vec<(Expr, Typed)>,
    directs: Vec<DirectArguments>,
    groupings: Vec<(Vec<usize>, Typed)>,
}

impl Groups {
    fn place(&mut self, typed: Typed) -> usize {
        let known = self.exprs.iter().position(|other| other.expr == typed.expr);
        known.unwrap_or_else(|| {
            self.exprs.push(typed);
            self.exprs.len() - 1
        })
    }

    /// Of sets of the same expressions, in whatever order, one.
    fn keep_sets_once(&mut self) {
        let mut known = HashSet::new();
        self.sets.retain(|set| {
            let mut sorted = set.clone();
            sorted.sort_unstable();
            known.insert(sorted)
        });
    }

    /// What every row is grouped by.
    fn in_all_sets(&self) -> Vec<&Expr> {
        let is_in_all = |at: &usize| self.sets.iter().all(|set| set.contains(at));
        (0..self.exprs.len()).filter(is_in_all).map(|at| &self.exprs[at].expr).collect()
    }

    /// Where the arguments of GROUPING are.
    fn places(&self, arguments: &[Expr]) -> Result<Vec<usize>> {
        let place = |argument: &Expr| {
            let found = self.exprs.iter().position(|typed| typed.expr == *argument);
            if found.is_none() && contains_outer(argument) {
                return unsupported("GROUPING of an outer query's columns");
            }
            found.ok_or_else(|| {
                let message = "arguments to GROUPING must be grouping expressions of the associated query level";
                StatementError::new(SqlState::GROUPING_ERROR, message).into()
            })
        };
        arguments.iter().map(place).collect()
    }
}

fn name_of(typed: &Typed) -> String {
    match &typed.expr {
        Expr::Column(column) => column.name().to_owned(),
        other => unreachable!("{other} stands for nothing"),
    }
}

/// The sets that an item of GROUP BY stands for.
fn sets_of(item: &Syntax) -> Result<Vec<Vec<Syntax>>> {
    Ok(match item {
        Syntax::Tuple(exprs) => vec![exprs.clone()],
        Syntax::Rollup(parts) => prefixes(parts),
        Syntax::Cube(parts) => subsets(parts)?,
        Syntax::GroupingSets(sets) => {
            let mut found = Vec::new();
            for set in sets {
                match &set[..] {
                    [Syntax::Function(call)] => match nested_sets(call)? {
                        Some(nested) => found.extend(nested),
                        None => found.push(set.clone()),
                    },
                    [Syntax::Tuple(exprs)] => found.push(exprs.clone()),
                    _ => found.push(set.clone()),
                }
            }
            found
        }
        other => vec![vec![other.clone()]],
    })
}

fn prefixes(parts: &[Vec<Syntax>]) -> Vec<Vec<Syntax>> {
    (0..=parts.len()).rev().map(|count| parts[..count].concat()).collect()
}

fn subsets(parts: &[Vec<Syntax>]) -> Result<Vec<Vec<Syntax>>> {
    if parts.len() > 12 {
        let message = "CUBE is limited to 12 elements";
        return fail(SqlState("54011"), message);
    }
    let chosen = |mask: usize| {
        let is_in = |at: &usize| mask & (1 << at) != 0;
        (0..parts.len()).filter(is_in).flat_map(|at| parts[at].clone()).collect()
    };
    Ok((0..1 << parts.len()).rev().map(chosen).collect())
}

/// ROLLUP and CUBE among GROUPING SETS, which the parser takes for functions.
fn nested_sets(call: &Function) -> Result<Option<Vec<Vec<Syntax>>>> {
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let part = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Syntax::Tuple(exprs))) => Ok(exprs.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) => Ok(vec![syntax.clone()]),
        _ => fail(SqlState::SYNTAX_ERROR, "syntax error in GROUPING SETS"),
    };
    let parts = || list.args.iter().map(part).collect::<Result<Vec<_>>>();
    match call.name.to_string().to_lowercase().as_str() {
        "rollup" => Ok(Some(prefixes(&parts()?))),
        "cube" => subsets(&parts()?).map(Some),
        _ => Ok(None),
    }
}

impl Binder<'_> {
    /// GROUP BY; `None` without one.
    pub(super) fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        columns: &[BoundColumn],
    ) -> Result<Option<Groups>> {
        let GroupByExpr::Expressions(items, modifiers) = group_by else {
            return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"ALL\"");
        };
        if !modifiers.is_empty() {
            return fail(SqlState::SYNTAX_ERROR, "syntax error in GROUP BY");
        }
        if items.is_empty() {
            return Ok(None);
        }
        self.level().allowed = Allowed::PlainIn("GROUP BY");
        let is_distinct = items.first().is_some_and(|first| is_marked(first, DISTINCT_SETS));
        let items = &items[usize::from(is_distinct)..];
        let mut groups = Groups { exprs: Vec::new(), sets: vec![Vec::new()] };
        for item in items {
            let mut crossed = Vec::new();
            let sets = sets_of(item)?;
            for before in &groups.sets {
                for set in &sets {
                    crossed.push((before.clone(), set.clone()));
                }
            }
            if crossed.len() > MOST_SETS {
                return unsupported(format!("more than {MOST_SETS} grouping sets"));
            }
            groups.sets.clear();
            for (mut set, added) in crossed {
                for syntax in added {
                    let typed = self.group_item(&syntax, columns)?;
                    let at = groups.place(typed);
                    if !set.contains(&at) {
                        set.push(at);
                    }
                }
                groups.sets.push(set);
            }
        }
        if is_distinct {
            groups.keep_sets_once();
        }
        // Before 18 a constant is forgotten as what rows are grouped by, and shows in all sets.
        let is_constant = |group: &Typed| group.expr.column_refs().is_empty();
        let version = self.catalog.database().cluster().version().major();
        if version < 18 && groups.sets.len() > 1 && groups.exprs.iter().any(is_constant) {
            return unsupported("GROUPING SETS of a constant");
        }
        // The server tells columns of the output apart that are the same expression: one may be grouped by where the other is not.
        let is_twice = |group: &Typed| {
            columns.iter().filter(|column| column.typed.expr == group.expr).count() > 1
        };
        if groups.sets.len() > 1 && groups.exprs.iter().any(is_twice) {
            return unsupported("GROUPING SETS of a column that is in the output twice");
        }
        Ok(Some(groups))
    }

    fn group_item(&mut self, syntax: &Syntax, columns: &[BoundColumn]) -> Result<Typed> {
        if let Some(at) = ordinal(syntax, columns.len(), "GROUP BY")? {
            return self.plain_group(columns[at].typed.clone());
        }
        // A column of FROM comes before one of the output.
        if let Syntax::Identifier(ident) = syntax {
            let name = folded(ident);
            let in_scope = self.level().scope.bare.iter().any(|column| column.name == name);
            if !in_scope && let Some(found) = columns.iter().find(|column| column.name == name) {
                return self.plain_group(found.typed.clone());
            }
        }
        // Functions may give rows as in the select list, where the same ones are called once with these.
        self.level().sets.may_stand = self.is_unconditional(syntax);
        let typed = self.expr(syntax);
        self.level().sets.may_stand = false;
        typed
    }

    /// `GROUPING (…)`: which of the expressions a row is not grouped by, as bits.
    pub(super) fn grouping(&mut self, arguments: Vec<Typed>) -> Result<Typed> {
        match self.level().allowed {
            Allowed::Aggregates | Allowed::All => {}
            Allowed::PlainIn(clause) => {
                let message = format!("grouping operations are not allowed in {clause}");
                return fail(SqlState::GROUPING_ERROR, message);
            }
            Allowed::Plain => {
                return fail(SqlState::GROUPING_ERROR, "grouping operations are not allowed here");
            }
        }
        if arguments.len() > 31 {
            let message = "GROUPING must have fewer than 32 arguments";
            return fail(SqlState("54023"), message);
        }
        let stand_in = column(&self.fresh("grouping"));
        let typed = Typed::new(stand_in, PgType::new(oid::INT4), DataType::Int32);
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        self.level().groupings.push((arguments, typed.clone()));
        Ok(typed)
    }

    fn plain_group(&mut self, typed: Typed) -> Result<Typed> {
        let aggregates = &self.level().aggregates;
        let has_aggregate = typed
            .expr
            .exists(|inner| Ok(aggregates.iter().any(|(_, stand_in)| stand_in.expr == *inner)))?;
        if has_aggregate {
            return fail(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in GROUP BY",
            );
        }
        Ok(typed)
    }

    /// True where rows are grouped by what functions of the select list give, which are then called before there are groups. They have to
    /// be all that give rows: others are called for each group.
    pub(super) fn groups_rows_of_calls(&mut self, groups: Option<&Groups>) -> Result<bool> {
        let Some(groups) = groups else { return Ok(false) };
        let is_in = |expr: &Expr| {
            let within = |group: &Typed| group.expr.exists(|inner| Ok(inner == expr));
            groups
                .exprs
                .iter()
                .try_fold(false, |found, group| Ok::<_, Error>(found | within(group)?))
        };
        let (mut any, mut all) = (false, true);
        for column in self.level().sets.columns() {
            let is_grouped = is_in(&column.expr)?;
            (any, all) = (any | is_grouped, all & is_grouped);
        }
        match any && !(all && groups.sets.len() == 1) {
            true => unsupported("GROUP BY of some of several functions that give rows"),
            false => Ok(any),
        }
    }

    /// Groups, where the query does; the expressions then refer to the groups.
    pub(super) fn aggregated(
        &mut self,
        plan: LogicalPlan,
        groups: Option<Groups>,
        having: Option<Typed>,
        above: &mut [&mut Typed],
    ) -> Result<LogicalPlan> {
        let aggregates = std::mem::take(&mut self.level().aggregates);
        let groupings = std::mem::take(&mut self.level().groupings);
        if !aggregates.is_empty() && self.level().names_itself {
            let message =
                "aggregate functions are not allowed in a recursive query's recursive term";
            return fail(INVALID_RECURSION, message);
        }
        if groups.is_none() && aggregates.is_empty() && having.is_none() && groupings.is_empty() {
            return Ok(plan);
        }
        if let Some(groups) = &groups
            && self.level().sorting.is_lost(groups.sets.len())
        {
            return unsupported(
                "an aggregate that shows the order of rows, where groups are sorted",
            );
        }
        let groups = groups.unwrap_or(Groups { exprs: Vec::new(), sets: vec![Vec::new()] });
        let groupings = groupings
            .into_iter()
            .map(|(arguments, stand_in)| Ok((groups.places(&arguments)?, stand_in)))
            .collect::<Result<Vec<_>>>()?;
        let seen = groups.exprs.iter().map(|typed| typed.with_expr(column(&self.fresh("seen"))));
        let seen: Vec<Typed> = seen.collect();
        let used = self.used_above(having.as_ref(), above);
        let directs = std::mem::take(&mut self.level().direct_arguments);
        let dependent = self.dependent_columns(&groups.in_all_sets(), &used)?;
        let mut aggregates = aggregates;
        let mut stand_ins_of_columns = Vec::new();
        for typed in dependent {
            let stand_in = typed.with_expr(column(&self.fresh("dependent")));
            stand_ins_of_columns.push((typed.expr.clone(), stand_in.expr.clone()));
            aggregates.push((first_value(typed.expr, Vec::new()), stand_in));
        }
        let grouping = Grouping { groups, seen, aggregates, directs, groupings };
        let mut all: Option<LogicalPlan> = None;
        for set in &grouping.groups.sets {
            let one = self.grouped(plan.clone(), &grouping, set)?;
            all = Some(match all {
                None => one,
                Some(before) => LogicalPlanBuilder::from(before).union(one)?.build()?,
            });
        }
        let mut plan = all.expect("there is a set of groups"); // infallible: one at least is made
        let Grouping { groups, seen, aggregates, directs, groupings } = grouping;
        let known: Vec<(Expr, Expr)> = groups
            .exprs
            .into_iter()
            .zip(seen)
            .map(|(group, seen)| (group.expr, seen.expr))
            .chain(stand_ins_of_columns)
            .collect();
        let stand_ins = aggregates.into_iter().map(|(_, typed)| typed.expr);
        let stand_ins: Vec<Expr> =
            stand_ins.chain(groupings.into_iter().map(|(_, typed)| typed.expr)).collect();
        for expr in directs.into_iter().flat_map(|direct| direct.exprs) {
            self.above_groups(expr, &known, &stand_ins)?;
        }
        if let Some(having) = having {
            let condition = self.above_groups(having.expr, &known, &stand_ins)?;
            let condition = self.condition(condition)?;
            plan = LogicalPlanBuilder::from(plan).filter(condition)?.build()?;
        }
        for typed in above {
            typed.expr = self.above_groups(typed.expr.clone(), &known, &stand_ins)?;
        }
        let mut sets = std::mem::take(&mut self.level().sets);
        for argument in sets.arguments() {
            argument.expr = self.above_groups(argument.expr.clone(), &known, &stand_ins)?;
        }
        self.level().sets = sets;
        for at in 0..self.level().windows.len() {
            let expr = self.level().windows[at].0.clone();
            self.level().windows[at].0 = self.above_groups(expr, &known, &stand_ins)?;
        }
        Ok(plan)
    }

    /// The groups of one set, with the columns that all sets have.
    fn grouped(
        &mut self,
        plan: LogicalPlan,
        grouping: &Grouping,
        set: &[usize],
    ) -> Result<LogicalPlan> {
        let (mut keys_of_groups, mut values, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (typed, seen)) in grouping.groups.exprs.iter().zip(&grouping.seen).enumerate() {
            if !set.contains(&at) {
                let null = Expr::Literal(ScalarValue::try_from(&typed.carrier)?, None);
                columns.push(null.alias(name_of(seen)));
                continue;
            }
            // A constant groups nothing, and the engine takes a number for a position.
            let name = self.fresh("group");
            let key = keys::grouping_key(&self.catalog, typed)?;
            let is_own = key == typed.expr;
            keys_of_groups.push(key.alias(&name));
            let value = match is_own {
                true => column(&name),
                false => {
                    let any = self.fresh("any");
                    values.push(first_value(typed.expr.clone(), Vec::new()).alias(&any));
                    column(&any)
                }
            };
            columns.push(value.alias(name_of(seen)));
        }
        let missing: Vec<&Typed> = (0..grouping.groups.exprs.len())
            .filter(|at| !set.contains(at))
            .map(|at| &grouping.groups.exprs[at])
            .collect();
        for (expr, stand_in) in &grouping.aggregates {
            let name = self.fresh("aggregate");
            let direct = grouping.directs.iter().find(|direct| direct.stand_in == stand_in.expr);
            let count = direct.map_or(0, |direct| direct.exprs.len());
            values.push(with_nulls(expr.clone(), count, &missing)?.alias(&name));
            columns.push(column(&name).alias(name_of(stand_in)));
        }
        for (places, stand_in) in &grouping.groupings {
            let bits = places.iter().fold(0, |bits, at| bits << 1 | i32::from(!set.contains(at)));
            columns.push(lit(bits).alias(name_of(stand_in)));
        }
        if keys_of_groups.is_empty() && values.is_empty() {
            // One group of all rows, of which nothing is asked.
            let name = self.fresh("all");
            values.push(datafusion::functions_aggregate::expr_fn::count(lit(1)).alias(&name));
            if columns.is_empty() {
                columns.push(column(&name));
            }
        }
        let plan = self.with_queries_below(plan, keys_of_groups.iter_mut().chain(&mut values))?;
        let grouped = LogicalPlanBuilder::from(plan).aggregate(keys_of_groups, values)?;
        Ok(grouped.project(columns)?.build()?)
    }

    /// The rows with the values of the queries that the expressions over them have in them: the engine makes a query a join in what is
    /// shown of rows, and not where they are aggregated.
    fn with_queries_below<'e>(
        &mut self,
        plan: LogicalPlan,
        exprs: impl Iterator<Item = &'e mut Expr>,
    ) -> Result<LogicalPlan> {
        let mut queries: Vec<(Expr, String)> = Vec::new();
        for expr in exprs {
            let below = std::mem::take(expr).transform_down(|inner| {
                if !matches!(inner, Expr::ScalarSubquery(_)) {
                    return Ok(Transformed::no(inner));
                }
                let known = queries.iter().find(|(query, _)| *query == inner);
                let name = match known {
                    Some((_, name)) => name.clone(),
                    None => {
                        let name = self.fresh("value");
                        queries.push((inner, name.clone()));
                        name
                    }
                };
                Ok(Transformed::new(column(&name), true, TreeNodeRecursion::Jump))
            });
            *expr = below?.data;
        }
        if queries.is_empty() {
            return Ok(plan);
        }
        let given = plan.schema().columns().into_iter().map(Expr::Column);
        let queries = queries.into_iter().map(|(query, name)| query.alias(name));
        let all: Vec<Expr> = given.chain(queries).collect();
        Ok(LogicalPlanBuilder::from(plan).project(all)?.build()?)
    }

    /// The expression over the groups.
    fn above_groups(&self, expr: Expr, known: &[(Expr, Expr)], stand_ins: &[Expr]) -> Result<Expr> {
        let windows = self.levels.last().map(|level| &level.windows);
        let sets = self.levels.last().map(|level| &level.sets);
        let is_stand_in = |expr: &Expr| {
            stand_ins.contains(expr)
                || known.iter().any(|(_, seen)| seen == expr)
                || sets.is_some_and(|sets| sets.has_stand_in(expr))
                || windows.is_some_and(|windows| windows.iter().any(|(_, w)| w.expr == *expr))
        };
        let replaced = expr.transform_down(|inner| {
            if let Some((_, seen)) = known.iter().find(|(group, _)| *group == inner) {
                return Ok(Transformed::new(seen.clone(), true, TreeNodeRecursion::Jump));
            }
            if let Expr::Column(found) = &inner
                && !is_stand_in(&inner)
            {
                if known.iter().any(|(group, _)| is_made_row(group)) {
                    let refused = "a field of a row that is grouped by";
                    return Err(StatementError::unsupported(refused).into());
                }
                let shown = self.shown_name(found);
                let message = format!(
                    "column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"
                );
                return Err(StatementError::new(SqlState::GROUPING_ERROR, message).into());
            }
            Ok(Transformed::no(inner))
        })?;
        Ok(replaced.data)
    }
    /// A column with its table as the statement names both.
    fn shown_name(&self, column: &Column) -> String {
        let tables = self.levels.last().map_or(&[][..], |level| &level.scope.tables);
        let is_it =
            |other: &&BoundColumn| matches!(&other.typed.expr, Expr::Column(c) if c == column);
        let found = tables.iter().find_map(|table| {
            table.all_columns().find(is_it).map(|found| (&table.name, &found.name))
        });
        match found {
            Some((table, name)) if !table.is_empty() => format!("{table}.{name}"),
            _ => column.name().split('#').next().unwrap_or_default().to_owned(),
        }
    }
}
