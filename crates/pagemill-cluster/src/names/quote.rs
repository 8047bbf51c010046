//! Names as SQL text: quoted only where PostgreSQL quotes them.
//!
//! A name stays bare when it begins with a lower-case letter or an underscore, has nothing but
//! lower-case letters, digits and underscores, and is no key word (unreserved ones aside).
//! Names are bytes: the rule looks at ASCII alone, so it holds in every server encoding.
//!
//! Source: `quote_identifier` and `quote_qualified_identifier` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18, with `quote_all_identifiers` off.

use super::keywords::is_quoted_keyword;
use pagemill_format::PgVersion;

/// Appends `name` as `quote_identifier` of PostgreSQL `version` spells it.
pub fn quote_identifier(name: &[u8], version: PgVersion, out: &mut Vec<u8>) {
    if is_bare(name, version) {
        out.extend_from_slice(name);
        return;
    }
    out.push(b'"');
    for &byte in name {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

fn is_bare(name: &[u8], version: PgVersion) -> bool {
    name.first().is_some_and(|first| matches!(first, b'a'..=b'z' | b'_'))
        && name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !is_quoted_keyword(name, version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse_search_path;
    use proptest::prelude::*;

    fn quoted(name: &str) -> String {
        let mut out = Vec::new();
        quote_identifier(name.as_bytes(), PgVersion::V15, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_names_stay_bare_and_all_others_are_quoted() {
        for bare in ["a", "_1", "pg_catalog", "name", "abort", "json_object"] {
            assert_eq!(quoted(bare), bare);
        }
        for name in ["", "1a", "Abc", "a b", "a$b", "é", "select", "int", "left", "a.b"] {
            assert_eq!(quoted(name), format!("\"{name}\""));
        }
        assert_eq!(quoted("say \"hi\""), r#""say ""hi""""#);
    }

    proptest! {
        #[test]
        fn a_quoted_name_reads_back_as_itself(name in "[^\0]{1,20}") {
            prop_assume!(name.len() < 64);
            let list = parse_search_path(quoted(&name).as_bytes()).unwrap();
            prop_assert_eq!(list, vec![name.into_bytes().into_boxed_slice()]);
        }

        #[test]
        fn any_bytes_can_be_quoted(name: Vec<u8>) {
            let mut out = Vec::new();
            quote_identifier(&name, PgVersion::V18, &mut out);
            prop_assert!(out.len() >= name.len());
        }
    }
}
