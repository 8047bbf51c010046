//! Which blocks of a table can have rows with some values, by what a BRIN index keeps of ranges of blocks.
//!
//! ```text
//! range map ── TID ──► summary of the range ── meets all conditions? ──► its blocks are read
//! no summary, or one that is just being made ──────────────────────────► its blocks are read
//! ```
//!
//! Invariants: no block is left out that has a row which meets the conditions; blocks behind the last range are read; nothing here looks
//! into the table.
//!
//! Source: `bringetbitmap` in `src/backend/access/brin/brin.c`, `brinGetTupleForHeapBlock` in
//! `src/backend/access/brin/brin_revmap.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use pagemill_cluster::btree_scan::TreePages as _;
use pagemill_cluster::{Database, Error as ClusterError, RangeIndex};
use pagemill_format::brin::{
    BrinMeta, META_BLOCK, RANGES_PER_MAP_PAGE, RangeSummary, summary_places,
};
use pagemill_format::{BlockNumber, Tid};

use crate::error::Result;
use crate::index_lookup::LonePages;
use crate::progress::Progress;
use crate::range_summary::{ColumnTest, ValueCondition, meets};
use crate::scan_plan::ScanOptions;
use crate::table::Table;

/// Conditions on the leading columns of an index, `None` where there is none.
pub struct RangeLookup<'i> {
    index: &'i RangeIndex,
    tests: Vec<ColumnTest<'i>>,
    pages: LonePages,
    progress: Progress,
}

impl<'i> RangeLookup<'i> {
    /// Opens the files of an index; `progress` is told of the search and cancels it.
    ///
    /// # Errors
    /// When they are missing or damaged.
    pub fn open(
        database: &Database,
        index: &'i RangeIndex,
        conditions: Vec<Option<ValueCondition>>,
        (options, progress): (ScanOptions, &Progress),
    ) -> Result<Self> {
        assert_eq!(conditions.len(), index.columns.len(), "a condition or none for each column");
        let both = index.columns.iter().zip(conditions);
        let tests = both.map(|(column, condition)| ColumnTest::new(column, condition)).collect();
        let mut pages = LonePages::open(database, (&index.class, &index.relation), options)?;
        pages.set_progress(progress);
        Ok(Self { index, tests, pages, progress: progress.clone() })
    }

    /// The blocks that can have rows which meet the conditions, in ascending ranges apart from one another.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read, or the work was cancelled.
    pub fn blocks(&mut self, table: &Table) -> Result<Vec<Range<u32>>> {
        let meta = BrinMeta::parse(self.pages.page(META_BLOCK)?);
        let meta = meta.map_err(|error| self.damage(META_BLOCK, &error))?;
        let (size, all) = (meta.blocks_per_range, table.blocks());
        let mut found = Found(Vec::new());
        for map in 1..=meta.last_map_block.0 {
            let first = (u64::from(map) - 1) * u64::from(RANGES_PER_MAP_PAGE) * u64::from(size);
            let Some(mut begin) = u32::try_from(first).ok().filter(|begin| *begin < all) else {
                return Ok(found.0);
            };
            self.progress.check()?;
            let places = summary_places(self.pages.page(BlockNumber(map))?);
            for place in places.map_err(|error| self.damage(BlockNumber(map), &error))? {
                let end = begin.saturating_add(size).min(all);
                if self.may_have(begin, place)? {
                    found.add(begin..end);
                }
                begin = end;
                if begin == all {
                    return Ok(found.0);
                }
            }
        }
        let ranges = u64::from(meta.last_map_block.0) * u64::from(RANGES_PER_MAP_PAGE);
        let behind = u32::try_from(ranges * u64::from(size)).unwrap_or(all); // default: the map reaches past every block
        found.add(behind.min(all)..all);
        Ok(found.0)
    }

    /// Whether the range that begins with this block can have rows.
    fn may_have(&mut self, begin: u32, place: Option<Tid>) -> Result<bool> {
        let Some(Tid { block, line_pointer }) = place else { return Ok(true) };
        let Self { index, tests, pages, .. } = self;
        let summary = RangeSummary::parse(pages.page(block)?, line_pointer, index.column_count);
        let told = summary.and_then(|summary| {
            let may_have = meets(&summary, tests)?;
            Ok((summary.block(), may_have))
        });
        match told {
            Ok((of, may_have)) if of.0 == begin => Ok(may_have),
            Ok((of, _)) => {
                let what = format!("summary {line_pointer} is of block {of}, not {begin}");
                Err(pages.damage(block, what).into())
            }
            Err(error) => Err(self.damage(block, &error).into()),
        }
    }

    fn damage(&self, block: BlockNumber, error: &pagemill_format::Error) -> ClusterError {
        self.pages.damage(block, error.to_string())
    }
}

/// Ranges that do not touch.
struct Found(Vec<Range<u32>>);

impl Found {
    /// Adds one that is behind all others.
    fn add(&mut self, range: Range<u32>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }
}
