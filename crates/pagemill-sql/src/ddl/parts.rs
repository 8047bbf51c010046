//! What is said of relations once they are there: sequences of their own, defaults, partitions, constraints, indexes and the rest.
//!
//! Each part is a query whose rows are statements. Invariant: parts come in the order in which a server takes them: keys before what
//! refers to them, indexes before what is attached to them.
//!
//! Source: `dumpTableSchema`, `dumpSequence`, `dumpConstraint`, `dumpIndex`, `dumpTrigger`, `dumpRule`, `dumpPolicy`,
//! `dumpStatisticsExt` and `dumpTableComment` in `src/bin/pg_dump/pg_dump.c`, PostgreSQL 15 to 18.

/// The name of a relation `c` of the schema `n`.
const NAME: &str = "quote_ident(n.nspname) || '.' || quote_ident(c.relname)";

/// The relations that are chosen, as `c`, with their schemas.
const CHOSEN: &str =
    "pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace";

/// Joins the defaults `d` that need a sequence of their own table, as `own`.
pub(super) const OWN_SEQUENCES: &str = "left join (select distinct x.objid from pg_catalog.pg_depend x \
     join pg_catalog.pg_attrdef xd on xd.oid = x.objid \
     join pg_catalog.pg_depend o on o.objid = x.refobjid and o.refobjid = xd.adrelid \
     where x.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass and x.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
     and o.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and o.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
     and o.deptype = 'a') own on own.objid = d.oid";

/// The sequences `s` as relations `c` that belong to a column `a` of a chosen table `t`.
const OF_COLUMNS: &str = "pg_catalog.pg_sequence s join pg_catalog.pg_class c on c.oid = s.seqrelid \
     join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
     join pg_catalog.pg_depend d on d.objid = c.oid and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass \
     and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
     join pg_catalog.pg_class t on t.oid = d.refobjid join pg_catalog.pg_namespace tn on tn.oid = t.relnamespace \
     join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid \
     where t.oid = any ({chosen})";

/// The start of a CREATE SEQUENCE of a relation `c`.
pub(super) const CREATE_SEQUENCE: &str = "'CREATE ' || case when c.relpersistence = 'u' then 'UNLOGGED ' else '' end \
     || 'SEQUENCE ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname) \
     || case when s.seqtypid <> 20 then E'\\n    AS ' || format_type(s.seqtypid, null) else '' end";

/// The options of a sequence `s`: limits that are those of its type are not told.
pub(super) const SEQUENCE_OPTIONS: &str = "E'\\n    START WITH ' || s.seqstart || E'\\n    INCREMENT BY ' || s.seqincrement \
     || case when s.seqmin = case when s.seqincrement > 0 then 1 when s.seqtypid = 21 then -32768 \
        when s.seqtypid = 23 then -2147483648 else -9223372036854775808 end \
        then E'\\n    NO MINVALUE' else E'\\n    MINVALUE ' || s.seqmin end \
     || case when s.seqmax = case when s.seqincrement < 0 then -1 when s.seqtypid = 21 then 32767 \
        when s.seqtypid = 23 then 2147483647 else 9223372036854775807 end \
        then E'\\n    NO MAXVALUE' else E'\\n    MAXVALUE ' || s.seqmax end \
     || E'\\n    CACHE ' || s.seqcache || case when s.seqcycle then E'\\n    CYCLE' else '' end";

/// The storage parameters of a relation as WITH has them, those of its TOAST table among them; NULL for none.
pub(super) const OPTIONS: &str = "nullif(concat_ws(', ', nullif(array_to_string(array(select quote_ident(o.option_name) || '=' \
     || case when quote_ident(o.option_value) = o.option_value then o.option_value else quote_literal(o.option_value) end \
     from pg_options_to_table(array_remove(array_remove(c.reloptions, 'check_option=local'), 'check_option=cascaded')) o), ', '), ''), \
     nullif(array_to_string(array(select 'toast.' || quote_ident(o.option_name) || '=' \
     || case when quote_ident(o.option_value) = o.option_value then o.option_value else quote_literal(o.option_value) end \
     from pg_options_to_table(tc.reloptions) o), ', '), '')), '')";

/// Options of foreign objects, in their column.
pub(super) fn foreign_options(column: &str) -> String {
    format!(
        "nullif(array_to_string(array(select quote_ident(o.option_name) || ' ' || quote_literal(o.option_value) \
         from pg_options_to_table({column}) o order by o.option_name), E',\\n    '), '')"
    )
}

/// All parts, in their order.
pub(super) fn all(major: u32) -> Vec<String> {
    let mut parts = sequences();
    parts.extend(columns(major));
    parts.push(format!(
        "select 'ALTER TABLE ONLY ' || quote_ident(pn.nspname) || '.' || quote_ident(p.relname) || ' ATTACH PARTITION ' || {NAME} || ' ' \
         || pg_get_expr(c.relpartbound, c.oid) || ';' from {CHOSEN} join pg_catalog.pg_inherits i on i.inhrelid = c.oid \
         join pg_catalog.pg_class p on p.oid = i.inhparent join pg_catalog.pg_namespace pn on pn.oid = p.relnamespace \
         where c.oid = any ({{chosen}}) and c.relispartition order by n.nspname, c.relname"
    ));
    parts.extend(constraints(major));
    parts.extend(indexes());
    parts.push(foreign_keys());
    parts.extend(rules_and_triggers());
    parts.extend(policies());
    parts.extend(comments());
    parts
}

fn sequences() -> Vec<String> {
    vec![
        format!(
            "select {CREATE_SEQUENCE} || {SEQUENCE_OPTIONS} || ';' from {OF_COLUMNS} and d.deptype = 'a' order by tn.nspname, t.relname, a.attnum, c.oid"
        ),
        format!(
            "select 'ALTER SEQUENCE ' || {NAME} || ' OWNED BY ' || quote_ident(tn.nspname) || '.' || quote_ident(t.relname) || '.' \
             || quote_ident(a.attname) || ';' from {OF_COLUMNS} and d.deptype = 'a' order by tn.nspname, t.relname, a.attnum, c.oid"
        ),
        format!(
            "select 'ALTER TABLE ' || quote_ident(tn.nspname) || '.' || quote_ident(t.relname) || ' ALTER COLUMN ' \
             || quote_ident(a.attname) || ' ADD GENERATED ' || case a.attidentity when 'a' then 'ALWAYS' else 'BY DEFAULT' end \
             || E' AS IDENTITY (\\n    SEQUENCE NAME ' || {NAME} || {SEQUENCE_OPTIONS} || E'\\n);' \
             from {OF_COLUMNS} and d.deptype = 'i' order by tn.nspname, t.relname, a.attnum"
        ),
    ]
}

/// Of columns: defaults that could not stand in the table's statement, and what is set for each.
fn columns(major: u32) -> Vec<String> {
    let of_columns = format!(
        "from {CHOSEN} join pg_catalog.pg_attribute a on a.attrelid = c.oid join pg_catalog.pg_type t on t.oid = a.atttypid \
         where c.oid = any ({{chosen}}) and a.attnum > 0 and not a.attisdropped"
    );
    let set = |what: &str, value: &str, condition: &str| {
        format!(
            "select 'ALTER ' || case when c.relkind = 'f' then 'FOREIGN ' else '' end || 'TABLE ONLY ' || {NAME} || ' ALTER COLUMN ' \
             || quote_ident(a.attname) || ' SET {what}' || {value} || ';' {of_columns} and {condition} order by n.nspname, c.relname, a.attnum"
        )
    };
    let inherited = "and not a.attislocal and not c.relispartition";
    let options = foreign_options("a.attfdwoptions");
    let mut parts = vec![defaults(inherited)];
    parts.push(format!(
        "select 'ALTER FOREIGN TABLE ' || {NAME} || ' ALTER COLUMN ' || quote_ident(a.attname) || E' OPTIONS (\\n    ' || {options} \
         || E'\\n);' {of_columns} and a.attfdwoptions is not null order by n.nspname, c.relname, a.attnum"
    ));
    if major < 18 {
        parts.push(set(
            "NOT NULL",
            "''",
            &format!(
                "a.attnotnull {inherited} and not exists (select 1 from pg_catalog.pg_inherits i join pg_catalog.pg_attribute p \
                 on p.attrelid = i.inhparent where i.inhrelid = c.oid and p.attname = a.attname and p.attnotnull)"
            ),
        ));
    }
    let is_table = "c.relkind in ('r', 'p', 'f', 'm')";
    parts.push(set(
        "STATISTICS ",
        "a.attstattarget",
        &format!("{is_table} and a.attstattarget >= 0"),
    ));
    parts.push(set(
        "STORAGE ",
        "case a.attstorage when 'p' then 'PLAIN' when 'e' then 'EXTERNAL' when 'm' then 'MAIN' else 'EXTENDED' end",
        &format!("{is_table} and a.attstorage <> t.typstorage"),
    ));
    parts.push(set(
        "COMPRESSION ",
        "case a.attcompression when 'p' then 'pglz' else 'lz4' end",
        &format!("{is_table} and a.attcompression in ('p', 'l')"),
    ));
    // Servers of late minor versions keep which version a column is of among its options, which nobody sets.
    const OPTIONS: &str = "ltrim(regexp_replace(array_to_string(a.attoptions, ', '), '(, )?pg_attver=[0-9]+', ''), ', ')";
    parts.push(set("(", &format!("{OPTIONS} || ')'"), &format!("{is_table} and {OPTIONS} <> ''")));
    parts
}

/// Those that need a sequence of the table, those of views, and those of columns that are not in the table's statement.
fn defaults(inherited: &str) -> String {
    format!(
        "select 'ALTER TABLE ONLY ' || {NAME} || ' ALTER COLUMN ' || quote_ident(a.attname) || ' SET DEFAULT ' \
         || pg_get_expr(d.adbin, d.adrelid) || ';' from {CHOSEN} join pg_catalog.pg_attribute a on a.attrelid = c.oid \
         join pg_catalog.pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum {OWN_SEQUENCES} \
         where c.oid = any ({{chosen}}) and a.attgenerated = '' and not a.attisdropped \
         and (c.relkind = 'v' or own.objid is not null or (true {inherited})) order by n.nspname, c.relname, a.attnum"
    )
}

fn constraints(major: u32) -> Vec<String> {
    let added = |only: &str, condition: &str| {
        format!(
            "select 'ALTER ' || case when c.relkind = 'f' then 'FOREIGN ' else '' end || 'TABLE {only}' || {NAME} \
             || E'\\n    ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid) || ';' \
             from {CHOSEN} join pg_catalog.pg_constraint k on k.conrelid = c.oid \
             where c.oid = any ({{chosen}}) and {condition} order by n.nspname, c.relname, k.conname"
        )
    };
    // Constraints of rows that were never checked, which the table's statement would check.
    let unchecked = match major {
        18.. => "k.contype in ('c', 'n')",
        _ => "k.contype = 'c'",
    };
    vec![
        added("ONLY ", "k.contype in ('p', 'u', 'x')"),
        added(
            "",
            &format!("{unchecked} and not k.convalidated and (k.conislocal or c.relispartition)"),
        ),
    ]
}

fn foreign_keys() -> String {
    format!(
        "select 'ALTER TABLE ' || case when c.relkind = 'p' then '' else 'ONLY ' end || {NAME} || E'\\n    ADD CONSTRAINT ' \
         || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid) || ';' from {CHOSEN} \
         join pg_catalog.pg_constraint k on k.conrelid = c.oid where c.oid = any ({{chosen}}) and k.contype = 'f' and k.conparentid = 0 \
         order by n.nspname, c.relname, k.conname"
    )
}

/// Indexes that are no constraint's, what is attached to what, and what is said of the table by an index.
fn indexes() -> Vec<String> {
    let of_indexes = format!(
        "from {CHOSEN} join pg_catalog.pg_index i on i.indrelid = c.oid join pg_catalog.pg_class x on x.oid = i.indexrelid \
         left join pg_catalog.pg_tablespace ts on ts.oid = x.reltablespace \
         left join pg_catalog.pg_constraint k on k.conindid = x.oid and k.conrelid = c.oid and k.contype in ('p', 'u', 'x') \
         where c.oid = any ({{chosen}})"
    );
    vec![
        format!(
            "select pg_get_indexdef(x.oid) || ';' {of_indexes} and k.oid is null and (i.indisvalid or c.relkind = 'p') and i.indisready \
             order by n.nspname, c.relname, x.relname"
        ),
        format!(
            "select 'ALTER INDEX ' || quote_ident(n.nspname) || '.' || quote_ident(x.relname) || ' SET TABLESPACE ' \
             || quote_ident(ts.spcname) || ';' {of_indexes} and k.oid is null and ts.oid is not null order by n.nspname, c.relname, x.relname"
        ),
        format!(
            "select 'ALTER INDEX ' || quote_ident(pn.nspname) || '.' || quote_ident(p.relname) || ' ATTACH PARTITION ' \
             || quote_ident(n.nspname) || '.' || quote_ident(x.relname) || ';' from {CHOSEN} \
             join pg_catalog.pg_index i on i.indrelid = c.oid join pg_catalog.pg_class x on x.oid = i.indexrelid \
             join pg_catalog.pg_inherits h on h.inhrelid = x.oid join pg_catalog.pg_class p on p.oid = h.inhparent \
             join pg_catalog.pg_namespace pn on pn.oid = p.relnamespace where c.oid = any ({{chosen}}) order by n.nspname, c.relname, x.relname"
        ),
        format!(
            "select 'ALTER TABLE ' || {NAME} || ' CLUSTER ON ' || quote_ident(x.relname) || ';' {of_indexes} and i.indisclustered \
             order by n.nspname, c.relname"
        ),
        format!(
            "select 'ALTER TABLE ONLY ' || {NAME} || ' REPLICA IDENTITY USING INDEX ' || quote_ident(x.relname) || ';' {of_indexes} \
             and c.relreplident = 'i' and i.indisreplident order by n.nspname, c.relname"
        ),
        format!(
            "select 'ALTER TABLE ONLY ' || {NAME} || ' REPLICA IDENTITY ' || case c.relreplident when 'f' then 'FULL' else 'NOTHING' end \
             || ';' from {CHOSEN} where c.oid = any ({{chosen}}) and c.relkind in ('r', 'p', 'm') and c.relreplident in ('f', 'n') \
             order by n.nspname, c.relname"
        ),
        format!(
            "select pg_get_statisticsobjdef(e.oid) || ';' from {CHOSEN} join pg_catalog.pg_statistic_ext e on e.stxrelid = c.oid \
             where c.oid = any ({{chosen}}) order by n.nspname, c.relname, e.stxname"
        ),
        format!(
            "select 'ALTER STATISTICS ' || quote_ident(en.nspname) || '.' || quote_ident(e.stxname) || ' SET STATISTICS ' \
             || e.stxstattarget || ';' from {CHOSEN} join pg_catalog.pg_statistic_ext e on e.stxrelid = c.oid \
             join pg_catalog.pg_namespace en on en.oid = e.stxnamespace \
             where c.oid = any ({{chosen}}) and e.stxstattarget >= 0 order by n.nspname, c.relname, e.stxname"
        ),
    ]
}

fn rules_and_triggers() -> Vec<String> {
    let state = |letter: &str, kind: &str| {
        format!(
            "|| case {letter} when 'D' then ' DISABLE {kind} ' when 'A' then ' ENABLE ALWAYS {kind} ' else ' ENABLE REPLICA {kind} ' end"
        )
    };
    let rules = format!(
        "from {CHOSEN} join pg_catalog.pg_rewrite r on r.ev_class = c.oid where c.oid = any ({{chosen}}) and r.rulename <> '_RETURN'"
    );
    let triggers = format!(
        "from {CHOSEN} join pg_catalog.pg_trigger g on g.tgrelid = c.oid where c.oid = any ({{chosen}}) and not g.tgisinternal \
         and g.tgparentid = 0"
    );
    vec![
        format!("select pg_get_ruledef(r.oid) {rules} order by n.nspname, c.relname, r.rulename"),
        format!(
            "select 'ALTER TABLE ' || {NAME} {} || quote_ident(r.rulename) || ';' {rules} and r.ev_enabled <> 'O' order by n.nspname, c.relname, r.rulename",
            state("r.ev_enabled", "RULE")
        ),
        format!(
            "select pg_get_triggerdef(g.oid) || ';' {triggers} order by n.nspname, c.relname, g.tgname"
        ),
        format!(
            "select 'ALTER TABLE ' || {NAME} {} || quote_ident(g.tgname) || ';' {triggers} and g.tgenabled <> 'O' order by n.nspname, c.relname, g.tgname",
            state("g.tgenabled", "TRIGGER")
        ),
    ]
}

fn policies() -> Vec<String> {
    vec![
        format!(
            "select 'CREATE POLICY ' || quote_ident(p.polname) || ' ON ' || {NAME} \
             || case when p.polpermissive then '' else ' AS RESTRICTIVE' end \
             || case p.polcmd when 'r' then ' FOR SELECT' when 'a' then ' FOR INSERT' when 'w' then ' FOR UPDATE' \
                when 'd' then ' FOR DELETE' else '' end \
             || coalesce(' TO ' || nullif(array_to_string(array(select quote_ident(r.rolname) from pg_catalog.pg_roles r \
                where r.oid = any (p.polroles) order by r.rolname), ', '), ''), '') \
             || coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '') \
             || coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') || ';' \
             from {CHOSEN} join pg_catalog.pg_policy p on p.polrelid = c.oid where c.oid = any ({{chosen}}) order by n.nspname, c.relname, p.polname"
        ),
        format!(
            "select 'ALTER TABLE ' || {NAME} || ' ENABLE ROW LEVEL SECURITY;' from {CHOSEN} where c.oid = any ({{chosen}}) \
             and c.relrowsecurity order by n.nspname, c.relname"
        ),
        format!(
            "select 'ALTER TABLE ONLY ' || {NAME} || ' FORCE ROW LEVEL SECURITY;' from {CHOSEN} where c.oid = any ({{chosen}}) \
             and c.relforcerowsecurity order by n.nspname, c.relname"
        ),
    ]
}

fn comments() -> Vec<String> {
    let comment = |what: &str, of: &str, catalog: &str, object: &str| {
        format!(
            "select 'COMMENT ON ' || {what} || ' IS ' || quote_literal(m.description) || ';' from {CHOSEN} {of} \
             join pg_catalog.pg_description m on m.objoid = {object} and m.classoid = 'pg_catalog.{catalog}'::pg_catalog.regclass \
             and m.objsubid = 0 where c.oid = any ({{chosen}}) order by n.nspname, c.relname, {object}"
        )
    };
    let kinds = "case c.relkind when 'v' then 'VIEW ' when 'm' then 'MATERIALIZED VIEW ' when 'S' then 'SEQUENCE ' \
                 when 'f' then 'FOREIGN TABLE ' else 'TABLE ' end || ";
    let on_table =
        |kind: &str, name: &str| format!("'{kind} ' || quote_ident({name}) || ' ON ' || {NAME}");
    vec![
        comment(&format!("{kinds}{NAME}"), "", "pg_class", "c.oid"),
        format!(
            "select 'COMMENT ON COLUMN ' || {NAME} || '.' || quote_ident(a.attname) || ' IS ' || quote_literal(m.description) || ';' \
             from {CHOSEN} join pg_catalog.pg_attribute a on a.attrelid = c.oid and not a.attisdropped \
             join pg_catalog.pg_description m on m.objoid = c.oid and m.objsubid = a.attnum \
             and m.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass \
             where c.oid = any ({{chosen}}) and a.attnum > 0 order by n.nspname, c.relname, a.attnum"
        ),
        comment(
            "'INDEX ' || quote_ident(n.nspname) || '.' || quote_ident(x.relname)",
            "join pg_catalog.pg_index i on i.indrelid = c.oid join pg_catalog.pg_class x on x.oid = i.indexrelid",
            "pg_class",
            "x.oid",
        ),
        comment(
            &on_table("CONSTRAINT", "k.conname"),
            "join pg_catalog.pg_constraint k on k.conrelid = c.oid",
            "pg_constraint",
            "k.oid",
        ),
        comment(
            &on_table("TRIGGER", "g.tgname"),
            "join pg_catalog.pg_trigger g on g.tgrelid = c.oid",
            "pg_trigger",
            "g.oid",
        ),
        comment(
            &on_table("RULE", "r.rulename"),
            "join pg_catalog.pg_rewrite r on r.ev_class = c.oid",
            "pg_rewrite",
            "r.oid",
        ),
        comment(
            &on_table("POLICY", "p.polname"),
            "join pg_catalog.pg_policy p on p.polrelid = c.oid",
            "pg_policy",
            "p.oid",
        ),
        comment(
            "'STATISTICS ' || quote_ident(en.nspname) || '.' || quote_ident(e.stxname)",
            "join pg_catalog.pg_statistic_ext e on e.stxrelid = c.oid join pg_catalog.pg_namespace en on en.oid = e.stxnamespace",
            "pg_statistic_ext",
            "e.oid",
        ),
    ]
}
