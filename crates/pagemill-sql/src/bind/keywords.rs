//! Key words that are values: the time, who asks, and where.
//!
//! Invariant: each is one value throughout a statement, and stands in no plan that is kept where it is another in the next.
//!
//! Source: `SQLValueFunction` in `src/backend/parser/gram.y`, `ExecEvalSQLValueFunction` in `src/backend/executor/execExprInterp.c`,
//! PostgreSQL 14 to 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::lit;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use super::Binder;
use crate::catalog::CastContext;
use crate::coerce::{coerce, constant};
use crate::error::{Result, unsupported};
use crate::typed::Typed;
use crate::types::PgType;

/// The places of a second that are asked of a word for the time, as of `CURRENT_TIME(0)`.
fn clock_places(name: &str, call: &Function) -> Option<i32> {
    const CLOCKS: [&str; 4] = ["current_time", "current_timestamp", "localtime", "localtimestamp"];
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Syntax::Value(value)))] = &list.args[..] else {
        return None;
    };
    let Value::Number(number, _) = &value.value else { return None };
    number.parse().ok().filter(|_| CLOCKS.contains(&name))
}

impl Binder<'_> {
    /// When the statement began; a plan that is kept for others has none.
    pub(super) fn now(&self) -> Result<Typed> {
        if self.parameters.are_generic() {
            return unsupported("the time of a statement in a generic plan");
        }
        Ok(Typed::new(lit(self.start), PgType::new(oid::TIMESTAMPTZ), DataType::Int64))
    }

    /// Words that are values: CURRENT_DATE and its kin.
    pub(super) fn keyword(&mut self, name: &str) -> Result<Typed> {
        let cast = |binder: &Self, typed: Typed, to: Oid| {
            let context = CastContext::Explicit;
            coerce(&binder.catalog, typed, PgType::new(to), context)
        };
        match name {
            "current_timestamp" => self.now(),
            "current_date" => cast(self, self.now()?, oid::DATE),
            "localtimestamp" => cast(self, self.now()?, oid::TIMESTAMP),
            "current_time" => cast(self, self.now()?, oid::TIMETZ),
            "localtime" => cast(self, self.now()?, oid::TIME),
            "system_user" => self.system_user(),
            "current_catalog" => {
                let name = self.catalog.database().row().name.clone();
                let ty = PgType::new(oid::NAME);
                constant(&self.catalog, ty, &String::from_utf8_lossy(&name))
            }
            "current_schema" => self.call("current_schema", Vec::new()),
            "current_user" | "session_user" | "user" | "current_role" => {
                let database = self.catalog.database();
                let name = match name {
                    "session_user" => database.session_user()?,
                    _ => database.current_user()?,
                };
                constant(&self.catalog, PgType::new(oid::NAME), &String::from_utf8_lossy(&name))
            }
            _ => unsupported(name.to_uppercase()),
        }
    }

    /// A word for the time with places of a second; `None` for any other call.
    pub(super) fn clock_call(&mut self, name: &str, call: &Function) -> Result<Option<Typed>> {
        let Some(places) = clock_places(name, call) else { return Ok(None) };
        let now = self.keyword(name)?;
        let ty = now.ty.with_modifier(places.min(6));
        coerce(&self.catalog, now, ty, CastContext::Explicit).map(Some)
    }
}
