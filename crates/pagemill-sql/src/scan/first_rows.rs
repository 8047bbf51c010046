//! The rows of a scan that alone are wanted, where a sort above keeps a few or an aggregate one: which order they are the first
//! of, and the way along an index that has that order.
//!
//! ```text
//! sort of a few, min, max ── orders of columns ──► an index of that order ── ranges, forward or backward ──► first_rows_scan
//! ```
//!
//! Only what is certain to be among the first is looked for, and the sort or the aggregate stays where it is: a scan may always
//! give more.
//!
//! Invariant: an index is gone along only where its entries come in the order that the sort compares by.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use pagemill_cluster::btree_scan::Direction;
use pagemill_cluster::{SearchIndex, SearchKey};
use pagemill_engine::Table;
use pagemill_format::Oid;
use pagemill_types::index_key_range::KeyRange;

use super::filters::ScanFilters;
use super::index_conditions::{Conditions, KeyValue, Reader};
use super::index_payload::is_in_stored_order;
use super::source::RelationSource;
use crate::error::Result;

/// Ranges that are gone along one after the other.
const MOST_RANGES: usize = 100;

/// Rows that are wanted alone, and the conditions that they pass: of those, conditions that come up later leave out none.
#[derive(Debug, Clone)]
pub(super) struct WantedRows {
    pub(super) orders: Vec<FirstRows>,
    pub(super) filters: ScanFilters,
}

/// So many rows that come first.
#[derive(Debug, Clone)]
pub(super) struct FirstRows {
    pub(super) rows: usize,
    /// The columns that the order begins with.
    keys: Vec<OrderKey>,
    /// Nothing else decides.
    is_whole: bool,
}

/// A column to sort by.
#[derive(Debug, Clone, Copy)]
struct OrderKey {
    /// Its place among the columns that are not dropped.
    column: usize,
    descending: bool,
    nulls: Nulls,
    /// In whose order its texts are, if not in that of their bytes.
    collation: Option<Oid>,
}

/// Where the rows go that have no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    First,
    Last,
    /// Nowhere: no such row is wanted.
    LeftOut,
}

/// An expression to sort by.
#[derive(Debug, Clone)]
pub(super) struct SortKey {
    pub(super) expr: Arc<dyn PhysicalExpr>,
    pub(super) descending: bool,
    pub(super) nulls: Nulls,
    /// The collation in whose order it is a text, where it is no key of it.
    pub(super) collation: Option<Oid>,
}

impl FirstRows {
    /// The first rows by expressions on the columns of a table; `None` where no index can have their order.
    pub(super) fn by(source: &RelationSource, sort: &[SortKey], rows: usize) -> Option<Self> {
        let catalog = &source.context.catalog;
        let is_column = |key: &SortKey| key.expr.is::<Column>() || is_constant(key);
        let expressions = match sort.iter().all(is_column) {
            true => &[],
            // default: no index is gone along by what the catalogs cannot tell
            false => source.key_expressions().unwrap_or_default(),
        };
        let reader = Reader { catalog, columns: &source.columns, expressions };
        let mut keys = Vec::new();
        let mut is_whole = true;
        for SortKey { expr, descending, nulls, collation } in
            sort.iter().filter(|key| !is_constant(key))
        {
            let found = reader.key(expr).filter(|(column, form)| {
                let column = reader.column(*column);
                column.is_some_and(|column| is_in_stored_order(catalog, column, *form))
            });
            let Some((column, form)) = found else {
                is_whole = false;
                break;
            };
            let (descending, nulls) = (*descending, *nulls);
            let collation = collation.or(form.collation());
            keys.push(OrderKey { column, descending, nulls, collation });
        }
        (!keys.is_empty()).then_some(Self { rows, keys, is_whole })
    }
}

fn is_constant(key: &SortKey) -> bool {
    key.expr.is::<Literal>()
}

/// How an index is gone along.
pub(super) struct OrderedSearch {
    pub(super) index: Arc<SearchIndex>,
    pub(super) direction: Direction,
    pub(super) rows: usize,
    /// Of each of these the first rows are wanted, over all its ranges one after the other.
    pub(super) groups: Vec<Vec<KeyRange>>,
    /// So many leading columns decide on the order, and nothing else if `is_whole`.
    pub(super) columns: usize,
    pub(super) is_whole: bool,
}

/// The best way to the first rows under the conditions, if an index has their order.
pub(super) fn ordered_search(
    source: &RelationSource,
    table: &Table,
    (first, conditions, wanted): (&FirstRows, &Conditions, &ScanFilters),
) -> Result<Option<OrderedSearch>> {
    let indexes = source.context.catalog.search_indexes(&table.relation)?;
    let mut searches = Vec::new();
    for index in indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok()) {
        let places = index.keys.iter().map(|key| source.place_of_key(table, (index, key)));
        let places = places.collect::<Result<Vec<_>>>()?;
        let way = Way { conditions, keys: index.keys.iter().zip(places).collect() };
        let Some(search) = way.along(first, index) else { continue };
        if source.has_all_rows(table, (index, wanted))? {
            searches.push(search);
        }
    }
    Ok(searches.into_iter().max_by_key(|search| (search.is_whole, search.columns)))
}

/// What is found out of one index.
struct Way<'w> {
    conditions: &'w Conditions,
    /// The keys of the index, with their places.
    keys: Vec<PlacedKey<'w>>,
}

/// A key of an index, and its place among the columns and expressions of a scan.
type PlacedKey<'k> = (&'k SearchKey, Option<usize>);

impl Way<'_> {
    fn along(&self, first: &FirstRows, index: &Arc<SearchIndex>) -> Option<OrderedSearch> {
        let (way, conditions) = (self, self.conditions);
        let prefixes = way.prefixes()?;
        let equal = prefixes.first().map_or(0, Vec::len);
        let is_open = |key: &&OrderKey| {
            let mut fixed = way.keys.iter().take(equal);
            let known = conditions.get(&key.column).and_then(|known| known.any_of.as_ref());
            !fixed.any(|(_, place)| *place == Some(key.column))
                && known.is_none_or(|values| values.len() > 1)
        };
        let keys: Vec<&OrderKey> = first.keys.iter().filter(is_open).collect();
        let rest = way.keys.get(equal..).unwrap_or_default();
        let direction = match (keys.first(), rest.first()) {
            (Some(key), Some((own, _))) if key.descending != own.descending => Direction::Backward,
            _ => Direction::Forward,
        };
        let same = way.same_columns(&keys, rest, direction);
        if same == 0 && !(keys.is_empty() && first.is_whole && equal > 0) {
            return None;
        }
        let leading = keys.first().zip(rest.first()).filter(|_| same > 0);
        let leading = leading.map(|(key, (own, _))| (*key, *own));
        let mut groups: Vec<Vec<KeyRange>> =
            prefixes.into_iter().map(|prefix| way.ranges(prefix, leading, direction)).collect();
        // A row belongs to one group only.
        let order = |a: &[KeyRange], b: &[KeyRange]| match (a.first(), b.first()) {
            (Some(a), Some(b)) => index.order.compare_ranges(a, b),
            _ => std::cmp::Ordering::Equal,
        };
        groups.sort_by(|a, b| order(a, b));
        groups.dedup_by(|a, b| order(a, b).is_eq());
        Some(OrderedSearch {
            index: index.clone(),
            direction,
            rows: first.rows,
            groups,
            columns: equal + same,
            is_whole: first.is_whole && same == keys.len(),
        })
    }

    /// The values that the conditions leave to the leading columns; `None` of too many.
    fn prefixes(&self) -> Option<Vec<Vec<KeyValue>>> {
        let mut prefixes: Vec<Vec<KeyValue>> = vec![Vec::new()];
        for (_, place) in &self.keys {
            let condition = place.and_then(|column| self.conditions.get(&column));
            let Some(values) = condition.and_then(|condition| condition.any_of.as_ref()) else {
                break;
            };
            if prefixes.len() * values.len() > MOST_RANGES {
                return None;
            }
            prefixes = super::index_access::product(&prefixes, values);
        }
        Some(prefixes)
    }

    /// How many columns the order and the index have in common in this direction; where the first has its NULLs does not
    /// matter, as they are a range of their own.
    fn same_columns(
        &self,
        keys: &[&OrderKey],
        own: &[PlacedKey<'_>],
        direction: Direction,
    ) -> usize {
        let is_same = |(at, (key, (own, place))): &(usize, (&&OrderKey, &PlacedKey<'_>))| {
            let is_turned = direction == Direction::Backward;
            let nulls_first = own.nulls_first != is_turned;
            *place == Some(key.column)
                && key.collation == own.collation
                && key.descending == (own.descending != is_turned)
                && (*at == 0 || (key.nulls == Nulls::First) == nulls_first)
        };
        keys.iter().zip(own).enumerate().take_while(is_same).count()
    }

    /// The ranges that rows with these leading values are in, in the order of the sort.
    fn ranges(
        &self,
        equal: Vec<KeyValue>,
        leading: Option<(&OrderKey, &SearchKey)>,
        direction: Direction,
    ) -> Vec<KeyRange> {
        let Some((key, own)) = leading else { return vec![KeyRange { equal, bounds: None }] };
        let bounds =
            self.conditions.get(&key.column).and_then(|known| known.bounds_in(own.collation));
        if bounds.is_some() || key.nulls == Nulls::LeftOut {
            return vec![KeyRange { equal, bounds: Some(bounds.unwrap_or_default()) }];
        }
        let nulls_first = own.nulls_first != (direction == Direction::Backward);
        if nulls_first == (key.nulls == Nulls::First) {
            return vec![KeyRange { equal, bounds: None }];
        }
        let with_values = KeyRange { equal: equal.clone(), bounds: Some(Default::default()) };
        let mut with_null = KeyRange { equal, bounds: None };
        with_null.equal.push(None);
        match key.nulls {
            Nulls::First => vec![with_null, with_values],
            _ => vec![with_values, with_null],
        }
    }
}
