//! The sequence that a column owns, `pg_get_serial_sequence`, and where a sequence stands.
//!
//! Source: `pg_get_serial_sequence` in `src/backend/utils/adt/ruleutils.c`, `pg_sequence_last_value` and `pg_get_sequence_data` in
//! `src/backend/commands/sequence.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, UInt32Type};
use datafusion::scalar::ScalarValue;
use pagemill_cluster::RelationKind;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::text_form::read;
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::system_rows::for_each_row;
use crate::types::PgType;

/// `pg_class` as what depends and what it depends on.
const PG_CLASS: Oid = Oid(1259);

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_get_serial_sequence" => owned,
        "pg_sequence_last_value" => last_values,
        _ => return None,
    }))
}

/// What a sequence holds: its last value, and whether that was given out. `None` for what is no sequence.
pub(in super::super) fn stored(catalog: &Catalog, sequence: Oid) -> Outcome<Option<(i64, bool)>> {
    let class = catalog.database().class(sequence);
    if class.is_none_or(|class| class.kind != RelationKind::Sequence) {
        return Ok(None);
    }
    let found = catalog.database().sequence(sequence);
    Ok(Some(found.map_err(|error| statement_error(error.into()))?.stored()))
}

/// The value that was given out last; NULL before the first.
fn last_values(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let one = |number: Option<u32>| -> Outcome<Option<i64>> {
        let Some(number) = number else { return Ok(None) };
        let stored = stored(&call.catalog, Oid(number))?;
        let (last, is_called) = stored.ok_or_else(|| {
            StatementError::new(SqlState("42809"), format!("{number} is not a sequence"))
        })?;
        Ok(is_called.then_some(last))
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(one).collect::<Outcome<Vec<Option<i64>>>>()?)
}

/// Sequences by the table and the number of the column that owns them.
fn owned_sequences(catalog: &Catalog) -> Result<HashMap<(Oid, i32), Oid>> {
    let classes = catalog.database().classes().iter();
    let kinds: HashMap<Oid, RelationKind> = classes.map(|class| (class.oid, class.kind)).collect();
    let columns = ["classid", "objid", "refclassid", "refobjid", "refobjsubid", "deptype"];
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_depend", &columns, |row| {
        let is_of_relations = row.oid(0) == PG_CLASS && row.oid(2) == PG_CLASS;
        let is_owned = is_of_relations && matches!(row.byte(5), b'a' | b'i') && row.int4(4) != 0;
        if is_owned && kinds.get(&row.oid(1)) == Some(&RelationKind::Sequence) {
            found.entry((row.oid(3), row.int4(4))).or_insert(row.oid(1));
        }
        Ok(())
    })?;
    Ok(found)
}

fn owned(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let catalog = &call.catalog;
    let sequences = owned_sequences(catalog).map_err(statement_error)?;
    let dictionary = catalog.dictionary().map_err(statement_error)?;
    let (tables, columns) = (strings(&arguments[0]), strings(&arguments[1]));
    let one = |row: usize| -> Outcome<Option<String>> {
        if tables.is_null(row) || columns.is_null(row) {
            return Ok(None);
        }
        let (table, column) = (tables.value(row), columns.value(row));
        let relation = read(catalog, PgType::new(oid::REGCLASS), &DataType::UInt32, table);
        let ScalarValue::UInt32(Some(relation)) = relation.map_err(statement_error)? else {
            unreachable!("a regclass is carried as a number")
        };
        let number = dictionary.column_number(Oid(relation), column).ok_or_else(|| {
            let name = dictionary.bare_name(Oid(relation)).unwrap_or(table);
            let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
            StatementError::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        let sequence = sequences.get(&(Oid(relation), number));
        Ok(sequence.map(|oid| dictionary.qualified_relation_name(*oid)).transpose()?)
    };
    Made::column((0..tables.len()).map(one).collect::<Outcome<Vec<Option<String>>>>()?)
}
