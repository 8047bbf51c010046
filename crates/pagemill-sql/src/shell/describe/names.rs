//! Names as the server writes them: types with their modifiers, relations and roles, values.
//!
//! Source: `format_type_extended` in `src/backend/utils/adt/format_type.c`, `generate_relation_name` in `ruleutils.c`,
//! PostgreSQL 15.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;

use crate::catalog::{Catalog, quote_identifier};
use crate::error::Result;
use crate::functions::format_type::formatted_type;
use crate::functions::text_form::text_of_payload;
use crate::system_rows::{PG_CATALOG, SystemRow, for_each_row};

/// A row of `pg_class`, as far as lists show it.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) oid: Oid,
    pub(super) name: String,
    pub(super) namespace: Oid,
    pub(super) schema: String,
    pub(super) kind: u8,
    pub(super) persistence: u8,
    pub(super) access_method: Oid,
    pub(super) tablespace: Oid,
    pub(super) is_partition: bool,
    pub(super) of_type: Oid,
    pub(super) options: Option<String>,
}

/// What names mean in one database.
pub(super) struct Names<'c> {
    pub(super) catalog: &'c Arc<Catalog>,
    pub(super) classes: Vec<Class>,
    by_oid: HashMap<Oid, usize>,
    /// The first of each name on the search path.
    visible: HashMap<String, Oid>,
}

impl<'c> Names<'c> {
    pub(super) fn read(catalog: &'c Arc<Catalog>) -> Result<Self> {
        let schemas = oids_and_names(catalog, ("pg_namespace", "oid", "nspname"))?;
        let columns = [
            "oid",
            "relname",
            "relnamespace",
            "relkind",
            "relpersistence",
            "relam",
            "reltablespace",
            "relispartition",
            "reloftype",
            "reloptions",
        ];
        let mut classes = Vec::new();
        for_each_row(catalog.values(), "pg_class", &columns, |row| {
            let options = match row.payload(9)?.map(<[u8]>::to_vec) {
                Some(payload) => Some(text_of_payload(catalog, TEXT_ARRAY, &payload)?),
                None => None,
            };
            classes.push(Class {
                oid: row.oid(0),
                name: row.name(1),
                namespace: row.oid(2),
                schema: schemas.get(&row.oid(2)).cloned().unwrap_or_default(),
                kind: row.byte(3),
                persistence: row.byte(4),
                access_method: row.oid(5),
                tablespace: row.oid(6),
                is_partition: row.bool(7),
                of_type: row.oid(8),
                options,
            });
            Ok(())
        })?;
        let by_oid = classes.iter().enumerate().map(|(at, class)| (class.oid, at)).collect();
        let path = catalog.search_path();
        let place = |namespace: Oid| path.iter().position(|oid| *oid == namespace);
        let mut visible: HashMap<String, (usize, Oid)> = HashMap::new();
        for class in &classes {
            let Some(place) = place(class.namespace) else { continue };
            let first = visible.entry(class.name.clone()).or_insert((place, class.oid));
            if place < first.0 {
                *first = (place, class.oid);
            }
        }
        let visible = visible.into_iter().map(|(name, (_, oid))| (name, oid)).collect();
        Ok(Self { catalog, classes, by_oid, visible })
    }

    pub(super) fn class(&self, oid: Oid) -> Option<&Class> {
        self.by_oid.get(&oid).map(|at| &self.classes[*at])
    }

    pub(super) fn is_visible(&self, class: &Class) -> bool {
        self.visible.get(&class.name) == Some(&class.oid)
    }

    /// A relation as `regclass` writes it.
    pub(super) fn relation(&self, oid: Oid) -> String {
        match self.class(oid) {
            None => oid.0.to_string(),
            Some(class) if self.is_visible(class) => quote_identifier(&class.name),
            Some(class) => {
                format!("{}.{}", quote_identifier(&class.schema), quote_identifier(&class.name))
            }
        }
    }

    /// The columns of a relation by number, those before the first and dropped ones left out.
    pub(super) fn column_names(&self, relation: Oid) -> Result<HashMap<i16, String>> {
        let mut found = HashMap::new();
        let columns = ["attrelid", "attnum", "attname"];
        for_each_row(self.catalog.values(), "pg_attribute", &columns, |row| {
            if row.oid(0) == relation {
                found.insert(row.int2(1), row.name(2));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// `format_type(type, modifier)`, where a modifier was given.
    pub(super) fn type_name(&self, type_oid: Oid, modifier: i32) -> String {
        let known = formatted_type(self.catalog, type_oid, modifier);
        // What a type of an extension makes of its modifier, only its own function knows.
        known
            .unwrap_or_else(|| format!("{}(modifier {modifier})", self.catalog.type_name(type_oid)))
    }
}

/// `text[]`.
const TEXT_ARRAY: Oid = Oid(1009);

/// The texts of two columns of a catalog that is small, by OID.
pub(super) fn oids_and_names(
    catalog: &Arc<Catalog>,
    (table, key, name): (&str, &str, &str),
) -> Result<HashMap<Oid, String>> {
    let mut found = HashMap::new();
    for_each_row(catalog.values(), table, &[key, name], |row: &mut SystemRow<'_>| {
        found.insert(row.oid(0), row.name(1));
        Ok(())
    })?;
    Ok(found)
}

/// True for the schema of the system's catalogs.
pub(super) fn is_system(class: &Class) -> bool {
    class.namespace == PG_CATALOG || class.schema == "information_schema"
}
