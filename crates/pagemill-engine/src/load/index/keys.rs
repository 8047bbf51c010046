//! The entries that one batch of rows adds to one index, in the index's order.
//!
//! Each entry is formed as it will lie in the index, with the place its row has in the batch; when the batch is told
//! its blocks, the places are corrected. The order by place within equal keys is the same before and after.

use std::cmp::Ordering;

use pagemill_format::index_tuple_builder::{IndexForm, entry_tid, set_tid};
use pagemill_format::tuple_data_builder::{Row, Value};
use pagemill_format::{BlockNumber, Error as FormatError, Tid};
use pagemill_types::index_key_order::KeyOrder;

use super::plan::IndexPlan;
use super::sort::sort_entries;

/// An entry among others in one piece of memory.
#[derive(Debug, Clone, Copy)]
pub(in crate::load) struct Entry {
    pub(in crate::load) abbreviation: u64,
    pub(in crate::load) start: u32,
    pub(in crate::load) len: u16,
}

/// Entries in order, their bytes one behind the other.
#[derive(Debug, Default)]
pub(in crate::load) struct KeyRun {
    pub(in crate::load) bytes: Vec<u8>,
    pub(in crate::load) entries: Vec<Entry>,
}

/// Where the tuples of a run came to lie.
#[derive(Debug)]
pub(in crate::load) enum TupleLocations {
    /// As in the run, from this block on.
    From(BlockNumber),
    /// By page of the run, and by line pointer on it.
    Packed(Vec<Vec<Tid>>),
}

/// Which of two entries, given with their abbreviations, comes first.
#[inline]
pub(in crate::load) fn compare(order: &KeyOrder, a: (u64, &[u8]), b: (u64, &[u8])) -> Ordering {
    a.0.cmp(&b.0).then_with(|| order.compare(a.1, b.1))
}

impl KeyRun {
    /// Room for so many entries of so many bytes in all.
    pub(in crate::load) fn with_capacity(entries: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), entries: Vec::with_capacity(entries) }
    }

    /// An entry with its abbreviation.
    pub(in crate::load) fn key(&self, entry: Entry) -> (u64, &[u8]) {
        (entry.abbreviation, self.entry(entry))
    }

    /// Adds an entry whose abbreviation is known. Those who add more than a buffer of them see to it that a run can hold
    /// them: [`Self::end_entry`] refuses them, and a part of a merge is measured.
    #[inline]
    pub(in crate::load) fn push(&mut self, abbreviation: u64, entry: &[u8]) {
        let start = u32::try_from(self.bytes.len()).expect("a run has less than 4 GiB of entries"); // infallible: no more are added, see above
        let len = u16::try_from(entry.len()).expect("an index entry fits on a page"); // infallible: longer ones were refused
        self.bytes.extend_from_slice(entry);
        self.entries.push(Entry { abbreviation, start, len });
    }

    /// Makes the bytes from `start` on an entry.
    ///
    /// # Errors
    /// When there are more bytes than a run can have.
    #[inline]
    pub(in crate::load) fn end_entry(
        &mut self,
        start: usize,
        order: &KeyOrder,
    ) -> Result<(), FormatError> {
        let entry = &self.bytes[start..];
        let len = u16::try_from(entry.len()).expect("an index entry fits on a page"); // infallible: it was formed, which refuses longer ones, or lay on a page
        // The end too: sorted, another entry comes last, and begins where it may.
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(FormatError::limit("a batch of rows has more than 4 GiB of index entries"));
        }
        let start = start as u32;
        self.entries.push(Entry { abbreviation: order.abbreviate(entry), start, len });
        Ok(())
    }

    /// The bytes of an entry.
    pub(in crate::load) fn entry(&self, entry: Entry) -> &[u8] {
        let start = entry.start as usize;
        &self.bytes[start..start + usize::from(entry.len)]
    }

    /// Tells the entries where their rows came to lie.
    pub(in crate::load) fn place(&mut self, places: &TupleLocations) {
        let TupleLocations::Packed(pages) = places else {
            let TupleLocations::From(first) = places else { return };
            return self.assign(*first);
        };
        let Self { bytes, entries } = self;
        for entry in entries {
            let start = entry.start as usize;
            let tuple = bytes.get_mut(start..start + usize::from(entry.len));
            let tuple = tuple.expect("an entry lies within its run"); // infallible: it was pushed there
            let tid = entry_tid(tuple);
            let page = pages.get(tid.block.0 as usize);
            let number = usize::from(tid.line_pointer).checked_sub(1);
            let place = page.zip(number).and_then(|(page, number)| page.get(number));
            set_tid(tuple, *place.expect("every row of a run was packed")); // infallible: so it was
        }
    }

    /// Tells the entries that their rows' first block is this one.
    pub(in crate::load) fn assign(&mut self, first: BlockNumber) {
        let Self { bytes, entries } = self;
        for entry in entries {
            let start = entry.start as usize;
            let Some(tuple) = bytes.get_mut(start..start + usize::from(entry.len)) else {
                continue;
            };
            let tid = entry_tid(tuple);
            set_tid(tuple, Tid { block: BlockNumber(tid.block.0 + first.0), ..tid });
        }
    }

    /// Puts the entries in the order of the index, their bytes too: whoever merges runs reads each from its start.
    fn sort(&mut self, order: &KeyOrder) {
        if self.entries.is_sorted_by(|a, b| compare(order, self.key(*a), self.key(*b)).is_lt()) {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        sort_entries(&mut entries, |a, b| order.compare(self.entry(*a), self.entry(*b)));
        let mut sorted = Self::with_capacity(entries.len(), self.bytes.len());
        entries.iter().for_each(|entry| sorted.push(entry.abbreviation, self.entry(*entry)));
        *self = sorted;
    }
}

/// Forms the entries of one index for one batch.
#[derive(Debug)]
pub(in crate::load) struct KeyFormer<'a> {
    plan: &'a IndexPlan,
    form: IndexForm,
    run: KeyRun,
}

impl<'a> KeyFormer<'a> {
    pub(in crate::load) fn new(plan: &'a IndexPlan) -> Result<Self, FormatError> {
        Ok(Self { plan, form: plan.form()?, run: KeyRun::default() })
    }

    /// Adds the entry of a row.
    ///
    /// # Errors
    /// When its values are too long for an index.
    #[inline]
    pub(in crate::load) fn add<R: Row + ?Sized>(
        &mut self,
        row: &R,
        tid: Tid,
    ) -> Result<(), FormatError> {
        let start = self.run.bytes.len();
        self.form.form(&KeyRow { row, plan: self.plan }, tid, &mut self.run.bytes)?;
        self.run.end_entry(start, &self.plan.order)
    }

    /// The entries in order.
    pub(in crate::load) fn finish(mut self) -> KeyRun {
        self.run.sort(&self.plan.order);
        self.run
    }
}

/// A row of the table as the index sees it.
struct KeyRow<'r, R: ?Sized> {
    row: &'r R,
    plan: &'r IndexPlan,
}

impl<R: Row + ?Sized> Row for KeyRow<'_, R> {
    #[inline]
    fn value(&self, column: usize) -> Value<'_> {
        match self.row.value(self.plan.positions[column]) {
            Value::Plain(name) if self.plan.is_unpadded(column) => {
                let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                Value::Plain(&name[..len])
            }
            value => value,
        }
    }
}

#[cfg(test)]
pub(in crate::load) mod test_runs {
    use pagemill_format::Oid;
    use pagemill_format::tuple::AttributeLayout;
    use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
    use pagemill_format::varlena::Compression;
    use pagemill_types::index_key_order::KeyColumn;
    use pagemill_types::order::{TextCollation, ValueOrder};

    use super::*;

    const LAYOUT: AttributeLayout = AttributeLayout { len: 4, align: 4 };

    pub(in crate::load) fn order() -> KeyOrder {
        let order = ValueOrder::of_type(Oid(23), &TextCollation::C).unwrap();
        KeyOrder::new(vec![KeyColumn {
            layout: LAYOUT,
            order,
            descending: false,
            nulls_first: false,
        }])
    }

    /// The entries of some numbers, in order, each of a row of its own.
    pub(in crate::load) fn run(numbers: &[i32], block: u32, order: &KeyOrder) -> KeyRun {
        let storage = AttributeStorage::Plain;
        let compression = Compression::Pglz;
        let column = ColumnLayout { layout: LAYOUT, storage, compression, dropped: false };
        let mut form = IndexForm::new("i", &[column]).unwrap();
        let mut made = KeyRun::default();
        for (line_pointer, number) in (1..).zip(numbers) {
            let tid = Tid { block: BlockNumber(block), line_pointer };
            let start = made.bytes.len();
            form.form(&[Some(&number.to_le_bytes()[..])][..], tid, &mut made.bytes).unwrap();
            made.end_entry(start, order).unwrap();
        }
        made.sort(order);
        made
    }

    #[test]
    fn a_batch_is_sorted_with_its_bytes() {
        let order = order();
        let numbers: Vec<i32> =
            (0..5000).map(|n: i32| n.wrapping_mul(0x9E37_79B1_u32 as i32) >> 19).collect();
        let run = run(&numbers, 7, &order);
        let starts: Vec<usize> = run.entries.iter().map(|entry| entry.start as usize).collect();
        assert_eq!(starts, (0..5000).map(|n| n * 16).collect::<Vec<_>>());
        let is_before = |a: &Entry, b: &Entry| order.compare(run.entry(*a), run.entry(*b)).is_lt();
        assert!(run.entries.is_sorted_by(is_before));
        let mut tids: Vec<_> =
            run.entries.iter().map(|e| entry_tid(run.entry(*e)).line_pointer).collect();
        tids.sort_unstable();
        assert!(tids.into_iter().eq(1..=5000));
    }
}
