//! What a WAL record says, in words: the text behind a record's name in `pg_waldump`.
//!
//! Only a record's fixed fields are described; of records that are not listed here, nothing is. Where versions
//! word it differently, the words are those of 16 and later. Times are in UTC.
//!
//! Source: `src/backend/access/rmgrdesc/`, PostgreSQL 14 to 18.

use std::fmt::Write as _;

use pagemill_format::Result;
use pagemill_format::control::{Checkpoint, catalog_version_of};
use pagemill_format::ids::{Fork, Lsn, Oid, PgVersion};
use pagemill_format::reader::Reader;
use pagemill_format::wal::{
    Commit, ExclusiveLock, Invalidation, Record, RelFileLocator, ResourceManager,
    RunningTransactions, StorageFile, Truncation,
};
use pagemill_types::datetime;

const DEFAULT_TABLESPACE: Oid = Oid(1663);
const GLOBAL_TABLESPACE: Oid = Oid(1664);

/// What the record says; empty where that is not described.
///
/// # Errors
/// Corrupt: the record is too short for what it is.
pub fn record_description(record: &Record<'_>, version: PgVersion) -> Result<String> {
    let mut description = Description { text: String::new(), version };
    let kind = record.header.kind();
    let mut r = Reader::new("WAL record", record.main_data);
    match record.header.resource_manager {
        ResourceManager::XLOG => description.xlog(record, kind, &mut r)?,
        ResourceManager::TRANSACTION => description.transaction(record, kind & 0x70, &mut r)?,
        ResourceManager::STORAGE => description.storage(record, kind)?,
        ResourceManager::CLOG => description.commit_log(kind, &mut r)?,
        ResourceManager::DATABASE => description.database(kind, &mut r)?,
        ResourceManager::TABLESPACE => description.push(&r.u32()?),
        ResourceManager::RELMAP => description.relation_map(&mut r)?,
        ResourceManager::STANDBY => description.standby(record, kind, &mut r)?,
        ResourceManager::HEAP => description.heap(kind & 0x70, &mut r)?,
        ResourceManager::HEAP2 => description.heap2(kind & 0x70, &mut r)?,
        ResourceManager::BTREE => description.btree(kind, &mut r)?,
        ResourceManager::SEQUENCE => {
            description.push(&format_args!("rel {}", RelFileLocator::read(&mut r)?))
        }
        _ => {}
    }
    Ok(description.text)
}

struct Description {
    text: String,
    version: PgVersion,
}

impl Description {
    fn push(&mut self, what: &dyn std::fmt::Display) {
        // Writing to memory cannot fail.
        let _ = write!(self.text, "{what}");
    }

    fn time(&mut self, microseconds: i64) -> Result<()> {
        let mut text = Vec::new();
        datetime::write_timestamp(&microseconds.to_le_bytes(), &mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
        self.push(&format_args!("{seconds}.{fraction:0<6} UTC"));
        Ok(())
    }

    fn path(&mut self, locator: RelFileLocator, fork: Fork) {
        let RelFileLocator { tablespace, database, number } = locator;
        match tablespace {
            DEFAULT_TABLESPACE => self.push(&format_args!("base/{database}/{number}")),
            GLOBAL_TABLESPACE => self.push(&format_args!("global/{number}")),
            _ => {
                let (major, catalog) = (self.version, catalog_version_of(self.version));
                self.push(&format_args!(
                    "pg_tblspc/{tablespace}/PG_{major}_{catalog}/{database}/{number}"
                ));
            }
        }
        self.push(&fork.suffix());
    }

    fn xlog(&mut self, record: &Record<'_>, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        match kind {
            0x00 | 0x10 => {
                self.checkpoint(&Checkpoint::parse(record.main_data, self.version)?, kind)
            }
            0x30 => self.push(&r.u32()?),
            0x50 => self.push(&Lsn(r.u64()?)),
            0x60 => self.parameters(r)?,
            0x70 => {
                r.u64()?;
                let name = String::from_utf8_lossy(r.cstr()?).into_owned();
                self.push(&name);
            }
            0x80 => self.push(&(r.u8()? != 0)),
            0x90 => {
                let time = r.i64()?;
                self.push(&format_args!("tli {}; prev tli {}; time ", r.u32()?, r.u32()?));
                self.time(time)?;
            }
            0xD0 => {
                self.push(&format_args!("lsn {}; time ", Lsn(r.u64()?)));
                self.time(r.i64()?)?;
            }
            0xE0 => self.push(&format_args!("wal_level {}", wal_level(r.u32()?))),
            _ => {}
        }
        Ok(())
    }

    fn checkpoint(&mut self, c: &Checkpoint, kind: u8) {
        let (redo, tli, prev_tli, fpw) =
            (c.redo, c.timeline, c.previous_timeline, c.full_page_writes);
        self.push(&format_args!("redo {redo}; tli {tli}; prev tli {prev_tli}; fpw {fpw}; "));
        if let Some(level) = c.wal_level {
            self.push(&format_args!("wal_level {}; ", wal_level(level)));
        }
        let (xid, oid, multi, offset) = (c.next_xid, c.next_oid, c.next_multi, c.next_multi_offset);
        self.push(&format_args!("xid {xid}; oid {oid}; multi {multi}; offset {offset}; "));
        let (xid, xid_db) = (c.oldest_xid, c.oldest_xid_database);
        let (multi, multi_db) = (c.oldest_multi, c.oldest_multi_database);
        self.push(&format_args!(
            "oldest xid {xid} in DB {xid_db}; oldest multi {multi} in DB {multi_db}; "
        ));
        let (oldest, newest, active) =
            (c.oldest_commit_ts_xid, c.newest_commit_ts_xid, c.oldest_active_xid);
        let state = if kind == 0 { "shutdown" } else { "online" };
        self.push(&format_args!("oldest/newest commit timestamp xid: {oldest}/{newest}; "));
        self.push(&format_args!("oldest running xid {active}; {state}"));
    }

    fn parameters(&mut self, r: &mut Reader<'_>) -> Result<()> {
        let names =
            ["connections", "worker_processes", "wal_senders", "prepared_xacts", "locks_per_xact"];
        for name in names {
            self.push(&format_args!("max_{name}={} ", r.i32()?));
        }
        self.push(&format_args!("wal_level={} ", wal_level(r.u32()?)));
        let on = |flag: u8| if flag != 0 { "on" } else { "off" };
        self.push(&format_args!("wal_log_hints={} ", on(r.u8()?)));
        self.push(&format_args!("track_commit_timestamp={}", on(r.u8()?)));
        Ok(())
    }

    fn transaction(&mut self, record: &Record<'_>, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        match kind {
            0x00 | 0x20 | 0x30 | 0x40 => {
                self.commit(&Commit::parse(record.main_data, record.header.info, self.version)?)?;
            }
            0x10 => self.prepare(r)?,
            0x50 => {
                let (top, count) = (r.u32()?, r.u32()?);
                self.push(&format_args!("xtop {top}: subxacts:"));
                for _ in 0..count {
                    self.push(&format_args!(" {}", r.u32()?));
                }
            }
            0x60 => self.invalidations(r)?,
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, commit: &Commit) -> Result<()> {
        if let Some((xid, _)) = &commit.prepared {
            self.push(&format_args!("{xid}: "));
        }
        self.time(commit.time)?;
        let list = |self_: &mut Self, is_empty: bool, label: &str| {
            if !is_empty {
                self_.push(&format_args!("; {label}:"));
            }
        };
        list(self, commit.dropped_files.is_empty(), "rels");
        for file in &commit.dropped_files {
            self.push(&" ");
            self.path(*file, Fork::Main);
        }
        list(self, commit.subtransactions.is_empty(), "subxacts");
        commit.subtransactions.iter().for_each(|xid| self.push(&format_args!(" {xid}")));
        list(self, commit.dropped_statistics.is_empty(), "dropped stats");
        for item in &commit.dropped_statistics {
            self.push(&format_args!(" {}/{}/{}", item.kind, item.database, item.object));
        }
        if commit.update_relcache_file && !commit.invalidations.is_empty() {
            let (database, tablespace) = commit.database.unwrap_or_default();
            self.push(&format_args!(
                "; relcache init file inval dbid {database} tsid {tablespace}"
            ));
        }
        list(self, commit.invalidations.is_empty(), "inval msgs");
        commit.invalidations.iter().for_each(|message| self.invalidation(*message));
        if commit.force_sync {
            self.push(&"; sync");
        }
        if let Some((lsn, time)) = commit.origin {
            self.push(&format_args!("; origin: lsn {lsn}, at "));
            self.time(time)?;
        }
        Ok(())
    }

    fn invalidations(&mut self, r: &mut Reader<'_>) -> Result<()> {
        self.push(&"; inval msgs:");
        for _ in 0..r.u32()? {
            self.invalidation(Invalidation::read(r)?);
        }
        Ok(())
    }

    fn invalidation(&mut self, message: Invalidation) {
        match message {
            Invalidation::CatalogCache { cache, .. } => {
                self.push(&format_args!(" catcache {cache}"))
            }
            Invalidation::Catalog { catalog, .. } => self.push(&format_args!(" catalog {catalog}")),
            Invalidation::Relation { relation, .. } => {
                self.push(&format_args!(" relcache {relation}"))
            }
            Invalidation::Storage { .. } => self.push(&" smgr"),
            Invalidation::RelationMap { database } => {
                self.push(&format_args!(" relmap db {database}"))
            }
            Invalidation::Snapshot { relation, .. } => {
                self.push(&format_args!(" snapshot {relation}"))
            }
            Invalidation::Unrecognized(id) => self.push(&format_args!(" unrecognized id {id}")),
        }
    }

    /// The body is the state file of a prepared transaction, but for the CRC at its end.
    fn prepare(&mut self, r: &mut Reader<'_>) -> Result<()> {
        r.seek(16)?;
        let time = r.i64()?;
        let counts = if self.version >= PgVersion::V15 { 7 } else { 5 };
        r.bytes(4 * counts)?;
        r.u8()?;
        r.align(2);
        let gid_bytes = usize::from(r.u16()?);
        r.align(8);
        r.bytes(16)?;
        let gid = r.bytes(gid_bytes)?;
        let gid = String::from_utf8_lossy(gid.strip_suffix(&[0]).unwrap_or(gid)).into_owned();
        self.push(&format_args!("gid {gid}: "));
        self.time(time)
    }

    fn storage(&mut self, record: &Record<'_>, kind: u8) -> Result<()> {
        match kind {
            ResourceManager::SMGR_CREATE => {
                let file = StorageFile::parse(record.main_data)?;
                self.path(file.locator, file.fork);
            }
            ResourceManager::SMGR_TRUNCATE => {
                let cut = Truncation::parse(record.main_data)?;
                self.path(cut.locator, Fork::Main);
                self.push(&format_args!(" to {} blocks flags {}", cut.blocks, cut.forks));
            }
            _ => {}
        }
        Ok(())
    }

    fn commit_log(&mut self, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        let page = if self.version >= PgVersion::V17 { r.u64()? } else { u64::from(r.u32()?) };
        self.push(&format_args!("page {page}"));
        if kind == 0x10 {
            self.push(&format_args!("; oldestXact {}", r.u32()?));
        }
        Ok(())
    }

    fn database(&mut self, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        let (database, second) = (r.u32()?, r.u32()?);
        match (kind, self.version > PgVersion::V14) {
            (0x00, _) => {
                let (source, source_tablespace) = (r.u32()?, r.u32()?);
                self.push(&format_args!(
                    "copy dir {source_tablespace}/{source} to {second}/{database}"
                ));
            }
            (0x10, true) => self.push(&format_args!("create dir {second}/{database}")),
            _ => {
                self.push(&"dir");
                for _ in 0..second {
                    self.push(&format_args!(" {}/{database}", r.u32()?));
                }
            }
        }
        Ok(())
    }

    fn relation_map(&mut self, r: &mut Reader<'_>) -> Result<()> {
        let (database, tablespace, bytes) = (r.u32()?, r.u32()?, r.u32()?);
        self.push(&format_args!("database {database} tablespace {tablespace} size {bytes}"));
        Ok(())
    }

    fn standby(&mut self, record: &Record<'_>, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        match kind {
            ResourceManager::STANDBY_LOCK => {
                for lock in ExclusiveLock::parse(record.main_data)? {
                    let ExclusiveLock { xid, database, relation } = lock;
                    self.push(&format_args!("xid {xid} db {database} rel {relation} "));
                }
            }
            ResourceManager::RUNNING_XACTS => {
                self.running(&RunningTransactions::parse(record.main_data)?)
            }
            _ => {
                let (database, tablespace, updates_file) = (r.u32()?, r.u32()?, r.u8()? != 0);
                r.align(4);
                if updates_file {
                    self.push(&format_args!(
                        "; relcache init file inval dbid {database} tsid {tablespace}"
                    ));
                }
                self.invalidations(r)?;
            }
        }
        Ok(())
    }

    fn running(&mut self, running: &RunningTransactions) {
        let (next, latest) = (running.next_xid, running.latest_completed);
        let oldest = running.oldest_running;
        self.push(&format_args!(
            "nextXid {next} latestCompletedXid {latest} oldestRunningXid {oldest}"
        ));
        let count = running.xids.len().saturating_sub(running.subtransactions as usize);
        if count > 0 {
            self.push(&format_args!("; {count} xacts:"));
            running.xids.iter().take(count).for_each(|xid| self.push(&format_args!(" {xid}")));
        }
        if running.is_overflowed {
            self.push(&"; subxid overflowed");
        }
    }

    fn heap(&mut self, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        match kind {
            0x00 => self.push(&format_args!("off: {}, flags: 0x{:02X}", r.u16()?, r.u8()?)),
            0x10 | 0x60 => {
                let (xmax, off, bits, flags) = (r.u32()?, r.u16()?, r.u8()?, r.u8()?);
                self.push(&format_args!(
                    "xmax: {xmax}, off: {off}, infobits: [{}], flags: 0x{flags:02X}",
                    infobits(bits)
                ));
            }
            0x20 | 0x40 => {
                let (xmax, off, bits, flags) = (r.u32()?, r.u16()?, r.u8()?, r.u8()?);
                self.push(&format_args!(
                    "old_xmax: {xmax}, old_off: {off}, old_infobits: [{}], flags: 0x{flags:02X}, \
                     new_xmax: {}, new_off: {}",
                    infobits(bits),
                    r.u32()?,
                    r.u16()?
                ));
            }
            0x30 => {
                r.u32()?;
                let (count, flags) = (r.u32()?, r.u8()?);
                r.align(4);
                self.push(&format_args!("flags: 0x{flags:02X}, nrelids: {count}, relids:"));
                for _ in 0..count {
                    self.push(&format_args!(" {}", r.u32()?));
                }
            }
            _ => self.push(&format_args!("off: {}", r.u16()?)),
        }
        Ok(())
    }

    fn heap2(&mut self, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        match kind {
            0x10 | 0x20 | 0x30 if self.version >= PgVersion::V17 => {}
            0x10 => {
                let horizon = r.u32()?;
                let (redirected, dead) = (r.u16()?, r.u16()?);
                self.push(&format_args!(
                    "snapshotConflictHorizon: {horizon}, nredirected: {redirected}, ndead: {dead}"
                ));
            }
            0x20 => self.push(&format_args!("nunused: {}", r.u16()?)),
            0x30 => {
                self.push(&format_args!(
                    "snapshotConflictHorizon: {}, nplans: {}",
                    r.u32()?,
                    r.u16()?
                ));
            }
            0x40 => {
                let (horizon, flags) = (r.u32()?, r.u8()?);
                self.push(&format_args!(
                    "snapshotConflictHorizon: {horizon}, flags: 0x{flags:02X}"
                ));
            }
            0x50 => {
                let flags = r.u8()?;
                r.align(2);
                self.push(&format_args!("ntuples: {}, flags: 0x{flags:02X}", r.u16()?));
            }
            0x60 => {
                let (xmax, off, bits, flags) = (r.u32()?, r.u16()?, r.u8()?, r.u8()?);
                self.push(&format_args!(
                    "xmax: {xmax}, off: {off}, infobits: [{}], flags: 0x{flags:02X}",
                    infobits(bits)
                ));
            }
            0x70 => {
                r.u32()?;
                let (cmin, cmax, combo) = (r.u32()?, r.u32()?, r.u32()?);
                let locator = RelFileLocator::read(r)?;
                let (high, low, line_pointer) = (r.u16()?, r.u16()?, r.u16()?);
                let block = u32::from(high) << 16 | u32::from(low);
                self.push(&format_args!("rel: {locator}, tid: {block}/{line_pointer}, cmin: {cmin}, cmax: {cmax}, combo: {combo}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn btree(&mut self, kind: u8, r: &mut Reader<'_>) -> Result<()> {
        match kind {
            0x00 | 0x10 | 0x20 | 0x50 => self.push(&format_args!("off: {}", r.u16()?)),
            0x30 | 0x40 => {
                let (level, first_right, new_item, posting) =
                    (r.u32()?, r.u16()?, r.u16()?, r.u16()?);
                self.push(&format_args!(
                    "level: {level}, firstrightoff: {first_right}, newitemoff: {new_item}, postingoff: {posting}"
                ));
            }
            0x60 => self.push(&format_args!("nintervals: {}", r.u16()?)),
            0xC0 => self.push(&format_args!("ndeleted: {}, nupdated: {}", r.u16()?, r.u16()?)),
            0xA0 => {
                r.u32()?;
                self.push(&format_args!("level: {}", r.u32()?));
            }
            _ => {}
        }
        Ok(())
    }
}

fn wal_level(level: u32) -> &'static str {
    match level {
        0 => "minimal",
        1 => "replica",
        2 => "logical",
        _ => "?",
    }
}

fn infobits(bits: u8) -> String {
    let names = ["IS_MULTI", "LOCK_ONLY", "EXCL_LOCK", "KEYSHR_LOCK", "KEYS_UPDATED"];
    let set = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
