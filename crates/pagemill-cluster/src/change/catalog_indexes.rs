//! The indexes of catalogs, built anew when rows were added or got new versions.
//!
//! A new row or version needs an entry in each of them. They are small, and new ones are written over them, in place:
//! pages that are no longer needed become empty ones. While that is replayed, standbys keep their sessions out of an
//! index of several pages by a lock, which the caller sees to.
//!
//! Invariant: every row that was visible before has its entry, and so has every new version.
//!
//! Source: `src/include/catalog/pg_class.h`, `pg_database.h`, `pg_shdepend.h`, PostgreSQL 14 to 18.

use pagemill_format::btree_builder::{BTREE_DEFAULT_FILLFACTOR, BtreeBuilder, BtreeOptions};
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::Compression;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Oid, PgVersion};
use pagemill_types::builtin::oid;
use pagemill_types::index_key_order::{KeyColumn, KeyOrder};
use pagemill_types::order::{TextCollation, ValueOrder};

use super::catalog_table::{CatalogEntry, ChangedPage};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::refusal::Refusal;

/// One of the indexes.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogIndex {
    pub(super) oid: Oid,
    /// What it belongs to, for messages.
    catalog: &'static str,
    /// Its columns, by their position in the values of an entry, and their types.
    columns: &'static [(usize, Oid)],
    is_unique: bool,
}

/// All indexes of a catalog.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogIndexes {
    /// The columns that they have, which their positions count.
    pub(super) keys: &'static [&'static str],
    pub(super) all: &'static [CatalogIndex],
}

/// `pg_class_oid_index`, `pg_class_relname_nsp_index`, `pg_class_tblspc_relfilenode_index`.
pub(super) const OF_CLASS: CatalogIndexes = CatalogIndexes {
    keys: &["oid", "relname", "relnamespace", "reltablespace", "relfilenode"],
    all: &[
        CatalogIndex {
            oid: Oid(2662),
            catalog: "pg_class",
            columns: &[(0, oid::OID)],
            is_unique: true,
        },
        CatalogIndex {
            oid: Oid(2663),
            catalog: "pg_class",
            columns: &[(1, oid::NAME), (2, oid::OID)],
            is_unique: true,
        },
        CatalogIndex {
            oid: Oid(3455),
            catalog: "pg_class",
            columns: &[(3, oid::OID), (4, oid::OID)],
            is_unique: false,
        },
    ],
};

/// `pg_database_datname_index`, `pg_database_oid_index`.
pub(super) const OF_DATABASE: CatalogIndexes = CatalogIndexes {
    keys: &["oid", "datname"],
    all: &[
        CatalogIndex {
            oid: Oid(2671),
            catalog: "pg_database",
            columns: &[(1, oid::NAME)],
            is_unique: true,
        },
        CatalogIndex {
            oid: Oid(2672),
            catalog: "pg_database",
            columns: &[(0, oid::OID)],
            is_unique: true,
        },
    ],
};

/// `pg_shdepend_depender_index`, `pg_shdepend_reference_index`.
pub(super) const OF_DEPENDENCIES: CatalogIndexes = CatalogIndexes {
    keys: &["dbid", "classid", "objid", "objsubid", "refclassid", "refobjid"],
    all: &[
        CatalogIndex {
            oid: Oid(1232),
            catalog: "pg_shdepend",
            columns: &[(0, oid::OID), (1, oid::OID), (2, oid::OID), (3, oid::INT4)],
            is_unique: false,
        },
        CatalogIndex {
            oid: Oid(1233),
            catalog: "pg_shdepend",
            columns: &[(4, oid::OID), (5, oid::OID)],
            is_unique: false,
        },
    ],
};

/// True when an index that changes from page to page, as it is replayed, would lead its readers astray: one of a meta
/// page and a single leaf never does.
pub(super) fn needs_lock(pages: &[ChangedPage]) -> bool {
    pages.len() > 2
}

impl CatalogIndex {
    /// Every page of the index as it has to be.
    ///
    /// # Errors
    /// When what there is of it cannot be read.
    pub(super) fn rebuilt(
        &self,
        database: &Database,
        rows: &[CatalogEntry],
    ) -> Result<Vec<ChangedPage>> {
        let class = database.class(self.oid);
        let missing = || Error::refused(Refusal::missing_row("pg_class", "the index", self.oid));
        let class = class.ok_or_else(missing)?;
        let old = database.cluster().main_fork(&database.base_path(class)?)?.blocks();
        let mut pages = self.build(database, rows)?;
        let built = pages.len() as u32;
        pages.extend((built..old).map(|block| (BlockNumber(block), Box::new([0; BLOCK_SIZE]))));
        Ok(pages)
    }

    fn build(&self, database: &Database, rows: &[CatalogEntry]) -> Result<Vec<ChangedPage>> {
        let (order, layouts) = self.order(database)?;
        let mut form = IndexForm::new(self.catalog, &layouts)?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let value = |&(at, _): &(usize, Oid)| row.values.get(at).and_then(|v| v.as_deref());
            let keys: Vec<Option<&[u8]>> = self.columns.iter().map(value).collect();
            let mut entry = Vec::new();
            form.form(&keys[..], row.tid, &mut entry)?;
            entries.push(entry);
        }
        entries.sort_unstable_by(|a, b| order.compare(a, b));
        let options = BtreeOptions {
            name: self.catalog.into(),
            fillfactor: BTREE_DEFAULT_FILLFACTOR,
            has_included_columns: false,
            is_unique: self.is_unique,
            deduplicate_items: true,
            is_of_system_in_14: database.cluster().version() == PgVersion::V14,
        };
        let mut builder = BtreeBuilder::new(&order, options);
        let mut pages = Vec::new();
        let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<()> {
            pages.push((block, Box::new(*page)));
            Ok(())
        };
        entries.iter().try_for_each(|entry| builder.add(entry, &mut sink))?;
        builder.finish(&mut sink)?;
        pages.sort_by_key(|(block, _)| *block);
        Ok(pages)
    }

    /// The order of its entries, and the columns as the index has them: names without their padding.
    fn order(&self, database: &Database) -> Result<(KeyOrder, Vec<ColumnLayout>)> {
        let missing =
            || Error::refused(Refusal::missing_row("pg_attribute", "a catalog's index", self.oid));
        let columns = database.columns_of(&[self.oid])?.remove(&self.oid);
        let columns =
            columns.filter(|found| found.len() == self.columns.len()).ok_or_else(missing)?;
        let mut keys = Vec::new();
        for (column, &(_, of)) in columns.iter().zip(self.columns) {
            let order = ValueOrder::of_type(of, &TextCollation::C);
            // The columns of the indexes that are rebuilt are known beforehand, and so are their types.
            let order = order.expect("a column of a catalog's index has an order"); // infallible: names, OIDs and numbers
            keys.push(KeyColumn {
                layout: column.layout,
                order,
                descending: false,
                nulls_first: false,
            });
        }
        let layout = |column: &crate::Column| ColumnLayout {
            layout: column.layout,
            storage: AttributeStorage::Plain,
            compression: Compression::Pglz,
            dropped: false,
        };
        Ok((KeyOrder::new(keys), columns.iter().map(layout).collect()))
    }
}
