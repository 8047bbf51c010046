//! Whether a scan reads its table by one of its indexes: which, and the rows that the index leads to.
//!
//! ```text
//! conditions ─► ranges of each index ─► the best one is searched ─► few blocks: these are read
//! the first rows of an order ─► an index in that order, gone along ┤
//!                                                                └► many: the whole table is
//! ```
//!
//! That is decided when the first part of a table is read, once for all threads, by searching. The conditions are evaluated
//! on every row all the same, so an index only spares reading.
//!
//! Invariants: planning searches nothing; an index that is damaged, or cannot be read, is not used.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use pagemill_cluster::{NotSearched, RangeIndex, SearchIndex, SearchIndexes};
use pagemill_engine::{IndexLookup, Lookup, LookupLimits, Progress, Table};
use pagemill_format::{Oid, Tid};
use pagemill_types::index_key_range::KeyRange;

use super::account::ScanAccount;
use super::filters::ScanFilters;
use super::first_rows::{FirstRows, OrderedSearch, ordered_search};
use super::first_rows_scan::{Walked, is_few, walk};
use super::index_conditions::{Conditions, KeyValue, Reader};
use super::index_expressions::{IndexTexts, may_compute};
use super::key_access::{KeyAccess, covering_index};
use super::range_access::{by_ranges, range_index_of_conditions};
use super::source::RelationSource;
use super::tid_access::blocks_of_tids;
use crate::catalog::Catalog;
use crate::error::{Error, Result};

/// Tables of so few blocks are read as a whole: an index has no fewer.
const FEW_BLOCKS: u32 = 4;
/// Of the blocks of a table at most one of so many is looked up.
const BLOCKS_SHARE: u32 = 2;
/// A range of more of an index than this is not searched.
const INDEX_SHARE: f64 = 0.4;
/// A partial index of at most one of so many of the table's blocks is searched as a whole.
const PARTIAL_SHARE: u32 = 8;
/// So few rows are looked up before an order is gone along.
const MOST_AT_ONCE: usize = 100;
/// TIDs that are kept: 64 MiB.
const MOST_TIDS: usize = 8 << 20;
/// Ranges that are searched one by one.
const MOST_RANGES: usize = 10_000;
/// Indexes that are tried.
const MOST_TRIED: usize = 3;

/// The name of an index, and how it can be searched or why it cannot.
type NamedIndex = (Box<[u8]>, Result<Arc<SearchIndex>, NotSearched>);

/// The indexes of a table.
pub(crate) struct TableIndexes {
    /// All of them that are not among the others.
    pub(crate) trees: Vec<NamedIndex>,
    /// Those that tell of ranges of blocks.
    pub(crate) ranges: Vec<RangeIndex>,
    table: Oid,
    /// Of the first, by their OIDs.
    texts: Mutex<HashMap<Oid, Arc<IndexTexts>>>,
}

impl TableIndexes {
    /// Those of a table.
    pub(crate) fn new(table: Oid, found: SearchIndexes) -> Self {
        let SearchIndexes { trees, ranges } = found;
        let trees = trees.into_iter().map(|(name, index)| (name, index.map(Arc::new))).collect();
        Self { trees, ranges, table, texts: Mutex::default() }
    }

    /// What an index says of itself.
    pub(super) fn texts(&self, catalog: &Arc<Catalog>, index: &SearchIndex) -> Arc<IndexTexts> {
        let mut known = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || Arc::new(IndexTexts::read(catalog, self.table, index));
        known.entry(index.class.oid).or_insert_with(read).clone()
    }
}

/// What came of searching by the conditions of a scan, by the number of the part.
#[derive(Clone, Default)]
pub(super) struct IndexAccess(Arc<Mutex<HashMap<usize, (Conditions, Decision)>>>);

/// What leads to the rows of a part that matter.
#[derive(Clone)]
pub(super) enum Access {
    Whole,
    Tids(Arc<[Tid]>),
    /// All of them are on these blocks.
    Blocks(Arc<[Range<u32>]>),
    /// An index tells all that is wanted of them.
    Keys(Arc<KeyAccess>),
    /// They were read already.
    Rows(Arc<[RecordBatch]>),
}

/// How a part is read.
#[derive(Clone)]
pub(super) struct Decision {
    pub(super) access: Access,
    /// In words.
    pub(super) reason: Arc<str>,
}

impl Decision {
    fn whole(reason: impl Into<Arc<str>>) -> Self {
        Self { access: Access::Whole, reason: reason.into() }
    }

    fn keys(keys: KeyAccess) -> Self {
        let reason = keys.reason().into();
        Self { access: Access::Keys(Arc::new(keys)), reason }
    }

    /// How many blocks of the table it names, where it names them.
    fn blocks(&self) -> u32 {
        let Access::Blocks(blocks) = &self.access else { return 0 };
        blocks.iter().map(|range| range.end - range.start).sum()
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
    /// How a part is read.
    ///
    /// # Errors
    /// When the catalogs or rows cannot be read, or the statement was cancelled.
    pub(super) fn access(
        &self,
        source: &RelationSource,
        part: usize,
        account: &mut ScanAccount,
    ) -> Result<Access> {
        let Some((table, _)) = source.parts.get(part) else { return Ok(Access::Whole) };
        let conditions = conditions(source)?;
        let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = decided.get(&part);
        if let Some((of, decision)) = known
            && (*of == conditions || matches!(decision.access, Access::Keys(_)))
        {
            return Ok(decision.access.clone());
        }
        // Conditions may come up while the statement runs. Other threads take parts of the table by then, and not of an index.
        let keys = if known.is_none() { KeyAccess::of(source, table)? } else { None };
        let decision = decide(source, (table, keys), &conditions, account)?;
        let access = decision.access.clone();
        decided.insert(part, (conditions, decision));
        Ok(access)
    }

    /// Whether a table is so small, or its rows are so few by an index of which all searched columns are given, that they are
    /// best read at once. Then it is decided that way.
    ///
    /// # Errors
    /// As [`Self::access`].
    pub(super) fn decides_by_key(
        &self,
        source: &RelationSource,
        table: &Arc<Table>,
    ) -> Result<bool> {
        if source.filters.is_empty() || source.first_rows.is_some() {
            return Ok(false);
        }
        if table.blocks() <= FEW_BLOCKS {
            return Ok(true);
        }
        if !source.context.catalog.database().cluster().is_complete() {
            return Ok(false);
        }
        let conditions = conditions(source)?;
        if let Some(decision) = by_tids(source, table, &conditions) {
            let Access::Blocks(blocks) = &decision.access else { return Ok(false) };
            let count = blocks.iter().map(|range| range.end - range.start).max();
            let are_few = blocks.len() <= MOST_AT_ONCE && count.is_none_or(|count| count == 1);
            if are_few {
                let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                decided.insert(0, (conditions, decision));
            }
            return Ok(are_few);
        }
        let (found, _) = candidates(source, table, &conditions)?;
        let Some(candidate) = found.first().filter(|candidate| candidate.is_given()) else {
            return Ok(false);
        };
        let limits = LookupLimits { tids: MOST_AT_ONCE, ..limits(table) };
        let Tried::Found(decision) = look_up(source, table, candidate, limits)? else {
            return Ok(false);
        };
        let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        decided.insert(0, (conditions, decision));
        Ok(true)
    }

    /// What was decided, or what can be said before.
    pub(super) fn describe(
        &self,
        source: &RelationSource,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // That a table is read as a whole without any conditions goes without saying.
        let is_plain = source.filters.all().next().is_none() && source.first_rows.is_none();
        let is_told = |found: &&Decision| !is_plain || matches!(found.access, Access::Keys(_));
        let found = decided.values().map(|(_, found)| found).filter(is_told);
        let mut reasons: Vec<&str> = found.map(|found| &*found.reason).collect();
        reasons.sort_unstable();
        match &reasons[..] {
            [] if !decided.is_empty() => return Ok(()),
            [] => drop(decided),
            [only] => return write!(f, ", access={only}"),
            [first, .., last] if first == last => return write!(f, ", access={first}"),
            [first, ..] => return write!(f, ", access={first}, and others"),
        }
        let Some((table, _)) = source.parts.first() else { return Ok(()) };
        match planned(source, table) {
            Ok(Some(told)) => write!(f, ", access={told}"),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

/// What can be said before anything is searched.
fn planned(source: &RelationSource, table: &Arc<Table>) -> Result<Option<String>> {
    let conditions = conditions(source)?;
    if let Some(decision) = by_tids(source, table, &conditions) {
        return Ok(Some(decision.reason.to_string()));
    }
    let searches = searches(source, table, &conditions)?;
    if let [search, ..] = &searches[..] {
        let name = String::from_utf8_lossy(&search.index.class.name);
        return Ok(Some(format!("index {name} in its order if that is not long")));
    }
    let covering = covering_index(source, table)?.map(|index| {
        let name = String::from_utf8_lossy(&index.class.name);
        format!("index {name} alone if nearly all rows are visible to everybody")
    });
    if conditions.is_empty() && !may_be_of_partial_index(source, table)? {
        let index = index_of_runtime_keys(source, table)?;
        return Ok(covering.or(index.map(|name| format!("index {name} if few keys are joined"))));
    }
    let (found, why) = candidates(source, table, &conditions)?;
    let ranges = range_index_of_conditions(source, table, &conditions)?;
    Ok(Some(match (&found[..], ranges) {
        ([], None) => covering.unwrap_or_else(|| whole_table(&why)),
        ([], Some(ranges)) => format!("blocks that index {ranges} leaves"),
        ([first, ..], None) => format!("index {} if few rows match", first.name()),
        ([first, ..], Some(ranges)) => {
            format!("index {} if few rows match, else what index {ranges} leaves", first.name())
        }
    }))
}

/// An index that begins with a column of which values come up while the statement runs.
fn index_of_runtime_keys(source: &RelationSource, table: &Table) -> Result<Option<String>> {
    let catalog = &source.context.catalog;
    let reader = Reader { catalog, columns: &source.columns, expressions: &[] };
    let filters = source.filters.conditions().iter();
    let dynamic = filters.filter(|filter| filter.is::<DynamicFilterPhysicalExpr>());
    let columns: Vec<usize> = dynamic
        .flat_map(|filter| filter.children())
        .filter_map(|key| Some(reader.key(key)?.0))
        .collect();
    let indexes = catalog.search_indexes(&table.relation)?;
    for index in indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok()) {
        let Some(key) = index.keys.first().filter(|_| index.predicate.is_none()) else { continue };
        let first = source.place_of_key(table, (index, key))?;
        if first.is_some_and(|first| columns.contains(&first)) {
            return Ok(Some(String::from_utf8_lossy(&index.class.name).into_owned()));
        }
    }
    Ok(None)
}

/// The ways to the first rows that are wanted; none where there is none to one of them.
fn searches(
    source: &RelationSource,
    table: &Table,
    conditions: &Conditions,
) -> Result<Vec<OrderedSearch>> {
    let Some(wanted) = &source.first_rows else { return Ok(Vec::new()) };
    let way = |first: &FirstRows| match is_few(first.rows, table) {
        true => ordered_search(source, table, (first, conditions, &wanted.filters)),
        false => Ok(None),
    };
    let found: Option<Vec<OrderedSearch>> = wanted.orders.iter().map(way).collect::<Result<_>>()?;
    Ok(found.unwrap_or_default())
}

/// What holds for all rows that matter. Where the first of an order are wanted, that is what held when the order was known.
fn conditions(source: &RelationSource) -> Result<Conditions> {
    let (catalog, filters) = (&source.context.catalog, lasting_filters(source));
    let expressions = if may_compute(filters) { source.key_expressions()? } else { &[] };
    Ok(Reader { catalog, columns: &source.columns, expressions }.read(filters.all()))
}

/// The conditions that hold for all rows that matter.
fn lasting_filters(source: &RelationSource) -> &ScanFilters {
    source.first_rows.as_ref().map_or(&source.filters, |wanted| &wanted.filters)
}

impl Candidate {
    fn name(&self) -> String {
        String::from_utf8_lossy(&self.index.class.name).into_owned()
    }

    /// Whether few values are searched for, and no ranges of them.
    fn is_given(&self) -> bool {
        let (_, _, ends) = self.closeness;
        ends == 0 && self.ranges.len() <= MOST_AT_ONCE
    }
}

fn whole_table(why: &[String]) -> String {
    match why {
        [] => "whole table, which has no index on the columns of the conditions or in the order of the rows that come first".to_owned(),
        why => format!("whole table, indexes not searched: {}", why.join(", ")),
    }
}

/// Goes along an index, or searches the best ones, until one leads to few blocks.
fn decide(
    source: &RelationSource,
    (table, keys): (&Arc<Table>, Option<KeyAccess>),
    conditions: &Conditions,
    account: &mut ScanAccount,
) -> Result<Decision> {
    let database = source.context.catalog.database();
    let names_no_keys = conditions.is_empty() && !may_be_of_partial_index(source, table)?;
    if names_no_keys && source.first_rows.is_none() {
        let whole = || Decision::whole("whole table, whose conditions name no keys");
        return Ok(keys.map_or_else(whole, Decision::keys));
    }
    if let Some(decision) = by_tids(source, table, conditions) {
        return Ok(decision);
    }
    if table.blocks() <= FEW_BLOCKS {
        return Ok(Decision::whole(format!("whole table, of {} blocks", table.blocks())));
    }
    // Index and table go together only once all of the WAL is in both.
    if !database.cluster().is_complete() {
        return Ok(Decision::whole("whole table, as the files are read as they lie"));
    }
    let (found, mut why) = candidates(source, table, conditions)?;
    let searches = searches(source, table, conditions)?;
    if let (Some(wanted), [way, ..]) = (&source.first_rows, &searches[..]) {
        // What the conditions leave may be less than what is wanted.
        let others =
            found.iter().filter(|candidate| candidate.index.class.oid != way.index.class.oid);
        let rows = MOST_AT_ONCE.max(wanted.orders.iter().map(|order| order.rows).sum());
        let limits = LookupLimits { tids: rows, ..limits(table) };
        for candidate in others.take(MOST_TRIED) {
            if let Tried::Found(decision) = look_up(source, table, candidate, limits)? {
                return Ok(decision);
            }
        }
        match walk(source, (table, wanted), &searches, account)? {
            Walked::Found(batches, way) => {
                return Ok(Decision { access: Access::Rows(batches.into()), reason: way.into() });
            }
            Walked::NotWorth(cause) => why.insert(0, cause),
        }
    }
    // An index alone is better than more blocks of the table than it has.
    let LookupLimits { blocks, tids, share } = limits(table);
    let limits = LookupLimits {
        blocks: keys.as_ref().map_or(blocks, |keys| keys.cost().min(blocks)),
        tids,
        share,
    };
    for candidate in found.iter().take(MOST_TRIED) {
        match look_up(source, table, candidate, limits)? {
            Tried::Found(decision) => return Ok(decision),
            Tried::TooMany(cause) => why.insert(0, cause),
            Tried::Unusable(cause) => why.push(cause),
        }
    }
    match (by_ranges(source, table, conditions)?, keys) {
        (Ok(decision), Some(keys)) if decision.blocks() > keys.cost() => Ok(Decision::keys(keys)),
        (Ok(decision), _) => Ok(decision),
        (Err(_), Some(keys)) => Ok(Decision::keys(keys)),
        (Err(causes), None) => {
            why.extend(causes);
            Ok(Decision::whole(whole_table(&why)))
        }
    }
}

/// The blocks that conditions on `ctid` tell of. Damage on others is nobody's matter then.
fn by_tids(source: &RelationSource, table: &Table, conditions: &Conditions) -> Option<Decision> {
    let blocks = blocks_of_tids(&source.columns, conditions)?;
    let all = table.blocks();
    let count = |range: &Range<u32>| range.end.min(all).saturating_sub(range.start);
    let read: u32 = blocks.iter().map(count).sum();
    let reason = format!("ctid, {read} of {all} blocks").into();
    Some(Decision { access: Access::Blocks(blocks.into()), reason })
}

/// What came of a search.
enum Tried {
    Found(Decision),
    TooMany(String),
    Unusable(String),
}

fn look_up(
    source: &RelationSource,
    table: &Table,
    candidate: &Candidate,
    limits: LookupLimits,
) -> Result<Tried> {
    let (name, progress) = (candidate.name(), source.context.progress.of_part());
    let share = if is_small(&candidate.index, table) { 1.0 } else { limits.share };
    let limits = LookupLimits { share, ..limits };
    Ok(match search(source, (table, limits), candidate, &progress) {
        Ok(Lookup::Found(tids)) => {
            let read = progress.counts().blocks_read;
            let reason = format!("index {name}, {} entries on {read} blocks of it", tids.len());
            Tried::Found(Decision { access: Access::Tids(tids.into()), reason: reason.into() })
        }
        Ok(Lookup::TooMany) => Tried::TooMany(format!("{name} (too many rows)")),
        Err(pagemill_engine::Error::Cancelled) => {
            return Err(Error::Engine(pagemill_engine::Error::Cancelled));
        }
        Err(error) => Tried::Unusable(format!("{name} ({error})")),
    })
}

fn limits(table: &Table) -> LookupLimits {
    let blocks = (table.blocks() / BLOCKS_SHARE).max(1);
    LookupLimits { blocks, tids: MOST_TIDS, share: INDEX_SHARE }
}

fn search(
    source: &RelationSource,
    (table, limits): (&Table, LookupLimits),
    candidate: &Candidate,
    progress: &Progress,
) -> pagemill_engine::Result<Lookup> {
    let context = &source.context;
    let database = context.catalog.database();
    let (pool, index) = (context.catalog.open_indexes(), candidate.index.class.oid);
    let mut lookup = match pool.take(index) {
        None => IndexLookup::open(database, table, &candidate.index, context.options)?,
        Some(kept) => kept,
    };
    lookup.begin(progress);
    let found = lookup.tids(&candidate.ranges, limits)?;
    if !database.cluster().is_live() {
        pool.put(index, lookup);
    }
    Ok(found)
}

/// The indexes that the conditions hold to a part of them, the closest first, and why others are none of them.
fn candidates(
    source: &RelationSource,
    table: &Table,
    conditions: &Conditions,
) -> Result<(Vec<Candidate>, Vec<String>)> {
    let (mut found, mut why) = (Vec::new(), Vec::new());
    let filters = lasting_filters(source);
    let indexes = source.context.catalog.search_indexes(&table.relation)?;
    for (name, index) in &indexes.trees {
        match index {
            Ok(index) => {
                let Some(candidate) = candidate(source, table, (index, conditions))? else {
                    continue;
                };
                match source.has_all_rows(table, (index, filters))? {
                    true => found.push(candidate),
                    false => why.push(format!("{} (partial)", String::from_utf8_lossy(name))),
                }
            }
            Err(cause) => why.push(format!("{} ({cause})", String::from_utf8_lossy(name))),
        }
    }
    if found.is_empty() {
        found.extend(whole_partial_index(source, table, &indexes)?);
    }
    // Of those that are as close the smaller one: a partial index leaves out rows by itself.
    let size = |candidate: &Candidate| candidate.index.class.pages;
    found.sort_by_key(|candidate| (std::cmp::Reverse(candidate.closeness), size(candidate)));
    Ok((found, why))
}

fn candidate(
    source: &RelationSource,
    table: &Table,
    (index, conditions): (&Arc<SearchIndex>, &Conditions),
) -> Result<Option<Candidate>> {
    let mut prefixes: Vec<Vec<KeyValue>> = vec![Vec::new()];
    let (mut equal, mut bounds) = (0, None);
    for key in &index.keys {
        let column = source.place_of_key(table, (index, key))?;
        let Some(condition) = column.and_then(|column| conditions.get(&column)) else { break };
        let few = condition.any_of.as_ref().filter(|v| prefixes.len() * v.len() <= MOST_RANGES);
        match few {
            Some(values) => {
                prefixes = product(&prefixes, values);
                equal += 1;
            }
            None => {
                bounds = condition.bounds_in(key.collation);
                break;
            }
        }
    }
    let ends = bounds.as_ref().map_or(0, |bounds| {
        1 + usize::from(bounds.lower.is_some()) + usize::from(bounds.upper.is_some())
    });
    if equal == 0 && ends == 0 {
        return Ok(None);
    }
    let is_one_row = index.is_unique && equal == index.keys.len();
    let range = |equal| KeyRange { equal, bounds: bounds.clone() };
    let mut ranges: Vec<KeyRange> = prefixes.into_iter().map(range).collect();
    // In the order of the index, so that its pages are come by once.
    ranges.sort_unstable_by(|a, b| index.order.compare_ranges(a, b));
    ranges.dedup();
    Ok(Some(Candidate { index: index.clone(), ranges, closeness: (is_one_row, equal, ends) }))
}

/// The smallest partial index that has all rows that matter, as a whole.
fn whole_partial_index(
    source: &RelationSource,
    table: &Table,
    indexes: &TableIndexes,
) -> Result<Option<Candidate>> {
    let trees = indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok());
    let mut small: Vec<_> = trees.filter(|index| is_small(index, table)).collect();
    small.sort_by_key(|index| index.class.pages);
    for index in small {
        if source.has_all_rows(table, (index, lasting_filters(source)))? {
            let ranges = vec![KeyRange { equal: Vec::new(), bounds: None }];
            return Ok(Some(Candidate { index: index.clone(), ranges, closeness: (false, 0, 0) }));
        }
    }
    Ok(None)
}

/// Whether there are conditions that a partial index may be of, whatever they say of single columns.
fn may_be_of_partial_index(source: &RelationSource, table: &Table) -> Result<bool> {
    if lasting_filters(source).all().next().is_none() {
        return Ok(false);
    }
    let indexes = source.context.catalog.search_indexes(&table.relation)?;
    let mut trees = indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok());
    Ok(trees.any(|index| is_small(index, table)))
}

/// Whether an index is partial, and so small that all of it may be searched.
fn is_small(index: &SearchIndex, table: &Table) -> bool {
    index.predicate.is_some() && index.class.pages <= table.blocks() / PARTIAL_SHARE
}

pub(super) fn product(prefixes: &[Vec<KeyValue>], values: &[KeyValue]) -> Vec<Vec<KeyValue>> {
    let with = |prefix: &Vec<KeyValue>, value: &KeyValue| {
        let mut longer = prefix.clone();
        longer.push(value.clone());
        longer
    };
    prefixes.iter().flat_map(|prefix| values.iter().map(move |value| with(prefix, value))).collect()
}
