//! The text of an array: its bounds, and its elements one by one.
//!
//! One grammar serves all versions, that of 17. Before it, texts were first looked through and only
//! then were their elements read, an array that is empty in more than one dimension was malformed,
//! and the messages showed the text without the bounds; all three are kept. Not kept are the texts
//! that only versions before 17 take: elements at unequal depth, bounds such as `1-2` and ones past
//! an integer. They are malformed here.
//!
//! Source: `array_in`, `ArrayCount` and `ReadArrayStr` in `src/backend/utils/adt/arrayfuncs.c`,
//! PostgreSQL 14 to 18.

use super::InputError;
use super::datum::{is_space, malformed, skip_space};

pub(super) const MAX_DIMENSIONS: usize = 6;
/// `MaxArraySize`.
const MAX_ITEMS: usize = 134_217_727;

/// The dimensions of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) ndim: usize,
    /// Lengths, once they are known.
    lengths: [Option<usize>; MAX_DIMENSIONS],
    lower: [i32; MAX_DIMENSIONS],
}

impl Shape {
    const UNKNOWN: Self =
        Self { ndim: 0, lengths: [None; MAX_DIMENSIONS], lower: [1; MAX_DIMENSIONS] };

    /// The lower bound and the length of each dimension.
    pub(super) fn dimensions(&self) -> impl Iterator<Item = (i32, usize)> {
        let lengths = self.lengths.iter().map(|length| length.unwrap_or(0));
        self.lower.iter().copied().zip(lengths).take(self.ndim)
    }
}

/// Takes an element's text, `None` for NULL.
pub(super) type TakeItem<'t> = dyn FnMut(Option<&[u8]>) -> Result<(), InputError> + 't;

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

/// The braces around the place that was reached.
#[derive(Default)]
struct Nesting {
    /// Elements, or arrays, so far in each.
    counts: [usize; MAX_DIMENSIONS],
    level: usize,
    items: usize,
    delimiter_due: bool,
}

#[derive(Clone)]
pub(super) struct ArrayText<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    /// What a malformed text is shown as.
    shown: &'a [u8],
    delimiter: u8,
    before_17: bool,
    pub(super) shape: Shape,
    /// True when no more dimensions can be found: they were given, or there was an element.
    settled: bool,
    item: Vec<u8>,
}

impl<'a> ArrayText<'a> {
    /// Reads the bounds; before 17, looks the rest through too.
    pub(super) fn new(text: &'a [u8], delimiter: u8, before_17: bool) -> Result<Self, InputError> {
        let (shape, item) = (Shape::UNKNOWN, Vec::new());
        let (rest, shown) = (text, text);
        let mut new = Self { text, rest, shown, delimiter, before_17, shape, settled: false, item };
        new.bounds().map_err(|refusal| new.refused(refusal))?;
        if before_17 {
            new.shown = new.rest;
            new.look_through()?;
        }
        Ok(new)
    }

    #[cold]
    fn refused(&self, refusal: Refusal) -> InputError {
        match refusal {
            Refusal::Malformed => malformed("array", self.shown),
            Refusal::Other(message) => InputError::new(message),
        }
    }

    /// Whether the text is an array, and has the bounds it claims.
    fn look_through(&self) -> Result<(), InputError> {
        let mut dry = Self { shape: Shape::UNKNOWN, settled: false, ..self.clone() };
        dry.items(&mut |_| Ok(()))?;
        dry.shape.lower = self.shape.lower;
        if self.settled && dry.shape != self.shape {
            return Err(malformed("array", self.text));
        }
        Ok(())
    }

    /// Reads `[m:n][n]…=`, up to the first brace.
    fn bounds(&mut self) -> Result<(), Refusal> {
        loop {
            self.rest = skip_space(self.rest);
            let Some(rest) = self.rest.strip_prefix(b"[") else { break };
            self.rest = rest;
            self.bound()?;
        }
        self.settled = self.shape.ndim > 0;
        if self.settled {
            self.rest = skip_space(self.rest.strip_prefix(b"=").ok_or(Refusal::Malformed)?);
        }
        if self.rest.first() == Some(&b'{') { Ok(()) } else { Err(Refusal::Malformed) }
    }

    /// Reads `m:n]` or `n]`.
    fn bound(&mut self) -> Result<(), Refusal> {
        let place = self.shape.ndim;
        let too_many = self.too_many_dimensions(place + 1);
        let length = self.shape.lengths.get_mut(place).ok_or(too_many)?;
        let lower = self.shape.lower.get_mut(place).ok_or(Refusal::Malformed)?;
        let (first, mut rest) = integer(self.rest)?;
        let mut upper = first;
        if let Some(after) = rest.strip_prefix(b":") {
            *lower = first;
            (upper, rest) = integer(after)?;
        }
        self.rest = rest.strip_prefix(b"]").ok_or(Refusal::Malformed)?;
        *length = Some(length_between(*lower, upper, self.before_17)?);
        self.shape.ndim += 1;
        Ok(())
    }

    fn too_many_dimensions(&self, found: usize) -> Refusal {
        let found = if self.before_17 { format!(" ({found})") } else { String::new() };
        Refusal::Other(format!(
            "number of array dimensions{found} exceeds the maximum allowed ({MAX_DIMENSIONS})"
        ))
    }

    /// Reads everything from the first brace on, handing out elements as they come.
    pub(super) fn items(&mut self, take: &mut TakeItem<'_>) -> Result<(), InputError> {
        let mut nesting = Nesting::default();
        let done = loop {
            match self.step(&mut nesting, take) {
                Ok(()) if nesting.level > 0 => {}
                Ok(()) if skip_space(self.rest).is_empty() => return Ok(()),
                Ok(()) => break Refusal::Malformed,
                Err(refusal) => break refusal,
            }
        };
        Err(self.refused(done))
    }

    fn step(&mut self, nesting: &mut Nesting, take: &mut TakeItem<'_>) -> Result<(), Refusal> {
        match self.token()? {
            Token::Open => self.open(nesting),
            Token::Close => self.close(nesting),
            Token::Delimiter if nesting.delimiter_due => {
                nesting.delimiter_due = false;
                Ok(())
            }
            Token::Delimiter => Err(Refusal::Malformed),
            Token::Null | Token::Item if nesting.delimiter_due => Err(Refusal::Malformed),
            Token::Null => {
                take(None)?;
                self.count_item(nesting)
            }
            Token::Item => {
                take(Some(&self.item))?;
                self.count_item(nesting)
            }
        }
    }

    fn open(&mut self, nesting: &mut Nesting) -> Result<(), Refusal> {
        if nesting.delimiter_due {
            return Err(Refusal::Malformed);
        }
        let Some(count) = nesting.counts.get_mut(nesting.level) else {
            return Err(self.too_many_dimensions(nesting.level + 1));
        };
        *count = 0;
        nesting.level += 1;
        if nesting.level > self.shape.ndim {
            if self.settled {
                return Err(Refusal::Malformed);
            }
            self.shape.ndim = nesting.level;
        }
        Ok(())
    }

    /// Ends an array, counts it in the one around it, and holds it against others of its depth.
    fn close(&mut self, nesting: &mut Nesting) -> Result<(), Refusal> {
        let level = nesting.level.checked_sub(1).ok_or(Refusal::Malformed)?;
        let count = nesting.counts.get(level).copied().unwrap_or(0);
        let empty_inside = count == 0 && level > 0 && self.before_17;
        if (count > 0 && !nesting.delimiter_due) || empty_inside {
            return Err(Refusal::Malformed);
        }
        nesting.level = level;
        nesting.delimiter_due = true;
        if let Some(around) = level.checked_sub(1).and_then(|level| nesting.counts.get_mut(level)) {
            *around += 1;
        }
        match self.shape.lengths.get_mut(level) {
            Some(length) if length.is_none_or(|length| length == count) => {
                *length = Some(count);
                Ok(())
            }
            _ => Err(Refusal::Malformed),
        }
    }

    /// Counts an element: all are at the same depth, the deepest.
    fn count_item(&mut self, nesting: &mut Nesting) -> Result<(), Refusal> {
        self.settled = true;
        nesting.items += 1;
        if nesting.level != self.shape.ndim {
            return Err(Refusal::Malformed);
        }
        if nesting.items > MAX_ITEMS {
            return Err(too_large());
        }
        if let Some(count) = nesting.counts.get_mut(nesting.level.wrapping_sub(1)) {
            *count += 1;
        }
        nesting.delimiter_due = true;
        Ok(())
    }

    fn token(&mut self) -> Result<Token, Refusal> {
        self.rest = skip_space(self.rest);
        let (&first, rest) = self.rest.split_first().ok_or(Refusal::Malformed)?;
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
            let (&byte, rest) = self.rest.split_first().ok_or(Refusal::Malformed)?;
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
        let (&byte, rest) = self.rest.split_first().ok_or(Refusal::Malformed)?;
        self.item.push(byte);
        self.rest = rest;
        Ok(())
    }

    fn bare(&mut self) -> Result<Token, Refusal> {
        self.item.clear();
        let (mut end, mut escapes) = (0, false);
        loop {
            let (&byte, rest) = self.rest.split_first().ok_or(Refusal::Malformed)?;
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
            }
            // Spaces behind an element are not part of it.
            if byte == b'\\' || !is_space(byte) {
                end = self.item.len();
            }
        }
        self.item.truncate(end);
        let null = !escapes && self.item.eq_ignore_ascii_case(b"null");
        Ok(if null { Token::Null } else { Token::Item })
    }
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
