//! Reading the catalogs: a table of the system, row by row, by the names of its columns.
//!
//! A damaged catalog is always an error: skipping one of its rows would silently lose a table or
//! a type.

use std::ops::Range;
use std::path::{Path, PathBuf};

use pagemill_format::page::Page;
use pagemill_format::tuple::{HeapTuple, Span, TupleLayout};
use pagemill_format::varlena::{self, Varlena};
use pagemill_format::{BlockBytes, BlockNumber, Error as FormatError, Fork, Oid};
use pagemill_io::ForkFiles;
use pagemill_stream::{ReadStream, ReadStreamOptions};

use crate::data_directory::Cluster;
use crate::error::{Damage, Result};
use crate::heap::{TupleFault, visit_tuples};
use crate::lost_tail::witness_in_maps;
use crate::page_check::PageCheck;
use crate::transaction_log::ClusterLog;

/// However many blocks there are.
pub(crate) const ALL_BLOCKS: Range<u32> = 0..u32::MAX;

/// Most columns of a catalog that are wanted at once.
const MAX_WANTED: usize = 16;

/// The wanted columns of one row.
pub(crate) struct Row<'a> {
    values: [Option<&'a [u8]>; MAX_WANTED],
}

impl<'a> Row<'a> {
    /// The value as it lies in the tuple, or `None` for NULL.
    pub(crate) fn raw(&self, column: usize) -> Option<&'a [u8]> {
        self.values.get(column).copied().flatten()
    }

    fn fixed<const N: usize>(&self, column: usize) -> Result<[u8; N], FormatError> {
        let found = self.raw(column).and_then(|raw| raw.try_into().ok());
        found.ok_or_else(|| {
            FormatError::corrupt("catalog row", column, format!("a value of {N} bytes is missing"))
        })
    }

    pub(crate) fn oid(&self, column: usize) -> Result<Oid, FormatError> {
        Ok(Oid(u32::from_le_bytes(self.fixed(column)?)))
    }

    pub(crate) fn i16(&self, column: usize) -> Result<i16, FormatError> {
        Ok(i16::from_le_bytes(self.fixed(column)?))
    }

    pub(crate) fn i32(&self, column: usize) -> Result<i32, FormatError> {
        Ok(i32::from_le_bytes(self.fixed(column)?))
    }

    pub(crate) fn i64(&self, column: usize) -> Result<i64, FormatError> {
        Ok(i64::from_le_bytes(self.fixed(column)?))
    }

    pub(crate) fn f32(&self, column: usize) -> Result<f32, FormatError> {
        Ok(f32::from_le_bytes(self.fixed(column)?))
    }

    /// A `char` or a `boolean`.
    pub(crate) fn byte(&self, column: usize) -> Result<u8, FormatError> {
        Ok(self.fixed::<1>(column)?[0])
    }

    /// A `name`, without its padding.
    pub(crate) fn name(&self, column: usize) -> Result<Box<[u8]>, FormatError> {
        let padded = self.fixed::<64>(column)?;
        let len = padded.iter().position(|&b| b == 0).unwrap_or(padded.len());
        Ok(padded[..len].into())
    }

    /// The payload of a varlena kept in line; `None` for NULL.
    pub(crate) fn payload(&self, column: usize) -> Result<Option<Vec<u8>>, FormatError> {
        let Some(raw) = self.raw(column) else { return Ok(None) };
        match Varlena::parse(raw)? {
            Varlena::Plain(bytes) => Ok(Some(bytes.to_vec())),
            Varlena::Compressed { raw_bytes, method, data } => {
                let mut out = Vec::new();
                varlena::decompress(method, data, raw_bytes, &mut out)?;
                Ok(Some(out))
            }
            Varlena::External(_) => {
                Err(FormatError::unsupported("catalog row", "a value in a TOAST table"))
            }
        }
    }
}

/// A catalog that is ready to be scanned.
pub(crate) struct SystemTable {
    pub(crate) cluster: Cluster,
    /// The files, without fork or segment.
    pub(crate) base: PathBuf,
    pub(crate) layout: TupleLayout,
    /// The columns' names.
    pub(crate) columns: Vec<Box<[u8]>>,
}

impl SystemTable {
    fn positions(&self, wanted: &[&str]) -> Result<Vec<usize>> {
        let position = |name: &&str| {
            self.columns.iter().position(|c| **c == *name.as_bytes()).ok_or_else(|| {
                let what = format!("the catalog in this file has no column {name}");
                Damage::in_file(&self.base, what).into()
            })
        };
        wanted.iter().map(position).collect()
    }

    /// Hands every visible row, cut down to the `wanted` columns, to `visit`.
    ///
    /// # Errors
    /// Any damage, and any error `visit` returns about a row.
    pub(crate) fn scan(
        &self,
        log: &mut ClusterLog,
        wanted: &[&str],
        visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<()> {
        let all = RowChoice { blocks: ALL_BLOCKS, passes: |_, _| true };
        self.scan_where(log, all, wanted, visit)
    }

    /// As [`SystemTable::scan`], of some rows only: what the others hold is not worked out.
    ///
    /// # Errors
    /// As [`SystemTable::scan`].
    pub(crate) fn scan_where(
        &self,
        log: &mut ClusterLog,
        choice: RowChoice<impl FnMut(BlockNumber, Oid) -> bool>,
        wanted: &[&str],
        mut visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<()> {
        debug_assert!(wanted.len() <= MAX_WANTED);
        let RowChoice { blocks, mut passes } = choice;
        let mut cut = RowCut::new(&self.layout, self.positions(wanted)?);
        scan_pages(&self.cluster, &self.base, blocks, |files, block, bytes| {
            visit_tuples(Page::new(bytes), log, |number, tuple| {
                let result = match tuple {
                    Ok(tuple) if !leading_oid(tuple).is_none_or(|oid| passes(block, oid)) => Ok(()),
                    Ok(tuple) => cut.row(tuple).and_then(|row| visit(&row)),
                    Err(TupleFault::Bytes(error)) => Err(error),
                    Err(TupleFault::Status(error)) => return Err(error),
                };
                result.map_err(|error| {
                    let (path, _) = files.locate(block);
                    Damage::in_block(path, Fork::Main, block, error.to_string())
                        .at_line_pointer(number)
                        .into()
                })
            })
        })
    }
}

/// Rows of a catalog that are looked at.
pub(crate) struct RowChoice<P> {
    /// The blocks they are on.
    pub(crate) blocks: Range<u32>,
    /// Told the block and the first column of a row, an OID that is never null.
    pub(crate) passes: P,
}

/// Cuts the rows of a catalog down to some columns.
struct RowCut<'l> {
    layout: &'l TupleLayout,
    positions: Vec<usize>,
    /// Columns up to the last of them.
    depth: usize,
    spans: Vec<Span>,
}

impl<'l> RowCut<'l> {
    fn new(layout: &'l TupleLayout, positions: Vec<usize>) -> Self {
        let depth = positions.iter().max().map_or(0, |last| last + 1);
        Self { layout, positions, depth, spans: Vec::new() }
    }

    fn row<'t>(&mut self, tuple: HeapTuple<'t>) -> Result<Row<'t>, FormatError> {
        let data = tuple.data();
        self.layout.spans(&data, self.depth, &mut self.spans)?;
        let mut values = [None; MAX_WANTED];
        for (value, &position) in values.iter_mut().zip(&self.positions) {
            *value = self.spans[position].of(data.data);
        }
        Ok(Row { values })
    }
}

/// The first attribute of a tuple as an OID, if there is room for one.
fn leading_oid(tuple: HeapTuple<'_>) -> Option<Oid> {
    tuple.data().data.first_chunk().map(|bytes| Oid(u32::from_le_bytes(*bytes)))
}

/// Hands every page of these blocks of a relation's main fork, as far as it has them, checked, to `visit`.
fn scan_pages(
    cluster: &Cluster,
    base: &Path,
    blocks: Range<u32>,
    mut visit: impl FnMut(&ForkFiles, BlockNumber, &BlockBytes) -> Result<()>,
) -> Result<()> {
    let files = cluster.main_fork(base)?;
    if let Some(damage) = files.damage().first() {
        return Err(Damage::in_file(base, damage.to_string()).into());
    }
    if let Some(found) = witness_in_maps(cluster, base, files.blocks())? {
        return Err(Damage::in_file(base, found.loss(files.blocks())).into());
    }
    let check = PageCheck { cluster, files: &files };
    let blocks = (blocks.start..blocks.end.min(files.blocks())).map(BlockNumber);
    let mut stream = ReadStream::new(&files, blocks, ReadStreamOptions::default());
    while let Some(next) = stream.next() {
        let (block, bytes) = next?;
        let mut again = None;
        visit(&files, block, check.check_or_read_again(block, bytes, None, &mut again)?)?;
    }
    Ok(())
}
