//! Settings that the cluster itself tells, and those that are the same wherever it is answered without a server.
//!
//! Invariant: none of them is what files of settings say.
//!
//! Source: `InitializeGUCOptions` in `src/backend/utils/misc/guc.c`, `ReadControlFile` in `src/backend/access/transam/xlog.c`,
//! `CheckMyDatabase` in `src/backend/utils/init/postinit.c`, PostgreSQL 14 to 18.

use pagemill_types::encoding::encoding_name;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// What a setting is on this cluster; `None` for one that it says nothing of.
pub(super) fn known(catalog: &Catalog, name: &str) -> Result<Option<String>> {
    let database = catalog.database();
    let (control, major) = (database.cluster().control(), database.cluster().version().major());
    let switch = |is_on| if is_on { "on" } else { "off" }.to_owned();
    Ok(Some(match name {
        "block_size" => control.build.block_size.to_string(),
        "segment_size" => control.build.segment_blocks.to_string(),
        "wal_block_size" => control.build.wal_block_size.to_string(),
        "wal_segment_size" => control.build.wal_segment_size.to_string(),
        "max_index_keys" => control.build.index_max_keys.to_string(),
        "data_checksums" => switch(control.has_data_checksums()),
        "server_version" => format!("{major} (Pagemill {})", env!("CARGO_PKG_VERSION")),
        // Which minor version wrote the files is not in them.
        "server_version_num" => (major * 10_000).to_string(),
        "client_encoding" | "server_encoding" => {
            let name = encoding_name(database.row().encoding);
            name.unwrap_or_default().to_owned() // default: no session is opened on another
        }
        "lc_collate" => return locale(catalog, "datcollate"),
        "lc_ctype" => return locale(catalog, "datctype"),
        "default_transaction_read_only" | "transaction_read_only" => switch(true),
        "is_superuser" => switch(catalog.role().is_none()),
        "session_authorization" => String::from_utf8_lossy(&database.session_user()?).into_owned(),
        // It has no value before a session has one.
        "timezone_abbreviations" => "Default".to_owned(),
        _ => return Ok(None),
    }))
}

/// A locale that the database was created with.
fn locale(catalog: &Catalog, column: &str) -> Result<Option<String>> {
    let (own, mut found) = (catalog.database().row().oid, None);
    let is_name = catalog.database().cluster().version().major() == 14;
    for_each_row(catalog.values(), "pg_database", &["oid", column], |row| {
        if row.oid(0) == own {
            found = if is_name { Some(row.name(1)) } else { row.text(1)? };
        }
        Ok(())
    })?;
    Ok(found)
}
