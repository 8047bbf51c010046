//! The small files that say how a copy of a cluster was made, and which timelines its WAL has.
//!
//! `backup_label` and `tablespace_map` lie in a data directory that was copied while its server ran;
//! `backup_manifest` beside them if `pg_basebackup` made the copy; history files and backup history files lie among
//! the WAL. All of them are text, written by a server or a tool and at times edited by people. Beside them, headers of the
//! archives that backups in tar format are kept in, and of the files of incremental backups.
//!
//! Invariant: what parses is what a server of 14 to 18 would take; where it refuses, these refuse.

mod backup_label;
mod backup_manifest;
mod incremental_file;
mod pax_records;
mod tablespace_map;
mod tar_header;
mod timeline_history;

pub use backup_label::{BackupEnd, BackupLabel, BackupMethod};
pub use backup_manifest::{BackupManifest, WalRange};
pub use incremental_file::IncrementalHeader;
pub use pax_records::PaxRecords;
pub use tablespace_map::TablespaceMap;
pub use tar_header::{TAR_BLOCK, TarHeader, TarMember};
pub use timeline_history::{TimelineHistory, TimelinePart};

#[cfg(test)]
mod tests;
