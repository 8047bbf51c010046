//! Aggregates with DISTINCT or ORDER BY: the rows are kept, and at the end the first of equal ones are taken, in order.
//!
//! Which rows are equal, and how they are ordered, is told by keys, which are further arguments.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, UInt64Array};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result as QueryResult;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use super::function::Kind;

/// Where in the arguments the keys are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Collection {
    /// Arguments of the aggregate itself, which come first.
    pub(super) values: usize,
    /// Keys of DISTINCT, which come next.
    pub(super) distinct: usize,
    /// The directions of the keys of ORDER BY, which come last.
    pub(super) order: Vec<SortOptions>,
}

impl Collection {
    pub(super) fn is_plain(&self) -> bool {
        self.distinct == 0 && self.order.is_empty()
    }

    /// All arguments.
    pub(super) fn width(&self) -> usize {
        self.values + self.distinct + self.order.len()
    }

    /// The rows that count, in order.
    fn rows(&self, columns: &[ArrayRef]) -> QueryResult<UInt64Array> {
        let count = columns[0].len();
        let (distinct, order) = columns[self.values..].split_at(self.distinct);
        let mut rows: Vec<usize> = (0..count).collect();
        if !distinct.is_empty() {
            let keys = keys(distinct, &vec![SortOptions::default(); distinct.len()])?;
            let mut seen = HashSet::with_capacity(count);
            rows.retain(|row| seen.insert(keys.row(*row)));
        }
        if !order.is_empty() {
            let keys = keys(order, &self.order)?;
            rows.sort_by(|a, b| keys.row(*a).cmp(&keys.row(*b)));
        }
        Ok(rows.into_iter().map(|row| row as u64).collect())
    }
}

fn keys(columns: &[ArrayRef], options: &[SortOptions]) -> QueryResult<Rows> {
    let field = |(column, options): (&ArrayRef, &SortOptions)| {
        SortField::new_with_options(column.data_type().clone(), *options)
    };
    let converter = RowConverter::new(columns.iter().zip(options).map(field).collect())?;
    Ok(converter.convert_columns(columns)?)
}

/// Keeps the rows, and computes at the end.
#[derive(Debug)]
pub(super) struct Collected {
    kind: Kind,
    collection: Collection,
    carriers: Vec<DataType>,
    result: DataType,
    /// For each argument the parts that came.
    parts: Vec<Vec<ArrayRef>>,
    /// What the rows of the parts take. Parts of several groups share the columns that they were cut from.
    bytes: usize,
    /// What the first arguments are where there are no rows, if that is known.
    pub(super) constants: Vec<Option<ArrayRef>>,
}

impl Collected {
    pub(super) fn new(
        kind: Kind,
        collection: Collection,
        carriers: Vec<DataType>,
        result: DataType,
    ) -> Self {
        let parts = vec![Vec::new(); carriers.len()];
        Self { kind, collection, carriers, result, parts, bytes: 0, constants: Vec::new() }
    }

    fn keep(&mut self, argument: usize, part: ArrayRef) {
        self.bytes += bytes_of(&part);
        self.parts[argument].push(part);
    }

    /// All rows of each argument.
    fn columns(&mut self) -> QueryResult<Vec<ArrayRef>> {
        for (parts, carrier) in self.parts.iter_mut().zip(&self.carriers) {
            let joined = match &parts[..] {
                [] => arrow::array::new_empty_array(carrier),
                [only] => only.clone(),
                several => {
                    let several: Vec<&dyn Array> =
                        several.iter().map(|part| part.as_ref()).collect();
                    concat(&several)?
                }
            };
            *parts = vec![joined];
        }
        self.bytes = self.parts.iter().flatten().map(bytes_of).sum();
        Ok(self.parts.iter().map(|parts| parts[0].clone()).collect())
    }
}

/// What the rows of a column take, which may be a few of those that it shares memory with, and what is kept of it beside them.
fn bytes_of(column: &ArrayRef) -> usize {
    let rows = column.to_data().get_slice_memory_size();
    // default: of what cannot be told by rows, all
    size_of::<ArrayData>() + rows.unwrap_or_else(|_| column.get_array_memory_size())
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        for (argument, value) in values.iter().enumerate() {
            self.keep(argument, value.clone());
        }
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        let columns = self.columns()?;
        let rows = self.collection.rows(&columns)?;
        let values =
            columns[..self.collection.values].iter().map(|column| take(column, &rows, None));
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        if rows.is_empty() {
            for (value, constant) in values.iter_mut().zip(&self.constants) {
                *value = constant.as_ref().unwrap_or(value).clone();
            }
        }
        let mut plain = self.kind.accumulator(&self.carriers, &self.result);
        plain.update_batch(&values)?;
        plain.evaluate()
    }

    fn size(&self) -> usize {
        let places: usize = self.parts.iter().map(|parts| parts.capacity()).sum();
        let lists = self.parts.len() * size_of::<Vec<ArrayRef>>();
        size_of::<Self>() + lists + places * size_of::<ArrayRef>() + self.bytes
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        let list = |column: ArrayRef| SingleRowListArrayBuilder::new(column).build_list_scalar();
        Ok(self.columns()?.into_iter().map(list).collect())
    }

    /// The rows that came first leave first.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        let gone = values[0].len();
        let columns = self.columns()?;
        for (parts, column) in self.parts.iter_mut().zip(columns) {
            *parts = vec![column.slice(gone, column.len() - gone)];
        }
        self.bytes = self.parts.iter().flatten().map(bytes_of).sum();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        for (argument, lists) in states.iter().enumerate() {
            lists.as_list::<i32>().iter().flatten().for_each(|part| self.keep(argument, part));
        }
        Ok(())
    }
}

/// `string_agg`: texts or bytes one after another, each but the first behind its own delimiter.
///
/// Source: `string_agg_transfn` and `string_agg_combine` in `src/backend/utils/adt/varlena.c`, PostgreSQL 18.
#[derive(Debug)]
pub(super) struct Concatenation {
    /// Texts, or bytes.
    carrier: DataType,
    /// With the delimiter of the first in front, which counts when another part comes before.
    joined: Option<Vec<u8>>,
    first_delimiter: usize,
}

impl Concatenation {
    pub(super) fn new(carrier: &DataType) -> Self {
        Self { carrier: carrier.clone(), joined: None, first_delimiter: 0 }
    }

    /// What is carried, as its carrier has it.
    fn value(&self, joined: Option<Vec<u8>>) -> ScalarValue {
        match self.carrier {
            DataType::Utf8 => ScalarValue::Utf8(joined.map(|bytes| {
                String::from_utf8(bytes).expect("texts one after another are a text") // infallible: delimiters are texts, too
            })),
            _ => ScalarValue::Binary(joined),
        }
    }
}

/// The bytes of a text, or those of another value.
fn bytes_at(values: &ArrayRef, row: usize) -> Option<&[u8]> {
    match values.data_type() {
        _ if values.is_null(row) => None,
        DataType::Utf8 => Some(values.as_string::<i32>().value(row).as_bytes()),
        _ => Some(values.as_binary::<i32>().value(row)),
    }
}

impl Accumulator for Concatenation {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        for row in 0..values[0].len() {
            let Some(part) = bytes_at(&values[0], row) else { continue };
            let delimiter = bytes_at(&values[1], row).unwrap_or_default(); // default: NULL stands for nothing between
            if self.joined.is_none() {
                self.first_delimiter = delimiter.len();
            }
            let all = self.joined.get_or_insert_default();
            all.extend_from_slice(delimiter);
            all.extend_from_slice(part);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        let joined = self.joined.as_ref().map(|bytes| bytes[self.first_delimiter..].to_vec());
        Ok(self.value(joined))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.joined.as_ref().map_or(0, Vec::capacity)
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        let length = self.first_delimiter as u64;
        Ok(vec![self.value(self.joined.clone()), ScalarValue::UInt64(Some(length))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        let lengths = states[1].as_primitive::<arrow::datatypes::UInt64Type>();
        for row in 0..states[0].len() {
            let Some(part) = bytes_at(&states[0], row) else { continue };
            if self.joined.is_none() {
                self.first_delimiter = lengths.value(row) as usize;
            }
            self.joined.get_or_insert_default().extend_from_slice(part);
        }
        Ok(())
    }
}

/// The fields of the state: a list for each argument.
pub(super) fn list_fields(carriers: &[DataType]) -> Vec<(String, DataType)> {
    let field = |(at, carrier): (usize, &DataType)| {
        let item = arrow::datatypes::Field::new_list_field(carrier.clone(), true);
        (format!("rows{at}"), DataType::List(Arc::new(item)))
    };
    carriers.iter().enumerate().map(field).collect()
}
