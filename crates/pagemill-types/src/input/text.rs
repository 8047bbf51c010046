//! The input of the types that are stored as they are written: `text`, `varchar`, `bpchar`,
//! `refcursor`, and of `name` and `"char"`.
//!
//! Lengths count characters. What is too long is an error, unless only blanks would be lost; a
//! `name` alone is cut in silence. Sources in `src/backend/utils/adt`, PostgreSQL 14 to 18: `textin`
//! (`varlena.c`), `varchar_input` and `bpchar_input` (`varchar.c`), `namein` (`name.c`), `charin`
//! (`char.c`).

use super::InputError;
use super::characters::Encoding;

/// `text` and `refcursor`: the bytes themselves.
///
/// # Errors
/// None.
pub fn read_text(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    out.extend_from_slice(text);
    Ok(())
}

/// The most characters that a type can ask for (`MaxAttrSize`).
const MAX_LENGTH: usize = 10 << 20;

/// The length that a type modifier allows, if it does not allow every one.
#[inline]
fn length_limit(typmod: i32) -> Option<usize> {
    usize::try_from(typmod).ok()?.checked_sub(4).filter(|&length| length <= MAX_LENGTH)
}

/// `varchar`, alias `character varying`.
pub(crate) fn read_varchar<E: Encoding>(
    text: &[u8],
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let kept = match length_limit(typmod) {
        // There are never more characters than bytes.
        Some(limit) if text.len() > limit => E::bytes_of(text, limit),
        _ => text.len(),
    };
    let (kept, rest) = text.split_at_checked(kept).unwrap_or((text, &[]));
    if rest.iter().any(|&b| b != b' ') {
        return Err(too_long("character varying", typmod));
    }
    out.extend_from_slice(kept);
    Ok(())
}

/// `bpchar`, alias `character`: padded with blanks to its length.
pub(crate) fn read_bpchar<E: Encoding>(
    text: &[u8],
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let Some(limit) = length_limit(typmod) else {
        out.extend_from_slice(text);
        return Ok(());
    };
    let count = E::count(text);
    if count > limit {
        return read_varchar::<E>(text, typmod, out).map_err(|_| too_long("character", typmod));
    }
    out.extend_from_slice(text);
    out.resize(out.len() + (limit - count), b' ');
    Ok(())
}

#[cold]
fn too_long(type_name: &str, typmod: i32) -> InputError {
    InputError::new(format!("value too long for type {type_name}({})", typmod - 4))
}

/// `name`: 63 bytes at most, and zeros behind them up to 64.
pub(crate) fn read_name<E: Encoding>(
    text: &[u8],
    _typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    const NAME_BYTES: usize = 64;
    let kept = if text.len() < NAME_BYTES { text } else { E::cut(text, NAME_BYTES - 1) };
    out.extend_from_slice(kept);
    out.resize(out.len() + (NAME_BYTES - kept.len()), 0);
    Ok(())
}

/// `"char"`: a backslash and three octal digits, or else the first byte, zero if there is none.
///
/// # Errors
/// None.
pub fn read_char(text: &[u8], typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    if let [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] = *text {
        // Digits up to 777, of which the low byte counts.
        out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
        return Ok(());
    }
    read_char_14(text, typmod, out)
}

/// `"char"` as PostgreSQL 14 reads it: the first byte, zero if there is none.
///
/// # Errors
/// None.
pub fn read_char_14(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    out.push(text.first().copied().unwrap_or(0));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::characters::{Single, Utf8};
    use super::super::tests::value;
    use super::*;
    use crate::text as written;
    use proptest::prelude::*;

    fn read(reader: super::super::ScalarReader, text: &str, length: i32) -> Result<String, String> {
        let mut out = Vec::new();
        reader(text.as_bytes(), length + 4, &mut out).map_err(|error| error.message)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn only_blanks_may_be_lost() {
        assert_eq!(read(read_varchar::<Utf8>, "äöü", 3), Ok("äöü".into()));
        assert_eq!(read(read_varchar::<Utf8>, "äöü  ", 4), Ok("äöü ".into()));
        let message = "value too long for type character varying(2)";
        assert_eq!(read(read_varchar::<Utf8>, "äöü", 2), Err(message.into()));
        assert_eq!(read(read_varchar::<Single>, "äö", 2), Err(message.into()));
        assert_eq!(read(read_varchar::<Utf8>, "anything", -5), Ok("anything".into()));
    }

    #[test]
    fn a_bpchar_is_padded_by_characters() {
        assert_eq!(read(read_bpchar::<Utf8>, "äö", 4), Ok("äö  ".into()));
        assert_eq!(read(read_bpchar::<Utf8>, "äö   ", 3), Ok("äö ".into()));
        assert_eq!(read(read_bpchar::<Utf8>, "ä ", -5), Ok("ä ".into()));
        let message = "value too long for type character(1)";
        assert_eq!(read(read_bpchar::<Utf8>, "äö", 1), Err(message.into()));
    }

    #[test]
    fn a_name_is_cut_before_its_64th_byte() {
        assert_eq!(value(read_name::<Utf8>, ""), [0; 64]);
        let stored = value(read_name::<Utf8>, "ä".repeat(40));
        assert_eq!(stored.len(), 64);
        assert_eq!(stored.iter().filter(|&&b| b != 0).count(), 62);
        assert_eq!(value(read_name::<Single>, "x".repeat(64))[62..], [b'x', 0]);
    }

    #[test]
    fn a_char_may_be_octal_from_version_15_on() {
        assert_eq!(value(read_char, ""), [0]);
        assert_eq!(value(read_char, "xyz"), b"x");
        assert_eq!(value(read_char, "\\303"), [0o303]);
        assert_eq!(value(read_char, "\\400"), [0]);
        assert_eq!(value(read_char, "\\40"), b"\\");
        assert_eq!(value(read_char, "\\480"), b"\\");
        assert_eq!(value(read_char_14, "\\303"), b"\\");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(text in "[^\\x00]{0,20}", byte in 1u8..) {
            let mut printed = Vec::new();
            written::write_name(&value(read_name::<Utf8>, &text), &mut printed).unwrap();
            prop_assert!(text.as_bytes().starts_with(&printed));
            printed.clear();
            written::write_char(&[byte], &mut printed).unwrap();
            prop_assert_eq!(value(read_char, &printed), [byte]);
            let text = text.trim_end_matches(' ');
            let length = text.chars().count() as i32;
            prop_assert_eq!(read(read_varchar::<Utf8>, text, length), Ok(text.to_owned()));
            prop_assert!(length == 0 || read(read_varchar::<Utf8>, text, length - 1).is_err());
        }
    }
}
