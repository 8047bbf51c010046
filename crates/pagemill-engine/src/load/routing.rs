//! Which partition a row belongs to.
//!
//! ```text
//!   row ─► key of the top table ─► list, range or hash ─┬─► leaf: a table of the load
//!                                                       └─► partitioned again: its key, and so on
//! ```
//!
//! Invariant: positions of key columns are those of the row as it is read, whatever order a partitioned partition has.
//!
//! Source: `ExecFindPartition` and `get_partition_for_tuple` in `src/backend/executor/execPartition.c`,
//! `partition_rbound_datum_cmp` in `src/backend/partitioning/partbounds.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::sync::Arc;

use pagemill_cluster::collations::Collation;
use pagemill_cluster::partition_bounds::{PartitionBound, RangeDatum, RangeLimit};
use pagemill_cluster::partition_routing::{Partition, RoutingColumn};
use pagemill_cluster::value_orders::text_collation;
use pagemill_cluster::{ClassRow, Database, Relation, RelationKind};
use pagemill_format::{Error as FormatError, Oid, PgVersion};
use pagemill_types::builtin::oid::ANYENUM;
use pagemill_types::order::{EnumOrder, ValueOrder};
use pagemill_types::partition_hash::{partition_hash, partition_hash_of};
use pagemill_types::value_hash::ValueHash;

use super::message_text::value_texts;
use crate::copy::from::Row as CopyRow;
use crate::encoding::readable_name;
use crate::error::{Error, Result};
use crate::refusal::{LoadRefusal, PartitionKeyCause};

/// The partitioned tables of a load, the one at the top first.
#[derive(Debug)]
pub(super) struct Routing {
    nodes: Vec<RoutingNode>,
}

/// Where a row goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// The table of this number.
    Table(usize),
    /// A partition that nothing is loaded into here, by its number among those.
    Foreign(Oid),
    /// A partitioned partition.
    Node(usize),
}

#[derive(Debug)]
struct RoutingNode {
    relation: Relation,
    keys: Vec<RoutingKey>,
    bounds: Bounds,
    default: Option<Destination>,
}

/// A column of a partition key.
#[derive(Debug)]
struct RoutingKey {
    /// Its position in the row.
    position: usize,
    /// Its position in the partitioned table.
    own_position: usize,
    order: ValueOrder,
    hash: Option<ValueHash>,
}

#[derive(Debug)]
enum Bounds {
    /// Values in order, and where nulls go.
    List(Vec<(Vec<u8>, Destination)>, Option<Destination>),
    /// Ends in the order of the first of each.
    Range(Vec<(Vec<RangeLimit>, Vec<RangeLimit>, Destination)>),
    /// Modulus and remainder.
    Hash(Vec<(u64, u64, Destination)>),
}

/// Finds the tables below a partitioned one.
pub(super) struct RoutingPlanner<'a> {
    pub(super) database: &'a Database,
    /// The table whose columns the rows have.
    pub(super) top: &'a Relation,
    pub(super) truncate: bool,
    /// The leaves, in the order in which they were met.
    pub(super) leaves: Vec<ClassRow>,
    nodes: Vec<Option<RoutingNode>>,
}

impl<'a> RoutingPlanner<'a> {
    pub(super) fn new(database: &'a Database, top: &'a Relation, truncate: bool) -> Self {
        Self { database, top, truncate, leaves: Vec::new(), nodes: Vec::new() }
    }

    /// The way to all partitions of a partitioned table, which is not the top one if it is above it.
    ///
    /// # Errors
    /// When a key or a partition stands in the way.
    pub(super) fn plan(&mut self, table: Relation) -> Result<Routing> {
        self.add(table)?;
        Ok(Routing { nodes: self.nodes.drain(..).flatten().collect() })
    }

    fn add(&mut self, table: Relation) -> Result<Destination> {
        let number = self.nodes.len();
        self.nodes.push(None);
        let keys = self.keys(&table)?;
        let mut default = None;
        let mut placed = Vec::new();
        for Partition { class, bound } in self.database.partitions(&table)? {
            let destination = self.destination(&class)?;
            match bound {
                PartitionBound::Default => default = Some(destination),
                bound => placed.push((bound, destination)),
            }
        }
        let bounds = bounds_of(&keys, placed).map_err(|error| bad_bound(&table, error))?;
        self.nodes[number] = Some(RoutingNode { relation: table, keys, bounds, default });
        Ok(Destination::Node(number))
    }

    fn destination(&mut self, class: &ClassRow) -> Result<Destination> {
        match class.kind {
            RelationKind::PartitionedTable => {
                let relation = self.database.relation(class)?;
                self.database.check_partitioned(&relation, self.truncate, true)?;
                self.add(relation)
            }
            RelationKind::ForeignTable if !self.truncate => Ok(Destination::Foreign(class.oid)),
            _ => {
                self.leaves.push(class.clone());
                Ok(Destination::Table(self.leaves.len() - 1))
            }
        }
    }

    fn keys(&self, table: &Relation) -> Result<Vec<RoutingKey>> {
        let key = self.database.routing_key(table)?;
        let refused = |cause| {
            Error::refused(LoadRefusal::PartitionKey { table: table.display_name(), cause })
        };
        let routing_key = |column: &RoutingColumn| {
            let of = table.columns.get(column.position);
            let of = of.ok_or_else(|| refused(PartitionKeyCause::NotInTable))?;
            let same = |c: &&pagemill_cluster::Column| !c.dropped && c.name == of.name;
            let position = self.top.columns.iter().position(|c| same(&c));
            let order = order_of(self.database, column, of.type_oid)?;
            let hash = partition_hash_of(column.operator_class_type);
            let class = || column.operator_class.clone();
            match key.is_hash {
                true if hash.is_none() => return Err(refused(PartitionKeyCause::Hash(class()))),
                false if order.is_none() => return Err(refused(PartitionKeyCause::Order(class()))),
                _ => {}
            }
            Ok(RoutingKey {
                position: position.ok_or_else(|| refused(PartitionKeyCause::NotInTarget))?,
                own_position: column.position,
                // Values that are hashed are not compared.
                order: order.unwrap_or(ValueOrder::Text(Default::default())),
                hash,
            })
        };
        key.columns.iter().map(routing_key).collect()
    }
}

/// The order of a key column's operator class, on a column of a type that is the same bytes; `None` for one that is not
/// known here.
fn order_of(
    database: &Database,
    column: &RoutingColumn,
    column_type: Oid,
) -> Result<Option<ValueOrder>> {
    let RoutingColumn { operator_class, operator_class_type, .. } = column;
    if *operator_class_type == ANYENUM {
        let labels = database.enum_labels_in_order(column_type)?;
        return Ok(Some(ValueOrder::Enum(Arc::new(EnumOrder::new(labels)))));
    }
    // The operator classes for LIKE compare bytes, whatever the collation.
    let collation = column.collation.as_ref().filter(|_| !operator_class.ends_with("_pattern_ops"));
    let collation = text_collation(collation).map_err(|error| {
        let locale = match collation {
            Some(Collation::Libc(locale)) => locale,
            Some(Collation::Bytes) | None => "C",
        };
        Error::refused(LoadRefusal::PartitionLocale { locale: locale.to_owned(), error })
    })?;
    Ok(ValueOrder::of_type(*operator_class_type, &collation))
}

fn bad_bound(table: &Relation, error: FormatError) -> Error {
    Error::refused(LoadRefusal::PartitionBound { table: table.display_name(), error })
}

fn bounds_of(
    keys: &[RoutingKey],
    placed: Vec<(PartitionBound, Destination)>,
) -> Result<Bounds, FormatError> {
    let (mut values, mut null) = (Vec::new(), None);
    let (mut ranges, mut hashes) = (Vec::new(), Vec::new());
    for (bound, to) in placed {
        match bound {
            PartitionBound::List(of) => {
                for value in of {
                    match value.payload()? {
                        Some(value) => values.push((value.into_owned(), to)),
                        None => null = Some(to),
                    }
                }
            }
            PartitionBound::Range { lower, upper } => {
                let limits = |data: Vec<RangeDatum>| {
                    data.iter().map(RangeDatum::limit).collect::<Result<Vec<_>, _>>()
                };
                ranges.push((limits(lower)?, limits(upper)?, to));
            }
            PartitionBound::Hash { modulus, remainder } => {
                hashes.push((u64::from(modulus), u64::from(remainder), to));
            }
            // It was taken out before.
            PartitionBound::Default => {}
        }
    }
    if !hashes.is_empty() {
        return Ok(Bounds::Hash(hashes));
    }
    if !ranges.is_empty() {
        ranges.sort_by(|a, b| compare_limits(keys, &a.0, &b.0));
        return Ok(Bounds::Range(ranges));
    }
    if let Some(key) = keys.first() {
        values.sort_by(|a, b| key.order.compare(&a.0, &b.0));
    }
    Ok(Bounds::List(values, null))
}

fn compare_limits(keys: &[RoutingKey], a: &[RangeLimit], b: &[RangeLimit]) -> Ordering {
    let one = |((key, a), b): ((&RoutingKey, &RangeLimit), &RangeLimit)| a.compare(b, &key.order);
    let mut orders = keys.iter().zip(a).zip(b).map(one);
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Where a row lies, seen from an end of a range. The key has no nulls.
fn compare_row(keys: &[RoutingKey], row: &[&[u8]], limit: &[RangeLimit]) -> Ordering {
    let one = |((key, value), limit): ((&RoutingKey, &&[u8]), &RangeLimit)| match limit {
        RangeLimit::MinValue => Ordering::Greater,
        RangeLimit::MaxValue => Ordering::Less,
        RangeLimit::Value(limit) => key.order.compare(value, limit),
    };
    let mut orders = keys.iter().zip(row).zip(limit).map(one);
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl RoutingNode {
    fn find<'r>(&self, value: impl Fn(usize) -> Option<&'r [u8]>) -> Option<Destination> {
        let found = match &self.bounds {
            Bounds::List(values, null) => {
                let key = self.keys.first()?;
                match value(key.position) {
                    None => *null,
                    Some(value) => values
                        .binary_search_by(|(of, _)| key.order.compare(of, value))
                        .ok()
                        .map(|at| values[at].1),
                }
            }
            Bounds::Range(ranges) => {
                let row: Option<Vec<_>> = self.keys.iter().map(|key| value(key.position)).collect();
                row.and_then(|row| self.range_of(ranges, &row))
            }
            Bounds::Hash(partitions) => {
                let hashed = |key: &RoutingKey| Some((key.hash?, value(key.position)));
                let hash = partition_hash(self.keys.iter().filter_map(hashed));
                partitions
                    .iter()
                    .find(|(modulus, remainder, _)| hash % modulus == *remainder)
                    .map(|(.., to)| *to)
            }
        };
        found.or(self.default)
    }

    fn range_of(
        &self,
        ranges: &[(Vec<RangeLimit>, Vec<RangeLimit>, Destination)],
        row: &[&[u8]],
    ) -> Option<Destination> {
        let begun =
            ranges.partition_point(|(lower, ..)| compare_row(&self.keys, row, lower).is_ge());
        let (_, upper, to) = ranges.get(begun.checked_sub(1)?)?;
        compare_row(&self.keys, row, upper).is_lt().then_some(*to)
    }
}

/// A column's name as `pg_get_partkeydef` prints it.
fn quoted(name: &str, version: PgVersion) -> String {
    let mut quoted = Vec::new();
    pagemill_cluster::names::quote_identifier(name.as_bytes(), version, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

/// Why a row goes to no table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Homeless {
    /// The partitioned table of this number has no partition for it.
    NoPartition(usize),
    /// It belongs to this foreign table.
    Foreign(Oid),
}

impl Routing {
    /// The table that a row goes to.
    ///
    /// # Errors
    /// When there is none.
    #[inline]
    pub(super) fn table_of<'r>(
        &self,
        value: impl Fn(usize) -> Option<&'r [u8]>,
    ) -> Result<usize, Homeless> {
        let mut number = 0;
        while let Some(of) = self.nodes.get(number) {
            match of.find(&value) {
                Some(Destination::Table(table)) => return Ok(table),
                Some(Destination::Node(next)) => number = next,
                Some(Destination::Foreign(oid)) => return Err(Homeless::Foreign(oid)),
                None => return Err(Homeless::NoPartition(number)),
            }
        }
        panic!("a row came to a partitioned table that was not planned"); // infallible: destinations are planned nodes
    }

    /// That a row goes to no table: the message and its detail, in the server's words.
    #[cold]
    pub(super) fn complaint<'r>(
        &self,
        database: &Database,
        homeless: Homeless,
        value: impl Fn(usize) -> Option<&'r [u8]>,
        row: &CopyRow<'_>,
    ) -> (String, Option<String>) {
        let name = |class: &ClassRow| readable_name(database.row().encoding, &class.name);
        match homeless {
            Homeless::Foreign(oid) => {
                let name = database.class(oid).map_or_else(String::new, name);
                let what = format!(
                    "the row belongs to the foreign table \"{name}\", which only a server can write to"
                );
                (what, None)
            }
            Homeless::NoPartition(number) => {
                let node = self.nodes.get(number).expect("it was asked for a partition"); // infallible: table_of came there
                let what = format!(
                    "no partition of relation \"{}\" found for row",
                    name(&node.relation.class)
                );
                (what, Some(node.key_text(database, value, row)))
            }
        }
    }
}

impl RoutingNode {
    /// The key of a row that belongs to no partition.
    ///
    /// Source: `ExecBuildSlotPartitionKeyDescription` in `src/backend/executor/execPartition.c`, PostgreSQL 14 to 18.
    fn key_text<'r>(
        &self,
        database: &Database,
        value: impl Fn(usize) -> Option<&'r [u8]>,
        row: &CopyRow<'_>,
    ) -> String {
        let version = database.cluster().version();
        let columns = || {
            self.keys
                .iter()
                .filter_map(|key| Some((key, self.relation.columns.get(key.own_position)?)))
        };
        let names: Vec<_> =
            columns().map(|(_, column)| quoted(&column.display_name(), version)).collect();
        let values = columns().map(|(key, column)| (column, value(key.position)));
        format!(
            "Partition key of the failing row contains ({}) = {}.",
            names.join(", "),
            value_texts(database, values, row)
        )
    }
}

/// The bounds that rows of a partition have to keep to when they are given to it, and not to the table above.
#[derive(Debug)]
pub(super) struct PartitionCheck {
    /// Each table above, and which of its partitions is on the way to the target.
    levels: Vec<(RoutingNode, Oid)>,
}

impl PartitionCheck {
    /// For a target that is a partition; `None` for one that is none.
    ///
    /// # Errors
    /// When a key above cannot be evaluated here.
    pub(super) fn new(database: &Database, target: &Relation) -> Result<Option<Self>> {
        if !target.class.is_partition {
            return Ok(None);
        }
        let planner = RoutingPlanner::new(database, target, false);
        let mut levels = Vec::new();
        let mut below = target.class.oid;
        for class in database.partition_ancestors(below)? {
            let relation = database.relation(&class)?;
            let keys = planner.keys(&relation)?;
            let mut default = None;
            let mut placed = Vec::new();
            for Partition { class, bound } in database.partitions(&relation)? {
                let to = Destination::Foreign(class.oid);
                match bound {
                    PartitionBound::Default => default = Some(to),
                    bound => placed.push((bound, to)),
                }
            }
            let bounds = bounds_of(&keys, placed).map_err(|error| bad_bound(&relation, error))?;
            levels.push((RoutingNode { relation, keys, bounds, default }, below));
            below = class.oid;
        }
        Ok(Some(Self { levels }))
    }

    /// True for a row that may be in the target.
    #[inline]
    pub(super) fn admits<'r>(&self, value: impl Fn(usize) -> Option<&'r [u8]>) -> bool {
        let belongs =
            |(node, to): &(RoutingNode, Oid)| node.find(&value) == Some(Destination::Foreign(*to));
        self.levels.iter().all(belongs)
    }
}
