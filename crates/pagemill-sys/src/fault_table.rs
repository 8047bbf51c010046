//! Which address ranges are live mappings, and which of their pages could not be read.
//!
//! Why a fixed static table: it is read inside a signal handler (`sigbus.rs`), where nothing may be
//! locked, allocated or freed. Slots are never freed, so the handler cannot meet a dangling one.
//!
//! Invariants:
//! 1. A slot belongs to one owner from `claim` to `release`; only the owner publishes and withdraws.
//! 2. `generation` is odd while `start` and `len` describe a live mapping. It changes before and
//!    after they do, so whoever reads the same odd generation on both sides read one mapping's pair.
//! 3. A published range is mapped by its owner: it is published after `mmap`, withdrawn before
//!    `munmap`.
//! 4. `pages` fills from the front, without duplicates; an entry once set stays until the slot is
//!    claimed anew. So `pages[0] == 0` says that nothing ever faulted.
//! 5. Everything is zero at first, so that the table takes no room in the executable and no memory
//!    until it is used.
//!
//! All orderings are `SeqCst` but the one of the check after use: faults and new mappings are rare.

use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// How many mappings one process may have at a time.
///
/// The handler looks at each slot; at this many it takes microseconds, and a mapping can fault at
/// most a few more than [`LISTED_PAGES`] times.
pub const MAX_MAPPINGS: usize = 1024;

/// How many faulted pages of one mapping are told apart. The next one gives up all bytes from there
/// to the end of the mapping, so that a vanished file costs a bounded number of signals and of the
/// kernel's mapping records.
pub const LISTED_PAGES: usize = 64;

static TABLE: [Slot; MAX_MAPPINGS] = [const { Slot::new() }; MAX_MAPPINGS];

/// One mapping's place in the table.
pub(crate) struct Slot {
    claimed: AtomicBool,
    generation: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    writable: AtomicBool,
    /// Offset + 1 of each faulted machine page, 0 where none is listed.
    pages: [AtomicUsize; LISTED_PAGES],
    /// How many bytes at the end of the mapping were given up.
    lost_tail: AtomicUsize,
}

/// The zeros that a fault asks for: from `address`, so many bytes, and whether they may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) address: usize,
    pub(crate) len: usize,
    pub(crate) writable: bool,
}

/// What may be done to the bytes of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Takes a free slot, its record of faults empty; nothing when all are taken.
pub(crate) fn claim() -> Option<&'static Slot> {
    let free = |slot: &&Slot| !slot.claimed.load(SeqCst) && !slot.claimed.swap(true, SeqCst);
    let slot = TABLE.iter().find(free)?;
    slot.lost_tail.store(0, SeqCst);
    slot.pages.iter().for_each(|page| page.store(0, SeqCst));
    Some(slot)
}

/// Records a fault at `address` and says which bytes zeros must replace; nothing when no live
/// mapping has the address. Async-signal-safe.
///
/// The slot of the faulting mapping cannot change meanwhile: the faulting thread is using bytes that
/// it borrows from the mapping. A slot that does change is another one's, and is passed over.
pub(crate) fn record_fault(address: usize, page_size: usize) -> Option<Hole> {
    TABLE.iter().find_map(|slot| {
        let live = slot.live()?;
        live.contains(&address).then(|| slot.record(&live, address, page_size))
    })
}

impl Slot {
    const fn new() -> Self {
        Self {
            claimed: AtomicBool::new(false),
            generation: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            writable: AtomicBool::new(false),
            pages: [const { AtomicUsize::new(0) }; LISTED_PAGES],
            lost_tail: AtomicUsize::new(0),
        }
    }

    /// Announces that the owner has mapped `len` bytes at `start`, both multiples of the page size.
    pub(crate) fn publish(&self, start: usize, len: usize, access: Access) {
        self.writable.store(access == Access::Write, SeqCst);
        self.start.store(start, SeqCst);
        self.len.store(len, SeqCst);
        self.generation.fetch_add(1, SeqCst);
    }

    /// Takes the announcement back, before the owner unmaps the bytes.
    pub(crate) fn withdraw(&self) {
        self.generation.fetch_add(1, SeqCst);
    }

    /// Gives the slot up, withdrawn or never published.
    pub(crate) fn release(&self) {
        self.claimed.store(false, SeqCst);
    }

    /// The addresses of the live mapping here, if there is one.
    fn live(&self) -> Option<Range<usize>> {
        let generation = self.generation.load(SeqCst);
        if generation.is_multiple_of(2) {
            return None;
        }
        let (start, len) = (self.start.load(SeqCst), self.len.load(SeqCst));
        (self.generation.load(SeqCst) == generation).then(|| start..start + len)
    }

    /// Notes the page of `address`, or from there everything when the list is full.
    ///
    /// It is noted before the zeros are there, so that no thread can read zeros and find no note.
    fn record(&self, live: &Range<usize>, address: usize, page_size: usize) -> Hole {
        let page = address - address % page_size;
        if self.list(page - live.start) {
            return self.hole(page, page_size);
        }
        self.lost_tail.fetch_max(live.end - page, SeqCst);
        self.hole(page, live.end - page)
    }

    fn hole(&self, address: usize, len: usize) -> Hole {
        Hole { address, len, writable: self.writable.load(SeqCst) }
    }

    /// Whether the page at `offset` is listed now; not when the list is full of others.
    fn list(&self, offset: usize) -> bool {
        let page = offset + 1;
        self.pages.iter().any(|entry| match entry.compare_exchange(0, page, SeqCst, SeqCst) {
            Ok(_) => true,
            Err(listed) => listed == page,
        })
    }

    /// Whether any fault was ever recorded: one load.
    #[inline]
    pub(crate) fn any_fault(&self) -> bool {
        self.pages[0].load(std::sync::atomic::Ordering::Acquire) != 0
    }

    /// The lowest offset within `range` whose byte was replaced by a zero.
    pub(crate) fn first_fault(&self, range: &Range<usize>, page_size: usize) -> Option<usize> {
        let listed =
            self.pages.iter().map(|entry| entry.load(SeqCst)).take_while(|&page| page != 0);
        let holes = listed.map(|page| page - 1..page - 1 + page_size);
        let len = self.len.load(SeqCst);
        let tail = len - self.lost_tail.load(SeqCst)..len;
        holes.chain([tail]).filter_map(|hole| first_common(&hole, range)).min()
    }
}

/// The lowest number in both ranges.
fn first_common(a: &Range<usize>, b: &Range<usize>) -> Option<usize> {
    let first = a.start.max(b.start);
    (first < a.end.min(b.end)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// Bytes that no other test's mapping can have: non-canonical addresses.
    fn published(slot: &'static Slot, number: usize, pages: usize) -> usize {
        let start = (0x4000_0000_0000_0000) + number * (1 << 40);
        slot.publish(start, pages * PAGE, Access::Read);
        start
    }

    fn retire(slot: &Slot) {
        slot.withdraw();
        slot.release();
    }

    #[test]
    fn a_fault_is_found_exactly_in_the_ranges_that_have_it() {
        let slot = claim().unwrap();
        let start = published(slot, 1, 10);
        assert!(!slot.any_fault());
        assert_eq!(slot.first_fault(&(0..10 * PAGE), PAGE), None);

        let hole = record_fault(start + 3 * PAGE + 17, PAGE);
        assert_eq!(hole, Some(Hole { address: start + 3 * PAGE, len: PAGE, writable: false }));
        assert!(slot.any_fault());
        assert_eq!(slot.first_fault(&(0..10 * PAGE), PAGE), Some(3 * PAGE));
        assert_eq!(slot.first_fault(&(3 * PAGE + 5..10 * PAGE), PAGE), Some(3 * PAGE + 5));
        assert_eq!(slot.first_fault(&(0..3 * PAGE), PAGE), None);
        assert_eq!(slot.first_fault(&(4 * PAGE..10 * PAGE), PAGE), None);
        assert_eq!(slot.first_fault(&(3 * PAGE..3 * PAGE), PAGE), None);
        retire(slot);
    }

    #[test]
    fn a_full_list_gives_up_the_tail_and_nothing_before_it() {
        let slot = claim().unwrap();
        let start = published(slot, 2, 1000);
        for page in 0..LISTED_PAGES {
            record_fault(start + 2 * page * PAGE, PAGE);
            record_fault(start + 2 * page * PAGE + 1, PAGE); // the same page takes no second place
        }
        let hole = record_fault(start + 500 * PAGE, PAGE);
        let tail = Hole { address: start + 500 * PAGE, len: 500 * PAGE, writable: false };
        assert_eq!(hole, Some(tail));
        assert_eq!(slot.first_fault(&(PAGE..2 * PAGE), PAGE), None);
        assert_eq!(slot.first_fault(&(127 * PAGE..500 * PAGE), PAGE), None);
        assert_eq!(slot.first_fault(&(127 * PAGE..501 * PAGE), PAGE), Some(500 * PAGE));
        assert_eq!(slot.first_fault(&(999 * PAGE..1000 * PAGE), PAGE), Some(999 * PAGE));
        retire(slot);
    }

    #[test]
    fn a_withdrawn_mapping_takes_no_fault_and_leaves_none_to_the_next() {
        let slot = claim().unwrap();
        let start = published(slot, 3, 4);
        record_fault(start, PAGE);
        retire(slot);
        assert_eq!(record_fault(start, PAGE), None);

        let slots: Vec<_> = std::iter::from_fn(claim).take(100).collect();
        assert!(slots.iter().all(|slot| !slot.any_fault()));
        slots.iter().for_each(|slot| slot.release());
    }
}
