//! Leaf tuples that go to another page: a chain as a whole, or, when a chain has become too long, its tuples in
//! groups, under a new inner tuple.
//!
//! Of what goes, the first tuple becomes a redirection, since scans may be on their way to it, and the others
//! placeholders. While an index is built there are no scans, so all become placeholders.
//!
//! Sources: `spgRedoMoveLeafs` and `spgRedoPickSplit` in `src/backend/access/spgist/spgxlog.c`,
//! `src/include/access/spgxlog.h`, PostgreSQL 14 to 18.

use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, BlockNumber, Result, TransactionId};

use super::tuples::{DeadTuple, PLACEHOLDER, REDIRECT, SpGistPage, next_inner, next_leaf};
use super::{Link, NewPage};
use crate::change::Change;
use crate::index_page::numbers;

/// Who moves tuples.
pub(super) struct State {
    xid: TransactionId,
    is_build: bool,
}

impl State {
    /// Reads what records have of it, with the padding behind.
    pub(super) fn read(main: &mut Reader<'_>) -> Result<Self> {
        let (xid, is_build) = (TransactionId(main.u32()?), main.u8()? != 0);
        main.align(4);
        Ok(Self { xid, is_build })
    }

    /// What stays of a tuple that went there.
    pub(super) fn moved_to(&self, block: BlockNumber, number: u16) -> DeadTuple {
        if self.is_build {
            return DeadTuple::of(PLACEHOLDER);
        }
        DeadTuple { state: REDIRECT, target: Some((block, number, self.xid)) }
    }
}

/// A chain leaves block 0 for block 1, where a new tuple joins it; a node of the parent (block 2) leads there.
pub(super) fn move_leaves(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let moved = usize::from(main.u16()?);
    let (is_new, replaces_dead, stores_nulls) = (main.u8()? != 0, main.u8()? != 0, main.u8()? != 0);
    main.align(2);
    let link = Link::read(&mut main)?;
    main.align(4);
    let state = State::read(&mut main)?;
    let added = if replaces_dead { 1 } else { moved + 1 };
    let old = numbers(&mut main, moved)?;
    let new = numbers(&mut main, added)?;
    let target = change.needed(1)?;
    // The chain begins with the tuple that was added last.
    let head = new.last().copied().unwrap_or_default();
    match change.reference() {
        0 => {
            let rest = DeadTuple::of(PLACEHOLDER);
            SpGistPage::open(page)?.replace_all(&old, state.moved_to(target, head), rest)
        }
        1 => {
            let mut page = NewPage { is_new, is_leaf: true, stores_nulls }.open(page)?;
            new.iter().try_for_each(|number| page.add(next_leaf(&mut main)?, *number))
        }
        _ => SpGistPage::open(page)?.set_link(&link, target, head),
    }
}

/// The main data of a split of a chain, up to the lists.
struct PickSplit {
    is_root_split: bool,
    deleted: usize,
    inserted: usize,
    inits_source: bool,
    inits_target: bool,
    inner_number: u16,
    inits_inner: bool,
    stores_nulls: bool,
    inner_is_parent: bool,
    link: Link,
    state: State,
}

impl PickSplit {
    fn read(main: &mut Reader<'_>) -> Result<Self> {
        let is_root_split = main.u8()? != 0;
        main.align(2);
        let (deleted, inserted) = (usize::from(main.u16()?), usize::from(main.u16()?));
        let (inits_source, inits_target) = (main.u8()? != 0, main.u8()? != 0);
        let inner_number = main.u16()?;
        let (inits_inner, stores_nulls) = (main.u8()? != 0, main.u8()? != 0);
        let inner_is_parent = main.u8()? != 0;
        main.align(2);
        let link = Link::read(main)?;
        main.align(4);
        let state = State::read(main)?;
        Ok(Self {
            is_root_split,
            deleted,
            inserted,
            inits_source,
            inits_target,
            inner_number,
            inits_inner,
            stores_nulls,
            inner_is_parent,
            link,
            state,
        })
    }

    fn leaf_page(&self, is_new: bool) -> NewPage {
        NewPage { is_new, is_leaf: true, stores_nulls: self.stores_nulls }
    }
}

/// A chain (block 0) is split: its tuples come to lie on block 0 again or on block 1, in chains to which a new inner
/// tuple (block 2) leads, to which its parent (block 2 too, or block 3) does.
pub(super) fn pick_split(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let split = PickSplit::read(&mut main)?;
    let deleted = numbers(&mut main, split.deleted)?;
    let inserted = numbers(&mut main, split.inserted)?;
    let to_target = main.bytes(split.inserted)?;
    let inner = next_inner(&mut main)?;
    let inner_block = change.needed(2)?;
    let mut page = match change.reference() {
        // The root is split in place: it is the inner tuple's page only.
        0 if split.is_root_split => return Err(change.unexpected_reference()),
        0 => split.leaf_page(split.inits_source).open(page)?,
        1 => split.leaf_page(split.inits_target).open(page)?,
        2 => {
            let new = split.leaf_page(split.inits_inner);
            let mut page = NewPage { is_leaf: false, ..new }.open(page)?;
            page.add(inner, split.inner_number)?;
            if split.inner_is_parent {
                page.set_link(&split.link, inner_block, split.inner_number)?;
            }
            return Ok(());
        }
        _ => {
            let mut page = SpGistPage::open(page)?;
            return page.set_link(&split.link, inner_block, split.inner_number);
        }
    };
    if change.reference() == 0 && !split.inits_source {
        let first = split.state.moved_to(inner_block, split.inner_number);
        page.replace_all(&deleted, first, DeadTuple::of(PLACEHOLDER))?;
    }
    for (number, is_target) in inserted.iter().zip(to_target) {
        let leaf = next_leaf(&mut main)?;
        if (*is_target != 0) == (change.reference() == 1) {
            page.add(leaf, *number)?;
        }
    }
    Ok(())
}
