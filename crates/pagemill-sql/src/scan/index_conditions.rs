//! What the conditions of a scan say of single columns, and of expressions that are keys of indexes, as far as an index can be searched by it.
//!
//! Invariant: every row that passes all conditions has, in each column told of here, one of the values or one within the
//! bounds. What is not understood is left out, and only widens the search.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::StructArray;
use arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr,
    IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::index_key_range::{KeyBound, ValueBounds};

use super::index_expressions::{KeyExpression, place_of};
use super::index_payload::{Constant, KeyForm, constant, is_for_equality};
use super::relation_table::TableColumn;
use crate::catalog::Catalog;
use crate::functions::call::argument_types;
use crate::functions::collations::LOCALE_COMPARE;

/// Values that are looked up one by one; of more, none.
const MOST_VALUES: usize = 10_000;
/// Items of a list, of which some may be equal.
const MOST_LISTED: usize = 100_000;

/// A value of a column, or NULL.
pub(super) type KeyValue = Option<Box<[u8]>>;

/// What is known of one column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ColumnCondition {
    /// It has one of these, in no order.
    pub(super) any_of: Option<Vec<KeyValue>>,
    /// Or it is within bounds, and not NULL: by the collation in whose order they are bounds, if it is not that of the values themselves.
    pub(super) bounds: BTreeMap<Option<Oid>, ValueBounds>,
}

impl ColumnCondition {
    /// The bounds in an order; where there are others only, that it is not NULL.
    pub(super) fn bounds_in(&self, collation: Option<Oid>) -> Option<ValueBounds> {
        let other = || (!self.bounds.is_empty()).then(ValueBounds::default);
        self.bounds.get(&collation).cloned().or_else(other)
    }
}

/// Conditions by the columns of a table, by their places among those that are not dropped.
pub(super) type Conditions = BTreeMap<usize, ColumnCondition>;

/// Reads conditions of one table.
pub(super) struct Reader<'r> {
    pub(super) catalog: &'r Catalog,
    pub(super) columns: &'r [TableColumn],
    /// Those that are keys of indexes, with places behind the columns.
    pub(super) expressions: &'r [KeyExpression],
}

impl Reader<'_> {
    /// What several conditions, all of which hold, say together.
    pub(super) fn read<'f>(
        &self,
        filters: impl IntoIterator<Item = &'f Arc<dyn PhysicalExpr>>,
    ) -> Conditions {
        let mut conditions = Conditions::new();
        for filter in filters {
            self.add(filter, &mut conditions);
        }
        conditions
    }

    /// A column, or an expression as one.
    pub(super) fn column(&self, place: usize) -> Option<&TableColumn> {
        let computed = || Some(&self.expressions.get(place - self.columns.len())?.column);
        self.columns.get(place).or_else(computed)
    }

    /// The place of a column, or of an expression that is the key of an index.
    fn place(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        match expr.downcast_ref::<Column>() {
            Some(column) => Some(column.index()),
            None => Some(self.columns.len() + place_of(self.expressions, expr)?),
        }
    }

    fn add(&self, filter: &Arc<dyn PhysicalExpr>, conditions: &mut Conditions) {
        if let Some(dynamic) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
            if let Ok(current) = dynamic.current() {
                self.add(&current, conditions);
            }
            return;
        }
        if let Some(both) = filter.downcast_ref::<BinaryExpr>().filter(|b| *b.op() == Operator::And)
        {
            self.add(both.left(), conditions);
            return self.add(both.right(), conditions);
        }
        if let Some(case) = filter.downcast_ref::<CaseExpr>() {
            for (column, values) in self.branches(case) {
                merge(conditions, column, Found::AnyOf(values));
            }
            return;
        }
        if let Some((column, found)) = self.single(filter) {
            return merge(conditions, column, found);
        }
        if let Some(list) = filter.downcast_ref::<InListExpr>() {
            for (column, values) in self.rows(list).unwrap_or_default() {
                merge(conditions, column, Found::AnyOf(values));
            }
        }
    }

    /// The values that a row may have for which some branch is true: a join built by several threads has a branch for each.
    fn branches(&self, case: &CaseExpr) -> Vec<(usize, Vec<KeyValue>)> {
        let is_false = |expr: &&Arc<dyn PhysicalExpr>| {
            let value = expr.downcast_ref::<Literal>().map(Literal::value);
            !matches!(value, Some(ScalarValue::Boolean(Some(false))))
        };
        let ends = case.when_then_expr().iter().map(|(_, then)| then).chain(case.else_expr());
        let known = ends.filter(is_false).map(|end| self.read(std::slice::from_ref(end)));
        let either = |all: Conditions, mut branch: Conditions| {
            let both = |(column, mut known): (usize, ColumnCondition)| {
                let more = branch.remove(&column)?.any_of?;
                known.any_of.as_mut()?.extend(more);
                Some((column, known))
            };
            all.into_iter().filter_map(both).collect()
        };
        let values = |(column, known): (usize, ColumnCondition)| Some((column, known.any_of?));
        known.reduce(either).into_iter().flatten().filter_map(values).collect()
    }

    /// What a list of rows says of each of their columns.
    fn rows(&self, list: &InListExpr) -> Option<Vec<(usize, Vec<KeyValue>)>> {
        let call = list.expr().downcast_ref::<ScalarFunctionExpr>()?;
        if call.name() != "struct" || list.negated() || list.len() > MOST_LISTED {
            return None;
        }
        let rows = list.list().iter().map(|row| match row.downcast_ref::<Literal>()?.value() {
            ScalarValue::Struct(row) => Some(row.clone()),
            _ => None,
        });
        let rows: Vec<Arc<StructArray>> = rows.collect::<Option<_>>()?;
        let of = |(place, expr): (usize, &Arc<dyn PhysicalExpr>)| {
            let (column, form) = self.key(expr)?;
            let value = |row: &Arc<StructArray>| {
                ScalarValue::try_from_array(row.columns().get(place)?, 0).ok()
            };
            let values = rows.iter().map(value).collect::<Option<Vec<_>>>()?;
            Some((column, self.any_of((column, form), values.iter())?))
        };
        Some(call.args().iter().enumerate().filter_map(of).collect())
    }

    /// What a condition says of the one column it is about.
    fn single(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<(usize, Found)> {
        if let Some(found) = self.truth(filter) {
            return Some(found);
        }
        if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
            return match binary.op() {
                Operator::Or => self.either(binary),
                _ => self.comparison(binary),
            };
        }
        if let Some(list) = filter.downcast_ref::<InListExpr>() {
            return self.list(list);
        }
        if let Some(null) = filter.downcast_ref::<IsNullExpr>() {
            return Some((self.place(null.arg())?, Found::AnyOf(vec![None])));
        }
        if let Some(null) = filter.downcast_ref::<IsNotNullExpr>() {
            return Some((self.place(null.arg())?, Found::Bounds(None, ValueBounds::default())));
        }
        self.prefix(filter.downcast_ref::<ScalarFunctionExpr>()?)
    }

    /// A column of truth values, or an expression that is the key of an index.
    fn truth(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<(usize, Found)> {
        let (truth, is_true) = match filter.downcast_ref::<NotExpr>() {
            Some(not) => (not.arg(), false),
            None => (filter, true),
        };
        let column = self.place(truth)?;
        let value = ScalarValue::Boolean(Some(is_true));
        Some((column, self.compared(column, KeyForm::Plain, Operator::Eq, &value)?))
    }

    fn either(&self, or: &BinaryExpr) -> Option<(usize, Found)> {
        let (left, right) = (self.single(or.left())?, self.single(or.right())?);
        match (left, right) {
            ((a, Found::AnyOf(mut values)), (b, Found::AnyOf(more))) if a == b => {
                values.extend(more);
                (values.len() <= MOST_VALUES).then_some((a, Found::AnyOf(values)))
            }
            _ => None,
        }
    }

    fn comparison(&self, binary: &BinaryExpr) -> Option<(usize, Found)> {
        let (key, operator, value) = match (
            binary.left().downcast_ref::<Literal>(),
            binary.right().downcast_ref::<Literal>(),
        ) {
            (None, Some(value)) => (binary.left(), *binary.op(), value),
            (Some(value), None) => (binary.right(), binary.op().swap()?, value),
            _ => return None,
        };
        if let Some(found) = self.collated(key, operator, value.value()) {
            return Some(found);
        }
        let (column, form) = self.key(key)?;
        Some((column, self.compared(column, form, operator, value.value())?))
    }

    /// The order of a column and a constant in a collation, which is told beside 0.
    fn collated(
        &self,
        order: &Arc<dyn PhysicalExpr>,
        operator: Operator,
        zero: &ScalarValue,
    ) -> Option<(usize, Found)> {
        let call = order.downcast_ref::<ScalarFunctionExpr>()?;
        if call.name() != LOCALE_COMPARE || *zero != ScalarValue::Int32(Some(0)) {
            return None;
        }
        let [left, right] = call.args() else { return None };
        let literal = |side: &Arc<dyn PhysicalExpr>| {
            side.downcast_ref::<Literal>().map(|literal| literal.value().clone())
        };
        let (key, operator, value) = match (literal(left), literal(right)) {
            (None, Some(value)) => (left, operator, value),
            (Some(value), None) => (right, operator.swap()?, value),
            _ => return None,
        };
        let (column, form) = self.key(key)?;
        match self.compared(column, form, operator, &value)? {
            Found::Bounds(_, bounds) => {
                let collation = argument_types(call.fun())?.first()?.collation;
                Some((column, Found::Bounds(Some(collation), bounds)))
            }
            values @ Found::AnyOf(_) => Some((column, values)),
        }
    }

    fn compared(
        &self,
        column: usize,
        form: KeyForm,
        operator: Operator,
        value: &ScalarValue,
    ) -> Option<Found> {
        let of = self.column(column)?;
        if operator != Operator::Eq && is_for_equality(self.catalog, of, form) {
            return None;
        }
        let constant = constant(self.catalog, of, form, value)?;
        let bound = |inclusive| match &constant {
            Constant::Value(value) => Some(KeyBound { value: value.clone(), inclusive }),
            _ => None,
        };
        let nothing = Found::AnyOf(Vec::new());
        Some(match (operator, &constant) {
            (Operator::Eq, Constant::Value(value)) => Found::AnyOf(vec![Some(value.clone())]),
            (Operator::Eq, _) => nothing,
            (Operator::Lt | Operator::LtEq, Constant::Below) => nothing,
            (Operator::Gt | Operator::GtEq, Constant::Above) => nothing,
            (Operator::Lt | Operator::LtEq, _) => {
                let upper = bound(operator == Operator::LtEq);
                Found::Bounds(None, ValueBounds { lower: None, upper })
            }
            (Operator::Gt | Operator::GtEq, _) => {
                let lower = bound(operator == Operator::GtEq);
                Found::Bounds(None, ValueBounds { lower, upper: None })
            }
            _ => return None,
        })
    }

    fn list(&self, list: &InListExpr) -> Option<(usize, Found)> {
        if list.negated() || list.len() > MOST_LISTED {
            return None;
        }
        let key = self.key(list.expr())?;
        let items = list.list().iter();
        let values = items.map(|item| Some(item.downcast_ref::<Literal>()?.value()));
        let values = values.collect::<Option<Vec<_>>>()?;
        Some((key.0, Found::AnyOf(self.any_of(key, values.into_iter())?)))
    }

    /// The values of a list, each once; `None` of too many.
    fn any_of<'v>(
        &self,
        (column, form): (usize, KeyForm),
        values: impl Iterator<Item = &'v ScalarValue>,
    ) -> Option<Vec<KeyValue>> {
        let mut found = BTreeSet::new();
        // NULL in a list makes nothing true.
        for value in values.filter(|value| !value.is_null()) {
            match self.compared(column, form, Operator::Eq, value)? {
                Found::AnyOf(values) => found.extend(values),
                Found::Bounds(..) => return None,
            }
            if found.len() > MOST_VALUES {
                return None;
            }
        }
        Some(found.into_iter().collect())
    }

    /// The column that an expression is the key of, and how.
    pub(super) fn key(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, KeyForm)> {
        if let Some(place) = self.place(expr) {
            return Some((place, KeyForm::Plain));
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let column = self.place(cast.expr())?;
            let carrier = &self.column(column)?.carrier;
            return is_widened(carrier, cast.cast_type()).then_some((column, KeyForm::Plain));
        }
        let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
        let form = KeyForm::of_kernel(call.fun())?;
        let [argument] = call.args() else { return None };
        match self.place(argument) {
            Some(place) => Some((place, form)),
            // Of a text without the blanks at its end.
            None if form.collation().is_some() => Some((self.key(argument)?.0, form)),
            None => None,
        }
    }

    /// `LIKE` with a pattern that begins with plain characters.
    fn prefix(&self, call: &ScalarFunctionExpr) -> Option<(usize, Found)> {
        let [text, pattern] = call.args() else { return None };
        let (column, form) = self.key(text)?;
        let (base, _) = self.catalog.base_type(self.column(column)?.ty.oid, -1);
        let ScalarValue::Utf8(Some(pattern)) = pattern.downcast_ref::<Literal>()?.value() else {
            return None;
        };
        let prefix = match call.name() {
            "textlike" | "namelike" => pattern.split(['%', '_', '\\']).next().unwrap_or_default(),
            "text_starts_with" => pattern,
            _ => return None,
        };
        let is_text = matches!(base, oid::TEXT | oid::VARCHAR | oid::NAME);
        (is_text && form == KeyForm::Plain && !prefix.is_empty())
            .then(|| (column, Found::Bounds(None, beginning_with(prefix.as_bytes()))))
    }
}

/// The texts that begin with these bytes of UTF-8, which has no byte of all ones.
fn beginning_with(prefix: &[u8]) -> ValueBounds {
    let mut behind: Box<[u8]> = prefix.into();
    if let Some(last) = behind.last_mut() {
        *last = last.saturating_add(1);
    }
    ValueBounds {
        lower: Some(KeyBound { value: prefix.into(), inclusive: true }),
        upper: Some(KeyBound { value: behind, inclusive: true }),
    }
}

/// True for a cast that keeps the value of every number.
fn is_widened(from: &DataType, to: &DataType) -> bool {
    use DataType::{Decimal128, Int16, Int32, Int64};
    match (from, to) {
        (Int16, Int32 | Int64) | (Int32, Int64) => true,
        (Decimal128(p1, s1), Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        _ => false,
    }
}

/// Adds what one condition says of a column.
fn merge(conditions: &mut Conditions, column: usize, found: Found) {
    let known = conditions.entry(column).or_default();
    match found {
        Found::AnyOf(values) => {
            let shorter = known.any_of.as_ref().is_none_or(|old| values.len() < old.len());
            if shorter {
                known.any_of = Some(values);
            }
        }
        Found::Bounds(collation, bounds) => {
            let known = known.bounds.entry(collation).or_default();
            known.lower = known.lower.take().or(bounds.lower);
            known.upper = known.upper.take().or(bounds.upper);
        }
    }
}

/// What one condition says.
enum Found {
    AnyOf(Vec<KeyValue>),
    Bounds(Option<Oid>, ValueBounds),
}
