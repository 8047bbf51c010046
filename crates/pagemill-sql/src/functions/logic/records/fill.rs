//! Rows filled from documents: what a document has under the name of a field becomes its value, field by field, array by array.
//!
//! ```text
//! {"a": 1, "b": [2, 3], "c": {"d": "x"}}  ──►  row of a int, b int[], c (d text)
//! ```
//!
//! A jsonb is worked on by way of its text, whose parts are the texts of its parts. What values are as bytes is not known here:
//! whoever makes them says so by [`Makes`].
//!
//! Invariant: a field that the document does not name keeps the value of the row that was given, if one was; else it is NULL, which
//! its domain may refuse.
//!
//! Source: `populate_record`, `populate_record_field`, `populate_composite`, `populate_scalar`, `populate_domain` in
//! `src/backend/utils/adt/jsonfuncs.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use super::super::documents::{Kind, as_text, members, trimmed, unescaped};
use super::arrays::Dimensions;
use crate::error::{SqlState, StatementError};

/// A value as bytes; nothing for NULL.
pub(super) type Value = Option<Vec<u8>>;

/// How deep the types of fields may be within each other: deeper ones are refused.
const MOST_LEVELS: usize = 32;

/// A type, and what its values are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The type's OID; 0 for a row without a type.
    pub(super) oid: u32,
    pub(super) modifier: i32,
    pub(super) parts: Parts,
}

/// What values of a type are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parts {
    /// A text is all that is known of them.
    None,
    /// The same of json and jsonb, whose texts of strings have quotes.
    Document,
    Elements(Box<Target>),
    /// The fields of rows by their names, in their order.
    Fields(Vec<(String, Target)>),
    /// A domain, over this type.
    Domain(Box<Target>),
}

impl Target {
    pub(super) fn is_row(&self) -> bool {
        match &self.parts {
            Parts::Fields(_) => true,
            Parts::Domain(base) => base.is_row(),
            _ => false,
        }
    }

    /// True for types of which a string in a document says the text of the whole value.
    fn is_read_of_strings(&self) -> bool {
        self.is_row() || matches!(self.parts, Parts::Elements(_))
    }
}

/// Who makes values.
pub(super) trait Makes {
    /// A value by its text.
    fn read(&mut self, target: &Target, text: &str) -> Outcome<Vec<u8>>;
    /// An array of these lengths, each dimension from 1.
    fn array(
        &mut self,
        target: &Target,
        lengths: &[usize],
        elements: Vec<Value>,
    ) -> Outcome<Vec<u8>>;
    fn row(&mut self, target: &Target, fields: Vec<Value>) -> Outcome<Vec<u8>>;
    /// The fields of a row.
    fn fields(&mut self, target: &Target, row: &[u8]) -> Outcome<Vec<Value>>;
    /// Refuses what the domain does.
    fn accept(&mut self, domain: &Target, value: Option<&[u8]>) -> Outcome<()>;
}

/// Fills values from parts of documents.
pub(super) struct Filler<'m> {
    pub(super) makes: &'m mut dyn Makes,
    level: usize,
}

/// A part of a document, as its text; nothing where there is none.
type Part<'t> = Option<&'t str>;

impl<'m> Filler<'m> {
    pub(super) fn new(makes: &'m mut dyn Makes) -> Self {
        Self { makes, level: 0 }
    }

    /// The fields of a row from an object.
    ///
    /// # Errors
    /// Where the document is no object, or something in it no value of the field.
    pub(super) fn row(
        &mut self,
        fields: &[(String, Target)],
        document: &str,
        before: Option<Vec<Value>>,
    ) -> Outcome<Vec<Value>> {
        let what = match Kind::of(document) {
            Kind::Object => return self.of_object(fields, document, before),
            Kind::Array => "an array",
            _ => "a scalar",
        };
        Err(wrong(format!("cannot call populate_composite on {what}")))
    }

    /// The same for each element of an array, in order.
    ///
    /// # Errors
    /// As [`Self::row`], and where the document is no array of objects; `check` sees each before.
    pub(super) fn rows(
        &mut self,
        (fields, before): (&[(String, Target)], Option<&[Value]>),
        parts: &[&str],
        check: impl Fn(&str) -> Outcome<()>,
    ) -> Outcome<Vec<Vec<Value>>> {
        let mut rows = Vec::with_capacity(parts.len());
        for part in parts {
            check(part)?;
            rows.push(self.of_object(fields, part, before.map(<[Value]>::to_vec))?);
        }
        Ok(rows)
    }

    fn of_object(
        &mut self,
        fields: &[(String, Target)],
        document: &str,
        before: Option<Vec<Value>>,
    ) -> Outcome<Vec<Value>> {
        let found = members(document)?;
        // Of a row that was given nothing is looked at again.
        if let (Some(before), true) = (&before, found.is_empty()) {
            return Ok(before.clone());
        }
        let has_row = before.is_some();
        let mut before = before.unwrap_or_default().into_iter();
        let mut filled = Vec::with_capacity(fields.len());
        for (name, target) in fields {
            let own = before.next().flatten();
            let part = found.iter().rev().find(|(other, _)| other == name);
            filled.push(match part {
                None if has_row => own,
                part => self.field(target, part.map(|(_, part)| *part), Some(name), own)?,
            });
        }
        Ok(filled)
    }

    /// A value of a type. `own` is what the field was before.
    pub(super) fn field(
        &mut self,
        target: &Target,
        part: Part<'_>,
        name: Option<&str>,
        own: Value,
    ) -> Outcome<Value> {
        if self.level >= MOST_LEVELS {
            return Err(StatementError::unsupported("rows and arrays so deep within each other"));
        }
        self.level += 1;
        let filled = self.value(target, part, name, own);
        self.level -= 1;
        filled
    }

    fn value(
        &mut self,
        target: &Target,
        part: Part<'_>,
        name: Option<&str>,
        own: Value,
    ) -> Outcome<Value> {
        let Some(part) = part.map(trimmed).filter(|part| Kind::of(part) != Kind::Null) else {
            if matches!(target.parts, Parts::Domain(_)) {
                self.makes.accept(target, None)?;
            }
            return Ok(None);
        };
        if Kind::of(part) == Kind::String && target.is_read_of_strings() {
            return self.makes.read(target, &unescaped(part)?).map(Some);
        }
        match &target.parts {
            Parts::None => {
                let text = as_text(part)?.unwrap_or_default();
                self.makes.read(target, &text).map(Some)
            }
            Parts::Document => self.makes.read(target, &as_document(part)?).map(Some),
            Parts::Elements(element) => {
                let mut dimensions = Dimensions::new(element, name);
                dimensions.fill(self, part)?;
                let (lengths, elements) = dimensions.done();
                self.makes.array(target, &lengths, elements).map(Some)
            }
            Parts::Fields(fields) => {
                let before = own.map(|own| self.makes.fields(target, &own)).transpose()?;
                let filled = self.row(fields, part, before)?;
                self.makes.row(target, filled).map(Some)
            }
            Parts::Domain(base) => {
                let own = own.filter(|_| base.is_row());
                let value = self.field(base, Some(part), name, own)?;
                self.makes.accept(target, value.as_deref())?;
                Ok(value)
            }
        }
    }
}

/// A part as a document of its own: strings are written anew, all else stays as it is.
fn as_document(part: &str) -> Outcome<String> {
    Ok(match Kind::of(part) {
        Kind::String => super::super::json_changes::quoted(&unescaped(part)?),
        _ => part.to_owned(),
    })
}

#[cold]
pub(super) fn wrong(message: String) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}
