//! Node trees: the text in which PostgreSQL stores parsed expressions, rules and defaults (`pg_node_tree`).
//!
//! ```text
//! node   {TAG :field value :field value …}
//! list   (node node …)   integers (i 1 2)   OIDs (o 1 2)   transactions (x 1 2)   bits (b 1 2)
//! datum  4 [ 7 0 0 0 0 0 0 0 ]    null <>    string "a\ b"    any other word: a number, a truth value, a name
//! ```
//!
//! A field may have more than one value, as datums and plain arrays do. What tags and fields mean differs from version
//! to version and is for the caller; how they are written does not.
//!
//! Invariants: nesting is bounded by [`MAX_DEPTH`]; a word that begins with a colon begins a field unless a backslash
//! stands before the colon.
//!
//! Source: `pg_strtok` and `nodeRead` in `src/backend/nodes/read.c`, `outToken`, `outDatum` and `_outList` in
//! `outfuncs.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};

const STRUCTURE: &str = "pg_node_tree";

/// Nodes and lists within each other, at most.
pub const MAX_DEPTH: usize = 500;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is: `OPEXPR`.
    pub tag: String,
    /// Its fields in their order.
    pub fields: Vec<Field>,
}

/// A field of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name, without the colon.
    pub name: String,
    /// Its values; mostly one.
    pub values: Vec<Value>,
}

/// A value of a field, or an element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `<>`: a null pointer, an empty list, an empty string before 16.
    Null,
    /// A word, without its backslashes.
    Word(Vec<u8>),
    /// What stands between double quotes, which are part of the word on the server.
    String(Vec<u8>),
    /// A node.
    Node(Node),
    /// A list; its kind is the letter of `i`, `o`, `x` or `b`, if it has one.
    List(Option<u8>, Vec<Value>),
}

impl Node {
    /// The values of a field; none for one that is not there.
    pub fn values(&self, field: &str) -> &[Value] {
        let found = self.fields.iter().find(|of| of.name == field);
        found.map_or(&[], |field| &field.values)
    }

    /// The only value of a field.
    pub fn value(&self, field: &str) -> Option<&Value> {
        match self.values(field) {
            [only] => Some(only),
            _ => None,
        }
    }

    /// A field that is one word.
    pub fn word(&self, field: &str) -> Option<&str> {
        match self.value(field)? {
            Value::Word(word) => std::str::from_utf8(word).ok(),
            _ => None,
        }
    }

    /// A field that is one number.
    pub fn number<T: std::str::FromStr>(&self, field: &str) -> Option<T> {
        self.word(field)?.parse().ok()
    }

    /// A field that is a truth value.
    pub fn truth(&self, field: &str) -> Option<bool> {
        match self.word(field)? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A field that is one node.
    pub fn node(&self, field: &str) -> Option<&Node> {
        match self.value(field)? {
            Value::Node(node) => Some(node),
            _ => None,
        }
    }

    /// A field that is a list of nodes, which may be empty.
    pub fn nodes(&self, field: &str) -> Option<Vec<&Node>> {
        let Value::List(None, elements) = self.value(field)? else {
            return (self.value(field) == Some(&Value::Null)).then(Vec::new);
        };
        let nodes = elements.iter().map(|value| match value {
            Value::Node(node) => Some(node),
            _ => None,
        });
        nodes.collect()
    }

    /// A field that is a datum: of a type passed by value the first bytes of eight, else those of the value, with its
    /// length word.
    pub fn datum(&self, field: &str) -> Option<Vec<u8>> {
        let [length, open, bytes @ .., close] = self.values(field) else { return None };
        let is = |value: &Value, text: &[u8]| matches!(value, Value::Word(word) if word == text);
        if !is(open, b"[") || !is(close, b"]") {
            return None;
        }
        let number = |value: &Value| match value {
            Value::Word(word) => std::str::from_utf8(word).ok()?.parse::<i64>().ok(),
            _ => None,
        };
        let length =
            usize::try_from(number(length)?).ok().filter(|length| *length <= bytes.len())?;
        // Bytes are written as the signed numbers that C has them for.
        let byte = |value| Some(i8::try_from(number(value)?).ok()? as u8);
        bytes.iter().take(length).map(byte).collect()
    }
}

/// Reads a tree.
///
/// # Errors
/// When the text is no value, or nested too deeply.
pub fn parse(text: &[u8]) -> Result<Value> {
    let mut parser = Parser { text, at: 0 };
    let first = parser.token().ok_or_else(|| parser.corrupt("nothing"))?;
    let value = parser.value(first, 0)?;
    match parser.token() {
        None => Ok(value),
        Some(_) => Err(parser.corrupt("more behind its end")),
    }
}

/// A token: where it begins, and its bytes as they stand.
type Token<'a> = &'a [u8];

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(STRUCTURE, self.at, what.to_owned())
    }

    /// The next token; nothing at the end.
    fn token(&mut self) -> Option<Token<'a>> {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\t');
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().take_while(is_space).count();
        let rest = self.text.get(self.at..)?;
        let len = match rest.first()? {
            b'(' | b')' | b'{' | b'}' => 1,
            _ => word_len(rest),
        };
        self.at += len;
        rest.get(..len)
    }

    fn peek(&mut self) -> Option<Token<'a>> {
        let at = self.at;
        let token = self.token();
        self.at = at;
        token
    }

    /// The value that begins with a token.
    fn value(&mut self, token: Token<'a>, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            return Err(Error::limit("a node tree nested too deeply"));
        }
        match token {
            b"{" => self.node(depth + 1).map(Value::Node),
            b"(" => self.list(depth + 1),
            b"}" | b")" => Err(self.corrupt("a closing brace where a value is due")),
            b"<>" => Ok(Value::Null),
            [b'"', inner @ .., b'"'] => Ok(Value::String(unescaped(inner))),
            word => Ok(Value::Word(unescaped(word))),
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node> {
        let tag = self.token().filter(|tag| !matches!(tag, [b'(' | b')' | b'{' | b'}' | b':', ..]));
        let tag = tag.ok_or_else(|| self.corrupt("a node without a tag"))?;
        let mut node = Node { tag: readable(tag), fields: Vec::new() };
        loop {
            match self.token() {
                None => return Err(self.corrupt("a node without an end")),
                Some(b"}") => return Ok(node),
                Some([b':', name @ ..]) => node.fields.push(self.field(name, depth)?),
                Some(_) => return Err(self.corrupt("a value without a field")),
            }
        }
    }

    fn field(&mut self, name: &[u8], depth: usize) -> Result<Field> {
        let mut values = Vec::new();
        while let Some(token) = self.peek().filter(|token| !matches!(token, [b'}' | b':', ..])) {
            self.token();
            values.push(self.value(token, depth)?);
        }
        Ok(Field { name: readable(name), values })
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        let mut kind = None;
        let mut elements = Vec::new();
        let mut is_first = true;
        loop {
            match self.token() {
                None => return Err(self.corrupt("a list without an end")),
                Some(b")") => return Ok(Value::List(kind, elements)),
                Some([letter @ (b'i' | b'o' | b'x' | b'b')]) if is_first => kind = Some(*letter),
                Some(token) => elements.push(self.value(token, depth)?),
            }
            is_first = false;
        }
    }
}

/// How long the word is that a text begins with: a backslash keeps the next byte in it.
fn word_len(text: &[u8]) -> usize {
    let mut len = 0;
    while let Some(byte) = text.get(len) {
        match byte {
            b' ' | b'\n' | b'\t' | b'(' | b')' | b'{' | b'}' => break,
            b'\\' => len += 2,
            _ => len += 1,
        }
    }
    len.min(text.len())
}

fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(word.len());
    let mut bytes = word.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(bytes.next()),
            _ => text.push(byte),
        }
    }
    text
}

fn readable(word: &[u8]) -> String {
    String::from_utf8_lossy(&unescaped(word)).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `CHECK (a > 0)` as a PostgreSQL 15 server stores it.
    const CHECK: &str = "{OPEXPR :opno 521 :opfuncid 147 :opresulttype 16 :opretset false :opcollid 0 :inputcollid 0 \
        :args ({VAR :varno 1 :varattno 1 :vartype 23 :vartypmod -1 :varcollid 0 :varlevelsup 0 :varnosyn 1 \
        :varattnosyn 1 :location 31} {CONST :consttype 23 :consttypmod -1 :constcollid 0 :constlen 4 :constbyval true \
        :constisnull false :location 35 :constvalue 4 [ -2 -1 -1 -1 -1 -1 -1 -1 ]}) :location 33}";

    fn node(text: &str) -> Node {
        match parse(text.as_bytes()).unwrap() {
            Value::Node(node) => node,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stored_expression_is_read_field_by_field() {
        let check = node(CHECK);
        assert_eq!((check.tag.as_str(), check.number("opno")), ("OPEXPR", Some(521)));
        assert_eq!(check.truth("opretset"), Some(false));
        let args = check.nodes("args").unwrap();
        assert_eq!((args[0].tag.as_str(), args[0].number("vartypmod")), ("VAR", Some(-1)));
        assert_eq!(args[1].datum("constvalue"), Some((-2_i32).to_le_bytes().to_vec()));
    }

    #[test]
    fn lists_strings_and_nulls_are_told_apart() {
        let read = node(
            r#"{X :a (i 1 -2) :b (o 7) :c <> :d "a\ b\"" :e (b 3) :f \<> :g 1 2 :h ({Y} <>) :i}"#,
        );
        let word = |text: &str| Value::Word(text.into());
        assert_eq!(read.value("a"), Some(&Value::List(Some(b'i'), vec![word("1"), word("-2")])));
        assert_eq!(read.value("c"), Some(&Value::Null));
        assert_eq!(read.value("d"), Some(&Value::String(b"a b\"".to_vec())));
        assert_eq!(read.value("f"), Some(&word("<>")));
        assert_eq!(read.values("g").len(), 2);
        assert!(matches!(read.value("h"), Some(Value::List(None, found)) if found.len() == 2));
        assert!(read.values("i").is_empty() && read.nodes("c").unwrap().is_empty());
    }

    #[test]
    fn what_does_not_end_or_nests_too_deeply_is_an_error() {
        let deep = "{A :a ".repeat(100_000);
        for text in
            ["", "{", "}", "{A", "{A :a (", "{A b}", "1 2", "{}", "{:a}", "(1", deep.as_str()]
        {
            assert!(parse(text.as_bytes()).is_err(), "{}", &text[..text.len().min(9)]);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[{}() :a<>\"\\\\0-9\\[\\]]{0,60}", at in 0_usize..500, byte: u8) {
            let _ = parse(text.as_bytes());
            let mut damaged = CHECK.as_bytes().to_vec();
            let at = at % damaged.len();
            damaged[at] = byte;
            if let Ok(Value::Node(node)) = parse(&damaged) {
                for field in &node.fields {
                    let _ = (node.datum(&field.name), node.nodes(&field.name), node.truth(&field.name));
                }
            }
        }
    }
}
