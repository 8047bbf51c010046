//! `tsquery` from its text: `'fat':A & !cat <2> rat`. See [`crate::tsquery`] for the layout.
//!
//! Operands and operators are pushed in reverse Polish order and stored the other way round, so
//! that each operator comes before its operands. Parentheses nest on the heap, up to
//! [`MAX_NESTING`]; the server's limit is its stack, some 7,000 levels as it comes. Its limit of 32
//! operators that wait for their right operand holds here too.
//!
//! Source: `parse_tsquery`, `makepol`, `gettoken_query_standard` and `findoprnd` in
//! `src/backend/utils/adt/tsquery.c`, `src/include/utils/pg_crc.h`, PostgreSQL 14 to 18.

use super::InputError;
use super::lexeme::{Language, MAX_LEXEME, MAX_PLACE, NextWord, Words};
use super::tree::InputContext;

/// Deepest nesting of parentheses.
pub const MAX_NESTING: usize = 5_000;
/// Operators that wait (`STACKDEPTH`).
const MAX_WAITING: usize = 32;
/// Largest distance of a phrase (`MAXENTRYPOS`).
const MAX_DISTANCE: u64 = 1 << 14;

const OPERAND: u8 = 1;
const OPERATOR: u8 = 2;

/// Appends the payload of a `tsquery`.
///
/// # Errors
/// When the text is none, or has too much in it.
pub fn read_tsquery(
    text: &[u8],
    context: &InputContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let mut parser = Parser {
        words: Words::new(text, context, Language::Query),
        nodes: Vec::new(),
        texts: Vec::new(),
        word: Vec::new(),
    };
    parser.run()?;
    parser.nodes.reverse();
    let to_left = distances_to_left(&parser.nodes)?;
    out.extend_from_slice(&(parser.nodes.len() as u32).to_le_bytes());
    for (node, left) in parser.nodes.iter().zip(to_left) {
        node.write(left, out);
    }
    out.extend_from_slice(&parser.texts);
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Not,
    And,
    Or,
    Phrase(i16),
}

impl Operator {
    fn number(self) -> u8 {
        match self {
            Self::Not => 1,
            Self::And => 2,
            Self::Or => 3,
            Self::Phrase(_) => 4,
        }
    }

    fn priority(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Phrase(_) => 3,
            Self::Not => 4,
        }
    }

    /// True when this operator takes what `waiting` waits for away from it. NOT binds to the
    /// right, the others to the left.
    fn goes_before(self, waiting: Self) -> bool {
        match self {
            Self::Not => self.priority() >= waiting.priority(),
            _ => self.priority() > waiting.priority(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Node {
    Operand { weights: u8, prefix: bool, checksum: u32, len: usize, place: usize },
    Operator(Operator),
}

impl Node {
    fn write(self, to_left: u32, out: &mut Vec<u8>) {
        match self {
            Self::Operand { weights, prefix, checksum, len, place } => {
                out.extend([OPERAND, weights, u8::from(prefix), 0]);
                out.extend_from_slice(&checksum.to_le_bytes());
                let extent = len as u32 | (place as u32) << 12;
                out.extend_from_slice(&extent.to_le_bytes());
            }
            Self::Operator(operator) => {
                let distance = if let Operator::Phrase(distance) = operator { distance } else { 0 };
                out.extend([OPERATOR, operator.number()]);
                out.extend_from_slice(&distance.to_le_bytes());
                out.extend_from_slice(&to_left.to_le_bytes());
                out.extend_from_slice(&[0; 4]);
            }
        }
    }
}

/// How far each operator's left operand is behind it: its right one comes first.
fn distances_to_left(nodes: &[Node]) -> Result<Vec<u32>, InputError> {
    let missing = || InputError::new("malformed tsquery: operand not found");
    let mut distances = vec![0; nodes.len()];
    // The sizes of the operands that follow.
    let mut sizes: Vec<u32> = Vec::new();
    for (node, distance) in nodes.iter().zip(&mut distances).rev() {
        let size = match node {
            Node::Operand { .. } => 1,
            Node::Operator(Operator::Not) => {
                *distance = 1;
                1 + sizes.pop().ok_or_else(missing)?
            }
            Node::Operator(_) => {
                let right = sizes.pop().ok_or_else(missing)?;
                *distance = 1 + right;
                1 + right + sizes.pop().ok_or_else(missing)?
            }
        };
        sizes.push(size);
    }
    if sizes.len() > 1 {
        return Err(InputError::new("malformed tsquery: extra nodes"));
    }
    Ok(distances)
}

struct Parser<'a> {
    words: Words<'a>,
    /// In reverse Polish order.
    nodes: Vec<Node>,
    texts: Vec<u8>,
    word: Vec<u8>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), InputError> {
        let mut waiting: Vec<Vec<Operator>> = vec![Vec::new()];
        loop {
            // An operand, with what comes before it.
            while self.opening(&mut waiting)? {}
            if !self.operand()? {
                let first = self.nodes.is_empty() && waiting.iter().all(Vec::is_empty);
                let nothing = first && waiting.len() == 1;
                return if nothing { Ok(()) } else { Err(self.no_operand()) };
            }
            if self.closing(&mut waiting)? {
                return Ok(());
            }
        }
    }

    #[cold]
    fn no_operand(&self) -> InputError {
        self.words.about("no operand in tsquery")
    }

    /// Takes `!` or `(`.
    fn opening(&mut self, waiting: &mut Vec<Vec<Operator>>) -> Result<bool, InputError> {
        self.words.skip_spaces();
        match self.words.peek() {
            Some(b'!') => self.push_operator(Operator::Not, waiting)?,
            Some(b'(') if waiting.len() > MAX_NESTING => {
                return Err(InputError::new("stack depth limit exceeded"));
            }
            Some(b'(') => waiting.push(Vec::new()),
            _ => return Ok(false),
        }
        self.words.skip(1);
        Ok(true)
    }

    /// Takes an operand, unless the text is at its end.
    fn operand(&mut self) -> Result<bool, InputError> {
        if self.words.peek() == Some(b':') {
            return Err(self.words.syntax_error());
        }
        let mut word = std::mem::take(&mut self.word);
        let found = self.words.next(&mut word)?;
        self.word = word;
        if matches!(found, NextWord::End) {
            return Ok(false);
        }
        let (weights, prefix) = self.modifiers();
        let (len, place) = (self.word.len(), self.texts.len());
        if len >= MAX_LEXEME {
            return Err(self.words.about("word is too long in tsquery"));
        }
        if place >= MAX_PLACE {
            return Err(self.words.about("value is too big in tsquery"));
        }
        let checksum = operand_checksum(&self.word);
        self.nodes.push(Node::Operand { weights, prefix, checksum, len, place });
        self.texts.extend_from_slice(&self.word);
        self.texts.push(0);
        Ok(true)
    }

    /// What may follow a word: `:AB*`.
    fn modifiers(&mut self) -> (u8, bool) {
        let (mut weights, mut prefix) = (0, false);
        if self.words.peek() != Some(b':') {
            return (weights, prefix);
        }
        loop {
            self.words.skip(1);
            match self.words.peek() {
                Some(b'a' | b'A') => weights |= 8,
                Some(b'b' | b'B') => weights |= 4,
                Some(b'c' | b'C') => weights |= 2,
                Some(b'd' | b'D') => weights |= 1,
                Some(b'*') => prefix = true,
                _ => return (weights, prefix),
            }
        }
    }

    /// Takes closing parentheses and the operator behind them; true when the text is at its end.
    fn closing(&mut self, waiting: &mut Vec<Vec<Operator>>) -> Result<bool, InputError> {
        loop {
            self.words.skip_spaces();
            match self.words.peek() {
                Some(b')') if waiting.len() > 1 => {
                    self.words.skip(1);
                    let group = waiting.pop().unwrap_or_default();
                    self.nodes.extend(group.into_iter().rev().map(Node::Operator));
                }
                None if waiting.len() == 1 => {
                    let group = waiting.pop().unwrap_or_default();
                    self.nodes.extend(group.into_iter().rev().map(Node::Operator));
                    return Ok(true);
                }
                _ => break,
            }
        }
        let operator = match self.words.peek() {
            Some(b'&') => (Operator::And, 1),
            Some(b'|') => (Operator::Or, 1),
            _ => self.phrase()?.ok_or_else(|| self.words.syntax_error())?,
        };
        self.push_operator(operator.0, waiting)?;
        self.words.skip(operator.1);
        Ok(false)
    }

    /// The operator `<->` or `<N>` that comes next, and how many bytes it has. It must not be the
    /// last thing in the text.
    fn phrase(&self) -> Result<Option<(Operator, usize)>, InputError> {
        let Some(rest) = self.words.rest.strip_prefix(b"<") else { return Ok(None) };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (distance, len) = match rest.first() {
            Some(b'-') => (1, 1),
            _ if digits > 0 => (number(rest.get(..digits).unwrap_or_default()), digits),
            _ => return Ok(None),
        };
        if distance > MAX_DISTANCE {
            return Err(InputError::new(format!(
                "distance in phrase operator must be an integer value between zero and \
                 {MAX_DISTANCE} inclusive"
            )));
        }
        let closed = rest.get(len) == Some(&b'>') && rest.len() > len + 1;
        Ok(closed.then_some((Operator::Phrase(distance as i16), len + 2)))
    }

    /// Has an operator wait for its right operand; those that bind stronger need wait no more.
    fn push_operator(
        &mut self,
        operator: Operator,
        waiting: &mut [Vec<Operator>],
    ) -> Result<(), InputError> {
        let Some(group) = waiting.last_mut() else { return Ok(()) };
        while let Some(last) = group.pop_if(|last| !operator.goes_before(*last)) {
            self.nodes.push(Node::Operator(last));
        }
        if group.len() >= MAX_WAITING {
            return Err(InputError::new("tsquery stack too small"));
        }
        group.push(operator);
        Ok(())
    }
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number: u64, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

/// The checksum that is kept with an operand: the table of the reflected CRC-32 used as if it were not.
pub fn operand_checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| TABLE[((crc >> 24) as u8 ^ byte) as usize] ^ (crc << 8);
    !bytes.iter().fold(u32::MAX, step)
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < table.len() {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}
