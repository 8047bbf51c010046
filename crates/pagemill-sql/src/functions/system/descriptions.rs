//! Objects told in words: `pg_describe_object`.
//!
//! ```text
//! catalog, number, column ──► "column id of table people", "function lower(text)" …
//! ```
//!
//! Invariant: NULL for an object that there is not; a kind of object that is not known here is refused. Names stand alone where they
//! are found again without their schema.
//!
//! Source: `pg_describe_object` and `getObjectDescription` in `src/backend/catalog/objectaddress.c`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{Int32Type, UInt32Type};
use pagemill_cluster::RelationKind;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::format_type::formatted_type;
use super::super::rows::{Made, Outcome};
use super::super::text_form::text_of_payload;
use super::super::{Implementation, KernelCall};
use super::visible::Visibility;
use super::{names_of, statement_error};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::system_rows::{PG_CATALOG, SystemRow, for_each_row};

pub(super) fn find(key: &str) -> Option<Implementation> {
    (key == "pg_describe_object").then_some(Implementation::Kernel(described))
}

/// An object and its column, or 0.
type Address = (Oid, i32);
/// What is told of them.
type Told = HashMap<Address, String>;

/// Kinds of objects that are told by their bare names: the catalog, its column of them, the words.
const BARE: [(&str, &str, &str); 11] = [
    ("pg_namespace", "nspname", "schema"),
    ("pg_language", "lanname", "language"),
    ("pg_am", "amname", "access method"),
    ("pg_authid", "rolname", "role"),
    ("pg_database", "datname", "database"),
    ("pg_tablespace", "spcname", "tablespace"),
    ("pg_foreign_data_wrapper", "fdwname", "foreign-data wrapper"),
    ("pg_foreign_server", "srvname", "server"),
    ("pg_extension", "extname", "extension"),
    ("pg_event_trigger", "evtname", "event trigger"),
    ("pg_publication", "pubname", "publication"),
];

/// Kinds of objects in schemas: the catalog, its columns of names and schemas, the words, by which function they are visible.
const IN_SCHEMAS: [(&str, [&str; 2], &str, &str); 9] = [
    ("pg_collation", ["collname", "collnamespace"], "collation", "pg_collation_is_visible"),
    ("pg_conversion", ["conname", "connamespace"], "conversion", "pg_conversion_is_visible"),
    (
        "pg_statistic_ext",
        ["stxname", "stxnamespace"],
        "statistics object",
        "pg_statistics_obj_is_visible",
    ),
    ("pg_ts_parser", ["prsname", "prsnamespace"], "text search parser", "pg_ts_parser_is_visible"),
    (
        "pg_ts_dict",
        ["dictname", "dictnamespace"],
        "text search dictionary",
        "pg_ts_dict_is_visible",
    ),
    (
        "pg_ts_template",
        ["tmplname", "tmplnamespace"],
        "text search template",
        "pg_ts_template_is_visible",
    ),
    (
        "pg_ts_config",
        ["cfgname", "cfgnamespace"],
        "text search configuration",
        "pg_ts_config_is_visible",
    ),
    ("pg_opclass", ["opcname", "opcnamespace"], "operator class", "pg_opclass_is_visible"),
    ("pg_opfamily", ["opfname", "opfnamespace"], "operator family", "pg_opfamily_is_visible"),
];

/// Kinds of objects of a relation: the catalog, its columns of the relation and of the names, the words.
const OF_RELATIONS: [(&str, [&str; 2], &str); 4] = [
    ("pg_constraint", ["conrelid", "conname"], "constraint"),
    ("pg_rewrite", ["ev_class", "rulename"], "rule"),
    ("pg_trigger", ["tgrelid", "tgname"], "trigger"),
    ("pg_policy", ["polrelid", "polname"], "policy"),
];

fn described(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let numbers = |at: usize| arguments[at].as_primitive::<UInt32Type>();
    let (classes, objects, columns) =
        (numbers(0), numbers(1), arguments[2].as_primitive::<Int32Type>());
    let address = |row: usize| {
        let is_null = arguments.iter().any(|argument| argument.is_null(row));
        let (class, object) = (Oid(classes.value(row)), Oid(objects.value(row)));
        // What a server pinned before version 14.
        let is_nothing = is_null || class == Oid::INVALID && object == Oid::INVALID;
        (!is_nothing).then(|| (class, (object, columns.value(row))))
    };
    let mut wanted: HashMap<Oid, HashSet<Address>> = HashMap::new();
    for (class, address) in (0..classes.len()).filter_map(address) {
        wanted.entry(class).or_default().insert(address);
    }
    let mut told: HashMap<Oid, Told> = HashMap::new();
    for (class, wanted) in &wanted {
        let of_class = Describer { catalog: &call.catalog, wanted }.of_class(*class);
        told.insert(*class, of_class.map_err(statement_error)?);
    }
    let one = |row: usize| {
        let (class, address) = address(row)?;
        told.get(&class)?.get(&address).cloned()
    };
    Made::column((0..classes.len()).map(one).collect::<Vec<Option<String>>>())
}

/// What tells of some objects of one catalog.
struct Describer<'d> {
    catalog: &'d Catalog,
    wanted: &'d HashSet<Address>,
}

impl Describer<'_> {
    fn of_class(&self, class: Oid) -> Result<Told> {
        let row = self.catalog.database().class(class).filter(|row| row.namespace == PG_CATALOG);
        let name = row.map(|row| String::from_utf8_lossy(&row.name).into_owned());
        let name = name.unwrap_or_default();
        if name == "pg_class" {
            return self.relations();
        }
        if self.wanted.iter().any(|(_, column)| *column != 0) {
            return unsupported(format!("a column of an object of {name}"));
        }
        if let Some((table, column, word)) = BARE.iter().find(|(table, ..)| *table == name) {
            return self.rows(table, &[column], |row| Ok(format!("{word} {}", row.name(1))));
        }
        if IN_SCHEMAS.iter().any(|(table, ..)| *table == name) {
            return self.in_schemas(&name);
        }
        if let Some((table, columns, word)) = OF_RELATIONS.iter().find(|(table, ..)| *table == name)
        {
            return self.rows(table, columns, |row| self.of_relation(word, row));
        }
        match name.as_str() {
            "pg_proc" => self.rows("pg_proc", &[], |row| self.function(row.oid(0))),
            "pg_operator" => self.rows("pg_operator", &[], |row| {
                Ok(format!("operator {}", self.text(oid::REGOPERATOR, row.oid(0))?))
            }),
            "pg_type" => {
                self.rows("pg_type", &[], |row| Ok(format!("type {}", self.type_name(row.oid(0)))))
            }
            "pg_cast" => self.rows("pg_cast", &["castsource", "casttarget"], |row| {
                let (from, to) = (self.type_name(row.oid(1)), self.type_name(row.oid(2)));
                Ok(format!("cast from {from} to {to}"))
            }),
            "pg_attrdef" => self.defaults(),
            "pg_amop" | "pg_amproc" => self.members(&name),
            _ => unsupported(format!("a description of an object of catalog {}", class.0)),
        }
    }

    /// What `of` tells of each row that is wanted, whose first column is its number.
    fn rows(
        &self,
        table: &str,
        columns: &[&str],
        mut of: impl FnMut(&mut SystemRow<'_>) -> Result<String>,
    ) -> Result<Told> {
        let mut told = Told::new();
        let columns = [&["oid"], columns].concat();
        for_each_row(self.catalog.values(), table, &columns, |row| {
            let address = (row.oid(0), 0);
            if self.wanted.contains(&address) {
                told.insert(address, of(row)?);
            }
            Ok(())
        })?;
        Ok(told)
    }

    /// A number as the type of such numbers writes it.
    fn text(&self, ty: Oid, number: Oid) -> Result<String> {
        text_of_payload(self.catalog, ty, &number.0.to_le_bytes())
    }

    fn type_name(&self, number: Oid) -> String {
        let name = formatted_type(self.catalog, number, -1).unwrap_or_else(|| "???".to_owned()); // default: the server's words for none
        // Without a modifier asked for, these are what the words of the standard mean.
        match name.as_str() {
            "\"bit\"" => "bit".to_owned(),
            "\"bit\"[]" => "bit[]".to_owned(),
            "bpchar" => "character".to_owned(),
            "bpchar[]" => "character[]".to_owned(),
            _ => name,
        }
    }

    fn function(&self, number: Oid) -> Result<String> {
        Ok(format!("function {}", self.text(oid::REGPROCEDURE, number)?))
    }

    /// `table people`; an error where there is none.
    fn relation(&self, number: Oid) -> Result<String> {
        let missing = || {
            let message = format!("cache lookup failed for relation {}", number.0);
            StatementError::new(SqlState("XX000"), message)
        };
        let class = self.catalog.database().class(number).ok_or_else(missing)?;
        let word = match class.kind {
            RelationKind::Table | RelationKind::PartitionedTable => "table",
            RelationKind::Index | RelationKind::PartitionedIndex => "index",
            RelationKind::Sequence => "sequence",
            RelationKind::Toast => "toast table",
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
            RelationKind::CompositeType => "composite type",
            RelationKind::ForeignTable => "foreign table",
            RelationKind::Unknown(_) => "relation",
        };
        Ok(format!("{word} {}", self.text(oid::REGCLASS, number)?))
    }

    fn relations(&self) -> Result<Told> {
        let mut told = Told::new();
        for address in self.wanted.iter().filter(|(_, column)| *column == 0) {
            if self.catalog.database().class(address.0).is_some() {
                told.insert(*address, self.relation(address.0)?);
            }
        }
        if told.len() < self.wanted.len() {
            let columns = ["attrelid", "attnum", "attname"];
            for_each_row(self.catalog.values(), "pg_attribute", &columns, |row| {
                let address = (row.oid(0), i32::from(row.int2(1)));
                if address.1 != 0 && self.wanted.contains(&address) {
                    let (name, relation) = (row.name(2), self.relation(address.0)?);
                    told.insert(address, format!("column {name} of {relation}"));
                }
                Ok(())
            })?;
        }
        Ok(told)
    }

    fn of_relation(&self, word: &str, row: &SystemRow<'_>) -> Result<String> {
        let (relation, name) = (row.oid(1), row.name(2));
        match relation {
            // A constraint of a domain.
            Oid::INVALID => Ok(format!("{word} {name}")),
            relation => Ok(format!("{word} {name} on {}", self.relation(relation)?)),
        }
    }

    /// Defaults by the columns that have them.
    fn defaults(&self) -> Result<Told> {
        let mut of = HashMap::new();
        for_each_row(self.catalog.values(), "pg_attrdef", &["oid", "adrelid", "adnum"], |row| {
            if self.wanted.contains(&(row.oid(0), 0)) {
                of.insert(row.oid(0), (row.oid(1), i32::from(row.int2(2))));
            }
            Ok(())
        })?;
        let wanted: HashSet<Address> = of.values().copied().collect();
        let columns = Describer { catalog: self.catalog, wanted: &wanted }.relations()?;
        let one = |(number, column): (&Oid, &Address)| {
            Some(((*number, 0), format!("default value for {}", columns.get(column)?)))
        };
        Ok(of.iter().filter_map(one).collect())
    }

    fn in_schemas(&self, table: &str) -> Result<Told> {
        let found = IN_SCHEMAS.iter().find(|(known, ..)| *known == table);
        let Some((_, columns, word, key)) = found else { return unsupported(table) };
        let visibility = Visibility::of(self.catalog, key)?;
        let methods = names_of(self.catalog, "pg_am", "amname")?;
        let dictionary = self.catalog.dictionary()?;
        let method = match table {
            "pg_opclass" => Some("opcmethod"),
            "pg_opfamily" => Some("opfmethod"),
            _ => None,
        };
        let namespaces = self.catalog.database().namespaces()?;
        let all: Vec<&str> = columns.iter().copied().chain(method).collect();
        self.rows(table, &all, |row| {
            let mut name = dictionary.quoted(&row.name(1));
            if !visibility.has(row.oid(0)) {
                let schema = namespaces.get(&row.oid(2)).map(|name| String::from_utf8_lossy(name));
                name = format!("{}.{name}", dictionary.quoted(&schema.unwrap_or_default()));
            }
            let method = method.and_then(|_| methods.get(&row.oid(3)));
            Ok(match method {
                Some(method) => format!("{word} {name} for access method {method}"),
                None => format!("{word} {name}"),
            })
        })
    }

    /// Operators and support functions of operator families.
    fn members(&self, table: &str) -> Result<Told> {
        let columns = match table {
            "pg_amop" => ["amopfamily", "amopstrategy", "amoplefttype", "amoprighttype", "amopopr"],
            _ => ["amprocfamily", "amprocnum", "amproclefttype", "amprocrighttype", "amproc"],
        };
        let mut families = HashSet::new();
        self.rows(table, &columns, |row| {
            families.insert((row.oid(1), 0));
            Ok(String::new())
        })?;
        let families = Describer { catalog: self.catalog, wanted: &families };
        let families = families.in_schemas("pg_opfamily")?;
        self.rows(table, &columns, |row| {
            let family = families.get(&(row.oid(1), 0)).map_or("", String::as_str);
            let (left, right) = (self.type_name(row.oid(3)), self.type_name(row.oid(4)));
            let (word, member) = match table {
                "pg_amop" => ("operator", self.text(oid::REGOPERATOR, row.oid(5))?),
                _ => ("function", self.text(oid::REGPROCEDURE, row.oid(5))?),
            };
            Ok(format!("{word} {} ({left}, {right}) of {family}: {member}", row.int2(2)))
        })
    }
}
