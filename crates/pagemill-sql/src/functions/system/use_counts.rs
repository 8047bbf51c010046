//! How often relations were read and changed, `pg_stat_get_…`: what a server that was shut down kept of it (`pg_stat/`) is not read, so
//! that counts are those of a server that begins to count, as after a crash or on a backup.
//!
//! Invariant: what is no count and no time of the last of something is refused by its name.
//!
//! Source: `src/backend/utils/adt/pgstatfuncs.c`, `pgstat_reset_after_failure` in `src/backend/utils/activity/pgstat.c`, PostgreSQL 14 to 18.

use datafusion::logical_expr::when;
use pagemill_types::builtin::oid;

use super::super::{Build, Implementation};
use crate::coerce::{constant, null_of};
use crate::error::{Result, unsupported};
use crate::typed::Typed;

pub(super) fn find(key: &str) -> Option<Implementation> {
    let counted = key.strip_prefix("pg_stat_get_")?;
    // Those of sessions that run.
    let is_of_sessions = counted.starts_with("backend_") || counted.starts_with("xact_");
    (!is_of_sessions).then_some(Implementation::Build(count))
}

fn count(build: &Build<'_>) -> Result<Typed> {
    let value = match build.result.oid {
        // Of functions nothing is told where nothing was counted.
        _ if build.key.starts_with("pg_stat_get_function_") => {
            null_of(build.catalog, build.result)?
        }
        oid::INT8 | oid::FLOAT8 => constant(build.catalog, build.result, "0")?,
        // Of what runs on a database; the sessions of a server here are in pg_stat_activity.
        oid::INT4 if build.key == "pg_stat_get_db_numbackends" => {
            constant(build.catalog, build.result, "0")?
        }
        oid::TIMESTAMPTZ => null_of(build.catalog, build.result)?,
        _ => return unsupported(format!("the function {}", build.key)),
    };
    match build.arguments {
        [] => Ok(value),
        [of, ..] => {
            let expr = when(of.expr.clone().is_not_null(), value.expr.clone()).end()?;
            Ok(value.with_expr(expr))
        }
    }
}
