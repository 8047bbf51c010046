//! Key words that name nothing unless they stand in quotes.
//!
//! The parser takes any word for a column, an alias or a function where it expects one: `select 1 from t all` calls the table
//! `all`, and `varchar(1)` is a call. PostgreSQL's grammar has no such statements, and none of them may be answered.
//!
//! Invariant: a word behind a point, or behind AS in a list of columns, may be any.
//!
//! Source: the categories of words in `src/include/parser/kwlist.h`, PostgreSQL 14 to 18.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor,
};

use crate::error::StatementError;

/// Words that are reserved on all versions.
const RESERVED: &str = " all analyse analyze and any array as asc asymmetric both case cast check collate column constraint \
    create default deferrable desc distinct do else end except false fetch for foreign from grant group having in \
    initially intersect into lateral leading limit not null offset on only or order placing primary references returning select \
    some symmetric table then to trailing true union unique using variadic when where window with ";

/// Reserved ones that are values by themselves.
const VALUES: &str = " current_catalog current_date current_role current_time current_schema current_timestamp current_user localtime localtimestamp \
    session_user user ";

/// Words that name functions and types only.
const FUNCTIONS: &str = " authorization binary collation concurrently cross freeze full ilike inner is isnull join left like \
    natural notnull outer overlaps right similar tablesample verbose ";

/// Words that name anything but functions, and are no forms of calls.
const NO_FUNCTIONS: &str = " between bigint bit boolean char character dec decimal float inout int integer interval national \
    nchar none numeric out precision real setof smallint time timestamp values varchar ";

/// Reserved ones before what the parser takes for arguments: `ARRAY(SELECT …)`, and `LIKE ANY (…)`.
const FORMS: &str = " all any array some ";

fn is_of(words: &[&str], name: &Ident) -> bool {
    let wanted = format!(" {} ", name.value.to_ascii_lowercase());
    name.quote_style.is_none() && words.iter().any(|list| list.contains(&wanted))
}

fn refused(name: &Ident) -> ControlFlow<StatementError> {
    let what = format!("the key word {} as a name", name.value.to_uppercase());
    let start = name.span.start;
    ControlFlow::Break(StatementError::unsupported(what).at(start.line, start.column))
}

fn check(name: &Ident, words: &[&str]) -> ControlFlow<StatementError> {
    match is_of(words, name) {
        true => refused(name),
        false => ControlFlow::Continue(()),
    }
}

/// Checks a column by its first name, or what a function is called.
pub(crate) fn check_expr(expr: &Expr) -> ControlFlow<StatementError> {
    match expr {
        Expr::Identifier(name) => check(name, &[RESERVED, FUNCTIONS]),
        Expr::CompoundIdentifier(parts) => match parts.first() {
            Some(first) => check(first, &[RESERVED, VALUES, FUNCTIONS]),
            None => ControlFlow::Continue(()),
        },
        Expr::Function(call) => check_call(call),
        _ => ControlFlow::Continue(()),
    }
}

fn check_call(call: &Function) -> ControlFlow<StatementError> {
    match &call.name.0[..] {
        [ObjectNamePart::Identifier(name)] => match is_of(&[FORMS], name) {
            true => ControlFlow::Continue(()),
            false => check(name, &[RESERVED, NO_FUNCTIONS]),
        },
        _ => ControlFlow::Continue(()),
    }
}

/// Checks what the tables of WITH are called.
pub(crate) fn check_query(query: &Query) -> ControlFlow<StatementError> {
    let tables = query.with.iter().flat_map(|with| &with.cte_tables);
    tables.into_iter().try_for_each(|table| check_alias(&table.alias))
}

fn check_alias(alias: &TableAlias) -> ControlFlow<StatementError> {
    let names = std::iter::once(&alias.name).chain(alias.columns.iter().map(|column| &column.name));
    names.into_iter().try_for_each(|name| check(name, &[RESERVED, VALUES, FUNCTIONS]))
}

/// Checks what an item of FROM is called.
pub(crate) fn check_item(item: &TableFactor) -> ControlFlow<StatementError> {
    let alias = match item {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_ref(),
        _ => None,
    };
    alias.map_or(ControlFlow::Continue(()), check_alias)
}

/// Checks the first name of a relation; a function of FROM may have more.
pub(crate) fn check_relation(name: &ObjectName) -> ControlFlow<StatementError> {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(first)) => check(first, &[RESERVED]),
        _ => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::session::Session;

    #[test]
    fn reserved_words_are_no_names() {
        for (text, good) in [
            ("select 1 from t all", false),
            ("select 1 from t as analyse", false),
            ("select x from (select 1) desc(x)", false),
            ("with end as (select 1) select 1", false),
            ("select 1 + table", false),
            ("select check.a from t", false),
            ("select varchar(1)", false),
            ("select 1 from t user", false),
            ("select user, current_date, array(select 1), left('a', 1), t.all from t", true),
            ("select 1 as all, \"all\" from t \"desc\"", true),
            ("select name, value, type, year from t as key", true),
            (
                "select count(all x), row(1, 2), coalesce(a, b), a = all (select 1) from t limit all",
                true,
            ),
        ] {
            assert_eq!(Session::parse(text).is_ok(), good, "{text}");
        }
    }
}
