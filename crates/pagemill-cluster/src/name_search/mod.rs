//! The OIDs that names stand for: the input of `regclass`, `regtype`, `regproc` and their kin, the
//! mirror of [`crate::names`].
//!
//! A name is looked up in the schema it names, or in those of the search path one after another.
//! The catalogs of a kind are read when a column of that kind is made ready; no value waits for
//! them.
//!
//! Invariants: what was made ready is found without I/O; messages are PostgreSQL's.
//!
//! Source: `src/backend/utils/adt/regproc.c`, `src/backend/catalog/namespace.c`,
//! PostgreSQL 14 to 18.

mod identifiers;
mod objects;
mod signatures;
mod type_names;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use pagemill_format::{Oid, PgVersion};
use pagemill_types::input::InputError;
use pagemill_types::input::tree::InputLookups;
use pagemill_types::output::NameKind;

use crate::database::load_once;
use crate::error::Result;
use crate::name_rows::DatabaseRows;
use crate::names::{GlobalRow, NameRows, NameSettings, SearchPath, TypeRow};
use identifiers::Names;
use objects::{Object, Objects};

/// Names of databases and roles, to be read once.
type Globals = HashMap<Box<[u8]>, Oid>;

/// Looks names up in one database.
pub(crate) struct NameSearch {
    rows: DatabaseRows,
    database: Box<[u8]>,
    settings: NameSettings,
    schemas: OnceLock<Schemas>,
    roles: OnceLock<Globals>,
    classes: OnceLock<Objects>,
    types: OnceLock<Types>,
    procs: OnceLock<Objects>,
    operators: OnceLock<Objects>,
    collations: OnceLock<Objects>,
    configs: OnceLock<Objects>,
    dictionaries: OnceLock<Objects>,
}

/// The schemas, and the order in which they are searched.
struct Schemas {
    by_name: Globals,
    path: SearchPath,
}

/// The types, and the array type of each that has one.
struct Types {
    by_name: Objects,
    arrays: HashMap<Oid, Oid>,
}

fn globals(rows: Vec<GlobalRow>) -> Globals {
    rows.into_iter().map(|row| (row.name, row.oid)).collect()
}

impl NameSearch {
    pub(crate) fn new(rows: DatabaseRows, database: Box<[u8]>, settings: NameSettings) -> Self {
        Self {
            rows,
            database,
            settings,
            schemas: OnceLock::new(),
            roles: OnceLock::new(),
            classes: OnceLock::new(),
            types: OnceLock::new(),
            procs: OnceLock::new(),
            operators: OnceLock::new(),
            collations: OnceLock::new(),
            configs: OnceLock::new(),
            dictionaries: OnceLock::new(),
        }
    }

    /// Reads what names of this kind are looked up in.
    pub(crate) fn make_ready(&self, kind: NameKind) -> Result<()> {
        self.schemas()?;
        match kind {
            NameKind::Class => self.classes().map(drop),
            NameKind::Collation => self.collations().map(drop),
            NameKind::Config => self.configs().map(drop),
            NameKind::Dictionary => self.dictionaries().map(drop),
            NameKind::Namespace => Ok(()),
            NameKind::Oper => self.operators().map(drop),
            NameKind::Operator => self.operators().and(self.types()).map(drop),
            NameKind::Proc => self.procs().map(drop),
            NameKind::Procedure => self.procs().and(self.types()).map(drop),
            NameKind::Role => self.roles().map(drop),
            NameKind::Type => self.types().map(drop),
        }
    }

    fn schemas(&self) -> Result<&Schemas> {
        load_once(&self.schemas, || {
            let rows = self.rows.namespaces()?;
            let NameSettings { search_path, user, .. } = &self.settings;
            let path = SearchPath::resolve(search_path, user, &rows);
            Ok(Schemas { by_name: globals(rows), path })
        })
    }

    fn roles(&self) -> Result<&Globals> {
        load_once(&self.roles, || Ok(globals(self.rows.roles()?)))
    }

    fn classes(&self) -> Result<&Objects> {
        load_once(&self.classes, || Ok(Objects::named(self.rows.classes()?)))
    }

    fn configs(&self) -> Result<&Objects> {
        load_once(&self.configs, || Ok(Objects::named(self.rows.ts_configs()?)))
    }

    fn dictionaries(&self) -> Result<&Objects> {
        load_once(&self.dictionaries, || Ok(Objects::named(self.rows.ts_dicts()?)))
    }

    fn procs(&self) -> Result<&Objects> {
        load_once(&self.procs, || {
            let object = |row: crate::names::ProcRow| {
                (row.name, Object { oid: row.oid, namespace: row.namespace, args: row.args })
            };
            Ok(Objects::of(self.rows.procs()?.into_iter().map(object)))
        })
    }

    fn operators(&self) -> Result<&Objects> {
        load_once(&self.operators, || {
            let object = |row: crate::names::OperatorRow| {
                let args = Box::from([row.left, row.right]);
                (row.name, Object { oid: row.oid, namespace: row.namespace, args })
            };
            Ok(Objects::of(self.rows.operators()?.into_iter().map(object)))
        })
    }

    /// The collations that this database can use; those for its own encoding come first.
    fn collations(&self) -> Result<&Objects> {
        load_once(&self.collations, || {
            let encoding = self.settings.encoding;
            let mut rows = self.rows.collations()?;
            rows.retain(|row| row.encoding == encoding || row.encoding == -1);
            rows.sort_by_key(|row| row.encoding == -1);
            let object = |row: crate::names::CollationRow| {
                let args = Box::default();
                (row.name, Object { oid: row.oid, namespace: row.namespace, args })
            };
            Ok(Objects::of(rows.into_iter().map(object)))
        })
    }

    fn types(&self) -> Result<&Types> {
        load_once(&self.types, || {
            let rows = self.rows.types()?;
            let is_array = |row: &&TypeRow| crate::names::is_true_array(row);
            let arrays = rows.iter().filter(is_array).map(|row| (row.element, row.oid)).collect();
            let object = |row: TypeRow| {
                let args = Box::default();
                (row.name, Object { oid: row.oid, namespace: row.namespace, args })
            };
            Ok(Types { by_name: Objects::of(rows.into_iter().map(object)), arrays })
        })
    }

    fn find(&self, kind: NameKind, text: &[u8]) -> NameResult {
        match kind {
            NameKind::Class => self.find_class(text),
            NameKind::Collation => self.find_collation(text),
            NameKind::Config => {
                self.find_in(ready(self.configs())?, "text search configuration", text)
            }
            NameKind::Dictionary => {
                self.find_in(ready(self.dictionaries())?, "text search dictionary", text)
            }
            NameKind::Namespace => self.find_schema(text),
            NameKind::Oper => self.find_operator(text),
            NameKind::Operator => self.find_operator_with_args(text),
            NameKind::Proc => self.find_proc(text),
            NameKind::Procedure => self.find_proc_with_args(text),
            NameKind::Role => self.find_role(text),
            NameKind::Type => self.find_type(text),
        }
    }

    fn names(&self, text: &[u8]) -> std::result::Result<Names, InputError> {
        Names::split(text, self.settings.encoding)
    }

    fn find_schema(&self, text: &[u8]) -> NameResult {
        let names = self.names(text)?;
        let [name] = names.parts() else { return Err(invalid_name()) };
        let schemas = ready(self.schemas())?;
        schemas.by_name.get(name.as_slice()).copied().ok_or_else(|| absent("schema", name))
    }

    fn find_role(&self, text: &[u8]) -> NameResult {
        let names = self.names(text)?;
        let [name] = names.parts() else { return Err(invalid_name()) };
        let roles = ready(self.roles())?;
        roles.get(name.as_slice()).copied().ok_or_else(|| absent("role", name))
    }

    fn find_class(&self, text: &[u8]) -> NameResult {
        let names = self.names(text)?;
        let classes = ready(self.classes())?;
        let (schema, name) = match names.parts() {
            [name] => (None, name),
            [schema, name] => (Some(schema), name),
            [database, schema, name] if **database == *self.database => (Some(schema), name),
            [_, _, _] => {
                let what = "cross-database references are not implemented";
                return Err(InputError::new(format!("{what}: \"{}\"", names.joined())));
            }
            _ => {
                let what = "improper relation name (too many dotted names)";
                return Err(InputError::new(format!("{what}: {}", names.joined())));
            }
        };
        let before_16 = self.settings.version < PgVersion::V16;
        let schema = match schema {
            Some(schema) => match self.schema(schema) {
                Ok(found) => Some(found),
                Err(error) if before_16 => return Err(error),
                Err(_) => return Err(absent("relation", names.joined().as_bytes())),
            },
            None => None,
        };
        let found = self.first(classes, schema, name)?;
        found.ok_or_else(|| match names.parts() {
            [_, schema, name] if before_16 => {
                absent("relation", &[schema, &b"."[..], name].concat())
            }
            _ => absent("relation", names.joined().as_bytes()),
        })
    }

    fn find_collation(&self, text: &[u8]) -> NameResult {
        let names = self.names(text)?;
        let found = self.find_leniently(ready(self.collations())?, &names)?;
        found.ok_or_else(|| {
            let encoding = identifiers::encoding_name(self.settings.encoding);
            InputError::new(format!(
                "collation \"{}\" for encoding \"{encoding}\" does not exist",
                names.joined()
            ))
        })
    }

    fn find_in(&self, objects: &Objects, what: &str, text: &[u8]) -> NameResult {
        let names = self.names(text)?;
        let found = self.find_leniently(objects, &names)?;
        found.ok_or_else(|| absent(what, names.joined().as_bytes()))
    }

    /// The object that a name finds, with or without its schema.
    fn find_named(
        &self,
        objects: &Objects,
        names: &Names,
    ) -> std::result::Result<Option<Oid>, InputError> {
        let (schema, name) = self.qualified(names)?;
        let schema = schema.map(|schema| self.schema(schema)).transpose()?;
        self.first(objects, schema, name)
    }

    /// As [`Self::find_named`]; from 16 on, a schema that is not there just has nothing in it.
    fn find_leniently(
        &self,
        objects: &Objects,
        names: &Names,
    ) -> std::result::Result<Option<Oid>, InputError> {
        let (schema, _) = self.qualified(names)?;
        let missing = schema.is_some_and(|schema| self.schema(schema).is_err());
        if missing && self.settings.version >= PgVersion::V16 {
            return Ok(None);
        }
        self.find_named(objects, names)
    }

    /// Splits off the schema; the database before it may only be this one.
    fn qualified<'n>(&self, names: &'n Names) -> std::result::Result<Qualified<'n>, InputError> {
        match names.parts() {
            [name] => Ok((None, name)),
            [schema, name] => Ok((Some(schema), name)),
            [database, schema, name] if **database == *self.database => Ok((Some(schema), name)),
            [_, _, _] => {
                let what = "cross-database references are not implemented";
                Err(InputError::new(format!("{what}: {}", names.joined())))
            }
            _ => {
                let what = "improper qualified name (too many dotted names)";
                Err(InputError::new(format!("{what}: {}", names.joined())))
            }
        }
    }

    fn schema(&self, name: &[u8]) -> NameResult {
        let schemas = ready(self.schemas())?;
        schemas.by_name.get(name).copied().ok_or_else(|| absent("schema", name))
    }

    /// The first object of this name, in one schema or along the search path.
    fn first(
        &self,
        objects: &Objects,
        schema: Option<Oid>,
        name: &[u8],
    ) -> std::result::Result<Option<Oid>, InputError> {
        let path = &ready(self.schemas())?.path;
        Ok(objects.visible(name, schema, path).first().map(|object| object.oid))
    }
}

/// A schema, if one is named, and the name in it.
type Qualified<'n> = (Option<&'n [u8]>, &'n [u8]);

type NameResult = std::result::Result<Oid, InputError>;

/// What was made ready. That the catalogs cannot be read was said when they were.
fn ready<T>(read: Result<T>) -> std::result::Result<T, InputError> {
    read.map_err(|error| InputError::new(error.to_string()))
}

#[cold]
fn absent(kind: &str, name: &[u8]) -> InputError {
    InputError::new(format!("{kind} \"{}\" does not exist", String::from_utf8_lossy(name)))
}

#[cold]
fn invalid_name() -> InputError {
    InputError::new("invalid name syntax")
}

/// The names of a database's objects, for one thread that reads values.
pub struct InputNames {
    search: Arc<NameSearch>,
}

impl InputNames {
    pub(crate) fn new(search: Arc<NameSearch>) -> Self {
        Self { search }
    }
}

impl InputLookups for InputNames {
    fn find_name(&mut self, kind: NameKind, text: &[u8]) -> NameResult {
        self.search.find(kind, text)
    }

    fn find_role(&mut self, name: &[u8]) -> std::result::Result<Option<Oid>, InputError> {
        Ok(ready(self.search.roles())?.get(name).copied())
    }
}
