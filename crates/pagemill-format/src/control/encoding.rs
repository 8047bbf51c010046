//! The control file and the body of a checkpoint record as bytes, for every version that is read.
//!
//! Invariant: what a server wrote and [`ControlFile::parse`] read is encoded to the same bytes, so that
//! changing a field changes that field and the CRC, and nothing else.
//!
//! Sources: `src/include/catalog/pg_control.h`, `update_controlfile` in `src/common/controldata_utils.c`,
//! PostgreSQL 14 to 18.

use super::{
    BuildSettings, CONTROL_FILE_BYTES, Checkpoint, ClusterState, ControlFile, Layout, WalSettings,
    checkpoint, control_version_of,
};
use crate::error::Result;
use crate::ids::PgVersion;
use crate::reader::Reader;

/// Bytes of a checkpoint record's body, in every version.
pub const CHECKPOINT_BYTES: usize = 88;

impl ControlFile {
    /// The contents of `global/pg_control`, its CRC made anew.
    ///
    /// # Errors
    /// Unsupported: a control version that no supported release has.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let layout = Layout::of(self.control_version)?;
        let mut w = Writer(Vec::with_capacity(CONTROL_FILE_BYTES));
        w.bytes(&self.system_identifier.to_le_bytes());
        w.u32(self.control_version);
        w.u32(self.catalog_version);
        w.u32(self.state.number());
        w.u64(self.time as u64);
        w.u64(self.checkpoint_location.0);
        w.checkpoint(&self.checkpoint, layout);
        w.u64(self.unlogged_lsn.0);
        w.u64(self.min_recovery_point.0);
        w.u32(self.min_recovery_point_timeline);
        w.u64(self.backup_start_point.0);
        w.u64(self.backup_end_point.0);
        w.flag(self.backup_end_required);
        w.wal_settings(&self.settings);
        w.build_settings(&self.build);
        w.u32(self.data_checksum_version);
        if layout.has_char_signedness {
            w.flag(self.default_char_signedness.unwrap_or(true));
        }
        w.bytes(&self.mock_authentication_nonce);
        w.align(4);
        w.u32(crc32c::crc32c(&w.0));
        w.0.resize(CONTROL_FILE_BYTES, 0);
        Ok(w.0)
    }
}

impl ClusterState {
    fn number(self) -> u32 {
        match self {
            Self::StartingUp => 0,
            Self::ShutDown => 1,
            Self::ShutDownInRecovery => 2,
            Self::ShuttingDown => 3,
            Self::InCrashRecovery => 4,
            Self::InArchiveRecovery => 5,
            Self::InProduction => 6,
            Self::Unrecognized(number) => number,
        }
    }
}

impl Checkpoint {
    /// Reads the body of a checkpoint record.
    ///
    /// # Errors
    /// Corrupt: too few bytes.
    pub fn parse(main_data: &[u8], version: PgVersion) -> Result<Self> {
        let layout = Layout::of(control_version_of(version))?;
        checkpoint(&mut Reader::new("checkpoint record", main_data), layout)
    }

    /// The body of a checkpoint record.
    pub fn encode(&self, version: PgVersion) -> [u8; CHECKPOINT_BYTES] {
        let mut w = Writer(Vec::with_capacity(CHECKPOINT_BYTES));
        let layout = Layout::of(control_version_of(version));
        if let Ok(layout) = layout {
            w.checkpoint(self, layout);
        }
        w.align(8);
        let mut bytes = [0; CHECKPOINT_BYTES];
        bytes.iter_mut().zip(w.0).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// Puts fields behind each other, each at a multiple of its size, as a C compiler does.
struct Writer(Vec<u8>);

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn flag(&mut self, set: bool) {
        self.0.push(u8::from(set));
    }

    fn u32(&mut self, value: u32) {
        self.align(4);
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.align(8);
        self.bytes(&value.to_le_bytes());
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint, layout: Layout) {
        self.u64(checkpoint.redo.0);
        self.u32(checkpoint.timeline);
        self.u32(checkpoint.previous_timeline);
        self.flag(checkpoint.full_page_writes);
        if layout.has_checkpoint_wal_level {
            self.u32(checkpoint.wal_level.unwrap_or(0));
        }
        self.u64(checkpoint.next_xid.0);
        self.u32(checkpoint.next_oid.0);
        self.u32(checkpoint.next_multi.0);
        self.u32(checkpoint.next_multi_offset);
        self.u32(checkpoint.oldest_xid.0);
        self.u32(checkpoint.oldest_xid_database.0);
        self.u32(checkpoint.oldest_multi.0);
        self.u32(checkpoint.oldest_multi_database.0);
        self.u64(checkpoint.time as u64);
        self.u32(checkpoint.oldest_commit_ts_xid.0);
        self.u32(checkpoint.newest_commit_ts_xid.0);
        self.u32(checkpoint.oldest_active_xid.0);
    }

    fn wal_settings(&mut self, settings: &WalSettings) {
        self.u32(settings.wal_level);
        self.flag(settings.wal_log_hints);
        let limits = [
            settings.max_connections,
            settings.max_worker_processes,
            settings.max_wal_senders,
            settings.max_prepared_xacts,
            settings.max_locks_per_xact,
        ];
        limits.iter().for_each(|limit| self.u32(*limit as u32));
        self.flag(settings.track_commit_timestamp);
    }

    fn build_settings(&mut self, build: &BuildSettings) {
        self.u32(build.max_align);
        self.u64(build.float_format.to_bits());
        let sizes = [
            build.block_size,
            build.segment_blocks,
            build.wal_block_size,
            build.wal_segment_size,
            build.name_data_len,
            build.index_max_keys,
            build.toast_max_chunk_size,
            build.large_object_block_size,
        ];
        sizes.iter().for_each(|size| self.u32(*size));
        self.flag(build.float8_by_value);
    }
}
