//! Tables that a real server filled, taken apart into payloads: what the builders are held against.
//!
//! The server is stopped before anything is read, and nothing was read in it since the rows were
//! written, so no hint bit was set and no page pruned.
#![allow(dead_code)] // Each test that shares this uses a part of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{AttributeLayout, HeapTuple, TupleLayout};
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::{Compression, ToastPointer, Varlena, decompress, decompress_stored};
use pagemill_format::{BLOCK_SIZE, BlockBytes, Oid};
use pagemill_testkit::TestCluster;

/// A table as the server says it is.
pub(crate) struct ServerTable {
    pub(crate) columns: Vec<ColumnLayout>,
    pub(crate) layout: TupleLayout,
    pub(crate) toast_relation: Option<Oid>,
    pub(crate) fillfactor: u8,
    pub(crate) tuple_target: Option<usize>,
    file: PathBuf,
    toast_file: Option<PathBuf>,
}

/// A row's values.
pub(crate) struct ServerRow {
    pub(crate) payloads: Vec<Option<Vec<u8>>>,
    /// The TOAST pointers among them.
    pub(crate) pointers: Vec<ToastPointer>,
}

impl ServerRow {
    pub(crate) fn values(&self) -> Vec<Option<&[u8]>> {
        self.payloads.iter().map(Option::as_deref).collect()
    }
}

impl ServerTable {
    /// Asks a running server about tables, all at once; the files can be read once it is stopped.
    pub(crate) fn describe(cluster: &TestCluster, names: &[&str]) -> Result<Vec<Self>> {
        let list = names.iter().map(|name| format!("('{name}'::regclass)")).collect::<Vec<_>>();
        let ask = |columns: &str, rest: &str| {
            let list = list.join(", ");
            cluster
                .psql("postgres", &format!("SELECT {columns} FROM (VALUES {list}) l (rel), {rest}"))
        };
        let columns = ask(
            "rel, attlen, attalign, attstorage, attcompression, attisdropped",
            "pg_attribute WHERE attrelid = rel AND attnum > 0 ORDER BY attnum",
        )?;
        let classes = ask(
            "rel, pg_relation_filepath(oid), reltoastrelid, \
             CASE WHEN reltoastrelid <> 0 THEN pg_relation_filepath(reltoastrelid) END, \
             coalesce(substring(reloptions::text from 'fillfactor=(\\d+)')::int, 100), \
             coalesce(substring(reloptions::text from 'toast_tuple_target=(\\d+)')::int, 0)",
            "pg_class WHERE oid = rel",
        )?;
        names.iter().map(|name| Self::of_answers(cluster, name, &columns, &classes)).collect()
    }

    fn of_answers(cluster: &TestCluster, name: &str, columns: &str, classes: &str) -> Result<Self> {
        let of_table = |line: &'_ str| {
            line.split_once('|')
                .filter(|(table, _)| *table == name)
                .map(|(_, rest)| rest.to_owned())
        };
        let columns = columns.lines().filter_map(of_table).map(|line| column(&line));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let class = classes.lines().find_map(of_table).context("no such table")?;
        let fields: Vec<&str> = class.split('|').collect();
        let path = |name: &str| cluster.data_dir().join(name);
        let toast = fields[1].parse().ok().filter(|oid| *oid != 0).map(Oid);
        let target: usize = fields[4].parse()?;
        Ok(Self {
            layout: TupleLayout::new(columns.iter().map(|column| column.layout).collect()),
            columns,
            toast_relation: toast,
            fillfactor: fields[3].parse()?,
            tuple_target: (target != 0).then_some(target),
            file: path(fields[0]),
            toast_file: toast.is_some().then(|| path(fields[2])),
        })
    }

    pub(crate) fn pages(&self) -> Result<Vec<BlockBytes>> {
        blocks(&self.file)
    }

    pub(crate) fn toast_pages(&self) -> Result<Vec<BlockBytes>> {
        self.toast_file.as_deref().map_or(Ok(Vec::new()), blocks)
    }

    /// The values of the chunks, by their id.
    pub(crate) fn toasted(&self) -> Result<HashMap<Oid, Vec<u8>>> {
        let layout = TupleLayout::new(vec![
            AttributeLayout { len: 4, align: 4 },
            AttributeLayout { len: 4, align: 4 },
            AttributeLayout { len: -1, align: 4 },
        ]);
        let mut chunks = Vec::new();
        for page in &self.toast_pages()? {
            for tuple in tuples(page)? {
                let (mut spans, data) = (Vec::new(), tuple.data());
                layout.spans(&data, 3, &mut spans)?;
                let word = |n: usize| -> Result<u32> {
                    Ok(u32::from_le_bytes(spans[n].of(data.data).context("null")?.try_into()?))
                };
                let Varlena::Plain(bytes) = Varlena::parse(spans[2].of(data.data).unwrap())? else {
                    anyhow::bail!("a chunk that is not plain");
                };
                chunks.push((Oid(word(0)?), word(1)?, bytes.to_vec()));
            }
        }
        chunks.sort_by_key(|(id, sequence, _)| (*id, *sequence));
        let mut values: HashMap<Oid, Vec<u8>> = HashMap::new();
        for (id, _, bytes) in chunks {
            values.entry(id).or_default().extend(bytes);
        }
        Ok(values)
    }

    /// The payloads of a tuple.
    pub(crate) fn row(
        &self,
        tuple: &HeapTuple<'_>,
        toasted: &HashMap<Oid, Vec<u8>>,
    ) -> Result<ServerRow> {
        let (mut spans, data) = (Vec::new(), tuple.data());
        self.layout.spans(&data, self.columns.len(), &mut spans)?;
        let mut row = ServerRow { payloads: Vec::new(), pointers: Vec::new() };
        for (column, span) in self.columns.iter().zip(spans) {
            let Some(bytes) = span.of(data.data) else {
                row.payloads.push(None);
                continue;
            };
            let mut payload = Vec::new();
            if column.layout.len > 0 {
                payload.extend_from_slice(bytes);
            } else {
                match Varlena::parse(bytes)? {
                    Varlena::Plain(bytes) => payload.extend_from_slice(bytes),
                    Varlena::Compressed { raw_bytes, method, data } => {
                        decompress(method, data, raw_bytes, &mut payload)?;
                    }
                    Varlena::External(pointer) => {
                        let stored = toasted.get(&pointer.value_id).context("no chunks")?;
                        ensure!(stored.len() == pointer.stored_size as usize);
                        match pointer.compression {
                            Some(_) => decompress_stored(&pointer, stored, &mut payload)?,
                            None => payload.extend_from_slice(stored),
                        }
                        row.pointers.push(pointer);
                    }
                }
            }
            row.payloads.push(Some(payload));
        }
        Ok(row)
    }
}

pub(crate) fn column(line: &str) -> Result<ColumnLayout> {
    let fields: Vec<&str> = line.split('|').collect();
    let byte = |n: usize| fields[n].bytes().next().context("an empty field");
    Ok(ColumnLayout {
        layout: AttributeLayout::new(fields[0].parse()?, byte(1)?)?,
        storage: AttributeStorage::from_byte(byte(2)?)?,
        compression: if fields[3] == "l" { Compression::Lz4 } else { Compression::Pglz },
        dropped: fields[4] == "t",
    })
}

/// The blocks of a file, without those at its end that the server allocated (16 on) and did not use.
pub(crate) fn blocks(file: &Path) -> Result<Vec<BlockBytes>> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    ensure!(bytes.len().is_multiple_of(BLOCK_SIZE));
    let blocks = bytes.as_chunks::<BLOCK_SIZE>().0;
    let used = blocks.iter().rposition(|block| !Page::new(block).is_new());
    Ok(blocks[..used.map_or(0, |last| last + 1)].to_vec())
}

/// The tuples of a page, in the order of their line pointers.
pub(crate) fn tuples(page: &BlockBytes) -> Result<Vec<HeapTuple<'_>>> {
    let page = Page::new(page);
    page.check_header()?;
    let pointers = (1..=page.line_pointer_count()).filter_map(|number| page.line_pointer(number));
    let normal = pointers.filter(|pointer| pointer.state() == LinePointerState::Normal);
    normal.map(|pointer| Ok(HeapTuple::parse(page.item(pointer)?)?)).collect()
}
