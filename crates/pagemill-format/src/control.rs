//! `global/pg_control`: what a cluster is (version, sizes, checksums) and the state it was left in.
//!
//! It is the first file to read and the one that decides whether the rest can be read, so every
//! refusal says the value found and what would have been accepted. Nothing is believed before
//! the CRC-32C over all preceding bytes agrees.
//!
//! The layout is the same for 14, 15 and 16 (`pg_control_version` 1300) and for 17 (1700, which
//! puts `wal_level` of the checkpoint where 16 has padding); 18 (1800) has one more byte before
//! the nonce. The three versions sharing 1300 differ by their catalog version.
//!
//! Sources: `src/include/catalog/pg_control.h`, `src/include/catalog/catversion.h`,
//! `src/common/controldata_utils.c`, PostgreSQL 14 to 18.

mod encoding;
mod text;

use std::fmt;

pub use encoding::CHECKPOINT_BYTES;

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, Lsn, MultiXactId, Oid, PgVersion, SEGMENT_BLOCKS, TransactionId};
use crate::reader::Reader;

const STRUCTURE: &str = "pg_control";
/// Bytes of the file; what follows the CRC is zero.
pub const CONTROL_FILE_BYTES: usize = 8192;
/// Catalog versions of the releases; beta versions had others, and other catalogs.
const CATALOG_VERSIONS: [(u32, PgVersion); 5] = [
    (202_107_181, PgVersion::V14),
    (202_209_061, PgVersion::V15),
    (202_307_071, PgVersion::V16),
    (202_406_281, PgVersion::V17),
    (202_506_291, PgVersion::V18),
];
const READ_VERSIONS: &str =
    "PostgreSQL 14 to 18 (pg_control versions 1300, 1700 and 1800) are read";
const MAX_ALIGN: u32 = 8;
const FLOAT_FORMAT: f64 = 1_234_567.0;

/// What the cluster was doing when `pg_control` was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusterState {
    /// A server was starting, nothing decided yet.
    StartingUp,
    /// Stopped cleanly: every change is in the data files.
    ShutDown,
    /// A standby, stopped cleanly.
    ShutDownInRecovery,
    /// A server was in the middle of stopping.
    ShuttingDown,
    /// A server was replaying WAL after a crash.
    InCrashRecovery,
    /// A standby or a restore, replaying WAL.
    InArchiveRecovery,
    /// A server runs, or was killed.
    InProduction,
    /// A number that no version defines.
    Unrecognized(u32),
}

impl ClusterState {
    fn from_number(number: u32) -> Self {
        match number {
            0 => Self::StartingUp,
            1 => Self::ShutDown,
            2 => Self::ShutDownInRecovery,
            3 => Self::ShuttingDown,
            4 => Self::InCrashRecovery,
            5 => Self::InArchiveRecovery,
            6 => Self::InProduction,
            other => Self::Unrecognized(other),
        }
    }

    /// True when a server stopped cleanly, so that the data files are complete without WAL.
    ///
    /// A standby's stop is not enough: without a new checkpoint record since its last restart
    /// point it ends without writing what it replayed (`CreateRestartPoint` in `xlog.c`), and
    /// goes on from its WAL when it starts again.
    pub fn is_clean(self) -> bool {
        self == Self::ShutDown
    }
}

impl fmt::Display for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StartingUp => "starting up",
            Self::ShutDown => "shut down",
            Self::ShutDownInRecovery => "shut down in recovery",
            Self::ShuttingDown => "shutting down",
            Self::InCrashRecovery => "in crash recovery",
            Self::InArchiveRecovery => "in archive recovery",
            Self::InProduction => "in production",
            Self::Unrecognized(_) => "unrecognized status code",
        })
    }
}

/// A transaction id with its epoch in the upper 32 bits, which never wraps round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FullTransactionId(pub u64);

impl FullTransactionId {
    /// How often the 32-bit ids have wrapped round.
    pub fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The one after this: the numbers that mean something else are passed over.
    #[must_use]
    pub fn next(self) -> Self {
        let next = Self(self.0.wrapping_add(1));
        if next.xid().is_normal() { next } else { Self(next.0 & !0xFFFF_FFFF | 3) }
    }

    /// The 32 bits that tuples carry.
    pub fn xid(self) -> TransactionId {
        TransactionId(self.0 as u32)
    }
}

impl fmt::Display for FullTransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch(), self.xid())
    }
}

/// The copy of the latest checkpoint record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Where WAL replay would start.
    pub redo: Lsn,
    /// The timeline of the checkpoint.
    pub timeline: u32,
    /// The timeline before, when the checkpoint begins a new one.
    pub previous_timeline: u32,
    /// `full_page_writes` at that time.
    pub full_page_writes: bool,
    /// `wal_level` at that time; 17 and later.
    pub wal_level: Option<u32>,
    /// The next transaction id to be given out.
    pub next_xid: FullTransactionId,
    /// The next OID to be given out.
    pub next_oid: Oid,
    /// The next multixact id to be given out.
    pub next_multi: MultiXactId,
    /// The next free place among the multixact members.
    pub next_multi_offset: u32,
    /// The smallest `datfrozenxid` of all databases.
    pub oldest_xid: TransactionId,
    /// A database that has it.
    pub oldest_xid_database: Oid,
    /// The smallest `datminmxid` of all databases.
    pub oldest_multi: MultiXactId,
    /// A database that has it.
    pub oldest_multi_database: Oid,
    /// Seconds since 1970.
    pub time: i64,
    /// The oldest transaction that has a commit timestamp.
    pub oldest_commit_ts_xid: TransactionId,
    /// The newest transaction that has a commit timestamp.
    pub newest_commit_ts_xid: TransactionId,
    /// The oldest running transaction, if the checkpoint was an online one.
    pub oldest_active_xid: TransactionId,
}

impl Checkpoint {
    /// A checkpoint of a cluster that was just made, at this place: counters and limits as its first one has them.
    ///
    /// Source: `BootStrapXLOG` in `src/backend/access/transam/xlog.c`, PostgreSQL 14 to 18.
    pub fn initial(redo: Lsn, timeline: u32) -> Self {
        const FIRST_NORMAL_XID: u32 = 3;
        const FIRST_GENERATED_OID: Oid = Oid(10_000);
        const TEMPLATE1: Oid = Oid(1);
        Self {
            redo,
            timeline,
            previous_timeline: timeline,
            full_page_writes: true,
            wal_level: None,
            next_xid: FullTransactionId(FIRST_NORMAL_XID.into()),
            next_oid: FIRST_GENERATED_OID,
            next_multi: MultiXactId(1),
            next_multi_offset: 0,
            oldest_xid: TransactionId(FIRST_NORMAL_XID),
            oldest_xid_database: TEMPLATE1,
            oldest_multi: MultiXactId(1),
            oldest_multi_database: TEMPLATE1,
            time: 0,
            oldest_commit_ts_xid: TransactionId(0),
            newest_commit_ts_xid: TransactionId(0),
            oldest_active_xid: TransactionId(0),
        }
    }
}

/// The settings that WAL replay depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalSettings {
    /// `wal_level` as a number: 0 minimal, 1 replica, 2 logical.
    pub wal_level: u32,
    /// `wal_log_hints`.
    pub wal_log_hints: bool,
    /// `max_connections`.
    pub max_connections: i32,
    /// `max_worker_processes`.
    pub max_worker_processes: i32,
    /// `max_wal_senders`.
    pub max_wal_senders: i32,
    /// `max_prepared_transactions`.
    pub max_prepared_xacts: i32,
    /// `max_locks_per_transaction`.
    pub max_locks_per_xact: i32,
    /// `track_commit_timestamp`.
    pub track_commit_timestamp: bool,
}

/// The compile-time choices of the server that made the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildSettings {
    /// MAXALIGN, 8 wherever it is read.
    pub max_align: u32,
    /// 1234567.0 in the machine's floating-point format.
    pub float_format: f64,
    /// BLCKSZ, 8192 wherever it is read.
    pub block_size: u32,
    /// RELSEG_SIZE in blocks, 131072 wherever it is read.
    pub segment_blocks: u32,
    /// XLOG_BLCKSZ.
    pub wal_block_size: u32,
    /// Bytes of a WAL segment file, chosen by initdb.
    pub wal_segment_size: u32,
    /// NAMEDATALEN.
    pub name_data_len: u32,
    /// INDEX_MAX_KEYS.
    pub index_max_keys: u32,
    /// TOAST_MAX_CHUNK_SIZE.
    pub toast_max_chunk_size: u32,
    /// LOBLKSIZE.
    pub large_object_block_size: u32,
    /// 8-byte values are passed by value.
    pub float8_by_value: bool,
}

/// The whole of `pg_control`.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlFile {
    /// The server version, from control version and catalog version.
    pub version: PgVersion,
    /// Unique to the cluster and its physical copies.
    pub system_identifier: u64,
    /// The layout's version: 1300, 1700 or 1800.
    pub control_version: u32,
    /// The catalogs' version, also part of every tablespace directory's name.
    pub catalog_version: u32,
    /// What the cluster was doing.
    pub state: ClusterState,
    /// When `pg_control` was written, in seconds since 1970.
    pub time: i64,
    /// Where the latest checkpoint record lies.
    pub checkpoint_location: Lsn,
    /// A copy of that record.
    pub checkpoint: Checkpoint,
    /// Counter standing in for LSNs in unlogged relations.
    pub unlogged_lsn: Lsn,
    /// Replay has to reach this before the files are consistent.
    pub min_recovery_point: Lsn,
    /// The timeline of that point.
    pub min_recovery_point_timeline: u32,
    /// Where the backup being restored began.
    pub backup_start_point: Lsn,
    /// Where the backup being restored ended.
    pub backup_end_point: Lsn,
    /// An end-of-backup record must still be met.
    pub backup_end_required: bool,
    /// Settings that WAL replay depends on.
    pub settings: WalSettings,
    /// Compile-time choices of the server.
    pub build: BuildSettings,
    /// 0: pages carry no checksums; 1: they do.
    pub data_checksum_version: u32,
    /// `char` is signed on the machine the cluster came from; 18 and later.
    pub default_char_signedness: Option<bool>,
    /// Random bytes for authentication of users that do not exist.
    pub mock_authentication_nonce: [u8; 32],
    /// CRC-32C over everything before it.
    pub crc: u32,
}

impl ControlFile {
    /// Reads the contents of `global/pg_control`; `file_version` is what the file PG_VERSION
    /// says, where it was read, and has to agree.
    ///
    /// # Errors
    /// Corrupt: too short, a wrong CRC, or a disagreement with PG_VERSION. Unsupported: another
    /// byte order, version, block size, segment size, alignment or floating-point format.
    pub fn parse(bytes: &[u8], file_version: Option<PgVersion>) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, bytes);
        let system_identifier = r.u64()?;
        let (control_version, catalog_version) = (r.u32()?, r.u32()?);
        let layout = Layout::of(control_version).map_err(|unknown| {
            if has_some_crc(bytes) { unknown } else { no_control_file(control_version) }
        })?;
        check_crc(bytes, layout.crc_offset)?;
        let version = version_of(control_version, catalog_version, file_version)?;
        let identity = Identity { version, system_identifier, control_version, catalog_version };
        let file = Self::body(&mut r, layout, identity)?;
        check_build(&file.build)?;
        Ok(file)
    }

    /// True when pages carry checksums.
    pub fn has_data_checksums(&self) -> bool {
        self.data_checksum_version != 0
    }

    fn body(r: &mut Reader<'_>, layout: Layout, identity: Identity) -> Result<Self> {
        Ok(Self {
            version: identity.version,
            system_identifier: identity.system_identifier,
            control_version: identity.control_version,
            catalog_version: identity.catalog_version,
            state: ClusterState::from_number(r.u32()?),
            time: aligned(r, 8).i64()?,
            checkpoint_location: Lsn(r.u64()?),
            checkpoint: checkpoint(r, layout)?,
            unlogged_lsn: Lsn(aligned(r, 8).u64()?),
            min_recovery_point: Lsn(r.u64()?),
            min_recovery_point_timeline: r.u32()?,
            backup_start_point: Lsn(aligned(r, 8).u64()?),
            backup_end_point: Lsn(r.u64()?),
            backup_end_required: r.u8()? != 0,
            settings: wal_settings(r)?,
            build: build_settings(r)?,
            data_checksum_version: aligned(r, 4).u32()?,
            default_char_signedness: match layout.has_char_signedness {
                true => Some(r.u8()? != 0),
                false => None,
            },
            mock_authentication_nonce: nonce(r)?,
            crc: aligned(r, 4).u32()?,
        })
    }
}

/// The first 16 bytes, which no version moves.
struct Identity {
    version: PgVersion,
    system_identifier: u64,
    control_version: u32,
    catalog_version: u32,
}

/// Where the layouts differ.
#[derive(Clone, Copy)]
struct Layout {
    crc_offset: usize,
    has_checkpoint_wal_level: bool,
    has_char_signedness: bool,
}

/// Where a version may keep the CRC: its file is written to one sector.
const LEAST_BYTES: usize = 128;
const MOST_BYTES: usize = 512;

impl Layout {
    fn of(control_version: u32) -> Result<Self> {
        let (crc_offset, has_checkpoint_wal_level, has_char_signedness) = match control_version {
            1300 => (288, false, false),
            1700 => (288, true, false),
            1800 => (292, true, true),
            other => return Err(unknown_version(other)),
        };
        Ok(Self { crc_offset, has_checkpoint_wal_level, has_char_signedness })
    }
}

/// Control versions are small numbers, so a big-endian one shows in the upper half (the test
/// PostgreSQL itself uses).
fn unknown_version(found: u32) -> Error {
    let swapped = found.swap_bytes();
    if found.is_multiple_of(65_536) && (1..65_536).contains(&swapped) {
        return Error::unsupported(
            STRUCTURE,
            format!(
                "pg_control version {swapped} in big-endian byte order: the cluster was made on a \
                 big-endian machine, and only little-endian clusters are read"
            ),
        );
    }
    let age = match found {
        0..1300 => "older than any this build reads",
        1801.. => "newer than any this build reads",
        _ => "not that of a release",
    };
    Error::unsupported(STRUCTURE, format!("pg_control version {found} is {age}; {READ_VERSIONS}"))
}

/// True when the bytes up to some place have the CRC that follows them, in either byte order, as they have in every
/// version, wherever that keeps it. Other bytes have none, but for a chance of one in ten million.
fn has_some_crc(bytes: &[u8]) -> bool {
    let places = (LEAST_BYTES..bytes.len().min(MOST_BYTES)).step_by(4);
    places.into_iter().any(|at| {
        let Some((covered, rest)) = bytes.split_at_checked(at) else { return false };
        let computed = crc32c::crc32c(covered);
        rest.first_chunk::<4>().is_some_and(|stored| {
            [u32::from_le_bytes(*stored), u32::from_be_bytes(*stored)].contains(&computed)
        })
    })
}

fn no_control_file(version: u32) -> Error {
    let what = format!("pg_control version {version} is not known, and no CRC fits the contents");
    Error::corrupt(STRUCTURE, 8, what)
}

fn check_crc(bytes: &[u8], crc_offset: usize) -> Result<()> {
    let halves = bytes.split_at_checked(crc_offset);
    let Some((covered, stored)) =
        halves.and_then(|(covered, rest)| Some((covered, rest.first_chunk::<4>()?)))
    else {
        let what = format!("the file ends after {} bytes, before its CRC", bytes.len());
        return Err(Error::corrupt(STRUCTURE, bytes.len(), what));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), crc32c::crc32c(covered));
    if stored == computed {
        return Ok(());
    }
    let what = format!("CRC-32C is {computed:08X}, the file says {stored:08X}");
    Err(Error::corrupt(STRUCTURE, crc_offset, what))
}

fn version_of(control: u32, catalog: u32, file: Option<PgVersion>) -> Result<PgVersion> {
    let known = CATALOG_VERSIONS.iter().find(|(number, _)| *number == catalog);
    let Some(&(_, version)) = known.filter(|(_, v)| control_version_of(*v) == control) else {
        let what = format!(
            "catalog version {catalog} (with pg_control version {control}{}) is not that of a \
             PostgreSQL 14 to 18 release; {READ_VERSIONS}",
            file.map(|v| format!(", PG_VERSION {v}")).unwrap_or_default(),
        );
        return Err(Error::unsupported(STRUCTURE, what));
    };
    match file {
        Some(file) if file != version => {
            let what = format!(
                "catalog version {catalog} is PostgreSQL {version}'s, but the file PG_VERSION says {file}"
            );
            Err(Error::corrupt(STRUCTURE, 12, what))
        }
        _ => Ok(version),
    }
}

fn control_version_of(version: PgVersion) -> u32 {
    match version {
        PgVersion::V14 | PgVersion::V15 | PgVersion::V16 => 1300,
        PgVersion::V17 => 1700,
        PgVersion::V18 => 1800,
    }
}

/// The catalog version of a release, which is part of the names of tablespaces' directories.
pub fn catalog_version_of(version: PgVersion) -> u32 {
    let known = CATALOG_VERSIONS.iter().find(|(_, of)| *of == version);
    known.map_or(0, |(number, _)| *number)
}

fn check_build(build: &BuildSettings) -> Result<()> {
    let refuse = |what: String| Err(Error::unsupported(STRUCTURE, what));
    if build.block_size as usize != BLOCK_SIZE {
        return refuse(format!(
            "block size {}: only {BLOCK_SIZE}-byte (8 kB) blocks are read",
            build.block_size
        ));
    }
    if build.segment_blocks != SEGMENT_BLOCKS {
        return refuse(format!(
            "{} blocks per segment: only segments of {SEGMENT_BLOCKS} blocks (1 GiB) are read",
            build.segment_blocks
        ));
    }
    if build.max_align != MAX_ALIGN {
        return refuse(format!(
            "maximum data alignment {}: only {MAX_ALIGN} is read",
            build.max_align
        ));
    }
    if build.float_format != FLOAT_FORMAT {
        return refuse(format!(
            "floating-point format in which {FLOAT_FORMAT:.1} reads as {:e}: only IEEE 754 is read",
            build.float_format
        ));
    }
    if !build.float8_by_value {
        return refuse(
            "8-byte values passed by reference: only 64-bit servers' clusters are read".to_owned(),
        );
    }
    Ok(())
}

/// Steps over the padding a C compiler puts before a field of alignment `to`.
fn aligned<'r, 'a>(r: &'r mut Reader<'a>, to: usize) -> &'r mut Reader<'a> {
    r.align(to);
    r
}

fn checkpoint(r: &mut Reader<'_>, layout: Layout) -> Result<Checkpoint> {
    Ok(Checkpoint {
        redo: Lsn(r.u64()?),
        timeline: r.u32()?,
        previous_timeline: r.u32()?,
        full_page_writes: r.u8()? != 0,
        wal_level: match layout.has_checkpoint_wal_level {
            true => Some(aligned(r, 4).u32()?),
            false => None,
        },
        next_xid: FullTransactionId(aligned(r, 8).u64()?),
        next_oid: Oid(r.u32()?),
        next_multi: MultiXactId(r.u32()?),
        next_multi_offset: r.u32()?,
        oldest_xid: TransactionId(r.u32()?),
        oldest_xid_database: Oid(r.u32()?),
        oldest_multi: MultiXactId(r.u32()?),
        oldest_multi_database: Oid(r.u32()?),
        time: aligned(r, 8).i64()?,
        oldest_commit_ts_xid: TransactionId(r.u32()?),
        newest_commit_ts_xid: TransactionId(r.u32()?),
        oldest_active_xid: TransactionId(r.u32()?),
    })
}

fn wal_settings(r: &mut Reader<'_>) -> Result<WalSettings> {
    Ok(WalSettings {
        wal_level: aligned(r, 4).u32()?,
        wal_log_hints: r.u8()? != 0,
        max_connections: aligned(r, 4).i32()?,
        max_worker_processes: r.i32()?,
        max_wal_senders: r.i32()?,
        max_prepared_xacts: r.i32()?,
        max_locks_per_xact: r.i32()?,
        track_commit_timestamp: r.u8()? != 0,
    })
}

fn build_settings(r: &mut Reader<'_>) -> Result<BuildSettings> {
    Ok(BuildSettings {
        max_align: aligned(r, 4).u32()?,
        float_format: aligned(r, 8).f64()?,
        block_size: r.u32()?,
        segment_blocks: r.u32()?,
        wal_block_size: r.u32()?,
        wal_segment_size: r.u32()?,
        name_data_len: r.u32()?,
        index_max_keys: r.u32()?,
        toast_max_chunk_size: r.u32()?,
        large_object_block_size: r.u32()?,
        float8_by_value: r.u8()? != 0,
    })
}

fn nonce(r: &mut Reader<'_>) -> Result<[u8; 32]> {
    let mut nonce = [0; 32];
    nonce.copy_from_slice(r.bytes(32)?);
    Ok(nonce)
}

#[cfg(test)]
mod tests;
