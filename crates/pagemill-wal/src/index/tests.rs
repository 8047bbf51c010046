//! Whether entries are in memory or in temporary files makes no difference: what random WAL did is told alike, whatever the
//! memory is.

use pagemill_format::wal::{CopiedDatabase, DatabaseChange};
use pagemill_format::{BlockNumber, Oid};
use proptest::prelude::*;

use super::*;
use crate::finding::Finding;
use crate::wal_directory::WalDirectory;

/// Databases and relations of each.
const DATABASES: u32 = 3;
const RELATIONS: u32 = 4;

/// What a record does.
#[derive(Debug, Clone)]
enum Action {
    /// So many records change blocks of a relation, from this one on, each so many behind the one before.
    Touch {
        database: u32,
        relation: u32,
        first: u32,
        stride: u32,
        count: u32,
        whole: u32,
    },
    Truncate {
        database: u32,
        relation: u32,
        blocks: u32,
    },
    Drop {
        database: u32,
        relation: u32,
    },
    Create {
        database: u32,
        relation: u32,
    },
    CopyDatabase {
        from: u32,
        to: u32,
    },
    DropDatabase(u32),
}

fn action() -> impl Strategy<Value = Action> {
    let (database, relation) = (0..DATABASES, 0..RELATIONS);
    let of = move || (database.clone(), relation.clone());
    let blocks = prop_oneof![0..40_u32, 0..4000_u32, Just(u32::MAX - 9)];
    let stride = prop_oneof![Just(0_u32), Just(1), Just(7), Just(1000)];
    let count = prop_oneof![4 => 1..200_u32, 1 => 1000..3000_u32];
    let whole = prop_oneof![Just(0_u32), Just(1), 2..500_u32];
    prop_oneof![
        20 => (of(), blocks.clone(), stride, count, whole).prop_map(
            |((database, relation), first, stride, count, whole)| {
                Action::Touch { database, relation, first, stride, count, whole }
            }
        ),
        2 => (of(), blocks).prop_map(|((database, relation), blocks)| {
            Action::Truncate { database, relation, blocks }
        }),
        1 => of().prop_map(|(database, relation)| Action::Drop { database, relation }),
        1 => of().prop_map(|(database, relation)| Action::Create { database, relation }),
        1 => (0..DATABASES, 0..DATABASES).prop_map(|(from, to)| Action::CopyDatabase { from, to }),
        1 => (0..DATABASES).prop_map(Action::DropDatabase),
    ]
}

fn key(database: u32, relation: u32) -> ForkKey {
    let (tablespace, database) = (Oid(1663), Oid(5 + database));
    let locator = RelFileLocator { tablespace, database, number: Oid(16384 + relation) };
    ForkKey { locator, fork: Fork::Main }
}

/// Takes actions in, the records of each at LSNs of their own.
fn apply(builder: &mut WalIndexBuilder, actions: &[Action]) {
    let mut lsn = 8;
    for action in actions {
        match *action {
            Action::Touch { database, relation, first, stride, count, whole } => {
                let entry = |number: u32| {
                    let kind = match number % whole.max(1) {
                        0 if whole > 0 => EntryKind::Image,
                        1 => EntryKind::DeltaWithoutImage,
                        _ => EntryKind::Delta,
                    };
                    let block = first.wrapping_add(number.wrapping_mul(stride)) % u32::MAX;
                    let block = BlockNumber(block);
                    Entry::new(block, Lsn(lsn + 8 * u64::from(number)), kind)
                };
                let entries: Vec<_> = (0..count).map(entry).collect();
                builder.touch_all(key(database, relation), &entries);
                lsn += 8 * u64::from(count);
            }
            Action::Truncate { database, relation, blocks } => {
                let next_run = builder.spill.next_run();
                let fork = builder.forks.entry(key(database, relation)).or_default();
                fork.truncate(blocks, next_run);
            }
            Action::Drop { database, relation } => {
                builder.drop_relation(key(database, relation).locator);
            }
            Action::Create { database, relation } => {
                builder.forks.entry(key(database, relation)).or_default().create();
            }
            Action::CopyDatabase { from, to } => {
                let copied = DatabaseChange::Copied(CopiedDatabase {
                    database: Oid(5 + to),
                    tablespace: Oid(1663),
                    source_database: Oid(5 + from),
                    source_tablespace: Oid(1663),
                });
                builder.add_database(Lsn(lsn), copied).unwrap();
            }
            Action::DropDatabase(database) => {
                let (database, tablespaces) = (Oid(5 + database), vec![Oid(1663)]);
                let dropped = DatabaseChange::Dropped { database, tablespaces };
                builder.add_database(Lsn(lsn), dropped).unwrap();
            }
        }
        lsn += 8;
        builder.keep_limits().unwrap();
    }
}

fn index(actions: &[Action], memory: usize) -> (WalIndex, u32) {
    let mut builder = builder_within(memory);
    apply(&mut builder, actions);
    let runs = builder.spill.next_run();
    (builder.finish(nothing_behind()).unwrap(), runs)
}

/// All that is told of one fork, each answer asked for in its own way.
fn answers(fork: &ForkHistory) -> String {
    let entries = fork.entries().unwrap();
    let mut blocks: Vec<BlockNumber> = entries.iter().map(|entry| entry.block).collect();
    let mut touched = Vec::new();
    fork.visit_touched(0..u32::MAX, |block| touched.push(block)).unwrap();
    assert_eq!(touched, blocks);
    blocks.dedup();
    let mut next = BlockNumber(0);
    for block in &blocks {
        let of_block = entries.iter().filter(|entry| entry.block == *block).copied();
        assert_eq!(fork.entries_of(*block).unwrap(), of_block.collect::<Vec<_>>());
        assert_eq!(fork.next_touched(next).unwrap(), Some(*block));
        next = BlockNumber(block.0 + 1);
        let mut count = 0;
        fork.visit_touched(block.0..next.0, |found| {
            assert_eq!(found, *block);
            count += 1;
        })
        .unwrap();
        assert!(count > 0);
    }
    assert_eq!(fork.next_touched(next).unwrap(), None);
    assert!(fork.entries_of(next).unwrap().is_empty());
    let sizes = (fork.least_blocks(), fork.most_blocks(), fork.base_blocks());
    format!("{:?} {sizes:?} {:?} {entries:?}", fork.life(), fork.first_without_image())
}

fn all_answers(index: &WalIndex) -> std::collections::BTreeMap<ForkKey, String> {
    index.forks().map(|(key, fork)| (*key, answers(fork))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn answers_are_the_same_in_memory_and_from_files(
        actions in prop::collection::vec(action(), 1..150),
        memory in prop_oneof![Just(64_usize << 10), (64_usize << 10)..(1 << 20)],
    ) {
        let (expected, runs) = index(&actions, 1 << 30);
        prop_assert_eq!(runs, 0);
        let (found, _) = index(&actions, memory);
        let (found, expected) = (all_answers(&found), all_answers(&expected));
        let differs = |key: &&ForkKey| found.get(*key) != expected.get(*key);
        prop_assert!(found.len() == expected.len() && !expected.keys().any(|key| differs(&key)));
    }
}

#[test]
fn many_runs_are_merged_and_a_page_with_very_many_records_is_one_of_many() {
    let touch = |relation, first, stride, count| Action::Touch {
        database: 0,
        relation,
        first,
        stride,
        count,
        whole: 0,
    };
    let mut actions = Vec::new();
    for round in 0..40 {
        actions.push(touch(0, 17, 0, 500));
        actions.push(touch(1, round, 3, 3000));
        actions.push(Action::Truncate { database: 0, relation: 1, blocks: 5000 });
    }
    let (expected, _) = index(&actions, 1 << 30);
    let (found, runs) = index(&actions, 256 << 10);
    assert!(runs > 4, "{runs} runs");
    assert_eq!(all_answers(&found), all_answers(&expected));
    let hot = found.fork(key(0, 0)).unwrap().entries_of(BlockNumber(17)).unwrap();
    assert_eq!(hot.len(), 40 * 500);
}

#[test]
fn what_cannot_go_to_a_file_is_refused_when_it_is_too_much() {
    let mut builder = builder_within(1 << 20);
    let mut refused = None;
    for relation in 0..10_000 {
        builder.drop_relation(key(0, relation).locator);
        refused = builder.keep_limits().err();
        if refused.is_some() {
            break;
        }
    }
    assert!(matches!(refused, Some(Error::Memory(_))), "{refused:?}");
    assert!(builder.forks.len() * FORK_BYTES <= 600 << 10, "{}", builder.forks.len());
}

/// Takes in what about this many bytes of WAL of a busy server do that brings no images: 10 million records in a GiB, all
/// over three tables and the end of a fourth. Gives the most that entries took in memory.
fn take_busy_wal(builder: &mut WalIndexBuilder, bytes: u64) -> usize {
    const RECORD_BYTES: u64 = 107 / 8 * 8;
    const PIECE_RECORDS: u64 = 20_000;
    let (mut random, mut lsn, mut most) = (88_172_645_463_325_252_u64, 8, 0);
    let mut below = |end: u32| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (((random >> 32) * u64::from(end)) >> 32) as u32
    };
    while lsn < bytes {
        let mut forks = [const { Vec::new() }; 4];
        for _ in 0..PIECE_RECORDS {
            let relation = below(4) as usize;
            let block = match relation {
                3 => (lsn / 20_000) as u32,
                _ => below(200_000 >> (4 * relation)),
            };
            forks[relation].push(Entry::new(BlockNumber(block), Lsn(lsn), EntryKind::Delta));
            lsn += RECORD_BYTES;
        }
        for (relation, entries) in (0..).zip(&forks) {
            builder.touch_all(key(0, relation), entries);
        }
        most = most.max(builder.entry_bytes);
        builder.keep_limits().unwrap();
    }
    most
}

fn builder_within(memory: usize) -> WalIndexBuilder {
    let directory = WalDirectory {
        path: "pg_wal".into(),
        timeline: 1,
        segment_size: 1 << 20,
        version: PgVersion::V16,
        system_identifier: 1,
    };
    let source = WalSource::of_directory(&directory).within(memory);
    WalIndexBuilder::new(&Storage::real(), &source, &Checkpoint::initial(Lsn(8), 1))
}

fn nothing_behind() -> EndOfWal {
    let reason = Finding::Zeros;
    EndOfWal { lsn: Lsn(0), reason, page_behind: None, segment_behind: None, missing: Vec::new() }
}

#[test]
fn wal_of_fifty_times_the_memory_stays_within_it() {
    const MEMORY: usize = 1 << 20;
    let mut builder = builder_within(MEMORY);
    let most = take_busy_wal(&mut builder, 50 << 20);
    // What came last is counted before it is written.
    assert!(most < MEMORY + 20_000 * Entry::BYTES, "{most} bytes");
    assert!(builder.spill.next_run() > 4);
    let index = builder.finish(nothing_behind()).unwrap();
    let entries: usize = index.forks().map(|(_, fork)| fork.entries().unwrap().len()).sum();
    assert!(entries >= (50 << 20) / 107, "{entries}");
    assert_eq!(index.forks().map(|(_, fork)| fork.entry_bytes()).sum::<usize>(), 0);
}

/// `PAGEMILL_TEST_WAL_GIB` is how much WAL there is, `PAGEMILL_TEST_WAL_MIB` the memory for it.
#[test]
#[ignore = "for measuring: takes a second for each GiB, and 100 MB of the disk"]
fn peak_memory_of_much_wal() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (gib, mib) = (number("PAGEMILL_TEST_WAL_GIB", 1), number("PAGEMILL_TEST_WAL_MIB", 256));
    let start = std::time::Instant::now();
    let mut builder = builder_within((mib as usize) << 20);
    take_busy_wal(&mut builder, gib << 30);
    let (taken, runs) = (start.elapsed(), builder.spill.next_run());
    let index = builder.finish(nothing_behind()).unwrap();
    let peak = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    let looked = std::time::Instant::now();
    let fork = index.fork(key(0, 0)).unwrap();
    let found =
        (0..1000).map(|n| fork.entries_of(BlockNumber(n * 199)).unwrap().len()).sum::<usize>();
    eprintln!(
        "{gib} GiB within {mib} MiB: {peak}; {runs} runs, {taken:.1?} to take it in, {:.1?} in all; {found} entries of 1000 \
         blocks in {:.1?}",
        looked.duration_since(start),
        looked.elapsed()
    );
}
