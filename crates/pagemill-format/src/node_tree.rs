//! `pg_node_tree`: the text in which catalogs keep expressions and partition bounds.
//!
//! ```text
//! {CONST :consttype 23 … :constisnull false :constvalue 4 [ 1 0 0 0 0 0 0 0 ]}
//!   name  label    values          label         values
//! ```
//!
//! A node is a name and fields, a field a label and one value or more; lists are in parentheses, `<>` is nothing.
//! The text is taken apart without knowing what a node of some name must have, so that one reader serves all versions.
//!
//! Invariants: what follows a label is a value, whatever it begins with, as a string may begin with a colon; no text,
//! however damaged, panics or nests deeper than [`MAX_DEPTH`].
//!
//! Sources: `pg_strtok` in `src/backend/nodes/read.c`, `outToken` and `outDatum` in `outfuncs.c`, `_readConst` in
//! `readfuncs.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::varlena::{self, Varlena};

/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 400;

const STRUCTURE: &str = "pg_node_tree";

/// A node, or what stands in a field or list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node<'t> {
    /// `<>`: nothing.
    Null,
    /// A word as it is written, see [`text_of`].
    Token(&'t [u8]),
    /// What is in parentheses. Lists of numbers begin with the token `i`, `o`, `x` or `b`.
    List(Vec<Node<'t>>),
    /// What is in braces.
    Struct(NodeStruct<'t>),
}

/// What is in braces: `{NAME :label value …}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStruct<'t> {
    /// The type of node, in capitals: `CONST`.
    pub name: &'t [u8],
    /// The labels without their colons, each with its values.
    pub fields: Vec<(&'t [u8], Vec<Node<'t>>)>,
}

/// A constant: `{CONST …}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Const {
    /// `consttype`.
    pub type_oid: Oid,
    /// `consttypmod`, -1 for none.
    pub type_modifier: i32,
    /// `constcollid`, 0 for none.
    pub collation: Oid,
    /// `constlen`, as `pg_type.typlen`.
    pub len: i16,
    /// The value as it would lie in a tuple, with the header of a varlena; `None` for NULL.
    pub value: Option<Vec<u8>>,
}

impl<'t> Node<'t> {
    /// Reads a whole text.
    ///
    /// # Errors
    /// When it is not one node, or nests too deeply.
    pub fn parse(text: &'t [u8]) -> Result<Self> {
        let mut tokens = Tokens { text, at: 0 };
        let first = tokens.required()?;
        let node = node(first, &mut tokens, 0)?;
        match tokens.next() {
            None => Ok(node),
            Some(_) => Err(tokens.corrupt("something behind the end of the node")),
        }
    }

    /// The node in braces, where it is of this name.
    ///
    /// # Errors
    /// For anything else.
    pub fn as_struct(&self, name: &str) -> Result<&NodeStruct<'t>> {
        match self {
            Self::Struct(found) if found.name == name.as_bytes() => Ok(found),
            _ => Err(Error::corrupt(STRUCTURE, 0, format!("no {name} where one must be"))),
        }
    }

    /// The node in braces, whatever its name; `None` for anything else.
    pub fn structure(&self) -> Option<&NodeStruct<'t>> {
        match self {
            Self::Struct(found) => Some(found),
            _ => None,
        }
    }

    /// The members of a list; none for `<>`.
    ///
    /// # Errors
    /// For anything else.
    pub fn as_list(&self) -> Result<&[Node<'t>]> {
        match self {
            Self::Null => Ok(&[]),
            Self::List(members) => Ok(members),
            _ => Err(Error::corrupt(STRUCTURE, 0, "no list where one must be")),
        }
    }

    fn as_token(&self) -> Option<&'t [u8]> {
        match self {
            Self::Token(token) => Some(token),
            _ => None,
        }
    }
}

impl<'t> NodeStruct<'t> {
    /// The values of a field.
    pub fn values(&self, label: &str) -> Option<&[Node<'t>]> {
        let found = self.fields.iter().find(|(name, _)| *name == label.as_bytes());
        found.map(|(_, values)| &**values)
    }

    /// The one value of a field.
    ///
    /// # Errors
    /// When there is no such field, or it has several values.
    pub fn value(&self, label: &str) -> Result<&Node<'t>> {
        match self.values(label) {
            Some([only]) => Ok(only),
            _ => Err(self.corrupt(label)),
        }
    }

    /// A field that is one node in braces.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn node(&self, label: &str) -> Result<&NodeStruct<'t>> {
        match self.value(label)? {
            Node::Struct(found) => Ok(found),
            _ => Err(self.corrupt(label)),
        }
    }

    /// A field that is a list of nodes in braces; none for `<>`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn nodes(&self, label: &str) -> Result<Vec<&NodeStruct<'t>>> {
        let members = self.value(label)?.as_list()?.iter();
        let found: Option<_> = members.map(Node::structure).collect();
        found.ok_or_else(|| self.corrupt(label))
    }

    /// A field that is a number.
    ///
    /// # Errors
    /// When it is none, or out of the range of its type.
    pub fn number<N: std::str::FromStr>(&self, label: &str) -> Result<N> {
        let token = self.value(label)?.as_token();
        let text = token.and_then(|token| std::str::from_utf8(token).ok());
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.corrupt(label))
    }

    /// A field that is an OID.
    ///
    /// # Errors
    /// When it is no number.
    pub fn oid(&self, label: &str) -> Result<Oid> {
        self.number(label).map(Oid)
    }

    /// A field that is `true` or `false`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn boolean(&self, label: &str) -> Result<bool> {
        match self.value(label)?.as_token() {
            Some(b"true") => Ok(true),
            Some(b"false") => Ok(false),
            _ => Err(self.corrupt(label)),
        }
    }

    /// A field that is one character; `None` for `<>`, which is the character zero.
    ///
    /// # Errors
    /// When it is longer.
    pub fn character(&self, label: &str) -> Result<Option<u8>> {
        match self.value(label)? {
            Node::Null => Ok(None),
            Node::Token([only] | [b'\\', only]) => Ok(Some(*only)),
            _ => Err(self.corrupt(label)),
        }
    }

    fn corrupt(&self, label: &str) -> Error {
        let name = String::from_utf8_lossy(self.name);
        Error::corrupt(STRUCTURE, 0, format!("{name} without a sound :{label}"))
    }
}

impl Const {
    /// Reads a constant.
    ///
    /// # Errors
    /// When the node is none, or its value is not as long as it says.
    pub fn read(node: &Node<'_>) -> Result<Self> {
        Self::of(node.as_struct("CONST")?)
    }

    /// Reads a constant from what is in its braces.
    ///
    /// # Errors
    /// When the node is none, or its value is not as long as it says.
    pub fn of(node: &NodeStruct<'_>) -> Result<Self> {
        if node.name != b"CONST" {
            return Err(Error::corrupt(STRUCTURE, 0, "no CONST where one must be"));
        }
        let len: i16 = node.number("constlen")?;
        let by_value = node.boolean("constbyval")?;
        let value = match node.boolean("constisnull")? {
            true => None,
            false => Some(datum(node, by_value.then_some(len))?),
        };
        let is_short = |value: &Vec<u8>| usize::try_from(len).is_ok_and(|len| len != value.len());
        if value.as_ref().is_some_and(is_short) {
            return Err(node.corrupt("constvalue"));
        }
        Ok(Self {
            type_oid: node.oid("consttype")?,
            type_modifier: node.number("consttypmod")?,
            collation: node.oid("constcollid")?,
            len,
            value,
        })
    }

    /// The value without the header of a varlena or the zero behind a C string; `None` for NULL.
    ///
    /// # Errors
    /// When the header is not that of a varlena kept in line.
    pub fn payload(&self) -> Result<Option<Cow<'_, [u8]>>> {
        let Some(value) = &self.value else { return Ok(None) };
        let payload = match self.len {
            -1 => match Varlena::parse(value)? {
                Varlena::Plain(payload) => Cow::Borrowed(payload),
                Varlena::Compressed { raw_bytes, method, data } => {
                    let mut payload = Vec::new();
                    varlena::decompress(method, data, raw_bytes, &mut payload)?;
                    Cow::Owned(payload)
                }
                Varlena::External(_) => {
                    return Err(Error::corrupt(STRUCTURE, 0, "a TOAST pointer in a constant"));
                }
            },
            -2 => Cow::Borrowed(value.split_last().map_or(&value[..], |(_, text)| text)),
            _ => Cow::Borrowed(&value[..]),
        };
        Ok(Some(payload))
    }
}

/// `length [ byte byte … ]`. One that is passed by value has all eight bytes of its `Datum`, of which the first count.
fn datum(node: &NodeStruct<'_>, by_value: Option<i16>) -> Result<Vec<u8>> {
    let fault = || node.corrupt("constvalue");
    let number = |node: &Node<'_>| -> Option<i64> {
        std::str::from_utf8(node.as_token()?).ok()?.parse().ok()
    };
    let values = node.values("constvalue").ok_or_else(fault)?;
    let [length, Node::Token(b"["), bytes @ .., Node::Token(b"]")] = values else {
        return Err(fault());
    };
    // Written as the signed characters of C.
    let byte = |node: &Node<'_>| match number(node)? {
        value @ -128..=255 => Some(value as u8),
        _ => None,
    };
    let bytes = bytes.iter().map(byte).collect::<Option<Vec<u8>>>().ok_or_else(fault)?;
    let length =
        number(length).and_then(|length| usize::try_from(length).ok()).ok_or_else(fault)?;
    let kept = match by_value {
        Some(len) => usize::try_from(len).ok().filter(|len| *len <= length),
        None => (length == bytes.len()).then_some(length),
    };
    kept.and_then(|kept| bytes.get(..kept)).map(<[u8]>::to_vec).ok_or_else(fault)
}

/// A token without its backslashes and, where it is a string, without its quotes.
pub fn text_of(token: &[u8]) -> Cow<'_, [u8]> {
    let inner = match token {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    };
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(bytes.next()),
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}

/// The node that begins with this token.
fn node<'t>(token: &'t [u8], tokens: &mut Tokens<'t>, depth: usize) -> Result<Node<'t>> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(STRUCTURE, format!("more than {MAX_DEPTH} levels")));
    }
    match token {
        b"<>" => Ok(Node::Null),
        b"(" => list(tokens, depth),
        b"{" => node_struct(tokens, depth),
        b")" | b"}" => Err(tokens.corrupt("a closing parenthesis or brace too many")),
        other => Ok(Node::Token(other)),
    }
}

fn list<'t>(tokens: &mut Tokens<'t>, depth: usize) -> Result<Node<'t>> {
    let mut members = Vec::new();
    loop {
        match tokens.required()? {
            b")" => return Ok(Node::List(members)),
            token => members.push(node(token, tokens, depth + 1)?),
        }
    }
}

fn node_struct<'t>(tokens: &mut Tokens<'t>, depth: usize) -> Result<Node<'t>> {
    let name = tokens.required()?;
    if matches!(name, b"(" | b")" | b"{" | b"}") {
        return Err(tokens.corrupt("a node without a name"));
    }
    let mut fields: Vec<(&[u8], Vec<Node<'_>>)> = Vec::new();
    loop {
        let token = tokens.required()?;
        match (token, fields.last_mut()) {
            (b"}", _) => return Ok(Node::Struct(NodeStruct { name, fields })),
            (_, Some((_, values))) if values.is_empty() => {
                values.push(node(token, tokens, depth + 1)?);
            }
            ([b':', label @ ..], _) => fields.push((label, Vec::new())),
            (_, Some((_, values))) => values.push(node(token, tokens, depth + 1)?),
            (_, None) => return Err(tokens.corrupt("a value without a label")),
        }
    }
}

struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Tokens<'t> {
    fn required(&mut self) -> Result<&'t [u8]> {
        self.next().ok_or_else(|| self.corrupt("the text ends within a node"))
    }

    fn next(&mut self) -> Option<&'t [u8]> {
        let rest = self.text.get(self.at..)?;
        let blanks = rest.iter().take_while(|byte| b" \n\t".contains(byte)).count();
        let rest = rest.get(blanks..)?;
        let length = match rest.first()? {
            b'(' | b')' | b'{' | b'}' => 1,
            _ => word_length(rest),
        };
        self.at += blanks + length;
        rest.get(..length)
    }

    fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(STRUCTURE, self.at, what)
    }
}

fn word_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b' ' | b'\n' | b'\t' | b'(' | b')' | b'{' | b'}' => break,
            b'\\' if at + 1 < rest.len() => at += 2,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NUMBER: &[u8] =
        b"{CONST :consttype 23 :consttypmod -1 :constcollid 0 :constlen 4 :constbyval true \
        :constisnull false :location -1 :constvalue 4 [ -1 1 0 0 0 0 0 0 ]}";

    #[test]
    fn a_constant_passed_by_value_is_the_first_bytes_of_its_datum() {
        let node = Node::parse(NUMBER).unwrap();
        let read = Const::read(&node).unwrap();
        assert_eq!((read.type_oid, read.type_modifier, read.len), (Oid(23), -1, 4));
        assert_eq!(read.payload().unwrap().unwrap(), &[255, 1, 0, 0][..]);
    }

    #[test]
    fn a_constant_passed_by_reference_is_without_its_header_and_null_is_none() {
        let text = b"{CONST :consttype 25 :consttypmod -1 :constcollid 100 :constlen -1 :constbyval false \
            :constisnull false :location 7 :constvalue 7 [ 28 0 0 0 97 98 -61 ]}";
        let node = Node::parse(text).unwrap();
        let read = Const::read(&node).unwrap();
        assert_eq!(read.collation, Oid(100));
        assert_eq!(read.payload().unwrap().unwrap(), &b"ab\xc3"[..]);
        let null = b"{CONST :consttype 25 :consttypmod -1 :constcollid 100 :constlen -1 :constbyval false \
            :constisnull true :location 7 :constvalue <>}";
        let node = Node::parse(null).unwrap();
        assert_eq!(Const::read(&node).unwrap().payload().unwrap(), None);
    }

    #[test]
    fn a_value_may_look_like_a_label_and_a_string_has_backslashes() {
        let node = Node::parse(br#"{A :name :b :list ("x\ y" <> (i 1 2)) :last {B}}"#).unwrap();
        let node = node.as_struct("A").unwrap();
        assert_eq!(node.value("name").unwrap(), &Node::Token(b":b"));
        let list = node.value("list").unwrap().as_list().unwrap();
        let [Node::Token(text), Node::Null, numbers] = list else { panic!("{list:?}") };
        assert_eq!(&*text_of(text), b"x y");
        assert_eq!(numbers.as_list().unwrap().len(), 3);
        assert!(node.value("last").unwrap().as_struct("B").unwrap().fields.is_empty());
    }

    /// `CHECK (a > -2)` as a PostgreSQL 15 server stores it.
    #[test]
    fn a_stored_expression_is_read_field_by_field() {
        let text = "{OPEXPR :opno 521 :opfuncid 147 :opresulttype 16 :opretset false :opcollid 0 :inputcollid 0 \
            :args ({VAR :varno 1 :varattno 1 :vartype 23 :vartypmod -1 :varcollid 0 :varlevelsup 0 :varnosyn 1 \
            :varattnosyn 1 :location 31} {CONST :consttype 23 :consttypmod -1 :constcollid 0 :constlen 4 \
            :constbyval true :constisnull false :location 35 :constvalue 4 [ -2 -1 -1 -1 -1 -1 -1 -1 ]}) :location 33}";
        let node = Node::parse(text.as_bytes()).unwrap();
        let check = node.structure().unwrap();
        assert_eq!((check.name, check.oid("opno").unwrap()), (&b"OPEXPR"[..], Oid(521)));
        assert!(!check.boolean("opretset").unwrap() && check.node("args").is_err());
        let args = check.nodes("args").unwrap();
        assert_eq!((args[0].name, args[0].number("vartypmod").unwrap()), (&b"VAR"[..], -1));
        assert_eq!(Const::of(args[1]).unwrap().value, Some((-2_i32).to_le_bytes().to_vec()));
        assert!(check.nodes("opno").is_err() && Const::of(args[0]).is_err());
    }

    #[test]
    fn what_is_cut_off_or_too_deep_is_an_error() {
        for end in 0..NUMBER.len() {
            assert!(Node::parse(&NUMBER[..end]).is_err(), "{end}");
        }
        assert!(Node::parse(b"{A :b} c").is_err());
        assert!(Node::parse(&b"(".repeat(1_000_000)).is_err());
        assert!(Node::parse(&b"{A :b ".repeat(1_000_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, damage in prop::collection::vec((0..NUMBER.len(), any::<u8>()), 0..4)) {
            let _ = Node::parse(&bytes);
            let mut text = NUMBER.to_vec();
            for (at, byte) in damage {
                text[at] = byte;
            }
            if let Ok(node) = Node::parse(&text) && let Ok(read) = Const::read(&node) {
                let _ = read.payload();
            }
        }
    }
}
