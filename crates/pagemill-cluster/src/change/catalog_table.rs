//! A catalog whose rows are changed: its files, its rows with their places, and what indexes say of them.
//!
//! Invariants: every page is checked before it is looked at; a row is named by the line pointer that index entries lead
//! to, the root of its HOT chain.
//!
//! Source: `src/include/catalog/`, PostgreSQL 14 to 18.

use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{HeapTuple, TupleLayout};
use pagemill_format::tuple_builder::{TupleForm, TupleStamp};
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::{self, Varlena};
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Oid, Tid, TransactionId};
use pagemill_io::ForkFiles;
use pagemill_types::builtin::oid;

use crate::column::{Column, tuple_layout};
use crate::database::Database;
use crate::error::{Damage, Error, Result};
use crate::heap::{TupleFault, visit_tuples};
use crate::hot_chain;
use crate::page_check::check_page;
use crate::refusal::{CatalogRowCause, Refusal};
use crate::transaction_log::ClusterLog;

/// `HEAP_ONLY_TUPLE` of `t_infomask2`: a later member of a HOT chain, which no index entry leads to.
const HEAP_ONLY: u16 = 0x8000;

/// A page with its changes.
pub(super) type ChangedPage = (BlockNumber, Box<BlockBytes>);

/// Values of some columns of a row as they lie in the tuple, `None` for NULL; names without their padding.
pub(super) type KeyValues = Vec<Option<Box<[u8]>>>;

/// The values of all columns of a row without length words, `None` for NULL.
pub(super) type Payloads = Vec<Option<Vec<u8>>>;

/// What the indexes of a catalog have to know of a row.
#[derive(Debug, Clone)]
pub(super) struct CatalogEntry {
    /// Where index entries lead.
    pub(super) tid: Tid,
    /// The values of the columns that were asked for.
    pub(super) values: KeyValues,
}

/// A catalog.
#[derive(Debug)]
pub(super) struct CatalogTable {
    pub(super) database: Database,
    pub(super) file: RelFileLocator,
    pub(super) files: ForkFiles,
    pub(super) columns: Vec<Column>,
    pub(super) layout: TupleLayout,
}

impl CatalogTable {
    /// A catalog as this database sees it, its own or a shared one.
    ///
    /// # Errors
    /// When it or its columns cannot be found.
    pub(super) fn open(database: &Database, oid: Oid) -> Result<Self> {
        let missing = || Error::refused(Refusal::missing_row("pg_class", "the catalog", oid));
        let class = database.class(oid).ok_or_else(missing)?;
        let columns = database.columns_of(&[oid])?.remove(&oid).ok_or_else(missing)?;
        Ok(Self {
            file: files_of(database, oid)?,
            files: database.cluster().main_fork(&database.base_path(class)?)?,
            layout: tuple_layout(&columns),
            columns,
            database: database.clone(),
        })
    }

    /// The position of a column; `None` for one that this version does not have.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column.name == *name.as_bytes())
    }

    /// The position of a column that every version has.
    ///
    /// # Errors
    /// When the catalog has no such column.
    pub(super) fn required(&self, name: &str) -> Result<usize> {
        let missing = || self.damage(format!("the catalog in this file has no column {name}"));
        self.position(name).ok_or_else(missing)
    }

    /// The values of these columns in a tuple.
    ///
    /// # Errors
    /// When the catalog has no such column, or the tuple ends before it does.
    pub(super) fn values(&self, tuple: HeapTuple<'_>, columns: &[&str]) -> Result<KeyValues> {
        let mut spans = Vec::new();
        let data = tuple.data();
        self.layout.spans(&data, self.columns.len(), &mut spans)?;
        let value = |name: &&str| {
            let at = self.required(name)?;
            let value = spans.get(at).and_then(|span| span.of(data.data));
            let is_name = self.columns.get(at).is_some_and(|c| c.type_oid == oid::NAME);
            Ok(value.map(|value| if is_name { unpadded(value) } else { value }.into()))
        };
        columns.iter().map(value).collect()
    }

    /// The payloads of those columns of a tuple that are `wanted`, as a new tuple is formed from them; the others are null.
    ///
    /// # Errors
    /// When the tuple ends before its columns do, or a value lies in a TOAST table.
    pub(super) fn payloads(
        &self,
        tuple: HeapTuple<'_>,
        wanted: impl Fn(&Column) -> bool,
    ) -> Result<Payloads> {
        let mut spans = Vec::new();
        let data = tuple.data();
        self.layout.spans(&data, self.columns.len(), &mut spans)?;
        let columns = self.columns.iter().zip(&spans);
        columns
            .map(|(column, span)| match span.of(data.data).filter(|_| wanted(column)) {
                Some(raw) if column.layout.len == VARLENA => Ok(Some(unpacked(raw)?)),
                value => Ok(value.map(Vec::from)),
            })
            .collect()
    }

    /// A tuple of these payloads, inserted by a transaction, which lies nowhere yet.
    ///
    /// # Errors
    /// When they are too long for a page.
    pub(super) fn form(&self, payloads: &Payloads, xid: TransactionId) -> Result<Vec<u8>> {
        let layouts: Vec<_> = self.columns.iter().map(column_layout).collect::<Result<_>>()?;
        let form = TupleForm::new(&layouts)?;
        let row: Vec<Option<&[u8]>> = payloads.iter().map(Option::as_deref).collect();
        let size = form.measure(&row[..])?;
        let mut tuple = vec![0; size.on_page()?];
        form.write(&row[..], size, TupleStamp::inserted(xid, 0), &mut tuple);
        Ok(tuple)
    }

    /// What indexes have to say of all rows that are visible now, of these columns.
    ///
    /// # Errors
    /// Any damage.
    pub(super) fn entries(&self, columns: &[&str]) -> Result<Vec<CatalogEntry>> {
        let mut log = ClusterLog::new(self.database.cluster().clone());
        let mut entries = Vec::new();
        self.for_each_page(|block, bytes| {
            for root in (1..=Page::new(bytes).line_pointer_count()).filter(|&lp| is_root(bytes, lp))
            {
                let member = hot_chain::visible_member(Page::new(bytes), block, root, &mut log);
                let member = member.map_err(|(lp, fault)| self.fault(block, lp, fault))?;
                if let Some((_, tuple)) = member {
                    let tid = Tid { block, line_pointer: root };
                    entries.push(CatalogEntry { tid, values: self.values(tuple, columns)? });
                }
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// Hands every visible row to `visit`, with its own place.
    ///
    /// # Errors
    /// Any damage, and what `visit` returns.
    pub(super) fn for_each_row(
        &self,
        mut visit: impl FnMut(Tid, HeapTuple<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut log = ClusterLog::new(self.database.cluster().clone());
        self.for_each_page(|block, bytes| {
            visit_tuples(Page::new(bytes), &mut log, |line_pointer, tuple| -> Result<()> {
                let tuple = tuple.map_err(|fault| self.fault(block, line_pointer, fault))?;
                visit(Tid { block, line_pointer }, tuple)
            })
        })
    }

    /// Hands every page, checked, to `visit`.
    pub(super) fn for_each_page(
        &self,
        mut visit: impl FnMut(BlockNumber, &BlockBytes) -> Result<()>,
    ) -> Result<()> {
        let mut page = Box::new([0; BLOCK_SIZE]);
        for block in (0..self.files.blocks()).map(BlockNumber) {
            self.files.read_block(block, &mut page)?;
            check_page(self.database.cluster(), &self.files, block, &page)?;
            visit(block, &page)?;
        }
        Ok(())
    }

    /// The damage `what`, in the catalog's first file.
    pub(super) fn damage(&self, what: impl Into<String>) -> Error {
        Damage::in_file(self.files.path(), what.into()).into()
    }

    /// What is wrong with a tuple.
    pub(super) fn fault(&self, block: BlockNumber, number: u16, fault: TupleFault) -> Error {
        match fault {
            TupleFault::Status(error) => error,
            TupleFault::Bytes(error) => {
                let (path, _) = self.files.locate(block);
                Damage::in_block(path, Fork::Main, block, error.to_string())
                    .at_line_pointer(number)
                    .into()
            }
        }
    }
}

/// `attlen` of types of variable length.
const VARLENA: i16 = -1;

fn unpacked(raw: &[u8]) -> Result<Vec<u8>> {
    match Varlena::parse(raw)? {
        Varlena::Plain(bytes) => Ok(bytes.to_vec()),
        Varlena::Compressed { raw_bytes, method, data } => {
            let mut out = Vec::new();
            varlena::decompress(method, data, raw_bytes, &mut out)?;
            Ok(out)
        }
        Varlena::External(_) => Err(Error::refused(CatalogRowCause::ToastedValue)),
    }
}

fn column_layout(column: &Column) -> Result<ColumnLayout> {
    Ok(ColumnLayout {
        layout: column.layout,
        storage: AttributeStorage::from_byte(column.storage)?,
        compression: varlena::Compression::Pglz,
        dropped: column.dropped,
    })
}

/// A name without the zeros that it is padded with.
pub(super) fn unpadded(name: &[u8]) -> &[u8] {
    name.split(|&byte| byte == 0).next().expect("a split has a first part") // infallible: even of nothing
}

/// The files a relation has now.
///
/// # Errors
/// When there is no such relation, or it is mapped, and not in the relation map.
pub(super) fn files_of(database: &Database, relation: Oid) -> Result<RelFileLocator> {
    let class = database.class(relation);
    let missing = || Error::refused(Refusal::missing_row("pg_class", "the relation", relation));
    database.locator(class.ok_or_else(missing)?)
}

/// True for a line pointer that an index entry may lead to.
fn is_root(bytes: &BlockBytes, number: u16) -> bool {
    let page = Page::new(bytes);
    let Some(lp) = page.line_pointer(number) else { return false };
    match lp.state() {
        LinePointerState::Redirect => true,
        LinePointerState::Normal => {
            let tuple = page.item(lp).and_then(HeapTuple::parse);
            // A damaged one is reported when it is followed.
            tuple.map_or(true, |tuple| tuple.infomask2() & HEAP_ONLY == 0)
        }
        _ => false,
    }
}
