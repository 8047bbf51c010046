//! TABLESAMPLE: a part of a table's rows, by a condition on their places.
//!
//! The share and the seed are plain numbers; others are refused. Without REPEATABLE the seed is any.
//!
//! Source: `transformRangeTableSample` in `src/backend/parser/parse_clause.c`, `tablesample_init` in
//! `src/backend/executor/nodeSamplescan.c`, PostgreSQL 14 to 18.

use std::hash::{BuildHasher as _, RandomState};

use arrow::datatypes::DataType;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, TableSampleKind, TableSampleMethod, TableSampleModifier, TableSampleSeed,
    TableSampleSeedModifier, UnaryOperator, Value,
};

use super::Binder;
use super::expressions::unnested;
use super::scope::Scope;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::{Implementation, call_kernel, samples};
use crate::numbers::is_odd;
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    /// The rows of a table that a sample has.
    pub(super) fn sampled(
        &mut self,
        (plan, scope): (LogicalPlan, Scope),
        sample: &TableSampleKind,
    ) -> Result<(LogicalPlan, Scope)> {
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
            sample;
        let key = match &sample.name {
            Some(TableSampleMethod::System) => samples::OF_BLOCKS,
            Some(TableSampleMethod::Bernoulli) => samples::OF_ROWS,
            _ => return unsupported("this method of TABLESAMPLE"),
        };
        let is_plain = sample.modifier == TableSampleModifier::TableSample
            && sample.bucket.is_none()
            && sample.offset.is_none();
        let Some(quantity) = &sample.quantity else { return unsupported("this TABLESAMPLE") };
        if !is_plain || !quantity.parenthesized || quantity.unit.is_some() {
            return unsupported("this form of TABLESAMPLE");
        }
        let Some(border) = samples::border(share(&quantity.value)?) else {
            return fail(SqlState("2202H"), "sample percentage must be between 0 and 100");
        };
        let seed = self.seed(sample.seed.as_ref())?;
        let Some(ctid) = scope.tables.first().and_then(|table| table.system.first()) else {
            return unsupported("TABLESAMPLE of what is no table");
        };
        let number = |of: i64| Typed::new(lit(of), PgType::new(oid::INT8), DataType::Int64);
        let arguments = [ctid.typed.clone(), number(border), number(i64::from(seed))];
        let Some(Implementation::Kernel(kernel)) = samples::find(key) else {
            return unsupported("TABLESAMPLE");
        };
        let result = PgType::new(oid::BOOL);
        let taken =
            call_kernel(&self.catalog, (key, kernel), &arguments, result, DataType::Boolean);
        Ok((LogicalPlanBuilder::from(plan).filter(taken.expr)?.build()?, scope))
    }

    fn seed(&self, given: Option<&TableSampleSeed>) -> Result<u32> {
        let Some(given) = given else {
            if self.parameters.are_generic() {
                return unsupported("a sample by chance in a generic plan");
            }
            // Any bits of a hash are as good as others.
            return Ok(RandomState::new().hash_one(0_u8) as u32);
        };
        if given.modifier != TableSampleSeedModifier::Repeatable {
            return unsupported("this form of TABLESAMPLE");
        }
        match number(&given.value).and_then(|digits| digits.parse::<f64>().ok()) {
            Some(seed) if seed.is_finite() => Ok(samples::seed(seed)),
            _ => unsupported("REPEATABLE of what is no plain number"),
        }
    }
}

/// The percentage of rows.
fn share(syntax: &Syntax) -> Result<f32> {
    let (value, sign) = match unnested(syntax) {
        Syntax::UnaryOp { op: UnaryOperator::Minus, expr } => (unnested(expr), -1.0),
        other => (other, 1.0),
    };
    let Syntax::Value(value) = value else {
        return unsupported("TABLESAMPLE of a share that is no plain number");
    };
    if matches!(value.value, Value::Null) {
        return fail(SqlState("2202H"), "TABLESAMPLE parameter cannot be null");
    }
    match number(&value.value).and_then(|digits| digits.parse::<f32>().ok()) {
        Some(share) if share.is_finite() => Ok(sign * share),
        _ => unsupported("TABLESAMPLE of a share that is no plain number"),
    }
}

fn number(value: &Value) -> Option<&str> {
    match value {
        Value::Number(digits, _) if !is_odd(digits) => Some(digits),
        _ => None,
    }
}
