//! The settings of a stopped server: found where it kept them, and used as it would use them. Each
//! test changes its own copy of a cluster that a real server made; where a server can print the
//! same, it is the judge.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};

/// A cluster with what was asked for.
struct Fixture {
    cluster: TestCluster,
}

impl Fixture {
    /// A stopped cluster in whose database `postgres` these statements were run.
    fn new(statements: &[&str]) -> Self {
        Self::running(statements).stopped()
    }

    fn running(statements: &[&str]) -> Self {
        let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
        let mut cluster = empty_cluster(&install).unwrap();
        cluster.start().unwrap();
        for statement in statements {
            cluster.psql("postgres", statement).unwrap();
        }
        Self { cluster }
    }

    /// A running cluster with a LATIN1 database `latin` in which these statements were run.
    fn running_latin(statements: &[&str]) -> Self {
        let create = "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'";
        let fixture = Self::running(&[create]);
        for statement in statements {
            fixture.cluster.psql("latin", statement).unwrap();
        }
        fixture
    }

    fn stopped(mut self) -> Self {
        self.cluster.stop().unwrap();
        self
    }

    /// Starts the server with these options on its command line, and stops it again.
    fn start_with(&mut self, options: &str) {
        let root = self.cluster.root().to_owned();
        let mut start = self.cluster.account().command(&self.cluster.install().program("pg_ctl"));
        start.args(["start", "-w", "-o"]).arg(format!("-k {} -h '' {options}", root.display()));
        start.arg("-D").arg(self.cluster.data_dir()).arg("-l").arg(root.join("server.log"));
        assert!(start.status().unwrap().success());
        self.cluster.stop().unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.cluster.data_dir().join(name)
    }

    fn append(&self, name: &str, line: &str) {
        let file = self.file(name);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{text}\n{line}\n")).unwrap();
    }

    fn run(&self, args: &[&str]) -> CommandResult {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
        command.args(args).arg("-D").arg(self.cluster.data_dir()).env_remove("PGDATA");
        let output = command.output().unwrap();
        CommandResult {
            status: output.status.code().expect("ended by a signal"),
            printed: output.stdout,
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn export(&self, database: &str, more: &[&str]) -> CommandResult {
        self.run(&[&["export", "-d", database, "-t", "t"], more].concat())
    }
}

#[derive(Debug)]
struct CommandResult {
    status: i32,
    printed: Vec<u8>,
    said: String,
}

impl CommandResult {
    #[track_caller]
    fn prints(&self, expected: impl AsRef<[u8]>) {
        assert_eq!(self.status, 0, "{self:?}");
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(text(&self.printed), text(expected.as_ref()), "{self:?}");
    }

    #[track_caller]
    fn fails_saying(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        for part in parts {
            assert!(self.said.contains(part), "{part:?} is missing in {self:?}");
        }
    }
}

const IN_A_SCHEMA: [&str; 2] = ["CREATE SCHEMA app", "CREATE TABLE app.t AS SELECT 7 AS i"];
const AMOUNTS: &str = "CREATE TABLE t AS SELECT 7 AS i, 1234.56::numeric::money AS price";

#[test]
fn settings_of_a_database_are_read_from_their_toast_table() {
    let long = "DO $$ BEGIN EXECUTE format('ALTER DATABASE postgres SET my.noise = %L', \
                (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i)); END $$";
    let fixture = Fixture::running(&IN_A_SCHEMA);
    for statement in [long, "ALTER DATABASE postgres SET search_path = app"] {
        fixture.cluster.psql("postgres", statement).unwrap();
    }
    let sql = "SELECT pg_relation_size(reltoastrelid) > 0 FROM pg_class \
               WHERE relname = 'pg_db_role_setting'";
    assert_eq!(fixture.cluster.psql("postgres", sql).unwrap().trim(), "t");
    let fixture = fixture.stopped();
    fixture.run(&["count", "-d", "postgres", "-t", "t"]).prints("1\n");
    fixture.export("postgres", &[]).prints("7\n");
}

#[test]
fn a_configuration_file_named_on_the_command_line_is_read_where_it_lies() {
    let mut fixture = Fixture::new(&IN_A_SCHEMA);
    let directory = fixture.cluster.root().join("etc");
    fixture.cluster.account().create_dir(&directory).unwrap();
    let elsewhere = directory.join("postgresql.conf");
    let text = fs::read_to_string(fixture.file("postgresql.conf")).unwrap();
    fs::write(&elsewhere, format!("{text}\nsearch_path = app\n")).unwrap();
    fs::remove_file(fixture.file("postgresql.conf")).unwrap();
    fixture.export("postgres", &[]).fails_saying(2, &["t"]);
    fixture.start_with(&format!("-c config_file={}", elsewhere.display()));
    fixture.export("postgres", &[]).prints("7\n");
}

#[test]
fn the_command_line_of_the_last_start_overrides_the_files() {
    let mut fixture = Fixture::new(&IN_A_SCHEMA);
    fixture.append("postgresql.auto.conf", "search_path = 'public'");
    fixture.export("postgres", &[]).fails_saying(2, &["t"]);
    fixture.start_with("--search-path=app");
    fixture.export("postgres", &[]).prints("7\n");
}

#[test]
fn an_unknown_lc_monetary_matters_only_where_money_is_printed() {
    let fixture = Fixture::new(&[AMOUNTS]);
    fixture.append("postgresql.auto.conf", "lc_monetary = 'xx_XX'");
    fixture.run(&["count", "-d", "postgres", "-t", "t"]).prints("1\n");
    fixture.run(&["inspect", "-d", "postgres", "-t", "t"]).fails_saying(0, &[]);
    fixture.export("postgres", &["--columns", "i"]).prints("7\n");
    let refused = ["public.t: column price", "\"xx_XX\"", "--lc-monetary"];
    fixture.export("postgres", &[]).fails_saying(1, &refused);
    fixture.export("postgres", &["--lc-monetary", "C"]).prints("7\t$1,234.56\n");
    fixture.export("postgres", &["--lc-monetary", "yy_YY"]).fails_saying(2, &["\"yy_YY\""]);
}

#[test]
fn money_is_printed_as_the_files_say_and_in_the_encoding_of_the_database() {
    let fixture = Fixture::running_latin(&[AMOUNTS]).stopped();
    fixture.append("postgresql.auto.conf", "lc_monetary = 'en_GB.UTF-8'");
    fixture.export("latin", &[]).prints(b"7\t\xA31,234.56\n");
    fixture.export("latin", &["--encoding", "UTF8"]).prints("7\t£1,234.56\n");
    let euros = fixture.export("latin", &["--lc-monetary", "de_DE.UTF-8"]);
    euros.fails_saying(1, &["column price", "encoding", "--lc-monetary"]);
    let opts = "postgres \"-D\" \"/nowhere\" \"-c\" \"lc_monetary=C\"\n";
    fs::write(fixture.file("postmaster.opts"), opts).unwrap();
    fixture.export("latin", &[]).prints(b"7\t$1,234.56\n");
}

#[test]
fn header_null_and_forced_quotes_are_converted_as_the_server_converts_them() {
    let fixture = Fixture::running_latin(&[
        "CREATE TABLE t (i int, U&\"gr\\00F6\\00DFe\" text)",
        "INSERT INTO t VALUES (1, U&'\\00E9'), (NULL, 'e'), (3, NULL)",
    ]);
    let copy = "COPY t TO STDOUT (FORMAT csv, HEADER, NULL 'ø', FORCE_QUOTE (\"größe\"))";
    let mut psql = fixture.cluster.psql_command("latin");
    let output = psql.env("PGCLIENTENCODING", "UTF8").args(["-c", copy]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = String::from_utf8(output.stdout).unwrap();
    let fixture = fixture.stopped();
    let csv = ["--format", "csv", "--header", "--null", "ø", "--force-quote", "größe"];
    fixture.export("latin", &[&csv[..], &["--encoding", "UTF8"]].concat()).prints(&expected);
    let stored: Vec<u8> = expected.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    fixture.export("latin", &csv).prints(stored);
    fixture.export("latin", &["--columns", "größe"]).prints(b"\xE9\ne\n\\N\n");
    fixture.export("latin", &["--null", "€"]).fails_saying(2, &["null string", "€"]);
}

#[test]
fn what_a_server_would_refuse_in_its_files_is_told_when_asked() {
    let fixture = Fixture::new(&["CREATE TABLE t AS SELECT 7 AS i"]);
    fixture.append("postgresql.conf", "this is no setting");
    let quiet = fixture.export("postgres", &[]);
    quiet.prints("7\n");
    assert_eq!(quiet.said, "");
    let told = fixture.export("postgres", &["-v"]);
    told.prints("7\n");
    told.fails_saying(0, &["postgresql.conf:", "syntax error near \"no\""]);
}
