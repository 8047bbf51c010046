//! What a file says of where its rows come from, for whoever finds it later.
//! Keys begin with `pg.` or `pagemill.`, but for what GeoParquet wants.

use std::collections::HashMap;

use arrow_schema::{Field, Fields, Schema, SchemaRef};
use pagemill_cluster::Database;
use pagemill_engine::RowSource;
use pagemill_engine::encoding::readable_name;
use pagemill_types::json::write_json_string;

use crate::plan::{ColumnPlan, Kind};

/// Keys and values beside the schema: the program, the source, and up to where its WAL was read.
pub(crate) fn file_metadata(source: &RowSource<'_>, end: Option<&str>) -> HashMap<String, String> {
    let mut found = database_metadata(source.database());
    found.insert("pg.table".to_owned(), source.selected().display_name());
    if let Some(end) = end {
        found.insert("pg.lsn".to_owned(), end.to_owned());
    }
    found
}

/// The program and the database.
pub(crate) fn database_metadata(database: &Database) -> HashMap<String, String> {
    let (cluster, row) = (database.cluster(), database.row());
    HashMap::from([
        ("pagemill.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("pg.version".to_owned(), cluster.version().to_string()),
        ("pg.database".to_owned(), readable_name(row.encoding, &row.name)),
    ])
}

/// GeoParquet's account of the columns that are well-known binary; `None` when there are none.
///
/// A column in the SRID 4326 has GeoParquet's own coordinate system, which is its default; what another SRID means would take
/// PROJ's database to tell, so it is said to be unknown, and `pg.typmod` of the field has the number.
///
/// Source: GeoParquet 1.1.0.
pub(crate) fn geo_metadata(columns: &[ColumnPlan]) -> Option<String> {
    let mut shapes = columns.iter().filter_map(|column| match column.kind {
        Kind::Wkb(Some(srid)) => Some((column, srid)),
        _ => None,
    });
    let first = shapes.clone().next()?.0;
    let column = |(column, srid): (&ColumnPlan, i32)| {
        let crs = if srid == WGS_84 { "" } else { ",\"crs\":null" };
        let is_geography = Field::metadata(&column.field)
            .get("pg.type")
            .is_some_and(|name| name.ends_with("geography"));
        let edges = if is_geography { ",\"edges\":\"spherical\"" } else { "" };
        let name = json_string(&column.name);
        format!("{name}:{{\"encoding\":\"WKB\",\"geometry_types\":[]{crs}{edges}}}")
    };
    let columns: Vec<String> = shapes.by_ref().map(column).collect();
    Some(format!(
        "{{\"version\":\"1.1.0\",\"primary_column\":{},\"columns\":{{{}}}}}",
        json_string(&first.name),
        columns.join(",")
    ))
}

/// The SRID of longitude and latitude.
const WGS_84: i32 = 4326;

fn json_string(text: &str) -> String {
    let mut quoted = Vec::new();
    write_json_string(text.as_bytes(), &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

/// The schema with what the file says.
pub(crate) fn with_metadata(fields: &Fields, found: HashMap<String, String>) -> SchemaRef {
    Schema::new_with_metadata(fields.clone(), found).into()
}
