//! The defaults of columns, as far as they can be had without a server: constants, the time of the transaction, and the
//! next value of a sequence.
//!
//! Invariant: what is none of these, or goes through a function that is not known here, is [`StoredDefault::Unknown`].
//!
//! Source: `build_column_default` in `src/backend/rewrite/rewriteHandler.c`, `getIdentitySequence` in
//! `src/backend/catalog/pg_depend.c`, `src/include/catalog/pg_attrdef.h`, `pg_proc.dat`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::node_tree::{Const, Node};
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::oid::REGCLASS;

use crate::database::{Database, catalog};
use crate::error::Result;
use crate::relation::{Relation, RelationKind};

/// `nextval(regclass)`.
const NEXTVAL: u32 = 1574;
/// `now()`, `transaction_timestamp()` and `statement_timestamp()`: all one moment of a load.
const NOW: [u32; 3] = [1299, 2647, 2648];
/// `CURRENT_DATE`, `CURRENT_TIME`, `CURRENT_TIMESTAMP`, `LOCALTIME` and `LOCALTIMESTAMP` without a precision.
const NOW_KEYWORDS: [i64; 5] = [0, 1, 3, 5, 7];
/// From `timestamptz` to `timestamp`, `date`, `time` and `timetz`, and to the precision of a column.
const OF_MOMENTS: [u32; 8] = [2027, 1178, 2019, 1388, 1961, 1967, 1968, 1969];
/// Date, time, timestamp, timestamptz, timetz: what `now` reads as.
const MOMENT_TYPES: [u32; 5] = [1082, 1083, 1114, 1184, 1266];
/// From `int8` to `int4` and `int2`.
const NARROWED: [u32; 2] = [480, 714];
/// Conversions that give what reading the constant's text as the column's type gives: integers to each other, to numeric
/// and to floats, numeric to floats, and a value to its column's length, precision or scale.
const BY_TEXT: [u32; 27] = [
    480, 714, 481, 754, 314, 313, 1740, 1781, 1782, 316, 482, 235, 318, 652, 236, 1746, 1745, 668,
    669, 1703, 1961, 1967, 1968, 1969, 1200, 1685, 1687,
];

/// What a column gets that has no value in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredDefault {
    /// NULL.
    Null,
    /// This payload.
    Constant(Vec<u8>),
    /// What the text of this constant reads as.
    Converted(Const),
    /// What `now` reads as.
    Now,
    /// The next value of a sequence.
    Next(Oid),
    /// Something that only a server can evaluate.
    Unknown,
}

impl Database {
    /// The defaults of those columns (positions from 0) of a table that have one.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn stored_defaults(&self, table: &Relation) -> Result<HashMap<usize, StoredDefault>> {
        let mut found = HashMap::new();
        self.scan_any(catalog::PG_ATTRDEF, &["adrelid", "adnum", "adbin"], |row| {
            if row.oid(0)? == table.class.oid {
                let position = crate::insert_rules::position(row.i16(1)?);
                // One so long that it lies in the TOAST table is none of those known here.
                let text = row.payload(2).ok().flatten();
                let default = text.as_deref().and_then(|text| evaluate(&Node::parse(text).ok()?));
                found.insert(position, default);
            }
            Ok(())
        })?;
        let types = self.types()?;
        let mut defaults = HashMap::new();
        for (position, default) in found {
            let column = table.columns.get(position).map_or(Oid::INVALID, |c| c.type_oid);
            let reads_now = MOMENT_TYPES.contains(&types.without_domains(column).0);
            let default = match default {
                Some(StoredDefault::Now) if !reads_now => StoredDefault::Unknown,
                Some(default) => default,
                None => StoredDefault::Unknown,
            };
            defaults.insert(position, default);
        }
        for (position, sequence) in self.identity_sequences(table)? {
            defaults.insert(position, StoredDefault::Next(sequence));
        }
        Ok(defaults)
    }

    /// The sequences of identity columns. From 17 on those of a partition are those of the table at the top.
    fn identity_sequences(&self, table: &Relation) -> Result<Vec<(usize, Oid)>> {
        let mut identities: Vec<_> =
            (0..).zip(&table.columns).filter(|(_, column)| column.is_identity).collect();
        if identities.is_empty() {
            return Ok(Vec::new());
        }
        let mut of = table.clone();
        if table.class.is_partition
            && self.cluster().version() >= PgVersion::V17
            && let Some(top) = self.partition_ancestors(table.class.oid)?.last()
        {
            of = self.relation(top)?;
        }
        let mut found = Vec::new();
        let wanted = ["classid", "objid", "refclassid", "refobjid", "refobjsubid", "deptype"];
        self.scan_any(catalog::PG_DEPEND, &wanted, |row| {
            let of_tables = row.oid(0)? == catalog::PG_CLASS && row.oid(2)? == catalog::PG_CLASS;
            if of_tables && row.oid(3)? == of.class.oid && row.byte(5)? == b'i' {
                found.push((row.i32(4)?, row.oid(1)?));
            }
            Ok(())
        })?;
        let is_sequence =
            |oid: Oid| self.class(oid).is_some_and(|c| c.kind == RelationKind::Sequence);
        let sequence = |name: &[u8]| {
            let number = (1..).zip(&of.columns).find(|(_, c)| !c.dropped && *c.name == *name)?.0;
            found.iter().find(|&&(of, oid)| of == number && is_sequence(oid)).map(|&(_, oid)| oid)
        };
        Ok(identities
            .drain(..)
            .filter_map(|(position, column)| Some((position, sequence(&column.name)?)))
            .collect())
    }
}

/// What an expression is; `None` for one that is not known here.
fn evaluate(tree: &Node<'_>) -> Option<StoredDefault> {
    let node = tree.structure()?;
    match node.name {
        b"CONST" => Some(match Const::of(node).ok()?.payload().ok()? {
            Some(payload) => StoredDefault::Constant(payload.into_owned()),
            None => StoredDefault::Null,
        }),
        // Types that are the same bytes.
        b"RELABELTYPE" => evaluate(node.value("arg").ok()?),
        // What a domain asks of its values is asked by its input.
        b"COERCETODOMAIN" => match evaluate(node.value("arg").ok()?)? {
            StoredDefault::Constant(_) | StoredDefault::Converted(_) => {
                Some(StoredDefault::Converted(innermost(tree)?))
            }
            StoredDefault::Now => Some(StoredDefault::Now),
            _ => None,
        },
        b"SQLVALUEFUNCTION" => {
            NOW_KEYWORDS.contains(&node.number("op").ok()?).then_some(StoredDefault::Now)
        }
        b"FUNCEXPR" => call(node.oid("funcid").ok()?.0, node.value("args").ok()?.as_list().ok()?),
        _ => None,
    }
}

fn call(function: u32, arguments: &[Node<'_>]) -> Option<StoredDefault> {
    if NOW.contains(&function) {
        return Some(StoredDefault::Now);
    }
    let argument = arguments.first()?;
    if function == NEXTVAL {
        let sequence = Const::read(argument).ok().filter(|of| of.type_oid == REGCLASS)?;
        let oid = sequence.value?.first_chunk().map(|oid| Oid(u32::from_le_bytes(*oid)))?;
        return Some(StoredDefault::Next(oid));
    }
    match evaluate(argument)? {
        StoredDefault::Null if BY_TEXT.contains(&function) => Some(StoredDefault::Null),
        StoredDefault::Now if OF_MOMENTS.contains(&function) => Some(StoredDefault::Now),
        next @ StoredDefault::Next(_) if NARROWED.contains(&function) => Some(next),
        StoredDefault::Constant(_) | StoredDefault::Converted(_)
            if BY_TEXT.contains(&function) && !cuts(arguments) =>
        {
            Some(StoredDefault::Converted(innermost(argument)?))
        }
        _ => None,
    }
}

/// True for a cast that somebody wrote, which cuts a value to its length where an assignment would be an error.
fn cuts(arguments: &[Node<'_>]) -> bool {
    let is_explicit = arguments.get(2).and_then(|flag| Const::read(flag).ok());
    is_explicit.is_some_and(|flag| flag.value.is_none_or(|bytes| bytes != [0]))
}

/// The constant below all conversions.
fn innermost(tree: &Node<'_>) -> Option<Const> {
    let node = tree.structure()?;
    match node.name {
        b"CONST" => Const::of(node).ok(),
        b"RELABELTYPE" | b"COERCETODOMAIN" => innermost(node.value("arg").ok()?),
        _ => innermost(node.value("args").ok()?.as_list().ok()?.first()?),
    }
}
