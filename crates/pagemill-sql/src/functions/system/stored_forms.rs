//! How values are stored: `pg_column_size`, `pg_column_compression` and `pg_column_toast_chunk_id`.
//!
//! A scan tells it of a column of variable length, in another column of its own. Of a value that was computed, and of one that came
//! through a query of its own, only a server knows in what form it has it.
//!
//! Invariant: told of columns of tables alone, and of types of a fixed length, whose values have one form; anything else is refused.
//!
//! Source: `pg_column_size` and its kin in `src/backend/utils/adt/varlena.c`, `toast_datum_size` in
//! `src/backend/access/common/detoast.c`, `toast_get_compression_id` in `toast_compression.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use pagemill_cluster::RelationKind;
use pagemill_format::varlena::{Compression, Varlena};
use pagemill_types::builtin::oid;

use super::super::rows::{Made, Outcome, one};
use super::super::{Build, Implementation, Kernel, KernelCall};
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::scan::stored_form;
use crate::typed::Typed;
use crate::types::PgType;

pub(super) fn find(key: &str) -> Option<Implementation> {
    kernel(key).map(|_| Implementation::Build(told))
}

fn kernel(key: &str) -> Option<Kernel> {
    Some(match key {
        "pg_column_size" => |_, a| one(a, |form: &[u8]| Ok(Form::read(form)?.bytes)),
        "pg_column_compression" => |_, a| one(a, |form: &[u8]| Ok(Form::read(form)?.method())),
        "pg_column_toast_chunk_id" => |_, a| one(a, |form: &[u8]| Ok(Form::read(form)?.chunk)),
        _ => return None,
    })
}

fn told(build: &Build<'_>) -> Result<Typed> {
    let refused = || unsupported(format!("{} of what is no column of a table", build.key));
    let ([of], Some(kernel)) = (build.arguments, kernel(build.key)) else { return refused() };
    let carrier = crate::coerce::carrier_of(build.catalog, build.result);
    let row = build.catalog.type_row(of.ty.oid).filter(|_| !of.is_row());
    match row.map(|row| row.length) {
        Some(1..) if build.key == "pg_column_size" => {
            Ok(build.kernel(fixed_size, build.arguments, carrier))
        }
        Some(1..) => crate::coerce::null_of(build.catalog, build.result),
        Some(-1) => match form_of(build, of)? {
            Some(form) => Ok(build.kernel(kernel, &[form], carrier)),
            None => refused(),
        },
        _ => refused(),
    }
}

/// The column that tells how the values of a column are stored.
fn form_of(build: &Build<'_>, of: &Typed) -> Result<Option<Typed>> {
    let (Expr::Column(column), Some(origin)) = (&of.expr, of.origin) else { return Ok(None) };
    let database = build.catalog.database();
    let class = database.class(origin.relation).filter(|class| {
        use RelationKind::{MaterializedView, PartitionedTable, Table, Toast};
        matches!(class.kind, MaterializedView | PartitionedTable | Table | Toast)
    });
    let (Some(class), Ok(number)) = (class, usize::try_from(origin.number)) else {
        return Ok(None);
    };
    let relation = database.relation(class)?;
    let Some(stored) = number.checked_sub(1).and_then(|at| relation.columns.get(at)) else {
        return Ok(None);
    };
    let form = stored_form(column, &stored.display_name());
    Ok(form.map(|form| Typed::new(Expr::Column(form), PgType::new(oid::BYTEA), DataType::Binary)))
}

/// The length of all values of a type.
fn fixed_size(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let row = call.catalog.type_row(call.arguments[0].oid);
    let length = row.map(|row| i32::from(row.length));
    let values = &arguments[0];
    let one = |row: usize| length.filter(|_| !values.is_null(row));
    Made::column((0..values.len()).map(one).collect::<Vec<Option<i32>>>())
}

/// How a value is stored.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    /// Bytes, of a value in a TOAST table those there.
    bytes: i32,
    compression: Option<Compression>,
    /// The number of its chunks there.
    chunk: Option<u32>,
}

impl Form {
    /// Reads what a scan tells: the bytes in the tuple, and what they begin with.
    fn read(told: &[u8]) -> Outcome<Self> {
        let damaged = |what: &str| StatementError::new(SqlState::DATA_CORRUPTED, what.to_owned());
        let (length, begin) = told.split_first_chunk::<4>().ok_or_else(|| damaged("no value"))?;
        let bytes = i32::from_le_bytes(*length);
        match *begin {
            [1, ..] => match Varlena::parse(begin) {
                Ok(Varlena::External(pointer)) => Ok(Self {
                    bytes: pointer.stored_size as i32,
                    compression: pointer.compression,
                    chunk: Some(pointer.value_id.0),
                }),
                Ok(_) => Err(damaged("a pointer that is none")),
                Err(error) => Err(damaged(&error.to_string())),
            },
            [first, _, _, _, _, _, _, last, ..] if first & 3 == 2 => {
                let compression = match last >> 6 {
                    0 => Compression::Pglz,
                    1 => Compression::Lz4,
                    other => return Err(damaged(&format!("compression method {other}"))),
                };
                Ok(Self { bytes, compression: Some(compression), chunk: None })
            }
            _ => Ok(Self { bytes, compression: None, chunk: None }),
        }
    }

    fn method(&self) -> Option<String> {
        self.compression.map(|compression| match compression {
            Compression::Pglz => "pglz".to_owned(),
            Compression::Lz4 => "lz4".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(begin: &[u8], length: i32) -> Form {
        Form::read(&[&length.to_le_bytes(), begin].concat()).unwrap()
    }

    #[test]
    fn forms_are_told_by_what_values_begin_with() {
        assert_eq!(form(&[7, b'a', b'b'], 3), Form { bytes: 3, compression: None, chunk: None });
        let compressed = form(&[0x92, 1, 0, 0, 0xE8, 3, 0, 0x40, 0, 0], 100);
        assert_eq!((compressed.bytes, compressed.method().as_deref()), (100, Some("lz4")));
        assert!(Form::read(&[1, 0, 0, 0, 1, 18]).is_err());
        assert!(Form::read(&[1]).is_err());
    }
}
