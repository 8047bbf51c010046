//! What a partition's bound says of its rows, as a condition.
//!
//! ```text
//! FOR VALUES FROM (1, 5) TO (1, 9)
//!   → (a IS NOT NULL) AND (b IS NOT NULL) AND (a = 1) AND (b >= 5) AND (b < 9)
//! ```
//!
//! Invariant: conditions are those of the tables above first. A default partition beside several others has no text here:
//! theirs stand in the order of their values.
//!
//! Source: `generate_partition_qual` in `src/backend/utils/cache/partcache.c`, `get_qual_for_list`, `get_qual_for_range`,
//! `get_qual_for_hash` and `make_partition_op_expr` in `src/backend/partitioning/partbounds.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_cluster::partition_bounds::{PartitionBound, RangeDatum};
use pagemill_cluster::partitions::PartitionKey;
use pagemill_format::Oid;
use pagemill_format::node_tree::{Const, NodeStruct};

use super::Unwritten;
use super::constants::Label;
use super::dictionary::{Dictionary, type_name};
use super::indexes::{IndexWriter, Keys, partition_keys};
use super::writer::{Style, Writer, Written};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// Strategies of a B-tree.
///
/// Source: `src/include/access/stratnum.h`, PostgreSQL 18.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Less = 1,
    LessOrEqual = 2,
    Equal = 3,
    GreaterOrEqual = 4,
    Greater = 5,
}

/// An operator of a family: the family, its operands' type, its strategy.
type FamilyOperator = (Oid, Oid, i16);

/// Writes conditions of partitions.
pub(crate) struct PartitionWriter {
    catalog: Arc<Catalog>,
    dictionary: Arc<Dictionary>,
    keys: HashMap<Oid, (u8, Keys)>,
    writer: IndexWriter,
    /// By the partition.
    parents: HashMap<Oid, Oid>,
    /// Operators of families with operands of one type.
    operators: HashMap<FamilyOperator, Oid>,
    /// Family and input type of operator classes.
    classes: HashMap<Oid, (Oid, Oid)>,
}

/// Types that stand for others, which are compared without being cast: `record`, `anyarray`, `anyelement`, `anynonarray`, `anyenum`,
/// `anyrange`, `anymultirange`, and those of `anycompatible`.
const TAKING_ANY: [Oid; 12] = [
    Oid(2249),
    Oid(2277),
    Oid(2283),
    Oid(2776),
    Oid(3500),
    Oid(3831),
    Oid(4537),
    Oid(4538),
    Oid(5077),
    Oid(5078),
    Oid(5079),
    Oid(5080),
];

/// One column of a key.
struct KeyColumn {
    text: String,
    /// As it is compared: perhaps as another type, or in another order.
    compared: String,
    family: Oid,
    operand: Oid,
}

impl PartitionWriter {
    /// Reads what is needed for all of them.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn new(catalog: &Arc<Catalog>) -> Result<Self> {
        let mut made = Self {
            catalog: catalog.clone(),
            dictionary: catalog.dictionary()?,
            keys: partition_keys(catalog)?,
            writer: IndexWriter::new(catalog, Style::new(false))?,
            parents: HashMap::new(),
            operators: HashMap::new(),
            classes: HashMap::new(),
        };
        let values = catalog.values();
        for_each_row(values, "pg_inherits", &["inhrelid", "inhparent"], |row| {
            made.parents.insert(row.oid(0), row.oid(1));
            Ok(())
        })?;
        let columns = ["amopfamily", "amoplefttype", "amoprighttype", "amopstrategy", "amopopr"];
        for_each_row(values, "pg_amop", &columns, |row| {
            if row.oid(1) == row.oid(2) {
                made.operators.insert((row.oid(0), row.oid(1), row.int2(3)), row.oid(4));
            }
            Ok(())
        })?;
        for_each_row(values, "pg_opclass", &["oid", "opcfamily", "opcintype"], |row| {
            made.classes.insert(row.oid(0), (row.oid(1), row.oid(2)));
            Ok(())
        })?;
        Ok(made)
    }

    /// The condition of a partition; `None` where a relation has none.
    pub(crate) fn condition(&self, relation: Oid) -> Written<Option<String>> {
        let mut parts: Vec<Vec<String>> = Vec::new();
        let mut current = relation;
        while let Some(parent) = self.parents.get(&current)
            && self.keys.contains_key(parent)
            // A circle in a damaged catalog has an end, too.
            && parts.len() < self.parents.len()
        {
            parts.push(self.own_parts(*parent, current)?);
            current = *parent;
        }
        let parts: Vec<String> = parts.into_iter().rev().flatten().collect();
        Ok((!parts.is_empty()).then(|| joined(parts, " AND ")))
    }

    fn own_parts(&self, parent: Oid, partition: Oid) -> Written<Vec<String>> {
        let damaged = |error: pagemill_cluster::Error| Unwritten::damaged(error.to_string());
        let bounds = self.catalog.database().partitions_of(parent).map_err(damaged)?;
        let missing = || Unwritten::damaged("a partition without a bound");
        let own = bounds.iter().find(|(oid, _)| *oid == partition).ok_or_else(missing)?;
        let (strategy, keys) = &self.keys[&parent];
        let columns = (0..keys.len()).map(|place| self.key_column(keys, place));
        let columns = columns.collect::<Written<Vec<KeyColumn>>>()?;
        if columns.is_empty() {
            return Err(Unwritten::damaged("a partition key without columns"));
        }
        if own.1 != PartitionBound::Default {
            return self.parts_of(parent, &columns, &own.1, false);
        }
        let mut others: Vec<(Oid, PartitionBound)> =
            bounds.iter().filter(|(oid, _)| *oid != partition).cloned().collect();
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let key = self.catalog.database().partition_key(parent).map_err(damaged)?;
        let parts = match strategy {
            b'r' => {
                if !self.catalog.database().sort_partitions(&key, &mut others).map_err(damaged)? {
                    return Err(no_order());
                }
                let arms = others.iter().map(|(_, other)| {
                    Ok(joined(self.parts_of(parent, &columns, other, true)?, " AND "))
                });
                let arms = joined(arms.collect::<Written<Vec<String>>>()?, " OR ");
                not_null(&columns).into_iter().chain([arms]).collect()
            }
            _ => {
                let values = self.listed(&key, &others)?;
                if values.is_empty() {
                    return Ok(Vec::new());
                }
                self.list(&columns[0], &values)?
            }
        };
        Ok(vec![format!("(NOT {})", joined(parts, " AND "))])
    }

    /// All values of these partitions, in the order of the key; NULL, which has no place in it, last.
    fn listed(&self, key: &PartitionKey, of: &[(Oid, PartitionBound)]) -> Written<Vec<Const>> {
        let damaged = |error: pagemill_cluster::Error| Unwritten::damaged(error.to_string());
        let (mut nulls, mut values) = (Vec::new(), Vec::new());
        for (_, bound) in of {
            let PartitionBound::List(listed) = bound else {
                return Err(Unwritten::damaged("a partition of a list without one"));
            };
            for value in listed {
                match value.payload()? {
                    Some(payload) => values.push((payload.into_owned(), value.clone())),
                    None => nulls.push(value.clone()),
                }
            }
        }
        if let [(_, first), _, ..] = &values[..] {
            let missing = || Unwritten::damaged("a partition key without columns");
            let column = key.columns.first().ok_or_else(missing)?;
            let order = self.catalog.database().partition_key_order(column, first.type_oid);
            let order = order.map_err(damaged)?.ok_or_else(no_order)?;
            values.sort_by(|(a, _), (b, _)| order.compare(a, b));
        }
        Ok(values.into_iter().map(|(_, value)| value).chain(nulls).collect())
    }

    fn parts_of(
        &self,
        parent: Oid,
        columns: &[KeyColumn],
        bound: &PartitionBound,
        of_default: bool,
    ) -> Written<Vec<String>> {
        match bound {
            PartitionBound::List(values) => self.list(&columns[0], values),
            PartitionBound::Range { lower, upper } => {
                self.range(columns, (lower, upper), of_default)
            }
            PartitionBound::Hash { modulus, remainder } => {
                let texts: Vec<&str> = columns.iter().map(|column| column.text.as_str()).collect();
                let texts = texts.join(", ");
                Ok(vec![format!(
                    "satisfies_hash_partition('{parent}'::oid, {modulus}, {remainder}, {texts})"
                )])
            }
            PartitionBound::Default => Err(Unwritten::damaged("two default partitions")),
        }
    }

    fn key_column(&self, keys: &Keys, place: usize) -> Written<KeyColumn> {
        self.check_plain(keys, place)?;
        let (text, type_oid, own) = self.writer.bare_key(keys, place)?;
        let class = keys.class(place);
        let missing = || Unwritten::missing("operator class", class);
        let (family, operand) = *self.classes.get(&class).ok_or_else(missing)?;
        let has_own = self.operators.contains_key(&(family, type_oid, Strategy::Equal as i16));
        let takes_as_is = has_own || TAKING_ANY.contains(&operand);
        let is_other = !takes_as_is || keys.collation_of(place) != own;
        let compared = match is_other {
            true => format!("({text})::{}", type_name(&self.catalog, operand, -1)?),
            false => text.clone(),
        };
        let operand = if has_own { type_oid } else { operand };
        Ok(KeyColumn { text, compared, family, operand })
    }

    /// The server shows an expression as its planner leaves it: constants are folded, functions of SQL taken apart.
    fn check_plain(&self, keys: &Keys, place: usize) -> Written {
        keys.with_expression(place, |node| match self.is_left_alone(node)? {
            true => Ok(()),
            false => Err(Unwritten::unknown("a partition key that the planner changes")),
        })
    }

    fn is_left_alone(&self, node: &NodeStruct<'_>) -> Written<bool> {
        let args = match node.name {
            b"VAR" => return Ok(true),
            b"RELABELTYPE" => vec![node.node("arg")?],
            b"OPEXPR" | b"FUNCEXPR" => node.nodes("args")?,
            _ => return Ok(false),
        };
        let function = match node.name {
            b"OPEXPR" => Some(node.oid("opfuncid")?),
            b"FUNCEXPR" => Some(node.oid("funcid")?),
            _ => None,
        };
        // Another language's key is its signature.
        let is_internal = |oid| self.catalog.function(oid).is_some_and(|f| !f.key.contains('('));
        let mut has_columns = false;
        for arg in args {
            if arg.name != b"CONST" {
                has_columns = true;
                if !self.is_left_alone(arg)? {
                    return Ok(false);
                }
            }
        }
        Ok(has_columns && function.is_none_or(is_internal))
    }

    fn constant(&self, value: &Const) -> Written<String> {
        let mut writer = Writer::new(&self.catalog, &self.dictionary, Style::new(false));
        writer.constant(value, Label::WhereNeeded)?;
        Ok(writer.out)
    }

    fn operator(&self, column: &KeyColumn, strategy: Strategy) -> Written<String> {
        let wanted = (column.family, column.operand, strategy as i16);
        let missing = || Unwritten::missing("operator of the family", column.family);
        self.dictionary.operator(*self.operators.get(&wanted).ok_or_else(missing)?)
    }

    fn compared(&self, column: &KeyColumn, strategy: Strategy, value: &Const) -> Written<String> {
        let operator = self.operator(column, strategy)?;
        Ok(format!("({} {operator} {})", column.compared, self.constant(value)?))
    }

    fn list(&self, column: &KeyColumn, values: &[Const]) -> Written<Vec<String>> {
        let (nulls, values): (Vec<&Const>, Vec<&Const>) =
            values.iter().partition(|value| value.value.is_none());
        let equal = match values[..] {
            [] => None,
            [only] => Some(self.compared(column, Strategy::Equal, only)?),
            _ => {
                let texts = values.iter().map(|value| self.constant(value));
                let texts = texts.collect::<Written<Vec<String>>>()?.join(", ");
                let operator = self.operator(column, Strategy::Equal)?;
                Some(format!("({} {operator} ANY (ARRAY[{texts}]))", column.compared))
            }
        };
        Ok(match (nulls.is_empty(), equal) {
            (true, equal) => {
                not_null(std::slice::from_ref(column)).into_iter().chain(equal).collect()
            }
            (false, None) => vec![format!("({} IS NULL)", column.text)],
            (false, Some(equal)) => vec![format!("(({} IS NULL) OR {equal})", column.text)],
        })
    }

    /// The columns whose bounds are equal first; then for both bounds, of the columns that are left one, two and so on:
    /// equal but for the last of them.
    fn range(
        &self,
        columns: &[KeyColumn],
        (lower, upper): (&[RangeDatum], &[RangeDatum]),
        of_default: bool,
    ) -> Written<Vec<String>> {
        if lower.len() != columns.len() || upper.len() != columns.len() {
            return Err(Unwritten::damaged("a bound of other columns than the key's"));
        }
        let mut parts = if of_default { Vec::new() } else { not_null(columns) };
        let same = |place: &usize| match (&lower[*place], &upper[*place]) {
            (RangeDatum::Value(a), RangeDatum::Value(b)) => a.value == b.value,
            _ => false,
        };
        let equal = (0..columns.len() - 1).take_while(same).count();
        for (column, datum) in columns.iter().zip(lower).take(equal) {
            if let RangeDatum::Value(value) = datum {
                parts.push(self.compared(column, Strategy::Equal, value)?);
            }
        }
        for (bound, is_lower) in [(lower, true), (upper, false)] {
            let arms = self.arms(&columns[equal..], &bound[equal..], is_lower)?;
            if !arms.is_empty() {
                parts.push(joined(arms, " OR "));
            }
        }
        match (parts.is_empty(), of_default) {
            (true, true) => Ok(not_null(columns)),
            (true, false) => Ok(vec!["true".to_owned()]),
            (false, true) => Ok(vec![joined(parts, " AND ")]),
            (false, false) => Ok(parts),
        }
    }

    fn arms(
        &self,
        columns: &[KeyColumn],
        bound: &[RangeDatum],
        is_lower: bool,
    ) -> Written<Vec<String>> {
        let mut arms = Vec::new();
        for last in 0..columns.len() {
            let mut arm = Vec::new();
            for (place, datum) in bound.iter().enumerate().take(last + 1) {
                let RangeDatum::Value(value) = datum else { break };
                let is_whole = place + 1 == columns.len();
                let next = bound.get(place + 1);
                let strategy = match (place < last, is_lower) {
                    (true, _) => Strategy::Equal,
                    (_, true) if is_whole || next == Some(&RangeDatum::MinValue) => {
                        Strategy::GreaterOrEqual
                    }
                    (_, true) => Strategy::Greater,
                    (_, false) if next == Some(&RangeDatum::MaxValue) => Strategy::LessOrEqual,
                    (_, false) => Strategy::Less,
                };
                arm.push(self.compared(&columns[place], strategy, value)?);
            }
            if !arm.is_empty() {
                arms.push(joined(arm, " AND "));
            }
            // Behind what is unbounded nothing counts.
            let goes_on = |place: usize| matches!(bound.get(place), Some(RangeDatum::Value(_)));
            if !goes_on(last) || !goes_on(last + 1) {
                break;
            }
        }
        Ok(arms)
    }
}

fn not_null(columns: &[KeyColumn]) -> Vec<String> {
    columns.iter().map(|column| format!("({} IS NOT NULL)", column.text)).collect()
}

/// Several conditions as one.
fn no_order() -> Unwritten {
    Unwritten::unknown("a default partition beside others whose order is not known")
}

fn joined(mut parts: Vec<String>, between: &str) -> String {
    match parts.len() {
        1 => parts.remove(0),
        _ => format!("({})", parts.join(between)),
    }
}
