//! [`Transactions`]: what became of transactions and multixacts by WAL, and which ids come next.
//!
//! A transaction that WAL neither commits nor aborts is as its page on disk says, which was written before; those that
//! were running in the end stay in progress, prepared ones among them. Subtransactions have entries of their own.
//!
//! The end of a multixact's members is where those of the next begin. Where nothing tells of the next, its place is set
//! to what follows the members: a server that died between giving out two numbers and writing the second leaves a gap.
//!
//! Sources: `xact_redo` in `src/backend/access/transam/xact.c`, `multixact_redo` and `RecordNewMultiXact` in
//! `multixact.c`, `xlog_redo` in `xlog.c`, PostgreSQL 14 to 18.

use pagemill_format::control::{Checkpoint, FullTransactionId};
use pagemill_format::slru::{self, TransactionStatus};
use pagemill_format::wal::{
    Commit, MultiXactChange, MultiXactCreation, Record, RelFileLocator, ResourceManager,
    zeroed_commit_log_page,
};
use pagemill_format::{MultiXactId, PgVersion, Result, TransactionId};

use super::log_pages::LogPages;

const KIND_BITS: u8 = 0x70;
const COMMIT: u8 = 0x00;
const ABORT: u8 = 0x20;
const COMMIT_PREPARED: u8 = 0x30;
const ABORT_PREPARED: u8 = 0x40;

/// The logs of transactions by WAL, and the counters.
#[derive(Debug, Clone)]
pub struct Transactions {
    /// The commit log (`pg_xact`).
    pub statuses: LogPages,
    /// Where the members of multixacts begin (`pg_multixact/offsets`).
    pub offsets: LogPages,
    /// The members (`pg_multixact/members`).
    pub members: LogPages,
    /// The last checkpoint, its counters as WAL has moved them on since.
    pub checkpoint: Checkpoint,
    /// Multixacts that were created, and where their members end.
    ends: Vec<(MultiXactId, u32)>,
}

impl Transactions {
    pub(super) fn new(checkpoint: Checkpoint) -> Self {
        Self {
            statuses: LogPages::default(),
            offsets: LogPages::default(),
            members: LogPages::default(),
            checkpoint,
            ends: Vec::new(),
        }
    }

    /// What is kept in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let pages = self.statuses.bytes() + self.offsets.bytes() + self.members.bytes();
        pages + self.ends.capacity() * size_of::<(MultiXactId, u32)>()
    }

    /// Takes in that a transaction wrote a record.
    pub(super) fn saw(&mut self, xid: TransactionId) {
        let next = self.checkpoint.next_xid;
        if !xid.is_normal() || xid.precedes(next.xid()) {
            return;
        }
        let ahead = u64::from(xid.0.wrapping_sub(next.xid().0));
        self.checkpoint.next_xid = FullTransactionId(next.0.wrapping_add(ahead)).next();
    }

    /// Takes in a record of the transaction manager; returns the relations whose files go with it.
    pub(super) fn end_of_transaction(
        &mut self,
        record: &Record<'_>,
        version: PgVersion,
    ) -> Result<Vec<RelFileLocator>> {
        let status = match record.header.info & KIND_BITS {
            COMMIT | COMMIT_PREPARED => TransactionStatus::Committed,
            ABORT | ABORT_PREPARED => TransactionStatus::Aborted,
            _ => return Ok(Vec::new()),
        };
        // Of a record of abort, the parts that it has are laid out like those of a commit's.
        let ended = Commit::parse(record.main_data, record.header.info, version)?;
        let xid = ended.prepared.as_ref().map_or(record.header.xid, |(xid, _)| *xid);
        for xid in ended.subtransactions.iter().copied().chain([xid]) {
            self.saw(xid);
            self.set_status(xid, status);
        }
        Ok(ended.dropped_files)
    }

    /// Takes in the end of a transaction that has neither subtransactions nor files.
    pub(super) fn ended(&mut self, xid: TransactionId, is_commit: bool) {
        self.saw(xid);
        let (committed, aborted) = (TransactionStatus::Committed, TransactionStatus::Aborted);
        self.set_status(xid, if is_commit { committed } else { aborted });
    }

    fn set_status(&mut self, xid: TransactionId, status: TransactionStatus) {
        if !xid.is_normal() {
            return;
        }
        let (position, shift) = (slru::clog_position(xid), xid.0 % 4 * 2);
        let bits = match status {
            TransactionStatus::InProgress => 0,
            TransactionStatus::Committed => 1,
            TransactionStatus::Aborted => 2,
            TransactionStatus::SubCommitted => 3,
        };
        self.statuses.set(position.page, position.byte, bits << shift, 3 << shift);
    }

    /// Takes in a record of the commit log.
    pub(super) fn commit_log(&mut self, record: &Record<'_>, version: PgVersion) -> Result<()> {
        let page = zeroed_commit_log_page(record, version)?;
        if let Some(page) = page.and_then(|page| u32::try_from(page).ok()) {
            self.statuses.zero(page);
        }
        Ok(())
    }

    /// Takes in a record of multixacts.
    pub(super) fn multixact(&mut self, record: &Record<'_>, version: PgVersion) -> Result<()> {
        let number = |page: u64| u32::try_from(page).unwrap_or(u32::MAX);
        match MultiXactChange::parse(record, version)? {
            Some(MultiXactChange::OffsetsZeroed(page)) => self.offsets.zero(number(page)),
            Some(MultiXactChange::MembersZeroed(page)) => self.members.zero(number(page)),
            Some(MultiXactChange::Created(created)) => self.create(&created),
            Some(MultiXactChange::Truncated { oldest }) => self.checkpoint.oldest_multi = oldest,
            None => {}
        }
        Ok(())
    }

    fn create(&mut self, created: &MultiXactCreation) {
        let position = slru::multixact_offset_position(created.multi);
        self.offsets.set_word(position.page, position.byte, created.first_offset);
        let mut offset = created.first_offset;
        for &(xid, status) in &created.members {
            self.saw(xid);
            let page = slru::multixact_member_position(offset).page;
            let (flags_at, xid_at) = slru::member_bytes(offset);
            self.members.set(page, flags_at, status, u8::MAX);
            self.members.set_word(page, xid_at, xid.0);
            offset = offset.wrapping_add(1);
        }
        // Offset 0 means that there is none: it is left out where numbers wrap round.
        let end = if offset == 0 { 1 } else { offset };
        self.ends.push((created.multi, end));
        self.advance_multixacts(slru::next_multixact(created.multi), end);
    }

    /// Moves the next multixact and the place of its members on.
    fn advance_multixacts(&mut self, next: MultiXactId, offset: u32) {
        let checkpoint = &mut self.checkpoint;
        if (next.0.wrapping_sub(checkpoint.next_multi.0) as i32) > 0 {
            checkpoint.next_multi = next;
        }
        if (offset.wrapping_sub(checkpoint.next_multi_offset) as i32) > 0 {
            checkpoint.next_multi_offset = offset;
        }
    }

    /// Takes in a checkpoint, of a server that goes on or of one that was shut down.
    pub(super) fn checkpoint(&mut self, new: Checkpoint, is_shutdown: bool) {
        let old = std::mem::replace(&mut self.checkpoint, new);
        if is_shutdown {
            return;
        }
        // While the checkpoint was being made, ids were given out that are in records before it.
        self.checkpoint.next_xid = new_or_later(self.checkpoint.next_xid, old.next_xid);
        self.advance_multixacts(old.next_multi, old.next_multi_offset);
        self.checkpoint.next_oid = self.checkpoint.next_oid.max(old.next_oid);
    }

    /// All records were taken in: closes gaps.
    pub(super) fn finish(&mut self) {
        for (multi, end) in std::mem::take(&mut self.ends) {
            let next = slru::next_multixact(multi);
            let position = slru::multixact_offset_position(next);
            let is_known = self.offsets.knows_word(position.page, position.byte)
                && self.offsets.word(position.page, position.byte) != 0;
            if !is_known {
                self.offsets.set_word(position.page, position.byte, end);
            }
        }
        self.forget_future();
    }

    /// No transaction from the next one on has a status: what the page of the next one holds for them was never
    /// reached by the WAL (`TrimCLOG` in `clog.c`).
    fn forget_future(&mut self) {
        let next = self.checkpoint.next_xid.xid();
        let SlruByte { page, byte, shift } = SlruByte::of(next);
        if shift == 0 && byte == 0 {
            return;
        }
        self.statuses.set(page, byte, 0, u8::MAX << shift);
        for at in byte + 1..pagemill_format::BLOCK_SIZE {
            self.statuses.set(page, at, 0, u8::MAX);
        }
    }
}

/// Where the bits of a transaction are in the commit log.
struct SlruByte {
    page: u32,
    byte: usize,
    shift: u32,
}

impl SlruByte {
    fn of(xid: TransactionId) -> Self {
        let position = slru::clog_position(xid);
        Self { page: position.page, byte: position.byte, shift: xid.0 % 4 * 2 }
    }
}

fn new_or_later(new: FullTransactionId, old: FullTransactionId) -> FullTransactionId {
    if old.0 > new.0 { old } else { new }
}

/// True for the two records that a checkpoint ends with.
pub(super) fn is_checkpoint(record: &Record<'_>) -> bool {
    record.header.resource_manager == ResourceManager::XLOG
        && matches!(
            record.header.kind(),
            ResourceManager::XLOG_CHECKPOINT_SHUTDOWN | ResourceManager::XLOG_CHECKPOINT_ONLINE
        )
}
