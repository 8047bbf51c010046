//! WAL that servers wrote: every record of a work load is read, and the images in it are the pages that the
//! server's own tool restores from them, where there is one (`pg_walinspect`, from 16 on).

#[path = "busy_cluster/mod.rs"]
mod busy_cluster;
#[expect(dead_code, reason = "shared with the tests of what is written")]
mod stopped_cluster;

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use pagemill_format::control::ControlFile;
use pagemill_format::wal::ImageCompression;
use pagemill_format::{BLOCK_SIZE, Lsn};
use pagemill_io::Storage;
use pagemill_wal::{WalDirectory, WalReader, record_description};

use busy_cluster::Busy;
use stopped_cluster::every_version;

/// CRC-32C of each image's page, by the record's place and the number of the block reference.
type Images = HashMap<(u64, u8), u32>;

/// The images of a stretch of WAL, and by which methods they were compressed.
fn images(busy: &Busy, start: Lsn, end: Lsn) -> Result<(Images, Vec<ImageCompression>)> {
    let data = busy.cluster.data_dir();
    let control = ControlFile::parse(&std::fs::read(data.join("global/pg_control"))?, None)?;
    let directory = WalDirectory::of_cluster(&data, &control)?;
    let mut reader = WalReader::from(&Storage::real(), &directory, start)?;
    let (mut images, mut methods) = (Images::new(), Vec::new());
    let (mut page, mut scratch) = ([0; BLOCK_SIZE], Vec::new());
    while let Some(found) = reader.next_record()?.filter(|found| found.lsn < end) {
        let record = found.parse()?;
        record_description(&record, directory.version)
            .with_context(|| format!("at {}", found.lsn))?;
        for block in &record.blocks {
            let Some(image) = block.image else { continue };
            image.restore(&mut page, &mut scratch)?;
            images.insert((found.lsn.0, block.id), crc32c::crc32c(&page));
            if !methods.contains(&image.compression) {
                methods.push(image.compression);
            }
        }
    }
    Ok((images, methods))
}

fn lsn(text: &str) -> Result<Lsn> {
    let (high, low) = text.split_once('/').context("an LSN")?;
    Ok(Lsn(u64::from_str_radix(high, 16)? << 32 | u64::from_str_radix(low, 16)?))
}

#[test]
fn images_are_the_pages_that_the_server_restores() {
    every_version(|install| {
        let mut busy = Busy::new(install)?;
        let (images, methods) = images(&busy, lsn(&busy.start)?, lsn(&busy.end)?)?;
        ensure!(images.len() > 200, "only {} images", images.len());
        ensure!(methods.contains(&ImageCompression::Pglz), "{methods:?}");
        if install.major == 15 {
            ensure!(methods.len() == 4, "{methods:?}");
        }
        if install.major < 16 {
            return Ok(());
        }
        busy.cluster.start()?;
        busy.cluster.psql("postgres", "create extension pg_walinspect")?;
        let sql = format!(
            "select start_lsn, block_id, encode(block_fpi_data, 'hex') \
             from pg_get_wal_block_info('{}', '{}') where block_fpi_data is not null",
            busy.start, busy.end
        );
        let told = busy.cluster.psql("postgres", &sql)?;
        busy.cluster.stop()?;
        let mut theirs = Images::new();
        for line in told.lines() {
            let fields: Vec<&str> = line.split('|').collect();
            let digits = fields[2].as_bytes().chunks(2);
            let page: Vec<u8> = digits
                .map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?))
                .collect::<Result<_>>()?;
            theirs.insert((lsn(fields[0])?.0, fields[1].parse()?), crc32c::crc32c(&page));
        }
        ensure!(theirs == images, "{} images, {} expected", images.len(), theirs.len());
        Ok(())
    });
}
