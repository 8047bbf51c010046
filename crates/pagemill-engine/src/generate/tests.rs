//! Tests of `generate`: what is in the files is counted page by page, whatever the options.
//! What a server says of the files is asked in the tests of the command.

use std::collections::BTreeMap;
use std::fs;

use pagemill_format::checksum::{page_checksum, stored_checksum};
use pagemill_format::page::Page;
use pagemill_format::visibility_map::VisibilityPosition;
use proptest::prelude::*;

use super::*;

fn options(table: GeneratedTable, rows: u64) -> GenerateOptions {
    let (seed, fillfactor, checksums, jobs) = (1, 100, false, 2);
    GenerateOptions { table, rows, seed, fillfactor, checksums, jobs, writing: Default::default() }
}

/// The files made, by name.
fn made(options: &GenerateOptions) -> BTreeMap<String, Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let summary = generate(&Storage::real(), directory.path(), options).unwrap();
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, fs::read(entry.path()).unwrap());
    }
    let main = &files[options.table.name()];
    assert_eq!(main.len(), summary.blocks as usize * BLOCK_SIZE);
    files
}

/// Checks each page of the main fork, and gives how many tuples each has.
fn tuples(files: &BTreeMap<String, Vec<u8>>, options: &GenerateOptions) -> Vec<u64> {
    let (pages, rest) = files[options.table.name()].as_chunks::<BLOCK_SIZE>();
    assert!(rest.is_empty());
    let check = |(block, page): (u32, &[u8; BLOCK_SIZE])| {
        let expected = if options.checksums { page_checksum(page, BlockNumber(block)) } else { 0 };
        assert_eq!(stored_checksum(page), expected);
        let page = Page::new(page);
        page.check_header().unwrap();
        assert!(page.is_all_visible());
        let place = VisibilityPosition::of(BlockNumber(block));
        let map = files[&format!("{}_vm", options.table.name())].as_chunks::<BLOCK_SIZE>().0;
        assert!(place.bits(&map[place.block.0 as usize]).all_frozen());
        u64::from(page.count_normal().unwrap())
    };
    (0..).zip(pages).map(check).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_is_there_once_on_sound_pages(
        is_t in any::<bool>(), rows in 0_u64..30_000, fillfactor in 10_u8..=100, checksums in any::<bool>(),
        jobs in 1_usize..4, seed in any::<u64>(),
    ) {
        let table = if is_t { GeneratedTable::T } else { GeneratedTable::Bigtable };
        let options = GenerateOptions { table, rows, fillfactor, checksums, jobs, seed, writing: Default::default() };
        let files = made(&options);
        prop_assert_eq!(tuples(&files, &options).iter().sum::<u64>(), rows);
        let with_others = made(&GenerateOptions { jobs: 4 - jobs, ..options });
        prop_assert!(files == with_others);
    }
}

#[test]
fn pages_are_as_full_as_those_of_a_server() {
    // As PostgreSQL 14 to 18 place them: 40 bytes and a line pointer for three integers, and 12 rows of `t`.
    for (table, per_page) in [(GeneratedTable::Bigtable, 185), (GeneratedTable::T, 12)] {
        let options = options(table, 150_000);
        let counts = tuples(&made(&options), &options);
        let (last, full) = counts.split_last().unwrap();
        assert!(full.iter().all(|&count| count == per_page), "{table:?}");
        assert_eq!(*last, 150_000 - full.len() as u64 * per_page);
    }
}

#[test]
fn a_table_without_rows_is_an_empty_file() {
    let files = made(&options(GeneratedTable::T, 0));
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [("t".to_owned(), Vec::new())]);
}

#[test]
fn files_that_are_there_are_left_alone_and_a_failure_leaves_none_behind() {
    let directory = tempfile::tempdir().unwrap();
    let in_the_way = directory.path().join("t_fsm");
    fs::write(&in_the_way, "mine").unwrap();
    let options = options(GeneratedTable::T, 100);
    let error = generate(&Storage::real(), directory.path(), &options).unwrap_err();
    assert!(error.to_string().contains("t_fsm"), "{error}");
    assert_eq!(fs::read(&in_the_way).unwrap(), b"mine");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_table_larger_than_any_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(GeneratedTable::T, u64::MAX);
    let error = generate(&Storage::real(), directory.path(), &options).unwrap_err();
    assert!(error.to_string().contains("more blocks"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
