//! A program in the Snowball language, made of its symbols: routines of steps that change a word or fail.
//!
//! Invariant: names are numbers here, so that a routine, a set of letters or a variable is found by its place; a program that
//! names what it does not declare is none.
//!
//! Source: https://snowballstem.org/compiler/snowman.html, of PostgreSQL 14 to 18 the files named in `mod.rs`.

use std::collections::HashMap;

use super::steps::Steps;
use super::symbols::{Fault, Symbol, symbols};

/// What a routine does, one thing after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    All(Vec<Step>),
    /// The first that does not fail.
    Any(Vec<Step>),
    /// All, from the same place each.
    Both(Vec<Step>),
    Not(Box<Step>),
    Try(Box<Step>),
    Test(Box<Step>),
    Fail(Box<Step>),
    Do(Box<Step>),
    Goto(Box<Step>),
    GoPast(Box<Step>),
    Repeat(Box<Step>),
    /// So many times, or at least as many.
    Loop(Number, Box<Step>),
    AtLeast(Number, Box<Step>),
    Backwards(Box<Step>),
    SetLimit(Box<Step>, Box<Step>),
    /// Flags, and what they have to be.
    SetFlag(usize, bool),
    Flag(usize),
    Call(usize),
    In(usize),
    Out(usize),
    Is(Text),
    /// Looks which of the strings stands here; what follows from that is [`Step::Among`].
    Substring(usize),
    Among(usize),
    Left,
    Right,
    SliceTo(usize),
    SliceFrom(Text),
    Insert(Text),
    Hop(Number),
    ToLimit,
    AtLimit,
    ToMark(Number),
    AtMark(Number),
    Set(usize, Number),
    Compare(Number, &'static str, Number),
    Constant(bool),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    Literal(Vec<u8>),
    Variable(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    Constant(i32),
    Variable(usize),
    Cursor,
    Limit,
    /// Of the word, in characters and in bytes.
    Characters,
    Bytes,
    BytesOf(usize),
    Sum(Box<Number>, Box<Number>),
    Difference(Box<Number>, Box<Number>),
}

/// A set of letters.
#[derive(Debug, Default, Clone)]
pub(super) struct Letters {
    /// Those of ASCII, each a bit.
    ascii: u128,
    others: Vec<char>,
}

impl Letters {
    pub(super) fn contains(&self, letter: char) -> bool {
        match letter.is_ascii() {
            true => self.ascii >> u32::from(letter) & 1 == 1,
            false => self.others.contains(&letter),
        }
    }

    fn extend(&mut self, more: &Self) {
        self.ascii |= more.ascii;
        self.others.extend(&more.others);
    }

    fn remove(&mut self, those: &Self) {
        self.ascii &= !those.ascii;
        self.others.retain(|letter| !those.others.contains(letter));
    }
}

impl FromIterator<char> for Letters {
    fn from_iter<I: IntoIterator<Item = char>>(letters: I) -> Self {
        let mut found = Self::default();
        for letter in letters {
            match letter.is_ascii() {
                true => found.ascii |= 1 << u32::from(letter),
                false => found.others.push(letter),
            }
        }
        found
    }
}

/// Strings of which one may stand at the cursor.
#[derive(Debug, Default)]
pub(super) struct Among {
    /// The entry of a string, by its bytes.
    pub(super) strings: HashMap<Vec<u8>, Entry>,
    /// How long they are, the longest first.
    pub(super) lengths: Vec<usize>,
    pub(super) actions: Vec<Step>,
    /// The first and the last bytes of the strings, by which most words are told not to have any.
    first: Edges,
    last: Edges,
}

/// Bytes, each of which one of the strings begins or ends with, and whether one is empty.
#[derive(Debug)]
struct Edges([bool; 256], bool);

impl Default for Edges {
    fn default() -> Self {
        Self([false; 256], false)
    }
}

impl Edges {
    fn note(&mut self, byte: Option<&u8>) {
        match byte {
            Some(byte) => self.0[usize::from(*byte)] = true,
            None => self.1 = true,
        }
    }

    fn has(&self, byte: Option<&u8>) -> bool {
        self.1 || byte.is_some_and(|byte| self.0[usize::from(*byte)])
    }
}

impl Among {
    pub(super) fn add(&mut self, text: Vec<u8>, entry: Entry) {
        self.first.note(text.first());
        self.last.note(text.last());
        self.lengths.push(text.len());
        self.strings.insert(text, entry);
    }

    /// False where none of the strings can stand by that byte.
    pub(super) fn may_be_at(&self, byte: Option<&u8>, backward: bool) -> bool {
        if backward { self.last.has(byte) } else { self.first.has(byte) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// A routine that has to agree.
    pub(super) routine: Option<usize>,
    pub(super) action: Option<usize>,
}

/// What names stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    String(usize),
    Integer(usize),
    Flag(usize),
    Routine(usize),
    Letters(usize),
}

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(super) routines: Vec<Step>,
    pub(super) letters: Vec<Letters>,
    pub(super) amongs: Vec<Among>,
    /// How many variables there are of strings, integers and flags.
    pub(super) variables: [usize; 3],
    /// The routine by which it begins.
    pub(super) first: usize,
}

impl Program {
    /// # Errors
    /// When it is no program.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let mut reader = Reader { symbols: symbols(text)?, ..Reader::default() };
        while reader.at < reader.symbols.len() {
            reader.declaration()?;
        }
        Ok(reader.program)
    }
}

/// Reads symbols one after the other.
#[derive(Debug, Default)]
pub(super) struct Reader {
    symbols: Vec<Symbol>,
    at: usize,
    names: HashMap<String, Named>,
    pub(super) program: Program,
    /// The strings that were looked for, and wait for what follows from them.
    pub(super) waiting: Option<usize>,
}

impl Reader {
    pub(super) fn peek(&self) -> Option<&Symbol> {
        self.symbols.get(self.at)
    }

    pub(super) fn next(&mut self) -> Result<Symbol, Fault> {
        let symbol = self.peek().cloned().ok_or("an end within a program")?;
        self.at += 1;
        Ok(symbol)
    }

    /// Takes the sign or the name if it is next.
    pub(super) fn takes(&mut self, wanted: &str) -> bool {
        let is_there = match self.peek() {
            Some(Symbol::Name(name)) => name == wanted,
            Some(Symbol::Sign(sign)) => *sign == wanted,
            _ => false,
        };
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn expect_next(&mut self, wanted: &str) -> Result<(), Fault> {
        match self.takes(wanted) {
            true => Ok(()),
            false => Err(format!("{:?} where {wanted} is wanted", self.peek())),
        }
    }

    pub(super) fn name(&mut self) -> Result<String, Fault> {
        match self.next()? {
            Symbol::Name(name) => Ok(name),
            other => Err(format!("{other:?} where a name is wanted")),
        }
    }

    pub(super) fn named(&self, name: &str) -> Result<Named, Fault> {
        self.names.get(name).copied().ok_or_else(|| format!("a name that is unknown: {name}"))
    }

    fn declaration(&mut self) -> Result<(), Fault> {
        match self.name()?.as_str() {
            "define" => self.definition(),
            "backwardmode" => {
                self.expect_next("(")?;
                while !self.takes(")") {
                    self.expect_next("define")?;
                    self.definition()?;
                }
                Ok(())
            }
            kind => self.declared(kind),
        }
    }

    fn declared(&mut self, kind: &str) -> Result<(), Fault> {
        self.expect_next("(")?;
        while !self.takes(")") {
            let name = self.name()?;
            let counted = |counter: &mut usize| {
                *counter += 1;
                *counter - 1
            };
            let [strings, integers, flags] = &mut self.program.variables;
            let named = match kind {
                "strings" => Named::String(counted(strings)),
                "integers" => Named::Integer(counted(integers)),
                "booleans" => Named::Flag(counted(flags)),
                "groupings" => {
                    self.program.letters.push(Letters::default());
                    Named::Letters(self.program.letters.len() - 1)
                }
                "routines" | "externals" => {
                    self.program.routines.push(Step::Constant(false));
                    let number = self.program.routines.len() - 1;
                    if kind == "externals" {
                        self.program.first = number;
                    }
                    Named::Routine(number)
                }
                _ => return Err(format!("a declaration that is unknown: {kind}")),
            };
            self.names.insert(name, named);
        }
        Ok(())
    }

    fn definition(&mut self) -> Result<(), Fault> {
        let name = self.name()?;
        match self.named(&name)? {
            Named::Routine(number) => {
                self.expect_next("as")?;
                self.program.routines[number] = Steps(self).step()?;
            }
            Named::Letters(number) => self.program.letters[number] = self.letters()?,
            other => return Err(format!("a definition of {other:?}")),
        }
        Ok(())
    }

    fn letters(&mut self) -> Result<Letters, Fault> {
        let mut found = self.some_letters()?;
        loop {
            if self.takes("+") {
                found.extend(&self.some_letters()?);
            } else if self.takes("-") {
                found.remove(&self.some_letters()?);
            } else {
                return Ok(found);
            }
        }
    }

    fn some_letters(&mut self) -> Result<Letters, Fault> {
        match self.next()? {
            Symbol::Text(text) => Ok(text.chars().collect()),
            Symbol::Name(name) => match self.named(&name)? {
                Named::Letters(number) => Ok(self.program.letters[number].clone()),
                other => Err(format!("{other:?} for letters")),
            },
            other => Err(format!("{other:?} for letters")),
        }
    }
}
