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
use pagemill_format::{
    BLOCK_SIZE, BlockNumber, Error as FormatError, Fork, MultiXactId, TransactionId,
};
use pagemill_stream::PageCache;

use crate::data_directory::Cluster;
use crate::error::{Damage, Error, Result};
use crate::visibility::TransactionLog;

/// Pages of the logs kept per thread (at most 1 MiB). They are not in the shared buffers: that would be a
/// lock for each lookup, to share what is a megabyte for four million transactions. With fewer, a table whose rows were
/// updated in random order by so many has a page read for every other row.
const CACHED_PAGES: NonZeroUsize = NonZeroUsize::new(128).unwrap(); // infallible: 128 is not 0

/// More members than a multixact can have. Members join one at a time, and each time all that are
/// there are written anew under a new multixact, whose places stay taken while any of them runs:
/// n members take n (n + 1) / 2 places, of which there are 2^32, so n stays below 92,682.
const MOST_MEMBERS: u32 = 1 << 17;

/// `InvalidMultiXactId`.
const NO_MULTIXACT: MultiXactId = MultiXactId(0);

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

/// A page of a log.
#[derive(Debug, Clone, Copy)]
struct LogPage {
    log: Log,
    position: SlruPosition,
}

impl LogPage {
    /// The file it lies in.
    fn path(self, cluster: &Cluster) -> PathBuf {
        cluster.path().join(self.log.directory()).join(self.position.segment_name())
    }
}

/// The logs of one cluster, for one thread.
#[derive(Debug)]
pub struct ClusterLog {
    cluster: Cluster,
    pages: PageCache,
    last: (TransactionId, bool),
    last_updater: (MultiXactId, Option<TransactionId>),
}

impl ClusterLog {
    /// Logs of which nothing was read yet.
    pub fn new(cluster: Cluster) -> Self {
        let last = (TransactionId::INVALID, false);
        let last_updater = (NO_MULTIXACT, None);
        Self { cluster, pages: PageCache::new(CACHED_PAGES), last, last_updater }
    }

    /// The status of one transaction as the commit log has it.
    ///
    /// # Errors
    /// When the log does not reach to it, or cannot be read.
    pub fn status(&mut self, xid: TransactionId) -> Result<TransactionStatus> {
        self.refuse_future(xid)?;
        let place = LogPage { log: Log::Commit, position: slru::clog_position(xid) };
        self.refuse_truncated(xid, place)?;
        let page = self.page(place, &|| format!("the status of transaction {xid}"))?;
        Ok(slru::status_in_page(page, xid))
    }

    /// Where the log was truncated, nothing tells what became of a transaction. A page that is
    /// still there tells as well as ever, so only what is missing is refused. Reading zeros there,
    /// as for what was never written, would hide rows that were committed long ago.
    fn refuse_truncated(&self, xid: TransactionId, place: LogPage) -> Result<()> {
        let oldest = self.cluster.counters().oldest_xid;
        if !xid.precedes(oldest) {
            return Ok(());
        }
        let path = place.path(&self.cluster);
        if self.cluster.storage().exists(&path)? {
            return Ok(());
        }
        let what = format!(
            "this file is missing, and transaction {xid} is older than {oldest}, the oldest that \
             the commit log still covers: what asks for it should have been frozen long ago"
        );
        Err(Damage::in_file(path, what).into())
    }

    /// In a cluster that was shut down, no tuple can be of a transaction still to come.
    fn refuse_future(&self, xid: TransactionId) -> Result<()> {
        let next = self.cluster.counters().next_xid.xid();
        if !self.cluster.is_complete() || xid.precedes(next) {
            return Ok(());
        }
        let path = self.cluster.path().join(Log::Commit.directory());
        let what = format!("transaction {xid} was never begun: the next one is {next}");
        Err(Damage::in_file(path, what).into())
    }

    fn page(
        &mut self,
        place: LogPage,
        wanted: &dyn Fn() -> String,
    ) -> Result<&pagemill_format::BlockBytes> {
        let cluster = &self.cluster;
        self.pages.get(place.log as u64, BlockNumber(place.position.page), |page| {
            read_page(cluster, place, page, wanted)
        })
    }

    fn updater_of(&mut self, multi: MultiXactId) -> Result<Option<TransactionId>> {
        let first = self.member_offset(multi)?;
        let end = self.members_end(multi)?;
        let unwritten = first == 0 || end == 0;
        if unwritten && !self.cluster.is_complete() {
            // Offsets that were still in the server's memory: nobody is known to have updated.
            return Ok(None);
        }
        if unwritten || end.wrapping_sub(first) > MOST_MEMBERS {
            let path = self.cluster.path().join(Log::MultiXactOffsets.directory());
            let what = format!("multixact {multi} would have the members {first} to {end}");
            return Err(Damage::in_file(path, what).into());
        }
        let mut offset = first;
        while offset != end {
            let position = slru::multixact_member_position(offset);
            let place = LogPage { log: Log::MultiXactMembers, position };
            let page = self.page(place, &|| format!("the members of multixact {multi}"))?;
            let found = updater_in_page(page, position.page, &mut offset, end);
            let updater =
                found.map_err(|error| Error::file_damage(place.path(&self.cluster), &error))?;
            if updater.is_some() {
                return Ok(updater);
            }
        }
        Ok(None)
    }

    fn member_offset(&mut self, multi: MultiXactId) -> Result<u32> {
        let position = slru::multixact_offset_position(multi);
        let place = LogPage { log: Log::MultiXactOffsets, position };
        let page = self.page(place, &|| format!("the first member of multixact {multi}"))?;
        Ok(slru::multixact_offset_in_page(page, multi))
    }

    /// Where the members of `multi` end: where those of the next one begin.
    fn members_end(&mut self, multi: MultiXactId) -> Result<u32> {
        let counters = self.cluster.counters();
        let (next, next_offset) = (counters.next_multi, counters.next_multi_offset);
        let following = slru::next_multixact(multi);
        if following == next {
            return Ok(next_offset);
        }
        if self.cluster.is_complete() && (next.0.wrapping_sub(following.0) as i32) < 0 {
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
        if multi == self.last_updater.0 {
            return Ok(self.last_updater.1);
        }
        let updater = self.updater_of(multi)?;
        self.last_updater = (multi, updater);
        Ok(updater)
    }
}

/// The updater among those members from `offset` to `end` that are on this page; `offset` is left
/// at the first that was not looked at.
fn updater_in_page(
    page: &pagemill_format::BlockBytes,
    number: u32,
    offset: &mut u32,
    end: u32,
) -> Result<Option<TransactionId>, FormatError> {
    while *offset != end && slru::multixact_member_position(*offset).page == number {
        let member = slru::member_in_page(page, *offset)?;
        *offset = offset.wrapping_add(1);
        if member.xid != TransactionId::INVALID && member.status.is_update() {
            return Ok(Some(member.xid));
        }
    }
    Ok(None)
}

/// Reads one page of a log. Where the cluster was not shut down, what was never written reads as
/// zeros: nothing committed.
fn read_page(
    cluster: &Cluster,
    place: LogPage,
    page: &mut pagemill_format::BlockBytes,
    wanted: &dyn Fn() -> String,
) -> Result<()> {
    let (path, position) = (place.path(cluster), place.position);
    let missing = |what: &str| -> Error {
        let block = BlockNumber(position.page % slru::PAGES_PER_SEGMENT);
        let what = format!("{what}, which holds {}", wanted());
        Damage::in_block(&path, Fork::Main, block, what).into()
    };
    let file = match cluster.storage().open(&path) {
        Ok(file) => file,
        Err(error) if error.is_not_found() && !cluster.is_complete() => {
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
    if cluster.is_complete() {
        return Err(missing("the file ends before this page"));
    }
    page[got..].fill(0);
    Ok(())
}

/// A data directory with just the files that a test puts into it.
#[cfg(test)]
pub(crate) mod synthetic {
    use pagemill_io::Storage;

    use super::*;
    use crate::OpenOptions;

    /// What PostgreSQL 15 wrote, a server running; it goes on with zeros.
    const CONTROL_15: &[u8] = include_bytes!("../../pagemill-format/fixtures/pg_control/15.bin");
    const CRC_OFFSET: usize = 288;
    const SHUT_DOWN: u32 = 1;
    const IN_PRODUCTION: u32 = 6;

    /// What becomes `pg_control` of the cluster when it is opened.
    pub(crate) struct SyntheticCluster {
        dir: tempfile::TempDir,
        control: Vec<u8>,
    }

    impl SyntheticCluster {
        /// A cluster shut down with these next ids: transaction, multixact, and member.
        pub(crate) fn new(next_xid: u32, next_multi: u32, next_offset: u32) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let control = CONTROL_15[..CRC_OFFSET].to_vec();
            let mut made = Self { dir, control };
            for (at, word) in [(16, SHUT_DOWN), (64, next_xid), (76, next_multi), (80, next_offset)]
            {
                made.set(at, word);
            }
            made.write("PG_VERSION", b"15\n");
            made
        }

        fn set(&mut self, at: usize, word: u32) {
            self.control[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }

        /// The server was killed.
        pub(crate) fn killed(mut self) -> Self {
            self.set(16, IN_PRODUCTION);
            self
        }

        /// The commit log was truncated up to this transaction.
        pub(crate) fn truncated_to(mut self, oldest_xid: u32) -> Self {
            self.set(84, oldest_xid);
            self
        }

        /// The pages carry no checksums.
        pub(crate) fn without_checksums(mut self) -> Self {
            self.set(252, 0);
            self
        }

        pub(crate) fn path(&self, file: &str) -> PathBuf {
            self.dir.path().join(file)
        }

        pub(crate) fn write(&self, file: &str, bytes: &[u8]) {
            let path = self.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }

        pub(crate) fn open(&self) -> Cluster {
            let mut control = self.control.clone();
            control.extend(crc32c::crc32c(&control).to_le_bytes());
            control.resize(BLOCK_SIZE, 0);
            self.write("global/pg_control", &control);
            let options = OpenOptions { allow_unclean: true, ..OpenOptions::default() };
            Cluster::open(Storage::real(), self.dir.path(), options).unwrap()
        }

        pub(crate) fn log(&self) -> ClusterLog {
            ClusterLog::new(self.open())
        }
    }
}

#[cfg(test)]
mod tests;
