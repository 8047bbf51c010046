//! Trees built here, walked by the reader of B-tree pages from the meta page down.
//! Invariant under test: leaves hold every entry once and in order, within the bounds their parents say.

use pagemill_format::btree::{BtreeMeta, BtreePage};
use pagemill_format::btree_builder::{BtreeBuilder, BtreeOptions};
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::Compression;
use pagemill_format::{BlockBytes, BlockNumber, Error, Oid, Tid};
use pagemill_types::index_key_order::{KeyColumn, KeyOrder};
use pagemill_types::order::{TextCollation, ValueOrder};
use proptest::prelude::*;

const TEXT: AttributeLayout = AttributeLayout { len: -1, align: 4 };

fn order() -> KeyOrder {
    let order = ValueOrder::of_type(Oid(25), &TextCollation::C).unwrap();
    KeyOrder::new(vec![KeyColumn { layout: TEXT, order, descending: false, nulls_first: false }])
}

fn options(fillfactor: u8, deduplicate_items: bool) -> BtreeOptions {
    BtreeOptions {
        name: "i".into(),
        fillfactor,
        has_included_columns: false,
        is_unique: false,
        deduplicate_items,
        is_of_system_in_14: false,
    }
}

fn entries(order: &KeyOrder, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let column = ColumnLayout {
        layout: TEXT,
        storage: AttributeStorage::External,
        compression: Compression::Pglz,
        dropped: false,
    };
    let mut form = IndexForm::new("i", &[column]).unwrap();
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for (key, number) in keys.iter().zip(0_u32..) {
        let tid = Tid { block: BlockNumber(number / 200), line_pointer: (number % 200 + 1) as u16 };
        let row: &[Option<&[u8]>] = &[Some(key)];
        let mut entry = Vec::new();
        form.form(row, tid, &mut entry).unwrap();
        entries.push(entry);
    }
    entries.sort_by(|a, b| order.compare(a, b));
    entries
}

fn built(order: &KeyOrder, options: BtreeOptions, entries: &[Vec<u8>]) -> Vec<BlockBytes> {
    let mut pages = std::collections::HashMap::new();
    let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<(), Error> {
        assert!(pages.insert(block.0, *page).is_none());
        Ok(())
    };
    let mut builder = BtreeBuilder::new(order, options);
    for entry in entries {
        builder.add(entry, &mut sink).unwrap();
    }
    let summary = builder.finish(&mut sink).unwrap();
    assert_eq!(pages.len(), summary.blocks as usize);
    (0..summary.blocks).map(|block| pages[&block]).collect()
}

/// Keys and TIDs of all leaves, from the left; every link and bound is checked on the way.
fn leaves(pages: &[BlockBytes], order: &KeyOrder) -> Vec<(Vec<u8>, Tid)> {
    let meta = BtreeMeta::parse(&pages[0]).unwrap();
    let Some(mut leftmost) = meta.root else { return Vec::new() };
    let mut below: Vec<BlockNumber> = vec![leftmost];
    for level in (0..=meta.level).rev() {
        let (mut block, mut previous, mut downlinks) = (Some(leftmost), None, Vec::new());
        let mut found = Vec::new();
        let mut entries = Vec::new();
        while let Some(number) = block {
            let page = BtreePage::parse(&pages[number.0 as usize]).unwrap();
            assert_eq!((page.level(), page.previous()), (level, previous));
            assert_eq!(page.flags().is_root(), level == meta.level);
            assert!(page.data_item_count() > 0);
            found.push(number);
            for item in page.items() {
                let item = item.unwrap();
                if level > 0 {
                    downlinks.push(item.downlink());
                }
                if let Some(high) = page.high_key().unwrap().filter(|_| level == 0) {
                    assert!(order.compare_keys(item.bytes(), high.bytes()).is_le());
                }
                entries.extend(
                    item.heap_tids().map(|tid| (item.bytes()[..item.key_end()].to_vec(), tid)),
                );
            }
            previous = block;
            block = page.next();
        }
        assert_eq!(found, below);
        if level == 0 {
            return entries;
        }
        leftmost = downlinks[0];
        below = downlinks;
    }
    Vec::new()
}

#[test]
fn an_index_without_entries_is_a_meta_page() {
    let order = order();
    let pages = built(&order, options(90, true), &[]);
    let meta = BtreeMeta::parse(&pages[0]).unwrap();
    assert_eq!((pages.len(), meta.version, meta.root, meta.all_equal_image), (1, 4, None, true));
}

#[test]
fn a_failing_sink_ends_the_build() {
    let order = order();
    let entries = entries(&order, &vec![vec![b'x'; 2000]; 9]);
    let mut builder = BtreeBuilder::new(&order, options(90, false));
    let mut sink = |_: BlockNumber, _: &mut BlockBytes| Err(Error::limit("full"));
    let results: Vec<_> = entries.iter().map(|entry| builder.add(entry, &mut sink)).collect();
    assert!(results.iter().any(Result::is_err));
}

#[test]
fn an_entry_too_long_is_refused() {
    let order = order();
    let mut sink = |_: BlockNumber, _: &mut BlockBytes| Ok(());
    let error: Error =
        BtreeBuilder::new(&order, options(90, true)).add(&[0; 2712], &mut sink).unwrap_err();
    assert!(error.to_string().starts_with("index row size 2712 exceeds btree version 4"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_entry_is_in_the_leaves_and_in_order(
        lengths in prop::collection::vec((0_usize..2600, any::<u8>()), 0..60),
        copies in 1_usize..30,
        fillfactor in 10_u8..=100,
        deduplicate: bool,
    ) {
        let order = order();
        let mut keys: Vec<Vec<u8>> = lengths.iter().map(|(length, byte)| vec![*byte; *length]).collect();
        keys.extend(lengths.iter().flat_map(|(_, byte)| vec![vec![*byte % 5]; copies]));
        let entries = entries(&order, &keys);
        let pages = built(&order, options(fillfactor, deduplicate), &entries);
        let leaves = leaves(&pages, &order);
        prop_assert_eq!(leaves.len(), entries.len());
        for ((key, tid), entry) in leaves.iter().zip(&entries) {
            prop_assert!(order.compare_keys(key, entry).is_eq());
            prop_assert_eq!(*tid, pagemill_format::index_tuple_builder::entry_tid(entry));
        }
    }
}
