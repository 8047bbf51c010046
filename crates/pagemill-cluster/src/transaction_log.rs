//! What became of transactions, read from `pg_xact` and `pg_multixact` as pages are needed.
//!
//! Each thread has its own [`ClusterLog`], so lookups take no lock; the pages it keeps are
//! bounded, and the status asked for last is remembered, because neighbours in a table were
//! mostly written by the same transaction.
//!
//! A transaction marked sub-committed died between marking its subtransactions and itself, or is
//! a part of a prepared one: either way it did not commit. That makes `pg_subtrans` unnecessary:
//! it only leads to parents that a server started on these files would find just as unfinished.
//!
//! Source: `TransactionIdDidCommit` in `src/backend/access/transam/transam.c`,
//! `GetMultiXactIdMembers` in `src/backend/access/transam/multixact.c`, PostgreSQL 14 to 18.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use pagemill_format::slru::{self, SlruPosition, TransactionStatus};
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork, MultiXactId, TransactionId};
use pagemill_stream::PageCache;

use crate::data_directory::Cluster;
use crate::error::{Damage, Error, Result};
use crate::visibility::TransactionLog;

/// Pages of the logs kept per thread (256 kB).
const CACHED_PAGES: NonZeroUsize = NonZeroUsize::new(32).unwrap(); // infallible: 32 is not 0

/// More members than a multixact can have: each is a transaction that was running, or prepared.
const MOST_MEMBERS: u32 = 1 << 22;

#[derive(Debug, Clone, Copy)]
enum Log {
    Commit,
    MultiXactOffsets,
    MultiXactMembers,
}

impl Log {
    fn directory(self) -> &'static str {
        match self {
            Self::Commit => "pg_xact",
            Self::MultiXactOffsets => "pg_multixact/offsets",
            Self::MultiXactMembers => "pg_multixact/members",
        }
    }
}

/// The logs of one cluster, for one thread.
#[derive(Debug)]
pub struct ClusterLog {
    cluster: Cluster,
    pages: PageCache,
    last: (TransactionId, bool),
}

impl ClusterLog {
    /// Logs of which nothing was read yet.
    pub fn new(cluster: Cluster) -> Self {
        let last = (TransactionId::INVALID, false);
        Self { cluster, pages: PageCache::new(CACHED_PAGES), last }
    }

    /// The status of one transaction as the commit log has it.
    ///
    /// # Errors
    /// When the log does not reach to it, or cannot be read.
    pub fn status(&mut self, xid: TransactionId) -> Result<TransactionStatus> {
        self.refuse_future(xid)?;
        let page = self.page(Log::Commit, slru::clog_position(xid), &|| {
            format!("the status of transaction {xid}")
        })?;
        Ok(slru::status_in_page(page, xid))
    }

    /// In a cluster that was shut down, no tuple can be of a transaction still to come.
    fn refuse_future(&self, xid: TransactionId) -> Result<()> {
        let next = self.cluster.control().checkpoint.next_xid.xid();
        if !self.cluster.is_clean() || xid.precedes(next) {
            return Ok(());
        }
        let path = self.cluster.path().join(Log::Commit.directory());
        let what = format!("transaction {xid} was never begun: the next one is {next}");
        Err(Damage::in_file(path, what).into())
    }

    fn page(
        &mut self,
        log: Log,
        position: SlruPosition,
        wanted: &dyn Fn() -> String,
    ) -> Result<&pagemill_format::BlockBytes> {
        let cluster = &self.cluster;
        self.pages.get(log as u64, BlockNumber(position.page), |page| {
            read_page(cluster, log, position, page, wanted)
        })
    }

    fn updater_of(&mut self, multi: MultiXactId) -> Result<Option<TransactionId>> {
        let first = self.member_offset(multi)?;
        let end = self.members_end(multi)?;
        if first == 0 || end.wrapping_sub(first) > MOST_MEMBERS {
            let path = self.cluster.path().join(Log::MultiXactOffsets.directory());
            let what = format!("multixact {multi} would have the members {first} to {end}");
            return Err(Damage::in_file(path, what).into());
        }
        let mut offset = first;
        while offset != end {
            let position = slru::multixact_member_position(offset);
            let page = self.page(Log::MultiXactMembers, position, &|| {
                format!("the members of multixact {multi}")
            })?;
            let member = slru::member_in_page(page, offset).map_err(|error| {
                let path = log_path(&self.cluster, Log::MultiXactMembers, position);
                Error::file_damage(path, &error)
            })?;
            if member.xid != TransactionId::INVALID && member.status.is_update() {
                return Ok(Some(member.xid));
            }
            offset = offset.wrapping_add(1);
        }
        Ok(None)
    }

    fn member_offset(&mut self, multi: MultiXactId) -> Result<u32> {
        let position = slru::multixact_offset_position(multi);
        let page = self.page(Log::MultiXactOffsets, position, &|| {
            format!("the first member of multixact {multi}")
        })?;
        Ok(slru::multixact_offset_in_page(page, multi))
    }

    /// Where the members of `multi` end: where those of the next one begin.
    fn members_end(&mut self, multi: MultiXactId) -> Result<u32> {
        let checkpoint = &self.cluster.control().checkpoint;
        let (next, next_offset) = (checkpoint.next_multi, checkpoint.next_multi_offset);
        let following = slru::next_multixact(multi);
        if following == next {
            return Ok(next_offset);
        }
        if self.cluster.is_clean() && (next.0.wrapping_sub(following.0) as i32) < 0 {
            let path = self.cluster.path().join(Log::MultiXactOffsets.directory());
            let what = format!("multixact {multi} was never begun: the next one is {next}");
            return Err(Damage::in_file(path, what).into());
        }
        self.member_offset(following)
    }
}

impl TransactionLog for ClusterLog {
    #[inline]
    fn committed(&mut self, xid: TransactionId) -> Result<bool> {
        if xid == self.last.0 {
            return Ok(self.last.1);
        }
        let committed = match xid {
            TransactionId::INVALID => false,
            TransactionId::BOOTSTRAP | TransactionId::FROZEN => true,
            normal => self.status(normal)? == TransactionStatus::Committed,
        };
        self.last = (xid, committed);
        Ok(committed)
    }

    fn updater(&mut self, multi: MultiXactId) -> Result<Option<TransactionId>> {
        if multi == MultiXactId(0) {
            return Ok(None);
        }
        self.updater_of(multi)
    }
}

fn log_path(cluster: &Cluster, log: Log, position: SlruPosition) -> PathBuf {
    cluster.path().join(log.directory()).join(position.segment_name())
}

/// Reads one page of a log. Where the cluster was not shut down, what was never written reads as
/// zeros: nothing committed.
fn read_page(
    cluster: &Cluster,
    log: Log,
    position: SlruPosition,
    page: &mut pagemill_format::BlockBytes,
    wanted: &dyn Fn() -> String,
) -> Result<()> {
    let path = log_path(cluster, log, position);
    let missing = |what: &str| -> Error {
        let block = BlockNumber(position.page % slru::PAGES_PER_SEGMENT);
        let what = format!("{what}, which holds {}", wanted());
        Damage::in_block(&path, Fork::Main, block, what).into()
    };
    let file = match cluster.storage().open(&path) {
        Ok(file) => file,
        Err(error) if error.is_not_found() && !cluster.is_clean() => {
            page.fill(0);
            return Ok(());
        }
        Err(error) if error.is_not_found() => return Err(missing("this file is missing")),
        Err(error) => return Err(error.into()),
    };
    let got = cluster
        .storage()
        .read_fully_at(file.as_ref(), page, position.page_offset())
        .map_err(|error| pagemill_io::Error::new(error, &path))?;
    if got == BLOCK_SIZE {
        return Ok(());
    }
    if cluster.is_clean() {
        return Err(missing("the file ends before this page"));
    }
    page[got..].fill(0);
    Ok(())
}
