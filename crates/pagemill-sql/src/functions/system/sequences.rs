//! The sequence that a column owns: `pg_get_serial_sequence`.
//!
//! Source: `pg_get_serial_sequence` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
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
    (key == "pg_get_serial_sequence").then_some(Implementation::Kernel(owned))
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
