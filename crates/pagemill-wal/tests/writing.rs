//! What is written is read again, whatever lay in the files before, and however the writing was disturbed.
//!
//! That servers read it too is tested in `written_wal.rs`.

mod synthetic;

use std::fs;

use pagemill_io::simulated::Disturbance;
use proptest::prelude::*;

use pagemill_format::Lsn;
use pagemill_format::wal::{PAGE_BYTES, RecordBuilder};
use pagemill_wal::{Error, MissingCause, WalDirectory, WalWriter, WriterOptions};
use synthetic::{PAGE, SEGMENT, Synthetic};

/// Appends records of these lengths and reads them again; returns where each begins and ends.
fn write_and_read(wal: &Synthetic, lengths: &[usize], syncs: &[usize]) -> Vec<(Lsn, Lsn)> {
    let mut writer = wal.writer();
    let mut expected = Vec::new();
    for (n, len) in lengths.iter().enumerate() {
        let begin = writer.next_record_lsn();
        let end = writer.append(&Synthetic::record(*len)).unwrap();
        expected.push((begin, end));
        if syncs.contains(&n) {
            writer.sync().unwrap();
        }
    }
    writer.sync().unwrap();
    let found = wal.found();
    let places: Vec<_> = found.records.iter().map(|(begin, end, _)| (*begin, *end)).collect();
    assert_eq!(places, expected);
    for ((_, _, data), len) in found.records.iter().zip(lengths) {
        let header = if *len <= 281 { 26 } else { 29 };
        let written: Vec<u8> = (0..len - header).map(|at| (at / 7) as u8).collect();
        assert_eq!(*data, written);
    }
    assert_eq!(found.end.unwrap().lsn, writer.position());
    expected
}

#[test]
fn the_checkpoint_record_keeps_its_bytes() {
    for offset in [PAGE + 64, PAGE - 128, PAGE - 40, SEGMENT - 120, SEGMENT - 128] {
        let wal = Synthetic::new(offset);
        let start = wal.writer().start_lsn();
        let before = fs::read(wal.file(wal.checkpoint)).unwrap();
        write_and_read(&wal, &[100, 9000, 2_000_000, 64], &[0, 2]);
        let after = fs::read(wal.file(wal.checkpoint)).unwrap();
        let kept = ((start.0 - 3 * SEGMENT) as usize).min(after.len());
        assert!(before[..kept] == after[..kept], "{offset}");
    }
}

#[test]
fn segments_are_whole_files_of_their_own_names() {
    let wal = Synthetic::new(PAGE + 64);
    write_and_read(&wal, &[3 * SEGMENT as usize], &[]);
    let mut names: Vec<_> = fs::read_dir(&wal.wal.path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().len(), SEGMENT);
            entry.file_name().into_string().unwrap()
        })
        .collect();
    names.sort();
    let expected: Vec<_> = (3..=6).map(|n| format!("0000000200000000{n:08X}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn recycled_segments_are_written_over_and_end_wal() {
    let wal = Synthetic::new(PAGE + 64);
    for number in 4..8 {
        let mut stale = Vec::new();
        for page in (0..SEGMENT).step_by(PAGE_BYTES) {
            stale.resize(page as usize, 0xEE);
            wal.header(Lsn(page)).encode(&mut stale);
        }
        stale.resize(SEGMENT as usize, 0xEE);
        fs::write(wal.file(Lsn(number * SEGMENT)), stale).unwrap();
    }
    write_and_read(&wal, &[100, 2 * SEGMENT as usize, 500], &[]);
}

#[test]
fn what_a_load_left_that_was_not_finished_is_never_read_behind_a_later_one() {
    // The first record of each ends with a page, so that what lies behind is a page in its place.
    let wal = Synthetic::new(PAGE + 64);
    let start = wal.writer().start_lsn();
    let to_page_end = (2 * PAGE - (start.0 - 3 * SEGMENT)) as usize;
    let to_segment_end = (SEGMENT - (start.0 - 3 * SEGMENT) - (SEGMENT / PAGE - 2) * 24) as usize;
    for first in [to_page_end, to_segment_end] {
        write_and_read(&wal, &[first, 100, 200, 3 * SEGMENT as usize, 64], &[]);
        let places = write_and_read(&wal, &[first], &[]);
        assert_eq!(places[0].1.0 % PAGE, 0, "the last page is full");
    }
}

#[test]
fn a_switch_leaves_the_rest_of_the_segment_empty() {
    let wal = Synthetic::new(PAGE + 64);
    let mut writer = wal.writer();
    writer.append(&Synthetic::record(100)).unwrap();
    let switch = writer.append(&RecordBuilder::switch()).unwrap();
    assert_eq!(switch, Lsn(4 * SEGMENT));
    writer.append(&Synthetic::record(100)).unwrap();
    writer.sync().unwrap();
    let found = wal.found();
    let places: Vec<_> = found.records.iter().map(|(begin, end, _)| (*begin, *end)).collect();
    assert_eq!(places[1].1, Lsn(4 * SEGMENT));
    assert_eq!(places[2].0, Lsn(4 * SEGMENT + 40));
}

#[test]
fn a_segment_that_was_cut_gets_its_size_again() {
    let wal = Synthetic::new(PAGE + 64);
    let next = wal.file(Lsn(4 * SEGMENT));
    fs::write(&next, []).unwrap();
    write_and_read(&wal, &[SEGMENT as usize], &[]);
    assert_eq!(fs::metadata(&next).unwrap().len(), SEGMENT);
}

#[test]
fn disturbed_writes_are_finished() {
    let wal = Synthetic::new(PAGE + 64);
    let mut writer = wal.writer();
    wal.files.disturb([Disturbance::Short(3), Disturbance::Interrupted, Disturbance::Short(5000)]);
    writer.append(&Synthetic::record(100_000)).unwrap();
    writer.sync().unwrap();
    assert_eq!(wal.found().records.len(), 1);
}

#[test]
fn a_full_disk_and_a_failed_sync_are_errors_that_name_the_file() {
    let wal = Synthetic::new(PAGE + 64);
    let mut writer = wal.writer();
    writer.append(&Synthetic::record(100)).unwrap();
    wal.files.disturb([Disturbance::NoSpace]);
    let error = writer.sync().unwrap_err().to_string();
    assert!(
        error.contains("000000020000000000000003: offset") && error.contains("no space"),
        "{error}"
    );
    let wal = Synthetic::new(PAGE + 64);
    let mut writer = wal.writer();
    writer.append(&Synthetic::record(100)).unwrap();
    wal.files.fail_syncs(1);
    assert!(writer.sync().is_err());
    assert!(writer.sync().is_err(), "a sync after a failed one fails");
}

#[test]
fn only_a_shutdown_checkpoint_of_the_timeline_can_be_followed() {
    let wal = Synthetic::new(PAGE + 64);
    let begin = |wal: &Synthetic, directory: &WalDirectory, lsn| {
        WalWriter::begin(&wal.storage, directory, lsn, WriterOptions::default()).unwrap_err()
    };
    let missing = begin(&wal, &wal.wal, Lsn(wal.checkpoint.0 + 2 * PAGE));
    assert!(matches!(missing, Error::Missing { cause: MissingCause::Ended(_), .. }), "{missing}");
    let mut writer = wal.writer();
    let other = writer.next_record_lsn();
    writer.append(&Synthetic::record(100)).unwrap();
    writer.sync().unwrap();
    let refused = begin(&wal, &wal.wal, other).to_string();
    assert!(refused.contains("is no shutdown checkpoint"), "{refused}");
    let later = WalDirectory { timeline: 3, ..wal.wal.clone() };
    let refused = begin(&wal, &later, wal.checkpoint).to_string();
    assert!(refused.contains("timeline 2, not 3"), "{refused}");
    wal.change(Lsn(wal.checkpoint.0 + 30), &[0xEE]);
    assert!(matches!(begin(&wal, &wal.wal, wal.checkpoint), Error::Missing { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn records_of_any_length_synced_at_any_time_are_read_again(
        offset in 0_u64..(SEGMENT - 200) / 8,
        lengths in prop::collection::vec(
            prop_oneof![26_usize..300, 8000_usize..8300, 26_usize..100_000], 1..30,
        ),
        syncs in prop::collection::vec(0_usize..30, 0..4),
    ) {
        let offset = offset * 8;
        // A record does not begin in the header of a page.
        let header = if offset < PAGE { 40 } else { 24 };
        let wal = Synthetic::new(if offset % PAGE < header { offset + 40 } else { offset });
        write_and_read(&wal, &lengths, &syncs);
    }
}
