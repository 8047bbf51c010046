//! What is built parses back to the same; what no server wrote is refused, and nothing panics.
//!
//! Whether the bytes are those of PostgreSQL is asked of servers, in the tests of `pagemill-wal`.

use proptest::prelude::*;

use super::*;
use crate::control::CHECKPOINT_BYTES;
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, TransactionId};

const LOCATOR: RelFileLocator =
    RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: Oid(16384) };

/// A page with tuples behind a hole of zeros, or (`lower` 0) one of another layout.
fn page(lower: usize, upper: usize, seed: u8) -> Box<BlockBytes> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    let filler = |at: usize| (at / 3) as u8 ^ seed;
    page.iter_mut().enumerate().for_each(|(at, byte)| *byte = filler(at));
    page[12..14].copy_from_slice(&(lower as u16).to_le_bytes());
    page[14..16].copy_from_slice(&(upper as u16).to_le_bytes());
    if lower < upper {
        page[lower..upper].fill(0);
    }
    page
}

fn parsed(bytes: &[u8], version: PgVersion) -> Record<'_> {
    Record::parse(bytes, version).unwrap()
}

fn methods(version: PgVersion) -> impl Iterator<Item = ImageCompression> {
    use ImageCompression::{Lz4, Off, Pglz, Zstd};
    [Off, Pglz, Lz4, Zstd].into_iter().filter(move |method| method.is_known_to(version))
}

#[test]
fn an_image_comes_back_whatever_its_hole_its_method_and_the_version() {
    let pages = [page(100, 7000, 1), page(0, 0, 2), page(8191, 8192, 3), page(24, 8192, 4)];
    for version in PgVersion::ALL {
        for method in methods(version) {
            let mut compressor = ImageCompressor::new(method);
            for page in &pages {
                let image = compressor.image(page, Fork::Main);
                let record = RecordBuilder::new(ResourceManager::XLOG, 0xB0, TransactionId(7))
                    .image(LOCATOR, Fork::Main, BlockNumber(9), image);
                let bytes = record.encode(Lsn(64), version).unwrap().to_vec();
                let record = parsed(&bytes, version);
                let image = record.blocks[0].image.unwrap();
                assert!(image.apply, "{version} {method:?}");
                let mut restored = [1; BLOCK_SIZE];
                image.restore(&mut restored, &mut Vec::new()).unwrap();
                assert!(restored == **page, "{version} {method:?}");
            }
        }
    }
}

#[test]
fn what_lies_in_a_hole_is_left_out_only_if_it_is_zero_and_the_page_has_that_layout() {
    let mut page = page(100, 7000, 1);
    let stored = |page: &BlockBytes, fork| PageImage::new(page, fork).stored_len();
    assert_eq!(stored(&page, Fork::Main), BLOCK_SIZE - 6900);
    for fork in [Fork::Fsm, Fork::Vm] {
        assert_eq!(stored(&page, fork), BLOCK_SIZE);
    }
    page[5000] = 1;
    assert_eq!(stored(&page, Fork::Main), BLOCK_SIZE);
    assert_eq!(stored(&[0; BLOCK_SIZE], Fork::Main), BLOCK_SIZE);
}

#[test]
fn fourteen_refuses_the_methods_it_does_not_know() {
    let page = page(100, 7000, 1);
    for method in [ImageCompression::Lz4, ImageCompression::Zstd] {
        let image = ImageCompressor::new(method).image(&page, Fork::Main);
        let record = RecordBuilder::new(ResourceManager::XLOG, 0xB0, TransactionId(7)).image(
            LOCATOR,
            Fork::Main,
            BlockNumber(9),
            image,
        );
        let refusal = record.encode(Lsn(64), PgVersion::V14).unwrap_err().to_string();
        assert!(refusal.contains("which 14 does not know"), "{refusal}");
        assert!(record.encode(Lsn(64), PgVersion::V15).is_ok());
    }
}

#[test]
fn thirty_three_blocks_fit_into_a_record_and_the_relation_is_told_once() {
    let record = |blocks: u32| {
        let empty = RecordBuilder::new(ResourceManager::XLOG, 0xB0, TransactionId(7));
        (0..blocks).fold(empty, |record, block| {
            record.new_block(LOCATOR, Fork::Main, BlockNumber(block), b"data")
        })
    };
    let bytes = record(33).encode(Lsn(64), PgVersion::V15).unwrap().to_vec();
    assert_eq!(bytes.len(), RECORD_HEADER_BYTES + 33 * (8 + 4) + RelFileLocator::BYTES);
    let parsed = parsed(&bytes, PgVersion::V15);
    assert!(parsed.blocks.iter().all(|block| block.locator == LOCATOR && block.will_init));
    assert_eq!(parsed.block(32).unwrap().block, BlockNumber(32));
    assert!(record(34).encode(Lsn(64), PgVersion::V15).is_err());
}

#[test]
fn main_data_of_any_length_comes_back() {
    for len in [0, 1, 255, 256, 70_000] {
        let data = vec![7; len];
        let record = RecordBuilder::new(ResourceManager::HEAP, 0x10, TransactionId(7));
        let bytes =
            record.main_data(data.clone()).encode(Lsn(64), PgVersion::V18).unwrap().to_vec();
        assert_eq!(parsed(&bytes, PgVersion::V18).main_data, data);
    }
}

#[test]
fn origin_and_toplevel_transaction_are_read() {
    let record =
        RecordBuilder::new(ResourceManager::HEAP, 0, TransactionId(7)).main_data(vec![0; 8]);
    let bytes = record.encode(Lsn(64), PgVersion::V15).unwrap().to_vec();
    // The eight bytes of main data and their header make room for the two.
    let mut body = vec![253, 9, 0, 252, 1, 2, 0, 0];
    body.extend_from_slice(&[255, 0]);
    let mut bytes = bytes[..RECORD_HEADER_BYTES].to_vec();
    bytes.extend_from_slice(&body);
    bytes[..4].copy_from_slice(&(34_u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[24..]), &bytes[..20]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    let record = parsed(&bytes, PgVersion::V15);
    assert_eq!((record.origin, record.toplevel_xid), (Some(9), Some(TransactionId(513))));
}

#[test]
fn a_changed_byte_anywhere_is_found() {
    let page = page(100, 7000, 1);
    let record = RecordBuilder::new(ResourceManager::XLOG, 0xB0, TransactionId(7))
        .image(LOCATOR, Fork::Main, BlockNumber(9), PageImage::new(&page, Fork::Main))
        .main_data(vec![1, 2, 3]);
    let bytes = record.encode(Lsn(64), PgVersion::V16).unwrap().to_vec();
    for at in (0..bytes.len()).filter(|at| *at < 60 || at % 97 == 0) {
        // The two bytes behind the resource manager are covered by the CRC and say nothing.
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Record::parse(&damaged, PgVersion::V16).is_err(), "byte {at}");
    }
}

#[test]
fn a_page_header_comes_back_short_and_long() {
    let long = LongHeader { system_identifier: 7, segment_size: 1 << 24, page_size: 8192 };
    for long in [None, Some(long)] {
        let header = PageHeader {
            magic: page_magic(PgVersion::V17),
            first_is_continuation: long.is_none(),
            images_removable: true,
            first_is_overwrite: long.is_some(),
            timeline: 3,
            address: Lsn(0x0123_4567_89AB_E000),
            remaining: 99,
            long,
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        assert_eq!(bytes.len(), header.len());
        assert_eq!(PageHeader::parse(&bytes).unwrap(), header);
        assert!(PageHeader::parse(&bytes[..header.len() - 1]).is_err());
    }
}

#[test]
fn segments_have_the_names_the_server_gives_them() {
    let name = |lsn, size| SegmentName::of(Lsn(lsn), 1, size).to_string();
    assert_eq!(name(0x0200_0028, 16 << 20), "000000010000000000000002");
    assert_eq!(name(0x1_FF00_0000, 16 << 20), "0000000100000001000000FF");
    assert_eq!(name(0x1_FFF0_0000, 1 << 20), "000000010000000100000FFF");
    assert_eq!(name(0x2_4000_0000, 1 << 30), "000000010000000200000001");
    assert_eq!(SegmentName::parse("000000010000000100000100", 16 << 20), None);
    assert_eq!(SegmentName::parse("00000001.history", 16 << 20), None);
    assert!(!is_segment_size(3 << 20) && !is_segment_size(1 << 19) && is_segment_size(1 << 30));
}

#[test]
fn magic_numbers_and_versions_belong_together() {
    for version in PgVersion::ALL {
        assert_eq!(version_of_magic(page_magic(version)), Some(version));
    }
    assert_eq!(version_of_magic(0xD106), None);
}

#[test]
fn records_are_called_as_the_version_calls_them() {
    let name = |manager: &str, info, version| {
        ResourceManager::named(manager).unwrap().record_name(info, version)
    };
    assert_eq!(name("heap2", 0x10, PgVersion::V16), Some("PRUNE"));
    assert_eq!(name("heap2", 0x10, PgVersion::V17), Some("PRUNE_ON_ACCESS"));
    assert_eq!(name("heap2", 0xD0, PgVersion::V17), Some("MULTI_INSERT+INIT"));
    assert_eq!(name("heap", 0x81, PgVersion::V14), Some("INSERT+INIT"));
    assert_eq!(name("heap", 0x90, PgVersion::V14), None);
    assert_eq!(name("database", 0x10, PgVersion::V14), Some("DROP"));
    assert_eq!(name("database", 0x10, PgVersion::V15), Some("CREATE_WAL_LOG"));
    assert_eq!(name("xlog", 0xE0, PgVersion::V16), None);
    assert_eq!(name("xlog", 0xE0, PgVersion::V17), Some("CHECKPOINT_REDO"));
    assert_eq!(name("transaction", 0x80, PgVersion::V17), Some("COMMIT"));
    assert_eq!(name("custom128", 0, PgVersion::V15), None);
    assert!(!ResourceManager(22).is_valid() && ResourceManager(128).is_valid());
}

fn commit(version: PgVersion) -> Commit {
    let object = if version >= PgVersion::V18 { 1 << 40 } else { 16384 };
    let statistics = DroppedStatistics { kind: 2, database: Oid(5), object };
    Commit {
        time: -5,
        database: Some((Oid(5), Oid(1663))),
        subtransactions: vec![TransactionId(8), TransactionId(9)],
        dropped_files: vec![LOCATOR],
        dropped_statistics: if version >= PgVersion::V15 { vec![statistics] } else { vec![] },
        invalidations: vec![
            Invalidation::CatalogCache { cache: 7, database: Oid(5), hash: 0xDEAD_BEEF },
            Invalidation::Catalog { database: Oid(5), catalog: Oid(1259) },
            Invalidation::Relation { database: Oid(5), relation: Oid(16384) },
            Invalidation::Storage { locator: LOCATOR },
            Invalidation::RelationMap { database: Oid(0) },
            Invalidation::Snapshot { database: Oid(5), relation: Oid(1249) },
        ],
        prepared: Some((TransactionId(6), b"gid".to_vec())),
        origin: Some((Lsn(99), 77)),
        had_exclusive_locks: true,
        update_relcache_file: true,
        force_sync: true,
    }
}

#[test]
fn a_commit_with_everything_and_one_with_nothing_come_back() {
    for version in PgVersion::ALL {
        for commit in [commit(version), Commit { time: 1, ..Commit::default() }] {
            let bytes =
                commit.record(TransactionId(7), version).encode(Lsn(8), version).unwrap().to_vec();
            let record = parsed(&bytes, version);
            let back = Commit::parse(record.main_data, record.header.info, version).unwrap();
            assert_eq!(back, commit, "{version}");
        }
    }
}

#[test]
fn a_count_that_the_record_cannot_hold_takes_no_memory() {
    let mut data = [0; 16];
    data[8..12].copy_from_slice(&4_u32.to_le_bytes());
    data[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = Commit::parse(&data, 0x80, PgVersion::V15).unwrap_err().to_string();
    assert!(error.contains("4294967295 items of 12 bytes in 0"), "{error}");
}

#[test]
fn the_smaller_bodies_come_back() {
    let data = |record: &RecordBuilder<'_>, version| {
        let bytes = record.encode(Lsn(8), version).unwrap().to_vec();
        parsed(&bytes, version).main_data.to_vec()
    };
    for version in PgVersion::ALL {
        let file = StorageFile { locator: LOCATOR, fork: Fork::Init };
        assert_eq!(
            StorageFile::parse(&data(&file.record(TransactionId(7)), version)).unwrap(),
            file
        );
        let cut =
            Truncation { locator: LOCATOR, blocks: BlockNumber(3), forks: Truncation::ALL_FORKS };
        assert_eq!(Truncation::parse(&data(&cut.record(TransactionId(7)), version)).unwrap(), cut);
        let lock = ExclusiveLock { xid: TransactionId(7), database: Oid(5), relation: Oid(16384) };
        let locks = data(&ExclusiveLock::record(&[lock, lock]), version);
        assert_eq!(ExclusiveLock::parse(&locks).unwrap(), [lock, lock]);
        let mut running = RunningTransactions::none(TransactionId(3));
        assert_eq!(running.latest_completed, TransactionId(u32::MAX));
        running.xids = vec![TransactionId(1), TransactionId(2)];
        running.subtransactions = 1;
        assert_eq!(RunningTransactions::parse(&data(&running.record(), version)).unwrap(), running);
        let page = data(&RecordBuilder::commit_log_zero_page(258, version), version);
        assert_eq!(page.len(), if version >= PgVersion::V17 { 8 } else { 4 });
        assert_eq!(page[..2], [2, 1]);
    }
    assert_eq!(CHECKPOINT_BYTES, 88);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400), version in 0_usize..5,
    ) {
        let version = PgVersion::ALL[version];
        let _ = PageHeader::parse(&bytes);
        let _ = Record::parse(&bytes, version);
        // With the length and the CRC right, so that the rest is looked at.
        if bytes.len() >= RECORD_HEADER_BYTES {
            let len = bytes.len() as u32;
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            let header = RecordHeader::parse(&bytes).unwrap();
            let _ = Record::parse_unchecked(&bytes, header, version);
        }
        let _ = Commit::parse(&bytes, 0x80, version);
        let _ = ExclusiveLock::parse(&bytes);
        let _ = RunningTransactions::parse(&bytes);
        let _ = StorageFile::parse(&bytes);
        let _ = Truncation::parse(&bytes);
        let _ = crate::control::Checkpoint::parse(&bytes, version);
    }

    #[test]
    fn records_made_of_headers_that_parse_never_panic(
        headers in prop::collection::vec((0_u8..34, any::<u8>(), 0_u16..40, 0_u16..8300, any::<u8>()), 0..4),
        rest in prop::collection::vec(any::<u8>(), 0..200),
        version in 0_usize..5,
    ) {
        let version = PgVersion::ALL[version];
        let mut bytes = vec![0; RECORD_HEADER_BYTES];
        for (id, flags, len, hole, image_flags) in headers {
            bytes.extend_from_slice(&[id, flags]);
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(&hole.to_le_bytes());
            bytes.push(image_flags);
        }
        bytes.extend_from_slice(&rest);
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        let header = RecordHeader::parse(&bytes).unwrap();
        if let Ok(record) = Record::parse_unchecked(&bytes, header, version) {
            let mut page = [0; BLOCK_SIZE];
            for image in record.blocks.iter().filter_map(|block| block.image) {
                let _ = image.restore(&mut page, &mut Vec::new());
            }
        }
    }
}
