//! Keys: expressions that the query engine can compare, hash and sort, and that are equal and ordered exactly as
//! PostgreSQL has it for the values they stand for.
//!
//! | values | key |
//! | --- | --- |
//! | booleans, integers, OIDs, dates, times, timestamps, money, uuid, bytea, enums | the carrier |
//! | texts, equality | the carrier: deterministic collations hold only the same bytes for equal |
//! | texts, order under C, POSIX, C.UTF-8, ucs_basic | the carrier: bytes of UTF-8 sort as code points |
//! | texts, order under another locale of the C library | what that library has for them ([`super::collations`]); two beside each other it compares |
//! | character(n) | the same without the blanks at the end |
//! | floats | −0 as 0, one NaN, which is above all numbers |
//! | numerics | decimals of the same places, or bytes that sort as the numbers do |
//! | arrays | the keys of their elements, then their bounds |
//! | ranges and multiranges | the keys of their bounds ([`super::ranges::keys`]) |
//! | jsonb, order | bytes that sort as the documents do ([`super::logic::json_order`]) |
//! | jsonb, equality | its text, with numbers without zeros at their end |
//! | intervals | the time they are taken for: 30 days a month, 24 hours a day |
//! | times with zones, order | what they are in Greenwich, then their zones |
//! | rows | the keys of their fields ([`super::row_keys`]) |
//! | tsvector, tsquery | bytes that sort as they do: sizes first |
//! | oidvector | how many numbers, then those, the highest byte of each first |
//! | inet and cidr, order | the family, the network, the length of its mask, the address |
//! | pg_lsn, order | its bytes, the highest one first |
//! | citext | the key of its lower case ([`super::extensions`]) |
//!
//! Any other order is refused.
//!
//! Source: `varstr_cmp` in `varlena.c`, `float8_cmp_internal` in `float.h`, `cmp_numerics` in `numeric.c`, `interval_cmp_value` in
//! `timestamp.c`, PostgreSQL 18.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, BinaryArray, BinaryBuilder, StringArray, make_comparator,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::logical_expr::{Expr, cast, lit};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::arrays::keys::array_key;
use super::collations::Collator;
use super::comparison::same_length;
use super::extensions::{self, TypeOrder, lowered, payload_key};
use super::integers::{INTEGERS, numbers};
use super::logic::json_changes::equality_key as document_key;
use super::logic::json_order::{locale_order_key, order_key as document_order, unknown_order};
use super::ranges::keys::range_key;
use super::row_keys::{self, Asked, is_of_rows, row_key};
use super::rows::one;
use super::{KernelCall, call_kernel, collations, numeric, text_search};
use crate::catalog::{Catalog, CollationRow, TypeRow};
use crate::coerce::named_collation;
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::resolve;
use crate::typed::Typed;
use crate::types::{C_COLLATION, DEFAULT_COLLATION, POSIX_COLLATION, RECORDS, is_object_number};

/// What an order needs to be known of a type.
enum Class {
    /// The carrier is the key.
    Carrier,
    Text,
    PaddedText,
    Float,
    Numeric,
    Interval,
    Tid,
    Bits,
    Address,
    LogPosition,
    ZonedTime,
    /// `oidvector`.
    Vector,
    Array,
    Range,
    Row,
    Document,
    /// `tsvector` and `tsquery`.
    TextSearch(&'static str),
    /// A type of an extension.
    Extension(TypeOrder),
    Unknown,
}

fn class(catalog: &Catalog, type_oid: Oid) -> Class {
    let (base, _) = catalog.base_type(type_oid, -1);
    match base {
        RECORDS => Class::Unknown,
        oid::TEXT | oid::VARCHAR | oid::NAME => Class::Text,
        oid::BPCHAR => Class::PaddedText,
        oid::FLOAT4 | oid::FLOAT8 => Class::Float,
        oid::NUMERIC => Class::Numeric,
        oid::INTERVAL => Class::Interval,
        oid::TID => Class::Tid,
        oid::BIT | oid::VARBIT => Class::Bits,
        oid::INET | oid::CIDR => Class::Address,
        oid::PG_LSN => Class::LogPosition,
        oid::TIMETZ => Class::ZonedTime,
        oid::OIDVECTOR => Class::Vector,
        oid::JSONB => Class::Document,
        oid::TSVECTOR => Class::TextSearch(text_search::VECTOR_KEY),
        oid::TSQUERY => Class::TextSearch(text_search::QUERY_KEY),
        oid::BOOL | oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::MONEY => {
            Class::Carrier
        }
        // Bytes in their order: of names and addresses the numbers stand highest byte first.
        oid::UUID | oid::BYTEA | oid::CHAR | oid::XID8 => Class::Carrier,
        oid::MACADDR | oid::MACADDR8 => Class::Carrier,
        _ if INTEGERS.contains(&base) || is_object_number(base) => Class::Carrier,
        _ if catalog.type_row(base).is_some_and(|row| row.kind == b'e') => Class::Carrier,
        _ if catalog.type_row(base).is_some_and(TypeRow::is_array) => Class::Array,
        _ if catalog.range_row(base).is_some() => Class::Range,
        _ if is_of_rows(catalog, base) => Class::Row,
        _ => extensions::order(catalog, base).map_or(Class::Unknown, Class::Extension),
    }
}

/// The key that sorts as the values do.
pub(crate) fn order_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Expr> {
    check_order(catalog, typed.ty.oid)?;
    match class(catalog, typed.ty.oid) {
        Class::Carrier => Ok(typed.expr.clone()),
        Class::Text => text_order_key(catalog, typed),
        Class::PaddedText => text_order_key(catalog, &without_padding(catalog, typed)),
        Class::Float => Ok(float_key(catalog, typed)),
        Class::Numeric => Ok(numeric::key(catalog, typed)),
        Class::Interval => Ok(interval_key(catalog, typed)),
        Class::Tid => {
            let (argument, key) = (std::slice::from_ref(typed), ("tid_key", tid_bytes as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::Bits => {
            let (argument, key) = (std::slice::from_ref(typed), ("bits_key", bits_order as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::Address => {
            let (argument, key) = (std::slice::from_ref(typed), ("inet_key", address_order as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::LogPosition => {
            let (argument, key) = (std::slice::from_ref(typed), ("lsn_key", position_order as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::ZonedTime => {
            let (argument, key) = (std::slice::from_ref(typed), ("timetz_key", zoned_order as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::Vector => {
            let (argument, key) = (std::slice::from_ref(typed), ("vector_key", vector_order as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::Array => array_key(catalog, typed, order_key),
        Class::Range => range_key(catalog, typed, order_key),
        Class::Row => row_key(catalog, typed, order_key),
        Class::Document => {
            let key = match sorts_by_bytes(catalog, DEFAULT_COLLATION) {
                true => ("jsonb_order", document_order as _),
                false => {
                    collations::locale(catalog, DEFAULT_COLLATION)
                        .map_err(|why| StatementError::unsupported(unknown_order(&why)))?;
                    ("jsonb_locale_order", locale_order_key as _)
                }
            };
            let argument = std::slice::from_ref(typed);
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::TextSearch(name) => {
            let (argument, key) =
                (std::slice::from_ref(typed), (name, text_search::order_keys as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Binary).expr)
        }
        Class::Extension(TypeOrder::Caseless) => text_order_key(catalog, &lowered(catalog, typed)?),
        Class::Extension(TypeOrder::Bytes(key)) => Ok(payload_key(catalog, typed, key)),
        Class::Unknown => {
            check_operator(catalog, typed.ty.oid, "an ordering")?;
            let name = catalog.type_name(typed.ty.oid);
            unsupported(format!("the order of type {name}"))
        }
    }
}

/// What values are grouped by. A column of `char(n)` has each value padded to the same length, and is its own key.
///
/// # Errors
/// As [`equality_key`].
pub(crate) fn grouping_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Expr> {
    let key = equality_key(catalog, typed)?;
    let is_padded = typed.ty.oid == oid::BPCHAR && typed.ty.modifier >= 0;
    match typed.expr {
        Expr::Column(_) if is_padded => Ok(typed.expr.clone()),
        _ => Ok(key),
    }
}

/// The key that is equal for equal values.
pub(crate) fn equality_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Expr> {
    check_equality(catalog, typed.ty.oid)?;
    match class(catalog, typed.ty.oid) {
        Class::Text => text_equality_key(catalog, typed),
        Class::PaddedText => text_equality_key(catalog, &without_padding(catalog, typed)),
        Class::Extension(TypeOrder::Caseless) => {
            text_equality_key(catalog, &lowered(catalog, typed)?)
        }
        Class::Array => array_key(catalog, typed, equality_key),
        Class::Range => range_key(catalog, typed, equality_key),
        Class::Row => row_key(catalog, typed, equality_key),
        Class::Bits | Class::Address | Class::LogPosition | Class::ZonedTime | Class::Carrier => {
            Ok(typed.expr.clone())
        }
        Class::Document => {
            let (argument, key) = (std::slice::from_ref(typed), ("jsonb_key", document_key as _));
            Ok(call_kernel(catalog, key, argument, typed.ty, DataType::Utf8).expr)
        }
        // Bytes without padding: two roles, and bits.
        Class::Unknown if catalog.base_type(typed.ty.oid, -1).0 == oid::ACLITEM => {
            Ok(typed.expr.clone())
        }
        Class::Unknown => {
            check_operator(catalog, typed.ty.oid, "an equality")?;
            let name = catalog.type_name(typed.ty.oid);
            unsupported(format!("equality of type {name}"))
        }
        _ => order_key(catalog, typed),
    }
}

/// Refuses the numbers of transactions and commands, which have no order.
///
/// # Errors
/// In the server's words.
pub(crate) fn check_order(catalog: &Catalog, ty: Oid) -> Result<()> {
    let (base, _) = catalog.base_type(ty, -1);
    if !matches!(base, oid::XID | oid::CID) {
        return Ok(());
    }
    let name = catalog.type_name(ty);
    let message = format!("could not identify an ordering operator for type {name}");
    let error = StatementError::new(SqlState::UNDEFINED_FUNCTION, message);
    Err(error.with_hint("Use an explicit ordering operator or modify the query.").into())
}

/// Refuses a type that has no `=`, and so no order either.
///
/// Source: `get_sort_group_operators` in `src/backend/parser/parse_oper.c`, PostgreSQL 18.
fn check_operator(catalog: &Catalog, ty: Oid, kind: &str) -> Result<()> {
    let (base, _) = catalog.base_type(ty, -1);
    let is_base = catalog.type_row(base).is_some_and(|row| row.kind == b'b' && !row.is_array());
    if !is_base || catalog.operators("=").iter().any(|row| row.left == base && row.right == base) {
        return Ok(());
    }
    let name = catalog.type_name(ty);
    let message = format!("could not identify {kind} operator for type {name}");
    let error = StatementError::new(SqlState::UNDEFINED_FUNCTION, message);
    Err(match kind {
        "an ordering" => {
            error.with_hint("Use an explicit ordering operator or modify the query.").into()
        }
        _ => error.into(),
    })
}

/// Refuses a type whose `=` the session's role may not call: groups are told apart by it.
fn check_equality(catalog: &Arc<Catalog>, ty: Oid) -> Result<()> {
    if catalog.role().is_none() {
        return Ok(());
    }
    match resolve::operator(catalog, "=", Some(ty), ty) {
        Err(Error::Statement(error)) if error.state == SqlState::DENIED => Err(error.into()),
        _ => Ok(()),
    }
}

/// True where a value is its own key, so that of equal ones any will do.
pub(crate) fn is_own_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<bool> {
    Ok(equality_key(catalog, typed)? == typed.expr)
}

/// True for a row of which all fields are so: equal ones look alike, whatever their bytes.
pub(crate) fn is_plain_row(catalog: &Arc<Catalog>, typed: &Typed) -> Result<bool> {
    match class(catalog, typed.ty.oid) {
        Class::Row => row_keys::has_plain_fields(catalog, typed),
        _ => Ok(false),
    }
}

/// Keys of two values by which their order is told.
pub(crate) fn order_pair(catalog: &Arc<Catalog>, a: &Typed, b: &Typed) -> Result<(Expr, Expr)> {
    match are_rows(catalog, a, b) {
        true => row_keys::pair(catalog, [a, b], Asked::Order),
        false => pair(catalog, a, b, order_key),
    }
}

/// Two expressions that are in the order of two values, for one comparison: their keys, or for texts in a locale what the library
/// says of both, and 0.
pub(crate) fn ordered(catalog: &Arc<Catalog>, a: &Typed, b: &Typed) -> Result<(Expr, Expr)> {
    let (Some(mut x), Some(mut y)) = (as_compared(catalog, a)?, as_compared(catalog, b)?) else {
        return order_pair(catalog, a, b);
    };
    let collation = common_collation(catalog, a, b)?;
    if sorts_by_bytes(catalog, collation) {
        return order_pair(catalog, a, b);
    }
    (x.ty.collation, y.ty.collation) = (collation, collation);
    Ok((collations::order(catalog, &x, &y)?, lit(0)))
}

/// A text as it is compared; `None` for what is none.
fn as_compared(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Option<Typed>> {
    Ok(match class(catalog, typed.ty.oid) {
        Class::Text => Some(typed.clone()),
        Class::PaddedText => Some(without_padding(catalog, typed)),
        Class::Extension(TypeOrder::Caseless) => Some(lowered(catalog, typed)?),
        _ => None,
    })
}

/// A text in a collation that is not one of bytes, as it is compared, and what compares it.
pub(crate) fn collated(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Option<(Expr, Collator)>> {
    let Some(text) = as_compared(catalog, typed)? else { return Ok(None) };
    match sorts_by_bytes(catalog, typed.ty.collation) {
        true => Ok(None),
        false => Ok(Some((text.expr, collations::collator(catalog, typed.ty.collation)?))),
    }
}

/// Keys of two values by which they are equal or not.
pub(crate) fn equality_pair(catalog: &Arc<Catalog>, a: &Typed, b: &Typed) -> Result<(Expr, Expr)> {
    match are_rows(catalog, a, b) {
        true => row_keys::pair(catalog, [a, b], Asked::Equality),
        false => pair(catalog, a, b, equality_key),
    }
}

fn are_rows(catalog: &Catalog, a: &Typed, b: &Typed) -> bool {
    [a, b].into_iter().all(|typed| is_of_rows(catalog, typed.ty.oid))
}

fn pair(
    catalog: &Arc<Catalog>,
    a: &Typed,
    b: &Typed,
    key: fn(&Arc<Catalog>, &Typed) -> Result<Expr>,
) -> Result<(Expr, Expr)> {
    match (class(catalog, a.ty.oid), class(catalog, b.ty.oid)) {
        (Class::Carrier, Class::Carrier) => Ok(same_length(a, b)),
        (Class::Numeric, Class::Numeric) => Ok(numeric::comparable(catalog, a, b)),
        (Class::Float, Class::Float) if a.carrier != b.carrier => {
            let wide = |typed: &Typed| {
                Typed::new(cast(typed.expr.clone(), DataType::Float64), typed.ty, DataType::Float64)
            };
            Ok((float_key(catalog, &wide(a)), float_key(catalog, &wide(b))))
        }
        (Class::Text | Class::PaddedText, Class::Text | Class::PaddedText)
        | (Class::Array, Class::Array)
        | (Class::Extension(TypeOrder::Caseless), Class::Extension(TypeOrder::Caseless)) => {
            let collation = common_collation(catalog, a, b)?;
            let with = |typed: &Typed| {
                let mut typed = typed.clone();
                typed.ty.collation = collation;
                typed
            };
            Ok((key(catalog, &with(a))?, key(catalog, &with(b))?))
        }
        _ => Ok((key(catalog, a)?, key(catalog, b)?)),
    }
}

/// The collation of two texts: one that COLLATE names wins, then one that is not the default.
fn common_collation(catalog: &Catalog, a: &Typed, b: &Typed) -> Result<Oid> {
    if let Some(named) = named_collation(catalog, &[a.clone(), b.clone()])? {
        return Ok(named);
    }
    match (a.ty.collation, b.ty.collation) {
        (x, y) if x == y => Ok(x),
        (x, Oid(0) | DEFAULT_COLLATION) => Ok(x),
        (Oid(0) | DEFAULT_COLLATION, y) => Ok(y),
        _ => Err(StatementError::new(
            SqlState::INDETERMINATE_COLLATION,
            "could not determine which collation to use for string comparison",
        )
        .with_hint("Use the COLLATE clause to set the collation explicitly.")
        .into()),
    }
}

fn text_order_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Expr> {
    match sorts_by_bytes(catalog, typed.ty.collation) {
        true => Ok(typed.expr.clone()),
        false => collations::order_key(catalog, typed),
    }
}

fn text_equality_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Expr> {
    let row = catalog.collation(typed.ty.collation);
    match row.is_none_or(|row| row.is_deterministic) {
        true => Ok(typed.expr.clone()),
        false => {
            let name = collations::shown(catalog, typed.ty.collation);
            unsupported(format!("equality in the nondeterministic collation {name}"))
        }
    }
}

/// True for a collation that sorts by the bytes of UTF-8, or is to be taken for one.
pub(crate) fn sorts_by_bytes(catalog: &Catalog, collation: Oid) -> bool {
    is_by_bytes(catalog, collation) || collations::is_taken_for_bytes(catalog, collation)
}

/// True for a collation that is known to sort by the bytes of UTF-8.
pub(crate) fn is_by_bytes(catalog: &Catalog, collation: Oid) -> bool {
    match collation {
        Oid(0) | C_COLLATION | POSIX_COLLATION => true,
        other => catalog.collation(other).is_some_and(|row: &CollationRow| {
            row.is_deterministic && is_by_code_points(row.provider, &row.locale)
        }),
    }
}

/// Builtin locales sort by code points; of the C library only those that are told to.
fn is_by_code_points(provider: u8, locale: &str) -> bool {
    match provider {
        b'b' => true,
        b'c' => matches!(locale, "C" | "POSIX" | "C.UTF-8" | "C.utf8"),
        _ => false,
    }
}

fn without_padding(catalog: &Arc<Catalog>, typed: &Typed) -> Typed {
    call_kernel(
        catalog,
        ("rtrim1", trim_blanks),
        std::slice::from_ref(typed),
        typed.ty.with_modifier(-1),
        DataType::Utf8,
    )
}

/// Texts without the blanks at their end.
pub(crate) fn trim_blanks(
    _: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    let texts = strings(&arguments[0]);
    let trimmed: StringArray =
        texts.iter().map(|text| text.map(|text| text.trim_end_matches(' '))).collect();
    Ok(Arc::new(trimmed))
}

/// A column of texts.
pub(crate) fn strings(array: &ArrayRef) -> &StringArray {
    array.as_any().downcast_ref().expect("a text is carried as UTF-8") // infallible: types were settled
}

/// A column of payloads.
pub(crate) fn payloads(array: &ArrayRef) -> &BinaryArray {
    array.as_any().downcast_ref().expect("a payload is carried as bytes") // infallible: types were settled
}

fn float_key(catalog: &Arc<Catalog>, typed: &Typed) -> Expr {
    let carrier = typed.carrier.clone();
    call_kernel(catalog, ("float_key", one_zero), std::slice::from_ref(typed), typed.ty, carrier)
        .expr
}

fn one_zero(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    Ok(match arguments[0].data_type() {
        DataType::Float32 => {
            let of = |x: f32| if x.is_nan() { f32::NAN } else { x + 0.0 };
            Arc::new(numbers::<Float32Type>(&arguments[0]).unary::<_, Float32Type>(of)) as ArrayRef
        }
        _ => {
            let of = |x: f64| if x.is_nan() { f64::NAN } else { x + 0.0 };
            Arc::new(numbers::<Float64Type>(&arguments[0]).unary::<_, Float64Type>(of))
        }
    })
}

/// The same value, as what may be NULL.
pub(crate) fn unchanged(catalog: &Arc<Catalog>, typed: &Typed) -> Expr {
    let carrier = typed.carrier.clone();
    let same = |_: &KernelCall, arguments: &[ArrayRef]| Ok(arguments[0].clone());
    call_kernel(catalog, ("unchanged", same), std::slice::from_ref(typed), typed.ty, carrier).expr
}

/// The one value of two, or an error where they are not the same to the last bit.
pub(crate) fn alike(catalog: &Arc<Catalog>, pair: &[Typed; 2]) -> Typed {
    let carrier = pair[0].carrier.clone();
    call_kernel(catalog, ("alike", same_bits), pair, pair[0].ty, carrier)
}

fn same_bits(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    if let DataType::Struct(_) = arguments[0].data_type() {
        return same_rows(&arguments[0], &arguments[1]);
    }
    let differ = arrow::compute::kernels::cmp::distinct(&arguments[0], &arguments[1])
        .map_err(|error| StatementError::unsupported(error.to_string()))?;
    match differ.true_count() {
        0 => Ok(arguments[0].clone()),
        _ => Err(looks_different()),
    }
}

#[cold]
fn looks_different() -> StatementError {
    StatementError::unsupported(
        "a UNION, INTERSECT or EXCEPT of values that are equal and look different",
    )
}

fn same_rows(a: &ArrayRef, b: &ArrayRef) -> Result<ArrayRef, StatementError> {
    let compare = make_comparator(a, b, SortOptions::default())
        .map_err(|error| StatementError::unsupported(error.to_string()))?;
    match (0..a.len()).all(|row| compare(row, row).is_eq()) {
        true => Ok(a.clone()),
        false => Err(looks_different()),
    }
}

fn interval_key(catalog: &Arc<Catalog>, typed: &Typed) -> Expr {
    let arguments = std::slice::from_ref(typed);
    call_kernel(catalog, ("interval_key", interval_lengths), arguments, typed.ty, DataType::Binary)
        .expr
}

/// The microseconds of an interval, in bytes that sort as they do.
fn interval_lengths(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    const DAY: i128 = 86_400_000_000;
    let values = payloads(&arguments[0]);
    let mut keys = BinaryBuilder::with_capacity(values.len(), values.len() * 16);
    for value in values {
        let Some(&bytes) = value.and_then(|value| value.first_chunk::<16>()).as_ref() else {
            keys.append_null();
            continue;
        };
        let micros = i64::from_le_bytes(*bytes.first_chunk().expect("16 bytes")); // infallible: 16 bytes
        let days = i32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        let months = i32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        let length = i128::from(micros) + (i128::from(months) * 30 + i128::from(days)) * DAY;
        keys.append_value((length as u128 ^ (1 << 127)).to_be_bytes());
    }
    Ok(Arc::new(keys.finish()))
}

/// TIDs in bytes that sort as they do: the block, then the line pointer, the highest byte of each first.
fn tid_bytes(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let values = payloads(&arguments[0]);
    let mut keys = BinaryBuilder::with_capacity(values.len(), values.len() * 6);
    for value in values {
        match value.and_then(|value| value.first_chunk::<6>()) {
            Some([a, b, c, d, e, f]) => keys.append_value([b, a, d, c, f, e].map(|byte| *byte)),
            None => keys.append_null(),
        }
    }
    Ok(Arc::new(keys.finish()))
}

/// Addresses in bytes that sort as they do.
fn address_order(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    one(arguments, super::addresses::order_key)
}

/// Positions in the write-ahead log in bytes that sort as they do.
fn position_order(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    one(arguments, super::log_positions::order_key)
}

/// Times with zones in bytes that sort as they do.
fn zoned_order(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    one(arguments, super::datetime::zoned_times::order_key)
}

/// Vectors of OIDs in bytes that sort as they do.
fn vector_order(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    one(arguments, |payload: &[u8]| Ok(super::object_numbers::vector_order_key(payload)))
}

/// Bits in bytes that sort as they do.
fn bits_order(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let mut keys = BinaryBuilder::new();
    for value in payloads(&arguments[0]) {
        keys.append_option(value.map(super::bit_strings::order_key));
    }
    Ok(Arc::new(keys.finish()))
}
