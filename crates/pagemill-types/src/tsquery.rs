//! `tsquery`, printed as `tsqueryout` prints it.
//!
//! A query is a tree in prefix order, each node 12 bytes, followed by the operands' texts:
//!
//! ```text
//! number of nodes | nodes | texts, each ended by a zero
//! operand   type 1 | weights | prefix | gap | checksum | 12 bits of length, 20 bits of place
//! operator  type 2 | operator | distance (2 bytes) | nodes to its left operand
//! ```
//!
//! The *right* operand of a binary operator is the node behind it, the left one follows that.
//!
//! Invariants: the nodes of an operand are those between its own and the next one's first, so
//! each is printed once; texts do not overlap in a sound value, so together they may not claim
//! more bytes than there are. Nesting costs heap, not stack.
//!
//! Sources: `src/include/tsearch/ts_type.h`, `src/backend/utils/adt/tsquery.c` (`infix`,
//! `tsearch_op_priority`), PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use super::tsvector::write_quoted;

const STRUCTURE: &str = "tsquery";
const NODE_BYTES: usize = 12;

/// Appends a `tsquery` as `tsqueryout` prints it.
///
/// # Errors
/// When the value is damaged.
pub fn write_tsquery(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new(STRUCTURE, value);
    let count = reader.u32()? as usize;
    let nodes = reader.bytes(count.saturating_mul(NODE_BYTES))?;
    let texts = reader.rest();
    if count == 0 {
        return Ok(());
    }
    let root = Tree { first: 0, end: count, around: 0, right_of_phrase: false };
    let mut printer =
        Printer { nodes, texts, unclaimed: texts.len(), out, tasks: vec![Task::Tree(root)] };
    while let Some(task) = printer.tasks.pop() {
        match task {
            Task::Text(text) => printer.out.extend_from_slice(text.as_bytes()),
            Task::Operator(operator) => operator.write(printer.out),
            Task::Tree(tree) => printer.tree(tree)?,
        }
    }
    Ok(())
}

/// The nodes of one operand, and what stands around it.
#[derive(Debug, Clone, Copy)]
struct Tree {
    first: usize,
    end: usize,
    /// The priority of the operator around it, 0 for none.
    around: u8,
    /// True for the right operand of a phrase operator, where order matters.
    right_of_phrase: bool,
}

/// What is still to be printed.
#[derive(Debug, Clone, Copy)]
enum Task {
    Text(&'static str),
    Operator(Operator),
    Tree(Tree),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Not,
    And,
    Or,
    Phrase(i16),
}

impl Operator {
    fn of(number: u8, distance: i16) -> Option<Self> {
        match number {
            1 => Some(Self::Not),
            2 => Some(Self::And),
            3 => Some(Self::Or),
            4 => Some(Self::Phrase(distance)),
            _ => None,
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

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Not => out.push(b'!'),
            Self::And => out.extend_from_slice(b" & "),
            Self::Or => out.extend_from_slice(b" | "),
            Self::Phrase(1) => out.extend_from_slice(b" <-> "),
            Self::Phrase(distance) => {
                out.extend_from_slice(b" <");
                out.extend_from_slice(itoa::Buffer::new().format(distance).as_bytes());
                out.extend_from_slice(b"> ");
            }
        }
    }
}

struct Printer<'a> {
    nodes: &'a [u8],
    texts: &'a [u8],
    /// Bytes of `texts` that no operand has claimed yet.
    unclaimed: usize,
    out: &'a mut Vec<u8>,
    /// The next one is the last.
    tasks: Vec<Task>,
}

impl Printer<'_> {
    fn tree(&mut self, tree: Tree) -> Result<()> {
        let mut node = Reader::new(STRUCTURE, self.nodes);
        node.seek(tree.first.saturating_mul(NODE_BYTES))?;
        match node.u8()? {
            1 if tree.end - tree.first == 1 => self.operand(&mut node),
            1 => Err(node.corrupt("nodes that belong to no operator")),
            2 => self.operator(tree, &mut node),
            kind => Err(node.corrupt(format!("unknown type {kind} of a node"))),
        }
    }

    fn operand(&mut self, node: &mut Reader<'_>) -> Result<()> {
        let (weights, prefix) = (node.u8()?, node.u8()?);
        node.bytes(5)?;
        let place = (node.u32()? >> 12) as usize;
        let mut texts = Reader::new(STRUCTURE, self.texts);
        texts.seek(place)?;
        let text = texts.cstr()?;
        let Some(left) = self.unclaimed.checked_sub(text.len() + 1) else {
            return Err(texts.corrupt("operands overlap"));
        };
        self.unclaimed = left;
        write_quoted(text, self.out);
        if prefix != 0 || weights != 0 {
            self.out.push(b':');
        }
        if prefix != 0 {
            self.out.push(b'*');
        }
        for (bit, letter) in [(8, b'A'), (4, b'B'), (2, b'C'), (1, b'D')] {
            if weights & bit != 0 {
                self.out.push(letter);
            }
        }
        Ok(())
    }

    fn operator(&mut self, tree: Tree, node: &mut Reader<'_>) -> Result<()> {
        let (number, distance) = (node.u8()?, node.i16()?);
        let Some(operator) = Operator::of(number, distance) else {
            return Err(node.corrupt(format!("unknown operator {number}")));
        };
        let to_left = node.u32()? as usize;
        let priority = operator.priority();
        let phrase = matches!(operator, Operator::Phrase(_));
        if priority < tree.around || (phrase && tree.right_of_phrase) {
            self.out.extend_from_slice(b"( ");
            self.tasks.push(Task::Text(" )"));
        }
        let behind = tree.first + 1;
        let inner = |first, end, right_of_phrase| {
            if first < end {
                Ok(Task::Tree(Tree { first, end, around: priority, right_of_phrase }))
            } else {
                Err(Error::corrupt(STRUCTURE, first, "an operator without its operand"))
            }
        };
        if operator == Operator::Not {
            operator.write(self.out);
            self.tasks.push(inner(behind, tree.end, false)?);
            return Ok(());
        }
        let middle = tree.first.saturating_add(to_left).min(tree.end);
        let right = inner(behind, middle, phrase)?;
        let left = inner(middle, tree.end, false)?;
        self.tasks.extend([right, Task::Operator(operator), left]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::{assert_known, mutation, mutations, payload};
    use proptest::prelude::*;

    /// Payloads and texts of a PostgreSQL 15 server.
    const KNOWN: &[(&str, &str)] = &[
        ("00000000", ""),
        ("0100000001000000bcbeb717010000006100", "'a'"),
        ("0200000002010000010000000000000001000000bcbeb717010000006100", "!'a'"),
        (
            "\
             0300000002010000010000000000000002010000010000000000000001000000bcbeb71701000000\
             6100",
            "!!'a'",
        ),
        (
            "\
             030000000202000002000000000000000100000006efbe8e0120000001000000bcbeb71701000000\
             61006200",
            "'a' & 'b'",
        ),
        (
            "\
             030000000203000002000000000000000100000006efbe8e0120000001000000bcbeb71701000000\
             61006200",
            "'a' | 'b'",
        ),
        (
            "\
             030000000204010002000000000000000100000006efbe8e0120000001000000bcbeb71701000000\
             61006200",
            "'a' <-> 'b'",
        ),
        (
            "\
             030000000204020002000000000000000100000006efbe8e0120000001000000bcbeb71701000000\
             61006200",
            "'a' <2> 'b'",
        ),
        (
            "\
             030000000204000002000000000000000100000006efbe8e0120000001000000bcbeb71701000000\
             61006200",
            "'a' <0> 'b'",
        ),
        (
            "\
             030000000204004002000000000000000100000006efbe8e0120000001000000bcbeb71701000000\
             61006200",
            "'a' <16384> 'b'",
        ),
        (
            "\
             050000000203000002000000000000000100000090dfb9f901400000020200000200000000000000\
             0100000006efbe8e0120000001000000bcbeb71701000000610062006300",
            "'a' & 'b' | 'c'",
        ),
        (
            "\
             050000000202000004000000000000000203000002000000000000000100000090dfb9f901400000\
             0100000006efbe8e0120000001000000bcbeb71701000000610062006300",
            "'a' & ( 'b' | 'c' )",
        ),
        (
            "\
             060000000202000003000000000000000201000001000000000000000100000090dfb9f901400000\
             0203000002000000000000000100000006efbe8e0120000001000000bcbeb7170100000061006200\
             6300",
            "( 'a' | 'b' ) & !'c'",
        ),
        (
            "\
             040000000201000001000000000000000202000002000000000000000100000006efbe8e01200000\
             01000000bcbeb7170100000061006200",
            "!( 'a' & 'b' )",
        ),
        (
            "\
             060000000202000002000000000000000100000090dfb9f901400000020100000100000000000000\
             0203000002000000000000000100000006efbe8e0120000001000000bcbeb7170100000061006200\
             6300",
            "!( 'a' | 'b' ) & 'c'",
        ),
        (
            "\
             050000000204010004000000000000000204010002000000000000000100000090dfb9f901400000\
             0100000006efbe8e0120000001000000bcbeb71701000000610062006300",
            "'a' <-> ( 'b' <-> 'c' )",
        ),
        (
            "\
             050000000204010002000000000000000100000090dfb9f901400000020401000200000000000000\
             0100000006efbe8e0120000001000000bcbeb71701000000610062006300",
            "'a' <-> 'b' <-> 'c'",
        ),
        (
            "\
             050000000204010004000000000000000202000002000000000000000100000090dfb9f901400000\
             0100000006efbe8e0120000001000000bcbeb71701000000610062006300",
            "'a' <-> ( 'b' & 'c' )",
        ),
        (
            "\
             050000000204010002000000000000000100000090dfb9f901400000020300000200000000000000\
             0100000006efbe8e0120000001000000bcbeb71701000000610062006300",
            "( 'a' | 'b' ) <-> 'c'",
        ),
        (
            "\
             040000000204010003000000000000000201000001000000000000000100000006efbe8e01200000\
             01000000bcbeb7170100000061006200",
            "'a' <-> !'b'",
        ),
        (
            "\
             040000000201000001000000000000000204010002000000000000000100000006efbe8e01200000\
             01000000bcbeb7170100000061006200",
            "!( 'a' <-> 'b' )",
        ),
        ("0100000001000100bcbeb717010000006100", "'a':*"),
        (
            "\
             030000000202000002000000000000000103010006efbe8e01200000010c0000bcbeb71701000000\
             61006200",
            "'a':AB & 'b':*CD",
        ),
        ("0100000001010000bcbeb717010000006100", "'a':D"),
        (
            "\
             0500000002030000020000000000000001000000e3f0a86f03900000020200000200000000000000\
             01000000606e3bfe035000000100000062f6d4ec040000006974277300625c730063206400",
            r#"'it''s' & 'b\\s' | 'c d'"#,
        ),
        (
            "\
             030000000204030002000000000000000100000001568ccb033000000100000067b1a54602000000\
             c3a900e6bca200",
            "'é' <3> '漢'",
        ),
        (
            "\
             0700000002030000020000000000000001000000334add6701600000020300000200000000000000\
             0100000090dfb9f9014000000203000002000000000000000100000006efbe8e0120000001000000\
             bcbeb717010000006100620063006400",
            "'a' | 'b' | 'c' | 'd'",
        ),
    ];

    #[test]
    fn values_of_a_real_server_print_as_it_prints_them() {
        assert_known(write_tsquery, KNOWN);
    }

    #[test]
    fn deep_nesting_prints_on_a_small_stack() {
        const DEPTH: usize = 100_000;
        let mut value = (DEPTH as u32 + 1).to_le_bytes().to_vec();
        for _ in 0..DEPTH {
            value.extend_from_slice(&payload("020100000100000000000000"));
        }
        value.extend_from_slice(&payload("01000000bcbeb717010000006100"));
        let print = move || {
            let mut out = Vec::new();
            write_tsquery(&value, &mut out).unwrap();
            out
        };
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(print).unwrap();
        assert_eq!(thread.join().unwrap(), ["!".repeat(DEPTH), "'a'".into()].concat().into_bytes());
    }

    #[test]
    fn an_operator_without_its_left_operand_is_damage() {
        // 'a' & nothing: the left operand would begin behind the last node.
        let value = "0200000002020000020000000000000001000000bcbeb717010000006100";
        assert!(write_tsquery(&payload(value), &mut Vec::new()).is_err());
    }

    #[test]
    fn two_operands_with_one_text_are_damage() {
        let value =
            "030000000202000002000000000000000100000006efbe8e0100000001000000bcbeb717010000006100";
        let error = write_tsquery(&payload(value), &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "corrupt tsquery: operands overlap (byte 2)");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>) {
            let _ = write_tsquery(&value, &mut Vec::new());
        }

        #[test]
        fn damaged_values_never_panic(change in mutation(KNOWN.len())) {
            for value in mutations(KNOWN, &change) {
                let mut out = Vec::new();
                let _ = write_tsquery(&value, &mut out);
                prop_assert!(out.len() <= 10 * value.len());
            }
        }
    }
}
