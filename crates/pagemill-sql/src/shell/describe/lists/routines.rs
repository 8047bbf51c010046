//! Functions, aggregates, operators, and what runs them: languages, event triggers, access methods.
//!
//! Invariant: without any letters of kinds, functions of all kinds are shown.

use super::super::list::{Asked, List, Named, matching};
use super::super::pattern::Pattern;
use super::types::of_types;
use super::{ACCESS, acl, by_bytes};

const FUNCTIONS: &str = "pg_proc p LEFT JOIN pg_namespace n ON n.oid = p.pronamespace";

/// The kinds of functions that letters of a command stand for; `None` for other letters.
pub(super) fn kinds(letters: &str) -> Option<String> {
    let kinds = if letters.is_empty() { "anptw" } else { letters };
    kinds.chars().all(|c| "anptw".contains(c)).then(|| kinds.to_owned())
}

/// The condition that a function is of one of these kinds.
fn of_kinds(kinds: &str) -> Option<String> {
    let has = |kind| kinds.contains(kind);
    let (is_trigger, all) =
        ("p.prorettype = 'trigger'::regtype", [('a', 'a'), ('p', 'p'), ('w', 'w')]);
    if "anptw".chars().all(has) {
        return None;
    }
    let conditions: Vec<String> = if has('n') {
        let left_out = all.iter().filter(|(letter, _)| !has(*letter));
        let left_out = left_out.map(|(_, kind)| format!("p.prokind <> '{kind}'"));
        left_out.chain((!has('t')).then(|| format!("NOT {is_trigger}"))).collect()
    } else {
        let shown = all.iter().filter(|(letter, _)| has(*letter));
        let shown = shown.map(|(_, kind)| format!("p.prokind = '{kind}'"));
        shown.chain(has('t').then(|| is_trigger.to_owned())).collect()
    };
    Some(conditions.join(if has('n') { " AND " } else { " OR " }))
}

fn of_functions() -> Named {
    let visible = Some("pg_function_is_visible(p.oid)");
    Named { schema: Some("n.nspname"), names: &["p.proname"], visible }
}

/// The condition that a type is the one that a pattern means; without a pattern, that there is none.
fn is_type(of: &str, pattern: Option<&Pattern>) -> Result<String, String> {
    let meant = match pattern {
        None => return Ok(format!("coalesce({of}, 0) = 0")),
        Some(pattern) => matching(pattern, &of_types())?,
    };
    let meant = meant.unwrap_or_else(|| "true".to_owned());
    Ok(format!(
        "{of} IN (SELECT t.oid FROM pg_type t LEFT JOIN pg_namespace n ON n.oid = t.typnamespace WHERE {meant})"
    ))
}

/// Functions of these kinds.
pub(super) fn functions(asked: &Asked<'_>, kinds: &str) -> Result<List, String> {
    let kind = "CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END";
    let access = acl("p.proacl");
    let more = [
        (
            "Volatility",
            "CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END",
        ),
        (
            "Parallel",
            "CASE p.proparallel WHEN 'r' THEN 'restricted' WHEN 's' THEN 'safe' ELSE 'unsafe' END",
        ),
        ("Owner", "pg_get_userbyid(p.proowner)"),
        ("Security", "CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END"),
        (ACCESS, &access),
        ("Language", "(SELECT l.lanname FROM pg_language l WHERE l.oid = p.prolang)"),
        ("Source code", "coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)"),
        ("Description", "obj_description(p.oid, 'pg_proc')"),
    ];
    let list = List::new("List of functions", FUNCTIONS, "1, 2, 4")
        .columns(&[("Schema", "n.nspname"), ("Name", "p.proname")])
        .columns(&[("Result data type", "pg_get_function_result(p.oid)")])
        .columns(&[("Argument data types", &by_bytes("pg_get_function_arguments(p.oid)"))])
        .columns(&[("Type", kind)])
        .columns_if(asked.is_verbose, &more)
        .without_system(asked, "n.nspname")
        .named(asked, &of_functions())?;
    let argument = |(at, pattern): (usize, &Option<Pattern>)| {
        is_type(&format!("p.proargtypes[{at}]"), pattern.as_ref())
    };
    let arguments = asked.others.iter().enumerate().map(argument);
    let conditions = of_kinds(kinds).map(Ok).into_iter().chain(arguments);
    conditions.into_iter().try_fold(list, |list, condition| Ok(list.only(condition?)))
}

pub(super) fn aggregates(asked: &Asked<'_>) -> Result<List, String> {
    let arguments = "CASE WHEN p.pronargs = 0 THEN '*' ELSE pg_get_function_arguments(p.oid) END";
    List::new("List of aggregate functions", FUNCTIONS, "1, 2, 4")
        .columns(&[("Schema", "n.nspname"), ("Name", "p.proname")])
        .columns(&[("Result data type", "format_type(p.prorettype, NULL)")])
        .columns(&[("Argument data types", &by_bytes(arguments))])
        .columns(&[("Description", "obj_description(p.oid, 'pg_proc')")])
        .only("p.prokind = 'a'")
        .without_system(asked, "n.nspname")
        .named(asked, &of_functions())
}

pub(super) fn operators(asked: &Asked<'_>) -> Result<List, String> {
    let left = "CASE WHEN o.oprkind <> 'l' THEN format_type(o.oprleft, NULL) END";
    let right = "CASE WHEN o.oprkind <> 'r' THEN format_type(o.oprright, NULL) END";
    let comment =
        "coalesce(obj_description(o.oid, 'pg_operator'), obj_description(o.oprcode, 'pg_proc'))";
    let visible = Some("pg_operator_is_visible(o.oid)");
    let from = "pg_operator o LEFT JOIN pg_namespace n ON n.oid = o.oprnamespace";
    let list = List::new("List of operators", from, "1, 2, 3, 4")
        .columns(&[
            ("Schema", "n.nspname"),
            ("Name", "o.oprname"),
            ("Left arg type", &by_bytes(left)),
        ])
        .columns(&[("Right arg type", &by_bytes(right))])
        .columns(&[("Result type", "format_type(o.oprresult, NULL)")])
        .columns_if(asked.is_verbose, &[("Function", "o.oprcode")])
        .columns(&[("Description", comment)])
        .without_system(asked, "n.nspname")
        .named(asked, &Named { schema: Some("n.nspname"), names: &["o.oprname"], visible })?;
    // One type is that of the operand of a prefix operator.
    let operands = match asked.others {
        [] => return Ok(list),
        [right] => (None, right.as_ref()),
        [left, right, ..] => (left.as_ref(), right.as_ref()),
    };
    Ok(list.only(is_type("o.oprleft", operands.0)?).only(is_type("o.oprright", operands.1)?))
}

pub(super) fn languages(asked: &Asked<'_>) -> Result<List, String> {
    let access = acl("l.lanacl");
    let more = [
        ("Internal language", "NOT l.lanispl"),
        ("Call handler", "l.lanplcallfoid::regprocedure"),
        ("Validator", "l.lanvalidator::regprocedure"),
        ("Inline handler", "l.laninline::regprocedure"),
        (ACCESS, &access),
    ];
    let list = List::new("List of languages", "pg_language l", "1")
        .columns(&[("Name", "l.lanname"), ("Owner", "pg_get_userbyid(l.lanowner)")])
        .columns(&[("Trusted", "l.lanpltrusted")])
        .columns_if(asked.is_verbose, &more)
        .columns(&[("Description", "obj_description(l.oid, 'pg_language')")])
        .named(asked, &Named { names: &["l.lanname"], ..Named::default() })?;
    Ok(match asked.shows_system || asked.pattern.text().is_some() {
        true => list,
        false => list.only("l.lanplcallfoid <> 0"),
    })
}

pub(super) fn event_triggers(asked: &Asked<'_>) -> Result<List, String> {
    let enabled = "CASE e.evtenabled WHEN 'O' THEN 'enabled' WHEN 'R' THEN 'replica' WHEN 'A' THEN 'always' \
        WHEN 'D' THEN 'disabled' END";
    List::new("List of event triggers", "pg_event_trigger e", "1")
        .columns(&[("Name", "e.evtname"), ("Event", "e.evtevent")])
        .columns(&[("Owner", "pg_get_userbyid(e.evtowner)"), ("Enabled", enabled)])
        .columns(&[
            ("Function", "e.evtfoid::regproc"),
            ("Tags", "array_to_string(e.evttags, ', ')"),
        ])
        .columns_if(
            asked.is_verbose,
            &[("Description", "obj_description(e.oid, 'pg_event_trigger')")],
        )
        .named(asked, &Named { names: &["e.evtname"], ..Named::default() })
}

pub(super) fn access_methods(asked: &Asked<'_>) -> Result<List, String> {
    let more = [("Handler", "m.amhandler"), ("Description", "obj_description(m.oid, 'pg_am')")];
    List::new("List of access methods", "pg_am m", "1")
        .columns(&[("Name", "m.amname")])
        .columns(&[("Type", "CASE m.amtype WHEN 'i' THEN 'Index' WHEN 't' THEN 'Table' END")])
        .columns_if(asked.is_verbose, &more)
        .named(asked, &Named { names: &["m.amname"], ..Named::default() })
}
