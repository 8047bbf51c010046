//! The printed names of relations, text search objects, collations, functions and operators.
//!
//! `regproc` and `regoper` print a name without arguments, so the schema is left out only when
//! the name alone finds this very object: it is visible, and nothing else of that name, with any
//! arguments, is visible beside it. `regprocedure` and `regoperator` print the arguments too, so
//! being visible is enough.
//!
//! Sources: `src/backend/utils/adt/regproc.c` (the `reg…out` functions, `format_procedure`,
//! `format_operator`) and `src/backend/catalog/namespace.c` (`FuncnameGetCandidates` with any
//! number of arguments, which ignores defaults and VARIADIC; `OpernameGetCandidates`;
//! `lookup_collation`), PostgreSQL 14 to 18.

use super::path::Foremost;
use super::rows::{CollationRow, NamedRow, OperatorRow, ProcRow};
use super::schemas::Schemas;
use super::texts::Texts;
use super::types::write_format_type;
use std::collections::HashMap;
use std::hash::Hash;

/// Both ways to print a function or an operator.
#[derive(Debug)]
pub(super) struct OverloadedTexts {
    /// As `regproc` or `regoper`.
    pub(super) by_name: Texts,
    /// As `regprocedure` or `regoperator`.
    pub(super) with_args: Texts,
}

/// The texts of objects that are found by their name alone.
pub(super) fn named_texts(rows: &[NamedRow], schemas: &Schemas) -> Texts {
    let rank = |row: &NamedRow| schemas.path().position(row.namespace);
    let foremost = Foremost::of(rows.iter().map(|row| (&row.name, rank(row))));
    let mut texts = Texts::with_capacity(rows.len());
    for row in rows {
        let visible = foremost.finds(&&row.name, rank(row));
        texts.insert(row.oid, |out| {
            schemas.write_qualified(row.namespace, &row.name, visible, out);
        });
    }
    texts
}

/// The texts of collations, in a database of `encoding`.
pub(super) fn collation_texts(rows: &[CollationRow], encoding: i32, schemas: &Schemas) -> Texts {
    // In each schema, a collation for this very encoding goes before one for all of them.
    let rank = |row: &CollationRow| {
        let position = schemas.path().position(row.namespace)?;
        let any_encoding = row.encoding == -1;
        let usable = row.encoding == encoding
            || any_encoding && (row.provider != b'i' || is_icu_encoding(encoding));
        usable.then_some(position * 2 + usize::from(any_encoding))
    };
    let foremost = Foremost::of(rows.iter().map(|row| (&row.name, rank(row))));
    let mut texts = Texts::with_capacity(rows.len());
    for row in rows {
        let visible = foremost.finds(&&row.name, rank(row));
        texts.insert(row.oid, |out| {
            schemas.write_qualified(row.namespace, &row.name, visible, out);
        });
    }
    texts
}

/// True when ICU handles the server encoding: all of them (0 to 34, `pg_enc` in
/// `src/include/mb/pg_wchar.h`) but SQL_ASCII, EUC_JIS_2004, MULE_INTERNAL, LATIN10 and WIN874
/// (`pg_enc2icu_tbl` in `src/common/encnames.c`).
fn is_icu_encoding(encoding: i32) -> bool {
    (0..=34).contains(&encoding) && !matches!(encoding, 0 | 5 | 7 | 17 | 21)
}

/// The texts of functions; `types` are the texts of all types.
pub(super) fn proc_texts(rows: &[ProcRow], schemas: &Schemas, types: &Texts) -> OverloadedTexts {
    let rank = |row: &ProcRow| schemas.path().position(row.namespace);
    let key = |row| -> (_, _) {
        let row: &ProcRow = row;
        (&row.name, &row.args)
    };
    let foremost = Foremost::of(rows.iter().map(|row| (key(row), rank(row))));
    let visible_of_name = counts(foremost.keys().map(|(name, _)| *name));
    let mut by_name = Texts::with_capacity(rows.len());
    let mut with_args = Texts::with_capacity(rows.len());
    for row in rows {
        let visible = foremost.finds(&key(row), rank(row));
        let unique = visible && visible_of_name.get(&row.name) == Some(&1);
        by_name.insert(row.oid, |out| {
            schemas.write_qualified(row.namespace, &row.name, unique, out);
        });
        with_args.insert(row.oid, |out| {
            schemas.write_qualified(row.namespace, &row.name, visible, out);
            out.push(b'(');
            for (i, arg) in row.args.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_format_type(types, *arg, out);
            }
            out.push(b')');
        });
    }
    OverloadedTexts { by_name, with_args }
}

/// The texts of operators; `types` are the texts of all types.
pub(super) fn operator_texts(
    rows: &[OperatorRow],
    schemas: &Schemas,
    types: &Texts,
) -> OverloadedTexts {
    let rank = |row: &OperatorRow| schemas.path().position(row.namespace);
    let key = |row| -> (_, _, _) {
        let row: &OperatorRow = row;
        (&row.name, row.left, row.right)
    };
    let foremost = Foremost::of(rows.iter().map(|row| (key(row), rank(row))));
    let visible_of_name = counts(foremost.keys().map(|(name, _, _)| *name));
    let mut by_name = Texts::with_capacity(rows.len());
    let mut with_args = Texts::with_capacity(rows.len());
    for row in rows {
        let visible = foremost.finds(&key(row), rank(row));
        let unique = visible && visible_of_name.get(&row.name) == Some(&1);
        // The operator itself is never quoted.
        by_name.insert(row.oid, |out| {
            schemas.write_schema(row.namespace, unique, out);
            out.extend_from_slice(&row.name);
        });
        with_args.insert(row.oid, |out| {
            schemas.write_schema(row.namespace, visible, out);
            out.extend_from_slice(&row.name);
            for (operand, before) in [(row.left, b'('), (row.right, b',')] {
                out.push(before);
                if operand.is_valid() {
                    write_format_type(types, operand, out);
                } else {
                    out.extend_from_slice(b"NONE");
                }
            }
            out.push(b')');
        });
    }
    OverloadedTexts { by_name, with_args }
}

fn counts<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut counts = HashMap::new();
    for key in keys {
        let count: &mut usize = counts.entry(key).or_default();
        *count += 1;
    }
    counts
}
