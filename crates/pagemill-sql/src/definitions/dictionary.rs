//! The names that definitions are written with: operators, relations and their columns, collations, operator classes.
//!
//! Invariant: a name stands alone only where it is found again without its schema.
//!
//! Source: `generate_relation_name`, `generate_operator_name`, `generate_function_name`, `generate_collation_name` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use pagemill_format::{Oid, PgVersion};
use pagemill_types::array::element_payloads;
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::writer::Style;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::functions::format_type::formatted_type;
use crate::functions::text_form::{plain_text_of_payload, text_of_payload};
use crate::system_rows::{PG_CATALOG, for_each_row};
use crate::types::UNKNOWN;

/// The access method `btree`.
///
/// Source: `BTREE_AM_OID` in `src/include/catalog/pg_am.dat`, PostgreSQL 18.
const BTREE: Oid = Oid(403);
/// Strategies of a B-tree.
///
/// Source: `src/include/access/stratnum.h`, PostgreSQL 18.
const LESS: i16 = 1;
const GREATER: i16 = 5;

/// A column of a relation.
#[derive(Debug, Clone)]
pub(crate) struct ColumnRow {
    pub(crate) name: String,
    pub(crate) type_oid: Oid,
    pub(crate) collation: Oid,
}

#[derive(Debug)]
struct Operator {
    name: String,
    namespace: Oid,
    operands: (Oid, Oid),
    result: Oid,
}

#[derive(Debug)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) namespace: Oid,
    pub(super) kind: u8,
    pub(super) access_method: Oid,
    /// The composite type of its rows.
    pub(super) row_type: Oid,
    pub(super) options: Option<Vec<u8>>,
}

/// What the names of one database are.
#[derive(Debug)]
pub(crate) struct Dictionary {
    version: PgVersion,
    namespaces: HashMap<Oid, String>,
    search_path: Vec<Oid>,
    operators: HashMap<Oid, Operator>,
    relations: HashMap<Oid, Relation>,
    /// The place on the search path of the first relation of each name.
    first_places: HashMap<String, usize>,
    /// The relation whose rows are of a composite type.
    of_row_type: HashMap<Oid, Oid>,
    /// By relation, the columns before the first dropped ones among them.
    columns: HashMap<Oid, Vec<Option<ColumnRow>>>,
    /// Names and schemas.
    collations: HashMap<Oid, (String, Oid)>,
    type_collations: HashMap<Oid, Oid>,
    /// The operators that a type is sorted by where nothing else is said: upward or downward.
    default_orders: HashMap<Oid, bool>,
    /// The columns of functions that give records, by the function.
    record_columns: HashMap<Oid, Vec<String>>,
}

impl Dictionary {
    /// Reads them.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn read(catalog: &Catalog) -> Result<Self> {
        let namespaces = catalog.database().namespaces()?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let mut read = Self {
            version: catalog.database().cluster().version(),
            namespaces: namespaces.iter().map(|(oid, name)| (*oid, text(name))).collect(),
            search_path: catalog.search_path().to_vec(),
            operators: HashMap::new(),
            relations: HashMap::new(),
            first_places: HashMap::new(),
            of_row_type: HashMap::new(),
            columns: HashMap::new(),
            collations: HashMap::new(),
            type_collations: HashMap::new(),
            default_orders: HashMap::new(),
            record_columns: HashMap::new(),
        };
        read.read_operators(catalog)?;
        read.read_relations(catalog)?;
        read.read_columns(catalog)?;
        read.read_collations(catalog)?;
        read.read_default_orders(catalog)?;
        read.read_record_columns(catalog)?;
        Ok(read)
    }

    fn read_operators(&mut self, catalog: &Catalog) -> Result<()> {
        let columns = ["oid", "oprname", "oprnamespace", "oprleft", "oprright", "oprresult"];
        for_each_row(catalog.values(), "pg_operator", &columns, |row| {
            let found = Operator {
                name: row.name(1),
                namespace: row.oid(2),
                operands: (row.oid(3), row.oid(4)),
                result: row.oid(5),
            };
            self.operators.insert(row.oid(0), found);
            Ok(())
        })
    }

    fn read_relations(&mut self, catalog: &Catalog) -> Result<()> {
        let columns =
            ["oid", "relname", "relnamespace", "relkind", "relam", "reltype", "reloptions"];
        for_each_row(catalog.values(), "pg_class", &columns, |row| {
            let found = Relation {
                name: row.name(1),
                namespace: row.oid(2),
                kind: row.byte(3),
                access_method: row.oid(4),
                row_type: row.oid(5),
                options: row.payload(6)?.map(<[u8]>::to_vec),
            };
            if let Some(place) = self.place(found.namespace) {
                let first = self.first_places.entry(found.name.clone()).or_insert(place);
                *first = place.min(*first);
            }
            self.of_row_type.insert(found.row_type, row.oid(0));
            self.relations.insert(row.oid(0), found);
            Ok(())
        })
    }

    fn read_columns(&mut self, catalog: &Catalog) -> Result<()> {
        let columns = ["attrelid", "attnum", "attname", "atttypid", "attcollation", "attisdropped"];
        for_each_row(catalog.values(), "pg_attribute", &columns, |row| {
            let Some(at) = usize::try_from(row.int2(1)).ok().and_then(|n| n.checked_sub(1)) else {
                return Ok(());
            };
            let of_relation = self.columns.entry(row.oid(0)).or_default();
            if of_relation.len() <= at {
                of_relation.resize(at + 1, None);
            }
            let found =
                ColumnRow { name: row.name(2), type_oid: row.oid(3), collation: row.oid(4) };
            of_relation[at] = (!row.bool(5)).then_some(found);
            Ok(())
        })
    }

    fn read_collations(&mut self, catalog: &Catalog) -> Result<()> {
        let columns = ["oid", "collname", "collnamespace"];
        for_each_row(catalog.values(), "pg_collation", &columns, |row| {
            self.collations.insert(row.oid(0), (row.name(1), row.oid(2)));
            Ok(())
        })?;
        for_each_row(catalog.values(), "pg_type", &["oid", "typcollation"], |row| {
            self.type_collations.insert(row.oid(0), row.oid(1));
            Ok(())
        })
    }

    fn read_default_orders(&mut self, catalog: &Catalog) -> Result<()> {
        let mut defaults = HashSet::new();
        let columns = ["opcmethod", "opcdefault", "opcfamily", "opcintype"];
        for_each_row(catalog.values(), "pg_opclass", &columns, |row| {
            if row.oid(0) == BTREE && row.bool(1) {
                defaults.insert((row.oid(2), row.oid(3)));
            }
            Ok(())
        })?;
        let columns = ["amopfamily", "amoplefttype", "amoprighttype", "amopstrategy", "amopopr"];
        for_each_row(catalog.values(), "pg_amop", &columns, |row| {
            let is_default =
                row.oid(1) == row.oid(2) && defaults.contains(&(row.oid(0), row.oid(1)));
            match row.int2(3) {
                LESS if is_default => self.default_orders.insert(row.oid(4), true),
                GREATER if is_default => self.default_orders.insert(row.oid(4), false),
                _ => None,
            };
            Ok(())
        })
    }

    /// True for the operator that its type is sorted by, false for that of the order backward.
    pub(super) fn is_default_order(&self, operator: Oid) -> Option<bool> {
        self.default_orders.get(&operator).copied()
    }

    fn read_record_columns(&mut self, catalog: &Catalog) -> Result<()> {
        let layout = catalog.values().value_type(oid::TEXT)?.layout;
        let columns = ["oid", "proargmodes", "proargnames"];
        for_each_row(catalog.values(), "pg_proc", &columns, |row| {
            // An array of one byte each lies behind five words of its header.
            let modes = row.payload(1)?.and_then(|bytes| bytes.get(20..)).map(<[u8]>::to_vec);
            let (Some(modes), Some(names)) = (modes, row.payload(2)?) else { return Ok(()) };
            let names = element_payloads(names, layout).map_err(|error| {
                StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
            })?;
            let is_given = |mode: &u8| matches!(mode, b'o' | b'b' | b't');
            let given = modes.iter().zip(names).filter(|(mode, _)| is_given(mode));
            let name = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
            let found = given.map(|(_, text)| text.map(name).unwrap_or_default()).collect();
            self.record_columns.insert(row.oid(0), found);
            Ok(())
        })
    }

    /// The columns of a function that gives records.
    pub(super) fn record_columns(&self, function: Oid) -> Option<&[String]> {
        self.record_columns.get(&function).map(Vec::as_slice)
    }

    /// A name as a statement has to write it for the version's server.
    pub(crate) fn quoted(&self, name: &str) -> String {
        let mut quoted = Vec::new();
        pagemill_cluster::names::quote_identifier(name.as_bytes(), self.version, &mut quoted);
        String::from_utf8_lossy(&quoted).into_owned()
    }

    pub(super) fn major(&self) -> u32 {
        self.version.major()
    }

    /// The schema of that number, in quotes where it needs them.
    pub(super) fn schema(&self, namespace: Oid) -> Result<String, Unwritten> {
        let name = self.namespaces.get(&namespace);
        name.map(|name| self.quoted(name)).ok_or_else(|| Unwritten::missing("schema", namespace))
    }

    fn place(&self, namespace: Oid) -> Option<usize> {
        self.search_path.iter().position(|each| *each == namespace)
    }

    pub(super) fn is_on_path(&self, namespace: Oid) -> bool {
        self.place(namespace).is_some()
    }

    pub(super) fn relation(&self, oid: Oid) -> Result<&Relation, Unwritten> {
        self.relations.get(&oid).ok_or_else(|| Unwritten::missing("relation", oid))
    }

    /// True where the relation's name alone means it.
    pub(super) fn is_visible(&self, of: &Relation) -> bool {
        let own = self.place(of.namespace);
        own.is_some() && self.first_places.get(&of.name).copied() == own
    }

    /// The relation, with its schema where its name alone does not mean it.
    pub(super) fn relation_name(&self, oid: Oid) -> Result<String, Unwritten> {
        let found = self.relation(oid)?;
        match self.is_visible(found) {
            true => Ok(self.quoted(&found.name)),
            false => self.qualified_relation_name(oid),
        }
    }

    pub(crate) fn qualified_relation_name(&self, oid: Oid) -> Result<String, Unwritten> {
        let found = self.relation(oid)?;
        Ok(format!("{}.{}", self.schema(found.namespace)?, self.quoted(&found.name)))
    }

    pub(crate) fn has_relation(&self, oid: Oid) -> bool {
        self.relations.contains_key(&oid)
    }

    /// The relation whose rows are of that type.
    pub(super) fn relation_of_type(&self, type_oid: Oid) -> Option<Oid> {
        self.of_row_type.get(&type_oid).copied()
    }

    /// The type of a relation's rows.
    pub(crate) fn row_type(&self, relation: Oid) -> Option<Oid> {
        self.relations.get(&relation).map(|found| found.row_type).filter(|found| *found != Oid(0))
    }

    /// The columns of rows of this type, those that were dropped left out.
    pub(crate) fn row_columns(&self, row_type: Oid) -> Option<Vec<ColumnRow>> {
        let relation = self.relation_of_type(row_type)?;
        Some(self.columns(relation).iter().flatten().cloned().collect())
    }

    pub(super) fn columns(&self, relation: Oid) -> &[Option<ColumnRow>] {
        self.columns.get(&relation).map_or(&[], Vec::as_slice)
    }

    /// The names of a relation's columns, those that were dropped left out.
    pub(crate) fn column_names(&self, relation: Oid) -> Vec<String> {
        let columns = self.columns(relation).iter().flatten();
        columns.map(|column| column.name.clone()).collect()
    }

    /// The relation's name, as it is.
    pub(crate) fn bare_name(&self, relation: Oid) -> Option<&str> {
        self.relations.get(&relation).map(|found| found.name.as_str())
    }

    /// The number of a column, from 1.
    pub(crate) fn column_number(&self, relation: Oid, name: &str) -> Option<i32> {
        let is_it = |column: &Option<ColumnRow>| column.as_ref().is_some_and(|c| c.name == name);
        let at = self.columns(relation).iter().position(is_it)?;
        i32::try_from(at + 1).ok()
    }

    /// A column by its number from 1; the system's own have numbers below 0.
    pub(super) fn column(&self, relation: Oid, number: i16) -> Result<ColumnRow, Unwritten> {
        if let Some((name, type_oid)) = system_column(number) {
            let name = name.to_owned();
            return Ok(ColumnRow { name, type_oid, collation: Oid(0) });
        }
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let found = at.and_then(|at| self.columns(relation).get(at)?.clone());
        found.ok_or_else(|| Unwritten::damaged(format!("column {number} of relation {relation}")))
    }

    /// An operator where it is used, with its schema where another might be meant.
    pub(super) fn operator(&self, oid: Oid) -> Result<String, Unwritten> {
        let found = self.operators.get(&oid).ok_or_else(|| Unwritten::missing("operator", oid))?;
        let hides = |own: usize| {
            self.operators.values().any(|other| {
                other.name == found.name
                    && other.operands == found.operands
                    && self.place(other.namespace).is_some_and(|place| place < own)
            })
        };
        match self.place(found.namespace) {
            Some(own) if own == 0 || !hides(own) => Ok(found.name.clone()),
            _ => Ok(format!("OPERATOR({}.{})", self.schema(found.namespace)?, found.name)),
        }
    }

    /// The operator's own name, and what it gives.
    pub(super) fn operator_row(&self, oid: Oid) -> Option<(&str, Oid)> {
        self.operators.get(&oid).map(|found| (found.name.as_str(), found.result))
    }

    pub(super) fn is_builtin_operator(&self, oid: Oid) -> bool {
        self.operators.get(&oid).is_some_and(|found| found.namespace == PG_CATALOG)
    }

    pub(super) fn collation(&self, oid: Oid) -> Result<String, Unwritten> {
        let missing = || Unwritten::missing("collation", oid);
        let (name, namespace) = self.collations.get(&oid).ok_or_else(missing)?;
        let name = self.quoted(name);
        match self.is_on_path(*namespace) {
            true => Ok(name),
            false => Ok(format!("{}.{name}", self.schema(*namespace)?)),
        }
    }

    /// The collation of a type's values where nothing else is said.
    pub(super) fn type_collation(&self, type_oid: Oid) -> Oid {
        self.type_collations.get(&type_oid).copied().unwrap_or(Oid(0))
    }
}

fn system_column(number: i16) -> Option<(&'static str, Oid)> {
    Some(match number {
        -1 => ("ctid", oid::TID),
        -2 => ("xmin", oid::XID),
        -3 => ("cmin", oid::CID),
        -4 => ("xmax", oid::XID),
        -5 => ("cmax", oid::CID),
        -6 => ("tableoid", oid::OID),
        _ => return None,
    })
}

/// A type with its modifier.
pub(super) fn type_name(
    catalog: &Catalog,
    type_oid: Oid,
    modifier: i32,
) -> Result<String, Unwritten> {
    let refused =
        || Unwritten::unknown(format!("a modifier of the type {}", catalog.type_name(type_oid)));
    match modifier < 0 && type_oid == UNKNOWN {
        true => Ok("unknown".to_owned()),
        false => formatted_type(catalog, type_oid, modifier).ok_or_else(refused),
    }
}

/// A value as its type's output function writes it: as the session shows it, or as any session reads it.
pub(super) fn text_of_value(
    catalog: &Catalog,
    style: Style,
    type_oid: Oid,
    payload: &[u8],
) -> Result<String, Unwritten> {
    let refused =
        |error: &dyn std::fmt::Display| Unwritten::unknown(format!("a constant ({error})"));
    if type_oid == UNKNOWN {
        return Ok(String::from_utf8_lossy(payload).into_owned());
    }
    let write = if style.is_read_back { plain_text_of_payload } else { text_of_payload };
    write(catalog, type_oid, payload).map_err(|error| refused(&error))
}

/// A text between quotes, without any escapes: strings conform to the standard.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
