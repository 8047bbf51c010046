//! A table whose rows can be read: its relation, its open files, and which of its blocks there
//! are.
//!
//! What PostgreSQL would not read as a heap is refused here, once for all operations. What the
//! sizes of the files give away as lost is reported here, once, before any block is read.

use std::ops::Range;

use pagemill_cluster::{
    ClassRow, Damage, Database, Error as ClusterError, Persistence, Relation, RelationKind,
};
use pagemill_format::{Fork, SEGMENT_BLOCKS};
use pagemill_io::ForkFiles;

use crate::damage::{DamageLog, file_damage};
use crate::error::Result;

/// A table ready to be scanned.
#[derive(Debug)]
pub struct Table {
    /// Its columns and names.
    pub relation: Relation,
    /// Its main fork; `None` when there is nothing to read: an unlogged table after a crash.
    files: Option<ForkFiles>,
    /// Blocks that no file holds, in order.
    lost: Vec<Range<u32>>,
}

impl Table {
    /// Opens the files of a relation, reporting what is lost to `damage`.
    ///
    /// # Errors
    /// When the relation has no rows of its own, is of another access method, or (unless damage
    /// is to be skipped) is damaged.
    pub fn open(database: &Database, relation: Relation, damage: &mut DamageLog) -> Result<Self> {
        refuse_unreadable(database, &relation)?;
        let cluster = database.cluster();
        let unlogged = relation.class.persistence == Persistence::Unlogged;
        if unlogged && !cluster.is_clean() && !cluster.is_live() {
            // A server would reset it before its first query.
            return Ok(Self { relation, files: None, lost: Vec::new() });
        }
        let Some(files) = cluster.fork(&relation.base, Fork::Main)? else {
            let what = format!("the file of {} is missing", relation.display_name());
            damage.report(Damage::in_file(&relation.base, what))?;
            return Ok(Self { relation, files: None, lost: Vec::new() });
        };
        for found in file_damage(&files) {
            damage.report(found)?;
        }
        if let Some(found) = missing_tail(database, &relation, &files)? {
            damage.report(found)?;
        }
        let lost =
            files.damage().iter().map(|d| d.lost_blocks()).filter(|r| !r.is_empty()).collect();
        Ok(Self { relation, files: Some(files), lost })
    }

    /// A table without blocks, for what a partitioned table has itself: columns.
    pub fn without_rows(relation: Relation) -> Self {
        Self { relation, files: None, lost: Vec::new() }
    }

    /// The open main fork; `None` when there is nothing to read.
    pub fn files(&self) -> Option<&ForkFiles> {
        self.files.as_ref()
    }

    /// How many block numbers the table has, lost ones included.
    pub fn blocks(&self) -> u32 {
        self.files.as_ref().map_or(0, ForkFiles::blocks)
    }

    /// The blocks of a range that are not lost.
    pub fn present(&self, range: Range<u32>) -> impl Iterator<Item = pagemill_format::BlockNumber> {
        let lost = self.lost.clone();
        range
            .filter(move |block| !lost.iter().any(|lost| lost.contains(block)))
            .map(pagemill_format::BlockNumber)
    }
}

fn refuse_unreadable(database: &Database, relation: &Relation) -> Result<()> {
    let ClassRow { kind, access_method, persistence, .. } = &relation.class;
    let name = relation.display_name();
    let refuse = |reason: String| Err(ClusterError::refused(reason).into());
    if !kind.has_rows() {
        let remedy = match kind {
            RelationKind::PartitionedTable => "its rows are in its partitions",
            RelationKind::ForeignTable => "its rows are on another server",
            _ => "it has no rows of its own in the files",
        };
        return refuse(format!("{name} is a {}: {remedy}", kind.name()));
    }
    if *persistence == Persistence::Temporary {
        return refuse(format!("{name} is a temporary table of a session that is gone"));
    }
    let sequence = *kind == RelationKind::Sequence && !access_method.is_valid();
    if !sequence && !database.is_heap(*access_method)? {
        return refuse(format!(
            "{name} uses table access method {access_method}, only heap can be read"
        ));
    }
    Ok(())
}

/// A lost last segment leaves no gap. But where all segments before it are full, the size noted
/// by the last vacuum or analyze tells of it: a truncation would have corrected that.
fn missing_tail(
    database: &Database,
    relation: &Relation,
    files: &ForkFiles,
) -> Result<Option<Damage>> {
    let (blocks, noted) = (files.blocks(), relation.class.pages);
    let full = blocks > 0 && blocks % SEGMENT_BLOCKS == 0;
    let suspicious = full && noted > blocks && files.damage().is_empty();
    if !suspicious || !database.cluster().is_clean() {
        return Ok(None);
    }
    let (path, _) = files.locate(pagemill_format::BlockNumber(blocks));
    let what = format!(
        "fork main, blocks {blocks} to {}: the segment file is missing: pg_class knows of {noted} \
         blocks",
        noted - 1
    );
    Ok(Some(Damage::in_file(path, what)))
}
