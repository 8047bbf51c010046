//! What a heap record does to which tuples of a block, told from the record alone: for whoever shows what happened to a
//! row, and for which no page is needed.
//!
//! Beside an image a server leaves the data of the block out. What the main data say is told all the same; which tuples were
//! pruned or frozen by such a record, or which offsets it took on a page it made anew, cannot be told from it.
//!
//! Sources: `src/include/access/heapam_xlog.h`; `heap_desc` and `heap2_desc` in
//! `src/backend/access/rmgrdesc/heapdesc.c`, PostgreSQL 14 to 18.

use std::fmt;

use pagemill_format::reader::Reader;
use pagemill_format::wal::ResourceManager;
use pagemill_format::{Fork, PgVersion, Result, Tid};

use crate::change::{Change, RedoSite};
use crate::heap::{self, LockedTuple, Update};
use crate::heap_tuple::FreezePlan;
use crate::heap2;
use crate::prune;

/// What a record does to one tuple, or to its line pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleChange {
    /// The line pointer, from 1.
    pub line_pointer: u16,
    /// What is done.
    pub action: TupleAction,
}

/// What is done to a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TupleAction {
    /// It is put there.
    Insert,
    /// It is put there as the new version of the tuple at this place.
    NewVersion(Tid),
    /// It gets a new version at this place.
    Update(Tid),
    /// It is deleted.
    Delete,
    /// It is deleted: its row went to another partition.
    MoveToPartition,
    /// An insertion that lost a race is taken back.
    TakeBack,
    /// It is locked.
    Lock,
    /// An insertion that might have lost a race did not.
    Confirm,
    /// Its attributes are overwritten in place.
    Overwrite,
    /// Its transactions are replaced, since they are old.
    Freeze,
    /// Its space is given back; the line pointer leads to another one of the page.
    Redirect(u16),
    /// Its space is given back; the line pointer stays, as indexes lead to it.
    Dead,
    /// The line pointer may be used again.
    Unused,
}

impl fmt::Display for TupleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert => f.write_str("inserted"),
            Self::NewVersion(old) => write!(f, "new version of {old}"),
            Self::Update(new) => write!(f, "updated to {new}"),
            Self::Delete => f.write_str("deleted"),
            Self::MoveToPartition => f.write_str("moved to another partition"),
            Self::TakeBack => f.write_str("insertion taken back"),
            Self::Lock => f.write_str("locked"),
            Self::Confirm => f.write_str("insertion confirmed"),
            Self::Overwrite => f.write_str("overwritten in place"),
            Self::Freeze => f.write_str("frozen"),
            Self::Redirect(to) => write!(f, "redirected to {to}"),
            Self::Dead => f.write_str("dead"),
            Self::Unused => f.write_str("unused"),
        }
    }
}

/// What the record does to tuples of the block, in the order of the record; nothing for a record or a block that is none of
/// a heap.
///
/// # Errors
/// The record is shorter than what it is has to be.
pub fn tuple_changes(site: &RedoSite<'_>) -> Result<Vec<TupleChange>> {
    let change = Change::of(site)?;
    if change.block.fork != Fork::Main {
        return Ok(Vec::new());
    }
    let kind = change.kind() & heap::KINDS;
    match site.record.header.resource_manager {
        ResourceManager::HEAP if change.reference() <= heap::OLD => of_heap(change, kind),
        ResourceManager::HEAP2 if change.reference() == heap::HEAP => of_heap2(change, kind),
        _ => Ok(Vec::new()),
    }
}

fn of_heap(change: Change<'_>, kind: u8) -> Result<Vec<TupleChange>> {
    let one = |action: TupleAction| -> Result<_> {
        let mut main = change.main();
        // Deletions and locks begin with their transaction.
        if matches!(kind, heap::DELETE | heap::LOCK) {
            main.u32()?;
        }
        Ok(vec![TupleChange { line_pointer: main.u16()?, action }])
    };
    match kind {
        heap::INSERT => one(TupleAction::Insert),
        heap::DELETE => one(deletion(LockedTuple::read(&mut change.main())?)),
        heap::UPDATE | heap::HOT_UPDATE => update(change),
        heap::CONFIRM => one(TupleAction::Confirm),
        heap::LOCK => one(TupleAction::Lock),
        heap::INPLACE => one(TupleAction::Overwrite),
        _ => Ok(Vec::new()),
    }
}

fn deletion(of: LockedTuple) -> TupleAction {
    if of.flags & heap::IS_SUPER != 0 {
        TupleAction::TakeBack
    } else if of.flags & heap::IS_PARTITION_MOVE != 0 {
        TupleAction::MoveToPartition
    } else {
        TupleAction::Delete
    }
}

fn update(change: Change<'_>) -> Result<Vec<TupleChange>> {
    let Update { old, new, .. } = Update::read(change)?;
    let old_block = change.other(heap::OLD).unwrap_or(new.block);
    let of = Tid { block: old_block, line_pointer: old.number };
    let mut found = Vec::new();
    if change.number() == old_block {
        found.push(TupleChange { line_pointer: old.number, action: TupleAction::Update(new) });
    }
    if change.reference() == heap::HEAP {
        let action = TupleAction::NewVersion(of);
        found.push(TupleChange { line_pointer: new.line_pointer, action });
    }
    Ok(found)
}

fn of_heap2(change: Change<'_>, kind: u8) -> Result<Vec<TupleChange>> {
    let from_17 = change.version() >= PgVersion::V17;
    match kind {
        heap2::MULTI_INSERT => multi_insert(change),
        heap2::LOCK_UPDATED => {
            let line_pointer = LockedTuple::read(&mut change.main())?.number;
            Ok(vec![TupleChange { line_pointer, action: TupleAction::Lock }])
        }
        heap2::PRUNE | heap2::VACUUM | heap2::FREEZE if change.block.data.is_empty() => {
            Ok(Vec::new())
        }
        heap2::PRUNE | heap2::VACUUM | heap2::FREEZE if from_17 => prune_and_freeze(change),
        heap2::PRUNE => prune(change),
        heap2::VACUUM => {
            let unused = change.main().u16()?;
            List::of(change).each(unused, TupleAction::Unused)
        }
        heap2::FREEZE if change.version() == PgVersion::V16 => {
            let mut main = change.main();
            let (_, count) = (main.u32()?, main.u16()?);
            let mut list = List::of(change);
            let plans = prune::read_plans(&mut list.data, count)?;
            list.frozen(&plans)
        }
        heap2::FREEZE => freeze_one_by_one(change),
        _ => Ok(Vec::new()),
    }
}

fn multi_insert(change: Change<'_>) -> Result<Vec<TupleChange>> {
    let mut main = change.main();
    let (_, _, count) = (main.u8()?, main.u8()?, main.u16()?);
    let is_init = change.kind() & heap::INIT_PAGE != 0;
    let number = |index: u16| match is_init {
        true => Ok(index.saturating_add(1)),
        false => main.u16(),
    };
    let numbers = (0..count).map(number).collect::<Result<Vec<_>>>()?;
    let action = TupleAction::Insert;
    Ok(numbers.into_iter().map(|line_pointer| TupleChange { line_pointer, action }).collect())
}

/// Line pointers in the data of a block, and what was found.
struct List<'r> {
    data: Reader<'r>,
    found: Vec<TupleChange>,
}

impl<'r> List<'r> {
    fn of(change: Change<'r>) -> Self {
        Self { data: change.data(), found: Vec::new() }
    }

    fn add(&mut self, count: u16, action: TupleAction) -> Result<()> {
        for _ in 0..count {
            let line_pointer = self.data.u16()?;
            self.found.push(TupleChange { line_pointer, action });
        }
        Ok(())
    }

    fn each(mut self, count: u16, action: TupleAction) -> Result<Vec<TupleChange>> {
        self.add(count, action)?;
        Ok(self.found)
    }

    fn redirections(&mut self, count: u16) -> Result<()> {
        for _ in 0..count {
            let (line_pointer, to) = (self.data.u16()?, self.data.u16()?);
            self.found.push(TupleChange { line_pointer, action: TupleAction::Redirect(to) });
        }
        Ok(())
    }

    fn frozen(mut self, plans: &[(FreezePlan, u16)]) -> Result<Vec<TupleChange>> {
        plans.iter().try_for_each(|(_, count)| self.add(*count, TupleAction::Freeze))?;
        Ok(self.found)
    }
}

fn prune(change: Change<'_>) -> Result<Vec<TupleChange>> {
    let mut main = change.main();
    let (_, redirections, dead) = (main.u32()?, main.u16()?, main.u16()?);
    let mut list = List::of(change);
    list.redirections(redirections)?;
    list.add(dead, TupleAction::Dead)?;
    let unused = (list.data.remaining() / 2) as u16;
    list.each(unused, TupleAction::Unused)
}

fn freeze_one_by_one(change: Change<'_>) -> Result<Vec<TupleChange>> {
    let mut main = change.main();
    let (_, count) = (main.u32()?, main.u16()?);
    let mut data = change.data();
    let one = |_| {
        let (_, line_pointer) = (data.u32()?, data.u16()?);
        // Both infomasks, the flags and a byte of padding.
        data.bytes(6)?;
        Ok(TupleChange { line_pointer, action: TupleAction::Freeze })
    };
    (0..count).map(one).collect()
}

fn prune_and_freeze(change: Change<'_>) -> Result<Vec<TupleChange>> {
    let mut main = change.main();
    let (_, flags) = (main.u8()?, main.u8()?);
    let has = |flag| flags & flag != 0;
    let mut list = List::of(change);
    let plans = prune::plans_from_17(&mut list.data, flags)?;
    if has(prune::HAS_REDIRECTIONS) {
        let count = list.data.u16()?;
        list.redirections(count)?;
    }
    for (flag, action) in [
        (prune::HAS_DEAD_ITEMS, TupleAction::Dead),
        (prune::HAS_NOW_UNUSED_ITEMS, TupleAction::Unused),
    ] {
        if has(flag) {
            let count = list.data.u16()?;
            list.add(count, action)?;
        }
    }
    list.frozen(&plans)
}

#[cfg(test)]
mod tests {
    use pagemill_format::wal::{BlockReference, Record, RecordHeader, RelFileLocator};
    use pagemill_format::{BlockNumber, Lsn, Oid, TransactionId};

    use super::*;

    fn block(id: u8, number: u32, data: &[u8]) -> BlockReference<'_> {
        let locator =
            RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: Oid(16384) };
        BlockReference {
            id,
            fork: Fork::Main,
            locator,
            block: BlockNumber(number),
            image: None,
            will_init: false,
            data,
        }
    }

    fn changes(
        (manager, info): (ResourceManager, u8),
        main_data: &[u8],
        blocks: &[BlockReference<'_>],
        version: PgVersion,
    ) -> Vec<Vec<(u16, TupleAction)>> {
        let header = RecordHeader {
            total_len: 0,
            xid: TransactionId(700),
            prev: Lsn(0),
            info,
            resource_manager: manager,
            crc: 0,
        };
        let record =
            Record { header, blocks: blocks.to_vec(), main_data, origin: None, toplevel_xid: None };
        let of = |block: &BlockReference<'_>| {
            let site = RedoSite {
                record: &record,
                start: Lsn(8),
                end: Lsn(16),
                reference: block.id,
                version,
                hints_logged: false,
            };
            let found = tuple_changes(&site).unwrap();
            found.into_iter().map(|change| (change.line_pointer, change.action)).collect()
        };
        blocks.iter().map(of).collect()
    }

    #[test]
    fn an_update_says_on_each_of_its_pages_where_the_other_version_is() {
        let mut main = Vec::new();
        main.extend_from_slice(&700u32.to_le_bytes());
        main.extend_from_slice(&[3, 0, 0, 0]);
        main.extend_from_slice(&0u32.to_le_bytes());
        main.extend_from_slice(&[9, 0]);
        let at = |block, line_pointer| Tid { block: BlockNumber(block), line_pointer };
        let update = (ResourceManager::HEAP, heap::UPDATE);
        let two = [block(0, 8, &[]), block(1, 7, &[])];
        let found = changes(update, &main, &two, PgVersion::V15);
        assert_eq!(found[0], [(9, TupleAction::NewVersion(at(7, 3)))]);
        assert_eq!(found[1], [(3, TupleAction::Update(at(8, 9)))]);
        let hot = (ResourceManager::HEAP, heap::HOT_UPDATE);
        let found = changes(hot, &main, &[block(0, 7, &[])], PgVersion::V15);
        let both = [(3, TupleAction::Update(at(7, 9))), (9, TupleAction::NewVersion(at(7, 3)))];
        assert_eq!(found[0], both);
    }

    #[test]
    fn pruning_is_told_in_both_of_its_formats() {
        let expected =
            [(1, TupleAction::Redirect(4)), (2, TupleAction::Dead), (3, TupleAction::Unused)];
        let prune = (ResourceManager::HEAP2, heap2::PRUNE);
        let main = [0, 0, 0, 0, 1, 0, 1, 0];
        let found =
            changes(prune, &main, &[block(0, 1, &[1, 0, 4, 0, 2, 0, 3, 0])], PgVersion::V15);
        assert_eq!(found[0], expected);
        let main = [0, 0x20 | 0x40 | 0x80];
        let data = [1, 0, 1, 0, 4, 0, 1, 0, 2, 0, 1, 0, 3, 0];
        let found = changes(prune, &main, &[block(0, 1, &data)], PgVersion::V17);
        assert_eq!(found[0], expected);
        // Beside an image there is no such data.
        assert_eq!(changes(prune, &main, &[block(0, 1, &[])], PgVersion::V17)[0], []);
    }
}
