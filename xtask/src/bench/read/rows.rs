//! What `bench read` measures: races between contestants, what each race is to prove, and counts of calls.
//!
//! A race is one place, one state of the page cache and a few contestants that run in turns. A claim picks one of
//! them and holds it against the best of others. Targets are set here, before a run, and never moved to fit one.

use crate::bench::targets::{self, Counted, Target};

/// A table of the benchmark's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// One wide text column, about 600 bytes a row.
    T,
    /// Three random integers, and an index on all three.
    Bigtable,
}

impl Table {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::T => "t",
            Self::Bigtable => "bigtable",
        }
    }
}

/// The index of `bigtable`.
pub(super) const INDEX: &str = "bigtable_a_b_c";

/// Where the data directory lies, and which server it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClusterKind {
    /// PostgreSQL 15 without checksums.
    Plain,
    /// PostgreSQL 18 with checksums.
    Checksums,
    /// A copy of `Plain` on XFS, on a device that is limited in reads a second.
    SlowDevice,
    /// A copy of `Plain` on btrfs RAID1, on two devices that are limited in bytes a second each.
    Mirror,
}

impl ClusterKind {
    pub(super) const ALL: [Self; 4] =
        [Self::Plain, Self::Checksums, Self::SlowDevice, Self::Mirror];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PostgreSQL 15, no checksums",
            Self::Checksums => "PostgreSQL 18, checksums",
            Self::SlowDevice => "PostgreSQL 15, device limited in reads a second",
            Self::Mirror => "PostgreSQL 15, two mirrored disks limited in bytes a second",
        }
    }
}

/// The state of the page cache before each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// As the server left it when it wrote the table: small folios.
    AsWritten,
    /// Dropped, then read once from front to back: large folios. In little memory this is done before each run, and
    /// leaves what fits.
    Reread,
    /// Nothing of the table in it.
    Cold,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AsWritten => "as-written",
            Self::Reread => "reread",
            Self::Cold => "cold",
        }
    }
}

/// A command of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fio {
    pub(super) engine: &'static str,
    pub(super) block: &'static str,
    pub(super) depth: u32,
    pub(super) direct: bool,
}

/// Who runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contestant {
    /// A statement, in a session with these settings off. Its plan must have the word, if there is one.
    Server {
        statement: String,
        off: &'static [&'static str],
        plan: Option<&'static str>,
    },
    /// `pagemill count` of the race's table with these flags.
    Pagemill {
        flags: Vec<&'static str>,
    },
    /// The same, as it chooses for itself: `--io-method auto`, or no such flag where it is not built yet.
    Auto {
        flags: Vec<&'static str>,
    },
    Fio(Fio),
    /// `dd`, where fio is not installed.
    Dd {
        direct: bool,
    },
    /// What the kernel takes to hand out the pages, mapped.
    Floor,
}

impl Contestant {
    pub(super) fn label(&self) -> String {
        let spelled = |flags: &[&str]| flags.join(" ");
        match self {
            Self::Server { .. } => "PostgreSQL".to_owned(),
            Self::Auto { flags } if flags.is_empty() => "auto".to_owned(),
            Self::Auto { flags } => format!("auto {}", spelled(flags)),
            Self::Pagemill { flags } => spelled(flags).replace("--io-method ", ""),
            Self::Fio(fio) => {
                let direct = if fio.direct { "direct" } else { "buffered" };
                format!("fio {} {} depth {} {direct}", fio.engine, fio.block, fio.depth)
            }
            Self::Floor => "floor, mapped and touched".to_owned(),
            Self::Dd { direct } => if *direct { "dd direct" } else { "dd buffered" }.to_owned(),
        }
    }
}

/// What a race is to prove.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    pub(super) id: String,
    /// Index of the contestant it is about.
    pub(super) subject: usize,
    /// Indexes of those it is held against; the fastest of them counts.
    pub(super) against: Vec<usize>,
    /// None where it is only reported.
    pub(super) target: Option<Target>,
}

/// Contestants in turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Race {
    pub(super) id: String,
    pub(super) table: Table,
    pub(super) place: ClusterKind,
    pub(super) state: State,
    /// Memory is a quarter of the table.
    pub(super) little_memory: bool,
    /// All on one core.
    pub(super) one_core: bool,
    pub(super) contestants: Vec<Contestant>,
    pub(super) claims: Vec<Claim>,
}

/// Calls counted in one run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calls {
    pub(super) id: &'static str,
    pub(super) flags: Vec<&'static str>,
    /// The figure is calls for so many blocks.
    pub(super) blocks: u64,
    /// Figures that are right, both ends included.
    pub(super) range: (f64, f64),
}

/// One line to select.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    Race(Race),
    Calls(Calls),
}

impl Row {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Race(race) => &race.id,
            Self::Calls(calls) => calls.id,
        }
    }

    pub(super) fn place(&self) -> ClusterKind {
        match self {
            Self::Race(race) => race.place,
            Self::Calls(_) => ClusterKind::Plain,
        }
    }

    pub(super) fn state(&self) -> Option<State> {
        match self {
            Self::Race(race) => Some(race.state),
            Self::Calls(_) => None,
        }
    }
}

/// Single-column plans the planner must not choose for the index-ordered query.
const ORDERED_OFF: &[&str] =
    &["enable_seqscan", "enable_sort", "enable_indexonlyscan", "enable_bitmapscan"];

const ORDERED: &str = "select count(*) from (select * from bigtable order by a, b, c offset 0) x";

const ORDERED_FLAGS: [&str; 3] = ["--order-by", INDEX, "--no-index-only"];

/// Within 10 % of the best.
const NEAR_BEST: f64 = 1.0 / 1.1;

/// Calls of a range of one call for each unit: none may be split, and the last unit is not full.
const ONE: (f64, f64) = (0.0, 1.005);

/// Two calls a block.
const TWO: (f64, f64) = (1.995, 2.005);

/// Every row, those first that need the page cache as the loading left it.
pub(super) fn all() -> Vec<Row> {
    let mut races = Vec::new();
    for (id, table, place) in [
        ("count-t", Table::T, ClusterKind::Plain),
        ("count-bigtable", Table::Bigtable, ClusterKind::Plain),
        ("count-t-checksums", Table::T, ClusterKind::Checksums),
    ] {
        for state in [State::AsWritten, State::Reread] {
            races.push(counted(&format!("{id}-{}", state.name()), table, place, state));
        }
    }
    races.push(device_rate());
    races.push(ordered("ordered-bigtable-cached", ClusterKind::Plain, State::Reread));
    races.push(ordered("ordered-bigtable-slow-device", ClusterKind::SlowDevice, State::Cold));
    races.push(mirror());
    races.extend(choices());
    // A stable sort: states are ordered within each place, and nothing else changes.
    races.sort_by_key(|race| {
        let place = ClusterKind::ALL.iter().position(|place| *place == race.place);
        (place, race.state != State::AsWritten)
    });
    let last_plain = races.iter().take_while(|race| race.place == ClusterKind::Plain).count();
    let mut rows: Vec<Row> = races.into_iter().map(Row::Race).collect();
    let after = rows.split_off(last_plain);
    rows.extend(calls().map(Row::Calls));
    rows.extend(after);
    rows
}

fn count_statement(table: Table) -> Contestant {
    let statement = format!("select count(*) from {}", table.name());
    Contestant::Server { statement, off: &[], plan: Some("Seq Scan") }
}

/// A count against the server, and where that is what counts, against the floor too.
fn counted(id: &str, table: Table, place: ClusterKind, state: State) -> Race {
    let target = targets::of_count(Counted {
        is_large: table == Table::T,
        checksums: place == ClusterKind::Checksums,
        as_written: state == State::AsWritten,
    });
    let mut contestants = vec![count_statement(table), Contestant::Auto { flags: vec![] }];
    let claims = if target.is_of_floor() {
        contestants.push(Contestant::Floor);
        let server = format!("{id}-server");
        let of_floor = Claim { target: Some(target), ..claim(id, 1, &[2], None) };
        vec![of_floor, claim(&server, 1, &[0], None)]
    } else {
        vec![Claim { target: Some(target), ..claim(id, 1, &[0], None) }]
    };
    race(id, table, place, state, contestants, claims)
}

fn race(
    id: &str,
    table: Table,
    place: ClusterKind,
    state: State,
    contestants: Vec<Contestant>,
    claims: Vec<Claim>,
) -> Race {
    let one_core = state != State::Cold;
    let id = id.to_owned();
    Race { id, table, place, state, little_memory: false, one_core, contestants, claims }
}

fn claim(id: &str, subject: usize, against: &[usize], least: Option<f64>) -> Claim {
    let target = least.map(Target::AtLeast);
    Claim { id: id.to_owned(), subject, against: against.to_vec(), target }
}

fn ordered(id: &str, place: ClusterKind, state: State) -> Race {
    let (statement, plan) = (ORDERED.to_owned(), Some("Index Scan using"));
    let server = Contestant::Server { statement, off: ORDERED_OFF, plan };
    let auto = Contestant::Auto { flags: ORDERED_FLAGS.to_vec() };
    let claims = vec![claim(id, 1, &[0], Some(5.0))];
    race(id, Table::Bigtable, place, state, vec![server, auto], claims)
}

/// The count against the best that fio gets from the same file.
fn device_rate() -> Race {
    let fio = |engine, block, depth, direct| Contestant::Fio(Fio { engine, block, depth, direct });
    let mut contestants = vec![
        Contestant::Auto { flags: vec![] },
        fio("psync", "128k", 1, false),
        fio("psync", "1m", 1, false),
        fio("psync", "1m", 1, true),
        fio("libaio", "128k", 32, true),
        fio("libaio", "1m", 8, true),
        fio("io_uring", "128k", 16, false),
        fio("io_uring", "128k", 32, true),
        fio("io_uring", "1m", 8, true),
        fio("io_uring", "4m", 4, true),
    ];
    contestants.extend([Contestant::Dd { direct: false }, Contestant::Dd { direct: true }]);
    let against: Vec<usize> = (1..contestants.len()).collect();
    let claims = vec![claim("device-rate", 0, &against, Some(0.95))];
    race("device-rate", Table::T, ClusterKind::Plain, State::Cold, contestants, claims)
}

/// Strategies 0 to 3 of `--readahead`, and what `auto` makes of two disks.
fn mirror() -> Race {
    let pread = |readahead| Contestant::Pagemill {
        flags: vec!["--io-method", "pread", "--readahead", readahead],
    };
    let contestants = vec![
        pread("none"),
        pread("every-page"),
        pread("window"),
        pread("double-window"),
        Contestant::Auto { flags: vec![] },
    ];
    let claims = vec![
        claim("mirror-strategy-1", 1, &[0], None),
        claim("mirror-strategy-2", 2, &[0], None),
        claim("mirror-strategy-3", 3, &[0], None),
        claim("mirror-auto", 4, &[0], Some(1.85)),
    ];
    race("mirror", Table::T, ClusterKind::Mirror, State::Cold, contestants, claims)
}

/// `auto` against every method, in each cell of cache × order × memory.
fn choices() -> Vec<Race> {
    let orders: [(&str, Table, &[&str]); 3] = [
        ("sequential", Table::T, &[]),
        ("backward", Table::T, &["--backward"]),
        ("ordered", Table::Bigtable, &ORDERED_FLAGS),
    ];
    let cells = [
        ("cached-whole", State::Reread, false),
        ("cold-whole", State::Cold, false),
        ("cached-limited", State::Reread, true),
        ("cold-limited", State::Cold, true),
    ];
    let mut races = Vec::new();
    for (cell, state, little_memory) in cells {
        for (order, table, flags) in orders {
            let id = format!("choice-{cell}-{order}");
            let contestants = methods(flags, state == State::Cold || little_memory);
            let against: Vec<usize> = (1..contestants.len()).collect();
            let claims = vec![claim(&id, 0, &against, Some(NEAR_BEST))];
            let cell = race(&id, table, ClusterKind::Plain, state, contestants, claims);
            races.push(Race { little_memory, one_core: false, ..cell });
        }
    }
    races
}

/// `auto` first, then each method with the same flags, direct ones where they make sense.
fn methods(flags: &[&'static str], direct: bool) -> Vec<Contestant> {
    let names = ["seek", "pread", "preadv", "mmap", "worker", "io_uring"];
    let of = |name: &'static str, more: &[&'static str]| {
        let flags = [&["--io-method", name], more, flags].concat();
        Contestant::Pagemill { flags }
    };
    let mut methods = vec![Contestant::Auto { flags: flags.to_vec() }];
    methods.extend(names.map(|name| of(name, &[])));
    if direct {
        methods.extend(["pread", "worker", "io_uring"].map(|name| of(name, &["--direct"])));
    }
    methods
}

fn calls() -> [Calls; 3] {
    let combined = |id, method| Calls {
        id,
        flags: vec!["--io-method", method, "--io-combine-limit", "128"],
        blocks: 128,
        range: ONE,
    };
    [
        Calls {
            id: "calls-combined",
            flags: vec!["--io-combine-limit", "128"],
            blocks: 128,
            range: ONE,
        },
        combined("calls-combined-preadv", "preadv"),
        Calls { id: "calls-seek", flags: vec!["--io-method", "seek"], blocks: 1, range: TWO },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn races() -> Vec<Race> {
        let race = |row| if let Row::Race(race) = row { Some(race) } else { None };
        all().into_iter().filter_map(race).collect()
    }

    #[test]
    fn no_two_rows_or_claims_share_a_name() {
        let ids: Vec<String> = all().iter().map(|row| row.id().to_owned()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        let claims: Vec<String> =
            races().into_iter().flat_map(|race| race.claims).map(|claim| claim.id).collect();
        assert_eq!(claims.iter().collect::<BTreeSet<_>>().len(), claims.len());
    }

    #[test]
    fn a_claim_names_contestants_that_run_and_never_itself() {
        for race in races() {
            for claim in &race.claims {
                assert!(claim.subject < race.contestants.len());
                assert!(claim.against.iter().all(|index| *index < race.contestants.len()));
                assert!(!claim.against.contains(&claim.subject) && !claim.against.is_empty());
            }
        }
    }

    /// One benchmark asked 3 of the count that the other asked 15 of.
    #[test]
    fn the_count_of_t_as_it_was_written_is_held_to_the_floor() {
        let race = races().into_iter().find(|race| race.id == "count-t-as-written").unwrap();
        let [of_floor, of_server] = &race.claims[..] else { panic!("two claims") };
        assert!(of_floor.target.is_some_and(Target::is_of_floor));
        assert_eq!(race.contestants[of_floor.against[0]], Contestant::Floor);
        assert_eq!((of_server.target, of_server.against.as_slice()), (None, [0].as_slice()));
    }

    #[test]
    fn places_are_visited_once_and_what_was_written_is_read_first() {
        let places: Vec<ClusterKind> = all().iter().map(Row::place).collect();
        let mut visited = places.clone();
        visited.dedup();
        assert_eq!(visited, ClusterKind::ALL);
        for place in ClusterKind::ALL {
            let states: Vec<bool> = races()
                .iter()
                .filter(|race| race.place == place)
                .map(|race| race.state == State::AsWritten)
                .collect();
            assert!(states.is_sorted_by(|before, after| before >= after), "{place:?}");
        }
    }

    #[test]
    fn every_cell_of_the_choices_is_there() {
        let cells = races().iter().filter(|race| race.id.starts_with("choice-")).count();
        assert_eq!(cells, 12);
    }
}
