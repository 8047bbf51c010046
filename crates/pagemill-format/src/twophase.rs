//! The state files of prepared transactions (`pg_twophase`).
//!
//! A prepared transaction is in progress although no server runs, so whoever judges visibility
//! has to know these ids, subtransactions included; the rest (locks, files to drop) is not read.
//! A transaction prepared since the last checkpoint may be in the WAL only.
//!
//! The file: header, GID with its zero, subtransaction ids, more arrays, records, and a CRC-32C
//! over all before it; each part is padded to 8 bytes. 15 put two counts (statistics to drop)
//! into the header, with no other magic number, so the version has to be known. File names are
//! the xid in 8 hex digits up to 16, the xid with its epoch in 16 from 17 on.
//!
//! Sources: `src/backend/access/transam/twophase.c`, `src/include/access/xact.h`
//! (`xl_xact_prepare`), PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::{Lsn, Oid, PgVersion, TransactionId};
use crate::reader::Reader;

const STRUCTURE: &str = "two-phase state file";
const MAGIC: u32 = 0x57F9_4534;
const MAX_ALIGN: usize = 8;
const CRC_BYTES: usize = 4;
/// The longest GID with its terminating zero.
const GID_BYTES_MAX: usize = 200;

/// A prepared transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// Its transaction id.
    pub xid: TransactionId,
    /// The name PREPARE TRANSACTION gave it, in the encoding of the client.
    pub gid: Vec<u8>,
    /// The database it was run in.
    pub database: Oid,
    /// The role that prepared it.
    pub owner: Oid,
    /// When, in microseconds since 2000-01-01 UTC.
    pub prepared_at: i64,
    /// Its subtransactions that were not rolled back.
    pub subtransactions: Vec<TransactionId>,
    /// Where it comes from, if a logical replication worker prepared it (0 otherwise).
    pub origin_lsn: Lsn,
}

impl PreparedTransaction {
    /// Reads a whole state file of a server of this version.
    ///
    /// # Errors
    /// Corrupt: a wrong magic number, length or CRC, or counts that do not fit into the file.
    pub fn parse(bytes: &[u8], version: PgVersion) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, checked_body(bytes)?);
        let header = Header::read(&mut r, version)?;
        r.align(MAX_ALIGN);
        let gid = gid(&mut r, header.gid_bytes)?;
        r.align(MAX_ALIGN);
        let subtransactions = subtransactions(&mut r, header.subtransactions)?;
        Ok(Self {
            xid: header.xid,
            gid,
            database: header.database,
            owner: header.owner,
            prepared_at: header.prepared_at,
            subtransactions,
            origin_lsn: header.origin_lsn,
        })
    }

    /// Every transaction id this one keeps in progress: its own first.
    pub fn xids(&self) -> impl Iterator<Item = TransactionId> + '_ {
        std::iter::once(self.xid).chain(self.subtransactions.iter().copied())
    }
}

/// The xid that a state file's name says, for a server of this version.
pub fn xid_of_file_name(name: &str, version: PgVersion) -> Option<TransactionId> {
    let digits = if version >= PgVersion::V17 { 16 } else { 8 };
    let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'A'..=b'F');
    if name.len() != digits || !name.bytes().all(is_digit) {
        return None;
    }
    let full = u64::from_str_radix(name, 16).ok()?;
    Some(TransactionId(full as u32))
}

struct Header {
    xid: TransactionId,
    database: Oid,
    prepared_at: i64,
    owner: Oid,
    subtransactions: u32,
    gid_bytes: usize,
    origin_lsn: Lsn,
}

impl Header {
    /// Reads on after magic number and length, which [`checked_body`] has seen.
    fn read(r: &mut Reader<'_>, version: PgVersion) -> Result<Self> {
        r.seek(8)?;
        let (xid, database) = (TransactionId(r.u32()?), Oid(r.u32()?));
        let (prepared_at, owner) = (r.i64()?, Oid(r.u32()?));
        let subtransactions = r.u32()?;
        let counts_skipped = if version >= PgVersion::V15 { 5 } else { 3 };
        r.bytes(counts_skipped * 4)?;
        r.u8()?;
        r.align(2);
        let gid_bytes = usize::from(r.u16()?);
        r.align(MAX_ALIGN);
        let origin_lsn = Lsn(r.u64()?);
        r.u64()?;
        Ok(Self { xid, database, prepared_at, owner, subtransactions, gid_bytes, origin_lsn })
    }
}

/// All but the CRC, once magic number, length and CRC are right.
fn checked_body(bytes: &[u8]) -> Result<&[u8]> {
    let mut r = Reader::new(STRUCTURE, bytes);
    let (magic, length) = (r.u32()?, r.u32()?);
    if magic != MAGIC {
        let what = format!("magic number {magic:08X} where {MAGIC:08X} belongs");
        return Err(Error::corrupt(STRUCTURE, 0, what));
    }
    if length as usize != bytes.len() {
        let what = format!("length {length} in a file of {} bytes", bytes.len());
        return Err(Error::corrupt(STRUCTURE, 4, what));
    }
    let Some((body, stored)) = bytes.split_last_chunk::<CRC_BYTES>() else {
        return Err(r.corrupt("no room for a CRC"));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), crc32c::crc32c(body));
    if stored != computed {
        let what = format!("CRC-32C is {computed:08X}, the file says {stored:08X}");
        return Err(Error::corrupt(STRUCTURE, body.len(), what));
    }
    Ok(body)
}

fn gid(r: &mut Reader<'_>, gid_bytes: usize) -> Result<Vec<u8>> {
    if !(1..=GID_BYTES_MAX).contains(&gid_bytes) {
        return Err(r.corrupt(format!("a GID of {gid_bytes} bytes")));
    }
    match r.bytes(gid_bytes)?.split_last() {
        Some((0, gid)) => Ok(gid.to_vec()),
        _ => Err(r.corrupt("a GID without its terminating zero")),
    }
}

/// Fetches the bytes before anything is allocated, so that a hostile count costs nothing.
fn subtransactions(r: &mut Reader<'_>, count: u32) -> Result<Vec<TransactionId>> {
    let bytes = r.bytes((count as usize).saturating_mul(4))?;
    let (words, _) = bytes.as_chunks::<4>();
    Ok(words.iter().map(|word| TransactionId(u32::from_le_bytes(*word))).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILES: [(PgVersion, &str, &[u8]); 3] = [
        (PgVersion::V14, "000002E9", include_bytes!("../fixtures/pg_twophase/14.bin")),
        (PgVersion::V15, "000002E0", include_bytes!("../fixtures/pg_twophase/15.bin")),
        (PgVersion::V18, "00000000000002FC", include_bytes!("../fixtures/pg_twophase/18.bin")),
    ];

    #[test]
    fn a_prepared_transaction_is_read_with_its_name_and_subtransactions() {
        for (version, name, bytes) in FILES {
            let prepared = PreparedTransaction::parse(bytes, version).unwrap();
            let xid = xid_of_file_name(name, version).unwrap();
            let with_subtransactions = [0, 1, 2].map(|n| TransactionId(xid.0 + n));
            assert_eq!(prepared.xids().collect::<Vec<_>>(), with_subtransactions);
            assert_eq!(prepared.gid, "my gid é".as_bytes());
            assert_eq!(prepared.owner, Oid(10));
            assert_eq!(prepared.origin_lsn, Lsn(0));
            assert_eq!(prepared.prepared_at / 86_400_000_000, 9820, "2026-11-20");
        }
    }

    #[test]
    fn the_database_is_the_one_it_ran_in() {
        let databases = FILES.map(|(version, _, bytes)| {
            PreparedTransaction::parse(bytes, version).unwrap().database.0
        });
        assert_eq!(databases, [13_695, 5, 5]);
    }

    #[test]
    fn the_length_of_file_names_changed_in_17() {
        let name = |name, version| xid_of_file_name(name, version).map(|xid| xid.0);
        assert_eq!(name("000002E9", PgVersion::V16), Some(0x2E9));
        assert_eq!(name("000002E9", PgVersion::V17), None);
        assert_eq!(name("00000001000002E9", PgVersion::V17), Some(0x2E9));
        assert_eq!(name("000002e9", PgVersion::V14), None);
        assert_eq!(name("+00002E9", PgVersion::V14), None);
    }

    #[test]
    fn damage_is_named() {
        let (version, _, bytes) = FILES[2];
        let refusal =
            |file: &[u8]| PreparedTransaction::parse(file, version).unwrap_err().to_string();
        assert!(refusal(&bytes[..bytes.len() - 1]).contains("in a file of"));
        assert!(refusal(&[]).contains("4 bytes expected, 0 left"));
        let mut file = bytes.to_vec();
        file[60] ^= 1;
        assert!(refusal(&file).contains("CRC-32C is"));
        file[0] = 0;
        assert!(refusal(&file).contains("magic number"));
    }

    fn sealed(mut file: Vec<u8>) -> Vec<u8> {
        let length = (file.len() + CRC_BYTES) as u32;
        file[..4].copy_from_slice(&MAGIC.to_le_bytes());
        file[4..8].copy_from_slice(&length.to_le_bytes());
        file.extend(crc32c::crc32c(&file).to_le_bytes());
        file
    }

    #[test]
    fn a_hostile_count_allocates_nothing() {
        let mut file = FILES[2].2[..120].to_vec();
        file[28..32].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = PreparedTransaction::parse(&sealed(file), PgVersion::V18).unwrap_err();
        assert!(error.to_string().contains("bytes expected"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 8..300),
            version in prop::sample::select(PgVersion::ALL.to_vec()),
        ) {
            let _ = PreparedTransaction::parse(&bytes, version);
            let _ = PreparedTransaction::parse(&sealed(bytes), version);
        }
    }
}
