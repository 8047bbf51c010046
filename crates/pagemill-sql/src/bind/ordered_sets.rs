//! Aggregates of rows in an order of their own: `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)`, and the ranks that a row would
//! have, `rank(3) WITHIN GROUP (ORDER BY x)`.
//!
//! What stands before WITHIN GROUP is the same for all rows of a group: it is made of what they are grouped by.
//!
//! Source: `transformAggregateCall` in `src/backend/parser/parse_agg.c`, `ParseFuncOrColumn` and `unify_hypothetical_args` in
//! `parse_func.c`, PostgreSQL 14 to 18.

use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use sqlparser::ast::Function;

use super::Binder;
use super::functions::{CallArguments, refuse_of_outer_query};
use super::query::sort;
use super::scope::Allowed;
use crate::catalog::Catalog;
use crate::coerce::{brought, result_type};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::aggregates::{AggregateCall, aggregate};
use crate::functions::keys;
use crate::resolve::{self, Chosen};
use crate::system_rows::PG_CATALOG;
use crate::typed::Typed;

/// Aggregates of rows in an order of their own.
const OF_ORDERED_SETS: [&str; 3] = ["mode", "percentile_cont", "percentile_disc"];
/// Those that are told a row.
const HYPOTHETICAL: [&str; 4] = ["cume_dist", "dense_rank", "percent_rank", "rank"];

/// What stands before WITHIN GROUP, of an aggregate that was put aside.
#[derive(Debug, Clone)]
pub(super) struct DirectArguments {
    /// The column that stands for the aggregate.
    pub(super) stand_in: Expr,
    pub(super) exprs: Vec<Expr>,
}

/// True for an aggregate that wants WITHIN GROUP.
pub(super) fn is_of_ordered_set(chosen: &Chosen<'_>) -> bool {
    let name = &*chosen.function.name;
    chosen.function.namespace == PG_CATALOG
        && chosen.function.kind == b'a'
        && (OF_ORDERED_SETS.contains(&name) || HYPOTHETICAL.contains(&name))
}

impl Binder<'_> {
    /// `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)` and its kin.
    pub(super) fn within_group(
        &mut self,
        (schema, name): (Option<Oid>, &str),
        call: &Function,
        mut arguments: CallArguments<'_>,
    ) -> Result<Typed> {
        if !arguments.order_by.is_empty() {
            let message = "cannot use multiple ORDER BY clauses with WITHIN GROUP";
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        if arguments.distinct {
            return fail(SqlState::SYNTAX_ERROR, "cannot use DISTINCT with WITHIN GROUP");
        }
        if arguments.is_star || !arguments.names.is_empty() {
            return unsupported("WITHIN GROUP beside this form of arguments");
        }
        let before = self.level().allowed;
        self.level().allowed = Allowed::PlainIn("arguments of aggregate functions");
        let items = call.within_group.iter().map(|item| self.expr(&item.expr));
        let bound = items.collect::<Result<Vec<Typed>>>();
        let parts = self.aggregate_parts(call, &arguments, &[]);
        self.level().allowed = before;
        let directs = arguments.typed.len();
        arguments.typed.extend(bound?);
        let (filter, _) = parts?;
        let given: Vec<Oid> = arguments.typed.iter().map(|typed| typed.ty.oid).collect();
        let catalog = self.catalog.clone();
        let chosen = resolve::whole_function(&catalog, schema, name, &given)?;
        check_kind(&catalog, &chosen, call, (directs, &given))?;
        catalog.check_function(chosen.function)?;
        let mut typed = match HYPOTHETICAL.contains(&name) {
            true => self.in_pairs(arguments.typed, directs)?,
            false => brought(&catalog, &chosen, arguments.typed)?,
        };
        let values = typed.split_off(directs);
        // What is sorted says whose aggregate it is, whatever the direct arguments are of.
        refuse_of_outer_query(&values)?;
        self.check_aggregate(name)?;
        if typed.iter().chain(&values).any(Typed::is_row) {
            return unsupported("a row in WITHIN GROUP");
        }
        let keyed = |(value, item)| Ok(sort(keys::order_key(&catalog, value)?, item));
        let order_by = values.iter().zip(&call.within_group).map(keyed).collect::<Result<_>>()?;
        let exprs: Vec<Expr> = typed.iter().map(|direct| direct.expr.clone()).collect();
        let result = result_type(&catalog, chosen.result, &values)?;
        let given =
            AggregateCall { arguments: values, distinct: false, filter, order_by, directs: typed };
        let Some(typed) = aggregate(&catalog, &chosen.function.key, given, result)? else {
            let signature = crate::coerce::signature(&catalog, chosen.function);
            return unsupported(format!("the aggregate {signature}"));
        };
        let typed = self.put_aside(name, typed)?;
        let stand_in = typed.expr.clone();
        self.level().direct_arguments.push(DirectArguments { stand_in, exprs });
        Ok(typed)
    }

    /// Each direct argument as what it is held against, and that.
    fn in_pairs(&self, mut typed: Vec<Typed>, directs: usize) -> Result<Vec<Typed>> {
        let values = typed.split_off(directs);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (direct, value) in typed.into_iter().zip(values) {
            let mut pair = self.in_common("WITHIN GROUP", vec![value, direct])?.into_iter();
            second.extend(pair.next());
            first.extend(pair.next());
        }
        first.append(&mut second);
        Ok(first)
    }
}

/// Refuses WITHIN GROUP where the aggregate has none, or takes other arguments before it.
fn check_kind(
    catalog: &Catalog,
    chosen: &Chosen<'_>,
    call: &Function,
    (directs, given): (usize, &[Oid]),
) -> Result<()> {
    let name = &*chosen.function.name;
    let (columns, row) = (call.within_group.len(), chosen.function);
    if row.namespace != PG_CATALOG {
        return unsupported(format!("{name} WITHIN GROUP"));
    }
    if row.kind != b'a' {
        let message = format!("WITHIN GROUP specified, but {name} is not an aggregate function");
        return fail(SqlState("42809"), message);
    }
    if !is_of_ordered_set(chosen) {
        let message =
            format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
        return fail(SqlState("42809"), message);
    }
    if call.over.is_some() {
        let message = format!("OVER is not supported for ordered-set aggregate {name}");
        return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
    }
    let wanted = usize::from(name != "mode");
    let hint = match HYPOTHETICAL.contains(&name) {
        true if directs == columns => return Ok(()),
        true => format!(
            "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {directs}) \
             must match the number of ordering columns (here {columns})."
        ),
        false if directs == wanted && columns == 1 => return Ok(()),
        false => {
            let plural = if wanted == 1 { "" } else { "s" };
            format!(
                "There is an ordered-set aggregate {name}, but it requires {wanted} direct argument{plural}, not {directs}."
            )
        }
    };
    let types: Vec<String> = given.iter().map(|oid| catalog.type_name(*oid)).collect();
    let message = format!("function {name}({}) does not exist", types.join(", "));
    Err(StatementError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(hint).into())
}

/// An aggregate of one of several sets of groups: what its rows are not grouped by is NULL before WITHIN GROUP.
pub(super) fn with_nulls(expr: Expr, count: usize, missing: &[&Typed]) -> Result<Expr> {
    let Expr::AggregateFunction(mut call) = expr else { return Ok(expr) };
    for argument in call.params.args.iter_mut().take(count) {
        let replaced = argument.clone().transform_down(|inner| {
            match missing.iter().find(|typed| typed.expr == inner) {
                Some(typed) => {
                    let null = Expr::Literal(ScalarValue::try_from(&typed.carrier)?, None);
                    Ok(Transformed::new(null, true, TreeNodeRecursion::Jump))
                }
                None => Ok(Transformed::no(inner)),
            }
        })?;
        *argument = replaced.data;
    }
    Ok(Expr::AggregateFunction(call))
}
