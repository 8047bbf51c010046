//! The shell: lines through a pipe, and keys at a pseudo-terminal that Python's `pty` makes.
//!
//! What psql prints of the same lines is the judge wherever both can do the same.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pagemill-sql");
const TABLES: &str = include_str!("shell/tables.sql");

/// A running server, and a stopped one with the same files.
struct Both {
    server: TestCluster,
    stopped: TestCluster,
    scratch: tempfile::TempDir,
}

impl Both {
    fn new() -> Result<Self> {
        let install = PgInstall::find(15).context("no PostgreSQL 15")?;
        let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
        let mut server = TestCluster::create(&install, &options)?;
        server.psql("postgres", "create database other")?;
        server.psql(
            "postgres",
            "create database icu template template0 locale_provider icu icu_locale 'en'",
        )?;
        server.psql("icu", "create table documented (a int); create function f(text) returns text language sql as 'select $1'")?;
        server.psql("postgres", TABLES)?;
        server.stop()?;
        let scratch = tempfile::tempdir()?;
        let stopped = server.copy_to(&scratch.path().join("copy"))?;
        server.start()?;
        Ok(Self { server, stopped, scratch })
    }

    fn program(&self) -> Command {
        let mut program = Command::new(PROGRAM);
        program.args(["sql", "-d", "postgres", "-D"]).arg(self.stopped.data_dir());
        program.env("XDG_STATE_HOME", self.state());
        program
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    fn piped(&self, lines: &str) -> Result<Output> {
        fed(&mut self.program(), lines)
    }

    fn of_psql(&self, lines: &str) -> Result<Output> {
        let mut psql = self.server.psql_command("postgres");
        psql.args(["-X", "-P", "format=aligned", "-P", "tuples_only=off"]);
        psql.env("PGTZ", "UTC").env("PGDATESTYLE", "ISO, MDY");
        // The kit's psql is quiet and stops at errors.
        fed(&mut psql, &format!("\\set QUIET off\n\\set ON_ERROR_STOP off\n{lines}"))
    }

    /// Keys at a terminal; see `drive.py`.
    fn typed(&self, steps: &str) -> Result<String> {
        let file = tempfile::NamedTempFile::new_in(self.scratch.path())?;
        std::fs::write(file.path(), steps)?;
        let driver = in_checkout("crates/pagemill-sql/tests/shell/drive.py");
        let mut python = Command::new("python3");
        python.arg(driver).arg(file.path()).arg(PROGRAM);
        python.args(["sql", "-d", "postgres", "-D"]).arg(self.stopped.data_dir());
        let output = python.env("XDG_STATE_HOME", self.state()).output().context("python3")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn fed(command: &mut Command, lines: &str) -> Result<Output> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("no standard input")?.write_all(lines.as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// One server for all of it: each is given the same, and told by its name should it fail.
#[test]
fn the_shell_does_as_psql_does() -> Result<()> {
    let both = Both::new()?;
    piped_statements_are_cut_and_printed_as_psql_does(&both).context("piped statements")?;
    narrow_rows_are_as_wide_as_their_heading(&both).context("narrow rows")?;
    a_failed_statement_is_told_in_the_status_and_others_go_on(&both).context("failures")?;
    files_are_read_and_written(&both).context("files")?;
    scripts_have_variables_and_parts(&both).context("scripts")?;
    large_objects_become_files(&both).context("large objects")?;
    lists_are_those_of_psql(&both).context("lists")?;
    rows_are_copied_as_psql_copies_them(&both).context("\\copy")?;
    an_output_file_appears_whole_or_not_at_all(&both).context("--output")?;
    one_answer_becomes_a_file(&both).context("--format parquet")?;
    a_terminal_has_prompts_history_and_completion(&both).context("a terminal")?;
    ctrl_c_ends_the_statement_and_not_the_shell(&both).context("Ctrl-C")?;
    a_single_statement_ends_by_the_signal(&both).context("a signal")
}

/// What is printed of these lines is what psql prints.
fn same_as_psql(both: &Both, scripts: &[&str]) -> Result<()> {
    let mut wrong = Vec::new();
    for script in scripts {
        let (ours, theirs) = (both.piped(script)?, both.of_psql(script)?);
        if ours.stdout != theirs.stdout {
            wrong.push(format!(
                "{script}\n--- psql\n{}--- here\n{}{}",
                String::from_utf8_lossy(&theirs.stdout),
                String::from_utf8_lossy(&ours.stdout),
                String::from_utf8_lossy(&ours.stderr)
            ));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Expanded rows with values narrower than the line above them. psql 15.20 fills them up, 15.18 does not yet.
fn narrow_rows_are_as_wide_as_their_heading(both: &Both) -> Result<()> {
    let probe = both.of_psql("\\x\n\\pset border 2\nselect 1 as a;")?;
    if String::from_utf8(probe.stdout)?.contains("| a | 1 |") {
        eprintln!("skipped: this psql does not fill narrow expanded rows up");
        return Ok(());
    }
    same_as_psql(
        both,
        &[
            "\\x\n\\pset border 2\nselect 1 as a, E'x\\ny' as longer;\n\\pset border 0\nselect 1 as a, E'x\\ny' as longer;",
            "\\x\nselect E'x\\ny' as a;\n\\pset border 2\nselect n, E'x\\ny' as bc from many where n < 12 order by n;\n\\pset border 0\nselect 1 as a;\n\\t\nselect 1 as a union all select 2 order by 1;",
        ],
    )
}

fn piped_statements_are_cut_and_printed_as_psql_does(both: &Both) -> Result<()> {
    same_as_psql(
        both,
        &[
            "select 1; select 2 as \"a;b\";\nselect ';' -- ; no\n, $$;\n$$ as d;",
            "select 1 \\g\n\\g\nselect 2 as two, null as n \\gx\nselect 3",
            "\\x\nselect 1 as a, E'x\\ny' as long_name, 'w' as w;\nselect 1 where false;\n\\x off\nselect 1 where false;",
            "\\pset border 2\nselect 1 as a, E'x\\ny' as longer, 'z' z;\n\\pset border 0\nselect 1 as a, E'x\\ny' as longer, 2 b;",
            "\\pset null '(null)'\nselect null as n, '' as e;\n\\pset format unaligned\nselect 1 as a, null as b;\n\\t\nselect 1 as a, 2 as b;",
            "\\a\nselect 1 as a, 'x' as b;\n\\x\nselect 1 as a, 'x' as b;\n\\a\n\\t\nselect 1 as a, 'x' as b union all select 2, 'y' order by 1;",
            "\\echo one 'two  three' \"four\"\n\\qecho x\n\\pset fieldsep ,\n\\pset format unaligned\nselect 1, 2;\n\\p\nselect 1\n\\p\n\\r\n\\p",
            "select name, n from animals order by n;\n\\x \\\\ select * from animals where n = 1;",
            "select 1/0;\nselect 2;\n\\timing off\n",
            "select g * 2 as a from generate_series(1, 100000) g;",
            "\\i /nonexistent\nselect 'after';",
            "\\pset format csv\nselect 1 as a, 'x,y' as b, null as c;\n\\t on\nselect 2, 'z';",
        ],
    )
}

fn a_failed_statement_is_told_in_the_status_and_others_go_on(both: &Both) -> Result<()> {
    let output = both.piped("select 1/0; select 7;")?;
    ensure!(output.status.code() == Some(1));
    ensure!(String::from_utf8_lossy(&output.stdout).contains("7"));
    ensure!(String::from_utf8_lossy(&output.stderr).contains("division by zero"));
    let output = both.piped("\\set ON_ERROR_STOP on\nselect 1/0; select 7;")?;
    ensure!(output.status.code() == Some(1) && output.stdout.is_empty());
    for refused in
        ["\\e", "\\dx+", "\\nothing", "\\set ECHO all", "\\pset pager on", "\\o |cat", "\\g |cat"]
    {
        let output = both.piped(&format!("select 1 as before;\n{refused}\nselect 5 as after;"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains("supported here"), "{refused}: {said}");
        ensure!(String::from_utf8_lossy(&output.stdout).contains("after"), "{refused}");
    }
    Ok(())
}

fn lists_are_those_of_psql(both: &Both) -> Result<()> {
    let lists = "\\l \\dn \\dt \\di \\ds \\dv \\dm \\d \\du \\dT \\dtv \\l·oth* \\dn·pg* \\du·a* \\dt·other.* \\dt·*.th* \\dtS·pg_cl* \
         \\dt·pg_catalog.pg_t* \\dT·pg_catalog.int* \\d·pg_class \\d·pg_catalog.pg_attribute \\d·pg_class_oid_index \
         \\d+ \\dt+ \\di+ \\dv+ \\dm+ \\ds+ \\dE+ \\dtS·pg_am* \\dt·(parts|lists)_[ad] \\dt·documented|o[rd]+s \\l+·template? \\db \\db+·pg_default \\dn+ \\dnS+ \
         \\dp \\z·other.* \\dp·documented \\ddp \\ddp·other \\du+ \\duS·pg_read* \\dg·bob \\drds \\drds·alice \\drds·none* \\dl \\dl+ \\lo_list \\dT+ \\dT+·*.posint \\dT·int4[] \
         \\dT·integer \\dD \\dD+ \\dD·la* \\dC·pair \\dC+·pair \\dC·jsonb \\dO \\dO+·plain \\dOS·*.C \\da \\da·sum \\df \\df+ \\dfn \\dfa \\dft \\dfpw \\df·*.hidden \\df·abs \\df·*·mood \\df·abs·float8 \\df·substr·text·int·- \\df·pi·- \\df·added·int·pg_catalog.int* \\do·-·-·numeric \\do·!!!·text \\do·-·date·int4 \\drds·bob·other \\drds·*·other \\df+·added \\do \\do+·*.### \
         \\do·!!! \\dL \\dLS+ \\dL·sql \\dy \\dy+ \\dA \\dA+·h* \\dx \\dx·pl* \\dew \\dew+ \\des \\des+ \\deu \\deu+ \\det \\det+ \\dRp \\dRs \\dRs+ \\dF \\dF·own \\dFd·s* \\dFd+·stems \\dFp \
         \\dFt \\dFt+·sn* \\sf·added \\sf·listed(numeric[]) \\sf+·other.hidden \\sf·done \\sv·v \\sv·checked \\sv+·checked \\dx·a.b \\dn·a.b.c";
    let relations = "customers orders parts parts_2024 parts_d lists lists_a hashes hashes_0 parent child v mv loose owned \
         orders_id_seq parent2 moods pair unl tt orders_state orders_lower customers_pkey parts_k_idx select other.thing noted \"select\" \
         ord*s";
    let plain = relations.split_whitespace().map(|name| format!("\\d {name}"));
    let full = [
        "customers",
        "orders",
        "parts",
        "parent",
        "orders_state",
        "parts_k_idx",
        "moods",
        "v",
        "mv",
        "audited",
        "lists_a",
        "parts_2024",
        "parts_d",
        "hashes_0",
    ];
    let full = full.map(|name| format!("\\d+ {name}"));
    let scripts: Vec<String> =
        lists.split_whitespace().map(|l| l.replace('·', " ")).chain(plain).chain(full).collect();
    same_as_psql(both, &scripts.iter().map(String::as_str).collect::<Vec<_>>())?;
    same_as_psql(
        both,
        &[
            "\\pset format csv\n\\dt o*",
            "\\x\n\\d parent2",
            "\\t\n\\a\n\\d orders",
            "\\d ruled\n\\d+ ruled",
        ],
    )?;
    // Under a collation that is not followed here, too.
    let lists = "\\d doc*\n\\dt [[:alpha:]]*\n\\df\n\\da sum\n\\do ||\n\\dT int4\n\\dC jsonb\n\\dn\n\\dp\n\\ddp\n\\sf f";
    let output = fed(&mut both.program(), &format!("\\c icu\n{lists}"))?;
    let shown = String::from_utf8(output.stdout)?;
    ensure!(output.status.success() && output.stderr.is_empty(), "{shown}{:?}", output.stderr);
    ensure!(shown.contains("List of functions") && shown.contains("AS $function$select $1"));
    let output = both.piped("\\dt nothing*\n\\dn a.b\n\\d nowhere\n\\sf nowhere\n\\sv odd")?;
    let said = String::from_utf8(output.stderr)?;
    for message in [
        "Did not find any relation named \"nothing*\".",
        "improper qualified name (too many dotted names): a.b",
        "function \"nowhere\" does not exist",
        "\"odd\" is not a view",
        "Did not find any relation named \"nowhere\".",
    ] {
        ensure!(said.contains(message), "{said}");
    }
    Ok(())
}

fn rows_are_copied_as_psql_copies_them(both: &Both) -> Result<()> {
    let options = [
        "",
        "(format csv)",
        "with (format csv, header true, delimiter ';', null 'nil')",
        "csv header quote as ''''",
        "(format csv, escape '\\')",
        "(null '', delimiter '|')",
    ];
    let copy = |what: &str, options: &str| format!("\\copy {what} to stdout {options}");
    let mut scripts: Vec<String> =
        options.iter().map(|options| copy("(select * from odd order by n)", options)).collect();
    scripts.extend([
        copy("odd", ""),
        copy("odd (t, n)", "csv"),
        copy("public.animals", "csv"),
        copy("gen", ""),
    ]);
    let statements = scripts.iter().map(|script| script.trim_start_matches('\\').to_owned() + ";");
    let statements: Vec<String> = statements.collect();
    scripts.extend(statements);
    scripts.push(
        "/* a */ -- b\nselect 1;\n--c\nCOPY(select n from odd order by n) TO STDOUT;".to_owned(),
    );
    same_as_psql(both, &scripts.iter().map(String::as_str).collect::<Vec<_>>())?;
    let once = ["-c", "copy animals (n) to stdout csv header"];
    let output = both.program().args(once).output()?;
    ensure!(output.stdout == b"n\n1\n2\n3\n", "{}", String::from_utf8_lossy(&output.stderr));
    for (text, expected) in [
        ("select n from animals where n < 2; copy animals (n) to stdout;", "n\n1\n1\n2\n3\n"),
        ("copy (select ';') to stdout; copy (select 1/0) to stdout; select 3 as c", ";\n"),
    ] {
        let output = both.program().args(["--format", "csv", "-c", text]).output()?;
        let (found, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(found == expected && output.status.success() == error.is_empty(), "{found}{error}");
    }
    let parquet = ["--format", "parquet", "-c", "copy animals to stdout"];
    let output = both.program().args(parquet).output()?;
    ensure!(!output.status.success() && output.stdout.is_empty());
    let file = both.scratch.path().join("answers");
    let script =
        "copy (select 3) to stdout;\n\\copy (select 4) to stdout\ncopy (select 5) to stdout;\n";
    let output = both.piped(&format!("\\o '{}'\n{script}", file.display()))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(std::fs::read_to_string(&file)? == "3\n4\n5\n");
    let file = both.scratch.path().join("copied");
    let output = both.piped(&format!("\\copy animals to '{}' csv header", file.display()))?;
    ensure!(output.stdout == b"COPY 3\n", "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(std::fs::read_to_string(&file)? == "n,name\n1,ant\n2,bee\n3,\"cat\nof two lines\"\n");
    std::fs::write(&file, "before")?;
    let failed =
        both.piped(&format!("\\copy (select 1/(n-2) from animals) to '{}'", file.display()))?;
    ensure!(failed.status.code() == Some(1) && std::fs::read_to_string(&file)? == "before");
    for refused in
        ["animals from 'x'", "parts to stdout", "nothing to stdout", "animals to program 'cat'"]
    {
        let output = both.piped(&format!("\\copy {refused}"))?;
        ensure!(output.status.code() == Some(1) && output.stdout.is_empty(), "{refused}");
    }
    Ok(())
}

fn an_output_file_appears_whole_or_not_at_all(both: &Both) -> Result<()> {
    let file = both.scratch.path().join("answers.csv");
    let ask = |statement: &str| {
        let mut program = both.program();
        program.args(["--format", "csv", "-c", statement, "-o"]).arg(&file).status()
    };
    ensure!(!ask("select 1 as a; select 1/0")?.success() && !file.exists());
    ensure!(ask("select n from animals order by n")?.success());
    ensure!(std::fs::read_to_string(&file)? == "n\n1\n2\n3\n");
    Ok(())
}

fn one_answer_becomes_a_file(both: &Both) -> Result<()> {
    let file = both.scratch.path().join("answer");
    let ask = |format: &str, statement: &str| {
        let mut program = both.program();
        program.args(["--format", format, "-c", statement, "-o"]).arg(&file).output()
    };
    for (refused, why) in [
        ("select 1 as a; select 2 as a", "several answers"),
        ("select 1 as a, 2 as a", "two columns of the answer are named \"a\""),
        ("select 'infinity'::date as d", "row 1 of the answer, column \"d\": an infinite date"),
        ("select n, '24:00'::time as t from many where n = 3", "24:00:00"),
        ("", "no statement"),
    ] {
        let output = ask("parquet", refused)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && !file.exists() && said.contains(why), "{said}");
    }
    for (format, begin) in [("parquet", "PAR1"), ("arrow", "ARROW1"), ("arrow-stream", "\u{0}")] {
        let output = ask(format, "select n, n / 3.0 as third, 'x' as x from many order by n")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(&file)?;
        let is_stream = begin == "\u{0}" && bytes.ends_with(&[255, 255, 255, 255, 0, 0, 0, 0]);
        ensure!(is_stream || bytes.starts_with(begin.as_bytes()), "{format}");
        ensure!(is_stream || bytes.ends_with(begin.as_bytes()), "{format}");
        std::fs::remove_file(&file)?;
    }
    let copied = both.piped(&format!("\\copy many to '{}' (format parquet)", file.display()))?;
    ensure!(copied.stdout.starts_with(b"COPY "), "{copied:?}");
    ensure!(std::fs::read(&file)?.starts_with(b"PAR1"));
    Ok(())
}

fn files_are_read_and_written(both: &Both) -> Result<()> {
    let at = |name: &str| both.scratch.path().join(name).display().to_string();
    std::fs::write(at("inner.sql"), "select 'inner';\n\\echo done")?;
    let script = format!(
        "\\i {0}\n\\o {1}\nselect 'first' as a;\nselect 'second' as a;\n\\o\nselect 'third' as a \\g {2}\nselect 'fourth' as a;",
        at("inner.sql"),
        at("out"),
        at("single")
    );
    let output = both.piped(&script)?;
    let shown = String::from_utf8(output.stdout)?;
    ensure!(shown.contains("inner") && shown.contains("done") && shown.contains("fourth"));
    ensure!(!shown.contains("first") && !shown.contains("third"));
    ensure!(
        std::fs::read_to_string(at("out"))?
            == "   a   \n-------\n first\n(1 row)\n\n   a    \n--------\n second\n(1 row)\n\n"
    );
    ensure!(std::fs::read_to_string(at("single"))?.contains("third"));
    Ok(())
}

fn scripts_have_variables_and_parts(both: &Both) -> Result<()> {
    same_as_psql(
        both,
        &[
            "\\set n 2\n\\set who 'it''s' ' bee'\nselect :n + 1 as a, :'who' as b, ':n' as c, '1'::text as d, :none as \":n\";\nselect :n as :\"who\";",
            "\\set q 'select 1; select'\n:q 2;\n\\set a :n :'q'\n\\echo :a :{?a} :{?b} :q\n\\unset a\n\\echo :a\n\\set t animals\nselect name from :t where n = 1;",
            "select n, name as \"Name\", null as nothing from animals where n = 2 \\gset\n\\echo :n :Name :nothing\nselect 7 as x \\gset p_\nselect :p_x, :'Name';\n\\echo :ROW_COUNT :ERROR :SQLSTATE :DBNAME",
            "select 1/0;\n\\echo :ERROR :SQLSTATE :LAST_ERROR_MESSAGE :LAST_ERROR_SQLSTATE :ROW_COUNT\nselect 1 as fine;\n\\echo :ERROR :SQLSTATE",
            "\\set yes on\n\\if :yes\n\\echo one\nselect 1 as one;\n\\elif true\n\\echo two\n\\else\nselect :nothing;\n\\endif\n\\if false\n\\if true\n\\echo no\n\\else\n\\echo no\n\\endif\n\\elif yes\n\\echo three\n\\endif\n\\echo end",
            "select 1 as a\n\\if false\n, 2 as b; select 3;\n\\else\n, 4 as c\n\\endif\n;\n\\if :{?nothing}\nselect 'set';\n\\else\nselect 'not set' as b;\n\\endif",
            "\\echo -n a\n\\echo b",
            "select lo_get(70001), lo_get(70001, 1, 3), lo_get(70004), lo_get(70004, 4990, 20), lo_get(70003);\nselect md5(lo_get(70002)), length(lo_get(70002));",
            "select lo_get(70002, 4090, 20), lo_get(70002, 1599990, 100), lo_get(70002, 2000000, 5), lo_get(70004, 100, 10), lo_get(null), lo_get(70001, null, 3);\nselect oid, octet_length(lo_get(oid)) from pg_largeobject_metadata order by 1;",
        ],
    )?;
    let output = both.piped(
        "\\if maybe\n\\echo no\n\\else\n\\echo else\n\\endif\n\\endif\n\\elif x\nselect n from animals \\gset\n\\if true\n\\echo last",
    )?;
    let said = String::from_utf8(output.stderr)?;
    for message in [
        "\"maybe\" is neither true nor false",
        "\\endif: no matching \\if",
        "\\elif: no matching \\if",
        "\\gset: more than one row",
        "the input ends without \\endif",
    ] {
        ensure!(said.contains(message), "{message}: {said}");
    }
    ensure!(output.stdout == b"else\nlast\n", "{}", String::from_utf8_lossy(&output.stdout));
    for (statement, message) in [
        ("select lo_get(70009)", "large object 70009 does not exist"),
        ("select lo_get(70001, 1, -1)", "requested length cannot be negative"),
        ("select lo_get(70001, -1, 1)", "invalid large object seek target: -1"),
    ] {
        let theirs = String::from_utf8(both.of_psql(&format!("{statement};"))?.stderr)?;
        let ours = String::from_utf8(both.piped(statement)?.stderr)?;
        ensure!(ours.contains(message) && theirs.contains(message), "{ours}{theirs}");
    }
    let mut program = both.program();
    let output = fed(program.args(["--set", "n=3", "--variable", "w=x"]), "select :n, :'w';")?;
    ensure!(String::from_utf8(output.stdout)?.contains("3 | x"));
    Ok(())
}

fn large_objects_become_files(both: &Both) -> Result<()> {
    let at = |name: &str| both.scratch.path().join(name);
    let (large, holed) = (at("large"), at("holed"));
    let script =
        format!("\\lo_export 70002 {}\n\\lo_export 70004 {}", large.display(), holed.display());
    let output = both.piped(&script)?;
    ensure!(output.status.success() && output.stdout == b"lo_export\nlo_export\n", "{output:?}");
    let bytes = [0x01_u8, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].repeat(200_000);
    ensure!(std::fs::read(large)? == bytes);
    ensure!(std::fs::read(holed)? == [vec![0; 5000], b"behind a hole".to_vec()].concat());
    let none = at("none");
    let output = both.piped(&format!("\\lo_export 5 {}", none.display()))?;
    ensure!(String::from_utf8(output.stderr)?.contains("large object 5 does not exist"));
    ensure!(!none.exists());
    Ok(())
}

fn a_terminal_has_prompts_history_and_completion(both: &Both) -> Result<()> {
    both.typed(
        "expect postgres=> \nsend select 1 as one,\\r\nexpect postgres-> \nsend 'a\\r\nexpect postgres'> \n\
         send b' as two;\\r\nexpect \\(1 row\\)\nexpect postgres=> \nsend select * from anim\\t\nexpect animals\n\
         send  order by n limit 1;\\r\nexpect ant.*\\(1 row\\)\nexpect postgres=> \nsend \\\\con\\t\nexpect conninfo\nsend \\r\n\
         expect You are reading database \"postgres\"\nexpect postgres=> \nsend \\\\c other\\r\nexpect other=> \n\
         send \\x1b[A\\x1b[A\\x1b[A\nexpect animals\nsend \\x03\nexpect other=> \nsend \\x04\nend 0\n",
    )?;
    let history = std::fs::read_to_string(both.state().join("pagemill/sql_history"))?;
    ensure!(history.contains("select 1 as one,\\n'a\\nb' as two;"), "{history}");
    Ok(())
}

fn ctrl_c_ends_the_statement_and_not_the_shell(both: &Both) -> Result<()> {
    let cross = "from many a, many b, many c";
    both.typed(&format!(
        "expect postgres=> \nsend select 'half\\r\nexpect postgres'> \nsend \\x03\nsoon postgres=> \n\
         send select count(*) {cross} where a.n + b.n + c.n = -1;\\r\nwait 1\nsend \\x03\n\
         soon canceling statement due to user request\nsoon postgres=> \n\
         send select a.n, b.n {cross};\\r\nwait 1\nsend \\x03\nsoon canceling statement\nsoon postgres=> \n\
         send \\\\pset format csv\\r\nexpect csv\nsend select a.n, b.n {cross};\\r\nexpect 1,1\nsend \\x03\n\
         soon canceling statement\nsoon postgres=> \nsend select 40 + 2 as alive;\\r\nexpect 42\nexpect postgres=> \nsend \\\\q\\r\nend 0\n"
    ))?;
    Ok(())
}

fn a_single_statement_ends_by_the_signal(both: &Both) -> Result<()> {
    use std::os::unix::process::ExitStatusExt as _;
    let mut program = both.program();
    let slow = "select count(*) from many a, many b, many c where a.n + b.n + c.n = -1";
    let mut child = program.args(["-c", slow]).stdout(Stdio::null()).spawn()?;
    std::thread::sleep(std::time::Duration::from_millis(800));
    let id = child.id().to_string();
    ensure!(Command::new("kill").args(["-INT", &id]).status()?.success());
    ensure!(child.wait()?.signal() == Some(2));
    Ok(())
}
