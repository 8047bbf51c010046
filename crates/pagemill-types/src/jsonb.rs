//! `jsonb`, printed as `jsonb_out` prints it.
//!
//! A container is a header word (the number of children, and whether it is an array, an object or
//! the wrapping of a lone scalar), one JEntry per child, then the children's bytes:
//!
//! ```text
//! array   header | entry 0 .. entry n-1                           | child 0 .. child n-1
//! object  header | key entries 0 .. n-1 | value entries 0 .. n-1  | keys | values
//! JEntry  bit 31: the low 28 bits are where the child ends, from the start of the children;
//!                 otherwise they are its length
//!         bits 30-28: the child's type
//! ```
//!
//! Numerics and containers begin at the next multiple of four; the gap counts as theirs. Offsets
//! here start behind the value's own length word, which has four bytes, so the multiples agree.
//!
//! Invariants: a child begins where the one before it ended and ends inside of its container, so
//! every byte is printed at most once, however damaged the value; nesting costs heap, not stack.
//!
//! Sources: `src/include/utils/jsonb.h`, `src/backend/utils/adt/jsonb.c`
//! (`JsonbToCStringWorker`), `jsonb_util.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};

use super::embedded::embedded_value;
use super::json::write_json_string;

const STRUCTURE: &str = "jsonb";

const COUNT_MASK: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;

const ENTRY_END_OR_LENGTH: u32 = 0x0FFF_FFFF;
const ENTRY_HAS_END: u32 = 0x8000_0000;

/// Appends a `jsonb` as `jsonb_out` prints it.
///
/// # Errors
/// When the value is damaged.
pub fn write_jsonb(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let root = Container::open(value, 0, value.len())?;
    if root.shape == Shape::Scalar {
        return write_scalar(value, root, out);
    }
    let start = out.len();
    out.push(root.shape.opening());
    let mut levels = Levels::new(root);
    while let Some(level) = levels.innermost() {
        if level.left == 0 {
            out.push(level.shape.closing());
            levels.leave();
        } else if let Some(child) = level.write_next(value, out)? {
            out.push(child.shape.opening());
            levels.enter(child);
        }
        check_text_length(STRUCTURE, out.len() - start)?;
    }
    Ok(())
}

/// PostgreSQL's text of a value never reaches 1 GiB (`MaxAllocSize`); damaged numerics, of which
/// each can stand for a hundred thousand digits, could.
pub(super) fn check_text_length(structure: &'static str, len: usize) -> Result<()> {
    const MAX_ALLOC_SIZE: usize = 0x3FFF_FFFF;
    if len <= MAX_ALLOC_SIZE {
        return Ok(());
    }
    Err(Error::corrupt(structure, 0, "a text longer than PostgreSQL can print"))
}

/// A lone scalar is stored as an array of one, without brackets in its text.
fn write_scalar(value: &[u8], mut root: Container, out: &mut Vec<u8>) -> Result<()> {
    if root.left != 1 {
        return Err(Error::corrupt(STRUCTURE, 0, format!("a scalar of {} values", root.left)));
    }
    match root.write_next(value, out)? {
        None => Ok(()),
        Some(_) => Err(Error::corrupt(STRUCTURE, 4, "a scalar that is a container")),
    }
}

/// What a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Array,
    Object,
    Scalar,
}

impl Shape {
    fn opening(self) -> u8 {
        if self == Self::Object { b'{' } else { b'[' }
    }

    fn closing(self) -> u8 {
        if self == Self::Object { b'}' } else { b']' }
    }
}

/// One container while it is walked through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container {
    pub(super) shape: Shape,
    /// True until a child was printed: no comma yet.
    first: bool,
    /// Elements or pairs still to come.
    pub(super) left: usize,
    /// Where the children's bytes begin.
    base: usize,
    /// Where the container ends.
    end: usize,
    /// The next key of an object.
    pub(super) keys: Cursor,
    /// The next element of an array, or value of an object.
    pub(super) values: Cursor,
}

/// A position both among the JEntrys and among the bytes they describe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    entry: usize,
    at: usize,
}

/// A child: its type, and where its bytes lie.
pub(super) struct Child {
    pub(super) kind: u32,
    start: usize,
    pub(super) end: usize,
}

impl Container {
    /// The container in `value[start..end]`.
    pub(super) fn open(value: &[u8], start: usize, end: usize) -> Result<Self> {
        let header = word(value, start, end)?;
        let left = (header & COUNT_MASK) as usize;
        let (shape, entries) = match header & !COUNT_MASK {
            ARRAY => (Shape::Array, left),
            OBJECT => (Shape::Object, left.saturating_mul(2)),
            flags if flags == ARRAY | SCALAR && start == 0 => (Shape::Scalar, left),
            _ => {
                let what = format!("container header {header:#010x} is of no known kind");
                return Err(Error::corrupt(STRUCTURE, start, what));
            }
        };
        let first = start.saturating_add(4);
        let base = first.saturating_add(entries.saturating_mul(4));
        if base > end {
            let what = format!("{entries} entries do not fit into {} bytes", end - start);
            return Err(Error::corrupt(STRUCTURE, start, what));
        }
        let keys = Cursor { entry: first, at: base };
        let mut values = keys;
        let mut container = Self { shape, first: true, left, base, end, keys, values };
        if shape == Shape::Object {
            for _ in 0..left {
                container.child(value, &mut values)?;
            }
            container.values = values;
        }
        Ok(container)
    }

    /// The child under `cursor`, which moves on.
    pub(super) fn child(&self, value: &[u8], cursor: &mut Cursor) -> Result<Child> {
        let entry = word(value, cursor.entry, self.base)?;
        let field = (entry & ENTRY_END_OR_LENGTH) as usize;
        let from = if entry & ENTRY_HAS_END != 0 { self.base } else { cursor.at };
        let (start, end) = (cursor.at, from.saturating_add(field));
        if end < start || end > self.end {
            let what = format!("a child from byte {start} to {end} leaves its container");
            return Err(Error::corrupt(STRUCTURE, cursor.entry, what));
        }
        *cursor = Cursor { entry: cursor.entry + 4, at: end };
        Ok(Child { kind: (entry >> 28) & 7, start, end })
    }

    /// Prints the next element or pair, up to a container, which is returned instead.
    fn write_next(&mut self, value: &[u8], out: &mut Vec<u8>) -> Result<Option<Self>> {
        self.left -= 1;
        if !std::mem::replace(&mut self.first, false) {
            out.extend_from_slice(b", ");
        }
        if self.shape == Shape::Object {
            let mut keys = self.keys;
            let key = self.child(value, &mut keys)?;
            self.keys = keys;
            if key.kind != 0 {
                return Err(Error::corrupt(STRUCTURE, key.start, "a key that is not a string"));
            }
            write_json_string(key.bytes(value), out);
            out.extend_from_slice(b": ");
        }
        let mut values = self.values;
        let child = self.child(value, &mut values)?;
        self.values = values;
        child.write(value, out)
    }
}

impl Child {
    pub(super) fn bytes<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        value.get(self.start..self.end).unwrap_or_default()
    }

    /// Where the child's data begin, for the kinds that are aligned.
    pub(super) fn aligned(&self) -> usize {
        self.start.saturating_add(3) & !3
    }

    fn write(&self, value: &[u8], out: &mut Vec<u8>) -> Result<Option<Container>> {
        match self.kind {
            0 => write_json_string(self.bytes(value), out),
            1 => {
                let bytes = value.get(self.aligned()..self.end).unwrap_or_default();
                super::numeric::write_numeric(embedded_value(STRUCTURE, bytes)?.0, out)?;
            }
            2 => out.extend_from_slice(b"false"),
            3 => out.extend_from_slice(b"true"),
            4 => out.extend_from_slice(b"null"),
            5 => return Container::open(value, self.aligned(), self.end).map(Some),
            kind => {
                let what = format!("unknown type {kind} of a child");
                return Err(Error::corrupt(STRUCTURE, self.start, what));
            }
        }
        Ok(None)
    }
}

/// The word at `at`, which has to end before `end`.
fn word(value: &[u8], at: usize, end: usize) -> Result<u32> {
    match value.get(at..end).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
        None => Err(Error::corrupt(STRUCTURE, at, "a container shorter than its header")),
    }
}

/// Nesting that is kept without an allocation.
const USUAL_DEPTH: usize = 8;

/// The containers around the current one. A real server cannot even read a value nested some
/// ten thousands of levels deep; here the depth is bounded by the value's size alone, at eight
/// bytes per level.
struct Levels {
    depth: usize,
    usual: [Container; USUAL_DEPTH],
    deep: Vec<Container>,
}

impl Levels {
    fn new(root: Container) -> Self {
        Self { depth: 1, usual: [root; USUAL_DEPTH], deep: Vec::new() }
    }

    fn innermost(&mut self) -> Option<&mut Container> {
        match self.depth.checked_sub(1) {
            Some(index) if index < USUAL_DEPTH => self.usual.get_mut(index),
            Some(_) => self.deep.last_mut(),
            None => None,
        }
    }

    fn enter(&mut self, child: Container) {
        match self.usual.get_mut(self.depth) {
            Some(place) => *place = child,
            None => self.deep.push(child),
        }
        self.depth += 1;
    }

    fn leave(&mut self) {
        if self.depth > USUAL_DEPTH {
            self.deep.pop();
        }
        self.depth -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::{assert_known, mutation, mutations, payload};
    use proptest::prelude::*;

    /// Payloads and texts of a PostgreSQL 15 server.
    const KNOWN: &[(&str, &str)] = &[
        ("0100005003000080666f6f", r#""foo""#),
        ("010000500a00009028000000008101008813", "1.50"),
        ("0100005008000090200000007ea36400", "-0.000001"),
        (
            "010000501a0000906800000007830c00800dd21ed2042e163423800dd21ed204e015",
            "123456789012345678901234567890.123456",
        ),
        ("01000050080000902000000007806400", "1000000000000000000000000000000"),
        ("01000050000000b0", "true"),
        ("01000050000000a0", "false"),
        ("01000050000000c0", "null"),
        ("0100005000000080", r#""""#),
        ("00000040", "[]"),
        ("00000020", "{}"),
        ("01000040040000d000000040", "[[]]"),
        ("01000040040000d000000020", "[{}]"),
        (
            "\
             0600004008000090010000000000004000000030000000200b000010200000000080010061000000\
             2000000080a00200",
            r#"[1, "a", null, true, false, -2.0]"#,
        ),
        (
            "\
             030000200100008001000000020000001c000050080000100d000050616263630200004008000090\
             08000010200000000080010020000000008002002000000000800100010000200100008000000040\
             64",
            r#"{"a": [1, 2], "b": 1, "cc": {"d": null}}"#,
        ),
        (
            "\
             08000040010000800b00001003000000090000100300000011000050010000001b00005061000000\
             20000000008001006263640020000000008002006566670001000040080000902000000000800300\
             6800000001000020010000800b000010690000002000000000800400",
            r#"["a", 1, "bcd", 2, "efg", [3], "h", {"i": 4}]"#,
        ),
        (
            "01000050140000807122625c732f6208660c6e0a720d740975011f7f",
            "\"q\\\"b\\\\s/b\\bf\\fn\\nr\\rt\\tu\\u0001\\u001f\u{7f}\"",
        ),
        ("010000200200008007000000c3a9e6bca2f09f9880", r#"{"é": "漢😀"}"#),
        (
            "\
             0100002003000080a100005061616100010000200300008091000050616161000100002003000080\
             81000050616161000100002003000080710000506161610001000020030000806100005061616100\
             01000020030000805100005061616100010000200300008041000050616161000100002003000080\
             31000050616161000100002003000080210000506161610001000040180000d001000040100000d0\
             01000040080000902000000000800100",
            r#"{"aaa": {"aaa": {"aaa": {"aaa": {"aaa": {"aaa": {"aaa": {"aaa": {"aaa": [[[1]]]}}}}}}}}}"#,
        ),
        (
            "\
             23000040080000900800001008000010080000100800001008000010080000100800001008000010\
             08000010080000100800001008000010080000100800001008000010080000100800001008000010\
             08000010080000100800001008000010080000100800001008000010080000100800001008000010\
             08000010080000100800001008010090010000000b00001020000000008001002000000000800200\
             20000000008003002000000000800400200000000080050020000000008006002000000000800700\
             200000000080080020000000008009002000000000800a002000000000800b002000000000800c00\
             2000000000800d002000000000800e002000000000800f0020000000008010002000000000801100\
             20000000008012002000000000801300200000000080140020000000008015002000000000801600\
             2000000000801700200000000080180020000000008019002000000000801a002000000000801b00\
             2000000000801c002000000000801d002000000000801e002000000000801f002000000000802000\
             2000000000802100780000002000000000802200",
            r#"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, "x", 34]"#,
        ),
        ("010000200000008000000000", r#"{"": ""}"#),
    ];

    #[test]
    fn values_of_a_real_server_print_as_it_prints_them() {
        assert_known(write_jsonb, KNOWN);
    }

    /// A value of `depth` arrays around nothing.
    fn nested(depth: usize) -> Vec<u8> {
        let mut value = Vec::new();
        for inner in (1..depth).rev() {
            value.extend_from_slice(&(ARRAY | 1).to_le_bytes());
            value.extend_from_slice(&(0xD000_0000 | (inner as u32 * 8 - 4)).to_le_bytes());
        }
        value.extend_from_slice(&ARRAY.to_le_bytes());
        value
    }

    #[test]
    fn a_hundred_thousand_levels_print_on_a_small_stack() {
        let print = || {
            let mut out = Vec::new();
            write_jsonb(&nested(100_000), &mut out).unwrap();
            out
        };
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(print).unwrap();
        let out = thread.join().unwrap();
        assert_eq!(out, ["[".repeat(100_000), "]".repeat(100_000)].concat().into_bytes());
    }

    #[test]
    fn children_that_leave_their_container_are_damage() {
        let mut value = payload("01000040040000d000000040");
        value[4] = 8;
        let error = write_jsonb(&value, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "corrupt jsonb: a child from byte 8 to 16 leaves its container (byte 4)");
    }

    #[test]
    fn children_that_overlap_are_damage() {
        // Two strings; the second claims to end where the first began.
        let value = [&(ARRAY | 2).to_le_bytes()[..], &[2, 0, 0, 0, 0, 0, 0, 0x80], b"ab"].concat();
        assert!(write_jsonb(&value, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_scalar_in_the_middle_is_damage() {
        let mut value = payload("01000040040000d000000040");
        value[11] = 0x50;
        assert!(write_jsonb(&value, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>) {
            let _ = write_jsonb(&value, &mut Vec::new());
        }

        #[test]
        fn damaged_values_never_panic(change in mutation(KNOWN.len())) {
            for value in mutations(KNOWN, &change) {
                let mut out = Vec::new();
                let _ = write_jsonb(&value, &mut out);
                // Only a numeric prints as more than six times its bytes.
                prop_assert!(out.len() <= 6 * value.len() + 200_000 * (value.len() / 6 + 1));
            }
        }
    }
}
