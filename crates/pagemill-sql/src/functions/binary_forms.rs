//! `float8send`, `textsend` and their kin called as functions: the binary form of a value as a bytea.
//!
//! Invariant: only functions of types whose binary form is one and the same on all versions are known here.
//!
//! Source: the functions `*send` in `src/backend/utils/adt`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};

use super::rows::{Made, Outcome};
use super::system::statement_error;
use super::text_form::Printer;
use super::{Implementation, KernelCall};
use crate::binary_form::{BinaryForm, print};

/// The functions, each of one type.
const FUNCTIONS: [&str; 58] = [
    "array_send",
    "bit_send",
    "boolsend",
    "box_send",
    "bpcharsend",
    "byteasend",
    "cash_send",
    "charsend",
    "cidr_send",
    "cidsend",
    "circle_send",
    "date_send",
    "float4send",
    "float8send",
    "inet_send",
    "int2send",
    "int4send",
    "int8send",
    "interval_send",
    "json_send",
    "jsonb_send",
    "line_send",
    "lseg_send",
    "macaddr_send",
    "macaddr8_send",
    "multirange_send",
    "namesend",
    "numeric_send",
    "oidsend",
    "path_send",
    "pg_lsn_send",
    "point_send",
    "poly_send",
    "range_send",
    "regclasssend",
    "regcollationsend",
    "regconfigsend",
    "regdictionarysend",
    "regnamespacesend",
    "regoperatorsend",
    "regopersend",
    "regproceduresend",
    "regprocsend",
    "regrolesend",
    "regtypesend",
    "textsend",
    "tidsend",
    "time_send",
    "timestamp_send",
    "timestamptz_send",
    "timetz_send",
    "tsquerysend",
    "tsvectorsend",
    "uuid_send",
    "varbit_send",
    "varcharsend",
    "xid8send",
    "xidsend",
];

pub(super) fn find(key: &str) -> Option<Implementation> {
    FUNCTIONS.contains(&key).then_some(Implementation::Kernel(sent))
}

fn sent(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (ty, values) = (call.arguments[0], &arguments[0]);
    let form = BinaryForm::of(&call.catalog, ty).map_err(statement_error)?;
    let mut printer = Printer::new(&call.catalog, ty).map_err(statement_error)?;
    let mut one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        if values.is_null(row) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        print((&mut printer, &form), values, row, &mut bytes).map_err(statement_error)?;
        Ok(Some(bytes))
    };
    Made::column((0..values.len()).map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}
