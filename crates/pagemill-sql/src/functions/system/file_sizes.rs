//! Bytes of the files of relations and databases, as they lie on disk: `pg_relation_size` and its kin.
//!
//! Invariant: NULL for a relation that there is not; 0 for one without files.
//!
//! Source: `src/backend/utils/adt/dbsize.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt32Type;
use pagemill_cluster::{ClassRow, Database};
use pagemill_format::{Fork, Oid};

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::error::{Error, Result, SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_relation_size(regclass)" => main_forks,
        "pg_relation_size" => forks,
        "pg_table_size" => tables,
        "pg_indexes_size" => indexes,
        "pg_total_relation_size" => totals,
        "pg_database_size_oid" => databases,
        "pg_database_size_name" => databases_named,
        "pg_tablespace_size_oid" => tablespaces,
        "pg_tablespace_size_name" => tablespaces_named,
        _ => return None,
    }))
}

/// The relations of a database, with what belongs to each.
struct Relations<'d> {
    database: &'d Database,
    classes: HashMap<Oid, &'d ClassRow>,
    indexes: HashMap<Oid, Vec<Oid>>,
}

impl<'d> Relations<'d> {
    fn read(call: &'d KernelCall) -> Result<Self> {
        let database = call.catalog.database();
        let classes = database.classes().iter().map(|class| (class.oid, class)).collect();
        let mut indexes: HashMap<Oid, Vec<Oid>> = HashMap::new();
        let columns = ["indrelid", "indexrelid"];
        crate::system_rows::for_each_row(call.catalog.values(), "pg_index", &columns, |row| {
            indexes.entry(row.oid(0)).or_default().push(row.oid(1));
            Ok(())
        })?;
        Ok(Self { database, classes, indexes })
    }

    fn fork(&self, class: &ClassRow, fork: Fork) -> Result<u64> {
        if !class.kind.has_files() {
            return Ok(0);
        }
        let base = self.database.base_path(class)?;
        let files = self.database.cluster().fork(&base, fork)?;
        Ok(files.map_or(0, |files| files.bytes()))
    }

    fn all_forks(&self, relation: Oid) -> Result<u64> {
        let Some(class) = self.classes.get(&relation) else { return Ok(0) };
        Fork::ALL.iter().map(|fork| self.fork(class, *fork)).sum()
    }

    fn indexes(&self, table: Oid) -> Result<u64> {
        let of_table = self.indexes.get(&table).into_iter().flatten();
        of_table.map(|index| self.all_forks(*index)).sum()
    }

    /// With what was stored out of line.
    fn table(&self, table: Oid) -> Result<u64> {
        let toast = self.classes.get(&table).map_or(Oid(0), |class| class.toast);
        let of_toast = self.all_forks(toast)? + self.indexes(toast)?;
        Ok(self.all_forks(table)? + of_toast)
    }
}

fn sized(
    call: &KernelCall,
    arguments: &[ArrayRef],
    size: impl Fn(&Relations<'_>, &ClassRow, usize) -> Outcome<u64>,
) -> Outcome<ArrayRef> {
    let relations = Relations::read(call).map_err(statement_error)?;
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let one = |(row, number): (usize, Option<u32>)| {
        let class = number.and_then(|number| relations.classes.get(&Oid(number)));
        // Files are never as long as numbers go.
        class.map(|class| size(&relations, class, row).map(u64::cast_signed)).transpose()
    };
    Made::column(numbers.iter().enumerate().map(one).collect::<Outcome<Vec<Option<i64>>>>()?)
}

fn main_forks(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    sized(call, arguments, |all, class, _| all.fork(class, Fork::Main).map_err(statement_error))
}

fn forks(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let names = strings(&arguments[1]);
    sized(call, arguments, |all, class, row| {
        let name = names.value(row);
        let invalid = || {
            let hint = "Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".";
            StatementError::new(SqlState::INVALID_PARAMETER, "invalid fork name").with_hint(hint)
        };
        let fork = Fork::ALL.iter().find(|fork| fork.name() == name).ok_or_else(invalid)?;
        all.fork(class, *fork).map_err(statement_error)
    })
}

fn tables(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    sized(call, arguments, |all, class, _| all.table(class.oid).map_err(statement_error))
}

fn indexes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    sized(call, arguments, |all, class, _| all.indexes(class.oid).map_err(statement_error))
}

fn totals(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    sized(call, arguments, |all, class, _| {
        let total = all.table(class.oid).and_then(|table| Ok(table + all.indexes(class.oid)?));
        total.map_err(statement_error)
    })
}

/// A database by number and name, and its bytes.
type SizedDatabase = (Oid, Box<[u8]>, i64);

fn database_sizes(call: &KernelCall) -> Outcome<Vec<SizedDatabase>> {
    let found = pagemill_engine::list::databases(call.catalog.database().cluster());
    let found = found.map_err(|error| statement_error(Error::from(error)))?;
    let sized = |entry: pagemill_engine::list::DatabaseEntry| {
        (entry.row.oid, entry.row.name, entry.bytes.cast_signed())
    };
    Ok(found.into_iter().map(sized).collect())
}

fn databases(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let sizes = database_sizes(call)?;
    let size = |number: u32| sizes.iter().find(|(oid, ..)| oid.0 == number).map(|(.., size)| *size);
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(|number| number.and_then(size)).collect::<Vec<Option<i64>>>())
}

fn databases_named(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let sizes = database_sizes(call)?;
    let size = |name: Option<&str>| {
        let Some(name) = name else { return Ok(None) };
        let found = sizes.iter().find(|(_, known, _)| **known == *name.as_bytes());
        let missing = || {
            let message = format!("database \"{name}\" does not exist");
            StatementError::new(SqlState("3D000"), message)
        };
        found.map(|(.., size)| Some(*size)).ok_or_else(missing)
    };
    Made::column(strings(&arguments[0]).iter().map(size).collect::<Outcome<Vec<Option<i64>>>>()?)
}

fn tablespace(call: &KernelCall, number: Oid) -> Outcome<Option<i64>> {
    let cluster = call.catalog.database().cluster();
    let bytes = pagemill_engine::list::tablespace_bytes(cluster, number);
    let bytes = bytes.map_err(|error| statement_error(Error::from(error)))?;
    Ok(bytes.map(u64::cast_signed))
}

fn tablespaces(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let size = |number: Option<u32>| number.map_or(Ok(None), |oid| tablespace(call, Oid(oid)));
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(size).collect::<Outcome<Vec<Option<i64>>>>()?)
}

fn tablespaces_named(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let known = call.catalog.database().cluster().tablespaces();
    let known = known.map_err(|error| statement_error(error.into()))?;
    let size = |name: Option<&str>| {
        let Some(name) = name else { return Ok(None) };
        let found = known.iter().find(|(_, known)| ***known == *name.as_bytes());
        let missing = || {
            let message = format!("tablespace \"{name}\" does not exist");
            StatementError::new(SqlState::UNDEFINED_OBJECT, message)
        };
        tablespace(call, *found.ok_or_else(missing)?.0)
    };
    Made::column(strings(&arguments[0]).iter().map(size).collect::<Outcome<Vec<Option<i64>>>>()?)
}
