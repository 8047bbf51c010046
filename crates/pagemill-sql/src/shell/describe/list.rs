//! A list of objects as a query of the catalogs: its columns, where they come from, which objects are meant.
//!
//! ```text
//! "dt+" "ord*" ─► Asked ─► lists ─► List ──sql──► the session ─► a table with a title
//! ```
//!
//! Invariants: what a user typed stands in a query only within quotes; what a list is sorted and searched by are bytes, so that it is
//! there whatever the database's collation is.

use super::pattern::Pattern;
use crate::functions::text::quote_literal;

/// What was typed.
pub(super) struct Asked<'a> {
    /// Of the command, without `+` and `S`.
    pub(super) letters: &'a str,
    pub(super) is_verbose: bool,
    pub(super) shows_system: bool,
    pub(super) pattern: &'a Pattern,
    /// What further patterns mean: types of arguments, of which `None` is none, or databases.
    pub(super) others: &'a [Option<Pattern>],
    /// The version of the server.
    pub(super) major: u32,
}

/// What a pattern is held against.
#[derive(Default)]
pub(super) struct Named {
    /// The schema, of objects that are in one.
    pub(super) schema: Option<&'static str>,
    /// The names, of which one has to match.
    pub(super) names: &'static [&'static str],
    /// What says that an object is found without its schema.
    pub(super) visible: Option<&'static str>,
}

/// A query for a list.
pub(super) struct List {
    pub(super) title: &'static str,
    /// What is said to be absent where there is nothing to show; an empty list is shown without.
    pub(super) absent: Option<&'static str>,
    /// No count stands below.
    pub(super) is_uncounted: bool,
    columns: Vec<String>,
    from: String,
    conditions: Vec<String>,
    order: &'static str,
}

impl List {
    /// A list of what `from` has, in an order that names columns by their numbers.
    pub(super) fn new(title: &'static str, from: &str, order: &'static str) -> Self {
        let (columns, conditions) = (Vec::new(), Vec::new());
        let (absent, is_uncounted) = (None, false);
        Self { title, absent, is_uncounted, columns, from: from.to_owned(), conditions, order }
    }

    /// Where there is nothing to show, that is said of what is listed.
    pub(super) fn or_absent(self, what: &'static str) -> Self {
        Self { absent: Some(what), ..self }
    }

    /// Without the count below.
    pub(super) fn uncounted(self) -> Self {
        Self { is_uncounted: true, ..self }
    }

    /// Columns, each with its name.
    pub(super) fn columns(mut self, columns: &[(&str, &str)]) -> Self {
        let columns = columns.iter().map(|(name, expr)| format!("{expr} AS \"{name}\""));
        self.columns.extend(columns);
        self
    }

    /// Columns that are shown where something holds.
    pub(super) fn columns_if(self, holds: bool, columns: &[(&str, &str)]) -> Self {
        if holds { self.columns(columns) } else { self }
    }

    /// What holds for everything that is shown.
    pub(super) fn only(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }

    /// Leaves out what is in a schema of the system's, unless something was asked for by name.
    pub(super) fn without_system(self, asked: &Asked<'_>, schema: &str) -> Self {
        match asked.shows_system || asked.pattern.text().is_some() {
            true => self,
            false => self.only(format!("{schema} NOT IN ('pg_catalog', 'information_schema')")),
        }
    }

    /// Leaves out what the pattern does not mean.
    ///
    /// # Errors
    /// When it has a schema, and these objects are in none.
    pub(super) fn named(self, asked: &Asked<'_>, named: &Named) -> Result<Self, String> {
        match matching(asked.pattern, named)? {
            Some(condition) => Ok(self.only(condition)),
            None => Ok(self),
        }
    }

    pub(super) fn sql(&self) -> String {
        let Self { columns, from, conditions, order, .. } = self;
        let condition = match &conditions[..] {
            [] => String::new(),
            all => format!(" WHERE ({})", all.join(") AND (")),
        };
        format!("SELECT {} FROM {from}{condition} ORDER BY {order}", columns.join(", "))
    }
}

/// The condition that the pattern means an object.
///
/// # Errors
/// When it has a schema, and these objects are in none.
pub(super) fn matching(pattern: &Pattern, named: &Named) -> Result<Option<String>, String> {
    let mut all = Vec::new();
    if let Some(regex) = pattern.name().filter(|regex| *regex != "^(.*)$" && *regex != "^()$") {
        let regex = quote_literal(regex);
        let any = named.names.iter().map(|name| format!("({name})::text COLLATE \"C\" ~ {regex}"));
        all.push(format!("({})", any.collect::<Vec<_>>().join(" OR ")));
    }
    match (pattern.schema(), named.schema) {
        (Some("^()$" | "^(.*)$"), Some(_)) => {}
        (Some(regex), Some(schema)) => {
            all.push(format!("({schema})::text COLLATE \"C\" ~ {}", quote_literal(regex)));
        }
        (Some(_), None) => {
            let text = pattern.text().unwrap_or_default();
            return Err(format!("improper qualified name (too many dotted names): {text}"));
        }
        (None, _) => all.extend(named.visible.map(str::to_owned)),
    }
    Ok((!all.is_empty()).then(|| all.join(" AND ")))
}
