//! What a server makes of texts: the bytes it stores, found in the table's file after it was stopped,
//! or its message.
//!
//! Each type has a table of its own, whose values are stored plain so that none is compressed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_format::ids::BlockBytes;
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{AttributeLayout, HeapTuple, TupleLayout};
use pagemill_format::varlena::Varlena;
use pagemill_testkit::TestCluster;

use crate::Database;
use crate::cases::{Case, Kind};

/// What came of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The value's bytes, without a length word.
    Stored(Vec<u8>),
    /// The message.
    Refused(String),
}

/// The server's answers to the texts of each database; it is stopped afterwards.
pub(crate) fn answers(
    cluster: &mut TestCluster,
    databases: &[Database],
) -> Result<Vec<Vec<Answer>>> {
    cluster.start()?;
    let asked: Vec<Asked> =
        databases.iter().map(|database| ask(cluster, database)).collect::<Result<_>>()?;
    cluster.stop()?;
    asked.into_iter().map(|asked| asked.answers(&cluster.data_dir())).collect()
}

/// What a running server knows of the answers.
struct Asked {
    cases: usize,
    /// The messages.
    answers: HashMap<usize, Answer>,
    tables: Vec<Table>,
}

/// A table's file, and the length and alignment of its values.
struct Table {
    file: String,
    len: i16,
    align: u8,
}

/// Has the server read all texts.
fn ask(cluster: &TestCluster, database: &Database) -> Result<Asked> {
    let encoding = database.encoding.name;
    let name = format!("texts_{encoding}").to_lowercase();
    let create =
        format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'");
    cluster.psql("postgres", &create)?;
    let kinds = kinds(&database.cases);
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), script_of(&database.cases, &kinds))?;
    cluster.psql_file_encoded(&name, script.path(), &[], Some(encoding))?;
    Ok(Asked {
        cases: database.cases.len(),
        answers: messages(cluster, &name)?,
        tables: tables(cluster, &name)?,
    })
}

impl Asked {
    /// The answers, once the server has written its files.
    fn answers(mut self, data_dir: &Path) -> Result<Vec<Answer>> {
        for table in &self.tables {
            table.read(data_dir, &mut self.answers)?;
        }
        let answer = |id| self.answers.remove(&id).with_context(|| format!("no answer to {id}"));
        (0..self.cases).map(answer).collect()
    }
}

/// The kinds of value there are, each once.
fn kinds(cases: &[Case]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for case in cases {
        if !kinds.contains(&case.kind) {
            kinds.push(case.kind);
        }
    }
    kinds
}

fn script_of(cases: &[Case], kinds: &[Kind]) -> String {
    let mut script = String::from(
        "CREATE TABLE cases (id int, kind int, text text);
         CREATE TABLE refused (id int, message text);
         CREATE TABLE given (id int, kind int, text text);
         COPY given FROM STDIN;\n",
    );
    for (case, id) in cases.iter().zip(0..) {
        let kind = kinds.iter().position(|kind| *kind == case.kind).unwrap_or_default();
        let _ = writeln!(script, "{id}\t{kind}\t{}", hex(&case.text));
    }
    script.push_str("\\.\n");
    script.push_str(
        "INSERT INTO cases SELECT id, kind,
             convert_from(decode(text, 'hex'), getdatabaseencoding()) FROM given ORDER BY id;\n",
    );
    for (kind, number) in kinds.iter().zip(0..) {
        push_kind(*kind, number, &mut script);
    }
    script
}

/// Has the server read all texts of a kind.
fn push_kind(kind: Kind, number: usize, script: &mut String) {
    let Kind { name, typmod, .. } = kind;
    let _ = write!(
        script,
        "CREATE TABLE stored_{number} (id int, value pg_catalog.\"{name}\");
         DO $$ BEGIN
           IF (SELECT typlen < 0 FROM pg_type WHERE oid = {oid}) THEN
             ALTER TABLE stored_{number} ALTER value SET STORAGE PLAIN;
           END IF;
         END $$;
         DO $do$ DECLARE one record; reader text; BEGIN
           SELECT typinput::text || CASE pronargs WHEN 1 THEN '($1::cstring)'
                    ELSE '($1::cstring, 0, {typmod})' END
             FROM pg_type t JOIN pg_proc p ON p.oid = typinput WHERE t.oid = {oid} INTO reader;
           FOR one IN SELECT * FROM cases WHERE kind = {number} LOOP
             BEGIN
               EXECUTE 'INSERT INTO stored_{number} SELECT $2, ' || reader || '::pg_catalog.\"{name}\"'
                 USING one.text, one.id;
             EXCEPTION WHEN OTHERS THEN
               INSERT INTO refused VALUES (one.id, SQLERRM);
             END;
           END LOOP;
         END $do$;\n",
        oid = kind.oid
    );
}

/// The messages about the texts that were refused.
fn messages(cluster: &TestCluster, database: &str) -> Result<HashMap<usize, Answer>> {
    let query = "SELECT id, encode(convert_to(message, getdatabaseencoding()), 'hex') FROM refused";
    let mut answers = HashMap::new();
    for line in cluster.psql(database, query)?.lines() {
        let (id, message) = line.split_once('|').context("two columns")?;
        let message = String::from_utf8_lossy(&unhex(message)?).into_owned();
        answers.insert(id.parse()?, Answer::Refused(message));
    }
    Ok(answers)
}

/// The tables of all kinds.
fn tables(cluster: &TestCluster, database: &str) -> Result<Vec<Table>> {
    let query = "SELECT pg_relation_filepath(attrelid), attlen, attalign FROM pg_attribute
         WHERE attrelid::regclass::text LIKE 'stored%' AND attname = 'value'";
    let rows = cluster.psql(database, query)?;
    rows.lines().map(Table::parse).collect()
}

impl Table {
    fn parse(row: &str) -> Result<Self> {
        let mut columns = row.split('|');
        let mut next = || columns.next().context("three columns");
        let (file, len, align) = (next()?.to_owned(), next()?.parse()?, next()?);
        Ok(Self { file, len, align: *align.as_bytes().first().context("an alignment")? })
    }

    fn read(&self, data_dir: &Path, answers: &mut HashMap<usize, Answer>) -> Result<()> {
        let attributes =
            vec![AttributeLayout::new(4, b'i')?, AttributeLayout::new(self.len, self.align)?];
        let layout = TupleLayout::new(attributes);
        let file = data_dir.join(&self.file);
        let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        for block in bytes.as_chunks().0 {
            let block: &BlockBytes = block;
            let page = Page::new(block);
            let pointers = (1..=page.line_pointer_count()).filter_map(|n| page.line_pointer(n));
            for pointer in pointers.filter(|p| p.state() == LinePointerState::Normal) {
                let (id, value) = read_tuple(page.item(pointer)?, &layout, self.len)?;
                let earlier = answers.insert(id, Answer::Stored(value));
                ensure!(earlier.is_none(), "two answers to case {id}: {earlier:?}");
            }
        }
        Ok(())
    }
}

fn read_tuple(item: &[u8], layout: &TupleLayout, len: i16) -> Result<(usize, Vec<u8>)> {
    let tuple = HeapTuple::parse(item)?.data();
    let mut spans = Vec::new();
    layout.spans(&tuple, 2, &mut spans)?;
    let id: [u8; 4] = spans[0].of(tuple.data).context("an id")?.try_into()?;
    let value = spans[1].of(tuple.data).context("a value")?;
    let value = match Varlena::parse(value) {
        Ok(Varlena::Plain(payload)) if len == -1 => payload,
        _ => value,
    };
    Ok((u32::from_le_bytes(id) as usize, value.to_vec()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs.map(|pair| Ok(u8::from_str_radix(pair.context("two digits")?, 16)?)).collect()
}
