//! `=`, `<>`, `<`, `<=`, `>`, `>=`: comparisons of the query engine over what carries the values, or over keys whose order
//! is PostgreSQL's where the carrier's is not.
//!
//! So filters, joins and sorts of the engine work on them as on its own.
//!
//! Source: the functions of the operator classes of `src/include/catalog/pg_amop.dat`, PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit};
use pagemill_format::Oid;

use super::{Build, Implementation, keys, row_keys};
use crate::coerce::named_collation;
use crate::error::{Result, unsupported};
use crate::typed::Typed;
use crate::types::{C_COLLATION, DEFAULT_COLLATION, POSIX_COLLATION};

/// Types whose comparison functions are `NAMEeq`, `NAMElt` …, and whose carriers or keys compare as they do.
const FAMILIES: [&str; 48] = [
    "jsonb_",
    "array_",
    "bit",
    "bool",
    "bpchar",
    "bytea",
    "cash_",
    "char",
    "cid",
    "date_",
    "enum_",
    "float4",
    "float48",
    "float8",
    "float84",
    "int2",
    "int24",
    "int28",
    "int4",
    "int42",
    "int48",
    "int8",
    "int82",
    "int84",
    "interval_",
    "multirange_",
    "name",
    "numeric_",
    "oid",
    "range_",
    "record_",
    "text",
    "text_",
    "tid",
    "time_",
    "timestamp_",
    "timestamptz_",
    "timetz_",
    "tsquery_",
    "tsvector_",
    "uuid_",
    "varbit",
    "xid",
    "xid8",
    "macaddr_",
    "macaddr8_",
    "network_",
    "pg_lsn_",
];

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if matches!(key, "xideqint4" | "xidneqint4") {
        return Some(Implementation::Build(transaction_by_number));
    }
    if name_order(key).is_some() {
        return Some(Implementation::Build(name_by_text));
    }
    operator_of(key).map(|_| Implementation::Build(compared))
}

fn operator_of(key: &str) -> Option<Operator> {
    const SUFFIXES: [(&str, Operator); 6] = [
        ("eq", Operator::Eq),
        ("ne", Operator::NotEq),
        ("lt", Operator::Lt),
        ("le", Operator::LtEq),
        ("gt", Operator::Gt),
        ("ge", Operator::GtEq),
    ];
    // timestamptz is compared by the functions of timestamp, and bool also by longer names.
    let key = match key {
        "nameeqtext" | "texteqname" => "texteq",
        "namenetext" | "textnename" => "textne",
        "xidneq" => "xidne",
        key => key,
    };
    SUFFIXES.iter().find_map(|(suffix, operator)| {
        let family = key.strip_suffix(suffix)?;
        FAMILIES.contains(&family).then_some(*operator)
    })
}

/// The number of a transaction beside an integer, which below 0 stands for one of the upper half.
fn transaction_by_number(build: &Build<'_>) -> Result<Typed> {
    let wide = |typed: &Typed| cast(typed.expr.clone(), DataType::Int64);
    let number = wide(&build.arguments[1]);
    let number = binary_expr(number, Operator::BitwiseAnd, lit(i64::from(u32::MAX)));
    let operator = if build.key == "xideqint4" { Operator::Eq } else { Operator::NotEq };
    Ok(build.done(binary_expr(wide(&build.arguments[0]), operator, number), DataType::Boolean))
}

/// The order of a name and a text.
fn name_order(key: &str) -> Option<Operator> {
    Some(match key {
        "namelttext" | "textltname" => Operator::Lt,
        "nameletext" | "textlename" => Operator::LtEq,
        "namegttext" | "textgtname" => Operator::Gt,
        "namegetext" | "textgename" => Operator::GtEq,
        _ => return None,
    })
}

/// A name's collation is C, and counts for a text without one of its own, unless COLLATE names one.
fn name_by_text(build: &Build<'_>) -> Result<Typed> {
    let operator = name_order(build.key).expect("only these come here"); // infallible: by find
    if named_collation(build.catalog, build.arguments)?.is_some() {
        let (left, right) = keys::ordered(build.catalog, &build.arguments[0], &build.arguments[1])?;
        return Ok(build.done(binary_expr(left, operator, right), DataType::Boolean));
    }
    let has_own = |typed: &Typed| {
        let none = [Oid(0), DEFAULT_COLLATION, C_COLLATION, POSIX_COLLATION];
        !none.contains(&typed.ty.collation)
    };
    if build.arguments.iter().any(has_own) {
        return unsupported("the order of a name and a text with a collation");
    }
    let [left, right] = [0, 1].map(|place: usize| build.arguments[place].expr.clone());
    Ok(build.done(binary_expr(left, operator, right), DataType::Boolean))
}

fn compared(build: &Build<'_>) -> Result<Typed> {
    let operator = operator_of(build.key).expect("only comparisons come here"); // infallible: by find
    if build.key.starts_with("record_") {
        return row_keys::compared(build, operator);
    }
    let is_order = !matches!(operator, Operator::Eq | Operator::NotEq);
    let (left, right) = match is_order {
        true => keys::ordered(build.catalog, &build.arguments[0], &build.arguments[1])?,
        false => keys::equality_pair(build.catalog, &build.arguments[0], &build.arguments[1])?,
    };
    Ok(build.done(binary_expr(left, operator, right), DataType::Boolean))
}

/// Both as integers of 64 bits, where they differ in length.
pub(crate) fn same_length(left: &Typed, right: &Typed) -> (Expr, Expr) {
    if left.carrier == right.carrier {
        return (left.expr.clone(), right.expr.clone());
    }
    let wide = |typed: &Typed| cast(typed.expr.clone(), DataType::Int64);
    (wide(left), wide(right))
}
