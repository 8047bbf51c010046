//! `pg_class_tblspc_relfilenode_index`, built anew when a relation got other files.
//!
//! Its key changes where the row stays, so its old entry would lead to a row with another key. The index is small, and
//! a new one is written over it, in place: pages that it no longer needs become empty ones.
//!
//! Source: `ClassTblspcRelfilenodeIndexId` in `src/include/catalog/pg_class.h`, PostgreSQL 14 to 18.

use pagemill_format::btree_builder::{BTREE_DEFAULT_FILLFACTOR, BtreeBuilder, BtreeOptions};
use pagemill_format::index_key_order::{KeyColumn, KeyOrder};
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::types::order::{TextCollation, ValueOrder};
use pagemill_format::varlena::Compression;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Oid, PgVersion};

use super::class_rows::{ChangedPage, FilenodeEntry, filenode_entries};
use crate::database::Database;
use crate::error::{Error, Result};

/// The index.
pub(super) const INDEX: Oid = Oid(3455);
const NAME: &str = "pg_class_tblspc_relfilenode_index";
/// The type of both its columns.
const OID_TYPE: Oid = Oid(26);
const OID_LAYOUT: AttributeLayout = AttributeLayout { len: 4, align: 4 };

/// Every page of the index as it has to be; `page` gives the changed version of a page of `pg_class`.
pub(super) fn rebuilt(
    database: &Database,
    page: impl Fn(BlockNumber) -> Option<Box<BlockBytes>>,
) -> Result<Vec<ChangedPage>> {
    let class = database.class(INDEX);
    let class = class.ok_or_else(|| Error::refused("pg_class has no row for its own index"))?;
    let old = database.cluster().main_fork(&database.base_path(class)?)?.blocks();
    let mut pages = build(&filenode_entries(database, page)?, database.cluster().version())?;
    let built = pages.len() as u32;
    pages.extend((built..old).map(|block| (BlockNumber(block), Box::new([0; BLOCK_SIZE]))));
    Ok(pages)
}

fn build(entries: &[FilenodeEntry], version: PgVersion) -> Result<Vec<ChangedPage>> {
    let column = || -> Result<KeyColumn> {
        let order = ValueOrder::of_type(OID_TYPE, &TextCollation::default());
        let order = order.ok_or_else(|| Error::refused("OIDs have no order"))?;
        Ok(KeyColumn { layout: OID_LAYOUT, order, descending: false, nulls_first: false })
    };
    let order = KeyOrder::new(vec![column()?, column()?]);
    let options = BtreeOptions {
        name: NAME.into(),
        fillfactor: BTREE_DEFAULT_FILLFACTOR,
        has_included_columns: false,
        is_unique: false,
        deduplicate_items: true,
        is_of_system_in_14: version == PgVersion::V14,
    };
    let layout = ColumnLayout {
        layout: OID_LAYOUT,
        storage: AttributeStorage::Plain,
        compression: Compression::Pglz,
        dropped: false,
    };
    let mut form = IndexForm::new(NAME, &[layout, layout])?;
    let mut builder = BtreeBuilder::new(&order, options);
    let mut pages = Vec::new();
    let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<()> {
        pages.push((block, Box::new(*page)));
        Ok(())
    };
    let mut entry = Vec::new();
    for &(tablespace, filenode, tid) in entries {
        entry.clear();
        let (tablespace, filenode) = (tablespace.to_le_bytes(), filenode.to_le_bytes());
        form.form(&[Some(&tablespace[..]), Some(&filenode[..])][..], tid, &mut entry)?;
        builder.add(&entry, &mut sink)?;
    }
    builder.finish(&mut sink)?;
    pages.sort_by_key(|(block, _)| *block);
    Ok(pages)
}
