//! `\sf` and `\sv`: the statement that makes a function or a view.
//!
//! Invariant: the text is the server's own; only numbers of lines are put before it.
//!
//! Source: `exec_command_sf_sv`, `get_create_object_cmd` and `print_with_linenumbers` in `src/bin/psql/command.c`, PostgreSQL 15.

use super::Asking;
use crate::error::{Result, SqlState, StatementError};
use crate::functions::text::quote_literal;

/// The statement that makes what is named.
///
/// # Errors
/// When there is no such thing, or its text cannot be made.
pub(in crate::shell) fn source(asking: &Asking<'_>, name: &str, object: &str) -> Result<String> {
    let is_function = name.starts_with("sf");
    let text = if is_function { function(asking, object)? } else { view(asking, object)? };
    Ok(if name.ends_with('+') { numbered(&text, is_function) } else { text })
}

fn function(asking: &Asking<'_>, object: &str) -> Result<String> {
    let kind = if object.contains('(') { "regprocedure" } else { "regproc" };
    first(asking, &format!("SELECT pg_get_functiondef({}::{kind})", quote_literal(object)))
}

fn view(asking: &Asking<'_>, object: &str) -> Result<String> {
    let options = "array_to_string(ARRAY(SELECT quote_ident(o.option_name) || '=' || CASE WHEN quote_ident(o.option_value) = o.option_value \
                   THEN o.option_value ELSE quote_literal(o.option_value) END FROM pg_options_to_table(c.reloptions) o \
                   WHERE o.option_name <> 'check_option'), ', ')";
    let check = "(SELECT upper(o.option_value) FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'check_option')";
    let quoted = quote_literal(object);
    let is_view = first(
        asking,
        &format!("SELECT c.relkind = 'v' FROM pg_class c WHERE c.oid = {quoted}::regclass"),
    )?;
    if is_view != "t" {
        let message = format!("\"{object}\" is not a view");
        return Err(StatementError::new(SqlState("42809"), message).into());
    }
    first(
        asking,
        &format!(
            "SELECT 'CREATE OR REPLACE VIEW ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname) \
             || coalesce(E'\\n WITH (' || nullif({options}, '') || ')', '') || E' AS\\n' \
             || rtrim(pg_get_viewdef(c.oid, true), ';') || coalesce(E'\\n WITH ' || {check} || ' CHECK OPTION', '') \
             || E'\\n' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {quoted}::regclass"
        ),
    )
}

/// The first value of an answer.
fn first(asking: &Asking<'_>, sql: &str) -> Result<String> {
    let mut table = asking.table(sql)?;
    let value = table.rows.pop().and_then(|mut row| row.pop().flatten());
    Ok(value.unwrap_or_default())
}

/// With numbers before its lines; those of a function begin at its body.
fn numbered(text: &str, is_function: bool) -> String {
    let begins =
        |line: &str| ["AS ", "BEGIN ", "RETURN "].iter().any(|word| line.starts_with(word));
    let (mut is_header, mut number, mut made) = (is_function, 0, String::new());
    for line in text.lines() {
        is_header &= !begins(line);
        if is_header {
            made.push_str(&format!("        {line}\n"));
        } else {
            number += 1;
            made.push_str(&format!("{number:<7} {line}\n"));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn lines_of_a_body_are_numbered_from_its_first() {
        let text = "CREATE FUNCTION f()\n LANGUAGE sql\nAS $$\nselect 1\n$$\n";
        let expected = "        CREATE FUNCTION f()\n         LANGUAGE sql\n1       AS $$\n2       select 1\n3       $$\n";
        assert_eq!(numbered(text, true), expected);
        assert_eq!(numbered("a\nb\n", false), "1       a\n2       b\n");
    }
}
