//! One column of a batch in the making: values as they lie in tuples go straight into Arrow's buffers.
//!
//! Builders here can be cut back, unlike Arrow's own: a row that turns out damaged in its last column is taken out of all.
//!
//! Invariants: all parts of a builder have as many values as its nulls say; text is checked when the array is made, once for
//! all of it.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray,
    PrimitiveArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::{DataType, Fields};
use pagemill_format::Error as FormatError;
use pagemill_format::varlena::Varlena;
use pagemill_types::decode::{decode, payload};
use pagemill_types::json::JsonForm;
use pagemill_types::output::{ValueType, ValueWriter};
use pagemill_types::value::{Date, Timestamp, Value};

use crate::conversion::{
    Cell, Context, Fault, as_double, date, decimal, in_numeric, short_decimal, time, timestamp,
    unfit,
};
use crate::error::Remedy;
use crate::fixed_length::{checked, fixed, plain};
use crate::pieces::{
    NotUtf8, Pairs, Pieces, offsets, push_vector, push_wkb, repeat_last, text_array, vector_array,
};
use crate::plan::{ColumnPlan, Kind};

/// Values of a batch may take so many bytes in one column; one value more is let in, whatever its size.
const MOST_BYTES: usize = 64 << 20;

/// A column in the making.
pub(crate) struct ColumnBuilder {
    value_type: Arc<ValueType>,
    nulls: NullBufferBuilder,
    values: Values,
    /// True for elements and attributes, which are in one batch with the value around them.
    is_nested: bool,
}

enum Values {
    Bool(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp(Vec<i64>),
    Decimal { values: Vec<i128>, precision: u8, scale: u8 },
    Money(Vec<i128>),
    NumericAsDouble(Vec<f64>),
    Uuid(Vec<u8>),
    Text(Pieces),
    Printed(Pieces),
    Json(Pieces),
    Bytes(Pieces),
    Hstore(Box<Pairs>),
    Vector { numbers: Vec<f32>, ends: Vec<i32>, width: Option<i32> },
    Wkb { pieces: Pieces, srid: Option<i32> },
    List { ends: Vec<i32>, element: Box<ColumnBuilder> },
    Struct(Vec<ColumnBuilder>),
}

impl ColumnBuilder {
    pub(crate) fn new(plan: &ColumnPlan) -> Self {
        Self::with(plan, false)
    }

    fn nested(plan: &ColumnPlan) -> Self {
        Self::with(plan, true)
    }

    fn with(plan: &ColumnPlan, is_nested: bool) -> Self {
        let values = match &plan.kind {
            Kind::Bool => Values::Bool(BooleanBufferBuilder::new(0)),
            Kind::Int16 => Values::Int16(Vec::new()),
            Kind::Int32 => Values::Int32(Vec::new()),
            Kind::Int64 => Values::Int64(Vec::new()),
            Kind::UInt32 => Values::UInt32(Vec::new()),
            Kind::UInt64 => Values::UInt64(Vec::new()),
            Kind::Float32 => Values::Float32(Vec::new()),
            Kind::Float64 => Values::Float64(Vec::new()),
            Kind::Date => Values::Date(Vec::new()),
            Kind::Time => Values::Time(Vec::new()),
            Kind::Timestamp => Values::Timestamp(Vec::new()),
            Kind::Decimal { precision, scale } => {
                Values::Decimal { values: Vec::new(), precision: *precision, scale: *scale }
            }
            Kind::Money => Values::Money(Vec::new()),
            Kind::NumericAsDouble => Values::NumericAsDouble(Vec::new()),
            Kind::Uuid => Values::Uuid(Vec::new()),
            Kind::Text => Values::Text(Pieces::default()),
            Kind::Printed => Values::Printed(Pieces::default()),
            Kind::Json => Values::Json(Pieces::default()),
            Kind::Bytes => Values::Bytes(Pieces::default()),
            Kind::Hstore => Values::Hstore(Box::default()),
            Kind::Vector(width) => {
                Values::Vector { numbers: Vec::new(), ends: Vec::new(), width: *width }
            }
            Kind::Wkb(srid) => Values::Wkb { pieces: Pieces::default(), srid: *srid },
            Kind::List(element) => {
                Values::List { ends: Vec::new(), element: Box::new(Self::nested(element)) }
            }
            Kind::Struct(columns) => Values::Struct(columns.iter().map(Self::nested).collect()),
        };
        let nulls = NullBufferBuilder::new(0);
        Self { value_type: plan.value_type.clone(), nulls, values, is_nested }
    }

    /// How many values it has.
    pub(crate) fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Bytes of its values, about.
    pub(crate) fn bytes(&self) -> usize {
        match &self.values {
            Values::Text(pieces)
            | Values::Printed(pieces)
            | Values::Json(pieces)
            | Values::Bytes(pieces)
            | Values::Wkb { pieces, .. } => pieces.data.len(),
            Values::Hstore(pairs) => pairs.bytes(),
            Values::Vector { numbers, .. } => numbers.len() * 4,
            Values::List { element, .. } => element.bytes(),
            Values::Struct(columns) => columns.iter().map(Self::bytes).sum(),
            _ => self.len() * 8,
        }
    }

    /// Appends values; an error tells at which; those before it are in, and parts of it may be, until they are cut off.
    pub(crate) fn extend<'c>(
        &mut self,
        cells: impl Iterator<Item = Cell<'c>>,
        context: &mut Context,
    ) -> Result<(), (usize, Fault)> {
        let Self { nulls, values, .. } = self;
        match values {
            Values::Bool(bits) => fixed(cells, nulls, |found: Option<[u8; 1]>| {
                bits.append(found.is_some_and(|byte| byte != [0]));
                Ok(true)
            }),
            Values::Int16(values) => plain(cells, nulls, values, i16::from_le_bytes),
            Values::Int32(values) => plain(cells, nulls, values, i32::from_le_bytes),
            Values::Int64(values) => plain(cells, nulls, values, i64::from_le_bytes),
            Values::UInt32(values) => plain(cells, nulls, values, u32::from_le_bytes),
            Values::UInt64(values) => plain(cells, nulls, values, u64::from_le_bytes),
            Values::Float32(values) => plain(cells, nulls, values, f32::from_le_bytes),
            Values::Float64(values) => plain(cells, nulls, values, f64::from_le_bytes),
            Values::Money(values) => {
                plain(cells, nulls, values, |bytes| i64::from_le_bytes(bytes).into())
            }
            Values::Date(values) => checked(cells, nulls, values, |bytes| {
                date(Date(i32::from_le_bytes(bytes)), context.infinity)
            }),
            Values::Time(values) => checked(cells, nulls, values, |bytes| {
                time(i64::from_le_bytes(bytes), context.infinity)
            }),
            Values::Timestamp(values) => checked(cells, nulls, values, |bytes| {
                timestamp(Timestamp(i64::from_le_bytes(bytes)), context.infinity)
            }),
            Values::Uuid(values) => fixed(cells, nulls, |found: Option<[u8; 16]>| {
                values.extend_from_slice(&found.unwrap_or_default());
                Ok(true)
            }),
            _ => self.extend_one_by_one(cells, context),
        }
    }

    fn extend_one_by_one<'c>(
        &mut self,
        cells: impl Iterator<Item = Cell<'c>>,
        context: &mut Context,
    ) -> Result<(), (usize, Fault)> {
        for (at, cell) in cells.enumerate() {
            if let Some(raw) = cell
                && self.push_short(raw, context)
            {
                self.nulls.append_non_null();
                continue;
            }
            if !self.is_nested && self.len() > 0 && self.bytes() > MOST_BYTES {
                return Err((at, Fault::Full));
            }
            let is_valid = match cell {
                Some(raw) => self.push(raw, context).map_err(|fault| (at, fault))?,
                None => false,
            };
            if !is_valid {
                self.push_empty();
            }
            self.nulls.append(is_valid);
        }
        Ok(())
    }

    /// Appends what most columns of most tables have: a text or a decimal behind a header of one byte, as it is. False,
    /// and nothing is done, for everything else.
    #[inline]
    fn push_short(&mut self, raw: &[u8], context: &Context) -> bool {
        let payload = match raw.split_first() {
            Some((header, payload))
                if header & 1 == 1 && payload.len() + 1 == usize::from(header >> 1) =>
            {
                payload
            }
            _ => return false,
        };
        match &mut self.values {
            Values::Text(pieces)
                if context.transcoder.is_none() && pieces.data.len() < MOST_BYTES =>
            {
                pieces.data.extend_from_slice(payload);
                pieces.ends.push(pieces.data.len() as i32);
                true
            }
            Values::Decimal { values, precision, scale } => {
                let number = short_decimal(payload, *precision, *scale);
                values.extend(number);
                number.is_some()
            }
            _ => false,
        }
    }

    /// Appends a value to the buffers; false for one that becomes NULL, of which nothing is there.
    fn push(&mut self, raw: &[u8], context: &mut Context) -> Result<bool, Fault> {
        let Self { value_type, values, .. } = self;
        match values {
            Values::Text(pieces) => push_text(raw, value_type.layout.len, pieces, context)?,
            Values::Printed(pieces) => push_written(pieces, context, |writer, out| {
                writer.write(&value_type.output, value_type.layout.len, raw, out)
            })?,
            Values::Json(pieces) => push_written(pieces, context, |writer, out| {
                writer.write_json(value_type, JsonForm::of(value_type), raw, out)
            })?,
            Values::Bytes(pieces) => {
                let Context { lookups, buffer, .. } = context;
                let bytes = payload(lookups, value_type.layout.len, raw, buffer)?;
                pieces.data.extend_from_slice(bytes);
                pieces.end_value()?;
            }
            Values::Decimal { values, precision, scale } => {
                let found = in_numeric(raw, value_type, context, |number, infinity| {
                    decimal(number, (*precision, *scale), infinity)
                })?;
                values.extend(found);
                return Ok(found.is_some());
            }
            Values::NumericAsDouble(values) => {
                values.push(as_double(raw, value_type, context)?);
            }
            Values::Hstore(pairs) => pairs.push(raw, value_type.layout.len, context)?,
            Values::Vector { numbers, ends, width } => {
                let Context { lookups, buffer, .. } = context;
                let bytes = payload(lookups, value_type.layout.len, raw, buffer)?;
                push_vector(bytes, numbers, *width)?;
                ends.push(numbers.len() as i32);
            }
            Values::Wkb { pieces, srid } => {
                let Context { lookups, buffer, .. } = context;
                let bytes = payload(lookups, value_type.layout.len, raw, buffer)?;
                push_wkb(bytes, *srid, pieces)?;
            }
            Values::List { ends, element } => {
                push_elements(raw, value_type, element, context)?;
                match i32::try_from(element.len()) {
                    Ok(end) => ends.push(end),
                    Err(_) => return unfit("arrays of more than 2^31 elements", Remedy::Columns),
                }
            }
            Values::Struct(columns) => push_row(raw, value_type, columns, context)?,
            _ => unreachable!("values of fixed length are appended many at once"),
        }
        Ok(true)
    }

    /// What lies in the buffers for a NULL.
    fn push_empty(&mut self) {
        match &mut self.values {
            Values::Text(pieces)
            | Values::Printed(pieces)
            | Values::Json(pieces)
            | Values::Bytes(pieces)
            | Values::Wkb { pieces, .. } => repeat_last(&mut pieces.ends),
            Values::Hstore(pairs) => repeat_last(&mut pairs.ends),
            Values::Vector { numbers, ends, width } => {
                numbers.resize(numbers.len() + width.unwrap_or(0) as usize, 0.0);
                ends.push(numbers.len() as i32);
            }
            Values::Decimal { values, .. } => values.push(0),
            Values::NumericAsDouble(values) => values.push(0.0),
            Values::List { ends, .. } => repeat_last(ends),
            Values::Struct(columns) => columns.iter_mut().for_each(Self::push_null),
            _ => unreachable!("values of fixed length are appended many at once"),
        }
    }

    fn push_null(&mut self) {
        let Self { nulls, values, .. } = self;
        match values {
            Values::Bool(bits) => bits.append(false),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) | Values::Date(values) => values.push(0),
            Values::Int64(values) | Values::Time(values) | Values::Timestamp(values) => {
                values.push(0);
            }
            Values::UInt32(values) => values.push(0),
            Values::UInt64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Money(values) => values.push(0),
            Values::Uuid(values) => values.extend_from_slice(&[0; 16]),
            _ => return self.push_empty_null(),
        }
        nulls.append_null();
    }

    fn push_empty_null(&mut self) {
        self.push_empty();
        self.nulls.append_null();
    }

    /// Keeps the first values only.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.nulls.truncate(len);
        match &mut self.values {
            Values::Bool(bits) => bits.truncate(len),
            Values::Int16(values) => values.truncate(len),
            Values::Int32(values) | Values::Date(values) => values.truncate(len),
            Values::Int64(values) | Values::Time(values) | Values::Timestamp(values) => {
                values.truncate(len);
            }
            Values::UInt32(values) => values.truncate(len),
            Values::UInt64(values) => values.truncate(len),
            Values::Float32(values) => values.truncate(len),
            Values::Float64(values) | Values::NumericAsDouble(values) => values.truncate(len),
            Values::Decimal { values, .. } | Values::Money(values) => values.truncate(len),
            Values::Uuid(values) => values.truncate(len * 16),
            Values::Text(pieces)
            | Values::Printed(pieces)
            | Values::Json(pieces)
            | Values::Bytes(pieces)
            | Values::Wkb { pieces, .. } => pieces.truncate(len),
            Values::Hstore(pairs) => pairs.truncate(len),
            Values::Vector { numbers, ends, .. } => {
                ends.truncate(len);
                numbers.truncate(ends.last().map_or(0, |end| *end as usize));
            }
            Values::List { ends, element } => {
                ends.truncate(len);
                element.truncate(ends.last().map_or(0, |end| *end as usize));
            }
            Values::Struct(columns) => columns.iter_mut().for_each(|column| column.truncate(len)),
        }
    }

    /// The array of its values; it is empty afterwards.
    pub(crate) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, NotUtf8> {
        let len = self.len();
        let nulls = self.nulls.finish();
        let taken = |values: &mut Vec<i64>| std::mem::take(values);
        Ok(match &mut self.values {
            Values::Bool(bits) => Arc::new(BooleanArray::new(bits.finish(), nulls)),
            Values::Int16(values) => primitive::<Int16Type>(values, nulls, data_type),
            Values::Int32(values) => primitive::<Int32Type>(values, nulls, data_type),
            Values::Int64(values) => primitive::<Int64Type>(values, nulls, data_type),
            Values::UInt32(values) => primitive::<UInt32Type>(values, nulls, data_type),
            Values::UInt64(values) => primitive::<UInt64Type>(values, nulls, data_type),
            Values::Float32(values) => primitive::<Float32Type>(values, nulls, data_type),
            Values::Float64(values) | Values::NumericAsDouble(values) => {
                primitive::<Float64Type>(values, nulls, data_type)
            }
            Values::Date(values) => primitive::<Date32Type>(values, nulls, data_type),
            Values::Time(values) => {
                primitive::<Time64MicrosecondType>(&mut taken(values), nulls, data_type)
            }
            Values::Timestamp(values) => {
                primitive::<TimestampMicrosecondType>(&mut taken(values), nulls, data_type)
            }
            Values::Decimal { values, .. } | Values::Money(values) => {
                primitive::<Decimal128Type>(values, nulls, data_type)
            }
            Values::Uuid(values) => {
                let buffer = Buffer::from_vec(std::mem::take(values));
                Arc::new(FixedSizeBinaryArray::new(16, buffer, nulls))
            }
            Values::Bytes(pieces) | Values::Wkb { pieces, .. } => {
                let (offsets, buffer) = pieces.take();
                Arc::new(BinaryArray::new(offsets, buffer, nulls))
            }
            Values::Hstore(pairs) => pairs.finish(data_type, nulls)?,
            Values::Vector { numbers, ends, .. } => {
                vector_array(numbers, std::mem::take(ends), data_type, nulls)
            }
            Values::Text(pieces) | Values::Printed(pieces) | Values::Json(pieces) => {
                text_array(pieces, nulls)?
            }
            Values::List { ends, element } => {
                let DataType::List(field) = data_type else {
                    unreachable!("a list is planned as one")
                };
                let ends = std::mem::take(ends);
                let found = element.finish(field.data_type());
                let values = found.map_err(|fault| NotUtf8 {
                    at: ends.partition_point(|end| *end as usize <= fault.at),
                })?;
                Arc::new(ListArray::new(field.clone(), offsets(ends), values, nulls))
            }
            Values::Struct(columns) => {
                let DataType::Struct(fields) = data_type else {
                    unreachable!("a row is planned as one")
                };
                struct_array(columns, fields, nulls, len)?
            }
        })
    }
}

fn struct_array(
    columns: &mut [ColumnBuilder],
    fields: &Fields,
    nulls: Option<NullBuffer>,
    len: usize,
) -> Result<ArrayRef, NotUtf8> {
    let pairs = columns.iter_mut().zip(fields);
    let arrays: Vec<ArrayRef> =
        pairs.map(|(column, field)| column.finish(field.data_type())).collect::<Result<_, _>>()?;
    assert!(arrays.iter().all(|array| array.len() == len), "attributes of as many rows");
    Ok(Arc::new(StructArray::new(fields.clone(), arrays, nulls)))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> ArrayRef {
    let values = ScalarBuffer::from(std::mem::take(values));
    Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(data_type.clone()))
}

fn push_text(
    raw: &[u8],
    len: i16,
    pieces: &mut Pieces,
    context: &mut Context,
) -> Result<(), Fault> {
    let Context { lookups, transcoder, buffer, .. } = context;
    let text = match Varlena::parse(raw) {
        Ok(Varlena::Plain(text)) if len == -1 => text,
        _ => payload(lookups, len, raw, buffer)?,
    };
    match transcoder {
        None => pieces.data.extend_from_slice(text),
        Some(transcoder) => {
            transcoder.convert(text, &mut pieces.data).map_err(FormatError::lookup)?;
        }
    }
    pieces.end_value()
}

/// Appends the text that `write` appends to what it is given.
fn push_written(
    pieces: &mut Pieces,
    context: &mut Context,
    write: impl FnOnce(&mut ValueWriter<'_>, &mut Vec<u8>) -> Result<(), FormatError>,
) -> Result<(), Fault> {
    let Context { lookups, transcoder, buffer, .. } = context;
    let mut writer = ValueWriter::new(lookups);
    let Some(transcoder) = transcoder else {
        write(&mut writer, &mut pieces.data)?;
        return pieces.end_value();
    };
    buffer.clear();
    write(&mut writer, buffer)?;
    transcoder.convert(buffer, &mut pieces.data).map_err(FormatError::lookup)?;
    pieces.end_value()
}

fn push_elements(
    raw: &[u8],
    value_type: &ValueType,
    element: &mut ColumnBuilder,
    context: &mut Context,
) -> Result<(), Fault> {
    let mut buffer = std::mem::take(&mut context.buffer);
    let bytes = payload(&mut context.lookups, value_type.layout.len, raw, &mut buffer)?;
    let Value::Array(array) = decode(value_type, bytes)? else {
        unreachable!("an array type decodes to an array")
    };
    match array.dimensions() {
        [] => {}
        [one] if one.lower == 1 => {}
        [one] => {
            let lower = one.lower;
            return unfit(format!("an array that begins at {lower}, not at 1"), Remedy::Arrays);
        }
        several => {
            let count = several.len();
            return unfit(
                format!("an array of {count} dimensions, where lists have one"),
                Remedy::Arrays,
            );
        }
    }
    if array.element_type().is_none() && !array.is_empty() {
        let what = format!("its elements are of the type {}", array.element_oid());
        return Err(Fault::Damaged(FormatError::corrupt("array", 8, what)));
    }
    let found = array.elements(element.value_type.layout).collect::<Result<Vec<_>, _>>()?;
    element.extend(found.into_iter(), context).map_err(|(_, fault)| fault)?;
    context.buffer = buffer;
    Ok(())
}

fn push_row(
    raw: &[u8],
    value_type: &ValueType,
    columns: &mut [ColumnBuilder],
    context: &mut Context,
) -> Result<(), Fault> {
    let mut buffer = std::mem::take(&mut context.buffer);
    let bytes = payload(&mut context.lookups, value_type.layout.len, raw, &mut buffer)?;
    let Value::Composite(row) = decode(value_type, bytes)? else {
        unreachable!("a composite type decodes to a row")
    };
    for (column, (_, cell)) in columns.iter_mut().zip(row.attributes()) {
        column.extend(std::iter::once(cell), context).map_err(|(_, fault)| fault)?;
    }
    context.buffer = buffer;
    Ok(())
}
