//! `jsonb` from its text.
//!
//! The text is parsed to a flat list of nodes, and they are written as containers of entries (see
//! [`crate::jsonb`] for the layout): every 32nd entry says where its child ends, the others how
//! long it is. Keys are sorted, shorter ones first, then byte by byte; of two that are the same
//! the later one's value stays.
//!
//! Invariant: nesting costs heap, not stack.
//!
//! Source: `jsonb_from_cstring` in `src/backend/utils/adt/jsonb.c`, `convertJsonbValue` and
//! `uniqueifyJsonbObject` in `jsonb_util.c`, `json_lex_string` in `src/common/jsonapi.c`,
//! PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::ids::PgVersion;

use super::InputError;
use super::json::{JsonSink, parse, refused};
use super::numeric::read_numeric;
use super::tree::InputContext;
use crate::encoding::{EncodingError, stored_character};

const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;

const KIND_STRING: u32 = 0;
const KIND_NUMERIC: u32 = 1 << 28;
const KIND_FALSE: u32 = 2 << 28;
const KIND_TRUE: u32 = 3 << 28;
const KIND_NULL: u32 = 4 << 28;
const KIND_CONTAINER: u32 = 5 << 28;
const HAS_END: u32 = 0x8000_0000;
/// Longest child, and most bytes of children.
const MAX_LENGTH: usize = 0x0FFF_FFFF;
/// Every so many entries one has an end instead of a length.
const STRIDE: usize = 32;

/// Appends the payload of a `jsonb`.
///
/// # Errors
/// When the text is not JSON, or says what a `jsonb` cannot hold.
pub fn read_jsonb(
    text: &[u8],
    context: &InputContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let mut tree = Tree::new(context);
    parse(text, &mut tree)?;
    let root = tree.pending.pop().ok_or_else(refused)?;
    let start = out.len();
    let mut writer = Writer { tree: &tree, start, out, open: Vec::new() };
    match root {
        Node::Array(_) | Node::Object(_) => writer.open(root)?,
        scalar => writer.open_scalar(scalar)?,
    }
    writer.run()
}

/// A piece of one of the tree's lists.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: usize,
    len: usize,
}

/// A value.
#[derive(Debug, Clone, Copy)]
enum Node {
    Null,
    Bool(bool),
    /// A piece of the bytes: the numeric's payload.
    Number(Piece),
    /// A piece of the bytes.
    String(Piece),
    /// A piece of the children.
    Array(Piece),
    /// A piece of the children: keys and values by turns.
    Object(Piece),
}

/// What a text says.
struct Tree<'a> {
    context: &'a InputContext,
    bytes: Vec<u8>,
    children: Vec<Node>,
    /// Values that are in no finished container yet.
    pending: Vec<Node>,
    /// For each open container, where in `pending` its children begin.
    open: Vec<(usize, bool)>,
}

impl<'a> Tree<'a> {
    fn new(context: &'a InputContext) -> Self {
        let (bytes, children) = (Vec::new(), Vec::new());
        Self { context, bytes, children, pending: Vec::new(), open: Vec::new() }
    }

    fn bytes_of(&self, node: Node) -> &[u8] {
        match node {
            Node::String(piece) | Node::Number(piece) => {
                self.bytes.get(piece.first..piece.first + piece.len).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Moves an object's pairs to the children, sorted, each key once.
    fn finish_object(&mut self, first: usize) -> Piece {
        let mut pairs: Vec<(Node, Node)> = Vec::new();
        for pair in self.pending.get(first..).unwrap_or_default().as_chunks().0 {
            let [key, value] = *pair;
            pairs.push((key, value));
        }
        let compare = |a: &(Node, Node), b: &(Node, Node)| {
            let (a, b) = (self.bytes_of(a.0), self.bytes_of(b.0));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        };
        // The sort is stable: after it is turned round, the last of equal keys comes first.
        pairs.reverse();
        pairs.sort_by(compare);
        pairs.dedup_by(|later, earlier| compare(later, earlier) == Ordering::Equal);
        let piece = Piece { first: self.children.len(), len: 2 * pairs.len() };
        self.children.extend(pairs.into_iter().flat_map(|(key, value)| [key, value]));
        piece
    }
}

impl JsonSink for Tree<'_> {
    fn begin(&mut self, is_object: bool) -> Result<(), InputError> {
        self.open.push((self.pending.len(), is_object));
        Ok(())
    }

    fn end(&mut self) -> Result<(), InputError> {
        let Some((first, is_object)) = self.open.pop() else { return Err(refused()) };
        let node = if is_object {
            Node::Object(self.finish_object(first))
        } else {
            let elements = self.pending.get(first..).unwrap_or_default();
            let piece = Piece { first: self.children.len(), len: elements.len() };
            self.children.extend_from_slice(elements);
            Node::Array(piece)
        };
        self.pending.truncate(first);
        self.pending.push(node);
        Ok(())
    }

    fn string(&mut self, raw: &[u8]) -> Result<(), InputError> {
        let first = self.bytes.len();
        unescape(raw, self.context, &mut self.bytes)?;
        let len = self.bytes.len() - first;
        if len > MAX_LENGTH {
            return Err(InputError::new("string too long to represent as jsonb string"));
        }
        self.pending.push(Node::String(Piece { first, len }));
        Ok(())
    }

    fn broken_string(&mut self, raw: &[u8]) -> Result<(), InputError> {
        unescape(raw, self.context, &mut Vec::new())
    }

    fn number(&mut self, digits: &[u8]) -> Result<(), InputError> {
        let first = self.bytes.len();
        read_numeric(digits, -1, &mut self.bytes)?;
        self.pending.push(Node::Number(Piece { first, len: self.bytes.len() - first }));
        Ok(())
    }

    fn word(&mut self, value: Option<bool>) -> Result<(), InputError> {
        self.pending.push(value.map_or(Node::Null, Node::Bool));
        Ok(())
    }
}

/// Appends a JSON string's text to `out`, its escapes resolved.
fn unescape(raw: &[u8], context: &InputContext, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut rest = raw;
    loop {
        let plain = rest.iter().take_while(|byte| **byte != b'\\').count();
        let (text, escape) = rest.split_at_checked(plain).unwrap_or_default();
        out.extend_from_slice(text);
        let Some(letter) = escape.get(1) else { return Ok(()) };
        rest = escape.get(2..).unwrap_or_default();
        out.push(match letter {
            b'u' => {
                rest = unescape_unicode(escape, context, out)?;
                continue;
            }
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => *other,
        });
    }
}

/// Resolves the `\u` escape that a text begins with, or two that are halves of one character;
/// gives back what comes behind.
fn unescape_unicode<'a>(
    text: &'a [u8],
    context: &InputContext,
    out: &mut Vec<u8>,
) -> Result<&'a [u8], InputError> {
    let first = unit(text).ok_or_else(refused)?;
    let mut rest = text.get(6..).unwrap_or_default();
    let mut code = first;
    match first {
        0 => return Err(InputError::new(UNSUPPORTED)),
        0xD800..=0xDBFF => {
            let second = unit(rest).filter(|unit| (0xDC00..=0xDFFF).contains(unit));
            let second = second.ok_or_else(refused)?;
            code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            rest = rest.get(6..).unwrap_or_default();
        }
        _ => {}
    }
    // A lone second half is no character.
    let character = char::from_u32(code).ok_or_else(refused)?;
    // Before 16, the conversion itself complained.
    let words = (context.version >= PgVersion::V16).then_some(UNSUPPORTED);
    push_character(character, context, words, out)?;
    Ok(rest)
}

/// The number in a `\u` escape.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

const UNSUPPORTED: &str = "unsupported Unicode escape sequence";

/// Appends a character in the database's encoding. `words` are what the server says when the encoding does not have it,
/// where these are not those of the conversion.
pub(super) fn push_character(
    character: char,
    context: &InputContext,
    words: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    const SQL_ASCII: i32 = 0;
    const UTF8: i32 = 6;
    if character.is_ascii() || context.encoding == UTF8 {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        return Ok(());
    }
    let message = match stored_character(context.encoding, character) {
        Ok(bytes) => {
            out.extend_from_slice(&bytes);
            return Ok(());
        }
        Err(EncodingError::Unsupported { to, .. }) if context.encoding != SQL_ASCII => {
            format!("the character {character:?} is not converted to {to} here")
        }
        Err(error) => match (words, error) {
            (Some(words), _) => words.to_owned(),
            (None, EncodingError::NoEquivalent { from, to, bytes }) => format!(
                "character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in encoding \"{to}\""
            ),
            (None, _) => "conversion between UTF8 and SQL_ASCII is not supported".to_owned(),
        },
    };
    Err(InputError::new(message))
}

/// A container while it is written.
struct Open {
    children: Piece,
    is_object: bool,
    /// The next entry.
    next: usize,
    /// Where it begins, the gap before it included.
    from: usize,
    entries_at: usize,
    /// Bytes of children so far.
    total: usize,
}

impl Open {
    /// The child of an entry: of an object, the entries of all keys come before those of the values.
    fn child(&self, entry: usize) -> usize {
        let pairs = self.children.len / 2;
        self.children.first
            + match (self.is_object, entry < pairs) {
                (false, _) => entry,
                (true, true) => 2 * entry,
                (true, false) => 2 * (entry - pairs) + 1,
            }
    }
}

struct Writer<'a> {
    tree: &'a Tree<'a>,
    start: usize,
    out: &'a mut Vec<u8>,
    open: Vec<Open>,
}

impl Writer<'_> {
    fn pad(&mut self) {
        let len = self.out.len() - self.start;
        self.out.resize(self.start + len.next_multiple_of(4), 0);
    }

    /// Begins a container; scalars are none.
    fn open(&mut self, node: Node) -> Result<(), InputError> {
        let (children, is_object) = match node {
            Node::Array(children) => (children, false),
            Node::Object(children) => (children, true),
            _ => return Ok(()),
        };
        let (kind, count) =
            if is_object { (OBJECT, children.len / 2) } else { (ARRAY, children.len) };
        self.open_with(kind, count, children, is_object)
    }

    fn open_with(
        &mut self,
        kind: u32,
        count: usize,
        children: Piece,
        is_object: bool,
    ) -> Result<(), InputError> {
        if count > MAX_LENGTH {
            return Err(too_large(is_object));
        }
        let from = self.out.len();
        self.pad();
        self.out.extend_from_slice(&(kind | count as u32).to_le_bytes());
        let entries_at = self.out.len();
        self.out.resize(entries_at + 4 * children.len, 0);
        self.open.push(Open { children, is_object, next: 0, from, entries_at, total: 0 });
        Ok(())
    }

    /// A lone scalar is an array of one, marked as such.
    fn open_scalar(&mut self, node: Node) -> Result<(), InputError> {
        self.open_with(ARRAY | SCALAR, 1, Piece { first: 0, len: 0 }, false)?;
        let entries_at = self.out.len();
        self.out.resize(entries_at + 4, 0);
        let (kind, len) = self.write_scalar(node)?;
        if let Some(open) = self.open.last_mut() {
            open.entries_at = entries_at;
        }
        self.note(kind, len)
    }

    fn run(&mut self) -> Result<(), InputError> {
        while let Some(open) = self.open.last() {
            if open.next >= open.children.len {
                let len = self.out.len() - open.from;
                self.open.pop();
                self.note(KIND_CONTAINER, len)?;
                continue;
            }
            let Some(node) = self.tree.children.get(open.child(open.next)).copied() else {
                return Err(refused());
            };
            if let Node::Array(_) | Node::Object(_) = node {
                self.open(node)?;
            } else {
                let (kind, len) = self.write_scalar(node)?;
                self.note(kind, len)?;
            }
        }
        Ok(())
    }

    /// Writes a scalar; returns its kind and how many bytes it took.
    fn write_scalar(&mut self, node: Node) -> Result<(u32, usize), InputError> {
        let before = self.out.len();
        let kind = match node {
            Node::Null => KIND_NULL,
            Node::Bool(true) => KIND_TRUE,
            Node::Bool(false) => KIND_FALSE,
            Node::String(_) => KIND_STRING,
            _ => {
                self.pad();
                let word = super::datum::length_word(self.tree.bytes_of(node).len())?;
                self.out.extend_from_slice(&word);
                KIND_NUMERIC
            }
        };
        self.out.extend_from_slice(self.tree.bytes_of(node));
        Ok((kind, self.out.len() - before))
    }

    /// Fills the next entry of the innermost container, if there is one.
    fn note(&mut self, kind: u32, len: usize) -> Result<(), InputError> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.total += len;
        if open.total > MAX_LENGTH {
            return Err(too_large(open.is_object));
        }
        let entry = match open.next % STRIDE {
            0 => open.total as u32 | HAS_END,
            _ => len as u32,
        };
        let at = open.entries_at + 4 * open.next;
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&(kind | entry).to_le_bytes());
        }
        open.next += 1;
        Ok(())
    }
}

#[cold]
fn too_large(is_object: bool) -> InputError {
    let kind = if is_object { "object" } else { "array" };
    InputError::new(format!(
        "total size of jsonb {kind} elements exceeds the maximum of {MAX_LENGTH} bytes"
    ))
}
