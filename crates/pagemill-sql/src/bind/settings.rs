//! `pg_settings`, of which only single settings are known: those that a condition names.
//!
//! ```text
//! SELECT setting FROM pg_settings WHERE name = 'max_index_keys'
//! ```
//!
//! Invariant: no row is made up or left out. What a server would have for the other settings is in no file, so that a statement
//! that does not name them by constants is refused.
//!
//! Source: `show_all_settings` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15), PostgreSQL 14 to 18.

use std::rc::Rc;

use sqlparser::ast::{
    BinaryOperator, Expr as Syntax, Ident, ObjectNamePart, Select, TableFactor, Value,
};

use super::Binder;
use super::scope::folded;
use crate::coerce::constant;
use crate::error::{Result, StatementError};
use crate::typed::Typed;
use crate::types::PgType;

/// The name under which the server's function is known.
pub(super) const ALL_SETTINGS: &str = "show_all_settings";

impl Binder<'_> {
    /// What binds FROM of this SELECT, with the settings that it names in mind.
    pub(super) fn with_settings<T>(
        &mut self,
        select: &Select,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let Some(names) = settings_named(select) else { return bind(self) };
        let before = self.settings.replace(names.into());
        let bound = bind(self);
        self.settings = before;
        bound
    }

    /// The names, as the argument that the function has none of on the server.
    pub(super) fn settings_argument(&self) -> Result<Typed> {
        let refused = || {
            let error = StatementError::unsupported("pg_settings without names of settings");
            error.with_hint("WHERE name = '…' asks for a setting that is known.")
        };
        let names = self.settings.clone().ok_or_else(refused)?;
        let text = PgType::new(pagemill_types::builtin::oid::TEXT);
        constant(&self.catalog, text, &names.join(","))
    }
}

/// The settings that the rows of a SELECT are of, if it is one of `pg_settings` alone.
fn settings_named(select: &Select) -> Option<Vec<String>> {
    let [item] = &select.from[..] else { return None };
    let TableFactor::Table { name, args: None, .. } = &item.relation else { return None };
    let parts: Vec<&Ident> = name
        .0
        .iter()
        .filter_map(|part| match part {
            ObjectNamePart::Identifier(ident) => Some(ident),
            _ => None,
        })
        .collect();
    let names: Vec<String> = parts.into_iter().map(folded).collect();
    let is_view = match &names[..] {
        [view] => view == "pg_settings",
        [schema, view] => schema == "pg_catalog" && view == "pg_settings",
        _ => false,
    };
    match is_view && item.joins.is_empty() {
        true => named(select.selection.as_ref()?),
        false => None,
    }
}

/// The names that a condition allows.
fn named(condition: &Syntax) -> Option<Vec<String>> {
    match condition {
        Syntax::Nested(inner) => named(inner),
        Syntax::BinaryOp { left, op: BinaryOperator::And, right } => {
            named(left).or_else(|| named(right))
        }
        Syntax::BinaryOp { left, op: BinaryOperator::Eq, right } if is_name(left) => {
            Some(vec![text(right)?])
        }
        Syntax::InList { expr, list, negated: false } if is_name(expr) => {
            list.iter().map(text).collect()
        }
        _ => None,
    }
}

fn is_name(syntax: &Syntax) -> bool {
    match syntax {
        Syntax::Identifier(name) => folded(name) == "name",
        Syntax::CompoundIdentifier(parts) => {
            matches!(&parts[..], [_, name] if folded(name) == "name")
        }
        _ => false,
    }
}

fn text(syntax: &Syntax) -> Option<String> {
    match syntax {
        Syntax::Value(value) => match &value.value {
            // A comma would be taken for the end of a name, and is in none.
            Value::SingleQuotedString(text) if !text.contains(',') => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Settings by name.
pub(super) type Settings = Rc<[String]>;

#[cfg(test)]
mod tests {
    use sqlparser::ast::{SetExpr, Statement};

    use super::*;
    use crate::session::Session;

    fn asked(text: &str) -> Option<Vec<String>> {
        let statements = Session::parse(text).unwrap();
        let [Statement::Query(query)] = &statements[..] else { panic!("a query") };
        let SetExpr::Select(select) = &*query.body else { panic!("a SELECT") };
        settings_named(select)
    }

    #[test]
    fn the_settings_that_a_statement_names_are_found() {
        let one = asked("select setting from pg_catalog.pg_settings where name = 'a'");
        assert_eq!(one, Some(vec!["a".to_owned()]));
        let two =
            asked("select * from pg_settings s where (s.name in ('a', 'b')) and setting > '1'");
        assert_eq!(two, Some(vec!["a".to_owned(), "b".to_owned()]));
        for other in [
            "select * from pg_settings",
            "select * from pg_settings where name like 'a%'",
            "select * from pg_settings where name = 'a' or name = 'b'",
            "select * from pg_settings, pg_class where name = 'a'",
            "select * from mine.pg_settings where name = 'a'",
            "select * from pg_settings where name = setting",
        ] {
            assert_eq!(asked(other), None, "{other}");
        }
    }
}
