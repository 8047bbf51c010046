//! The rows of an input, and what is wrong with it, held against COPY FROM of real servers.
//!
//! Each case is a file and options. The server copies it into a table and tells the values, or
//! message, hint and place of the error; here it is read by the same options. Some cases are written
//! down because of what they ask; most are put together by chance, from what means something.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_engine::copy::from::{
    CopyFromOptions, CopyRules, CopyTarget, ForcedColumns, Header, Input, InputSource, Rows,
    Workers, run,
};
use pagemill_engine::{Error, Format};
use pagemill_io::Storage;
use pagemill_testkit::{PgInstall, TestCluster, prepared::empty_cluster};

const UTF8: i32 = 6;
/// Cases made by chance, for each version.
const RANDOM_CASES: u64 = 400;

/// Tells what came of a COPY on one line: values in hexadecimal, or an error.
const SERVER_SIDE: &str = r#"
CREATE TABLE texts (a text, "bC" text);
CREATE TABLE numbers (a integer, "bC" text);
CREATE TABLE nothing ();
CREATE FUNCTION hex(t text) RETURNS text LANGUAGE sql AS
    $$ SELECT coalesce(encode(convert_to(t, 'UTF8'), 'hex'), '-') $$;
CREATE FUNCTION try(copy text, name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text; message text; hint text; context text;
BEGIN
    EXECUTE 'DELETE FROM ' || name;
    EXECUTE copy;
    IF name = 'nothing' THEN
        SELECT 'ok ' || repeat(';', count(*)::int) INTO found FROM nothing;
    ELSE
        EXECUTE 'SELECT ''ok '' || coalesce(string_agg(hex(a::text) || '','' || hex("bC") || '';'',
            '''' ORDER BY ctid), '''') FROM ' || name INTO found;
    END IF;
    RETURN found;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT,
        context = PG_EXCEPTION_CONTEXT;
    RETURN 'error ' || hex(message) || ' ' || hex(hint) || ' ' || hex(context);
END $$;
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Texts,
    Numbers,
    Nothing,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Texts => "texts",
            Table::Numbers => "numbers",
            Table::Nothing => "nothing",
        }
    }

    fn columns(self) -> &'static [&'static [u8]] {
        if self == Table::Nothing { &[] } else { &[b"a", b"bC"] }
    }
}

#[derive(Clone, Debug)]
struct Case {
    table: Table,
    options: CopyFromOptions,
    text: Vec<u8>,
}

fn text() -> CopyFromOptions {
    CopyFromOptions { delimiter: Some(b','), ..CopyFromOptions::default() }
}

fn csv() -> CopyFromOptions {
    CopyFromOptions { format: Format::Csv, ..CopyFromOptions::default() }
}

fn case(options: CopyFromOptions, text: impl AsRef<[u8]>) -> Case {
    Case { table: Table::Texts, options, text: text.as_ref().to_vec() }
}

/// Cases that ask for something particular.
fn written_cases() -> Vec<Case> {
    let skip = |options| CopyFromOptions { header: Header::Skip, ..options };
    let matching = |options| CopyFromOptions { header: Header::Match, ..options };
    let latin1 = |options| CopyFromOptions { encoding: Some("LATIN1".into()), ..options };
    let bc = || ForcedColumns::Columns(vec![b"bC".to_vec()]);
    let mut cases = Vec::new();
    for options in [text(), csv()] {
        for text in [
            "",
            "\n",
            "a",
            "a,b",
            "a,b\n",
            "a,b\r\nc,d\r\n",
            "a,b\rc,d\r",
            "a,b\r\nc,d\n",
            "a,b\nc,d\r\n",
            "a,b\nc,d\re,f\n",
            "a,b\rc,d\n",
            "a,b,c\n",
            "a\n",
            "a,b\nc\n",
            "a,b\n\\.\nc,d,e\n",
            "\\.\n",
            "a,b\n\\.",
            "a,b\n\\.\r\n",
            "a,b\r\n\\.\n",
            "a,b\r\n\\.\r\nx",
            "a,b\r\\.\rx",
            "a,b\n\\.x\n",
            "a,b\\.\nc,d\n",
            "a,b\r\n\\.\rx\n",
            "a,b\r\\.\n",
            "a,b\n\\",
            "\\",
            "a,b\\",
            "a,\\\nb\n",
            "\\N,\\N\n",
            "\\.\r\n",
            "\\.\r",
            "a,b\n\\..\n",
            "a,b\n.\\.\n",
            "a,b\\.",
            "a,b\\.c\nd,e\n",
            "a,b\n\n",
        ] {
            cases.push(case(options.clone(), text));
            cases.push(case(skip(options.clone()), text));
            cases.push(case(matching(options.clone()), text));
        }
        for header in [
            "a,bC\n1,2\n",
            "a\n1,2\n",
            "a,b\n",
            "bC,a\n",
            "a,bC,c\n",
            "NULL,bC\n",
            "a,\n",
            "\\N,bC\n",
            "a,bC",
            "a,bC\r\n1,2\r\n3,4\n",
        ] {
            cases.push(case(matching(options.clone()), header));
            cases.push(case(skip(options.clone()), header));
        }
        for bytes in [
            b"a,b\nc,\xff\n".as_slice(),
            b"a,b\nc\nd,\xff\n",
            b"a,b\n\\.\n\xff",
            b"a,\0\n",
            b"a,\xe2\x82\n",
            b"a,\xed\xa0\x80\n",
            b"a,\xc0\x80\n",
            b"a,b\xf4\x90\x80\x80\n",
            b"\xff",
            b"a,b\n\xc3",
            b"a,b\r\xff",
            b"\"x\ny\n\xff\",b\n",
            b"a,b,\xff\n",
            b"a,\xe2",
            b"a,\xe2\x82",
        ] {
            cases.push(case(options.clone(), bytes));
            cases.push(case(latin1(options.clone()), bytes));
        }
        for text in
            ["1,x\n2,y\n", "1,x\nx,y\n", ",x\n", "x\n", "1,2,3\nx,y\n", "1,2\nx\n", "1,a\n1\n"]
        {
            cases.push(Case { table: Table::Numbers, ..case(options.clone(), text) });
        }
        for text in ["\n\n", "", "x\n", "\n\\.\nx", "\n\"", ",\n"] {
            cases.push(Case { table: Table::Nothing, ..case(options.clone(), text) });
        }
        let long = format!("1,2\n{}", "é".repeat(200));
        cases.push(case(options.clone(), &long));
        cases.push(Case { table: Table::Numbers, ..case(options.clone(), format!("{long},x\n")) });
    }
    for escaped in [
        "\\b\\f\\n\\r\\t\\v,\\a\\z\n",
        "\\101\\x41\\x4,\\7\\77\\777\n",
        "\\xzz\\x,\\8\\9\n",
        "\\,\\,,\\\\\n",
        "\\0,a\n",
        "a\\x00b,c,d\n",
        "\\xc3\\xa9,\\303\\251\n",
        "\\xff,b\n",
        "a,b\n\\377,\\N\n",
        "\\xe2\\x82,x\n",
        "\\N ,\\Nx\n",
        "\\N,\\\\N\n",
        "a\\\r\nb,c\n",
        "a,b\\\n\\\n",
        "\\\\.\n",
        "a\\\\\\.\nb,c\n",
        "\\xff,b,c\n",
    ] {
        cases.push(case(text(), escaped));
        cases.push(case(skip(text()), escaped));
        cases.push(case(CopyFromOptions { null: Some(b"".into()), ..text() }, escaped));
    }
    for quoted in [
        "\"a\",\"b\"\n",
        "\"a\"\"b\",\"\"\n",
        "a\"b,c\"d,e\n",
        "\"a\nb\",\"c\r\nd\"\nx\n",
        "\"a\n\n\nb,c\n",
        "\"\",\n",
        "\"a\nb\",\"c\nd\"\n\"e\nf\",g\nh\n",
        "\"a\rb\",c\r\nd\r\n",
        "a,b\n\"c\nd\",\"e\nf\"\nx\n",
        "\"\"\"\",\"\"\n",
        "a,b\n\"\\.\n\",c\n",
        "\"a\\\"b\",c\n",
        "\"a\\\\\",c\n",
        "'a,''',b\n",
        "\"a\\",
        "\"a\\\"",
        "\"NULL\",NULL\n",
        "\"a\nb\r\nc\",d\r\n\"e\r\nf\rg\",h\r\nx\r\n",
        "a,\"b\r\nc\"\rd,\"e\rf\"\rg\r",
    ] {
        for (quote, escape) in
            [(None, None), (None, Some(b'\\')), (Some(b'\''), None), (None, Some(b','))]
        {
            let options = CopyFromOptions { quote, escape, ..csv() };
            cases.push(case(options.clone(), quoted));
            cases.push(case(
                CopyFromOptions { null: Some(b"NULL".into()), ..options.clone() },
                quoted,
            ));
            cases.push(case(CopyFromOptions { force_null: bc(), ..options.clone() }, quoted));
            cases.push(case(CopyFromOptions { force_not_null: bc(), ..options }, quoted));
        }
    }
    cases
}

/// A sequence of numbers that looks like chance and is the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % limit
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

fn random_case(seed: u64) -> Case {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        chance.below(2);
    }
    let is_csv = chance.below(2) == 0;
    let newline: &[u8] = chance.one(&[b"\n".as_slice(), b"\n", b"\r\n", b"\r"]);
    let common: [&[u8]; 12] = [
        b",",
        b",",
        b",",
        b"1",
        b"bc",
        newline,
        newline,
        newline,
        b"\\",
        b"NULL",
        b"\xc3\xa9",
        b"23",
    ];
    let own: &[&[u8]] = if is_csv {
        &[b"\"", b"\"", b"\"\"", b"\"x\"", b"\"a\nb\"", b"'", b"\r", b"\n", b"\\.", b"\xff"]
    } else {
        &[b"\\N", b"\\n", b"\\101", b"\\x4", b"\\\\", b"\\.", b"\\xff", b"\\,", b"\r", b"\n", b"\0"]
    };
    let mut text = Vec::new();
    for _ in 0..chance.below(40) {
        // What is rarely right comes rarely, so that some cases get far.
        let is_own = chance.below(3) == 0;
        text.extend(if is_own { chance.one(own) } else { chance.one(&common) });
        if chance.below(12) == 0 {
            text.extend([newline, b"\\.", newline].concat());
        }
    }
    let mut options = if is_csv { csv() } else { self::text() };
    options.header = chance.one(&[Header::None, Header::None, Header::Skip, Header::Match]);
    options.null = chance.one(&[None, None, Some(b"NULL".to_vec()), Some(Vec::new())]);
    options.encoding = chance.one(&[None, None, Some("LATIN1".to_owned())]);
    if is_csv {
        let columns = [ForcedColumns::None, ForcedColumns::Columns(vec![b"bC".to_vec()])];
        options.quote = chance.one(&[None, None, None, Some(b'\''), Some(b'\\')]);
        options.escape = chance.one(&[None, None, Some(b'\\'), Some(b'\'')]);
        options.force_null = chance.one(&columns);
        options.force_not_null = chance.one(&columns);
    }
    let table = chance.one(&[Table::Texts, Table::Texts, Table::Numbers]);
    Case { table, options, text }
}

/// The options as SQL writes them.
fn sql_options(options: &CopyFromOptions) -> String {
    let literal =
        |bytes: &[u8]| format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "''"));
    let mut sql = format!("FORMAT {}", if options.format == Format::Csv { "csv" } else { "text" });
    let bytes =
        [("DELIMITER", options.delimiter), ("QUOTE", options.quote), ("ESCAPE", options.escape)];
    for (name, byte) in bytes {
        if let Some(byte) = byte {
            let _ = write!(sql, ", {name} {}", literal(&[byte]));
        }
    }
    if let Some(null) = &options.null {
        let _ = write!(sql, ", NULL {}", literal(null));
    }
    sql.push_str(match options.header {
        Header::None => "",
        Header::Skip => ", HEADER",
        Header::Match => ", HEADER match",
    });
    if let Some(encoding) = &options.encoding {
        let _ = write!(sql, ", ENCODING '{encoding}'");
    }
    for (name, columns) in
        [("FORCE_NULL", &options.force_null), ("FORCE_NOT_NULL", &options.force_not_null)]
    {
        if *columns != ForcedColumns::None {
            let _ = write!(sql, ", {name} (\"bC\")");
        }
    }
    sql
}

/// Whether this version has the options.
fn has_options(options: &CopyFromOptions, major: u32) -> bool {
    let header = match options.header {
        Header::None => true,
        Header::Skip => options.format == Format::Csv,
        Header::Match => false,
    };
    header || major >= 15
}

/// What the server makes of all cases, a line for each.
fn server_answers(cluster: &TestCluster, dir: &Path, cases: &[Case]) -> Result<Vec<String>> {
    let mut script = String::from("SET client_encoding TO 'UTF8';\n");
    for (number, case) in cases.iter().enumerate() {
        let (file, table) = (dir.join(number.to_string()), case.table.name());
        fs::write(&file, &case.text)?;
        let copy =
            format!("COPY {table} FROM '{}' ({})", file.display(), sql_options(&case.options));
        let _ = writeln!(script, "SELECT try($copy${copy}$copy$, '{table}');");
    }
    let file = dir.join("cases.sql");
    fs::write(&file, script)?;
    let file = file.to_str().context("a path in UTF-8")?;
    let told = cluster.psql_bytes("postgres", &["-A", "-t", "-f", file])?;
    Ok(String::from_utf8(told)?.lines().map(str::to_owned).collect())
}

fn hex(bytes: Option<&[u8]>) -> String {
    match bytes {
        Some(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => "-".to_owned(),
    }
}

/// Reads the rows of a batch as the server tells them.
fn told_rows(rows: &mut Rows<'_>, table: Table) -> pagemill_engine::Result<String> {
    let mut told = String::new();
    while let Some(row) = rows.next_row()? {
        for column in 0..table.columns().len() {
            let value = row.value(column)?;
            if table == Table::Numbers && column == 0 {
                let text = value.map(String::from_utf8_lossy);
                if let Some(text) = text.filter(|text| text.trim().parse::<i32>().is_err()) {
                    let message = format!("invalid input syntax for type integer: \"{text}\"");
                    return Err(Error::Copy(Box::new(row.value_error(0, message))));
                }
            }
            told.push_str(if column > 0 { "," } else { "" });
            told.push_str(&hex(value));
        }
        told.push(';');
    }
    Ok(told)
}

/// What is read here, told as the server tells it.
fn own_answer(case: &Case, file: &Path, server_major: u32) -> String {
    let (table, columns) = (case.table, case.table.columns());
    let target = CopyTarget { relation: table.name(), columns, encoding: UTF8, server_major };
    let rules = match CopyRules::new(&case.options, target) {
        Ok(rules) => rules,
        Err(refused) => return format!("refused {refused}"),
    };
    let storage = Storage::real();
    let sources = vec![InputSource::File(file.to_owned())];
    let input = Input { storage: &storage, rules: &rules, sources };
    let mut told = String::from("ok ");
    let work = |_: &mut (), rows: &mut Rows<'_>| told_rows(rows, table);
    let result = run(input, Workers::new(1, || (), work), |rows| {
        told.push_str(&rows);
        Ok(())
    });
    match result {
        Ok(()) => told,
        Err(Error::Copy(error)) => {
            let context = error.context();
            let hint = error.hint.unwrap_or_default();
            let told = [&error.message, hint, &context].map(|part| hex(Some(part.as_bytes())));
            format!("error {}", told.join(" "))
        }
        Err(other) => format!("failed {other}"),
    }
}

/// What a line says, for people.
fn readable(answer: &str) -> String {
    let text = |hex: &str| {
        let bytes: Option<Vec<u8>> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(hex.get(2 * i..2 * i + 2)?, 16).ok())
            .collect();
        bytes.map_or_else(|| hex.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    answer.split(' ').map(text).collect::<Vec<_>>().join(" | ")
}

/// The server's answer without the context of the function that asked.
fn first_context(answer: &str) -> String {
    let Some((rest, context)) = answer.rsplit_once(' ').filter(|_| answer.starts_with("error"))
    else {
        return answer.to_owned();
    };
    let end = context.find(&hex(Some(b"\nSQL statement"))).unwrap_or(context.len());
    format!("{rest} {}", &context[..end])
}

fn check_version(install: &PgInstall, cases: &[Case]) -> Result<()> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    cluster.psql("postgres", SERVER_SIDE)?;
    let dir = cluster.root().join("inputs");
    cluster.account().create_dir(&dir)?;
    let cases: Vec<_> =
        cases.iter().filter(|case| has_options(&case.options, install.major)).cloned().collect();
    let answers = server_answers(&cluster, &dir, &cases)?;
    ensure!(answers.len() == cases.len(), "{} answers to {}", answers.len(), cases.len());
    let mut differences = String::new();
    let mut count = 0;
    for (number, (case, answer)) in cases.iter().zip(&answers).enumerate() {
        let own = own_answer(case, &dir.join(number.to_string()), install.major);
        let server = first_context(answer);
        if own != server {
            count += 1;
            let (text, options) = (String::from_utf8_lossy(&case.text), sql_options(&case.options));
            if count <= 20 {
                let (own, server) = (readable(&own), readable(&server));
                let table = case.table;
                let _ = writeln!(
                    differences,
                    "{table:?} {text:?} ({options})\n  here: {own:?}\n  there: {server:?}"
                );
            }
        }
    }
    ensure!(count == 0, "{count} of {} differ:\n{differences}", cases.len());
    Ok(())
}

#[test]
fn inputs_are_read_as_copy_from_reads_them() {
    let mut cases = written_cases();
    cases.extend((1..=RANDOM_CASES).map(random_case));
    pagemill_testkit::each_of(&PgInstall::all(), |install| check_version(install, &cases));
}
