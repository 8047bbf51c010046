//! Requests made of both sides: as SQL of the server, as arguments of Pagemill.
//!
//! A plain export of a whole relation needs none of these; these are the `COPY` options, choices of columns,
//! conversions of encoding, partitioned tables, and the sizes that `ls` lists. The server answers them once, while a
//! [`Prepared`](crate::Prepared) cluster is built, so that a test needs no server of its own.
//!
//! Must hold: both sides of a request stand together here, and no request changes the cluster.

use anyhow::Result;

use crate::oracle::CopyFormat;
use crate::server::{TestCluster, succeed};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its name, unique, and that of the file its answer is kept in.
    pub name: String,
    /// The database it is about.
    pub database: &'static str,
    /// The client encoding the server is asked with.
    pub encoding: &'static str,
    /// The statement.
    pub sql: String,
    /// Pagemill's command and flags, without `-D` and `-d`.
    pub args: Vec<String>,
    /// The format of both answers, where they are exports.
    pub format: CopyFormat,
    /// The first major version that understands the statement.
    pub since: u32,
}

impl Request {
    fn export(name: String, database: &'static str, table: &str, sql: String) -> Self {
        let args = ["export", "-t", table].map(Into::into).to_vec();
        let format = CopyFormat::Text;
        Self { name, database, encoding: "UTF8", sql, args, format, since: 14 }
    }

    fn flags<'a>(mut self, flags: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(flags.into_iter().map(Into::into));
        if self.args.iter().any(|arg| arg == "csv") {
            self.format = CopyFormat::Csv;
        }
        self
    }
}

/// `(name, COPY's options, Pagemill's flags, first version)`; FORCE_QUOTE names columns of the first table only.
type Variant = (&'static str, &'static str, &'static [&'static str], u32);

const VARIANTS: [Variant; 13] = [
    ("text_pipe", "DELIMITER '|', NULL 'nil'", &["--delimiter", "|", "--null", "nil"], 14),
    ("text_comma", "DELIMITER ',', NULL ''", &["--delimiter", ",", "--null", ""], 14),
    ("text_control", "DELIMITER E'\\x01'", &["--delimiter", "\u{1}"], 14),
    ("text_header", "HEADER, DELIMITER ':'", &["--header", "--delimiter", ":"], 15),
    ("csv", "FORMAT csv", &["--format", "csv"], 14),
    ("csv_header", "FORMAT csv, HEADER", &["--format", "csv", "--header"], 14),
    (
        "csv_tab",
        "FORMAT csv, DELIMITER E'\\t', NULL '\\N'",
        &["--format", "csv", "--delimiter", "\\t", "--null", "\\N"],
        14,
    ),
    (
        "csv_letter",
        "FORMAT csv, DELIMITER 'a', NULL 'c'",
        &["--format", "csv", "--delimiter", "a", "--null", "c"],
        14,
    ),
    (
        "csv_apostrophe",
        "FORMAT csv, QUOTE '''', HEADER, DELIMITER ';'",
        &["--format", "csv", "--quote", "'", "--header", "--delimiter", ";"],
        14,
    ),
    ("csv_escape", "FORMAT csv, ESCAPE '\\'", &["--format", "csv", "--escape", "\\"], 14),
    (
        "csv_quote_escape",
        "FORMAT csv, QUOTE 'x', ESCAPE 'y'",
        &["--format", "csv", "--quote", "x", "--escape", "y"],
        14,
    ),
    (
        "csv_force_all",
        "FORMAT csv, FORCE_QUOTE *, NULL 'NULL'",
        &["--format", "csv", "--force-quote", "*", "--null", "NULL"],
        14,
    ),
    (
        "csv_force_some",
        "FORMAT csv, FORCE_QUOTE (v)",
        &["--format", "csv", "--force-quote", "v"],
        14,
    ),
];

/// Tables with values that options have something to do with; each has a column `v`.
const VARIED: [&str; 4] = ["everything", "t_text", "t_json", "western"];

/// Every option of `COPY TO`, alone and together.
pub fn copy_options() -> Vec<Request> {
    let request = |table: &str, (name, options, flags, since): Variant| {
        let sql = format!("COPY {table} TO STDOUT WITH ({options})");
        let request = Request::export(format!("{table}.{name}"), "types", table, sql);
        Request { since, ..request.flags(flags.iter().copied()) }
    };
    VARIED.iter().flat_map(|table| VARIANTS.map(|variant| request(table, variant))).collect()
}

/// Columns in another order, fewer of them, one of them, those added later, those beside dropped ones.
pub fn columns() -> Vec<Request> {
    let request = |(database, table, list): (&'static str, &str, &str)| {
        let sql = format!("COPY {table} ({list}) TO STDOUT");
        Request::export(format!("columns.{table}.{list}"), database, table, sql)
            .flags(["--columns", list])
    };
    let lists = [
        ("types", "everything", "an,v,a,ab,e"),
        ("types", "everything", "y"),
        ("types", "t_json", "w,id"),
        ("ddl", "added_columns", "c_domain,c_long,a,c_jsonb"),
        ("ddl", "dropped_columns", "e,b,a"),
        ("ddl", "generated_columns", "c,a"),
        ("ddl", "wide_1600", "c1600,c9,c1"),
        ("toast", "pg_catalog.pg_class", "relname,oid"),
    ];
    lists.map(request).into()
}

/// Conversions: what a database of one encoding sends to a client of another.
pub fn encodings() -> Vec<Request> {
    let request = |(database, table, encoding): (&'static str, &str, &'static str)| {
        let sql = format!("COPY {table} TO STDOUT WITH (ENCODING '{encoding}')");
        let name = format!("{encoding}.{database}.{table}");
        Request::export(name, database, table, sql).flags(["--encoding", encoding])
    };
    let conversions = [
        ("latin1", "plain", "UTF8"),
        ("latin1", "\"Tabelle ü\"", "UTF8"),
        ("win1252", "plain", "UTF8"),
        ("win1252", "\"Tabelle ü\"", "UTF8"),
        ("euc_jp", "plain", "UTF8"),
        ("euc_jp", "\"表\"", "UTF8"),
        ("types", "western", "LATIN1"),
        ("types", "everything", "LATIN1"),
        ("types", "cyrillic", "KOI8R"),
        ("types", "cyrillic", "WIN1251"),
        ("types", "cyrillic", "ISO_8859_5"),
        ("types", "t_text", "UTF8"),
    ];
    conversions.map(request).into()
}

/// Names of columns and the text for null, typed in UTF-8 and compared, printed and converted like values.
pub fn converted_names() -> Vec<Request> {
    let table = "\"Tabelle ü\"";
    let request = |(name, options, flags): (&str, &str, &[&'static str])| {
        let encoding = if name.ends_with("as_stored") { "LATIN1" } else { "UTF8" };
        let sql = format!("COPY {table} TO STDOUT WITH (ENCODING '{encoding}', {options})");
        let request = Request::export(format!("names.{name}"), "latin1", table, sql);
        let conversion = ["--encoding", "UTF8"];
        let conversion = if encoding == "UTF8" { &conversion[..] } else { &[] };
        request.flags(conversion.iter().copied()).flags(flags.iter().copied())
    };
    let header = ["--format", "csv", "--header"];
    let quoted = ["--format", "csv", "--header", "--force-quote", "\"größe\",a"];
    let some_quoted = "FORMAT csv, HEADER, FORCE_QUOTE (\"größe\", a)";
    let requests: [(&str, &str, &[&'static str]); 6] = [
        ("header", "FORMAT csv, HEADER", &header),
        ("header_as_stored", "FORMAT csv, HEADER", &header),
        ("quoted", some_quoted, &quoted),
        ("quoted_as_stored", some_quoted, &quoted),
        ("null", "NULL 'nüll'", &["--null", "nüll"]),
        ("null_as_stored", "NULL 'nüll'", &["--null", "nüll"]),
    ];
    requests.map(request).into()
}

/// Partitioned tables, with the rows of all partitions.
pub fn partitioned() -> Vec<Request> {
    let request = |table: &str| {
        let sql = format!("COPY (SELECT * FROM {table}) TO STDOUT");
        Request::export(format!("partitioned.{table}"), "ddl", table, sql)
    };
    let mut all: Vec<Request> = ["by_list", "by_range", "by_range_high"].map(request).into();
    let flags = ["--columns", "b,c", "--format", "csv", "--header", "--force-quote", "c"];
    let sql =
        "COPY (SELECT b, c FROM by_list) TO STDOUT WITH (FORMAT csv, HEADER, FORCE_QUOTE (c))";
    let name = "partitioned.by_list.columns".into();
    all.push(Request::export(name, "ddl", "by_list", sql.into()).flags(flags));
    all
}

/// The databases, as JSON.
pub fn databases() -> Request {
    let sql = "SELECT json_agg(json_build_object('name', datname, 'oid', d.oid::bigint, 'encoding', \
               pg_encoding_to_char(encoding), 'tablespace', spcname, 'bytes', pg_database_size(d.oid), \
               'is_template', datistemplate, 'is_invalid', datconnlimit = -2, 'allows_connections', datallowconn) \
               ORDER BY datname COLLATE \"C\") \
               FROM pg_database d JOIN pg_tablespace s ON s.oid = dattablespace";
    listing("databases".into(), "postgres", sql, &["ls", "--json"])
}

/// Every relation with rows or leading to rows, of one database, as JSON.
pub fn relations(database: &'static str) -> Request {
    let sql = "SELECT json_agg(json_build_object('schema', nspname, 'name', relname, 'oid', c.oid::bigint, \
               'kind', CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' \
                 WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' \
                 WHEN 'v' THEN 'view' ELSE 'foreign table' END, \
               'blocks', CASE WHEN files THEN pg_relation_size(c.oid) / 8192 END, \
               'estimated_rows', CASE WHEN files AND reltuples >= 0 THEN reltuples::bigint END, \
               'bytes', CASE WHEN files THEN all_forks(c.oid) END, \
               'toast_bytes', CASE WHEN reltoastrelid <> 0 THEN all_forks(reltoastrelid) END) \
               ORDER BY nspname COLLATE \"C\", relname COLLATE \"C\") \
               FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, \
                 LATERAL (SELECT relkind IN ('r', 'm', 'S', 't') AS files) x \
               WHERE relkind IN ('r', 'p', 'm', 'S', 't', 'v', 'f') AND relpersistence <> 't'";
    let all_forks = |oid: &str| {
        format!(
            "(SELECT sum(pg_relation_size({oid}, f)) \
             FROM unnest(ARRAY['main', 'fsm', 'vm', 'init']) f)"
        )
    };
    let sql = sql
        .replace("all_forks(c.oid)", &all_forks("c.oid"))
        .replace("all_forks(reltoastrelid)", &all_forks("reltoastrelid"));
    listing(format!("relations.{database}"), database, &sql, &["ls", "-S", "--json"])
}

/// The databases whose relations are listed: many relations, odd names, another tablespace, another encoding.
pub const LISTED: [&str; 6] = ["types", "toast", "mvcc", "ddl", "in_side", "latin1"];

/// Where the tables in tablespaces of their own lie: name, tablespace and file, as JSON.
pub fn tablespaces() -> Request {
    let sql = "SELECT json_agg(json_build_object('name', relname, 'tablespace', spcname, \
               'file', pg_relation_filepath(c.oid)) ORDER BY relname) \
               FROM pg_class c JOIN pg_tablespace s ON s.oid = reltablespace \
               WHERE relnamespace = 'public'::regnamespace";
    listing("tablespaces".into(), "ddl", sql, &["inspect", "--json"])
}

fn listing(name: String, database: &'static str, sql: &str, args: &[&str]) -> Request {
    let args = args.iter().map(|&arg| arg.into()).collect();
    let format = CopyFormat::Text;
    Request { name, database, encoding: "UTF8", sql: sql.into(), args, format, since: 14 }
}

/// All of them.
pub fn all() -> Vec<Request> {
    let mut all =
        [copy_options(), columns(), encodings(), converted_names(), partitioned()].concat();
    all.extend([databases(), tablespaces()]);
    all.extend(LISTED.map(relations));
    all
}

/// What the server answers.
pub fn answer(cluster: &TestCluster, request: &Request) -> Result<Vec<u8>> {
    let mut command = cluster.psql_command(request.database);
    command.env("PGCLIENTENCODING", request.encoding);
    command.args(["-A", "-t", "-c", &request.sql]);
    Ok(succeed(command)?.stdout)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_requests_share_a_name() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|request| &*request.name).collect();
        assert_eq!(names.len(), all.len());
    }
}
