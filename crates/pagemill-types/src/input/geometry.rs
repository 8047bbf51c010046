//! `point`, `line`, `lseg`, `box`, `path`, `polygon` and `circle` from their texts, with all the
//! brackets that may be left out.
//!
//! Source: `src/backend/utils/adt/geo_ops.c` (`pair_decode`, `path_decode` and the input functions),
//! `src/include/utils/geo_decls.h`, PostgreSQL 14 to 18.

use super::InputError;
use super::datum::skip_space;
use super::float::read_float8;
use super::line_equation::{EPSILON, line_through};

#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Appends the payload of a `point`.
///
/// # Errors
/// When the text is none.
pub fn read_point(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("point", text);
    let point = parser.pair()?;
    parser.end()?;
    push(out, &[point.x, point.y]);
    Ok(())
}

/// Appends the payload of an `lseg`.
///
/// # Errors
/// When the text is none.
pub fn read_lseg(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("lseg", text);
    let (points, _) = parser.path(true, 2)?;
    parser.end()?;
    push_points(out, &points);
    Ok(())
}

/// Appends the payload of a `box`: its upper right corner, then the lower left one.
///
/// # Errors
/// When the text is none.
pub fn read_box(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("box", text);
    let (points, _) = parser.path(false, 2)?;
    parser.end()?;
    let [mut high, mut low] = points[..] else { return Err(parser.refused()) };
    if is_less(high.x, low.x) {
        (high.x, low.x) = (low.x, high.x);
    }
    if is_less(high.y, low.y) {
        (high.y, low.y) = (low.y, high.y);
    }
    push_points(out, &[high, low]);
    Ok(())
}

/// Appends the payload of a `line`, given by its equation or by two points on it.
///
/// # Errors
/// When the text is none, or says no line.
pub fn read_line(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("line", text);
    parser.rest = skip_space(parser.rest);
    if parser.take(b'{') {
        let a = parser.number_before(b',')?;
        let b = parser.number_before(b',')?;
        let c = parser.number_before(b'}')?;
        parser.rest = skip_space(parser.rest);
        parser.end()?;
        if a.abs() <= EPSILON && b.abs() <= EPSILON {
            let what = "invalid line specification: A and B cannot both be zero";
            return Err(InputError::new(what));
        }
        push(out, &[a, b, c]);
        return Ok(());
    }
    let (points, _) = parser.path(true, 2)?;
    parser.end()?;
    let [first, second] = points[..] else { return Err(parser.refused()) };
    push(out, &line_through(first, second)?);
    Ok(())
}

/// Appends the payload of a `path`: number of points, whether closed, a gap, the points.
///
/// # Errors
/// When the text is none.
pub fn read_path(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("path", text);
    let count = parser.count_pairs()?;
    parser.rest = skip_space(parser.rest);
    let enclosed = parser.is_only_parenthesis() && parser.take(b'(');
    let (points, open) = parser.path(true, count)?;
    if enclosed {
        parser.require(b')')?;
        parser.rest = skip_space(parser.rest);
    }
    parser.end()?;
    out.extend_from_slice(&(count as u32).to_le_bytes());
    out.extend_from_slice(&u32::from(!open).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    push_points(out, &points);
    Ok(())
}

/// Appends the payload of a `polygon`: number of points, the box around them, the points.
///
/// # Errors
/// When the text is none.
pub fn read_polygon(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("polygon", text);
    let count = parser.count_pairs()?;
    let (points, _) = parser.path(false, count)?;
    parser.end()?;
    let (mut high, mut low) = match points.first() {
        Some(first) => (*first, *first),
        None => return Err(parser.refused()),
    };
    for point in &points {
        low.x = if is_less(point.x, low.x) { point.x } else { low.x };
        high.x = if is_less(high.x, point.x) { point.x } else { high.x };
        low.y = if is_less(point.y, low.y) { point.y } else { low.y };
        high.y = if is_less(high.y, point.y) { point.y } else { high.y };
    }
    out.extend_from_slice(&(count as u32).to_le_bytes());
    push_points(out, &[high, low]);
    push_points(out, &points);
    Ok(())
}

/// Appends the payload of a `circle`: its center and its radius.
///
/// # Errors
/// When the text is none, or the radius is negative.
pub fn read_circle(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("circle", text);
    parser.rest = skip_space(parser.rest);
    let angle = parser.take(b'<');
    let enclosed = angle || parser.take_doubled_parenthesis();
    let center = parser.pair()?;
    parser.take(b',');
    let radius = parser.number()?;
    if radius < 0.0 {
        return Err(parser.refused());
    }
    if enclosed {
        if !parser.take(b'>') {
            parser.require(b')')?;
        }
        parser.rest = skip_space(parser.rest);
    }
    parser.end()?;
    push(out, &[center.x, center.y, radius]);
    Ok(())
}

/// `<` of float8, for which NaN is the largest.
fn is_less(a: f64, b: f64) -> bool {
    !a.is_nan() && (b.is_nan() || a < b)
}

fn push(out: &mut Vec<u8>, numbers: &[f64]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn push_points(out: &mut Vec<u8>, points: &[Point]) {
    out.extend(points.iter().flat_map(|point| [point.x, point.y]).flat_map(f64::to_le_bytes));
}

struct Parser<'a> {
    type_name: &'static str,
    text: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn new(type_name: &'static str, text: &'a [u8]) -> Self {
        Self { type_name, text, rest: text }
    }

    fn refused(&self) -> InputError {
        InputError::syntax(self.type_name, self.text)
    }

    fn take(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn require(&mut self, byte: u8) -> Result<(), InputError> {
        if self.take(byte) { Ok(()) } else { Err(self.refused()) }
    }

    fn end(&self) -> Result<(), InputError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.refused()) }
    }

    /// A number, with the spaces around it.
    fn number(&mut self) -> Result<f64, InputError> {
        let text = skip_space(self.rest);
        let (number, rest) = text.split_at_checked(number_bytes(text)).unwrap_or_default();
        if number.is_empty() {
            return Err(self.refused());
        }
        let mut payload = Vec::with_capacity(8);
        read_float8(number, -1, &mut payload)?;
        self.rest = skip_space(rest);
        let bytes = payload.first_chunk().copied().ok_or_else(|| self.refused())?;
        Ok(f64::from_le_bytes(bytes))
    }

    fn number_before(&mut self, byte: u8) -> Result<f64, InputError> {
        let number = self.number()?;
        self.require(byte)?;
        Ok(number)
    }

    /// `x,y` or `(x,y)`.
    fn pair(&mut self) -> Result<Point, InputError> {
        self.rest = skip_space(self.rest);
        let enclosed = self.take(b'(');
        let x = self.number_before(b',')?;
        let y = self.number()?;
        if enclosed {
            self.require(b')')?;
            self.rest = skip_space(self.rest);
        }
        Ok(Point { x, y })
    }

    /// True when the next byte is the only opening parenthesis there is.
    fn is_only_parenthesis(&self) -> bool {
        self.rest.iter().rposition(|byte| *byte == b'(') == Some(0)
    }

    /// Takes the first of two opening parentheses, and the spaces between them.
    fn take_doubled_parenthesis(&mut self) -> bool {
        let Some(inner) = self.rest.strip_prefix(b"(").map(skip_space) else { return false };
        if inner.first() != Some(&b'(') {
            return false;
        }
        self.rest = inner;
        true
    }

    /// Points, with brackets around them or without; and whether the brackets were square.
    fn path(&mut self, may_be_open: bool, count: usize) -> Result<(Vec<Point>, bool), InputError> {
        self.rest = skip_space(self.rest);
        let open = self.take(b'[');
        if open && !may_be_open {
            return Err(self.refused());
        }
        let mut enclosed = open || self.take_doubled_parenthesis();
        if !enclosed && self.is_only_parenthesis() {
            enclosed = self.take(b'(');
            self.rest = skip_space(self.rest);
        }
        let mut points = Vec::new();
        for _ in 0..count {
            points.push(self.pair()?);
            self.take(b',');
        }
        if enclosed {
            if !(open && self.take(b']')) {
                self.require(b')')?;
            }
            self.rest = skip_space(self.rest);
        }
        Ok((points, open))
    }

    /// How many points there must be, by the commas.
    fn count_pairs(&self) -> Result<usize, InputError> {
        let commas = self.text.iter().filter(|byte| **byte == b',').count();
        if commas.is_multiple_of(2) { Err(self.refused()) } else { Ok(commas.div_ceil(2)) }
    }
}

/// How many bytes at the start of a text `strtod` would take for a number.
fn number_bytes(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let unsigned = text.get(sign..).unwrap_or_default();
    for name in ["infinity", "inf", "nan"] {
        if unsigned.get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes())) {
            return sign + name.len();
        }
    }
    let hex = unsigned.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case(b"0x"));
    let (prefix, exponent) = if hex { (2, b'p') } else { (0, b'e') };
    let is_digit = |byte: &u8| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let digits = |at: usize| {
        unsigned.get(at..).unwrap_or_default().iter().take_while(|byte| is_digit(byte)).count()
    };
    let whole = digits(prefix);
    let mut at = prefix + whole;
    let mut fraction = 0;
    if unsigned.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        // Of `0x` alone the zero is a number.
        return if hex { sign + 1 } else { 0 };
    }
    sign + at + exponent_bytes(unsigned.get(at..).unwrap_or_default(), exponent)
}

fn exponent_bytes(text: &[u8], letter: u8) -> usize {
    if text.first().map(u8::to_ascii_lowercase) != Some(letter) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    let digits = text.get(1 + sign..).unwrap_or_default();
    match digits.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => 0,
        count => 1 + sign + count,
    }
}
