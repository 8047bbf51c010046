//! Writes the items of a path: type, link to the next item, what the type has, operands, next item.
//!
//! Source: `flattenJsonPathParseItem` in `src/backend/utils/adt/jsonpath.c`, PostgreSQL 14 to 18.

use super::super::InputError;
use super::super::datum::length_word;
use super::item::{Chain, Item, kind};

/// Where in a path an item stands.
#[derive(Clone, Copy)]
struct Nesting {
    in_filter: bool,
    in_subscript: bool,
}

/// Appends a chain; the path's payload begins at `start` in `out`.
pub(super) fn write(items: &Chain, start: usize, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut writer = Writer { start, out };
    writer.chain(items, Nesting { in_filter: false, in_subscript: false })?;
    Ok(())
}

struct Writer<'a> {
    start: usize,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// Writes a chain; returns where its first item is.
    fn chain(&mut self, items: &Chain, nesting: Nesting) -> Result<usize, InputError> {
        let first = self.out.len();
        let mut before: Option<(usize, usize)> = None;
        for item in items {
            let at = self.out.len();
            if let Some((link, from)) = before {
                self.link(link, from, at);
            }
            let link = self.head(item.kind());
            before = Some((link, at));
            self.item(item, at, nesting)?;
        }
        Ok(first)
    }

    /// Writes an item's type and room for the link to the next one; returns where that is.
    fn head(&mut self, kind: u8) -> usize {
        self.out.push(kind);
        let len = (self.out.len() - self.start).next_multiple_of(4);
        self.out.resize(self.start + len, 0);
        self.reserve()
    }

    fn reserve(&mut self) -> usize {
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        at
    }

    /// Fills a link: the distance from an item to another.
    fn link(&mut self, at: usize, from: usize, to: usize) {
        if let Some(nesting) = self.out.get_mut(at..at + 4) {
            nesting.copy_from_slice(&((to - from) as u32).to_le_bytes());
        }
    }

    fn operand(
        &mut self,
        operand: Option<&Chain>,
        link: usize,
        from: usize,
        nesting: Nesting,
    ) -> Result<(), InputError> {
        let Some(operand) = operand else { return Ok(()) };
        let to = self.chain(operand, nesting)?;
        self.link(link, from, to);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) {
        self.out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.out.extend_from_slice(text);
        self.out.push(0);
    }

    /// Writes what comes behind an item's head.
    fn item(&mut self, item: &Item, at: usize, nesting: Nesting) -> Result<(), InputError> {
        match item {
            Item::Plain(kind::CURRENT) if !nesting.in_filter => {
                return Err(InputError::new("@ is not allowed in root expressions"));
            }
            Item::Plain(kind::LAST) if !nesting.in_subscript => {
                return Err(InputError::new("LAST is allowed only in array subscripts"));
            }
            Item::Plain(_) => {}
            Item::Text(_, text) => self.text(text),
            Item::Numeric(payload) => {
                self.out.extend_from_slice(&length_word(payload.len())?);
                self.out.extend_from_slice(payload);
            }
            Item::Bool(value) => self.out.push(u8::from(*value)),
            Item::Unary(kind, operand) => {
                let link = self.reserve();
                let in_filter = nesting.in_filter || *kind == kind::FILTER;
                self.operand(operand.as_ref(), link, at, Nesting { in_filter, ..nesting })?;
            }
            Item::Binary(_, left, right) => {
                self.binary((left.as_ref(), right.as_ref()), at, nesting)?;
            }
            Item::LikeRegex { operand, pattern, flags } => {
                self.out.extend_from_slice(&flags.to_le_bytes());
                let link = self.reserve();
                self.text(pattern);
                self.operand(Some(operand), link, at, nesting)?;
            }
            Item::Subscripts(subscripts) => self.subscripts(subscripts, at, nesting)?,
            Item::AnyLevels(first, last) => {
                self.out.extend_from_slice(&first.to_le_bytes());
                self.out.extend_from_slice(&last.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Writes both operands: those on the left that are operators themselves one after the other, as they may be many.
    fn binary(
        &mut self,
        (mut left, mut right): (Option<&Chain>, Option<&Chain>),
        mut at: usize,
        nesting: Nesting,
    ) -> Result<(), InputError> {
        let mut behind = Vec::new();
        loop {
            let links = (self.reserve(), self.reserve());
            behind.push((right, links.1, at));
            let Some([item @ Item::Binary(_, left_of_left, right_of_left)]) = left.map(|c| &c[..])
            else {
                self.operand(left, links.0, at, nesting)?;
                break;
            };
            let from = at;
            at = self.out.len();
            self.link(links.0, from, at);
            self.head(item.kind());
            (left, right) = (left_of_left.as_ref(), right_of_left.as_ref());
        }
        for (right, link, from) in behind.into_iter().rev() {
            self.operand(right, link, from, nesting)?;
        }
        Ok(())
    }

    fn subscripts(
        &mut self,
        subscripts: &[(Chain, Option<Chain>)],
        at: usize,
        nesting: Nesting,
    ) -> Result<(), InputError> {
        self.out.extend_from_slice(&(subscripts.len() as u32).to_le_bytes());
        let links = self.out.len();
        self.out.resize(links + 8 * subscripts.len(), 0);
        let nesting = Nesting { in_subscript: true, ..nesting };
        for (i, (from, to)) in subscripts.iter().enumerate() {
            self.operand(Some(from), links + 8 * i, at, nesting)?;
            self.operand(to.as_ref(), links + 8 * i + 4, at, nesting)?;
        }
        Ok(())
    }
}

impl Item {
    /// The number of its type.
    fn kind(&self) -> u8 {
        match self {
            Self::Plain(kind) | Self::Text(kind, _) => *kind,
            Self::Unary(kind, _) | Self::Binary(kind, _, _) => *kind,
            Self::Numeric(_) => kind::NUMERIC,
            Self::Bool(_) => kind::BOOL,
            Self::LikeRegex { .. } => kind::LIKE_REGEX,
            Self::Subscripts(_) => kind::SUBSCRIPTS,
            Self::AnyLevels(_, _) => kind::ANY_LEVELS,
        }
    }
}
