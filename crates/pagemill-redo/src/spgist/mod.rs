//! Records of SP-GiST indexes.
//!
//! Line pointers are addresses here: chains of leaf tuples, and downlinks in the nodes of inner tuples, name them.
//! So no number changes while something may lead to it. What goes leaves a *dead tuple* under its number: a
//! redirection to where it went, a dead one that ends a chain, or a placeholder that the next tuple may take.
//!
//! Sources: `src/backend/access/spgist/{spgxlog,spgdoinsert,spgutils}.c`,
//! `src/include/access/{spgist_private,spgxlog}.h`, PostgreSQL 14 to 18. The main data of the cleanup of redirections
//! has one more field since 16.

mod moves;
mod tuples;
mod vacuum;

use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, Result};

use crate::change::{Change, PageLsn};
use tuples::{SpGistPage, next_inner, next_leaf};

const ADD_LEAF: u8 = 0x10;
const MOVE_LEAFS: u8 = 0x20;
const ADD_NODE: u8 = 0x30;
const SPLIT_TUPLE: u8 = 0x40;
const PICKSPLIT: u8 = 0x50;
const VACUUM_LEAF: u8 = 0x60;
const VACUUM_ROOT: u8 = 0x70;
const VACUUM_REDIRECT: u8 = 0x80;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match (change.kind(), change.reference()) {
        (ADD_LEAF, 0 | 1) => add_leaf(page, change),
        (MOVE_LEAFS, 0..=2) => moves::move_leaves(page, change),
        (ADD_NODE, 0..=2) => add_node(page, change),
        (SPLIT_TUPLE, 0 | 1) => split_tuple(page, change),
        (PICKSPLIT, 0..=3) => moves::pick_split(page, change),
        (VACUUM_LEAF, 0) => vacuum::leaf(page, change),
        (VACUUM_ROOT, 0) => vacuum::root(page, change),
        (VACUUM_REDIRECT, 0) => vacuum::redirections(page, change),
        (ADD_LEAF..=VACUUM_REDIRECT, _) => Err(change.unexpected_reference()),
        _ => Err(change.unexpected_kind()),
    }?;
    Ok(PageLsn::Advance)
}

/// Where the link is that leads to a tuple: a node of an inner tuple.
struct Link {
    /// The number of the inner tuple; 0 when the tuple is the root.
    parent: u16,
    /// The node within it, counted from 0.
    node: u16,
}

impl Link {
    fn read(main: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { parent: main.u16()?, node: main.u16()? })
    }
}

/// What the pages become that the record makes anew.
#[derive(Clone, Copy)]
struct NewPage {
    is_new: bool,
    is_leaf: bool,
    stores_nulls: bool,
}

impl NewPage {
    fn open(self, page: &mut BlockBytes) -> Result<SpGistPage<'_>> {
        if self.is_new {
            SpGistPage::init(page, self.is_leaf, self.stores_nulls)
        } else {
            SpGistPage::open(page)
        }
    }
}

/// A leaf tuple joins a chain (block 0), or begins one, to which a node of the parent (block 1) then leads.
fn add_leaf(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (is_new, stores_nulls) = (main.u8()? != 0, main.u8()? != 0);
    let (number, head) = (main.u16()?, main.u16()?);
    let link = Link::read(&mut main)?;
    if change.reference() == 1 {
        return SpGistPage::open(page)?.set_link(&link, change.needed(0)?, number);
    }
    let leaf = next_leaf(&mut main)?;
    let mut page = NewPage { is_new, is_leaf: true, stores_nulls }.open(page)?;
    if number == head {
        // It takes the place of a dead tuple that the chain has left.
        return page.replace(leaf, number);
    }
    page.add(leaf, number)?;
    // The tuple has the rest of the chain behind it already.
    if head == 0 { Ok(()) } else { page.set_next(head, number) }
}

/// An inner tuple gets another node. If it does not fit where it was (block 0), it goes to block 1, and leaves a
/// redirection; the parent's page says block 0, 1 or 2.
fn add_node(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (number, new_number) = (main.u16()?, main.u16()?);
    let (is_new, parent_reference) = (main.u8()? != 0, main.u8()?);
    let link = Link::read(&mut main)?;
    main.align(4);
    let state = moves::State::read(&mut main)?;
    let tuple = next_inner(&mut main)?;
    let Some(new_block) = change.other(1) else {
        return SpGistPage::open(page)?.replace(tuple, number);
    };
    let is_target = change.reference() == 1;
    let mut page =
        NewPage { is_new: is_new && is_target, is_leaf: false, stores_nulls: false }.open(page)?;
    match change.reference() {
        0 => page.replace_by_dead(number, state.moved_to(new_block, new_number))?,
        1 => page.add(tuple, new_number)?,
        _ => {}
    }
    if parent_reference == change.reference() {
        page.set_link(&link, new_block, new_number)?;
    }
    Ok(())
}

/// The prefix of an inner tuple is split: what is left of the tuple (block 0) leads to the rest (block 1, or block 0
/// too).
fn split_tuple(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (prefix_number, postfix_number) = (main.u16()?, main.u16()?);
    let (is_new, is_same_page) = (main.u8()? != 0, main.u8()? != 0);
    let (prefix, postfix) = (next_inner(&mut main)?, next_inner(&mut main)?);
    if change.reference() == 1 {
        let mut page = NewPage { is_new, is_leaf: false, stores_nulls: false }.open(page)?;
        return page.add(postfix, postfix_number);
    }
    let mut page = SpGistPage::open(page)?;
    page.replace(prefix, prefix_number)?;
    if is_same_page { page.add(postfix, postfix_number) } else { Ok(()) }
}
