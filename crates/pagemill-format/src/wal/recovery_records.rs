//! The records that steer a recovery: the end of a backup, restore points, changes of settings, the beginning of a
//! timeline, and records given up after a crash.
//!
//! Sources: `xl_restore_point`, `xl_end_of_recovery`, `xl_parameter_change` and `xl_overwrite_contrecord` in
//! `src/include/access/xlog_internal.h`; `XLOG_BACKUP_END` and `XLOG_FPW_CHANGE` in `xlog_redo`,
//! `src/backend/access/transam/xlog.c`, PostgreSQL 14 to 18.

use super::ResourceManager;
use crate::control::Checkpoint;
use crate::error::Result;
use crate::ids::{Lsn, PgVersion};
use crate::reader::Reader;

const STRUCTURE: &str = "XLOG record";
/// MAXFNAMELEN, which a restore point's name has room for.
const NAME_BYTES: usize = 64;

/// What a record of [`ResourceManager::XLOG`] means for a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryRecord {
    /// A checkpoint; `true` when no server ran after it.
    Checkpoint(Box<Checkpoint>, bool),
    /// The backup that began at this place ended.
    BackupEnd(Lsn),
    /// A place that was given a name: microseconds since 2000-01-01 UTC, and the name.
    RestorePoint(i64, Vec<u8>),
    /// From here on the server ran with this `wal_level`.
    WalLevel(u32),
    /// From here on `full_page_writes` was this.
    FullPageWrites(bool),
    /// A recovery ended: the timeline from here on, and the one before.
    EndOfRecovery(u32, u32),
    /// The record that begins at this place was given up.
    OverwriteContrecord(Lsn),
    /// A checkpoint began (17 and later).
    CheckpointRedo,
}

impl RecoveryRecord {
    /// Reads the main data of a record of [`ResourceManager::XLOG`]; `None` for those that mean nothing here.
    ///
    /// # Errors
    /// Corrupt: too few bytes.
    pub fn parse(main_data: &[u8], kind: u8, version: PgVersion) -> Result<Option<Self>> {
        let mut r = Reader::new(STRUCTURE, main_data);
        Ok(Some(match kind {
            ResourceManager::XLOG_CHECKPOINT_SHUTDOWN | ResourceManager::XLOG_CHECKPOINT_ONLINE => {
                let checkpoint = Checkpoint::parse(main_data, version)?;
                let is_shutdown = kind == ResourceManager::XLOG_CHECKPOINT_SHUTDOWN;
                Self::Checkpoint(Box::new(checkpoint), is_shutdown)
            }
            ResourceManager::XLOG_BACKUP_END => Self::BackupEnd(Lsn(r.u64()?)),
            ResourceManager::XLOG_RESTORE_POINT => {
                let time = r.i64()?;
                let name = r.bytes(r.remaining().min(NAME_BYTES))?;
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                Self::RestorePoint(time, name.to_vec())
            }
            ResourceManager::XLOG_PARAMETER_CHANGE => {
                // Five numbers of connections, processes and locks come first.
                r.bytes(20)?;
                Self::WalLevel(r.u32()?)
            }
            ResourceManager::XLOG_FPW_CHANGE => Self::FullPageWrites(r.u8()? != 0),
            ResourceManager::XLOG_END_OF_RECOVERY => {
                r.i64()?;
                Self::EndOfRecovery(r.u32()?, r.u32()?)
            }
            ResourceManager::XLOG_OVERWRITE_CONTRECORD => Self::OverwriteContrecord(Lsn(r.u64()?)),
            ResourceManager::XLOG_CHECKPOINT_REDO => Self::CheckpointRedo,
            _ => return Ok(None),
        }))
    }
}
