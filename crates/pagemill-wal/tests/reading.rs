//! Where WAL ends and where it is damaged, told apart on WAL of which every byte is known.
//!
//! That real WAL is read as the server's tools read it is tested with the command line.

#[expect(dead_code, reason = "shared with the tests of writing")]
mod synthetic;

use std::fs;

use pagemill_format::Lsn;
use pagemill_format::wal::PAGE_BYTES;
use pagemill_wal::{Damage, EndOfWal, Error, Finding, MissingCause, WalDirectory, WalReader};
use synthetic::{PAGE, SEGMENT, Synthetic};

fn page_of(lsn: Lsn) -> Lsn {
    Lsn(lsn.0 - lsn.0 % PAGE)
}

/// WAL with records of these lengths behind the checkpoint, and where they begin and end.
fn wal_of(lengths: &[usize]) -> (Synthetic, Vec<(Lsn, Lsn)>) {
    // The checkpoint is the first record of its page.
    let wal = Synthetic::new(PAGE + 24);
    let mut writer = wal.writer();
    let places = lengths
        .iter()
        .map(|len| (writer.next_record_lsn(), writer.append(&Synthetic::record(*len)).unwrap()))
        .collect();
    writer.sync().unwrap();
    (wal, places)
}

fn damage(wal: &Synthetic) -> Damage {
    match wal.found().end {
        Err(Error::Damage(damage)) => *damage,
        other => panic!("damage expected: {other:?}"),
    }
}

fn end(wal: &Synthetic) -> EndOfWal {
    wal.found().end.unwrap()
}

#[test]
fn wal_ends_where_zeros_are() {
    let (wal, places) = wal_of(&[100, 20_000, 300]);
    let found = wal.found();
    assert_eq!(found.records.len(), 3);
    let end = found.end.unwrap();
    assert_eq!(end.lsn, places[2].1);
    assert_eq!(end.reason, Finding::Zeros);
    assert_eq!(end.reason.to_string(), "zeros where a record would begin");
}

#[test]
fn wal_ends_where_there_is_no_file_or_only_a_part_of_one() {
    let (wal, places) = wal_of(&[100, 2 * SEGMENT as usize, 300]);
    let second = wal.file(places[1].1);
    let cut =
        |len: u64| fs::OpenOptions::new().write(true).open(&second).unwrap().set_len(len).unwrap();
    cut(PAGE);
    let unfinished = end(&wal);
    assert_eq!(unfinished.lsn, places[1].0);
    let cut_short = MissingCause::CutShort(wal.wal.segment_of(places[1].1));
    assert_eq!(unfinished.reason, Finding::Unfinished { lsn: places[1].0, cause: cut_short });
    assert!(
        unfinished.to_string().contains("is not finished: segment 0000000200000000000000"),
        "{unfinished}"
    );
    fs::remove_file(&second).unwrap();
    assert!(end(&wal).to_string().contains("there is no segment"), "{}", end(&wal));
}

#[test]
fn wal_ends_at_a_page_of_an_older_use_of_the_file() {
    let (wal, places) = wal_of(&[100, 3 * PAGE_BYTES, 300]);
    let page = Lsn(page_of(places[1].0).0 + PAGE);
    let mut stale = Vec::new();
    wal.header(Lsn(page.0 - SEGMENT)).encode(&mut stale);
    wal.change(page, &stale);
    assert!(end(&wal).to_string().contains("was written for 0/20"), "{}", end(&wal));
    assert_eq!(end(&wal).lsn, places[1].0);
}

#[test]
fn a_record_that_is_damaged_in_the_midst_is_damage_with_its_file_and_offset() {
    let (wal, places) = wal_of(&[100, 200, 3 * PAGE_BYTES, 300]);
    wal.change(Lsn(places[1].0.0 + 50), &[0xEE]);
    let damage = damage(&wal);
    assert_eq!(damage.lsn, places[1].0);
    assert_eq!((damage.path, damage.offset), (wal.file(places[1].0), places[1].0.0 % SEGMENT));
    assert!(matches!(&damage.finding, Finding::Crc(words) if words.contains("CRC-32C")));
    assert_eq!(wal.found().records.len(), 1);
}

#[test]
fn the_last_record_cut_short_by_a_crash_is_the_end_and_no_damage() {
    let (wal, places) = wal_of(&[100, 200]);
    wal.change(Lsn(places[1].0.0 + 50), &[0xEE]);
    assert_eq!(end(&wal).lsn, places[1].0);
    assert!(matches!(end(&wal).reason, Finding::Crc(words) if words.contains("CRC-32C")));
}

#[test]
fn a_page_in_the_midst_that_was_overwritten_is_damage() {
    let (wal, places) = wal_of(&[100, 6 * PAGE_BYTES, 300]);
    let page = Lsn(page_of(places[1].0).0 + 2 * PAGE);
    wal.change(page, &[0xEE; 100]);
    assert_eq!(damage(&wal).lsn, page);
    let other = Synthetic::new(64);
    let mut foreign = Vec::new();
    let mut header = other.header(page);
    header.timeline = 9;
    header.encode(&mut foreign);
    wal.change(page, &foreign);
    assert_eq!(damage(&wal).finding, Finding::Timeline { found: 9, expected: 2 });
    assert!(damage(&wal).to_string().contains("timeline 9, on the way to 2"));
}

#[test]
fn zeros_in_the_midst_are_an_end_that_tells_what_is_behind_it() {
    let (wal, places) = wal_of(&[100, 9 * PAGE_BYTES, 300]);
    let page = Lsn(page_of(places[1].0).0 + 2 * PAGE);
    wal.change(page, &[0; 2 * PAGE_BYTES]);
    let cut = end(&wal);
    assert_eq!((cut.lsn, cut.page_behind), (places[1].0, Some(Lsn(page.0 + 2 * PAGE))));
    assert!(cut.to_string().ends_with("behind it belongs to this WAL"), "{cut}");
    let (wal, _) = wal_of(&[100, 200]);
    assert_eq!(end(&wal).page_behind, None);
}

#[test]
fn a_record_that_names_another_before_it_is_damage() {
    let (wal, places) = wal_of(&[100, 200, 3 * PAGE_BYTES]);
    wal.change(Lsn(places[1].0.0 + 8), &8_u64.to_le_bytes());
    assert_eq!(damage(&wal).finding, Finding::OtherBefore(Lsn(8)));
    assert!(damage(&wal).to_string().contains("the one before begins at 0/8"));
    wal.change(Lsn(places[1].0.0 + 8), &places[0].0.0.to_le_bytes());
    wal.change(Lsn(places[1].0.0 + 17), &[99]);
    assert_eq!(damage(&wal).finding, Finding::ResourceManager(99));
    assert!(damage(&wal).to_string().contains("resource manager 99"));
    wal.change(places[1].0, &7_u32.to_le_bytes());
    let finding = damage(&wal).finding;
    assert!(
        matches!(&finding, Finding::RecordHeader(words) if words.contains("a length of 7 bytes"))
    );
}

#[test]
fn wal_of_another_cluster_or_cut_otherwise_is_not_read() {
    let (wal, places) = wal_of(&[100, SEGMENT as usize, 300]);
    let next = wal.wal.segment_of(places[1].1).start();
    let change = |lsn: Lsn, bytes: &[u8]| wal.change(lsn, bytes);
    change(Lsn(next.0 + 24), &43_u64.to_le_bytes());
    assert_eq!(damage(&wal).finding, Finding::OtherCluster { found: 43, expected: 42 });
    assert!(damage(&wal).to_string().contains("system identifier 43, not 42"));
    change(Lsn(next.0 + 24), &42_u64.to_le_bytes());
    change(Lsn(next.0 + 32), &(2 * SEGMENT as u32).to_le_bytes());
    assert!(damage(&wal).to_string().contains("a segment of 2097152 bytes"));
}

#[test]
fn a_record_given_up_after_a_crash_is_passed_over() {
    let (wal, places) = wal_of(&[100, 3 * PAGE_BYTES]);
    // The server went on at the page behind, with a record that names the last whole one.
    let page = Lsn(page_of(places[1].0).0 + PAGE);
    let mut bytes = Vec::new();
    let mut header = wal.header(page);
    header.first_is_overwrite = true;
    header.encode(&mut bytes);
    let record = Synthetic::record(64);
    bytes.extend(record.encode(places[0].0, wal.wal.version).unwrap().to_vec());
    bytes.resize(PAGE_BYTES, 0);
    wal.change(page, &bytes);
    let found = wal.found();
    let begins: Vec<_> = found.records.iter().map(|(lsn, _, _)| *lsn).collect();
    assert_eq!(begins, [places[0].0, Lsn(page.0 + 24)]);
    assert_eq!(found.end.unwrap().lsn, Lsn(page.0 + 24 + 64));
}

#[test]
fn reading_begins_at_the_first_record_behind_any_place() {
    let (wal, places) = wal_of(&[100, 3 * PAGE_BYTES, 300, 5000, 64]);
    let begins: Vec<Lsn> = places.iter().map(|(begin, _)| *begin).collect();
    let from = |lsn: u64| {
        let reader = WalReader::from(&wal.storage, &wal.wal, Lsn(lsn)).unwrap();
        wal.found_with(reader, 0).records.iter().map(|(lsn, _, _)| *lsn).collect::<Vec<_>>()
    };
    assert_eq!(from(begins[0].0), begins);
    assert_eq!(from(begins[0].0 + 1), begins[1..]);
    assert_eq!(from(begins[1].0 + 1), begins[2..]);
    assert_eq!(from(page_of(begins[1]).0 + PAGE), begins[2..]);
    assert_eq!(from(begins[4].0), begins[4..]);
    assert_eq!(from(begins[4].0 + 1), []);
    let missing = WalReader::from(&wal.storage, &wal.wal, Lsn(SEGMENT)).unwrap_err();
    let cause = MissingCause::NoSegment(wal.wal.segment_of(Lsn(SEGMENT)));
    assert!(
        matches!(&missing, Error::Missing { cause: found, .. } if *found == cause),
        "{missing}"
    );
}

#[test]
fn of_a_segment_with_several_files_that_of_the_followed_timeline_is_read() {
    let (wal, places) = wal_of(&[100, 200]);
    let own = wal.file(places[0].0);
    let sibling = |timeline: &str| {
        own.with_file_name(format!(
            "{timeline}{}",
            &own.file_name().unwrap().to_str().unwrap()[8..]
        ))
    };
    for other in ["00000001", "00000003"] {
        fs::write(sibling(other), [0; 100]).unwrap();
    }
    assert_eq!(wal.found().records.len(), 2);
    // On a higher timeline, a segment that was filled before it began is still read.
    fs::remove_file(sibling("00000003")).unwrap();
    let later = WalDirectory { timeline: 3, ..wal.wal.clone() };
    let reader = WalReader::at(&wal.storage, &later, wal.checkpoint);
    assert_eq!(wal.found_with(reader, 1).records.len(), 2);
}

#[test]
fn a_segment_tells_whose_it_is() {
    let (wal, places) = wal_of(&[100, 200]);
    let file = wal.file(places[0].0);
    let (directory, segment) = WalDirectory::of_segment(&wal.storage, &file).unwrap();
    assert_eq!((directory, segment.number), (wal.wal.clone(), 3));
    let stranger = file.with_file_name("000000020000000000000004x");
    fs::copy(&file, &stranger).unwrap();
    assert!(WalDirectory::of_segment(&wal.storage, &stranger).is_err());
    fs::write(&stranger, [1; 9000]).unwrap();
    let refusal = WalDirectory::of_segment(&wal.storage, &stranger).unwrap_err().to_string();
    assert!(
        refusal.contains("WAL page header") || refusal.contains("magic number 0101"),
        "{refusal}"
    );
}
