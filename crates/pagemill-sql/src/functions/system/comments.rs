//! Comments on objects: `obj_description` and its kin.
//!
//! Source: `src/backend/catalog/system_functions.sql`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Int32Type, UInt32Type};
use pagemill_format::Oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::{PG_CATALOG, for_each_row};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "obj_description(oid,name)" => of_objects,
        "obj_description(oid)" => of_any,
        "col_description(oid,int4)" => of_columns,
        "shobj_description(oid,name)" => of_shared,
        _ => return None,
    }))
}

/// The OID of one of the system's catalogs.
pub(crate) fn class(catalog: &Catalog, name: &str) -> Option<Oid> {
    let is_it =
        |c: &&pagemill_cluster::ClassRow| c.namespace == PG_CATALOG && *c.name == *name.as_bytes();
    catalog.database().classes().iter().find(is_it).map(|class| class.oid)
}

/// Comments by object, class and column.
pub(crate) fn comments(catalog: &Catalog) -> Result<HashMap<(Oid, Oid, i32), String>> {
    let mut found = HashMap::new();
    let columns = ["objoid", "classoid", "objsubid", "description"];
    for_each_row(catalog.values(), "pg_description", &columns, |row| {
        let key = (row.oid(0), row.oid(1), row.int4(2));
        if let Some(text) = row.text(3)? {
            found.insert(key, text);
        }
        Ok(())
    })?;
    Ok(found)
}

fn shared_comments(catalog: &Catalog) -> Result<HashMap<(Oid, Oid, i32), String>> {
    let mut found = HashMap::new();
    let columns = ["objoid", "classoid", "description"];
    for_each_row(catalog.values(), "pg_shdescription", &columns, |row| {
        let key = (row.oid(0), row.oid(1), 0);
        if let Some(text) = row.text(2)? {
            found.insert(key, text);
        }
        Ok(())
    })?;
    Ok(found)
}

fn of_objects(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    by_class(call, arguments, &comments(&call.catalog).map_err(statement_error)?)
}

fn of_shared(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    by_class(call, arguments, &shared_comments(&call.catalog).map_err(statement_error)?)
}

fn by_class(
    call: &KernelCall,
    arguments: &[ArrayRef],
    comments: &HashMap<(Oid, Oid, i32), String>,
) -> Outcome<ArrayRef> {
    let (numbers, names) = (arguments[0].as_primitive::<UInt32Type>(), strings(&arguments[1]));
    let classes: HashMap<&str, Oid> = names
        .iter()
        .flatten()
        .collect::<HashSet<&str>>()
        .into_iter()
        .filter_map(|name| Some((name, class(&call.catalog, name)?)))
        .collect();
    let one = |(number, name): (Option<u32>, Option<&str>)| {
        comments.get(&(Oid(number?), *classes.get(name?)?, 0)).cloned()
    };
    Made::column(numbers.iter().zip(names.iter()).map(one).collect::<Vec<Option<String>>>())
}

/// Without the catalog's name an OID may mean several objects: the server's index has the one of the least catalog first.
fn of_any(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let all = comments(&call.catalog).map_err(statement_error)?;
    let mut first: HashMap<Oid, (Oid, &String)> = HashMap::new();
    for ((object, class, column), text) in &all {
        let known = first.get(object).is_some_and(|(known, _)| known < class);
        if *column == 0 && !known {
            first.insert(*object, (*class, text));
        }
    }
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let one = |number: Option<u32>| first.get(&Oid(number?)).map(|(_, text)| (*text).clone());
    Made::column(numbers.iter().map(one).collect::<Vec<Option<String>>>())
}

fn of_columns(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let all = comments(&call.catalog).map_err(statement_error)?;
    let pg_class = class(&call.catalog, "pg_class");
    let tables = arguments[0].as_primitive::<UInt32Type>();
    let columns = arguments[1].as_primitive::<Int32Type>();
    let one = |(table, column): (Option<u32>, Option<i32>)| {
        all.get(&(Oid(table?), pg_class?, column?)).cloned()
    };
    Made::column(tables.iter().zip(columns.iter()).map(one).collect::<Vec<Option<String>>>())
}
