//! Values as the names of directories: `NAME=VALUE`, as Hive has it and DuckDB, Spark and pyarrow read it.
//!
//! Invariant: a name is read back as the value that it was made of; what would be read as another one is refused.
//!
//! Source: `escapePathName` in Hive's `FileUtils`, whose bytes are those that Spark escapes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// What stands for NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// The longest name of a directory, in bytes.
const MOST_BYTES: usize = 255;

/// The directory of some columns' values.
///
/// # Errors
/// The column, by its place, and what is wrong with its value.
pub(crate) fn directory<'v>(
    values: impl IntoIterator<Item = (&'v str, Option<&'v str>)>,
) -> Result<PathBuf, (usize, String)> {
    let mut path = PathBuf::new();
    for (at, (column, value)) in values.into_iter().enumerate() {
        match value {
            Some("") => return Err((at, "an empty text, which readers take for NULL".to_owned())),
            Some(value) if value == NULL => {
                return Err((at, format!("the text {NULL}, which readers take for NULL")));
            }
            _ => {}
        }
        let mut name = Vec::new();
        escape(column, &mut name);
        name.push(b'=');
        match value {
            Some(value) => escape(value, &mut name),
            None => name.extend_from_slice(NULL.as_bytes()),
        }
        if name.len() > MOST_BYTES {
            let what =
                format!("a value too long for a name: {} bytes, of {MOST_BYTES}", name.len());
            return Err((at, what));
        }
        path.push(OsString::from_vec(name));
    }
    Ok(path)
}

fn escape(text: &str, name: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            0..=0x1F | 0x7F => name.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            b'"' | b'#' | b'%' | b'\'' | b'*' | b'/' | b':' | b'=' | b'?' | b'\\' | b'{' | b'['
            | b']' | b'^' => name.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            plain => name.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_as_hive_escapes_them() {
        let values = [("day", Some("2024-01-01 00:00:00")), ("a=b", Some("50%/é")), ("n", None)];
        let path = directory(values).unwrap();
        let expected = "day=2024-01-01 00%3A00%3A00/a%3Db=50%25%2Fé/n=__HIVE_DEFAULT_PARTITION__";
        assert_eq!(path, PathBuf::from(expected));
        assert_eq!(directory([("d", Some(".."))]).unwrap(), PathBuf::from("d=.."));
    }

    #[test]
    fn what_would_be_read_as_another_value_is_refused() {
        let long = "x".repeat(254);
        for value in ["", NULL, &long] {
            assert_eq!(directory([("a", Some("1")), ("b", Some(value))]).unwrap_err().0, 1);
        }
        assert!(directory([("b", Some(&*"x".repeat(253)))]).is_ok());
    }
}
