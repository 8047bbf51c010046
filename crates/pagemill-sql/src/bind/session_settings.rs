//! `current_setting('NAME')`: what the session's client set.
//!
//! A value may be another the next time a statement runs, so that it stands in no plan that is kept. One that there is not is an
//! error only for a row that asks for it.
//!
//! Source: `show_config_by_name_missing_ok` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15), PostgreSQL 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _, new_null_array};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;

use super::Binder;
use crate::catalog::FunctionRow;
use crate::coerce::{constant, null_of};
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::functions::{KernelCall, call_kernel};
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    /// What a call of `current_setting` gives; `None` for one that is computed as other functions are.
    pub(super) fn session_setting(
        &self,
        function: &FunctionRow,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let is_known =
            matches!(&*function.key, "show_config_by_name" | "show_config_by_name_missing_ok");
        let (Some(settings), true) = (self.session_settings, is_known) else { return Ok(None) };
        let (Some(name), Some(may_miss)) =
            (arguments.first().and_then(text), arguments.get(1).map_or(Some(false), truth))
        else {
            return Ok(None);
        };
        let value = settings.get(&name.to_lowercase());
        if value.is_none() && !name.contains('.') {
            return Ok(None);
        }
        self.catalog.check_function(function)?;
        if self.parameters.are_generic() {
            return unsupported("a setting in a generic plan");
        }
        let ty = PgType::new(oid::TEXT);
        Ok(Some(match value {
            Some(value) => constant(&self.catalog, ty, value)?,
            None if may_miss => null_of(&self.catalog, ty)?,
            None => {
                let name = [constant(&self.catalog, ty, &name)?];
                call_kernel(&self.catalog, ("current_setting", missing), &name, ty, DataType::Utf8)
            }
        }))
    }
}

fn text(typed: &Typed) -> Option<String> {
    match (&typed.literal, &typed.expr) {
        (Some(text), _) => text.clone().filter(|_| typed.parameter.is_none()),
        (None, Expr::Literal(ScalarValue::Utf8(text), _)) => text.clone(),
        _ => None,
    }
}

fn truth(typed: &Typed) -> Option<bool> {
    match &typed.expr {
        Expr::Literal(ScalarValue::Boolean(truth), _) => *truth,
        _ => None,
    }
}

fn missing(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let names = arguments[0].as_string::<i32>();
    if names.is_empty() {
        return Ok(new_null_array(&DataType::Utf8, 0));
    }
    let message = format!("unrecognized configuration parameter \"{}\"", names.value(0));
    Err(StatementError::new(SqlState::UNDEFINED_OBJECT, message))
}
