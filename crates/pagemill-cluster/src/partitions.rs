//! Partitioned tables: their keys, their partitions, and the order in which a server scans these.
//!
//! A server puts the partitions of a table into the order of their bounds, and an Append scans them in it: lists by
//! their smallest value, ranges by their bounds, hashes by modulus and remainder. What takes only nulls comes behind
//! the others, and the default last. A partition that is partitioned itself is scanned where it stands.
//!
//! Invariant: where the order of a key is not known here, partitions come in that of their OIDs, and
//! [`LeafPartitions::unordered`] says of which table.
//!
//! Sources: `create_list_bounds`, `create_range_bounds`, `create_hash_bounds` and `partition_rbound_cmp` in
//! `src/backend/partitioning/partbounds.c`, `RelationBuildPartitionDesc` in `partdesc.c`,
//! `expand_partitioned_rtentry` in `src/backend/optimizer/util/inherit.c`,
//! `src/include/catalog/pg_partitioned_table.h`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::builtin::oid::ANYENUM;
use pagemill_types::order::{EnumOrder, TextCollation, ValueOrder};

use crate::database::{Database, FIRST_NORMAL_OID, catalog};
use crate::error::{Damage, Error, Result};
use crate::partition_bounds::{PartitionBound, RangeDatum, RangeLimit};
use crate::refusal::Refusal;
use crate::relation::{ClassRow, RelationKind};
use crate::system_table::Row;
use crate::value_orders::text_collation;

/// By what rows are given to partitions (`partstrat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionStrategy {
    /// By lists of values.
    List,
    /// By ranges of values.
    Range,
    /// By hashes of values.
    Hash,
}

/// The key of a partitioned table: a row of `pg_partitioned_table`.
#[derive(Debug, Clone)]
pub struct PartitionKey {
    /// The strategy.
    pub strategy: PartitionStrategy,
    /// The columns of the key.
    pub columns: Vec<PartitionKeyColumn>,
}

/// A column of a partition key.
#[derive(Debug, Clone, Copy)]
pub struct PartitionKeyColumn {
    /// `partattrs`: the number of the table's column, 0 for an expression.
    pub number: i16,
    /// `partclass`: the operator class, a B-tree's or, for hashes, one of hash indexes.
    pub operator_class: Oid,
    /// `partcollation`: the collation, 0 where the type has none.
    pub collation: Oid,
}

/// The partitions that hold the rows of a table.
#[derive(Debug)]
pub struct LeafPartitions<'a> {
    /// In the order of a server's scan.
    pub leaves: Vec<&'a ClassRow>,
    /// The partitioned tables whose partitions are in the order of their OIDs instead.
    pub unordered: Vec<Oid>,
}

impl Database {
    /// The key of a partitioned table.
    ///
    /// # Errors
    /// When `pg_partitioned_table` cannot be read, or has no such table.
    pub fn partition_key(&self, table: Oid) -> Result<PartitionKey> {
        self.partition_keys(&|oid| oid == table)?.remove(&table).ok_or_else(|| without_key(table))
    }

    /// The partitions of a partitioned table with their bounds, by OID. One that is being detached is none.
    ///
    /// # Errors
    /// When `pg_inherits` or `pg_class` cannot be read, or a partition has no bound.
    pub fn partitions_of(&self, table: Oid) -> Result<Vec<(Oid, PartitionBound)>> {
        let children = self.children()?.remove(&table).unwrap_or_default();
        let wanted = children.iter().copied().collect();
        let mut bounds = self.partition_bounds(&wanted)?;
        let bound = |oid| Ok((oid, bounds.remove(&oid).ok_or_else(|| self.without_bound(oid))?));
        children.into_iter().map(bound).collect()
    }

    /// The partitions that hold the rows of a partitioned table, at every depth. One that is being detached
    /// belongs to its parent no more.
    ///
    /// # Errors
    /// When the catalogs cannot be read, or a partition has no bound.
    pub fn leaf_partitions(&self, parent: &ClassRow) -> Result<LeafPartitions<'_>> {
        let mut children = self.children()?;
        let mut unordered = self.put_in_order(parent.oid, &mut children)?;
        let (mut leaves, mut seen, mut waiting) = (Vec::new(), HashSet::new(), vec![parent.oid]);
        while let Some(oid) = waiting.pop() {
            if !seen.insert(oid) {
                continue;
            }
            match self.class(oid) {
                Some(class) if class.kind == RelationKind::PartitionedTable => {
                    let below = children.get(&oid).map(Vec::as_slice).unwrap_or_default();
                    waiting.extend(below.iter().rev());
                }
                Some(leaf) => leaves.push(leaf),
                None => {}
            }
        }
        unordered.retain(|table| seen.contains(table));
        Ok(LeafPartitions { leaves, unordered })
    }

    /// The order of the values of one column of a key, for values of this type; `None` where it is not known here.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn partition_key_order(
        &self,
        column: &PartitionKeyColumn,
        value_type: Oid,
    ) -> Result<Option<ValueOrder>> {
        let mut class = None;
        self.scan_any(catalog::PG_OPCLASS, &["oid", "opcname", "opcintype"], |row| {
            if row.oid(0)? == column.operator_class {
                class = Some((row.name(1)?, row.oid(2)?));
            }
            Ok(())
        })?;
        let Some((name, of)) = class.filter(|_| column.operator_class < FIRST_NORMAL_OID) else {
            return Ok(None);
        };
        if of == ANYENUM {
            let labels = self.enum_labels_in_order(value_type)?;
            return Ok(Some(ValueOrder::Enum(Arc::new(EnumOrder::new(labels)))));
        }
        // The operator classes for LIKE compare bytes, whatever the collation.
        let by_bytes = name.ends_with(b"_pattern_ops") || !column.collation.is_valid();
        let collation = match by_bytes {
            true => Some(TextCollation::C),
            false => self.text_order(column.collation)?,
        };
        Ok(collation.and_then(|collation| ValueOrder::of_type(of, &collation)))
    }

    fn text_order(&self, collation: Oid) -> Result<Option<TextCollation>> {
        match self.collation_of(collation) {
            Ok(collation) => Ok(text_collation(Some(&collation)).ok()),
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts the partitions of a table, and of those below it, into the order of a scan. Tells whose order is not known.
    fn put_in_order(&self, root: Oid, children: &mut HashMap<Oid, Vec<Oid>>) -> Result<Vec<Oid>> {
        let tables = self.partitioned_below(root, children);
        let below = |table: &Oid| children.get(table).into_iter().flatten().copied();
        let wanted: HashSet<Oid> = tables.iter().flat_map(below).collect();
        let mut bounds = self.partition_bounds(&wanted)?;
        let mut keys = self.partition_keys(&|oid| tables.contains(&oid))?;
        let mut unordered = Vec::new();
        for table in tables {
            let Some(oids) = children.get_mut(&table) else { continue };
            let mut partitions = Vec::with_capacity(oids.len());
            for oid in oids.drain(..) {
                partitions.push((oid, bounds.remove(&oid).ok_or_else(|| self.without_bound(oid))?));
            }
            let key = keys.remove(&table).ok_or_else(|| without_key(table))?;
            if !self.sort_partitions(&key, &mut partitions)? {
                unordered.push(table);
            }
            oids.extend(partitions.into_iter().map(|(oid, _)| oid));
        }
        Ok(unordered)
    }

    /// A partitioned table and those below it, each once.
    fn partitioned_below(&self, root: Oid, children: &HashMap<Oid, Vec<Oid>>) -> Vec<Oid> {
        let is_partitioned = |oid: Oid| {
            self.class(oid).is_some_and(|class| class.kind == RelationKind::PartitionedTable)
        };
        let (mut tables, mut seen, mut waiting) = (Vec::new(), HashSet::new(), vec![root]);
        while let Some(oid) = waiting.pop() {
            if is_partitioned(oid) && seen.insert(oid) {
                tables.push(oid);
                waiting.extend(children.get(&oid).into_iter().flatten());
            }
        }
        tables
    }

    /// Sorts the partitions of one table as a server scans them; false when the order of its key is not known.
    ///
    /// # Errors
    /// When the catalogs cannot be read, or a bound has a value that cannot be.
    pub fn sort_partitions(
        &self,
        key: &PartitionKey,
        partitions: &mut [(Oid, PartitionBound)],
    ) -> Result<bool> {
        let values = |bound: &PartitionBound| {
            matches!(bound, PartitionBound::List(_) | PartitionBound::Range { .. })
        };
        let compared = partitions.iter().filter(|(_, bound)| values(bound)).count();
        let mut orders = Some(Vec::new());
        for (at, column) in key.columns.iter().enumerate().filter(|_| compared > 1) {
            let of = partitions.iter().find_map(|(_, bound)| bound.value_type(at));
            let order = self.partition_key_order(column, of.unwrap_or(Oid::INVALID))?;
            orders = orders.zip(order).map(|(mut orders, order)| {
                orders.push(order);
                orders
            });
        }
        let is_known = orders.is_some();
        sort_by_bounds(partitions, &orders.unwrap_or_default())
            .map_err(|(oid, error)| self.bad_bound(oid, &error))?;
        Ok(is_known)
    }

    /// The children of each parent, by OID; those that are being detached left out.
    pub(crate) fn children(&self) -> Result<HashMap<Oid, Vec<Oid>>> {
        let mut found: HashMap<Oid, Vec<Oid>> = HashMap::new();
        let wanted = ["inhparent", "inhrelid", "inhdetachpending"];
        self.scan(catalog::PG_INHERITS, &wanted, |row| {
            if row.byte(2)? == 0 {
                found.entry(row.oid(0)?).or_default().push(row.oid(1)?);
            }
            Ok(())
        })?;
        found.values_mut().for_each(|children| children.sort_unstable());
        Ok(found)
    }

    fn partition_keys(&self, wanted: &dyn Fn(Oid) -> bool) -> Result<HashMap<Oid, PartitionKey>> {
        let mut found = HashMap::new();
        let columns = ["partrelid", "partstrat", "partattrs", "partclass", "partcollation"];
        self.scan_any(catalog::PG_PARTITIONED_TABLE, &columns, |row| {
            let table = row.oid(0)?;
            if wanted(table) {
                found.insert(table, PartitionKey::read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The bounds of these partitions.
    fn partition_bounds(&self, wanted: &HashSet<Oid>) -> Result<HashMap<Oid, PartitionBound>> {
        let mut found = HashMap::new();
        self.scan(catalog::PG_CLASS, &["oid", "relpartbound"], |row| {
            let oid = row.oid(0)?;
            if wanted.contains(&oid)
                && let Some(text) = row.payload(1)?
            {
                found.insert(oid, PartitionBound::parse(&text)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn without_bound(&self, partition: Oid) -> Error {
        self.class_damage(partition, "has no partition bound")
    }

    fn bad_bound(&self, partition: Oid, error: &FormatError) -> Error {
        self.class_damage(partition, &format!("has a partition bound that cannot be read: {error}"))
    }

    /// What `pg_class` has for a partition is not what it must have.
    fn class_damage(&self, partition: Oid, has: &str) -> Error {
        let name = self.class(partition).map(|class| String::from_utf8_lossy(&class.name));
        let name = name.unwrap_or_default();
        let what = format!("the partition \"{name}\" (OID {partition}) {has}");
        let path = self.class(catalog::PG_CLASS).map(|class| self.base_path(class));
        match path {
            Some(Ok(path)) => Damage::in_file(path, what).into(),
            Some(Err(error)) => error,
            None => {
                Error::refused(Refusal::missing_row("pg_class", "the catalog", catalog::PG_CLASS))
            }
        }
    }
}

fn without_key(table: Oid) -> Error {
    Error::refused(Refusal::missing_row("pg_partitioned_table", "the relation", table))
}

impl PartitionKey {
    fn read(row: &Row<'_>) -> Result<Self, FormatError> {
        let strategy = match row.byte(1)? {
            b'l' => PartitionStrategy::List,
            b'r' => PartitionStrategy::Range,
            b'h' => PartitionStrategy::Hash,
            _ => return Err(FormatError::corrupt("pg_partitioned_table", 0, "partstrat")),
        };
        let numbers = crate::index::vector(row.raw(2))?;
        let classes = crate::index::oid_vector(row.raw(3))?;
        let collations = crate::index::oid_vector(row.raw(4))?;
        if classes.len() != numbers.len() || collations.len() != numbers.len() {
            let what = "keys, operator classes and collations are not equally many";
            return Err(FormatError::corrupt("pg_partitioned_table", 0, what));
        }
        let columns = numbers.into_iter().zip(classes).zip(collations);
        let columns = columns.map(|((number, operator_class), collation)| PartitionKeyColumn {
            number,
            operator_class,
            collation,
        });
        Ok(Self { strategy, columns: columns.collect() })
    }
}

/// Sorts partitions as a server scans them, by the orders of the key's columns; ties, and all values where no orders
/// are given, by OID.
///
/// # Errors
/// The partition whose bound has a value that cannot be read.
fn sort_by_bounds(
    partitions: &mut [(Oid, PartitionBound)],
    orders: &[ValueOrder],
) -> Result<(), (Oid, FormatError)> {
    let mut places = HashMap::with_capacity(partitions.len());
    for (oid, bound) in &*partitions {
        places.insert(*oid, BoundPosition::of(bound, orders).map_err(|error| (*oid, error))?);
    }
    partitions.sort_by(|(a, _), (b, _)| match (places.get(a), places.get(b)) {
        (Some(one), Some(other)) => one.compare(other, orders).then(a.cmp(b)),
        _ => a.cmp(b),
    });
    Ok(())
}

/// Where a partition stands among those of its table.
enum BoundPosition {
    /// By the smallest value of a list, or by the lower bound of a range.
    Values(Vec<RangeLimit>),
    /// By modulus and remainder.
    Hash(u32, u32),
    /// A list of nothing but null.
    Null,
    Default,
}

impl BoundPosition {
    fn of(bound: &PartitionBound, orders: &[ValueOrder]) -> Result<Self, FormatError> {
        match bound {
            PartitionBound::Default => Ok(Self::Default),
            PartitionBound::Hash { modulus, remainder } => Ok(Self::Hash(*modulus, *remainder)),
            PartitionBound::Range { lower, .. } => {
                Ok(Self::Values(lower.iter().map(RangeDatum::limit).collect::<Result<_, _>>()?))
            }
            PartitionBound::List(values) => {
                let mut payloads = Vec::with_capacity(values.len());
                for value in values {
                    payloads.extend(value.payload()?.map(|payload| payload.into_owned()));
                }
                let compare = |a: &Vec<u8>, b: &Vec<u8>| {
                    orders.first().map_or(Ordering::Equal, |order| order.compare(a, b))
                };
                let smallest = payloads.into_iter().min_by(compare);
                Ok(smallest
                    .map_or(Self::Null, |value| Self::Values(vec![RangeLimit::Value(value)])))
            }
        }
    }

    fn compare(&self, other: &Self, orders: &[ValueOrder]) -> Ordering {
        match (self, other) {
            (Self::Values(a), Self::Values(b)) => {
                let mut columns = a.iter().zip(b).zip(orders);
                let different = columns.find_map(|((a, b), order)| {
                    Some(a.compare(b, order)).filter(|order| order.is_ne())
                });
                different.unwrap_or(Ordering::Equal)
            }
            (Self::Hash(a, b), Self::Hash(c, d)) => (a, b).cmp(&(c, d)),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Values(_) | Self::Hash(..) => 0,
            Self::Null => 1,
            Self::Default => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use pagemill_format::node_tree::Const;

    use super::*;

    fn constant(value: Option<i32>) -> Const {
        Const {
            type_oid: Oid(23),
            type_modifier: -1,
            collation: Oid::INVALID,
            len: 4,
            value: value.map(|value| value.to_le_bytes().to_vec()),
        }
    }

    fn list(values: &[Option<i32>]) -> PartitionBound {
        PartitionBound::List(values.iter().copied().map(constant).collect())
    }

    fn sorted(bounds: Vec<PartitionBound>, orders: &[ValueOrder]) -> Vec<u32> {
        let mut partitions: Vec<_> = (1..).map(Oid).zip(bounds).collect();
        sort_by_bounds(&mut partitions, orders).unwrap();
        partitions.iter().map(|(oid, _)| oid.0).collect()
    }

    fn integers() -> Vec<ValueOrder> {
        vec![ValueOrder::of_type(Oid(23), &TextCollation::C).unwrap()]
    }

    #[test]
    fn lists_go_by_their_smallest_value_then_null_then_the_default() {
        let bounds = || {
            vec![
                PartitionBound::Default,
                list(&[None]),
                list(&[Some(9), Some(5)]),
                list(&[Some(-7), None]),
                list(&[Some(6)]),
            ]
        };
        assert_eq!(sorted(bounds(), &integers()), [4, 3, 5, 2, 1]);
        assert_eq!(sorted(bounds(), &[]), [3, 4, 5, 2, 1]);
    }

    #[test]
    fn ranges_go_by_their_lower_bounds_and_hashes_by_modulus_first() {
        let range = |lower: RangeDatum, upper: RangeDatum| PartitionBound::Range {
            lower: vec![lower],
            upper: vec![upper],
        };
        let at = |value| RangeDatum::Value(constant(Some(value)));
        let bounds = vec![
            range(at(10), RangeDatum::MaxValue),
            range(at(2), at(10)),
            range(RangeDatum::MinValue, at(2)),
        ];
        assert_eq!(sorted(bounds, &integers()), [3, 2, 1]);
        let hash = |modulus, remainder| PartitionBound::Hash { modulus, remainder };
        assert_eq!(sorted(vec![hash(8, 0), hash(4, 3), hash(4, 1)], &[]), [3, 2, 1]);
    }
}
