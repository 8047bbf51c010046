//! The steps of a routine of a Snowball program, read from symbols.
//!
//! `or` and `and` stand between steps and bind weaker than what stands before one (`not`, `do`, `try` and their kin).
//!
//! Invariant: an `among` takes what the `substring` before it found; one without it looks itself.
//!
//! Source: https://snowballstem.org/compiler/snowman.html, of PostgreSQL 14 to 18 the files named in `mod.rs`.

use super::program::{Among, Entry, Named, Number, Reader, Step, Text};
use super::symbols::{Fault, Symbol};

/// Of a program that is being read.
pub(super) struct Steps<'r>(pub(super) &'r mut Reader);

impl Steps<'_> {
    /// One step.
    pub(super) fn step(&mut self) -> Result<Step, Fault> {
        match self.0.next()? {
            Symbol::Text(text) => Ok(Step::Is(Text::Literal(text.into_bytes()))),
            Symbol::Sign(sign) => self.of_sign(sign),
            Symbol::Name(name) => match self.with_inner(&name)? {
                Some(step) => Ok(step),
                None => self.of_name(&name),
            },
            other @ Symbol::Number(_) => Err(format!("{other:?} where a step is wanted")),
        }
    }

    /// A step with those that `or` and `and` tie to it, from the left.
    fn tied(&mut self) -> Result<Step, Fault> {
        let mut tied = self.step()?;
        loop {
            let before = tied.clone();
            for (word, tie) in [("or", Step::Any as fn(Vec<Step>) -> Step), ("and", Step::Both)] {
                let mut more = Vec::new();
                while self.0.takes(word) {
                    more.push(self.step()?);
                }
                if !more.is_empty() {
                    more.insert(0, tied);
                    tied = tie(more);
                }
            }
            if tied == before {
                return Ok(tied);
            }
        }
    }

    /// Steps up to the closing parenthesis.
    fn all(&mut self) -> Result<Step, Fault> {
        let mut steps = Vec::new();
        while !self.0.takes(")") {
            steps.push(self.tied()?);
        }
        Ok(Step::All(steps))
    }

    fn of_sign(&mut self, sign: &str) -> Result<Step, Fault> {
        Ok(match sign {
            "(" => self.all()?,
            "[" => Step::Left,
            "]" => Step::Right,
            "->" => Step::SliceTo(self.string()?),
            "<-" => Step::SliceFrom(self.text()?),
            "<+" => Step::Insert(self.text()?),
            "$" if self.0.takes("(") => {
                let first = self.number()?;
                let compared = self.comparison(first)?;
                self.0.expect_next(")")?;
                compared
            }
            "$" => self.change()?,
            _ => return Err(format!("{sign} where a step is wanted")),
        })
    }

    fn with_inner(&mut self, name: &str) -> Result<Option<Step>, Fault> {
        let made: fn(Box<Step>) -> Step = match name {
            "not" => Step::Not,
            "try" => Step::Try,
            "test" => Step::Test,
            "fail" => Step::Fail,
            "do" => Step::Do,
            "goto" => Step::Goto,
            "gopast" => Step::GoPast,
            "repeat" => Step::Repeat,
            "backwards" => Step::Backwards,
            "loop" | "atleast" => {
                let (times, inner) = (self.number()?, Box::new(self.step()?));
                let is_loop = name == "loop";
                let made = if is_loop { Step::Loop } else { Step::AtLeast };
                return Ok(Some(made(times, inner)));
            }
            "setlimit" => {
                let limit = Box::new(self.step()?);
                self.0.expect_next("for")?;
                return Ok(Some(Step::SetLimit(limit, Box::new(self.step()?))));
            }
            _ => return Ok(None),
        };
        Ok(Some(made(Box::new(self.step()?))))
    }

    fn of_name(&mut self, name: &str) -> Result<Step, Fault> {
        Ok(match name {
            "true" | "false" => Step::Constant(name == "true"),
            "set" | "unset" => match self.named()? {
                Named::Flag(number) => Step::SetFlag(number, name == "set"),
                other => return Err(format!("{other:?} for a flag")),
            },
            "non" => {
                self.0.takes("-");
                match self.named()? {
                    Named::Letters(number) => Step::Out(number),
                    other => return Err(format!("{other:?} for letters")),
                }
            }
            "delete" => Step::SliceFrom(Text::Literal(Vec::new())),
            "insert" => Step::Insert(self.text()?),
            "hop" => Step::Hop(self.number()?),
            "next" => Step::Hop(Number::Constant(1)),
            "tolimit" => Step::ToLimit,
            "atlimit" => Step::AtLimit,
            "tomark" => Step::ToMark(self.number()?),
            "atmark" => Step::AtMark(self.number()?),
            "setmark" => Step::Set(self.integer()?, Number::Cursor),
            "substring" => {
                self.0.program.amongs.push(Among::default());
                let number = self.0.program.amongs.len() - 1;
                self.0.waiting = Some(number);
                Step::Substring(number)
            }
            "among" => self.among()?,
            _ => match self.0.named(name)? {
                Named::String(number) => Step::Is(Text::Variable(number)),
                Named::Flag(number) => Step::Flag(number),
                Named::Routine(number) => Step::Call(number),
                Named::Letters(number) => Step::In(number),
                Named::Integer(_) => return Err(format!("{name} where a step is wanted")),
            },
        })
    }

    fn named(&mut self) -> Result<Named, Fault> {
        let name = self.0.name()?;
        self.0.named(&name)
    }

    fn string(&mut self) -> Result<usize, Fault> {
        match self.named()? {
            Named::String(number) => Ok(number),
            other => Err(format!("{other:?} for a string")),
        }
    }

    fn integer(&mut self) -> Result<usize, Fault> {
        match self.named()? {
            Named::Integer(number) => Ok(number),
            other => Err(format!("{other:?} for an integer")),
        }
    }

    fn text(&mut self) -> Result<Text, Fault> {
        if let Some(Symbol::Text(text)) = self.0.peek() {
            let text = text.clone().into_bytes();
            self.0.next()?;
            return Ok(Text::Literal(text));
        }
        self.string().map(Text::Variable)
    }

    /// `$name = number` and its kin, or a comparison.
    fn change(&mut self) -> Result<Step, Fault> {
        let number = self.integer()?;
        let own = || Box::new(Number::Variable(number));
        if self.0.takes("=") {
            return Ok(Step::Set(number, self.number()?));
        }
        if self.0.takes("+=") {
            return Ok(Step::Set(number, Number::Sum(own(), Box::new(self.number()?))));
        }
        if self.0.takes("-=") {
            return Ok(Step::Set(number, Number::Difference(own(), Box::new(self.number()?))));
        }
        self.comparison(Number::Variable(number))
    }

    fn comparison(&mut self, first: Number) -> Result<Step, Fault> {
        match self.0.next()? {
            Symbol::Sign(sign @ ("<" | "<=" | ">" | ">=" | "==" | "!=")) => {
                Ok(Step::Compare(first, sign, self.number()?))
            }
            other => Err(format!("{other:?} where a comparison is wanted")),
        }
    }

    fn number(&mut self) -> Result<Number, Fault> {
        let mut found = self.one_number()?;
        loop {
            found = match () {
                () if self.0.takes("+") => {
                    Number::Sum(Box::new(found), Box::new(self.one_number()?))
                }
                () if self.0.takes("-") => {
                    Number::Difference(Box::new(found), Box::new(self.one_number()?))
                }
                () => return Ok(found),
            };
        }
    }

    fn one_number(&mut self) -> Result<Number, Fault> {
        Ok(match self.0.next()? {
            Symbol::Number(number) => Number::Constant(number),
            Symbol::Name(name) => match name.as_str() {
                "cursor" => Number::Cursor,
                "limit" => Number::Limit,
                "len" => Number::Characters,
                "size" => Number::Bytes,
                "sizeof" => match self.text()? {
                    Text::Literal(bytes) => {
                        Number::Constant(i32::try_from(bytes.len()).unwrap_or(0))
                    }
                    Text::Variable(number) => Number::BytesOf(number),
                },
                name => match self.0.named(name)? {
                    Named::Integer(number) => Number::Variable(number),
                    other => return Err(format!("{other:?} for a number")),
                },
            },
            other => return Err(format!("{other:?} where a number is wanted")),
        })
    }

    fn among(&mut self) -> Result<Step, Fault> {
        self.0.expect_next("(")?;
        let mut steps = Vec::new();
        let number = match self.0.waiting.take() {
            Some(number) => number,
            None => {
                self.0.program.amongs.push(Among::default());
                steps.push(Step::Substring(self.0.program.amongs.len() - 1));
                self.0.program.amongs.len() - 1
            }
        };
        if self.0.takes("(") {
            steps.push(self.all()?);
        }
        let among = self.entries()?;
        self.0.program.amongs[number] = among;
        steps.push(Step::Among(number));
        Ok(Step::All(steps))
    }

    fn entries(&mut self) -> Result<Among, Fault> {
        let mut among = Among::default();
        // Those that what follows is for.
        let mut open: Vec<(Vec<u8>, Option<usize>)> = Vec::new();
        loop {
            let symbol = self.0.next()?;
            let action = match symbol {
                Symbol::Text(text) => {
                    open.push((text.into_bytes(), None));
                    continue;
                }
                Symbol::Name(name) => {
                    match (open.last_mut(), self.0.named(&name)?) {
                        (Some(last), Named::Routine(number)) => last.1 = Some(number),
                        other => return Err(format!("{other:?} among strings")),
                    }
                    continue;
                }
                Symbol::Sign("(") => {
                    among.actions.push(self.all()?);
                    Some(among.actions.len() - 1)
                }
                Symbol::Sign(")") => None,
                other => return Err(format!("{other:?} among strings")),
            };
            for (text, routine) in open.drain(..) {
                among.add(text, Entry { routine, action });
            }
            if action.is_none() {
                break;
            }
        }
        among.lengths.sort_unstable_by(|a, b| b.cmp(a));
        among.lengths.dedup();
        Ok(among)
    }
}
