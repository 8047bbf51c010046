//! `aclitem` from its text: `grantee=privileges/grantor`.
//!
//! ```text
//! up to 15  grantee (OID) | grantor (OID) | 16 bits of privileges | 16 bits of grant options
//! from 16   grantee (OID) | grantor (OID) | 32 bits of privileges | 32 bits of grant options
//! ```
//!
//! No grantee is PUBLIC; no grantor is the first superuser, at which the server also warns.
//!
//! Source: `aclparse` and `getid` in `src/backend/utils/adt/acl.c`, `src/include/utils/acl.h`,
//! PostgreSQL 14 to 18.

use pagemill_format::ids::{Oid, PgVersion};

use super::InputError;
use super::datum::skip_space;
use super::tree::{InputContext, InputLookups};

const BOOTSTRAP_SUPERUSER: Oid = Oid(10);
/// The letter of each privilege, from the lowest bit.
const PRIVILEGES: &str = "arwdDxtXUCTcsAm";
const MAX_NAME: usize = 63;

/// The letters that a version knows.
fn privileges_of(version: PgVersion) -> &'static str {
    let known = match version {
        PgVersion::V14 => 12,
        PgVersion::V15 | PgVersion::V16 => 14,
        _ => PRIVILEGES.len(),
    };
    PRIVILEGES.get(..known).unwrap_or(PRIVILEGES)
}

/// Appends the payload of an `aclitem`.
pub(super) fn read_aclitem(
    text: &[u8],
    context: &InputContext,
    lookups: &mut dyn InputLookups,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let (name, rest) = grantee(text)?;
    let rest = rest.strip_prefix(b"=").ok_or_else(|| InputError::new("missing \"=\" sign"))?;
    let (granted, rest) = Granted::read(rest, context.version)?;
    let grantee = if name.is_empty() { Oid::INVALID } else { find_role(lookups, &name)? };
    let (grantor, rest) = grantor(rest, lookups)?;
    if !skip_space(rest).is_empty() {
        return Err(InputError::new("extra garbage at the end of the ACL specification"));
    }
    out.extend_from_slice(&grantee.0.to_le_bytes());
    out.extend_from_slice(&grantor.0.to_le_bytes());
    if context.version < PgVersion::V16 {
        out.extend_from_slice(&(granted.privileges as u16).to_le_bytes());
        out.extend_from_slice(&(granted.options as u16).to_le_bytes());
    } else {
        out.extend_from_slice(&granted.privileges.to_le_bytes());
        out.extend_from_slice(&granted.options.to_le_bytes());
    }
    Ok(())
}

/// The grantee's name, with or without one of the key words before it.
fn grantee(text: &[u8]) -> Result<(Vec<u8>, &[u8]), InputError> {
    let (name, rest) = identifier(text)?;
    if rest.first() == Some(&b'=') {
        return Ok((name, rest));
    }
    if name != b"group" && name != b"user" {
        let name = String::from_utf8_lossy(&name);
        return Err(InputError::new(format!("unrecognized key word: \"{name}\"")));
    }
    let (name, rest) = identifier(rest)?;
    if name.is_empty() {
        return Err(InputError::new("missing name"));
    }
    Ok((name, rest))
}

fn grantor<'a>(
    text: &'a [u8],
    lookups: &mut dyn InputLookups,
) -> Result<(Oid, &'a [u8]), InputError> {
    let Some(rest) = text.strip_prefix(b"/") else { return Ok((BOOTSTRAP_SUPERUSER, text)) };
    let (name, rest) = identifier(rest)?;
    if name.is_empty() {
        return Err(InputError::new("a name must follow the \"/\" sign"));
    }
    Ok((find_role(lookups, &name)?, rest))
}

fn find_role(lookups: &mut dyn InputLookups, name: &[u8]) -> Result<Oid, InputError> {
    lookups.find_role(name)?.ok_or_else(|| {
        InputError::new(format!("role \"{}\" does not exist", String::from_utf8_lossy(name)))
    })
}

/// What is granted.
struct Granted {
    privileges: u32,
    options: u32,
}

impl Granted {
    fn read(mut text: &[u8], version: PgVersion) -> Result<(Self, &[u8]), InputError> {
        let known = privileges_of(version);
        let mut granted = Self { privileges: 0, options: 0 };
        let mut last = 0;
        while let Some((&letter, rest)) = text.split_first() {
            match letter {
                b'*' => granted.options |= last,
                // A privilege of old, ignored.
                b'R' if version < PgVersion::V18 => last = 0,
                letter if letter.is_ascii_alphabetic() => {
                    last = bit(letter, known).ok_or_else(|| unknown_letter(known))?;
                }
                _ => break,
            }
            granted.privileges |= last;
            text = rest;
        }
        Ok((granted, text))
    }
}

fn bit(letter: u8, known: &str) -> Option<u32> {
    Some(1 << known.bytes().position(|one| one == letter)?)
}

fn unknown_letter(known: &str) -> InputError {
    InputError::new(format!("invalid mode character: must be one of \"{known}\""))
}

/// A name, quoted or made of letters, digits and underscores, and what comes behind it.
fn identifier(text: &[u8]) -> Result<(Vec<u8>, &[u8]), InputError> {
    let mut rest = skip_space(text);
    let (mut name, mut quoted) = (Vec::new(), false);
    while let Some((&byte, after)) = rest.split_first() {
        let safe = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        if !quoted && byte != b'"' && !safe {
            break;
        }
        rest = after;
        if byte == b'"' {
            if !quoted || after.first() != Some(&b'"') {
                quoted = !quoted;
                continue;
            }
            rest = after.get(1..).unwrap_or_default();
        }
        if name.len() >= MAX_NAME {
            return Err(InputError::new("identifier too long"));
        }
        name.push(byte);
    }
    Ok((name, skip_space(rest)))
}
