//! What indexes and their access methods can do: `pg_indexam_has_property`, `pg_index_has_property` and
//! `pg_index_column_has_property`.
//!
//! An access method is known by the C function that is its handler, so that one that was made of a handler of the server's is, too.
//!
//! Invariant: NULL for what is no property of such a thing, as for a relation that is no index; another handler's access method is
//! refused, as is whether an SP-GiST index can give its column back, which its operator class alone knows.
//!
//! Source: `src/backend/utils/adt/amutils.c`, `bthandler` in `src/backend/access/nbtree/nbtree.c` and its kin, `gistproperty` in
//! `gistutil.c`, `spgproperty` in `spgutils.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{Int32Type, UInt32Type};
use pagemill_cluster::RelationKind;
use pagemill_format::Oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::{Result, StatementError};
use crate::system_rows::for_each_row;

/// `INDOPTION_DESC` and `INDOPTION_NULLS_FIRST`.
const DESCENDING: i16 = 1;
const NULLS_FIRST: i16 = 2;
/// `GIST_COMPRESS_PROC`, `GIST_DISTANCE_PROC` and `GIST_FETCH_PROC`.
const GIST_COMPRESS: i16 = 3;
const GIST_DISTANCE: i16 = 8;
const GIST_FETCH: i16 = 9;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_indexam_has_property" => of_methods,
        "pg_index_has_property" => of_indexes,
        "pg_index_column_has_property" => of_columns,
        _ => return None,
    }))
}

/// The access methods of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    BTree,
    Hash,
    Gist,
    Gin,
    SpGist,
    Brin,
}

impl Method {
    fn by_handler(name: &str) -> Option<Self> {
        Some(match name {
            "bthandler" => Self::BTree,
            "hashhandler" => Self::Hash,
            "gisthandler" => Self::Gist,
            "ginhandler" => Self::Gin,
            "spghandler" => Self::SpGist,
            "brinhandler" => Self::Brin,
            _ => return None,
        })
    }

    fn has_order(self) -> bool {
        self == Self::BTree
    }

    fn has_distance_order(self) -> bool {
        matches!(self, Self::Gist | Self::SpGist)
    }

    fn gives_rows(self) -> bool {
        !matches!(self, Self::Gin | Self::Brin)
    }

    fn takes_several_columns(self) -> bool {
        !matches!(self, Self::Hash | Self::SpGist)
    }

    fn takes_other_columns(self) -> bool {
        matches!(self, Self::BTree | Self::Gist | Self::SpGist)
    }

    fn finds_nulls(self) -> bool {
        !matches!(self, Self::Hash | Self::Gin)
    }

    /// A property of the method itself.
    fn has(self, property: &str) -> Option<bool> {
        Some(match property {
            "can_order" | "can_unique" => self.has_order(),
            "can_multi_col" => self.takes_several_columns(),
            "can_exclude" => self.gives_rows(),
            "can_include" => self.takes_other_columns(),
            _ => return None,
        })
    }

    /// A property of an index.
    fn gives_index(self, property: &str) -> Option<bool> {
        Some(match property {
            "clusterable" => matches!(self, Self::BTree | Self::Gist),
            "index_scan" => self.gives_rows(),
            "bitmap_scan" => true,
            "backward_scan" => matches!(self, Self::BTree | Self::Hash),
            _ => return None,
        })
    }
}

/// An index, as far as its columns' properties follow from it.
struct IndexRow {
    keys: i16,
    classes: Vec<Oid>,
    options: Vec<i16>,
}

/// What is asked of the catalogs, once for all rows of a batch.
struct Known<'c> {
    catalog: &'c Catalog,
    /// Methods of indexes by their OIDs; `None` for one of another's handler.
    methods: HashMap<Oid, Option<Method>>,
    indexes: HashMap<Oid, IndexRow>,
}

impl<'c> Known<'c> {
    fn read(catalog: &'c Catalog, with_columns: bool) -> Result<Self> {
        let mut known = Self { catalog, methods: HashMap::new(), indexes: HashMap::new() };
        for_each_row(catalog.values(), "pg_am", &["oid", "amhandler", "amtype"], |row| {
            if row.byte(2) == b'i' {
                let handler = catalog.function(row.oid(1));
                let method = handler.and_then(|handler| Method::by_handler(&handler.key));
                known.methods.insert(row.oid(0), method);
            }
            Ok(())
        })?;
        let columns = ["indexrelid", "indnkeyatts", "indclass", "indoption"];
        if with_columns {
            for_each_row(catalog.values(), "pg_index", &columns, |row| {
                let (oid, keys) = (row.oid(0), row.int2(1));
                let (classes, options) = (row.oids(2)?, row.int2s(3)?);
                known.indexes.insert(oid, IndexRow { keys, classes, options });
                Ok(())
            })?;
        }
        Ok(known)
    }

    fn method(&self, oid: Oid) -> Outcome<Option<Method>> {
        match self.methods.get(&oid) {
            None => Ok(None),
            Some(Some(method)) => Ok(Some(*method)),
            Some(None) => Err(StatementError::unsupported("what an index of this kind can do")),
        }
    }

    /// The method of an index, and how many columns that has.
    fn of_index(&self, oid: Oid) -> Outcome<Option<(Method, i16)>> {
        let class = self.catalog.database().class(oid).filter(|class| {
            matches!(class.kind, RelationKind::Index | RelationKind::PartitionedIndex)
        });
        let Some(class) = class else { return Ok(None) };
        Ok(self.method(class.access_method)?.map(|method| (method, class.column_count)))
    }

    fn of_column(&self, index: Oid, number: i32, property: &str) -> Outcome<Option<bool>> {
        let Some((method, count)) = self.of_index(index)? else { return Ok(None) };
        if number <= 0 || number > i32::from(count) {
            return Ok(None);
        }
        let Some(row) = self.indexes.get(&index) else { return Ok(None) };
        let is_key = !method.takes_other_columns() || number <= i32::from(row.keys);
        let at = number as usize - 1;
        if let Some(found) = self.by_class(method, (row, at, is_key), property)? {
            return Ok(found);
        }
        let option = row.options.get(at).copied().unwrap_or_default();
        Ok(match property {
            "asc" if is_key => Some(method.has_order() && option & DESCENDING == 0),
            "desc" if is_key => Some(method.has_order() && option & DESCENDING != 0),
            "nulls_first" if is_key => Some(method.has_order() && option & NULLS_FIRST != 0),
            "nulls_last" if is_key => Some(method.has_order() && option & NULLS_FIRST == 0),
            "orderable" => Some(is_key && method.has_order()),
            "distance_orderable" if !is_key || !method.has_distance_order() => Some(false),
            "returnable" => Some(method == Method::BTree || method == Method::SpGist),
            "search_array" if is_key => Some(method == Method::BTree),
            "search_nulls" if is_key => Some(method.finds_nulls()),
            _ => None,
        })
    }

    /// What the operator class of a column decides; `None` where it does not.
    fn by_class(
        &self,
        method: Method,
        (row, at, is_key): (&IndexRow, usize, bool),
        property: &str,
    ) -> Outcome<Option<Option<bool>>> {
        let is_asked = match method {
            Method::Gist => matches!(property, "distance_orderable" | "returnable"),
            Method::SpGist => {
                property == "distance_orderable" || property == "returnable" && is_key
            }
            _ => false,
        };
        if !is_asked {
            return Ok(None);
        }
        if method == Method::SpGist && property == "returnable" {
            return Err(StatementError::unsupported(
                "whether an SP-GiST index has its column back",
            ));
        }
        let class = row.classes.get(at).filter(|_| is_key);
        let Some(class) = class else { return Ok(Some(None)) };
        let found = match method {
            Method::Gist => self.of_gist(*class, property),
            _ => self.has_distances(*class),
        };
        found.map(Some).map_err(statement_error)
    }

    /// The family of an operator class, and its input type.
    fn family(&self, class: Oid) -> Result<Option<(Oid, Oid)>> {
        let mut found = None;
        for_each_row(
            self.catalog.values(),
            "pg_opclass",
            &["oid", "opcfamily", "opcintype"],
            |row| {
                if row.oid(0) == class {
                    found = Some((row.oid(1), row.oid(2)));
                }
                Ok(())
            },
        )?;
        Ok(found)
    }

    /// Distances need a support function; values are given back by one, or as they are where none compresses them.
    fn of_gist(&self, class: Oid, property: &str) -> Result<Option<bool>> {
        let Some((family, ty)) = self.family(class)? else { return Ok(None) };
        let columns = ["amprocfamily", "amproclefttype", "amprocrighttype", "amprocnum"];
        let mut numbers = Vec::new();
        for_each_row(self.catalog.values(), "pg_amproc", &columns, |row| {
            if row.oid(0) == family && row.oid(1) == ty && row.oid(2) == ty {
                numbers.push(row.int2(3));
            }
            Ok(())
        })?;
        Ok(Some(match property {
            "distance_orderable" => numbers.contains(&GIST_DISTANCE),
            _ => numbers.contains(&GIST_FETCH) || !numbers.contains(&GIST_COMPRESS),
        }))
    }

    /// Whether the family has an operator by which values of the type are ordered.
    fn has_distances(&self, class: Oid) -> Result<Option<bool>> {
        let Some((family, ty)) = self.family(class)? else { return Ok(None) };
        let columns = ["amopfamily", "amoplefttype", "amoprighttype", "amoppurpose"];
        let mut found = false;
        for_each_row(self.catalog.values(), "pg_amop", &columns, |row| {
            let is_of_type = row.oid(1) == ty || row.oid(2) == ty;
            found |= row.oid(0) == family && is_of_type && row.byte(3) == b'o';
            Ok(())
        })?;
        Ok(Some(found))
    }
}

/// What is told of each row that has no NULL; names of properties are read without regard to case.
fn told(
    arguments: &[ArrayRef],
    of: impl Fn(Oid, usize, &str) -> Outcome<Option<bool>>,
) -> Outcome<ArrayRef> {
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let names = strings(&arguments[arguments.len() - 1]);
    let one = |row: usize| {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        of(Oid(numbers.value(row)), row, &names.value(row).to_ascii_lowercase())
    };
    Made::column((0..names.len()).map(one).collect::<Outcome<Vec<Option<bool>>>>()?)
}

fn of_methods(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let known = Known::read(&call.catalog, false).map_err(statement_error)?;
    told(arguments, |oid, _, property| {
        Ok(known.method(oid)?.and_then(|method| method.has(property)))
    })
}

fn of_indexes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let known = Known::read(&call.catalog, false).map_err(statement_error)?;
    told(arguments, |oid, _, property| match oid {
        // Without an index the method is asked, and none has this number.
        Oid::INVALID => Ok(None),
        oid => Ok(known.of_index(oid)?.and_then(|(method, _)| method.gives_index(property))),
    })
}

fn of_columns(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let known = Known::read(&call.catalog, true).map_err(statement_error)?;
    let columns = arguments[1].as_primitive::<Int32Type>();
    told(arguments, |oid, row, property| known.of_column(oid, columns.value(row), property))
}
