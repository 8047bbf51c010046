//! Is this page what PostgreSQL wrote? The checksum first, where the cluster has them, then the
//! header.
//!
//! A page that was allocated and never written is zeros, carries no checksum and is sound. The
//! checksum depends on the block number, so a page that was moved is found too. Under a running
//! server a page can be caught half written: it is read again before it counts as damaged.
//!
//! After redo no page is newer than where redo ended: PostgreSQL writes a page only when its WAL is on disk up to the page's
//! LSN, which is the end of the last record that changed it; a backup's pages were read before its end, and so before any
//! target that may be recovered to. A newer one was copied later than the WAL, or is another server's.
//! Source: `FlushBuffer` in `src/backend/storage/buffer/bufmgr.c`, PostgreSQL 14 to 18.

use std::sync::OnceLock;

use pagemill_format::checksum::{ROW_BYTES, page_checksum_beside};
use pagemill_format::page::Page;
use pagemill_format::{BlockBytes, BlockNumber, Lsn};
use pagemill_io::ForkFiles;
use pagemill_sys::prefetch;

use crate::data_directory::Cluster;
use crate::error::{Damage, Result};

const LIVE_RETRIES: usize = 5;

/// Up to where pages of a cluster may have been changed.
#[derive(Debug)]
pub(crate) struct PageLimit {
    newest: Lsn,
    accepts_newer: bool,
    first_newer: OnceLock<Damage>,
}

impl PageLimit {
    /// No page is newer than `newest`; one that is, is damage unless it is accepted.
    pub(crate) fn new(newest: Lsn, accepts_newer: bool) -> Self {
        Self { newest, accepts_newer, first_newer: OnceLock::new() }
    }

    /// What no page is newer than.
    pub(crate) fn newest(&self) -> Lsn {
        self.newest
    }

    /// The first newer page that was accepted.
    pub(crate) fn first_newer(&self) -> Option<&Damage> {
        self.first_newer.get()
    }

    /// True for a page that is no newer.
    #[inline]
    pub(crate) fn holds(&self, bytes: &BlockBytes) -> bool {
        Page::new(bytes).header().lsn <= self.newest
    }

    #[inline]
    fn check(&self, files: &ForkFiles, block: BlockNumber, bytes: &BlockBytes) -> Result<()> {
        if self.holds(bytes) { Ok(()) } else { self.newer(files, block, bytes) }
    }

    #[cold]
    fn newer(&self, files: &ForkFiles, block: BlockNumber, bytes: &BlockBytes) -> Result<()> {
        let (lsn, end) = (Page::new(bytes).header().lsn, self.newest);
        let what = format!(
            "its LSN is {lsn}, and WAL ends at {end}: the file is of a later moment than the WAL"
        );
        let damage = Damage::in_block(files.locate(block).0, files.fork(), block, what);
        let damage = damage.against_wal();
        if self.accepts_newer {
            self.first_newer.get_or_init(|| damage);
            return Ok(());
        }
        Err(damage.into())
    }
}

/// Checks a page just read.
///
/// # Errors
/// Damage that names file, fork, block and finding.
#[inline]
pub fn check_page(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    bytes: &BlockBytes,
) -> Result<()> {
    PageCheck { cluster, files }.check_before(block, bytes, None)
}

/// A fork whose pages are checked, by the rules of its cluster.
#[derive(Debug, Clone, Copy)]
pub struct PageCheck<'c> {
    /// Says whether there are checksums, and whether a server is running.
    pub cluster: &'c Cluster,
    /// Where the pages were read.
    pub files: &'c ForkFiles,
}

impl PageCheck<'_> {
    /// Checks a page; if that takes its checksum, `next` is asked for from memory beside it.
    #[inline]
    fn check_before(
        self,
        block: BlockNumber,
        bytes: &BlockBytes,
        next: Option<&BlockBytes>,
    ) -> Result<()> {
        let Self { cluster, files } = self;
        match find_fault_before(cluster.verify_checksums(), block, bytes, next) {
            None => cluster.page_limit().check(files, block, bytes),
            Some(what) => {
                Err(Damage::in_block(files.locate(block).0, files.fork(), block, what).into())
            }
        }
    }

    /// Checks a page just read; under a running server one that fails is read again, into `again`,
    /// before it counts as damaged. Returns the page that passed. `next` is the page that will be checked next, if it may
    /// have to come from memory: it is asked for beside this one's checksum.
    ///
    /// # Errors
    /// As [`check_page`]; or when it cannot be read again. `again` then holds what was read last.
    #[inline]
    pub fn check_or_read_again<'b>(
        self,
        block: BlockNumber,
        bytes: &'b BlockBytes,
        next: Option<&BlockBytes>,
        again: &'b mut Option<Box<BlockBytes>>,
    ) -> Result<&'b BlockBytes> {
        match self.check_before(block, bytes, next) {
            Ok(()) => Ok(bytes),
            Err(_) if self.cluster.is_live() => {
                let copy = again.insert(Box::new(*bytes));
                read_again(self.cluster, self.files, block, copy)?;
                Ok(copy)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads a page again, as often as it may take for a running server to finish writing it.
///
/// # Errors
/// As [`check_page`], when the page stays damaged; or when it cannot be read.
pub fn read_again(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    bytes: &mut BlockBytes,
) -> Result<()> {
    let mut last = Ok(());
    for _ in 0..LIVE_RETRIES {
        std::thread::sleep(std::time::Duration::from_millis(1));
        files.read_block(block, bytes)?;
        last = check_page(cluster, files, block, bytes);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// What is wrong with a page, if something is; its checksum is asked where the cluster has them.
pub fn find_fault(
    verify_checksums: bool,
    block: BlockNumber,
    bytes: &BlockBytes,
) -> Option<String> {
    find_fault_before(verify_checksums, block, bytes, None)
}

#[inline]
fn find_fault_before(
    verify_checksums: bool,
    block: BlockNumber,
    bytes: &BlockBytes,
    next: Option<&BlockBytes>,
) -> Option<String> {
    let page = Page::new(bytes);
    if verify_checksums && !page.is_new() {
        let (stored, computed) = (page.header().checksum, checksum_before(next, bytes, block));
        if stored != computed {
            return Some(format!("checksum {stored:#06x} on the page, {computed:#06x} computed"));
        }
    }
    page.check_header().err().map(|error| error.to_string())
}

/// The checksum of a page, and row for row of it the next one asked for. To ask for all of that first would fill the
/// processor's queue of lines, and the checksum would wait behind it: a fifth more time.
fn checksum_before(next: Option<&BlockBytes>, bytes: &BlockBytes, block: BlockNumber) -> u16 {
    let rows = next.unwrap_or(bytes).as_chunks::<ROW_BYTES>().0;
    page_checksum_beside(bytes, block, |number| prefetch(&rows[number]))
}

#[cfg(test)]
mod tests {
    use pagemill_format::checksum::page_checksum;
    use pagemill_format::{BLOCK_SIZE, Fork};

    use super::*;
    use crate::transaction_log::synthetic::SyntheticCluster;

    const RELATION: &str = "base/5/16384";

    /// A page with nothing on it, sealed for `block`.
    fn page(block: u32) -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        for (at, word) in [(12, 24), (14, 8192), (16, 8192), (18, 0x2004)] {
            page[at..at + 2].copy_from_slice(&u16::to_le_bytes(word));
        }
        seal(&mut page, block);
        page
    }

    fn seal(page: &mut BlockBytes, block: u32) {
        let checksum = page_checksum(page, BlockNumber(block));
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
    }

    fn fault(block: u32, bytes: &BlockBytes) -> Option<String> {
        find_fault(true, BlockNumber(block), bytes)
    }

    #[test]
    fn a_page_is_sound_at_its_own_block_only() {
        assert_eq!(fault(3, &page(3)), None);
        let moved = fault(4, &page(3)).unwrap();
        assert!(moved.starts_with("checksum 0x") && moved.ends_with(" computed"), "{moved}");
        assert_eq!(find_fault(false, BlockNumber(4), &page(3)), None);
    }

    #[test]
    fn a_page_never_written_is_sound_at_every_block() {
        assert_eq!(fault(0, &[0; BLOCK_SIZE]), None);
        assert_eq!(fault(u32::MAX, &[0; BLOCK_SIZE]), None);
    }

    #[test]
    fn a_page_with_a_right_checksum_may_still_have_a_header_that_cannot_be() {
        let mut damaged = page(0);
        damaged[12] = 23;
        seal(&mut damaged, 0);
        assert!(fault(0, &damaged).unwrap().contains("lower 23"));
    }

    #[test]
    fn damage_names_file_fork_block_and_finding() {
        let made = SyntheticCluster::new(1000, 1, 1);
        made.write(RELATION, &[page(0), page(0)].concat());
        let cluster = made.open();
        let files = cluster.fork(&made.path(RELATION), Fork::Main).unwrap().unwrap();
        check_page(&cluster, &files, BlockNumber(0), &page(0)).unwrap();
        let error = check_page(&cluster, &files, BlockNumber(1), &page(0)).unwrap_err().to_string();
        assert!(error.contains("base/5/16384: fork main, block 1: checksum 0x"), "{error}");
    }

    #[test]
    fn without_checksums_in_the_cluster_none_is_verified() {
        let made = SyntheticCluster::new(1000, 1, 1).without_checksums();
        made.write(RELATION, &page(0));
        let cluster = made.open();
        let files = cluster.fork(&made.path(RELATION), Fork::Main).unwrap().unwrap();
        let mut other = page(0);
        other[8] ^= 1;
        check_page(&cluster, &files, BlockNumber(0), &other).unwrap();
    }

    #[test]
    fn a_page_caught_half_written_is_read_again() {
        let made = SyntheticCluster::new(1000, 1, 1);
        made.write(RELATION, &page(0));
        let cluster = made.open();
        let files = cluster.fork(&made.path(RELATION), Fork::Main).unwrap().unwrap();
        let mut bytes = page(7);
        read_again(&cluster, &files, BlockNumber(0), &mut bytes).unwrap();
        assert_eq!(bytes, page(0));
        made.write(RELATION, &page(7));
        assert!(read_again(&cluster, &files, BlockNumber(0), &mut bytes).is_err());
    }

    #[test]
    fn a_page_that_passes_is_not_copied_and_one_that_fails_is_read_again_only_when_live() {
        let made = SyntheticCluster::new(1000, 1, 1);
        made.write(RELATION, &page(0));
        let cluster = made.open();
        let files = cluster.fork(&made.path(RELATION), Fork::Main).unwrap().unwrap();
        let check = PageCheck { cluster: &cluster, files: &files };
        let (sound, torn, mut again) = (page(0), page(7), None);
        let passed = check.check_or_read_again(BlockNumber(0), &sound, None, &mut again);
        assert!(std::ptr::eq(passed.unwrap(), &sound));
        assert!(again.is_none());
        check.check_or_read_again(BlockNumber(0), &torn, Some(&sound), &mut again).unwrap_err();
        assert!(again.is_none());
    }

    #[test]
    fn a_page_as_new_as_the_end_of_redo_is_sound_and_a_newer_one_is_damage_unless_it_is_accepted() {
        let made = SyntheticCluster::new(1000, 1, 1);
        made.write(RELATION, &page(0));
        let files = made.open().fork(&made.path(RELATION), Fork::Main).unwrap().unwrap();
        let mut bytes = page(0);
        bytes[4..8].copy_from_slice(&0x500_u32.to_le_bytes());
        let check = |newest: u64, accepts: bool| {
            let limit = PageLimit::new(Lsn(newest), accepts);
            let checked = limit.check(&files, BlockNumber(0), &bytes);
            (checked.map_err(|error| error.to_string()), limit.first_newer().cloned())
        };
        assert_eq!(check(0x500, false), (Ok(()), None));
        let (found, told) = check(0x4F8, false);
        let what = "its LSN is 0/500, and WAL ends at 0/4F8: the file is of a later moment";
        assert!(found.unwrap_err().contains(what));
        assert_eq!(told, None);
        let (found, told) = check(0x4F8, true);
        assert!(found.is_ok() && told.is_some_and(|damage| damage.is_against_wal));
    }

    #[test]
    fn a_changed_byte_is_found_wherever_it_is() {
        for at in (0..BLOCK_SIZE).step_by(37).chain(0..24) {
            let mut changed = page(1);
            changed[at] ^= 0x20;
            assert!(fault(1, &changed).is_some(), "byte {at}");
        }
    }
}
