//! Foreign-data wrappers, servers, mappings of users and foreign tables.
//!
//! Invariant: options are shown as `CREATE` takes them.

use super::super::list::{Asked, List, Named};
use super::relations::of_relations;
use super::{ACCESS, acl};

/// What the columns of options are called.
const OPTIONS: &str = "FDW options";

/// A list of options in parentheses.
fn options(column: &str) -> String {
    format!(
        "CASE WHEN {column} IS NULL THEN '' ELSE '(' || array_to_string(ARRAY(SELECT quote_ident(x.option_name) || ' ' \
        || quote_literal(x.option_value) FROM pg_options_to_table({column}) x), ', ') || ')' END"
    )
}

pub(super) fn wrappers(asked: &Asked<'_>) -> Result<List, String> {
    let (access, options) = (acl("w.fdwacl"), options("w.fdwoptions"));
    let comment = "obj_description(w.oid, 'pg_foreign_data_wrapper')";
    List::new("List of foreign-data wrappers", "pg_foreign_data_wrapper w", "1")
        .columns(&[("Name", "w.fdwname"), ("Owner", "pg_get_userbyid(w.fdwowner)")])
        .columns(&[("Handler", "w.fdwhandler::regproc"), ("Validator", "w.fdwvalidator::regproc")])
        .columns_if(
            asked.is_verbose,
            &[(ACCESS, &access), (OPTIONS, &options), ("Description", comment)],
        )
        .named(asked, &Named { names: &["w.fdwname"], ..Named::default() })
}

pub(super) fn servers(asked: &Asked<'_>) -> Result<List, String> {
    let (access, options) = (acl("s.srvacl"), options("s.srvoptions"));
    let more = [
        (ACCESS, access.as_str()),
        ("Type", "s.srvtype"),
        ("Version", "s.srvversion"),
        (OPTIONS, &options),
        ("Description", "obj_description(s.oid, 'pg_foreign_server')"),
    ];
    let from = "pg_foreign_server s JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw";
    List::new("List of foreign servers", from, "1")
        .columns(&[("Name", "s.srvname"), ("Owner", "pg_get_userbyid(s.srvowner)")])
        .columns(&[("Foreign-data wrapper", "w.fdwname")])
        .columns_if(asked.is_verbose, &more)
        .named(asked, &Named { names: &["s.srvname"], ..Named::default() })
}

pub(super) fn user_mappings(asked: &Asked<'_>) -> Result<List, String> {
    let options = options("m.umoptions");
    List::new("List of user mappings", "pg_user_mappings m", "1, 2")
        .columns(&[("Server", "m.srvname"), ("User name", "m.usename")])
        .columns_if(asked.is_verbose, &[(OPTIONS, &options)])
        .named(asked, &Named { names: &["m.srvname", "m.usename"], ..Named::default() })
}

pub(super) fn tables(asked: &Asked<'_>) -> Result<List, String> {
    let options = options("f.ftoptions");
    let more = [(OPTIONS, options.as_str()), ("Description", "obj_description(c.oid, 'pg_class')")];
    let from = "pg_foreign_table f JOIN pg_class c ON c.oid = f.ftrelid \
        JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_foreign_server s ON s.oid = f.ftserver";
    List::new("List of foreign tables", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Table", "c.relname"), ("Server", "s.srvname")])
        .columns_if(asked.is_verbose, &more)
        .named(asked, &of_relations())
}
