//! The SQL key words that PostgreSQL quotes when they serve as names, by the version that
//! reserved them first.
//!
//! Every key word but the unreserved ones is quoted: reserved, column-name and type-or-function
//! words alike. An unreserved word changes nothing, so it is not listed. In none of the versions
//! 14 to 18 did a word leave this list or move between quoted and unquoted.
//!
//! Invariant: each list is sorted by its bytes (it is searched by bisection).
//!
//! Sources: `src/include/parser/kwlist.h` of PostgreSQL 14 to 18, as those servers list it
//! themselves in `pg_get_keywords()` (every `catcode` other than `U`).

use pagemill_format::PgVersion;

/// Quoted in every version from 14 on.
#[rustfmt::skip]
const FROM_14: &[&[u8]] = &[
    b"all", b"analyse", b"analyze", b"and", b"any", b"array", b"as", b"asc", b"asymmetric",
    b"authorization", b"between", b"bigint", b"binary", b"bit", b"boolean", b"both", b"case",
    b"cast", b"char", b"character", b"check", b"coalesce", b"collate", b"collation", b"column",
    b"concurrently", b"constraint", b"create", b"cross", b"current_catalog", b"current_date",
    b"current_role", b"current_schema", b"current_time", b"current_timestamp", b"current_user",
    b"dec", b"decimal", b"default", b"deferrable", b"desc", b"distinct", b"do", b"else", b"end",
    b"except", b"exists", b"extract", b"false", b"fetch", b"float", b"for", b"foreign", b"freeze",
    b"from", b"full", b"grant", b"greatest", b"group", b"grouping", b"having", b"ilike", b"in",
    b"initially", b"inner", b"inout", b"int", b"integer", b"intersect", b"interval", b"into",
    b"is", b"isnull", b"join", b"lateral", b"leading", b"least", b"left", b"like", b"limit",
    b"localtime", b"localtimestamp", b"national", b"natural", b"nchar", b"none", b"normalize",
    b"not", b"notnull", b"null", b"nullif", b"numeric", b"offset", b"on", b"only", b"or", b"order",
    b"out", b"outer", b"overlaps", b"overlay", b"placing", b"position", b"precision", b"primary",
    b"real", b"references", b"returning", b"right", b"row", b"select", b"session_user", b"setof",
    b"similar", b"smallint", b"some", b"substring", b"symmetric", b"table", b"tablesample",
    b"then", b"time", b"timestamp", b"to", b"trailing", b"treat", b"trim", b"true", b"union",
    b"unique", b"user", b"using", b"values", b"varchar", b"variadic", b"verbose", b"when",
    b"where", b"window", b"with", b"xmlattributes", b"xmlconcat", b"xmlelement", b"xmlexists",
    b"xmlforest", b"xmlnamespaces", b"xmlparse", b"xmlpi", b"xmlroot", b"xmlserialize",
    b"xmltable",
];

/// Quoted from 16 on.
#[rustfmt::skip]
const FROM_16: &[&[u8]] = &[
    b"json_array", b"json_arrayagg", b"json_object", b"json_objectagg", b"system_user",
];

/// Quoted from 17 on.
#[rustfmt::skip]
const FROM_17: &[&[u8]] = &[
    b"json", b"json_exists", b"json_query", b"json_scalar", b"json_serialize", b"json_table",
    b"json_value", b"merge_action",
];

/// Each list with the version it begins to hold in.
const LISTS: [(PgVersion, &[&[u8]]); 3] =
    [(PgVersion::V14, FROM_14), (PgVersion::V16, FROM_16), (PgVersion::V17, FROM_17)];

/// True when `word`, in lower case, is a key word that PostgreSQL `version` quotes.
pub fn is_quoted_keyword(word: &[u8], version: PgVersion) -> bool {
    LISTS.iter().any(|(since, words)| *since <= version && words.binary_search(&word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_sorted_and_no_word_is_in_two() {
        for (_, words) in LISTS {
            assert!(words.is_sorted_by(|a, b| a < b));
        }
        let mut all: Vec<_> = LISTS.iter().flat_map(|(_, words)| words.iter()).collect();
        let listed = all.len();
        all.sort();
        all.dedup();
        assert_eq!((all.len(), listed), (164, 164));
    }

    #[test]
    fn a_word_is_quoted_from_the_version_that_reserved_it() {
        let quoted_in = |word: &[u8]| {
            PgVersion::ALL.into_iter().filter(|v| is_quoted_keyword(word, *v)).collect::<Vec<_>>()
        };
        assert_eq!(quoted_in(b"select").len(), 5);
        assert_eq!(quoted_in(b"json_object"), [PgVersion::V16, PgVersion::V17, PgVersion::V18]);
        assert_eq!(quoted_in(b"json"), [PgVersion::V17, PgVersion::V18]);
        assert_eq!(quoted_in(b"name"), []);
        assert_eq!(quoted_in(b""), []);
    }
}
