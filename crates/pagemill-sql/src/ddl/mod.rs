//! Relations as the statements that make them: what `pagemill ls --ddl` prints.
//!
//! ```text
//! chosen relations ──► what needs what ──► tables, views, sequences in that order ──► what is said of them afterwards
//! ```
//!
//! The statements are asked of the cluster's own catalogs in SQL, and the server's functions write what is stored as trees
//! (`pg_get_expr`, `pg_get_indexdef` and their kin). Owners, privileges, types and functions are not among them.
//!
//! Invariants: a statement never comes before one that it needs, as far as both are of chosen relations. What cannot be written is an
//! error; nothing is left out in silence.
//!
//! Source: the forms are those of pg_dump, `src/bin/pg_dump/pg_dump.c`, PostgreSQL 15 to 18.

mod created;
mod order;
mod parts;
mod query;

use std::io::Write;

use pagemill_format::Oid;
use tokio::runtime::Handle;

use crate::error::{Error, Result, SqlState, StatementError};
use crate::session::Session;
use query::Catalogs;

/// Writes the statements that make these relations.
///
/// # Errors
/// When a catalog cannot be read, or a definition cannot be written out.
pub fn write(
    session: &Session,
    runtime: &Handle,
    relations: &[Oid],
    out: &mut dyn Write,
) -> Result<()> {
    let catalogs = Catalogs { session, runtime };
    let chosen = order::needed_first(&catalogs, relations)?;
    let mut statements = created::statements(&catalogs, &chosen)?;
    for part in parts::all(catalogs.major()) {
        statements.extend(catalogs.texts(&part, &chosen)?);
    }
    for statement in statements {
        writeln!(out, "{statement}\n")?;
    }
    Ok(())
}

/// What is stored there is not what a server writes.
fn damaged(what: String) -> Error {
    StatementError::new(SqlState::DATA_CORRUPTED, what).into()
}
