//! The types that print as they are stored: `text`, `varchar`, `bpchar`, `json`, `refcursor`,
//! `pg_node_tree`, and beside them `name`, `"char"`, `cstring` and `void`.
//!
//! Text is in the database's encoding, and stays so; `bpchar` keeps its padding. Sources in
//! `src/backend/utils/adt`, PostgreSQL 14 to 18: `textout` (`varlena.c`), `bpcharout`
//! (`varchar.c`), `json_out` (`json.c`), `nameout` (`name.c`), `charout` (`char.c`),
//! `cstring_out` and `void_out` (`pseudotypes.c`).

use pagemill_format::error::{Error, Result};

use super::payload::fixed;

/// `text` and every type stored like it: the bytes themselves.
///
/// # Errors
/// None.
pub fn write_text(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value);
    Ok(())
}

/// `name`: 64 bytes, of which those before the first NUL count.
///
/// # Errors
/// When the value is not 64 bytes, or none of them is NUL.
pub fn write_name(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let bytes: [u8; 64] = fixed("name", value)?;
    let Some(length) = bytes.iter().position(|&b| b == 0) else {
        return Err(Error::corrupt("name", 64, "no terminating zero in 64 bytes"));
    };
    out.extend_from_slice(bytes.get(..length).unwrap_or_default());
    Ok(())
}

/// `"char"`, one byte: nothing for NUL, a backslash and three octal digits from 128 on.
///
/// # Errors
/// When the value is not 1 byte.
pub fn write_char(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let [byte] = fixed("char", value)?;
    match byte {
        0 => {}
        1..=0x7F => out.push(byte),
        _ => out.extend([b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
    Ok(())
}

/// `"char"` as PostgreSQL 14 prints it: a byte from 128 on stands for itself.
///
/// # Errors
/// When the value is not 1 byte.
pub fn write_char_14(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let [byte] = fixed("char", value)?;
    if byte != 0 {
        out.push(byte);
    }
    Ok(())
}

/// `cstring` and `unknown`: the bytes up to the first NUL, or all of them.
///
/// # Errors
/// None.
pub fn write_cstring(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend(value.iter().take_while(|&&b| b != 0));
    Ok(())
}

/// `void`: nothing at all.
///
/// # Errors
/// None.
pub fn write_void(_value: &[u8], _out: &mut Vec<u8>) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn a_name_ends_at_its_first_zero() {
        let mut name = [0; 64];
        name[..3].copy_from_slice(b"abc");
        assert_eq!(printed(write_name, &name), "abc");
        assert!(write_name(&[b'x'; 64], &mut Vec::new()).is_err());
        assert!(write_name(b"abc", &mut Vec::new()).is_err());
    }

    #[test]
    fn a_char_above_127_is_octal_from_version_15_on() {
        assert_eq!(printed(write_char, &[0]), "");
        assert_eq!(printed(write_char, b"r"), "r");
        assert_eq!(printed(write_char, &[0o377]), "\\377");
        assert_eq!(printed(write_char, &[0o200]), "\\200");
        let mut out = Vec::new();
        write_char_14(&[0o303], &mut out).unwrap();
        assert_eq!(out, [0o303]);
    }

    #[test]
    fn blanks_of_a_bpchar_stay() {
        assert_eq!(printed(write_text, b"ab   "), "ab   ");
    }
}
