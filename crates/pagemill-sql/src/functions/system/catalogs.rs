//! Small questions about rows of the catalogs: encodings, tablespaces, what can be published.
//!
//! Source: `src/backend/utils/adt/misc.c`, `src/backend/utils/mb/mbutils.c`, `is_publishable_class` in
//! `src/backend/catalog/pg_publication.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{Array as _, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type, UInt32Type};
use datafusion::logical_expr::lit;
use pagemill_cluster::database::FIRST_NORMAL_OID;
use pagemill_cluster::{ClassRow, Persistence, RelationKind};
use pagemill_format::Oid;
use pagemill_types::encoding::{encoding_id, encoding_name};

use super::super::arrays::changes::arrays;
use super::super::arrays::value::ArrayParts;
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Build, Implementation, KernelCall};
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "getdatabaseencoding" => Implementation::Build(own_encoding),
        "PG_encoding_to_char" => Implementation::Kernel(encodings),
        "pg_encoding_max_length_sql" => Implementation::Kernel(longest_characters),
        "PG_char_to_encoding" => Implementation::Kernel(encodings_named),
        "pg_tablespace_location" => Implementation::Kernel(locations),
        "pg_relation_is_publishable" => Implementation::Kernel(publishable),
        // None can be had here.
        "pg_advisory_unlock_all" => {
            Implementation::Build(|build| Ok(Typed::new(lit(""), build.result, DataType::Utf8)))
        }
        // Nobody writes here, and no server is behind the files.
        "pg_is_in_recovery" => Implementation::Build(|build| {
            crate::coerce::constant(build.catalog, build.result, "false")
        }),
        // Answers are in no other.
        "pg_client_encoding" => Implementation::Build(|build| {
            crate::coerce::constant(build.catalog, build.result, "UTF8")
        }),
        // Nothing is compiled here.
        "pg_jit_available" => Implementation::Build(|build| {
            crate::coerce::constant(build.catalog, build.result, "false")
        }),
        // NULL on a server that is no standby.
        "pg_last_wal_receive_lsn" | "pg_last_wal_replay_lsn" | "pg_last_xact_replay_timestamp" => {
            Implementation::Build(|build| crate::coerce::null_of(build.catalog, build.result))
        }
        // Nobody waits for a lock.
        "pg_blocking_pids" | "pg_safe_snapshot_blocking_pids" => {
            Implementation::Kernel(|call, a| {
                let waiting = &a[0];
                arrays(call, waiting.len(), |_, row| {
                    Ok(waiting.is_valid(row).then(|| ArrayParts::of(Vec::new())))
                })
            })
        }
        _ => return None,
    })
}

fn own_encoding(build: &Build<'_>) -> Result<Typed> {
    let name = encoding_name(build.catalog.database().row().encoding).unwrap_or_default();
    crate::coerce::constant(build.catalog, build.result, name)
}

/// No name for a number that is none's.
fn encodings(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let name = |number: i32| encoding_name(number).unwrap_or_default().to_owned();
    let numbers = arguments[0].as_primitive::<Int32Type>();
    Made::column(numbers.iter().map(|number| number.map(name)).collect::<Vec<Option<String>>>())
}

/// The most bytes of a character, of encodings that a database here can be in, and of those of one byte.
///
/// Source: `pg_wchar_table` in `src/common/wchar.c`, `src/include/mb/pg_wchar.h`, PostgreSQL 14 to 18.
fn longest_characters(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let longest = |number: i32| {
        Ok(match number {
            // SQL_ASCII, UTF8, and LATIN1 to KOI8U.
            0 | 8..=34 => Some(1),
            6 => Some(4),
            1..=7 | 35..=41 => {
                let name = encoding_name(number).unwrap_or_default();
                return Err(StatementError::unsupported(format!("the encoding {name}")));
            }
            _ => None,
        })
    };
    let numbers = arguments[0].as_primitive::<Int32Type>();
    let found = numbers.iter().map(|number| number.map_or(Ok(None), longest));
    Made::column(found.collect::<Outcome<Vec<Option<i32>>>>()?)
}

fn encodings_named(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let number = |name: &str| encoding_id(name).unwrap_or(-1);
    let names = strings(&arguments[0]);
    Made::column(names.iter().map(|name| name.map(number)).collect::<Vec<Option<i32>>>())
}

/// Where the link leads; nothing for the two that are in the data directory.
fn locations(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    const IN_DATA_DIRECTORY: [u32; 2] = [1663, 1664];
    let places = call.catalog.database().cluster().state().tablespaces();
    let location = |number: Option<u32>| {
        let number = match number {
            None => return Ok(None),
            Some(number) if IN_DATA_DIRECTORY.contains(&number) => return Ok(Some(String::new())),
            // The database's own.
            Some(0) => call.catalog.database().row().tablespace.0,
            Some(number) => number,
        };
        if IN_DATA_DIRECTORY.contains(&number) {
            return Ok(Some(String::new()));
        }
        let missing = || {
            let message = format!("could not read symbolic link \"pg_tblspc/{number}\"");
            StatementError::new(SqlState("58P01"), message)
        };
        let found = places.iter().find(|place| place.oid.0 == number).ok_or_else(missing)?;
        Ok(Some(found.named.to_string_lossy().into_owned()))
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(location).collect::<Outcome<Vec<Option<String>>>>()?)
}

fn is_publishable(class: &ClassRow) -> bool {
    matches!(class.kind, RelationKind::Table | RelationKind::PartitionedTable)
        && matches!(class.persistence, Persistence::Permanent)
        && class.oid >= FIRST_NORMAL_OID
}

fn publishable(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let classes = call.catalog.database().classes();
    let classes: HashMap<Oid, &ClassRow> = classes.iter().map(|c| (c.oid, c)).collect();
    let one = |number: Option<u32>| classes.get(&Oid(number?)).map(|class| is_publishable(class));
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(one).collect::<Vec<Option<bool>>>())
}
