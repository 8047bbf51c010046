//! What a table's file, or its directory of files, is called.
//!
//! Invariant: two tables never get the same name. The first dot of a name ends the schema, because a dot within the schema is
//! encoded; `%` is always encoded, so encoding is never mistaken for a name.

use pagemill_engine::Selected;

/// `SCHEMA.TABLE`, with what a file name cannot hold as `%XX`.
pub fn table_stem(table: &Selected) -> Vec<u8> {
    let mut name = encoded(&table.schema_utf8(), b"/%\0.");
    name.push(b'.');
    name.extend(encoded(&table.name_utf8(), b"/%\0"));
    name
}

fn encoded(name: &[u8], special: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for &byte in name {
        if special.contains(&byte) {
            out.extend(format!("%{byte:02X}").into_bytes());
        } else {
            out.push(byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_name_cannot_hold_is_encoded() {
        assert_eq!(encoded(b"a/b%c", b"/%\0"), b"a%2Fb%25c");
        assert_eq!(encoded(b"x.y", b"/%\0."), b"x%2Ey");
        assert_eq!(encoded("größe 1".as_bytes(), b"/%\0"), "größe 1".as_bytes());
    }
}
