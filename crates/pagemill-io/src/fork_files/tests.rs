//! Forks of one and several segments, whole, cut and disturbed: which file each block comes from, and what is damage.
//! Files are sparse, with the number of each block stamped where a test looks.

use super::*;
use crate::simulated::{Disturbance, FaultyFileSystem};
use proptest::prelude::*;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;

/// A directory with a relation's segments, sparse but for stamps on chosen blocks.
struct Relation {
    dir: tempfile::TempDir,
}

impl Relation {
    fn new(lens: &[Option<u64>]) -> Self {
        let relation = Self { dir: tempfile::tempdir().unwrap() };
        for (segment, len) in (0..).zip(lens) {
            if let Some(len) = len {
                let file = fs::File::create(segment_path(&relation.base(), segment)).unwrap();
                file.set_len(*len).unwrap();
            }
        }
        relation
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("16384")
    }

    fn open(&self, storage: &Storage) -> ForkFiles {
        ForkFiles::open(storage, &self.base(), Fork::Main).unwrap().unwrap()
    }

    /// Writes the block's number into it.
    fn stamp(&self, block: u32) {
        let (segment, offset) = position(BlockNumber(block));
        let path = segment_path(&self.base(), segment);
        let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(&block.to_le_bytes()).unwrap();
    }
}

fn stamp_of(page: &BlockBytes) -> u32 {
    u32::from_le_bytes(*page.first_chunk().unwrap())
}

fn pages(count: usize) -> Vec<BlockBytes> {
    vec![[0; BLOCK_SIZE]; count]
}

#[test]
fn past_the_page_cache_are_the_same_blocks_and_the_same_end() {
    let relation = Relation::new(&[Some(7 * BLOCK_SIZE as u64)]);
    (0..7).for_each(|block| relation.stamp(block));
    let files = relation.open(&Storage::real());
    let Some(twin) = files.past_cache() else {
        println!("SKIPPED: no direct I/O in {}", relation.dir.path().display());
        return;
    };
    assert_eq!((files.caching(), twin.caching()), (Caching::Buffered, Caching::Direct));
    for (first, count) in [(0, 7), (3, 1), (5, 2)] {
        let (mut through, mut past) = (pages(count), pages(count));
        files.read_blocks(BlockNumber(first), &mut through).unwrap();
        twin.read_blocks(BlockNumber(first), &mut past).unwrap();
        assert_eq!(stamp_of(&past[0]), first);
        assert_eq!(through, past);
    }
    let beyond = twin.read_block(BlockNumber(7), &mut pages(1)[0]).unwrap_err();
    assert!(matches!(beyond.kind(), ErrorKind::PastEnd { blocks: 7 }), "{beyond}");
    assert!(std::ptr::eq(twin, twin.past_cache().unwrap()));
}

#[test]
fn a_fork_without_files_does_not_exist() {
    let relation = Relation::new(&[Some(8192)]);
    let storage = Storage::real();
    assert!(ForkFiles::open(&storage, &relation.base(), Fork::Vm).unwrap().is_none());
    let other = relation.dir.path().join("1638");
    assert!(ForkFiles::open(&storage, &other, Fork::Main).unwrap().is_none());
}

#[test]
fn an_empty_relation_exists_and_has_no_blocks() {
    let relation = Relation::new(&[Some(0)]);
    let files = relation.open(&Storage::real());
    assert_eq!((files.blocks(), files.damage()), (0, &[][..]));
    let error = files.read_block(BlockNumber(0), &mut [0; BLOCK_SIZE]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PastEnd { blocks: 0 }), "{error}");
}

#[test]
fn each_fork_reads_its_own_file() {
    let relation = Relation::new(&[Some(8192)]);
    fs::write(relation.dir.path().join("16384_vm"), [7; 2 * BLOCK_SIZE]).unwrap();
    let storage = Storage::real();
    let files = ForkFiles::open(&storage, &relation.base(), Fork::Vm).unwrap().unwrap();
    let mut page = [0; BLOCK_SIZE];
    files.read_block(BlockNumber(1), &mut page).unwrap();
    assert_eq!((files.blocks(), page[0], files.fork()), (2, 7, Fork::Vm));
}

#[test]
fn full_segments_end_with_or_without_an_empty_one_and_truncated_ones_are_no_damage() {
    for lens in [
        &[Some(SEGMENT_BYTES)][..],
        &[Some(SEGMENT_BYTES), Some(0)],
        &[Some(SEGMENT_BYTES), Some(0), Some(0)],
        &[Some(SEGMENT_BYTES), None, Some(0)],
    ] {
        let files = Relation::new(lens).open(&Storage::real());
        assert_eq!((files.blocks(), files.damage()), (SEGMENT_BLOCKS, &[][..]), "{lens:?}");
    }
}

#[test]
fn a_read_over_a_segment_edge_takes_one_call_for_each_side() {
    let relation = Relation::new(&[Some(SEGMENT_BYTES), Some(3 * 8192)]);
    let first = SEGMENT_BLOCKS - 2;
    (first..first + 5).for_each(|block| relation.stamp(block));
    let storage = Storage::real();
    let files = relation.open(&storage);
    assert_eq!(files.blocks(), SEGMENT_BLOCKS + 3);
    assert_eq!(files.contiguous(BlockNumber(first), 16), 2);
    let mut read = pages(5);
    files.read_blocks(BlockNumber(first), &mut read).unwrap();
    let stamps: Vec<u32> = read.iter().map(stamp_of).collect();
    assert_eq!(stamps, (first..first + 5).collect::<Vec<_>>());
    assert_eq!(storage.counters().snapshot().read_calls, 2);
    let expected = (segment_path(&relation.base(), 1), 8192);
    assert_eq!(files.locate(BlockNumber(SEGMENT_BLOCKS + 1)), expected);
}

#[test]
fn a_lost_segment_keeps_its_block_numbers_and_reading_them_is_an_error() {
    let relation = Relation::new(&[Some(SEGMENT_BYTES), None, Some(8192)]);
    relation.stamp(2 * SEGMENT_BLOCKS);
    let storage = Storage::real();
    let files = relation.open(&storage);
    assert_eq!(files.blocks(), 2 * SEGMENT_BLOCKS + 1);
    let [damage] = files.damage() else { panic!("{:?}", files.damage()) };
    assert_eq!(damage.lost_blocks(), SEGMENT_BLOCKS..2 * SEGMENT_BLOCKS);

    let mut page = [0; BLOCK_SIZE];
    let error = files.read_block(BlockNumber(SEGMENT_BLOCKS + 8), &mut page).unwrap_err();
    assert!(error.is_not_found());
    let message = error.to_string();
    let place = "16384.1: fork main, block 131080 (offset 65536): no such file";
    assert!(message.contains(place), "{message}");
    assert_eq!(storage.counters().snapshot().read_calls, 0);
    files.read_block(BlockNumber(2 * SEGMENT_BLOCKS), &mut page).unwrap();
    assert_eq!(stamp_of(&page), 2 * SEGMENT_BLOCKS);
}

#[test]
fn a_lost_first_segment_is_not_an_absent_fork() {
    let relation = Relation::new(&[None, Some(8192)]);
    let files = relation.open(&Storage::real());
    assert_eq!(files.blocks(), SEGMENT_BLOCKS + 1);
    assert_eq!(files.damage()[0].lost_blocks(), 0..SEGMENT_BLOCKS);
}

#[test]
fn an_empty_segment_before_one_with_data_was_cut_and_is_not_missing() {
    let relation = Relation::new(&[Some(SEGMENT_BYTES), Some(0), Some(8192)]);
    let files = relation.open(&Storage::real());
    let kinds: Vec<_> = files.damage().iter().map(|damage| damage.kind).collect();
    assert_eq!(kinds, [crate::FileDamageKind::ShortSegment]);
}

#[test]
fn a_short_segment_loses_exactly_the_blocks_behind_its_end() {
    let relation = Relation::new(&[Some(2 * 8192 + 4096), Some(8192)]);
    let storage = Storage::real();
    let files = relation.open(&storage);
    assert_eq!(files.damage()[0].lost_blocks(), 2..SEGMENT_BLOCKS);
    files.read_blocks(BlockNumber(0), &mut pages(2)).unwrap();
    let error = files.read_blocks(BlockNumber(0), &mut pages(4)).unwrap_err();
    assert_eq!((error.block(), error.offset()), (Some(BlockNumber(2)), Some(16_384)));
    assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 8192, got: 4096 }));
}

#[test]
fn an_incomplete_last_block_is_reported_and_not_counted() {
    let relation = Relation::new(&[Some(8192 + 100)]);
    let files = relation.open(&Storage::real());
    assert_eq!(files.blocks(), 1);
    assert_eq!((files.damage()[0].offset, files.damage()[0].bytes), (8192, 100));
}

#[test]
fn an_unreadable_block_and_a_file_cut_while_open_are_named_exactly() {
    let relation = Relation::new(&[Some(8 * 8192)]);
    let faults = Arc::new(FaultyFileSystem::default());
    let files = relation.open(&Storage::new(faults.clone()));
    faults.cut(&relation.base(), 3 * 8192 + 10);
    let error = files.read_blocks(BlockNumber(1), &mut pages(5)).unwrap_err();
    assert_eq!(error.block(), Some(BlockNumber(3)));
    assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 8192, got: 10 }));

    faults.heal();
    faults.make_unreadable(&relation.base(), 4 * 8192 + 1);
    faults.disturb([Disturbance::Short(3 * 8192)]);
    let error = files.read_blocks(BlockNumber(1), &mut pages(5)).unwrap_err();
    assert_eq!(error.block(), Some(BlockNumber(4)), "{error}");
    assert!(matches!(error.kind(), ErrorKind::Io(_)));
}

#[test]
fn a_segment_that_vanishes_before_it_is_first_read_is_an_error_with_its_block() {
    let relation = Relation::new(&[Some(8192)]);
    let faults = Arc::new(FaultyFileSystem::default());
    let files = relation.open(&Storage::new(faults.clone()));
    faults.vanish(&relation.base());
    let error = files.read_block(BlockNumber(0), &mut [0; BLOCK_SIZE]).unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.block(), Some(BlockNumber(0)));
}

#[test]
fn the_highest_segment_number_does_not_overflow_block_numbers() {
    let relation = Relation::new(&[Some(8192)]);
    let last = u32::MAX / SEGMENT_BLOCKS;
    let file = fs::File::create(segment_path(&relation.base(), last)).unwrap();
    file.set_len(SEGMENT_BYTES).unwrap();
    let files = relation.open(&Storage::real());
    assert_eq!(files.blocks(), u32::MAX);
    assert_eq!(files.damage().len(), last as usize);
    let mut page = [0; BLOCK_SIZE];
    files.read_block(BlockNumber(u32::MAX - 1), &mut page).unwrap();
    assert!(files.read_block(BlockNumber(u32::MAX), &mut page).is_err());
}

#[test]
fn one_listing_opens_many_relations_without_a_read_call() {
    let relation = Relation::new(&[Some(8192)]);
    fs::write(relation.dir.path().join("16385"), [0; 8192]).unwrap();
    let storage = Storage::real();
    let listing = SegmentListing::read(&storage, relation.dir.path()).unwrap();
    let open = |name: &str, fork| {
        ForkFiles::open_listed(&storage, &listing, OsStr::new(name), fork).unwrap()
    };
    assert!(open("16384", Fork::Main).is_some());
    assert!(open("16385", Fork::Main).is_some());
    assert!(open("16385", Fork::Fsm).is_none());
    assert_eq!(storage.counters().snapshot().read_calls, 0);
}

fn sizes() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        Just(None),
        Just(Some(0)),
        Just(Some(SEGMENT_BYTES)),
        (0..=SEGMENT_BYTES + 9000).prop_map(Some),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn blocks_are_readable_exactly_where_no_damage_claims_them(
        lens in prop::collection::vec(sizes(), 1..5),
        probes in prop::collection::vec(0..5 * SEGMENT_BLOCKS, 32),
    ) {
        let relation = Relation::new(&lens);
        let storage = Storage::real();
        let Some(files) = ForkFiles::open(&storage, &relation.base(), Fork::Main).unwrap()
        else {
            let empty = lens.iter().all(|len| len.unwrap_or(0) == 0);
            prop_assert!(lens[0].is_none() && empty);
            return Ok(());
        };
        for block in probes {
            let is_lost = files.damage().iter().any(|d| d.lost_blocks().contains(&block));
            let readable = files.read_block(BlockNumber(block), &mut [0; BLOCK_SIZE]).is_ok();
            prop_assert_eq!(readable, block < files.blocks() && !is_lost);
            prop_assert_eq!(readable, files.contiguous(BlockNumber(block), 1) == 1);
        }
    }
}
