//! Tables as the query engine scans them.
//!
//! A scan is a [`FileSource`](datafusion::datasource::physical_plan::FileSource) under the engine's own scan of files, so that it is cut into ranges, told of projections and, one
//! day, run by several machines like any other. A relation, or a partition of it, is one *file*, which `range`s cut at any
//! byte: a block belongs to the range that its first byte lies in.

mod account;
mod day_conditions;
mod filters;
mod first_rows;
mod first_rows_hints;
mod first_rows_scan;
mod guarded_aggregates;
mod guarded_joins;
mod guards;
mod harmless;
mod implication;
mod index_access;
mod index_conditions;
mod index_expressions;
mod index_payload;
mod index_pool;
mod key_access;
mod lookup;
mod opener;
mod partitions;
mod range_access;
mod reader;
mod relation_table;
mod runtime_filters;
mod source;
mod statistics;
mod stepwise;
mod system_columns;
mod tid_access;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_arrow::BatchSize;
use pagemill_cluster::ClassRow;
use pagemill_engine::{DamageLog, OnDamage, Progress, ScanOptions};
use tokio::sync::watch;

#[cfg(feature = "workers")]
pub(crate) use account::{Counts, account_line, counts};
pub(crate) use account::{accounts, is_relation_scan};
#[cfg(feature = "workers")]
pub(crate) use account::{is_scan_of, parts_of_scan};
pub(crate) use guards::GuardedConditions;
pub(crate) use index_access::TableIndexes;
pub(crate) use index_pool::IndexPool;
pub(crate) use lookup::KeyLookup;
pub(crate) use relation_table::{RelationTable, stored_form};
pub(crate) use runtime_filters::with_runtime_filters;
#[cfg(feature = "workers")]
pub(crate) use source::NO_STORE;
pub(crate) use source::renewed_scan;
pub(crate) use statistics::{AllStatistics, read_statistics};
#[cfg(feature = "workers")]
pub(crate) use stepwise::Stepwise;

use crate::bind::{Bound, TableRows, Tables};
use crate::catalog::Catalog;
use crate::databases::{Databases, type_here};
use crate::error::Result;
use crate::files::Files;
use crate::nested::Nested;

/// Microseconds between 1970-01-01 and 2000-01-01.
pub(crate) const EPOCH: i64 = 946_684_800_000_000;

/// What all scans of a statement share.
#[derive(Debug)]
pub(crate) struct ScanContext {
    pub(crate) catalog: Arc<Catalog>,
    /// How blocks are read.
    pub(crate) options: ScanOptions,
    /// How large batches are made.
    pub(crate) batch_size: BatchSize,
    /// Cancels all scans.
    pub(crate) progress: Progress,
    /// What damage does.
    on_damage: OnDamage,
    /// What was left out.
    losses: Arc<Mutex<Vec<String>>>,
    /// True where numerics of a declared size are read as payloads, which have room for NaN.
    pub(crate) has_wide_numerics: bool,
    /// Every thread that reads listens here.
    running: watch::Sender<()>,
    /// When the statement began, in microseconds since 2000-01-01.
    pub(crate) start: i64,
    /// True where counts of rows, too, are cut into ranges of blocks, for several machines.
    pub(crate) cuts_counts: bool,
    /// True where rows are only read and shown, which is in the order of the files.
    shows_order: AtomicBool,
    /// What there is to say of how the statement ran.
    notices: Mutex<Vec<String>>,
    /// The name by which workers are asked what scans met there; none where nobody asks.
    #[cfg(feature = "workers")]
    pub(crate) account: Option<String>,
}

impl ScanContext {
    /// The scans of one statement.
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        options: ScanOptions,
        on_damage: OnDamage,
        cancel: &Progress,
    ) -> Self {
        let (catalog, progress) = (catalog.clone(), cancel.clone());
        Self {
            catalog,
            options,
            batch_size: BatchSize::default(),
            progress,
            on_damage,
            losses: Arc::default(),
            has_wide_numerics: false,
            running: watch::Sender::new(()),
            start: now(),
            cuts_counts: false,
            shows_order: AtomicBool::new(false),
            notices: Mutex::default(),
            #[cfg(feature = "workers")]
            account: None,
        }
    }

    /// The same for a statement that began elsewhere, at this time.
    #[cfg(feature = "workers")]
    pub(crate) fn begun_at(self, start: i64) -> Self {
        Self { start, ..self }
    }

    /// The same, of which is told what they met on workers.
    #[cfg(feature = "workers")]
    pub(crate) fn with_account(self, name: String) -> Self {
        Self { account: Some(name), ..self }
    }

    /// The same for scans that several machines do parts of.
    #[cfg(feature = "workers")]
    pub(crate) fn with_counts_cut(self) -> Self {
        Self { cuts_counts: true, ..self }
    }

    /// The same with batches of another size.
    pub(crate) fn of_batch_size(self, batch_size: BatchSize) -> Self {
        Self { batch_size, ..self }
    }

    /// The same, for numerics that no decimal is.
    pub(crate) fn with_wide_numerics(self) -> Self {
        Self { has_wide_numerics: true, ..self }
    }

    /// The scans of the same statement in another database.
    fn beside(&self, catalog: &Arc<Catalog>) -> Self {
        Self {
            catalog: catalog.clone(),
            options: self.options,
            batch_size: self.batch_size,
            progress: self.progress.clone(),
            on_damage: self.on_damage,
            losses: self.losses.clone(),
            has_wide_numerics: self.has_wide_numerics,
            running: self.running.clone(),
            start: self.start,
            cuts_counts: self.cuts_counts,
            shows_order: AtomicBool::new(self.shows_order()),
            notices: Mutex::default(),
            #[cfg(feature = "workers")]
            account: self.account.clone(),
        }
    }

    /// Says, before scans are planned, that the order of their rows shows.
    pub(crate) fn show_order(&self) {
        self.shows_order.store(true, Ordering::Relaxed);
    }

    fn shows_order(&self) -> bool {
        self.shows_order.load(Ordering::Relaxed)
    }

    /// The damage that was left out so far, each with its place.
    pub(crate) fn losses(&self) -> Vec<String> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what there is to say of how the statement runs, once.
    #[cfg(feature = "workers")]
    pub(crate) fn note(&self, notice: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// What was noted.
    pub(crate) fn notices(&self) -> Vec<String> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone();
        notices.extend(self.catalog.new_assumptions());
        notices
    }

    /// Ends all scans.
    pub(crate) fn cancel(&self) {
        self.progress.cancel();
    }

    /// For a thread to hold while it reads.
    pub(crate) fn running(&self) -> watch::Receiver<()> {
        self.running.subscribe()
    }

    /// Waits until nobody reads any more: whoever does notices within a page or two that nobody listens.
    pub(crate) async fn quiet(&self) {
        self.running.closed().await;
    }

    pub(crate) fn damage_log(&self) -> DamageLog {
        DamageLog::new(self.on_damage)
    }

    pub(crate) fn keep(&self, damage: &DamageLog) -> Result<()> {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        for loss in damage.losses()? {
            losses.push(loss?);
        }
        Ok(())
    }
}

/// Microseconds since 2000-01-01.
pub(crate) fn now() -> i64 {
    micros_of(SystemTime::now())
}

/// The same of a moment; of one before 1970 that of 1970.
pub(crate) fn micros_of(moment: SystemTime) -> i64 {
    let since_1970 = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX) - EPOCH
}

/// The tables of the databases that a statement can name.
pub(crate) struct StatementTables<'c> {
    pub(crate) scans: &'c Arc<ScanContext>,
    pub(crate) databases: &'c Databases,
    pub(crate) files: &'c Files,
    /// Bytes that a file may take.
    pub(crate) memory: Option<usize>,
    pub(crate) nested: Arc<Nested>,
}

impl Tables for StatementTables<'_> {
    fn nested(&self) -> Result<Arc<Nested>> {
        Ok(self.nested.clone())
    }

    fn scan(&self, of: &Arc<Catalog>, class: &ClassRow, alias: &str) -> Result<TableRows> {
        let own = &self.scans.catalog;
        if Arc::ptr_eq(of, own) {
            return RelationTable::open(self.scans, class)?.bound(alias);
        }
        let scans = Arc::new(self.scans.beside(of));
        let mut rows = RelationTable::open(&scans, class)?.bound(alias)?;
        for column in &mut rows.bound.columns {
            column.typed.ty = type_here(own, of, column.typed.ty);
        }
        Ok(rows)
    }

    fn file(&self, name: &str, alias: &str) -> Result<Option<Bound>> {
        self.files.scan(&self.scans.catalog, (name, alias), self.memory)
    }

    fn database(&self, cluster: Option<&str>, name: &str) -> Result<Arc<Catalog>> {
        self.databases.find(cluster, name)
    }
}
