//! `pagemill ls` of a repository of backups: whose backups there are, of whom each, and from where to where there is WAL.
//!
//! As text for people, as JSON for programs; no data file and no manifest is read, and of WAL the last segments alone, for the moment of the
//! last commit.

use anyhow::Result;
use pagemill_cluster::Repository;
use pagemill_cluster::backup_repository::{ArchiveReach, BackupOwner, ListedBackup, ListedOwner};
use pagemill_cluster::recovery::plan::Moment;
use pagemill_format::Lsn;
use serde_json::{Value, json};

use crate::text_table::{Align, pretty_size, printable, table};

/// Shown where there is nothing to show.
const NONE: &str = "-";

/// The listing of a repository: of all that it has, or of the stanza that is named.
pub(crate) fn listing(repository: &Repository, stanza: Option<&str>, json: bool) -> Result<String> {
    let listed = repository.list(stanza)?;
    Ok(match json {
        true => format!("{:#}\n", Value::Array(listed.iter().map(owner_json).collect())),
        false => format!("{}\n{}", backups_text(&listed), archives_text(&listed)),
    })
}

/// What an owner is called, as the title of a column and as a key, and its name.
fn owner(of: &BackupOwner) -> (&'static str, &'static str, Option<&str>) {
    match of {
        BackupOwner::Stanza(name) => ("Stanza", "stanza", Some(name)),
        BackupOwner::Server(name) => ("Server", "server", Some(name)),
        BackupOwner::Folder => ("Folder", "folder", None),
    }
}

fn owner_title(listed: &[ListedOwner]) -> &'static str {
    listed.first().map_or("Stanza", |first| owner(&first.owner).0)
}

fn owner_name(of: &BackupOwner) -> String {
    owner(of).2.map_or_else(|| NONE.to_owned(), |name| printable(name.as_bytes()))
}

/// A value, or the mark of none.
fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| printable(value.to_string().as_bytes()))
}

fn backups_text(listed: &[ListedOwner]) -> String {
    let header = [
        (owner_title(listed), Align::Left),
        ("Backup", Align::Left),
        ("Type", Align::Left),
        ("Start time", Align::Left),
        ("Stop time", Align::Left),
        ("Start LSN", Align::Left),
        ("Stop LSN", Align::Left),
        ("Size", Align::Right),
        ("Stored", Align::Right),
        ("PostgreSQL", Align::Left),
        ("Flags", Align::Left),
    ];
    let of = |of: &ListedOwner| {
        let row = |backup| backup_row(&of.owner, backup);
        of.backups.iter().map(row).collect::<Vec<_>>()
    };
    table(&header, &listed.iter().flat_map(of).collect::<Vec<_>>())
}

fn backup_row(owner: &BackupOwner, backup: &ListedBackup) -> Vec<String> {
    vec![
        owner_name(owner),
        printable(backup.label.as_bytes()),
        shown(backup.kind),
        shown(backup.times.0),
        shown(backup.times.1),
        shown(backup.lsns.0),
        shown(backup.lsns.1),
        shown(backup.bytes.map(pretty_size)),
        shown(backup.stored_bytes.map(pretty_size)),
        shown(backup.version.as_ref()),
        flags(backup).join(", "),
    ]
}

fn flags(backup: &ListedBackup) -> Vec<String> {
    let mut flags = Vec::new();
    if let Some(name) = &backup.name {
        flags.push(format!("named {}", printable(name.as_bytes())));
    }
    if backup.is_compressed == Some(true) {
        flags.push("compressed".to_owned());
    }
    if backup.has_errors == Some(true) {
        flags.push("damaged: wrong page checksums".to_owned());
    }
    flags.extend(backup.hindrance.as_ref().map(|why| printable(why.as_bytes())));
    flags
}

fn archives_text(listed: &[ListedOwner]) -> String {
    let header = [
        (owner_title(listed), Align::Left),
        ("Archive", Align::Left),
        ("First segment", Align::Left),
        ("Last segment", Align::Left),
        ("Last commit", Align::Left),
    ];
    let of = |of: &ListedOwner| {
        let row = |found: &ArchiveReach| {
            let (first, last) = found.segments.clone().unzip();
            vec![
                owner_name(&of.owner),
                printable(found.directory.as_bytes()),
                shown(first),
                shown(last),
                shown(found.last_commit),
            ]
        };
        of.archives.iter().map(row).collect::<Vec<_>>()
    };
    table(&header, &listed.iter().flat_map(of).collect::<Vec<_>>())
}

fn owner_json(of: &ListedOwner) -> Value {
    let archive = |found: &ArchiveReach| {
        let (first, last) = found.segments.clone().unzip();
        json!({
            "directory": found.directory,
            "first_segment": first,
            "last_segment": last,
            "last_commit_time": found.last_commit.map(|last| last.to_string()),
        })
    };
    let (_, key, name) = owner(&of.owner);
    json!({
        key: name,
        "backups": of.backups.iter().map(backup_json).collect::<Vec<_>>(),
        "archives": of.archives.iter().map(archive).collect::<Vec<_>>(),
    })
}

fn backup_json(backup: &ListedBackup) -> Value {
    let lsn = |lsn: Option<Lsn>| lsn.map(|lsn| lsn.to_string());
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
    json!({
        "label": backup.label,
        "name": backup.name,
        "type": backup.kind,
        "prior": backup.prior,
        "start_time": moment(backup.times.0),
        "stop_time": moment(backup.times.1),
        "start_lsn": lsn(backup.lsns.0),
        "stop_lsn": lsn(backup.lsns.1),
        "start_segment": backup.segments.0,
        "stop_segment": backup.segments.1,
        "bytes": backup.bytes,
        "stored_bytes": backup.stored_bytes,
        "version": backup.version,
        "is_compressed": backup.is_compressed,
        "has_errors": backup.has_errors,
        "tool_version": backup.tool_version,
        "hindrance": backup.hindrance,
    })
}
