//! Indexes as `pg_get_indexdef` writes them.
//!
//! Source: `pg_get_indexdef_worker`, `get_opclass_name` in `src/backend/utils/adt/ruleutils.c`, `GetDefaultOpClass` in
//! `src/backend/commands/indexcmds.c`, PostgreSQL 15.

use std::collections::HashMap;

use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::expression::{UNWRITTEN, Writer};
use super::names::{Names, oids_and_names};
use crate::catalog::{CastContext, quote_identifier};
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_index`.
#[derive(Debug, Clone)]
pub(super) struct Index {
    pub(super) oid: Oid,
    pub(super) table: Oid,
    pub(super) is_unique: bool,
    pub(super) nulls_are_equal: bool,
    pub(super) is_primary: bool,
    pub(super) is_clustered: bool,
    pub(super) is_valid: bool,
    pub(super) is_replica_identity: bool,
    pub(super) key_columns: usize,
    columns: Vec<i16>,
    collations: Vec<Oid>,
    classes: Vec<Oid>,
    options: Vec<i16>,
    expressions: Option<String>,
    pub(super) predicate: Option<String>,
}

/// The indexes that `is_wanted` takes, by table and index.
pub(super) fn read(names: &Names<'_>, is_wanted: impl Fn(Oid, Oid) -> bool) -> Result<Vec<Index>> {
    let catalog = names.catalog;
    let mut columns = vec![
        "indexrelid",
        "indrelid",
        "indisunique",
        "indisprimary",
        "indisclustered",
        "indisvalid",
        "indisreplident",
        "indnkeyatts",
        "indkey",
        "indcollation",
        "indclass",
        "indoption",
        "indexprs",
        "indpred",
    ];
    if catalog.database().cluster().version().major() >= 15 {
        columns.push("indnullsnotdistinct");
    }
    let mut found = Vec::new();
    for_each_row(catalog.values(), "pg_index", &columns, |row| {
        if is_wanted(row.oid(1), row.oid(0)) {
            found.push(Index {
                oid: row.oid(0),
                table: row.oid(1),
                is_unique: row.bool(2),
                is_primary: row.bool(3),
                is_clustered: row.bool(4),
                is_valid: row.bool(5),
                is_replica_identity: row.bool(6),
                key_columns: usize::try_from(row.int2(7)).unwrap_or(0),
                columns: row.int2s(8)?,
                collations: row.oids(9)?,
                classes: row.oids(10)?,
                options: row.int2s(11)?,
                expressions: row.text(12)?,
                predicate: row.text(13)?,
                nulls_are_equal: columns.len() > 14 && row.bool(14),
            });
        }
        Ok(())
    })?;
    Ok(found)
}

/// A row of `pg_opclass`.
struct OperatorClass {
    name: String,
    method: Oid,
    input: Oid,
    is_default: bool,
    namespace: Oid,
}

/// What definitions of indexes need.
pub(super) struct Definitions<'n, 'c> {
    names: &'n Names<'c>,
    writer: Writer<'n, 'c>,
    methods: HashMap<Oid, String>,
    classes: HashMap<Oid, OperatorClass>,
    /// The table's columns: type and collation.
    types: HashMap<i16, (Oid, Oid)>,
    columns: HashMap<i16, String>,
}

impl<'n, 'c> Definitions<'n, 'c> {
    /// Those of one table.
    pub(super) fn new(names: &'n Names<'c>, table: Oid) -> Result<Self> {
        let catalog = names.catalog;
        let mut classes = HashMap::new();
        let wanted = ["oid", "opcname", "opcmethod", "opcintype", "opcdefault", "opcnamespace"];
        for_each_row(catalog.values(), "pg_opclass", &wanted, |row| {
            let found = OperatorClass {
                name: row.name(1),
                method: row.oid(2),
                input: row.oid(3),
                is_default: row.bool(4),
                namespace: row.oid(5),
            };
            classes.insert(row.oid(0), found);
            Ok(())
        })?;
        let mut types = HashMap::new();
        let wanted = ["attrelid", "attnum", "atttypid", "attcollation"];
        for_each_row(catalog.values(), "pg_attribute", &wanted, |row| {
            if row.oid(0) == table {
                types.insert(row.int2(1), (row.oid(2), row.oid(3)));
            }
            Ok(())
        })?;
        Ok(Self {
            names,
            writer: Writer::new(names, table)?,
            methods: oids_and_names(catalog, ("pg_am", "oid", "amname"))?,
            classes,
            types,
            columns: names.column_names(table)?,
        })
    }

    pub(super) fn method(&self, index: &Index) -> &str {
        let method = self.names.class(index.oid).map_or(Oid(0), |class| class.access_method);
        self.methods.get(&method).map_or("", String::as_str)
    }

    pub(super) fn writer(&self) -> &Writer<'n, 'c> {
        &self.writer
    }

    /// The expression or column at a place from 0, as a key without what follows it.
    pub(super) fn key(&self, index: &Index, place: usize) -> String {
        let number = index.columns.get(place).copied().unwrap_or(0);
        if number != 0 {
            return self
                .columns
                .get(&number)
                .map_or_else(String::new, |name| quote_identifier(name));
        }
        let before = index.columns[..place].iter().filter(|number| **number == 0).count();
        let texts = index.expressions.as_deref().map(|tree| self.writer.texts(tree));
        match texts.and_then(|texts| texts.into_iter().nth(before).flatten()) {
            Some(written) if written.is_call => written.text,
            Some(written) => format!("({})", written.text),
            None => UNWRITTEN.to_owned(),
        }
    }

    /// A key with its collation, operator class and order.
    fn whole_key(&self, index: &Index, place: usize) -> String {
        let mut text = self.key(index, place);
        let number = index.columns.get(place).copied().unwrap_or(0);
        let (type_oid, own_collation) = match number {
            0 => (self.expression_type(index, place), Oid(0)),
            number => self.types.get(&number).copied().unwrap_or((Oid(0), Oid(0))),
        };
        let collation = index.collations.get(place).copied().unwrap_or(Oid(0));
        let default = if number == 0 { crate::types::DEFAULT_COLLATION } else { own_collation };
        if collation != Oid(0) && collation != default {
            let name = self.names.catalog.collation(collation).map_or("?", |row| &row.name);
            text.push_str(&format!(" COLLATE {}", quote_identifier(name)));
        }
        let class = index.classes.get(place).copied().unwrap_or(Oid(0));
        if let Some(found) = self.classes.get(&class)
            && self.default_class(type_oid, found.method) != Some(class)
        {
            let is_visible = self.names.catalog.search_path().contains(&found.namespace);
            let schema = self.names.catalog.database().namespaces().ok();
            let schema = schema.and_then(|all| all.get(&found.namespace));
            text.push(' ');
            if let Some(schema) = schema.filter(|_| !is_visible) {
                text.push_str(&format!("{}.", quote_identifier(&String::from_utf8_lossy(schema))));
            }
            text.push_str(&quote_identifier(&found.name));
        }
        if self.method(index) == "btree" {
            text.push_str(match index.options.get(place).copied().unwrap_or(0) & 3 {
                0 => "",
                1 => " DESC NULLS LAST",
                2 => " NULLS FIRST",
                _ => " DESC",
            });
        }
        text
    }

    /// The type of an expression is that of the index's own column.
    fn expression_type(&self, index: &Index, place: usize) -> Oid {
        let mut found = Oid(0);
        let wanted = ["attrelid", "attnum", "atttypid"];
        let number = i16::try_from(place + 1).unwrap_or(0);
        // Without it the class is shown by its name, which is never wrong.
        let _ = for_each_row(self.names.catalog.values(), "pg_attribute", &wanted, |row| {
            if row.oid(0) == index.oid && row.int2(1) == number {
                found = row.oid(2);
            }
            Ok(())
        });
        found
    }

    fn default_class(&self, type_oid: Oid, method: Oid) -> Option<Oid> {
        let catalog = self.names.catalog;
        let base = catalog.base_type(type_oid, -1).0;
        let category = catalog.type_row(base).map_or(0, |row| row.category);
        let mut compatible = Vec::new();
        for (class, row) in self.classes.iter().filter(|(_, c)| c.is_default && c.method == method)
        {
            if row.input == base {
                return Some(*class);
            }
            if self.is_binary_coercible(base, row.input) {
                let is_preferred = catalog
                    .type_row(row.input)
                    .is_some_and(|input| input.is_preferred && input.category == category);
                compatible.push((is_preferred, *class));
            }
        }
        let preferred: Vec<Oid> =
            compatible.iter().filter(|(is, _)| *is).map(|(_, c)| *c).collect();
        match (preferred.as_slice(), compatible.as_slice()) {
            ([only], _) => Some(*only),
            ([], [(_, only)]) => Some(*only),
            _ => None,
        }
    }

    fn is_binary_coercible(&self, from: Oid, to: Oid) -> bool {
        let catalog = self.names.catalog;
        let row = catalog.type_row(from);
        match to {
            oid::ANYARRAY => row.is_some_and(|row| row.is_array()),
            oid::ANYENUM => row.is_some_and(|row| row.kind == b'e'),
            oid::ANYRANGE => row.is_some_and(|row| row.kind == b'r'),
            ANYMULTIRANGE => row.is_some_and(|row| row.kind == b'm'),
            oid::RECORD => row.is_some_and(|row| row.kind == b'c'),
            _ => catalog
                .cast(from, to)
                .is_some_and(|cast| cast.method == b'b' && cast.context == CastContext::Implicit),
        }
    }

    /// What follows `USING` in the statement that makes the index.
    pub(super) fn definition(&self, index: &Index) -> String {
        let keys: Vec<String> =
            (0..index.key_columns).map(|place| self.whole_key(index, place)).collect();
        self.with_keys(index, &keys, |predicate| predicate.to_owned())
    }

    /// What follows `EXCLUDE USING` in a constraint.
    pub(super) fn exclusion(&self, index: &Index, operators: &[Oid]) -> String {
        let operator = |place: usize| {
            let known = operators.get(place).and_then(|oid| self.writer.operator(*oid));
            known.unwrap_or_else(|| UNWRITTEN.to_owned())
        };
        let key = |place| format!("{} WITH {}", self.whole_key(index, place), operator(place));
        let keys: Vec<String> = (0..index.key_columns).map(key).collect();
        self.with_keys(index, &keys, |predicate| format!("({predicate})"))
    }

    fn with_keys(
        &self,
        index: &Index,
        keys: &[String],
        predicate_text: impl Fn(&str) -> String,
    ) -> String {
        let mut text = format!("{} ({})", self.method(index), keys.join(", "));
        if index.columns.len() > index.key_columns {
            let all = index.key_columns..index.columns.len();
            let included: Vec<String> = all.map(|place| self.key(index, place)).collect();
            text.push_str(&format!(" INCLUDE ({})", included.join(", ")));
        }
        if index.nulls_are_equal {
            text.push_str(" NULLS NOT DISTINCT");
        }
        if let Some(options) = self.names.class(index.oid).and_then(|c| c.options.as_deref()) {
            text.push_str(&format!(" WITH ({})", storage_options(options)));
        }
        if let Some(predicate) = &index.predicate {
            let written = self.writer.text(predicate);
            let written =
                written.map_or_else(|| UNWRITTEN.to_owned(), |text| predicate_text(&text));
            text.push_str(&format!(" WHERE {written}"));
        }
        text
    }
}

/// `anymultirange`.
const ANYMULTIRANGE: Oid = Oid(4537);

/// `{fillfactor=70}` as it is written in a statement.
fn storage_options(array: &str) -> String {
    let items = array.trim_start_matches('{').trim_end_matches('}').split(',');
    let item = |item: &str| match item.split_once('=') {
        Some((name, value)) if quote_identifier(value) == value => format!("{name}={value}"),
        Some((name, value)) => format!("{name}={}", super::names::literal(value)),
        None => item.to_owned(),
    };
    items.map(item).collect::<Vec<_>>().join(", ")
}
