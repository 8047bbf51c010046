//! A relation as `inspect` shows it: what it is, its files, its columns.
//!
//! What the sizes of files give away as lost is shown with them. Relations without files, such as
//! views, have columns all the same.

use std::borrow::Cow;

use anyhow::Result;
use pagemill_cluster::{
    Database, Generated, Persistence, Relation, SettingSource, TablespaceSettings,
};
use pagemill_engine::encoding::utf8_name;
use pagemill_engine::inspect::{ColumnReport, ForkReport, columns, forks};
use pagemill_engine::list::tablespace_of;
use serde_json::{Value, json};

use crate::failure::say;
use crate::inspect::View;
use crate::text_table::{Align, fields, pretty_size, printable, table};

pub(crate) fn view(database: &Database, relation: &Relation, json: bool) -> Result<View> {
    let report = Report {
        database,
        relation,
        tablespace: tablespace_name(database, relation)?,
        settings: tablespace_settings(database, relation),
        toast: toast_name(database, relation)?,
        forks: forks(database, relation)?,
        columns: columns(database, relation)?,
    };
    let is_damaged = report.forks.iter().any(|fork| !fork.damage.is_empty());
    if json {
        return Ok(View::json(&report.json(), is_damaged));
    }
    Ok(View { text: report.text(), is_damaged })
}

struct Report<'a> {
    database: &'a Database,
    relation: &'a Relation,
    tablespace: String,
    settings: Option<TablespaceSettings>,
    toast: Option<String>,
    forks: Vec<ForkReport>,
    columns: Vec<ColumnReport>,
}

fn tablespace_name(database: &Database, relation: &Relation) -> Result<String> {
    let oid = tablespace_of(database, &relation.class);
    let named = database.cluster().tablespaces()?.remove(&oid);
    Ok(named.map_or_else(|| oid.to_string(), |name| printable(&name)))
}

/// The settings of the relation's tablespace, if it has files. They are beside the point, so that they
/// cannot be read is only said.
fn tablespace_settings(database: &Database, relation: &Relation) -> Option<TablespaceSettings> {
    if !relation.class.kind.has_files() {
        return None;
    }
    let found = database.tablespace_settings(tablespace_of(database, &relation.class));
    let settings =
        found.map_err(|error| say(format!("the settings of tablespaces: {error}"))).ok()?;
    settings.problems.iter().for_each(say);
    Some(settings)
}

/// Names, values and where these are set.
fn setting_fields(settings: &TablespaceSettings) -> [(&'static str, Value, &SettingSource); 4] {
    let TablespaceSettings {
        effective_io_concurrency: effective,
        maintenance_io_concurrency: maintenance,
        seq_page_cost: seq,
        random_page_cost: random,
        ..
    } = settings;
    [
        ("effective_io_concurrency", json!(effective.value), &effective.from),
        ("maintenance_io_concurrency", json!(maintenance.value), &maintenance.from),
        ("seq_page_cost", json!(seq.value), &seq.from),
        ("random_page_cost", json!(random.value), &random.from),
    ]
}

fn settings_json(settings: &TablespaceSettings) -> Value {
    let field = |(name, value, from): (&str, Value, &SettingSource)| {
        (name.to_owned(), json!({ "value": value, "from": from.to_string() }))
    };
    Value::Object(setting_fields(settings).into_iter().map(field).collect())
}

fn toast_name(database: &Database, relation: &Relation) -> Result<Option<String>> {
    let Some(toast) = database.class(relation.class.toast) else { return Ok(None) };
    let schema = database.schema_of(toast)?;
    Ok(Some(format!("{}.{}", printable(&schema), printable(&toast.name))))
}

fn persistence_name(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::Permanent => "permanent",
        Persistence::Unlogged => "unlogged",
        Persistence::Temporary => "temporary",
    }
}

fn generated_name(generated: Generated) -> Option<&'static str> {
    match generated {
        Generated::No => None,
        Generated::Stored => Some("stored"),
        Generated::Virtual => Some("virtual"),
    }
}

impl Report<'_> {
    fn utf8<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        utf8_name(self.database.row().encoding, name)
    }

    fn text(&self) -> String {
        let mut text = fields(&self.fields());
        if !self.forks.is_empty() {
            text += "\n";
            text += &self.segment_table();
        }
        for damage in self.forks.iter().flat_map(|fork| &fork.damage) {
            text += &format!("damaged: {damage}\n");
        }
        if !self.columns.is_empty() {
            text += "\n";
            text += &self.column_table();
        }
        text
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let class = &self.relation.class;
        let (schema, name) = (self.utf8(&self.relation.schema), self.utf8(&class.name));
        let name = format!("{}.{}", printable(&schema), printable(&name));
        let mut fields = vec![
            ("Relation", name),
            ("Database", printable(&self.database.row().name)),
            ("OID", class.oid.to_string()),
            ("Kind", class.kind.name().to_owned()),
            ("Persistence", persistence_name(class.persistence).to_owned()),
            ("Tablespace", self.tablespace.clone()),
        ];
        if class.kind.has_files() {
            fields.push(("File", self.relation.base.display().to_string()));
        }
        for (name, value, from) in self.settings.iter().flat_map(setting_fields) {
            fields.push((name, format!("{value} ({from})")));
        }
        fields.push(("TOAST table", self.toast.clone().unwrap_or_else(|| "none".to_owned())));
        fields
    }

    fn segment_table(&self) -> String {
        let header = [
            ("Fork", Align::Left),
            ("Blocks", Align::Right),
            ("Size", Align::Right),
            ("Segment", Align::Left),
        ];
        let mut rows = Vec::new();
        for fork in &self.forks {
            let (mut name, mut blocks) = (fork.fork.to_string(), fork.blocks.to_string());
            for (path, bytes) in &fork.segments {
                let size = bytes.map_or_else(|| "missing".to_owned(), pretty_size);
                let path = path.display().to_string();
                rows.push(vec![std::mem::take(&mut name), std::mem::take(&mut blocks), size, path]);
            }
        }
        table(&header, &rows)
    }

    fn column_table(&self) -> String {
        let header = [
            ("#", Align::Right),
            ("Column", Align::Left),
            ("Type", Align::Left),
            ("Type OID", Align::Right),
            ("Length", Align::Right),
            ("Align", Align::Right),
            ("Notes", Align::Left),
        ];
        let rows: Vec<_> =
            (1..).zip(&self.columns).map(|(n, column)| column_row(n, column)).collect();
        table(&header, &rows)
    }

    fn json(&self) -> Value {
        let class = &self.relation.class;
        json!({
            "schema": String::from_utf8_lossy(&self.utf8(&self.relation.schema)),
            "name": String::from_utf8_lossy(&self.utf8(&class.name)),
            "database": String::from_utf8_lossy(&self.database.row().name),
            "oid": class.oid.0,
            "kind": class.kind.name(),
            "persistence": persistence_name(class.persistence),
            "tablespace": self.tablespace,
            "tablespace_settings": self.settings.as_ref().map(settings_json),
            "file": class.kind.has_files().then(|| self.relation.base.display().to_string()),
            "toast_table": self.toast,
            "forks": self.forks.iter().map(fork_json).collect::<Vec<_>>(),
            "columns": (1..).zip(&self.columns).map(column_json).collect::<Vec<_>>(),
        })
    }
}

fn column_row(number: usize, report: &ColumnReport) -> Vec<String> {
    let column = &report.column;
    let mut notes = Vec::new();
    if column.dropped {
        notes.push("dropped".to_owned());
    }
    notes.extend(generated_name(column.generated).map(|kind| format!("generated, {kind}")));
    if column.missing.is_some() {
        notes.push("older rows have a default".to_owned());
    }
    vec![
        number.to_string(),
        printable(report.name.as_bytes()),
        report.type_name.clone(),
        column.type_oid.to_string(),
        column.layout.len.to_string(),
        column.layout.align.to_string(),
        notes.join(", "),
    ]
}

fn column_json((number, report): (usize, &ColumnReport)) -> Value {
    let column = &report.column;
    json!({
        "number": number,
        "name": report.name,
        "type": (!column.dropped).then_some(&report.type_name),
        "type_oid": column.type_oid.0,
        "length": column.layout.len,
        "align": column.layout.align,
        "dropped": column.dropped,
        "generated": generated_name(column.generated),
        "has_missing_value": column.missing.is_some(),
    })
}

fn fork_json(fork: &ForkReport) -> Value {
    let segment = |(path, bytes): &(std::path::PathBuf, Option<u64>)| json!({ "path": path.display().to_string(), "bytes": bytes });
    json!({
        "fork": fork.fork.name(),
        "blocks": fork.blocks,
        "segments": fork.segments.iter().map(segment).collect::<Vec<_>>(),
        "damage": fork.damage,
    })
}
