//! A `jsonpath` taken apart: its items as nodes of a list, linked by their numbers.
//!
//! It is made once from the stored bytes and then serves any number of documents. The layout of the bytes is told in
//! [`pagemill_types::jsonpath`].
//!
//! Invariants: links lead forward only and no item has two that lead to it, so a damaged value makes no more nodes than it
//! has bytes, and walking along links ends. Nesting costs heap here, not stack.
//!
//! Source: `jspInitByBuffer` in `src/backend/utils/adt/jsonpath.c`, `JsonPathItemType` in `src/include/utils/jsonpath.h`,
//! PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::ops::Range;

use pagemill_format::reader::Reader;

use super::damaged;
use super::kind::{self, Kind, Method, Operator, Word};
use crate::functions::rows::Outcome;

const STRUCTURE: &str = "jsonpath";
const VERSION: u32 = 1;
const LAX: u32 = 0x8000_0000;
const FIRST_ITEM: usize = 4;

/// The number of a node.
pub(super) type NodeId = usize;

/// One item.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The item that is applied to what this one yields.
    pub(super) next: Option<NodeId>,
}

/// A path made ready for documents.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    bytes: Vec<u8>,
    nodes: Vec<Node>,
    pub(super) is_lax: bool,
}

impl Path {
    /// Reads the payload of a `jsonpath`.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn new(payload: &[u8]) -> Outcome<Self> {
        let header = Reader::new(STRUCTURE, payload).u32().map_err(damaged)?;
        if header & !LAX != VERSION {
            return Err(damaged(format!("jsonpath version {}", header & !LAX)));
        }
        let mut decoder =
            Decoder { bytes: payload, nodes: Vec::new(), open: Vec::new(), known: HashSet::new() };
        decoder.open(FIRST_ITEM)?;
        while let Some((node, at)) = decoder.open.pop() {
            decoder.fill(node, at)?;
        }
        let nodes = decoder.nodes;
        Ok(Self { bytes: payload.to_vec(), nodes, is_lax: header & LAX != 0 })
    }

    /// The item that a path begins with.
    pub(super) const ROOT: NodeId = 0;

    pub(super) fn node(&self, id: NodeId) -> Outcome<&Node> {
        self.nodes.get(id).ok_or_else(|| damaged("a link to no item of a jsonpath"))
    }

    pub(super) fn kind(&self, id: NodeId) -> Outcome<&Kind> {
        self.node(id).map(|node| &node.kind)
    }

    pub(super) fn next(&self, id: NodeId) -> Option<NodeId> {
        self.nodes.get(id).and_then(|node| node.next)
    }

    pub(super) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default() // default: ranges are those of the bytes they were read from
    }
}

/// Items that were met but not read yet.
struct Decoder<'p> {
    bytes: &'p [u8],
    nodes: Vec<Node>,
    open: Vec<(NodeId, usize)>,
    known: HashSet<usize>,
}

impl<'p> Decoder<'p> {
    /// A node for the item at `at`, which is read later.
    fn open(&mut self, at: usize) -> Outcome<NodeId> {
        if !self.known.insert(at) {
            return Err(damaged("two links of a jsonpath to one item"));
        }
        let id = self.nodes.len();
        self.nodes.push(Node { kind: Kind::Null, next: None });
        self.open.push((id, at));
        Ok(id)
    }

    fn fill(&mut self, id: NodeId, at: usize) -> Outcome<()> {
        let mut reader = Reader::new(STRUCTURE, self.bytes);
        reader.seek(at).map_err(damaged)?;
        let number = reader.u8().map_err(damaged)?;
        reader.align(4);
        let link = reader.i32().map_err(damaged)?;
        let next = self.linked_or_none(at, link)?;
        let kind = Item { decoder: self, reader, at }.kind(number)?;
        if let Some(node) = self.nodes.get_mut(id) {
            *node = Node { kind, next };
        }
        Ok(())
    }

    fn linked_or_none(&mut self, from: usize, link: i32) -> Outcome<Option<NodeId>> {
        if link == 0 { Ok(None) } else { self.linked(from, link).map(Some) }
    }

    fn linked(&mut self, from: usize, link: i32) -> Outcome<NodeId> {
        let to =
            usize::try_from(link).ok().filter(|link| *link > 0).and_then(|l| from.checked_add(l));
        match to.filter(|to| *to < self.bytes.len()) {
            Some(to) => self.open(to),
            None => Err(damaged(format!("link {link} of a jsonpath leads nowhere"))),
        }
    }
}

/// One item while it is read.
struct Item<'d, 'p> {
    decoder: &'d mut Decoder<'p>,
    reader: Reader<'p>,
    at: usize,
}

impl Item<'_, '_> {
    fn kind(mut self, number: u8) -> Outcome<Kind> {
        if let Some(operator) = Operator::of(number) {
            return Ok(Kind::Binary(operator, self.link()?, self.link()?));
        }
        if let Some(word) = Word::of(number) {
            return Ok(Kind::Word(word));
        }
        if let Some(method) = Method::of(number) {
            return self.method(method);
        }
        Ok(match number {
            kind::NULL => Kind::Null,
            kind::STRING => Kind::String(self.text()?),
            kind::NUMERIC => Kind::Numeric(self.numeric()?),
            kind::BOOL => Kind::Bool(self.reader.u8().map_err(damaged)? != 0),
            kind::NOT => Kind::Not(self.link()?),
            kind::IS_UNKNOWN => Kind::IsUnknown(self.link()?),
            kind::PLUS => Kind::Sign(false, self.link()?),
            kind::MINUS => Kind::Sign(true, self.link()?),
            kind::SUBSCRIPTS => Kind::Subscripts(self.subscripts()?),
            kind::ANY_LEVELS => Kind::AnyLevels(self.word()?, self.word()?),
            kind::KEY => Kind::Key(self.text()?),
            kind::VARIABLE => Kind::Variable(self.text()?),
            kind::FILTER => Kind::Filter(self.link()?),
            kind::EXISTS => Kind::Exists(self.link()?),
            kind::LIKE_REGEX => self.like_regex()?,
            other => return Err(damaged(format!("unknown jsonpath item type {other}"))),
        })
    }

    fn method(&mut self, method: Method) -> Outcome<Kind> {
        let mut arguments = [None, None];
        for argument in arguments.iter_mut().take(method.arguments()) {
            let link = self.reader.i32().map_err(damaged)?;
            *argument = self.decoder.linked_or_none(self.at, link)?;
        }
        Ok(Kind::Method(method, arguments))
    }

    fn word(&mut self) -> Outcome<u32> {
        self.reader.u32().map_err(damaged)
    }

    fn link(&mut self) -> Outcome<NodeId> {
        let link = self.reader.i32().map_err(damaged)?;
        self.decoder.linked(self.at, link)
    }

    fn text(&mut self) -> Outcome<Range<usize>> {
        let len = self.word()? as usize;
        let start = self.reader.pos();
        self.reader.bytes(len).map_err(damaged)?;
        Ok(start..start + len)
    }

    /// The payload of the numeric that comes next.
    fn numeric(&mut self) -> Outcome<Range<usize>> {
        let start = self.reader.pos();
        let rest = self.decoder.bytes.get(start..).unwrap_or_default(); // default: it is no numeric then
        let (header, len) = embedded(rest).ok_or_else(|| damaged("a numeric of a jsonpath"))?;
        Ok(start + header..start + len)
    }

    fn subscripts(&mut self) -> Outcome<Vec<(NodeId, Option<NodeId>)>> {
        let count = self.word()? as usize;
        if count.saturating_mul(8) > self.reader.remaining() {
            return Err(damaged("more subscripts than a jsonpath has room for"));
        }
        let mut found = Vec::with_capacity(count);
        for _ in 0..count {
            let from = self.link()?;
            let to = self.reader.i32().map_err(damaged)?;
            found.push((from, self.decoder.linked_or_none(self.at, to)?));
        }
        Ok(found)
    }

    fn like_regex(&mut self) -> Outcome<Kind> {
        let flags = self.word()?;
        let operand = self.link()?;
        Ok(Kind::LikeRegex { operand, pattern: self.text()?, flags })
    }
}

/// The lengths of an inner value's length word, and of both: inner values are neither compressed nor out of line.
///
/// Source: `src/include/varatt.h`, PostgreSQL 18.
pub(super) fn embedded(bytes: &[u8]) -> Option<(usize, usize)> {
    let (header, len) = match bytes {
        [first, ..] if first & 1 == 1 => (1, usize::from(first >> 1)),
        [a, b, c, d, ..] if a & 3 == 0 => (4, (u32::from_le_bytes([*a, *b, *c, *d]) >> 2) as usize),
        _ => return None,
    };
    (header <= len && len <= bytes.len()).then_some((header, len))
}
