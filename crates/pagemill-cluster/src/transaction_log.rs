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

/// Pages of the logs kept per thread (256 kB). They are not in the shared buffers: that would be a
/// lock for each lookup, to share what is a megabyte for four million transactions.
const CACHED_PAGES: NonZeroUsize = NonZeroUsize::new(32).unwrap(); // infallible: 32 is not 0

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
        let position = slru::clog_position(xid);
        self.refuse_truncated(xid, position)?;
        let page =
            self.page(Log::Commit, position, &|| format!("the status of transaction {xid}"))?;
        Ok(slru::status_in_page(page, xid))
    }

    /// Where the log was truncated, nothing tells what became of a transaction. A page that is
    /// still there tells as well as ever, so only what is missing is refused. Reading zeros there,
    /// as for what was never written, would hide rows that were committed long ago.
    fn refuse_truncated(&self, xid: TransactionId, position: SlruPosition) -> Result<()> {
        let oldest = self.cluster.counters().oldest_xid;
        if !xid.precedes(oldest) {
            return Ok(());
        }
        let path = log_path(&self.cluster, Log::Commit, position);
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
            let page = self.page(Log::MultiXactMembers, position, &|| {
                format!("the members of multixact {multi}")
            })?;
            let found = updater_in_page(page, position.page, &mut offset, end);
            let updater = found.map_err(|error| {
                let path = log_path(&self.cluster, Log::MultiXactMembers, position);
                Error::file_damage(path, &error)
            })?;
            if updater.is_some() {
                return Ok(updater);
            }
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
mod tests {
    use proptest::prelude::*;

    use super::synthetic::SyntheticCluster;
    use super::*;

    const RUNNING: u8 = 0;
    const COMMITTED: u8 = 1;
    const ABORTED: u8 = 2;
    const SUB_COMMITTED: u8 = 3;

    /// A page of the commit log with these statuses.
    fn statuses(known: &[(u32, u8)]) -> Vec<u8> {
        let mut page = vec![0; BLOCK_SIZE];
        for &(xid, status) in known {
            page[slru::clog_position(TransactionId(xid)).byte] |= status << (xid % 4 * 2);
        }
        page
    }

    /// A page of `pg_multixact/offsets` that begins with these.
    fn offsets(first: &[u32]) -> Vec<u8> {
        let mut page: Vec<u8> = first.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        page.resize(BLOCK_SIZE, 0);
        page
    }

    /// Puts members, each with its offset, flags and transaction, into a page.
    fn members(known: &[(u32, u8, u32)]) -> Vec<u8> {
        let mut page = vec![0; BLOCK_SIZE];
        for &(offset, flags, xid) in known {
            let (group, place) =
                (slru::multixact_member_position(offset).byte, offset as usize % 4);
            page[group + place] = flags;
            page[group + 4 + place * 4..][..4].copy_from_slice(&xid.to_le_bytes());
        }
        page
    }

    const KEY_SHARE: u8 = 0;
    const SHARE: u8 = 1;
    const UPDATE: u8 = 5;

    fn committed(log: &mut ClusterLog, xid: u32) -> bool {
        log.committed(TransactionId(xid)).unwrap()
    }

    fn updater(log: &mut ClusterLog, multi: u32) -> Option<u32> {
        log.updater(MultiXactId(multi)).unwrap().map(|xid| xid.0)
    }

    #[test]
    fn only_what_the_commit_log_calls_committed_is_so() {
        let made = SyntheticCluster::new(1000, 1, 1);
        let known = [(100, COMMITTED), (101, ABORTED), (102, SUB_COMMITTED), (103, RUNNING)];
        made.write("pg_xact/0000", &statuses(&known));
        let mut log = made.log();
        for (xid, status) in known {
            for _ in 0..2 {
                assert_eq!(committed(&mut log, xid), status == COMMITTED, "{xid}");
            }
        }
    }

    #[test]
    fn the_ids_that_no_transaction_has_need_no_commit_log() {
        let mut log = SyntheticCluster::new(1000, 1, 1).log();
        assert!(!committed(&mut log, 0) && committed(&mut log, 1) && committed(&mut log, 2));
        assert_eq!(updater(&mut log, 0), None);
    }

    #[test]
    fn a_status_is_found_in_its_segment_and_page() {
        let made = SyntheticCluster::new(32_768 * 34, 1, 1);
        let pages = [statuses(&[]), statuses(&[(7, COMMITTED)])].concat();
        made.write("pg_xact/0001", &pages);
        let mut log = made.log();
        assert!(committed(&mut log, 32_768 * 33 + 7));
        assert!(!committed(&mut log, 32_768 * 32 + 7));
    }

    #[test]
    fn a_transaction_still_to_come_is_damage_in_a_cluster_that_was_shut_down() {
        let made = SyntheticCluster::new(1000, 1, 1);
        made.write("pg_xact/0000", &statuses(&[(1000, COMMITTED)]));
        let error = made.log().committed(TransactionId(1000)).unwrap_err().to_string();
        assert!(error.contains("1000 was never begun: the next one is 1000"), "{error}");
        assert!(committed(&mut made.killed().log(), 1000));
    }

    #[test]
    fn ids_from_before_the_wrap_round_are_of_the_past() {
        let made = SyntheticCluster::new(10, 1, 1);
        let mut file = vec![0; 31 * BLOCK_SIZE];
        file.extend(statuses(&[(u32::MAX, COMMITTED)]));
        made.write("pg_xact/0FFF", &file);
        assert!(committed(&mut made.log(), u32::MAX));
    }

    #[test]
    fn a_log_that_is_missing_or_ends_early_is_damage_unless_the_server_was_killed() {
        let made = SyntheticCluster::new(100_000, 1, 1);
        let wanted = "which holds the status of transaction 40000";
        let refusal =
            |made: &SyntheticCluster| made.log().committed(TransactionId(40_000)).unwrap_err();
        let missing = refusal(&made).to_string();
        assert!(missing.contains("0000") && missing.contains("missing"), "{missing}");
        assert!(missing.contains(wanted), "{missing}");
        made.write("pg_xact/0000", &statuses(&[(40_000, COMMITTED)])[..BLOCK_SIZE - 1]);
        let short = refusal(&made).to_string();
        assert!(
            short.contains("block 1: the file ends before") && short.contains(wanted),
            "{short}"
        );
        assert!(!committed(&mut made.killed().log(), 40_000));
    }

    #[test]
    fn a_transaction_from_before_the_oldest_is_told_so_when_its_status_is_gone() {
        let made = SyntheticCluster::new(2_000_000, 1, 1).truncated_to(1_500_000);
        let says = ["pg_xact/0000", "missing", "40000 is older than 1500000, the oldest"];
        let refusal =
            |made: &SyntheticCluster| made.log().committed(TransactionId(40_000)).unwrap_err();
        let told = refusal(&made).to_string();
        assert!(says.iter().all(|part| told.contains(part)), "{told}");
        // What a server kept although it need not have still tells.
        let pages = [statuses(&[]), statuses(&[(40_000, COMMITTED)])].concat();
        made.write("pg_xact/0000", &pages);
        assert!(committed(&mut made.log(), 40_000));
        // After a kill too: it is not that the status was never written.
        std::fs::remove_file(made.path("pg_xact/0000")).unwrap();
        let told = refusal(&made.killed()).to_string();
        assert!(says.iter().all(|part| told.contains(part)), "{told}");
    }

    #[test]
    fn what_a_killed_server_wrote_of_a_page_counts() {
        let made = SyntheticCluster::new(1000, 1, 1).killed();
        made.write("pg_xact/0000", &statuses(&[(100, COMMITTED), (500, COMMITTED)])[..100]);
        let mut log = made.log();
        assert!(committed(&mut log, 100) && !committed(&mut log, 500));
    }

    #[test]
    fn the_updater_of_a_multixact_is_found_among_its_lockers() {
        let made = SyntheticCluster::new(1000, 4, 7);
        made.write("pg_multixact/offsets/0000", &offsets(&[0, 1, 4, 6]));
        let known = [(1, SHARE, 50), (2, KEY_SHARE, 51), (3, UPDATE, 52), (4, SHARE, 53)];
        let more = [(5, KEY_SHARE, 54), (6, UPDATE, 55)];
        made.write("pg_multixact/members/0000", &members(&[&known[..], &more].concat()));
        let mut log = made.log();
        assert_eq!(updater(&mut log, 1), Some(52));
        assert_eq!(updater(&mut log, 2), None);
        assert_eq!(updater(&mut log, 3), Some(55));
    }

    /// Member 0 does not exist: the multixact that wraps round has a place there that nobody owns.
    #[test]
    fn the_members_of_a_multixact_may_wrap_round() {
        let made = SyntheticCluster::new(1000, 2, 2);
        made.write("pg_multixact/offsets/0000", &offsets(&[0, u32::MAX]));
        made.write("pg_multixact/members/0000", &members(&[(0, UPDATE, 0), (1, UPDATE, 51)]));
        let last = slru::multixact_member_position(u32::MAX);
        let mut file = vec![0; last.page_offset() as usize];
        file.extend(members(&[(u32::MAX, SHARE, 50)]));
        made.write("pg_multixact/members/14078", &file);
        assert_eq!(updater(&mut made.log(), 1), Some(51));
    }

    #[test]
    fn offsets_that_no_multixact_can_have_are_damage() {
        let made = SyntheticCluster::new(1000, 3, 9);
        let refusal = |first: &[u32], multi| {
            made.write("pg_multixact/offsets/0000", &offsets(first));
            made.log().updater(MultiXactId(multi)).unwrap_err().to_string()
        };
        assert!(refusal(&[0, 0, 5], 1).contains("would have the members 0 to 5"));
        assert!(refusal(&[0, 6, 5], 1).contains("would have the members 6 to 5"));
        assert!(refusal(&[0, 1, MOST_MEMBERS + 2], 1).contains("would have the members 1 to"));
        assert!(refusal(&[0, 1, 5, 9], 3).contains("3 was never begun: the next one is 3"));
        assert!(refusal(&[0, 1, 5], 1).contains("which holds the members of multixact 1"));
    }

    #[test]
    fn a_multixact_that_a_killed_server_had_not_written_has_no_updater() {
        let made = SyntheticCluster::new(1000, 9, 9).killed();
        made.write("pg_multixact/offsets/0000", &offsets(&[0, 1, 3, 0, 5]));
        made.write("pg_multixact/members/0000", &members(&[(1, SHARE, 50), (2, UPDATE, 51)]));
        let mut log = made.log();
        assert_eq!(updater(&mut log, 1), Some(51));
        // The second ends nowhere, the third begins nowhere, the thousandth is beyond them all.
        assert_eq!(updater(&mut log, 2), None);
        assert_eq!(updater(&mut log, 3), None);
        assert_eq!(updater(&mut log, 1000), None);
    }

    #[test]
    fn the_members_of_a_multixact_may_go_on_over_pages() {
        let made = SyntheticCluster::new(1000, 2, 4000);
        made.write("pg_multixact/offsets/0000", &offsets(&[0, 1]));
        let file = [members(&[]), members(&[]), members(&[(3300, UPDATE, 77)])].concat();
        made.write("pg_multixact/members/0000", &file);
        let mut log = made.log();
        assert_eq!((updater(&mut log, 1), updater(&mut log, 1)), (Some(77), Some(77)));
    }

    #[test]
    fn a_member_of_unknown_status_is_damage_that_names_the_file() {
        let made = SyntheticCluster::new(1000, 2, 2);
        made.write("pg_multixact/offsets/0000", &offsets(&[0, 1]));
        made.write("pg_multixact/members/0000", &members(&[(1, 9, 50)]));
        let error = made.log().updater(MultiXactId(1)).unwrap_err().to_string();
        assert!(
            error.contains("pg_multixact/members/0000") && error.contains("status 9"),
            "{error}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn logs_of_any_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            ids in prop::collection::vec(0_u32..120, 20),
            next in 0_u32..120, next_offset: u32, killed: bool,
        ) {
            let made = SyntheticCluster::new(next, next, next_offset);
            let made = if killed { made.killed() } else { made };
            let page: Vec<u8> = bytes.iter().copied().chain([0]).cycle().take(BLOCK_SIZE).collect();
            for file in ["pg_xact/0000", "pg_multixact/offsets/0000", "pg_multixact/members/0000"] {
                made.write(file, &page);
            }
            let mut log = made.log();
            for id in ids {
                let _ = log.committed(TransactionId(id));
                let _ = log.updater(MultiXactId(id));
            }
        }
    }
}
