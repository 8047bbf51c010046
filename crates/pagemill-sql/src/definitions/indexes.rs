//! Indexes, and the keys of partitioned tables, which are written the same way.
//!
//! Source: `pg_get_indexdef_worker`, `pg_get_partkeydef_worker`, `get_opclass_name`, `get_reloptions` in
//! `src/backend/utils/adt/ruleutils.c`, `GetDefaultOpClass` in `src/backend/commands/indexcmds.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::node_tree::{Node, NodeStruct};
use pagemill_types::array::element_payloads;
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::dictionary::{Dictionary, literal};
use super::tree::{expr_collation, expr_type};
use super::writer::{Style, Writer, Written};
use crate::catalog::{CastContext, Catalog};
use crate::error::Result;
use crate::system_rows::for_each_row;

/// What is looked up by: columns, expressions, and how they are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    pub(crate) table: Oid,
    /// The numbers of the table's columns, 0 for an expression.
    columns: Vec<i16>,
    collations: Vec<Oid>,
    classes: Vec<Oid>,
    expressions: Option<String>,
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Looks at the expression of a place, if it is one.
    pub(super) fn with_expression(
        &self,
        place: usize,
        look: impl FnOnce(&NodeStruct<'_>) -> Written,
    ) -> Written {
        if self.columns.get(place).is_none_or(|number| *number != 0) {
            return Ok(());
        }
        let before = self.columns.iter().take(place).filter(|number| **number == 0).count();
        let parsed = Node::parse(self.expressions.as_deref().unwrap_or_default().as_bytes())?;
        let missing = || Unwritten::damaged("a key without its expressions");
        look(parsed.as_list()?.get(before).and_then(Node::structure).ok_or_else(missing)?)
    }

    pub(super) fn class(&self, place: usize) -> Oid {
        self.classes.get(place).copied().unwrap_or(Oid(0))
    }

    pub(super) fn collation_of(&self, place: usize) -> Oid {
        self.collations.get(place).copied().unwrap_or(Oid(0))
    }
}

/// A row of `pg_index`.
#[derive(Debug, Clone)]
pub(crate) struct IndexRow {
    oid: Oid,
    keys: Keys,
    is_unique: bool,
    pub(crate) nulls_are_equal: bool,
    key_columns: usize,
    options: Vec<i16>,
    predicate: Option<String>,
}

impl IndexRow {
    /// The columns that are only carried along.
    pub(crate) fn included(&self) -> &[i16] {
        self.keys.columns.get(self.key_columns..).unwrap_or_default()
    }
}

/// All indexes, by OID.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn indexes(catalog: &Catalog) -> Result<HashMap<Oid, IndexRow>> {
    let mut columns = vec![
        "indexrelid",
        "indrelid",
        "indisunique",
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
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_index", &columns, |row| {
        let keys = Keys {
            table: row.oid(1),
            columns: row.int2s(4)?,
            collations: row.oids(5)?,
            classes: row.oids(6)?,
            expressions: row.text(8)?,
        };
        let index = IndexRow {
            oid: row.oid(0),
            keys,
            is_unique: row.bool(2),
            key_columns: usize::try_from(row.int2(3)).unwrap_or(0),
            options: row.int2s(7)?,
            predicate: row.text(9)?,
            nulls_are_equal: columns.len() > 10 && row.bool(10),
        };
        found.insert(index.oid, index);
        Ok(())
    })?;
    Ok(found)
}

/// The strategy and the keys of each partitioned table.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn partition_keys(catalog: &Catalog) -> Result<HashMap<Oid, (u8, Keys)>> {
    let columns =
        ["partrelid", "partstrat", "partattrs", "partclass", "partcollation", "partexprs"];
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_partitioned_table", &columns, |row| {
        let keys = Keys {
            table: row.oid(0),
            columns: row.int2s(2)?,
            classes: row.oids(3)?,
            collations: row.oids(4)?,
            expressions: row.text(5)?,
        };
        found.insert(keys.table, (row.byte(1), keys));
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

/// A key with what follows it.
struct Key {
    text: String,
    /// Collation, operator class and order.
    rest: String,
}

/// Writes definitions of indexes.
pub(crate) struct IndexWriter {
    catalog: Arc<Catalog>,
    dictionary: Arc<Dictionary>,
    style: Style,
    methods: HashMap<Oid, String>,
    classes: HashMap<Oid, OperatorClass>,
    /// Options of operator classes, by index and column.
    options: HashMap<(Oid, i16), Vec<u8>>,
}

impl IndexWriter {
    /// Reads what is needed for all of them.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn new(catalog: &Arc<Catalog>, style: Style) -> Result<Self> {
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
        let mut methods = HashMap::new();
        for_each_row(catalog.values(), "pg_am", &["oid", "amname"], |row| {
            methods.insert(row.oid(0), row.name(1));
            Ok(())
        })?;
        let mut options = HashMap::new();
        let wanted = ["attrelid", "attnum", "attoptions"];
        for_each_row(catalog.values(), "pg_attribute", &wanted, |row| {
            if let Some(found) = row.payload(2)?.map(<[u8]>::to_vec) {
                options.insert((row.oid(0), row.int2(1)), found);
            }
            Ok(())
        })?;
        let dictionary = catalog.dictionary()?;
        Ok(Self { catalog: catalog.clone(), dictionary, style, methods, classes, options })
    }

    /// The statement that makes an index.
    pub(crate) fn definition(&self, index: &IndexRow) -> Written<String> {
        let relation = self.dictionary.relation(index.oid)?;
        let unique = if index.is_unique { "UNIQUE " } else { "" };
        let only = if relation.kind == b'I' { "ONLY " } else { "" };
        let table = match self.style.is_pretty {
            true => self.dictionary.relation_name(index.keys.table)?,
            false => self.dictionary.qualified_relation_name(index.keys.table)?,
        };
        let keys: Vec<String> = (0..index.key_columns)
            .map(|place| self.key(index, place).map(|key| key.text + &key.rest))
            .collect::<Written<_>>()?;
        let head = format!(
            "CREATE {unique}INDEX {} ON {only}{table} USING {} ({}",
            self.dictionary.quoted(&relation.name),
            self.method(index)?,
            keys.join(", ")
        );
        let predicate = self.predicate(index)?.map(|text| format!(" WHERE {text}"));
        Ok(head + &self.tail(index)? + &predicate.unwrap_or_default())
    }

    /// What a constraint EXCLUDE is.
    pub(crate) fn exclusion(&self, index: &IndexRow, operators: &[Oid]) -> Written<String> {
        let key = |place: usize| {
            let key = self.key(index, place)?;
            let missing = || Unwritten::damaged("an exclusion without its operators");
            let operator = self.dictionary.operator(*operators.get(place).ok_or_else(missing)?)?;
            Ok(format!("{}{} WITH {operator}", key.text, key.rest))
        };
        let keys = (0..index.key_columns).map(key).collect::<Written<Vec<String>>>()?;
        let head = format!("EXCLUDE USING {} ({}", self.method(index)?, keys.join(", "));
        let predicate = self.predicate(index)?.map(|text| format!(" WHERE ({text})"));
        Ok(head + &self.tail(index)? + &predicate.unwrap_or_default())
    }

    /// One column, by its place from 0, without what follows it; empty where there is none.
    pub(crate) fn column(&self, index: &IndexRow, place: usize) -> Written<String> {
        match place < index.keys.columns.len() {
            true => Ok(self.plain_key(&index.keys, place)?.0),
            false => Ok(String::new()),
        }
    }

    /// The key of a partitioned table.
    pub(crate) fn partition_key(&self, strategy: u8, keys: &Keys) -> Written<String> {
        let word = match strategy {
            b'h' => "HASH",
            b'l' => "LIST",
            b'r' => "RANGE",
            other => return Err(Unwritten::unknown(format!("the partition strategy {other}"))),
        };
        let key = |place: usize| {
            let (text, type_oid, collation) = self.plain_key(keys, place)?;
            let collation = self.collation(keys, place, collation)?;
            let class = self.operator_class(keys, place, Some(type_oid))?;
            Ok(text + &collation + &class)
        };
        let keys = (0..keys.columns.len()).map(key).collect::<Written<Vec<String>>>()?;
        Ok(format!("{word} ({})", keys.join(", ")))
    }

    /// The access method.
    pub(crate) fn method(&self, index: &IndexRow) -> Written<String> {
        let method = self.dictionary.relation(index.oid)?.access_method;
        let name = self.methods.get(&method);
        let missing = || Unwritten::missing("access method", method);
        name.map(|name| self.dictionary.quoted(name)).ok_or_else(missing)
    }

    /// The text, type and collation of a key, in parentheses but for columns and calls.
    fn plain_key(&self, keys: &Keys, place: usize) -> Written<(String, Oid, Oid)> {
        let (text, is_plain, type_oid, collation) = self.any_key(keys, place)?;
        let text = if is_plain { text } else { format!("({text})") };
        Ok((text, type_oid, collation))
    }

    /// The same without more parentheses.
    pub(super) fn bare_key(&self, keys: &Keys, place: usize) -> Written<(String, Oid, Oid)> {
        let (text, _, type_oid, collation) = self.any_key(keys, place)?;
        Ok((text, type_oid, collation))
    }

    fn any_key(&self, keys: &Keys, place: usize) -> Written<(String, bool, Oid, Oid)> {
        let number = keys.columns.get(place).copied().unwrap_or(0);
        if number != 0 {
            let column = self.dictionary.column(keys.table, number)?;
            let name = self.dictionary.quoted(&column.name);
            return Ok((name, true, column.type_oid, column.collation));
        }
        let before = keys.columns.iter().take(place).filter(|number| **number == 0).count();
        let tree = keys.expressions.as_deref().unwrap_or_default();
        let parsed = Node::parse(tree.as_bytes())?;
        let missing = || Unwritten::damaged("an index without its expressions");
        let node = parsed.as_list()?.get(before).and_then(Node::structure).ok_or_else(missing)?;
        let (text, is_call) = self.expression(node, keys.table)?;
        Ok((text, is_call, expr_type(&self.dictionary, node)?, expr_collation(node)?))
    }

    fn expression<'t>(&self, node: &'t NodeStruct<'t>, table: Oid) -> Written<(String, bool)> {
        let mut writer = Writer::new(&self.catalog, &self.dictionary, self.style);
        let is_call = writer.looks_like_function(node)?;
        Ok((writer.expression(node, table)?, is_call))
    }

    fn collation(&self, keys: &Keys, place: usize, own: Oid) -> Written<String> {
        let collation = keys.collation_of(place);
        match collation {
            Oid(0) => Ok(String::new()),
            same if same == own => Ok(String::new()),
            other => Ok(format!(" COLLATE {}", self.dictionary.collation(other)?)),
        }
    }

    /// The operator class, if it is not the default of the type; always without a type.
    fn operator_class(&self, keys: &Keys, place: usize, of: Option<Oid>) -> Written<String> {
        self.class_name(keys.class(place), of)
    }

    /// An operator class in a place that has no type but the class's own.
    pub(super) fn class_of_own_type(&self, class: Oid) -> Written<String> {
        self.class_name(class, self.classes.get(&class).map(|found| found.input))
    }

    fn class_name(&self, class: Oid, of: Option<Oid>) -> Written<String> {
        let missing = || Unwritten::missing("operator class", class);
        let found = self.classes.get(&class).ok_or_else(missing)?;
        if of.is_some_and(|type_oid| self.default_class(type_oid, found.method) == Some(class)) {
            return Ok(String::new());
        }
        let name = self.dictionary.quoted(&found.name);
        match self.dictionary.is_on_path(found.namespace) {
            true => Ok(format!(" {name}")),
            false => Ok(format!(" {}.{name}", self.dictionary.schema(found.namespace)?)),
        }
    }

    fn key(&self, index: &IndexRow, place: usize) -> Written<Key> {
        let (text, type_oid, collation) = self.plain_key(&index.keys, place)?;
        let mut rest = self.collation(&index.keys, place, collation)?;
        let number = i16::try_from(place + 1).unwrap_or(0);
        match self.options.get(&(index.oid, number)) {
            Some(options) => {
                rest += &self.operator_class(&index.keys, place, None)?;
                rest += &format!(" ({})", self.storage_options(options)?);
            }
            None => rest += &self.operator_class(&index.keys, place, Some(type_oid))?,
        }
        if self.method(index)? == "btree" {
            rest += match index.options.get(place).copied().unwrap_or(0) & 3 {
                0 => "",
                1 => " DESC NULLS LAST",
                2 => " NULLS FIRST",
                _ => " DESC",
            };
        }
        Ok(Key { text, rest })
    }

    fn tail(&self, index: &IndexRow) -> Written<String> {
        let mut text = String::new();
        let places = index.key_columns..index.keys.columns.len();
        let included = places.map(|place| Ok(self.plain_key(&index.keys, place)?.0));
        let included = included.collect::<Written<Vec<String>>>()?;
        if !included.is_empty() {
            text += &format!(") INCLUDE ({}", included.join(", "));
        }
        text.push(')');
        if index.nulls_are_equal {
            text += " NULLS NOT DISTINCT";
        }
        if let Some(options) = &self.dictionary.relation(index.oid)?.options {
            text += &format!(" WITH ({})", self.storage_options(options)?);
        }
        Ok(text)
    }

    /// The condition that its rows fulfill.
    pub(crate) fn predicate(&self, index: &IndexRow) -> Written<Option<String>> {
        let Some(tree) = &index.predicate else { return Ok(None) };
        let parsed = Node::parse(tree.as_bytes())?;
        let missing = || Unwritten::damaged("an index without its condition");
        let node = parsed.structure().ok_or_else(missing)?;
        Ok(Some(self.expression(node, index.keys.table)?.0))
    }

    /// `{fillfactor=70}` as it is written in a statement.
    pub(crate) fn storage_options(&self, array: &[u8]) -> Written<String> {
        let layout = self.catalog.values().value_type(oid::TEXT);
        let layout = layout.map_err(|error| Unwritten::unknown(error.to_string()))?.layout;
        let items = element_payloads(array, layout)?;
        let item = |item: Vec<u8>| {
            let text = String::from_utf8_lossy(&item).into_owned();
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            let value = match self.dictionary.quoted(value) == value {
                true => value.to_owned(),
                false => literal(value),
            };
            format!("{}={value}", self.dictionary.quoted(name))
        };
        Ok(items.into_iter().flatten().map(item).collect::<Vec<_>>().join(", "))
    }

    fn default_class(&self, type_oid: Oid, method: Oid) -> Option<Oid> {
        let base = self.catalog.base_type(type_oid, -1).0;
        let category = self.catalog.type_row(base).map_or(0, |row| row.category);
        let mut compatible = Vec::new();
        let defaults = self.classes.iter().filter(|(_, c)| c.is_default && c.method == method);
        for (class, row) in defaults {
            if row.input == base {
                return Some(*class);
            }
            if self.is_binary_coercible(base, row.input) {
                let input = self.catalog.type_row(row.input);
                let is_preferred =
                    input.is_some_and(|input| input.is_preferred && input.category == category);
                compatible.push((is_preferred, *class));
            }
        }
        let preferred: Vec<Oid> =
            compatible.iter().filter(|(is, _)| *is).map(|(_, class)| *class).collect();
        match (preferred.as_slice(), compatible.as_slice()) {
            ([only], _) => Some(*only),
            ([], [(_, only)]) => Some(*only),
            _ => None,
        }
    }

    fn is_binary_coercible(&self, from: Oid, to: Oid) -> bool {
        let row = self.catalog.type_row(from);
        match to {
            oid::ANYARRAY => row.is_some_and(|row| row.is_array()),
            oid::ANYENUM => row.is_some_and(|row| row.kind == b'e'),
            oid::ANYRANGE => row.is_some_and(|row| row.kind == b'r'),
            ANYMULTIRANGE => row.is_some_and(|row| row.kind == b'm'),
            oid::RECORD => row.is_some_and(|row| row.kind == b'c'),
            _ => self
                .catalog
                .cast(from, to)
                .is_some_and(|cast| cast.method == b'b' && cast.context == CastContext::Implicit),
        }
    }
}

/// `anymultirange`.
const ANYMULTIRANGE: Oid = Oid(4537);
