//! Names of objects in texts, as a `regclass` has them: who cannot use a schema finds nothing in it by its name.
//!
//! Invariant: the check comes before the name is looked up, so that nobody learns what there is in a schema that is not his to use.
//!
//! Source: `LookupExplicitNamespace` in `src/backend/catalog/namespace.c`, `src/backend/utils/adt/regproc.c`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_types::output::{NameKind, TypeOutput};

use super::SCHEMAS;
use crate::catalog::Catalog;
use crate::error::Result;

impl Catalog {
    /// Refuses the text of a name in a schema that the session's role cannot use, where values of the type are names.
    ///
    /// # Errors
    /// When it is one.
    pub(crate) fn check_written_name(&self, ty: Oid, text: &str) -> Result<()> {
        if self.role().is_none() || !self.is_of_names(ty)? {
            return Ok(());
        }
        let Some(schema) = schema_in(text) else { return Ok(()) };
        match self.objects(&SCHEMAS)?.named(&schema) {
            Some(schema) => self.check_schema(schema),
            None => Ok(()),
        }
    }

    fn is_of_names(&self, ty: Oid) -> Result<bool> {
        let output = &self.values().value_type(ty)?.output;
        Ok(
            matches!(output, TypeOutput::Name(kind) if !matches!(kind, NameKind::Namespace | NameKind::Role)),
        )
    }
}

/// The schema that a name begins with, up to the arguments of a function.
pub(crate) fn schema_in(name: &str) -> Option<String> {
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in name.trim().chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(std::mem::take(&mut part)),
            '(' | '[' if !is_quoted => break,
            letter if is_quoted => part.push(letter),
            letter if letter.is_ascii_whitespace() => {}
            letter => part.push(letter.to_ascii_lowercase()),
        }
    }
    parts.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_found_before_names() {
        let found = |name| schema_in(name);
        assert_eq!(found("t"), None);
        assert_eq!(found(" A.t"), Some("a".to_owned()));
        assert_eq!(found("\"A.b\".\"t\""), Some("A.b".to_owned()));
        assert_eq!(found("d.s.t"), Some("s".to_owned()));
        assert_eq!(found("f(s.t)"), None);
    }
}
