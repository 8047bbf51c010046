//! Completion of what is typed: keywords, names from the catalogs, backslash commands, files.
//!
//! Names are read when the first one is completed, and once for each database.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_cluster::RelationKind;
use pagemill_format::Oid;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::commands::COMMANDS;
use crate::error::Result;
use crate::session::Session;
use crate::system_rows::for_each_row;

/// Words of statements.
const KEYWORDS: &str = "ALL AND ANALYZE AND ANY AS ASC BETWEEN BOTH BY CASE CAST COLLATE CROSS CURRENT_DATE \
CURRENT_TIMESTAMP DESC DISTINCT ELSE END ESCAPE EXCEPT EXISTS EXPLAIN EXTRACT FALSE FETCH FILTER FIRST FOLLOWING FROM \
FULL GROUP HAVING ILIKE IN INNER INTERSECT INTERVAL IS JOIN LAST LEFT LIKE LIMIT NATURAL NOT NULL NULLS OFFSET ON OR ORDER \
OUTER OVER PARTITION PRECEDING RANGE RIGHT ROWS SELECT SIMILAR TABLE THEN TIMESTAMP TO TRUE UNBOUNDED UNION USING VALUES \
WHEN WHERE WINDOW WITH";

/// Words after which a relation is named.
const BEFORE_RELATION: [&str; 4] = ["from", "join", "table", "on"];

#[derive(Debug, Default)]
struct Known {
    session: Option<Arc<Session>>,
    /// The statement before this line.
    statement: String,
    databases: Vec<String>,
    relations: Option<Vec<Named>>,
}

/// A relation that may be named.
#[derive(Debug, Clone)]
struct Named {
    schema: String,
    name: String,
    is_visible: bool,
    columns: Vec<String>,
}

/// What can be completed; clones share it.
#[derive(Clone, Default)]
pub(super) struct Names(Arc<Mutex<Known>>);

impl Names {
    /// From now on the names are those of this database.
    pub(super) fn of(&self, session: &Arc<Session>, databases: Vec<String>) {
        let known = Known { session: Some(session.clone()), databases, ..Known::default() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// What has been typed of the statement before the line.
    pub(super) fn behind(&self, statement: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).statement = statement.to_owned();
    }
}

impl Known {
    fn relations(&mut self) -> &[Named] {
        let Self { session, relations, .. } = self;
        // Names that cannot be read are not completed; statements say why.
        relations.get_or_insert_with(|| {
            session.as_ref().and_then(|session| read_names(session).ok()).unwrap_or_default()
        })
    }

    fn completions(&mut self, line: &str, word: &str, before: &str) -> Vec<String> {
        let text = format!("{}{line}", self.statement).to_lowercase();
        let last = before.split_whitespace().next_back().unwrap_or("").to_lowercase();
        let wants_relation = BEFORE_RELATION[..3].contains(&last.as_str())
            || last.ends_with(',') && !text.contains(" where ") && text.contains(" from ");
        let mut found = BTreeSet::new();
        if let Some((qualifier, _)) = word.rsplit_once('.') {
            self.qualified(qualifier, &mut found);
        } else {
            self.unqualified(wants_relation, &text, &mut found);
            if !wants_relation {
                let is_lower = word.chars().any(char::is_lowercase);
                let cased = |k: &str| if is_lower { k.to_lowercase() } else { k.to_owned() };
                found.extend(KEYWORDS.split_whitespace().map(cased));
            }
        }
        found.into_iter().filter(|name| name.starts_with(word)).collect()
    }

    fn qualified(&mut self, qualifier: &str, found: &mut BTreeSet<String>) {
        for named in self.relations() {
            if quoted(&named.schema) == qualifier {
                found.insert(format!("{qualifier}.{}", quoted(&named.name)));
            }
            if quoted(&named.name) == qualifier {
                found.extend(named.columns.iter().map(|c| format!("{qualifier}.{}", quoted(c))));
            }
        }
    }

    fn unqualified(&mut self, wants_relation: bool, text: &str, found: &mut BTreeSet<String>) {
        for named in self.relations() {
            let is_system = matches!(named.schema.as_str(), "pg_catalog" | "information_schema");
            if named.is_visible {
                found.insert(quoted(&named.name));
            }
            found.insert(format!("{}.", quoted(&named.schema)));
            let is_meant = text.contains(&named.name.to_lowercase());
            if !wants_relation && (is_meant || !is_system && !text.contains(" from ")) {
                found.extend(named.columns.iter().map(|column| quoted(column)));
            }
        }
    }
}

fn read_names(session: &Session) -> Result<Vec<Named>> {
    use RelationKind::{ForeignTable, MaterializedView, PartitionedTable, Sequence, Table, View};
    let catalog = session.catalog();
    let database = catalog.database();
    let mut columns: std::collections::HashMap<Oid, Vec<String>> = Default::default();
    let wanted = ["attrelid", "attname", "attnum", "attisdropped"];
    for_each_row(catalog.values(), "pg_attribute", &wanted, |row| {
        if row.int2(2) > 0 && !row.bool(3) {
            columns.entry(row.oid(0)).or_default().push(row.name(1));
        }
        Ok(())
    })?;
    let mut found = Vec::new();
    for class in database.classes() {
        let kinds = [Table, View, MaterializedView, PartitionedTable, ForeignTable, Sequence];
        if kinds.contains(&class.kind) {
            found.push(Named {
                schema: String::from_utf8_lossy(&database.schema_of(class)?).into_owned(),
                name: String::from_utf8_lossy(&class.name).into_owned(),
                is_visible: catalog.search_path().contains(&class.namespace),
                columns: columns.remove(&class.oid).unwrap_or_default(),
            });
        }
    }
    Ok(found)
}

/// A name as a statement has to write it.
fn quoted(name: &str) -> String {
    crate::catalog::quote_identifier(name)
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '$' | '\\');
        let start = typed
            .rfind(|c| !is_word(c))
            .map_or(0, |place| place + typed[place..].chars().next().map_or(0, char::len_utf8));
        let (before, word) = typed.split_at(start);
        let command =
            before.trim_start().strip_prefix('\\').map(|c| c.split(' ').next().unwrap_or(""));
        let candidates = match command {
            None if word.starts_with('\\') => {
                let all = COMMANDS.iter().map(|(name, _)| format!("\\{name}"));
                all.filter(|name| name.starts_with(word)).collect()
            }
            Some("i" | "o" | "ir" | "include" | "out") => {
                return FilenameCompleter::new().complete(line, at, context);
            }
            Some("c" | "connect") => {
                known.databases.iter().filter(|name| name.starts_with(word)).cloned().collect()
            }
            Some(name) if name.starts_with('d') => known.completions(line, word, "from "),
            _ => known.completions(line, word, before),
        };
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Helper for Names {}
impl Highlighter for Names {}
impl Hinter for Names {
    type Hint = String;
}
impl Validator for Names {}
