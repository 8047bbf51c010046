//! Types, domains, casts and collations.
//!
//! Invariant: a type is found by the name that the catalogs have and by the one that SQL has.

use super::super::list::{Asked, List, Named, matching};
use super::{ACCESS, acl, by_bytes};

/// The version from which a collation's locale has a name of its own.
const OTHER_LOCALES: u32 = 17;

pub(super) fn types(asked: &Asked<'_>) -> Result<List, String> {
    let size = "CASE WHEN t.typrelid <> 0 THEN 'tuple' WHEN t.typlen < 0 THEN 'var' ELSE t.typlen::text END";
    let elements = "array_to_string(ARRAY(SELECT e.enumlabel FROM pg_enum e WHERE e.enumtypid = t.oid \
        ORDER BY e.enumsortorder), E'\\n')";
    let access = acl("t.typacl");
    let more = [
        ("Internal name", "t.typname"),
        ("Size", size),
        ("Elements", elements),
        ("Owner", "pg_get_userbyid(t.typowner)"),
        (ACCESS, &access),
    ];
    let list = List::new(
        "List of data types",
        "pg_type t LEFT JOIN pg_namespace n ON n.oid = t.typnamespace",
        "1, 2",
    )
    .columns(&[("Schema", "n.nspname"), ("Name", &by_bytes("format_type(t.oid, NULL)"))])
    .columns_if(asked.is_verbose, &more)
    .columns(&[("Description", "obj_description(t.oid, 'pg_type')")])
    .only("t.typrelid = 0 OR t.typrelid IN (SELECT c.oid FROM pg_class c WHERE c.relkind = 'c')")
    .without_system(asked, "n.nspname")
    .named(asked, &of_types())?;
    let names_arrays = asked.pattern.text().is_some_and(|text| text.contains("[]"));
    Ok(match names_arrays {
        true => list,
        false => list.only("t.oid NOT IN (SELECT el.typarray FROM pg_type el)"),
    })
}

/// What a pattern of types is held against.
pub(super) fn of_types() -> Named {
    let visible = Some("pg_type_is_visible(t.oid)");
    let names = &["t.typname", "format_type(t.oid, NULL)"];
    Named { schema: Some("n.nspname"), names, visible }
}

pub(super) fn domains(asked: &Asked<'_>) -> Result<List, String> {
    let collation = "(SELECT c.collname FROM pg_collation c JOIN pg_type b ON b.oid = t.typbasetype \
        WHERE c.oid = t.typcollation AND t.typcollation <> b.typcollation)";
    let checks = match asked.major {
        // Whether NULL is allowed is a constraint there, too.
        17.. => "r.contypid = t.oid AND r.contype = 'c'",
        _ => "r.contypid = t.oid",
    };
    let checks = format!(
        "array_to_string(ARRAY(SELECT pg_get_constraintdef(r.oid, true) FROM pg_constraint r WHERE {checks}), ' ')"
    );
    let access = acl("t.typacl");
    let more = [(ACCESS, access.as_str()), ("Description", "obj_description(t.oid, 'pg_type')")];
    let from = "pg_type t LEFT JOIN pg_namespace n ON n.oid = t.typnamespace";
    List::new("List of domains", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "t.typname")])
        .columns(&[("Type", "format_type(t.typbasetype, t.typtypmod)"), ("Collation", collation)])
        .columns(&[("Nullable", "CASE WHEN t.typnotnull THEN 'not null' END")])
        .columns(&[("Default", "t.typdefault"), ("Check", &checks)])
        .columns_if(asked.is_verbose, &more)
        .only("t.typtype = 'd'")
        .without_system(asked, "n.nspname")
        .named(asked, &Named { names: &["t.typname"], ..of_types() })
}

pub(super) fn casts(asked: &Asked<'_>) -> Result<List, String> {
    let function = "CASE c.castmethod WHEN 'b' THEN '(binary coercible)' WHEN 'i' THEN '(with inout)' \
        ELSE p.proname END";
    let context =
        "CASE c.castcontext WHEN 'e' THEN 'no' WHEN 'a' THEN 'in assignment' ELSE 'yes' END";
    let from = "pg_cast c LEFT JOIN pg_proc p ON p.oid = c.castfunc \
        LEFT JOIN pg_type ts ON ts.oid = c.castsource LEFT JOIN pg_namespace ns ON ns.oid = ts.typnamespace \
        LEFT JOIN pg_type tt ON tt.oid = c.casttarget LEFT JOIN pg_namespace nt ON nt.oid = tt.typnamespace";
    let source = Named {
        schema: Some("ns.nspname"),
        names: &["ts.typname", "format_type(ts.oid, NULL)"],
        visible: Some("pg_type_is_visible(ts.oid)"),
    };
    let target = Named {
        schema: Some("nt.nspname"),
        names: &["tt.typname", "format_type(tt.oid, NULL)"],
        visible: Some("pg_type_is_visible(tt.oid)"),
    };
    let list = List::new("List of casts", from, "1, 2")
        .columns(&[("Source type", &by_bytes("format_type(c.castsource, NULL)"))])
        .columns(&[("Target type", &by_bytes("format_type(c.casttarget, NULL)"))])
        .columns(&[("Function", function), ("Implicit?", context)])
        .columns_if(asked.is_verbose, &[("Description", "obj_description(c.oid, 'pg_cast')")]);
    Ok(match (matching(asked.pattern, &source)?, matching(asked.pattern, &target)?) {
        (Some(source), Some(target)) => list.only(format!("({source}) OR ({target})")),
        _ => list,
    })
}

pub(super) fn collations(asked: &Asked<'_>) -> Result<List, String> {
    let icu = match asked.major {
        ..=14 => "c.collcollate",
        15 | 16 => "c.colliculocale",
        OTHER_LOCALES.. => "c.colllocale",
    };
    let provider = "CASE c.collprovider WHEN 'd' THEN 'default' WHEN 'b' THEN 'builtin' WHEN 'c' THEN 'libc' \
        WHEN 'i' THEN 'icu' END";
    let visible = Some("pg_collation_is_visible(c.oid)");
    let of_collations = Named { schema: Some("n.nspname"), names: &["c.collname"], visible };
    let from = "pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace";
    List::new("List of collations", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "c.collname"), ("Collate", "c.collcollate")])
        .columns(&[("Ctype", "c.collctype"), ("ICU Locale", icu), ("Provider", provider)])
        .columns(&[("Deterministic?", "CASE WHEN c.collisdeterministic THEN 'yes' ELSE 'no' END")])
        .columns_if(asked.is_verbose, &[("Description", "obj_description(c.oid, 'pg_collation')")])
        .only("c.collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))")
        .without_system(asked, "n.nspname")
        .named(asked, &of_collations)
}
