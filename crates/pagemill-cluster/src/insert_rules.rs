//! What a table asks of new rows, and what of it cannot be answered here.
//!
//! A server runs triggers, evaluates expressions and asks policies when rows come in. None of that can be done without
//! it, so a table that needs any of it is refused before anything is written, with the object's name and the remedy.
//! What remains is NOT NULL, checks that can be evaluated here, unique keys and B-trees over columns.
//!
//! Invariant: a table that [`Database::insert_rules`] lets pass gets, from rows that keep to the returned rules, the
//! contents that COPY would have given it.
//!
//! Source: `BeginCopyFrom` and `CopyFrom` in `src/backend/commands/copyfrom.c`, `src/include/catalog/pg_constraint.h`,
//! `pg_trigger.h`, `pg_index.h`, `pg_opclass.h`, PostgreSQL 14 to 18.

use std::collections::HashSet;

use pagemill_format::varlena::Compression;
use pagemill_format::wal::ImageCompression;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::expression::Check;

use crate::check_expressions::{Subject, compile, stored_tree};
use crate::collations::{Collation, OrderFailure};
use crate::column::Generated;
use crate::database::{Database, FIRST_NORMAL_OID, catalog};
use crate::error::{Error, Result};
use crate::refusal::{IndexCause, LoadObstacle, OrderCause, Refusal};
use crate::relation::{ClassRow, Persistence, Relation, RelationKind};

/// `TRIGGER_TYPE_ROW`, `TRIGGER_TYPE_INSERT` and `TRIGGER_TYPE_TRUNCATE` of `tgtype`.
const FOR_EACH_ROW: i16 = 1;
const ON_INSERT: i16 = 1 << 2;
const ON_TRUNCATE: i16 = 1 << 5;
/// `INDOPTION_DESC` and `INDOPTION_NULLS_FIRST`.
pub(crate) const DESCENDING: i16 = 1;
pub(crate) const NULLS_FIRST: i16 = 2;

/// What new rows of a table have to keep to.
#[derive(Debug, Clone)]
pub struct InsertRules {
    /// The indexes that get entries, in the order of their OIDs.
    pub indexes: Vec<IndexDefinition>,
    /// `fillfactor`, percent.
    pub fillfactor: u8,
    /// `toast_tuple_target`, bytes.
    pub toast_tuple_target: Option<usize>,
    /// The TOAST table and its index, where the table has one.
    pub toast: Option<(ClassRow, ClassRow)>,
    /// The CHECK constraints over its columns, by their positions, in the order in which a server checks them.
    pub checks: Vec<Check>,
}

/// A B-tree that can be built here.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    /// Its row of `pg_class`.
    pub class: ClassRow,
    /// Equal keys are refused.
    pub unique: bool,
    /// That is asked row by row, not at the end of the statement or later as of a DEFERRABLE constraint.
    pub immediate: bool,
    /// Nulls are equal to each other (`NULLS NOT DISTINCT`, 15 on).
    pub nulls_not_distinct: bool,
    /// The key columns.
    pub keys: Vec<KeyColumn>,
    /// INCLUDE columns: positions in the table, from 0.
    pub included: Vec<usize>,
    /// `fillfactor`, percent.
    pub fillfactor: u8,
    /// `deduplicate_items`.
    pub deduplicate: bool,
}

impl IndexDefinition {
    /// Its name, for messages.
    pub fn display_name(&self) -> String {
        crate::relation::printable(&self.class.name)
    }
}

/// A key column of an index.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// Its position in the table, from 0.
    pub position: usize,
    /// The operator class, by its name in `pg_catalog`: `int4_ops`.
    pub operator_class: String,
    /// The type that the operator class is for.
    pub operator_class_type: Oid,
    /// The collation, where its type has them.
    pub collation: Option<Collation>,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`.
    pub nulls_first: bool,
}

impl Database {
    /// What new rows of a table have to keep to; with `truncate`, old ones are removed first. Of a partition that gets
    /// its rows from the table above (`is_routed`), triggers for statements and policies do not matter.
    ///
    /// # Errors
    /// [`Error::Refused`] for a table that rows cannot be loaded into, with what stands in the way and what to do.
    pub fn insert_rules(
        &self,
        relation: &Relation,
        truncate: bool,
        is_routed: bool,
    ) -> Result<InsertRules> {
        check_kind(self, relation)?;
        check_columns(relation)?;
        let checks = self.check_constraints(relation, truncate)?;
        self.check_triggers(relation, truncate, is_routed)?;
        let (options, has_policies) = self.class_options(relation.class.oid)?;
        if has_policies && !is_routed {
            return Err(refused(relation, LoadObstacle::RowSecurity));
        }
        let number = |name: &str| -> Option<usize> {
            options.iter().find_map(|option| value_of(option, name)?.parse().ok())
        };
        let toast = match relation.class.toast {
            Oid::INVALID => None,
            oid => Some(self.toast_classes(relation, oid)?),
        };
        Ok(InsertRules {
            indexes: self.index_definitions(relation)?,
            fillfactor: number("fillfactor").map_or(100, |percent| percent.clamp(10, 100) as u8),
            toast_tuple_target: number("toast_tuple_target"),
            toast,
            checks,
        })
    }

    /// Asks whether rows can be given to the partitions of a table without a server.
    ///
    /// # Errors
    /// As [`insert_rules`](Self::insert_rules).
    pub fn check_partitioned(
        &self,
        relation: &Relation,
        truncate: bool,
        is_routed: bool,
    ) -> Result<()> {
        check_columns(relation)?;
        self.check_constraints(relation, truncate)?;
        self.check_triggers(relation, truncate, is_routed)?;
        if !is_routed && self.class_options(relation.class.oid)?.1 {
            return Err(refused(relation, LoadObstacle::RowSecurity));
        }
        Ok(())
    }

    /// What compresses values of columns that do not say it (`default_toast_compression`).
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn default_toast_compression(&self) -> Result<Compression> {
        Ok(match self.session_settings()?.get("default_toast_compression") {
            Some(b"lz4") => Compression::Lz4,
            _ => Compression::Pglz,
        })
    }

    /// True when full segments of WAL are handed to an archive (`archive_mode`).
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn archives_wal(&self) -> Result<bool> {
        Ok(self.session_settings()?.archives_wal())
    }

    /// How page images are compressed (`wal_compression`).
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn wal_compression(&self) -> Result<ImageCompression> {
        let value = self.session_settings()?.get("wal_compression").unwrap_or_default();
        Ok(match value.to_ascii_lowercase().as_slice() {
            b"on" | b"true" | b"yes" | b"1" | b"pglz" => ImageCompression::Pglz,
            b"lz4" => ImageCompression::Lz4,
            b"zstd" => ImageCompression::Zstd,
            _ => ImageCompression::Off,
        })
    }

    /// Types with a default of their own, which a column without one takes.
    ///
    /// # Errors
    /// When `pg_type` cannot be read.
    pub fn types_with_default(&self) -> Result<HashSet<Oid>> {
        let mut found = HashSet::new();
        self.scan(catalog::PG_TYPE, &["oid", "typdefault"], |row| {
            if row.raw(1).is_some() {
                found.insert(row.oid(0)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn toast_classes(&self, relation: &Relation, oid: Oid) -> Result<(ClassRow, ClassRow)> {
        let toast = self.class(oid);
        let index = self.toast_index(oid)?.and_then(|index| self.class(index));
        match (toast, index) {
            (Some(toast), Some(index)) => Ok((toast.clone(), index.clone())),
            _ => Err(refused(relation, LoadObstacle::MissingToast)),
        }
    }

    /// Constraints other than NOT NULL, PRIMARY KEY and UNIQUE: the checks that can be evaluated here.
    fn check_constraints(&self, relation: &Relation, truncate: bool) -> Result<Vec<Check>> {
        let mut found = Vec::new();
        let mut checks = Vec::new();
        let mut wanted = vec!["conrelid", "contype", "conname", "confrelid", "conbin"];
        // From 18 on a constraint may be `NOT ENFORCED`: a server does not look at it either.
        let may_be_off = self.cluster().version() >= pagemill_format::PgVersion::V18;
        if may_be_off {
            wanted.push("conenforced");
        }
        self.scan_any(catalog::PG_CONSTRAINT, &wanted, |row| {
            let (table, kind) = (row.oid(0)?, row.byte(1)?);
            if may_be_off && row.byte(5)? == 0 {
                return Ok(());
            }
            if table == relation.class.oid || row.oid(3)? == relation.class.oid {
                found.push((table, kind, row.name(2)?, stored_tree(row, 4)?));
            }
            Ok(())
        })?;
        // Checks are made in the order of their names.
        found.sort_by(|a, b| a.2.cmp(&b.2));
        for (table, kind, name, tree) in found {
            let name = String::from_utf8_lossy(&name).into_owned();
            let kind = match kind {
                b'f' if table != relation.class.oid && truncate => {
                    return Err(refused(relation, LoadObstacle::ReferringKey(name)));
                }
                b'f' if table == relation.class.oid => "foreign key",
                b'c' => match compile(self, tree.as_deref(), Subject::Columns) {
                    Ok(expression) => {
                        checks.push(Check { name, expression });
                        continue;
                    }
                    Err(Error::Refused(cause)) => {
                        return Err(refused(relation, LoadObstacle::Check { name, cause }));
                    }
                    Err(other) => return Err(other),
                },
                b'x' => "exclusion constraint",
                b't' => "constraint trigger",
                _ => continue,
            };
            return Err(refused(relation, LoadObstacle::Constraint { kind, name }));
        }
        Ok(checks)
    }

    /// Triggers of users that would fire. Those of foreign keys are told by their constraints.
    fn check_triggers(&self, relation: &Relation, truncate: bool, is_routed: bool) -> Result<()> {
        let on_truncate = if truncate { ON_TRUNCATE } else { 0 };
        let mut found = None;
        let wanted = ["tgrelid", "tgname", "tgtype", "tgenabled", "tgisinternal"];
        self.scan_any(catalog::PG_TRIGGER, &wanted, |row| {
            let events = row.i16(2)?;
            let on_insert = events & ON_INSERT != 0 && (!is_routed || events & FOR_EACH_ROW != 0);
            let is_on = row.byte(3)? != b'D' && row.byte(4)? == 0;
            let fires = is_on && (on_insert || events & on_truncate != 0);
            if row.oid(0)? == relation.class.oid && fires {
                found = Some(row.name(1)?);
            }
            Ok(())
        })?;
        let Some(name) = found else { return Ok(()) };
        let name = String::from_utf8_lossy(&name).into_owned();
        Err(refused(relation, LoadObstacle::Trigger(name)))
    }

    /// `reloptions` and `relrowsecurity` of a relation.
    fn class_options(&self, oid: Oid) -> Result<(Vec<String>, bool)> {
        let mut found = (Vec::new(), false);
        self.scan(catalog::PG_CLASS, &["oid", "relrowsecurity", "reloptions"], |row| {
            if row.oid(0)? == oid {
                let options = row.payload(2)?;
                found = (
                    options.as_deref().map(texts).transpose()?.unwrap_or_default(),
                    row.byte(1)? != 0,
                );
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn index_definitions(&self, relation: &Relation) -> Result<Vec<IndexDefinition>> {
        let mut rows = self.index_build_rows(relation.class.oid)?;
        rows.sort_by_key(|row| row.oid);
        rows.iter().map(|row| self.index_definition(relation, row)).collect()
    }

    pub(crate) fn index_build_rows(&self, table: Oid) -> Result<Vec<BuildRow>> {
        let mut found = Vec::new();
        let since_15 = self.cluster().version() >= pagemill_format::PgVersion::V15;
        let mut wanted = BuildRow::SOURCE.to_vec();
        if since_15 {
            wanted.push("indnullsnotdistinct");
        }
        self.scan(catalog::PG_INDEX, &wanted, |row| {
            if row.oid(1)? == table {
                found.push(BuildRow::read(row, since_15)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn index_definition(&self, relation: &Relation, row: &BuildRow) -> Result<IndexDefinition> {
        let Some(class) = self.class(row.oid) else {
            return Err(refused(relation, LoadObstacle::MissingIndex(row.oid)));
        };
        let name = String::from_utf8_lossy(&class.name).into_owned();
        let no = |cause: IndexCause| {
            refused(relation, LoadObstacle::Index { name: name.clone(), cause })
        };
        if !self.is_btree(class)? {
            return Err(no(IndexCause::NotABtree));
        }
        if !row.is_valid || row.has_expression || row.has_predicate {
            return Err(no(match row.is_valid {
                false => IndexCause::Invalid,
                true if row.has_predicate => IndexCause::Predicate,
                true => IndexCause::Expression,
            }));
        }
        let keys = (0..row.key_count).map(|at| {
            self.key_column(row, at).map_err(|failure| match failure {
                OrderFailure::Unknown(cause) => no(cause.into()),
                OrderFailure::Error(error) => error,
            })
        });
        let keys: Vec<KeyColumn> = keys.collect::<Result<_>>()?;
        let included = row.columns.iter().skip(row.key_count).map(|&number| position(number));
        let (options, _) = self.class_options(row.oid)?;
        let option = |name: &str| options.iter().find_map(|option| value_of(option, name));
        Ok(IndexDefinition {
            class: class.clone(),
            unique: row.is_unique,
            immediate: row.is_immediate,
            nulls_not_distinct: row.nulls_not_distinct,
            keys,
            included: included.collect(),
            fillfactor: option("fillfactor").and_then(|f| f.parse().ok()).unwrap_or(90),
            deduplicate: !option("deduplicate_items").is_some_and(is_off),
        })
    }

    fn key_column(&self, row: &BuildRow, at: usize) -> Result<KeyColumn, OrderFailure> {
        let missing = || OrderFailure::Unknown(OrderCause::TooFewOperatorClasses);
        let class = row.operator_classes.get(at).copied().ok_or_else(missing)?;
        let (operator_class, operator_class_type) = self.operator_class(class)?;
        let collation = row.collations.get(at).copied().unwrap_or(Oid::INVALID);
        let options = row.options.get(at).copied().unwrap_or(0);
        Ok(KeyColumn {
            position: row.columns.get(at).map(|&number| position(number)).ok_or_else(missing)?,
            operator_class,
            operator_class_type,
            collation: match collation {
                Oid::INVALID => None,
                oid => Some(self.collation(oid)?),
            },
            descending: options & DESCENDING != 0,
            nulls_first: options & NULLS_FIRST != 0,
        })
    }

    /// A built-in operator class and the type it is for.
    pub(crate) fn operator_class(&self, oid: Oid) -> Result<(String, Oid), OrderFailure> {
        let mut found = None;
        self.scan_any(catalog::PG_OPCLASS, &["oid", "opcname", "opcintype"], |row| {
            if row.oid(0)? == oid {
                found = Some((row.name(1)?, row.oid(2)?));
            }
            Ok(())
        })?;
        match found {
            Some((name, of)) if oid < FIRST_NORMAL_OID => {
                Ok((String::from_utf8_lossy(&name).into_owned(), of))
            }
            Some((name, _)) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                Err(OrderFailure::Unknown(OrderCause::OperatorClass(name)))
            }
            None => Err(OrderFailure::Unknown(OrderCause::MissingOperatorClass(oid))),
        }
    }
}

/// A row of `pg_index`, as far as building the index needs it.
pub(crate) struct BuildRow {
    pub(crate) oid: Oid,
    pub(crate) columns: Vec<i16>,
    pub(crate) key_count: usize,
    pub(crate) is_unique: bool,
    pub(crate) is_immediate: bool,
    pub(crate) is_valid: bool,
    pub(crate) has_expression: bool,
    pub(crate) has_predicate: bool,
    /// The trees of both, where they are not kept out of line.
    pub(crate) expressions: Option<Vec<u8>>,
    pub(crate) predicate: Option<Vec<u8>>,
    pub(crate) nulls_not_distinct: bool,
    pub(crate) operator_classes: Vec<Oid>,
    pub(crate) collations: Vec<Oid>,
    pub(crate) options: Vec<i16>,
}

impl BuildRow {
    const SOURCE: [&'static str; 14] = [
        "indexrelid",
        "indrelid",
        "indisunique",
        "indisvalid",
        "indisready",
        "indislive",
        "indnkeyatts",
        "indkey",
        "indcollation",
        "indclass",
        "indoption",
        "indexprs",
        "indpred",
        "indimmediate",
    ];

    fn read(row: &crate::system_table::Row<'_>, since_15: bool) -> Result<Self, FormatError> {
        let valid = row.byte(3)? != 0 && row.byte(4)? != 0 && row.byte(5)? != 0;
        Ok(Self {
            oid: row.oid(0)?,
            is_unique: row.byte(2)? != 0,
            is_valid: valid,
            key_count: usize::try_from(row.i16(6)?).unwrap_or(0),
            columns: crate::index::vector(row.raw(7))?,
            collations: crate::index::oid_vector(row.raw(8))?,
            operator_classes: crate::index::oid_vector(row.raw(9))?,
            options: crate::index::vector(row.raw(10))?,
            has_expression: row.raw(11).is_some(),
            has_predicate: row.raw(12).is_some(),
            expressions: stored_tree(row, 11)?,
            predicate: stored_tree(row, 12)?,
            is_immediate: row.byte(13)? != 0,
            nulls_not_distinct: since_15 && row.byte(14)? != 0,
        })
    }
}

/// The position of a column by its number; one of the system's (never a key here) has none.
pub(crate) fn position(number: i16) -> usize {
    usize::try_from(number).map_or(usize::MAX, |number| number.wrapping_sub(1))
}

fn check_kind(database: &Database, relation: &Relation) -> Result<()> {
    let class = &relation.class;
    match class.kind {
        RelationKind::Table => {}
        kind => return Err(refused(relation, LoadObstacle::Kind(kind))),
    }
    if class.oid < FIRST_NORMAL_OID || class.shared {
        return Err(refused(relation, LoadObstacle::SystemTable));
    }
    match class.persistence {
        Persistence::Permanent | Persistence::Unlogged => {}
        Persistence::Temporary => {
            return Err(refused(relation, LoadObstacle::Temporary));
        }
    }
    match database.is_heap(class.access_method)? {
        true => Ok(()),
        false => Err(refused(relation, LoadObstacle::AccessMethod)),
    }
}

fn check_columns(relation: &Relation) -> Result<()> {
    for column in relation.columns.iter().filter(|column| !column.dropped) {
        if matches!(column.generated, Generated::Stored | Generated::Virtual) {
            let name = column.display_name();
            return Err(refused(relation, LoadObstacle::GeneratedColumn(name)));
        }
    }
    Ok(())
}

fn refused(relation: &Relation, obstacle: LoadObstacle) -> Error {
    Error::refused(Refusal::NotLoadable { relation: relation.display_name(), obstacle })
}

/// The elements of a `text[]`.
fn texts(array: &[u8]) -> Result<Vec<String>, FormatError> {
    let elements = pagemill_types::array::text_elements(array)?;
    Ok(elements.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect())
}

/// The value of `name=value`.
fn value_of<'a>(option: &'a str, name: &str) -> Option<&'a str> {
    option.strip_prefix(name)?.strip_prefix('=')
}

/// `false` as a storage parameter may spell it.
fn is_off(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    ["false", "off", "no", "0", "f", "n"].contains(&value.as_str())
}
