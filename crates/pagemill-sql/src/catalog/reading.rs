//! The catalogs, read once into what [`Catalog`] looks names up in.
//!
//! Columns are asked for by their names, which are the same in PostgreSQL 14 to 18 but where the code says otherwise.
//!
//! Source: `src/include/catalog/pg_type.h`, `pg_cast.h`, `pg_operator.h`, `pg_proc.h`, `pg_collation.h`, `pg_database.h`, `pg_range.h`, PostgreSQL 14 to 18.

use pagemill_format::Oid;

use super::Catalog;
use super::rows::{
    CastContext, CastRow, CollationRow, FunctionRow, OperatorRow, RangeRow, TypeRow,
};
use crate::error::Result;
use crate::functions::extensions;
use crate::system_rows::{PG_CATALOG, for_each_row};
use crate::types::DEFAULT_COLLATION;

/// `internal`, the language of the server's own functions, whose source is the name of a C function.
const INTERNAL: Oid = Oid(12);
/// `c`, the language of functions of a library.
const OF_LIBRARIES: Oid = Oid(13);

impl Catalog {
    pub(super) fn read_types(&mut self) -> Result<()> {
        let columns = [
            "oid",
            "typname",
            "typnamespace",
            "typtype",
            "typcategory",
            "typispreferred",
            "typbasetype",
            "typtypmod",
            "typelem",
            "typarray",
            "typlen",
            "typcollation",
            "typinput",
        ];
        let (types, names) = (&mut self.types, &mut self.type_names);
        for_each_row(&self.values, "pg_type", &columns, |row| {
            let found = TypeRow {
                oid: row.oid(0),
                name: row.name(1),
                namespace: row.oid(2),
                kind: row.byte(3),
                category: row.byte(4),
                is_preferred: row.bool(5),
                base: row.oid(6),
                base_modifier: row.int4(7),
                element: row.oid(8),
                array: row.oid(9),
                length: row.int2(10),
                collation: row.oid(11),
                input: row.oid(12),
                is_like_text: false,
            };
            names.entry(found.name.clone()).or_default().push(found.oid);
            types.insert(found.oid, found);
            Ok(())
        })
    }

    pub(super) fn read_casts(&mut self) -> Result<()> {
        let columns = ["castsource", "casttarget", "castfunc", "castcontext", "castmethod"];
        let casts = &mut self.casts;
        for_each_row(&self.values, "pg_cast", &columns, |row| {
            let context = match row.byte(3) {
                b'i' => CastContext::Implicit,
                b'a' => CastContext::Assignment,
                _ => CastContext::Explicit,
            };
            let found = CastRow { function: row.oid(2), context, method: row.byte(4) };
            casts.insert((row.oid(0), row.oid(1)), found);
            Ok(())
        })
    }

    pub(super) fn read_ranges(&mut self) -> Result<()> {
        let columns = ["rngtypid", "rngmultitypid", "rngsubtype", "rngcollation"];
        let ranges = &mut self.ranges;
        for_each_row(&self.values, "pg_range", &columns, |row| {
            let found = RangeRow {
                range: row.oid(0),
                multirange: row.oid(1),
                subtype: row.oid(2),
                collation: row.oid(3),
            };
            ranges.insert(found.range, found);
            ranges.insert(found.multirange, found);
            Ok(())
        })
    }

    pub(super) fn read_functions(&mut self) -> Result<()> {
        let columns = [
            "oid",
            "proname",
            "pronamespace",
            "prokind",
            "proretset",
            "proisstrict",
            "provariadic",
            "pronargdefaults",
            "prorettype",
            "proargtypes",
            "prolang",
            "prosrc",
            "probin",
        ];
        let Self { types, functions, function_names, values, .. } = self;
        for_each_row(values, "pg_proc", &columns, |row| {
            let (name, arguments, kind) = (row.name(1), row.oids(9)?, row.byte(3));
            let own = match row.oid(10) {
                _ if kind == b'a' => None,
                INTERNAL => Some(row.text(11)?.unwrap_or_default()),
                OF_LIBRARIES => match (row.text(12)?, row.text(11)?) {
                    (Some(library), Some(symbol)) => extensions::key(&library, &symbol),
                    _ => None,
                },
                _ => None,
            };
            let key = match own {
                Some(key) => key,
                None => {
                    let name_of = |oid: &Oid| types.get(oid).map_or("?", |t| t.name.as_str());
                    let list: Vec<&str> = arguments.iter().map(name_of).collect();
                    // Another schema's function of the same name is another function.
                    let schema = match row.oid(2) {
                        PG_CATALOG => String::new(),
                        other => format!("{}.", other.0),
                    };
                    format!("{schema}{name}({})", list.join(","))
                }
            };
            let found = FunctionRow {
                oid: row.oid(0),
                namespace: row.oid(2),
                kind,
                returns_set: row.bool(4),
                is_strict: row.bool(5),
                variadic: row.oid(6),
                defaults: usize::try_from(row.int2(7)).unwrap_or(0),
                result: row.oid(8),
                language: row.oid(10),
                name,
                arguments,
                key,
            };
            function_names.entry(found.name.clone()).or_default().push(found.oid);
            functions.insert(found.oid, found);
            Ok(())
        })
    }

    /// Marks the types of extensions that are texts but for what their functions make of them.
    pub(super) fn mark_texts(&mut self) {
        let Self { types, functions, .. } = self;
        let is_own = |row: &&mut TypeRow| row.kind == b'b' && row.namespace != PG_CATALOG;
        for row in types.values_mut().filter(is_own) {
            row.is_like_text = functions.get(&row.input).is_some_and(|input| input.key == "textin");
        }
    }

    pub(super) fn read_operators(&mut self) -> Result<()> {
        let columns = ["oprname", "oprnamespace", "oprleft", "oprright", "oprcode"];
        let operators = &mut self.operators;
        for_each_row(&self.values, "pg_operator", &columns, |row| {
            let found = OperatorRow {
                name: row.name(0),
                namespace: row.oid(1),
                left: row.oid(2),
                right: row.oid(3),
                function: row.oid(4),
            };
            operators.entry(found.name.clone()).or_default().push(found);
            Ok(())
        })
    }

    pub(super) fn read_collations(&mut self) -> Result<()> {
        let version = self.database().cluster().version();
        let locale = match version.major() {
            14 => None,
            15 | 16 => Some("colliculocale"),
            _ => Some("colllocale"),
        };
        let mut columns = vec![
            "oid",
            "collname",
            "collprovider",
            "collisdeterministic",
            "collcollate",
            "collencoding",
            "collversion",
            "collctype",
        ];
        columns.extend(locale);
        let collations = &mut self.collations;
        for_each_row(&self.values, "pg_collation", &columns, |row| {
            // A name until 14, a text since.
            let mut name = |column| match version.major() {
                14 => Ok(Some(row.name(column))),
                _ => row.text(column),
            };
            let (libc, letters) = (name(4)?, name(7)?.unwrap_or_default());
            let own = if locale.is_some() { row.text(8)? } else { None };
            let found = CollationRow {
                oid: row.oid(0),
                name: row.name(1),
                provider: row.byte(2),
                is_deterministic: row.bool(3),
                locale: libc.or(own).unwrap_or_default(),
                letters,
                encoding: row.int4(5),
                version: row.text(6)?,
            };
            collations.insert(found.oid, found);
            Ok(())
        })
    }

    pub(super) fn read_column_collations(&mut self) -> Result<()> {
        let found = &mut self.column_collations;
        for_each_row(
            &self.values,
            "pg_attribute",
            &["attrelid", "attname", "attcollation"],
            |row| {
                let collation = row.oid(2);
                if !matches!(collation, Oid(0) | DEFAULT_COLLATION) {
                    found.insert((row.oid(0), row.name(1).into_bytes().into()), collation);
                }
                Ok(())
            },
        )
    }

    /// `default` stands for what the database was created with.
    pub(super) fn read_default_collation(&mut self) -> Result<()> {
        let major = self.database().cluster().version().major();
        let columns: &[&str] = match major {
            14 => &["oid", "datcollate", "datctype"],
            15 | 16 => &[
                "oid",
                "datcollate",
                "datctype",
                "datlocprovider",
                "daticulocale",
                "datcollversion",
            ],
            _ => {
                &["oid", "datcollate", "datctype", "datlocprovider", "datlocale", "datcollversion"]
            }
        };
        let own = self.database().row().oid;
        let mut found = None;
        for_each_row(&self.values, "pg_database", columns, |row| {
            if row.oid(0) != own {
                return Ok(());
            }
            let mut name = |column| match major {
                14 => Ok(Some(row.name(column))),
                _ => row.text(column),
            };
            let (libc, letters) = (name(1)?, name(2)?.unwrap_or_default());
            let provider = if major == 14 { b'c' } else { row.byte(3) };
            let of_provider = if major == 14 { None } else { row.text(4)? };
            let locale = of_provider.or(libc).unwrap_or_default();
            let name = "default".to_owned();
            let version = if major == 14 { None } else { row.text(5)? };
            found = Some(CollationRow {
                oid: DEFAULT_COLLATION,
                name,
                provider,
                is_deterministic: true,
                locale,
                letters,
                encoding: -1,
                version,
            });
            Ok(())
        })?;
        self.collations.extend(found.map(|row| (DEFAULT_COLLATION, row)));
        Ok(())
    }
}
