//! Copies on file systems of their own: one that is too small, and ones whose files share blocks.
//!
//! They need loop devices, and are skipped, loudly, where there are none.

use anyhow::{Result, ensure};
use pagemill_testkit::TestCluster;
use pagemill_testkit::devices::{FileSystem, Volume, or_skip};
use pagemill_testkit::prepared::{empty_cluster, scratch_dir};

use crate::fixture::{SHOP, check, contents, done, pagemill, required, rich, snapshot};

const MIB: u64 = 1 << 20;

/// A volume, with a tablespace `on_volume` in it.
fn with_volume(cluster: &mut TestCluster, volume: &Volume) -> Result<()> {
    let location = volume.path().join("space");
    cluster.account().create_dir(&location)?;
    // The owner of the server has to come through to it.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(volume.path(), mode)?;
    cluster.start()?;
    let made = format!("CREATE TABLESPACE on_volume LOCATION '{}'", location.display());
    cluster.psql("postgres", &made)?;
    cluster.stop()
}

fn volume(kind: FileSystem, mib: u64) -> Option<Volume> {
    let made = Volume::create(kind, &scratch_dir().unwrap(), mib * MIB);
    or_skip(&format!("a clone on {kind:?}"), made).unwrap()
}

#[test]
fn too_little_space_is_told_before_anything_is_done() {
    let Some(volume) = volume(FileSystem::Ext4, 12) else { return };
    let mut cluster = empty_cluster(&required()).unwrap();
    with_volume(&mut cluster, &volume).unwrap();
    // Something is there, but not the 7 MiB of a database.
    std::fs::write(volume.path().join("ballast"), vec![7; 6 << 20]).unwrap();
    for strategy in ["wal_log", "file_copy"] {
        let how = ["clone", "--strategy", strategy, "--tablespace", "on_volume"];
        for dry in [&[][..], &["--dry-run"]] {
            let before = snapshot(&cluster).unwrap();
            let arguments = [&how[..], dry, &["template1", "new"]].concat();
            let output = pagemill().run(&cluster.data_dir(), &arguments).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{strategy} was done");
            assert!(said.contains("needs") && said.contains("make room"), "{said}");
            assert!(snapshot(&cluster).unwrap() == before, "something has changed");
        }
    }
    // What a run that was cut off has left there counts as room.
    std::fs::remove_file(volume.path().join("ballast")).unwrap();
    let space =
        std::fs::read_dir(cluster.data_dir().join("pg_tblspc")).unwrap().next().unwrap().unwrap();
    let version = std::fs::read_dir(space.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir(version.join("77777")).unwrap();
    std::fs::write(version.join("77777/16384"), vec![7; 6 << 20]).unwrap();
    let number = space.file_name().to_string_lossy().into_owned();
    let list = format!("relation files of a change that was not finished\n{number} 77777\n");
    std::fs::write(cluster.data_dir().join("pagemill.pending"), list).unwrap();
    done(&cluster, &["clone", "--tablespace", "on_volume", "template1", "new"]).unwrap();
    assert!(!version.join("77777").exists());
    cluster.start().unwrap();
    cluster.psql("new", "CREATE TABLE t (a int)").unwrap();
}

fn share(cluster: &TestCluster, volume: &Volume) -> Result<()> {
    let root = volume.path().join("cluster");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(volume.path(), mode)?;
    let mut cluster = cluster.copy_to(&root)?;
    let said = done(&cluster, &["clone", "--verbose", SHOP, "shared"])?;
    ensure!(said.contains("by reflink") && said.contains("bytes shared"), "{said}");
    let shared = said.split(" bytes shared").next().and_then(|text| text.rsplit(' ').next());
    let shared: u64 = shared.unwrap_or_default().parse()?;
    ensure!(shared > 8 * MIB, "{said}");
    done(&cluster, &["clone", "--strategy", "reflink", "placed", "placed_shared"])?;
    done(&cluster, &["clone", "--strategy", "file_copy", SHOP, "copied"])?;
    cluster.start()?;
    for (source, copy) in [(SHOP, "shared"), ("placed", "placed_shared"), (SHOP, "copied")] {
        ensure!(contents(&cluster, copy)? == contents(&cluster, source)?, "{copy}");
    }
    let before = contents(&cluster, SHOP)?;
    cluster.psql("shared", "UPDATE things SET b = 'changed'; DELETE FROM wide")?;
    check(&cluster, "shared")?;
    ensure!(contents(&cluster, SHOP)? == before, "work in the copy has changed the source");
    cluster.stop()
}

#[test]
fn files_that_share_blocks_are_a_database_of_its_own() {
    let volumes = [FileSystem::Xfs, FileSystem::Btrfs].map(|kind| volume(kind, 400));
    if volumes.iter().all(Option::is_none) {
        return;
    }
    let cluster = rich(&required(), &[]).unwrap();
    for volume in volumes.iter().flatten() {
        share(&cluster, volume).unwrap();
    }
}
