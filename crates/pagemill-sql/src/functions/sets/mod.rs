//! Functions that give rows: `generate_series`, `unnest`, `json_each` and their kin, by the server's names of them.
//!
//! A call begins a [`Series`] for each row of its arguments. A series gives one row after the other, so that a long one costs
//! no more memory than a short one.
//!
//! Source: `src/include/catalog/pg_proc.dat`, PostgreSQL 14 to 18.

mod arrays;
pub(crate) mod catalogs;
mod cells;
mod control_file;
mod extensions;
mod grants;
mod input_errors;
mod key_words;
mod numbers;
pub(crate) mod of_server;
mod settings;
mod texts;
mod time_zones;
mod token_types;
mod wal_files;

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use pagemill_types::builtin::oid;

use super::logic::json_queries::TableRows;
use super::row_casts::fields_of_type;
use super::rows::Outcome;
use super::text_form::scalar_of_payload;
use super::{datetime, logic, ranges, text_search};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::session::SessionFacts;
use crate::typed::{RowField, Typed};
use crate::types::PgType;

pub(crate) use cells::{Cells, typed_cells};

/// The rows of one call.
pub(crate) trait Series: Send {
    /// Appends the next row, a value to each column; false, and nothing appended, at the end.
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool>;
}

/// Begins the rows for one row of the arguments, none of which is NULL unless the call takes it.
pub(crate) type Begin = fn(&SetCall, &[ArrayRef], usize) -> Outcome<Box<dyn Series>>;

/// A column of what a function gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SetColumn {
    /// The name of the result's part; none where the column is called as the function or its alias.
    pub(crate) name: Option<Cow<'static, str>>,
    pub(crate) ty: PgType,
    pub(crate) carrier: DataType,
}

impl SetColumn {
    pub(crate) fn new(catalog: &Catalog, name: Option<Cow<'static, str>>, ty: PgType) -> Self {
        Self { name, ty, carrier: carrier_of(catalog, ty) }
    }
}

/// A call of a function that gives rows.
#[derive(Clone)]
pub(crate) struct SetCall {
    pub(crate) catalog: Arc<Catalog>,
    /// The server's name of the function.
    pub(crate) key: Arc<str>,
    /// The types of the arguments.
    pub(crate) arguments: Arc<[PgType]>,
    pub(crate) columns: Arc<[SetColumn]>,
    /// True where NULL for an argument means something else than no rows.
    pub(crate) takes_null: bool,
    /// True for a function of one row, which is one of NULLs then.
    gives_one: bool,
    /// What JSON_TABLE asks of a document.
    pub(crate) table: Option<Arc<TableRows>>,
    /// The sessions of the server, where they are asked for.
    pub(crate) sessions: Option<Arc<[SessionFacts]>>,
    begin: Begin,
}

impl SetCall {
    /// The rows for one row of the arguments.
    ///
    /// # Errors
    /// As the server's function.
    pub(crate) fn begin(&self, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
        if !self.takes_null && arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(match self.gives_one {
                true => made(vec![()], |(), out| out.iter_mut().try_for_each(|cells| cells.null())),
                false => Box::new(NoRows),
            });
        }
        (self.begin)(self, arguments, row)
    }
}

impl std::fmt::Debug for SetCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.key)
    }
}

impl PartialEq for SetCall {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.arguments == other.arguments
            && self.columns == other.columns
            && self.takes_null == other.takes_null
            && self.table == other.table
            && self.sessions == other.sessions
    }
}

impl Eq for SetCall {}

impl Hash for SetCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        self.arguments.hash(state);
    }
}

struct NoRows;

impl Series for NoRows {
    fn next(&mut self, _: &mut [Cells]) -> Outcome<bool> {
        Ok(false)
    }
}

/// Rows that were all made at the beginning.
struct Made<T> {
    rows: std::vec::IntoIter<T>,
    put: fn(T, &mut [Cells]) -> Outcome<()>,
}

impl<T: Send> Series for Made<T> {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        match self.rows.next() {
            None => Ok(false),
            Some(row) => (self.put)(row, out).map(|()| true),
        }
    }
}

/// A series of rows that are there already.
pub(crate) fn made<T: Send + 'static>(
    rows: Vec<T>,
    put: fn(T, &mut [Cells]) -> Outcome<()>,
) -> Box<dyn Series> {
    Box::new(Made { rows: rows.into_iter(), put })
}

/// The same of payloads, one for each column of the call; nothing for NULL.
pub(crate) fn made_of_payloads(
    call: &SetCall,
    rows: Vec<Vec<Option<Vec<u8>>>>,
) -> Outcome<Box<dyn Series>> {
    let shown = |values: Vec<Option<Vec<u8>>>| {
        let cell = |(column, value): (&SetColumn, Option<Vec<u8>>)| {
            let scalar = |payload: Vec<u8>| {
                scalar_of_payload(&call.catalog, column.ty, &column.carrier, &payload)
            };
            value.map(scalar).transpose()
        };
        call.columns.iter().zip(values).map(cell).collect::<Outcome<Vec<_>>>()
    };
    let rows = rows.into_iter().map(shown).collect::<Outcome<Vec<_>>>()?;
    Ok(made(rows, |row, out| {
        for (value, cells) in row.into_iter().zip(out) {
            match value {
                Some(value) => cells.scalar(value)?,
                None => cells.null()?,
            }
        }
        Ok(())
    }))
}

/// A function as overload resolution chose it.
pub(crate) struct Asked<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) key: &'a str,
    /// The arguments, each of the type that the function declares.
    pub(crate) arguments: Vec<Typed>,
    pub(crate) result: PgType,
}

/// What gives the rows of a function.
struct Known {
    begin: Begin,
    columns: Vec<(Option<&'static str>, PgType)>,
    takes_null: bool,
    gives_one: bool,
}

impl Known {
    fn one(begin: Begin, ty: PgType) -> Self {
        Self { begin, columns: vec![(None, ty)], takes_null: false, gives_one: false }
    }

    fn named(begin: Begin, columns: &[(&'static str, pagemill_format::Oid)]) -> Self {
        let column = |(name, oid): &(&'static str, _)| (Some(*name), PgType::new(*oid));
        let columns = columns.iter().map(column).collect();
        Self { begin, columns, takes_null: false, gives_one: false }
    }

    fn one_row(begin: Begin, columns: &[(&'static str, pagemill_format::Oid)]) -> Self {
        Self { gives_one: true, ..Self::named(begin, columns) }
    }
}

/// The call, with its arguments as it takes them; none where the function is not known here.
///
/// # Errors
/// When the arguments have what is not known here.
pub(crate) fn find(mut asked: Asked<'_>) -> Result<Option<(SetCall, Vec<Typed>)>> {
    texts::rewrite(&mut asked)?;
    numbers::prepare(&mut asked);
    if let Some(call) = of_server::find(&asked)? {
        return Ok(Some((call, asked.arguments)));
    }
    let Some(known) = known(&asked) else { return Ok(None) };
    let column = |(name, ty): &(Option<&'static str>, PgType)| {
        SetColumn::new(asked.catalog, name.map(Cow::Borrowed), *ty)
    };
    let mut columns: Vec<SetColumn> = known.columns.iter().map(column).collect();
    if asked.key == ONE_ROW {
        columns[0].carrier = asked.arguments[0].carrier.clone();
    }
    let call = SetCall {
        catalog: asked.catalog.clone(),
        key: asked.key.into(),
        arguments: asked.arguments.iter().map(|argument| argument.ty).collect(),
        columns: columns.into(),
        takes_null: known.takes_null,
        gives_one: known.gives_one,
        table: None,
        sessions: None,
        begin: known.begin,
    };
    Ok(Some((call, asked.arguments)))
}

/// The rows of an array of rows, field by field, as FROM has them; any other call as it is.
///
/// # Errors
/// Where the catalogs do not tell what the fields are.
pub(crate) fn with_fields(call: SetCall) -> Result<SetCall> {
    let [column] = &call.columns[..] else { return Ok(call) };
    let base = call.catalog.base_type(column.ty.oid, -1).0;
    if &*call.key != "array_unnest" {
        return Ok(call);
    }
    let Some(fields) = fields_of_type(&call.catalog, base)? else { return Ok(call) };
    // The name of one column would be that of the item.
    if fields.len() < 2 {
        return unsupported("the rows of one field of an array in FROM");
    }
    let column = |field: RowField| SetColumn {
        name: Some(Cow::Owned(field.name)),
        ty: field.ty,
        carrier: field.carrier,
    };
    let columns = fields.into_iter().map(column).collect();
    Ok(SetCall { columns, begin: arrays::unnest_rows, ..call })
}

fn known(asked: &Asked<'_>) -> Option<Known> {
    let result = asked.result;
    Some(match asked.key {
        "array_unnest" => {
            let element = asked.catalog.type_row(result.oid)?;
            if matches!(element.kind, b'p' | b'd') {
                return None;
            }
            Known::one(arrays::unnest, result)
        }
        "generate_subscripts" | "generate_subscripts_nodir" => {
            Known::one(arrays::subscripts, result)
        }
        "generate_series_int4" | "generate_series_step_int4" => {
            Known::one(numbers::series4, result)
        }
        "generate_series_int8" | "generate_series_step_int8" => {
            Known::one(numbers::series8, result)
        }
        "generate_series_numeric" | "generate_series_step_numeric" => {
            Known::one(numbers::numeric_series, result)
        }
        "generate_series_timestamp"
        | "generate_series_timestamptz"
        | "generate_series_timestamptz_at_zone" => Known::one(datetime::series::begin, result),
        "regexp_matches" | "regexp_matches_no_flags" => Known::one(texts::framed, result),
        "text_to_table" | "text_to_table_null" => {
            Known { takes_null: true, ..Known::one(texts::parts, result) }
        }
        "json_each" => {
            Known::named(logic::each::members, &[("key", oid::TEXT), ("value", oid::JSON)])
        }
        "jsonb_each" => {
            Known::named(logic::each::members, &[("key", oid::TEXT), ("value", oid::JSONB)])
        }
        "json_each_text" | "jsonb_each_text" => {
            Known::named(logic::each::members, &[("key", oid::TEXT), ("value", oid::TEXT)])
        }
        "json_array_elements" => Known::named(logic::each::elements, &[("value", oid::JSON)]),
        "jsonb_array_elements" => Known::named(logic::each::elements, &[("value", oid::JSONB)]),
        "json_array_elements_text" | "jsonb_array_elements_text" => {
            Known::named(logic::each::elements, &[("value", oid::TEXT)])
        }
        "jsonb_path_query" | "jsonb_path_query_tz" => {
            Known::one(logic::path_searches::items, result)
        }
        "multirange_unnest" => Known::one(ranges::sets::unnest, result),
        "hstore/hstore_skeys" | "hstore/hstore_svals" => Known::one(extensions::texts, result),
        "hstore/hstore_each" => {
            Known::named(extensions::pairs, &[("key", oid::TEXT), ("value", oid::TEXT)])
        }
        "tsvector_unnest" => {
            let array = |element| Some(asked.catalog.type_row(element)?.array);
            let (positions, weights) = (array(oid::INT2)?, array(oid::TEXT)?);
            let columns = [("lexeme", oid::TEXT), ("positions", positions), ("weights", weights)];
            Known::named(text_search::lexemes, &columns)
        }
        "pg_input_error_info" => {
            let columns = ["message", "detail", "hint", "sql_error_code"];
            let columns = columns.map(|name| (name, oid::TEXT));
            Known { takes_null: true, ..Known::named(input_errors::begin, &columns) }
        }
        "ts_parse_byid" | "ts_parse_byname" => {
            let columns = [("tokid", oid::INT4), ("token", oid::TEXT)];
            Known::named(text_search::configurations::parsed, &columns)
        }
        "json_object_keys" | "jsonb_object_keys" => Known::one(logic::each::keys, result),
        // What was computed before, as one row.
        ONE_ROW => Known { takes_null: true, ..Known::one(cells::one_row, result) },
        _ => return of_system(asked),
    })
}

/// What is told of the catalogs and of the server.
fn of_system(asked: &Asked<'_>) -> Option<Known> {
    Some(match asked.key {
        "pg_partition_ancestors" => Known::named(catalogs::ancestors, &[("relid", oid::REGCLASS)]),
        "pg_partition_tree" => {
            let columns = [
                ("relid", oid::REGCLASS),
                ("parentrelid", oid::REGCLASS),
                ("isleaf", oid::BOOL),
                ("level", oid::INT4),
            ];
            Known::named(catalogs::tree, &columns)
        }
        "pg_get_sequence_data" => {
            let columns = [("last_value", oid::INT8), ("is_called", oid::BOOL)];
            Known::one_row(catalogs::sequence, &columns)
        }
        "pg_split_walfile_name" => {
            let columns = [("segment_number", oid::NUMERIC), ("timeline_id", oid::INT8)];
            Known::one_row(wal_files::split, &columns)
        }
        "pg_walfile_name_offset" => {
            let columns = [("file_name", oid::TEXT), ("file_offset", oid::INT4)];
            Known::one_row(wal_files::places, &columns)
        }
        "pg_sequence_parameters" => {
            let counts = ["start_value", "minimum_value", "maximum_value", "increment"];
            let counts = counts.map(|name| (name, oid::INT8));
            let others =
                [("cycle_option", oid::BOOL), ("cache_size", oid::INT8), ("data_type", oid::OID)];
            Known::one_row(catalogs::sequence_parameters, &[&counts[..], &others].concat())
        }
        "pg_control_system" => Known::one_row(control_file::system, &control_file::SYSTEM),
        "pg_control_checkpoint" => {
            Known::one_row(control_file::checkpoint, &control_file::CHECKPOINT)
        }
        "pg_control_recovery" => Known::one_row(control_file::recovery, &control_file::RECOVERY),
        "pg_control_init" => {
            let major = asked.catalog.database().cluster().version().major();
            Known::one_row(control_file::init, control_file::init_columns(major))
        }
        "pg_timezone_names" => Known::named(time_zones::names, &time_zones::NAMES),
        "pg_timezone_abbrevs" | "pg_timezone_abbrevs_abbrevs" => {
            Known::named(time_zones::abbreviations, &time_zones::ABBREVIATIONS)
        }
        "pg_timezone_abbrevs_zone" => {
            Known::named(time_zones::of_session, &time_zones::ABBREVIATIONS)
        }
        "pg_get_keywords" => {
            let columns = [
                ("word", oid::TEXT),
                ("catcode", oid::CHAR),
                ("barelabel", oid::BOOL),
                ("catdesc", oid::TEXT),
                ("baredesc", oid::TEXT),
            ];
            Known::named(key_words::begin, &columns)
        }
        "show_all_settings" => {
            let array = asked.catalog.type_row(oid::TEXT)?.array;
            let columns = settings::COLUMNS.map(|name| match name {
                "enumvals" => (name, array),
                "sourceline" => (name, oid::INT4),
                "pending_restart" => (name, oid::BOOL),
                _ => (name, oid::TEXT),
            });
            Known::named(settings::begin, &columns)
        }
        "aclexplode" => {
            let columns = [
                ("grantor", oid::OID),
                ("grantee", oid::OID),
                ("privilege_type", oid::TEXT),
                ("is_grantable", oid::BOOL),
            ];
            Known::named(grants::begin, &columns)
        }
        "pg_options_to_table" => {
            let columns = [("option_name", oid::TEXT), ("option_value", oid::TEXT)];
            Known::named(catalogs::options, &columns)
        }
        "ts_token_type_byid" | "ts_token_type_byname" => {
            let columns = [("tokid", oid::INT4), ("alias", oid::TEXT), ("description", oid::TEXT)];
            Known::named(token_types::begin, &columns)
        }
        _ => return None,
    })
}

/// A call that makes rows of documents, with these fields.
pub(crate) fn of_document(
    catalog: &Arc<Catalog>,
    key: &str,
    arguments: &[Typed],
    columns: Vec<SetColumn>,
) -> SetCall {
    SetCall {
        catalog: catalog.clone(),
        key: key.into(),
        arguments: arguments.iter().map(|argument| argument.ty).collect(),
        columns: columns.into(),
        takes_null: true,
        gives_one: false,
        table: None,
        sessions: None,
        begin: logic::records::begin,
    }
}

/// A call of JSON_TABLE.
pub(crate) fn of_table(
    catalog: &Arc<Catalog>,
    table: TableRows,
    arguments: &[Typed],
    columns: Vec<SetColumn>,
) -> SetCall {
    SetCall {
        catalog: catalog.clone(),
        key: "json_table".into(),
        arguments: arguments.iter().map(|argument| argument.ty).collect(),
        columns: columns.into(),
        takes_null: true,
        gives_one: false,
        table: Some(Arc::new(table)),
        sessions: None,
        begin: logic::json_queries::begin,
    }
}

/// The key under which [`find`] gives one row with the value of its argument.
pub(crate) const ONE_ROW: &str = "one row";

#[cold]
fn parameter(message: &str) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}
