//! Conditions that indexes are searched by, held against the server's answers on the same tables: keys of many types, in
//! both directions and with NULLs at either end, after deletes, updates in and out of place, vacuum and a rollback.
//!
//! Invariant under test: whichever way a table is read, the answer is the server's; and few rows take few blocks.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLES: &str = "
    create table keys(id int primary key, i2 int2, i4 int4, i8 int8, n numeric, nd numeric(12,2), t text collate \"C\",
        b char(8), u uuid, d date, tz timestamptz, f float8, bo bool, x text) with (autovacuum_enabled = off);
    create function fill(first int, last int) returns void language sql as $$
        insert into keys select g, nullif(h % 300 - 150, 7), nullif(h % 5000 - 2500, 3), h::int8 * 1000003 % 9000000000,
            case when h % 97 = 0 then null when h % 101 = 0 then 'NaN' when h % 103 = 0 then 'Infinity'
                else (h % 4000 - 2000)::numeric / (10 ^ (h % 4))::numeric end,
            (h % 100000 - 50000) / 100.0, case when h % 50 = 0 then null else md5((h % 700)::text) end, 'b' || h % 300,
            md5((h % 500)::text)::uuid, case when h % 211 = 0 then 'infinity' else date '2000-01-01' + h % 3000 end,
            timestamptz '2020-01-01 00:00+00' + (h % 5000) * interval '1 hour',
            case when h % 31 = 0 then 'NaN' when h % 37 = 0 then '-0' else (h % 3000 - 1500) / 16.0 end, h % 400 = 0,
            md5((h % 700)::text)
        from (select g, hashint4(g) & 2147483647 as h from generate_series(first, last) g) s $$;
    select fill(1, 12000);
    create index on keys (i2);
    create index on keys (i4 desc);
    create index on keys (i8 desc nulls last);
    create index on keys (n nulls first);
    create index on keys (nd);
    create index on keys (b);
    create index on keys (u);
    create index on keys (d);
    create index on keys (tz desc);
    create index on keys (f);
    create index on keys (bo);
    create index on keys (x);
    create index on keys ((i4 + 1));
    create index on keys (i8) where i2 > 0;
    create index on keys (i2, t desc, i4 nulls first) include (d);
    create index on keys (t);
    delete from keys where id % 7 = 0;
    update keys set i4 = i4 + 1, t = t || 'x' where id % 11 = 0;
    vacuum keys;
    select fill(12001, 15000);
    update keys set x = x where id % 13 = 0;
    begin; select fill(15001, 17000); rollback;
    delete from keys where i4 between 100 and 400;
    vacuum keys;
    delete from keys where i8 between 0 and 500000000;
    update keys set i2 = i2 - 1 where id % 3 = 1;
    create unlogged table gone(id int primary key);
    insert into gone select generate_series(1, 20000);
";

/// Numbers that look random and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A condition on where rows stand, be they alive, dead, or led to by others.
    fn tids(&mut self) -> String {
        let mut tid = || format!("'({},{})'::tid", self.below(400), self.below(45));
        let (a, b, c) = (tid(), tid(), tid());
        match self.below(4) {
            0 => format!("ctid = {a}"),
            1 => format!("ctid in ({a}, {b}, {c})"),
            2 => format!("ctid > {a} and ctid <= {b}"),
            _ => format!("ctid = any(array[{a}, {b}]) or ctid = {c}"),
        }
    }

    fn number(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from) as u64) as i64
    }

    fn value(&mut self, column: &str) -> String {
        match column {
            "id" => self.number(-5, 15_100).to_string(),
            "i2" => [self.number(-155, 155), 40_000, -70_000]
                [self.below(9).saturating_sub(6) as usize]
                .to_string(),
            "i4" => self.number(-2600, 2600).to_string(),
            "i8" => self.number(-5, 9_000_000_100).to_string(),
            "n" if self.below(8) == 0 => "'NaN'".into(),
            "n" => format!("{}.{}", self.number(-300, 300), self.below(100)),
            "nd" => format!("{}.{:02}", self.number(-500, 500), self.below(100)),
            "t" => format!(
                "'{:x}{:02x}{}'",
                self.below(16),
                self.below(256),
                ["", "x"][self.below(2) as usize]
            ),
            "x" => format!("md5('{}')", self.below(750)),
            "b" => format!("'b{}{}'", self.below(320), ["", "  "][self.below(2) as usize]),
            "u" => format!("md5('{}')::uuid", self.below(520)),
            "d" => format!("date '2000-01-01' + {}", self.number(-10, 3010)),
            "tz" => format!(
                "timestamptz '2020-01-01 00:00+00' + interval '{} hours'",
                self.number(-9, 5009)
            ),
            _ => ["'NaN'", "0", "'-0'", "-3.5", "12.25", "90"][self.below(6) as usize].into(),
        }
    }

    fn condition(&mut self) -> String {
        const COLUMNS: [&str; 14] =
            ["id", "i2", "i4", "i8", "n", "nd", "t", "b", "u", "d", "tz", "f", "x", "bo"];
        let column = COLUMNS[self.below(14) as usize];
        if column == "bo" {
            return ["bo", "not bo", "bo is null"][self.below(3) as usize].into();
        }
        let (a, b, c) = (self.value(column), self.value(column), self.value(column));
        let kind = self.below(10);
        match kind {
            0..=2 => format!("{column} = {a}"),
            3 => format!("{column} in ({a}, {b}, {c})"),
            4 => format!("({column} = {a} or {column} is null)"),
            // Texts under a collation of the system may have no order here.
            _ if column == "x" => format!("{a} = {column}"),
            5 if column == "d" => format!("d <= {a} + interval '{} hours'", self.number(-30, 30)),
            8 if column == "d" => format!(
                "d {} {a} and d < {b} + interval '{} hours'",
                [">", ">="][self.below(2) as usize],
                self.number(-1, 1) * 12
            ),
            5 => format!("{column} <= {a}"),
            6 | 7 => format!("{column} between {a} and {b}"),
            8 if column == "t" => {
                format!("{column} like {}", a.replace("x'", "'").replace("' ", "'"))
            }
            8 => format!("{column} > {a} and {column} < {b}"),
            _ => format!("{column} is null"),
        }
    }
}

impl Draw {
    /// A few rows, and those that are equal to them in some columns.
    fn join(&mut self, number: usize) -> String {
        const COLUMNS: [&str; 13] =
            ["id", "i2", "i4", "i8", "n", "nd", "t", "b", "u", "d", "tz", "f", "x"];
        const PAIRS: [(&str, &str); 4] = [("i4", "i8"), ("i8", "i4"), ("nd", "n"), ("i2", "id")];
        let (a, b) = (COLUMNS[self.below(13) as usize], COLUMNS[self.below(13) as usize]);
        let keys = match self.below(4) {
            0 => format!("k.{a} = s.{a} and k.{b} = s.{b}"),
            1 => {
                let (a, b) = PAIRS[self.below(4) as usize];
                format!("k.{a} = s.{b}")
            }
            _ => format!("k.{a} = s.{a}"),
        };
        let kind = ["join", "join", "left join"][self.below(3) as usize];
        let (first, many) = (self.below(14_000), [3, 40, 400][self.below(3) as usize]);
        format!(
            "select {number} as number, count(*), sum(k.id), max(k.id) from
             (select * from keys where id between {first} and {}) s {kind} keys k on {keys};\n",
            first + many
        )
    }
}

fn statements() -> Vec<String> {
    let mut draw = Draw(17);
    let of = |(number, condition)| {
        format!(
            "select {number} as number, count(*), sum(id), max(id) from keys where {condition};\n"
        )
    };
    let condition = |number: usize| match number % 4 {
        0 => format!("{} and {}", draw.condition(), draw.condition()),
        1 => {
            let (a, b) = (draw.value("i2"), draw.value("t"));
            format!("i2 = {a} and t >= {b} and {}", draw.condition())
        }
        _ => draw.condition(),
    };
    let conditions = (0..400).map(condition).collect::<Vec<_>>();
    let joins: Vec<String> = (400..480).map(|number| draw.join(number)).collect();
    let mut draw = Draw(18);
    let tids = (480..560).map(|number| (number, draw.tids())).collect::<Vec<_>>();
    let all = conditions.into_iter().enumerate().chain(tids).map(of);
    all.chain(joins).collect()
}

fn numbered(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    lines.map(|line| line.replace('|', ",")).collect()
}

fn answered(cluster: &TestCluster, arguments: &[&str]) -> Result<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program
        .arg("sql")
        .arg("-D")
        .arg(cluster.data_dir())
        .args(["-d", "postgres", "--format", "csv"]);
    let output = program.args(arguments).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

fn path(cluster: &TestCluster, statement: &str) -> Result<String> {
    let told = answered(cluster, &[&format!("explain analyze {statement}")])?;
    let path = told.split("access=").nth(1).context(told.clone())?;
    Ok(path.split(", metrics").next().unwrap_or_default().to_owned())
}

#[test]
fn whichever_way_a_table_is_read_the_answer_is_the_servers() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    for (at, part) in TABLES.split("vacuum keys;").enumerate() {
        // By itself: not in the transaction that statements sent together are.
        if at > 0 {
            cluster.psql("postgres", "vacuum keys")?;
        }
        cluster.psql("postgres", part)?;
    }
    let statements = statements();
    let known = numbered(&cluster.psql("postgres", &statements.concat())?);
    cluster.stop()?;
    let file = cluster.data_dir().with_extension("sql");
    std::fs::write(&file, statements.concat())?;
    let file = file.to_str().context("a path that is no text")?;
    let found = numbered(&answered(&cluster, &["-f", file])?);
    ensure!(known.len() == statements.len(), "{} answers", known.len());
    for ((known, found), statement) in known.iter().zip(&found).zip(&statements) {
        assert_eq!(known, found, "{statement}");
    }
    assert_eq!(known.len(), found.len());

    let of_one = path(&cluster, "select x from keys where id = 5000")?;
    assert!(of_one.starts_with("index keys_pkey, "), "{of_one}");
    let of_two = path(&cluster, "select x from keys where i2 = 5 and t = 'abc'")?;
    assert!(of_two.starts_with("index keys_i2_t_i4_d_idx, "), "{of_two}");
    let of_days = "select x from keys where d >= date '2001-01-01' and d < date '2001-01-01' + interval '2 days'";
    let of_days = path(&cluster, of_days)?;
    assert!(of_days.starts_with("index keys_d_idx, "), "{of_days}");
    let of_all = path(&cluster, "select x from keys where id > 5")?;
    assert!(of_all.contains("keys_pkey (too many rows)"), "{of_all}");
    let of_few = "select x from (values (5), (6), (70000)) v(k) join keys on id = k";
    let of_few = path(&cluster, of_few)?;
    assert!(of_few.starts_with("index keys_pkey, 2 entries"), "{of_few}");
    for (condition, blocks) in [
        ("ctid = '(7,3)'", "ctid, 1 of "),
        ("ctid in ('(7,3)', '(9,1)')", "ctid, 2 of "),
        ("ctid >= '(10,1)' and ctid < '(12,1)'", "ctid, 3 of "),
    ] {
        let told = path(&cluster, &format!("select id from keys where {condition}"))?;
        assert!(told.starts_with(blocks), "{condition}: {told}");
    }
    let of_catalog = path(&cluster, "select relname from pg_class where oid = 1259")?;
    assert!(of_catalog.starts_with("index pg_class_oid_index, 1 entries"), "{of_catalog}");
    assert_eq!(answered(&cluster, &["select count(*) from gone where id = 5"])?, "count\n1\n");
    Ok(())
}

/// Keys whose bytes are in another order than they themselves, and those of which several forms are equal.
const PLACES: &str = "
    create table places(id int, i inet, c cidr, m macaddr, e macaddr8, p pg_lsn, z timetz, v interval, k \"char\", pad text)
        with (autovacuum_enabled = off);
    insert into places select g,
        case when h % 50 = 0 then null when h % 9 = 0 then ('fe80::' || to_hex(h % 3000))::inet
            else set_masklen(inet '10.0.0.0' + h % 5000, 32 - (h % 60) / 20) end,
        ('10.' || h % 90 || '.' || h % 7 || '.0/24')::cidr, ('08:00:2b:01:' || lpad(to_hex(h % 200), 2, '0') || ':' || lpad(to_hex(h % 3 * 100), 2, '0'))::macaddr,
        ('08:00:2b:01:02:03:' || lpad(to_hex(h % 200), 2, '0') || ':' || lpad(to_hex(h % 3 * 100), 2, '0'))::macaddr8,
        ('0/' || lpad(to_hex(h % 4000 * 1000), 8, '0'))::pg_lsn,
        ((time '00:00' + h % 8000 * interval '10 seconds')::text || case when h % 2 = 0 then '+02' else '-05:30' end)::timetz,
        case h % 3 when 0 then make_interval(hours => h % 3000) when 1 then make_interval(days => h % 125) else make_interval(months => h % 5) - interval '1 day' end,
        chr(33 + h % 90)::\"char\", repeat('p', 100)
    from (select g, hashint4(g) & 2147483647 as h from generate_series(1, 9000) g) s;
    create index on places (i); create index on places (c); create index on places (m); create index on places (e desc); create index on places (p);
    create index on places (z); create index on places (v); create index on places (k);
";

const OF_PLACES: [&str; 40] = [
    "i = '10.0.3.3'",
    "i = '10.0.3.0/31'",
    "i in ('10.0.3.3', 'fe80::1f', '::1')",
    "i = 'fe80::a0'",
    "i < '10.0.0.9'",
    "i > 'fe80::bb0'",
    "i between '10.0.1.1' and '10.0.1.40/31'",
    "i <= '10.0.0.4/30'",
    "i is null",
    "c = '10.5.3.0/24'",
    "c > '10.89.4.0/24'",
    "m = '08:00:2b:01:10:64'",
    "m < '08:00:2b:01:02:00'",
    "m between '08:00:2b:01:c0:00' and '08:00:2b:01:c1:64'",
    "e = '08:00:2b:01:02:03:10:64'",
    "e >= '08:00:2b:01:02:03:c7:00'",
    "p = '0/3E8'",
    "p < '0/2710'",
    "p > '0/3CF000'",
    "p in ('0/3E8', '0/7D0', 'F/0')",
    "z = '01:00+02'",
    "z = '21:10:20+02'",
    "z < '00:30+02'",
    "z between '01:00+00' and '01:02+00'",
    "z >= '22:13:00-05:30'",
    "v = '30 days'",
    "v = '1 mon'",
    "v = '720:00:00'",
    "v in ('0', '2 mons -1 day', '-1 day')",
    "v < '0'",
    "v < '1 hour'",
    "v > '4 mons 28 hours'",
    "v between '59 days' and '1 mon 29 days 2 hours'",
    "k = 'A'",
    "k in ('!', 'z')",
    "k < '#'",
    "k > 'x'",
    "i = '10.0.3.3' and v = '1 day'",
    "id in (select id from places where i = '10.0.4.4') and p > '0/0'",
    "i <> '10.0.3.3' and z = '01:00+02'",
];

#[test]
fn addresses_and_times_are_looked_up_as_the_server_has_them() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", PLACES)?;
    let of = |(number, condition): (usize, &&str)| {
        format!(
            "select {number} as number, count(*), sum(id), max(id) from places where {condition};\n"
        )
    };
    // What a join hands down are bounds of bytes.
    let join = |(number, column): (usize, &str)| {
        format!(
            "select {number} as number, count(*), sum(p.id), max(p.id) from
             (select * from places where id between 100 and 120) s join places p on p.{column} = s.{column};\n"
        )
    };
    let columns = ["i", "c", "m", "e", "p", "z", "v", "k"];
    let joins = columns.into_iter().enumerate().map(|(at, column)| (at + OF_PLACES.len(), column));
    let statements: Vec<String> =
        OF_PLACES.iter().enumerate().map(of).chain(joins.map(join)).collect();
    let known = numbered(&cluster.psql("postgres", &statements.concat())?);
    cluster.stop()?;
    let file = cluster.data_dir().with_extension("places.sql");
    std::fs::write(&file, statements.concat())?;
    let file = file.to_str().context("a path that is no text")?;
    let found = numbered(&answered(&cluster, &["-f", file])?);
    for ((known, found), statement) in known.iter().zip(&found).zip(&statements) {
        assert_eq!(known, found, "{statement}");
    }
    assert_eq!((known.len(), found.len()), (statements.len(), statements.len()));
    for (condition, index) in [
        ("i = '10.0.3.3'", "places_i_idx"),
        ("i < '10.0.0.9'", "places_i_idx"),
        ("p > '0/3CF000'", "places_p_idx"),
        ("m = '08:00:2b:01:10:64'", "places_m_idx"),
        ("z = '01:00+02'", "places_z_idx"),
        ("v = '720:00:00'", "places_v_idx"),
    ] {
        let told = path(&cluster, &format!("select pad from places where {condition}"))?;
        assert!(told.starts_with(&format!("index {index}, ")), "{condition}: {told}");
    }
    Ok(())
}

#[test]
fn an_entry_that_leads_to_nothing_is_no_row_here_either() -> Result<()> {
    const ASKED: [&str; 5] = [
        "select count(*) from rows where id = 3000",
        "select count(*) from rows where id in (2999, 3000, 3001)",
        "select id from rows where id >= 2998 order by id limit 4",
        "select id from rows where id <= 3001 order by id desc limit 3",
        "select min(id) from rows where id > 2999",
    ];
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { data_checksums: Some(false), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql(
        "postgres",
        "create table rows(id int primary key); insert into rows select generate_series(1, 9000)",
    )?;
    let place = "select pg_relation_filepath('rows') || ' ' || translate(ctid::text, '(,)', '  ')
                 from rows where id = 3000";
    let place = cluster.psql("postgres", place)?;
    let [file, block, line_pointer] = place.split_whitespace().collect::<Vec<_>>()[..] else {
        anyhow::bail!("no place: {place}");
    };
    cluster.stop()?;
    let file = cluster.data_dir().join(file);
    let mut bytes = std::fs::read(&file)?;
    let (block, number): (usize, usize) = (block.parse()?, line_pointer.parse()?);
    let at = block * 8192 + 24 + (number - 1) * 4;
    bytes[at..at + 4].fill(0);
    std::fs::write(&file, bytes)?;
    let found: Vec<String> =
        ASKED.iter().map(|asked| answered(&cluster, &[asked])).collect::<Result<_>>()?;
    assert!(path(&cluster, ASKED[0])?.starts_with("index rows_pkey"));
    assert!(path(&cluster, ASKED[3])?.contains("in its order backward"));
    cluster.start()?;
    for (asked, found) in ASKED.iter().zip(&found) {
        let known = cluster.psql("postgres", asked)?;
        let found: Vec<&str> = found.lines().skip(1).collect();
        assert_eq!(known.lines().collect::<Vec<_>>(), found, "{asked}");
    }
    Ok(())
}

/// Rows that an index leads to are read many blocks at a time: what is damaged among these takes no others with it.
#[test]
fn a_damaged_block_among_those_of_an_index_costs_its_rows_alone() -> Result<()> {
    const ASKED: &str = "select k.id from (select id from chosen) c join rows k using (id)";
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql(
        "postgres",
        "create table rows(id int primary key, filler text);
         insert into rows select g, repeat('x', 700) from generate_series(1, 9000) g;
         create table chosen as select g as id from generate_series(1, 9000, 25) g",
    )?;
    let whole = cluster.psql("postgres", ASKED)?;
    let out =
        "select pg_relation_filepath('rows') || ' ' || split_part(trim(ctid::text, '()'), ',', 1)
               from rows where id = 5001";
    let out = cluster.psql("postgres", out)?;
    let (file, block) = out.trim().split_once(' ').context(out.clone())?;
    let beside = format!(
        "select c.id from chosen c join rows k using (id) where k.ctid::text like '({block},%'"
    );
    let lost = cluster.psql("postgres", &beside)?;
    cluster.stop()?;
    let told = path(&cluster, ASKED)?;
    assert!(told.starts_with("index rows_pkey, 360 entries"), "{told}");
    let sorted = |text: &str| {
        let mut rows: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(sorted(&answered(&cluster, &[ASKED])?), sorted(&whole));

    let file = cluster.data_dir().join(file);
    let mut bytes = std::fs::read(&file)?;
    let at = block.parse::<usize>()? * 8192;
    bytes[at + 12..at + 16].fill(0xff);
    std::fs::write(&file, bytes)?;
    // What was left out is damage still: the status says so, beside the rows.
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.arg("sql").arg("-D").arg(cluster.data_dir()).args(["-d", "postgres"]);
    let output = program.args(["--format", "csv", "--on-damage", "skip", ASKED]).output()?;
    ensure!(output.status.code() == Some(1), "{:?}", output.status);
    let left = String::from_utf8(output.stdout)?;
    let lost = sorted(&lost);
    assert!(lost.contains(&5001));
    let mut expected = sorted(&whole);
    expected.retain(|id| !lost.contains(id));
    assert_eq!(sorted(&left), expected);
    let refused = answered(&cluster, &[ASKED]).unwrap_err().to_string();
    assert!(refused.contains(&format!("block {block}")), "{refused}");
    Ok(())
}
