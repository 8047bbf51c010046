//! Tests of the records of all index managers: any bytes are redone or are an error, and what no comparison with a
//! server's pages can see, since hints and numbers like it are left out there.

use pagemill_format::page::Page;
use pagemill_format::wal::{
    BlockImage, BlockReference, ImageCompression, Record, RecordHeader, RelFileLocator,
    ResourceManager,
};
use pagemill_format::{
    BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, Oid, PgVersion, TransactionId,
};
use proptest::prelude::*;

use crate::index_page::{put, put_u16, put_u32, set_lower, tid_bytes, u16_at, u32_at};
use crate::page_items::{Numbering, PageItems};
use crate::{RedoSite, Result, redo};

const END: Lsn = Lsn(0x12_3456_7890);

/// A block reference of a record that is made for a test.
#[derive(Default)]
pub(crate) struct Block<'a> {
    pub(crate) id: u8,
    pub(crate) number: u32,
    /// A page of the visibility map.
    pub(crate) is_map: bool,
    pub(crate) will_init: bool,
    pub(crate) data: &'a [u8],
    pub(crate) image: Option<&'a BlockBytes>,
}

/// A record that is made for a test.
pub(crate) struct TestRecord<'a> {
    manager: ResourceManager,
    info: u8,
    version: PgVersion,
    main: &'a [u8],
    blocks: Vec<Block<'a>>,
}

impl<'a> TestRecord<'a> {
    pub(crate) fn new(
        manager: ResourceManager,
        info: u8,
        main: &'a [u8],
        blocks: Vec<Block<'a>>,
    ) -> Self {
        Self { manager, info, version: PgVersion::V18, main, blocks }
    }

    /// The same record, of another version.
    pub(crate) fn of(self, version: PgVersion) -> Self {
        Self { version, ..self }
    }

    pub(crate) fn redo(&self, page: &mut BlockBytes, reference: u8) -> Result<()> {
        let header = RecordHeader {
            total_len: 0,
            xid: TransactionId(700),
            prev: Lsn(0),
            info: self.info,
            resource_manager: self.manager,
            crc: 0,
        };
        let blocks = self.blocks.iter().map(reference_of).collect();
        let record =
            Record { header, blocks, main_data: self.main, origin: None, toplevel_xid: None };
        let (start, version) = (Lsn(0x12_3456_7800), self.version);
        let site =
            RedoSite { record: &record, start, end: END, reference, version, hints_logged: true };
        redo(page, &site)
    }
}

fn reference_of<'a>(block: &Block<'a>) -> BlockReference<'a> {
    let oid = Oid(16384);
    let image = block.image.map(|page| BlockImage {
        data: page,
        hole_offset: 0,
        hole_length: 0,
        compression: ImageCompression::Off,
        apply: true,
    });
    BlockReference {
        id: block.id,
        locator: RelFileLocator { tablespace: Oid(1663), database: oid, number: oid },
        fork: if block.is_map { Fork::Vm } else { Fork::Main },
        block: BlockNumber(block.number),
        will_init: block.will_init,
        image,
        data: block.data,
    }
}

/// An empty page with flags at this place of its special area.
fn page_with_flags(special_bytes: usize, at: usize, flags: u16) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    put_u16(PageItems::init(&mut page, special_bytes).special(), at, flags).unwrap();
    page
}

/// The image of a GiST page is made before its record has a place in the WAL, so that it cannot have the number
/// that the record's end gives the page. Without it a scan that saw the page before the split, on the way from the
/// parent, would miss the right half.
#[test]
fn a_gist_page_gets_its_sequence_number_behind_an_image_too() {
    let before = page_with_flags(16, 12, 1 << 3 | 1);
    for (info, id) in [(0x00, 1), (0x30, 0)] {
        let block = Block { id, number: 5, image: Some(&before), ..Block::default() };
        let mut page = [0; BLOCK_SIZE];
        TestRecord::new(ResourceManager::GIST, info, &[0; 24], vec![block])
            .redo(&mut page, id)
            .unwrap();
        assert_eq!(u32_at(&page, 8176).unwrap(), 0x12);
        assert_eq!(u32_at(&page, 8180).unwrap(), 0x3456_7890);
        assert_eq!(u16_at(&page, 8188).unwrap(), 1, "the page is followed to the right no more");
    }
    // The page that the record is about has it from the image.
    let block = Block { image: Some(&before), ..Block::default() };
    let mut page = [0; BLOCK_SIZE];
    TestRecord::new(ResourceManager::GIST, 0x00, &[0; 4], vec![block]).redo(&mut page, 0).unwrap();
    assert_eq!(u16_at(&page, 8188).unwrap(), 1 << 3 | 1);
}

#[test]
fn cleanup_takes_back_the_hints_that_there_is_something_to_clean() {
    let mut btree = page_with_flags(16, 12, 1 << 6 | 1);
    put_u16(&mut btree, 8190, 77).unwrap();
    let delete = TestRecord::new(ResourceManager::BTREE, 0x70, &[0; 9], vec![Block::default()]);
    let mut page = btree;
    delete.redo(&mut page, 0).unwrap();
    assert_eq!((u16_at(&page, 8188).unwrap(), u16_at(&page, 8190).unwrap()), (1, 77));
    let vacuum = TestRecord::new(ResourceManager::BTREE, 0xC0, &[0; 4], vec![Block::default()]);
    let mut page = btree;
    vacuum.redo(&mut page, 0).unwrap();
    assert_eq!((u16_at(&page, 8188).unwrap(), u16_at(&page, 8190).unwrap()), (1, 0));

    let mut page = page_with_flags(16, 12, 1 << 4 | 1);
    let delete = TestRecord::new(ResourceManager::GIST, 0x10, &[0; 8], vec![Block::default()]);
    delete.redo(&mut page, 0).unwrap();
    assert_eq!(u16_at(&page, 8188).unwrap(), 1 << 2 | 1);

    let mut page = page_with_flags(16, 12, 1 << 7 | 2);
    let delete = TestRecord::new(ResourceManager::HASH, 0xC0, &[0; 8], vec![Block::default()]);
    delete.redo(&mut page, 0).unwrap();
    assert_eq!(u16_at(&page, 8188).unwrap(), 2);
}

/// A bitmap page is full after 32768 overflow pages, more than a test's work makes.
#[test]
fn a_new_bitmap_page_of_a_hash_index_is_known_to_the_meta_page() {
    let bitmap_bytes = [0, 0x10, 0];
    let blocks = || {
        let meta = Block { id: 4, data: &[9, 0, 0, 0], ..Block::default() };
        vec![Block { id: 3, number: 40, will_init: true, ..Block::default() }, meta]
    };
    let add = TestRecord::new(ResourceManager::HASH, 0x30, &bitmap_bytes, blocks());
    let mut page = [0; BLOCK_SIZE];
    add.redo(&mut page, 3).unwrap();
    assert!(page[24..24 + 4096].iter().all(|byte| *byte == 0xFF));
    assert_eq!(u16_at(&page, 12).unwrap(), 24 + 4096);

    let main = [0_u64.to_le_bytes().as_slice(), &[0; 4], &75_u16.to_le_bytes()].concat();
    let block = Block { will_init: true, ..Block::default() };
    let mut meta = [0; BLOCK_SIZE];
    TestRecord::new(ResourceManager::HASH, 0x00, &main, vec![block]).redo(&mut meta, 0).unwrap();
    let (spares, bitmaps) = (24 + 52 + 4, 24 + 52 + 4 * 98);
    assert_eq!(u32_at(&meta, spares).unwrap(), 1, "the split point of two buckets");
    add.redo(&mut meta, 4).unwrap();
    // The overflow page, and the bitmap page beside it.
    assert_eq!(u32_at(&meta, spares).unwrap(), 3);
    assert_eq!((u32_at(&meta, 24 + 44).unwrap(), u32_at(&meta, bitmaps).unwrap()), (1, 40));
    assert_eq!(u32_at(&meta, 24 + 40).unwrap(), 9, "the first that may be free");
}

/// Before 9.4 leaves of posting trees were not compressed; `pg_upgrade` brings them along, and the first record that
/// changes one compresses it.
#[test]
fn an_uncompressed_gin_leaf_is_compressed_by_the_first_change() {
    let mut page = page_with_flags(8, 6, 3);
    for (place, number) in [(0, 1), (1, 4)] {
        put(&mut page, 32 + place * 6, &tid_bytes(BlockNumber(2), number)).unwrap();
    }
    put_u16(&mut page, 8188, 2).unwrap();
    // One action: the first list takes in one more.
    let data = [&[1, 0, 0, 4, 1, 0][..], &tid_bytes(BlockNumber(2), 3)].concat();
    let block = Block { data: &data, ..Block::default() };
    TestRecord::new(ResourceManager::GIN, 0x20, &[3, 0], vec![block]).redo(&mut page, 0).unwrap();
    assert_eq!(page[32..42], [0, 0, 2, 0, 1, 0, 2, 0, 2, 1]);
    assert_eq!((u16_at(&page, 12).unwrap(), u16_at(&page, 8188).unwrap()), (42, 0));
    assert_eq!(u16_at(&page, 8190).unwrap(), 1 << 7 | 3);
}

#[test]
fn a_downlink_is_removed_by_leading_its_key_to_the_next_page() {
    let mut page = [0; BLOCK_SIZE];
    let mut items = PageItems::init(&mut page, 16);
    for block in 1..=3 {
        let mut tuple = [block; 16];
        put(&mut tuple, 0, &tid_bytes(BlockNumber(u32::from(block)), 0)).unwrap();
        items.add(&tuple, u16::from(block), Numbering::Shift).unwrap();
    }
    let mut main = [0; 20];
    main[0] = 1;
    let block = Block { id: 1, ..Block::default() };
    TestRecord::new(ResourceManager::BTREE, 0xB0, &main, vec![block]).redo(&mut page, 1).unwrap();
    let items = PageItems::open(&mut page).unwrap();
    assert_eq!(items.count(), 2);
    assert_eq!(items.item(1).unwrap()[..8], [0, 0, 2, 0, 0, 0, 1, 1]);
    assert_eq!(items.item(2).unwrap()[2], 3);
}

#[test]
fn an_error_names_the_manager_and_its_record() {
    for (manager, info, wanted) in [
        (ResourceManager::BTREE, 0x30, "Btree SPLIT_L at 12/34567800, block reference 0"),
        (ResourceManager::GIN, 0x50, "Gin DELETE_PAGE at 12/34567800, block reference 0"),
        (ResourceManager::SPGIST, 0x50, "SPGist PICKSPLIT at 12/34567800, block reference 0"),
    ] {
        let made = TestRecord::new(manager, info, &[], vec![Block::default()]);
        let error = made.redo(&mut [0; BLOCK_SIZE], 0).unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
        assert!(!error.is_unsupported());
    }
}

/// Numbers that look like chance, of which small ones are frequent, as they are in records and on pages.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        let byte = |numbers: &mut Self| match numbers.below(8) {
            0..=3 => 0,
            4..=6 => numbers.below(20) as u8,
            _ => numbers.next() as u8,
        };
        (0..count).map(|_| byte(self)).collect()
    }

    /// A page whose header is sound, and whose line pointers mostly are.
    fn page(&mut self, special_bytes: usize) -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        page.copy_from_slice(&self.bytes(256).repeat(BLOCK_SIZE / 256));
        let mut empty = [0; BLOCK_SIZE];
        PageItems::init(&mut empty, special_bytes);
        page[..24].copy_from_slice(&empty[..24]);
        let mut items = PageItems::open(&mut page).unwrap();
        for number in 1..=self.below(40) as u16 {
            let length = 8 * (1 + self.below(12)) as u16;
            let mut tuple = self.bytes(u64::from(length));
            // As long as a tuple of most managers says it is.
            put_u16(&mut tuple, 6, length | (self.below(8) as u16) << 13).unwrap();
            items.add(&tuple, number, Numbering::Shift).unwrap();
        }
        if self.below(4) == 0 {
            let at = 24 + self.below(160) as usize;
            put_u32(&mut page, at, self.next() as u32).unwrap();
        }
        if self.below(4) == 0 {
            // Contents without line pointers.
            let lower = 24 + self.below(6000) as usize;
            let _ = set_lower(&mut page, lower);
        }
        page
    }
}

/// The managers, and the sizes of their special areas.
const MANAGERS: [(ResourceManager, usize); 7] = [
    (ResourceManager::BTREE, 16),
    (ResourceManager::HASH, 16),
    (ResourceManager::GIN, 8),
    (ResourceManager::GIST, 16),
    (ResourceManager::SPGIST, 8),
    (ResourceManager::BRIN, 8),
    (ResourceManager::GENERIC, 8),
];

/// Redoes a record of bytes like these on a page of bytes like these, and says whether that went well.
fn redo_noise(seed: u64, manager: usize, info: u8, reference: u8, version: usize) -> bool {
    let mut numbers = Numbers(seed | 1);
    let (manager, special_bytes) = MANAGERS[manager];
    let mut page = numbers.page(special_bytes);
    let main_bytes = numbers.below(120);
    let main = numbers.bytes(main_bytes);
    let data: Vec<Vec<u8>> = (0..7)
        .map(|_| {
            let count = numbers.below(120);
            numbers.bytes(count)
        })
        .collect();
    let mut blocks = Vec::new();
    for (id, data) in (0_u8..).zip(&data) {
        if id == reference || numbers.below(3) > 0 {
            let will_init = numbers.below(8) == 0;
            let number = numbers.below(3) as u32;
            blocks.push(Block { is_map: false, id, number, will_init, data, image: None });
        }
    }
    let version = PgVersion::ALL[version];
    let made = TestRecord { manager, info: info << 4, version, main: &main, blocks };
    let is_redone = made.redo(&mut page, reference).is_ok();
    // Generic records write any bytes of a page, those of its header too.
    if is_redone && manager != ResourceManager::GENERIC {
        Page::new(&page).check_header().unwrap();
    }
    is_redone
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_record_on_any_page_gives_a_page_or_an_error(
        seed in any::<u64>(),
        manager in 0_usize..7,
        info in 0_u8..16,
        reference in 0_u8..7,
        version in 0_usize..5,
    ) {
        redo_noise(seed, manager, info, reference, version);
    }
}

/// Were every record of noise refused at once, the test above would say nothing.
#[test]
fn some_records_of_noise_are_redone_by_every_manager() {
    for (manager, (known, _)) in MANAGERS.iter().enumerate() {
        let redone = (0..4_000_u64).filter(|seed| {
            let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            redo_noise(seed, manager, (seed >> 60) as u8, (seed >> 40) as u8 % 7, 4)
        });
        let count = redone.count();
        assert!(count > 20, "{count} of {}", known.name());
    }
}
