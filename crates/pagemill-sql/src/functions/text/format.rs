//! `format`: a text with values in places that it names.
//!
//! Source: `text_format` in `src/backend/utils/adt/varlena.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_cluster::names::quote_identifier;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::text_form::{Printer, printer_of};
use super::super::{Implementation, KernelCall};
use super::codes::quote_literal;
use crate::error::{SqlState, StatementError};

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
    let (mut out, mut last) = (String::with_capacity(format.len()), 0);
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
        let place = place(&mut letters)?;
        let kind = letters.next().ok_or_else(unterminated)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{kind}\"");
            return Err(invalid(&message).with_hint("For a single \"%\" use \"%%\"."));
        }
        last = place.number.unwrap_or(last + 1);
        let value =
            values.get(last - 1).ok_or_else(|| invalid("too few arguments for format()"))?;
        push(&mut out, &place, &shown(call, kind, value.as_deref())?);
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
    place.width = number(letters)?.unwrap_or(0);
    end_of(letters, place)
}

fn end_of(letters: &mut Letters<'_>, place: Place) -> Outcome<Place> {
    /// More is not asked for by anyone in earnest.
    const MOST_BLANKS: usize = 1 << 20;
    if place.width > MOST_BLANKS {
        return Err(StatementError::unsupported("format() with such a width"));
    }
    match letters.peek() {
        Some('*') => Err(StatementError::unsupported("format() with a width from its arguments")),
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
