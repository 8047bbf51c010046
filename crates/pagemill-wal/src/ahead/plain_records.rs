//! [`PlainRecords`]: what many records in a row do, without the records.
//!
//! A record is plain when all that counts of it is which blocks it changes, and which transaction wrote it or ended with
//! it. Nearly all are. What they do is kept in the order of the WAL, by fork, so that it is added to an index in long strides.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pagemill_format::wal::{Commit, RecordHeader, ResourceManager};
use pagemill_format::{Lsn, TransactionId};

use crate::index::{Entry, ForkKey, entry_of, is_table_image};
use crate::reader::WalRecord;

const FIRST_CUSTOM: u8 = 128;
const XLOG_FPI_FOR_HINT: u8 = 0xA0;
const XLOG_FPI: u8 = 0xB0;
/// The bits of `info` that say which record of a transaction it is.
const TRANSACTION_KIND: u8 = 0x70;

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPlace {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where the next one may begin.
    pub end: Lsn,
}

/// The end of a transaction without subtransactions and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainEnd {
    /// Which of the records it is, from 0 on.
    pub record: usize,
    /// The transaction.
    pub xid: TransactionId,
    /// When, in microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// It committed.
    pub is_commit: bool,
}

/// Records in a row, of which one is there at least.
#[derive(Debug, Default)]
pub struct PlainRecords {
    places: Vec<RecordPlace>,
    /// The transactions that wrote them, each with the first of its records in a row.
    pub(crate) writers: Vec<(usize, TransactionId)>,
    ends: Vec<PlainEnd>,
    /// The first that has an image of a table's page because of `full_page_writes`.
    pub(crate) first_table_image: Option<usize>,
    pub(crate) forks: Vec<(ForkKey, Vec<Entry>)>,
}

impl PlainRecords {
    /// Where they lie.
    pub fn places(&self) -> &[RecordPlace] {
        &self.places
    }

    /// The transactions that end with them, in order.
    pub fn ends(&self) -> &[PlainEnd] {
        &self.ends
    }
}

/// What a record is for whoever goes over many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Plain,
    End {
        time: i64,
        is_commit: bool,
    },
    /// It has to be looked at by itself.
    Other,
}

/// Takes plain records in.
#[derive(Debug, Default)]
pub(super) struct PlainBuilder {
    records: PlainRecords,
    /// Where the entries of a fork are.
    slots: HashMap<ForkKey, usize, BuildHasherDefault<ForkHasher>>,
}

impl PlainBuilder {
    /// Takes a record in; false when it is not plain.
    #[inline]
    pub(super) fn add(&mut self, record: &WalRecord<'_>) -> bool {
        let sort = sort_of(record);
        if sort == Sort::Other || !self.add_blocks(record) {
            return false;
        }
        let number = self.records.places.len();
        let xid = record.header.xid;
        if let Sort::End { time, is_commit } = sort {
            self.records.ends.push(PlainEnd { record: number, xid, time, is_commit });
        }
        if self.records.writers.last().is_none_or(|(_, last)| *last != xid) {
            self.records.writers.push((number, xid));
        }
        self.records.places.push(RecordPlace { lsn: record.lsn, end: record.end });
        true
    }

    /// What was taken in since, if anything was.
    pub(super) fn take(&mut self) -> Option<PlainRecords> {
        self.slots.clear();
        let records = std::mem::take(&mut self.records);
        (!records.places.is_empty()).then_some(records)
    }

    fn add_blocks(&mut self, record: &WalRecord<'_>) -> bool {
        let (header, lsn) = (&record.header, record.lsn);
        let number = self.records.places.len();
        let mut has_image = false;
        let visited = record.visit_blocks(|block| {
            has_image |= is_table_image(header, &block);
            let Some((key, entry)) = entry_of(header, lsn, &block) else { return };
            let Self { records, slots } = &mut *self;
            let slot = *slots.entry(key).or_insert_with(|| {
                records.forks.push((key, Vec::new()));
                records.forks.len() - 1
            });
            records.forks[slot].1.push(entry);
        });
        if visited.is_err() {
            self.forget(lsn);
        } else if has_image {
            self.records.first_table_image.get_or_insert(number);
        }
        visited.is_ok()
    }

    /// Forgets what was taken from a record that turned out to be broken.
    fn forget(&mut self, lsn: Lsn) {
        for (_, entries) in &mut self.records.forks {
            while entries.last().is_some_and(|entry| entry.lsn() == lsn) {
                entries.pop();
            }
        }
    }
}

#[inline]
fn sort_of(record: &WalRecord<'_>) -> Sort {
    let header = &record.header;
    match header.resource_manager {
        ResourceManager::XLOG if matches!(header.kind(), XLOG_FPI | XLOG_FPI_FOR_HINT) => {
            Sort::Plain
        }
        ResourceManager::TRANSACTION => sort_of_transaction(record),
        ResourceManager::XLOG
        | ResourceManager::STORAGE
        | ResourceManager::CLOG
        | ResourceManager::DATABASE
        | ResourceManager::TABLESPACE
        | ResourceManager::MULTIXACT
        | ResourceManager::RELMAP => Sort::Other,
        ResourceManager(FIRST_CUSTOM..) if is_special(header) => Sort::Other,
        _ => Sort::Plain,
    }
}

fn is_special(header: &RecordHeader) -> bool {
    header.info & ResourceManager::SPECIAL_REL_UPDATE != 0
}

fn sort_of_transaction(record: &WalRecord<'_>) -> Sort {
    let is_commit = match record.header.info & TRANSACTION_KIND {
        ResourceManager::XACT_COMMIT => true,
        ResourceManager::XACT_ABORT => false,
        ResourceManager::XACT_COMMIT_PREPARED | ResourceManager::XACT_ABORT_PREPARED => {
            return Sort::Other;
        }
        _ => return Sort::Plain,
    };
    let parsed = record
        .parse()
        .and_then(|found| Commit::parse(found.main_data, record.header.info, record.version));
    let Ok(end) = parsed else { return Sort::Other };
    let is_alone = end.subtransactions.is_empty() && end.dropped_files.is_empty();
    match is_alone && end.prepared.is_none() {
        true => Sort::End { time: end.time, is_commit },
        false => Sort::Other,
    }
}

/// Hashes the few numbers of a [`ForkKey`]; who writes WAL could as well write what it likes into files.
#[derive(Debug, Default)]
pub(crate) struct ForkHasher(u64);

impl ForkHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
}

impl Hasher for ForkHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }

    fn finish(&self) -> u64 {
        // Tables use the upper bits and the lower ones.
        self.0 ^ self.0 >> 32
    }
}
