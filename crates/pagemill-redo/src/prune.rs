//! Redo of pruning, of the second pass of VACUUM, and of freezing, which are three records before 17, in
//! formats that differ, and one from then on.
//!
//! Both forms of freezing up to 16 take 12 bytes for what is done: for each tuple in 14 and 15, for each group of
//! tuples that are treated alike in 16.
//!
//! Sources: `heap_xlog_prune`, `heap_xlog_vacuum` and `heap_xlog_freeze_page` in
//! `src/backend/access/heap/heapam.c` of 14 to 16; `heap_xlog_prune_freeze` there in 17 and in `heapam_xlog.c` in 18;
//! `heap_xlog_deserialize_prune_and_freeze` in `src/backend/access/rmgrdesc/heapdesc.c`;
//! `heap_page_prune_execute` in `src/backend/access/heap/pruneheap.c`; `src/include/access/heapam_xlog.h`.

use pagemill_format::Result;
use pagemill_format::page::LinePointer;
use pagemill_format::reader::Reader;

use crate::change::Change;
use crate::heap_tuple::{FreezePlan, TupleHeader};
use crate::page_items::PageItems;

/// Flags from 17 on. Without the lock that keeps readers away, no tuple may be moved.
const CLEANUP_LOCK: u8 = 0x04;
const HAS_CONFLICT_HORIZON: u8 = 0x08;
const HAS_FREEZE_PLANS: u8 = 0x10;
pub(crate) const HAS_REDIRECTIONS: u8 = 0x20;
pub(crate) const HAS_DEAD_ITEMS: u8 = 0x40;
pub(crate) const HAS_NOW_UNUSED_ITEMS: u8 = 0x80;

/// States of line pointers without storage.
const UNUSED: LinePointer = LinePointer(0);
const DEAD: LinePointer = LinePointer(3 << 15);
const REDIRECT: u32 = 2 << 15;

/// Pruning up to 16.
pub(crate) fn prune(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (_, redirections, dead) = (main.u32()?, main.u16()?, main.u16()?);
    let mut data = change.data();
    redirect(items, &mut data, redirections)?;
    mark(items, &mut data, dead, DEAD)?;
    let unused = (data.remaining() / 2) as u16;
    mark(items, &mut data, unused, UNUSED)?;
    items.repair_fragmentation(change.version())
}

/// VACUUM up to 16, once the indexes no longer lead to dead line pointers.
pub(crate) fn vacuum(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let unused = change.main().u16()?;
    mark(items, &mut change.data(), unused, UNUSED)?;
    items.truncate_line_pointers();
    Ok(())
}

/// Freezing in 14 and 15.
pub(crate) fn freeze_one_by_one(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (_, count) = (main.u32()?, main.u16()?);
    let mut data = change.data();
    for _ in 0..count {
        let (xmax, number) = (data.u32()?, data.u16()?);
        let (infomask2, infomask, flags) = (data.u16()?, data.u16()?, data.u8()?);
        data.u8()?;
        let plan = FreezePlan { xmax, infomask2, infomask, flags };
        TupleHeader::of(items.item_mut(number)?)?.freeze(&plan);
    }
    Ok(())
}

/// Freezing in 16.
pub(crate) fn freeze_by_plan(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (_, count) = (main.u32()?, main.u16()?);
    let mut data = change.data();
    let plans = read_plans(&mut data, count)?;
    freeze(items, &mut data, &plans)
}

/// Everything, from 17 on.
pub(crate) fn prune_and_freeze(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (_, flags) = (main.u8()?, main.u8()?);
    if flags & HAS_CONFLICT_HORIZON != 0 {
        main.u32()?;
    }
    let has = |flag| flags & flag != 0;
    let mut data = change.data();
    let plans = plans_from_17(&mut data, flags)?;
    if has(HAS_REDIRECTIONS) {
        let count = data.u16()?;
        redirect(items, &mut data, count)?;
    }
    for (flag, state) in [(HAS_DEAD_ITEMS, DEAD), (HAS_NOW_UNUSED_ITEMS, UNUSED)] {
        if has(flag) {
            let count = data.u16()?;
            mark(items, &mut data, count, state)?;
        }
    }
    if has(HAS_REDIRECTIONS | HAS_DEAD_ITEMS | HAS_NOW_UNUSED_ITEMS) {
        match has(CLEANUP_LOCK) {
            true => items.repair_fragmentation(change.version())?,
            false => items.truncate_line_pointers(),
        }
    }
    freeze(items, &mut data, &plans)
}

fn redirect(items: &mut PageItems<'_>, data: &mut Reader<'_>, count: u16) -> Result<()> {
    for _ in 0..count {
        let (from, to) = (data.u16()?, data.u16()?);
        items.set_line_pointer(from, LinePointer(REDIRECT | u32::from(to & 0x7FFF)))?;
    }
    Ok(())
}

fn mark(
    items: &mut PageItems<'_>,
    data: &mut Reader<'_>,
    count: u16,
    state: LinePointer,
) -> Result<()> {
    (0..count).try_for_each(|_| items.set_line_pointer(data.u16()?, state))
}

/// The plans at the beginning of a record of 17 or later, if its flags say that it has some.
pub(crate) fn plans_from_17(data: &mut Reader<'_>, flags: u8) -> Result<Vec<(FreezePlan, u16)>> {
    if flags & HAS_FREEZE_PLANS == 0 {
        return Ok(Vec::new());
    }
    let count = data.u16()?;
    data.align(4);
    read_plans(data, count)
}

/// Plans, and for how many tuples each is.
pub(crate) fn read_plans(data: &mut Reader<'_>, count: u16) -> Result<Vec<(FreezePlan, u16)>> {
    let read = |data: &mut Reader<'_>| {
        let (xmax, infomask2, infomask, flags) =
            (data.u32()?, data.u16()?, data.u16()?, data.u8()?);
        data.u8()?;
        Ok((FreezePlan { xmax, infomask2, infomask, flags }, data.u16()?))
    };
    (0..count).map(|_| read(data)).collect()
}

fn freeze(
    items: &mut PageItems<'_>,
    data: &mut Reader<'_>,
    plans: &[(FreezePlan, u16)],
) -> Result<()> {
    for (plan, count) in plans {
        for _ in 0..*count {
            TupleHeader::of(items.item_mut(data.u16()?)?)?.freeze(plan);
        }
    }
    match data.is_empty() {
        true => Ok(()),
        false => Err(data.corrupt(format!("{} bytes behind the last item", data.remaining()))),
    }
}
