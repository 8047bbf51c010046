//! The small append-only logs of transactions: the commit log (`pg_xact`), multixacts
//! (`pg_multixact/offsets` and `members`) and parents of subtransactions (`pg_subtrans`).
//!
//! Each is a sequence of pages without page headers, 32 to a segment file, indexed by id alone;
//! so the place of an entry is arithmetic, done here, and the file's lookup is the caller's. A
//! page that does not exist in the files was never written or was truncated away: the caller has
//! to decide, with `oldest_xid` and `next_xid` of the control file, which.
//!
//! Ids are 32-bit and wrap round, and the page numbers with them. Segment files are named by four
//! hex digits in all versions 14 to 18; members need a fifth beyond segment FFFF. (The names of
//! 15 digits of 17 and later are those of `pg_notify` and `pg_serial`, which are not read.)
//!
//! Sources: `src/include/access/slru.h`, `src/backend/access/transam/{slru,clog,multixact,subtrans}.c`,
//! `src/include/access/{clog,multixact}.h`; `src/include/access/multixact_internal.h` in 18.

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, BlockBytes, MultiXactId, TransactionId};

/// Pages in a segment file.
pub const PAGES_PER_SEGMENT: u32 = 32;

/// Transactions whose status is on one page of the commit log: two bits each.
pub const STATUSES_PER_PAGE: u32 = BLOCK_SIZE as u32 * 4;
const _: () = assert!(STATUSES_PER_PAGE == 32_768);

/// Entries of four bytes on one page: multixact offsets, parents of subtransactions.
const WORDS_PER_PAGE: u32 = BLOCK_SIZE as u32 / 4;

/// Multixact members come in groups: four bytes of flags, then the four ids.
const MEMBERS_PER_GROUP: u32 = 4;
const GROUP_BYTES: u32 = MEMBERS_PER_GROUP + MEMBERS_PER_GROUP * 4;
const GROUPS_PER_PAGE: u32 = BLOCK_SIZE as u32 / GROUP_BYTES;
/// Multixact members on one page.
pub const MEMBERS_PER_PAGE: u32 = GROUPS_PER_PAGE * MEMBERS_PER_GROUP;
const _: () = assert!(GROUP_BYTES == 20 && GROUPS_PER_PAGE == 409 && MEMBERS_PER_PAGE == 1636);

/// The place of an entry: the page of the log, and the byte on that page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlruPosition {
    /// The page, counted over all segment files.
    pub page: u32,
    /// The first byte of the entry on its page; always less than the block size.
    pub byte: usize,
}

impl SlruPosition {
    /// The number of the segment file.
    pub fn segment(self) -> u32 {
        self.page / PAGES_PER_SEGMENT
    }

    /// The name of the segment file.
    pub fn segment_name(self) -> String {
        segment_name(self.segment())
    }

    /// Where the page starts in its segment file.
    pub fn page_offset(self) -> u64 {
        u64::from(self.page % PAGES_PER_SEGMENT) * BLOCK_SIZE as u64
    }
}

/// The name of segment file `number`: upper-case hex, at least four digits.
pub fn segment_name(number: u32) -> String {
    format!("{number:04X}")
}

/// The number of the segment file of this name, if it is the name of one.
pub fn segment_number(name: &str) -> Option<u32> {
    let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'A'..=b'F');
    if !(4..=6).contains(&name.len()) || !name.bytes().all(is_digit) {
        return None;
    }
    u32::from_str_radix(name, 16).ok()
}

/// What became of a transaction, as the commit log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionStatus {
    /// Running, prepared, or ended by a crash; also never begun.
    InProgress,
    /// Committed.
    Committed,
    /// Rolled back.
    Aborted,
    /// A subtransaction whose parent was committing: its fate is its parent's.
    SubCommitted,
}

/// Where the status of `xid` is, in `pg_xact`.
pub fn clog_position(xid: TransactionId) -> SlruPosition {
    SlruPosition { page: xid.0 / STATUSES_PER_PAGE, byte: (xid.0 % STATUSES_PER_PAGE / 4) as usize }
}

/// Bytes of a commit timestamp: the time, and the replication origin.
pub const COMMIT_TIMESTAMP_BYTES: usize = 10;
/// Transactions whose commit timestamps are on one page.
pub const COMMIT_TIMESTAMPS_PER_PAGE: u32 = (BLOCK_SIZE / COMMIT_TIMESTAMP_BYTES) as u32;

/// Where the commit timestamp of `xid` is, in `pg_commit_ts`.
///
/// Source: `src/backend/access/transam/commit_ts.c`, PostgreSQL 14 to 18.
pub fn commit_timestamp_position(xid: TransactionId) -> SlruPosition {
    SlruPosition {
        page: xid.0 / COMMIT_TIMESTAMPS_PER_PAGE,
        byte: (xid.0 % COMMIT_TIMESTAMPS_PER_PAGE) as usize * COMMIT_TIMESTAMP_BYTES,
    }
}

/// The status of `xid` on `page`, the one [`clog_position`] names.
#[inline]
pub fn status_in_page(page: &BlockBytes, xid: TransactionId) -> TransactionStatus {
    const _: () = assert!(STATUSES_PER_PAGE as usize / 4 == BLOCK_SIZE);
    let byte = page[xid.0 as usize / 4 % BLOCK_SIZE];
    match byte >> (xid.0 % 4 * 2) & 3 {
        0 => TransactionStatus::InProgress,
        1 => TransactionStatus::Committed,
        2 => TransactionStatus::Aborted,
        _ => TransactionStatus::SubCommitted,
    }
}

/// Marks `xid` committed on `page`, the one [`clog_position`] names.
pub fn set_committed(page: &mut BlockBytes, xid: TransactionId) {
    let shift = xid.0 % 4 * 2;
    let byte = &mut page[xid.0 as usize / 4 % BLOCK_SIZE];
    *byte = *byte & !(3 << shift) | 1 << shift;
}

/// Where the parent of the subtransaction `xid` is, in `pg_subtrans`.
///
/// `pg_subtrans` does not survive a crash: only running servers can use it.
pub fn subtrans_position(xid: TransactionId) -> SlruPosition {
    word_position(xid.0)
}

/// The parent of `xid` on `page`, the one [`subtrans_position`] names; none for a transaction at
/// the top.
pub fn parent_in_page(page: &BlockBytes, xid: TransactionId) -> Option<TransactionId> {
    let parent = TransactionId(word_at(page, word_position(xid.0).byte));
    (parent != TransactionId::INVALID).then_some(parent)
}

/// Where the offset of the first member of `multi` is, in `pg_multixact/offsets`.
pub fn multixact_offset_position(multi: MultiXactId) -> SlruPosition {
    word_position(multi.0)
}

/// The offset of the first member of `multi`, on `page`, the one [`multixact_offset_position`]
/// names; 0, which is no member's, when it was never written.
///
/// The members go on to the offset of the next multixact id, or to `next_multi_offset` of the
/// control file for the last one. Offsets and multixact ids wrap round, and skip 0.
pub fn multixact_offset_in_page(page: &BlockBytes, multi: MultiXactId) -> u32 {
    word_at(page, word_position(multi.0).byte)
}

/// The multixact id that was given out after `multi`.
pub fn next_multixact(multi: MultiXactId) -> MultiXactId {
    MultiXactId(multi.0.wrapping_add(1).max(1))
}

/// How a transaction holds a tuple that has several holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberStatus {
    /// `SELECT … FOR KEY SHARE`.
    ForKeyShare,
    /// `SELECT … FOR SHARE`.
    ForShare,
    /// `SELECT … FOR NO KEY UPDATE`.
    ForNoKeyUpdate,
    /// `SELECT … FOR UPDATE`.
    ForUpdate,
    /// An update that left the key columns alone.
    NoKeyUpdate,
    /// A delete, or an update of key columns.
    Update,
}

impl MemberStatus {
    fn from_flags(flags: u8) -> Option<Self> {
        Some(match flags {
            0 => Self::ForKeyShare,
            1 => Self::ForShare,
            2 => Self::ForNoKeyUpdate,
            3 => Self::ForUpdate,
            4 => Self::NoKeyUpdate,
            5 => Self::Update,
            _ => return None,
        })
    }

    /// True for the member that updated or deleted the tuple; a multixact has at most one.
    pub fn is_update(self) -> bool {
        self >= Self::NoKeyUpdate
    }
}

/// One transaction of a multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MultiXactMember {
    /// The transaction; 0 marks a place that is skipped (offset 0, after wrapping round).
    pub xid: TransactionId,
    /// What it does with the tuple.
    pub status: MemberStatus,
}

/// Where the group of flags and ids that has the member `offset` is, in `pg_multixact/members`.
pub fn multixact_member_position(offset: u32) -> SlruPosition {
    let group = offset / MEMBERS_PER_GROUP % GROUPS_PER_PAGE;
    SlruPosition { page: offset / MEMBERS_PER_PAGE, byte: (group * GROUP_BYTES) as usize }
}

/// The member `offset` on `page`, the one [`multixact_member_position`] names.
///
/// # Errors
/// Corrupt when the flags are none PostgreSQL has.
pub fn member_in_page(page: &BlockBytes, offset: u32) -> Result<MultiXactMember> {
    let (flags_at, xid_at) = member_bytes(offset);
    let flags = page.get(flags_at).copied().unwrap_or(u8::MAX);
    let Some(status) = MemberStatus::from_flags(flags) else {
        let what = format!("status {flags} of member {offset} is not one of 0 to 5");
        return Err(Error::corrupt("pg_multixact/members", flags_at, what));
    };
    let xid = word_at(page, xid_at);
    Ok(MultiXactMember { xid: TransactionId(xid), status })
}

/// Where the flags of the member at `offset` are on its page, and where its transaction.
pub fn member_bytes(offset: u32) -> (usize, usize) {
    let group = multixact_member_position(offset).byte;
    let in_group = (offset % MEMBERS_PER_GROUP) as usize;
    (group + in_group, group + MEMBERS_PER_GROUP as usize + in_group * 4)
}

fn word_position(index: u32) -> SlruPosition {
    SlruPosition { page: index / WORDS_PER_PAGE, byte: (index % WORDS_PER_PAGE) as usize * 4 }
}

/// The four bytes at `byte`, which the positions above keep inside of the page.
fn word_at(page: &BlockBytes, byte: usize) -> u32 {
    let word = page.get(byte..).and_then(|rest| rest.first_chunk::<4>());
    word.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page_starting(bytes: &[u8]) -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        page[..bytes.len()].copy_from_slice(bytes);
        page
    }

    #[test]
    fn four_statuses_share_a_byte_lowest_bits_first() {
        let page = page_starting(&[0b1110_0100]);
        let statuses = [0, 1, 2, 3].map(|xid| status_in_page(&page, TransactionId(xid)));
        use TransactionStatus::*;
        assert_eq!(statuses, [InProgress, Committed, Aborted, SubCommitted]);
        assert_eq!(status_in_page(&page, TransactionId(32_769)), Committed);
    }

    #[test]
    fn the_commit_log_changes_page_and_file_where_postgresql_does() {
        let at = |page, byte| SlruPosition { page, byte };
        assert_eq!(clog_position(TransactionId(32_767)), at(0, 8191));
        assert_eq!(clog_position(TransactionId(32_768)), at(1, 0));
        let last = clog_position(TransactionId(u32::MAX));
        assert_eq!((last.segment_name().as_str(), last.byte), ("0FFF", 8191));
        let second = clog_position(TransactionId(32_768 * 33));
        assert_eq!((second.segment_name().as_str(), second.page_offset()), ("0001", 8192));
    }

    #[test]
    fn members_of_a_multixact_stand_in_groups_of_four() {
        let mut page = [0; BLOCK_SIZE];
        page[20..40].copy_from_slice(&[
            0, 5, 9, 4, // flags of the members 4 to 7
            1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
        ]);
        let member = |xid, status| MultiXactMember { xid: TransactionId(xid), status };
        assert_eq!(member_in_page(&page, 4).unwrap(), member(1, MemberStatus::ForKeyShare));
        assert_eq!(member_in_page(&page, 5).unwrap(), member(2, MemberStatus::Update));
        assert_eq!(member_in_page(&page, 7).unwrap(), member(u32::MAX, MemberStatus::NoKeyUpdate));
        let message = member_in_page(&page, 6).unwrap_err().to_string();
        let expected = "status 9 of member 6 is not one of 0 to 5 (byte 22)";
        assert_eq!(message, format!("corrupt pg_multixact/members: {expected}"));
    }

    #[test]
    fn twelve_bytes_of_a_members_page_stay_unused() {
        let at = |page, byte| SlruPosition { page, byte };
        assert_eq!(multixact_member_position(1635), at(0, 8160));
        assert_eq!(multixact_member_position(1636), at(1, 0));
        assert_eq!(multixact_member_position(u32::MAX).segment_name(), "14078");
    }

    #[test]
    fn only_updates_and_deletes_count_as_such() {
        use MemberStatus::*;
        let locks = [ForKeyShare, ForShare, ForNoKeyUpdate, ForUpdate];
        assert!(locks.into_iter().all(|status| !status.is_update()));
        assert!(NoKeyUpdate.is_update() && Update.is_update());
    }

    #[test]
    fn offsets_and_parents_are_words() {
        let page = page_starting(&[0, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(multixact_offset_in_page(&page, MultiXactId(1)), 7);
        assert_eq!(parent_in_page(&page, TransactionId(2049)), Some(TransactionId(7)));
        assert_eq!(parent_in_page(&page, TransactionId(2048)), None);
        assert_eq!(subtrans_position(TransactionId(2049)), SlruPosition { page: 1, byte: 4 });
        assert_eq!(next_multixact(MultiXactId(u32::MAX)), MultiXactId(1));
    }

    #[test]
    fn segment_names_are_upper_case_hex_of_four_digits_or_more() {
        for number in [0, 0xFFF, 0xFFFF, 0x1_4078] {
            assert_eq!(segment_number(&segment_name(number)), Some(number));
        }
        for name in ["", "000", "000g", "00ff", "0000000", "+000", "000000000000001"] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_id_has_its_own_place_on_a_page(index in any::<u32>()) {
            let clog = clog_position(TransactionId(index));
            let first = clog.page * STATUSES_PER_PAGE + clog.byte as u32 * 4;
            prop_assert_eq!(first + index % 4, index);
            prop_assert!(multixact_member_position(index).byte + 20 <= BLOCK_SIZE);
            let word = multixact_offset_position(MultiXactId(index));
            prop_assert_eq!(word.page * WORDS_PER_PAGE + word.byte as u32 / 4, index);
        }

        #[test]
        fn arbitrary_pages_never_panic(seed in any::<u8>(), index in any::<u32>()) {
            let page = [seed; BLOCK_SIZE];
            let _ = status_in_page(&page, TransactionId(index));
            let _ = member_in_page(&page, index);
            let _ = parent_in_page(&page, TransactionId(index));
        }
    }
}
