#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod binary_form;
pub(crate) mod bind;
pub mod catalog;
pub(crate) mod coerce;
pub mod copy;
mod databases;
pub mod ddl;
mod definitions;
pub mod error;
pub(crate) mod expand;
pub mod files;
pub(crate) mod functions;
mod global_groups;
mod interruption;
pub(crate) mod lexical;
mod nested;
pub mod output;
pub mod parameters;
pub(crate) mod precedence;
pub(crate) mod resolve;
mod rights;
pub mod roles;
pub mod rows;
pub(crate) mod scan;
pub mod session;
pub mod shell;
pub(crate) mod sql_functions;
mod statement_memory;
pub(crate) mod system_rows;
pub(crate) mod typed;
pub mod types;

pub use error::{Error, Result, SqlState, StatementError};
