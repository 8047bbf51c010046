//! Arrays: `ARRAY[…]`, subscripts and slices, `x < ANY (array)`.
//!
//! Source: `transformArrayExpr` in `src/backend/parser/parse_expr.c`, `array_subscript_transform` in
//! `src/backend/utils/adt/arraysubs.c`, `make_scalar_array_op` in `parse_oper.c`, PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, lit};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{AccessExpr, Expr as Syntax, Ident, Subscript};

use super::Binder;
use crate::catalog::{CastContext, TypeRow};
use crate::coerce::{carrier_of, coerce, result_type};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::arrays::each::{ELEMENT, Each, Fold, SUBJECT};
use crate::functions::arrays::{made, subscripts};
use crate::functions::extensions::is_hstore;
use crate::functions::logic::json_scalars;
use crate::functions::row_forms::{shown_row, text_of_row};
use crate::resolve;
use crate::typed::Typed;
use crate::types::{PgType, RECORD, RECORDS, UNKNOWN};

/// The most subscripts: `MAXDIM` in `src/include/c.h`.
const MOST_SUBSCRIPTS: usize = 6;

impl Binder<'_> {
    pub(super) fn array_row(&self, ty: Oid) -> Option<&TypeRow> {
        let base = self.catalog.base_type(ty, -1).0;
        self.catalog.type_row(base).filter(|row| row.is_array())
    }

    /// `ARRAY[…]`. A cast right behind it says of what type its elements are to be made.
    pub(super) fn array_of(&mut self, list: &[Syntax], wanted: Option<PgType>) -> Result<Typed> {
        let wanted = wanted.filter(|ty| self.array_row(ty.oid).is_some());
        let parts = list.iter().map(|part| match part {
            Syntax::Array(array) => self.array_of(&array.elem, wanted),
            other => self.expr(other),
        });
        let parts = parts.collect::<Result<Vec<Typed>>>()?;
        if wanted.is_none() && parts.iter().any(Typed::is_row) {
            return self.array_of_rows(parts);
        }
        if parts.is_empty() && wanted.is_none() {
            let error =
                StatementError::new(SqlState("42P18"), "cannot determine type of empty array");
            let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
            return Err(error.with_hint(hint).into());
        }
        let written = list.iter().any(|part| matches!(part, Syntax::Array(_)));
        let (result, of_parts, nested) = self.array_types(&parts, wanted, written)?;
        let context = match wanted {
            Some(_) => CastContext::Explicit,
            None => CastContext::Implicit,
        };
        let bring = |part: Typed| {
            let way = resolve::pathway(&self.catalog, part.ty.oid, of_parts.oid, context);
            let is_open = part.literal.is_some() || part.is_row();
            if !is_open && part.ty.oid != of_parts.oid && way.is_none() {
                let name = |oid| self.catalog.type_name(oid);
                let (from, to) = (name(part.ty.oid), name(of_parts.oid));
                let message = format!("ARRAY could not convert type {from} to {to}");
                return fail(SqlState::CANNOT_COERCE, message);
            }
            let part = coerce(&self.catalog, part, of_parts, context)?;
            Ok(if part.is_row() { shown_row(&self.catalog, &part) } else { part })
        };
        let parts = parts.into_iter().map(bring).collect::<Result<Vec<Typed>>>()?;
        if parts.is_empty() {
            return crate::coerce::constant(&self.catalog, result, "{}");
        }
        let result = PgType {
            collation: result_type(&self.catalog, result.oid, &parts)?.collation,
            ..result
        };
        Ok(made::array(&self.catalog, &parts, result, nested))
    }

    /// `ARRAY[row, …]`: rows of one type as they are stored, or records, which have none, as their texts.
    fn array_of_rows(&mut self, parts: Vec<Typed>) -> Result<Typed> {
        let is_record = |part: &Typed| part.ty.oid == RECORD;
        let are_records = parts.iter().any(is_record);
        let is_null = |part: &Typed| part.literal == Some(None);
        if are_records && !parts.iter().all(|part| is_record(part) || is_null(part)) {
            return unsupported("an array of records beside other values");
        }
        let as_element = |part: Typed| match (part.is_row(), are_records) {
            (false, _) => part,
            (true, false) => shown_row(&self.catalog, &part),
            (true, true) => text_of_row(&self.catalog, &part),
        };
        let parts: Vec<Typed> = parts.into_iter().map(as_element).collect();
        let (result, of_parts, nested) = self.array_types(&parts, None, false)?;
        let bring = |part| coerce(&self.catalog, part, of_parts, CastContext::Implicit);
        let parts = parts.into_iter().map(bring).collect::<Result<Vec<Typed>>>()?;
        let array = made::array(&self.catalog, &parts, result, nested);
        Ok(if are_records { Typed { ty: PgType::new(RECORDS), ..array } } else { array })
    }

    /// The type of the array, that of its parts, and whether these are arrays.
    pub(super) fn array_types(
        &self,
        parts: &[Typed],
        wanted: Option<PgType>,
        written: bool,
    ) -> Result<(PgType, PgType, bool)> {
        if let Some(wanted) = wanted {
            let (base, modifier) = self.catalog.base_type(wanted.oid, wanted.modifier);
            let array = PgType::new(base).with_modifier(modifier);
            let nested = written || parts.iter().any(|part| self.array_row(part.ty.oid).is_some());
            let element = self.array_row(base).map_or(UNKNOWN, |row| row.element);
            let element = PgType::new(element).with_modifier(modifier);
            return Ok((array, if nested { array } else { element }, nested));
        }
        let oids: Vec<Oid> = parts.iter().map(|part| part.ty.oid).collect();
        let common = resolve::common_type_of(&self.catalog, &oids, "ARRAY")?;
        // Arrays of these have another type than arrays of their elements.
        if matches!(common, oid::INT2VECTOR | oid::OIDVECTOR) {
            return unsupported("ARRAY of int2vector or oidvector");
        }
        if self.array_row(common).is_some() {
            return Ok((PgType::new(common), PgType::new(common), true));
        }
        let array = self.catalog.type_row(common).map_or(Oid(0), |row| row.array);
        if array == Oid(0) {
            let name = self.catalog.type_name(common);
            let message = format!("could not find array type for data type {name}");
            return fail(SqlState::UNDEFINED_OBJECT, message);
        }
        Ok((PgType::new(array), PgType::new(common), false))
    }

    /// `a[1]`, `a[2:3]`, `t.a[1][2]`.
    pub(super) fn part_of(&mut self, root: &Syntax, chain: &[AccessExpr]) -> Result<Typed> {
        let dots = chain.iter().take_while(|part| matches!(part, AccessExpr::Dot(_))).count();
        let mut names: Vec<Ident> = match (root, dots) {
            (_, 0) => Vec::new(),
            (Syntax::Identifier(name), _) => vec![name.clone()],
            _ => {
                let typed = self.fields_of(root, &chain[..dots])?;
                return match &chain[dots..] {
                    [] => Ok(typed),
                    behind => self.at_subscripts(typed, behind),
                };
            }
        };
        for part in &chain[..dots] {
            match part {
                AccessExpr::Dot(Syntax::Identifier(name)) => names.push(name.clone()),
                _ => return unsupported("a field of a row"),
            }
        }
        let typed = match names.is_empty() {
            true => self.expr(root)?,
            false => self.expr(&Syntax::CompoundIdentifier(names))?,
        };
        self.at_subscripts(typed, &chain[dots..])
    }

    fn at_subscripts(&mut self, typed: Typed, chain: &[AccessExpr]) -> Result<Typed> {
        let mut parts = Vec::with_capacity(chain.len());
        for part in chain {
            match part {
                AccessExpr::Subscript(subscript) => parts.push(subscript),
                AccessExpr::Dot(_) => break,
            }
        }
        let behind = &chain[parts.len()..];
        let typed = if parts.is_empty() { typed } else { self.subscripted(typed, &parts)? };
        match behind.iter().position(|part| matches!(part, AccessExpr::Subscript(_))) {
            None => self.fields_behind(typed, behind),
            Some(dots) => {
                let typed = self.fields_behind(typed, &behind[..dots])?;
                self.at_subscripts(typed, &behind[dots..])
            }
        }
    }

    fn subscripted(&mut self, typed: Typed, parts: &[&Subscript]) -> Result<Typed> {
        if typed.ty.oid == RECORDS {
            return unsupported("a part of an array of records");
        }
        let Some(row) = self.array_row(typed.ty.oid) else {
            let name = self.catalog.type_name(typed.ty.oid);
            if let (oid::NAME, [Subscript::Index { index }]) = (typed.ty.oid, parts) {
                let place = self.subscript(index)?;
                return Ok(subscripts::byte_of_name(&self.catalog, &[typed, place]));
            }
            let base = self.catalog.base_type(typed.ty.oid, -1).0;
            if base == oid::JSONB {
                return self.part_of_document(typed, parts);
            }
            if is_hstore(&self.catalog, base) {
                let [Subscript::Index { index }] = parts else {
                    return fail(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "hstore allows only one subscript",
                    );
                };
                let key = self.expr(index)?;
                let key =
                    coerce(&self.catalog, key, PgType::new(oid::TEXT), CastContext::Assignment)?;
                return self.operator("->", typed, key);
            }
            if let (oid::POINT | oid::BOX | oid::LSEG | oid::LINE, [Subscript::Index { index }]) =
                (base, parts)
                && let Some(element) = self.catalog.type_row(base).map(|row| row.element)
            {
                let place = self.subscript(index)?;
                return Ok(subscripts::part_of_fixed(&self.catalog, &[typed, place], element));
            }
            let message =
                format!("cannot subscript type {name} because it does not support subscripting");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        };
        let element = result_type(&self.catalog, row.element, std::slice::from_ref(&typed))?;
        let element = element.with_modifier(typed.ty.modifier);
        if parts.len() > MOST_SUBSCRIPTS {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({MOST_SUBSCRIPTS})",
                parts.len()
            );
            return fail(SqlState("54000"), message);
        }
        let is_slice = parts.iter().any(|part| matches!(part, Subscript::Slice { .. }));
        let one = Typed::new(lit(1), PgType::new(oid::INT4), DataType::Int32);
        let (mut arguments, mut given) = (vec![typed], String::new());
        for part in parts {
            match part {
                Subscript::Index { index } if is_slice => {
                    // Beside slices a number stands for all from 1 up to it.
                    arguments.extend([one.clone(), self.subscript(index)?]);
                    given.push_str("11");
                }
                Subscript::Index { index } => arguments.push(self.subscript(index)?),
                Subscript::Slice { stride: Some(_), .. } => {
                    return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \":\"");
                }
                Subscript::Slice { lower_bound, upper_bound, .. } => {
                    for bound in [lower_bound, upper_bound] {
                        given.push(if bound.is_some() { '1' } else { '0' });
                        let bound =
                            bound.as_ref().map(|bound| self.subscript(bound)).transpose()?;
                        arguments.push(bound.unwrap_or_else(|| one.clone()));
                    }
                }
            }
        }
        Ok(match is_slice {
            true => subscripts::slice(&self.catalog, &arguments, &given),
            false => subscripts::element(&self.catalog, &arguments, element),
        })
    }

    /// `j['a'][0]` of a jsonb.
    fn part_of_document(&mut self, typed: Typed, parts: &[&Subscript]) -> Result<Typed> {
        if parts.iter().any(|part| matches!(part, Subscript::Slice { .. })) {
            let message = "jsonb subscript does not support slices";
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let mut arguments = vec![typed];
        for part in parts {
            let Subscript::Index { index } = part else { continue };
            let step = self.expr(index)?;
            let wanted = self.document_subscript(&step)?;
            let step = coerce(&self.catalog, step, PgType::new(wanted), CastContext::Implicit)?;
            arguments.push(step);
        }
        Ok(json_scalars::subscripted(&self.catalog, &arguments))
    }

    /// The one of integer and text that a subscript can be.
    ///
    /// Source: `jsonb_subscript_transform` in `src/backend/utils/adt/jsonbsubs.c`, PostgreSQL 14 to 18.
    fn document_subscript(&self, step: &Typed) -> Result<Oid> {
        if step.literal.is_some() {
            return Ok(oid::TEXT);
        }
        let can_be = |wanted: &Oid| {
            let way = resolve::pathway(&self.catalog, step.ty.oid, *wanted, CastContext::Implicit);
            way.is_some()
        };
        let hint = match [oid::INT4, oid::TEXT].map(|wanted| can_be(&wanted)) {
            [true, false] => return Ok(oid::INT4),
            [false, true] => return Ok(oid::TEXT),
            [true, true] => "jsonb subscript must be coercible to only one type, integer or text.",
            [false, false] => "jsonb subscript must be coercible to either integer or text.",
        };
        let name = self.catalog.type_name(step.ty.oid);
        let message = format!("subscript type {name} is not supported");
        Err(StatementError::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint).into())
    }

    fn subscript(&mut self, syntax: &Syntax) -> Result<Typed> {
        let typed = self.expr(syntax)?;
        let int4 = PgType::new(oid::INT4);
        let is_known = typed.literal.is_some()
            || resolve::pathway(&self.catalog, typed.ty.oid, oid::INT4, CastContext::Assignment)
                .is_some();
        if !is_known {
            return fail(SqlState::DATATYPE_MISMATCH, "array subscript must have type integer");
        }
        coerce(&self.catalog, typed, int4, CastContext::Assignment)
    }

    /// An operator between a value and each element.
    pub(super) fn over_elements(
        &mut self,
        left: &Syntax,
        name: &str,
        right: &Syntax,
        is_all: bool,
    ) -> Result<Typed> {
        let (subject, mut array) = (self.expr(left)?, self.expr(right)?);
        if array.ty.oid == RECORDS || subject.is_row() {
            return unsupported("an array of records, or a row held against elements,");
        }
        let no_array = || {
            let message = "op ANY/ALL (array) requires array on right side";
            Err(StatementError::new(SqlState("42809"), message).into())
        };
        let element = match self.array_row(array.ty.oid) {
            Some(row) => row.element,
            None if array.literal.is_some() => UNKNOWN,
            None => return no_array(),
        };
        let catalog = self.catalog.clone();
        let chosen = resolve::operator(&catalog, name, Some(subject.ty.oid), element)?;
        if chosen.result != oid::BOOL {
            let message = "op ANY/ALL (array) requires operator to yield boolean";
            return fail(SqlState("42809"), message);
        }
        let item = result_type(&catalog, chosen.arguments[1], std::slice::from_ref(&array))?;
        // Rows of a type are what any row may be.
        if item.oid == RECORD && element == UNKNOWN {
            return unsupported("a row held against the elements of a constant");
        }
        if item.oid == RECORD {
            let item = PgType::new(element);
            return self.with_each_element(name, (subject, array, item), is_all);
        }
        let of_element = catalog.type_row(chosen.arguments[1]).map_or(Oid(0), |row| row.array);
        if of_element == Oid(0) {
            return no_array();
        }
        array = coerce(&catalog, array, PgType::new(of_element), CastContext::Implicit)?;
        let wanted = PgType::new(chosen.arguments[0]);
        let subject = match subject.ty.oid == wanted.oid {
            true => subject,
            false => coerce(&catalog, subject, wanted, CastContext::Implicit)?,
        };
        self.with_each_element(name, (subject, array, item), is_all)
    }

    /// The operator between a value and each element, which is of this type.
    fn with_each_element(
        &mut self,
        name: &str,
        (subject, array, item): (Typed, Typed, PgType),
        is_all: bool,
    ) -> Result<Typed> {
        let catalog = self.catalog.clone();
        let column = |name: &str, ty: PgType, carrier: DataType| {
            let column = datafusion::common::Column::new_unqualified(name);
            Typed::new(Expr::Column(column), ty, carrier)
        };
        let x = column(SUBJECT, subject.ty, subject.carrier.clone());
        let item = column(ELEMENT, item, carrier_of(&catalog, item));
        let of_one = self.operator(name, x, item)?;
        let fold = if is_all { Fold::All } else { Fold::Any };
        let each = Each { of_one, fold, array, subject: Some(subject) };
        Ok(super::expressions::truth_value(each.call(&catalog)?))
    }
}
