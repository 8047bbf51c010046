//! WAL that is written here, with PostgreSQL as the judge: its own recovery, `pg_waldump` where it is installed
//! and `pg_walinspect` from 16 on.

mod stopped_cluster;

use anyhow::{Context, Result, ensure};
use pagemill_format::control::ClusterState;
use pagemill_format::wal::{
    ExclusiveLock, ImageCompression, Record, RecordBuilder, RunningTransactions, StorageFile,
};
use pagemill_format::{BlockNumber, Fork, Lsn, Oid};
use pagemill_io::Storage;
use pagemill_testkit::PgInstall;
use pagemill_wal::{WalReader, WriterOptions};
use stopped_cluster::{ROWS, Stopped, every_version, waldump};

const NOTHING: WriterOptions = WriterOptions { compression: ImageCompression::Off };

fn with(compression: ImageCompression) -> WriterOptions {
    WriterOptions { compression }
}

/// Blocks 1 to `blocks` of the table, and the commit; returns where WAL then ends.
fn write_blocks(stopped: &Stopped, options: WriterOptions, blocks: u32) -> Result<(Lsn, Lsn)> {
    let mut writer = stopped.writer(options)?;
    let xid = stopped.xid()?;
    let pages: Vec<_> = (1..=blocks)
        .map(|number| Ok((BlockNumber(number), stopped.copied_block(number, xid)?)))
        .collect::<Result<_>>()?;
    let pages: Vec<_> = pages.iter().map(|(block, page)| (*block, &**page)).collect();
    writer.append_images(stopped.locator, Fork::Main, &pages, xid)?;
    writer.append(&stopped.commit().record(xid, stopped.version()))?;
    writer.sync()?;
    stopped.hand_over()?;
    Ok((writer.start_lsn(), writer.position()))
}

#[test]
fn records_behind_a_shutdown_checkpoint_are_replayed_once_the_control_file_says_so() {
    every_version(|install| {
        let mut stopped = Stopped::new(install)?;
        // Over the end of a segment of 1 MiB.
        let (_, end) = write_blocks(&stopped, NOTHING, 300)?;
        stopped.flip()?;
        let before = stopped.log_len();
        stopped.cluster.start()?;
        let log = stopped.log_since(before)?;
        ensure!(log.contains("redo done at"), "no recovery: {log}");
        ensure!(stopped.count()? == 301 * ROWS, "{} rows", stopped.count()?);
        ensure!(stopped.verify()?.is_empty(), "{}", stopped.verify()?);
        let wal = stopped.cluster.psql("postgres", "select pg_current_wal_lsn()")?;
        ensure!(!wal.is_empty() && end > Lsn(0));
        stopped.cluster.stop()
    });
}

#[test]
fn a_server_that_starts_before_the_control_file_is_changed_sees_nothing_and_harms_nothing() {
    every_version(|install| {
        let mut stopped = Stopped::new(install)?;
        write_blocks(&stopped, NOTHING, 300)?;
        stopped.cluster.start()?;
        ensure!(stopped.count()? == ROWS);
        stopped.cluster.psql("postgres", "insert into t values (0, 'one more')")?;
        stopped.cluster.kill()?;
        stopped.cluster.start()?;
        ensure!(stopped.count()? == ROWS + 1);
        ensure!(stopped.verify()?.is_empty());
        stopped.cluster.stop()
    });
}

#[test]
fn images_compressed_by_any_method_are_replayed() {
    every_version(|install| {
        for method in [ImageCompression::Pglz, ImageCompression::Lz4, ImageCompression::Zstd] {
            let mut stopped = Stopped::new(install)?;
            if !method.is_known_to(stopped.version()) || !is_built_with(install, method)? {
                eprintln!("SKIPPED: PostgreSQL {} without {}", install.major, method.name());
                continue;
            }
            write_blocks(&stopped, with(method), 40)?;
            stopped.flip()?;
            stopped.cluster.start().with_context(|| method.name())?;
            ensure!(stopped.count()? == 41 * ROWS, "{}", method.name());
            ensure!(stopped.verify()?.is_empty());
            stopped.cluster.stop()?;
        }
        Ok(())
    });
}

fn is_built_with(install: &PgInstall, method: ImageCompression) -> Result<bool> {
    let option = match method {
        ImageCompression::Lz4 => "with-lz4",
        ImageCompression::Zstd => "with-zstd",
        _ => return Ok(true),
    };
    let program = std::fs::read(install.program("postgres"))?;
    Ok(program.windows(option.len()).any(|bytes| bytes == option.as_bytes()))
}

#[test]
fn after_the_whole_protocol_a_server_starts_without_recovery() {
    every_version(|install| {
        let mut stopped = Stopped::new(install)?;
        let xid = stopped.xid()?;
        let mut page = stopped.copied_block(1, xid)?;
        let mut writer = stopped.writer(NOTHING)?;
        let image = [(BlockNumber(1), &*page)];
        let lsn = writer.append_images(stopped.locator, Fork::Main, &image, xid)?;
        writer.append(&stopped.commit().record(xid, stopped.version()))?;
        writer.sync()?;
        stopped.flip()?;

        page[0..4].copy_from_slice(&((lsn.0 >> 32) as u32).to_le_bytes());
        page[4..8].copy_from_slice(&(lsn.0 as u32).to_le_bytes());
        let checksum = pagemill_format::checksum::page_checksum(&page, BlockNumber(1));
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
        let mut table = std::fs::read(&stopped.table_file)?;
        table.extend_from_slice(&page[..]);
        std::fs::write(&stopped.table_file, &table)?;
        commit_in_log(&stopped, xid.0)?;

        let mut control = stopped.control()?;
        control.checkpoint.next_xid.0 += 1;
        control.checkpoint.redo = writer.next_record_lsn();
        control.checkpoint_location = writer.next_record_lsn();
        let record = RecordBuilder::shutdown_checkpoint(&control.checkpoint, stopped.version());
        writer.append(&record)?;
        writer.sync()?;
        control.state = ClusterState::ShutDown;
        stopped.set_control(&control)?;
        stopped.hand_over()?;

        let before = stopped.log_len();
        stopped.cluster.start()?;
        let log = stopped.log_since(before)?;
        ensure!(!log.contains("redo starts") && !log.contains("recovery"), "recovery: {log}");
        ensure!(stopped.count()? == 2 * ROWS);
        ensure!(stopped.verify()?.is_empty());
        stopped.cluster.psql("postgres", "insert into t values (0, 'one more')")?;
        stopped.cluster.kill()?;
        stopped.cluster.start()?;
        ensure!(stopped.count()? == 2 * ROWS + 1);
        stopped.cluster.stop()
    });
}

/// Marks a transaction as committed in the commit log.
fn commit_in_log(stopped: &Stopped, xid: u32) -> Result<()> {
    let path = stopped.cluster.data_dir().join("pg_xact/0000");
    let mut bytes = std::fs::read(&path)?;
    let byte = bytes.get_mut(xid as usize / 4).context("a page of the commit log")?;
    *byte |= 1 << (2 * (xid % 4));
    Ok(std::fs::write(path, bytes)?)
}

/// Every sort of record that is built here, and what `pg_waldump` calls it.
fn records(stopped: &Stopped) -> Result<Vec<RecordBuilder<'static>>> {
    let (xid, version) = (stopped.xid()?, stopped.version());
    let (database, relation) = (stopped.locator.database, Oid(4_000_000));
    let lock = ExclusiveLock { xid, database, relation };
    let file = StorageFile { locator: stopped.locator, fork: Fork::Vm };
    let none = RunningTransactions::none(xid);
    Ok(vec![
        none.record(),
        RecordBuilder::next_oid(Oid(50_000)),
        file.record(xid),
        ExclusiveLock::record(&[lock]),
        stopped_cluster::full_commit(stopped, relation).record(xid, version),
    ])
}

#[test]
fn every_record_is_read_by_the_servers_own_tools() {
    every_version(|install| {
        let mut stopped = Stopped::new(install)?;
        let wal = stopped.wal()?;
        let mut writer = stopped.writer(NOTHING)?;
        let mut expected = Vec::new();
        for record in records(&stopped)? {
            let lsn = writer.next_record_lsn();
            let end = writer.append(&record)?;
            expected.push((lsn, end));
        }
        let lsn = writer.next_record_lsn();
        let end = writer.append(&RecordBuilder::switch())?;
        expected.push((lsn, end));
        let lsn = writer.next_record_lsn();
        let end = writer.append(&RecordBuilder::next_oid(Oid(60_000)))?;
        expected.push((lsn, end));
        writer.sync()?;
        stopped.hand_over()?;

        let mut reader = WalReader::at(&Storage::real(), &wal, writer.start_lsn());
        let mut read = Vec::new();
        let mut types = Vec::new();
        while let Some(found) = reader.next_record()? {
            read.push((found.lsn, found.end));
            let record: Record<'_> = found.parse()?;
            let name = record.header.resource_manager.record_name(record.header.info, wal.version);
            types.push(name.unwrap_or_default());
        }
        ensure!(read == expected, "{read:?}, {expected:?}");
        let start = expected[0].0.to_string();
        if let Some(text) = waldump(install, &wal.path, &["-s", &start])? {
            let dumped: Vec<&str> = text
                .lines()
                .filter_map(|line| line.split("desc: ").nth(1)?.split(' ').next())
                .collect();
            ensure!(dumped == types, "{text}\n{types:?}");
        }
        stopped.flip()?;
        stopped.cluster.start()?;
        ensure!(stopped.count()? == ROWS);
        if install.major >= 16 {
            let theirs = inspected(&stopped, expected[0].0, writer.position())?;
            let ours: Vec<String> = expected
                .iter()
                .zip(&types)
                .map(|((begin, end), name)| format!("{begin}|{end}|{name}"))
                .collect();
            ensure!(theirs == ours.join("\n"), "{theirs}\n{ours:?}");
        }
        stopped.cluster.stop()
    });
}

/// What `pg_walinspect` says of a stretch of WAL.
fn inspected(stopped: &Stopped, start: Lsn, end: Lsn) -> Result<String> {
    stopped.cluster.psql("postgres", "create extension pg_walinspect")?;
    let sql = format!(
        "select start_lsn, end_lsn, record_type from pg_get_wal_records_info('{start}', '{end}')"
    );
    stopped.cluster.psql("postgres", &sql)
}

#[test]
fn the_servers_tools_read_images_of_every_method_to_the_last_byte() {
    every_version(|install| {
        if !install.program("pg_waldump").exists() {
            return Ok(());
        }
        for method in [ImageCompression::Off, ImageCompression::Pglz, ImageCompression::Zstd] {
            if !method.is_known_to(pagemill_format::PgVersion::from_major(install.major).unwrap()) {
                continue;
            }
            let stopped = Stopped::new(install)?;
            let (start, end) = write_blocks(&stopped, with(method), 100)?;
            let directory = stopped.wal()?.path;
            let args = ["-s", &start.to_string(), "-e", &end.to_string(), "-b"];
            let Some(text) = waldump(install, &directory, &args)? else { return Ok(()) };
            let images = text.lines().filter(|line| line.contains("(FPW); hole: offset")).count();
            ensure!(images == 100, "{images} images: {text}");
            ensure!(text.contains("desc: COMMIT"), "{text}");
            let wanted = format!("method: {}", method.name());
            let compressed = text.lines().filter(|line| line.contains(&wanted)).count();
            ensure!(method == ImageCompression::Off || compressed == 100, "{text}");
        }
        Ok(())
    });
}
