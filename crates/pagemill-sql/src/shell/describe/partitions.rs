//! What `\d NAME` says of a partition and of a partitioned table: whose it is, within which bounds, by which key.
//!
//! Source: `describeOneTableDetails` in `src/bin/psql/describe.c`, `get_range_partbound_string` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 15.

use pagemill_cluster::partition_bounds::{PartitionBound, RangeDatum};
use pagemill_format::Oid;
use pagemill_format::node_tree::Const;

use super::expression::{UNWRITTEN, Writer};
use super::names::{Class, Names};
use crate::definitions::{self, IndexWriter, PartitionWriter, Style};
use crate::error::Result;
use crate::system_rows::for_each_row;

/// Pairs of child and parent, in the order of `inhseqno`.
pub(super) fn inheritance(names: &Names<'_>) -> Result<Vec<(Oid, Oid)>> {
    let mut found = Vec::new();
    for_each_row(
        names.catalog.values(),
        "pg_inherits",
        &["inhrelid", "inhparent", "inhseqno"],
        |row| {
            found.push((row.int4(2), row.oid(0), row.oid(1)));
            Ok(())
        },
    )?;
    found.sort_by_key(|(number, ..)| *number);
    Ok(found.into_iter().map(|(_, child, parent)| (child, parent)).collect())
}

pub(super) fn partition_footers(
    names: &Names<'_>,
    class: &Class,
    is_verbose: bool,
) -> Result<Vec<String>> {
    let mut footers = Vec::new();
    if class.is_partition {
        let parents = inheritance(names)?;
        if let Some((_, parent)) = parents.iter().find(|(child, _)| *child == class.oid) {
            let bound = if matches!(class.kind, b'i' | b'I') {
                String::new()
            } else {
                bound_of(names, *parent, class.oid)?
            };
            footers.push(format!("Partition of: {} {bound}", names.relation(*parent)));
            if is_verbose && !matches!(class.kind, b'i' | b'I') {
                let writer = PartitionWriter::new(names.catalog)?;
                footers.push(match writer.condition(class.oid) {
                    Ok(Some(condition)) => format!("Partition constraint: {condition}"),
                    Ok(None) => "No partition constraint".to_owned(),
                    Err(_) => format!("Partition constraint: {UNWRITTEN}"),
                });
            }
        }
    }
    if class.kind == b'p' {
        let keys = definitions::partition_keys(names.catalog)?;
        let writer = IndexWriter::new(names.catalog, Style::new(true))?;
        let written = keys.get(&class.oid).map(|(how, keys)| writer.partition_key(*how, keys));
        let key = written.and_then(std::result::Result::ok);
        let key = key.unwrap_or_else(|| UNWRITTEN.to_owned());
        footers.push(format!("Partition key: {key}"));
    }
    Ok(footers)
}

fn bound_of(names: &Names<'_>, parent: Oid, partition: Oid) -> Result<String> {
    let partitions = names.catalog.database().partitions_of(parent)?;
    let writer = Writer::new(names, partition);
    let bound = partitions.iter().find(|(oid, _)| *oid == partition).map(|(_, bound)| bound);
    Ok(bound.map_or(String::new(), |bound| bound_text(&writer, bound)))
}

pub(super) fn bound_text(writer: &Writer<'_, '_>, bound: &PartitionBound) -> String {
    let value = |value: &Const| writer.bound(value).unwrap_or_else(|| UNWRITTEN.to_owned());
    let datum = |datum: &RangeDatum| match datum {
        RangeDatum::MinValue => "MINVALUE".to_owned(),
        RangeDatum::MaxValue => "MAXVALUE".to_owned(),
        RangeDatum::Value(constant) => value(constant),
    };
    let list = |data: &[RangeDatum]| data.iter().map(datum).collect::<Vec<_>>().join(", ");
    match bound {
        PartitionBound::Default => "DEFAULT".to_owned(),
        PartitionBound::List(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("FOR VALUES IN ({})", values.join(", "))
        }
        PartitionBound::Range { lower, upper } => {
            format!("FOR VALUES FROM ({}) TO ({})", list(lower), list(upper))
        }
        PartitionBound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    }
}
