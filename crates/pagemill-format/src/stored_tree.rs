//! Expressions and partition bounds as catalogs store them: texts of the type `pg_node_tree`.
//!
//! Only the shape is read here: nodes with named fields, lists, words, and the bytes of constants. What a node means is
//! for its reader to know. A field that a version adds or leaves out changes nothing for the others.
//!
//! Invariant: any bytes give a tree or an error, and nesting is limited.
//!
//! Source: `src/backend/nodes/read.c`, `outfuncs.c` and `readfuncs.c` (`_outConst`, `outDatum`), PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::varlena::Varlena;

const STRUCTURE: &str = "stored expression";
/// Nodes and lists within each other, at most.
const MOST_DEPTH: usize = 200;

/// A value in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// `<>`.
    Null,
    /// A number, a letter, a name.
    Word(String),
    /// `4 [ 1 0 0 0 0 0 0 0 ]`: a length and bytes.
    Bytes(usize, Vec<u8>),
    /// `( … )`.
    List(Vec<Tree>),
    /// `{NAME :field … }`.
    Node(Node),
}

/// A node with its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// `CONST`, `FUNCEXPR`.
    pub name: String,
    fields: Vec<(String, Tree)>,
}

/// A `CONST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// `consttype`.
    pub type_oid: Oid,
    /// The payload: of a type of variable length without its length word. `None` for NULL.
    pub payload: Option<Vec<u8>>,
}

impl Tree {
    /// Reads a text.
    ///
    /// # Errors
    /// Corrupt: it is no tree, or one nested too deeply.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut parser = Parser { text, at: 0 };
        let tree = parser.value(0)?;
        match parser.peek() {
            None => Ok(tree),
            Some(_) => Err(parser.corrupt("something behind the end")),
        }
    }

    /// The node, if it is one.
    pub fn node(&self) -> Option<&Node> {
        match self {
            Self::Node(node) => Some(node),
            _ => None,
        }
    }

    /// The elements of a list; none for what is no list.
    pub fn elements(&self) -> &[Tree] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }
}

impl Node {
    /// A field by its name, without colon.
    pub fn field(&self, name: &str) -> Option<&Tree> {
        self.fields.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }

    /// A field that is a number.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.field(name)? {
            Tree::Word(word) => word.parse().ok(),
            _ => None,
        }
    }

    /// A field that is an OID.
    pub fn oid(&self, name: &str) -> Option<Oid> {
        self.number(name).and_then(|number| u32::try_from(number).ok()).map(Oid)
    }

    /// A field that is true.
    pub fn is_true(&self, name: &str) -> bool {
        matches!(self.field(name), Some(Tree::Word(word)) if word == "true")
    }

    /// What a `CONST` says; `None` for another node, or one whose bytes are not as its length says.
    pub fn constant(&self) -> Option<Constant> {
        if self.name != "CONST" {
            return None;
        }
        let type_oid = self.oid("consttype")?;
        let payload = match self.field("constvalue")? {
            Tree::Null if self.is_true("constisnull") => None,
            Tree::Bytes(_, bytes) => Some(payload(bytes, self.number("constlen")?)?),
            _ => return None,
        };
        Some(Constant { type_oid, payload })
    }
}

/// A datum without what its type does not store: the end of a machine word, a length word, a zero behind a string.
fn payload(bytes: &[u8], len: i64) -> Option<Vec<u8>> {
    match usize::try_from(len) {
        Ok(len) => Some(bytes.get(..len)?.to_vec()),
        Err(_) if len == -1 => match Varlena::parse(bytes).ok()? {
            Varlena::Plain(payload) => Some(payload.to_vec()),
            _ => None,
        },
        Err(_) => None,
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(STRUCTURE, self.at, what)
    }

    /// The next byte that is no space, which stays.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\t' | 0)) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Result<Tree> {
        if depth > MOST_DEPTH {
            return Err(self.corrupt("nested too deeply"));
        }
        match self.peek() {
            None => Err(self.corrupt("it ends where a value should be")),
            Some(b'{') => Ok(Tree::Node(self.node(depth)?)),
            Some(b'(') => {
                self.at += 1;
                let mut elements = Vec::new();
                while self.peek() != Some(b')') {
                    elements.push(self.value(depth + 1)?);
                }
                self.at += 1;
                Ok(Tree::List(elements))
            }
            Some(_) => {
                let word = self.word()?;
                if word == "<>" {
                    return Ok(Tree::Null);
                }
                if self.peek() == Some(b'[') { self.bytes(&word) } else { Ok(Tree::Word(word)) }
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node> {
        self.at += 1;
        let name = self.word()?;
        let mut fields = Vec::new();
        while self.peek() != Some(b'}') {
            let field = self.word()?;
            let Some(field) = field.strip_prefix(':') else {
                return Err(self.corrupt("a field without a name"));
            };
            fields.push((field.to_owned(), self.value(depth + 1)?));
        }
        self.at += 1;
        Ok(Node { name, fields })
    }

    /// `[ 1 -1 ]` behind the length: bytes, as signed numbers.
    fn bytes(&mut self, length: &str) -> Result<Tree> {
        let length = length.parse().map_err(|_| self.corrupt("a length that is no number"))?;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let word = self.word()?;
            if word == "]" {
                return Ok(Tree::Bytes(length, bytes));
            }
            let number: i16 = word.parse().map_err(|_| self.corrupt("a byte that is no number"))?;
            bytes.push(number as u8);
        }
    }

    /// What stands up to the next space or bracket; a backslash takes its meaning from what follows.
    fn word(&mut self) -> Result<String> {
        self.peek();
        let mut word = Vec::new();
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\t' | b'(' | b')' | b'{' | b'}' | 0 => break,
                b'\\' => {
                    self.at += 1;
                    word.extend(self.text.get(self.at));
                }
                _ => word.push(byte),
            }
            self.at += 1;
        }
        match word.is_empty() {
            true => Err(self.corrupt("a word is missing")),
            false => Ok(String::from_utf8_lossy(&word).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_constant_has_the_bytes_that_a_tuple_would_have() {
        let text =
            b"{CONST :consttype 23 :consttypmod -1 :constcollid 0 :constlen 4 :constbyval true \
                     :constisnull false :location 47 :constvalue 4 [ -1 -1 -1 -1 -1 -1 -1 -1 ]}";
        let constant = Tree::parse(text).unwrap().node().unwrap().constant().unwrap();
        assert_eq!(constant, Constant { type_oid: Oid(23), payload: Some(vec![255; 4]) });
        let text = b"{CONST :consttype 25 :constlen -1 :constisnull false :constvalue 6 [ 24 0 0 0 97 98 ]}";
        let constant = Tree::parse(text).unwrap().node().unwrap().constant().unwrap();
        assert_eq!(constant.payload.as_deref(), Some(&b"ab"[..]));
        let text = b"{CONST :consttype 25 :constlen -1 :constisnull true :constvalue <>}";
        assert_eq!(Tree::parse(text).unwrap().node().unwrap().constant().unwrap().payload, None);
    }

    #[test]
    fn fields_are_found_by_name_and_lists_keep_their_order() {
        let text = b"{A :b ({C :d x\\ y} 7) :e <>}";
        let tree = Tree::parse(text).unwrap();
        let node = tree.node().unwrap();
        let list = node.field("b").unwrap().elements();
        assert_eq!(list[0].node().unwrap().field("d"), Some(&Tree::Word("x y".into())));
        assert_eq!((node.field("e"), list[1].clone()), (Some(&Tree::Null), Tree::Word("7".into())));
        assert!(Tree::parse(b"{A :b").is_err() && Tree::parse(b"a b").is_err());
        assert!(Tree::parse(&b"(".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_tree_or_an_error(text in "[{}()\\[\\]<>:a-c0-9 \\\\-]{0,60}") {
            let _ = Tree::parse(text.as_bytes()).map(|tree| tree.node().and_then(Node::constant));
        }
    }
}
