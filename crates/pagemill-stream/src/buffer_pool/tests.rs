//! The pool with one thread, against a naive model, and with several, against all they saw. What
//! must hold of every order in which threads can meet is in `loom_tests.rs`.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use pagemill_format::BLOCK_SIZE;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::{Strategy, *};

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NoBuffers(NoUnpinnedBuffers),
    Unreadable(u32),
}

impl From<NoUnpinnedBuffers> for Refusal {
    fn from(error: NoUnpinnedBuffers) -> Self {
        Self::NoBuffers(error)
    }
}

fn size(pages: usize) -> NonZeroUsize {
    NonZeroUsize::new(pages).unwrap()
}

fn key(file: u64, block: u32) -> PageKey {
    PageKey { file, block: BlockNumber(block) }
}

/// Writes a page: its key, and the number of the load.
fn stamp(page: &mut BlockBytes, key: PageKey, load: u64) {
    page.fill(0);
    page[..8].copy_from_slice(&key.file.to_le_bytes());
    page[8..12].copy_from_slice(&key.block.0.to_le_bytes());
    page[BLOCK_SIZE - 8..].copy_from_slice(&load.to_le_bytes());
}

fn load_of(page: &BlockBytes, key: PageKey) -> u64 {
    assert_eq!(page[..8], key.file.to_le_bytes());
    assert_eq!(page[8..12], key.block.0.to_le_bytes());
    u64::from_le_bytes(*page.last_chunk().unwrap())
}

fn get(pool: &BufferPool, key: PageKey, strategy: Strategy<'_>) -> Result<PinnedPage, Refusal> {
    pool.get(key, strategy, |page| {
        stamp(page, key, 0);
        Ok(())
    })
}

fn normal(pool: &BufferPool, block: u32) -> PinnedPage {
    get(pool, key(1, block), Strategy::Normal).unwrap()
}

/// Every page is in a frame or free.
fn assert_all_accounted_for(pool: &BufferPool) {
    let resident: usize = pool.each_partition(|partition| partition.resident()).sum();
    let (free, taken) = pool.memory.counts();
    assert_eq!(resident + free, taken);
    assert!(taken <= pool.capacity().get());
}

#[test]
fn memory_is_taken_when_it_is_needed() {
    let pool = BufferPool::new(size(1 << 40));
    assert_eq!(pool.memory.counts(), (0, 0));
    normal(&pool, 7);
    assert_eq!(pool.memory.counts(), (127, 128));
}

#[test]
fn looking_whether_a_page_is_here_changes_nothing() {
    let pool = BufferPool::new(size(1));
    assert!(!pool.contains(key(1, 5)));
    normal(&pool, 5);
    assert!(pool.contains(key(1, 5)) && !pool.contains(key(1, 6)) && !pool.contains(key(2, 5)));
    assert_eq!((pool.hits(), pool.misses()), (0, 1));
}

#[test]
fn a_pinned_page_stays_and_the_pool_says_when_all_are() {
    let pool = BufferPool::new(size(2));
    let (one, two) = (normal(&pool, 1), normal(&pool, 2));
    let clone = two.clone();
    drop(two);
    let refused = get(&pool, key(1, 3), Strategy::Normal).unwrap_err();
    assert_eq!(refused, Refusal::NoBuffers(NoUnpinnedBuffers { capacity: size(2) }));
    let Refusal::NoBuffers(error) = refused else { return };
    assert!(error.to_string().contains("use more of them"), "{error}");
    drop(clone);
    normal(&pool, 3);
    assert_eq!(load_of(&one, key(1, 1)), 0);
    assert!(pool.contains(key(1, 1)) && !pool.contains(key(1, 2)));
    assert_all_accounted_for(&pool);
}

#[test]
fn a_page_outlives_the_pool() {
    let page = normal(&BufferPool::new(size(1)), 1);
    assert_eq!(thread::spawn(move || load_of(&page, key(1, 1))).join().unwrap(), 0);
}

#[test]
fn a_failed_load_leaves_nothing_behind() {
    let pool = BufferPool::new(size(1));
    let failed = pool.get(key(1, 2), Strategy::Normal, |_| Err(Refusal::Unreadable(2)));
    assert_eq!(failed.unwrap_err(), Refusal::Unreadable(2));
    assert!(!pool.contains(key(1, 2)));
    normal(&pool, 2);
    assert_eq!((pool.hits(), pool.misses()), (0, 2));
    assert_all_accounted_for(&pool);
}

#[test]
fn a_load_that_panics_leaves_nothing_behind() {
    let pool = BufferPool::new(size(1));
    let loader = pool.clone();
    let load =
        move || loader.get(key(1, 2), Strategy::Normal, |_| -> Result<(), Refusal> { panic!() });
    assert!(thread::spawn(load).join().is_err());
    normal(&pool, 2);
    assert_all_accounted_for(&pool);
}

#[test]
fn a_page_that_is_used_outlives_many_that_are_not() {
    let pool = BufferPool::new(size(16));
    for block in 1..1000 {
        normal(&pool, 0);
        normal(&pool, block);
    }
    assert_eq!(pool.misses(), 1000);
}

#[test]
fn a_scan_with_a_ring_leaves_the_pages_of_others_alone() {
    let pool = BufferPool::new(size(512));
    for block in 0..400 {
        normal(&pool, block);
    }
    let mut ring = pool.ring(BULK_READ_RING_PAGES);
    for block in 0..10_000 {
        get(&pool, key(2, block), Strategy::Ring(&mut ring)).unwrap();
    }
    assert!((0..400).all(|block| pool.contains(key(1, block))));
    let left = (0..10_000).filter(|block| pool.contains(key(2, *block))).count();
    assert_eq!(left, 32);
    assert_all_accounted_for(&pool);
}

#[test]
fn what_others_use_too_is_not_taken_for_the_ring() {
    let pool = BufferPool::new(size(512));
    let mut ring = pool.ring(size(4));
    get(&pool, key(2, 0), Strategy::Ring(&mut ring)).unwrap();
    get(&pool, key(2, 0), Strategy::Normal).unwrap();
    let pinned = get(&pool, key(2, 1), Strategy::Ring(&mut ring)).unwrap();
    for block in 2..100 {
        get(&pool, key(2, block), Strategy::Ring(&mut ring)).unwrap();
    }
    assert!(pool.contains(key(2, 0)) && pool.contains(key(2, 1)) && !pool.contains(key(2, 2)));
    drop(pinned);
}

#[test]
fn a_ring_is_at_most_an_eighth_of_the_pool() {
    let ring_of = |pages| {
        let pool = BufferPool::new(size(pages));
        let mut ring = pool.ring(BULK_READ_RING_PAGES);
        for block in 0..200 {
            get(&pool, key(2, block), Strategy::Ring(&mut ring)).unwrap();
        }
        (0..200).filter(|block| pool.contains(key(2, *block))).count()
    };
    assert_eq!((ring_of(1), ring_of(16), ring_of(256), ring_of(1024)), (1, 2, 32, 32));
}

#[test]
fn who_waits_for_a_failed_load_gets_an_error_of_its_own() {
    let pool = BufferPool::new(size(2));
    let barrier = Barrier::new(8);
    let errors = thread::scope(|scope| {
        let attempt = |thread| {
            barrier.wait();
            let failed = pool.get(key(1, 1), Strategy::Normal, |_| {
                thread::sleep(Duration::from_millis(5));
                Err(Refusal::Unreadable(thread))
            });
            failed.unwrap_err()
        };
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || attempt(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(errors, (0..8).map(Refusal::Unreadable).collect::<Vec<_>>());
    assert_eq!((pool.hits(), pool.misses()), (0, 8));
}

#[test]
fn keys_of_neighbours_go_to_all_partitions_alike() {
    let pool = BufferPool::new(size(16_384));
    for file in 0..16 {
        for block in 0..256 {
            get(&pool, key(file << 32 | 16_384, block), Strategy::Normal).unwrap();
        }
    }
    let counts: Vec<usize> = pool.each_partition(|partition| partition.resident()).collect();
    assert_eq!(counts.len(), 16);
    assert!(counts.iter().all(|count| (180..340).contains(count)), "{counts:?}");
}

/// What is done to a pool.
#[derive(Debug, Clone)]
enum Step {
    Get { key: PageKey, ring: bool, fails: bool, keep: bool },
    Release { which: prop::sample::Index },
}

fn any_step() -> impl proptest::strategy::Strategy<Value = Step> {
    let any_key = || (0_u64..2, 0_u32..9).prop_map(|(file, block)| key(file, block));
    prop_oneof![
        5 => (any_key(), any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.3))
            .prop_map(|(key, ring, fails, keep)| Step::Get { key, ring, fails, keep }),
        3 => any::<prop::sample::Index>().prop_map(|which| Step::Release { which }),
    ]
}

/// A pool, and what one who keeps a list of all that happened expects of it.
struct Modelled {
    pool: Arc<BufferPool>,
    ring: Ring,
    /// The number of the last load of each block that succeeded.
    loads: HashMap<(u64, u32), u64>,
    held: Vec<(PageKey, u64, PinnedPage)>,
    /// Loads begun.
    begun: u64,
    hits: u64,
}

impl Modelled {
    fn new(capacity: usize, partitions: usize) -> Self {
        let pool = BufferPool::with_partitions(size(capacity), partitions);
        let ring = pool.ring(BULK_READ_RING_PAGES);
        Self { pool, ring, loads: HashMap::new(), held: Vec::new(), begun: 0, hits: 0 }
    }

    fn pinned(&self) -> usize {
        let mut pinned: Vec<_> = self.held.iter().map(|(key, ..)| (key.file, key.block)).collect();
        pinned.sort_unstable();
        pinned.dedup();
        pinned.len()
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Get { key, ring, fails, keep } => self.get(key, ring, fails, keep),
            Step::Release { which } if !self.held.is_empty() => {
                self.held.swap_remove(which.index(self.held.len()));
            }
            Step::Release { .. } => {}
        }
    }

    fn get(&mut self, key: PageKey, ring: bool, fails: bool, keep: bool) {
        let here = self.pool.contains(key);
        let full = self.pinned() == self.pool.capacity().get();
        let number = self.begun + 1;
        let strategy = if ring { Strategy::Ring(&mut self.ring) } else { Strategy::Normal };
        let got = self.pool.get(key, strategy, |page| {
            self.begun += 1;
            stamp(page, key, number);
            if fails { Err(Refusal::Unreadable(key.block.0)) } else { Ok(()) }
        });
        match got {
            Ok(page) => {
                assert!(here || !fails && !full);
                self.seen(key, here, number, page, keep);
            }
            Err(Refusal::NoBuffers(_)) => assert!(!here && full),
            Err(Refusal::Unreadable(_)) => assert!(!here && !full && fails),
        }
    }

    fn seen(&mut self, key: PageKey, here: bool, number: u64, page: PinnedPage, keep: bool) {
        let at = (key.file, key.block.0);
        if here {
            self.hits += 1;
        } else {
            self.loads.insert(at, number);
        }
        assert_eq!(load_of(&page, key), self.loads[&at]);
        if keep {
            self.held.push((key, self.loads[&at], page));
        }
    }

    fn check(&self) {
        for (key, load, page) in &self.held {
            assert_eq!(load_of(page, *key), *load);
            assert!(self.pool.contains(*key), "a pinned page was driven out");
        }
        assert_eq!((self.pool.hits(), self.pool.misses()), (self.hits, self.begun));
        assert_all_accounted_for(&self.pool);
    }
}

proptest! {
    #[test]
    fn a_pool_does_what_a_list_of_all_that_happened_says(
        capacity in 1_usize..9,
        partitions in prop::sample::select(vec![1_usize, 2, 4]),
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let mut modelled = Modelled::new(capacity, partitions);
        for step in &steps {
            modelled.take(step);
            modelled.check();
        }
    }
}

/// Threads that want the same few blocks, pages held for a while and failures among them.
#[test]
fn many_threads_never_see_a_page_that_is_not_the_one_they_asked_for() {
    const THREADS: u64 = 8;
    let rounds = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
    for (capacity, blocks) in [(24, 60), (64, 40), (1024, 3000)] {
        let pool = BufferPool::new(size(capacity));
        let asked: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|seed| {
                    let pool = &pool;
                    scope.spawn(move || bustle(pool, seed, blocks, rounds))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(pool.hits() + pool.misses(), asked);
        assert_all_accounted_for(&pool);
    }
}

/// Asks for blocks at random, checks what comes, and returns how many were hit or loaded.
fn bustle(pool: &Arc<BufferPool>, seed: u64, blocks: u32, rounds: u32) -> u64 {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: u32| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) as u32 % below
    };
    let mut ring = pool.ring(BULK_READ_RING_PAGES);
    let mut held: Option<(PageKey, PinnedPage)> = None;
    let mut asked = 0;
    for _ in 0..rounds {
        let key = key(1, next(blocks));
        let fails = next(50) == 0;
        let strategy = if next(2) == 0 { Strategy::Normal } else { Strategy::Ring(&mut ring) };
        let got = pool.get(key, strategy, |page| {
            stamp(page, key, 0);
            if fails { Err(Refusal::Unreadable(0)) } else { Ok(()) }
        });
        asked += u64::from(!matches!(got, Err(Refusal::NoBuffers(_))));
        if let Ok(page) = got {
            load_of(&page, key);
            if let Some((key, page)) = held.take_if(|_| next(3) == 0) {
                load_of(&page, key);
            }
            held.get_or_insert((key, page));
        }
    }
    asked
}
