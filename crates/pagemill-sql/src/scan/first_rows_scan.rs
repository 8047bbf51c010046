//! The first rows of an order, read along an index.
//!
//! The next few entries are taken together, and their rows looked up block by block, until enough of them are visible and pass
//! the conditions; where more columns decide than the index has in order, all rows follow that are equal to the last in those.
//!
//! Invariants: what is found has every row that must be among the first; a walk that turns out long ends, and finds nothing.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use pagemill_cluster::btree_scan::Direction;
use pagemill_cluster::btree_search::OrderedTid;
use pagemill_engine::{DamageLog, IndexLookup, ScanRequest, StepColumns, Table, TidScan, TupleRow};
use pagemill_format::Tid;

use super::account::ScanAccount;
use super::first_rows::{OrderedSearch, WantedRows};
use super::reader::{Choice, Decoder, choices, choose, in_one_walk};
use super::source::RelationSource;
use crate::error::{Error, Result};

/// A walk may read so many blocks more than it wants rows, and one of so many blocks of the table.
const BLOCKS_MORE: u64 = 32;
const BLOCKS_SHARE: u64 = 16;
/// And look at so many entries.
const MOST_ENTRIES: usize = 200_000;
/// Rows that are collected at once.
const MOST_ROWS: usize = 10_000;
/// Of the blocks of a table at most one of so many may hold wanted rows.
const ROWS_SHARE: u64 = 3;
/// Entries that are looked up together at most.
const MOST_TOGETHER: usize = 1024;

/// What came of a walk.
pub(super) enum Walked {
    /// The rows, and the way in words.
    Found(Vec<RecordBatch>, String),
    /// There would be no end soon; why, in words.
    NotWorth(String),
}

/// True for as many rows as can be worth it to look up one by one.
pub(super) fn is_few(rows: usize, table: &Table) -> bool {
    let blocks = u64::from(table.blocks());
    rows <= MOST_ROWS && rows as u64 <= (blocks / ROWS_SHARE).max(1)
}

/// Goes along indexes for the rows of all orders.
pub(super) fn walk(
    source: &RelationSource,
    (table, wanted): (&Arc<Table>, &WantedRows),
    searches: &[OrderedSearch],
    account: &mut ScanAccount,
) -> Result<Walked> {
    let mut walk = Walk::new(source, (table, wanted), account)?;
    let mut ways = Vec::new();
    for search in searches {
        let name = String::from_utf8_lossy(&search.index.class.name).into_owned();
        match walk.along(search) {
            Ok(way) => ways.push(way),
            Err(Stopped::TooLong) => {
                return Ok(Walked::NotWorth(format!("{name} (too many rows on the way)")));
            }
            Err(Stopped::Index(pagemill_engine::Error::Cancelled)) => {
                return Err(pagemill_engine::Error::Cancelled.into());
            }
            Err(Stopped::Index(error)) => {
                return Ok(Walked::NotWorth(format!("{name} ({error})")));
            }
            Err(Stopped::Rows(error)) => return Err(error),
        }
    }
    ways.dedup();
    let batches = walk.finish()?;
    Ok(Walked::Found(batches, ways.join(" and ")))
}

/// Why a walk ended early.
enum Stopped {
    TooLong,
    /// The index cannot be used.
    Index(pagemill_engine::Error),
    /// A row cannot be read.
    Rows(Error),
}

/// Whether an order has enough.
enum Taken {
    Enough,
    More,
    TooLong,
}

struct Walk<'w> {
    source: &'w RelationSource,
    table: &'w Arc<Table>,
    account: &'w mut ScanAccount,
    damage: DamageLog,
    choices: Vec<Choice>,
    wanted: Decoder,
    scan: TidScan,
    batches: Vec<RecordBatch>,
    /// Rows of this order, each once.
    seen: HashSet<Tid>,
    /// How many rows are enough, with those before this range.
    enough: usize,
    entries: usize,
    together: usize,
    most_blocks: u64,
}

impl<'w> Walk<'w> {
    fn new(
        source: &'w RelationSource,
        (table, wanted): (&'w Arc<Table>, &WantedRows),
        account: &'w mut ScanAccount,
    ) -> Result<Self> {
        let context = &source.context;
        let choices = in_one_walk(choices(source, table, &wanted.filters)?);
        let looked_at: Vec<usize> =
            choices.iter().flat_map(|choice| choice.positions().iter().copied()).collect();
        let rows: usize = wanted.orders.iter().map(|order| order.rows).sum();
        let most_blocks = rows as u64 + BLOCKS_MORE + u64::from(table.blocks()) / BLOCKS_SHARE;
        let wanted = Decoder::new(source, table, source.wanted())?;
        let columns = StepColumns { first: &looked_at, rest: wanted.positions() };
        let (options, progress) = (super::reader::alone(context.options), &account.progress);
        let cluster = context.catalog.database().cluster();
        let none: Arc<[Tid]> = Arc::new([]);
        let request = ScanRequest { cluster, table, options, progress };
        let scan = TidScan::new(request, columns, &none, &(0..u32::MAX));
        let (damage, batches, seen) = (context.damage_log(), Vec::new(), HashSet::new());
        let (enough, entries, together) = (0, 0, 0);
        Ok(Self {
            source,
            table,
            account,
            damage,
            choices,
            wanted,
            scan,
            batches,
            seen,
            enough,
            entries,
            together,
            most_blocks,
        })
    }

    /// Collects the rows of one order; gives the way in words.
    fn along(&mut self, search: &OrderedSearch) -> Result<String, Stopped> {
        let context = &self.source.context;
        let progress = context.progress.of_part();
        let database = context.catalog.database();
        let lookup = IndexLookup::open(database, self.table, &search.index, context.options);
        let mut lookup = lookup.map_err(Stopped::Index)?;
        lookup.begin(&progress);
        let entries = self.entries;
        for ranges in &search.groups {
            self.seen.clear();
            self.enough = self.rows() + search.rows;
            for range in ranges {
                self.together = 0;
                let mut met = Ok(Taken::More);
                let (direction, columns) = (search.direction, search.columns);
                let walked = lookup.in_order(range, direction, columns, |entries| {
                    met = self.take(entries, search.is_whole, search.rows);
                    match met {
                        Ok(Taken::More) => ControlFlow::Continue(()),
                        _ => ControlFlow::Break(()),
                    }
                });
                walked.map_err(Stopped::Index)?;
                match met.map_err(Stopped::Rows)? {
                    Taken::TooLong => return Err(Stopped::TooLong),
                    Taken::More if self.rows() < self.enough => {}
                    Taken::More | Taken::Enough => break,
                }
            }
        }
        let name = String::from_utf8_lossy(&search.index.class.name);
        let turned = if search.direction == Direction::Backward { " backward" } else { "" };
        let (entries, blocks) = (self.entries - entries, progress.counts().blocks_read);
        Ok(format!("index {name} in its order{turned}, {entries} entries on {blocks} blocks of it"))
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum::<usize>() + self.wanted.len()
    }

    /// Looks up the next entries until there is enough.
    fn take(&mut self, mut entries: &[OrderedTid], is_whole: bool, rows: usize) -> Result<Taken> {
        while !entries.is_empty() {
            let left = self.enough.saturating_sub(self.rows());
            let next = match left {
                0 if is_whole => return Ok(Taken::Enough),
                0 => entries.iter().take_while(|entry| !entry.begins_key).count(),
                // Which of equal values comes first is as the server has it.
                _ if rows == 1 => 1,
                _ => {
                    self.together = (self.together * 2).max(left);
                    self.together
                }
            };
            if next == 0 {
                return Ok(Taken::Enough);
            }
            let read = self.account.progress.counts().blocks_read;
            if read > self.most_blocks || self.entries > MOST_ENTRIES {
                return Ok(Taken::TooLong);
            }
            let (now, later) = entries.split_at(next.min(MOST_TOGETHER).min(entries.len()));
            self.entries += now.len();
            self.look_up(now)?;
            entries = later;
        }
        let has_enough = is_whole && self.rows() >= self.enough;
        Ok(if has_enough { Taken::Enough } else { Taken::More })
    }

    fn look_up(&mut self, entries: &[OrderedTid]) -> Result<()> {
        let Self { account, damage, choices, wanted, scan, batches, seen, .. } = self;
        let mut tids: Vec<Tid> = entries.iter().map(|entry| entry.tid).collect();
        tids.sort_unstable();
        tids.dedup();
        scan.go_on_with(tids.into());
        while scan.next_round(damage)? {
            let rows: Vec<TupleRow<'_>> = scan.rows().collect();
            let chosen = choose(choices, &rows, damage)?;
            account.removed += (rows.len() - chosen.len()) as u64;
            let rows = chosen.into_iter().map(|at| scan.row(at));
            let rows: Vec<TupleRow<'_>> = rows.filter(|row| seen.insert(row.tid())).collect();
            wanted.collect(&rows, batches, damage)?;
        }
        Ok(())
    }

    /// All rows of all orders.
    fn finish(mut self) -> Result<Vec<RecordBatch>> {
        if self.wanted.len() > 0 {
            self.batches.push(self.wanted.finish()?);
        }
        let fetches = self.choices.iter().map(Choice::toast_fetches).sum::<u64>();
        self.account.toast_fetches += fetches + self.wanted.toast_fetches();
        self.source.context.keep(&self.damage)?;
        Ok(self.batches)
    }
}
