//! Functions over paths: how they compare, parts of them, what they have in common, their texts and their hashes.
//!
//! Invariant: paths are made as the server makes them, bytes that no label counts included, for what is appended to such a path takes
//! them in.
//!
//! Sources: `contrib/ltree/ltree_op.c`, `_lca` in `contrib/ltree/_ltree_op.c`, PostgreSQL 14 to 18; the hashes 17 and 18.

use crate::extension::call::{Argument, CallError, Letters, Value};
use crate::jenkins_hash::hash_bytes;

use super::arguments::{elements, int8, optional_int4, path};
use super::input::ltree_input;
use super::labels::{LabelRules, Labels, MAX_LEVELS};
use super::path::{HEADER, HEADER_BYTES, Path, push_label, write_ltree};
use crate::extension::arguments::{integer as int4, payload, text};

type Called = Result<Value, CallError>;
type Call = fn(&dyn Letters, &[Argument<'_>]) -> Called;

fn compared(arguments: &[Argument<'_>]) -> Result<i32, CallError> {
    Ok(path(arguments, 0)?.compare(&path(arguments, 1)?))
}

pub(super) const LTREE_CMP: Call = |_, arguments| Ok(Value::Int4(compared(arguments)?));
pub(super) const LTREE_LT: Call = |_, arguments| Ok(Value::Bool(compared(arguments)? < 0));
pub(super) const LTREE_LE: Call = |_, arguments| Ok(Value::Bool(compared(arguments)? <= 0));
pub(super) const LTREE_EQ: Call = |_, arguments| Ok(Value::Bool(compared(arguments)? == 0));
pub(super) const LTREE_NE: Call = |_, arguments| Ok(Value::Bool(compared(arguments)? != 0));
pub(super) const LTREE_GE: Call = |_, arguments| Ok(Value::Bool(compared(arguments)? >= 0));
pub(super) const LTREE_GT: Call = |_, arguments| Ok(Value::Bool(compared(arguments)? > 0));

/// True where the first path is an ancestor of the second, or the same.
pub(super) const LTREE_ISPARENT: Call =
    |_, arguments| Ok(Value::Bool(path(arguments, 1)?.is_below(&path(arguments, 0)?)));

/// True where the first path is a descendant of the second, or the same.
pub(super) const LTREE_RISPARENT: Call =
    |_, arguments| Ok(Value::Bool(path(arguments, 0)?.is_below(&path(arguments, 1)?)));

pub(super) const NLEVEL: Call =
    |_, arguments| Ok(Value::Int4(path(arguments, 0)?.labels.len() as i32));

/// `subltree(path, start, end)`.
pub(super) const SUBLTREE: Call =
    |_, arguments| part(&path(arguments, 0)?, int4(arguments, 1)?, int4(arguments, 2)?);

/// The labels from one on up to another one, which is not part of it.
fn part(path: &Path<'_>, start: i32, end: i32) -> Called {
    let invalid = || CallError::new("22023", "invalid positions");
    let count = path.labels.len();
    let start = usize::try_from(start).map_err(|_| invalid())?;
    let end = usize::try_from(end).map_err(|_| invalid())?;
    if start >= count || start > end {
        return Err(invalid());
    }
    let end = end.min(count);
    // Without labels the server copies those before the end, and counts none.
    let first = if start == end { 0 } else { path.bytes_before(start) };
    let mut payload = HEADER.to_vec();
    set_count(&mut payload, end - start);
    payload.extend_from_slice(path.label_part(first, path.bytes_before(end))?);
    Ok(Value::Payload(payload))
}

/// Sets how many labels a path has; they are known to fit.
fn set_count(payload: &mut [u8], count: usize) {
    for (to, from) in payload.iter_mut().zip((count as u16).to_le_bytes()) {
        *to = from;
    }
}

/// `subpath(path, offset[, length])`; what is negative counts from the end.
pub(super) const SUBPATH: Call = |_, arguments| {
    let (path, mut start) = (path(arguments, 0)?, int4(arguments, 1)?);
    let length = optional_int4(arguments, 2)?;
    let count = path.labels.len() as i32;
    for _ in 0..2 {
        // The server does it twice: -4 of three labels is 2.
        if start < 0 {
            start = start.saturating_add(count);
        }
    }
    let end = match length {
        None => i32::from(MAX_LEVELS),
        Some(length @ ..=-1) => count.saturating_add(length),
        Some(length) => start.wrapping_add(length),
    };
    part(&path, start, end)
};

/// `index(path, part[, offset])`: where the labels of another path follow one another in a path, -1 where nowhere.
pub(super) const LTREE_INDEX: Call = |_, arguments| {
    let (path, wanted) = (path(arguments, 0)?, path(arguments, 1)?);
    let count = path.labels.len() as i64;
    let start = match i64::from(optional_int4(arguments, 2)?.unwrap_or(0)) {
        // Its negation is itself, and nothing lies so far from the end.
        MIN_INT4 => return Ok(Value::Int4(-1)),
        start @ ..=-1 => (count + start).max(0),
        start => start,
    };
    let from = usize::try_from(start).unwrap_or(usize::MAX); // default: past the end
    let found = match wanted.labels.len() {
        0 => None,
        length => path.labels.windows(length).skip(from).position(|some| some == wanted.labels),
    };
    Ok(Value::Int4(found.map_or(-1, |at| (at + from) as i32)))
};

const MIN_INT4: i64 = i32::MIN as i64;

/// Two paths as one.
fn joined(first: &[u8], second: &[u8]) -> Called {
    let count = Path::parse(first)?.labels.len() + Path::parse(second)?.labels.len();
    if count > MAX_LEVELS.into() {
        let what =
            format!("number of ltree levels ({count}) exceeds the maximum allowed ({MAX_LEVELS})");
        return Err(CallError::new("54000", what));
    }
    let mut payload = HEADER.to_vec();
    set_count(&mut payload, count);
    for path in [first, second] {
        payload.extend_from_slice(path.get(HEADER_BYTES..).unwrap_or_default());
    }
    Ok(Value::Payload(payload))
}

/// A path of a text, by the rules of version 16 and later.
fn path_of(letters: &dyn Letters, text: &str) -> Result<Vec<u8>, CallError> {
    ltree_input(text.as_bytes(), Labels { letters, rules: LabelRules::of_major(letters.major()) })
}

pub(super) const LTREE_ADDLTREE: Call =
    |_, arguments| joined(payload(arguments, 0)?, payload(arguments, 1)?);

pub(super) const LTREE_ADDTEXT: Call =
    |letters, arguments| joined(payload(arguments, 0)?, &path_of(letters, text(arguments, 1)?)?);

pub(super) const LTREE_TEXTADD: Call =
    |letters, arguments| joined(&path_of(letters, text(arguments, 0)?)?, payload(arguments, 1)?);

pub(super) const TEXT2LTREE: Call =
    |letters, arguments| Ok(Value::Payload(path_of(letters, text(arguments, 0)?)?));

pub(super) const LTREE2TEXT: Call = |_, arguments| {
    let mut out = Vec::new();
    write_ltree(payload(arguments, 0)?, &mut out)?;
    let no_text = |_| CallError::new("22021", "invalid byte sequence for encoding \"UTF8\"");
    Ok(Value::Text(String::from_utf8(out).map_err(no_text)?))
};

/// `lca` of paths: the longest path above all of them.
pub(super) const LCA: Call = |_, arguments| {
    let paths: Result<Vec<_>, _> =
        (0..arguments.len()).map(|number| path(arguments, number)).collect();
    Ok(common_ancestor(&paths?))
};

/// `lca` of an array of paths.
pub(super) const ARRAY_LCA: Call = |_, arguments| {
    let elements = elements(arguments, 0)?;
    let paths: Result<Vec<_>, _> = elements.iter().map(|one| Path::parse(one)).collect();
    Ok(common_ancestor(&paths?))
};

fn common_ancestor(paths: &[Path<'_>]) -> Value {
    let Some((first, others)) = paths.split_first() else {
        return Value::Null;
    };
    if paths.iter().any(|path| path.labels.is_empty()) {
        return Value::Null;
    }
    let in_common = |other: &Path<'_>| {
        let most = other.labels.len() - 1;
        let pairs = first.labels.iter().zip(&other.labels);
        pairs.take(most).take_while(|(one, another)| one == another).count()
    };
    let own = first.labels.len() - 1;
    let count = others.iter().map(in_common).fold(own, usize::min);
    let mut payload = HEADER.to_vec();
    set_count(&mut payload, count);
    for label in first.labels.iter().take(count) {
        push_label(label, &mut payload);
    }
    Value::Payload(payload)
}

/// `hash_ltree`, since version 17.
pub(super) const HASH_LTREE: Call = |_, arguments| {
    let hash = hash(&path(arguments, 0)?, 0);
    Ok(Value::Int4(hash as i32))
};

/// `hash_ltree_extended`, since version 17.
pub(super) const HASH_LTREE_EXTENDED: Call = |_, arguments| {
    let (path, seed) = (path(arguments, 0)?, int8(arguments, 1)? as u64);
    let hash = if path.labels.is_empty() { seed.wrapping_add(1) } else { hash(&path, seed) };
    Ok(Value::Int8(hash as i64))
};

/// The lower half of it is the hash of 32 bits where the seed is 0.
fn hash(path: &Path<'_>, seed: u64) -> u64 {
    let more = |sum: u64, label: &&[u8]| sum.wrapping_mul(31).wrapping_add(hash_bytes(label, seed));
    path.labels.iter().fold(1, more)
}
