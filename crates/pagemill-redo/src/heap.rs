//! Redo of heap records: tuples inserted, deleted, updated, locked, confirmed, and overwritten in place.
//!
//! What the server does to the page of an update's old version and to that of its new one is done to the one
//! page that is asked for; to a page that has both, in the server's order: the old version first, since the new one may
//! repeat parts of its attributes.
//!
//! Invariant: an attribute is copied from the old version before anything is written that could lie over it.
//!
//! Sources: `heap_xlog_*` in `src/backend/access/heap/heapam.c` (`heapam_xlog.c` from 18 on),
//! `src/include/access/heapam_xlog.h`, PostgreSQL 14 to 18.

use pagemill_format::reader::Reader;
use pagemill_format::tuple::TUPLE_HEADER_BYTES;
use pagemill_format::{BlockBytes, Fork, Result, Tid, TransactionId};

use crate::change::{Change, PageLsn};
use crate::heap_tuple::{LoggedHeader, LoggedTuple, MOVED_PARTITIONS, TupleHeader};
use crate::page_items::PageItems;
use crate::visibility_map;

/// Kinds of records, without the bit below.
pub(crate) const INSERT: u8 = 0x00;
pub(crate) const DELETE: u8 = 0x10;
pub(crate) const UPDATE: u8 = 0x20;
pub(crate) const HOT_UPDATE: u8 = 0x40;
pub(crate) const CONFIRM: u8 = 0x50;
pub(crate) const LOCK: u8 = 0x60;
pub(crate) const INPLACE: u8 = 0x70;
pub(crate) const KINDS: u8 = 0x70;
/// Block 0 is initialized first.
pub(crate) const INIT_PAGE: u8 = 0x80;

/// Block references: what a record is about, or the page of an update's new version; that of its old one, if
/// it is another.
pub(crate) const HEAP: u8 = 0;
pub(crate) const OLD: u8 = 1;

/// Flags: the page is no longer all-visible. For an update the first is about the old page.
const ALL_VISIBLE_CLEARED: u8 = 0x01;
const NEW_ALL_VISIBLE_CLEARED: u8 = 0x02;
/// Flags of an update: the new version begins, or ends, as the old one.
const PREFIX_FROM_OLD: u8 = 0x20;
const SUFFIX_FROM_OLD: u8 = 0x40;
/// Flags of a deletion: an insertion that lost a race is taken back; the row went to another partition.
pub(crate) const IS_SUPER: u8 = 0x08;
pub(crate) const IS_PARTITION_MOVE: u8 = 0x10;

/// Redoes a heap record.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    let kind = change.kind() & KINDS;
    if change.block.fork == Fork::Vm {
        let is_update = matches!(kind, UPDATE | HOT_UPDATE);
        return match is_update {
            true => visibility_map::clear_of_update(page, change),
            false => visibility_map::clear(page, change, kind == LOCK),
        };
    }
    let may_have_old = kind == UPDATE && change.reference() == OLD;
    if change.reference() != HEAP && !may_have_old {
        return Err(change.unexpected_reference());
    }
    let mut items = open(page, change)?;
    match kind {
        INSERT => insert(&mut items, change)?,
        DELETE => delete(&mut items, change)?,
        UPDATE | HOT_UPDATE => update(&mut items, change)?,
        CONFIRM => confirm(&mut items, change)?,
        LOCK => lock(&mut items, change)?,
        INPLACE => overwrite(&mut items, change)?,
        _ => return Err(change.unexpected_kind()),
    }
    Ok(PageLsn::Advance)
}

/// The page as the record finds it: empty, if it says so of its block 0.
pub(crate) fn open<'p>(page: &'p mut BlockBytes, change: Change<'_>) -> Result<PageItems<'p>> {
    match change.kind() & INIT_PAGE != 0 && change.reference() == HEAP {
        true => Ok(PageItems::init(page, 0)),
        false => PageItems::open(page),
    }
}

fn insert(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (number, flags) = (main.u16()?, main.u8()?);
    let mut data = change.data();
    let header = LoggedHeader::read(&mut data)?;
    let at = Tid { block: change.number(), line_pointer: number };
    let pieces = [data.rest(), &[], &[], &[]];
    LoggedTuple { xmin: change.xid(), xmax: 0, at, header, pieces }.insert(items)?;
    if flags & ALL_VISIBLE_CLEARED != 0 {
        items.set_all_visible(false);
    }
    Ok(())
}

fn delete(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let main = LockedTuple::read(&mut change.main())?;
    let mut header = TupleHeader::of(items.tuple_mut(main.number)?)?;
    header.set_infobits(main.infobits);
    header.set_hot_updated(false);
    match main.flags & IS_SUPER != 0 {
        true => header.set_xmin(TransactionId::INVALID),
        false => header.set_xmax(main.xmax),
    }
    header.set_first_command();
    let itself = Tid { block: change.number(), line_pointer: main.number };
    let is_moved = main.flags & IS_PARTITION_MOVE != 0;
    header.set_ctid(if is_moved { MOVED_PARTITIONS } else { itself });
    items.set_prunable(change.xid());
    if main.flags & ALL_VISIBLE_CLEARED != 0 {
        items.set_all_visible(false);
    }
    Ok(())
}

/// What deletions and locks tell of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockedTuple {
    pub(crate) xmax: u32,
    pub(crate) number: u16,
    pub(crate) infobits: u8,
    pub(crate) flags: u8,
}

impl LockedTuple {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { xmax: r.u32()?, number: r.u16()?, infobits: r.u8()?, flags: r.u8()? })
    }
}

/// The main data of an update (`xl_heap_update`); what may follow is for logical decoding.
pub(crate) struct Update {
    pub(crate) old: LockedTuple,
    new_xmax: u32,
    pub(crate) new: Tid,
}

impl Update {
    pub(crate) fn read(change: Change<'_>) -> Result<Self> {
        let mut r = change.main();
        let old = LockedTuple::read(&mut r)?;
        let (new_xmax, line_pointer) = (r.u32()?, r.u16()?);
        let new = Tid { block: change.needed(HEAP)?, line_pointer };
        Ok(Self { old, new_xmax, new })
    }
}

fn update(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let update = Update::read(change)?;
    // A reference for the old page is there if it is another; it is told by its number, as references of the
    // visibility map may follow it or stand alone.
    let has_both = change.other(OLD).is_none();
    if change.reference() == OLD || has_both {
        mark_updated(items, &update, change)?;
    }
    if change.reference() == HEAP {
        insert_new_version(items, &update, has_both, change)?;
    }
    Ok(())
}

fn mark_updated(items: &mut PageItems<'_>, update: &Update, change: Change<'_>) -> Result<()> {
    let old = update.old;
    let mut header = TupleHeader::of(items.tuple_mut(old.number)?)?;
    header.set_infobits(old.infobits);
    header.set_hot_updated(change.kind() & KINDS == HOT_UPDATE);
    header.set_xmax(old.xmax);
    header.set_first_command();
    header.set_ctid(update.new);
    items.set_prunable(change.xid());
    if old.flags & ALL_VISIBLE_CLEARED != 0 {
        items.set_all_visible(false);
    }
    Ok(())
}

fn insert_new_version(
    items: &mut PageItems<'_>,
    update: &Update,
    has_both: bool,
    change: Change<'_>,
) -> Result<()> {
    let (mut data, flags) = (change.data(), update.old.flags);
    let prefix_len = if flags & PREFIX_FROM_OLD != 0 { usize::from(data.u16()?) } else { 0 };
    let suffix_len = if flags & SUFFIX_FROM_OLD != 0 { usize::from(data.u16()?) } else { 0 };
    let header = LoggedHeader::read(&mut data)?;
    let mut kept = Vec::new();
    if prefix_len + suffix_len > 0 {
        if !has_both {
            return Err(change.corrupt("parts of the old version, which is on another page"));
        }
        let old = items.item(update.old.number)?;
        kept.extend_from_slice(prefix(old, prefix_len, change)?);
        kept.extend_from_slice(suffix(old, suffix_len, change)?);
    }
    let (prefix, suffix) = kept.split_at(prefix_len);
    // The null bitmap is always from WAL; the prefix stands between it and the attributes that changed.
    let bitmap_len = match prefix_len {
        0 => 0,
        _ => usize::from(header.hoff).saturating_sub(TUPLE_HEADER_BYTES),
    };
    let bitmap = data.bytes(bitmap_len)?;
    let pieces = [bitmap, prefix, data.rest(), suffix];
    let (xmin, xmax, at) = (change.xid(), update.new_xmax, update.new);
    LoggedTuple { xmin, xmax, at, header, pieces }.insert(items)?;
    if flags & NEW_ALL_VISIBLE_CLEARED != 0 {
        items.set_all_visible(false);
    }
    Ok(())
}

/// The first bytes of a tuple's attributes.
fn prefix<'t>(old: &'t [u8], len: usize, change: Change<'_>) -> Result<&'t [u8]> {
    let hoff = old.get(TUPLE_HEADER_BYTES - 1).map_or(0, |hoff| usize::from(*hoff));
    let found = old.get(hoff..hoff + len);
    found.ok_or_else(|| change.corrupt(format!("{len} bytes of an old version of {}", old.len())))
}

/// The last bytes of a tuple.
fn suffix<'t>(old: &'t [u8], len: usize, change: Change<'_>) -> Result<&'t [u8]> {
    let found = old.len().checked_sub(len).and_then(|start| old.get(start..));
    found.ok_or_else(|| change.corrupt(format!("{len} bytes of an old version of {}", old.len())))
}

/// A speculative insertion was no mistake: its `ctid` no longer holds a token.
fn confirm(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let number = change.main().u16()?;
    let itself = Tid { block: change.number(), line_pointer: number };
    TupleHeader::of(items.tuple_mut(number)?)?.set_ctid(itself);
    Ok(())
}

/// `PD_ALL_VISIBLE` stays: a lock hides no row.
fn lock(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let main = LockedTuple::read(&mut change.main())?;
    let mut header = TupleHeader::of(items.tuple_mut(main.number)?)?;
    header.set_infobits(main.infobits);
    if header.is_only_locked() {
        header.set_hot_updated(false);
        header.set_ctid(Tid { block: change.number(), line_pointer: main.number });
    }
    header.set_xmax(main.xmax);
    header.set_first_command();
    Ok(())
}

/// A catalog row is overwritten without a new version. From 18 on, messages for other sessions follow.
fn overwrite(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let number = change.main().u16()?;
    let tuple = items.tuple_mut(number)?;
    let hoff = tuple.get(TUPLE_HEADER_BYTES - 1).map_or(0, |hoff| usize::from(*hoff));
    let new = change.block.data;
    let room = tuple.get_mut(hoff..).filter(|room| room.len() == new.len());
    let Some(room) = room else {
        let what = format!("{} bytes for a tuple that has other than these", new.len());
        return Err(change.corrupt(what));
    };
    room.copy_from_slice(new);
    Ok(())
}
