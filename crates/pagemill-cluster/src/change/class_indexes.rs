//! The three indexes of `pg_class`, built anew when rows of it got new versions.
//!
//! A new version needs an entry in each of them. They are small, and new ones are written over them, in place: pages that
//! are no longer needed become empty ones.
//!
//! Invariant: every row that was visible before has its entry, and so has every new version.
//!
//! Source: `src/include/catalog/pg_class.h`, PostgreSQL 14 to 18.

use pagemill_format::btree_builder::{BTREE_DEFAULT_FILLFACTOR, BtreeBuilder, BtreeOptions};
use pagemill_format::index_key_order::{KeyColumn, KeyOrder};
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::types::order::{TextCollation, ValueOrder};
use pagemill_format::varlena::Compression;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Oid, PgVersion};

use super::class_rows::{ChangedPage, ClassEntry};
use crate::database::Database;
use crate::error::{Error, Result};

const OID_TYPE: Oid = Oid(26);
const NAME_TYPE: Oid = Oid(19);

/// One of the indexes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassIndex {
    pub(super) oid: Oid,
    types: &'static [Oid],
    is_unique: bool,
    keys: for<'e> fn(&'e ClassEntry) -> Vec<Option<&'e [u8]>>,
}

/// `pg_class_oid_index`, `pg_class_relname_nsp_index`, `pg_class_tblspc_relfilenode_index`.
pub(super) const ALL: [ClassIndex; 3] = [
    ClassIndex {
        oid: Oid(2662),
        types: &[OID_TYPE],
        is_unique: true,
        keys: |entry| vec![Some(&entry.oid)],
    },
    ClassIndex {
        oid: Oid(2663),
        types: &[NAME_TYPE, OID_TYPE],
        is_unique: true,
        keys: |entry| vec![Some(&entry.name), Some(&entry.namespace)],
    },
    ClassIndex {
        oid: Oid(3455),
        types: &[OID_TYPE, OID_TYPE],
        is_unique: false,
        keys: |entry| vec![Some(&entry.tablespace), Some(&entry.filenode)],
    },
];

impl ClassIndex {
    /// Every page of the index as it has to be.
    ///
    /// # Errors
    /// When what there is of it cannot be read.
    pub(super) fn rebuilt(
        &self,
        database: &Database,
        rows: &[ClassEntry],
    ) -> Result<Vec<ChangedPage>> {
        let class = database.class(self.oid);
        let class = class.ok_or_else(|| Error::refused("pg_class has no row for its own index"))?;
        let old = database.cluster().main_fork(&database.base_path(class)?)?.blocks();
        let mut pages = self.build(database, rows)?;
        let built = pages.len() as u32;
        pages.extend((built..old).map(|block| (BlockNumber(block), Box::new([0; BLOCK_SIZE]))));
        Ok(pages)
    }

    fn build(&self, database: &Database, rows: &[ClassEntry]) -> Result<Vec<ChangedPage>> {
        let (order, layouts) = self.order(database)?;
        let mut form = IndexForm::new("pg_class", &layouts)?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let mut entry = Vec::new();
            form.form(&(self.keys)(row)[..], row.tid, &mut entry)?;
            entries.push(entry);
        }
        entries.sort_unstable_by(|a, b| order.compare(a, b));
        let options = BtreeOptions {
            name: "pg_class".into(),
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
        let columns = database.columns_of(&[self.oid])?.remove(&self.oid).unwrap_or_default();
        let mut keys = Vec::new();
        for (column, &of) in columns.iter().zip(self.types) {
            let order = ValueOrder::of_type(of, &TextCollation::C);
            let order = order.ok_or_else(|| Error::refused("OIDs and names have no order"))?;
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
