//! The records of multixacts: a new one with its members, and pages of its two logs that begin as zeros.
//!
//! Page numbers have 4 bytes up to 16 and 8 from 17 on, in the commit log's records too.
//!
//! Source: `src/include/access/multixact.h`, `multixact_redo` in `src/backend/access/transam/multixact.c`,
//! `clog_redo` in `clog.c`, PostgreSQL 14 to 18.

use super::Record;
use super::commit::read_list;
use crate::error::Result;
use crate::ids::{MultiXactId, PgVersion, TransactionId};
use crate::reader::Reader;

const STRUCTURE: &str = "multixact record";
const ZERO_OFFSETS_PAGE: u8 = 0x00;
const ZERO_MEMBERS_PAGE: u8 = 0x10;
const CREATE: u8 = 0x20;
const TRUNCATE: u8 = 0x30;

/// A multixact as it is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultiXactCreation {
    /// Its id.
    pub multi: MultiXactId,
    /// The place of its first member.
    pub first_offset: u32,
    /// Its members: transactions, and as what each takes part, in the flags that the log has.
    pub members: Vec<(TransactionId, u8)>,
}

/// What a record does to the logs of multixacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultiXactChange {
    /// A page of the log of offsets is zeroed.
    OffsetsZeroed(u64),
    /// A page of the log of members is zeroed.
    MembersZeroed(u64),
    /// A multixact is created.
    Created(MultiXactCreation),
    /// Both logs lose their oldest segments: those before the pages of this multixact, and of its first member.
    Truncated {
        /// The oldest multixact that is kept.
        oldest: MultiXactId,
    },
}

impl MultiXactChange {
    /// Reads a record of the resource manager [`MULTIXACT`](super::ResourceManager::MULTIXACT); `None` for one that
    /// is not known.
    ///
    /// # Errors
    /// Corrupt: too short.
    pub fn parse(record: &Record<'_>, version: PgVersion) -> Result<Option<Self>> {
        let mut r = Reader::new(STRUCTURE, record.main_data);
        Ok(Some(match record.header.kind() {
            ZERO_OFFSETS_PAGE => Self::OffsetsZeroed(page_number(&mut r, version)?),
            ZERO_MEMBERS_PAGE => Self::MembersZeroed(page_number(&mut r, version)?),
            CREATE => {
                let (multi, first_offset) = (MultiXactId(r.u32()?), r.u32()?);
                let members = read_list(&mut r, 8, |r| {
                    let (xid, status) = (TransactionId(r.u32()?), r.u32()?);
                    // No status is larger than 5; one that is stays recognizable as none.
                    Ok((xid, u8::try_from(status).unwrap_or(u8::MAX)))
                })?;
                Self::Created(MultiXactCreation { multi, first_offset, members })
            }
            TRUNCATE => {
                let (_database, _start) = (r.u32()?, r.u32()?);
                Self::Truncated { oldest: MultiXactId(r.u32()?) }
            }
            _ => return Ok(None),
        }))
    }
}

/// The page of the commit log that a record zeroes; `None` when it does not.
///
/// # Errors
/// Corrupt: too short.
pub fn zeroed_commit_log_page(record: &Record<'_>, version: PgVersion) -> Result<Option<u64>> {
    if record.header.kind() != super::ResourceManager::CLOG_ZEROPAGE {
        return Ok(None);
    }
    page_number(&mut Reader::new("commit log record", record.main_data), version).map(Some)
}

fn page_number(r: &mut Reader<'_>, version: PgVersion) -> Result<u64> {
    if version >= PgVersion::V17 { r.u64() } else { r.u32().map(u64::from) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Lsn;
    use crate::wal::{RecordBuilder, ResourceManager};

    fn change(kind: u8, words: &[u32], version: PgVersion) -> Option<MultiXactChange> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let record = RecordBuilder::new(ResourceManager::MULTIXACT, kind, TransactionId(700));
        let bytes = record.main_data(data).encode(Lsn(0), version).unwrap().to_vec();
        MultiXactChange::parse(&Record::parse(&bytes, version).unwrap(), version).unwrap()
    }

    #[test]
    fn a_creation_names_its_members_and_how_they_take_part() {
        let found = change(CREATE, &[9, 40, 2, 700, 1, 701, 5], PgVersion::V15);
        let members = vec![(TransactionId(700), 1), (TransactionId(701), 5)];
        let expected = MultiXactCreation { multi: MultiXactId(9), first_offset: 40, members };
        assert_eq!(found, Some(MultiXactChange::Created(expected)));
    }

    #[test]
    fn page_numbers_have_eight_bytes_from_17_on() {
        assert_eq!(
            change(ZERO_MEMBERS_PAGE, &[7], PgVersion::V16),
            Some(MultiXactChange::MembersZeroed(7))
        );
        assert_eq!(
            change(ZERO_OFFSETS_PAGE, &[7, 1], PgVersion::V17),
            Some(MultiXactChange::OffsetsZeroed(1 << 32 | 7))
        );
    }

    #[test]
    fn a_truncation_tells_the_oldest_multixact_left() {
        let found = change(TRUNCATE, &[5, 1, 2049, 1, 1636], PgVersion::V18);
        assert_eq!(found, Some(MultiXactChange::Truncated { oldest: MultiXactId(2049) }));
        assert_eq!(change(0x70, &[], PgVersion::V18), None);
    }
}
