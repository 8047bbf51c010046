//! The time of a commit in `pg_commit_ts`, where `track_commit_timestamp` has it kept.
//!
//! Recovery takes the time from the commit record; here the same is done by hand, beside the commit log. The origin is 0,
//! as that of any commit that was made here.
//!
//! Source: `TransactionTreeSetCommitTsData`, `ExtendCommitTs` and `ActivateCommitTs` in
//! `src/backend/access/transam/commit_ts.c`, PostgreSQL 14 to 18.

use pagemill_format::slru::{
    COMMIT_TIMESTAMP_BYTES, COMMIT_TIMESTAMPS_PER_PAGE, commit_timestamp_position,
};
use pagemill_format::{BLOCK_SIZE, TransactionId};
use pagemill_io::{Create, OpenForWrite};

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

/// Writes the time of a commit, and syncs it. A page that is not there yet is begun: a server makes the first one when the
/// setting is turned on, and others as transactions come to them.
pub(super) fn write(cluster: &Cluster, xid: TransactionId, time: i64) -> Result<()> {
    let position = commit_timestamp_position(xid);
    let directory = cluster.path().join("pg_commit_ts");
    let how = OpenForWrite { create: Create::OrNew, ..OpenForWrite::default() };
    let file = cluster.storage().open_for_write(&directory.join(position.segment_name()), how)?;
    let mut page = Box::new([0; BLOCK_SIZE]);
    if file.len()? > position.page_offset() {
        file.read_exact_at(&mut page[..], position.page_offset())?;
    }
    let entry = page.get_mut(position.byte..position.byte + COMMIT_TIMESTAMP_BYTES);
    let entry = entry.expect("an entry lies within its page"); // infallible: pages hold whole entries
    entry[..8].copy_from_slice(&time.to_le_bytes());
    entry[8..].fill(0);
    file.write_all_at(&page[..], position.page_offset())?;
    file.sync_data()?;
    Ok(cluster.storage().sync_dir(&directory)?)
}
