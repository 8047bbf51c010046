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
use super::jsonb::{check_text_length, write_json_string};

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
        self.body(Head { at, number, brackets }, kind, position, next > 0, &mut reader)?;
        self.floor = reader.pos();
        Ok(())
    }

    fn body(
        &mut self,
        head: Head,
        kind: Kind,
        position: Position,
        has_next: bool,
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        let dot = if position == Position::Behind { "." } else { "" };
        match kind {
            Kind::Word(text) => self.text(text),
            Kind::AnyKey => {
                self.text(dot);
                self.text("*");
            }
            Kind::String => self.string("", reader)?,
            Kind::Key => self.string(dot, reader)?,
            Kind::Variable => self.string("$", reader)?,
            Kind::Numeric => self.numeric(has_next, reader)?,
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
mod tests {
    use super::*;
    use crate::known_value_tests::{assert_known, mutation, mutations, payload};
    use proptest::prelude::*;

    /// Payloads and texts of a PostgreSQL 15 server.
    const KNOWN: &[(&str, &str)] = &[
        ("010000801b00000000000000", "$"),
        ("010000001b00000000000000", "strict $"),
        ("010000801b000000080000001900000000000000010000006100", r#"$."a""#),
        (
            "\
             010000801b00000008000000190000000e00000001000000610019000c0000000100000062001600\
             00000000",
            r#"$."a"."b".*"#,
        ),
        ("010000801b00000008000000180000000000000000000000ffffffff", "$.**"),
        ("010000801b0000000800000018000000000000000200000002000000", "$.**{2}"),
        ("010000801b0000000800000018000000000000000200000005000000", "$.**{2 to 5}"),
        ("010000801b000000080000001800000000000000ffffffffffffffff", "$.**{last}"),
        ("010000801b00000008000000180000000000000003000000ffffffff", "$.**{3 to last}"),
        ("010000801b000000080000001800000000000000ffffffff03000000", "$.**{last to 3}"),
        ("010000801b000000080000001500000000000000", "$[*]"),
        (
            "\
             010000801b0000000800000017000000000000000100000014000000000000000200000000000000\
             180000000080",
            "$[0]",
        ),
        (
            "\
             010000801b000000080000001700000000000000040000002c000000000000003a00000048000000\
             5000000000000000780000008e000000020000000000000018000000008002000000000020000000\
             0080010028000000000000000f000000000000001000000018000000280000000000000002000000\
             0000000020000000008001001b0000000800000019000000000000000100000078001b0006000000\
             19000000000000000300000079207a00",
            r#"$[0,1 to last,last - 1,$."x" to $."y z"]"#,
        ),
        (
            "\
             010000801b00000008000000190000000e0000000100000061001500060000001d00000000000000\
             0c000000040000000000000010000000440000000b0000000000000010000000260000001a000000\
             08000000190000000000000001000000780002000000000020000000008001000800000000000000\
             10000000260000001a00000008000000190000000000000001000000790001000000000001000000\
             7100",
            r#"$."a"[*]?(@."x" > 1 && @."y" == "q")"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c00000005000000000000001000000038000000\
             080000000000000010000000180000001a0000000000000002000000000000002000000000800100\
             04000000000000001000000038000000080000000000000010000000180000001a00000000000000\
             0200000000000000200000000080020006000000000000000c000000080000000000000010000000\
             180000001a0000000000000002000000000000002000000000800300",
            "$?(@ == 1 || @ == 2 && !(@ == 3))",
        ),
        (
            "\
             010000801b000000080000001d000000000000000c00000004000000000000001000000070000000\
             05000000000000001000000038000000080000000000000010000000180000001a00000000000000\
             02000000000000002000000000800100080000000000000010000000180000001a00000000000000\
             02000000000000002000000000800200080000000000000010000000180000001a00000000000000\
             02000000000000002000000000800300",
            "$?((@ == 1 || @ == 2) && @ == 3)",
        ),
        (
            "\
             010000800f0000000000000010000000600000000e00000000000000100000002000000002000000\
             00000000200000000080010010000000000000001000000020000000020000000000000020000000\
             00800200020000000000000020000000008003001200000000000000100000004000000011000000\
             00000000100000002000000002000000000000002000000000800400020000000000000020000000\
             0080050002000000000000002000000000800600",
            "((1 + 2 * 3) - (4 / 5) % 6)",
        ),
        (
            "\
             01000080100000000000000010000000400000000e00000000000000100000002000000002000000\
             00000000200000000080010002000000000000002000000000800200020000000000000020000000\
             00a00300",
            "((1 + 2) * -3)",
        ),
        (
            "\
             0100008014000000000000000c0000000e0000000000000010000000200000000200000000000000\
             200000000080010002000000000000002000000000800200",
            "(-(1 + 2))",
        ),
        (
            "0100008013000000000000000c0000001b000000080000001900000000000000010000006100",
            r#"(+$."a")"#,
        ),
        ("0100008002000000000000002000000000a00100", "-1"),
        ("0100008002000000100000002000000000a001002100000000000000", "(-1).abs()"),
        ("01000080020000000000000028000000008101008813", "1.50"),
        ("010000800200000012000000280000008080010088131f0000000000", "(1.5).type()"),
        ("010000800100000000000000050000006122620a0100", r#""a\"b\n\u0001""#),
        ("01000080030000000000000001", "true"),
        ("01000080030000000000000000", "false"),
        ("010000800000000000000000", "null"),
        ("010000801c00000000000000010000007600", r#"$"v""#),
        ("010000801c000000000000000300000061206200", r#"$"a b""#),
        (
            "\
             010000801b000000080000001d000000000000000c0000001e000000000000000c0000001a000000\
             080000001900000000000000010000006100",
            r#"$?(exists (@."a"))"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c00000007000000000000000c0000000b000000\
             0000000010000000260000001a000000080000001900000000000000010000006100020000000000\
             2000000000800100",
            r#"$?((@."a" > 1) is unknown)"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c00000029000000000000001000000018000000\
             1a00000000000000010000000000000002000000616200",
            r#"$?(@ starts with "ab")"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c00000029000000000000001000000018000000\
             1a000000000000001c00000000000000010000007800",
            r#"$?(@ starts with $"x")"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c0000002a00000000000000000000001b000000\
             060000005e612e2a5c64001a00000000",
            r#"$?(@ like_regex "^a.*\\d")"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c0000002a000000000000001100000018000000\
             03000000612b62001a00000000000000",
            r#"$?(@ like_regex "a+b" flag "iq")"#,
        ),
        (
            "\
             010000801b00000008000000190000000e0000000100000061001f00060000002000000008000000\
             21000000080000002200000008000000230000000800000024000000080000002600000000000000",
            r#"$."a".type().size().abs().floor().ceiling().double().keyvalue()"#,
        ),
        ("010000801b00000008000000250000000000000000000000", "$.datetime()"),
        (
            "\
             010000801b0000000800000025000000000000000c00000001000000000000000700000048483234\
             3a4d4900",
            r#"$.datetime("HH24:MI")"#,
        ),
        (
            "\
             01000080080000003400000010000000260000001b00000008000000190000000000000001000000\
             610002000000000020000000008001001f00000000000000",
            r#"($."a" == 1).type()"#,
        ),
        (
            "\
             010000800c0000000000000010000000260000001b00000008000000190000000000000001000000\
             61000200000000002000000000800100",
            r#"($."a" <= 1)"#,
        ),
        (
            "\
             010000800d0000000000000010000000260000001b00000008000000190000000000000001000000\
             61000200000000002000000000800100",
            r#"($."a" >= 1)"#,
        ),
        (
            "\
             01000080090000000000000010000000260000001b00000008000000190000000000000001000000\
             61000200000000002000000000800100",
            r#"($."a" != 1)"#,
        ),
        (
            "\
             010000801b000000080000001d000000000000000c0000000a000000000000001000000026000000\
             1a0000000800000019000000000000000100000061000200000000002000000000800100",
            r#"$?(@."a" < 1)"#,
        ),
    ];

    /// What only PostgreSQL 17 and later know.
    const KNOWN_17: &[(&str, &str)] = &[
        (
            "\
             010000801b000000080000002b000000080000002c000000080000002d000000080000002f000000\
             0800000030000000080000003100000000000000",
            "$.bigint().boolean().date().integer().number().string()",
        ),
        ("010000801b000000080000002e000000000000000000000000000000", "$.decimal()"),
        (
            "\
             010000801b000000080000002e000000000000001000000000000000020000000000000020000000\
             00800500",
            "$.decimal(5)",
        ),
        (
            "\
             010000801b000000080000002e000000000000001000000020000000020000000000000020000000\
             00a0050002000000000000002000000000a00200",
            "$.decimal(-5,-2)",
        ),
        (
            "\
             010000801b00000008000000320000000c0000000000000032000000000000000c00000002000000\
             000000002000000000800300",
            "$.time().time(3)",
        ),
        (
            "\
             010000801b00000008000000330000000c0000000000000033000000000000000c00000002000000\
             00000000180000000080",
            "$.time_tz().time_tz(0)",
        ),
        (
            "\
             010000801b00000008000000340000000c0000000000000034000000000000000c00000002000000\
             000000002000000000800600",
            "$.timestamp().timestamp(6)",
        ),
        (
            "\
             010000801b00000008000000350000000c0000000000000035000000000000000c00000002000000\
             000000002000000000800200",
            "$.timestamp_tz().timestamp_tz(2)",
        ),
    ];

    #[test]
    fn values_of_a_real_server_print_as_it_prints_them() {
        assert_known(write_jsonpath, KNOWN);
        assert_known(write_jsonpath, KNOWN_17);
    }

    #[test]
    fn version_14_puts_no_brackets_around_numbers() {
        let value = "0100008002000000100000002000000000a001002100000000000000";
        assert_known(write_jsonpath, &[(value, "(-1).abs()")]);
        assert_known(write_jsonpath_before_15, &[(value, "-1.abs()")]);
    }

    #[test]
    fn deep_nesting_prints_on_a_small_stack() {
        const DEPTH: usize = 100_000;
        let mut value = payload("01000080");
        for _ in 0..DEPTH {
            value.extend_from_slice(&payload("06000000000000000c000000"));
        }
        value.extend_from_slice(&payload("1b00000000000000"));
        let print = move || {
            let mut out = Vec::new();
            write_jsonpath(&value, &mut out).unwrap();
            out
        };
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(print).unwrap();
        let out = thread.join().unwrap();
        assert_eq!(out, ["!(".repeat(DEPTH), "$".into(), ")".repeat(DEPTH)].concat().into_bytes());
    }

    #[test]
    fn two_links_to_one_operand_are_damage() {
        // 1 + 1, both operands the same item.
        let shared = "010000800e0000000000000010000000100000000000000000000000";
        let error = write_jsonpath(&payload(shared), &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "corrupt jsonpath: a link to an item printed before (byte 20)");
    }

    #[test]
    fn other_versions_of_the_format_are_refused() {
        let value = payload("020000801b00000000000000");
        let error = write_jsonpath(&value, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "corrupt jsonpath: jsonpath version 2, where 1 is known (byte 0)");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(rest: Vec<u8>) {
            let value = [&[1, 0, 0, 0x80][..], &rest].concat();
            let _ = write_jsonpath(&value, &mut Vec::new());
        }

        #[test]
        fn damaged_values_never_panic(change in mutation(KNOWN.len())) {
            for value in mutations(KNOWN, &change) {
                let mut out = Vec::new();
                let _ = write_jsonpath(&value, &mut out);
                // Only a numeric prints as more than six times its bytes.
                prop_assert!(out.len() <= 6 * value.len() + 200_000 * (value.len() / 6 + 1));
            }
        }
    }
}
