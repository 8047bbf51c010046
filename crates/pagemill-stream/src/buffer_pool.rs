//! The buffer pool: pages of 8 kB that all threads of a process share, `--shared-buffers` of them.
//!
//! The ideas and names are PostgreSQL's (`src/backend/storage/buffer/README`, `bufmgr.c` and
//! `freelist.c`, PostgreSQL 15): a page in use is pinned; which page gives way is decided by a
//! clock sweep over usage counts; a scan that passes by reuses the few pages of its own ring; who
//! wants a block that is being read waits for that read.
//!
//! ```text
//! key → partition (a lock) ─┬─ Resident: frame {key, page, usage count} ⇄ pins: clones of the page
//!                           └─ Loading: one claim owns the memory; others wait
//! free memory, memory not yet taken                     → memory of the next claim
//! ```
//!
//! **One block, one piece of memory.** A read that combines 16 blocks could be kept whole and its
//! pages be parts of it; but then one page in use would hold the memory of 16, and a pool of 128 MB
//! could come to hold 2 GB. So memory is counted, given away and taken back a page at a time.
//!
//! Invariants:
//! - no lock is held during a load, and no thread ever holds two of the pool's locks, so they
//!   cannot block one another;
//! - a block is in at most one slot; while it is `Loading`, exactly one claim exists for it, and it
//!   ends in a frame (`complete`) or in no slot at all (drop), then wakes everyone who waits;
//! - a page is changed only by the claim that owns its memory; in a frame it is shared, and never
//!   changes again until nobody holds it;
//! - a frame is a victim only if the frame is the page's one owner, found under the partition's lock:
//!   pins come from frames under that lock, or from other pins, so none can appear meanwhile;
//! - pages in frames, pages of claims and free pages are together at most the capacity;
//! - misses are loads begun; hits are pages that were there, or came by another thread's load.

mod claim;
mod page_memory;
mod partition;
mod pending;
mod strategy;
mod sync;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use pagemill_format::{BlockBytes, BlockNumber};

pub use page_memory::PinnedPage;
pub use strategy::{BULK_READ_RING_PAGES, Ring, Strategy};

use claim::Claim;
use page_memory::{MemorySource, PageMemory};
use partition::{Lookup, Partition, Passed};
use sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// The least pages a pool should have: what the server requires of `shared_buffers`.
pub const MIN_SHARED_BUFFERS: NonZeroUsize = NonZeroUsize::new(16).unwrap(); // infallible: 16 is not 0
/// The pages of a pool unless told otherwise: 128 MB, as the server's `shared_buffers`.
pub const DEFAULT_SHARED_BUFFERS: NonZeroUsize = NonZeroUsize::new(16384).unwrap(); // infallible: 16384 is not 0

/// The most partitions of the table of pages.
const MAX_PARTITIONS: usize = 16;
/// Fewer pages than this get no partition of their own.
const LEAST_PAGES_PER_PARTITION: usize = 8;

/// A block of a file. What number means which file is the callers' agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageKey {
    /// The file.
    pub file: u64,
    /// The block in it.
    pub block: BlockNumber,
}

impl PageKey {
    /// All bits of the key, mixed into all bits of a number.
    fn mixed(self) -> u64 {
        let spread = self.file.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
        let mixed = (spread ^ u64::from(self.block.0)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 32)
    }
}

/// Every page of the pool was in use when one more was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no unpinned buffers available: all {capacity} shared buffers are in use at this moment; use more of them, or fewer \
     threads"
)]
pub struct NoUnpinnedBuffers {
    /// How many pages the pool has.
    pub capacity: NonZeroUsize,
}

/// A fixed number of pages, shared by all threads.
pub struct BufferPool {
    capacity: NonZeroUsize,
    partitions: Box<[Padded]>,
    memory: MemorySource,
    /// The partition the clock's hand is in, counted on without end; where in it, it says itself.
    hand: AtomicUsize,
    /// Hits of those who waited for another's load.
    waited: AtomicU64,
}

/// A partition that shares no cache line with its neighbours.
#[repr(align(128))]
struct Padded(Mutex<Partition>);

impl BufferPool {
    /// A pool of `capacity` pages. Their memory is taken when they are first used.
    pub fn new(capacity: NonZeroUsize) -> Arc<Self> {
        let partitions = (capacity.get() / LEAST_PAGES_PER_PARTITION).clamp(1, MAX_PARTITIONS);
        Self::with_partitions(capacity, 1 << partitions.ilog2())
    }

    /// `partitions` is a power of 2.
    fn with_partitions(capacity: NonZeroUsize, partitions: usize) -> Arc<Self> {
        let empty = || Padded(Mutex::new(Partition::default()));
        Arc::new(Self {
            capacity,
            partitions: (0..partitions).map(|_| empty()).collect(),
            memory: MemorySource::new(capacity),
            hand: AtomicUsize::new(0),
            waited: AtomicU64::new(0),
        })
    }

    /// How many pages the pool can hold.
    pub fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }

    /// A ring of `pages`, or fewer: of no pool does a ring take more than an eighth, as in PostgreSQL.
    pub fn ring(&self, pages: NonZeroUsize) -> Ring {
        let most = NonZeroUsize::new(self.capacity.get() / 8).unwrap_or(NonZeroUsize::MIN);
        Ring::new(pages.min(most))
    }

    /// The page of a block, pinned. On a miss, `load` fills it; it finds arbitrary bytes there, and must
    /// overwrite them all. While another thread loads the same block, waits for it.
    ///
    /// `load` must not ask for the same block: it would wait for itself.
    ///
    /// # Errors
    /// That of `load`: nothing is kept then, and the next who wants the block, or is waiting for it,
    /// loads again. [`NoUnpinnedBuffers`] when no page can give way.
    pub fn get<E: From<NoUnpinnedBuffers>>(
        &self,
        key: PageKey,
        mut strategy: Strategy<'_>,
        load: impl FnOnce(&mut BlockBytes) -> Result<(), E>,
    ) -> Result<PinnedPage, E> {
        loop {
            match self.find_or_begin(key, &strategy) {
                Lookup::Here(page) => return Ok(page),
                Lookup::Elsewhere(pending) => {
                    if let Some(page) = self.wait(&pending) {
                        return Ok(page);
                    }
                }
                Lookup::Missing => {
                    let mut claim = Claim::begin(self, key, &mut strategy)?;
                    load(&mut claim)?;
                    return Ok(claim.complete());
                }
            }
        }
    }

    /// The page of a block if it is in the pool now, pinned. Never waits, and begins no load.
    #[inline]
    pub fn find(&self, key: PageKey, strategy: Strategy<'_>) -> Option<PinnedPage> {
        self.in_partition(key, |partition| partition.find(key, &strategy))
    }

    /// True when the page is here now. Neither a hit nor a miss, and no use of the page.
    pub fn contains(&self, key: PageKey) -> bool {
        self.in_partition(key, |partition| partition.contains(key))
    }

    /// How many pages were asked for and found, or came by another thread's load.
    pub fn hits(&self) -> u64 {
        let found: u64 = self.each_partition(|partition| partition.hits).sum();
        found + self.waited.load(Ordering::Relaxed)
    }

    /// How many pages were asked for and had to be loaded, failures included.
    pub fn misses(&self) -> u64 {
        self.each_partition(|partition| partition.misses).sum()
    }

    fn each_partition<T>(&self, visit: impl Fn(&mut Partition) -> T) -> impl Iterator<Item = T> {
        self.partitions.iter().map(move |partition| visit(&mut lock(&partition.0)))
    }

    /// Does something in the partition of a key, under its lock. The lock is never handed out, so
    /// that it cannot be kept for longer than is meant.
    #[inline]
    fn in_partition<T>(&self, key: PageKey, work: impl FnOnce(&mut Partition) -> T) -> T {
        // Other bits than those by which the partition's own table tells its keys apart.
        let number = (key.mixed() >> 40) as usize & (self.partitions.len() - 1);
        work(&mut lock(&self.partitions[number].0))
    }

    #[inline]
    fn find_or_begin(&self, key: PageKey, strategy: &Strategy<'_>) -> Lookup {
        self.in_partition(key, |partition| partition.find_or_begin(key, strategy))
    }

    /// Ends a load without a page: `also` does what else is to be done under the lock.
    fn abandon(&self, key: PageKey, also: impl FnOnce(&mut Partition)) {
        let pending = self.in_partition(key, |partition| {
            also(partition);
            partition.abandon(key)
        });
        if let Some(pending) = pending {
            pending.finish(None);
        }
    }

    /// Waits for another's load; `None` when that failed.
    fn wait(&self, pending: &pending::Pending) -> Option<PinnedPage> {
        let page = pending.wait()?;
        self.waited.fetch_add(1, Ordering::Relaxed);
        Some(page)
    }

    /// Memory for one page: of the ring, free, new, or of the page that gives way.
    fn take_memory(
        &self,
        key: PageKey,
        strategy: &mut Strategy<'_>,
    ) -> Result<PageMemory, NoUnpinnedBuffers> {
        let oldest = strategy.ring().and_then(|ring| ring.oldest());
        let memory = oldest
            .and_then(|key| self.in_partition(key, |partition| partition.take_seldom_used(key)))
            .or_else(|| self.memory.take())
            .or_else(|| self.sweep())
            .ok_or(NoUnpinnedBuffers { capacity: self.capacity })?;
        if let Some(ring) = strategy.ring() {
            ring.put(key);
        }
        Ok(memory)
    }

    /// Moves the clock's hand on to a page that is not in use and has not been used lately.
    fn sweep(&self) -> Option<PageMemory> {
        let mut all_pinned = 0;
        while all_pinned <= self.partitions.len() {
            let hand = self.hand.load(Ordering::Relaxed);
            let passed = lock(&self.partitions[hand % self.partitions.len()].0).sweep();
            match passed {
                Passed::Victim(memory) => return Some(memory),
                Passed::Used => all_pinned = 0,
                Passed::Pinned => all_pinned += 1,
            }
            // If another thread was faster, the hand is where it belongs.
            let _ = self.hand.compare_exchange(
                hand,
                hand.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        // Other threads' hands may have gone past pages that are free to go: look at every one.
        let taken = self.each_partition(Partition::take_any).find_map(|memory| memory);
        taken.or_else(|| self.memory.take())
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}
