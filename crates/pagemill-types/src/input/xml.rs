//! `xml` from its text, which is kept as it is once it was found to be well-formed content.
//!
//! The server asks libxml2, with namespaces left aside and `xmloption` CONTENT. The parsers at hand
//! that check as much also insist on declared prefixes, so this is a checker of its own. Checked are:
//! the XML declaration; that tags match and nest no deeper than [`MAX_DEPTH`]; names; attributes (quoted,
//! apart from each other, each there once); references (the five that XML defines and numbers of
//! characters); comments, CDATA sections and processing instructions; characters that XML does not have.
//! With a DOCTYPE in front the text has to be a document, of one element; what the DOCTYPE says is
//! then not looked at, and any name may be an entity's. Characters beyond ASCII may be part of any name.
//!
//! Source: `xml_in`, `parse_xml_decl` and `xml_doctype_in_content` in `src/backend/utils/adt/xml.c`,
//! PostgreSQL 14 to 18; XML 1.0, fifth edition.

use super::InputError;
use super::tree::InputContext;

/// Deepest nesting of elements, as in libxml2.
pub const MAX_DEPTH: usize = 256;

/// Appends the payload of an `xml`: its text.
///
/// # Errors
/// When it is not well-formed.
pub fn read_xml(text: &[u8], _: &InputContext, out: &mut Vec<u8>) -> Result<(), InputError> {
    let refused = || InputError::new("invalid XML content");
    let declared = declaration(text)
        .ok_or_else(|| InputError::new("invalid XML content: invalid XML declaration"))?;
    let content = text.get(declared..).unwrap_or_default();
    let mut checker = Checker {
        rest: content,
        is_document: has_doctype(content),
        open: Vec::new(),
        elements: 0,
        doctypes: 0,
    };
    checker.run().ok_or_else(refused)?;
    out.extend_from_slice(text);
    Ok(())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn skip_space(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    text.get(spaces..).unwrap_or_default()
}

/// The text after at least one space.
fn after_space(text: &[u8]) -> Option<&[u8]> {
    let after = skip_space(text);
    (after.len() < text.len()).then_some(after)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || !byte.is_ascii()
}

fn is_in_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

/// The name that a text begins with, and what comes behind it.
fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take_while(|byte| is_in_name(**byte)).count();
    text.first().filter(|byte| starts_name(**byte))?;
    text.split_at_checked(len)
}

/// What a text quotes, and what comes behind it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (quote, text) = text.split_first().filter(|(byte, _)| matches!(**byte, b'"' | b'\''))?;
    let end = text.iter().position(|byte| byte == quote)?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// `= "…"`, and what comes behind it.
fn assigned(text: &[u8]) -> Option<(&[u8], &[u8])> {
    quoted(skip_space(skip_space(text).strip_prefix(b"=")?))
}

/// How long the XML declaration is, 0 when there is none; nothing when it is malformed.
fn declaration(text: &[u8]) -> Option<usize> {
    let Some(rest) = text.strip_prefix(b"<?xml") else { return Some(0) };
    if rest.first().is_some_and(|byte| is_in_name(*byte)) {
        return Some(0);
    }
    let (_, mut rest) = assigned(after_space(rest)?.strip_prefix(b"version")?)?;
    if let Some(after) = after_space(rest).and_then(|rest| rest.strip_prefix(b"encoding")) {
        rest = assigned(after)?.1;
    }
    if let Some(after) = after_space(rest).and_then(|rest| rest.strip_prefix(b"standalone")) {
        let (value, after) = assigned(after)?;
        if value != b"yes" && value != b"no" {
            return None;
        }
        rest = after;
    }
    let rest = skip_space(rest).strip_prefix(b"?>")?;
    let len = text.len() - rest.len();
    text.get(..len)?.is_ascii().then_some(len)
}

/// True when a DOCTYPE comes before anything but comments and processing instructions.
fn has_doctype(mut text: &[u8]) -> bool {
    loop {
        text = skip_space(text);
        let end = if text.starts_with(b"<!--") {
            find(text.get(4..).unwrap_or_default(), b"-->").map(|at| at + 7)
        } else if text.starts_with(b"<?") {
            find(text, b"?>").map(|at| at + 2)
        } else {
            return text.starts_with(b"<!DOCTYPE");
        };
        match end.and_then(|end| text.get(end..)) {
            Some(rest) => text = rest,
            None => return false,
        }
    }
}

/// Every step gives nothing where the text is not well-formed.
struct Checker<'a> {
    rest: &'a [u8],
    is_document: bool,
    /// The names of the elements around.
    open: Vec<&'a [u8]>,
    /// Elements that are in no other.
    elements: usize,
    doctypes: usize,
}

impl<'a> Checker<'a> {
    fn run(&mut self) -> Option<()> {
        while !self.rest.is_empty() {
            self.text()?;
            if !self.rest.is_empty() {
                self.markup()?;
            }
        }
        let whole = !self.is_document || self.elements == 1;
        (self.open.is_empty() && whole).then_some(())
    }

    /// Characters up to the next markup.
    fn text(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|byte| *byte == b'<').unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        let outside = self.is_document && self.open.is_empty();
        if find(text, b"]]>").is_some() || (outside && !skip_space(text).is_empty()) {
            return None;
        }
        self.characters(text)
    }

    /// Checks characters and the references among them.
    fn characters(&self, text: &[u8]) -> Option<()> {
        if !are_characters(text) {
            return None;
        }
        let mut parts = text.split(|byte| *byte == b'&');
        parts.next();
        for part in parts {
            let end = part.iter().position(|byte| *byte == b';')?;
            self.reference(part.get(..end)?)?;
        }
        Some(())
    }

    fn reference(&self, name_or_number: &[u8]) -> Option<()> {
        if let Some(number) = name_or_number.strip_prefix(b"#") {
            return is_character_number(number).then_some(());
        }
        let (_, rest) = name(name_or_number)?;
        let defined: [&[u8]; 5] = [b"lt", b"gt", b"amp", b"quot", b"apos"];
        let known = self.is_document || defined.contains(&name_or_number);
        (rest.is_empty() && known).then_some(())
    }

    fn markup(&mut self) -> Option<()> {
        let outside = self.is_document && self.open.is_empty();
        if let Some(rest) = self.rest.strip_prefix(b"<!--") {
            let end = find(rest, b"--")?;
            self.rest = rest.get(end..)?.strip_prefix(b"-->")?;
            return are_characters(rest.get(..end)?).then_some(());
        }
        if let Some(rest) = self.rest.strip_prefix(b"<![CDATA[").filter(|_| !outside) {
            let end = find(rest, b"]]>")?;
            self.rest = rest.get(end + 3..)?;
            return are_characters(rest.get(..end)?).then_some(());
        }
        if let Some(rest) = self.rest.strip_prefix(b"<?") {
            return self.instruction(rest);
        }
        if let Some(rest) = self.rest.strip_prefix(b"<!DOCTYPE").filter(|_| outside) {
            return self.doctype(rest);
        }
        if let Some(rest) = self.rest.strip_prefix(b"</") {
            return self.end_tag(rest);
        }
        self.start_tag(self.rest.strip_prefix(b"<")?)
    }

    fn instruction(&mut self, text: &'a [u8]) -> Option<()> {
        let (target, rest) = name(text)?;
        let end = find(rest, b"?>")?;
        let data = rest.get(..end)?;
        self.rest = rest.get(end + 2..)?;
        let apart = data.is_empty() || data.first().is_some_and(|byte| is_space(*byte));
        let named = !target.eq_ignore_ascii_case(b"xml");
        (apart && named && are_characters(data)).then_some(())
    }

    /// Passes over a DOCTYPE: up to the bracket that ends it, outside of quotes and of its inner part.
    fn doctype(&mut self, text: &'a [u8]) -> Option<()> {
        self.doctypes += 1;
        if self.doctypes > 1 || self.elements > 0 {
            return None;
        }
        name(after_space(text)?)?;
        let (mut inner, mut quote) = (false, None);
        for (at, byte) in text.iter().enumerate() {
            match (byte, quote) {
                (byte, Some(open)) if *byte == open => quote = None,
                (_, Some(_)) => {}
                (b'"' | b'\'', None) => quote = Some(*byte),
                (b'[', None) => inner = true,
                (b']', None) => inner = false,
                (b'>', None) if !inner => {
                    self.rest = text.get(at + 1..)?;
                    return Some(());
                }
                _ => {}
            }
        }
        None
    }

    fn end_tag(&mut self, text: &'a [u8]) -> Option<()> {
        let (name, rest) = name(text)?;
        self.rest = skip_space(rest).strip_prefix(b">")?;
        (self.open.pop() == Some(name)).then_some(())
    }

    fn start_tag(&mut self, text: &'a [u8]) -> Option<()> {
        if self.open.is_empty() {
            self.elements += 1;
        }
        let (element, mut rest) = name(text)?;
        let mut names: Vec<&[u8]> = Vec::new();
        loop {
            let behind = skip_space(rest);
            if let Some(after) = behind.strip_prefix(b"/>") {
                self.rest = after;
                return Some(());
            }
            if let Some(after) = behind.strip_prefix(b">") {
                self.rest = after;
                self.open.push(element);
                return (self.open.len() <= MAX_DEPTH).then_some(());
            }
            let (attribute, after) = name(after_space(rest)?)?;
            let (value, after) = assigned(after)?;
            if names.contains(&attribute) || value.contains(&b'<') {
                return None;
            }
            self.characters(value)?;
            names.push(attribute);
            rest = after;
        }
    }
}

/// True when all bytes may be part of XML's characters.
fn are_characters(text: &[u8]) -> bool {
    let control = |byte: &u8| *byte < b' ' && !is_space(*byte);
    let none = [[0xEF, 0xBF, 0xBE], [0xEF, 0xBF, 0xBF]];
    !text.iter().any(control) && !none.iter().any(|bytes| find(text, bytes).is_some())
}

/// True for the number of a character that XML has, as in `&#65;` or `&#x41;`.
fn is_character_number(text: &[u8]) -> bool {
    let (digits, base) = match text.strip_prefix(b"x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.iter().all(|byte| char::from(*byte).is_digit(base)) {
        return false;
    }
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    match u32::from_str_radix(digits, base).ok().and_then(char::from_u32) {
        Some('\t' | '\n' | '\r') => true,
        Some('\u{FFFE}' | '\u{FFFF}') | None => false,
        Some(other) => other >= ' ',
    }
}
