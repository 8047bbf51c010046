//! What giving rows to partitions needs: keys whose comparisons are known, the partitions, and the tables above one.
//!
//! Invariant: a [`RoutingKey`] exists only for keys that are columns, compared as built-in operator classes do it under
//! collations that are known here.
//!
//! Source: `src/include/catalog/pg_partitioned_table.h`, `pg_inherits.h`, `RelationBuildPartitionDesc` in
//! `src/backend/partitioning/partdesc.c`, PostgreSQL 14 to 18.

use pagemill_format::Oid;

use crate::collations::{Collation, OrderFailure};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::insert_rules::position;
use crate::partition_bounds::PartitionBound;
use crate::partitions::{PartitionKeyColumn, PartitionStrategy};
use crate::refusal::{LoadObstacle, Refusal};
use crate::relation::{ClassRow, Relation};

/// How a table gives its rows to partitions.
#[derive(Debug, Clone)]
pub struct RoutingKey {
    /// Its columns, in their order.
    pub columns: Vec<RoutingColumn>,
    /// By hash: the values are hashed, not compared.
    pub is_hash: bool,
}

/// A column of a partition key.
#[derive(Debug, Clone)]
pub struct RoutingColumn {
    /// Its position in the partitioned table, from 0.
    pub position: usize,
    /// The operator class, by its name in `pg_catalog`.
    pub operator_class: String,
    /// The type that the operator class is for.
    pub operator_class_type: Oid,
    /// The collation, where its type has them.
    pub collation: Option<Collation>,
}

/// A partition, which may have partitions of its own.
#[derive(Debug, Clone)]
pub struct Partition {
    /// Its row of `pg_class`.
    pub class: ClassRow,
    /// Which rows it has.
    pub bound: PartitionBound,
}

impl Database {
    /// How a table gives its rows to partitions.
    ///
    /// # Errors
    /// [`Error::Refused`] for a key that cannot be evaluated here.
    pub fn routing_key(&self, table: &Relation) -> Result<RoutingKey> {
        let refused = |obstacle| {
            Error::refused(Refusal::NotLoadable { relation: table.display_name(), obstacle })
        };
        let key = self.partition_key(table.class.oid)?;
        if key.columns.iter().any(|column| column.number == 0) {
            return Err(refused(LoadObstacle::PartitionExpression));
        }
        let columns = key.columns.iter().map(|column| self.routing_column(column));
        let columns =
            columns.collect::<Result<_, OrderFailure>>().map_err(|failure| match failure {
                OrderFailure::Unknown(cause) => refused(LoadObstacle::PartitionKey(cause)),
                OrderFailure::Error(error) => error,
            })?;
        Ok(RoutingKey { columns, is_hash: key.strategy == PartitionStrategy::Hash })
    }

    fn routing_column(&self, column: &PartitionKeyColumn) -> Result<RoutingColumn, OrderFailure> {
        let (operator_class, operator_class_type) = self.operator_class(column.operator_class)?;
        let collation = match column.collation {
            Oid::INVALID => None,
            oid => Some(self.collation(oid)?),
        };
        let position = position(column.number);
        Ok(RoutingColumn { position, operator_class, operator_class_type, collation })
    }

    /// The partitions that a row can be given to, in the order of their OIDs.
    ///
    /// # Errors
    /// When the catalogs cannot be read, or have no bound for one of them.
    pub fn partitions(&self, table: &Relation) -> Result<Vec<Partition>> {
        let partition = |(oid, bound): (Oid, PartitionBound)| {
            let class = self.class(oid).ok_or_else(|| {
                let what = format!("the partition of {}", table.display_name());
                Error::refused(Refusal::missing_row("pg_class", what, oid))
            })?;
            Ok(Partition { class: class.clone(), bound })
        };
        self.partitions_of(table.class.oid)?.into_iter().map(partition).collect()
    }

    /// The partitioned tables above a partition, the nearest first.
    ///
    /// # Errors
    /// When `pg_inherits` cannot be read.
    pub fn partition_ancestors(&self, partition: Oid) -> Result<Vec<ClassRow>> {
        let children = self.children()?;
        let mut found: Vec<ClassRow> = Vec::new();
        let mut below = partition;
        let parent_of =
            |below| children.iter().find(|(_, of)| of.contains(&below)).map(|(&parent, _)| parent);
        while let Some(class) = parent_of(below).and_then(|parent| self.class(parent)) {
            if found.iter().any(|known| known.oid == class.oid) {
                break;
            }
            below = class.oid;
            found.push(class.clone());
        }
        Ok(found)
    }
}
