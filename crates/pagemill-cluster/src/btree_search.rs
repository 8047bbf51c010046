//! The entries of a B-tree that a range of its keys holds, from either end.
//!
//! ```text
//! meta ─► root ─► page: the last downlink before the range ─► … ─► leaf ⇄ leaf ⇄ leaf behind the range
//! ```
//!
//! On each level the way goes on along the right links for as long as all of a page lies before the range: a page may
//! have been split without its parent knowing, and one that is no longer in use is stepped over.
//!
//! Invariants: every entry of the range is handed out once, those included that a scan took for dead, since only the heap
//! says who sees a row; a search ends after at most as many pages of a level as the index has. What contradicts the
//! order or the links is an error that names the block.
//!
//! Source: `_bt_search`, `_bt_moveright`, `_bt_binsrch` and `_bt_readpage` in `src/backend/access/nbtree/nbtsearch.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::btree::{BtreeMeta, BtreePage, IndexTuple, META_BLOCK};
use pagemill_format::{BlockNumber, Error as FormatError, Tid};
use pagemill_types::index_key_order::KeyOrder;
use pagemill_types::index_key_range::{KeyRange, Place};

use crate::btree_scan::{Direction, LeafWalk, MAX_LEVELS, TreePages, tree_page};
use crate::error::Result;

/// Where a row is, on the way along an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedTid {
    /// The root of its HOT chain.
    pub tid: Tid,
    /// Its leading key columns are others than those of the entry before.
    pub begins_key: bool,
}

/// What is looked for in an index, and from which end.
#[derive(Debug, Clone, Copy)]
pub struct KeySearch<'s> {
    /// The order of the index.
    pub order: &'s KeyOrder,
    /// The entries that are wanted.
    pub range: &'s KeyRange,
    /// The way along them.
    pub direction: Direction,
}

impl KeySearch<'_> {
    #[inline]
    fn place(&self, tuple: &IndexTuple<'_>) -> Place {
        self.order.place(tuple, self.range)
    }
}

/// Tells along a walk where the values of the leading key columns change.
#[derive(Debug)]
pub struct KeyChanges {
    columns: usize,
    /// The entry that began the key; empty before the first.
    last: Vec<u8>,
}

impl KeyChanges {
    /// Of so many leading key columns, before the first entry.
    pub fn new(columns: usize) -> Self {
        Self { columns, last: Vec::new() }
    }

    /// True for an entry whose leading columns are others than those of the entry before.
    fn begins_key(&mut self, order: &KeyOrder, tuple: &IndexTuple<'_>) -> bool {
        let begins_key = self.last.is_empty()
            || !order.are_leading_equal(&self.last, tuple.bytes(), self.columns);
        if begins_key {
            self.last.clear();
            self.last.extend_from_slice(tuple.bytes());
        }
        begins_key
    }
}

/// A range of one index on its way from one end to the other.
#[derive(Debug)]
pub struct RangeWalk<'s> {
    search: KeySearch<'s>,
    /// `None` once there can be no more entries.
    leaves: Option<LeafWalk>,
    /// The leaf that was looked at last.
    last: Option<BlockNumber>,
}

impl<'s> RangeWalk<'s> {
    /// Goes down to the first leaf that may have entries of the range, or backward to the last one. `strict` says that no
    /// server is changing the pages.
    ///
    /// # Errors
    /// When a page on the way is damaged or cannot be read.
    pub fn start(pages: &mut impl TreePages, search: KeySearch<'s>, strict: bool) -> Result<Self> {
        let leaf = descend(pages, search)?;
        let leaves = leaf.map(|leaf| LeafWalk::from_leaf(pages, leaf, search.direction, strict));
        Ok(Self { search, leaves, last: None })
    }

    /// The same for a range behind that of the walk before it, forward both, which ended at the leaf `last`: of many ranges most
    /// begin where the one before ended, and need no way down.
    ///
    /// # Errors
    /// When a page on the way is damaged or cannot be read.
    pub fn go_on_from(
        pages: &mut impl TreePages,
        search: KeySearch<'s>,
        strict: bool,
        last: BlockNumber,
    ) -> Result<Self> {
        if !begins_within(pages, search, last)? {
            return Self::start(pages, search, strict);
        }
        let leaves = LeafWalk::from_leaf(pages, last, search.direction, strict);
        Ok(Self { search, leaves: Some(leaves), last: None })
    }

    /// The leaf that was looked at last.
    pub fn last_leaf(&self) -> Option<BlockNumber> {
        self.last
    }

    /// Appends the heap TIDs of the range's entries on the next leaf, in the order of the walk; false when there are no
    /// more leaves to look at.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub fn next_leaf(&mut self, pages: &mut impl TreePages, tids: &mut Vec<Tid>) -> Result<bool> {
        self.visit_leaf(pages, |tuple| tids.extend(tuple.heap_tids()))
    }

    /// The same, with where the values of the leading key columns change; `changes` is that of the whole walk.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub fn next_leaf_by_keys(
        &mut self,
        pages: &mut impl TreePages,
        changes: &mut KeyChanges,
        tids: &mut Vec<OrderedTid>,
    ) -> Result<bool> {
        let order = self.search.order;
        self.visit_leaf(pages, |tuple| {
            let mut begins_key = changes.begins_key(order, tuple);
            for tid in tuple.heap_tids() {
                tids.push(OrderedTid { tid, begins_key });
                begins_key = false;
            }
        })
    }

    fn visit_leaf(
        &mut self,
        pages: &mut impl TreePages,
        visit: impl FnMut(&IndexTuple<'_>),
    ) -> Result<bool> {
        let Some(walk) = &mut self.leaves else { return Ok(false) };
        let Some((block, page)) = walk.next(pages)? else {
            self.leaves = None;
            return Ok(false);
        };
        self.last = Some(block);
        match entries_of(&page, self.search, visit) {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.leaves = None;
                Ok(false)
            }
            Err(error) => Err(pages.damage(block, error.to_string())),
        }
    }
}

/// Visits what a leaf has of the range; false when the leaves after it have nothing.
fn entries_of(
    page: &BtreePage<'_>,
    search: KeySearch<'_>,
    mut visit: impl FnMut(&IndexTuple<'_>),
) -> Result<bool, FormatError> {
    let beyond = match search.direction {
        Direction::Forward => Place::Behind,
        Direction::Backward => Place::Before,
    };
    let (first, last) = (page.first_data_item(), page.item_count());
    let begin = first_not_before(page, search)?;
    for step in 0..page.data_item_count().saturating_sub(begin) {
        let number = match search.direction {
            Direction::Forward => first + begin + step,
            Direction::Backward => last - begin - step,
        };
        let tuple = page.item(number)?;
        if tuple.is_marked_pivot() {
            let what = format!("item {number} of a leaf is a pivot tuple, which has no heap TID");
            return Err(FormatError::corrupt("B-tree page", 0, what));
        }
        let place = search.place(&tuple);
        if place == beyond {
            return Ok(false);
        }
        if place == Place::Inside {
            visit(&tuple);
        }
    }
    let high = page.high_key()?;
    Ok(search.direction == Direction::Backward
        || high.is_none_or(|high| search.place(&high) != Place::Behind))
}

/// How many entries of a leaf come before the range in this direction.
fn first_not_before(page: &BtreePage<'_>, search: KeySearch<'_>) -> Result<u16, FormatError> {
    let (first, last) = (page.first_data_item(), page.item_count());
    let (mut low, mut high) = (0, page.data_item_count());
    while low < high {
        let middle = low + (high - low) / 2;
        let is_earlier = match search.direction {
            Direction::Forward => search.place(&page.item(first + middle)?) == Place::Before,
            Direction::Backward => search.place(&page.item(last - middle)?) == Place::Behind,
        };
        match is_earlier {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

/// Whether a range behind all earlier leaves begins on this one, or nowhere.
fn begins_within(
    pages: &mut impl TreePages,
    search: KeySearch<'_>,
    leaf: BlockNumber,
) -> Result<bool> {
    let page = tree_page(pages, leaf)?;
    if page.flags().is_ignored() || page.level() != 0 {
        return Ok(false);
    }
    match page.high_key() {
        Ok(high) => Ok(high.is_none_or(|high| search.place(&high) != Place::Before)),
        Err(error) => Err(pages.damage(leaf, error.to_string())),
    }
}

/// The leaf to begin with; `None` in an index that never had an entry.
fn descend(pages: &mut impl TreePages, search: KeySearch<'_>) -> Result<Option<BlockNumber>> {
    let Some((mut block, top)) = root(pages)? else { return Ok(None) };
    for level in (0..=top).rev() {
        block = move_right(pages, block, level, search)?;
        if level > 0 {
            let page = tree_page(pages, block)?;
            let child = chosen(&page, search);
            let child = child.map_err(|error| pages.damage(block, error.to_string()))?;
            block = page_downlink(pages, block, child)?;
        }
    }
    Ok(Some(block))
}

/// The root, and its level.
fn root(pages: &mut impl TreePages) -> Result<Option<(BlockNumber, u32)>> {
    if pages.blocks() == 0 {
        return Err(pages.damage(META_BLOCK, "the index has no meta page".into()));
    }
    let meta = BtreeMeta::parse(pages.page(META_BLOCK)?);
    let meta = meta.map_err(|error| pages.damage(META_BLOCK, error.to_string()))?;
    if meta.level > MAX_LEVELS {
        let what = format!("the root is said to be on level {}", meta.level);
        return Err(pages.damage(META_BLOCK, what));
    }
    Ok(meta.root.map(|root| (root, meta.level)))
}

fn page_downlink(
    pages: &mut impl TreePages,
    block: BlockNumber,
    item: Option<u16>,
) -> Result<BlockNumber> {
    let page = tree_page(pages, block)?;
    let Some(item) = item else {
        let what = format!("no downlink on this page of level {}", page.level());
        return Err(pages.damage(block, what));
    };
    match page.item(item) {
        Ok(tuple) => Ok(tuple.downlink()),
        Err(error) => Err(pages.damage(block, error.to_string())),
    }
}

/// The number of the item of an internal page below which the search goes on.
fn chosen(page: &BtreePage<'_>, search: KeySearch<'_>) -> Result<Option<u16>, FormatError> {
    if page.data_item_count() == 0 {
        return Ok(None);
    }
    // The first item is before every key, whatever it holds.
    let (mut low, mut high) = (page.first_data_item(), page.item_count() + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let place = search.place(&page.item(middle)?);
        let goes_on = match search.direction {
            Direction::Forward => place == Place::Before,
            Direction::Backward => place != Place::Behind,
        };
        match goes_on {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(Some(low))
}

/// From where a downlink leads to the page of the level where the search belongs.
fn move_right(
    pages: &mut impl TreePages,
    from: BlockNumber,
    level: u32,
    search: KeySearch<'_>,
) -> Result<BlockNumber> {
    let mut block = from;
    for _ in 0..=pages.blocks() {
        let page = tree_page(pages, block)?;
        let (flags, found, next) = (page.flags(), page.level(), page.next());
        if flags.is_ignored() {
            match next {
                Some(next) => block = next,
                None => {
                    let what = "the last page of its level is not in use".to_owned();
                    return Err(pages.damage(block, what));
                }
            }
            continue;
        }
        if found != level {
            let what = format!("on level {found}, where one of level {level} belongs");
            return Err(pages.damage(block, what));
        }
        let high = match page.high_key() {
            Ok(high) => high.map(|high| search.place(&high)),
            Err(error) => return Err(pages.damage(block, error.to_string())),
        };
        let is_further = match search.direction {
            Direction::Forward => high == Some(Place::Before),
            Direction::Backward => high.is_some_and(|place| place != Place::Behind),
        };
        match next.filter(|_| is_further) {
            Some(next) => block = next,
            None => return Ok(block),
        }
    }
    Err(pages.damage(block, format!("the pages of level {level} run in a circle")))
}

/// About which part of an index a range is, at least, by the downlinks of its root; nothing where the root is a leaf.
///
/// # Errors
/// When the root is damaged or cannot be read.
pub fn least_share(pages: &mut impl TreePages, order: &KeyOrder, range: &KeyRange) -> Result<f64> {
    let Some((block, level)) = root(pages)? else { return Ok(0.0) };
    let page = tree_page(pages, block)?;
    if level == 0 || page.flags().is_ignored() || page.has_high_key() {
        return Ok(0.0);
    }
    let end = |direction| chosen(&page, KeySearch { order, range, direction });
    let ends = end(Direction::Forward).and_then(|first| Ok(first.zip(end(Direction::Backward)?)));
    let count = f64::from(page.data_item_count());
    let ends = ends.map_err(|error| pages.damage(block, error.to_string()))?;
    Ok(ends.map_or(0.0, |(first, last)| f64::from(last.saturating_sub(first + 1)) / count))
}

#[cfg(test)]
mod tests;
