//! Where the files of relations lie: `pg_relation_filepath`, `pg_relation_filenode` and `pg_filenode_relation`.
//!
//! Invariant: NULL for a relation that there is not, or that has no files; paths are told from the data directory.
//!
//! Source: `src/backend/utils/adt/dbsize.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, UInt32Array};
use arrow::datatypes::UInt32Type;
use pagemill_cluster::{ClassRow, Database};
use pagemill_format::Oid;

use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::error::{Error, Result};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_relation_filepath" => paths,
        "pg_relation_filenode" => file_numbers,
        "pg_filenode_relation" => relations,
        _ => return None,
    }))
}

/// What `of` tells of each relation that has files.
fn told<T>(
    call: &KernelCall,
    argument: &ArrayRef,
    of: impl Fn(&Database, &ClassRow) -> Result<T>,
) -> Outcome<Vec<Option<T>>> {
    let database = call.catalog.database();
    let classes: HashMap<Oid, &ClassRow> =
        database.classes().iter().map(|class| (class.oid, class)).collect();
    let one = |number: Option<u32>| {
        let class = number.and_then(|number| classes.get(&Oid(number)));
        let class = class.filter(|class| class.kind.has_files());
        class.map(|class| of(database, class).map_err(statement_error)).transpose()
    };
    argument.as_primitive::<UInt32Type>().iter().map(one).collect()
}

fn path(database: &Database, class: &ClassRow) -> Result<String> {
    let base = database.base_path(class)?;
    let below = base.strip_prefix(database.cluster().path()).unwrap_or(&base); // default: a path that is not below is told whole
    Ok(below.display().to_string())
}

fn file_number(database: &Database, class: &ClassRow) -> Result<u32> {
    Ok(database.locator(class)?.number.0)
}

fn paths(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    Made::column(told(call, &arguments[0], path)?)
}

fn file_numbers(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    Ok(Arc::new(UInt32Array::from(told(call, &arguments[0], file_number)?)))
}

/// Relations by tablespace and number, where 0 stands for the tablespace of the database.
fn relations(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let database = call.catalog.database();
    let mut known = HashMap::new();
    for class in database.classes().iter().filter(|class| class.kind.has_files()) {
        let place = database.locator(class).map_err(|error| statement_error(Error::from(error)))?;
        known.insert((place.tablespace, place.number), class.oid.0);
    }
    let (tablespaces, numbers) =
        (arguments[0].as_primitive::<UInt32Type>(), arguments[1].as_primitive::<UInt32Type>());
    let one = |row: usize| {
        if tablespaces.is_null(row) || numbers.is_null(row) || numbers.value(row) == 0 {
            return None;
        }
        let tablespace = match Oid(tablespaces.value(row)) {
            Oid::INVALID => database.row().tablespace,
            named => named,
        };
        known.get(&(tablespace, Oid(numbers.value(row)))).copied()
    };
    Ok(Arc::new((0..tablespaces.len()).map(one).collect::<UInt32Array>()))
}
