//! Whether an object is what its name alone means: the `pg_…_is_visible` functions.
//!
//! Invariant: an object is visible if its schema is on the search path and no schema before it has another of the same key;
//! NULL stands for an object that there is not.
//!
//! Source: `RelationIsVisible` and its kin in `src/backend/catalog/namespace.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt32Type;
use pagemill_format::Oid;

use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::{SystemRow, for_each_row};

/// A kind of object that lies in schemas.
struct Kind {
    table: &'static str,
    name: &'static str,
    namespace: &'static str,
    /// What objects of one name are told apart by.
    others: &'static [&'static str],
    key: fn(&mut SystemRow<'_>) -> Result<Vec<u32>>,
}

fn by_name(_: &mut SystemRow<'_>) -> Result<Vec<u32>> {
    Ok(Vec::new())
}

fn by_number(row: &mut SystemRow<'_>) -> Result<Vec<u32>> {
    Ok(vec![row.oid(3).0])
}

fn by_two(row: &mut SystemRow<'_>) -> Result<Vec<u32>> {
    Ok(vec![row.oid(3).0, row.oid(4).0])
}

fn by_list(row: &mut SystemRow<'_>) -> Result<Vec<u32>> {
    Ok(row.oids(3)?.iter().map(|oid| oid.0).collect())
}

const fn named(table: &'static str, name: &'static str, namespace: &'static str) -> Kind {
    Kind { table, name, namespace, others: &[], key: by_name }
}

fn kind(key: &str) -> Option<Kind> {
    Some(match key {
        "pg_table_is_visible" => named("pg_class", "relname", "relnamespace"),
        "pg_type_is_visible" => named("pg_type", "typname", "typnamespace"),
        "pg_conversion_is_visible" => named("pg_conversion", "conname", "connamespace"),
        "pg_statistics_obj_is_visible" => named("pg_statistic_ext", "stxname", "stxnamespace"),
        "pg_ts_parser_is_visible" => named("pg_ts_parser", "prsname", "prsnamespace"),
        "pg_ts_dict_is_visible" => named("pg_ts_dict", "dictname", "dictnamespace"),
        "pg_ts_template_is_visible" => named("pg_ts_template", "tmplname", "tmplnamespace"),
        "pg_ts_config_is_visible" => named("pg_ts_config", "cfgname", "cfgnamespace"),
        "pg_function_is_visible" => Kind {
            others: &["proargtypes"],
            key: by_list,
            ..named("pg_proc", "proname", "pronamespace")
        },
        "pg_operator_is_visible" => Kind {
            others: &["oprleft", "oprright"],
            key: by_two,
            ..named("pg_operator", "oprname", "oprnamespace")
        },
        "pg_opclass_is_visible" => Kind {
            others: &["opcmethod"],
            key: by_number,
            ..named("pg_opclass", "opcname", "opcnamespace")
        },
        "pg_opfamily_is_visible" => Kind {
            others: &["opfmethod"],
            key: by_number,
            ..named("pg_opfamily", "opfname", "opfnamespace")
        },
        _ => return None,
    })
}

pub(super) fn find(key: &str) -> Option<Implementation> {
    match key {
        "pg_is_other_temp_schema" => Some(Implementation::Kernel(of_other_sessions)),
        "pg_collation_is_visible" => Some(Implementation::Kernel(visible)),
        _ => kind(key).map(|_| Implementation::Kernel(visible)),
    }
}

/// Whose temporary tables a schema has: never this session's, which makes none.
fn of_other_sessions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let names = call.catalog.database().namespaces();
    let names = names.map_err(|error| statement_error(error.into()))?;
    let is_temporary =
        |name: &[u8]| name.starts_with(b"pg_temp_") || name.starts_with(b"pg_toast_temp_");
    let one = |number: u32| names.get(&Oid(number)).is_some_and(|name| is_temporary(name));
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(|number| number.map(one)).collect::<Vec<Option<bool>>>())
}

/// What an object is found by: its name, and what else tells it apart.
type Key = (String, Vec<u32>);

fn visible(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let visibility = Visibility::of(&call.catalog, &call.key).map_err(statement_error)?;
    let one = |number: u32| {
        let Visibility((_, of_number)) = &visibility;
        of_number.get(&Oid(number)).map(|_| visibility.has(Oid(number)))
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(|number| number.and_then(one)).collect::<Vec<Option<bool>>>())
}

/// The place of each key's first object, and each object's key and place on the search path.
type Objects = (HashMap<Key, usize>, HashMap<Oid, (Key, Option<usize>)>);

fn objects(catalog: &Catalog, kind: &Kind) -> Result<Objects> {
    let columns = [&["oid", kind.name, kind.namespace], kind.others].concat();
    let mut found = Objects::default();
    for_each_row(catalog.values(), kind.table, &columns, |row| {
        let key = (row.name(1), (kind.key)(row)?);
        add(&mut found, row.oid(0), key, place(catalog, row.oid(2)));
        Ok(())
    })?;
    Ok(found)
}

/// Those of another encoding than the database's have no place.
fn collations(catalog: &Catalog) -> Result<Objects> {
    let encoding = catalog.database().row().encoding;
    let columns = ["oid", "collname", "collnamespace", "collencoding"];
    let mut found = Objects::default();
    for_each_row(catalog.values(), "pg_collation", &columns, |row| {
        let is_usable = row.int4(3) == -1 || row.int4(3) == encoding;
        let place = place(catalog, row.oid(2)).filter(|_| is_usable);
        add(&mut found, row.oid(0), (row.name(1), Vec::new()), place);
        Ok(())
    })?;
    Ok(found)
}

/// Which objects of a kind are what their names alone mean.
pub(super) struct Visibility(Objects);

impl Visibility {
    /// Of those that the function of this name tells of.
    pub(super) fn of(catalog: &Catalog, key: &str) -> Result<Self> {
        Ok(Self(match kind(key) {
            Some(kind) => objects(catalog, &kind)?,
            None => collations(catalog)?,
        }))
    }

    pub(super) fn has(&self, object: Oid) -> bool {
        let Self((first, of_number)) = self;
        of_number
            .get(&object)
            .is_some_and(|(key, place)| place.is_some_and(|place| first.get(key) == Some(&place)))
    }
}

fn place(catalog: &Catalog, namespace: Oid) -> Option<usize> {
    catalog.search_path().iter().position(|each| *each == namespace)
}

fn add((first, of_number): &mut Objects, oid: Oid, key: Key, place: Option<usize>) {
    if let Some(place) = place {
        let known = first.entry(key.clone()).or_insert(place);
        *known = place.min(*known);
    }
    of_number.insert(oid, (key, place));
}
