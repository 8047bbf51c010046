//! The extension `ltree`: its types, as they lie in tuples and as texts, and its functions.
//!
//! A path of labels is an `ltree` ([`path`]), a pattern over labels in order an `lquery` ([`query`]), a boolean expression over labels in
//! any order an `ltxtquery` ([`text_query`]). What is a label depends on the server's version and the database's locale ([`labels`]).
//!
//! Invariant: texts make the very bytes that the server's input functions make, checksums, padding and leftovers included; no bytes panic.
//!
//! Sources: `contrib/ltree`, PostgreSQL 14 to 18.

pub mod functions;
pub mod labels;
pub mod path;
pub mod query;
pub mod text_query;

mod arguments;
mod array_functions;
mod characters;
mod input;
mod matching;
mod path_functions;
mod query_input;
mod text_query_input;

pub use functions::FUNCTIONS;
pub use input::{ltree_input, read_lquery, read_ltree, read_ltxtquery};
pub use labels::{LabelRules, Labels};
pub use path::{order_key, write_ltree};
pub use query::write_lquery;
pub use query_input::lquery_input;
pub use text_query::write_ltxtquery;
pub use text_query_input::ltxtquery_input;

#[cfg(test)]
mod tests;
