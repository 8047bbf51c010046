//! `\d` and its kin: what psql shows of a database, from the cluster's own catalogs.
//!
//! ```text
//! lists ──List──► a query of the catalogs, as any other ──────────────────► Table ──► the shell's style
//! pg_class, pg_attribute … ──Names──► one relation in full ───────────────┘
//!                          └─stored trees──definitions──► defaults, CHECK, predicates as the server writes them
//! ```
//!
//! Invariant: a stored expression is written as the server writes it, or `(expression)` stands in its place, with a footnote.

mod constraints;
mod expression;
mod indexes;
mod list;
mod lists;
mod names;
mod objects;
mod partitions;
mod pattern;
mod relation;
mod source;

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_engine::Progress;
use pagemill_format::Oid;
use tokio::runtime::Handle;

use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::functions::system::comments;
use crate::output::{Table, TableSink};
use crate::session::{Answer, Session};
use list::{Asked, List};
use names::{Class, Names};
use pattern::Pattern;
pub(super) use source::source;

/// What is shown: tables, and what is said where there is nothing to show.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) tables: Vec<Table>,
    pub(super) message: Option<String>,
}

impl Described {
    fn table(table: Table) -> Self {
        Self { tables: vec![table], message: None }
    }

    fn message(message: String) -> Self {
        Self { tables: Vec::new(), message: Some(message) }
    }
}

/// What is asked, and by what.
pub(super) struct Asking<'a> {
    pub(super) session: &'a Session,
    pub(super) runtime: &'a Handle,
    pub(super) cancel: &'a Progress,
}

impl Asking<'_> {
    /// The rows of the last statement of a text, and what there is to say of each.
    ///
    /// # Errors
    /// What a statement fails by.
    pub(super) fn answers(&self, sql: &str) -> Result<(Table, Vec<Answer>)> {
        let mut sink = TableSink::default();
        let mut answers = Vec::new();
        for statement in Session::parse(sql)? {
            let run = self.session.run_with(&statement, &mut sink, self.cancel);
            answers.push(self.runtime.block_on(run)?);
        }
        Ok((sink.table, answers))
    }

    /// What a query of the catalogs has. Damage in them is an error, even where that in tables is to be skipped: nothing is told of half
    /// a catalog.
    ///
    /// # Errors
    /// What the query fails by.
    fn table(&self, sql: &str) -> Result<Table> {
        let (table, answers) = self.answers(sql)?;
        match answers.iter().flat_map(|answer| &answer.losses).next() {
            None => Ok(table),
            Some(loss) => Err(StatementError::new(SqlState::DATA_CORRUPTED, loss.clone()).into()),
        }
    }
}

/// A command without what follows its letters.
fn letters(name: &str) -> String {
    name.replace(['+', 'S'], "")
}

/// What is asked of the catalogs of a version, by a command of these letters.
fn asked<'a>(name: &str, letters: &'a str, patterns: &'a Patterns, major: u32) -> Asked<'a> {
    let (is_verbose, shows_system) = (name.contains('+'), name.contains('S'));
    let Patterns { first: pattern, others } = patterns;
    Asked { letters, is_verbose, shows_system, pattern, others, major }
}

/// What follows a command.
#[derive(Default)]
struct Patterns {
    first: Pattern,
    others: Vec<Option<Pattern>>,
}

impl Patterns {
    fn parse(letters: &str, words: &[String]) -> Result<Self, String> {
        let (first, others) = match words {
            [] => (None, words),
            [first, others @ ..] => (Some(first.as_str()), others),
        };
        let first = match letters {
            "dT" => Pattern::parse_type(first),
            _ => Pattern::parse(first),
        };
        let other = |word: &String| match (letters, word.as_str()) {
            ("drds", word) => Pattern::parse(Some(word)).map(Some),
            (_, "-") => Ok(None),
            (_, word) => Pattern::parse_type(Some(word)).map(Some),
        };
        let others = others.iter().map(other).collect::<Result<_, String>>()?;
        Ok(Self { first: first?, others })
    }
}

/// Whether what follows a command is one question: a pattern, and others that say more.
pub(super) fn takes_several(name: &str) -> bool {
    let letters = letters(name);
    letters.starts_with("df") || matches!(letters.as_str(), "do" | "drds")
}

/// The commands that are answered here.
pub(super) fn is_known(name: &str) -> bool {
    let (letters, patterns) = (letters(name), Patterns::default());
    // Which version it is asked of makes no difference.
    lists::list(&asked(name, &letters, &patterns, 0)).is_some()
}

/// What a command shows.
///
/// # Errors
/// When a catalog cannot be read; what is not supported here.
pub(super) fn describe(asking: &Asking<'_>, name: &str, words: &[String]) -> Result<Described> {
    let letters = letters(name);
    let patterns = match Patterns::parse(&letters, words) {
        Ok(patterns) => patterns,
        Err(message) => return Ok(Described::message(message)),
    };
    if letters == "d" && !words.is_empty() {
        return relations(asking, &patterns.first, name.contains('+'));
    }
    let major = asking.session.catalog().database().cluster().version().major();
    match lists::list(&asked(name, &letters, &patterns, major)) {
        None => Ok(Described::message(format!("\\{name} is not supported here"))),
        Some(Err(message)) => Ok(Described::message(message)),
        Some(Ok(list)) => shown(asking, &list, &patterns.first),
    }
}

/// A list, or that there is nothing in it.
fn shown(asking: &Asking<'_>, list: &List, pattern: &Pattern) -> Result<Described> {
    let table = asking.table(&list.sql())?;
    if let (true, Some(what)) = (table.rows.is_empty(), list.absent) {
        return Ok(Described::message(match (what, pattern.text()) {
            ("settings", Some(text)) => format!("Did not find any settings for role \"{text}\"."),
            ("settings", None) => "Did not find any settings.".to_owned(),
            (what, Some(text)) => format!("Did not find any {what} named \"{text}\"."),
            (what, None) => format!("Did not find any {what}s."),
        }));
    }
    let footers = list.is_uncounted.then(Vec::new);
    Ok(Described::table(Table { title: Some(list.title.to_owned()), footers, ..table }))
}

/// Each relation that a pattern means, described.
fn relations(asking: &Asking<'_>, pattern: &Pattern, is_verbose: bool) -> Result<Described> {
    let condition = match list::matching(pattern, &lists::of_relations()) {
        Ok(condition) => condition.unwrap_or_else(|| "true".to_owned()),
        Err(message) => return Ok(Described::message(message)),
    };
    let found = asking.table(&format!(
        "SELECT c.oid FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {condition} \
         ORDER BY n.nspname, c.relname"
    ))?;
    let names = Names::read(asking.session.catalog())?;
    let number = |row: &Vec<Option<String>>| row.first()?.as_ref()?.parse().ok().map(Oid);
    let class = |oid: Oid| names.class(oid).ok_or_else(|| gone(oid));
    let found: Vec<&Class> =
        found.rows.iter().filter_map(number).map(class).collect::<Result<_>>()?;
    if found.is_empty() {
        let text = pattern.text().unwrap_or_default();
        return Ok(Described::message(format!("Did not find any relation named \"{text}\".")));
    }
    let describe = |class: &&Class| relation::describe(&names, class, is_verbose);
    let tables = found.iter().map(describe).collect::<Result<Vec<Table>>>()?;
    Ok(Described { tables, message: None })
}

/// The error of a relation that one reading of the catalogs has and another has not.
fn gone(oid: Oid) -> crate::error::Error {
    let message = format!("relation {oid} is not in pg_class");
    StatementError::new(SqlState::UNDEFINED_TABLE, message).into()
}

/// Comments on objects of one catalog, by object and column.
fn comments(catalog: &Arc<Catalog>, of: &str) -> Result<HashMap<(Oid, i32), String>> {
    let class = comments::class(catalog, of).unwrap_or(Oid(0));
    let all = comments::comments(catalog)?.into_iter();
    Ok(all.filter(|((_, of, _), _)| *of == class).map(|((o, _, c), text)| ((o, c), text)).collect())
}
