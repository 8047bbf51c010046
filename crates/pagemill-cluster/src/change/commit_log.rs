//! Marking a transaction committed in `pg_xact`.
//!
//! Replay does it by the commit record; here the same is done by hand once nothing else can fail. The log is not made
//! of pages that WAL can hold images of, so the place is found and the two bits are set in the file.
//!
//! Source: `TransactionIdSetStatusBit` and `ExtendCLOG` in `src/backend/access/transam/clog.c`, PostgreSQL 14 to 18.

use pagemill_format::slru::{STATUSES_PER_PAGE, clog_position, set_committed};
use pagemill_format::{BLOCK_SIZE, TransactionId};
use pagemill_io::{Create, OpenForWrite};

use crate::data_directory::Cluster;
use crate::error::Result;

/// True for the first transaction of a page of the log: the page has to be begun with it.
pub(super) fn begins_page(xid: TransactionId) -> bool {
    xid.0.is_multiple_of(STATUSES_PER_PAGE) || xid == TransactionId::FIRST_NORMAL
}

/// The number of the page that has the transaction.
pub(super) fn page_of(xid: TransactionId) -> u64 {
    u64::from(clog_position(xid).page)
}

/// Sets the status of a transaction, and syncs it.
pub(super) fn mark_committed(cluster: &Cluster, xid: TransactionId) -> Result<()> {
    let position = clog_position(xid);
    let directory = cluster.path().join("pg_xact");
    let how = OpenForWrite { create: Create::OrNew, ..OpenForWrite::default() };
    let file = cluster.storage().open_for_write(&directory.join(position.segment_name()), how)?;
    let mut page = Box::new([0; BLOCK_SIZE]);
    let begins = begins_page(xid) && file.len()? <= position.page_offset();
    if !begins {
        file.read_exact_at(&mut page[..], position.page_offset())?;
    }
    set_committed(&mut page, xid);
    file.write_all_at(&page[..], position.page_offset())?;
    file.sync_data()?;
    Ok(cluster.storage().sync_dir(&directory)?)
}
