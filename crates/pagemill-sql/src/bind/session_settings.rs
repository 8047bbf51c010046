//! `current_setting`, the rows of `pg_settings`, and operators of pg_trgm: what the session's client set goes with their calls.
//!
//! A value may be another the next time a statement runs, so that it stands in no plan that is kept. One that there is not is an
//! error only for a row that asks for it.
//!
//! Source: `show_config_by_name_missing_ok` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15), PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::prelude::lit;
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;

use super::Binder;
use crate::coerce::{brought, carrier_of, constant, null_of};
use crate::error::{Result, unsupported};
use crate::functions::system::settings::current_setting;
use crate::functions::{Implementation, call_kernel, extensions, implementation};
use crate::resolve::Chosen;
use crate::server_settings::{ServerSettings, changed, encoded};
use crate::session::SettingValues;
use crate::typed::Typed;
use crate::types::PgType;

/// The server's name of the function that gives all settings.
pub(super) const ALL_SETTINGS: &str = "show_all_settings";

/// What is set where there is no client.
static NOTHING: SettingValues = SettingValues::new();

impl Binder<'_> {
    /// What a call of `current_setting` gives; `None` for a call of another function.
    pub(super) fn session_setting(
        &self,
        chosen: &Chosen<'_>,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let key = &*chosen.function.key;
        if !matches!(key, "show_config_by_name" | "show_config_by_name_missing_ok") {
            return Ok(None);
        }
        self.catalog.check_function(chosen.function)?;
        let client = self.client_settings()?;
        if let Some(constant) = self.constant_setting(client, arguments)? {
            return Ok(Some(constant));
        }
        let mut arguments = brought(&self.catalog, chosen, arguments.to_vec())?;
        arguments.push(self.settings_argument()?);
        let kernel = ("current_setting", current_setting as _);
        let ty = PgType::new(oid::TEXT);
        Ok(Some(call_kernel(&self.catalog, kernel, &arguments, ty, DataType::Utf8)))
    }

    /// A call of a function of pg_trgm that asks a setting how alike texts are to be; `None` for a call of another function.
    pub(super) fn with_limit(
        &self,
        chosen: &Chosen<'_>,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let key = &*chosen.function.key;
        let (Some(setting), Some(Implementation::Kernel(kernel))) =
            (extensions::limit_setting(key), implementation(key))
        else {
            return Ok(None);
        };
        self.catalog.check_function(chosen.function)?;
        let set = ServerSettings::new(&self.catalog, self.client_settings()?).shown(setting)?;
        let mut arguments = brought(&self.catalog, chosen, arguments.to_vec())?;
        // What is no number, or set nowhere, leaves the function its own default, as the server does.
        if let Some(limit) = set.and_then(|(_, value)| value.parse::<f64>().ok()) {
            arguments.push(Typed::new(lit(limit), PgType::new(oid::FLOAT8), DataType::Float64));
        }
        let result = PgType::new(chosen.result);
        let carrier = carrier_of(&self.catalog, result);
        Ok(Some(call_kernel(&self.catalog, (key, kernel), &arguments, result, carrier)))
    }

    /// What the client set that is not so for everybody, as the argument that the functions have none of on the server.
    pub(super) fn settings_argument(&self) -> Result<Typed> {
        let changed = changed(&self.catalog, self.client_settings()?)?;
        Ok(Typed::new(lit(encoded(&changed)), PgType::new(oid::TEXT), DataType::Utf8))
    }

    /// What the client set.
    fn client_settings(&self) -> Result<&SettingValues> {
        match self.session_settings {
            Some(_) if self.parameters.are_generic() => unsupported("a setting in a generic plan"),
            Some(settings) => Ok(settings),
            None => Ok(&NOTHING),
        }
    }

    /// The value of a setting that a constant names, where there is one, or none is needed.
    fn constant_setting(
        &self,
        client: &SettingValues,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let (Some(name), Some(may_miss)) =
            (arguments.first().and_then(text), arguments.get(1).map_or(Some(false), truth))
        else {
            return Ok(None);
        };
        let ty = PgType::new(oid::TEXT);
        match ServerSettings::new(&self.catalog, client).shown(&name)? {
            Some((_, value)) => constant(&self.catalog, ty, &value).map(Some),
            None if may_miss => null_of(&self.catalog, ty).map(Some),
            None => Ok(None),
        }
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
