//! `ltxtquery`: a boolean expression over labels, which may be anywhere in a path.
//!
//! ```text
//! items i32 | { kind i16 | left operand's place, relative, i16 | checksum or operator i32 | flags u8 | length u8 | offset u16 } … |
//!     operands, each with a zero behind it
//! ```
//!
//! Items are in prefix order with the right operand first; the left one comes behind it.
//!
//! Invariants: an operand follows its operator, so nothing refers to itself; expressions of any depth are gone through without recursion.
//! The server refuses the very deepest ones, when its stack is full.
//!
//! Sources: `contrib/ltree/ltree.h`, `ltxtq_out` in `contrib/ltree/ltxtquery_io.c`, `ltree_execute` and `checkcondition_str` in
//! `contrib/ltree/ltxtquery_op.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use crate::extension::call::Letters;

use super::matching::variant_allows;
use super::path::Path;
use super::query::Variant;

const LTXTQUERY: &str = "ltxtquery";
/// Bytes of an item.
const ITEM_BYTES: usize = 12;
/// An item that is a label.
pub(super) const OPERAND: i16 = 2;
/// An item that is an operator.
pub(super) const OPERATOR: i16 = 3;

/// An item of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    /// A label.
    Label(Variant<'a>),
    /// `!`, whose operand comes next.
    Not,
    /// `&` or `|`, whose right operand comes next, and how far behind the left one lies.
    Pair(u8, usize),
}

/// The items of an expression.
fn items(payload: &[u8]) -> Result<Vec<Item<'_>>> {
    let mut reader = Reader::new(LTXTQUERY, payload);
    let count = usize::try_from(reader.i32()?).unwrap_or(usize::MAX); // default: more than there are
    let operands = count.checked_mul(ITEM_BYTES).and_then(|bytes| payload.get(4 + bytes..));
    let Some(operands) = operands.filter(|_| count > 0) else {
        return Err(reader.corrupt("more items than bytes, or none"));
    };
    (0..count).map(|_| item(&mut reader, operands)).collect()
}

fn item<'a>(reader: &mut Reader<'a>, operands: &'a [u8]) -> Result<Item<'a>> {
    let (kind, left) = (reader.i16()?, reader.i16()?);
    let (value, flags) = (reader.i32()?, reader.u8()?);
    let (length, offset) = (usize::from(reader.u8()?), usize::from(reader.u16()?));
    match (kind, u8::try_from(value)) {
        (OPERAND, _) => match operands.get(offset..offset + length) {
            Some(text) => Ok(Item::Label(Variant { text, flags })),
            None => Err(reader.corrupt("an operand past the end")),
        },
        (OPERATOR, Ok(b'!')) => Ok(Item::Not),
        (OPERATOR, Ok(sign @ (b'&' | b'|'))) => match usize::try_from(left) {
            Ok(left) if left > 1 => Ok(Item::Pair(sign, left)),
            _ => Err(reader.corrupt("a left operand before the right one")),
        },
        _ => Err(reader.corrupt("an item of no known kind")),
    }
}

#[cold]
fn missing() -> Error {
    Error::corrupt(LTXTQUERY, 4, "an operator without its operands")
}

/// True where a path is what an `ltxtquery` says.
///
/// # Errors
/// When the query is damaged.
pub(super) fn holds(letters: &dyn Letters, path: &Path<'_>, query: &[u8]) -> Result<bool> {
    let items = items(query)?;
    let count = items.len();
    // The last item's truth comes first.
    let mut truths: Vec<bool> = Vec::with_capacity(count);
    for item in items.iter().rev() {
        let known = truths.len();
        let behind = |by: usize| {
            let at = known.checked_sub(by);
            at.and_then(|at| truths.get(at)).copied().ok_or_else(missing)
        };
        let truth = match item {
            Item::Label(variant) => {
                path.labels.iter().any(|label| variant_allows(letters, variant, label))
            }
            Item::Not => !behind(1)?,
            Item::Pair(b'&', left) => behind(1)? && behind(*left)?,
            Item::Pair(_, left) => behind(1)? || behind(*left)?,
        };
        truths.push(truth);
    }
    truths.last().copied().ok_or_else(missing)
}

/// What is still to be printed.
enum Step {
    Text(&'static str),
    /// The item of this number; a bar's parentheses are left out where true.
    Item(usize, bool),
}

/// `ltxtquery`: `Europe & !( Russia@ | Trans* )`.
///
/// # Errors
/// When the payload is damaged.
pub fn write_ltxtquery(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let items = items(payload)?;
    let mut steps = vec![Step::Item(0, true)];
    // Damage could have items printed again and again.
    let mut printed = 0;
    while let Some(step) = steps.pop() {
        match step {
            Step::Text(text) => out.extend_from_slice(text.as_bytes()),
            Step::Item(number, is_bare) => {
                printed += 1;
                let item = items.get(number).filter(|_| printed <= items.len());
                match item.ok_or_else(missing)? {
                    Item::Label(variant) => variant.write(out),
                    Item::Not => {
                        let is_label = matches!(items.get(number + 1), Some(Item::Label(_)));
                        push_not(number, is_label, &mut steps);
                    }
                    Item::Pair(sign, left) => {
                        let right = Step::Item(number + 1, false);
                        let left = Step::Item(number + left, false);
                        push_pair(*sign == b'|', is_bare, [left, right], &mut steps);
                    }
                }
            }
        }
    }
    Ok(())
}

fn push_not(number: usize, is_label: bool, steps: &mut Vec<Step>) {
    if is_label {
        steps.extend([Step::Item(number + 1, false), Step::Text("!")]);
    } else {
        steps.extend([Step::Text(" )"), Step::Item(number + 1, true), Step::Text("!( ")]);
    }
}

fn push_pair(is_or: bool, is_bare: bool, [left, right]: [Step; 2], steps: &mut Vec<Step>) {
    let has_parentheses = is_or && !is_bare;
    if has_parentheses {
        steps.push(Step::Text(" )"));
    }
    steps.extend([right, Step::Text(if is_or { " | " } else { " & " }), left]);
    if has_parentheses {
        steps.push(Step::Text("( "));
    }
}
