//! Values within documents, and what clauses say of documents that are made: `… ON NULL`, `WITH UNIQUE KEYS`, `RETURNING type`.
//!
//! Invariants: clauses stand in the grammar's order, each once; another one is a syntax error at its first word. A document is made as
//! a json unless it is to be a jsonb, then brought to its type; before 17 as by an explicit cast, which cuts what is too long.
//!
//! Source: `transformJsonValueExpr`, `transformJsonOutput`, `transformJsonConstructorOutput`, `coerceJsonFuncExpr` in
//! `src/backend/parser/parse_expr.c`, PostgreSQL 16 to 18.

use pagemill_types::builtin::oid;
use sqlparser::ast::{Expr as Syntax, FunctionArg, FunctionArgumentList};

use super::Binder;
use super::json_clauses::{Clause, Returning, no_syntax, returning_of};
use super::json_queries::{check_encoding, formatted};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::logic::json_queries;
use crate::functions::row_forms::json_of_row;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

/// A clause of a form that makes a document; in the grammar's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    Nulls,
    Names,
    Returning,
}

/// The clauses of forms that make objects.
pub(super) const OF_OBJECTS: [Said; 3] = [Said::Nulls, Said::Names, Said::Returning];
/// The clauses of forms that make arrays.
pub(super) const OF_ARRAYS: [Said; 2] = [Said::Nulls, Said::Returning];

/// What the clauses say.
#[derive(Default)]
pub(super) struct Output<'q> {
    /// What `… ON NULL` says.
    pub(super) leaves_out_nulls: Option<bool>,
    pub(super) is_unique: bool,
    pub(super) returning: Option<Returning<'q>>,
}

impl<'q> Output<'q> {
    /// Reads those of a form without values, where NULL is one and what stands behind it is no syntax.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn read_alone(clauses: &'q [FunctionArg]) -> Result<Self> {
        if let Some(clause) = clauses.first().and_then(Clause::of) {
            match clause.word() {
                "NULL" | "ABSENT" => return Err(no_syntax("ON")),
                "null" | "absent" => return Err(no_syntax("on")),
                _ => {}
            }
        }
        Self::read(clauses, &[Said::Returning])
    }

    /// Reads them; others than these are no syntax.
    ///
    /// # Errors
    /// At the first that has no place there.
    pub(super) fn read(clauses: &'q [FunctionArg], known: &[Said]) -> Result<Self> {
        let mut all = Self::default();
        let mut before = None;
        for argument in clauses {
            let Some(clause) = Clause::of(argument) else { return Err(no_syntax(",")) };
            let word = clause.word().to_ascii_lowercase();
            let said = match &*word {
                "null" | "absent" => Said::Nulls,
                "with" | "without" => Said::Names,
                _ => Said::Returning,
            };
            if !known.contains(&said) || before.is_some_and(|before| before >= said) {
                return Err(clause.syntax_error());
            }
            match said {
                Said::Nulls => all.leaves_out_nulls = Some(word == "absent"),
                Said::Names => all.is_unique = word == "with",
                Said::Returning => match returning_of(&clause) {
                    Some(returning) => all.returning = Some(returning),
                    None => return Err(clause.syntax_error()),
                },
            }
            before = Some(said);
        }
        Ok(all)
    }
}

/// The values that a form is given, and its clauses.
///
/// # Errors
/// For clauses that the parser knows, and [`crate::json_spelling`] does not.
pub(super) fn parted(list: &FunctionArgumentList) -> Result<(&[FunctionArg], &[FunctionArg])> {
    use sqlparser::ast::FunctionArgumentClause::OrderBy;
    if !list.clauses.iter().all(|clause| matches!(clause, OrderBy(_))) {
        return unsupported("this form of SQL/JSON");
    }
    let is_clause = |argument: &FunctionArg| {
        Clause::of(argument).is_some_and(|clause| !clause.word().eq_ignore_ascii_case("format"))
    };
    let first = list.args.iter().position(is_clause).unwrap_or(list.args.len());
    Ok(list.args.split_at(first))
}

impl Binder<'_> {
    /// A value within a document.
    pub(super) fn json_value(&mut self, syntax: &Syntax) -> Result<Typed> {
        if formatted(syntax).2 {
            return self.json_document_of(syntax, "explicit");
        }
        let typed = self.expr(syntax)?;
        if typed.is_row() {
            return Ok(json_of_row(&self.catalog, &typed, false));
        }
        match typed.literal.is_some() || typed.parameter.is_some() {
            true => coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit),
            false => Ok(typed),
        }
    }

    /// A text or bytes as a json, which a json and a jsonb are already.
    pub(super) fn json_document_of(&mut self, syntax: &Syntax, format: &str) -> Result<Typed> {
        let (syntax, encoding, has_format) = formatted(syntax);
        let mut typed = self.expr(syntax)?;
        if typed.ty.oid == UNKNOWN {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        typed = self.decoded(typed, encoding)?;
        if matches!(typed.ty.oid, oid::JSON | oid::JSONB) {
            return Ok(typed);
        }
        if !self.is_string(typed.ty) {
            let format = if has_format { "explicit" } else { format };
            let message = format!("cannot use non-string types with {format} FORMAT JSON clause");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        coerce(&self.catalog, typed, PgType::new(oid::JSON), CastContext::Explicit)
    }

    /// The type of a document that is made of such values.
    pub(super) fn document_type(&self, output: &Output<'_>, values: &[Typed]) -> Result<PgType> {
        let Some(returning) = output.returning else {
            let has_jsonb = values.iter().any(|value| value.ty.oid == oid::JSONB);
            return Ok(PgType::new(if has_jsonb { oid::JSONB } else { oid::JSON }));
        };
        check_encoding(returning.encoding)?;
        let ty = self.type_named(returning.data_type)?;
        let is_pseudo = self.catalog.type_row(ty.oid).is_none_or(|row| row.kind == b'p');
        if is_pseudo && self.catalog.database().cluster().version().major() > 16 {
            let what = "returning pseudo-types is not supported in SQL/JSON functions";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, what);
        }
        if returning.has_format {
            self.check_output_encoding(ty, returning.encoding)?;
        }
        Ok(ty)
    }

    /// A document, made as a json or a jsonb, as what it is to be.
    pub(super) fn returned(&self, typed: Typed, returning: PgType) -> Result<Option<Typed>> {
        if returning.oid == typed.ty.oid {
            return Ok(Some(typed));
        }
        let text = PgType::new(oid::TEXT);
        if returning.oid == oid::BYTEA {
            let text = coerce(&self.catalog, typed, text, CastContext::Assignment)?;
            return Ok(Some(json_queries::bytes_of_text(&self.catalog, &text)));
        }
        let context = match self.catalog.database().cluster().version().major() {
            ..=16 => CastContext::Explicit,
            _ => CastContext::Assignment,
        };
        coerce(&self.catalog, typed, returning, context).map(Some)
    }
}
