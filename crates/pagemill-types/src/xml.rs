//! `xml`: the stored text, its XML declaration reduced to what matters.
//!
//! The server drops the declaration, with its encoding, unless the version is not 1.0 or there
//! is a `standalone`; it then writes a new one with these two. If it writes none, it drops one
//! newline at that place too, even when there was no declaration. A declaration that it cannot
//! read stays as it is. Source: `xml_out_internal`, `parse_xml_decl` and `print_xml_decl` in
//! `src/backend/utils/adt/xml.c`, PostgreSQL 14 to 18, built with libxml, client encoding that
//! of the database.

use pagemill_format::error::Result;

/// `xml`.
///
/// # Errors
/// None.
pub fn write_xml(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((declaration, mut rest)) = Declaration::split(value) else {
        out.extend_from_slice(value);
        return Ok(());
    };
    if !declaration.push(out) {
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// What the server keeps of an XML declaration.
#[derive(Default)]
struct Declaration<'a> {
    version: Option<&'a [u8]>,
    standalone: Option<bool>,
}

impl<'a> Declaration<'a> {
    /// Splits a value into its declaration and the rest, or says `None` where a declaration
    /// begins but the server does not understand it.
    fn split(value: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let Some(after) = value.strip_prefix(b"<?xml") else {
            return Some((Self::default(), value));
        };
        // `<?xml-stylesheet …?>` also stays as it is, so the characters that may follow here
        // in a name need not be told from those that may not.
        let after = skip_space(after)?;
        let after = after.strip_prefix(b"version")?;
        let (version, after) = quoted(after)?;
        let after = match optional(after, b"encoding")? {
            Some(encoding) => quoted(encoding)?.1,
            None => after,
        };
        let (standalone, after) = match optional(after, b"standalone")? {
            Some(standalone) => yes_or_no(standalone)?,
            None => (None, after),
        };
        let after = trim_space(after).strip_prefix(b"?>")?;
        let declaration = value.get(..value.len() - after.len())?;
        declaration.is_ascii().then_some((Self { version: Some(version), standalone }, after))
    }

    /// Appends the declaration if one is needed, and says whether it was.
    fn push(&self, out: &mut Vec<u8>) -> bool {
        let version = self.version.unwrap_or(b"1.0");
        if version == b"1.0" && self.standalone.is_none() {
            return false;
        }
        out.extend_from_slice(b"<?xml version=\"");
        out.extend_from_slice(version);
        out.push(b'"');
        match self.standalone {
            Some(true) => out.extend_from_slice(b" standalone=\"yes\""),
            Some(false) => out.extend_from_slice(b" standalone=\"no\""),
            None => {}
        }
        out.extend_from_slice(b"?>");
        true
    }
}

/// What comes after `name`, or `Some(None)` when that is not what comes next. Space must be
/// before it.
fn optional<'a>(text: &'a [u8], name: &[u8]) -> Option<Option<&'a [u8]>> {
    match trim_space(text).strip_prefix(name) {
        Some(after) => skip_space(text).map(|_| Some(after)),
        None => Some(None),
    }
}

/// Reads `= "…"` or `= '…'`: what is quoted, and what comes after.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (quote, text) = trim_space(trim_space(text).strip_prefix(b"=")?).split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let end = text.iter().position(|byte| byte == quote)?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// Reads `= "yes"` or `= "no"`.
fn yes_or_no(text: &[u8]) -> Option<(Option<bool>, &[u8])> {
    match quoted(text)? {
        (b"yes", after) => Some((Some(true), after)),
        (b"no", after) => Some((Some(false), after)),
        _ => None,
    }
}

/// The text after at least one space.
fn skip_space(text: &[u8]) -> Option<&[u8]> {
    let after = trim_space(text);
    (after.len() < text.len()).then_some(after)
}

/// The text without XML's spaces in front.
fn trim_space(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
    text.get(spaces..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn xml(text: &str) -> String {
        printed(write_xml, text.as_bytes())
    }

    #[test]
    fn a_plain_declaration_goes_with_its_newline() {
        assert_eq!(xml("<?xml version=\"1.0\"?><a/>"), "<a/>");
        assert_eq!(xml("<?xml version='1.0' encoding='UTF-8'?>\n\n<a/>"), "\n<a/>");
        assert_eq!(xml("<a/>"), "<a/>");
        assert_eq!(xml("\n<a/>"), "<a/>");
    }

    #[test]
    fn another_version_or_a_standalone_keeps_it() {
        assert_eq!(
            xml("<?xml version = '1.0' encoding='x' standalone='yes' ?>\n<a/>"),
            "<?xml version=\"1.0\" standalone=\"yes\"?>\n<a/>"
        );
        assert_eq!(xml("<?xml version=\"1.1\"?><a/>"), "<?xml version=\"1.1\"?><a/>");
    }

    #[test]
    fn what_is_not_understood_stays() {
        for text in ["<?xml-stylesheet href='x'?><a/>", "<?xml?><a/>", "<?xml version=1.0?><a/>"] {
            assert_eq!(xml(text), text);
        }
        assert_eq!(xml("<?xml version='1.0'encoding='x'?>"), "<?xml version='1.0'encoding='x'?>");
    }
}
