//! How a partitioned table says which partition a row belongs to.
//!
//! Invariant: a [`PartitionKey`] exists only for keys that are columns, compared as built-in operator classes do it under
//! collations that are known here.
//!
//! Source: `src/include/catalog/pg_partitioned_table.h`, `pg_inherits.h`, `RelationBuildPartitionDesc` in
//! `src/backend/partitioning/partdesc.c`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_format::partition_bound::PartitionBound;

use crate::database::{Database, catalog};
use crate::error::{Error, Result};
use crate::insert_rules::{Collation, Why, position};
use crate::relation::{ClassRow, Relation};

/// How a table is partitioned.
#[derive(Debug, Clone)]
pub struct PartitionKey {
    /// Its columns, in their order.
    pub columns: Vec<PartitionKeyColumn>,
    /// By hash: the values are hashed, not compared.
    pub is_hash: bool,
}

/// A column of a partition key.
#[derive(Debug, Clone)]
pub struct PartitionKeyColumn {
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
    /// How a table is partitioned.
    ///
    /// # Errors
    /// [`Error::Refused`] for a key that cannot be evaluated here.
    pub fn partition_key(&self, table: &Relation) -> Result<PartitionKey> {
        let mut found = None;
        let wanted = ["partrelid", "partstrat", "partattrs", "partclass", "partcollation"];
        self.scan_any(catalog::PG_PARTITIONED_TABLE, &wanted, |row| {
            if row.oid(0)? == table.class.oid {
                let numbers = crate::index::vector(row.raw(2))?;
                let classes = crate::index::oid_vector(row.raw(3))?;
                let collations = crate::index::oid_vector(row.raw(4))?;
                found = Some((row.byte(1)?, numbers, classes, collations));
            }
            Ok(())
        })?;
        let refused = |why: &str| {
            let table = table.display_name();
            Error::refused(format!(
                "{table} cannot be loaded: its partition key {why}: load its partitions one by one, or use COPY"
            ))
        };
        let Some((strategy, numbers, classes, collations)) = found else {
            return Err(refused("is missing in pg_partitioned_table"));
        };
        if numbers.contains(&0) {
            return Err(refused("has an expression, which only a server can evaluate"));
        }
        let column = |((&number, &class), &collation)| -> Result<PartitionKeyColumn, Why> {
            let (operator_class, operator_class_type) = self.operator_class(class)?;
            let collation = match collation {
                Oid::INVALID => None,
                oid => Some(self.collation(oid)?),
            };
            let position = position(number);
            Ok(PartitionKeyColumn { position, operator_class, operator_class_type, collation })
        };
        let columns = numbers.iter().zip(&classes).zip(&collations).map(column);
        let columns = columns.collect::<Result<_, Why>>().map_err(|why| match why {
            Why::Reason(reason) => refused(&reason),
            Why::Failure(error) => error,
        })?;
        Ok(PartitionKey { columns, is_hash: strategy == b'h' })
    }

    /// The partitions that a row can be given to, in the order of their OIDs.
    ///
    /// # Errors
    /// When the catalogs cannot be read, or have no bound for one of them.
    pub fn partitions(&self, table: &Relation) -> Result<Vec<Partition>> {
        let children = self.children()?.remove(&table.class.oid).unwrap_or_default();
        let mut bounds = Vec::new();
        self.scan(catalog::PG_CLASS, &["oid", "relpartbound"], |row| {
            let oid = row.oid(0)?;
            if children.contains(&oid) {
                bounds.push((oid, row.payload(1)?));
            }
            Ok(())
        })?;
        bounds.sort_by_key(|(oid, _)| *oid);
        let partition = |(oid, text): (Oid, Option<Vec<u8>>)| {
            let refused = |why: &str| {
                let (of, table) = (oid, table.display_name());
                Error::refused(format!("the partition {of} of {table} {why}"))
            };
            let class = self.class(oid).ok_or_else(|| refused("has no row in pg_class"))?;
            let text = text.ok_or_else(|| refused("has no bound"))?;
            let bound = PartitionBound::parse(&text)
                .map_err(|error| refused(&format!("has a bound that cannot be read: {error}")))?;
            Ok(Partition { class: class.clone(), bound })
        };
        bounds.into_iter().map(partition).collect()
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
