//! Rows of the system's catalogs by the keys of their indexes, for what asks for few of many.
//!
//! Invariant: an index that cannot be read, or that may not fit its table, is not searched: all rows are handed out instead.

use std::sync::Arc;

use pagemill_engine::{
    IndexLookup, Lookup, LookupLimits, Progress, ScanOptions, ScanRequest, StepColumns, TidScan,
};
use pagemill_format::Tid;
use pagemill_types::index_key_range::KeyRange;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::{SystemRow, SystemTable};

/// A catalog that is open, with the first of its indexes.
pub(crate) struct SystemSearch {
    catalog: Arc<Catalog>,
    table: SystemTable,
    index: Option<IndexLookup>,
}

impl SystemSearch {
    /// Opens a catalog, of which some columns are wanted.
    ///
    /// # Errors
    /// When it is missing, damaged, or has no such column.
    pub(crate) fn open(catalog: &Arc<Catalog>, name: &str, wanted: &[&str]) -> Result<Self> {
        let table = SystemTable::open(catalog.values(), name, wanted)?;
        let indexes = catalog.search_indexes(&table.table.relation)?;
        let usable = indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok());
        // Index and table go together only once all of the WAL is in both.
        let usable = usable.filter(|_| catalog.database().cluster().is_complete());
        let options = ScanOptions::default();
        let open = |index| IndexLookup::open(catalog.database(), &table.table, index, options).ok();
        let index = usable.filter(|index| index.predicate.is_none()).find_map(open);
        Ok(Self { catalog: catalog.clone(), table, index })
    }

    /// Hands the rows of a range of the index to `visit`, and perhaps others, in no order.
    ///
    /// # Errors
    /// When the catalog is damaged; what `visit` returns.
    pub(crate) fn for_each_row(
        &mut self,
        range: KeyRange,
        mut visit: impl FnMut(&mut SystemRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let found = self.tids(range);
        let Self { catalog, table, .. } = self;
        let cluster = catalog.database().cluster();
        let Some(tids) = found else { return table.for_each_row(cluster, visit) };
        let (opened, progress) = (table.table.clone(), &Progress::default());
        let options = ScanOptions::default();
        let request = ScanRequest { cluster, table: &opened, options, progress };
        let columns = StepColumns { first: &table.positions, rest: &[] };
        let mut scan = TidScan::new(request, columns, &tids.into(), &(0..u32::MAX));
        while scan.next_round(&mut table.damage)? {
            for tuple in scan.rows() {
                visit(&mut table.row(tuple))?;
            }
        }
        Ok(())
    }

    /// Where they are, if the index tells.
    fn tids(&mut self, range: KeyRange) -> Option<Vec<Tid>> {
        let limits = LookupLimits { blocks: u32::MAX, tids: usize::MAX, share: 1.0 };
        match self.index.as_mut()?.tids(&[range], limits) {
            Ok(Lookup::Found(tids)) => Some(tids),
            Ok(Lookup::TooMany) | Err(_) => None,
        }
    }
}
