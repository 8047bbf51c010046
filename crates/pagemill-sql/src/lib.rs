#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod admission;
pub(crate) mod barrier;
mod binary_form;
mod bind;
pub mod catalog;
pub(crate) mod coerce;
mod collated;
pub mod copy;
mod correlated_aggregates;
mod databases;
pub mod ddl;
mod definitions;
mod depth;
pub mod error;
mod escapes;
pub(crate) mod expand;
pub mod files;
mod for_each_row;
mod forms;
pub(crate) mod functions;
mod generic_plan;
mod interruption;
mod json_spelling;
pub mod key_files;
pub(crate) mod lexical;
mod logical_rules;
mod long_constants;
mod long_sorts;
pub mod named_workers;
mod nested;
mod numbers;
pub mod output;
pub mod parameters;
pub(crate) mod precedence;
mod reserved;
pub(crate) mod resolve;
mod rights;
pub mod roles;
pub mod rows;
pub(crate) mod scan;
pub mod session;
pub mod shell;
mod spelling;
pub(crate) mod sql_functions;
mod statement_memory;
pub mod statement_texts;
pub(crate) mod system_rows;
pub(crate) mod typed;
mod typed_texts;
pub mod types;
mod unordered_limits;
#[cfg(feature = "workers")]
pub mod workers;

pub use error::{Error, Result, SqlState, StatementError};
pub use nested::PLANNING_STACK;
