//! What is read ahead on all cores is what is read record by record: the same index, the same end, the same error, on WAL
//! of which every byte is known and on WAL of servers, whole, cut, and changed at any byte.

#[expect(dead_code, reason = "shared with the tests of what is written")]
mod stopped_cluster;
#[expect(dead_code, reason = "shared with the tests of reading and writing")]
mod synthetic;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use pagemill_format::Lsn;
use pagemill_format::backup::TimelineHistory;
use pagemill_format::control::{Checkpoint, ControlFile};
use pagemill_format::wal::SegmentName;
use pagemill_io::Storage;
use pagemill_testkit::{ClusterOptions, TestCluster};
use pagemill_wal::{
    EndOfWal, Finding, Portion, WalDirectory, WalIndexBuilder, WalReader, WalSource,
};

use stopped_cluster::every_version;
use synthetic::{PAGE, SEGMENT, Synthetic};

/// What reading all of the WAL came to.
#[derive(Debug, PartialEq)]
struct ReadBack {
    index: String,
    end: Option<EndOfWal>,
    position: Lsn,
    fault: Option<String>,
}

/// WAL to be read, twice.
struct Wal<'a> {
    storage: &'a Storage,
    source: WalSource,
    start: Lsn,
    checkpoint: Checkpoint,
}

impl Wal<'_> {
    fn reader(&self) -> WalReader {
        WalReader::along(self.storage, &self.source, self.start)
    }

    fn builder(&self) -> WalIndexBuilder {
        WalIndexBuilder::new(self.storage, &self.source, &self.checkpoint)
    }

    fn by_records(&self) -> ReadBack {
        let (mut reader, mut builder) = (self.reader(), self.builder());
        let fault = loop {
            match reader.next_record() {
                Ok(None) => break None,
                Ok(Some(record)) => {
                    if let Err(error) = builder.add(&record) {
                        break Some(error.to_string());
                    }
                }
                Err(error) => break Some(error.to_string()),
            }
        };
        found(&reader, builder, fault)
    }

    /// The same by portions, and how many records came in a row.
    fn by_portions(&self) -> (ReadBack, usize) {
        let (mut reader, mut builder, mut plain) = (self.reader(), self.builder(), 0);
        let fault = loop {
            match reader.next_portion() {
                Ok(None) => break None,
                Ok(Some(Portion::One(record))) => {
                    if let Err(error) = builder.add(&record) {
                        break Some(error.to_string());
                    }
                }
                Ok(Some(Portion::Plain(records))) => {
                    builder.add_plain(records, records.places().len()).unwrap();
                    plain += records.places().len();
                }
                Err(error) => break Some(error.to_string()),
            }
        };
        (found(&reader, builder, fault), plain)
    }

    /// Makes sure that both agree; tells how many records came in a row.
    fn agree(&self, what: &str) -> Result<usize> {
        let (ahead, plain) = self.by_portions();
        let expected = self.by_records();
        ensure!(ahead.position == expected.position, "{what}: {ahead:?}\n{expected:?}");
        ensure!(ahead == expected, "{what}: {:?} {:?}", ahead.end, expected.end);
        Ok(plain)
    }
}

fn found(reader: &WalReader, builder: WalIndexBuilder, fault: Option<String>) -> ReadBack {
    let end = EndOfWal {
        lsn: reader.position(),
        reason: Finding::Zeros,
        page_behind: None,
        segment_behind: None,
        missing: Vec::new(),
    };
    let index = builder.finish(end).unwrap();
    let fork = |fork: &pagemill_wal::ForkHistory| {
        let blocks = (fork.least_blocks(), fork.most_blocks(), fork.base_blocks());
        format!("{:?} {blocks:?} {:?}", fork.life(), fork.entries().unwrap())
    };
    let forks: BTreeMap<_, _> = index.forks().map(|(key, history)| (*key, fork(history))).collect();
    let index = format!(
        "{} {} {} {:?} {:?} {forks:?}",
        index.start, index.records, index.full_page_writes, index.transactions, index.files
    );
    ReadBack { index, end: reader.end().cloned(), position: reader.position(), fault }
}

/// Numbers that are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Changes a file in one of several ways, lets something be done, and puts it back.
fn with_damage(
    file: &Path,
    random: &mut Random,
    then: impl FnOnce(&str) -> Result<usize>,
) -> Result<()> {
    let before = fs::read(file)?;
    let mut bytes = before.clone();
    let at = random.below(bytes.len() as u64) as usize;
    let what = match random.below(4) {
        0 => {
            bytes[at] ^= 1 << random.below(8);
            "a bit is flipped"
        }
        1 => {
            bytes[at..].fill(0);
            "the rest is zeros"
        }
        2 => {
            bytes.truncate(at);
            "the file is cut"
        }
        _ => {
            let page = at - at % PAGE as usize;
            bytes.copy_within(..PAGE as usize, page);
            "the first page lies elsewhere again"
        }
    };
    fs::write(file, &bytes)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let outcome = then(&format!("{name} at {at}: {what}"));
    fs::write(file, before)?;
    outcome.map(drop)
}

#[test]
fn known_wal_is_the_same_by_pieces_wherever_it_is_cut_or_changed() {
    let mut random = Random(7);
    for round in 0..6 {
        let wal = Synthetic::new(PAGE + 24);
        let mut writer = wal.writer();
        let written = writer.next_record_lsn();
        // One round has records over whole pages and segments.
        let most = if round == 0 { 3 * SEGMENT / 2 } else { 200 << (2 * round) };
        while writer.next_record_lsn().0 < written.0 + 4 * SEGMENT {
            let len = 26 + random.below(most) as usize;
            writer.append(&Synthetic::record(len)).unwrap();
        }
        let end = writer.next_record_lsn();
        writer.sync().unwrap();
        drop(writer);
        let source = WalSource::along(&wal.wal, Vec::new(), TimelineHistory::without_parents(2));
        let checkpoint = checkpoint_of(&wal);
        let read = Wal { storage: &wal.storage, source, start: wal.checkpoint, checkpoint };
        let plain = read.agree("whole").unwrap();
        assert!(round == 0 || plain > 10, "only {plain} records were read ahead");
        for _ in 0..12 {
            let at = Lsn(written.0 + random.below(end.0 - written.0));
            with_damage(&wal.file(at), &mut random, |what| read.agree(what)).unwrap();
        }
    }
}

fn checkpoint_of(wal: &Synthetic) -> Checkpoint {
    let mut reader = WalReader::at(&wal.storage, &wal.wal, wal.checkpoint);
    let record = reader.next_record().unwrap().unwrap();
    Checkpoint::parse(record.parse().unwrap().main_data, wal.wal.version).unwrap()
}

/// Segments of two pieces each; several sorts of records between many plain ones.
const WORK: &str = "
create table t (id int, v text);
insert into t select i, repeat('v', i % 90) from generate_series(1, 30000) i;
create index on t (id);
do $$ begin for i in 1..3000 loop update t set v = 'w' where id = i; if i % 3 = 0 then rollback; else commit; end if; \
end loop; end $$;
begin; savepoint a; insert into t values (0, 'x'); savepoint b; update t set id = 1 where id = 2; commit;
create table gone as select * from t; drop table gone;
delete from t where id > 20000;
vacuum t;
update t set v = repeat('long', 100);
select pg_switch_wal();
begin; select * from t where id < 100 for share; commit;
insert into t select i, 'after' from generate_series(1, 20000) i";

#[test]
fn wal_of_servers_is_the_same_by_pieces_whole_cut_or_changed() {
    every_version(|install| {
        let options = ClusterOptions {
            initdb_flags: vec!["--wal-segsize=4".into()],
            settings: ["wal_keep_size = 1GB", "max_wal_size = 2GB"].map(str::to_owned).to_vec(),
            ..ClusterOptions::default()
        };
        let mut cluster = TestCluster::create(install, &options)?;
        cluster.psql("postgres", "checkpoint")?;
        let control = ControlFile::parse(&fs::read(control_file(&cluster))?, None)?;
        let args: Vec<&str> = WORK.split(";\n").flat_map(|command| ["-c", command]).collect();
        cluster.psql_bytes("postgres", &args)?;
        cluster.kill()?;
        let directory = WalDirectory::of_cluster(&cluster.data_dir(), &control)?;
        let history = TimelineHistory::without_parents(1);
        let source = WalSource::along(&directory, Vec::new(), history);
        let (start, checkpoint) = (control.checkpoint.redo, control.checkpoint.clone());
        let storage = Storage::real();
        let read = Wal { storage: &storage, source, start, checkpoint };
        let plain = read.agree("whole")?;
        ensure!(plain > 30_000, "only {plain} records were read ahead");
        let end = read.by_records().position;
        let mut random = Random(u64::from(install.major));
        for _ in 0..24 {
            let at = Lsn(start.0 + random.below(end.0 - start.0));
            let segment = SegmentName::of(at, 1, directory.segment_size);
            with_damage(&directory.file_of(segment), &mut random, |what| read.agree(what))?;
        }
        Ok(())
    });
}

fn control_file(cluster: &TestCluster) -> PathBuf {
    cluster.data_dir().join("global/pg_control")
}
