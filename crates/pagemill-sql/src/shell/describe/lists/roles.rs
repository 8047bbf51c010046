//! Roles, and what is set for them.
//!
//! Invariant: a role of the system's is shown only where it is asked for.

use super::super::list::{Asked, List, Named, matching};

pub(super) fn roles(asked: &Asked<'_>) -> Result<List, String> {
    let words = "concat_ws(', ', CASE WHEN r.rolsuper THEN 'Superuser' END, \
        CASE WHEN NOT r.rolinherit THEN 'No inheritance' END, CASE WHEN r.rolcreaterole THEN 'Create role' END, \
        CASE WHEN r.rolcreatedb THEN 'Create DB' END, CASE WHEN NOT r.rolcanlogin THEN 'Cannot login' END, \
        CASE WHEN r.rolreplication THEN 'Replication' END, CASE WHEN r.rolbypassrls THEN 'Bypass RLS' END)";
    let attributes = format!(
        "concat_ws(E'\\n', nullif({words}, ''), CASE WHEN r.rolconnlimit = 0 THEN 'No connections' \
        WHEN r.rolconnlimit = 1 THEN '1 connection' \
        WHEN r.rolconnlimit > 1 THEN r.rolconnlimit || ' connections' END, \
        'Password valid until ' || r.rolvaliduntil)"
    );
    let groups = "ARRAY(SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid \
        WHERE m.member = r.oid)";
    let list = List::new("List of roles", "pg_roles r", "1")
        .columns(&[("Role name", "r.rolname"), ("Attributes", &attributes), ("Member of", groups)])
        .columns_if(asked.is_verbose, &[("Description", "shobj_description(r.oid, 'pg_authid')")])
        .named(asked, &Named { names: &["r.rolname"], ..Named::default() })?;
    let list = match asked.shows_system || asked.pattern.text().is_some() {
        true => list,
        false => list.only("r.rolname !~ '^pg_'"),
    };
    // This list alone has no count below it.
    Ok(list.uncounted())
}

pub(super) fn settings(asked: &Asked<'_>) -> Result<List, String> {
    let from = "pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase \
        LEFT JOIN pg_roles r ON r.oid = s.setrole";
    let list = List::new("List of settings", from, "1, 2")
        .columns(&[("Role", "r.rolname"), ("Database", "d.datname")])
        .columns(&[("Settings", "array_to_string(s.setconfig, E'\\n')")])
        .named(asked, &Named { names: &["r.rolname"], ..Named::default() })?
        .or_absent("settings");
    let of_databases = Named { names: &["d.datname"], ..Named::default() };
    Ok(match asked.others {
        [Some(database), ..] => match matching(database, &of_databases)? {
            Some(condition) => list.only(condition),
            None => list,
        },
        _ => list,
    })
}
