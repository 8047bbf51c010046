//! Functions that match paths by queries, and those over arrays of paths or of queries.
//!
//! A function over an array is true where it is so for any element; those that extract give the first such element, or NULL.
//!
//! Invariants: an array of more than one dimension and one with a NULL are errors, in this order; an array of queries is looked at
//! before the array of paths, which is not looked at where there is no query.
//!
//! Sources: `contrib/ltree/_ltree_op.c`, `contrib/ltree/lquery_op.c`, `contrib/ltree/ltxtquery_op.c`, PostgreSQL 14 to 18.

use crate::extension::call::{Argument, CallError, Letters, Value};

use super::arguments::elements;
use super::matching::matches;
use super::path::Path;
use super::text_query::holds;
use crate::extension::arguments::payload;

type Called = Result<Value, CallError>;
type Call = fn(&dyn Letters, &[Argument<'_>]) -> Called;
/// What a path and another value have to do with one another, given the path's payload and the other's.
type Test = fn(&dyn Letters, &[u8], &[u8]) -> Result<bool, CallError>;

const IS_ABOVE: Test = |_, path, below| Ok(Path::parse(below)?.is_below(&Path::parse(path)?));
const IS_BELOW: Test = |_, path, above| Ok(Path::parse(path)?.is_below(&Path::parse(above)?));
const MATCHES: Test = |letters, path, query| Ok(matches(letters, &Path::parse(path)?, query)?);
const HOLDS: Test = |letters, path, query| Ok(holds(letters, &Path::parse(path)?, query)?);

/// A test of a path and a query, at these places of the arguments.
fn one(
    letters: &dyn Letters,
    arguments: &[Argument<'_>],
    test: Test,
    [path, query]: [usize; 2],
) -> Called {
    Ok(Value::Bool(test(letters, payload(arguments, path)?, payload(arguments, query)?)?))
}

/// The first path of an array that passes a test.
fn first(
    letters: &dyn Letters,
    arguments: &[Argument<'_>],
    test: Test,
    [array, other]: [usize; 2],
) -> Result<Option<Vec<u8>>, CallError> {
    let other = payload(arguments, other)?;
    for path in elements(arguments, array)? {
        if test(letters, &path, other)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn any(
    letters: &dyn Letters,
    arguments: &[Argument<'_>],
    test: Test,
    places: [usize; 2],
) -> Called {
    Ok(Value::Bool(first(letters, arguments, test, places)?.is_some()))
}

fn extract(letters: &dyn Letters, arguments: &[Argument<'_>], test: Test) -> Called {
    let found = first(letters, arguments, test, [0, 1])?;
    Ok(found.map_or(Value::Null, Value::Payload))
}

/// True where a path matches any query of an array.
fn any_query(
    letters: &dyn Letters,
    arguments: &[Argument<'_>],
    [path, queries]: [usize; 2],
) -> Called {
    let path = Path::parse(payload(arguments, path)?)?;
    for query in elements(arguments, queries)? {
        if matches(letters, &path, &query)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// True where any path of an array matches any query of another.
fn any_of_any(
    letters: &dyn Letters,
    arguments: &[Argument<'_>],
    [paths, queries]: [usize; 2],
) -> Called {
    let queries = elements(arguments, queries)?;
    if queries.is_empty() {
        return Ok(Value::Bool(false));
    }
    let paths = elements(arguments, paths)?;
    let paths: Result<Vec<_>, _> = paths.iter().map(|path| Path::parse(path)).collect();
    let paths = paths?;
    for query in &queries {
        for path in &paths {
            if matches(letters, path, query)? {
                return Ok(Value::Bool(true));
            }
        }
    }
    Ok(Value::Bool(false))
}

pub(super) const LTQ_REGEX: Call = |letters, arguments| one(letters, arguments, MATCHES, [0, 1]);
pub(super) const LTQ_RREGEX: Call = |letters, arguments| one(letters, arguments, MATCHES, [1, 0]);
pub(super) const LT_Q_REGEX: Call = |letters, arguments| any_query(letters, arguments, [0, 1]);
pub(super) const LT_Q_RREGEX: Call = |letters, arguments| any_query(letters, arguments, [1, 0]);
pub(super) const LTXTQ_EXEC: Call = |letters, arguments| one(letters, arguments, HOLDS, [0, 1]);
pub(super) const LTXTQ_REXEC: Call = |letters, arguments| one(letters, arguments, HOLDS, [1, 0]);

pub(super) const ARRAY_ISPARENT: Call =
    |letters, arguments| any(letters, arguments, IS_ABOVE, [0, 1]);
pub(super) const ARRAY_R_ISPARENT: Call =
    |letters, arguments| any(letters, arguments, IS_ABOVE, [1, 0]);
pub(super) const ARRAY_RISPARENT: Call =
    |letters, arguments| any(letters, arguments, IS_BELOW, [0, 1]);
pub(super) const ARRAY_R_RISPARENT: Call =
    |letters, arguments| any(letters, arguments, IS_BELOW, [1, 0]);
pub(super) const ARRAY_LTQ_REGEX: Call =
    |letters, arguments| any(letters, arguments, MATCHES, [0, 1]);
pub(super) const ARRAY_LTQ_RREGEX: Call =
    |letters, arguments| any(letters, arguments, MATCHES, [1, 0]);
pub(super) const ARRAY_LT_Q_REGEX: Call =
    |letters, arguments| any_of_any(letters, arguments, [0, 1]);
pub(super) const ARRAY_LT_Q_RREGEX: Call =
    |letters, arguments| any_of_any(letters, arguments, [1, 0]);
pub(super) const ARRAY_LTXTQ_EXEC: Call =
    |letters, arguments| any(letters, arguments, HOLDS, [0, 1]);
pub(super) const ARRAY_LTXTQ_REXEC: Call =
    |letters, arguments| any(letters, arguments, HOLDS, [1, 0]);

pub(super) const EXTRACT_ISPARENT: Call =
    |letters, arguments| extract(letters, arguments, IS_ABOVE);
pub(super) const EXTRACT_RISPARENT: Call =
    |letters, arguments| extract(letters, arguments, IS_BELOW);
pub(super) const EXTRACT_REGEX: Call = |letters, arguments| extract(letters, arguments, MATCHES);
pub(super) const EXTRACT_EXEC: Call = |letters, arguments| extract(letters, arguments, HOLDS);
