//! Definitions written out: stored expressions and queries become SQL again, as the server's own functions print them.
//!
//! ```text
//! catalogs ──Dictionary──► names ┐
//! pg_node_tree ──Node────────────┴─Writer──► expressions, queries ──► constraints, indexes, views …
//! ```
//!
//! Invariant: a text is the server's to the last character, or there is none: what cannot be written is named.
//!
//! Source: `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

mod calls;
mod columns;
mod constants;
mod constraints;
mod dictionary;
mod expression;
mod fields;
mod foreign_tables;
mod from;
mod function_statements;
mod functions;
mod indexes;
mod json;
mod modifications;
mod partition_constraints;
mod query;
mod relations;
mod special_calls;
mod sublinks;
mod table_functions;
#[cfg(test)]
mod tests;
mod tree;
mod updatable;
mod windows;
mod writer;
mod xml;

use pagemill_format::node_tree::NodeStruct;
use pagemill_format::{ErrorKind, Oid};

use crate::error::{SqlState, StatementError};

pub(crate) use constraints::ConstraintWriter;
pub(crate) use dictionary::{ColumnRow, Dictionary};
pub(crate) use function_statements::FunctionStatements;
pub(crate) use functions::{FunctionWriter, numbered_body};
pub(crate) use indexes::{IndexRow, IndexWriter, indexes, partition_keys};
pub(crate) use partition_constraints::PartitionWriter;
pub(crate) use relations::{
    Rule, rule, rules, statistics, statistics_columns, statistics_object, trigger, triggers, view,
    view_rule, view_rules,
};
pub(crate) use updatable::Updatability;
pub(crate) use writer::{Style, Writer};

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// What is not known here, in words.
    Unknown(String),
    /// What the catalogs lack, or hold as no server does.
    Damaged(String),
}

impl Unwritten {
    fn unknown(what: impl Into<String>) -> Self {
        Self::Unknown(what.into())
    }

    fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    fn node(node: &NodeStruct<'_>) -> Self {
        Self::unknown(format!("the stored node {}", String::from_utf8_lossy(node.name)))
    }

    fn missing(what: &str, oid: Oid) -> Self {
        Self::damaged(format!("the missing {what} {oid}"))
    }
}

impl From<pagemill_format::Error> for Unwritten {
    fn from(error: pagemill_format::Error) -> Self {
        match error.kind() {
            ErrorKind::Unsupported { .. } => Self::unknown(error.to_string()),
            _ => Self::damaged(error.to_string()),
        }
    }
}

impl From<Unwritten> for StatementError {
    fn from(unwritten: Unwritten) -> Self {
        match unwritten {
            Unwritten::Unknown(what) => Self::unsupported(format!("a definition with {what}")),
            Unwritten::Damaged(what) => {
                Self::new(SqlState::DATA_CORRUPTED, format!("a definition has {what}"))
            }
        }
    }
}
