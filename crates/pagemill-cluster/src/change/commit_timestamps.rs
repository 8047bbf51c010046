//! The time of a commit in `pg_commit_ts`, where `track_commit_timestamp` has it kept.
//!
//! Recovery takes the time from the commit record; here the same is done by hand, beside the commit log. The origin is 0,
//! as that of any commit that was made here.
//!
//! Invariant: before a change is decided, the page with its transaction is there ([`make_page`]).
//!
//! Source: `TransactionTreeSetCommitTsData`, `ExtendCommitTs` and `ActivateCommitTs` in
//! `src/backend/access/transam/commit_ts.c`, PostgreSQL 14 to 18.

use std::path::PathBuf;

use pagemill_format::slru::{
    COMMIT_TIMESTAMP_BYTES, COMMIT_TIMESTAMPS_PER_PAGE, commit_timestamp_position,
};
use pagemill_format::{BLOCK_SIZE, TransactionId};
use pagemill_io::{Create, OpenForWrite, WritableFile};

use crate::data_directory::Cluster;
use crate::error::Result;

/// True for the first transaction of a page: the page has to be begun with it.
pub(super) fn begins_page(xid: TransactionId) -> bool {
    xid.0.is_multiple_of(COMMIT_TIMESTAMPS_PER_PAGE) || xid == TransactionId::FIRST_NORMAL
}

/// The number of the page that has the transaction.
pub(super) fn page_of(xid: TransactionId) -> u64 {
    u64::from(commit_timestamp_position(xid).page)
}

/// Makes sure that the log has the page of a transaction, so that nothing can be missing once the change is decided. One
/// that is not there is begun: a server makes the first one when the setting is turned on, and others as transactions
/// come to them.
///
/// # Errors
/// When the page cannot be made or written.
pub(super) fn make_page(cluster: &Cluster, xid: TransactionId) -> Result<()> {
    let position = commit_timestamp_position(xid);
    let file = open(cluster, xid, Create::OrNew)?;
    let page_end = position.page_offset() + BLOCK_SIZE as u64;
    let from = file.len()?.max(position.page_offset());
    if from < page_end {
        let missing = usize::try_from(page_end - from).expect("it is within a page"); // infallible: at most BLOCK_SIZE
        file.write_all_at(&[0; BLOCK_SIZE][..missing], from)?;
        file.sync_all()?;
        cluster.storage().sync_dir(&directory(cluster))?;
    }
    Ok(())
}

/// Writes the time of a commit, whose page is there, and syncs it.
pub(super) fn write(cluster: &Cluster, xid: TransactionId, time: i64) -> Result<()> {
    let position = commit_timestamp_position(xid);
    let file = open(cluster, xid, Create::Existing)?;
    let mut page = Box::new([0; BLOCK_SIZE]);
    // What an older life of these transactions left on the page is no longer true.
    if !begins_page(xid) {
        file.read_exact_at(&mut page[..], position.page_offset())?;
    }
    let entry = page.get_mut(position.byte..position.byte + COMMIT_TIMESTAMP_BYTES);
    let entry = entry.expect("an entry lies within its page"); // infallible: pages hold whole entries
    entry[..8].copy_from_slice(&time.to_le_bytes());
    entry[8..].fill(0);
    file.write_all_at(&page[..], position.page_offset())?;
    Ok(file.sync_data()?)
}

fn directory(cluster: &Cluster) -> PathBuf {
    cluster.path().join("pg_commit_ts")
}

fn open(cluster: &Cluster, xid: TransactionId, create: Create) -> Result<WritableFile> {
    let path = directory(cluster).join(commit_timestamp_position(xid).segment_name());
    let how = OpenForWrite { create, ..OpenForWrite::default() };
    Ok(cluster.storage().open_for_write(&path, how)?)
}
