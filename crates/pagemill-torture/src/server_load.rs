//! The load that a server is killed under: sessions that each do one random thing after the other, with as many kinds of
//! WAL records as ordinary SQL can bring about.

use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use pagemill_sim::seed::Random;
use pagemill_testkit::{Session, TestCluster};

const SESSIONS: u64 = 4;

/// What all sessions work on.
///
/// # Errors
/// When the server refuses it.
pub fn prepare(cluster: &TestCluster) -> Result<()> {
    let space = cluster.tablespace_dir("space")?;
    cluster.psql("postgres", &format!("CREATE TABLESPACE space LOCATION '{}'", space.display()))?;
    cluster.psql("postgres", SCHEMA)?;
    if cluster.major() >= 15 {
        cluster.psql("postgres", "CREATE UNLOGGED TABLE serials (id serial, v text)")?;
    }
    cluster.psql("postgres", "CHECKPOINT")?;
    Ok(())
}

const SCHEMA: &str = "
CREATE TABLE accounts (id int PRIMARY KEY, balance int, filler text);
INSERT INTO accounts SELECT i, i, repeat('x', 20 + i % 100) FROM generate_series(1, 5000) i;
CREATE INDEX accounts_balance ON accounts (balance);
CREATE TABLE parents (id int PRIMARY KEY, v int);
INSERT INTO parents SELECT i, 0 FROM generate_series(1, 20) i;
CREATE TABLE children (parent int REFERENCES parents, v int);
CREATE TABLE long_values (id int PRIMARY KEY, v text, w text);
ALTER TABLE long_values ALTER w SET STORAGE EXTERNAL;
CREATE TABLE tails (id int, v text);
CREATE TABLE emptied (id int, v text);
CREATE TABLE scratch (id int, v text);
CREATE INDEX scratch_id ON scratch (id);
CREATE TABLE elsewhere (id int, v text) TABLESPACE space;
CREATE UNLOGGED TABLE volatile (id int PRIMARY KEY, v text);
INSERT INTO volatile SELECT i, 'lost' FROM generate_series(1, 500) i;
CREATE SEQUENCE numbers;
CREATE TABLE parts (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (1000) TO (100000);
CREATE TABLE uniques (id int PRIMARY KEY, v int DEFAULT 0);
CREATE TABLE words (id int, a int[], p point, r int4range, t text);
CREATE INDEX words_gin ON words USING gin (a);
CREATE INDEX words_gist ON words USING gist (r);
CREATE INDEX words_spgist ON words USING spgist (p);
CREATE INDEX words_hash ON words USING hash (id);
CREATE INDEX words_brin ON words USING brin (id) WITH (pages_per_range = 2);
CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(balance) AS s FROM accounts";

/// Sessions that run until the server is gone.
#[derive(Debug)]
pub struct Load {
    sessions: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts them; what they do follows from the seed.
    ///
    /// # Errors
    /// When a session cannot be opened.
    pub fn start(cluster: &TestCluster, seed: u64) -> Result<Self> {
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            let mut session = Session::open(cluster, "postgres")?;
            session.run("\\set ON_ERROR_STOP 0\nSET lock_timeout = '200ms';")?;
            let major = cluster.major();
            let random = Random::new(seed * SESSIONS + number);
            sessions.push(std::thread::spawn(move || {
                let mut work = Work { random, session: number, step: 0, major };
                while session.run(&work.next()).is_ok() {}
            }));
        }
        Ok(Self { sessions })
    }

    /// Waits until they have noticed.
    ///
    /// # Errors
    /// When one of them panicked.
    pub fn wait(self) -> Result<()> {
        let panicked = |_| anyhow!("a session of the load panicked");
        self.sessions.into_iter().try_for_each(|session| session.join().map_err(panicked))
    }
}

/// The work of one session.
struct Work {
    random: Random,
    session: u64,
    step: u64,
    major: u32,
}

impl Work {
    fn next(&mut self) -> String {
        self.step += 1;
        let (a, b) = (self.random.below(5000) + 1, self.random.below(200) + 1);
        let name = format!("{}_{}", self.session, self.step);
        let before =
            format!("{}_{}", self.session, self.step.saturating_sub(self.random.below(20)));
        match self.random.below(42) {
            0..=3 => format!(
                "UPDATE accounts SET balance = balance + {b} WHERE id BETWEEN {a} AND {a} + {b};"
            ),
            4 => format!("DELETE FROM accounts WHERE id BETWEEN {a} AND {a} + {b} / 4;"),
            5 | 6 => format!(
                "INSERT INTO accounts SELECT i, {b}, 'new' FROM generate_series({a}, {a} + {b}) i \
                 ON CONFLICT (id) DO UPDATE SET balance = excluded.balance;"
            ),
            7 => self.subtransactions(a, b),
            8 | 9 => format!(
                "BEGIN; INSERT INTO children SELECT {p}, {b} FROM generate_series(1, 5); SELECT pg_sleep(0.01); \
                 UPDATE parents SET v = v + 1 WHERE id = {q}; COMMIT;",
                p = a % 20 + 1,
                q = b % 20 + 1
            ),
            10 => format!(
                "BEGIN; SELECT id FROM parents WHERE id < {} ORDER BY id FOR SHARE; SELECT pg_sleep(0.02); END;",
                b % 20
            ),
            11 | 12 => format!(
                "INSERT INTO long_values SELECT {a}, string_agg(md5(i::text), ''), repeat('w', {b} * 100) \
                 FROM generate_series(1, {b}) i ON CONFLICT (id) DO UPDATE SET v = excluded.v || 'x', w = excluded.w;"
            ),
            13 => format!("DELETE FROM long_values WHERE id > {a};"),
            14 => format!("VACUUM {};", self.table()),
            15 => format!("VACUUM FREEZE {};", self.table()),
            16 => format!(
                "INSERT INTO tails SELECT i, repeat('t', 500) FROM generate_series(1, 10 * {b}) i;"
            ),
            17 => format!("DELETE FROM tails WHERE id > {b}; VACUUM tails;"),
            18 => format!(
                "CREATE TABLE made_{name} AS SELECT i AS id, repeat('m', 50) AS v FROM generate_series(1, {a}) i; \
                 CREATE INDEX ON made_{name} (id);"
            ),
            19 => format!("DROP TABLE IF EXISTS made_{before};"),
            20 => "TRUNCATE scratch;".to_owned(),
            21 => format!(
                "BEGIN; TRUNCATE scratch; INSERT INTO scratch SELECT i, 'undone' FROM generate_series(1, {b}) i; \
                 CREATE TABLE undone_{name} (id int PRIMARY KEY); ROLLBACK;"
            ),
            22 | 23 => format!(
                "INSERT INTO scratch SELECT i, md5(i::text) FROM generate_series(1, {a}) i;"
            ),
            24 => format!("COPY scratch (id) FROM PROGRAM 'seq {a}';"),
            25 => format!(
                "BEGIN; INSERT INTO scratch VALUES ({a}, 'prepared'); SAVEPOINT s; \
                 INSERT INTO scratch VALUES ({a}, 'prepared within'); CREATE TABLE prepared_{name} (id int); \
                 PREPARE TRANSACTION 'p{name}';"
            ),
            26 => format!("COMMIT PREPARED 'p{before}';"),
            27 => format!("ROLLBACK PREPARED 'p{before}';"),
            28 => format!("SELECT nextval('numbers') FROM generate_series(1, {b});"),
            29 => format!(
                "INSERT INTO volatile SELECT i, 'lost' FROM generate_series({a}, {a} + {b}) i ON CONFLICT DO NOTHING; \
                 CREATE UNLOGGED TABLE volatile_{name} AS SELECT 1 AS id;"
            ),
            30 => self.database(&name, &before),
            31 => self.rewrite(&name),
            32 => format!(
                "UPDATE parts SET id = id + 600 WHERE id < {b} * 5; \
                 INSERT INTO parts SELECT i, {b} FROM generate_series(1, 999, 50) i;"
            ),
            33 => format!(
                "INSERT INTO uniques SELECT i, {a} FROM generate_series({b}, 500) i \
                 ON CONFLICT (id) DO UPDATE SET v = uniques.v + 1 WHERE uniques.v < 5;"
            ),
            34 => format!(
                "INSERT INTO words SELECT i, ARRAY[i, i % 7, {b}], point(i, {b}), int4range(i, i + {b}), md5(i::text) \
                 FROM generate_series(1, {b}) i;"
            ),
            35 => format!("DELETE FROM words WHERE id % 7 = {}; VACUUM words;", b % 7),
            36 => "REFRESH MATERIALIZED VIEW totals;".to_owned(),
            37 => match self.random.below(4) {
                0 => "CHECKPOINT;".to_owned(),
                1 => "SELECT pg_switch_wal();".to_owned(),
                _ => "SELECT count(*) FROM accounts; SELECT count(*) FROM children;".to_owned(),
            },
            38 => format!(
                "INSERT INTO elsewhere SELECT i, 'e' FROM generate_series(1, {b}) i; DELETE FROM elsewhere WHERE id < {};",
                b / 2
            ),
            39 | 40 => self.visibility(a, b),
            _ => format!("UPDATE accounts SET filler = filler || 'y' WHERE id % 50 = {};", b % 50),
        }
    }

    fn table(&mut self) -> &'static str {
        let tables =
            ["accounts", "scratch", "long_values", "children", "pg_class", "parents", "elsewhere"];
        tables[self.random.below(tables.len() as u64) as usize]
    }

    /// Bits of the visibility map that are set, cleared one by one, and cut off with the table's pages.
    fn visibility(&mut self, a: u64, b: u64) -> String {
        match self.random.below(4) {
            0 => format!(
                "VACUUM (FREEZE) accounts; UPDATE accounts SET balance = 0 WHERE id % 97 = {}; \
                 DELETE FROM accounts WHERE id % 997 = {b};",
                b % 97
            ),
            1 => format!(
                "DELETE FROM emptied; VACUUM emptied; INSERT INTO emptied SELECT i, repeat('e', {b}) \
                 FROM generate_series(1, {a}) i; VACUUM (FREEZE) emptied;"
            ),
            2 => format!(
                "VACUUM (FREEZE) emptied; COPY emptied (id) FROM PROGRAM 'seq {b}'; \
                 UPDATE emptied SET v = v || '{b}' WHERE id % 50 = {};",
                b % 50
            ),
            _ => format!(
                "BEGIN; SELECT id FROM accounts WHERE id BETWEEN {a} AND {a} + {b} FOR NO KEY UPDATE; END; \
                 DELETE FROM emptied WHERE id > {a}; VACUUM emptied;"
            ),
        }
    }

    fn subtransactions(&mut self, a: u64, b: u64) -> String {
        let end = if self.random.below(4) == 0 { "ROLLBACK" } else { "COMMIT" };
        let many: String = (0..b % 80)
            .map(|n| {
                format!("SAVEPOINT m; INSERT INTO scratch VALUES ({a}, 'sub {n}'); RELEASE m;")
            })
            .collect();
        format!(
            "BEGIN; INSERT INTO scratch VALUES ({a}, 'top'); SAVEPOINT one; UPDATE scratch SET v = 'one' WHERE id = {a}; \
             CREATE TABLE gone (id int); ROLLBACK TO one; SAVEPOINT two; DELETE FROM scratch WHERE id = {b}; {many} \
             RELEASE two; {end};"
        )
    }

    fn database(&mut self, name: &str, before: &str) -> String {
        let strategy = match (self.major, self.random.below(3)) {
            (14, _) => "",
            (_, 0) => " STRATEGY file_copy",
            (_, 1) => " TABLESPACE space",
            _ => "",
        };
        match self.random.below(5) {
            3 => format!("DROP DATABASE IF EXISTS d{before};"),
            4 => format!("ALTER DATABASE d{before} SET TABLESPACE space;"),
            0 => format!("DROP DATABASE IF EXISTS d{before};"),
            1 => format!("CREATE DATABASE d{name}{strategy};"),
            _ => format!(
                "CREATE DATABASE d{name}{strategy};\n\\connect d{name}\nCREATE TABLE own AS SELECT 1 AS a;\n\\connect postgres\nSET lock_timeout = '200ms';"
            ),
        }
    }

    fn rewrite(&mut self, name: &str) -> String {
        match self.random.below(14) {
            9 => "VACUUM FULL pg_database;".to_owned(),
            10 => "ALTER TABLE parents REPLICA IDENTITY FULL; UPDATE parents SET v = v + 1;".to_owned(),
            11 => "DROP INDEX IF EXISTS accounts_filler; CREATE INDEX CONCURRENTLY accounts_filler ON accounts (filler);"
                .to_owned(),
            12 => format!(
                "BEGIN; TRUNCATE tails; COPY tails (id) FROM PROGRAM 'seq {}' WITH (FREEZE); COMMIT; \
                 INSERT INTO tails SELECT 1, 'behind frozen';",
                self.step
            ),
            13 => "REINDEX INDEX CONCURRENTLY accounts_balance;".to_owned(),
            0 => "VACUUM FULL pg_class;".to_owned(),
            1 => "REINDEX TABLE pg_class;".to_owned(),
            2 => "REINDEX TABLE accounts;".to_owned(),
            3 => "CLUSTER accounts USING accounts_pkey;".to_owned(),
            4 => format!("ALTER TABLE tails ADD COLUMN c{name} int DEFAULT 7;"),
            5 => "ALTER TABLE scratch ALTER id TYPE bigint;".to_owned(),
            6 => "ALTER TABLE elsewhere SET TABLESPACE pg_default;".to_owned(),
            7 => "ALTER TABLE elsewhere SET TABLESPACE space;".to_owned(),
            _ => "ALTER TABLE volatile SET LOGGED; ALTER TABLE volatile SET UNLOGGED;".to_owned(),
        }
    }
}
