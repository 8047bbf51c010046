//! Resource managers, the parts of PostgreSQL that write WAL, and the names of their records.
//!
//! The names are those that `pg_waldump` prints. Extensions may bring managers of their own, numbered from
//! 128 on, whose records have no names here.
//!
//! Sources: `src/include/access/rmgrlist.h` and the `*_identify` functions in
//! `src/backend/access/rmgrdesc/`, PostgreSQL 14 to 18.

use std::borrow::Cow;

use crate::ids::PgVersion;

/// The number of a resource manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceManager(pub u8);

/// The names, in the order of the numbers.
const NAMES: [&str; 22] = [
    "XLOG",
    "Transaction",
    "Storage",
    "CLOG",
    "Database",
    "Tablespace",
    "MultiXact",
    "RelMap",
    "Standby",
    "Heap2",
    "Heap",
    "Btree",
    "Hash",
    "Gin",
    "Gist",
    "Sequence",
    "SPGist",
    "BRIN",
    "CommitTs",
    "ReplicationOrigin",
    "Generic",
    "LogicalMessage",
];
/// Managers of extensions have numbers from this on.
const FIRST_CUSTOM: u8 = 128;

impl ResourceManager {
    /// Checkpoints, full-page images, and what else concerns the WAL itself.
    pub const XLOG: Self = Self(0);
    /// Commits and aborts.
    pub const TRANSACTION: Self = Self(1);
    /// Files of relations made and cut.
    pub const STORAGE: Self = Self(2);
    /// The commit log.
    pub const CLOG: Self = Self(3);
    /// Databases made and dropped.
    pub const DATABASE: Self = Self(4);
    /// Tablespaces made and dropped.
    pub const TABLESPACE: Self = Self(5);
    /// Multixacts.
    pub const MULTIXACT: Self = Self(6);
    /// The relation map.
    pub const RELMAP: Self = Self(7);
    /// What standbys need to know: locks and running transactions.
    pub const STANDBY: Self = Self(8);
    /// Tables, continued.
    pub const HEAP2: Self = Self(9);
    /// Tables.
    pub const HEAP: Self = Self(10);
    /// B-tree indexes.
    pub const BTREE: Self = Self(11);
    /// Hash indexes.
    pub const HASH: Self = Self(12);
    /// GIN indexes.
    pub const GIN: Self = Self(13);
    /// GiST indexes.
    pub const GIST: Self = Self(14);
    /// Sequences.
    pub const SEQUENCE: Self = Self(15);
    /// SP-GiST indexes.
    pub const SPGIST: Self = Self(16);
    /// BRIN indexes.
    pub const BRIN: Self = Self(17);
    /// Commit timestamps.
    pub const COMMIT_TS: Self = Self(18);
    /// Pages of extensions, changed byte by byte.
    pub const GENERIC: Self = Self(20);

    /// [`XLOG`](Self::XLOG): a checkpoint with no server running after it.
    pub const XLOG_CHECKPOINT_SHUTDOWN: u8 = 0x00;
    /// [`XLOG`](Self::XLOG): a checkpoint of a running server.
    pub const XLOG_CHECKPOINT_ONLINE: u8 = 0x10;
    /// [`XLOG`](Self::XLOG): OIDs up to this one may be given out.
    pub const XLOG_NEXTOID: u8 = 0x30;
    /// [`XLOG`](Self::XLOG): the rest of the segment is not used.
    pub const XLOG_SWITCH: u8 = 0x40;
    /// [`XLOG`](Self::XLOG): a backup ended.
    pub const XLOG_BACKUP_END: u8 = 0x50;
    /// [`XLOG`](Self::XLOG): settings that recovery depends on changed.
    pub const XLOG_PARAMETER_CHANGE: u8 = 0x60;
    /// [`XLOG`](Self::XLOG): a place was given a name.
    pub const XLOG_RESTORE_POINT: u8 = 0x70;
    /// [`XLOG`](Self::XLOG): `full_page_writes` changed.
    pub const XLOG_FPW_CHANGE: u8 = 0x80;
    /// [`XLOG`](Self::XLOG): a recovery ended, and a timeline may begin.
    pub const XLOG_END_OF_RECOVERY: u8 = 0x90;
    /// [`XLOG`](Self::XLOG): full-page images.
    pub const XLOG_FPI: u8 = 0xB0;
    /// [`XLOG`](Self::XLOG): a record that a crash cut short was given up.
    pub const XLOG_OVERWRITE_CONTRECORD: u8 = 0xD0;
    /// [`XLOG`](Self::XLOG): a checkpoint began; 17 and later.
    pub const XLOG_CHECKPOINT_REDO: u8 = 0xE0;
    /// [`STORAGE`](Self::STORAGE): a file was made.
    pub const SMGR_CREATE: u8 = 0x10;
    /// [`STORAGE`](Self::STORAGE): a relation was cut.
    pub const SMGR_TRUNCATE: u8 = 0x20;
    /// [`TRANSACTION`](Self::TRANSACTION): a transaction committed.
    pub const XACT_COMMIT: u8 = 0x00;
    /// [`TRANSACTION`](Self::TRANSACTION): a transaction was rolled back.
    pub const XACT_ABORT: u8 = 0x20;
    /// [`TRANSACTION`](Self::TRANSACTION): a prepared transaction committed.
    pub const XACT_COMMIT_PREPARED: u8 = 0x30;
    /// [`TRANSACTION`](Self::TRANSACTION): a prepared transaction was rolled back.
    pub const XACT_ABORT_PREPARED: u8 = 0x40;
    /// [`STANDBY`](Self::STANDBY): access exclusive locks are held.
    pub const STANDBY_LOCK: u8 = 0x00;
    /// [`STANDBY`](Self::STANDBY): which transactions are running.
    pub const RUNNING_XACTS: u8 = 0x10;
    /// [`CLOG`](Self::CLOG): a page of the commit log begins as zeros.
    pub const CLOG_ZEROPAGE: u8 = 0x00;
    /// In a record's lower four bits: it changes files of relations beyond its block references.
    pub const SPECIAL_REL_UPDATE: u8 = 0x01;

    /// The manager's name; `custom` and a number for one of an extension.
    pub fn name(self) -> Cow<'static, str> {
        match NAMES.get(usize::from(self.0)) {
            Some(name) => Cow::Borrowed(*name),
            None if self.0 >= FIRST_CUSTOM => Cow::Owned(format!("custom{:03}", self.0)),
            None => Cow::Owned(format!("unknown{:03}", self.0)),
        }
    }

    /// The manager of this name, upper and lower case alike.
    pub fn named(name: &str) -> Option<Self> {
        (0..=u8::MAX).map(Self).find(|manager| manager.name().eq_ignore_ascii_case(name))
    }

    /// Every manager that PostgreSQL itself has.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len() as u8).map(Self)
    }

    /// True for the numbers that managers have, or can have by an extension.
    pub fn is_valid(self) -> bool {
        usize::from(self.0) < NAMES.len() || self.0 >= FIRST_CUSTOM
    }

    /// The name of its record with this `info`; `None` when there is no such record in this version.
    pub fn record_name(self, info: u8, version: PgVersion) -> Option<&'static str> {
        let kind = info & 0xF0;
        let name = match self.0 {
            0 => return xlog(kind, version),
            1 => at(&TRANSACTION, kind & 0x70),
            2 => at(&["", "CREATE", "TRUNCATE"], kind),
            3 | 18 => at(&["ZEROPAGE", "TRUNCATE"], kind),
            4 if version == PgVersion::V14 => at(&["CREATE", "DROP"], kind),
            4 => at(&["CREATE_FILE_COPY", "CREATE_WAL_LOG", "DROP"], kind),
            5 => at(&["CREATE", "DROP"], kind),
            6 => at(&["ZERO_OFF_PAGE", "ZERO_MEM_PAGE", "CREATE_ID", "TRUNCATE_ID"], kind),
            7 => at(&["UPDATE"], kind),
            8 => at(&["LOCK", "RUNNING_XACTS", "INVALIDATIONS"], kind),
            9 if version >= PgVersion::V17 => at(&HEAP2_FROM_17, kind),
            9 => at(&HEAP2_BEFORE_17, kind),
            10 => at(&HEAP, kind),
            11 => at(&BTREE, kind),
            12 => at(&HASH, kind),
            13 => at(&GIN, kind),
            14 => at(&GIST, kind),
            15 => at(&["LOG"], kind),
            16 => at(&SPGIST, kind),
            17 => at(&BRIN, kind),
            19 => at(&["SET", "DROP"], kind),
            20 => "Generic",
            21 => at(&["MESSAGE"], kind),
            _ => "",
        };
        (!name.is_empty()).then_some(name)
    }
}

/// The name at the place that the upper four bits give; "" for none.
fn at(names: &[&'static str], kind: u8) -> &'static str {
    names.get(usize::from(kind >> 4)).copied().unwrap_or("")
}

fn xlog(kind: u8, version: PgVersion) -> Option<&'static str> {
    let name = at(&XLOG, kind);
    let is_known = name != "CHECKPOINT_REDO" || version >= PgVersion::V17;
    (!name.is_empty() && is_known).then_some(name)
}

const XLOG: [&str; 15] = [
    "CHECKPOINT_SHUTDOWN",
    "CHECKPOINT_ONLINE",
    "NOOP",
    "NEXTOID",
    "SWITCH",
    "BACKUP_END",
    "PARAMETER_CHANGE",
    "RESTORE_POINT",
    "FPW_CHANGE",
    "END_OF_RECOVERY",
    "FPI_FOR_HINT",
    "FPI",
    "",
    "OVERWRITE_CONTRECORD",
    "CHECKPOINT_REDO",
];

const TRANSACTION: [&str; 7] = [
    "COMMIT",
    "PREPARE",
    "ABORT",
    "COMMIT_PREPARED",
    "ABORT_PREPARED",
    "ASSIGNMENT",
    "INVALIDATION",
];

const HEAP: [&str; 13] = [
    "INSERT",
    "DELETE",
    "UPDATE",
    "TRUNCATE",
    "HOT_UPDATE",
    "HEAP_CONFIRM",
    "LOCK",
    "INPLACE",
    "INSERT+INIT",
    "",
    "UPDATE+INIT",
    "",
    "HOT_UPDATE+INIT",
];

const HEAP2_BEFORE_17: [&str; 14] = [
    "REWRITE",
    "PRUNE",
    "VACUUM",
    "FREEZE_PAGE",
    "VISIBLE",
    "MULTI_INSERT",
    "LOCK_UPDATED",
    "NEW_CID",
    "",
    "",
    "",
    "",
    "",
    "MULTI_INSERT+INIT",
];

const HEAP2_FROM_17: [&str; 14] = [
    "REWRITE",
    "PRUNE_ON_ACCESS",
    "PRUNE_VACUUM_SCAN",
    "PRUNE_VACUUM_CLEANUP",
    "VISIBLE",
    "MULTI_INSERT",
    "LOCK_UPDATED",
    "NEW_CID",
    "",
    "",
    "",
    "",
    "",
    "MULTI_INSERT+INIT",
];

const BTREE: [&str; 15] = [
    "INSERT_LEAF",
    "INSERT_UPPER",
    "INSERT_META",
    "SPLIT_L",
    "SPLIT_R",
    "INSERT_POST",
    "DEDUP",
    "DELETE",
    "UNLINK_PAGE",
    "UNLINK_PAGE_META",
    "NEWROOT",
    "MARK_PAGE_HALFDEAD",
    "VACUUM",
    "REUSE_PAGE",
    "META_CLEANUP",
];

const HASH: [&str; 13] = [
    "INIT_META_PAGE",
    "INIT_BITMAP_PAGE",
    "INSERT",
    "ADD_OVFL_PAGE",
    "SPLIT_ALLOCATE_PAGE",
    "SPLIT_PAGE",
    "SPLIT_COMPLETE",
    "MOVE_PAGE_CONTENTS",
    "SQUEEZE_PAGE",
    "DELETE",
    "SPLIT_CLEANUP",
    "UPDATE_META_PAGE",
    "VACUUM_ONE_PAGE",
];

const GIN: [&str; 10] = [
    "",
    "CREATE_PTREE",
    "INSERT",
    "SPLIT",
    "VACUUM_PAGE",
    "DELETE_PAGE",
    "UPDATE_META_PAGE",
    "INSERT_LISTPAGE",
    "DELETE_LISTPAGE",
    "VACUUM_DATA_LEAF_PAGE",
];

const GIST: [&str; 8] =
    ["PAGE_UPDATE", "DELETE", "PAGE_REUSE", "PAGE_SPLIT", "", "", "PAGE_DELETE", "ASSIGN_LSN"];

const SPGIST: [&str; 9] = [
    "",
    "ADD_LEAF",
    "MOVE_LEAFS",
    "ADD_NODE",
    "SPLIT_TUPLE",
    "PICKSPLIT",
    "VACUUM_LEAF",
    "VACUUM_ROOT",
    "VACUUM_REDIRECT",
];

const BRIN: [&str; 11] = [
    "CREATE_INDEX",
    "INSERT",
    "UPDATE",
    "SAMEPAGE_UPDATE",
    "REVMAP_EXTEND",
    "DESUMMARIZE",
    "",
    "",
    "",
    "INSERT+INIT",
    "UPDATE+INIT",
];
