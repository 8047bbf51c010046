//! `jsonpath`, printed as `jsonpath_out` prints it.
//!
//! Behind a word of version and flags lie the items of the path:
//!
//! ```text
//! type (1 byte) | gap to a multiple of 4 | next item | what this type of item has
//! ```
//!
//! Links to the next item and to operands are distances in bytes from the item that holds them; 0
//! is "none". The numbers of the types have not changed since PostgreSQL 12; 17 appended the
//! methods from `.bigint()` on. Offsets here start behind the value's length word of four bytes,
//! so multiples of four agree with those of the value in memory.
//!
//! Invariants: items are stored in the order in which they are printed, and each one has to begin
//! behind the one printed before it. So every byte is printed at most once and the work ends,
//! however the links of a damaged value point. Nesting costs heap, not stack.
//!
//! Sources: `src/include/utils/jsonpath.h`, `src/backend/utils/adt/jsonpath.c`
//! (`flattenJsonPathParseItem`, `printJsonPathItem`, `operationPriority`), PostgreSQL 14 to 18.

mod kind;

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use self::kind::{Kind, priority};
use super::embedded::embedded_value;
use super::json::write_json_string;
use super::jsonb::check_text_length;

const STRUCTURE: &str = "jsonpath";
const VERSION: u32 = 1;
const LAX: u32 = 0x8000_0000;
/// Where the first item lies: behind the word of version and flags.
const FIRST_ITEM: usize = 4;
/// The letters of `like_regex`'s flags, from the lowest bit.
const REGEX_FLAGS: [u8; 5] = *b"ismxq";

/// Appends a `jsonpath` as PostgreSQL 15 to 18 print it.
///
/// # Errors
/// When the value is damaged.
pub fn write_jsonpath(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_path(value, true, out)
}

/// Appends a `jsonpath` as PostgreSQL 14 prints it: a number that a path continues has no brackets
/// (`1.type()`, where later versions print `(1).type()`).
///
/// # Errors
/// When the value is damaged.
pub fn write_jsonpath_before_15(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_path(value, false, out)
}

fn write_path(value: &[u8], numbers_bracketed: bool, out: &mut Vec<u8>) -> Result<()> {
    let header = Reader::new(STRUCTURE, value).u32()?;
    if header & !LAX != VERSION {
        let what = format!("jsonpath version {}, where {VERSION} is known", header & !LAX);
        return Err(Error::corrupt(STRUCTURE, 0, what));
    }
    let start = out.len();
    if header & LAX == 0 {
        out.extend_from_slice(b"strict ");
    }
    let root = Task::Item { at: FIRST_ITEM, position: Position::Start, brackets: true };
    let tasks = vec![root];
    let mut printer = Printer { value, numbers_bracketed, out, tasks, floor: FIRST_ITEM };
    while let Some(task) = printer.tasks.pop() {
        printer.run(task)?;
        check_text_length(STRUCTURE, printer.out.len() - start)?;
    }
    Ok(())
}

/// Where in a path an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// At the start of a path: a bare name.
    Start,
    /// Behind another item: `.name`.
    Behind,
}

/// What is still to be printed.
#[derive(Debug, Clone, Copy)]
enum Task {
    Text(&'static str),
    Item { at: usize, position: Position, brackets: bool },
    Pattern { at: usize, len: usize, flags: u32 },
}

/// The head of an item: what every type has.
#[derive(Debug, Clone, Copy)]
struct Head {
    at: usize,
    number: u8,
    position: Position,
    /// The path goes on behind it.
    has_next: bool,
    brackets: bool,
}

struct Printer<'a> {
    value: &'a [u8],
    /// Whether a number stands in brackets where the path continues behind it.
    numbers_bracketed: bool,
    out: &'a mut Vec<u8>,
    /// The next one is the last.
    tasks: Vec<Task>,
    /// Where the next item may begin at the earliest.
    floor: usize,
}

impl Printer<'_> {
    fn run(&mut self, task: Task) -> Result<()> {
        match task {
            Task::Text(text) => self.out.extend_from_slice(text.as_bytes()),
            Task::Item { at, position, brackets } => self.item(at, position, brackets)?,
            Task::Pattern { at, len, flags } => self.pattern(at, len, flags),
        }
        Ok(())
    }

    fn item(&mut self, at: usize, position: Position, brackets: bool) -> Result<()> {
        if at < self.floor {
            return Err(Error::corrupt(STRUCTURE, at, "a link to an item printed before"));
        }
        let mut reader = Reader::new(STRUCTURE, self.value);
        reader.seek(at)?;
        let number = reader.u8()?;
        let Some(kind) = Kind::of(number) else {
            return Err(Error::corrupt(STRUCTURE, at, format!("unknown item type {number}")));
        };
        reader.align(4);
        let next = reader.i32()?;
        if next > 0 {
            let at = self.linked(at, next)?;
            self.tasks.push(Task::Item { at, position: Position::Behind, brackets: true });
        }
        let head = Head { at, number, position, has_next: next > 0, brackets };
        self.body(head, kind, &mut reader)?;
        self.floor = reader.pos();
        Ok(())
    }

    fn body(&mut self, head: Head, kind: Kind, reader: &mut Reader<'_>) -> Result<()> {
        let dot = if head.position == Position::Behind { "." } else { "" };
        match kind {
            Kind::Word(text) => self.text(text),
            Kind::AnyKey => {
                self.text(dot);
                self.text("*");
            }
            Kind::String => self.string("", reader)?,
            Kind::Key => self.string(dot, reader)?,
            Kind::Variable => self.string("$", reader)?,
            Kind::Numeric => self.numeric(head.has_next, reader)?,
            Kind::Bool => {
                let text = if reader.u8()? != 0 { "true" } else { "false" };
                self.text(text);
            }
            Kind::AnyLevels => self.any_levels(dot, reader)?,
            Kind::Binary(operator) => self.binary(head, operator, reader)?,
            Kind::Sign(sign) => self.sign(head, sign, reader)?,
            Kind::Enclosed(before, after) => self.enclosed(head, before, after, reader)?,
            Kind::Method(name) => self.method(head, name, reader)?,
            Kind::MethodOfTwo(name) => self.method_of_two(head, name, reader)?,
            Kind::Subscripts => self.subscripts(head, reader)?,
            Kind::LikeRegex => self.like_regex(head, reader)?,
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn string(&mut self, before: &str, reader: &mut Reader<'_>) -> Result<()> {
        let len = reader.u32()? as usize;
        self.text(before);
        write_json_string(reader.bytes(len)?, self.out);
        Ok(())
    }

    fn numeric(&mut self, has_next: bool, reader: &mut Reader<'_>) -> Result<()> {
        let mut rest = reader.clone();
        let (payload, len) = embedded_value(STRUCTURE, rest.rest())?;
        reader.bytes(len)?;
        let brackets = has_next && self.numbers_bracketed;
        self.text(if brackets { "(" } else { "" });
        super::numeric::write_numeric(payload, self.out)?;
        self.text(if brackets { ")" } else { "" });
        Ok(())
    }

    fn any_levels(&mut self, dot: &str, reader: &mut Reader<'_>) -> Result<()> {
        const LAST: u32 = u32::MAX;
        let text = match (reader.u32()?, reader.u32()?) {
            (0, LAST) => format!("{dot}**"),
            (LAST, LAST) => format!("{dot}**{{last}}"),
            (first, last) if first == last => format!("{dot}**{{{first}}}"),
            (LAST, last) => format!("{dot}**{{last to {last}}}"),
            (first, LAST) => format!("{dot}**{{{first} to last}}"),
            (first, last) => format!("{dot}**{{{first} to {last}}}"),
        };
        self.text(&text);
        Ok(())
    }

    fn binary(
        &mut self,
        head: Head,
        operator: &'static str,
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        let left = self.operand(head, reader.i32()?)?;
        let right = self.operand(head, reader.i32()?)?;
        self.bracketed(head, &[left, Task::Text(operator), right]);
        Ok(())
    }

    fn sign(&mut self, head: Head, sign: &'static str, reader: &mut Reader<'_>) -> Result<()> {
        let operand = self.operand(head, reader.i32()?)?;
        self.bracketed(head, &[Task::Text(sign), operand]);
        Ok(())
    }

    fn enclosed(
        &mut self,
        head: Head,
        before: &'static str,
        after: &'static str,
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        self.text(before);
        let operand = self.argument(head, reader.i32()?)?;
        self.later(&[operand, Task::Text(after)]);
        Ok(())
    }

    fn method(&mut self, head: Head, name: &'static str, reader: &mut Reader<'_>) -> Result<()> {
        self.text(name);
        let argument = self.optional(head, reader.i32()?)?;
        self.later(&[argument, Task::Text(")")]);
        Ok(())
    }

    fn method_of_two(
        &mut self,
        head: Head,
        name: &'static str,
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        self.text(name);
        let first = self.optional(head, reader.i32()?)?;
        let link = reader.i32()?;
        let second = self.optional(head, link)?;
        let comma = Task::Text(if link == 0 { "" } else { "," });
        self.later(&[first, comma, second, Task::Text(")")]);
        Ok(())
    }

    fn subscripts(&mut self, head: Head, reader: &mut Reader<'_>) -> Result<()> {
        let count = reader.u32()? as usize;
        let mut links = Reader::new(STRUCTURE, reader.bytes(count.saturating_mul(8))?);
        let start = self.tasks.len();
        for i in 0..count {
            if i > 0 {
                self.tasks.push(Task::Text(","));
            }
            let from = self.argument(head, links.i32()?)?;
            self.tasks.push(from);
            let to = links.i32()?;
            if to != 0 {
                let to = self.argument(head, to)?;
                self.tasks.extend([Task::Text(" to "), to]);
            }
        }
        self.text("[");
        self.tasks.push(Task::Text("]"));
        if let Some(new) = self.tasks.get_mut(start..) {
            new.reverse();
        }
        Ok(())
    }

    fn like_regex(&mut self, head: Head, reader: &mut Reader<'_>) -> Result<()> {
        let flags = reader.u32()?;
        let operand = self.operand(head, reader.i32()?)?;
        let len = reader.u32()? as usize;
        let at = reader.pos();
        reader.bytes(len)?;
        self.bracketed(
            head,
            &[operand, Task::Text(" like_regex "), Task::Pattern { at, len, flags }],
        );
        Ok(())
    }

    fn pattern(&mut self, at: usize, len: usize, flags: u32) {
        let pattern = self.value.get(at..at.saturating_add(len)).unwrap_or_default();
        write_json_string(pattern, self.out);
        if flags == 0 {
            return;
        }
        self.text(" flag \"");
        for (bit, letter) in REGEX_FLAGS.into_iter().enumerate() {
            if flags & (1 << bit) != 0 {
                self.out.push(letter);
            }
        }
        self.text("\"");
    }

    /// An operand of an operator: in brackets unless it binds stronger.
    fn operand(&self, head: Head, link: i32) -> Result<Task> {
        let at = self.linked(head.at, link)?;
        let number = self.value.get(at).copied().unwrap_or(u8::MAX);
        let brackets = priority(number) <= priority(head.number);
        Ok(Task::Item { at, position: Position::Start, brackets })
    }

    /// An operand that something encloses already.
    fn argument(&self, head: Head, link: i32) -> Result<Task> {
        let at = self.linked(head.at, link)?;
        Ok(Task::Item { at, position: Position::Start, brackets: false })
    }

    /// An argument, or nothing for a link of 0.
    fn optional(&self, head: Head, link: i32) -> Result<Task> {
        if link == 0 { Ok(Task::Text("")) } else { self.argument(head, link) }
    }

    /// Where a link of the item at `at` leads.
    fn linked(&self, at: usize, link: i32) -> Result<usize> {
        match usize::try_from(link).ok().filter(|&link| link > 0).and_then(|l| at.checked_add(l)) {
            Some(target) if target < self.value.len() => Ok(target),
            _ => Err(Error::corrupt(STRUCTURE, at, format!("link {link} leads nowhere"))),
        }
    }

    /// Has `tasks` done next, in this order.
    fn later(&mut self, tasks: &[Task]) {
        self.tasks.extend(tasks.iter().rev());
    }

    /// Has `tasks` done next, in brackets where the item needs them.
    fn bracketed(&mut self, head: Head, tasks: &[Task]) {
        if head.brackets {
            self.text("(");
            self.tasks.push(Task::Text(")"));
        }
        self.later(tasks);
    }
}

#[cfg(test)]
mod tests;
