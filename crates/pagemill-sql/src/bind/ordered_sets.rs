//! Aggregates of rows in an order of their own: `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)` and its kin.
//!
//! Source: `transformAggregateCall` in `src/backend/parser/parse_agg.c`, PostgreSQL 18.

use pagemill_format::Oid;
use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByExpr, Value,
};

use super::Binder;
use super::functions::CallArguments;
use super::query::sort;
use super::scope::Allowed;
use crate::coerce::brought;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::aggregates::{AggregateCall, aggregate};
use crate::functions::keys;
use crate::resolve;
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    /// `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)` and its kin.
    pub(super) fn within_group(
        &mut self,
        (schema, name): (Option<Oid>, &str),
        call: &Function,
        mut arguments: CallArguments<'_>,
        item: &OrderByExpr,
    ) -> Result<Typed> {
        if !OF_ORDERED_SETS.contains(&name) {
            return unsupported(format!("{name} WITHIN GROUP"));
        }
        if arguments.distinct || arguments.is_star || !arguments.order_by.is_empty() {
            return unsupported("WITHIN GROUP beside DISTINCT or another order");
        }
        self.check_aggregate(name)?;
        let before = self.level().allowed;
        self.level().allowed = Allowed::PlainIn("arguments of aggregate functions");
        let bound = self.expr(&item.expr);
        let parts = self.aggregate_parts(call, &arguments);
        self.level().allowed = before;
        arguments.typed.push(bound?);
        let (filter, _) = parts?;
        let given: Vec<Oid> = arguments.typed.iter().map(|typed| typed.ty.oid).collect();
        let catalog = self.catalog.clone();
        let chosen = resolve::whole_function(&catalog, schema, name, &given)?;
        catalog.check_function(chosen.function)?;
        let typed = brought(&catalog, &chosen, arguments.typed)?;
        let value = typed.last().expect("just pushed"); // infallible: above
        let order_by = vec![sort(keys::order_key(&catalog, value)?, item)];
        let share = share_of(call)?;
        let given = AggregateCall { arguments: typed, distinct: false, filter, order_by, share };
        let result = PgType::new(chosen.result);
        match aggregate(&catalog, &chosen.function.key, given, result)? {
            Some(typed) => self.put_aside(name, typed),
            None => {
                let signature = crate::coerce::signature(&catalog, chosen.function);
                unsupported(format!("the aggregate {signature}"))
            }
        }
    }
}

/// Aggregates of rows in an order of their own.
pub(super) const OF_ORDERED_SETS: [&str; 3] = ["mode", "percentile_cont", "percentile_disc"];

/// The plain number before WITHIN GROUP, from 0 to 1.
fn share_of(call: &Function) -> Result<Option<f64>> {
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Syntax::Value(value)))] = &list.args[..] else {
        return Ok(None);
    };
    let Value::Number(digits, _) = &value.value else { return Ok(None) };
    if crate::numbers::is_odd(digits) {
        return unsupported("a share that is no plain number");
    }
    match digits.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
        _ => {
            let message = format!("percentile value {digits} is not between 0 and 1");
            fail(SqlState("22003"), message)
        }
    }
}
