//! The kinds of load that are cut short: logged or not, into an empty or a filled table, with indexes, with TOAST,
//! after a truncation, and one that is longer than a WAL segment.
//!
//! Invariants: each kind has a table of its own, called as the kind is; rows are a function of their number, so
//! that a table's rows are three ranges: those that are there, those that are loaded, and those loaded once more.

use pagemill_engine::LoadOptions;

/// What a table looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Two columns, no index.
    Plain,
    /// A primary key and two indexes that are not unique.
    Indexed,
    /// Values that are moved to the TOAST table, and ones that are not.
    Toasted,
    /// Both.
    All,
    /// Partitions by range and by list, one below the other, with an index.
    Partitioned,
}

/// One kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The kind, and its table.
    pub name: &'static str,
    shape: Shape,
    /// Rows that are in the table before.
    pub old: u32,
    /// Rows that are loaded.
    pub new: u32,
    wal: bool,
    /// The old rows are removed by the load.
    pub truncate: bool,
    freeze: bool,
}

const fn kind(name: &'static str, shape: Shape, rows: (u32, u32), wal: bool) -> Kind {
    Kind { name, shape, old: rows.0, new: rows.1, wal, truncate: false, freeze: false }
}

/// All of them.
pub const KINDS: [Kind; 17] = [
    kind("logged_empty", Shape::Plain, (0, 900), true),
    kind("logged_filled", Shape::Plain, (700, 900), true),
    kind("logged_long", Shape::Plain, (300, 24_000), true),
    kind("no_wal_empty", Shape::Plain, (0, 900), false),
    kind("no_wal_filled", Shape::Plain, (700, 900), false),
    kind("indexed_empty", Shape::Indexed, (0, 900), true),
    kind("indexed_filled", Shape::Indexed, (700, 900), true),
    kind("indexed_no_wal_empty", Shape::Indexed, (0, 900), false),
    kind("indexed_no_wal_filled", Shape::Indexed, (700, 900), false),
    kind("toasted_empty", Shape::Toasted, (0, 60), true),
    kind("toasted_filled", Shape::Toasted, (40, 60), true),
    kind("toasted_no_wal_empty", Shape::Toasted, (0, 60), false),
    kind("toasted_no_wal_filled", Shape::Toasted, (40, 60), false),
    kind("partitioned_filled", Shape::Partitioned, (700, 900), true),
    kind("partitioned_no_wal_empty", Shape::Partitioned, (0, 900), false),
    Kind { truncate: true, ..kind("truncated", Shape::All, (80, 60), true) },
    Kind {
        truncate: true,
        freeze: true,
        ..kind("truncated_no_wal_frozen", Shape::All, (80, 60), false)
    },
];

impl Kind {
    /// The kind of this name.
    pub fn find(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// SQL that makes the table, with its old rows.
    pub fn setup(&self) -> String {
        let Self { name, .. } = self;
        if self.shape == Shape::Partitioned {
            return self.partitioned_setup();
        }
        let columns = match self.shape {
            Shape::Plain => "(a int, b text)",
            Shape::Indexed => "(a int PRIMARY KEY, b text COLLATE \"C\", c timestamptz)",
            Shape::Toasted => "(a int, b text)",
            Shape::All | Shape::Partitioned => "(a int PRIMARY KEY, b text, c numeric)",
        };
        let indexes = match self.shape {
            Shape::Indexed => format!("CREATE INDEX ON {name} (b); CREATE INDEX ON {name} (c, a);"),
            Shape::All => format!("CREATE INDEX ON {name} (c);"),
            Shape::Plain | Shape::Toasted | Shape::Partitioned => String::new(),
        };
        let rows = self.rows(1, self.old);
        format!("CREATE TABLE {name} {columns}; {indexes} INSERT INTO {name} {rows};")
    }

    /// Rows in ascending order are in the order of the partitions, so that one behind the other they are the table.
    fn partitioned_setup(&self) -> String {
        let Self { name, .. } = self;
        let rows = self.rows(1, self.old);
        format!(
            "CREATE TABLE {name} (a int PRIMARY KEY, b text) PARTITION BY RANGE (a); \
             CREATE TABLE {name}_p1 PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO (400); \
             CREATE TABLE {name}_p2 (b text, a int NOT NULL); \
             ALTER TABLE {name} ATTACH PARTITION {name}_p2 FOR VALUES FROM (400) TO (1000); \
             CREATE TABLE {name}_p3 PARTITION OF {name} FOR VALUES FROM (1000) TO (1300) PARTITION BY RANGE (a); \
             CREATE TABLE {name}_p4 PARTITION OF {name}_p3 FOR VALUES FROM (1000) TO (1200); \
             CREATE TABLE {name}_p5 PARTITION OF {name}_p3 FOR VALUES FROM (1200) TO (1300); \
             CREATE TABLE {name}_p6 PARTITION OF {name} DEFAULT; INSERT INTO {name} {rows};"
        )
    }

    /// The query of the rows with these numbers.
    fn rows(&self, first: u32, last: u32) -> String {
        let moved = "CASE WHEN i % 3 = 0 THEN (SELECT string_agg(md5((i * 1000 + j)::text), '') \
                     FROM generate_series(1, 100) j) ELSE 'short ' || i END";
        let columns = match self.shape {
            Shape::Plain | Shape::Partitioned => "i, 'row ' || i || repeat('x', i % 50)".into(),
            Shape::Indexed => {
                "i, md5(i::text), timestamptz '2020-02-29 12:00+00' + i % 70 * interval '1 hour'"
                    .into()
            }
            Shape::Toasted => format!("i, {moved}"),
            Shape::All => format!("i, {moved}, (i % 7 / 3.0)::numeric(9, 3)"),
        };
        format!("SELECT {columns} FROM generate_series({first}, {last}) i")
    }

    /// The query of the rows that are loaded.
    pub fn new_rows(&self) -> String {
        self.rows(self.old + 1, self.old + self.new)
    }

    /// The query of the rows that are loaded once more, fewer than before.
    pub fn more_rows(&self) -> String {
        let first = self.old + self.new + 1;
        self.rows(first, first + self.new / 2)
    }

    /// How rows are loaded. One thread reads them, so that every run makes the same calls.
    pub fn options(&self) -> LoadOptions {
        LoadOptions {
            progress: Default::default(),
            columns: None,
            wal: self.wal,
            truncate: self.truncate,
            freeze: self.freeze,
            jobs: 1,
            writing: Default::default(),
            read_back: Default::default(),
        }
    }

    /// The flags of `pagemill load` for it.
    pub fn flags(&self) -> Vec<&'static str> {
        let flags =
            [(!self.wal, "--no-wal"), (self.truncate, "--truncate"), (self.freeze, "--freeze")];
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect()
    }

    /// What a table with the rows `before` holds once `loaded` was loaded.
    pub fn after(&self, before: &[u8], loaded: &[u8]) -> Vec<u8> {
        if self.truncate { loaded.to_vec() } else { [before, loaded].concat() }
    }
}
