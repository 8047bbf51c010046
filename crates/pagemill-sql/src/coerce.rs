//! From one type to another, and from a chosen function to the expression that computes it.
//!
//! Source: `coerce_type` and `coerce_type_typmod` in `src/backend/parser/parse_coerce.c`, PostgreSQL 18.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, lit};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use crate::catalog::{CastContext, Catalog, FunctionRow, TypeRow};
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::functions::arrays::each::{ELEMENT, Each, Fold};
use crate::functions::arrays::value::ElementType;
use crate::functions::row_casts::row_of_type;
use crate::functions::row_forms::{json_of_row, text_of_row};
use crate::functions::row_payloads::taken_apart;
use crate::functions::{Build, Implementation, call_kernel, extensions, implementation, text_form};
use crate::resolve::{Chosen, Pathway, pathway};
use crate::typed::Typed;
use crate::types::{DEFAULT_COLLATION, PgType, RECORD, RECORDS, UNKNOWN, carrier};

/// What carries values of a type of this database.
pub(crate) fn carrier_of(catalog: &Catalog, ty: PgType) -> DataType {
    let (base, modifier) = catalog.base_type(ty.oid, ty.modifier);
    match catalog.type_row(base) {
        Some(row) if row.kind == b'e' => DataType::Int32,
        Some(row) if row.is_like_text => DataType::Utf8,
        _ => carrier(base, modifier),
    }
}

/// A NULL of a type.
pub(crate) fn null_of(catalog: &Catalog, ty: PgType) -> Result<Typed> {
    let carrier = carrier_of(catalog, ty);
    let null = ScalarValue::try_from(&carrier)?;
    Ok(Typed::new(Expr::Literal(null, None), ty, carrier))
}

/// A constant of a type, by its text.
pub(crate) fn constant(catalog: &Catalog, ty: PgType, text: &str) -> Result<Typed> {
    let carrier = carrier_of(catalog, ty);
    let value = text_form::read(catalog, ty, &carrier, text)?;
    Ok(Typed::new(Expr::Literal(value, None), ty, carrier))
}

/// The same value as one of another type.
///
/// # Errors
/// When the context has no cast for it, a literal is no value of the type, or the cast is not known here.
pub(crate) fn coerce(
    catalog: &Arc<Catalog>,
    typed: Typed,
    target: PgType,
    context: CastContext,
) -> Result<Typed> {
    if typed.is_row() && typed.ty.oid != target.oid {
        let category = catalog.type_row(target.oid).map(|row| row.category);
        return match (target.oid, category) {
            (RECORD, _) => Ok(Typed { ty: target, ..typed }),
            (_, Some(b'S')) if context >= CastContext::Assignment && typed.row.is_some() => {
                coerce(catalog, text_of_row(catalog, &typed), target, context)
            }
            _ if typed.ty.oid == RECORD => row_of_type(catalog, &typed, target, context),
            _ => unsupported("a cast of a row"),
        };
    }
    if let Some(undecided) = &typed.parameter {
        let decided = undecided.decide(catalog, target.oid)?;
        return fit(catalog, decided, target, context);
    }
    // A literal of a domain is one of the type under it first, which is fitted as any other.
    if matches!(&typed.literal, Some(Some(_)))
        && let Some(row) = catalog.type_row(target.oid).filter(|row| row.kind == b'd')
    {
        return of_domain(catalog, typed, row, context);
    }
    if let Some(text) = &typed.literal {
        // A literal is read as its type has it, then fitted to the modifier; only an interval's says how it is read.
        let first = if target.oid == oid::INTERVAL { target } else { target.with_modifier(-1) };
        return match text {
            Some(_) if target.oid == RECORD => {
                let message = "input of anonymous composite types is not implemented";
                Err(StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message).into())
            }
            Some(text) => {
                let made = constant(catalog, first, text)?;
                fit(catalog, as_collated(made, &typed), target, context)
            }
            None => {
                text_form::check_null(catalog, target)?;
                Ok(as_collated(null_of(catalog, target)?, &typed))
            }
        };
    }
    let is_text = || catalog.type_row(target.oid).is_some_and(|row| row.category == b'S');
    if typed.ty.oid == RECORDS && target.oid != RECORDS && !is_text() {
        return unsupported("a cast of an array of records");
    }
    let converted = convert(catalog, typed, target, context)?;
    fit(catalog, converted, target, context)
}

/// A literal with the collation that was said of it, where its type has one.
fn as_collated(mut made: Typed, literal: &Typed) -> Typed {
    if literal.is_collated && made.ty.collation != Oid(0) {
        made.ty.collation = literal.ty.collation;
        made.is_collated = true;
    }
    made
}

fn convert(
    catalog: &Arc<Catalog>,
    typed: Typed,
    target: PgType,
    context: CastContext,
) -> Result<Typed> {
    if typed.ty.oid == target.oid {
        return Ok(typed);
    }
    if let Some(row) = catalog.type_row(target.oid).filter(|row| row.kind == b'd') {
        return of_domain(catalog, with_base_type(catalog, typed), row, context);
    }
    let Some(way) = pathway(catalog, typed.ty.oid, target.oid, context) else {
        let base = catalog.base_type(typed.ty.oid, -1).0;
        if target.oid == RECORD && catalog.type_row(base).is_some_and(|row| row.kind == b'c') {
            let row = taken_apart(catalog, typed)?;
            return match row.is_row() {
                true => Ok(Typed { ty: PgType::new(RECORD), ..row }),
                false => unsupported("a stored row as a record"),
            };
        }
        let (from, to) = (catalog.type_name(typed.ty.oid), catalog.type_name(target.oid));
        let message = format!("cannot cast type {from} to {to}");
        return Err(StatementError::new(SqlState::CANNOT_COERCE, message).into());
    };
    let (plain, own) = (collated(catalog, target.oid), typed.ty.collation);
    let is_collated = typed.is_collated;
    let mut made = match way {
        Pathway::Relabel => relabel(catalog, typed, plain),
        Pathway::Text => text_form::cast(catalog, typed, plain),
        Pathway::Elements => each_element(catalog, typed, target, context),
        Pathway::Function(function) => {
            let function = catalog.function(function).ok_or_else(|| {
                StatementError::new(SqlState::UNDEFINED_FUNCTION, "a cast has no function")
            })?;
            let typed = with_base_type(catalog, typed);
            let arguments = cast_arguments(function, typed, target.modifier, context);
            let own = PgType::new(function.result);
            // An integer of two bytes becomes an OID by way of one of four.
            match (carrier_of(catalog, own), carrier_of(catalog, plain)) {
                (DataType::Int32, DataType::UInt32) => {
                    relabel(catalog, call(catalog, function, arguments, own)?, plain)
                }
                _ => call(catalog, function, arguments, plain),
            }
        }
    }?;
    // A value keeps its own from type to type.
    if made.ty.collation != Oid(0) && own != Oid(0) {
        made.ty.collation = own;
        made.is_collated = is_collated;
    }
    Ok(made)
}

/// A value of the type under a domain, of its length, that the domain accepts.
///
/// Source: `coerce_type` and `coerce_to_domain` in `src/backend/parser/parse_coerce.c`, PostgreSQL 18.
fn of_domain(
    catalog: &Arc<Catalog>,
    typed: Typed,
    domain: &TypeRow,
    context: CastContext,
) -> Result<Typed> {
    let (base, modifier) = catalog.base_type(domain.oid, -1);
    let wanted = PgType::new(base).with_modifier(modifier);
    let typed = coerce(catalog, typed, wanted, context)?;
    let ty = PgType { collation: domain.collation, ..PgType::new(domain.oid) };
    text_form::accepted(catalog, typed, ty)
}

/// Casts take the value, then perhaps the modifier, then perhaps whether it was asked for.
fn cast_arguments(
    function: &FunctionRow,
    typed: Typed,
    modifier: i32,
    context: CastContext,
) -> Vec<Typed> {
    let is_explicit = context == CastContext::Explicit;
    let modifier = Typed::new(lit(modifier), PgType::new(oid::INT4), DataType::Int32);
    let explicit = Typed::new(lit(is_explicit), PgType::new(oid::BOOL), DataType::Boolean);
    let mut arguments = vec![typed, modifier, explicit];
    arguments.truncate(function.arguments.len());
    arguments
}

/// A value of a domain as one of the type under it.
pub(crate) fn with_base_type(catalog: &Catalog, mut typed: Typed) -> Typed {
    let (base, modifier) = catalog.base_type(typed.ty.oid, typed.ty.modifier);
    typed.ty.oid = base;
    typed.ty.modifier = modifier;
    typed
}

/// Another name for the same bytes.
fn relabel(catalog: &Arc<Catalog>, typed: Typed, target: PgType) -> Result<Typed> {
    let wanted = carrier_of(catalog, target);
    let collation = if target.collation == Oid(0) { Oid(0) } else { typed.ty.collation };
    let collation = if collation == Oid(0) { target.collation } else { collation };
    let ty = PgType { collation, ..target };
    let is_numeric = catalog.base_type(target.oid, -1).0 == oid::NUMERIC;
    if typed.carrier == wanted || is_numeric {
        return Ok(Typed { ty, ..typed });
    }
    text_form::same_bits(catalog, typed, ty, wanted)
}

/// Cut, rounded or padded to the modifier, or refused for its length.
fn fit(
    catalog: &Arc<Catalog>,
    typed: Typed,
    target: PgType,
    context: CastContext,
) -> Result<Typed> {
    let (base, modifier) = catalog.base_type(target.oid, target.modifier);
    let is_array = catalog.type_row(base).is_some_and(TypeRow::is_array);
    if is_array && modifier >= 0 && typed.ty.modifier != modifier {
        return each_element(catalog, typed, PgType { modifier, ..target }, context);
    }
    let own = catalog.base_type(typed.ty.oid, typed.ty.modifier).1;
    if modifier < 0 || own == modifier {
        return Ok(Typed { ty: PgType { modifier: target.modifier, ..typed.ty }, ..typed });
    }
    let Some(cast) = catalog.cast(base, base) else { return Ok(typed) };
    let function = catalog.function(cast.function).ok_or_else(|| {
        StatementError::new(SqlState::UNDEFINED_FUNCTION, "a cast to a length has no function")
    })?;
    let collation = typed.ty.collation;
    let arguments = cast_arguments(function, typed, modifier, context);
    let result = PgType { oid: base, modifier, collation };
    let mut fitted = call(catalog, function, arguments, result)?;
    fitted.ty.oid = target.oid;
    Ok(fitted)
}

/// An array with each element as one of another type.
fn each_element(
    catalog: &Arc<Catalog>,
    typed: Typed,
    target: PgType,
    context: CastContext,
) -> Result<Typed> {
    let (from, to) =
        (ElementType::of_array(catalog, typed.ty)?, ElementType::of_array(catalog, target)?);
    let column = datafusion::common::Column::new_unqualified(ELEMENT);
    let element = Typed::new(Expr::Column(column), from.ty, from.carrier.clone());
    let of_one = coerce(catalog, element, to.ty, context)?;
    let carrier = typed.carrier.clone();
    let each = Each { of_one, fold: Fold::Array(target), array: typed, subject: None };
    Ok(Typed::new(each.call(catalog)?, target, carrier))
}

/// A call of what overload resolution chose.
///
/// # Errors
/// When an argument cannot be brought to its type, or the function is not known here.
pub(crate) fn call_chosen(
    catalog: &Arc<Catalog>,
    chosen: &Chosen<'_>,
    arguments: Vec<Typed>,
) -> Result<Typed> {
    let arguments = brought(catalog, chosen, arguments)?;
    let result = result_type(catalog, chosen.result, &arguments)?;
    call(catalog, chosen.function, arguments, result)
}

/// An empty int2vector or oidvector has a dimension, as no array made otherwise has: functions of any array tell them apart.
fn refuse_vectors(chosen: &Chosen<'_>, arguments: &[Typed]) -> Result<()> {
    // It has no elements in either form; bounds are told of the dimension that there is.
    const OF_ELEMENTS: [&str; 11] = [
        "array_unnest",
        "generate_subscripts",
        "generate_subscripts_nodir",
        "array_cardinality",
        "array_dims",
        "array_length",
        "array_lower",
        "array_ndims",
        "array_to_text",
        "array_to_text_null",
        "array_upper",
    ];
    if OF_ELEMENTS.contains(&chosen.function.key.as_str()) {
        return Ok(());
    }
    let is_vector = |typed: &Typed| matches!(typed.ty.oid, oid::INT2VECTOR | oid::OIDVECTOR);
    let given = chosen.function.arguments.iter().zip(arguments);
    match given.into_iter().any(|(wanted, typed)| *wanted == oid::ANYARRAY && is_vector(typed)) {
        true => unsupported(format!("{} of a vector of numbers", chosen.function.name)),
        false => Ok(()),
    }
}

/// Arguments as the function declares them.
pub(crate) fn brought(
    catalog: &Arc<Catalog>,
    chosen: &Chosen<'_>,
    arguments: Vec<Typed>,
) -> Result<Vec<Typed>> {
    refuse_vectors(chosen, &arguments)?;
    if arguments.iter().any(|argument| argument.ty.oid == RECORDS) {
        return unsupported(format!(
            "an array of records as an argument of {}",
            chosen.function.name
        ));
    }
    let arguments = rows_as_fields(catalog, chosen, arguments)?;
    if arguments.iter().all(|argument| !argument.is_row()) {
        return brought_with_rows(catalog, chosen, arguments);
    }
    let key = chosen.function.key.as_str();
    let has_lines = match (key, arguments.get(1).map(|second| &second.expr)) {
        ("row_to_json_pretty", Some(Expr::Literal(ScalarValue::Boolean(Some(wanted)), _))) => {
            *wanted
        }
        ("row_to_json_pretty", _) => return unsupported("row_to_json with lines or without"),
        _ => false,
    };
    if TAKE_DOCUMENTS.contains(&key) {
        let bring = |(typed, wanted): (Typed, &Oid)| match typed.is_row() {
            true => Ok(json_of_row(catalog, &typed, has_lines)),
            false => bring(catalog, typed, *wanted),
        };
        return arguments.into_iter().zip(&chosen.arguments).map(bring).collect();
    }
    if TAKE_TEXTS.contains(&key) {
        let bring = |(typed, wanted): (Typed, &Oid)| match typed.is_row() {
            true => Ok(text_of_row(catalog, &typed)),
            false => bring(catalog, typed, *wanted),
        };
        return arguments.into_iter().zip(&chosen.arguments).map(bring).collect();
    }
    if TAKE_ROWS.contains(&key) {
        return brought_with_rows(catalog, chosen, arguments);
    }
    unsupported(format!("a row as an argument of {}", chosen.function.name))
}

/// Stored rows as their fields, where any row is taken.
fn rows_as_fields(
    catalog: &Arc<Catalog>,
    chosen: &Chosen<'_>,
    arguments: Vec<Typed>,
) -> Result<Vec<Typed>> {
    let one = |(at, typed): (usize, Typed)| match chosen.arguments.get(at) {
        Some(&RECORD) => taken_apart(catalog, typed),
        _ => Ok(typed),
    };
    arguments.into_iter().enumerate().map(one).collect()
}

/// Functions that make a document of a row, whatever else of that.
const TAKE_DOCUMENTS: [&str; 8] = [
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "row_to_json",
    "row_to_json_pretty",
    "to_json",
    "to_jsonb",
];
/// Functions to which a row is its text.
const TAKE_TEXTS: [&str; 3] = ["text_concat", "text_concat_ws", "text_format"];
/// Comparisons and aggregates that know rows.
const TAKE_ROWS: [&str; 22] = [
    "array_agg(anynonarray)",
    "count(any)",
    "json_agg(anyelement)",
    "json_agg_strict(anyelement)",
    "json_object_agg(any,any)",
    "json_object_agg_strict(any,any)",
    "json_object_agg_unique(any,any)",
    "json_object_agg_unique_strict(any,any)",
    "jsonb_agg(anyelement)",
    "jsonb_agg_strict(anyelement)",
    "jsonb_object_agg(any,any)",
    "jsonb_object_agg_strict(any,any)",
    "jsonb_object_agg_unique(any,any)",
    "jsonb_object_agg_unique_strict(any,any)",
    "max(record)",
    "min(record)",
    "record_eq",
    "record_ge",
    "record_gt",
    "record_le",
    "record_lt",
    "record_ne",
];

/// The same for a function in SQL, which takes rows as they are.
pub(crate) fn brought_with_rows(
    catalog: &Arc<Catalog>,
    chosen: &Chosen<'_>,
    arguments: Vec<Typed>,
) -> Result<Vec<Typed>> {
    let bring = |(typed, wanted): (Typed, &Oid)| bring(catalog, typed, *wanted);
    let brought = arguments.into_iter().zip(&chosen.arguments).map(bring);
    let mut brought = brought.collect::<Result<Vec<Typed>>>()?;
    // What COLLATE names for one argument is the collation of the call.
    if let Some(named) = named_collation(catalog, &brought)? {
        let texts = brought.iter_mut().filter(|argument| argument.ty.collation != Oid(0));
        texts.for_each(|text| text.ty.collation = named);
    }
    Ok(brought)
}

pub(crate) fn bring(catalog: &Arc<Catalog>, typed: Typed, wanted: Oid) -> Result<Typed> {
    if wanted == UNKNOWN {
        return coerce(catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit);
    }
    let typed = match typed.literal {
        Some(_) => typed,
        None => with_base_of(catalog, typed, wanted),
    };
    coerce(catalog, typed, PgType::new(wanted), CastContext::Implicit)
}

/// True for a type of an extension that is kept as text is, and a domain over one.
pub(crate) fn is_like_text(catalog: &Catalog, ty: Oid) -> bool {
    let (base, _) = catalog.base_type(ty, -1);
    catalog.type_row(base).is_some_and(|row| row.is_like_text)
}

fn with_base_of(catalog: &Catalog, typed: Typed, wanted: Oid) -> Typed {
    match typed.ty.oid == wanted {
        true => typed,
        false => with_base_type(catalog, typed),
    }
}

/// A type without a modifier, with the collation that its values have where nothing else is said.
pub(crate) fn collated(catalog: &Catalog, oid: Oid) -> PgType {
    let plain = PgType::new(oid);
    match catalog.type_row(oid) {
        Some(row) => PgType { collation: row.collation, ..plain },
        None => plain,
    }
}

/// The type of what is made of several, with their collation if any has one, and else its own.
pub(crate) fn result_type(catalog: &Catalog, oid: Oid, parts: &[Typed]) -> Result<PgType> {
    let own = collated(catalog, oid);
    match own.collation != Oid(0) && parts.iter().any(|part| part.ty.collation != Oid(0)) {
        true => Ok(PgType { collation: result_collation(catalog, parts)?, ..own }),
        false => Ok(own),
    }
}

/// The collation of what is made of several: one that COLLATE names, else one that a part brings and that is not the default, else
/// the default. Of two others neither is taken: the server says so as soon as it matters, and here it is refused at once.
pub(crate) fn result_collation(catalog: &Catalog, parts: &[Typed]) -> Result<Oid> {
    if let Some(named) = named_collation(catalog, parts)? {
        return Ok(named);
    }
    let mut found = DEFAULT_COLLATION;
    for part in parts {
        match part.ty.collation {
            Oid(0) | DEFAULT_COLLATION => {}
            own if found == DEFAULT_COLLATION || found == own => found = own,
            _ => return unsupported("an expression over texts of several collations"),
        }
    }
    Ok(found)
}

/// The collation that COLLATE names for one of several, or for more than one.
///
/// # Errors
/// Of two different ones.
pub(crate) fn named_collation(catalog: &Catalog, parts: &[Typed]) -> Result<Option<Oid>> {
    let mut named = parts.iter().filter(|part| part.is_collated).map(|part| part.ty.collation);
    let Some(first) = named.next() else { return Ok(None) };
    let Some(other) = named.find(|other| *other != first) else { return Ok(Some(first)) };
    let [first, other] = [first, other].map(|oid| {
        catalog.collation(oid).map_or_else(|| oid.0.to_string(), |row| row.name.clone())
    });
    let message =
        format!("collation mismatch between explicit collations \"{first}\" and \"{other}\"");
    Err(StatementError::new(SqlState::COLLATION_MISMATCH, message).into())
}

/// A call of a function with arguments of its types.
fn call(
    catalog: &Arc<Catalog>,
    function: &FunctionRow,
    arguments: Vec<Typed>,
    result: PgType,
) -> Result<Typed> {
    catalog.check_function(function)?;
    let key = function.key.as_str();
    if extensions::limit_setting(key).is_some() {
        return unsupported(format!("function {} in this place", signature(catalog, function)));
    }
    let known = implementation(key).filter(|_| !function.returns_set && function.kind == b'f');
    match known {
        Some(Implementation::Build(build)) => {
            let mut typed = build(&Build { catalog, key, arguments: &arguments, result })?;
            if typed.ty.oid == result.oid && typed.ty.modifier < 0 {
                typed.ty.modifier = result.modifier;
            }
            Ok(typed)
        }
        Some(Implementation::Kernel(kernel)) => {
            let carrier = carrier_of(catalog, result);
            Ok(call_kernel(catalog, (key, kernel), &arguments, result, carrier))
        }
        None => unsupported(format!("function {}", signature(catalog, function))),
    }
}

/// A function as messages name it.
pub(crate) fn signature(catalog: &Catalog, function: &FunctionRow) -> String {
    let types: Vec<String> = function.arguments.iter().map(|oid| catalog.type_name(*oid)).collect();
    format!("{}({})", function.name, types.join(", "))
}
