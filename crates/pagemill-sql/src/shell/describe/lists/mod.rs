//! Which list each command shows.
//!
//! Invariant: columns, titles and order are psql's; what a version of the server lacks is not asked of its catalogs.
//!
//! Source: `src/bin/psql/describe.c` and `exec_command_d` in `command.c`, PostgreSQL 15.

mod foreign;
mod relations;
mod replication;
mod roles;
mod routines;
mod text_search;
mod types;

use super::list::{Asked, List, Named};
pub(super) use relations::of_relations;

/// What the columns of access lists are called.
const ACCESS: &str = "Access privileges";

/// The list of a command; `None` for a command that shows none.
///
/// # Errors
/// When the pattern names what these objects have none of.
pub(super) fn list(asked: &Asked<'_>) -> Option<Result<List, String>> {
    Some(match asked.letters {
        "l" | "list" => relations::databases(asked),
        "db" => relations::tablespaces(asked),
        "dn" => relations::schemas(asked),
        "dp" | "z" => relations::privileges(asked),
        "ddp" => relations::default_privileges(asked),
        "dl" | "lo_list" => large_objects(asked),
        "du" | "dg" => roles::roles(asked),
        "drds" => roles::settings(asked),
        "dT" => types::types(asked),
        "dD" => types::domains(asked),
        "dC" => types::casts(asked),
        "dO" => types::collations(asked),
        "da" => routines::aggregates(asked),
        "do" => routines::operators(asked),
        "dL" => routines::languages(asked),
        "dy" => routines::event_triggers(asked),
        "dA" => routines::access_methods(asked),
        "dx" if !asked.is_verbose => extensions(asked),
        "dew" => foreign::wrappers(asked),
        "des" => foreign::servers(asked),
        "deu" => foreign::user_mappings(asked),
        "det" => foreign::tables(asked),
        "dRp" if !asked.is_verbose => replication::publications(asked),
        "dRs" => replication::subscriptions(asked),
        "dF" if !asked.is_verbose => text_search::configurations(asked),
        "dFd" => text_search::dictionaries(asked),
        "dFp" if !asked.is_verbose => text_search::parsers(asked),
        "dFt" => text_search::templates(asked),
        letters => {
            let kinds = letters.strip_prefix('d')?;
            return match kinds.strip_prefix('f') {
                Some(kinds) => {
                    routines::kinds(kinds).map(|kinds| routines::functions(asked, &kinds))
                }
                None => relations::kinds(kinds).map(|kinds| relations::relations(asked, &kinds)),
            };
        }
    })
}

/// A text that a list is sorted by.
fn by_bytes(text: &str) -> String {
    format!("({text}) COLLATE \"C\"")
}

/// An access list as an item a line.
fn acl(column: &str) -> String {
    format!("array_to_string({column}, E'\\n')")
}

fn extensions(asked: &Asked<'_>) -> Result<List, String> {
    List::new(
        "List of installed extensions",
        "pg_extension e LEFT JOIN pg_namespace n ON n.oid = e.extnamespace",
        "1",
    )
    .columns(&[("Name", "e.extname"), ("Version", "e.extversion"), ("Schema", "n.nspname")])
    .columns(&[("Description", "obj_description(e.oid, 'pg_extension')")])
    .named(asked, &Named { names: &["e.extname"], ..Named::default() })
}

fn large_objects(asked: &Asked<'_>) -> Result<List, String> {
    let access = acl("o.lomacl");
    Ok(List::new("Large objects", "pg_largeobject_metadata o", "1")
        .columns(&[("ID", "o.oid"), ("Owner", "pg_get_userbyid(o.lomowner)")])
        .columns_if(asked.is_verbose, &[(ACCESS, &access)])
        .columns(&[("Description", "obj_description(o.oid, 'pg_largeobject')")]))
}
