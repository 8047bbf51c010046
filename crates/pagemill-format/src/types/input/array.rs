//! Arrays from their text: `{…}`, with bounds in front where they do not start at 1.
//!
//! One grammar serves all versions, that of 17. Before it, texts were first looked through and only
//! then were their elements read, an array that is empty in more than one dimension was malformed,
//! and the messages showed the text without the bounds; all three are kept. Not kept are the texts
//! that only versions before 17 take: elements at unequal depth, bounds such as `1-2` and ones past
//! an integer. They are malformed here.
//!
//! Source: `array_in`, `ArrayCount`, `ReadArrayStr` and `CopyArrayEls` in
//! `src/backend/utils/adt/arrayfuncs.c`, `ArrayGetNItems` in `arrayutils.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::datum::{align, is_space, malformed, push_datum, skip_space};
use super::tree::{InputType, ValueReader};
use crate::ids::PgVersion;

const MAX_DIMENSIONS: usize = 6;
/// `MaxArraySize`.
const MAX_ITEMS: usize = 134_217_727;
const FIXED_HEADER_BYTES: usize = 16;

/// Appends the payload of an array.
pub(super) fn read_array(
    reader: &mut ValueReader<'_>,
    element: &InputType,
    typmod: i32,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let before_17 = reader.context().version < PgVersion::V17;
    let mut parser = Parser::new(text, element.delimiter, before_17);
    parser.bounds()?;
    if before_17 {
        parser.outline()?;
    }
    reader.with_buffer(|reader, data| {
        let mut elements = Elements { nulls: Vec::new(), count: 0, any_null: false };
        parser.items(&mut |item| elements.push(reader, element, typmod, item, data))?;
        parser.write(element, &elements, data, out)
    })
}

/// The elements read so far, of which the bytes are elsewhere.
struct Elements {
    /// A bit for each, set where there is a value.
    nulls: Vec<u8>,
    count: usize,
    any_null: bool,
}

impl Elements {
    /// Reads one element, `None` being NULL, and appends it to `data`.
    fn push(
        &mut self,
        reader: &mut ValueReader<'_>,
        element: &InputType,
        typmod: i32,
        item: Option<&[u8]>,
        data: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        let bit = self.count % 8;
        if bit == 0 {
            self.nulls.push(0);
        }
        self.count += 1;
        let Some(text) = item else {
            self.any_null = true;
            return reader.read_null(&element.input);
        };
        if let Some(byte) = self.nulls.last_mut() {
            *byte |= 1 << bit;
        }
        reader.with_buffer(|reader, payload| {
            reader.read(&element.input, typmod, text, payload)?;
            push_datum(element.layout, false, payload, data)
        })?;
        align(element.layout, data);
        Ok(())
    }
}

/// Why a text is no array.
enum Refusal {
    Malformed,
    Other(String),
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        Self::Other(error.message)
    }
}

/// A part of the text between braces and delimiters.
enum Token {
    Open,
    Close,
    Delimiter,
    Null,
    /// Its text, unquoted, is in the parser's buffer.
    Item,
}

#[derive(Clone)]
struct Parser<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    /// What a malformed text is shown as.
    shown: &'a [u8],
    delimiter: u8,
    before_17: bool,
    /// Dimensions that were given or found.
    ndim: usize,
    given: bool,
    /// Lengths, once they are known.
    lengths: [Option<usize>; MAX_DIMENSIONS],
    lower: [i32; MAX_DIMENSIONS],
    item: Vec<u8>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], delimiter: u8, before_17: bool) -> Self {
        let lengths = [None; MAX_DIMENSIONS];
        let lower = [1; MAX_DIMENSIONS];
        let item = Vec::new();
        let (rest, shown) = (text, text);
        Self {
            text,
            rest,
            shown,
            delimiter,
            before_17,
            ndim: 0,
            given: false,
            lengths,
            lower,
            item,
        }
    }

    fn refused(&self, refusal: Refusal) -> InputError {
        match refusal {
            Refusal::Malformed => malformed("array", self.shown),
            Refusal::Other(message) => InputError::new(message),
        }
    }

    /// Reads `[m:n][n]…=`, up to the first brace.
    fn bounds(&mut self) -> Result<(), InputError> {
        self.read_bounds().map_err(|refusal| self.refused(refusal))?;
        if self.before_17 {
            self.shown = self.rest;
        }
        Ok(())
    }

    /// Looks a text through before any element is read, and whether it has the bounds it claims.
    fn outline(&self) -> Result<(), InputError> {
        let lengths = [None; MAX_DIMENSIONS];
        let mut dry = Self { ndim: 0, given: false, lengths, ..self.clone() };
        dry.items(&mut |_| Ok(()))?;
        if self.given && (dry.ndim, dry.lengths) != (self.ndim, self.lengths) {
            return Err(malformed("array", self.text));
        }
        Ok(())
    }

    fn read_bounds(&mut self) -> Result<(), Refusal> {
        loop {
            self.rest = skip_space(self.rest);
            let Some(rest) = self.rest.strip_prefix(b"[") else { break };
            self.rest = rest;
            self.one_bound()?;
        }
        self.given = self.ndim > 0;
        if self.given {
            self.rest = skip_space(self.rest.strip_prefix(b"=").ok_or(Refusal::Malformed)?);
        }
        if self.rest.first() == Some(&b'{') { Ok(()) } else { Err(Refusal::Malformed) }
    }

    /// Reads `m:n]` or `n]`.
    fn one_bound(&mut self) -> Result<(), Refusal> {
        let (Some(length), Some(lower)) =
            (self.lengths.get_mut(self.ndim), self.lower.get_mut(self.ndim))
        else {
            return Err(self.too_many_dimensions(self.ndim + 1));
        };
        let (first, mut rest) = integer(self.rest)?;
        let mut upper = first;
        *lower = 1;
        if let Some(after) = rest.strip_prefix(b":") {
            *lower = first;
            (upper, rest) = integer(after)?;
        }
        self.rest = rest.strip_prefix(b"]").ok_or(Refusal::Malformed)?;
        *length = Some(length_between(*lower, upper, self.before_17)?);
        self.ndim += 1;
        Ok(())
    }

    fn too_many_dimensions(&self, found: usize) -> Refusal {
        let found = if self.before_17 { format!(" ({found})") } else { String::new() };
        Refusal::Other(format!(
            "number of array dimensions{found} exceeds the maximum allowed ({MAX_DIMENSIONS})"
        ))
    }

    /// Reads everything from the first brace on, handing out elements as they come.
    fn items(
        &mut self,
        take: &mut dyn FnMut(Option<&[u8]>) -> Result<(), InputError>,
    ) -> Result<(), InputError> {
        let done = self.read_items(take).and_then(|()| {
            let junk = !skip_space(self.rest).is_empty();
            if junk { Err(Refusal::Malformed) } else { Ok(()) }
        });
        done.map_err(|refusal| self.refused(refusal))
    }

    fn read_items(
        &mut self,
        take: &mut dyn FnMut(Option<&[u8]>) -> Result<(), InputError>,
    ) -> Result<(), Refusal> {
        let mut counts = [0_usize; MAX_DIMENSIONS];
        let (mut level, mut items) = (0_usize, 0_usize);
        let (mut frozen, mut delimiter_due) = (self.given, false);
        loop {
            let token = self.token()?;
            match token {
                Token::Open => {
                    if delimiter_due {
                        return Err(Refusal::Malformed);
                    }
                    let Some(count) = counts.get_mut(level) else {
                        return Err(self.too_many_dimensions(level + 1));
                    };
                    *count = 0;
                    level += 1;
                    if level > self.ndim {
                        if frozen {
                            return Err(Refusal::Malformed);
                        }
                        self.ndim = level;
                    }
                }
                Token::Close => {
                    level -= 1;
                    self.close(level, &mut counts, delimiter_due)?;
                    delimiter_due = true;
                    if level == 0 {
                        return Ok(());
                    }
                }
                Token::Delimiter if delimiter_due => delimiter_due = false,
                Token::Delimiter => return Err(Refusal::Malformed),
                Token::Null | Token::Item => {
                    items += 1;
                    frozen = true;
                    if delimiter_due || level != self.ndim {
                        return Err(Refusal::Malformed);
                    }
                    if items > MAX_ITEMS {
                        return Err(too_large());
                    }
                    take(matches!(token, Token::Item).then_some(self.item.as_slice()))?;
                    if let Some(count) = counts.get_mut(level - 1) {
                        *count += 1;
                    }
                    delimiter_due = true;
                }
            }
        }
    }

    /// Ends the array of `level`, counted from 0, and counts it in the one around it.
    fn close(
        &mut self,
        level: usize,
        counts: &mut [usize; MAX_DIMENSIONS],
        after_item: bool,
    ) -> Result<(), Refusal> {
        let Some(&count) = counts.get(level) else { return Err(Refusal::Malformed) };
        let empty_inside = count == 0 && level > 0 && self.before_17;
        if (count > 0 && !after_item) || empty_inside {
            return Err(Refusal::Malformed);
        }
        if let Some(around) = level.checked_sub(1).and_then(|level| counts.get_mut(level)) {
            *around += 1;
        }
        match self.lengths.get_mut(level) {
            Some(length) if length.is_none_or(|length| length == count) => *length = Some(count),
            _ => return Err(Refusal::Malformed),
        }
        Ok(())
    }

    fn token(&mut self) -> Result<Token, Refusal> {
        self.rest = skip_space(self.rest);
        let Some((&first, rest)) = self.rest.split_first() else { return Err(Refusal::Malformed) };
        let token = match first {
            b'{' => Token::Open,
            b'}' => Token::Close,
            b'"' => {
                self.rest = rest;
                return self.quoted();
            }
            byte if byte == self.delimiter => Token::Delimiter,
            _ => return self.bare(),
        };
        self.rest = rest;
        Ok(token)
    }

    fn quoted(&mut self) -> Result<Token, Refusal> {
        self.item.clear();
        loop {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(Refusal::Malformed);
            };
            self.rest = rest;
            match byte {
                b'"' => break,
                b'\\' => self.escaped()?,
                _ => self.item.push(byte),
            }
        }
        self.rest = skip_space(self.rest);
        match self.rest.first() {
            Some(b'{' | b'}') => Ok(Token::Item),
            Some(byte) if *byte == self.delimiter => Ok(Token::Item),
            _ => Err(Refusal::Malformed),
        }
    }

    /// Takes the byte behind a backslash as it is.
    fn escaped(&mut self) -> Result<(), Refusal> {
        let Some((&byte, rest)) = self.rest.split_first() else { return Err(Refusal::Malformed) };
        self.item.push(byte);
        self.rest = rest;
        Ok(())
    }

    fn bare(&mut self) -> Result<Token, Refusal> {
        self.item.clear();
        let (mut end, mut escapes) = (0, false);
        loop {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(Refusal::Malformed);
            };
            match byte {
                b'{' | b'"' => return Err(Refusal::Malformed),
                b'}' => break,
                _ if byte == self.delimiter => break,
                _ => self.rest = rest,
            }
            if byte == b'\\' {
                self.escaped()?;
                escapes = true;
            } else {
                self.item.push(byte);
                if is_space(byte) {
                    continue;
                }
            }
            end = self.item.len();
        }
        self.item.truncate(end);
        let null = !escapes && self.item.eq_ignore_ascii_case(b"null");
        Ok(if null { Token::Null } else { Token::Item })
    }

    /// Appends the array, given its elements' bytes.
    fn write(
        &self,
        element: &InputType,
        elements: &Elements,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        let start = out.len();
        let ndim = if elements.count == 0 { 0 } else { self.ndim };
        let bitmap = if elements.any_null { elements.nulls.as_slice() } else { &[] };
        let fixed = FIXED_HEADER_BYTES + 8 * ndim + bitmap.len();
        let data_offset = fixed.next_multiple_of(8);
        push_i32(ndim as i32, out);
        push_i32(if elements.any_null { data_offset as i32 } else { 0 }, out);
        out.extend_from_slice(&element.oid.0.to_le_bytes());
        for length in self.lengths.iter().take(ndim) {
            push_i32(length.unwrap_or(0) as i32, out);
        }
        for (lower, length) in self.lower.iter().zip(&self.lengths).take(ndim) {
            check_bound(*lower, length.unwrap_or(0), self.before_17)?;
            push_i32(*lower, out);
        }
        if ndim > 0 {
            out.extend_from_slice(bitmap);
            // The length word of four bytes lies before the payload.
            out.resize(start + data_offset - 4, 0);
            out.extend_from_slice(data);
        }
        Ok(())
    }
}

fn push_i32(number: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Reads a whole number, and gives back what comes behind it.
fn integer(text: &[u8]) -> Result<(i32, &[u8]), Refusal> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let digits = text.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(sign + digits).ok_or(Refusal::Malformed)?;
    if digits == 0 {
        return Err(Refusal::Malformed);
    }
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    let too_long = || Refusal::Other("array bound is out of integer range".to_owned());
    Ok((number.ok_or_else(too_long)?, rest))
}

fn length_between(lower: i32, upper: i32, before_17: bool) -> Result<usize, Refusal> {
    if upper < lower {
        return Err(Refusal::Other("upper bound cannot be less than lower bound".to_owned()));
    }
    if upper == i32::MAX && !before_17 {
        return Err(Refusal::Other(format!("array upper bound is too large: {upper}")));
    }
    let length = i64::from(upper) - i64::from(lower) + 1;
    i32::try_from(length).map(|length| length as usize).map_err(|_| too_large())
}

fn too_large() -> Refusal {
    Refusal::Other(format!("array size exceeds the maximum allowed ({MAX_ITEMS})"))
}

/// The bound one past the last has to be an integer too (`ArrayCheckBounds`).
fn check_bound(lower: i32, length: usize, before_17: bool) -> Result<(), InputError> {
    let past = i64::from(lower) + length as i64;
    if before_17 && past > i64::from(i32::MAX) {
        return Err(InputError::new(format!("array lower bound is too large: {lower}")));
    }
    Ok(())
}
