//! Names in texts: `schema."Name"`, split at the dots, in lower case where they are not quoted.
//!
//! Source: `stringToQualifiedNameList` in `src/backend/utils/adt/regproc.c`,
//! `SplitIdentifierString` in `varlena.c`, `downcase_truncate_identifier` in
//! `src/backend/parser/scansup.c`, `src/common/encnames.c`, PostgreSQL 14 to 18.

use pagemill_types::encoding::ENCODING_NAMES;
use pagemill_types::input::InputError;

use super::invalid_name;

const UTF8: i32 = 6;
/// Bytes of a name, without its terminating zero.
const MAX_NAME: usize = 63;

/// The name of an encoding.
pub(super) fn encoding_name(encoding: i32) -> &'static str {
    usize::try_from(encoding).ok().and_then(|at| ENCODING_NAMES.get(at)).unwrap_or(&"")
}

/// The parts of a name, at least one.
#[derive(Debug)]
pub(super) struct Names(Vec<Vec<u8>>);

impl Names {
    /// Splits a text in a database of this encoding.
    pub(super) fn split(text: &[u8], encoding: i32) -> Result<Self, InputError> {
        let (mut parts, mut rest) = (Vec::new(), skip_space(text));
        loop {
            let (mut part, after) =
                identifier(rest, |byte| byte == b'.').ok_or_else(invalid_name)?;
            truncate(&mut part, encoding);
            parts.push(part);
            match skip_space(after).split_first() {
                None => return Ok(Self(parts)),
                Some((b'.', after)) => rest = skip_space(after),
                Some(_) => return Err(invalid_name()),
            }
        }
    }

    pub(super) fn of(parts: Vec<Vec<u8>>) -> Self {
        Self(parts)
    }

    pub(super) fn parts(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// The parts with dots between them, unquoted, for messages.
    pub(super) fn joined(&self) -> String {
        String::from_utf8_lossy(&self.0.join(&b'.')).into_owned()
    }
}

/// The identifier that a text begins with, and what comes behind it; a bare one goes up to a space or
/// a byte that ends it.
pub(super) fn identifier(text: &[u8], ends: impl Fn(u8) -> bool) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let bare = |byte: &&u8| !ends(**byte) && !is_space(**byte);
        let (name, rest) = text.split_at_checked(text.iter().take_while(bare).count())?;
        return (!name.is_empty()).then(|| (name.to_ascii_lowercase(), rest));
    };
    let mut name = Vec::new();
    loop {
        let (part, after) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'"')?)?;
        name.extend_from_slice(part);
        rest = after.get(1..)?;
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                name.push(b'"');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

/// Cuts a name off where no name can be longer, between characters.
pub(super) fn truncate(name: &mut Vec<u8>, encoding: i32) {
    if name.len() <= MAX_NAME {
        return;
    }
    let inside = |at: usize| name.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let mut end = MAX_NAME;
    while encoding == UTF8 && end > 0 && inside(end) {
        end -= 1;
    }
    name.truncate(end);
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

pub(super) fn skip_space(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    text.get(spaces..).unwrap_or_default()
}

pub(super) fn trim_space(text: &[u8]) -> &[u8] {
    let text = skip_space(text);
    let spaces = text.iter().rev().take_while(|byte| is_space(**byte)).count();
    text.get(..text.len() - spaces).unwrap_or_default()
}
