//! Searches of trees that the builder made, held against a look at every entry.
//!
//! Invariant under test: a range gives the TIDs of all of its entries and of no others, from either end, also where
//! downlinks are missing, as after splits that were not finished.

use std::collections::HashMap;

use pagemill_format::btree_builder::{BtreeBuilder, BtreeOptions};
use pagemill_format::index_tuple_builder::{IndexForm, entry_tid};
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::Compression;
use pagemill_format::{BlockBytes, Fork, Oid};
use pagemill_types::index_key_order::KeyColumn;
use pagemill_types::index_key_range::{KeyBound, ValueBounds};
use pagemill_types::order::{TextCollation, ValueOrder};
use proptest::prelude::*;

use super::*;
use crate::error::{Damage, Error};
use crate::refusal::Refusal;

const INT: AttributeLayout = AttributeLayout { len: 4, align: 4 };
const TEXT: AttributeLayout = AttributeLayout { len: -1, align: 4 };

struct BuiltTree(Vec<BlockBytes>);

impl TreePages for BuiltTree {
    fn page(&mut self, block: BlockNumber) -> Result<&BlockBytes> {
        self.0.get(block.0 as usize).ok_or_else(|| Error::refused(Refusal::NoFiles(Oid(block.0))))
    }

    fn holds(&self, _: BlockNumber) -> bool {
        true
    }

    fn will_want(&mut self, _: &[BlockNumber]) {}

    fn blocks(&self) -> u32 {
        self.0.len() as u32
    }

    fn damage(&self, block: BlockNumber, what: String) -> Error {
        Damage::in_block("built", Fork::Main, block, what).into()
    }
}

/// A row's key: a number, and a text of so many bytes.
type Row = (Option<i32>, Option<(u8, usize)>);

fn text((byte, length): (u8, usize)) -> Vec<u8> {
    vec![byte; length]
}

fn order(directions: [(bool, bool); 2]) -> KeyOrder {
    let column = |(layout, oid), (descending, nulls_first)| {
        let order = ValueOrder::of_type(Oid(oid), &TextCollation::C).unwrap();
        KeyColumn { layout, order, descending, nulls_first }
    };
    let [number, text] = directions;
    KeyOrder::new(vec![column((INT, 23), number), column((TEXT, 25), text)])
}

fn entries(order: &KeyOrder, rows: &[Row]) -> Vec<Vec<u8>> {
    let column = |layout| ColumnLayout {
        layout,
        storage: AttributeStorage::External,
        compression: Compression::Pglz,
        dropped: false,
    };
    let mut form = IndexForm::new("i", &[column(INT), column(TEXT)]).unwrap();
    let mut entries = Vec::new();
    for ((number, of), at) in rows.iter().zip(0_u32..) {
        let (number, of) = (number.map(i32::to_le_bytes), of.map(text));
        let row: &[Option<&[u8]>] = &[number.as_ref().map(|bytes| &bytes[..]), of.as_deref()];
        let tid = Tid { block: BlockNumber(at / 100), line_pointer: (at % 100 + 1) as u16 };
        let mut entry = Vec::new();
        form.form(row, tid, &mut entry).unwrap();
        entries.push(entry);
    }
    entries.sort_by(|a, b| order.compare(a, b));
    entries
}

fn built(order: &KeyOrder, entries: &[Vec<u8>], deduplicate_items: bool) -> Vec<BlockBytes> {
    let options = BtreeOptions {
        name: "i".into(),
        fillfactor: 70,
        has_included_columns: false,
        is_unique: false,
        deduplicate_items,
        is_of_system_in_14: false,
    };
    let mut pages = HashMap::new();
    let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<(), FormatError> {
        pages.insert(block.0, *page);
        Ok(())
    };
    let mut builder = BtreeBuilder::new(order, options);
    entries.iter().for_each(|entry| builder.add(entry, &mut sink).unwrap());
    let blocks = builder.finish(&mut sink).unwrap().blocks;
    (0..blocks).map(|block| pages[&block]).collect()
}

/// Takes a downlink out of a page, but the first one.
fn forget_downlink(page: &mut BlockBytes, seed: usize) {
    let Ok(parsed) = BtreePage::parse(page) else { return };
    let (first, count) = (usize::from(parsed.first_data_item()), parsed.data_item_count());
    if parsed.is_leaf() || count < 3 {
        return;
    }
    let gone = first + 1 + seed % (usize::from(count) - 1);
    let items = usize::from(parsed.item_count());
    page.copy_within(24 + gone * 4..24 + items * 4, 24 + (gone - 1) * 4);
    let lower = (24 + (items - 1) * 4) as u16;
    page[12..14].copy_from_slice(&lower.to_le_bytes());
}

fn within(value: Option<&[u8]>, bounds: &ValueBounds, order: &ValueOrder) -> bool {
    let Some(value) = value else { return false };
    let lower = bounds.lower.as_ref().is_none_or(|bound| {
        let order = order.compare(value, &bound.value);
        order.is_gt() || (order.is_eq() && bound.inclusive)
    });
    let upper = bounds.upper.as_ref().is_none_or(|bound| {
        let order = order.compare(value, &bound.value);
        order.is_lt() || (order.is_eq() && bound.inclusive)
    });
    lower && upper
}

/// True for a row of the range, told by its values alone.
fn belongs(row: &Row, range: &KeyRange) -> bool {
    let values = [row.0.map(|number| number.to_le_bytes().to_vec()), row.1.map(text)];
    let types = [23, 25].map(|oid| ValueOrder::of_type(Oid(oid), &TextCollation::C).unwrap());
    let equal = range
        .equal
        .iter()
        .zip(&values)
        .all(|(wanted, value)| wanted.as_deref() == value.as_deref());
    let at = range.equal.len();
    equal
        && range
            .bounds
            .as_ref()
            .is_none_or(|bounds| at > 1 || within(values[at].as_deref(), bounds, &types[at]))
}

fn found(pages: &mut BuiltTree, search: KeySearch<'_>) -> Vec<Tid> {
    let mut walk = RangeWalk::start(pages, search, true).unwrap();
    let mut tids = Vec::new();
    while walk.next_leaf(pages, &mut tids).unwrap() {}
    tids
}

/// Ranges that come in the order of the index, each from where the one before ended.
fn found_in_turn(pages: &mut BuiltTree, order: &KeyOrder, ranges: &[KeyRange]) -> Vec<Vec<Tid>> {
    let mut last = None;
    let of = |range| {
        let search = KeySearch { order, range, direction: Direction::Forward };
        let mut walk = match last {
            None => RangeWalk::start(pages, search, true),
            Some(last) => RangeWalk::go_on_from(pages, search, true, last),
        }
        .unwrap();
        let mut tids = Vec::new();
        while walk.next_leaf(pages, &mut tids).unwrap() {}
        last = walk.last_leaf();
        tids
    };
    ranges.iter().map(of).collect()
}

/// Where the first number changes on the way.
fn by_keys(pages: &mut BuiltTree, search: KeySearch<'_>) -> Vec<OrderedTid> {
    let mut walk = RangeWalk::start(pages, search, true).unwrap();
    let (mut changes, mut entries) = (KeyChanges::new(1), Vec::new());
    while walk.next_leaf_by_keys(pages, &mut changes, &mut entries).unwrap() {}
    entries
}

fn numbers() -> impl Strategy<Value = Option<i32>> {
    prop::option::weighted(0.9, -8..8)
}

/// The empty text has one letter only: texts are told apart by letter and length.
fn texts() -> impl Strategy<Value = Option<(u8, usize)>> {
    let told = |(letter, length)| if length == 0 { (b'a', 0) } else { (letter, length) };
    prop::option::weighted(0.9, (b'a'..b'f', 0_usize..900).prop_map(told))
}

fn bounds_of(
    value: impl Strategy<Value = Vec<u8>> + Clone,
) -> impl Strategy<Value = Option<ValueBounds>> {
    let bound = prop::option::of(
        (value, any::<bool>())
            .prop_map(|(value, inclusive)| KeyBound { value: value.into(), inclusive }),
    );
    prop::option::of((bound.clone(), bound).prop_map(|(lower, upper)| ValueBounds { lower, upper }))
}

fn ranges() -> impl Strategy<Value = KeyRange> {
    let number = (-9..9_i32).prop_map(|number| number.to_le_bytes().to_vec());
    let texts = (b'a'..b'f', 0_usize..900).prop_map(text);
    let first = numbers().prop_map(|number| number.map(|number| number.to_le_bytes()[..].into()));
    prop_oneof![
        bounds_of(number).prop_map(|bounds| KeyRange { equal: Vec::new(), bounds }),
        (first, bounds_of(texts))
            .prop_map(|(first, bounds)| KeyRange { equal: vec![first], bounds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_range_gives_its_entries_and_no_others(
        rows in prop::collection::vec((numbers(), texts()), 0..400),
        copies in 1_usize..40,
        directions: [(bool, bool); 2],
        deduplicate: bool,
        forgotten in prop::collection::vec(any::<(usize, usize)>(), 0..4),
        ranges in prop::collection::vec(ranges(), 20),
    ) {
        let mut rows = rows;
        let repeated: Vec<Row> = rows.iter().take(4).copied().collect();
        rows.extend(repeated.iter().cycle().take(repeated.len() * copies));
        let order = order(directions);
        let entries = entries(&order, &rows);
        let mut pages = BuiltTree(built(&order, &entries, deduplicate));
        for (page, seed) in forgotten {
            let at = page % pages.0.len();
            forget_downlink(&mut pages.0[at], seed);
        }
        let row_of = |tid: &Tid| &rows[tid.block.0 as usize * 100 + usize::from(tid.line_pointer) - 1];
        for range in &ranges {
            let expected = entries.iter().map(|e| entry_tid(e)).filter(|t| belongs(row_of(t), range));
            let mut expected: Vec<Tid> = expected.collect();
            let search = |direction| KeySearch { order: &order, range, direction };
            let forward = found(&mut pages, search(Direction::Forward));
            prop_assert_eq!(&forward, &expected, "{:?}", range);
            let mut backward = found(&mut pages, search(Direction::Backward));
            let keys: Vec<&Row> = backward.iter().map(row_of).collect();
            let mirrored: Vec<&Row> = expected.iter().rev().map(row_of).collect();
            prop_assert_eq!(keys, mirrored);
            backward.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(backward, expected);
            for direction in [Direction::Forward, Direction::Backward] {
                let tids = found(&mut pages, search(direction));
                let mut before = None;
                let told = tids.iter().map(|tid| {
                    let begins_key = before.replace(row_of(tid).0) != Some(row_of(tid).0);
                    OrderedTid { tid: *tid, begins_key }
                });
                let told: Vec<OrderedTid> = told.collect();
                prop_assert_eq!(by_keys(&mut pages, search(direction)), told);
            }
            let share = least_share(&mut pages, &order, range).unwrap();
            prop_assert!((0.0..=1.0).contains(&share));
        }
        let bounds = ranges.iter().find_map(|range| (range.equal.len() == 1).then(|| range.bounds.clone()));
        let of = |range: &KeyRange| KeyRange { equal: range.equal.clone(), bounds: bounds.clone().flatten() };
        let mut apart: Vec<KeyRange> = ranges.iter().filter(|r| r.equal.len() == 1).map(of).collect();
        apart.sort_by(|a, b| order.compare_ranges(a, b));
        apart.dedup();
        let in_turn = found_in_turn(&mut pages, &order, &apart);
        for (range, found_here) in apart.iter().zip(in_turn) {
            let search = KeySearch { order: &order, range, direction: Direction::Forward };
            prop_assert_eq!(found_here, found(&mut pages, search), "{:?}", range);
        }
    }
}

#[test]
fn a_root_at_an_impossible_level_is_damage() {
    let order = order([(false, false); 2]);
    let mut pages = BuiltTree(built(&order, &entries(&order, &[(Some(1), None)]), false));
    pages.0[0][36..40].copy_from_slice(&99_u32.to_le_bytes());
    let range = KeyRange::default();
    let search = KeySearch { order: &order, range: &range, direction: Direction::Forward };
    let error = RangeWalk::start(&mut pages, search, true);
    assert!(error.unwrap_err().to_string().contains("level 99"));
}

#[test]
fn pages_that_run_in_a_circle_end_a_search() {
    let order = order([(false, false); 2]);
    let rows: Vec<Row> = (0..400).map(|number| (Some(number), Some((b'a', 800)))).collect();
    let mut pages = BuiltTree(built(&order, &entries(&order, &rows), false));
    let leaf = (1..pages.0.len()).find(|at| {
        let page = BtreePage::parse(&pages.0[*at]).unwrap();
        page.is_leaf() && page.next().is_some() && page.previous().is_some()
    });
    let leaf = leaf.unwrap();
    pages.0[leaf][8180..8184].copy_from_slice(&(leaf as u32).to_le_bytes());
    let range = KeyRange::default();
    let search = KeySearch { order: &order, range: &range, direction: Direction::Forward };
    let mut walk = RangeWalk::start(&mut pages, search, true).unwrap();
    let mut tids = Vec::new();
    let failed = (0..pages.blocks() + 2).find_map(|_| walk.next_leaf(&mut pages, &mut tids).err());
    assert!(failed.is_some());
}
