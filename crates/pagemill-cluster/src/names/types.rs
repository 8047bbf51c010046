//! Type names as SQL spells them: `integer`, `character varying[]`, `myschema."My type"`.
//!
//! A handful of built-in types have a spelling of their own, which the grammar reserves and which
//! is therefore never qualified. All others print as catalogued, qualified unless visible. A
//! *true* array (subscripted by the array handler, not of plain storage) prints as its element
//! followed by `[]`; `name` and `oidvector`, which only look like arrays, print as themselves.
//!
//! Source: `format_type_extended` in `src/backend/utils/adt/format_type.c` (as `format_type_be`
//! calls it, without a type modifier), `IsTrueArrayType` in `src/include/catalog/pg_type.h`,
//! PostgreSQL 14 to 18.

use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::BuiltinType;

use super::path::Foremost;
use super::rows::TypeRow;
use super::schemas::Schemas;
use super::texts::{OidMap, Texts};

/// `array_subscript_handler` in `pg_proc.dat`.
const ARRAY_SUBSCRIPT_HANDLER: Oid = Oid(6179);
/// `TYPSTORAGE_PLAIN`.
const STORAGE_PLAIN: u8 = b'p';

/// The text of every type of `rows`.
pub(super) fn type_texts(rows: &[TypeRow], schemas: &Schemas) -> Texts {
    let rank = |row: &TypeRow| schemas.path().position(row.namespace);
    let foremost = Foremost::of(rows.iter().map(|row| (&row.name, rank(row))));
    let by_oid: OidMap<&TypeRow> = rows.iter().map(|row| (row.oid, row)).collect();
    let write = |row: &TypeRow, out: &mut Vec<u8>| match sql_spelling(row.oid, schemas.version()) {
        Some(spelling) => out.extend_from_slice(spelling),
        None => {
            let visible = foremost.finds(&&row.name, rank(row));
            schemas.write_qualified(row.namespace, &row.name, visible, out);
        }
    };
    let mut texts = Texts::with_capacity(rows.len());
    for row in rows {
        texts.insert(row.oid, |out| {
            if !is_true_array(row) {
                return write(row, out);
            }
            match by_oid.get(&row.element) {
                Some(element) => write(element, out),
                None => out.extend_from_slice(MISSING),
            }
            out.extend_from_slice(b"[]");
        });
    }
    texts
}

/// What `format_type` prints for a type that is not there.
const MISSING: &[u8] = b"???";

/// Appends the type as the SQL function `format_type` does: `-` for none, `???` for a missing one.
pub(super) fn write_format_type(texts: &Texts, oid: Oid, out: &mut Vec<u8>) {
    let absent: &[u8] = if oid.is_valid() { MISSING } else { b"-" };
    out.extend_from_slice(texts.get(oid).unwrap_or(absent));
}

/// True for the array type that belongs to an element type.
pub(crate) fn is_true_array(row: &TypeRow) -> bool {
    row.element.is_valid()
        && row.subscript == ARRAY_SUBSCRIPT_HANDLER
        && row.storage != STORAGE_PLAIN
}

/// The spelling that the grammar has for a built-in type.
fn sql_spelling(oid: Oid, version: PgVersion) -> Option<&'static [u8]> {
    BuiltinType::by_oid(oid)?.sql_name(version).map(str::as_bytes)
}
