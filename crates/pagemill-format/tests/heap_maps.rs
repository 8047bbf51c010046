//! Free-space and visibility maps built here, read by servers: their extensions print the maps, and
//! what `VACUUM` and `COPY … FREEZE` wrote is compared byte for byte.

mod server_tables;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_format::free_space_map_builder::{FreeSpaceMapBuilder, category};
use pagemill_format::page_builder::{PageBuilder, set_checksum};
use pagemill_format::visibility_map_builder::{Promise, map_blocks, set_visible};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};

use server_tables::blocks;

const TABLES: &str = "
CREATE EXTENSION pg_freespacemap;
CREATE EXTENSION pg_visibility;
CREATE TABLE sparse (id int);
INSERT INTO sparse VALUES (1);
CREATE TABLE vacuumed (id int, v text);
INSERT INTO vacuumed SELECT i, repeat('x', i * 7 % 900) FROM generate_series(1, 3000) i;
DELETE FROM vacuumed WHERE id * 7919 % 5 < 2 OR id BETWEEN 500 AND 700;
VACUUM vacuumed
";

/// Blocks that a table is made to have, most of them a hole in the file.
const SPARSE_BLOCKS: u32 = 35_000;

fn sparse_category(block: u32) -> u8 {
    (block.wrapping_mul(2_654_435_761) >> 24) as u8 / 2
}

fn free_space_map(categories: impl Iterator<Item = u8>) -> Result<Vec<BlockBytes>> {
    let mut pages = Vec::new();
    let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<(), Error> {
        pages.resize(pages.len().max(block.0 as usize + 1), [0; BLOCK_SIZE]);
        pages[block.0 as usize] = *page;
        Ok(())
    };
    let mut builder = FreeSpaceMapBuilder::new();
    for category in categories {
        builder.add(category, &mut sink)?;
    }
    builder.finish(&mut sink)?;
    Ok(pages)
}

fn visibility_map(frozen: std::ops::Range<u32>) -> Vec<BlockBytes> {
    let page = |block| {
        let mut page = [0; BLOCK_SIZE];
        set_visible(&mut page, BlockNumber(block), frozen.clone(), Promise::AllFrozen);
        page
    };
    map_blocks(frozen.clone()).map(page).collect()
}

fn write(file: &Path, mut pages: Vec<BlockBytes>) -> Result<()> {
    for (page, block) in pages.iter_mut().zip(0..) {
        set_checksum(page, BlockNumber(block));
    }
    fs::write(file, pages.as_flattened()).context("writing a map")
}

fn fork(cluster: &TestCluster, table: &str, fork: &str) -> Result<PathBuf> {
    let path = cluster.psql("postgres", &format!("SELECT pg_relation_filepath('{table}')"))?;
    Ok(cluster.data_dir().join(format!("{path}{fork}")))
}

/// Apart from LSN, checksum, and where the next search begins.
fn assert_same(theirs: &[BlockBytes], ours: &[BlockBytes]) -> Result<()> {
    ensure!(theirs.len() == ours.len(), "{} pages, the server has {}", ours.len(), theirs.len());
    for (number, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
        let differs =
            (10..BLOCK_SIZE).find(|at| !(24..28).contains(at) && theirs[*at] != ours[*at]);
        ensure!(differs.is_none(), "page {number}, byte {differs:?}");
    }
    Ok(())
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    for statement in TABLES.split(";\n") {
        cluster.psql("postgres", statement)?;
    }
    let file = cluster.root().join("rows.copy").display().to_string();
    let copy = format!(
        "BEGIN; COPY (SELECT i FROM generate_series(1, 9000) i) TO '{file}'; \
         CREATE TABLE frozen (id int); COPY frozen FROM '{file}' (FREEZE); COMMIT"
    );
    cluster.psql("postgres", &copy)?;
    let main = |table| fork(&cluster, table, "");
    let (sparse, vacuumed, frozen) = (main("sparse")?, main("vacuumed")?, main("frozen")?);
    let beside = |file: &Path, fork: &str| PathBuf::from(format!("{}{fork}", file.display()));
    cluster.stop()?;

    let free = |page: &BlockBytes| -> Result<u8> {
        Ok(category(PageBuilder::resume(&mut page.clone())?.heap_free_space()))
    };
    let categories = blocks(&vacuumed)?.iter().map(free).collect::<Result<Vec<_>>>()?;
    ensure!(categories.iter().any(|category| *category > 100));
    assert_same(&blocks(&beside(&vacuumed, "_fsm"))?, &free_space_map(categories.into_iter())?)
        .context("free-space map")?;
    let frozen_blocks = 0..blocks(&frozen)?.len() as u32;
    assert_same(&blocks(&beside(&frozen, "_vm"))?, &visibility_map(frozen_blocks))
        .context("visibility map")?;

    let bytes = u64::from(SPARSE_BLOCKS) * BLOCK_SIZE as u64;
    File::options().write(true).open(&sparse)?.set_len(bytes)?;
    write(&beside(&sparse, "_fsm"), free_space_map((0..SPARSE_BLOCKS).map(sparse_category))?)?;
    write(&beside(&sparse, "_vm"), visibility_map(5..34_000))?;
    // Both belong to whoever the server runs as.
    for fork in ["_fsm", "_vm"] {
        cluster.account().own(&beside(&sparse, fork))?;
    }
    cluster.start()?;
    let found =
        cluster.psql("postgres", "SELECT avail FROM pg_freespace('sparse') ORDER BY blkno")?;
    let expected: Vec<String> = (0..SPARSE_BLOCKS)
        .map(|block| (u32::from(sparse_category(block)) * 32).to_string())
        .collect();
    ensure!(found == expected.join("\n"), "pg_freespace");
    let summary = cluster.psql(
        "postgres",
        "SELECT count(*), min(blkno), max(blkno) FROM pg_visibility_map('sparse') \
         WHERE all_visible AND all_frozen",
    )?;
    ensure!(summary == "33995|5|33999", "{summary}");
    cluster.psql("postgres", "INSERT INTO sparse SELECT generate_series(1, 5000)")?;
    cluster.stop()
}

#[test]
fn maps_built_here_are_the_servers_and_servers_use_them() {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}
