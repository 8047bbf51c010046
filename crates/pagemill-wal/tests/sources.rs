//! WAL from several places and along several timelines, and its end as a server finds it, on WAL of which every
//! byte is known.
//!
//! That the end is that of real servers is tested with the command line.

#[expect(dead_code, reason = "shared with the tests of reading and writing")]
mod synthetic;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::Lsn;
use pagemill_format::backup::TimelineHistory;
use pagemill_format::wal::{PAGE_BYTES, RecordBuilder, ResourceManager, SegmentName};
use pagemill_io::{ReadSettings, Storage};
use pagemill_wal::{EndOfWal, Error, Finding, RecordFetch, WalReader, WalSource};
use synthetic::{PAGE, ReadRecords, SEGMENT, Synthetic};

/// WAL with records of these lengths behind the checkpoint, and where they begin and end.
fn wal_of(lengths: &[usize]) -> (Synthetic, Vec<(Lsn, Lsn)>) {
    let wal = Synthetic::new(PAGE + 24);
    let mut writer = wal.writer();
    let places = lengths
        .iter()
        .map(|len| (writer.next_record_lsn(), writer.append(&Synthetic::record(*len)).unwrap()))
        .collect();
    writer.sync().unwrap();
    (wal, places)
}

fn history(text: &str) -> TimelineHistory {
    TimelineHistory::parse(2, text.as_bytes()).unwrap()
}

fn source(wal: &Synthetic, archives: &[&Path]) -> WalSource {
    let archives = archives.iter().map(PathBuf::from).collect();
    WalSource::along(&wal.wal, archives, TimelineHistory::without_parents(2))
}

fn found(wal: &Synthetic, source: &WalSource) -> ReadRecords {
    wal.found_with(WalReader::along(&wal.storage, source, wal.checkpoint), 1)
}

fn end(wal: &Synthetic) -> EndOfWal {
    found(wal, &source(wal, &[])).end.unwrap()
}

fn packed(suffix: &str, bytes: &[u8]) -> Vec<u8> {
    match suffix {
        "gz" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zst" => zstd::encode_all(bytes, 1).unwrap(),
        "lz4" => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => bytes.to_vec(),
    }
}

/// Moves the segments of `pg_wal` to an archive, renamed and packed.
fn archive(wal: &Synthetic, name: impl Fn(&str) -> String, suffix: &str) -> tempfile::TempDir {
    let archive = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&wal.wal.path).unwrap() {
        let path = entry.unwrap().path();
        let to = archive.path().join(name(path.file_name().unwrap().to_str().unwrap()));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, packed(suffix, &fs::read(&path).unwrap())).unwrap();
        fs::remove_file(path).unwrap();
    }
    archive
}

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn archives_are_read_under_every_archivers_names_and_compressions() {
    let lengths = [100, 2 * SEGMENT as usize, 300];
    type Rename = fn(&str) -> String;
    let names: [(&str, Rename); 8] = [
        ("", |name| name.into()),
        ("gz", |name| format!("{name}.gz")),
        ("zst", |name| format!("{name}.zst")),
        ("lz4", |name| format!("{name}.lz4")),
        ("bz2", |name| format!("{name}.bz2")),
        ("zst", |name| format!("{}/{name}-{SHA}.zst", &name[..16])),
        ("", |name| format!("{}/{name}-{SHA}", &name[..16])),
        // Barman changes no name.
        ("gz", |name| format!("{}/{name}", &name[..16])),
    ];
    for (suffix, name) in names {
        let (wal, places) = wal_of(&lengths);
        let archive = archive(&wal, name, suffix);
        let found = found(&wal, &source(&wal, &[archive.path()]));
        let begins: Vec<_> = found.records.iter().map(|(lsn, _, _)| *lsn).collect();
        let expected: Vec<_> = places.iter().map(|(begin, _)| *begin).collect();
        assert_eq!(begins, expected, "{suffix}");
        assert_eq!(found.end.unwrap().lsn, places[2].1, "{suffix}");
    }
}

#[test]
fn what_cannot_be_unpacked_is_refused_by_name() {
    let heads: [(&str, &[u8]); 6] = [
        ("xz", &[0xFD, b'7', b'z', b'X', b'Z', 0, 1]),
        ("snappy", b"\xFF\x06\0\0sNaPpY"),
        ("brotli", b"whatever it is"),
        ("encrypted", b"Salted__12345678"),
        ("neither WAL nor compressed", b"whatever it is"),
        ("cannot be decompressed", &[0x28, 0xB5, 0x2F, 0xFD, 0xFF, 0xFF]),
    ];
    for (what, head) in heads {
        let (wal, places) = wal_of(&[100]);
        let suffix = if what == "brotli" { ".br" } else { "" };
        let archive = tempfile::tempdir().unwrap();
        let name = wal.wal.segment_of(places[0].0).to_string() + suffix;
        fs::write(archive.path().join(name), head).unwrap();
        let error = found(&wal, &source(&wal, &[archive.path()])).end.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn an_archived_segment_that_is_short_is_refused_as_a_server_refuses_it() {
    let (wal, places) = wal_of(&[100]);
    let archive = tempfile::tempdir().unwrap();
    let name = wal.wal.segment_of(places[0].0).to_string();
    let bytes = fs::read(wal.file(places[0].0)).unwrap();
    fs::write(archive.path().join(&name), &bytes[..bytes.len() / 2]).unwrap();
    let error = found(&wal, &source(&wal, &[archive.path()])).end.unwrap_err().to_string();
    assert!(error.contains("it was not archived whole"), "{error}");
}

#[test]
fn whatever_fails_its_check_ends_wal_as_it_does_for_a_server() {
    type Breakage = fn(&Synthetic, Lsn);
    let breakages: [(&str, Breakage); 6] = [
        ("CRC-32C", |wal, lsn| wal.change(Lsn(lsn.0 + 30), &[0xEE])),
        ("one before begins", |wal, lsn| wal.change(Lsn(lsn.0 + 8), &8_u64.to_le_bytes())),
        ("resource manager 99", |wal, lsn| wal.change(Lsn(lsn.0 + 17), &[99])),
        ("a length of 7 bytes", |wal, lsn| wal.change(lsn, &7_u32.to_le_bytes())),
        ("zeros where a record", |wal, lsn| wal.change(lsn, &[0; 4])),
        ("magic number", |wal, lsn| wal.change(Lsn(lsn.0 - lsn.0 % PAGE + PAGE), &[0xEE, 0xEE])),
    ];
    for (reason, breakage) in breakages {
        let (wal, places) = wal_of(&[100, 200, 3 * PAGE_BYTES, 300]);
        breakage(&wal, places[2].0);
        let end = end(&wal);
        assert_eq!(end.lsn, places[1].1, "{end}");
        assert!(end.reason.to_string().contains(reason), "{end}");
        assert_eq!((end.segment_behind, end.missing), (None, Vec::new()));
    }
}

#[test]
fn a_segment_that_is_whole_behind_the_end_is_told() {
    let size = SEGMENT as usize;
    let (wal, places) = wal_of(&[100, 200, size, 300, size, 300]);
    wal.change(Lsn(places[1].0.0 + 50), &[0xEE]);
    let damaged = end(&wal);
    assert_eq!(damaged.lsn, places[0].1);
    let behind = wal.wal.segment_of(Lsn(places[1].0.0 + SEGMENT));
    assert_eq!(damaged.segment_behind, Some(behind));
    // The last segment was never filled, so what follows the damage there is no whole one.
    let (wal, places) = wal_of(&[100, 200, size, 300]);
    wal.change(Lsn(places[1].0.0 + 50), &[0xEE]);
    let last = wal.wal.segment_of(places[3].1);
    assert_eq!(last.number, wal.wal.segment_of(places[1].0).number + 1);
    assert_eq!(end(&wal).segment_behind, None);
}

#[test]
fn segments_that_are_missing_before_others_are_named() {
    let size = SEGMENT as usize;
    let (wal, places) = wal_of(&[100, 4 * size, 300]);
    let first = wal.wal.segment_of(places[0].0);
    let numbers = [first.number + 1, first.number + 2];
    for number in numbers {
        fs::remove_file(wal.wal.file_of(SegmentName { number, ..first })).unwrap();
    }
    let end = end(&wal);
    assert_eq!(end.lsn, places[0].1);
    assert_eq!(end.missing.iter().map(|segment| segment.number).collect::<Vec<_>>(), numbers);
    // Without anything behind it, a segment that is not there is the end, and none that is missing.
    for number in first.number + 3..first.number + 6 {
        let _ = fs::remove_file(wal.wal.file_of(SegmentName { number, ..first }));
    }
    assert_eq!(self::end(&wal).missing, []);
}

#[test]
fn recycled_segments_ahead_are_neither_whole_nor_missing_ones() {
    let (wal, places) = wal_of(&[100, 200]);
    let segment = wal.wal.segment_of(places[1].1);
    let old = fs::read(wal.file(places[1].1)).unwrap();
    for number in segment.number + 1..segment.number + 4 {
        fs::write(wal.wal.file_of(SegmentName { number, ..segment }), &old).unwrap();
    }
    let end = end(&wal);
    assert_eq!((end.lsn, end.segment_behind, end.missing), (places[1].1, None, Vec::new()));
}

#[test]
fn a_record_that_was_given_up_has_to_be_named_by_the_next() {
    let (wal, places) = wal_of(&[100, 3 * PAGE_BYTES]);
    let page = Lsn(places[1].0.0 - places[1].0.0 % PAGE + PAGE);
    let overwrite = |named: Lsn| {
        let mut data = named.0.to_le_bytes().to_vec();
        data.extend_from_slice(&[0; 8]);
        let info = ResourceManager::XLOG_OVERWRITE_CONTRECORD;
        let record =
            RecordBuilder::new(ResourceManager::XLOG, info, Default::default()).main_data(data);
        let mut bytes = Vec::new();
        let mut header = wal.header(page);
        header.first_is_overwrite = true;
        header.encode(&mut bytes);
        bytes.extend(record.encode(places[0].0, wal.wal.version).unwrap().to_vec());
        bytes.resize(PAGE_BYTES, 0);
        wal.change(page, &bytes);
    };
    overwrite(places[1].0);
    let sound = found(&wal, &source(&wal, &[]));
    let begins: Vec<_> = sound.records.iter().map(|(lsn, _, _)| *lsn).collect();
    assert_eq!(begins, [places[0].0, Lsn(page.0 + 24)]);
    overwrite(places[0].0);
    let error = found(&wal, &source(&wal, &[])).end.unwrap_err();
    assert!(error.to_string().contains("where none was met"), "{error}");
}

#[test]
fn of_a_segment_the_newest_timelines_file_is_read_but_not_before_it_began() {
    let size = SEGMENT as usize;
    let (wal, places) = wal_of(&[100, size, 300]);
    let first = wal.wal.segment_of(places[0].0);
    let of =
        |number: u64, timeline: u32| wal.wal.file_of(SegmentName { number, timeline, ..first });
    // The parent wrote the first segment and went on behind the switch; its later segments are no part of the way.
    fs::copy(of(first.number, 2), of(first.number, 1)).unwrap();
    fs::write(of(first.number + 1, 1), vec![0; size]).unwrap();
    let switch = Lsn((first.number + 1) * SEGMENT);
    let along = |text: &str| WalSource::along(&wal.wal, Vec::new(), history(text));
    fs::write(of(first.number, 2), vec![0xEE; size]).unwrap();
    // A file of the child for a segment before it began is a stray one.
    let text = format!("1\t0/{:X}\tx\n", switch.0);
    let read = found(&wal, &along(&text));
    assert_eq!(read.records.len(), 3, "{:?}", read.end);
}

#[test]
fn a_parents_file_is_left_at_the_switch() {
    let (wal, places) = wal_of(&[100, 200, 300]);
    let first = wal.wal.segment_of(places[0].0);
    let parent = wal.wal.file_of(SegmentName { timeline: 1, ..first });
    fs::rename(wal.file(places[0].0), parent).unwrap();
    let text = format!("1\t0/{:X}\tx\n", places[1].1.0);
    let source = WalSource::along(&wal.wal, Vec::new(), history(&text));
    let end = found(&wal, &source).end.unwrap();
    assert_eq!(end.lsn, places[1].1);
    assert_eq!(end.reason, Finding::TimelineLeft(places[1].1));
    assert!(end.to_string().contains("timeline was left at"), "{end}");
}

#[test]
fn a_partial_segment_is_read_where_nothing_follows_and_is_told() {
    let size = SEGMENT as usize;
    let (wal, places) = wal_of(&[100, 2 * size, 300]);
    let last = wal.file(places[2].1);
    let partial =
        last.with_file_name(format!("{}.partial", last.file_name().unwrap().to_str().unwrap()));
    fs::rename(&last, &partial).unwrap();
    let source = source(&wal, &[]);
    let mut reader = WalReader::along(&wal.storage, &source, wal.checkpoint);
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(reader.end().unwrap().lsn, places[2].1);
    assert_eq!(reader.partial_files(), [partial]);
    // One in the midst is not: the whole one is missing.
    let middle = wal.file(Lsn(places[1].0.0 + SEGMENT));
    let name = format!("{}.partial", middle.file_name().unwrap().to_str().unwrap());
    fs::rename(&middle, middle.with_file_name(name)).unwrap();
    fs::rename(reader.partial_files()[0].clone(), &last).unwrap();
    assert_eq!(end(&wal).missing.len(), 1);
}

#[test]
fn an_archive_comes_before_pg_wal_and_histories_are_found_in_all_places() {
    let (wal, places) = wal_of(&[100, 200]);
    let archive = tempfile::tempdir().unwrap();
    let file = wal.file(places[0].0);
    fs::copy(&file, archive.path().join(file.file_name().unwrap())).unwrap();
    wal.change(Lsn(places[1].0.0 + 50), &[0xEE]);
    assert_eq!(end(&wal).lsn, places[0].1);
    let both = source(&wal, &[archive.path()]);
    assert_eq!(found(&wal, &both).end.unwrap().lsn, places[1].1);
    let archives = [archive.path().to_path_buf()];
    fs::write(archive.path().join("00000003.history.gz"), packed("gz", b"2\t0/5000000\tx\n"))
        .unwrap();
    fs::write(wal.wal.path.join("00000004.history"), "2\t0/5000000\tx\n3\t0/6000000\tx\n").unwrap();
    let newest =
        |from| WalSource::newest_timeline(&wal.storage, &wal.wal, &archives, from).unwrap();
    assert_eq!((newest(2), newest(1)), (4, 1));
    let read = |of| WalSource::read_history(&wal.storage, &wal.wal, &archives, of);
    assert_eq!(read(3).unwrap().timeline_at(Lsn(0x500_0000)), 3);
    assert_eq!(read(9).unwrap().parts().len(), 1);
    fs::write(wal.wal.path.join("00000005.history"), "x\n").unwrap();
    assert!(matches!(read(5), Err(Error::Refused { .. })));
}

/// Mapped or read, whole on a page or across the ends of pages and segments: a record is fetched as it was read, again and
/// again, and a place where none begins is refused.
#[test]
fn records_are_fetched_by_their_place_from_segments_that_are_mapped_and_from_others() {
    let page = PAGE as usize;
    let lengths: Vec<usize> =
        (0..400).map(|n| [40, 700, 3 * page, 26, page - 300][n % 5]).collect();
    let (wal, places) = wal_of(&lengths);
    let read = found(&wal, &source(&wal, &[])).records;
    assert_eq!(read.len(), places.len());
    assert!(read[0].0.0 / SEGMENT < read[399].0.0 / SEGMENT, "more than one segment");
    for may_map in [true, false] {
        let settings = ReadSettings { may_map, ..ReadSettings::default() };
        let storage = Storage::with_settings(Arc::new(wal.files.clone()), settings);
        let fetch = RecordFetch::new(&storage, &source(&wal, &[]), wal.checkpoint).unwrap();
        let mut buffer = Vec::new();
        for (lsn, end, data) in read.iter().rev().chain(&read) {
            fetch.prefetch(*lsn);
            let found = fetch.fetch(*lsn, &mut buffer).unwrap();
            assert_eq!((found.lsn, found.end, found.record.main_data), (*lsn, *end, &data[..]));
        }
        let within = Lsn(read[1].0.0 + 8);
        fetch.prefetch(Lsn(1000 * SEGMENT));
        assert!(matches!(fetch.fetch(within, &mut buffer), Err(Error::Damage(_))), "{may_map}");
        assert!(fetch.fetch(Lsn(1000 * SEGMENT), &mut buffer).is_err());
    }
}

/// A byte that changed since the WAL was read is found.
#[test]
fn a_record_that_changed_since_is_not_handed_out() {
    let (wal, places) = wal_of(&[100, 100, 100]);
    let fetch = RecordFetch::new(&wal.storage, &source(&wal, &[]), wal.checkpoint).unwrap();
    let mut buffer = Vec::new();
    assert!(fetch.fetch(places[1].0, &mut buffer).is_ok());
    wal.change(Lsn(places[1].0.0 + 60), &[0xFF]);
    let error = fetch.fetch(places[1].0, &mut buffer).unwrap_err().to_string();
    assert!(error.contains("CRC"), "{error}");
    assert!(fetch.fetch(places[2].0, &mut buffer).is_ok());
}
