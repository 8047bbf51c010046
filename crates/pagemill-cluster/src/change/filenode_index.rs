//! `pg_class_tblspc_relfilenode_index`, built anew when a relation got other files.
//!
//! Its key changes where the row stays, so its old entry would lead to a row with another key. The index is small, and
//! a new one is written over it, in place: pages that it no longer needs become empty ones.
//!
//! Source: `ClassTblspcRelfilenodeIndexId` in `src/include/catalog/pg_class.h`, PostgreSQL 14 to 18.

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Oid};

use super::class_rows::{ChangedPage, filenode_entries};
use crate::database::Database;
use crate::error::{Error, Result};

/// The index.
pub(super) const INDEX: Oid = Oid(3455);

/// Every page of the index as it has to be; `page` gives the changed version of a page of `pg_class`.
pub(super) fn rebuilt(
    database: &Database,
    page: impl Fn(BlockNumber) -> Option<Box<BlockBytes>>,
) -> Result<Vec<ChangedPage>> {
    let class = database.class(INDEX);
    let class = class.ok_or_else(|| Error::refused("pg_class has no row for its own index"))?;
    let old = database.cluster().main_fork(&database.base_path(class)?)?.blocks();
    let mut pages: Vec<ChangedPage> = Vec::new();
    let entries = filenode_entries(database, page)?;
    todo!("{entries:?} {pages:?} {old}");
}
