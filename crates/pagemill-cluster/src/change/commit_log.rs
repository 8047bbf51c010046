//! Marking a transaction committed in `pg_xact`.
//!
//! Replay does it by the commit record; here the same is done by hand once nothing else can fail. The log is not made
//! of pages that WAL can hold images of, so the place is found and the two bits are set in the file.
//!
//! Invariant: before a change is decided, the page with its transaction is there ([`make_page`]).
//!
//! Source: `TransactionIdSetStatusBit` and `ExtendCLOG` in `src/backend/access/transam/clog.c`, PostgreSQL 14 to 18.

use std::path::PathBuf;

use pagemill_format::slru::{STATUSES_PER_PAGE, clog_position, set_committed};
use pagemill_format::{BLOCK_SIZE, TransactionId};
use pagemill_io::{Create, OpenForWrite, WritableFile};

use crate::data_directory::Cluster;
use crate::error::{Damage, Error, Result};

/// True for the first transaction of a page of the log: the page has to be begun with it.
pub(super) fn begins_page(xid: TransactionId) -> bool {
    xid.0.is_multiple_of(STATUSES_PER_PAGE) || xid == TransactionId::FIRST_NORMAL
}

/// The number of the page that has the transaction.
pub(super) fn page_of(xid: TransactionId) -> u64 {
    u64::from(clog_position(xid).page)
}

/// Makes sure that the log has the page of a transaction, so that nothing can be missing once the change is decided. A
/// page that begins with the transaction is made, as zeros: if the change is given up after all, a server makes it
/// again when it comes to that transaction.
///
/// # Errors
/// When another page is missing, which a server needs at its start too, or no page can be made or written.
pub(super) fn make_page(cluster: &Cluster, xid: TransactionId) -> Result<()> {
    let position = clog_position(xid);
    let (directory, page_end) = (directory(cluster), position.page_offset() + BLOCK_SIZE as u64);
    let create = if begins_page(xid) { Create::OrNew } else { Create::Existing };
    let file = match open(cluster, xid, create) {
        Err(Error::Io(error)) if error.is_not_found() => return Err(no_page(cluster, xid)),
        opened => opened?,
    };
    if file.len()? >= page_end {
        return Ok(());
    }
    if !begins_page(xid) {
        return Err(no_page(cluster, xid));
    }
    file.write_all_at(&[0; BLOCK_SIZE], position.page_offset())?;
    file.sync_all()?;
    Ok(cluster.storage().sync_dir(&directory)?)
}

fn directory(cluster: &Cluster) -> PathBuf {
    cluster.path().join("pg_xact")
}

fn open(cluster: &Cluster, xid: TransactionId, create: Create) -> Result<WritableFile> {
    let path = directory(cluster).join(clog_position(xid).segment_name());
    let how = OpenForWrite { create, ..OpenForWrite::default() };
    Ok(cluster.storage().open_for_write(&path, how)?)
}

#[cold]
fn no_page(cluster: &Cluster, xid: TransactionId) -> Error {
    let position = clog_position(xid);
    let what = format!(
        "the commit log has no page for the next transaction, {xid}, at offset {}: no server starts without it",
        position.page_offset()
    );
    Damage::in_file(directory(cluster).join(position.segment_name()), what).into()
}

/// Sets the status of a transaction, whose page is there, and syncs it.
pub(super) fn mark_committed(cluster: &Cluster, xid: TransactionId) -> Result<()> {
    let position = clog_position(xid);
    let file = open(cluster, xid, Create::Existing)?;
    let mut page = Box::new([0; BLOCK_SIZE]);
    // What an older life of these transactions left on the page is no longer true.
    if !begins_page(xid) {
        file.read_exact_at(&mut page[..], position.page_offset())?;
    }
    set_committed(&mut page, xid);
    file.write_all_at(&page[..], position.page_offset())?;
    Ok(file.sync_data()?)
}
