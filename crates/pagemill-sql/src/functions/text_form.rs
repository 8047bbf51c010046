//! Values from their texts and to them, by the same input and output functions that `load` and `export` use.
//!
//! Values are read and written as the session's settings say, and moments in its time zone.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Int32Array, StringArray, StringBuilder,
};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use datafusion::scalar::ScalarValue;
use pagemill_cluster::{ValueCatalog, ValueLookups};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::input::InputError;
use pagemill_types::input::tree::{TypeInput, ValueReader};
use pagemill_types::output::{TypeOutput, ValueType, ValueWriter};

use super::keys::{payloads, strings};
use super::text::parts::as_name;
use super::{KernelCall, call_kernel, numeric};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::typed::Typed;
use crate::types::{PgType, RECORDS};

/// A value by its text.
///
/// # Errors
/// In the words of the type's input function.
pub(crate) fn read(
    catalog: &Catalog,
    ty: PgType,
    carrier: &DataType,
    text: &str,
) -> Result<ScalarValue> {
    catalog.check_written_name(ty.oid, text)?;
    let payload = payload_of_text(catalog, ty, text)?;
    Ok(scalar_of_payload(catalog, ty, carrier, &payload)?)
}

pub(crate) fn payload_of_text(
    catalog: &Catalog,
    ty: PgType,
    text: &str,
) -> Result<Vec<u8>, StatementError> {
    let inputs = catalog.inputs().map_err(|error| error.report())?;
    let wanted = inputs.value_type(ty.oid).map_err(|error| Error::from(error).report())?;
    let (mut lookups, mut payload) = (inputs.lookups(), Vec::new());
    let mut reader = ValueReader::new(&mut lookups, inputs.context());
    let read = reader.read(&wanted.input, ty.modifier, text.as_bytes(), &mut payload);
    read.map_err(no_value)?;
    Ok(payload)
}

/// Refuses NULL where a domain does.
pub(crate) fn check_null(catalog: &Catalog, ty: PgType) -> Result<()> {
    if catalog.type_row(ty.oid).is_none_or(|row| row.kind != b'd') {
        return Ok(());
    }
    let inputs = catalog.inputs()?;
    let wanted = inputs.value_type(ty.oid)?;
    let mut lookups = inputs.lookups();
    let mut reader = ValueReader::new(&mut lookups, inputs.context());
    Ok(reader.read_null(&wanted.input).map_err(no_value)?)
}

/// A value as its type's output function writes it.
///
/// # Errors
/// When values of the type cannot be written, or this is none.
pub(crate) fn text_of_payload(catalog: &Catalog, type_oid: Oid, payload: &[u8]) -> Result<String> {
    text_by(catalog.values(), type_oid, payload)
}

/// The same, as it reads in any session, whatever styles that set.
///
/// # Errors
/// Likewise.
pub(crate) fn plain_text_of_payload(
    catalog: &Catalog,
    type_oid: Oid,
    payload: &[u8],
) -> Result<String> {
    text_by(catalog.plain_values()?, type_oid, payload)
}

fn text_by(values: &ValueCatalog, type_oid: Oid, payload: &[u8]) -> Result<String> {
    let value_type = values.value_type(type_oid)?;
    let (mut lookups, mut out) = (values.lookups(), Vec::new());
    ValueWriter::new(&mut lookups)
        .write_payload(&value_type.output, payload, &mut out)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A value of the type under a domain as one of the domain, which refuses what is none.
pub(crate) fn accepted(catalog: &Arc<Catalog>, value: Typed, domain: PgType) -> Result<Typed> {
    let input = catalog.inputs()?.value_type(domain.oid)?;
    match &input.input {
        TypeInput::Domain(known) if known.not_null || !known.checks.is_empty() => {
            let carrier = value.carrier.clone();
            let kernel = ("domain", accept as _);
            Ok(call_kernel(catalog, kernel, std::slice::from_ref(&value), domain, carrier))
        }
        _ => Ok(Typed { ty: domain, ..value }),
    }
}

fn accept(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let inputs = call.catalog.inputs().map_err(|error| invalid(error.to_string()))?;
    let input = inputs.value_type(call.result.oid).map_err(|error| invalid(error.to_string()))?;
    let TypeInput::Domain(domain) = &input.input else { unreachable!("it was asked for one") };
    let values = &arguments[0];
    for row in 0..values.len() {
        let payload = match values.is_null(row) {
            true => None,
            false => Some(payload_of(&call.catalog, call.arguments[0], values, row)?),
        };
        domain.accept(payload.as_deref()).map_err(no_value)?;
    }
    Ok(values.clone())
}

/// The state of an error that says that there is nothing of a name, as the types of names have it.
fn missing_object(message: &str) -> Option<SqlState> {
    const STATES: [(&str, &str); 9] = [
        ("relation \"", "42P01"),
        ("type \"", "42704"),
        ("role \"", "42704"),
        ("collation \"", "42704"),
        ("text search configuration \"", "42704"),
        ("text search dictionary \"", "42704"),
        ("schema \"", "3F000"),
        ("function \"", "42883"),
        ("operator does not exist", "42883"),
    ];
    let is_missing = message.contains(" does not exist");
    let known = STATES.iter().find(|(start, _)| is_missing && message.starts_with(start));
    let known = known.map(|(_, state)| SqlState(state));
    known.or_else(|| message.starts_with("invalid name syntax").then_some(SqlState("42602")))
}

/// A text that is no value of its type.
#[cold]
pub(crate) fn no_value(error: InputError) -> StatementError {
    let told = match error.state {
        Some(state) => StatementError::new(SqlState(state), error.message),
        None => invalid(error.message),
    };
    StatementError { detail: error.detail, ..told }
}

/// The SQLSTATE follows from PostgreSQL's words.
#[cold]
pub(crate) fn invalid(message: String) -> StatementError {
    let state = match () {
        // What is quoted in a message ends with its quotation mark.
        () if message.ends_with("only a server can tell") => SqlState::FEATURE_NOT_SUPPORTED,
        () if ["range lower bound", "result of range"].iter().any(|of| message.starts_with(of)) => {
            SqlState("22000")
        }
        // Whatever the text says that follows.
        () if is_no_moment(&message) => SqlState("22007"),
        () if message.starts_with("invalid input syntax for type ") => SqlState::INVALID_TEXT,
        () if message.starts_with("invalid input value for enum ") => SqlState::INVALID_TEXT,
        () if message.starts_with("interval field value out") => SqlState("22015"),
        () if message.starts_with("interval out of range") => SqlState::DATETIME_OVERFLOW,
        () if message.starts_with("value overflows numeric format") => {
            SqlState::NUMERIC_OUT_OF_RANGE
        }
        () if message == "numeric field overflow" => SqlState::NUMERIC_OUT_OF_RANGE,
        () if message.starts_with("bit string length ") => SqlState("22026"),
        () if message.starts_with("invalid hexadecimal d") => SqlState::INVALID_PARAMETER,
        () if message.starts_with("time zone \"") && message.ends_with("\" not recognized") => {
            SqlState::INVALID_PARAMETER
        }
        () if message.starts_with("time zone displacement out") => SqlState("22009"),
        () if ["date", "timestamp"].iter().any(|word| message.starts_with(word))
            && message.contains("out of range") =>
        {
            SqlState("22008")
        }
        () if message.contains("out of range") => SqlState::NUMERIC_OUT_OF_RANGE,
        () if is_no_search(&message) => SqlState::SYNTAX_ERROR,
        () if let Some(state) = missing_object(&message) => state,
        () if message.starts_with("distance in phrase operator") => SqlState::INVALID_PARAMETER,
        () if ["word is too long", "string is too long for tsvector", "value is too big in ts"]
            .iter()
            .any(|begin| message.starts_with(begin)) =>
        {
            SqlState("54000")
        }
        () if message.contains("too long") => SqlState::STRING_TOO_LONG,
        () if message.contains("violates check constraint") => SqlState("23514"),
        () if message.contains("does not allow null values") => SqlState("23502"),
        () => SqlState::INVALID_TEXT,
    };
    StatementError::new(state, message)
}

/// Source: `src/backend/utils/adt/tsvector_parser.c`, `tsquery.c`, PostgreSQL 18.
fn is_no_search(message: &str) -> bool {
    const BEGINNINGS: [&str; 4] = [
        "syntax error in ts",
        "no operand in tsquery",
        "wrong position info in tsvector",
        "there is no escaped character",
    ];
    BEGINNINGS.iter().any(|begin| message.starts_with(begin))
}

/// Source: `DateTimeParseError` in `src/backend/utils/adt/datetime.c`, PostgreSQL 18.
fn is_no_moment(message: &str) -> bool {
    let of = message.strip_prefix("invalid input syntax for type ");
    of.is_some_and(|of| ["date", "interval", "time"].iter().any(|name| of.starts_with(name)))
}

/// What carries a payload.
pub(crate) fn scalar_of_payload(
    catalog: &Catalog,
    ty: PgType,
    carrier: &DataType,
    payload: &[u8],
) -> Result<ScalarValue, StatementError> {
    fn number<const N: usize>(payload: &[u8]) -> Result<[u8; N], StatementError> {
        payload.try_into().map_err(|_| invalid(format!("a value of {} bytes", payload.len())))
    }
    Ok(match carrier {
        DataType::Boolean => ScalarValue::Boolean(Some(payload.first() == Some(&1))),
        DataType::Int16 => ScalarValue::Int16(Some(i16::from_le_bytes(number(payload)?))),
        DataType::Int32 if is_enum(catalog, ty) => {
            let label = Oid(u32::from_le_bytes(number(payload)?));
            ScalarValue::Int32(Some(catalog.enum_order(ty.oid)?.place(label)?))
        }
        DataType::Int32 => ScalarValue::Int32(Some(i32::from_le_bytes(number(payload)?))),
        DataType::Int64 => ScalarValue::Int64(Some(i64::from_le_bytes(number(payload)?))),
        DataType::UInt32 => ScalarValue::UInt32(Some(u32::from_le_bytes(number(payload)?))),
        DataType::UInt64 => ScalarValue::UInt64(Some(u64::from_le_bytes(number(payload)?))),
        DataType::Float32 => ScalarValue::Float32(Some(f32::from_le_bytes(number(payload)?))),
        DataType::Float64 => ScalarValue::Float64(Some(f64::from_le_bytes(number(payload)?))),
        DataType::Decimal128(precision, scale) => {
            let found = numeric::decimal_of_payload(payload, *scale)?;
            ScalarValue::Decimal128(Some(found), *precision, *scale)
        }
        DataType::Utf8 => {
            let end = payload.iter().position(|b| *b == 0).unwrap_or(payload.len());
            ScalarValue::Utf8(Some(String::from_utf8_lossy(&payload[..end]).into_owned()))
        }
        _ => ScalarValue::Binary(Some(payload.to_vec())),
    })
}

fn is_enum(catalog: &Catalog, ty: PgType) -> bool {
    let base = catalog.base_type(ty.oid, -1).0;
    catalog.type_row(base).is_some_and(|row| row.kind == b'e')
}

/// `text[]`.
fn texts(catalog: &Catalog) -> Oid {
    catalog.type_row(oid::TEXT).map_or(Oid(0), |row| row.array)
}

/// Prints the values of one column; one per thread.
pub(crate) struct Printer {
    catalog: Arc<Catalog>,
    ty: PgType,
    value_type: Option<Arc<ValueType>>,
    lookups: ValueLookups,
    payload: Vec<u8>,
}

impl Printer {
    pub(crate) fn new(catalog: &Arc<Catalog>, ty: PgType) -> Result<Self> {
        // A record that is shown is carried as its text.
        let is_literal = [crate::types::UNKNOWN, crate::types::RECORD].contains(&ty.oid);
        let value_type = match is_literal {
            true => None,
            false if ty.oid == RECORDS => Some(catalog.values().value_type(texts(catalog))?),
            false => Some(catalog.values().value_type(ty.oid)?),
        };
        if value_type.as_ref().is_some_and(|value_type| is_unreadable(&value_type.output)) {
            return unsupported(format!("the text of type {}", catalog.type_name(ty.oid)));
        }
        let (catalog, lookups) = (catalog.clone(), catalog.values().lookups());
        Ok(Self { catalog, ty, value_type, lookups, payload: Vec::new() })
    }

    /// Whose catalogs it looks into.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The type of the values.
    pub(crate) fn ty(&self) -> PgType {
        self.ty
    }

    /// Appends the text of a value that is not NULL.
    pub(crate) fn print(
        &mut self,
        array: &ArrayRef,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        if let DataType::Utf8 = array.data_type() {
            out.extend_from_slice(strings(array).value(row).as_bytes());
            return Ok(());
        }
        if let DataType::Decimal128(_, scale) = array.data_type() {
            let found = array.as_primitive::<arrow::datatypes::Decimal128Type>().value(row);
            numeric::write_decimal(found, *scale, out);
            return Ok(());
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        let put = self.put_payload(array, row, &mut payload);
        let printed = put.and_then(|()| self.write(&payload, out));
        self.payload = payload;
        printed
    }

    fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), StatementError> {
        let Some(value_type) = &self.value_type else { return Ok(()) };
        let written =
            ValueWriter::new(&mut self.lookups).write_payload(&value_type.output, payload, out);
        written.map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))
    }

    fn put_payload(
        &self,
        array: &ArrayRef,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        put_payload(&self.catalog, self.ty, (array, row), out)
    }
}

/// The payload of a value that is not NULL, whatever carries it.
pub(crate) fn payload_of(
    catalog: &Catalog,
    ty: PgType,
    array: &ArrayRef,
    row: usize,
) -> Result<Vec<u8>, StatementError> {
    match array.data_type() {
        DataType::Utf8 => Ok(strings(array).value(row).as_bytes().to_vec()),
        DataType::Decimal128(_, scale) => {
            let mut text = Vec::new();
            let found = array.as_primitive::<arrow::datatypes::Decimal128Type>().value(row);
            numeric::write_decimal(found, *scale, &mut text);
            payload_of_text(catalog, PgType::new(oid::NUMERIC), &String::from_utf8_lossy(&text))
        }
        _ => {
            let mut payload = Vec::new();
            put_payload(catalog, ty, (array, row), &mut payload)?;
            Ok(payload)
        }
    }
}

fn put_payload(
    catalog: &Catalog,
    ty: PgType,
    (array, row): (&ArrayRef, usize),
    out: &mut Vec<u8>,
) -> Result<(), StatementError> {
    match array.data_type() {
        DataType::Boolean => out.push(u8::from(array.as_boolean().value(row))),
        DataType::Int16 => out.extend(array.as_primitive::<Int16Type>().value(row).to_le_bytes()),
        DataType::Int32 if is_enum(catalog, ty) => {
            let place = array.as_primitive::<Int32Type>().value(row);
            out.extend(catalog.enum_order(ty.oid)?.label(place)?.0.to_le_bytes());
        }
        DataType::Int32 => out.extend(array.as_primitive::<Int32Type>().value(row).to_le_bytes()),
        DataType::Int64 => out.extend(array.as_primitive::<Int64Type>().value(row).to_le_bytes()),
        DataType::UInt32 => out.extend(array.as_primitive::<UInt32Type>().value(row).to_le_bytes()),
        DataType::UInt64 => out.extend(array.as_primitive::<UInt64Type>().value(row).to_le_bytes()),
        DataType::Float32 => {
            out.extend(array.as_primitive::<Float32Type>().value(row).to_le_bytes());
        }
        DataType::Float64 => {
            out.extend(array.as_primitive::<Float64Type>().value(row).to_le_bytes());
        }
        DataType::Binary => out.extend_from_slice(payloads(array).value(row)),
        other => unreachable!("{other} carries no type"),
    }
    Ok(())
}

/// True for a type of which only the bytes are known, or one that is made of such.
fn is_unreadable(output: &TypeOutput) -> bool {
    match output {
        TypeOutput::Hex => true,
        TypeOutput::Array(inner) | TypeOutput::Range(inner) | TypeOutput::Multirange(inner) => {
            is_unreadable(&inner.output)
        }
        TypeOutput::Composite(attributes) => {
            let mut types = attributes.iter().filter_map(|attribute| attribute.value_type.as_ref());
            types.any(|inner| is_unreadable(&inner.output))
        }
        _ => false,
    }
}

/// A cast by way of the text: every type to a text, and a text to every type.
pub(crate) fn cast(catalog: &Arc<Catalog>, typed: Typed, target: PgType) -> Result<Typed> {
    let carrier = carrier_of(catalog, target);
    let kernel = match carrier {
        DataType::Utf8 if catalog.base_type(target.oid, -1).0 == oid::NAME => to_name,
        DataType::Utf8 if !is_text(catalog, typed.ty) => to_text,
        _ => from_text,
    };
    // One text as another; a document has to be one.
    if is_text(catalog, typed.ty) && is_text(catalog, target) {
        return Ok(Typed { ty: target, ..typed });
    }
    let key = format!("cast to {}", catalog.type_name(target.oid));
    Ok(call_kernel(catalog, (&key, kernel), &[typed], target, carrier))
}

fn is_text(catalog: &Catalog, ty: PgType) -> bool {
    let base = catalog.base_type(ty.oid, -1).0;
    matches!(base, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME)
}

/// A printer for a kernel, whose errors are those of statements.
pub(crate) fn printer_of(catalog: &Arc<Catalog>, ty: PgType) -> Result<Printer, StatementError> {
    Printer::new(catalog, ty).map_err(|error| match error {
        Error::Statement(error) => error,
        other => StatementError::new(SqlState::DATA_CORRUPTED, other.to_string()),
    })
}

/// Names are cut to what fits.
fn to_name(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let texts = to_text(call, arguments)?;
    let names = texts.as_string::<i32>().iter().map(|text| text.map(as_name));
    Ok(Arc::new(names.collect::<StringArray>()))
}

pub(crate) fn to_text(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    let array = &arguments[0];
    let mut printer = printer_of(&call.catalog, call.arguments[0])?;
    let mut texts = StringBuilder::with_capacity(array.len(), array.len() * 16);
    let mut text = Vec::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        printer.print(array, row, &mut text)?;
        texts.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Arc::new(texts.finish()))
}

/// What is stored of a text, which its output function may write otherwise.
fn raw_text(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let stored = payloads(&arguments[0]);
    let texts = stored.iter().map(|bytes| bytes.map(String::from_utf8_lossy));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn from_text(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let of = |text: Option<&str>| match text {
        None => ScalarValue::try_from(&call.carrier).map_err(|error| invalid(error.to_string())),
        Some(text) => {
            let payload = payload_of_text(&call.catalog, call.result, text)?;
            scalar_of_payload(&call.catalog, call.result, &call.carrier, &payload)
        }
    };
    let values = strings(&arguments[0]).iter().map(of).collect::<Result<Vec<_>, _>>()?;
    match values.is_empty() {
        true => Ok(arrow::array::new_empty_array(&call.carrier)),
        false => ScalarValue::iter_to_array(values).map_err(|error| invalid(error.to_string())),
    }
}

/// The same four bytes under another type: an integer as an OID.
pub(crate) fn same_bits(
    catalog: &Arc<Catalog>,
    typed: Typed,
    target: PgType,
    carrier: DataType,
) -> Result<Typed> {
    let kernel = match (&typed.carrier, &carrier) {
        (DataType::Int32, DataType::UInt32) => to_unsigned,
        (DataType::UInt32, DataType::Int32) => to_signed,
        (DataType::Utf8, DataType::Binary) => to_bytes,
        // A document as it was written.
        (DataType::Binary, DataType::Utf8) if typed.ty.oid == oid::XML => raw_text,
        _ => {
            let (from, to) = (catalog.type_name(typed.ty.oid), catalog.type_name(target.oid));
            return unsupported(format!("a cast from {from} to {to}"));
        }
    };
    Ok(call_kernel(catalog, ("same bits", kernel), &[typed], target, carrier))
}

fn to_unsigned(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let found = arguments[0].as_primitive::<Int32Type>();
    Ok(Arc::new(found.unary::<_, UInt32Type>(|number| number as u32)))
}

fn to_signed(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let found = arguments[0].as_primitive::<UInt32Type>();
    let found: Int32Array = found.unary::<_, Int32Type>(|number| number as i32);
    Ok(Arc::new(found))
}

fn to_bytes(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let mut bytes = BinaryBuilder::new();
    for text in strings(&arguments[0]) {
        bytes.append_option(text.map(str::as_bytes));
    }
    Ok(Arc::new(bytes.finish()))
}
