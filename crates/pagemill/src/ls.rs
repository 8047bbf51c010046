//! `pagemill ls`: the databases of a cluster, the tables of a database, or the backups of a repository.
//!
//! As text for people, sizes rounded; as JSON for programs, sizes in bytes. What of the files is lost, as far as their
//! names and sizes tell, stands beside them, and gives exit status 1. Definitions are written by the program that knows SQL.

use anyhow::Result;
use pagemill_cli::cluster_arguments::repository_passphrase;
use pagemill_cli::ls_arguments::LsArguments;
use pagemill_cluster::Repository;
use pagemill_engine::list::{DatabaseEntry, RelationEntry, databases, is_listed, relations, sizes};
use pagemill_engine::{PatternTexts, Patterns};
use serde_json::{Value, json};

use crate::failure::Completion;
use crate::ls_repository;
use crate::other_program;
use crate::session::Session;
use crate::session::stats::Work;
use crate::text_table::{Align, pretty_size, printable, table};

/// Shown where there is nothing to show.
const NONE: &str = "-";

pub(crate) fn run(arguments: &LsArguments) -> Result<Completion> {
    if arguments.ddl {
        return other_program::run(other_program::SQL, "ls --ddl");
    }
    let session = Session::new(&arguments.common)?.recovered(&arguments.recovery)?;
    if let Some(repository) = repository(&session, arguments)? {
        let stanza = arguments.common.stanza.as_deref();
        session.print(&ls_repository::listing(&repository, stanza, arguments.json)?)?;
        return Ok(Completion::Done);
    }
    let (text, is_whole) = match &arguments.dbname {
        None => {
            let found = databases(&session.cluster()?)?;
            let is_whole = !found.iter().any(|entry| entry.is_missing);
            (database_text(&found, arguments.json), is_whole)
        }
        Some(name) => {
            let found = chosen(&session, name, arguments)?;
            let is_whole = found.iter().all(|entry| entry.lost.is_empty());
            (relation_text(&found, arguments.json), is_whole)
        }
    };
    session.print(&text)?;
    session.finish(&Work::default());
    Ok(if is_whole { Completion::Done } else { Completion::Incomplete })
}

/// The repository in the directory, where none of its backups is chosen.
fn repository(session: &Session<'_>, arguments: &LsArguments) -> Result<Option<Repository>> {
    if arguments.common.backup.is_some() || arguments.dbname.is_some() {
        return Ok(None);
    }
    // Whoever opens what cannot be listed says why.
    let found = Repository::find(session.storage(), session.directory()?).unwrap_or_default();
    Ok(found.map(|found| found.with_passphrase(repository_passphrase())))
}

fn chosen(
    session: &Session<'_>,
    name: &str,
    arguments: &LsArguments,
) -> Result<Vec<RelationEntry>> {
    let database = session.database(name)?;
    if arguments.tables.is_empty() {
        return Ok(relations(&database, arguments.system)?);
    }
    let texts = PatternTexts { tables: &arguments.tables, ..PatternTexts::default() };
    let selected = Patterns::parse(texts)?.select_among(&database, is_listed)?;
    Ok(sizes(&database, selected)?)
}

fn json_text(rows: Vec<Value>) -> String {
    format!("{:#}\n", Value::Array(rows))
}

fn database_text(entries: &[DatabaseEntry], json: bool) -> String {
    if json {
        return json_text(entries.iter().map(database_json).collect());
    }
    let header = [
        ("Database", Align::Left),
        ("OID", Align::Right),
        ("Encoding", Align::Left),
        ("Tablespace", Align::Left),
        ("Size", Align::Right),
        ("Flags", Align::Left),
    ];
    table(&header, &entries.iter().map(database_row).collect::<Vec<_>>())
}

fn database_row(entry: &DatabaseEntry) -> Vec<String> {
    let mut flags = Vec::new();
    if entry.row.is_template {
        flags.push("template");
    }
    if !entry.row.allows_connections {
        flags.push("no connections");
    }
    if entry.row.is_invalid() {
        flags.push("invalid");
    }
    if entry.is_missing {
        flags.push("damaged: the directory is missing");
    }
    vec![
        printable(&entry.row.name),
        entry.row.oid.to_string(),
        entry.encoding.to_owned(),
        printable(&entry.tablespace),
        pretty_size(entry.bytes),
        flags.join(", "),
    ]
}

fn database_json(entry: &DatabaseEntry) -> Value {
    let mut row = json!({
        "name": String::from_utf8_lossy(&entry.row.name),
        "oid": entry.row.oid.0,
        "encoding": entry.encoding,
        "tablespace": String::from_utf8_lossy(&entry.tablespace),
        "bytes": entry.bytes,
        "is_template": entry.row.is_template,
        "allows_connections": entry.row.allows_connections,
        "is_invalid": entry.row.is_invalid(),
    });
    if entry.is_missing {
        row["damage"] = json!(["the directory is missing"]);
    }
    row
}

fn relation_text(entries: &[RelationEntry], json: bool) -> String {
    if json {
        return json_text(entries.iter().map(relation_json).collect());
    }
    let mut header = vec![
        ("Schema", Align::Left),
        ("Name", Align::Left),
        ("Kind", Align::Left),
        ("Blocks", Align::Right),
        ("Rows (est.)", Align::Right),
        ("Size", Align::Right),
        ("TOAST size", Align::Right),
    ];
    if entries.iter().any(|entry| !entry.lost.is_empty()) {
        header.push(("Damage", Align::Left));
    }
    table(&header, &entries.iter().map(relation_row).collect::<Vec<_>>())
}

fn relation_row(entry: &RelationEntry) -> Vec<String> {
    let class = &entry.relation.class;
    let in_files = |text: String| if class.kind.has_files() { text } else { NONE.to_owned() };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    vec![
        printable(&entry.relation.schema_utf8()),
        printable(&entry.relation.name_utf8()),
        class.kind.name().to_owned(),
        in_files(entry.blocks.to_string()),
        or_none(entry.estimated_rows().map(|rows| format!("{rows:.0}"))),
        in_files(pretty_size(entry.bytes)),
        or_none(entry.toast_bytes.map(pretty_size)),
        entry.lost.join("; "),
    ]
}

fn relation_json(entry: &RelationEntry) -> Value {
    let class = &entry.relation.class;
    let files = class.kind.has_files();
    let mut row = json!({
        "schema": String::from_utf8_lossy(&entry.relation.schema_utf8()),
        "name": String::from_utf8_lossy(&entry.relation.name_utf8()),
        "oid": class.oid.0,
        "kind": class.kind.name(),
        "blocks": files.then_some(entry.blocks),
        "estimated_rows": entry.estimated_rows().map(|rows| rows as u64),
        "bytes": files.then_some(entry.bytes),
        "toast_bytes": entry.toast_bytes,
    });
    if !entry.lost.is_empty() {
        row["damage"] = json!(entry.lost);
    }
    row
}
