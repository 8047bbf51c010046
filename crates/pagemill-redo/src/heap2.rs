//! Redo of the other heap records: pages that become all-visible, many tuples inserted at once, older versions
//! of a row locked; pruning, vacuum and freezing are in `prune`.
//!
//! Sources: `heap_xlog_visible`, `heap_xlog_multi_insert` and `heap_xlog_lock_updated` in
//! `src/backend/access/heap/heapam.c` (`heapam_xlog.c` from 18 on), PostgreSQL 14 to 18.

use pagemill_format::{BlockBytes, Fork, PgVersion, Result, Tid};

use crate::change::{Change, PageLsn};
use crate::heap::{LockedTuple, open};
use crate::heap_tuple::{LoggedHeader, LoggedTuple, TupleHeader};
use crate::page_items::PageItems;
use crate::{prune, visibility_map};

/// Kinds of records. The first three mean others before 17.
pub(crate) const PRUNE: u8 = 0x10;
pub(crate) const VACUUM: u8 = 0x20;
pub(crate) const FREEZE: u8 = 0x30;
const VISIBLE: u8 = 0x40;
pub(crate) const MULTI_INSERT: u8 = 0x50;
pub(crate) const LOCK_UPDATED: u8 = 0x60;
const KINDS: u8 = 0x70;
const INIT_PAGE: u8 = 0x80;

/// The heap's block reference, and where there are two in [`VISIBLE`].
const HEAP: u8 = 0;
const VISIBLE_MAP: u8 = 0;
const VISIBLE_HEAP: u8 = 1;

/// Flags of [`MULTI_INSERT`].
const ALL_VISIBLE_CLEARED: u8 = 0x01;
const ALL_FROZEN_SET: u8 = 0x20;

/// Redoes a heap2 record.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    let kind = change.kind() & KINDS;
    if kind == VISIBLE {
        return visible(page, change);
    }
    if change.block.fork == Fork::Vm {
        return visibility_map::clear(page, change, kind == LOCK_UPDATED);
    }
    if change.reference() != HEAP {
        return Err(change.unexpected_reference());
    }
    let mut items = open(page, change)?;
    let from_17 = change.version() >= PgVersion::V17;
    match kind {
        PRUNE | VACUUM | FREEZE if from_17 => prune::prune_and_freeze(&mut items, change)?,
        PRUNE => prune::prune(&mut items, change)?,
        VACUUM => prune::vacuum(&mut items, change)?,
        FREEZE if change.version() == PgVersion::V16 => prune::freeze_by_plan(&mut items, change)?,
        FREEZE => prune::freeze_one_by_one(&mut items, change)?,
        MULTI_INSERT => multi_insert(&mut items, change)?,
        LOCK_UPDATED => lock_updated(&mut items, change)?,
        _ => return Err(change.unexpected_kind()),
    }
    Ok(PageLsn::Advance)
}

/// The heap's page and its bits in the visibility map. The page's own bit is a hint, for which it gets an LSN
/// only where hints are logged.
fn visible(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match change.reference() {
        VISIBLE_MAP => visibility_map::set(page, change, VISIBLE_HEAP),
        VISIBLE_HEAP => {
            PageItems::open(page)?.set_all_visible(true);
            let is_logged = change.site.hints_logged;
            Ok(if is_logged { PageLsn::Advance } else { PageLsn::Keep })
        }
        _ => Err(change.unexpected_reference()),
    }
}

fn multi_insert(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (flags, _, count) = (main.u8()?, main.u8()?, main.u16()?);
    let mut data = change.data();
    for index in 0..count {
        // A page that is made anew has its tuples in order, and the record no numbers.
        let is_init = change.kind() & INIT_PAGE != 0;
        let line_pointer = if is_init { index.saturating_add(1) } else { main.u16()? };
        data.align(2);
        let len = usize::from(data.u16()?);
        let header = LoggedHeader::read(&mut data)?;
        let pieces = [data.bytes(len)?, &[], &[], &[]];
        let at = Tid { block: change.number(), line_pointer };
        LoggedTuple { xmin: change.xid(), xmax: 0, at, header, pieces }.insert(items)?;
    }
    if !data.is_empty() {
        return Err(data.corrupt(format!("{} bytes behind the last tuple", data.remaining())));
    }
    if flags & ALL_VISIBLE_CLEARED != 0 {
        items.set_all_visible(false);
    }
    if flags & ALL_FROZEN_SET != 0 {
        items.set_all_visible(true);
    }
    Ok(())
}

/// A version that was updated already is locked with its successor: where that is stays.
fn lock_updated(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let main = LockedTuple::read(&mut change.main())?;
    let mut header = TupleHeader::of(items.tuple_mut(main.number)?)?;
    header.set_infobits(main.infobits);
    header.set_xmax(main.xmax);
    Ok(())
}
