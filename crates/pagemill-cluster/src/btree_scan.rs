//! A whole B-tree in its own order: the leaf pages from the first to the last, or backward.
//!
//! No key is compared. The way leads from the meta page down the first (or last) downlinks, then
//! along the leaves' right (or left) links:
//!
//! ```text
//! meta ─► root ─► … ─► first leaf ⇄ leaf ⇄ (half dead) ⇄ leaf ⇄ last leaf
//!                 └─ downlinks of level 1: which leaves come next, read ahead of need
//! ```
//!
//! The links alone decide which leaf is next. The downlinks above are only a hint of what to read
//! ahead: a page that was split without its parent knowing, or is about to be deleted, has none.
//!
//! Invariants: each leaf is handed out once; a walk ends after at most as many pages as the index
//! has; where neighbours disagree about each other, or a page is on another level than the one
//! above says, the walk ends with an error that names the block. Only under a running server, whose
//! pages change while they are read, siblings may disagree.
//!
//! Source: `_bt_get_endpoint`, `_bt_readnextpage` and `_bt_readpage` in
//! `src/backend/access/nbtree/nbtsearch.c`, `src/backend/access/nbtree/README`, PostgreSQL 14 to 18.

use std::collections::VecDeque;

use pagemill_format::btree::{BtreeMeta, BtreePage, IndexTuple, META_BLOCK};
use pagemill_format::{BlockBytes, BlockNumber, Error as FormatError};

use crate::error::{Error, Result};

/// Levels a B-tree of 32-bit block numbers cannot exceed.
pub(crate) const MAX_LEVELS: u32 = 32;
/// Leaves that are asked for ahead of need: at first, and at most (1 MiB).
const FIRST_AHEAD: usize = 4;
const MOST_AHEAD: usize = 128;

/// Where the pages of an index come from.
pub trait TreePages {
    /// A page, checked as every page is.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    fn page(&mut self, block: BlockNumber) -> Result<&BlockBytes>;

    /// True when [`TreePages::page`] need not read.
    fn holds(&self, block: BlockNumber) -> bool;

    /// These pages will be asked for soon, in this order. What cannot be read is no error yet.
    fn will_want(&mut self, blocks: &[BlockNumber]);

    /// How many blocks the index has.
    fn blocks(&self) -> u32;

    /// Damage found in a block.
    fn damage(&self, block: BlockNumber, what: String) -> Error;
}

/// Which way an index is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From its first entry on.
    #[default]
    Forward,
    /// From its last entry back.
    Backward,
}

impl Direction {
    /// The page that comes after this one.
    fn next_of(self, page: &BtreePage<'_>) -> Option<BlockNumber> {
        match self {
            Self::Forward => page.next(),
            Self::Backward => page.previous(),
        }
    }

    /// The page that comes before this one.
    fn previous_of(self, page: &BtreePage<'_>) -> Option<BlockNumber> {
        match self {
            Self::Forward => page.previous(),
            Self::Backward => page.next(),
        }
    }

    fn sides(self) -> (&'static str, &'static str) {
        match self {
            Self::Forward => ("right", "left"),
            Self::Backward => ("left", "right"),
        }
    }

    /// The downlinks of a page that is not a leaf, in this order.
    fn downlinks(self, page: &BtreePage<'_>) -> Result<Vec<BlockNumber>, FormatError> {
        let mut links: Vec<BlockNumber> =
            page.items().map(|item| Ok(item?.downlink())).collect::<Result<_, _>>()?;
        if self == Self::Backward {
            links.reverse();
        }
        Ok(links)
    }
}

/// A walk over the leaves of one index.
#[derive(Debug)]
pub struct LeafWalk {
    direction: Direction,
    /// Whether neighbours have to agree about each other.
    strict: bool,
    /// The page to go on with, and the one whose link leads there.
    next: Option<BlockNumber>,
    from: Option<BlockNumber>,
    /// Pages the walk may still come to.
    steps_left: u32,
    ahead: Ahead,
}

/// Which leaves come next, as the level above tells.
#[derive(Debug, Default)]
struct Ahead {
    /// Those not yet come to, in order.
    leaves: VecDeque<BlockNumber>,
    /// The page of level 1 to go on with; none once it cannot tell any more.
    parent: Option<BlockNumber>,
    /// Pages of level 1 that may still be looked at.
    parents_left: u32,
    /// How many leaves are asked for at once.
    distance: usize,
}

impl LeafWalk {
    /// Goes down to the first leaf. `strict` says that no server is changing the pages.
    ///
    /// # Errors
    /// When a page on the way is damaged or cannot be read.
    pub fn start(pages: &mut impl TreePages, direction: Direction, strict: bool) -> Result<Self> {
        let blocks = pages.blocks();
        let ahead = Ahead { distance: FIRST_AHEAD, parents_left: blocks, ..Ahead::default() };
        let mut walk =
            Self { direction, strict, next: None, from: None, steps_left: blocks, ahead };
        if blocks == 0 {
            // What an index of no blocks lacks is told by its meta page.
            return Err(pages.damage(META_BLOCK, "the index has no meta page".into()));
        }
        let meta = BtreeMeta::parse(pages.page(META_BLOCK)?);
        let meta = meta.map_err(|error| pages.damage(META_BLOCK, error.to_string()))?;
        if let Some(root) = meta.root {
            walk.descend(pages, root, meta.level)?;
        }
        Ok(walk)
    }

    /// A walk that begins at a leaf, and reads none ahead.
    pub(crate) fn from_leaf(
        pages: &impl TreePages,
        leaf: BlockNumber,
        direction: Direction,
        strict: bool,
    ) -> Self {
        let ahead = Ahead { distance: FIRST_AHEAD, ..Ahead::default() };
        let steps_left = pages.blocks();
        Self { direction, strict, next: Some(leaf), from: None, steps_left, ahead }
    }

    fn descend(
        &mut self,
        pages: &mut impl TreePages,
        root: BlockNumber,
        root_level: u32,
    ) -> Result<()> {
        if root_level > MAX_LEVELS {
            let what = format!("the root is said to be on level {root_level}");
            return Err(pages.damage(META_BLOCK, what));
        }
        let mut block = root;
        for level in (1..=root_level).rev() {
            block = self.edge(pages, block, level)?;
            let page = tree_page(pages, block)?;
            let links = self.direction.downlinks(&page);
            let links = links.map_err(|error| pages.damage(block, error.to_string()))?;
            let Some(child) = links.first().copied() else {
                let what = format!("no downlink on this page of level {level}");
                return Err(pages.damage(block, what));
            };
            if level == 1 {
                self.ahead.parent = Some(block);
            }
            block = child;
        }
        let block = self.edge(pages, block, 0)?;
        if self.strict && self.direction == Direction::Forward {
            self.check_first(pages, block)?;
        }
        self.next = Some(block);
        Ok(())
    }

    /// From where a downlink leads to the page at the edge of the level: past pages no longer in
    /// use, and backward past those that were split without their parent knowing.
    fn edge(
        &mut self,
        pages: &mut impl TreePages,
        from: BlockNumber,
        level: u32,
    ) -> Result<BlockNumber> {
        let mut block = from;
        for _ in 0..=pages.blocks() {
            let page = tree_page(pages, block)?;
            let ignored = page.flags().is_ignored();
            if !ignored && page.level() != level {
                let what = format!("on level {}, where one of level {level} belongs", page.level());
                return Err(pages.damage(block, what));
            }
            let passed =
                ignored || (self.direction == Direction::Backward && page.next().is_some());
            match page.next() {
                Some(next) if passed => block = next,
                None if ignored => {
                    let what = "the last page of its level is not in use".to_owned();
                    return Err(pages.damage(block, what));
                }
                _ => return Ok(block),
            }
        }
        Err(pages.damage(block, format!("the pages of level {level} run in a circle")))
    }

    /// Left of the first leaf there may only be pages about to be deleted.
    fn check_first(&self, pages: &mut impl TreePages, first: BlockNumber) -> Result<()> {
        let mut left = tree_page(pages, first)?.previous();
        for _ in 0..=pages.blocks() {
            let Some(block) = left else { return Ok(()) };
            let page = tree_page(pages, block)?;
            if !page.flags().is_ignored() {
                let what = format!(
                    "it is left of block {first}, to which the first downlinks of the tree lead"
                );
                return Err(pages.damage(block, what));
            }
            left = page.previous();
        }
        Err(pages.damage(first, "the pages left of it run in a circle".into()))
    }

    /// The next leaf that is in use, with its block; `None` after the last.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read. The walk is then over.
    pub fn next<'p>(
        &mut self,
        pages: &'p mut impl TreePages,
    ) -> Result<Option<(BlockNumber, BtreePage<'p>)>> {
        loop {
            let Some(block) = self.next.take() else { return Ok(None) };
            let Some(left) = self.steps_left.checked_sub(1) else {
                return Err(pages.damage(block, "the leaf pages run in a circle".into()));
            };
            self.steps_left = left;
            self.look_ahead(pages, block);
            let page = tree_page(pages, block)?;
            let (flags, level) = (page.flags(), page.level());
            let back = self.direction.previous_of(&page);
            self.next = self.direction.next_of(&page);
            if flags.is_deleted() {
                // Its links are as they were when it was cut out: they tell nothing about others.
                self.from = None;
                continue;
            }
            if level != 0 {
                let what = format!("on level {level}, in the chain of leaf pages");
                return Err(pages.damage(block, what));
            }
            if let Some(from) = self.from.replace(block).filter(|from| back != Some(*from))
                && self.strict
            {
                return Err(pages.damage(block, self.disagreement(from, back)));
            }
            if !flags.is_ignored() {
                return Ok(Some((block, tree_page(pages, block)?)));
            }
        }
    }

    fn disagreement(&self, from: BlockNumber, back: Option<BlockNumber>) -> String {
        let (next, previous) = self.direction.sides();
        let back = back.map_or("none".to_owned(), |block| format!("block {block}"));
        format!(
            "the {next} link of block {from} leads here, and the {previous} link here to {back}"
        )
    }

    /// Asks for the leaves from `block` on, unless it is there already.
    fn look_ahead(&mut self, pages: &mut impl TreePages, block: BlockNumber) {
        let ahead = &mut self.ahead;
        if pages.holds(block) {
            return;
        }
        ahead.learn(pages, self.direction, block);
        let Some(at) = ahead.leaves.iter().position(|leaf| *leaf == block) else { return };
        ahead.leaves.drain(..at);
        let wanted: Vec<BlockNumber> = ahead.leaves.iter().take(ahead.distance).copied().collect();
        pages.will_want(&wanted);
        ahead.distance = (ahead.distance * 2).min(MOST_AHEAD);
    }
}

impl Ahead {
    /// Takes downlinks from level 1 until there are enough of them from `block` on.
    fn learn(&mut self, pages: &mut impl TreePages, direction: Direction, block: BlockNumber) {
        let enough = |leaves: &VecDeque<BlockNumber>, distance: usize| {
            let at = leaves.iter().position(|leaf| *leaf == block);
            at.is_some_and(|at| leaves.len() - at >= distance)
        };
        while !enough(&self.leaves, self.distance) {
            let Some(parent) = self.parent.take() else { return };
            let Some(left) = self.parents_left.checked_sub(1) else { return };
            self.parents_left = left;
            // A damaged parent is met, and told, where the tree depends on it; here it only ends
            // the looking ahead.
            let Ok(page) = tree_page(pages, parent) else { return };
            if page.flags().is_ignored() {
                self.parent = direction.next_of(&page);
                continue;
            }
            let Ok(links) = direction.downlinks(&page) else { return };
            if page.level() != 1 {
                return;
            }
            self.parent = direction.next_of(&page);
            // Leaves come to without a downlink of theirs are of no use any more.
            if !self.leaves.contains(&block) {
                self.leaves.clear();
            }
            self.leaves.extend(links);
        }
    }
}

pub(crate) fn tree_page(pages: &mut impl TreePages, block: BlockNumber) -> Result<BtreePage<'_>> {
    if block.0 >= pages.blocks() {
        let what = format!("a link leads to this block, and the index has {}", pages.blocks());
        return Err(pages.damage(block, what));
    }
    // The page is parsed twice, so that the error can be made while nothing is borrowed.
    if let Err(error) = BtreePage::parse(pages.page(block)?) {
        return Err(pages.damage(block, error.to_string()));
    }
    Ok(BtreePage::parse(pages.page(block)?)?)
}

/// Hands every entry of a leaf that is not known to be dead to `visit`, in the order of a scan. The
/// TIDs of a posting list are in ascending order whatever the direction, as PostgreSQL gives them.
///
/// # Errors
/// What `visit` returns ends the walk over the page.
#[inline]
pub fn leaf_entries<E>(
    page: &BtreePage<'_>,
    direction: Direction,
    mut visit: impl FnMut(u16, Result<IndexTuple<'_>, FormatError>) -> Result<(), E>,
) -> Result<(), E> {
    let (first, last) = (page.first_data_item(), page.item_count());
    for step in 0..page.data_item_count() {
        let number = match direction {
            Direction::Forward => first + step,
            Direction::Backward => last - step,
        };
        let found = match page.item(number) {
            Ok(tuple) if tuple.is_dead() => continue,
            Ok(tuple) if tuple.is_marked_pivot() => Err(pivot_on_leaf(number)),
            found => found,
        };
        visit(number, found)?;
    }
    Ok(())
}

#[cold]
fn pivot_on_leaf(number: u16) -> FormatError {
    let what = format!("item {number} of a leaf is a pivot tuple, which has no heap TID");
    FormatError::corrupt("B-tree page", 0, what)
}

#[cfg(test)]
mod tests;
