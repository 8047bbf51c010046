//! Which partitions can have rows that the conditions of a scan let pass, by their bounds.
//!
//! Each level above a partition says what values its key columns have there: of a list these, of a range those from its lower
//! end to its upper one, of a hash those that leave its remainder. What the conditions say is held against it by the query
//! engine's own pruning, which knows minima, maxima and sets of values.
//!
//! Invariant: a partition is left out only if a level above it says so of values whose order, or equality, is the carrier's:
//! built-in operator classes, texts under collations by bytes (for lists and hashes, deterministic ones). Whatever else a key
//! is, it says nothing. The default partition is always looked at.
//!
//! Source: `src/backend/partitioning/partbounds.c`, `partprune.c`, PostgreSQL 14 to 18: a range has no NULLs in its key, a list
//! those that it names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, Result as QueryResult};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::scalar::ScalarValue;
use pagemill_cluster::partition_bounds::{PartitionBound, RangeDatum};
use pagemill_cluster::partitions::{PartitionKey, PartitionKeyColumn};
use pagemill_cluster::{Database, RelationKind};
use pagemill_format::Oid;
use pagemill_format::node_tree::Const;
use pagemill_types::builtin::oid;
use pagemill_types::partition_hash::{partition_hash, partition_hash_of};
use pagemill_types::value_hash::ValueHash;

use super::relation_table::TableColumn;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::keys::is_by_bytes;

/// Operator classes of the server's own have smaller numbers.
///
/// Source: `FirstNormalObjectId` in `src/include/access/transam.h`, PostgreSQL 18.
const FIRST_NORMAL_OID: u32 = 16384;
/// Combinations of values that are hashed one by one; of more, none.
const MOST_HASHED: usize = 1000;

/// The partitions that hold the rows of a table, at every depth, and what is known of the rows of each.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// By partition, one for each level above it.
    regions: Vec<(Oid, Region)>,
}

/// The values of key columns in a partition.
#[derive(Debug, Clone, Default)]
struct Region {
    values: HashMap<String, Values>,
    hash: Option<HashRegion>,
}

/// The values of one column.
#[derive(Debug, Clone)]
enum Values {
    /// Within these, both included, and not NULL.
    Range { least: Option<ScalarValue>, most: Option<ScalarValue> },
    /// These, and NULL or not.
    List { values: Vec<ScalarValue>, has_null: bool },
}

/// The values of all columns of a key together leave a remainder.
#[derive(Debug, Clone)]
struct HashRegion {
    columns: Vec<(String, ValueHash)>,
    modulus: u64,
    remainder: u64,
}

/// A column of a key, as far as it is understood.
struct KeyColumn<'k> {
    column: &'k TableColumn,
    is_ordered: bool,
    has_equality: bool,
}

/// Reads partitions.
struct PartitionReader<'r> {
    catalog: &'r Catalog,
    columns: &'r [TableColumn],
    found: Partitions,
}

impl Partitions {
    /// Reads the bounds of all partitions below a table whose columns are these.
    pub(super) fn read(catalog: &Catalog, table: Oid, columns: &[TableColumn]) -> Result<Self> {
        let mut reader = PartitionReader { catalog, columns, found: Self::default() };
        reader.add(table, &[], 0)?;
        Ok(reader.found)
    }

    /// The partitions without any row for which the condition is true.
    pub(super) fn without_rows(
        &self,
        condition: Arc<dyn PhysicalExpr>,
        schema: &SchemaRef,
    ) -> QueryResult<HashSet<Oid>> {
        let predicate =
            PruningPredicateBuilder::new().with_file_schema(schema.clone()).try_build(condition)?;
        let guarantees = predicate.literal_guarantees();
        let left = match predicate.always_true() {
            true => vec![true; self.regions.len()],
            false => predicate.prune(self)?,
        };
        let out = |((_, region), left): &(&(Oid, Region), bool)| {
            let hash = region.hash.as_ref();
            !left || hash.is_some_and(|hash| !hash.may_hold(guarantees))
        };
        Ok(self.regions.iter().zip(left).filter(out).map(|((of, _), _)| *of).collect())
    }

    /// A value for each region, as an array of what carries the column.
    fn each(
        &self,
        column: &Column,
        value: impl Fn(&Values) -> Option<ScalarValue>,
    ) -> Option<ArrayRef> {
        let of = |(_, region): &(Oid, Region)| region.values.get(&column.name).and_then(&value);
        let found: Vec<Option<ScalarValue>> = self.regions.iter().map(of).collect();
        let null = ScalarValue::try_from(found.iter().flatten().next()?.data_type()).ok()?;
        ScalarValue::iter_to_array(found.into_iter().map(|v| v.unwrap_or(null.clone()))).ok()
    }
}

impl PruningStatistics for Partitions {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.each(column, |values| values.end(true))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.each(column, |values| values.end(false))
    }

    fn num_containers(&self) -> usize {
        self.regions.len()
    }

    /// Counted as if each region had one row: NULL, or not.
    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let of = |(_, region): &(Oid, Region)| match region.values.get(&column.name)? {
            Values::List { values, has_null: true } if values.is_empty() => Some(1),
            Values::List { has_null: true, .. } => None,
            Values::List { .. } | Values::Range { .. } => Some(0),
        };
        Some(Arc::new(self.regions.iter().map(of).collect::<UInt64Array>()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_value(1, self.regions.len())))
    }

    fn contained(&self, column: &Column, wanted: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let of = |(_, region): &(Oid, Region)| match region.values.get(&column.name)? {
            Values::Range { .. } => None,
            Values::List { values, has_null } => {
                let found = values.iter().filter(|value| wanted.contains(value)).count();
                match found {
                    0 => Some(false),
                    all if all == values.len() && !has_null => Some(true),
                    _ => None,
                }
            }
        };
        Some(self.regions.iter().map(of).collect())
    }
}

impl Values {
    /// The least value or the greatest.
    fn end(&self, is_least: bool) -> Option<ScalarValue> {
        match self {
            Self::Range { least, most } => if is_least { least } else { most }.clone(),
            Self::List { values, .. } => {
                let mut ends = values.iter();
                let first = ends.next()?;
                let end = ends.try_fold(first, |end, value| {
                    let is_less = value.partial_cmp(end)?.is_lt();
                    Some(if is_less == is_least { value } else { end })
                });
                end.cloned()
            }
        }
    }
}

impl HashRegion {
    /// False when no values that the guarantees allow leave the remainder.
    fn may_hold(&self, guarantees: &[LiteralGuarantee]) -> bool {
        let mut rows: Vec<Vec<(ValueHash, Option<Vec<u8>>)>> = vec![Vec::new()];
        for (name, hash) in &self.columns {
            let is_it =
                |g: &&LiteralGuarantee| g.guarantee == Guarantee::In && g.column.name == *name;
            let Some(known) = guarantees.iter().find(is_it) else { return true };
            let payloads: Option<Vec<Vec<u8>>> = known.literals.iter().map(payload_of).collect();
            let Some(payloads) = payloads else { return true };
            if rows.len() * payloads.len() > MOST_HASHED {
                return true;
            }
            let longer = |row: &Vec<_>| {
                let row = row.clone();
                payloads.iter().map(move |payload| {
                    let mut row = row.clone();
                    row.push((*hash, Some(payload.clone())));
                    row
                })
            };
            rows = rows.iter().flat_map(longer).collect();
        }
        let hash_of = |row: &Vec<(ValueHash, Option<Vec<u8>>)>| {
            partition_hash(row.iter().map(|(hash, payload)| (*hash, payload.as_deref())))
        };
        rows.iter().any(|row| hash_of(row) % self.modulus == self.remainder)
    }
}

/// The bytes of a value as a tuple holds them, without a length.
fn payload_of(value: &ScalarValue) -> Option<Vec<u8>> {
    Some(match value {
        ScalarValue::Boolean(Some(value)) => vec![u8::from(*value)],
        ScalarValue::Int16(Some(value)) => value.to_le_bytes().to_vec(),
        ScalarValue::Int32(Some(value)) => value.to_le_bytes().to_vec(),
        ScalarValue::Int64(Some(value)) => value.to_le_bytes().to_vec(),
        ScalarValue::UInt32(Some(value)) => value.to_le_bytes().to_vec(),
        ScalarValue::Utf8(Some(value)) => value.as_bytes().to_vec(),
        _ => return None,
    })
}

impl PartitionReader<'_> {
    fn database(&self) -> &Database {
        self.catalog.database()
    }

    /// Adds the partitions below a table, which is so deep, and whose rows are in these regions.
    fn add(&mut self, table: Oid, above: &[Region], depth: usize) -> Result<()> {
        let key = self.database().partition_key(table)?;
        let class = self.database().class(table).cloned();
        let Some(class) = class.filter(|_| depth < 64) else { return Ok(()) };
        let relation = self.database().relation(&class)?;
        for (partition, bound) in self.database().partitions_of(table)? {
            let mut regions = above.to_vec();
            regions.push(self.region(&key, &relation, &bound));
            let class = self.database().class(partition);
            match class.map(|class| class.kind) {
                Some(RelationKind::PartitionedTable) => self.add(partition, &regions, depth + 1)?,
                _ => self.found.regions.extend(regions.into_iter().map(|r| (partition, r))),
            }
        }
        Ok(())
    }

    /// What a bound says of the columns of the table at the top.
    fn region(
        &self,
        key: &PartitionKey,
        relation: &pagemill_cluster::Relation,
        bound: &PartitionBound,
    ) -> Region {
        let column = |of: &PartitionKeyColumn| self.key_column(relation, of);
        let keys: Vec<Option<KeyColumn<'_>>> = key.columns.iter().map(column).collect();
        match bound {
            PartitionBound::Default => Region::default(),
            PartitionBound::List(values) => self.list_region(&keys, values),
            PartitionBound::Range { lower, upper } => self.range_region(&keys, lower, upper),
            PartitionBound::Hash { modulus, remainder } => {
                self.hash_region(&keys, u64::from(*modulus), u64::from(*remainder))
            }
        }
    }

    /// The column of the table at the top that a key of this table has; `None` for an expression, and for whatever compares in
    /// its own way.
    fn key_column(
        &self,
        relation: &pagemill_cluster::Relation,
        of: &PartitionKeyColumn,
    ) -> Option<KeyColumn<'_>> {
        let position = usize::try_from(of.number).ok()?.checked_sub(1)?;
        let name = &relation.columns.get(position)?.name;
        let column = self.columns.iter().find(|column| column.stored_name == *name)?;
        if of.operator_class.0 >= FIRST_NORMAL_OID {
            return None;
        }
        let is_text = of.collation != Oid(0);
        let collation = self.catalog.collation(of.collation);
        Some(KeyColumn {
            column,
            is_ordered: !is_text || is_by_bytes(self.catalog, of.collation),
            has_equality: !is_text || collation.is_some_and(|row| row.is_deterministic),
        })
    }

    fn list_region(&self, keys: &[Option<KeyColumn<'_>>], values: &[Const]) -> Region {
        let mut region = Region::default();
        let [Some(key)] = keys else { return region };
        if !key.has_equality {
            return region;
        }
        let (nulls, others): (Vec<&Const>, Vec<&Const>) =
            values.iter().partition(|value| value.value.is_none());
        let others: Option<Vec<ScalarValue>> =
            others.into_iter().map(|value| self.scalar(key.column, value)).collect();
        if let Some(values) = others {
            let list = Values::List { values, has_null: !nulls.is_empty() };
            region.values.insert(key.column.name.clone(), list);
        }
        region
    }

    /// Columns are known as far as the ends agree on those before them.
    fn range_region(
        &self,
        keys: &[Option<KeyColumn<'_>>],
        lower: &[RangeDatum],
        upper: &[RangeDatum],
    ) -> Region {
        let mut region = Region::default();
        let mut are_equal = true;
        for (at, ((key, low), high)) in keys.iter().zip(lower).zip(upper).enumerate() {
            let Some(key) = key else { break };
            let end = |datum: &RangeDatum| match datum {
                RangeDatum::Value(value) if are_equal && key.is_ordered => {
                    self.scalar(key.column, value)
                }
                _ => None,
            };
            let (least, most) = (end(low), end(high));
            are_equal &= least.is_some() && least == most;
            // The upper end itself is in the next partition, unless something of it is left here.
            let is_outside = matches!(upper.get(at + 1), None | Some(RangeDatum::MinValue));
            let most = if is_outside { most.map(one_less) } else { most };
            let range = Values::Range { least, most };
            region.values.insert(key.column.name.clone(), range);
        }
        region
    }

    fn hash_region(&self, keys: &[Option<KeyColumn<'_>>], modulus: u64, remainder: u64) -> Region {
        let hashed = |key: &Option<KeyColumn<'_>>| {
            let KeyColumn { column, .. } = key.as_ref().filter(|key| key.has_equality)?;
            let (base, _) = self.catalog.base_type(column.ty.oid, -1);
            // Of other types that are carried as texts, the text is not what is hashed.
            let is_plain =
                column.carrier != DataType::Utf8 || matches!(base, oid::TEXT | oid::VARCHAR);
            let hash = partition_hash_of(base).filter(|_| is_plain)?;
            Some((column.name.clone(), hash))
        };
        let columns: Option<Vec<_>> = keys.iter().map(hashed).collect();
        let hash = columns.map(|columns| HashRegion { columns, modulus, remainder });
        Region { values: HashMap::new(), hash }
    }

    /// A value of a bound as the column's values are carried.
    fn scalar(&self, column: &TableColumn, value: &Const) -> Option<ScalarValue> {
        let payload = value.payload().ok()??;
        let (base, _) = self.catalog.base_type(column.ty.oid, -1);
        let is_enum = self.catalog.type_row(base).is_some_and(|row| row.kind == b'e');
        Some(match &column.carrier {
            DataType::Int32 if is_enum => {
                let label = Oid(u32::from_le_bytes(payload[..].try_into().ok()?));
                let place = self.catalog.enum_order(base).ok()?.place(label).ok()?;
                ScalarValue::Int32(Some(place))
            }
            DataType::Boolean => ScalarValue::Boolean(Some(*payload.first()? != 0)),
            DataType::Int16 => {
                ScalarValue::Int16(Some(i16::from_le_bytes(payload[..].try_into().ok()?)))
            }
            DataType::Int32 => {
                ScalarValue::Int32(Some(i32::from_le_bytes(payload[..].try_into().ok()?)))
            }
            DataType::Int64 => {
                ScalarValue::Int64(Some(i64::from_le_bytes(payload[..].try_into().ok()?)))
            }
            DataType::UInt32 => {
                ScalarValue::UInt32(Some(u32::from_le_bytes(payload[..].try_into().ok()?)))
            }
            DataType::Utf8 if matches!(base, oid::TEXT | oid::VARCHAR) => {
                ScalarValue::Utf8(Some(String::from_utf8(payload.into_owned()).ok()?))
            }
            _ => return None,
        })
    }
}

/// The value before this one, where there is one such; else the value itself, which is one too many.
fn one_less(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Int16(Some(n)) => ScalarValue::Int16(Some(n.saturating_sub(1))),
        ScalarValue::Int32(Some(n)) => ScalarValue::Int32(Some(n.saturating_sub(1))),
        ScalarValue::Int64(Some(n)) => ScalarValue::Int64(Some(n.saturating_sub(1))),
        ScalarValue::UInt32(Some(n)) => ScalarValue::UInt32(Some(n.saturating_sub(1))),
        other => other,
    }
}
