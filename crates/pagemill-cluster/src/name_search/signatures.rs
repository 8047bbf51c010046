//! Functions and operators, found by their names alone or with their arguments.
//!
//! Source: `regprocin`, `regprocedurein`, `regoperin`, `regoperatorin` and `parseNameAndArgTypes` in
//! `src/backend/utils/adt/regproc.c`, PostgreSQL 14 to 18.

use pagemill_format::{Oid, PgVersion};
use pagemill_types::input::InputError;

use super::identifiers::{is_space, skip_space, trim_space};
use super::objects::{Object, Objects};
use super::{NameResult, NameSearch, ready};

/// Most arguments of a function (`FUNC_MAX_ARGS`).
const MAX_ARGUMENTS: usize = 100;

impl NameSearch {
    pub(super) fn find_proc(&self, text: &[u8]) -> NameResult {
        let found = self.all_of(ready(self.procs())?, text)?;
        match found[..] {
            [proc] => Ok(proc.oid),
            [] => Err(message("function \"", text, "\" does not exist")),
            _ => Err(message("more than one function named \"", text, "\"")),
        }
    }

    pub(super) fn find_proc_with_args(&self, text: &[u8]) -> NameResult {
        let (name, args) = self.signature(text, false)?;
        let found = self.all_of(ready(self.procs())?, name)?;
        let found = found.iter().find(|proc| *proc.args == *args);
        let found = found.ok_or_else(|| message("function \"", text, "\" does not exist"))?;
        Ok(found.oid)
    }

    pub(super) fn find_operator(&self, text: &[u8]) -> NameResult {
        let found = self.all_of(ready(self.operators())?, text)?;
        match found[..] {
            [operator] => Ok(operator.oid),
            [] => Err(message("operator does not exist: ", text, "")),
            _ => Err(message("more than one operator named ", text, "")),
        }
    }

    pub(super) fn find_operator_with_args(&self, text: &[u8]) -> NameResult {
        let (name, args) = self.signature(text, true)?;
        match args.len() {
            1 => return Err(InputError::new("missing argument")),
            2 => {}
            _ => return Err(InputError::new("too many arguments")),
        }
        // Whatever is wrong with the schema, there is no such operator in it.
        let found = self.all_of(ready(self.operators())?, name).unwrap_or_default();
        let found = found.iter().find(|operator| *operator.args == *args);
        found
            .map(|operator| operator.oid)
            .ok_or_else(|| message("operator does not exist: ", text, ""))
    }

    /// Everything that a name finds. From 16 on, a schema that is not there just has nothing in it.
    fn all_of<'o>(&self, objects: &'o Objects, text: &[u8]) -> Result<Vec<&'o Object>, InputError> {
        let names = self.names(text)?;
        let (schema, name) = self.qualified(&names)?;
        let schema = match schema.map(|schema| self.schema(schema)) {
            Some(Ok(schema)) => Some(schema),
            Some(Err(error)) if self.settings.version < PgVersion::V16 => return Err(error),
            Some(Err(_)) => return Ok(Vec::new()),
            None => None,
        };
        Ok(objects.visible(name, schema, &ready(self.schemas())?.path))
    }

    /// A name and the types in the parentheses behind it.
    fn signature<'t>(
        &self,
        text: &'t [u8],
        none_allowed: bool,
    ) -> Result<(&'t [u8], Vec<Oid>), InputError> {
        let mut quoted = false;
        let opens = |byte: &u8| {
            quoted ^= *byte == b'"';
            *byte == b'(' && !quoted
        };
        let at = text.iter().position(opens);
        let at = at.ok_or_else(|| InputError::new("expected a left parenthesis"))?;
        let (name, rest) = text.split_at_checked(at).unwrap_or_default();
        self.names(name)?;
        let rest = rest.get(1..).unwrap_or_default();
        let spaces = rest.iter().rev().take_while(|byte| is_space(**byte)).count();
        let rest = rest.get(..rest.len() - spaces).unwrap_or_default();
        let inside = rest.strip_suffix(b")");
        let inside = inside.ok_or_else(|| InputError::new("expected a right parenthesis"))?;
        Ok((name, self.arguments(inside, none_allowed)?))
    }

    fn arguments(&self, text: &[u8], none_allowed: bool) -> Result<Vec<Oid>, InputError> {
        let (mut found, mut rest) = (Vec::new(), skip_space(text));
        let mut more = !rest.is_empty();
        while more {
            if rest.is_empty() {
                return Err(InputError::new("expected a type name"));
            }
            let (name, after) = one_argument(rest)?;
            let none = none_allowed && name.eq_ignore_ascii_case(b"none");
            let oid = if none { Oid::INVALID } else { self.find_type(name)? };
            if found.len() >= MAX_ARGUMENTS {
                return Err(InputError::new("too many arguments"));
            }
            found.push(oid);
            more = after.is_some();
            rest = skip_space(after.unwrap_or_default());
        }
        Ok(found)
    }
}

/// The text of a type up to a comma, and what comes behind the comma if there is one.
fn one_argument(text: &[u8]) -> Result<(&[u8], Option<&[u8]>), InputError> {
    let (mut quoted, mut depth) = (false, 0_i32);
    let ends = |byte: &u8| {
        match byte {
            b'"' => quoted = !quoted,
            b'(' | b'[' if !quoted => depth += 1,
            b')' | b']' if !quoted => depth -= 1,
            b',' => return !quoted && depth == 0,
            _ => {}
        }
        false
    };
    let comma = text.iter().position(ends);
    if comma.is_none() && (quoted || depth != 0) {
        return Err(InputError::new("improper type name"));
    }
    let (name, rest) = text.split_at_checked(comma.unwrap_or(text.len())).unwrap_or_default();
    Ok((trim_space(name), rest.get(1..)))
}

#[cold]
fn message(before: &str, text: &[u8], after: &str) -> InputError {
    InputError::new(format!("{before}{}{after}", String::from_utf8_lossy(text)))
}
