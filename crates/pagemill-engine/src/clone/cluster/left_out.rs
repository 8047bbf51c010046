//! What of a data directory a copy leaves out, by name: what a base backup leaves out too, since a server makes it anew
//! or must not find it.
//!
//! Sources: `excludeFiles`, `excludeDirContents` and `sendDir` in `src/backend/backup/basebackup.c` (PostgreSQL 15 to 18;
//! `src/backend/replication/basebackup.c` in 14); the names of relation files in `src/backend/storage/file/reinit.c` and
//! `looks_like_temp_rel_name` in `src/backend/storage/file/fd.c`, PostgreSQL 14 to 18.
//!
//! Invariant: a name that is not known is copied.

use pagemill_format::Fork;

/// Names of files that are left out wherever they are.
const FILES: [&str; 12] = [
    "postgresql.auto.conf.tmp",
    "current_logfiles.tmp",
    "backup_label",
    "tablespace_map",
    "backup_manifest",
    "postmaster.pid",
    // What a lock of this project is called until it is written.
    "postmaster.pid.new",
    "postmaster.opts",
    "pagemill.pending.new",
    // The copy has a mark of its own.
    super::unfinished::NAME,
    super::unfinished::TEMPORARY,
    ".DS_Store",
];

/// What names of files begin with that are left out wherever they are.
const PREFIXES: [&str; 3] = ["pg_internal.init", "pgsql_tmp", "pagemill_tmp."];

/// Directories of the data directory that are made, and left empty.
const EMPTIED: [&str; 7] = [
    "pg_stat_tmp",
    "pg_replslot",
    "pg_dynshmem",
    "pg_notify",
    "pg_serial",
    "pg_snapshots",
    "pg_subtrans",
];

/// True for a file or directory that is left out by its name alone.
pub(super) fn is_left_out(name: &str) -> bool {
    FILES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// True for a directory of the data directory whose contents are left out.
pub(super) fn is_emptied(name: &str) -> bool {
    EMPTIED.contains(&name)
}

/// A relation's file, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RelationFile {
    pub(super) number: u32,
    pub(super) fork: Fork,
    pub(super) segment: u32,
}

impl RelationFile {
    /// Reads the name of a file of a relation that is not temporary.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (name, segment) = match name.split_once('.') {
            Some((name, segment)) => (name, number(segment)?),
            None => (name, 0),
        };
        let (relation, fork) = match name.split_once('_') {
            Some((relation, fork)) => (relation, fork_named(fork)?),
            None => (name, Fork::Main),
        };
        Some(Self { number: number(relation)?, fork, segment })
    }
}

/// True for a file of a temporary relation: `t`, a backend's number, `_`, and the name of a relation's file.
pub(super) fn is_temporary(name: &str) -> bool {
    let parts = name.strip_prefix('t').and_then(|name| name.split_once('_'));
    parts.is_some_and(|(backend, relation)| {
        number(backend).is_some() && RelationFile::parse(relation).is_some()
    })
}

fn fork_named(name: &str) -> Option<Fork> {
    Fork::ALL.into_iter().find(|fork| *fork != Fork::Main && fork.name() == name)
}

fn number(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_makes_anew_is_left_out_and_the_rest_is_not() {
        for name in ["postmaster.pid", "pg_internal.init.4711", "pgsql_tmp", "pgsql_tmp123.4"] {
            assert!(is_left_out(name), "{name}");
        }
        for name in ["PG_VERSION", "postgresql.auto.conf", "current_logfiles", "16384", "pg_xact"] {
            assert!(!is_left_out(name), "{name}");
        }
        assert!(is_emptied("pg_replslot") && !is_emptied("pg_twophase") && !is_emptied("pg_stat"));
    }

    #[test]
    fn a_relations_file_is_known_by_its_name() {
        let of =
            |name| RelationFile::parse(name).map(|file| (file.number, file.fork, file.segment));
        assert_eq!(of("16384"), Some((16384, Fork::Main, 0)));
        assert_eq!(of("16384.17"), Some((16384, Fork::Main, 17)));
        assert_eq!(of("16384_vm.1"), Some((16384, Fork::Vm, 1)));
        assert_eq!(of("4294967295_init"), Some((u32::MAX, Fork::Init, 0)));
        for name in ["", "PG_VERSION", "16384_main", "16384_x", "16384.", "16384.x", "_fsm", "t3_1"]
        {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn a_temporary_relations_file_is_known_by_its_name() {
        for name in ["t3_16384", "t12_16384_fsm", "t1_2.3"] {
            assert!(is_temporary(name), "{name}");
        }
        for name in ["t_16384", "t3_", "16384", "tx_1", "t3_x", "t3_1_x"] {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
