//! Texts of every type that is a tree or a document, read here and by a server.
//!
//! Each text goes to the server alone, by a COPY of one row. What the server takes has to be taken
//! here, with the payload that then lies in the table's file; what it refuses has to be refused with
//! the same message. Nothing of this is written down beforehand: the server says what is right.

mod cases;
mod random;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use pagemill_cluster::{Cluster, Database, InputCatalog, OpenOptions};
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{HeapTuple, Span, TupleLayout};
use pagemill_format::varlena::{self, Varlena};
use pagemill_format::{BLOCK_SIZE, PgVersion};
use pagemill_io::Storage;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};
use pagemill_types::input::tree::ValueReader;

use cases::{Case, NULL, SETUP};

/// What became of a text: the payload (`None` for NULL), or the message.
type ReadResult = Result<Option<Vec<u8>>, String>;

#[test]
fn what_a_server_takes_is_stored_the_same_and_what_it_refuses_is_refused_the_same() {
    let mut wrong = Vec::new();
    for install in PgInstall::all() {
        let version = PgVersion::from_major(install.major).unwrap();
        let all = cases::all().into_iter().chain(random::all(version));
        let cases: Vec<Case> = all.filter(|case| version >= case.since).collect();
        let mut cluster = empty_cluster(&install).unwrap();
        cluster.start().unwrap();
        let messages = copied(&cluster, &cases);
        cluster.stop().unwrap();
        let storage = Storage::real();
        let opened = Cluster::open(storage, &cluster.data_dir(), OpenOptions::default()).unwrap();
        let database = opened.database("postgres").unwrap();
        let catalog = InputCatalog::new(&database).unwrap();
        for (number, case) in cases.iter().enumerate() {
            let stored = stored(&database, number);
            let read = read(&database, &catalog, number, case);
            for (i, text) in case.texts.iter().enumerate() {
                let theirs = match messages.get(&(number, i)) {
                    Some(message) => Err(message.clone()),
                    None => Ok(stored.get(&(i as i32)).cloned().flatten()),
                };
                let ours = read.get(i).cloned().unwrap();
                if theirs.as_ref().is_err_and(|message| message == "unsupported XML feature") {
                    continue;
                }
                let refused = ours.is_err() && theirs.as_ref().is_err_and(|m| is_of_grammar(m));
                if ours != theirs && !refused {
                    wrong.push(difference(install.major, case, text, &ours, &theirs));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// True for what the server's grammar says about a type's name that is none, in words that take a
/// grammar to find.
fn is_of_grammar(message: &str) -> bool {
    let kinds = [
        "syntax error at ",
        "unterminated quoted identifier",
        "zero-length delimited identifier",
        "trailing junk after",
        // The grammar's own check, with the same words but for the place.
        "precision for type float",
    ];
    kinds.iter().any(|kind| message.starts_with(kind)) && message.contains(" at character ")
}

fn difference(
    major: u32,
    case: &Case,
    text: &str,
    ours: &ReadResult,
    theirs: &ReadResult,
) -> String {
    let shown = |outcome: &ReadResult| match outcome {
        Ok(Some(payload)) => payload.iter().map(|byte| format!("{byte:02x}")).collect(),
        Ok(None) => "NULL".to_owned(),
        Err(message) => format!("ERROR {message}"),
    };
    let text: String = text.chars().take(200).collect();
    format!(
        "{major} {}: {text:?}\n   here   {:.600}\n   server {:.600}",
        case.type_name,
        shown(ours),
        shown(theirs)
    )
}

/// Has the server read every text; returns its messages by case and text.
fn copied(cluster: &TestCluster, cases: &[Case]) -> HashMap<(usize, usize), String> {
    cluster.psql("postgres", SETUP).unwrap();
    let mut script = String::from("\\set ON_ERROR_STOP off\n\\set VERBOSITY terse\n");
    for (number, case) in cases.iter().enumerate() {
        writeln!(script, "CREATE TABLE v{number} (id int, v {});", case.type_name).unwrap();
        for (i, text) in case.texts.iter().enumerate() {
            let field = if text == NULL { "\\N".to_owned() } else { escaped(text) };
            writeln!(script, "\\warn @@ {number} {i} @@").unwrap();
            writeln!(script, "COPY v{number} FROM STDIN;\n{i}\t{field}\n\\.").unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("script.sql");
    fs::write(&file, script).unwrap();
    let output = cluster.psql_command("postgres").arg("-f").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    messages(&String::from_utf8_lossy(&output.stderr))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
}

fn messages(said: &str) -> HashMap<(usize, usize), String> {
    let mut found = HashMap::new();
    for part in said.split("@@ ").skip(1) {
        let Some((head, rest)) = part.split_once(" @@") else { continue };
        let (number, i) = head.split_once(' ').unwrap();
        if let Some((_, message)) = rest.split_once("ERROR:  ") {
            let message = message.trim_end_matches('\n').to_owned();
            found.insert((number.parse().unwrap(), i.parse().unwrap()), message);
        }
    }
    found
}

/// The payloads that lie in a table's file, by the rows' numbers.
fn stored(database: &Database, number: usize) -> HashMap<i32, Option<Vec<u8>>> {
    let class = class(database, number);
    let relation = database.relation(&class).unwrap();
    let mut found = HashMap::new();
    let bytes = fs::read(&relation.base).unwrap();
    for block in bytes.chunks_exact(BLOCK_SIZE) {
        let page = Page::new(block.try_into().unwrap());
        for pointer in 1..=page.line_pointer_count() {
            let pointer = page.line_pointer(pointer).unwrap();
            assert_eq!(pointer.state(), LinePointerState::Normal);
            let tuple = HeapTuple::parse(page.item(pointer).unwrap()).unwrap();
            // Rows of a transaction that failed were not inserted at all, as they had not been read.
            let (id, value) = row(tuple, &relation.layout);
            found.insert(id, value);
        }
    }
    found
}

fn class(database: &Database, number: usize) -> pagemill_cluster::ClassRow {
    let name = format!("v{number}");
    database.classes().iter().find(|class| *class.name == *name.as_bytes()).unwrap().clone()
}

fn row(tuple: HeapTuple<'_>, layout: &TupleLayout) -> (i32, Option<Vec<u8>>) {
    let data = tuple.data();
    let mut spans = Vec::new();
    layout.spans(&data, 2, &mut spans).unwrap();
    let id = i32::from_le_bytes(spans[0].of(data.data).unwrap().try_into().unwrap());
    let value = if spans[1] == Span::NULL { None } else { spans[1].of(data.data) };
    let payload = |raw: &[u8]| {
        if layout.attributes()[1].len != -1 {
            return raw.to_vec();
        }
        match Varlena::parse(raw).unwrap() {
            Varlena::Plain(bytes) => bytes.to_vec(),
            Varlena::Compressed { raw_bytes, method, data } => {
                let mut out = Vec::new();
                varlena::decompress(method, data, raw_bytes, &mut out).unwrap();
                out
            }
            Varlena::External(_) => panic!("a text too long for this test"),
        }
    };
    (id, value.map(payload))
}

/// Reads every text of a case here.
fn read(
    database: &Database,
    catalog: &InputCatalog,
    number: usize,
    case: &Case,
) -> Vec<ReadResult> {
    let columns = match catalog.columns(class(database, number).oid, |_| true) {
        Ok(columns) => columns,
        Err(error) => return vec![Err(error.to_string()); case.texts.len()],
    };
    let column = &columns[1];
    let value_type = column.value_type.as_ref().unwrap();
    let mut lookups = catalog.lookups();
    let mut reader = ValueReader::new(&mut lookups, catalog.context());
    let mut outcome = |text: &str| {
        if text == NULL {
            let checked = reader.read_null(&value_type.input);
            return checked.map(|()| None).map_err(|error| error.message);
        }
        let mut payload = Vec::new();
        reader
            .read(&value_type.input, column.typmod, text.as_bytes(), &mut payload)
            .map(|()| Some(payload))
            .map_err(|error| error.message)
    };
    case.texts.iter().map(|text| outcome(text)).collect()
}

#[test]
fn types_that_only_a_server_can_read_are_refused_by_column_and_name() {
    let install = PgInstall::all().into_iter().next().unwrap();
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    cluster.psql("postgres", SETUP).unwrap();
    cluster
        .psql(
            "postgres",
            "CREATE DOMAIN odd_number AS int CONSTRAINT is_odd CHECK (abs(VALUE) % 2 = 1);
             CREATE COLLATION blind (provider = icu, locale = 'und', deterministic = false);
             CREATE TYPE blind_words AS RANGE (subtype = text, collation = blind);
             CREATE TABLE odd (a int, \"Checked\" odd_number, w blind_words, t tree)",
        )
        .unwrap();
    cluster.stop().unwrap();
    let refused = |path: &Path, wanted: &[u8]| {
        let opened = Cluster::open(Storage::real(), path, OpenOptions::default()).unwrap();
        let database = opened.database("postgres").unwrap();
        let catalog = InputCatalog::new(&database).unwrap();
        let class = database.classes().iter().find(|class| *class.name == *b"odd").unwrap();
        catalog.columns(class.oid, |name| name == wanted).map(|_| ()).unwrap_err().to_string()
    };
    let path = cluster.data_dir();
    assert_eq!(
        refused(&path, b"Checked"),
        "column \"Checked\": type odd_number is a domain whose CHECK constraint is_odd only a server \
         can check (it calls the function abs)"
    );
    assert_eq!(
        refused(&path, b"w"),
        "column \"w\": type blind_words is a range over a type whose order only a server knows \
         (uses a collation of ICU, whose order is not followed here)"
    );
    assert_eq!(
        refused(&path, b"t"),
        "column \"t\": type pg_node_tree has no values that could be read from a text"
    );
}
