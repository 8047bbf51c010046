//! Values as `jsonb` payloads of their own: scalars wrapped up, containers as they are, arrays and pairs put together.
//!
//! Every 32nd entry tells where its child ends, the others how long it is, as the server writes them.
//!
//! Source: `convertJsonbArray`, `convertJsonbObject`, `convertJsonbScalar` in `src/backend/utils/adt/jsonb_util.c`,
//! PostgreSQL 14 to 18.

use super::value::{Bytes, Value};
use crate::error::{SqlState, StatementError};
use crate::functions::rows::Outcome;

const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
const HAS_END: u32 = 0x8000_0000;
/// The most bytes of children, and the most children.
const MOST: usize = 0x0FFF_FFFF;
const STRIDE: usize = 32;

/// A value as a document.
pub(super) fn document(value: &Value<'_>) -> Outcome<Vec<u8>> {
    match value {
        Value::Container(container) => Ok(container.bytes.get().to_vec()),
        scalar => put_together(ARRAY | SCALAR | 1, std::iter::once(scalar)),
    }
}

/// Values as the elements of an array.
pub(super) fn array(values: &[Value<'_>]) -> Outcome<Vec<u8>> {
    if values.len() > MOST {
        return Err(too_large());
    }
    put_together(ARRAY | values.len() as u32, values.iter())
}

/// What `.keyvalue()` makes of a pair; keys lie in the order of `jsonb`.
pub(super) fn pair<'d>(key: Value<'d>, value: Value<'d>, id: Value<'d>) -> Outcome<Vec<u8>> {
    let name = |name: &'static str| Value::String(Bytes::Given(name.as_bytes()));
    let parts = [name("id"), name("key"), name("value"), id, key, value];
    put_together(OBJECT | 3, parts.iter())
}

fn put_together<'v, 'd: 'v>(
    header: u32,
    children: impl ExactSizeIterator<Item = &'v Value<'d>>,
) -> Outcome<Vec<u8>> {
    let mut out = header.to_le_bytes().to_vec();
    let base = 4 + 4 * children.len();
    out.resize(base, 0);
    for (number, child) in children.enumerate() {
        let before = out.len();
        let kind = put(child, &mut out)?;
        let (len, end) = (out.len() - before, out.len() - base);
        if end > MOST {
            return Err(too_large());
        }
        let field = if number % STRIDE == 0 { HAS_END | end as u32 } else { len as u32 };
        if let Some(entry) = out.get_mut(4 + 4 * number..8 + 4 * number) {
            entry.copy_from_slice(&(kind << 28 | field).to_le_bytes());
        }
    }
    Ok(out)
}

/// Appends a child's bytes, the gap before them included, and tells its type.
fn put(child: &Value<'_>, out: &mut Vec<u8>) -> Outcome<u32> {
    Ok(match child {
        Value::Null => 4,
        Value::Bool(truth) => 2 + u32::from(*truth),
        Value::String(text) => {
            out.extend_from_slice(text.get());
            0
        }
        Value::Moment(moment) => {
            moment.write(out)?;
            0
        }
        Value::Number(payload) => {
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend_from_slice(&((payload.get().len() as u32 + 4) << 2).to_le_bytes());
            out.extend_from_slice(payload.get());
            1
        }
        Value::Container(container) => {
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend_from_slice(container.bytes.get());
            5
        }
    })
}

#[cold]
fn too_large() -> StatementError {
    let message = format!("total size of jsonb array elements exceeds the maximum of {MOST} bytes");
    StatementError::new(SqlState("54000"), message)
}
