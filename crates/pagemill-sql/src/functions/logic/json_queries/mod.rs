//! What JSON_EXISTS, JSON_VALUE and JSON_QUERY find in a document, and the rows of JSON_TABLE.
//!
//! ```text
//! document, path ──► search ──► found ──► as the result's type ──► value
//!                       │  └──► nothing ──► ON EMPTY              ▲
//!                       └─────► error, also of that type ──► ON ERROR
//! ```
//!
//! Arguments of a call: the document as jsonb, the path unless it is a constant, the values that PASSING gives, those of DEFAULT.
//!
//! Invariant: an error is only suppressed where the server suppresses it: on the path, and where a value becomes one of the result's
//! type; what is not supported here stays an error.
//!
//! Source: `ExecEvalJsonExprPath`, `ExecEvalJsonCoercion`, `ExecEvalJsonCoercionFinish` in `src/backend/executor/execExprInterp.c`,
//! `ExecInitJsonExpr` in `execExpr.c`, PostgreSQL 17 and 18.

mod arguments;
mod call;
mod decoded;
mod evaluate;
mod predicate;
mod rows;

use super::super::rows::Outcome;
pub(crate) use super::jsonpath::Wrapper;
use crate::types::PgType;
pub(crate) use call::{remembers_rows, search};
pub(crate) use decoded::{bytes_of_text, text_of_bytes};
pub(crate) use predicate::{is_json, unique_json};
pub(crate) use rows::{Scan, TableColumn, TableRows, begin};

/// A value as bytes; nothing for NULL.
type Value = Option<Vec<u8>>;

/// What is asked of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Exists,
    Query(Wrapper),
    Value,
}

/// How what is found becomes a value of the result's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Coercion {
    /// It is one.
    None,
    /// The type's input function reads it.
    Input,
    /// As a field that is filled from a document.
    Document,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Search {
    pub(crate) operation: Operation,
    pub(crate) result: PgType,
    pub(crate) coercion: Coercion,
    pub(crate) omits_quotes: bool,
    pub(crate) on_empty: Behavior,
    pub(crate) on_error: Behavior,
    /// The column of JSON_TABLE that it is for.
    pub(crate) column: Option<String>,
    /// The payload of a path that is a constant.
    pub(crate) path: Option<Vec<u8>>,
    /// True for results of a domain.
    pub(crate) is_domain: bool,
    /// True for results of type integer, or of a domain over it.
    pub(crate) is_integer: bool,
}

impl Search {
    fn throws(&self) -> bool {
        self.on_error.says == Says::Error
    }
}

/// What ON EMPTY or ON ERROR says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Behavior {
    /// As errors show it.
    pub(crate) shown: &'static str,
    pub(crate) says: Says,
}

impl Behavior {
    pub(crate) const NULL: Self = Self { shown: "NULL", says: Says::Null };
}

/// The value of a behavior.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Says {
    Error,
    Null,
    /// A document that becomes a value of the result's type.
    Document(&'static str),
    /// A value of that type by its text.
    Text(&'static str),
    /// An argument of that type, or of the type under its domain.
    Argument(usize, PgType),
    /// An argument that is a `jsonb`.
    DocumentArgument(usize),
}
