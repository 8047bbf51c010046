//! WAL and pages are untrusted: whatever a record says, of whatever page, redo gives a page or an error, and never
//! panics. The pages here have sound headers most of the time, since others are turned away at once.

use pagemill_format::wal::{BlockReference, Record, RecordHeader, RelFileLocator, ResourceManager};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, PgVersion, TransactionId};
use pagemill_redo::{Effect, RedoSite, effect, is_redone, redo};
use proptest::collection::vec;
use proptest::prelude::*;

/// A record in parts that proptest can make.
#[derive(Debug, Clone)]
struct Parts {
    version: PgVersion,
    info: u8,
    references: Vec<(u8, Fork, u32, bool)>,
    main: Vec<u8>,
    data: Vec<u8>,
}

/// Bytes as records have them: mostly small numbers, of two bytes each.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let small = (0_u16..40).prop_map(|number| number.to_le_bytes().to_vec());
    let any = vec(any::<u8>(), 1..5);
    vec(prop_oneof![4 => small, 1 => any], 0..most).prop_map(|parts| parts.concat())
}

fn parts() -> impl Strategy<Value = Parts> {
    let version = prop::sample::select(&PgVersion::ALL[..]);
    let fork = prop_oneof![4 => Just(Fork::Main), 1 => Just(Fork::Vm)];
    let reference = (fork, 0_u32..70_000, prop::bool::weighted(0.2));
    let references = vec(reference, 1..5).prop_map(|references| {
        (0..).zip(references).map(|(id, (fork, block, init))| (id, fork, block, init)).collect()
    });
    (version, any::<u8>(), references, bytes(40), bytes(200)).prop_map(
        |(version, info, references, main, data)| Parts { version, info, references, main, data },
    )
}

/// A page with a sound header and line pointers that mostly lead to items.
fn page() -> impl Strategy<Value = Box<BlockBytes>> {
    let pointer = prop_oneof![
        6 => (100_usize..1020, 0_u32..4, 0_u32..300)
            .prop_map(|(eighth, state, len)| (eighth as u32 * 8) | (state << 15) | (len << 17)),
        1 => any::<u32>(),
        1 => Just(0),
    ];
    let special = prop::sample::select(vec![0_usize, 8, 16, 24, 48]);
    (vec(pointer, 0..60), special, any::<u8>(), vec(any::<u8>(), 64)).prop_map(
        |(pointers, special, flags, filler)| {
            let mut page = Box::new([0; BLOCK_SIZE]);
            for (to, from) in page.iter_mut().zip(filler.iter().cycle()) {
                *to = *from;
            }
            let lower = 24 + 4 * pointers.len();
            for (to, pointer) in page[24..lower].chunks_exact_mut(4).zip(pointers) {
                to.copy_from_slice(&pointer.to_le_bytes());
            }
            let special = BLOCK_SIZE - special;
            for (at, word) in [(10, usize::from(flags & 7)), (12, lower), (14, 800), (16, special)]
            {
                page[at..at + 2].copy_from_slice(&(word as u16).to_le_bytes());
            }
            page[18..20].copy_from_slice(&0x2004_u16.to_le_bytes());
            page
        },
    )
}

fn header(resource_manager: ResourceManager, info: u8) -> RecordHeader {
    let (xid, prev) = (TransactionId(700), Lsn(0));
    RecordHeader { total_len: 0, xid, prev, info, resource_manager, crc: 0 }
}

fn check(manager: ResourceManager, parts: &Parts, page: &BlockBytes) {
    let header = header(manager, parts.info);
    let blocks = parts.references.iter().map(|&(id, fork, block, will_init)| BlockReference {
        id,
        locator: RelFileLocator::default(),
        fork,
        block: BlockNumber(block),
        will_init,
        image: None,
        data: &parts.data,
    });
    let blocks: Vec<_> = blocks.collect();
    let main_data = &parts.main;
    let record = Record { header, blocks, main_data, origin: None, toplevel_xid: None };
    for block in &record.blocks {
        let mut page = *page;
        let (reference, version) = (block.id, parts.version);
        let (start, end) = (Lsn(0x100), Lsn(0x200));
        let site = RedoSite { record: &record, start, end, reference, version, hints_logged: true };
        let _ = effect(&record.header, &block.touch());
        match redo(&mut page, &site) {
            Ok(()) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

macro_rules! any_record {
    ($($name:ident: $manager:ident),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(3000))]
            $(
                #[test]
                fn $name(parts in parts(), page in page()) {
                    check(ResourceManager::$manager, &parts, &page);
                }
            )*
        }
    };
}

any_record! {
    any_xlog_record_gives_a_page_or_an_error: XLOG,
    any_heap_record_gives_a_page_or_an_error: HEAP,
    any_heap2_record_gives_a_page_or_an_error: HEAP2,
    any_sequence_record_gives_a_page_or_an_error: SEQUENCE,
}

#[test]
fn a_change_by_a_manager_that_nobody_knows_is_refused_by_name() {
    let header = header(ResourceManager(200), 0x10);
    let block = BlockReference {
        id: 0,
        locator: RelFileLocator::default(),
        fork: Fork::Main,
        block: BlockNumber(3),
        will_init: false,
        image: None,
        data: &[],
    };
    assert!(!is_redone(header.resource_manager));
    let blocks = vec![block];
    let record = Record { header, blocks, main_data: &[], origin: None, toplevel_xid: None };
    assert_eq!(effect(&record.header, &record.blocks[0].touch()), Effect::Delta);
    let site = RedoSite {
        record: &record,
        start: Lsn(0x100),
        end: Lsn(0x200),
        reference: 0,
        version: PgVersion::V16,
        hints_logged: false,
    };
    let error = redo(&mut [0; BLOCK_SIZE], &site).unwrap_err();
    assert!(error.is_unsupported());
    assert_eq!(
        error.to_string(),
        "custom200 record 10 at 0/100, block reference 0: unsupported resource manager: nothing is known of \
         what custom200 records change"
    );
}
