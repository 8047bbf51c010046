//! What computes PostgreSQL's functions here: one implementation for each of the server's own C functions that is known, by
//! its name in `pg_proc.prosrc`. An operator, a cast and a call of the same function share it.
//!
//! Invariant: what has no implementation is refused by name. An implementation gives what the server's function gives for
//! every argument, errors in its words included, or refuses at run time; there is no third case.

pub(crate) mod addresses;
pub(crate) mod aggregates;
pub(crate) mod arrays;
mod binary_forms;
mod bit_places;
pub(crate) mod bit_strings;
mod buckets;
pub(crate) mod call;
mod chance;
pub(crate) mod characters;
mod clock;
pub(crate) mod collations;
pub(crate) mod comparison;
pub(crate) mod datetime;
mod definitions;
mod degrees;
mod encodings;
mod enums;
mod error_details;
pub(crate) mod extensions;
pub(crate) mod floats;
pub(crate) mod format_type;
mod geometry;
mod hashes;
pub(crate) mod integers;
pub(crate) mod keys;
pub(crate) mod large_objects;
mod library_math;
pub(crate) mod locale_order;
mod log_positions;
pub(crate) mod logic;
mod money;
mod money_words;
pub(crate) mod number_pictures;
mod numbers;
pub(crate) mod numeric;
mod object_names;
mod object_numbers;
pub(crate) mod ranges;
pub(crate) mod row_casts;
pub(crate) mod row_forms;
mod row_keys;
pub(crate) mod row_payloads;
pub(crate) mod row_values;
pub(crate) mod rows;
pub(crate) mod samples;
#[cfg(test)]
mod server_results_payload_tests;
#[cfg(test)]
mod server_results_tests;
pub(crate) mod sets;
pub(crate) mod system;
pub(crate) mod text;
pub(crate) mod text_form;
pub(crate) mod text_search;
mod uuids;
mod valid_texts;
pub(crate) mod windows;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use crate::catalog::Catalog;
use crate::error::{Result, StatementError};
use crate::typed::Typed;
use crate::types::PgType;

pub(crate) use call::{KernelCall, call_kernel};

/// A function of whole columns: as many results as each argument has values. NULLs are its own matter.
pub(crate) type Kernel = fn(&KernelCall, &[ArrayRef]) -> Result<ArrayRef, StatementError>;

/// How a function is computed.
#[derive(Clone, Copy)]
pub(crate) enum Implementation {
    /// As an expression of the query engine, whose meaning is PostgreSQL's for these arguments.
    Build(fn(&Build<'_>) -> Result<Typed>),
    /// By a function of columns.
    Kernel(Kernel),
}

/// A call that is to become an expression.
pub(crate) struct Build<'b> {
    pub(crate) catalog: &'b Arc<Catalog>,
    /// The server's name of the function, for implementations that serve several.
    pub(crate) key: &'b str,
    /// The arguments, each of the type that the function declares.
    pub(crate) arguments: &'b [Typed],
    /// The declared result.
    pub(crate) result: PgType,
}

impl Build<'_> {
    /// The expression, with the result's own type and carrier.
    pub(crate) fn done(&self, expr: Expr, carrier: DataType) -> Typed {
        Typed::new(expr, self.result, carrier)
    }

    /// A call of a kernel with these arguments instead.
    pub(crate) fn kernel(&self, kernel: Kernel, arguments: &[Typed], carrier: DataType) -> Typed {
        call_kernel(self.catalog, (self.key, kernel), arguments, self.result, carrier)
    }
}

/// The implementation of a function, by the server's name of it.
pub(crate) fn implementation(key: &str) -> Option<Implementation> {
    comparison::find(key)
        .or_else(|| integers::find(key))
        .or_else(|| bit_strings::find(key))
        .or_else(|| buckets::find(key))
        .or_else(|| bit_places::find(key))
        .or_else(|| chance::find(key))
        .or_else(|| clock::find(key))
        .or_else(|| samples::find(key))
        .or_else(|| floats::find(key))
        .or_else(|| library_math::find(key))
        .or_else(|| degrees::find(key))
        .or_else(|| encodings::find(key))
        .or_else(|| numbers::find(key))
        .or_else(|| numeric::find(key))
        .or_else(|| number_pictures::find(key))
        .or_else(|| text::find(key))
        .or_else(|| datetime::find(key))
        .or_else(|| logic::find(key))
        .or_else(|| arrays::find(key))
        .or_else(|| ranges::find(key))
        .or_else(|| system::find(key))
        .or_else(|| format_type::find(key))
        .or_else(|| definitions::find(key))
        .or_else(|| text_search::find(key))
        .or_else(|| addresses::find(key))
        .or_else(|| money::find(key))
        .or_else(|| geometry::find(key))
        .or_else(|| object_numbers::find(key))
        .or_else(|| log_positions::find(key))
        .or_else(|| large_objects::find(key))
        .or_else(|| uuids::find(key))
        .or_else(|| valid_texts::find(key))
        .or_else(|| enums::find(key))
        .or_else(|| binary_forms::find(key))
        .or_else(|| object_names::find(key))
        .or_else(|| aggregates::find(key))
        .or_else(|| hashes::find(key))
        .or_else(|| extensions::find(key))
}
