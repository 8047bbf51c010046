//! Functions and orders of contrib's extensions: citext here, by PostgreSQL's own functions of texts; the others by
//! [`pagemill_types::extension`], one row at a time.
//!
//! A function is found by its library and the name of its C function, `hstore/hstore_contains`, never by the name it has in SQL, which
//! anybody may give to another one.
//!
//! Invariant: payloads hold texts in the database's encoding and arguments are UTF-8, so that what takes both is refused in databases
//! of another encoding.

mod caseless;
mod library;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use pagemill_format::Oid;
use pagemill_types::extension;

use super::rows::Outcome;
use super::{Implementation, call_kernel};
use crate::catalog::Catalog;
use crate::error::StatementError;
use crate::typed::Typed;

pub(crate) use caseless::lowered;

/// By what a function of a library is found; `None` where it is not known.
pub(crate) fn key(library: &str, symbol: &str) -> Option<String> {
    let name = library.rsplit('/').next().unwrap_or_default(); // default: never, rsplit gives one part at least
    let is_known = caseless::is_known(name, symbol)
        || extension::function(library.as_bytes(), symbol.as_bytes()).is_some()
        || SETS.contains(&(name, symbol));
    is_known.then(|| format!("{name}/{symbol}"))
}

/// Functions that give rows, which [`super::sets`] knows.
const SETS: [(&str, &str); 3] =
    [("hstore", "hstore_each"), ("hstore", "hstore_skeys"), ("hstore", "hstore_svals")];

pub(super) fn find(key: &str) -> Option<Implementation> {
    let (name, symbol) = key.split_once('/')?;
    caseless::find(name, symbol).or_else(|| library::find(name, symbol))
}

/// Refuses a function in a database whose payloads hold texts that are not UTF-8.
///
/// # Errors
/// With its name.
pub(super) fn require_utf8(catalog: &Catalog, key: &str) -> Outcome<()> {
    const UTF8: i32 = 6;
    if catalog.database().row().encoding == UTF8 {
        return Ok(());
    }
    let name = key.rsplit('/').next().unwrap_or_default(); // default: never, rsplit gives one part at least
    Err(StatementError::unsupported(format!("function {name} in a database that is not in UTF-8")))
}

/// How values of an extension's type are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeOrder {
    /// As texts in lower case: `citext`.
    Caseless,
    /// By bytes that are made of a payload.
    Bytes(library::Key),
}

/// The order of a type, by whose function its `=` is. `<` may have another name, as of hstore.
pub(crate) fn order(catalog: &Catalog, ty: Oid) -> Option<TypeOrder> {
    let own = catalog.operators("=").iter().find(|row| row.left == ty && row.right == ty)?;
    let key = &catalog.function(own.function)?.key;
    match key.split_once('/')? {
        ("citext", "citext_eq") => Some(TypeOrder::Caseless),
        (name, symbol) => library::order(name, symbol).map(TypeOrder::Bytes),
    }
}

/// The setting that a function of pg_trgm asks how alike texts are to be. Its value is an argument more.
///
/// Source: `_PG_init` in `contrib/pg_trgm/trgm_op.c`, PostgreSQL 14 to 18.
pub(crate) fn limit_setting(key: &str) -> Option<&'static str> {
    Some(match key.strip_prefix("pg_trgm/")? {
        "similarity_op" | "show_limit" => "pg_trgm.similarity_threshold",
        "word_similarity_op" | "word_similarity_commutator_op" => {
            "pg_trgm.word_similarity_threshold"
        }
        "strict_word_similarity_op" | "strict_word_similarity_commutator_op" => {
            "pg_trgm.strict_word_similarity_threshold"
        }
        _ => return None,
    })
}

/// True for hstore, whose values have subscripts.
pub(crate) fn is_hstore(catalog: &Catalog, ty: Oid) -> bool {
    order(catalog, ty) == Some(TypeOrder::Bytes(library::Key::Hstore))
}

/// The key by which values of such a type are compared.
pub(crate) fn payload_key(catalog: &Arc<Catalog>, typed: &Typed, key: library::Key) -> Expr {
    let argument = std::slice::from_ref(typed);
    call_kernel(catalog, (key.name(), key.kernel()), argument, typed.ty, DataType::Binary).expr
}
