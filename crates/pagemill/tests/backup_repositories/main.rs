//! Backups in the repositories of other tools, read where they lie: every row as the server has it that the tool restores, and as the server
//! has it that was backed up.
//!
//! The tools are `pgbackrest`, `barman` and `barman-cloud-backup` of the machine, and the programs that `PAGEMILL_PGBACKREST` and
//! `PAGEMILL_WAL_G` name; what is not there is skipped. pgBackRest stores files by blocks only from 2.46 on.

mod barman;
#[cfg(feature = "remote")]
mod barman_cloud;
mod damage;
mod pgbackrest;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod wal_g;
mod wal_g_layout;
