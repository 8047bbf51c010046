//! The pool under every order in which its threads can meet: what loom tries.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p pagemill-stream --release --lib loom_
//! ```
//!
//! Loom runs each test again and again, until every interleaving (of three threads: every one with up
//! to as many preemptions as named) was taken; it also fails when all threads wait.

use std::sync::atomic::{AtomicU64 as PlainU64, Ordering::SeqCst};

use loom::thread;

use super::*;

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NoBuffers,
    Unreadable(u32),
}

impl From<NoUnpinnedBuffers> for Refusal {
    fn from(_: NoUnpinnedBuffers) -> Self {
        Self::NoBuffers
    }
}

/// Runs a test under loom; `preemptions` bounds what it tries, `None` leaves it unbounded.
fn explore(preemptions: Option<usize>, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(test);
}

fn pool_of(pages: usize, partitions: usize) -> Arc<BufferPool> {
    BufferPool::with_partitions(NonZeroUsize::new(pages).unwrap(), partitions)
}

fn key(block: u32) -> PageKey {
    PageKey { file: 1, block: BlockNumber(block) }
}

fn stamp(page: &mut BlockBytes, block: u32) {
    page[..4].copy_from_slice(&block.to_le_bytes());
}

fn assert_is(page: &PinnedPage, block: u32) {
    assert_eq!(page[..4], block.to_le_bytes());
}

fn get(pool: &BufferPool, block: u32, loads: &PlainU64) -> Result<PinnedPage, Refusal> {
    pool.get(key(block), Strategy::Normal, |page| {
        loads.fetch_add(1, SeqCst);
        stamp(page, block);
        Ok(())
    })
}

/// Nobody uses the pool any more: no load is left without an end, and no memory is lost.
fn assert_clean(pool: &BufferPool) {
    let resident: usize = pool.each_partition(|partition| partition.resident()).sum();
    let (free, taken) = pool.memory.counts();
    assert_eq!(resident + free, taken);
    assert!(taken <= pool.capacity().get());
}

/// Runs the works on threads of their own, but the last here, and waits for all.
fn run<const N: usize>(works: [Box<dyn FnOnce() + Send>; N]) {
    let mut works: Vec<_> = works.into_iter().collect();
    let last = works.pop().unwrap();
    let threads: Vec<_> = works.into_iter().map(thread::spawn).collect();
    last();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn loom_a_block_that_several_want_is_loaded_once() {
    for (threads, preemptions) in [(2, None), (3, Some(3))] {
        explore(preemptions, move || {
            let (pool, loads) = (pool_of(1, 1), Arc::new(PlainU64::new(0)));
            let work = || -> Box<dyn FnOnce() + Send> {
                let (pool, loads) = (pool.clone(), loads.clone());
                Box::new(move || assert_is(&get(&pool, 7, &loads).unwrap(), 7))
            };
            match threads {
                2 => run([work(), work()]),
                _ => run([work(), work(), work()]),
            }
            assert_eq!(loads.load(SeqCst), 1);
            assert_eq!((pool.hits(), pool.misses()), (threads - 1, 1));
            assert_clean(&pool);
        });
    }
}

/// Gets blocks one after the other, looks at each again after everyone else had a turn, and takes
/// it when there is no buffer.
fn hold_in_turn(pool: &BufferPool, blocks: &[u32], loads: &PlainU64) {
    for &block in blocks {
        match get(pool, block, loads) {
            Ok(page) => {
                let clone = page.clone();
                drop(page);
                thread::yield_now();
                assert_is(&clone, block);
                assert!(pool.contains(key(block)), "a pinned page was driven out");
                assert_is(&clone, block);
            }
            Err(refused) => assert_eq!(refused, Refusal::NoBuffers),
        }
    }
}

#[test]
fn loom_a_pinned_page_is_neither_driven_out_nor_overwritten() {
    for (pages, partitions) in [(1, 1), (2, 1), (2, 2)] {
        explore(Some(3), move || {
            let (pool, loads) = (pool_of(pages, partitions), Arc::new(PlainU64::new(0)));
            let work = |blocks: [u32; 2]| -> Box<dyn FnOnce() + Send> {
                let (pool, loads) = (pool.clone(), loads.clone());
                Box::new(move || hold_in_turn(&pool, &blocks, &loads))
            };
            run([work([1, 2]), work([2, 3])]);
            assert_eq!(pool.misses(), loads.load(SeqCst));
            assert_clean(&pool);
        });
    }
}

#[test]
fn loom_three_threads_share_two_buffers() {
    explore(Some(2), || {
        let (pool, loads) = (pool_of(2, 1), Arc::new(PlainU64::new(0)));
        let work = |blocks: &'static [u32]| -> Box<dyn FnOnce() + Send> {
            let (pool, loads) = (pool.clone(), loads.clone());
            Box::new(move || hold_in_turn(&pool, blocks, &loads))
        };
        run([work(&[1]), work(&[2]), work(&[3])]);
        assert_clean(&pool);
    });
}

#[test]
fn loom_who_waits_for_a_load_that_fails_loads_itself() {
    for (threads, preemptions) in [(2, None), (3, Some(3))] {
        explore(preemptions, move || {
            let pool = pool_of(1, 1);
            let work = |number: u32| -> Box<dyn FnOnce() + Send> {
                let pool = pool.clone();
                Box::new(move || {
                    let failed =
                        pool.get(key(1), Strategy::Normal, |_| Err(Refusal::Unreadable(number)));
                    assert_eq!(failed.unwrap_err(), Refusal::Unreadable(number));
                })
            };
            match threads {
                2 => run([work(0), work(1)]),
                _ => run([work(0), work(1), work(2)]),
            }
            assert_eq!((pool.hits(), pool.misses()), (0, threads));
            assert!(!pool.contains(key(1)));
            assert_clean(&pool);
            assert_is(&get(&pool, 1, &PlainU64::new(0)).unwrap(), 1);
        });
    }
}

#[test]
fn loom_one_load_fails_and_the_other_does_not() {
    explore(None, || {
        let (pool, loads) = (pool_of(1, 1), Arc::new(PlainU64::new(0)));
        let (one, other, counted) = (pool.clone(), pool.clone(), loads.clone());
        let fails = move || match one.get(key(1), Strategy::Normal, |_| Err(Refusal::Unreadable(1)))
        {
            Ok(page) => assert_is(&page, 1),
            Err(refused) => assert_eq!(refused, Refusal::Unreadable(1)),
        };
        run([Box::new(fails), Box::new(move || assert_is(&get(&other, 1, &counted).unwrap(), 1))]);
        assert_eq!(loads.load(SeqCst), 1);
        assert_clean(&pool);
    });
}

#[test]
fn loom_who_waits_gets_the_page_even_if_it_would_give_way_at_once() {
    explore(None, || {
        let (pool, loads) = (pool_of(1, 1), Arc::new(PlainU64::new(0)));
        let (one, other, counted) = (pool.clone(), pool.clone(), loads.clone());
        let loads_two = move || {
            let _ = get(&one, 1, &counted).map(|page| assert_is(&page, 1));
            let _ = get(&one, 2, &counted).map(|page| assert_is(&page, 2));
        };
        let counted = loads.clone();
        let waits = move || {
            let _ = get(&other, 1, &counted).map(|page| assert_is(&page, 1));
        };
        run([Box::new(loads_two), Box::new(waits)]);
        assert_eq!(pool.misses(), loads.load(SeqCst));
        assert_clean(&pool);
    });
}

#[test]
fn loom_rings_of_two_scans_take_nothing_from_each_other_that_is_in_use() {
    explore(Some(2), || {
        let pool = pool_of(2, 1);
        let work = |blocks: [u32; 3]| -> Box<dyn FnOnce() + Send> {
            let pool = pool.clone();
            Box::new(move || {
                let mut ring = pool.ring(BULK_READ_RING_PAGES);
                for block in blocks {
                    let load = |page: &mut BlockBytes| -> Result<(), Refusal> {
                        stamp(page, block);
                        Ok(())
                    };
                    let page = pool.get(key(block), Strategy::Ring(&mut ring), load).unwrap();
                    thread::yield_now();
                    assert_is(&page, block);
                }
            })
        };
        run([work([1, 2, 3]), work([2, 3, 4])]);
        assert_clean(&pool);
    });
}
