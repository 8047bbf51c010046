//! A Snowball program at work on a word.
//!
//! Each step says whether it holds; what does not hold leaves the cursor anywhere, and those that go on otherwise set it back.
//!
//! Invariant: variables are nothing at first, for each word anew. Routines that call each other without end give the word up.
//!
//! Source: https://snowballstem.org/compiler/snowman.html, `src/backend/snowball/libstemmer`, PostgreSQL 14 to 18.

use super::program::{Entry, Number, Program, Step, Text};
use super::word::{GivesUp, Word};

/// Routines within routines: the programs take few, but the Turkish one can call itself for each ending.
const MOST_CALLS: usize = 100;

pub(super) struct Machine<'p> {
    program: &'p Program,
    pub(super) word: Word,
    strings: Vec<Vec<u8>>,
    integers: Vec<i32>,
    flags: Vec<bool>,
    /// What was found among strings, last.
    found: Vec<Option<Entry>>,
    calls: usize,
    /// True where more routines were within each other than are followed.
    pub(super) is_too_deep: bool,
}

type Holds = Result<bool, GivesUp>;

impl<'p> Machine<'p> {
    pub(super) fn new(program: &'p Program, word: Word) -> Self {
        let [strings, integers, flags] = program.variables;
        Self {
            program,
            word,
            strings: vec![Vec::new(); strings],
            integers: vec![0; integers],
            flags: vec![false; flags],
            found: vec![None; program.amongs.len()],
            calls: 0,
            is_too_deep: false,
        }
    }

    /// The word after all of it.
    pub(super) fn run(mut self) -> Self {
        let _ = self.call(self.program.first);
        self
    }

    fn call(&mut self, routine: usize) -> Holds {
        if self.calls >= MOST_CALLS {
            self.is_too_deep = true;
            return Err(GivesUp);
        }
        self.calls += 1;
        let holds = self.step(&self.program.routines[routine]);
        self.calls -= 1;
        holds
    }

    fn step(&mut self, step: &'p Step) -> Holds {
        match step {
            Step::All(steps) => {
                for step in steps {
                    if !self.step(step)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Step::Any(steps) => self.each_from_here(steps, true),
            Step::Both(steps) => self.each_from_here(steps, false).map(|one| !one),
            Step::Call(routine) => self.call(*routine),
            Step::Substring(among) => self.substring(*among),
            Step::Among(among) => match self.found[*among].and_then(|entry| entry.action) {
                Some(action) => self.step(&self.program.amongs[*among].actions[action]),
                None => Ok(true),
            },
            Step::SetLimit(limit, inner) => self.within(limit, inner),
            Step::Backwards(inner) => {
                self.word.start = self.word.cursor;
                self.word.cursor = self.word.end;
                self.word.backward = true;
                let holds = self.step(inner);
                self.word.backward = false;
                if matches!(holds, Ok(true)) {
                    self.word.cursor = self.word.start;
                }
                holds
            }
            Step::Goto(inner) | Step::GoPast(inner) => {
                self.search(inner, matches!(step, Step::GoPast(_)))
            }
            Step::Repeat(inner) => self.repeat(inner),
            Step::Loop(times, inner) => self.times(times, inner),
            Step::AtLeast(times, inner) => Ok(self.times(times, inner)? && self.repeat(inner)?),
            Step::Not(inner) | Step::Try(inner) | Step::Test(inner) | Step::Do(inner) => {
                self.at_one_place(step, inner)
            }
            Step::Fail(inner) => self.step(inner).map(|_| false),
            _ => self.simple(step),
        }
    }

    /// True if one step is as wanted, each tried from the same place.
    fn each_from_here(&mut self, steps: &'p [Step], wanted: bool) -> Holds {
        let mark = self.word.mark();
        for (number, step) in steps.iter().enumerate() {
            if number > 0 {
                self.word.back_to(mark);
            }
            if self.step(step)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn at_one_place(&mut self, outer: &Step, inner: &'p Step) -> Holds {
        let mark = self.word.mark();
        let holds = self.step(inner)?;
        match outer {
            Step::Not(_) => {
                self.word.back_to(mark);
                Ok(!holds)
            }
            Step::Test(_) => {
                self.word.back_to(mark);
                Ok(holds)
            }
            Step::Try(_) if holds => Ok(true),
            _ => {
                self.word.back_to(mark);
                Ok(true)
            }
        }
    }

    /// The next place where the step holds.
    fn search(&mut self, inner: &'p Step, past: bool) -> Holds {
        loop {
            let mark = self.word.mark();
            let holds = self.step(inner)?;
            if !(holds && past) {
                self.word.back_to(mark);
            }
            if holds {
                return Ok(true);
            }
            if !self.word.hop(1) {
                return Ok(false);
            }
        }
    }

    fn repeat(&mut self, inner: &'p Step) -> Holds {
        loop {
            let mark = self.word.mark();
            if !self.step(inner)? {
                self.word.back_to(mark);
                return Ok(true);
            }
        }
    }

    fn times(&mut self, times: &Number, inner: &'p Step) -> Holds {
        for _ in 0..self.number(times) {
            if !self.step(inner)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A step within a limit, which is where another one leads from here.
    fn within(&mut self, limit: &'p Step, inner: &'p Step) -> Holds {
        let mark = self.word.mark();
        if !self.step(limit)? {
            return Ok(false);
        }
        if self.word.backward {
            let before = std::mem::replace(&mut self.word.start, self.word.cursor);
            self.word.back_to(mark);
            let holds = self.step(inner);
            self.word.start = before;
            return holds;
        }
        let behind = self.word.end - self.word.cursor;
        self.word.end = self.word.cursor;
        self.word.back_to(mark);
        let holds = self.step(inner);
        self.word.end += behind;
        holds
    }

    /// Which of the strings stands here: the longest to which its routine agrees.
    fn substring(&mut self, number: usize) -> Holds {
        let among = &self.program.amongs[number];
        let before = self.word.cursor;
        let byte = self.word.ahead(1).and_then(<[u8]>::first);
        if !among.may_be_at(byte, self.word.backward) {
            return Ok(false);
        }
        for length in &among.lengths {
            self.word.cursor = before;
            let entry = self.word.ahead(*length).and_then(|bytes| among.strings.get(bytes));
            let Some(entry) = entry.copied() else {
                continue;
            };
            self.word.advance(*length);
            let after = self.word.cursor;
            let agrees = entry.routine.map_or(Ok(true), |routine| self.call(routine))?;
            self.word.cursor = after;
            if agrees {
                self.found[number] = Some(entry);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn simple(&mut self, step: &Step) -> Holds {
        match step {
            Step::SetFlag(flag, value) => self.flags[*flag] = *value,
            Step::Flag(flag) => return Ok(self.flags[*flag]),
            Step::In(letters) | Step::Out(letters) => {
                let wanted = matches!(step, Step::In(_));
                let letters = &self.program.letters[*letters];
                let Some(character) = self.word.character() else {
                    return Ok(false);
                };
                if letters.contains(character) != wanted {
                    return Ok(false);
                }
                self.word.advance(self.word.width());
            }
            Step::Is(text) => {
                let (text, length) = match text {
                    Text::Literal(bytes) => (bytes, bytes.len()),
                    Text::Variable(variable) => {
                        let value = &self.strings[*variable];
                        (value, value.len())
                    }
                };
                if self.word.ahead(length) != Some(text) {
                    return Ok(false);
                }
                self.word.advance(length);
            }
            Step::Left if self.word.backward => self.word.right = self.word.cursor,
            Step::Left => self.word.left = self.word.cursor,
            Step::Right if self.word.backward => self.word.left = self.word.cursor,
            Step::Right => self.word.right = self.word.cursor,
            Step::SliceTo(variable) => self.strings[*variable] = self.word.slice()?.to_vec(),
            Step::SliceFrom(text) => {
                let text = self.text(text);
                self.word.replace_slice(&text)?;
            }
            Step::Insert(text) => {
                let text = self.text(text);
                self.word.insert(&text);
            }
            Step::Set(variable, number) => self.integers[*variable] = self.number(number),
            Step::Constant(value) => return Ok(*value),
            _ => return Ok(self.place(step)),
        }
        Ok(true)
    }

    /// Steps that ask for places, or go there.
    fn place(&mut self, step: &Step) -> bool {
        match step {
            Step::Hop(characters) => {
                let characters = self.number(characters);
                self.word.hop(characters)
            }
            Step::ToLimit => {
                self.word.cursor = self.word.limit();
                true
            }
            Step::AtLimit => self.word.at_limit(),
            Step::ToMark(mark) => {
                let Ok(mark) = usize::try_from(self.number(mark)) else {
                    return false;
                };
                let is_ahead = match self.word.backward {
                    true => self.word.cursor >= mark,
                    false => self.word.cursor <= mark && mark <= self.word.bytes.len(),
                };
                if is_ahead {
                    self.word.cursor = mark;
                }
                is_ahead
            }
            Step::AtMark(mark) => self.number(&Number::Cursor) == self.number(mark),
            Step::Compare(first, sign, second) => {
                let (first, second) = (self.number(first), self.number(second));
                match *sign {
                    "<" => first < second,
                    "<=" => first <= second,
                    ">" => first > second,
                    ">=" => first >= second,
                    "==" => first == second,
                    _ => first != second,
                }
            }
            _ => false,
        }
    }

    fn text(&self, text: &Text) -> Vec<u8> {
        match text {
            Text::Literal(bytes) => bytes.clone(),
            Text::Variable(variable) => self.strings[*variable].clone(),
        }
    }

    fn number(&self, number: &Number) -> i32 {
        let place = |place: usize| i32::try_from(place).unwrap_or(i32::MAX);
        match number {
            Number::Constant(number) => *number,
            Number::Variable(variable) => self.integers[*variable],
            Number::Cursor => place(self.word.cursor),
            Number::Limit => place(self.word.limit()),
            Number::Characters => place(self.word.characters()),
            Number::Bytes => place(self.word.bytes.len()),
            Number::BytesOf(variable) => place(self.strings[*variable].len()),
            Number::Sum(a, b) => self.number(a).saturating_add(self.number(b)),
            Number::Difference(a, b) => self.number(a).saturating_sub(self.number(b)),
        }
    }
}
