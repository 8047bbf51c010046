//! What choosing and listing relations asks of the catalogs: the search path, partitions and
//! tablespaces. Each is read when it is asked for and not kept.
//!
//! Source: `src/include/catalog/pg_inherits.h`, `pg_tablespace.h`, `find_inheritance_children` in
//! `src/backend/catalog/pg_inherits.c`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use pagemill_format::Oid;

use crate::data_directory::Cluster;
use crate::database::{Database, catalog};
use crate::error::Result;
use crate::name_rows::{DatabaseRows, DatabaseSettings};
use crate::names::{NameRows, SearchPath};
use crate::relation::{ClassRow, RelationKind};

impl Cluster {
    /// The names of the tablespaces.
    ///
    /// # Errors
    /// When no database's catalogs, or `pg_tablespace`, can be read.
    pub fn tablespaces(&self) -> Result<HashMap<Oid, Box<[u8]>>> {
        let mut found = HashMap::new();
        self.scan_shared(catalog::PG_TABLESPACE, &["oid", "spcname"], |row| {
            found.insert(row.oid(0)?, row.name(1)?);
            Ok(())
        })?;
        Ok(found)
    }
}

impl Database {
    /// Where a new session of the first superuser looks up names without a schema.
    ///
    /// # Errors
    /// When the settings or `pg_namespace` cannot be read.
    pub fn search_path(&self) -> Result<SearchPath> {
        let names = DatabaseSettings::read(self)?.names;
        let namespaces = DatabaseRows::new(self.clone()).namespaces()?;
        Ok(SearchPath::resolve(&names.search_path, &names.user, &namespaces))
    }

    /// The partitions that hold the rows of a partitioned table, at every depth, those of one
    /// parent by OID. One that is being detached belongs to its parent no more.
    ///
    /// # Errors
    /// When `pg_inherits` cannot be read.
    pub fn leaf_partitions(&self, parent: &ClassRow) -> Result<Vec<&ClassRow>> {
        let children = self.children()?;
        let mut leaves = Vec::new();
        let mut seen = HashSet::new();
        let mut waiting = vec![parent.oid];
        while let Some(oid) = waiting.pop() {
            if !seen.insert(oid) {
                continue;
            }
            match self.class(oid) {
                Some(class) if class.kind == RelationKind::PartitionedTable => {
                    let below = children.get(&oid).map(Vec::as_slice).unwrap_or_default();
                    waiting.extend(below.iter().rev());
                }
                Some(leaf) => leaves.push(leaf),
                None => {}
            }
        }
        Ok(leaves)
    }

    fn children(&self) -> Result<HashMap<Oid, Vec<Oid>>> {
        let mut found: HashMap<Oid, Vec<Oid>> = HashMap::new();
        let wanted = ["inhparent", "inhrelid", "inhdetachpending"];
        self.scan(catalog::PG_INHERITS, &wanted, |row| {
            if row.byte(2)? == 0 {
                found.entry(row.oid(0)?).or_default().push(row.oid(1)?);
            }
            Ok(())
        })?;
        found.values_mut().for_each(|children| children.sort_unstable());
        Ok(found)
    }
}
