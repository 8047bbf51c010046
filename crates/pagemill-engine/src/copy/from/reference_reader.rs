//! COPY FROM, as plainly as it can be written: a byte at a time, a line first and its fields then.
//! What the fast readers give is compared with this.

use super::options::{CopyRules, Header};
use super::row_reader::Newline;
use crate::copy::Format;

/// A line and the values on it.
pub(super) type ReferenceRow = (u64, Vec<Option<Vec<u8>>>);
/// A line and what is wrong with it.
pub(super) type ReferenceError = (u64, String);

/// Reads all rows of an input, until the first error.
pub(super) fn read_all(
    rules: &CopyRules,
    bytes: &[u8],
) -> (Vec<ReferenceRow>, Option<ReferenceError>) {
    let mut reader = Reader { rules, bytes, at: 0, line: 0, newline: None };
    let mut rows = Vec::new();
    let mut is_header = rules.header != Header::None;
    loop {
        reader.line += 1;
        let (text, is_last) = match reader.read_line() {
            Ok(line) => line,
            Err(message) => return (rows, Some((reader.line, message))),
        };
        if !is_header && is_last && text.is_empty() {
            return (rows, None);
        }
        let is_skipped = is_header && rules.header == Header::Skip;
        if is_skipped && is_last {
            return (rows, None);
        }
        if is_skipped {
            is_header = false;
            continue;
        }
        let checked = fields(rules, &text).and_then(|fields| {
            if is_header { check_header(rules, &fields) } else { count(rules, &text, &fields) }
                .map(|()| fields)
        });
        match checked {
            Err(message) => return (rows, Some((reader.line, message))),
            Ok(_) if is_header && is_last => return (rows, None),
            Ok(_) if is_header => is_header = false,
            Ok(fields) => rows.push((reader.line, fields)),
        }
    }
}

struct Reader<'a> {
    rules: &'a CopyRules,
    bytes: &'a [u8],
    at: usize,
    line: u64,
    newline: Option<Newline>,
}

impl Reader<'_> {
    /// The next line, and whether the input ended with it.
    fn read_line(&mut self) -> Result<(Vec<u8>, bool), String> {
        let csv = self.rules.format == Format::Csv;
        let (start, mut in_quote, mut escaped) = (self.at, false, false);
        while let Some(&byte) = self.bytes.get(self.at) {
            let at = self.at;
            self.at += 1;
            if csv {
                let is_escape = byte == self.rules.escape && self.rules.escape != self.rules.quote;
                if in_quote && is_escape {
                    escaped = !escaped;
                }
                if byte == self.rules.quote && !escaped {
                    in_quote = !in_quote;
                }
                if !is_escape {
                    escaped = false;
                }
                let counted = if self.newline == Some(Newline::Lf) { b'\n' } else { b'\r' };
                self.line += u64::from(in_quote && byte == counted);
            }
            if (byte == b'\r' || byte == b'\n') && !in_quote {
                self.end_line(byte)?;
                return Ok((self.bytes[start..at].to_vec(), false));
            }
            if byte == b'\\' && (!csv || at == start) {
                match self.bytes.get(self.at) {
                    None => {}
                    Some(b'.') if !csv || !self.rules.strict_marker => {
                        self.at += 1;
                        if self.marker(start, at)? {
                            return Ok((self.bytes[start..at].to_vec(), true));
                        }
                        self.at = at + 1;
                    }
                    Some(_) => self.at += usize::from(!csv),
                }
            }
        }
        Ok((self.bytes[start..].to_vec(), true))
    }

    fn end_line(&mut self, byte: u8) -> Result<(), String> {
        let csv = self.rules.format == Format::Csv;
        let stray = if csv { "unquoted" } else { "literal" };
        let next_is_lf = self.bytes.get(self.at) == Some(&b'\n');
        let found = match byte {
            b'\n' => Newline::Lf,
            _ if next_is_lf && matches!(self.newline, None | Some(Newline::CrLf)) => Newline::CrLf,
            _ => Newline::Cr,
        };
        if self.newline.is_some_and(|newline| newline != found) {
            let name = if byte == b'\n' { "newline" } else { "carriage return" };
            return Err(format!("{stray} {name} found in data"));
        }
        self.at += usize::from(found == Newline::CrLf);
        self.newline = Some(found);
        Ok(())
    }

    /// Whether a marker ends the line; if not, it is data.
    fn marker(&mut self, start: usize, at: usize) -> Result<bool, String> {
        let csv = self.rules.format == Format::Csv;
        let other = "end-of-copy marker does not match previous newline style";
        let corrupt = if self.rules.strict_marker {
            "end-of-copy marker is not alone on its line"
        } else {
            "end-of-copy marker corrupt"
        };
        let next = |reader: &mut Self| {
            reader.at += 1;
            reader.bytes.get(reader.at - 1).copied().unwrap_or(0)
        };
        if self.newline == Some(Newline::CrLf) {
            match next(self) {
                b'\r' => {}
                _ if csv => return Ok(false),
                b'\n' => return Err(other.into()),
                _ => return Err(corrupt.into()),
            }
        }
        let end = next(self);
        if end != b'\r' && end != b'\n' {
            return if csv { Ok(false) } else { Err(corrupt.into()) };
        }
        let expected = match self.newline {
            None => end,
            Some(Newline::Cr) => b'\r',
            Some(_) => b'\n',
        };
        if end != expected {
            return Err(other.into());
        }
        if self.rules.strict_marker && at > start {
            return Err(corrupt.into());
        }
        Ok(true)
    }
}

fn check_header(rules: &CopyRules, fields: &[Option<Vec<u8>>]) -> Result<(), String> {
    if fields.len() != rules.columns.len() {
        let (got, expected) = (fields.len(), rules.columns.len());
        return Err(format!(
            "wrong number of fields in header line: got {got}, expected {expected}"
        ));
    }
    for (place, (field, column)) in fields.iter().zip(&rules.columns).enumerate() {
        if field.as_ref() != Some(column) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let got = match field {
                Some(field) => format!("\"{}\"", text(field)),
                None => format!("null value (\"{}\")", text(&rules.null)),
            };
            let (place, expected) = (place + 1, text(column));
            return Err(format!(
                "column name mismatch in header line field {place}: got {got}, expected \
                 \"{expected}\""
            ));
        }
    }
    Ok(())
}

fn count(rules: &CopyRules, text: &[u8], fields: &[Option<Vec<u8>>]) -> Result<(), String> {
    if fields.len() > rules.columns.len() && !(rules.columns.is_empty() && text.is_empty()) {
        return Err("extra data after last expected column".into());
    }
    match rules.columns.get(fields.len()) {
        Some(column) => {
            Err(format!("missing data for column \"{}\"", String::from_utf8_lossy(column)))
        }
        None => Ok(()),
    }
}

fn fields(rules: &CopyRules, text: &[u8]) -> Result<Vec<Option<Vec<u8>>>, String> {
    match rules.format {
        Format::Csv => csv_fields(rules, text),
        Format::Text => text_fields(rules, text),
    }
}

fn csv_fields(rules: &CopyRules, text: &[u8]) -> Result<Vec<Option<Vec<u8>>>, String> {
    let (mut all, mut value, mut start) = (Vec::new(), Vec::new(), 0);
    let (mut in_quote, mut saw_quote, mut at) = (false, false, 0);
    loop {
        let byte = text.get(at).copied();
        if in_quote {
            let Some(byte) = byte else { return Err("unterminated CSV quoted field".into()) };
            let next = text.get(at + 1).copied();
            if byte == rules.escape && (next == Some(rules.escape) || next == Some(rules.quote)) {
                value.extend(next);
                at += 1;
            } else if byte == rules.quote {
                in_quote = false;
            } else {
                value.push(byte);
            }
        } else if byte.is_none() || byte == Some(rules.delimiter) {
            let forced = rules.forced.as_ref().and_then(|forced| forced.get(all.len()).copied());
            let forced = forced.unwrap_or_default();
            let is_null = !saw_quote && text[start..at] == rules.null && !forced.not_null;
            let is_forced = saw_quote && forced.null && value == rules.null;
            all.push((!is_null && !is_forced).then(|| std::mem::take(&mut value)));
            (value, start, saw_quote) = (Vec::new(), at + 1, false);
            if byte.is_none() {
                return Ok(all);
            }
        } else if byte == Some(rules.quote) {
            (in_quote, saw_quote) = (true, true);
        } else {
            value.extend(byte);
        }
        at += 1;
    }
}

fn text_fields(rules: &CopyRules, text: &[u8]) -> Result<Vec<Option<Vec<u8>>>, String> {
    let (mut all, mut value, mut start) = (Vec::new(), Vec::new(), 0);
    let (mut at, mut made, mut end) = (0, false, 0);
    let digit = |at: usize, radix| text.get(at).and_then(|&byte| char::from(byte).to_digit(radix));
    loop {
        let byte = text.get(at).copied();
        if byte == Some(b'\\') && at + 1 == text.len() {
            end = at;
            at += 1;
            continue;
        }
        if byte.is_none() || byte == Some(rules.delimiter) {
            let raw_end = if byte.is_none() && end > 0 { end } else { at };
            let is_null = text[start..raw_end] == rules.null;
            if !is_null && made {
                rules.encoding.verify(&value)?;
            }
            all.push((!is_null).then_some(value));
            (value, start, made) = (Vec::new(), at + 1, false);
            if byte.is_none() {
                return Ok(all);
            }
        } else if byte == Some(b'\\') {
            at += 1;
            let (radix, most, skip) = if text[at] == b'x' { (16, 2, 1) } else { (8, 3, 0) };
            let digits: Vec<_> = (0..most).map_while(|i| digit(at + skip + i, radix)).collect();
            if digits.is_empty() {
                value.push(match text[at] {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => 10,
                    b'r' => 13,
                    b't' => 9,
                    b'v' => 11,
                    other => other,
                });
            } else {
                let number = digits.iter().fold(0, |number, digit| number * radix + digit);
                value.push((number % 256) as u8);
                made |= value.last().is_some_and(|&byte| byte == 0 || byte >= 0x80);
                at += digits.len() + skip - 1;
            }
        } else {
            value.extend(byte);
        }
        at += 1;
    }
}
