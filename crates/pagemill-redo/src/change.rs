//! What one record does to one block: where it stands in the WAL, and the parts of it that redo reads.
//!
//! Invariant: block references are found by their numbers, never by their places, since some are left out, and newer
//! minor releases add others behind them.

use pagemill_format::reader::Reader;
use pagemill_format::wal::{BlockReference, Record};
use pagemill_format::{BlockNumber, Error, Lsn, PgVersion, Result, TransactionId};

/// A record, and which of its blocks is wanted.
#[derive(Debug, Clone, Copy)]
pub struct RedoSite<'r> {
    /// The record, taken apart, its CRC believed.
    pub record: &'r Record<'r>,
    /// Where it begins.
    pub start: Lsn,
    /// Where it ends, aligned: the LSN that the page gets (`EndRecPtr`).
    pub end: Lsn,
    /// The number of the block reference, which is not its place among the references.
    pub reference: u8,
    /// The version whose WAL this is.
    pub version: PgVersion,
    /// The cluster has checksums or `wal_log_hints`: pages get an LSN also for what is a hint.
    pub hints_logged: bool,
}

/// What becomes of the page's LSN after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageLsn {
    /// It becomes the record's end.
    Advance,
    /// It stays: the record says nothing of this page, or only a hint that is not logged.
    Keep,
}

/// A site whose block reference was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'r> {
    pub(crate) site: &'r RedoSite<'r>,
    pub(crate) block: &'r BlockReference<'r>,
}

impl<'r> Change<'r> {
    /// The change that a site describes.
    pub(crate) fn of(site: &'r RedoSite<'r>) -> Result<Self> {
        let found = site.record.block(site.reference);
        let missing = || Error::corrupt("WAL record", 0, "it has no such block reference");
        Ok(Self { site, block: found.ok_or_else(missing)? })
    }

    /// Which record of its manager it is: the upper four bits of `info`.
    pub(crate) fn kind(self) -> u8 {
        self.site.record.header.kind()
    }

    /// The number of the block reference.
    pub(crate) fn reference(self) -> u8 {
        self.site.reference
    }

    /// The version whose WAL this is.
    pub(crate) fn version(self) -> PgVersion {
        self.site.version
    }

    /// The transaction that wrote the record.
    pub(crate) fn xid(self) -> TransactionId {
        self.site.record.header.xid
    }

    /// The main data.
    pub(crate) fn main(self) -> Reader<'r> {
        Reader::new("main data", self.site.record.main_data)
    }

    /// The data of this block.
    pub(crate) fn data(self) -> Reader<'r> {
        Reader::new("block data", self.block.data)
    }

    /// The block that is changed.
    pub(crate) fn number(self) -> BlockNumber {
        self.block.block
    }

    /// The block that another reference of the record names, if it has that reference.
    pub(crate) fn other(self, reference: u8) -> Option<BlockNumber> {
        self.site.record.block(reference).map(|block| block.block)
    }

    /// The same, where the record must have it.
    pub(crate) fn needed(self, reference: u8) -> Result<BlockNumber> {
        self.other(reference)
            .ok_or_else(|| self.corrupt(format!("it has no block reference {reference}")))
    }

    /// The record does not fit the page, or is not one that PostgreSQL writes.
    #[cold]
    pub(crate) fn corrupt(self, what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::corrupt("WAL record", 0, what)
    }

    /// The record names a block that it does nothing to.
    #[cold]
    pub(crate) fn unexpected_reference(self) -> Error {
        self.corrupt(format!("a record of this kind has no block reference {}", self.reference()))
    }

    /// A kind of record that the manager does not have, or that changes no block.
    #[cold]
    pub(crate) fn unexpected_kind(self) -> Error {
        self.corrupt(format!("kind {:02X} changes no block", self.kind()))
    }
}
