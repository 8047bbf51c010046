//! The devices checked against themselves: they are what they are called, as slow as they were asked to be, and gone
//! afterwards. Each test says loudly that it is skipped where the machine cannot.
//!
//! Times are only held against a lower bound: a busy machine is slower than the limit, never faster.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagemill_testkit::devices::or_skip;
use pagemill_testkit::page_cache::{drop_files, read_files, residency};
use pagemill_testkit::{ControlGroup, FileSystem, ReadLimit, Unavailable, Volume};

const MIB: u64 = 1 << 20;

/// Of each device; mkfs.xfs wants no less.
const DEVICE_BYTES: u64 = 320 * MIB;

/// The first moments after a pause are not limited.
const FREE_SHARE: f64 = 0.75;

fn volume(kind: FileSystem) -> Option<Volume> {
    // Beside the build, since the temporary directory may be memory.
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    or_skip(kind.name(), Volume::create(kind, dir, DEVICE_BYTES)).unwrap()
}

fn limited(volume: &Volume, limit: ReadLimit) -> Option<ControlGroup> {
    let group = || -> Result<ControlGroup, Unavailable> {
        let mut group = ControlGroup::create()?;
        for device in volume.devices() {
            group.limit_reads(device, limit)?;
        }
        Ok(group)
    };
    or_skip("a limit on reads", group()).unwrap()
}

/// A file whose blocks are all different, so that no file system stores them once.
fn file_of(volume: &Volume, mib: u64) -> PathBuf {
    let path = volume.path().join("file");
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let bytes: Vec<u8> = (0..mib * MIB / 8).flat_map(|_| next().to_le_bytes()).collect();
    std::fs::write(&path, bytes).unwrap();
    drop_files(&[&path]).unwrap();
    path
}

fn dd(group: &ControlGroup, file: &Path, more: &[&str]) -> Duration {
    let start = Instant::now();
    let mut dd = group.command("dd");
    dd.arg(format!("if={}", file.display())).args(["of=/dev/null", "status=none"]).args(more);
    assert!(dd.status().unwrap().success());
    start.elapsed()
}

#[test]
fn every_file_system_gives_back_what_was_written_and_leaves_nothing_behind() {
    for kind in FileSystem::ALL {
        let Some(volume) = volume(kind) else { continue };
        let (mount, device) = (volume.path().to_owned(), volume.devices()[0].path().to_owned());
        let file = file_of(&volume, 2);
        let before = volume.devices().iter().map(|d| d.bytes_read().unwrap()).sum::<u64>();
        assert_eq!(std::fs::read(&file).unwrap().len() as u64, 2 * MIB);
        let after = volume.devices().iter().map(|d| d.bytes_read().unwrap()).sum::<u64>();
        assert!(after > before, "{}: a dropped file was not read again", kind.name());
        assert!(volume.read_ahead_kb().unwrap() > 0, "{}", kind.name());
        drop(volume);
        assert!(!mount.exists(), "{}", mount.display());
        check_detached(&device, mount.parent().unwrap());
    }
}

/// A device that is told to go goes when the last who looks at it closes it: with tests beside this one, maybe a moment later.
fn check_detached(device: &Path, directory: &Path) {
    let image = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file");
    let start = Instant::now();
    loop {
        let image = std::fs::read_to_string(&image).unwrap_or_default();
        if !image.contains(directory.to_str().unwrap()) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "still attached: {image}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_device_limited_in_bytes_is_no_faster_however_it_is_read() {
    let Some(volume) = volume(FileSystem::Ext4) else { return };
    let Some(group) = limited(&volume, ReadLimit::BytesPerSecond(20 * MIB)) else { return };
    let file = file_of(&volume, 20);
    for how in [["bs=1M", "iflag=fullblock"], ["bs=8k", "iflag=direct"]] {
        drop_files(&[&file]).unwrap();
        let took = dd(&group, &file, &how);
        assert!(took.as_secs_f64() > FREE_SHARE, "20 MiB at 20 MiB/s took {took:?} ({how:?})");
    }
}

#[test]
fn a_device_limited_in_reads_is_no_faster() {
    let Some(volume) = volume(FileSystem::Xfs) else { return };
    let Some(group) = limited(&volume, ReadLimit::ReadsPerSecond(1000)) else { return };
    let file = file_of(&volume, 8);
    let took = dd(&group, &file, &["bs=8k", "iflag=direct"]);
    assert!(took.as_secs_f64() > FREE_SHARE, "1024 reads at 1000 a second took {took:?}");
}

/// btrfs chooses the mirror by the number of the reading thread, so each single reader keeps to one device, and
/// several, among them even and odd ones, reach both.
#[test]
fn each_disk_of_a_mirror_has_a_limit_of_its_own() {
    let Some(volume) = volume(FileSystem::BtrfsRaid1) else { return };
    let Some(group) = limited(&volume, ReadLimit::BytesPerSecond(20 * MIB)) else { return };
    let file = file_of(&volume, 64);
    let read = |volume: &Volume| -> Vec<u64> {
        volume.devices().iter().map(|device| device.bytes_read().unwrap()).collect()
    };
    let before = read(&volume);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for part in 0..16 {
            let (group, file) = (&group, &file);
            scope.spawn(move || {
                dd(group, file, &["bs=1M", "count=4", &format!("skip={}", part * 4)]);
            });
        }
    });
    let took = start.elapsed().as_secs_f64();
    let each: Vec<u64> = read(&volume).iter().zip(before).map(|(after, b)| after - b).collect();
    assert!(each.iter().all(|bytes| *bytes > 4 * MIB), "one disk idled: {each:?}");
    let busiest = *each.iter().max().unwrap() as f64 / (20 * MIB) as f64;
    assert!(took > FREE_SHARE * busiest, "{each:?} bytes in {took} s");
}

#[test]
fn a_group_with_little_memory_cannot_keep_a_larger_file_cached() {
    let Some(volume) = volume(FileSystem::Ext4) else { return };
    let group = || -> Result<ControlGroup, Unavailable> {
        let mut group = ControlGroup::create()?;
        group.limit_memory(16 * MIB)?;
        Ok(group)
    };
    let Some(group) = or_skip("a limit on memory", group()).unwrap() else { return };
    let file = file_of(&volume, 64);
    dd(&group, &file, &["bs=1M"]);
    let cached = residency(&[&file]).unwrap().resident_bytes;
    assert!(cached < 20 * MIB, "{cached} bytes cached");
}

/// Needs no device, only a file system that is no memory: the build's own.
#[test]
fn a_dropped_file_is_out_of_the_page_cache_and_a_read_one_is_in() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, vec![1; 300_000]).unwrap();
    drop_files(&[&file]).unwrap();
    assert_eq!(residency(&[&file]).unwrap().resident_bytes, 0);
    read_files(&[&file]).unwrap();
    assert_eq!(residency(&[&file]).unwrap().resident_bytes, 300_000);
}
