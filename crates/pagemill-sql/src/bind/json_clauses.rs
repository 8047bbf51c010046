//! The clauses of JSON_EXISTS, JSON_VALUE, JSON_QUERY and JSON_TABLE, as [`crate::json_spelling`] brings them past the parser.
//!
//! Invariant: clauses stand in the grammar's order, each once; another one is a syntax error at its first word.
//!
//! Source: `func_expr_common_subexpr`, `json_table`, `json_table_column_definition` in `src/backend/parser/gram.y`,
//! PostgreSQL 17 and 18.

use sqlparser::ast::{
    DataType, Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectNamePart, Value,
};

use super::scope::at;
use crate::error::{Error, Result, SqlState, StatementError};
use crate::functions::logic::json_queries::Wrapper;
use crate::json_spelling::CLAUSE;

/// A clause.
#[derive(Clone, Copy)]
pub(super) struct Clause<'q> {
    name: &'q Ident,
    pub(super) arguments: &'q [FunctionArg],
}

/// Which one; in the grammar's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    Format,
    Name,
    Path,
    Passing,
    Returning,
    Columns,
    Wrapper,
    Quotes,
    OnEmpty,
    OnError,
}

/// What ON EMPTY or ON ERROR says.
#[derive(Clone, Copy)]
pub(super) struct Said<'q> {
    pub(super) clause: Clause<'q>,
    /// ARRAY or OBJECT behind EMPTY.
    pub(super) what: Option<&'q str>,
    pub(super) default: Option<&'q Syntax>,
}

/// The type behind RETURNING.
#[derive(Clone, Copy)]
pub(super) struct Returning<'q> {
    pub(super) data_type: &'q DataType,
    pub(super) has_format: bool,
    pub(super) encoding: Option<&'q str>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Clauses<'q> {
    pub(super) format: Option<Clause<'q>>,
    pub(super) name: Option<&'q str>,
    pub(super) path: Option<&'q Syntax>,
    pub(super) passing: Vec<(&'q Syntax, &'q str)>,
    pub(super) returning: Option<Returning<'q>>,
    pub(super) columns: Option<&'q [FunctionArg]>,
    pub(super) wrapper: Option<Wrapper>,
    /// Whether quotes are left out.
    pub(super) omits_quotes: Option<bool>,
    pub(super) on_empty: Option<Said<'q>>,
    pub(super) on_error: Option<Said<'q>>,
}

impl<'q> Clause<'q> {
    /// The clause that an argument stands for.
    pub(super) fn of(argument: &'q FunctionArg) -> Option<Self> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) => Self::of_syntax(syntax),
            _ => None,
        }
    }

    pub(super) fn of_syntax(syntax: &'q Syntax) -> Option<Self> {
        let Syntax::Function(Function { name, args: FunctionArguments::List(list), .. }) = syntax
        else {
            return None;
        };
        let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return None };
        let is_one = name.quote_style.is_some() && name.value.starts_with(CLAUSE);
        is_one.then_some(Self { name, arguments: &list.args })
    }

    /// Its first word, as it is written.
    pub(super) fn word(&self) -> &'q str {
        self.name.value.trim_start_matches(CLAUSE)
    }

    fn is(&self, word: &str) -> bool {
        self.word().eq_ignore_ascii_case(word)
    }

    /// The text that one of its arguments is.
    pub(super) fn text(&self, number: usize) -> Option<&'q str> {
        text_of(plain(self.arguments.get(number)?)?)
    }

    pub(super) fn which(&self) -> Which {
        match self.word().to_ascii_lowercase().as_str() {
            "format" => Which::Format,
            "as" => Which::Name,
            "path" => Which::Path,
            "passing" => Which::Passing,
            "returning" => Which::Returning,
            "columns" => Which::Columns,
            "with" | "without" => Which::Wrapper,
            "keep" | "omit" => Which::Quotes,
            _ => match self.text(0) {
                Some(on) if on.eq_ignore_ascii_case("empty") => Which::OnEmpty,
                _ => Which::OnError,
            },
        }
    }

    /// As the server says where its grammar ends.
    #[cold]
    pub(super) fn syntax_error(&self) -> Error {
        self.error(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{}\"", self.word()))
    }

    #[cold]
    pub(super) fn error(&self, state: SqlState, message: impl Into<String>) -> Error {
        at(StatementError::new(state, message.into()), self.name)
    }
}

impl<'q> Clauses<'q> {
    /// Reads them; others than these are no syntax.
    ///
    /// # Errors
    /// At the first that has no place there.
    pub(super) fn read(arguments: &'q [FunctionArg], known: &[Which]) -> Result<Self> {
        let mut all = Self::default();
        let mut before = None;
        for argument in arguments {
            let Some(clause) = Clause::of(argument) else {
                return Err(no_syntax(","));
            };
            let which = clause.which();
            let is_in_place = before.is_none_or(|before| before < which);
            if which == Which::OnEmpty && !known.contains(&which) && is_in_place {
                return Err(no_syntax(clause.text(0).unwrap_or("EMPTY"))); // default: the spelling says which
            }
            if !known.contains(&which) || !is_in_place || !all.put(clause, which) {
                return Err(clause.syntax_error());
            }
            before = Some(which);
        }
        Ok(all)
    }

    /// False where it has not what it needs.
    fn put(&mut self, clause: Clause<'q>, which: Which) -> bool {
        let first = clause.arguments.first().and_then(plain);
        match which {
            Which::Format => self.format = Some(clause),
            Which::Name => self.name = clause.text(0),
            Which::Path => self.path = first,
            Which::Passing => self.passing = pairs(clause.arguments),
            Which::Returning => {
                let Some(returning) = returning_of(&clause) else { return false };
                self.returning = Some(returning);
            }
            Which::Columns => self.columns = Some(clause.arguments),
            Which::Wrapper => {
                self.wrapper = Some(match (clause.is("with"), clause.text(0)) {
                    (false, _) => Wrapper::Never,
                    (true, Some("CONDITIONAL")) => Wrapper::OfSeveral,
                    (true, _) => Wrapper::Always,
                });
            }
            Which::Quotes => self.omits_quotes = Some(clause.is("omit")),
            Which::OnEmpty => self.on_empty = Some(Said::of(clause)),
            Which::OnError => self.on_error = Some(Said::of(clause)),
        }
        true
    }
}

impl<'q> Said<'q> {
    fn of(clause: Clause<'q>) -> Self {
        let is_default = clause.is("default");
        let default = clause.arguments.get(1).and_then(plain).filter(|_| is_default);
        let what = clause.text(1).filter(|_| !is_default);
        Self { clause, what, default }
    }

    /// Its words, as errors show them.
    pub(super) fn shown(&self) -> &'static str {
        match (self.clause.word().to_ascii_lowercase().as_str(), self.what) {
            ("error", _) => "ERROR",
            ("true", _) => "TRUE",
            ("false", _) => "FALSE",
            ("unknown", _) => "UNKNOWN",
            ("empty", Some(what)) if what.eq_ignore_ascii_case("object") => "EMPTY OBJECT",
            ("empty", _) => "EMPTY ARRAY",
            ("default", _) => "DEFAULT",
            _ => "NULL",
        }
    }
}

/// What RETURNING says.
pub(super) fn returning_of<'q>(clause: &Clause<'q>) -> Option<Returning<'q>> {
    let Syntax::Cast { data_type, .. } = plain(clause.arguments.first()?)? else { return None };
    let (has_format, encoding) = (clause.text(1).is_some(), clause.text(2));
    Some(Returning { data_type, has_format, encoding })
}

/// As the server says where its grammar ends.
#[cold]
pub(super) fn no_syntax(near: &str) -> Error {
    let message = format!("syntax error at or near \"{near}\"");
    StatementError::new(SqlState::SYNTAX_ERROR, message).into()
}

/// The expression that an argument is.
pub(super) fn plain(argument: &FunctionArg) -> Option<&Syntax> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) => Some(syntax),
        _ => None,
    }
}

fn text_of(syntax: &Syntax) -> Option<&str> {
    match syntax {
        Syntax::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Values and their names.
fn pairs(arguments: &[FunctionArg]) -> Vec<(&Syntax, &str)> {
    arguments
        .chunks_exact(2)
        .filter_map(|two| Some((plain(&two[0])?, text_of(plain(&two[1])?)?)))
        .collect()
}

/// The clause that a list stands for which is `IS JSON`.
pub(super) fn predicate(list: &[Syntax]) -> Option<Clause<'_>> {
    match list {
        [one] => Clause::of_syntax(one).filter(|clause| clause.is("json")),
        _ => None,
    }
}
