//! Whether a scan reads its table by one of its indexes: which, and the rows that the index leads to.
//!
//! ```text
//! conditions ─► ranges of each index ─► the best one is searched ─► few blocks: these are read
//!                                                                └► many: the whole table is
//! ```
//!
//! That is decided when the first part of a table is read, once for all threads, by searching. The conditions are evaluated
//! on every row all the same, so an index only spares reading.
//!
//! Invariants: planning searches nothing; an index that is damaged, or cannot be read, is not used.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_cluster::{NotSearched, SearchIndex};
use pagemill_engine::{IndexLookup, Lookup, LookupLimits, Progress, Table};
use pagemill_format::Tid;
use pagemill_types::index_key_range::KeyRange;

use super::index_conditions::{Conditions, KeyValue, Reader};
use super::source::RelationSource;
use crate::error::{Error, Result};

/// Tables of so few blocks are read as a whole: an index has no fewer.
const FEW_BLOCKS: u32 = 4;
/// Of the blocks of a table at most one of so many is looked up.
const BLOCKS_SHARE: u32 = 3;
/// A range of more of an index than this is not searched.
const INDEX_SHARE: f64 = 0.4;
/// TIDs that are kept: 64 MiB.
const MOST_TIDS: usize = 8 << 20;
/// Ranges that are searched one by one.
const MOST_RANGES: usize = 10_000;
/// Indexes that are tried.
const MOST_TRIED: usize = 3;

/// The indexes of a table, by their names.
pub(crate) type TableIndexes = Vec<(Box<[u8]>, Result<Arc<SearchIndex>, NotSearched>)>;

/// What came of searching by the conditions of a scan, by the number of the part.
#[derive(Clone, Default)]
pub(super) struct IndexAccess(Arc<Mutex<HashMap<usize, (Conditions, Decision)>>>);

/// How a part is read.
#[derive(Clone)]
struct Decision {
    /// The rows, if by an index.
    tids: Option<Arc<[Tid]>>,
    /// In words.
    reason: Arc<str>,
}

impl Decision {
    fn whole(reason: impl Into<Arc<str>>) -> Self {
        Self { tids: None, reason: reason.into() }
    }
}

/// An index, and the ranges of it that hold all rows of the conditions.
struct Candidate {
    index: Arc<SearchIndex>,
    ranges: Vec<KeyRange>,
    /// How closely they are held: to one row, then the columns with single values, then the ends of a range.
    closeness: (bool, usize, usize),
}

impl IndexAccess {
    /// The TIDs that lead to all rows of a part that matter; `None` where the part is to be read as a whole.
    ///
    /// # Errors
    /// When the catalogs cannot be read, or the statement was cancelled.
    pub(super) fn tids(&self, source: &RelationSource, part: usize) -> Result<Option<Arc<[Tid]>>> {
        let Some((table, _)) = source.parts.get(part) else { return Ok(None) };
        let conditions = conditions(source);
        let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, decision)) = decided.get(&part)
            && *of == conditions
        {
            return Ok(decision.tids.clone());
        }
        let decision = decide(source, table, &conditions)?;
        let tids = decision.tids.clone();
        decided.insert(part, (conditions, decision));
        Ok(tids)
    }

    /// What was decided, or what can be said before.
    pub(super) fn describe(
        &self,
        source: &RelationSource,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons: Vec<&str> = decided.values().map(|(_, found)| &*found.reason).collect();
        reasons.sort_unstable();
        match &reasons[..] {
            [] => drop(decided),
            [only] => return write!(f, ", access={only}"),
            [first, .., last] if first == last => return write!(f, ", access={first}"),
            [first, ..] => return write!(f, ", access={first}, and others"),
        }
        let conditions = conditions(source);
        let Some((table, _)) = source.parts.first().filter(|_| !conditions.is_empty()) else {
            return Ok(());
        };
        match candidates(source, table, &conditions) {
            Ok((found, _)) if !found.is_empty() => {
                write!(f, ", access=index {} if few rows match", found[0].name())
            }
            Ok((_, why)) => write!(f, ", access={}", whole_table(&why)),
            Err(_) => Ok(()),
        }
    }
}

fn conditions(source: &RelationSource) -> Conditions {
    let catalog = &source.context.catalog;
    Reader { catalog, columns: &source.columns }.read(source.filters.conditions())
}

impl Candidate {
    fn name(&self) -> String {
        String::from_utf8_lossy(&self.index.class.name).into_owned()
    }
}

fn whole_table(why: &[String]) -> String {
    match why {
        [] => "whole table, which has no index on the columns of the conditions".to_owned(),
        why => format!("whole table, indexes not searched: {}", why.join(", ")),
    }
}

/// Searches the best indexes, until one leads to few blocks.
fn decide(
    source: &RelationSource,
    table: &Arc<Table>,
    conditions: &Conditions,
) -> Result<Decision> {
    let database = source.context.catalog.database();
    if conditions.is_empty() {
        return Ok(Decision::whole("whole table, whose conditions name no keys"));
    }
    if table.blocks() <= FEW_BLOCKS {
        return Ok(Decision::whole(format!("whole table, of {} blocks", table.blocks())));
    }
    // Index and table go together only once all of the WAL is in both.
    if !database.cluster().is_complete() {
        return Ok(Decision::whole("whole table, as the files are read as they lie"));
    }
    let (found, mut why) = candidates(source, table, conditions)?;
    for candidate in found.into_iter().take(MOST_TRIED) {
        let progress = source.context.progress.of_part();
        match search(source, table, &candidate, &progress) {
            Ok(Lookup::Found(tids)) => {
                let (name, read) = (candidate.name(), progress.counts().blocks_read);
                let reason = format!("index {name}, {} entries on {read} blocks of it", tids.len());
                return Ok(Decision { tids: Some(tids.into()), reason: reason.into() });
            }
            Ok(Lookup::TooMany) => why.insert(0, format!("{} (too many rows)", candidate.name())),
            Err(pagemill_engine::Error::Cancelled) => {
                return Err(Error::Engine(pagemill_engine::Error::Cancelled));
            }
            Err(error) => why.push(format!("{} ({error})", candidate.name())),
        }
    }
    Ok(Decision::whole(whole_table(&why)))
}

fn search(
    source: &RelationSource,
    table: &Table,
    candidate: &Candidate,
    progress: &Progress,
) -> pagemill_engine::Result<Lookup> {
    let context = &source.context;
    let database = context.catalog.database();
    let reading = (context.options, progress);
    let blocks = (table.blocks() / BLOCKS_SHARE).max(1);
    let limits = LookupLimits { blocks, tids: MOST_TIDS, share: INDEX_SHARE };
    IndexLookup::open(database, table, &candidate.index, reading)?.tids(&candidate.ranges, limits)
}

/// The indexes that the conditions hold to a part of them, the closest first, and why others are none of them.
fn candidates(
    source: &RelationSource,
    table: &Table,
    conditions: &Conditions,
) -> Result<(Vec<Candidate>, Vec<String>)> {
    let (mut found, mut why) = (Vec::new(), Vec::new());
    for (name, index) in source.context.catalog.search_indexes(&table.relation)?.iter() {
        match index {
            Ok(index) => found.extend(candidate(source, table, (index, conditions))),
            Err(cause) => why.push(format!("{} ({cause})", String::from_utf8_lossy(name))),
        }
    }
    found.sort_by_key(|candidate: &Candidate| std::cmp::Reverse(candidate.closeness));
    Ok((found, why))
}

fn candidate(
    source: &RelationSource,
    table: &Table,
    (index, conditions): (&Arc<SearchIndex>, &Conditions),
) -> Option<Candidate> {
    let mut prefixes: Vec<Vec<KeyValue>> = vec![Vec::new()];
    let (mut equal, mut bounds) = (0, None);
    for key in &index.keys {
        let name = &table.relation.columns.get(key.position)?.name;
        let column = source.columns.iter().position(|column| column.stored_name == *name);
        let Some(condition) = column.and_then(|column| conditions.get(&column)) else { break };
        let few = condition.any_of.as_ref().filter(|v| prefixes.len() * v.len() <= MOST_RANGES);
        match few {
            Some(values) => {
                prefixes = product(&prefixes, values);
                equal += 1;
            }
            None => {
                bounds = condition.bounds.clone();
                break;
            }
        }
    }
    let ends = bounds.as_ref().map_or(0, |bounds| {
        1 + usize::from(bounds.lower.is_some()) + usize::from(bounds.upper.is_some())
    });
    if equal == 0 && ends == 0 {
        return None;
    }
    let is_one_row = index.is_unique && equal == index.keys.len();
    let range = |equal| KeyRange { equal, bounds: bounds.clone() };
    let mut ranges: Vec<KeyRange> = prefixes.into_iter().map(range).collect();
    ranges.sort_unstable();
    ranges.dedup();
    Some(Candidate { index: index.clone(), ranges, closeness: (is_one_row, equal, ends) })
}

fn product(prefixes: &[Vec<KeyValue>], values: &[KeyValue]) -> Vec<Vec<KeyValue>> {
    let with = |prefix: &Vec<KeyValue>, value: &KeyValue| {
        let mut longer = prefix.clone();
        longer.push(value.clone());
        longer
    };
    prefixes.iter().flat_map(|prefix| values.iter().map(move |value| with(prefix, value))).collect()
}
