//! `format`: a text with values in places that it names.
//!
//! Source: `text_format` in `src/backend/utils/adt/varlena.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_cluster::names::quote_identifier;
use pagemill_types::builtin::oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::text_form::{Printer, payload_of_text, printer_of};
use super::super::{Implementation, KernelCall};
use super::codes::quote_literal;
use crate::error::{SqlState, StatementError};
use crate::types::PgType;

pub(super) fn find(key: &str) -> Option<Implementation> {
    matches!(key, "text_format" | "text_format_nv").then_some(Implementation::Kernel(formatted))
}

/// One place of the text.
#[derive(Debug, Default)]
struct Place {
    /// The argument that it names, from 1.
    number: Option<usize>,
    is_left: bool,
    width: usize,
    /// The argument that its width is, or 0 for the next one.
    width_from: Option<usize>,
}

/// The arguments, and which was the last that was taken.
struct Values<'v> {
    texts: &'v [Option<String>],
    last: usize,
}

impl Values<'_> {
    /// The argument of this number, or the next one.
    fn take(&mut self, number: Option<usize>) -> Outcome<Option<&str>> {
        self.last = number.unwrap_or(self.last + 1); // default: one after the other
        let found = self.texts.get(self.last - 1);
        let found = found.ok_or_else(|| invalid("too few arguments for format()"))?;
        Ok(found.as_deref())
    }
}

fn formatted(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let printers = call.arguments[1..].iter().map(|ty| printer_of(&call.catalog, *ty));
    let mut printers = printers.collect::<Outcome<Vec<Printer>>>()?;
    let formats = strings(&arguments[0]);
    let mut texts = Vec::with_capacity(formats.len());
    for row in 0..formats.len() {
        if formats.is_null(row) {
            texts.push(None);
            continue;
        }
        let mut values = Vec::with_capacity(printers.len());
        for (printer, column) in printers.iter_mut().zip(&arguments[1..]) {
            let mut text = Vec::new();
            if !column.is_null(row) {
                printer.print(column, row, &mut text)?;
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            values.push((!column.is_null(row)).then_some(text));
        }
        texts.push(Some(filled(call, formats.value(row), &values)?));
    }
    Made::column(texts)
}

fn filled(call: &KernelCall, format: &str, values: &[Option<String>]) -> Outcome<String> {
    let mut out = String::with_capacity(format.len());
    let mut values = Values { texts: values, last: 0 };
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        if letters.peek() == Some(&'%') {
            letters.next();
            out.push('%');
            continue;
        }
        let mut place = place(&mut letters)?;
        let kind = letters.next().ok_or_else(unterminated)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{kind}\"");
            return Err(invalid(&message).with_hint("For a single \"%\" use \"%%\"."));
        }
        if let Some(from) = place.width_from {
            let width = values.take(Some(from).filter(|from| *from > 0))?;
            place.set_width(width.map_or(Ok(0), |text| width_of(call, text))?)?;
        }
        let value = values.take(place.number)?;
        push(&mut out, &place, &shown(call, kind, value)?);
    }
    Ok(out)
}

#[cold]
fn invalid(message: &str) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

#[cold]
fn unterminated() -> StatementError {
    invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

type Letters<'f> = std::iter::Peekable<std::str::Chars<'f>>;

fn number(letters: &mut Letters<'_>) -> Outcome<Option<usize>> {
    let mut digits = String::new();
    while let Some(digit) = letters.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    if digits.is_empty() {
        return Ok(None);
    }
    let found = digits.parse::<i32>().map_err(|_| {
        StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "number is out of range")
    })?;
    Ok(usize::try_from(found).ok())
}

fn place(letters: &mut Letters<'_>) -> Outcome<Place> {
    let mut place = Place::default();
    if let Some(first) = number(letters)? {
        if letters.next_if_eq(&'$').is_none() {
            place.width = first;
            return end_of(letters, place);
        }
        if first == 0 {
            return Err(invalid("format specifies argument 0, but arguments are numbered from 1"));
        }
        place.number = Some(first);
    }
    while letters.next_if_eq(&'-').is_some() {
        place.is_left = true;
    }
    if letters.next_if_eq(&'*').is_some() {
        place.width_from = Some(width_from(letters)?);
    } else {
        place.width = number(letters)?.unwrap_or(0); // default: no width
    }
    end_of(letters, place)
}

/// The number of the argument behind an asterisk, or 0.
fn width_from(letters: &mut Letters<'_>) -> Outcome<usize> {
    if letters.peek().is_none() {
        return Err(unterminated());
    }
    let Some(found) = number(letters)? else { return Ok(0) };
    match letters.next() {
        None => Err(unterminated()),
        Some('$') if found == 0 => {
            Err(invalid("format specifies argument 0, but arguments are numbered from 1"))
        }
        Some('$') => Ok(found),
        Some(_) => Err(invalid("width argument position must be ended by \"$\"")),
    }
}

/// An argument as a width: an integer, by its text whatever its type.
fn width_of(call: &KernelCall, text: &str) -> Outcome<i32> {
    let payload = payload_of_text(&call.catalog, PgType::new(oid::INT4), text)?;
    let width = payload.first_chunk::<4>().copied().map(i32::from_le_bytes);
    width.ok_or_else(|| invalid("a width of no integer"))
}

/// More is not asked for by anyone in earnest.
const MOST_BLANKS: usize = 1 << 20;

#[cold]
fn too_wide() -> StatementError {
    StatementError::unsupported("format() with such a width")
}

impl Place {
    /// A negative one is to the left.
    fn set_width(&mut self, width: i32) -> Outcome<()> {
        self.is_left |= width < 0;
        self.width = width.checked_abs().ok_or_else(|| {
            StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "number is out of range")
        })? as usize;
        if self.width > MOST_BLANKS { Err(too_wide()) } else { Ok(()) }
    }
}

fn end_of(letters: &mut Letters<'_>, place: Place) -> Outcome<Place> {
    if place.width > MOST_BLANKS {
        return Err(too_wide());
    }
    match letters.peek() {
        Some(_) => Ok(place),
        None => Err(unterminated()),
    }
}

fn shown(call: &KernelCall, kind: char, value: Option<&str>) -> Outcome<String> {
    Ok(match (kind, value) {
        ('I', None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(StatementError::new(SqlState("22004"), message));
        }
        ('I', Some(name)) => {
            let mut quoted = Vec::new();
            let version = call.catalog.database().cluster().version();
            quote_identifier(name.as_bytes(), version, &mut quoted);
            String::from_utf8_lossy(&quoted).into_owned()
        }
        ('L', None) => "NULL".to_owned(),
        ('L', Some(text)) => quote_literal(text),
        (_, text) => text.unwrap_or_default().to_owned(),
    })
}

fn push(out: &mut String, place: &Place, text: &str) {
    let blanks = place.width.saturating_sub(text.chars().count());
    let fill = std::iter::repeat_n(' ', blanks);
    match place.is_left {
        true => {
            out.push_str(text);
            out.extend(fill);
        }
        false => {
            out.extend(fill);
            out.push_str(text);
        }
    }
}
