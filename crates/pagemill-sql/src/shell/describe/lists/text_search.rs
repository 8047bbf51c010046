//! What text search is made of.
//!
//! Invariant: comments are shown with every list, as psql does it here without being asked.

use super::super::list::{Asked, List, Named};

const SCHEMA: Option<&str> = Some("n.nspname");

pub(super) fn configurations(asked: &Asked<'_>) -> Result<List, String> {
    let from = "pg_ts_config c LEFT JOIN pg_namespace n ON n.oid = c.cfgnamespace";
    let visible = Some("pg_ts_config_is_visible(c.oid)");
    List::new("List of text search configurations", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "c.cfgname")])
        .columns(&[("Description", "obj_description(c.oid, 'pg_ts_config')")])
        .named(asked, &Named { schema: SCHEMA, names: &["c.cfgname"], visible })
}

pub(super) fn dictionaries(asked: &Asked<'_>) -> Result<List, String> {
    let template = "(SELECT coalesce(m.nspname, '(null)')::text || '.' || t.tmplname FROM pg_ts_template t \
        LEFT JOIN pg_namespace m ON m.oid = t.tmplnamespace WHERE t.oid = d.dicttemplate)";
    let from = "pg_ts_dict d LEFT JOIN pg_namespace n ON n.oid = d.dictnamespace";
    let visible = Some("pg_ts_dict_is_visible(d.oid)");
    List::new("List of text search dictionaries", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "d.dictname")])
        .columns_if(
            asked.is_verbose,
            &[("Template", template), ("Init options", "d.dictinitoption")],
        )
        .columns(&[("Description", "obj_description(d.oid, 'pg_ts_dict')")])
        .named(asked, &Named { schema: SCHEMA, names: &["d.dictname"], visible })
}

pub(super) fn parsers(asked: &Asked<'_>) -> Result<List, String> {
    let from = "pg_ts_parser p LEFT JOIN pg_namespace n ON n.oid = p.prsnamespace";
    let visible = Some("pg_ts_parser_is_visible(p.oid)");
    List::new("List of text search parsers", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "p.prsname")])
        .columns(&[("Description", "obj_description(p.oid, 'pg_ts_parser')")])
        .named(asked, &Named { schema: SCHEMA, names: &["p.prsname"], visible })
}

pub(super) fn templates(asked: &Asked<'_>) -> Result<List, String> {
    let more = [("Init", "t.tmplinit::regproc"), ("Lexize", "t.tmpllexize::regproc")];
    let from = "pg_ts_template t LEFT JOIN pg_namespace n ON n.oid = t.tmplnamespace";
    let visible = Some("pg_ts_template_is_visible(t.oid)");
    List::new("List of text search templates", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "t.tmplname")])
        .columns_if(asked.is_verbose, &more)
        .columns(&[("Description", "obj_description(t.oid, 'pg_ts_template')")])
        .named(asked, &Named { schema: SCHEMA, names: &["t.tmplname"], visible })
}
