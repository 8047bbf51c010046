//! Rows about partitions and sequences, and options taken apart.
//!
//! Source: `src/backend/utils/adt/partitionfuncs.c`, `pg_options_to_table` in `src/backend/foreign/foreign.c`,
//! `pg_sequence_parameters` in `src/backend/commands/sequence.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt32Type;
use datafusion::scalar::ScalarValue;
use pagemill_cluster::RelationKind;
use pagemill_format::Oid;
use pagemill_types::array::element_payloads;
use pagemill_types::builtin::oid;

use super::super::keys::payloads;
use super::super::rows::Outcome;
use super::super::system::sequences::stored;
use super::super::system::statement_error;
use super::{Cells, Series, SetCall, made};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::system_rows::for_each_row;

/// Parents and children of what is inherited.
struct Family {
    parents: HashMap<Oid, Oid>,
    children: HashMap<Oid, Vec<Oid>>,
}

fn family(catalog: &Catalog) -> Outcome<Family> {
    let mut family = Family { parents: HashMap::new(), children: HashMap::new() };
    let columns = ["inhrelid", "inhparent"];
    let read = for_each_row(catalog.values(), "pg_inherits", &columns, |row| {
        family.parents.insert(row.oid(0), row.oid(1));
        family.children.entry(row.oid(1)).or_default().push(row.oid(0));
        Ok(())
    });
    read.map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    // As the server locks them.
    family.children.values_mut().for_each(|children| children.sort_unstable());
    Ok(family)
}

/// The relation's kind, if it is a partition or has some.
fn partitioned(catalog: &Catalog, relation: Oid) -> Option<RelationKind> {
    let class = catalog.database().class(relation)?;
    let has_partitions =
        matches!(class.kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex);
    (has_partitions || class.is_partition).then_some(class.kind)
}

fn relation(oid: Oid) -> ScalarValue {
    ScalarValue::UInt32(Some(oid.0))
}

/// The relation itself, its parent, and so on.
pub(super) fn ancestors(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let first = Oid(arguments[0].as_primitive::<UInt32Type>().value(row));
    let mut found = Vec::new();
    if partitioned(&call.catalog, first).is_some() {
        let parents = family(&call.catalog)?.parents;
        let mut next = Some(first);
        // A circle in a damaged catalog has an end, too.
        while let Some(oid) = next.filter(|oid| !found.contains(oid)) {
            found.push(oid);
            next = parents.get(&oid).copied();
        }
    }
    Ok(made(found, |oid, out| out[0].scalar(relation(oid))))
}

/// The relation that all are partitions of, as this one is; itself where it is none's.
pub(crate) fn root(catalog: &Catalog, first: Oid) -> Outcome<Option<Oid>> {
    if partitioned(catalog, first).is_none() {
        return Ok(None);
    }
    let parents = family(catalog)?.parents;
    let mut found = vec![first];
    // A circle in a damaged catalog has an end, too.
    while let Some(oid) = found.last().and_then(|oid| parents.get(oid)) {
        if found.contains(oid) {
            break;
        }
        found.push(*oid);
    }
    Ok(found.last().copied())
}

/// One relation of a tree of partitions.
struct Member {
    oid: Oid,
    parent: Option<Oid>,
    is_leaf: bool,
    level: i32,
}

pub(super) fn tree(call: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let root = Oid(arguments[0].as_primitive::<UInt32Type>().value(row));
    let mut found: Vec<Member> = Vec::new();
    if let Some(kind) = partitioned(&call.catalog, root) {
        let family = family(&call.catalog)?;
        let is_leaf =
            !matches!(kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex);
        let parent = family.parents.get(&root).copied();
        found.push(Member { oid: root, parent, is_leaf, level: 0 });
        add_children(call, &family, &mut found);
    }
    Ok(made(found, |member, out| {
        out[0].scalar(relation(member.oid))?;
        out[1].scalar(ScalarValue::UInt32(member.parent.map(|oid| oid.0)))?;
        out[2].scalar(ScalarValue::Boolean(Some(member.is_leaf)))?;
        out[3].int4(member.level);
        Ok(())
    }))
}

/// Level by level, as the server finds them.
fn add_children(call: &SetCall, family: &Family, found: &mut Vec<Member>) {
    let mut at = 0;
    while at < found.len() {
        let (parent, level) = (found[at].oid, found[at].level + 1);
        for &child in family.children.get(&parent).into_iter().flatten() {
            let is_new = found.iter().all(|member| member.oid != child);
            let kind = partitioned(&call.catalog, child).filter(|_| is_new);
            if let Some(kind) = kind {
                let is_leaf = !matches!(
                    kind,
                    RelationKind::PartitionedTable | RelationKind::PartitionedIndex
                );
                found.push(Member { oid: child, parent: Some(parent), is_leaf, level });
            }
        }
        at += 1;
    }
}

/// One row with what a sequence holds, or with nothing.
pub(super) fn sequence(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let number = arguments[0].as_primitive::<UInt32Type>().value(row);
    let stored = stored(&call.catalog, Oid(number))?;
    Ok(made(vec![stored], |stored, out| match stored {
        Some((last, is_called)) => {
            out[0].int8(last);
            out[1].scalar(ScalarValue::Boolean(Some(is_called)))
        }
        None => out[..2].iter_mut().try_for_each(Cells::null),
    }))
}

/// A row of `pg_sequence`.
struct Counting {
    ty: Oid,
    /// Start, least, most, step.
    numbers: [i64; 4],
    has_cycle: bool,
    cache: i64,
}

/// How a sequence counts.
pub(super) fn sequence_parameters(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let sequence = Oid(arguments[0].as_primitive::<UInt32Type>().value(row));
    let columns = [
        "seqrelid",
        "seqtypid",
        "seqstart",
        "seqmin",
        "seqmax",
        "seqincrement",
        "seqcycle",
        "seqcache",
    ];
    let mut found = None;
    for_each_row(call.catalog.values(), "pg_sequence", &columns, |row| {
        if row.oid(0) == sequence {
            let numbers = [2, 3, 4, 5].map(|at| row.int8(at));
            let (ty, has_cycle, cache) = (row.oid(1), row.bool(6), row.int8(7));
            found = Some(Counting { ty, numbers, has_cycle, cache });
        }
        Ok(())
    })
    .map_err(statement_error)?;
    let missing = || {
        let message = format!("cache lookup failed for sequence {}", sequence.0);
        StatementError::new(SqlState("XX000"), message)
    };
    Ok(made(vec![found.ok_or_else(missing)?], |counting, out| {
        for (out, number) in out.iter_mut().zip(counting.numbers) {
            out.int8(number);
        }
        out[4].scalar(ScalarValue::Boolean(Some(counting.has_cycle)))?;
        out[5].int8(counting.cache);
        out[6].scalar(ScalarValue::UInt32(Some(counting.ty.0)))
    }))
}

/// `{host=h,port=1}` as names and values.
pub(super) fn options(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let damaged = |message: String| StatementError::new(SqlState::DATA_CORRUPTED, message);
    let layout = call.catalog.values().value_type(oid::TEXT);
    let layout = layout.map_err(|error| damaged(error.to_string()))?.layout;
    let items = element_payloads(payloads(&arguments[0]).value(row), layout);
    let items = items.map_err(|error| damaged(error.to_string()))?;
    let pair = |item: Vec<u8>| {
        let text = String::from_utf8_lossy(&item).into_owned();
        match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (text, None),
        }
    };
    let pairs: Vec<(String, Option<String>)> = items.into_iter().flatten().map(pair).collect();
    Ok(made(pairs, |(name, value), out: &mut [Cells]| {
        out[0].text(&name)?;
        match value {
            Some(value) => out[1].text(&value),
            None => out[1].null(),
        }
    }))
}
