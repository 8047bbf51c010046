//! From the patterns of `-t`, `-T`, `-n` and `-N` to relations, by the rules of pg_dump.
//!
//! With table patterns, schema patterns count for nothing; excluded tables are left out whatever
//! chose them; with exclusions alone, everything outside the system's schemas is chosen. Beyond
//! pg_dump: each choosing pattern has to match something, a TOAST table is matched like a table,
//! and a partitioned table named literally stands for its partitions. A wildcard passes it over,
//! because it matches the partitions themselves.
//!
//! Invariants: what a wildcard chooses has rows of its own; a literal name chooses whatever
//! relation it finds, so that a view is refused by its name and not called missing; nothing is
//! chosen twice.
//!
//! Source: `expand_table_name_patterns` and `selectDumpableTable` in `src/bin/pg_dump/pg_dump.c`,
//! `RelationIsVisible` in `src/backend/catalog/namespace.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::collections::HashMap;

use pagemill_cluster::names::{SearchPath, nearest};
use pagemill_cluster::{ClassRow, Database, Error as ClusterError, Persistence, RelationKind};
use pagemill_format::Oid;

use crate::encoding::{readable_name, utf8_name};
use crate::error::{Error, Result};
use crate::pattern::{Pattern, SchemaPattern};
use crate::refusal::Misuse;

/// Most names suggested for one that was not found.
const SUGGESTIONS: usize = 3;

/// The patterns of one command.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    tables: Vec<Pattern>,
    excluded_tables: Vec<Pattern>,
    schemas: Vec<SchemaPattern>,
    excluded_schemas: Vec<SchemaPattern>,
}

/// The patterns as they were written.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatternTexts<'a> {
    /// `-t`
    pub tables: &'a [String],
    /// `-T`
    pub excluded_tables: &'a [String],
    /// `-n`
    pub schemas: &'a [String],
    /// `-N`
    pub excluded_schemas: &'a [String],
}

/// A relation that was chosen.
#[derive(Debug, Clone)]
pub struct Selected {
    /// The name of its schema.
    pub schema: Box<[u8]>,
    /// Its row of `pg_class`.
    pub class: ClassRow,
    /// The encoding of both names, a number of `pg_database.encoding`.
    encoding: i32,
}

impl Selected {
    pub(crate) fn new(database: &Database, class: &ClassRow) -> Result<Self> {
        let encoding = database.row().encoding;
        Ok(Self { schema: database.schema_of(class)?, class: class.clone(), encoding })
    }

    /// The name of its schema in UTF-8, or as stored where it cannot be converted.
    pub fn schema_utf8(&self) -> Cow<'_, [u8]> {
        utf8_name(self.encoding, &self.schema)
    }

    /// Its name in UTF-8, or as stored where it cannot be converted.
    pub fn name_utf8(&self) -> Cow<'_, [u8]> {
        utf8_name(self.encoding, &self.class.name)
    }

    /// `schema.name`, for messages.
    pub fn display_name(&self) -> String {
        pagemill_cluster::relation::display_name(&self.schema_utf8(), &self.name_utf8())
    }
}

impl Patterns {
    /// Reads the patterns.
    ///
    /// # Errors
    /// When one is malformed.
    pub fn parse(texts: PatternTexts<'_>) -> Result<Self> {
        let tables = |texts: &[String]| {
            texts.iter().map(|t| Pattern::parse(t)).collect::<Result<Vec<_>, _>>()
        };
        let schemas = |texts: &[String]| {
            texts.iter().map(|t| SchemaPattern::parse(t)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            tables: tables(texts.tables)?,
            excluded_tables: tables(texts.excluded_tables)?,
            schemas: schemas(texts.schemas)?,
            excluded_schemas: schemas(texts.excluded_schemas)?,
        })
    }

    /// True when they can choose one relation only.
    pub fn name_one(&self) -> bool {
        matches!(&*self.tables, [only] if only.is_literal().is_some())
    }

    /// The relations chosen, by schema and name.
    ///
    /// # Errors
    /// When a choosing pattern matches nothing, names another database, or the catalogs cannot be
    /// read.
    pub fn select(&self, database: &Database) -> Result<Vec<Selected>> {
        self.select_among(database, has_own_rows)
    }

    /// As [`Patterns::select`], where wildcards choose among the relations that are `candidates`.
    ///
    /// # Errors
    /// As [`Patterns::select`].
    pub fn select_among(
        &self,
        database: &Database,
        candidates: fn(&ClassRow) -> bool,
    ) -> Result<Vec<Selected>> {
        self.check_database(database)?;
        let names = Names::read(database, candidates)?;
        let mut chosen: HashMap<Oid, &ClassRow> = HashMap::new();
        for pattern in &self.tables {
            chosen.extend(names.of_pattern(pattern)?.into_iter().map(|c| (c.oid, c)));
        }
        if self.tables.is_empty() {
            chosen.extend(self.of_schemas(&names)?.into_iter().map(|c| (c.oid, c)));
        }
        chosen.retain(|_, class| !self.excluded_tables.iter().any(|p| names.matches(p, class)));
        if chosen.is_empty() {
            return Err(Misuse::NoTables.into());
        }
        let chosen = chosen.into_values().map(|class| Selected::new(database, class));
        let mut all = chosen.collect::<Result<Vec<_>>>()?;
        all.sort_by(|a, b| (&a.schema, &a.class.name).cmp(&(&b.schema, &b.class.name)));
        Ok(all)
    }

    fn check_database(&self, database: &Database) -> Result<()> {
        let current = String::from_utf8_lossy(&database.row().name);
        for pattern in self.tables.iter().chain(&self.excluded_tables) {
            pattern.check_database(&current)?;
        }
        for pattern in self.schemas.iter().chain(&self.excluded_schemas) {
            pattern.check_database(&current)?;
        }
        Ok(())
    }

    fn of_schemas<'a>(&self, names: &Names<'a>) -> Result<Vec<&'a ClassRow>> {
        for pattern in &self.schemas {
            names.require_schema(pattern)?;
        }
        let wanted = |schema: &str| {
            let included = match self.schemas.is_empty() {
                true => !is_system_schema(schema.as_bytes()),
                false => self.schemas.iter().any(|pattern| pattern.matches(schema)),
            };
            included && !self.excluded_schemas.iter().any(|pattern| pattern.matches(schema))
        };
        let candidates = names.database.classes().iter().filter(|class| (names.candidates)(class));
        Ok(candidates.filter(|class| wanted(&names.schema(class))).collect())
    }
}

/// The one relation that a literal name finds.
///
/// # Errors
/// When the name is a pattern, or finds nothing.
pub fn find_one(database: &Database, text: &str) -> Result<Selected> {
    let pattern = Pattern::parse(text)?;
    pattern.check_database(&String::from_utf8_lossy(&database.row().name))?;
    if pattern.is_literal().is_none() {
        return Err(Misuse::NotOneRelation(text.to_owned()).into());
    }
    let names = Names::read(database, has_own_rows)?;
    let found = names.of_pattern(&pattern)?.into_iter().next();
    let class = found.ok_or_else(|| not_found(format!("relation {text}"), Vec::new()))?;
    Selected::new(database, class)
}

/// True for the schemas of the system: `information_schema`, and those whose names are reserved.
pub fn is_system_schema(schema: &[u8]) -> bool {
    schema.starts_with(b"pg_") || schema == b"information_schema"
}

/// What a wildcard chooses when rows are wanted.
fn has_own_rows(class: &ClassRow) -> bool {
    class.kind.has_rows() && class.persistence != Persistence::Temporary
}

/// The names of a database's relations as patterns see them.
struct Names<'a> {
    database: &'a Database,
    /// What wildcards choose among.
    candidates: fn(&ClassRow) -> bool,
    path: SearchPath,
    /// The place in the search path where a name is found first.
    foremost: HashMap<&'a [u8], usize>,
}

impl<'a> Names<'a> {
    fn read(database: &'a Database, candidates: fn(&ClassRow) -> bool) -> Result<Self> {
        let path = database.search_path()?;
        let mut foremost: HashMap<&[u8], usize> = HashMap::new();
        for class in database.classes() {
            let Some(place) = path.position(class.namespace) else { continue };
            let first = foremost.entry(&class.name).or_insert(place);
            *first = place.min(*first);
        }
        database.namespaces()?;
        Ok(Self { database, candidates, path, foremost })
    }

    fn schema(&self, class: &ClassRow) -> String {
        self.readable(&self.database.schema_of(class).unwrap_or_default())
    }

    /// A name as it would be typed.
    fn readable(&self, name: &[u8]) -> String {
        readable_name(self.database.row().encoding, name)
    }

    fn is_visible(&self, class: &ClassRow) -> bool {
        let place = self.path.position(class.namespace);
        place.is_some() && self.foremost.get(&*class.name).copied() == place
    }

    fn matches(&self, pattern: &Pattern, class: &ClassRow) -> bool {
        let name = self.readable(&class.name);
        pattern.matches(&self.schema(class), &name, self.is_visible(class))
    }

    /// What a pattern chooses; never nothing.
    fn of_pattern(&self, pattern: &Pattern) -> Result<Vec<&'a ClassRow>> {
        let literal = pattern.is_literal();
        let wanted = |class: &&ClassRow| literal.is_some() || (self.candidates)(class);
        let classes = self.database.classes().iter().filter(wanted);
        let found: Vec<_> = classes.filter(|class| self.matches(pattern, class)).collect();
        match literal {
            _ if !found.is_empty() => Ok(found),
            Some((schema, name)) => Err(self.missing(pattern, schema, name)),
            None => Err(Misuse::NoTableMatches(pattern.as_str().to_owned()).into()),
        }
    }

    /// Suggests names of the schema asked for, and as many more as there is room for.
    fn missing(&self, pattern: &Pattern, schema: Option<&str>, name: &str) -> Error {
        let listed = |class: &&ClassRow| class.kind.has_rows() || is_partitioned(class);
        let in_schema = |class: &&ClassRow| match schema {
            Some(schema) => self.schema(class) == schema,
            None => self.is_visible(class),
        };
        let name_of = |class: &ClassRow| self.readable(&class.name);
        let classes = || self.database.classes().iter().filter(listed);
        let here: Vec<String> = classes().filter(in_schema).map(name_of).collect();
        let mut near: Vec<String> = nearest(name, here.iter().map(String::as_str), SUGGESTIONS)
            .into_iter()
            .map(|name| qualified(schema, name))
            .collect();
        let elsewhere = classes().filter(|class| !in_schema(class) && *name_of(class) == *name);
        near.extend(elsewhere.map(|class| qualified(Some(&self.schema(class)), name)));
        near.truncate(SUGGESTIONS);
        not_found(format!("table {}", pattern.as_str()), near)
    }

    fn require_schema(&self, pattern: &SchemaPattern) -> Result<()> {
        let names = self.database.namespaces()?.values().map(|name| self.readable(name));
        let names: Vec<_> = names.collect();
        if names.iter().any(|name| pattern.matches(name)) {
            return Ok(());
        }
        let Some(literal) = pattern.is_literal() else {
            return Err(Misuse::NoSchemaMatches(pattern.as_str().to_owned()).into());
        };
        let near = nearest(literal, names.iter().map(|name| &**name), SUGGESTIONS);
        let near = near.into_iter().map(str::to_owned).collect();
        Err(not_found(format!("schema {}", pattern.as_str()), near))
    }
}

fn is_partitioned(class: &ClassRow) -> bool {
    class.kind == RelationKind::PartitionedTable
}

/// A name as a pattern would have to spell it.
fn qualified(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) => format!("{}.{}", spelled(schema), spelled(name)),
        None => spelled(name).into_owned(),
    }
}

fn spelled(name: &str) -> Cow<'_, str> {
    let plain = |ch: char| ch.is_ascii_lowercase() || ch.is_ascii_digit() || ch == '_';
    if !name.is_empty() && name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
}

fn not_found(what: impl Into<String>, near: Vec<String>) -> Error {
    ClusterError::NotFound { what: what.into(), near }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(tables: &[&str]) -> Patterns {
        let tables: Vec<String> = tables.iter().map(|&t| t.to_owned()).collect();
        Patterns::parse(PatternTexts { tables: &tables, ..PatternTexts::default() }).unwrap()
    }

    #[test]
    fn one_literal_name_is_one_relation_and_a_wildcard_may_be_many() {
        assert!(patterns(&["orders"]).name_one());
        assert!(patterns(&["\"My Schema\".\"T*\""]).name_one());
        assert!(!patterns(&["ord*"]).name_one());
        assert!(!patterns(&["a", "b"]).name_one());
        assert!(!patterns(&[]).name_one());
    }

    #[test]
    fn a_suggestion_is_spelled_so_that_it_can_be_typed() {
        assert_eq!(qualified(None, "orders"), "orders");
        assert_eq!(qualified(Some("Sales"), "t 1"), "\"Sales\".\"t 1\"");
        assert_eq!(spelled("a\"b"), "\"a\"\"b\"");
        assert_eq!(spelled(""), "\"\"");
    }

    #[test]
    fn the_schemas_of_the_system_are_known_by_their_names() {
        assert!(is_system_schema(b"pg_catalog") && is_system_schema(b"pg_toast_temp_3"));
        assert!(is_system_schema(b"information_schema"));
        assert!(!is_system_schema(b"public") && !is_system_schema(b"page"));
    }
}
