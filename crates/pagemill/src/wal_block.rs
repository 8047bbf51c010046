//! `pagemill wal show --block`: the records of one block, and what each of them does to it.
//!
//! The block is that of a relation by its name, which the catalogs tell, or by its OIDs, for which nothing but WAL is read.

use std::fmt::Write as _;

use anyhow::Result;
use pagemill_cli::cluster_arguments::RecoveryArguments;
use pagemill_cluster::recovery::plan::TimelineChoice;
use pagemill_engine::select::find_one;
use pagemill_format::wal::{Record, RelFileLocator, ResourceManager, Truncation};
use pagemill_format::{BlockNumber, Fork, PgVersion};
use pagemill_redo::{Effect, RedoSite, effect, tuple_changes};
use pagemill_wal::WalRecord;

use crate::failure::UsageError;
use crate::inspect::fork_of;
use crate::session::Session;
use crate::tuple_changes::changes_text;
use crate::wal_arguments::{ShowArguments, relation};

/// The block whose records are wanted.
pub(crate) struct BlockFilter {
    locator: RelFileLocator,
    fork: Fork,
    block: BlockNumber,
}

impl BlockFilter {
    /// The block that was asked for, if one was.
    pub(crate) fn of(arguments: &ShowArguments) -> Result<Option<Self>> {
        let Some(text) = &arguments.block else { return Ok(None) };
        let (name, number) = match text.rsplit_once(':') {
            Some((name, number)) => (Some(name), number),
            None => (None, text.as_str()),
        };
        let block = number.parse().ok().filter(|number| *number != u32::MAX);
        let block = BlockNumber(block.ok_or_else(|| wrong(text))?);
        let locator = match (name, arguments.relation) {
            (Some(_), Some(_)) | (None, None) => return Err(wrong(text)),
            (None, Some(locator)) => locator,
            (Some(name), None) => match relation(name) {
                Ok(locator) => locator,
                Err(_) => locator_of(name, arguments)?,
            },
        };
        Ok(Some(Self { locator, fork: fork_of(arguments.fork), block }))
    }

    /// True for a record that names the block, or cuts it off.
    pub(crate) fn is_of(&self, record: &Record<'_>) -> bool {
        self.cuts(record) || record.blocks.iter().any(|block| self.is(block))
    }

    /// Appends a line that says what the record does to the block.
    pub(crate) fn push(
        &self,
        found: &WalRecord<'_>,
        record: &Record<'_>,
        version: PgVersion,
        text: &mut String,
    ) {
        // Writing to memory cannot fail.
        let _ = write!(text, "\tblock {}: ", self.block);
        for (number, block) in record.blocks.iter().filter(|block| self.is(block)).enumerate() {
            let site = RedoSite {
                record,
                start: found.lsn,
                end: found.end,
                reference: block.id,
                version,
                hints_logged: false,
            };
            text.push_str(if number > 0 { "; " } else { "" });
            text.push_str(effect_text(effect(&record.header, &block.touch())));
            match tuple_changes(&site).map(|changes| changes_text(&changes)) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => *text += &format!("; tuples: {changes}"),
                Err(error) => *text += &format!("; ({error})"),
            }
        }
        if self.cuts(record) {
            text.push_str("cut off");
        }
        text.push('\n');
    }

    fn is(&self, block: &pagemill_format::wal::BlockReference<'_>) -> bool {
        (block.locator, block.fork, block.block) == (self.locator, self.fork, self.block)
    }

    fn cuts(&self, record: &Record<'_>) -> bool {
        let header = &record.header;
        if (header.resource_manager, header.kind(), self.fork)
            != (ResourceManager::STORAGE, ResourceManager::SMGR_TRUNCATE, Fork::Main)
        {
            return false;
        }
        Truncation::parse(record.main_data).is_ok_and(|cut| {
            let is_main = cut.forks & Truncation::MAIN_FORK != 0;
            is_main && cut.locator == self.locator && cut.blocks <= self.block
        })
    }
}

fn effect_text(effect: Effect) -> &'static str {
    match effect {
        Effect::Image => "the whole page (image)",
        Effect::Init => "the whole page, reinitialized",
        Effect::Delta | Effect::DeltaWithoutImage => "a change",
        Effect::Nothing => "named only",
    }
}

/// The files of a relation of the cluster, whatever state that is in.
fn locator_of(name: &str, arguments: &ShowArguments) -> Result<RelFileLocator> {
    let (wal, timeline) = (arguments.wal.clone(), TimelineChoice::Automatic);
    let recovery = RecoveryArguments {
        wal,
        until: None,
        exclusive: false,
        timeline,
        tablespace_mapping: Vec::new(),
        allow_inconsistent: false,
        wal_memory: arguments.wal_memory,
    };
    let session = Session::new(&arguments.common)?.recovered(&recovery)?;
    let database = session.cluster_for_names()?.database(&arguments.database.dbname)?;
    Ok(database.locator(&find_one(&database, name)?.class)?)
}

fn wrong(text: &str) -> anyhow::Error {
    let what = format!(
        "--block {text}: a relation and the number of a block are wanted, as in public.orders:7 or \
         1663/5/16384:7, or the number alone with --relation"
    );
    UsageError(what).into()
}
