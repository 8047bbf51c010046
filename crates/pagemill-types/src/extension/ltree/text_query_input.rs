//! `ltxtquery` of a text: labels with flags, `!`, `&`, `|` and parentheses.
//!
//! Operators wait on a stack until their operands are complete, one stack for each open parenthesis. A second bar does not wait for the
//! first, so chains of bars lean to the left.
//!
//! Invariants: errors are the server's, of what it sees first. Characters of several bytes that stand where an operator is expected are
//! passed over before version 16. The bytes are the server's.
//!
//! Source: `queryin` in `contrib/ltree/ltxtquery_io.c`, PostgreSQL 14 to 18.

use crate::extension::call::CallError;

use super::characters::Characters;
use super::labels::Labels;
use super::query::{ANY_CASE, PREFIX, Variant, WORDS};
use super::text_query::{OPERAND, OPERATOR};

const SYNTAX: &str = "42601";
const PARAMETER: &str = "22023";
/// The most operators that wait for an operand.
const MOST_WAITING: usize = 32;

/// The payload of the `ltxtquery` that a text says.
///
/// # Errors
/// The server's, with their details.
pub fn ltxtquery_input(text: &[u8], labels: Labels<'_>) -> Result<Vec<u8>, CallError> {
    let mut parser = Parser {
        characters: Characters::new(text),
        labels,
        waiting: Vec::new(),
        open: Vec::new(),
        postfix: Postfix::default(),
    };
    parser.run()?;
    parser.postfix.payload()
}

/// An item as it is kept.
#[derive(Clone, Copy)]
struct Item {
    kind: i16,
    value: u32,
    flags: u8,
    length: u8,
    offset: u16,
}

/// Items in postfix order, and their labels.
#[derive(Default)]
struct Postfix {
    items: Vec<Item>,
    operands: Vec<u8>,
}

impl Postfix {
    fn push_operator(&mut self, sign: u8) {
        let value = sign.into();
        self.items.push(Item { kind: OPERATOR, value, flags: 0, length: 0, offset: 0 });
    }

    fn push_label(&mut self, label: Variant<'_>, value: u32) -> Result<(), CallError> {
        let refused = |what| CallError::new(PARAMETER, what);
        if label.text.len() > u16::MAX.into() {
            return Err(refused("word is too long"));
        }
        let offset = u16::try_from(self.operands.len()).map_err(|_| refused("value is too big"))?;
        let length = u8::try_from(label.text.len()).map_err(|_| refused("operand is too long"))?;
        let flags = label.flags;
        self.items.push(Item { kind: OPERAND, value, flags, length, offset });
        self.operands.extend_from_slice(label.text);
        self.operands.push(0);
        Ok(())
    }

    fn payload(&self) -> Result<Vec<u8>, CallError> {
        let mut payload = (self.items.len() as u32).to_le_bytes().to_vec();
        for (item, left) in self.items.iter().zip(self.lefts()?).rev() {
            payload.extend_from_slice(&item.kind.to_le_bytes());
            payload.extend_from_slice(&left.to_le_bytes());
            payload.extend_from_slice(&item.value.to_le_bytes());
            payload.extend_from_slice(&[item.flags, item.length]);
            payload.extend_from_slice(&item.offset.to_le_bytes());
        }
        payload.extend_from_slice(&self.operands);
        Ok(payload)
    }

    /// For each item how far its left operand lies from it, 0 for a label, 1 for what `!` negates.
    fn lefts(&self) -> Result<Vec<i16>, CallError> {
        let mut sizes: Vec<usize> = Vec::new();
        let mut lefts = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let (left, size) = match item.kind {
                OPERAND => (0, 1),
                _ if item.value == u32::from(b'!') => (1, 1 + sizes.pop().unwrap_or(0)), // default: the parser saw to it
                _ => {
                    let right = sizes.pop().unwrap_or(0); // default: the parser saw to it
                    (1 + right, 1 + right + sizes.pop().unwrap_or(0)) // default: the parser saw to it
                }
            };
            let too_large = |_| CallError::new("54000", "ltxtquery is too large");
            lefts.push(i16::try_from(left).map_err(too_large)?);
            sizes.push(size);
        }
        Ok(lefts)
    }
}

struct Parser<'a> {
    characters: Characters<'a>,
    labels: Labels<'a>,
    /// Operators without all of their operands, since the last open parenthesis.
    waiting: Vec<u8>,
    /// Those before each open parenthesis.
    open: Vec<Vec<u8>>,
    postfix: Postfix,
}

#[cold]
fn syntax() -> CallError {
    CallError::new(SYNTAX, "syntax error")
}

impl<'a> Parser<'a> {
    fn run(&mut self) -> Result<(), CallError> {
        loop {
            self.operand()?;
            if !self.operator()? {
                return Ok(());
            }
        }
    }

    /// What comes before a label, and the label.
    fn operand(&mut self) -> Result<(), CallError> {
        loop {
            match self.characters.peek() {
                Some('!') => self.wait(b'!')?,
                Some('(') => self.open.push(std::mem::take(&mut self.waiting)),
                Some(one) if self.labels.allow(one) => {
                    let label = self.label()?;
                    self.postfix.push_label(label, self.labels.checksum(label.text))?;
                    self.complete();
                    return Ok(());
                }
                Some(one) if self.is_space(one) => {}
                _ => return Err(CallError::new(SYNTAX, "operand syntax error")),
            }
            self.characters.advance();
        }
    }

    fn label(&mut self) -> Result<Variant<'a>, CallError> {
        let start = self.characters.byte();
        while self.characters.peek().is_some_and(|one| self.labels.allow(one)) {
            self.characters.advance();
        }
        let text = self.characters.slice(start, self.characters.byte());
        let mut flags = 0;
        loop {
            flags |= match self.characters.peek() {
                Some('%') => WORDS,
                Some('@') => ANY_CASE,
                Some('*') => PREFIX,
                Some(one) if self.labels.allow(one) => {
                    return Err(CallError::new(SYNTAX, "modifiers syntax error"));
                }
                _ => return Ok(Variant { text, flags }),
            };
            self.characters.advance();
        }
    }

    /// What comes behind a label; false at the end.
    fn operator(&mut self) -> Result<bool, CallError> {
        loop {
            match self.characters.peek() {
                Some(sign @ ('&' | '|')) => {
                    self.characters.advance();
                    self.pair(sign as u8)?;
                    return Ok(true);
                }
                Some(')') => self.close()?,
                Some(' ') => {}
                Some(_) if self.labels.rules.passes_wide && self.characters.is_wide() => {}
                None if self.open.is_empty() => {
                    self.finish();
                    return Ok(false);
                }
                _ => return Err(syntax()),
            }
            self.characters.advance();
        }
    }

    fn pair(&mut self, sign: u8) -> Result<(), CallError> {
        if sign == b'|' && !self.waiting.is_empty() {
            self.postfix.push_operator(sign);
            return Ok(());
        }
        self.wait(sign)
    }

    fn wait(&mut self, sign: u8) -> Result<(), CallError> {
        if self.waiting.len() == MOST_WAITING {
            return Err(CallError::new("XX000", "stack too short"));
        }
        self.waiting.push(sign);
        Ok(())
    }

    /// An operand is complete, and with it the operators before it that bind more tightly than a bar.
    fn complete(&mut self) {
        while let Some(sign) = self.waiting.pop_if(|sign| *sign != b'|') {
            self.postfix.push_operator(sign);
        }
    }

    fn close(&mut self) -> Result<(), CallError> {
        let before = self.open.pop().ok_or_else(syntax)?;
        self.finish();
        self.waiting = before;
        self.complete();
        Ok(())
    }

    fn finish(&mut self) {
        while let Some(sign) = self.waiting.pop() {
            self.postfix.push_operator(sign);
        }
    }

    /// `isspace`, and glibc's `iswspace`, which takes no space that forbids a break.
    fn is_space(&self, one: char) -> bool {
        if one.is_ascii() {
            return matches!(one, ' ' | '\t'..='\r');
        }
        let is_break = !matches!(one, '\u{85}' | '\u{A0}' | '\u{2007}' | '\u{202F}');
        self.labels.rules.has_wide_spaces && is_break && one.is_whitespace()
    }
}
