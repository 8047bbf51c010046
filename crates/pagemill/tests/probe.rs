//! What `probe` says of directories on different file systems, and of those it cannot write to or find.
//!
//! Nothing here needs PostgreSQL. File systems on loop devices are made by root alone; where they cannot
//! be, the test says SKIPPED and why.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Size in bytes of a file system that is made: mkfs.xfs wants 300 MiB.
const IMAGE_BYTES: u64 = 320 << 20;

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

fn probe(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.arg("probe").args(words).env_remove("PGDATA");
    command
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(directory: &Path) -> Value {
    serde_json::from_str(&succeed(probe(&["--json"]).arg(directory))).unwrap()
}

fn state<'a>(report: &'a Value, call: &str) -> &'a str {
    let groups = report["calls"].as_object().unwrap();
    let found = groups.values().find_map(|group| group.get(call));
    found.unwrap_or_else(|| panic!("{call} is not in {report:#}"))["state"].as_str().unwrap()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}

/// A file in a directory that was not there before must not be there after.
fn assert_empty(directory: &Path) {
    let left: Vec<_> = std::fs::read_dir(directory).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_text_tells_place_calls_and_limits_and_nothing_stays_behind() {
    let dir = tempfile::tempdir().unwrap();
    let text = succeed(probe(&[]).arg(dir.path()));
    for part in ["Directory: ", "File system: ", "\nReading\n", "\n  pread ", "\nRLIMIT_NOFILE: "] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    let column = |label: &str| {
        let line = text.lines().find(|line| line.starts_with(label)).unwrap();
        line.trim_end().len() - line.get(label.len()..).unwrap().trim_start().len()
    };
    assert_eq!(column("  pread "), column("  cachestat "), "{text}");
    assert_empty(dir.path());
}

#[test]
fn json_has_a_state_and_a_detail_for_every_call() {
    let dir = tempfile::tempdir().unwrap();
    let report = json_of(dir.path());
    assert_eq!(report["directory"].as_str(), dir.path().to_str());
    assert_eq!(report["tried_on"]["kind"], "own_file");
    let states = ["works", "accepted", "no_effect", "emulated", "missing", "untried"];
    for (group, calls) in report["calls"].as_object().unwrap() {
        for (call, found) in calls.as_object().unwrap() {
            let state = found["state"].as_str().unwrap();
            assert!(states.contains(&state), "{group}.{call}: {found}");
            assert!(found["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{found}");
        }
    }
    assert_eq!(state(&report, "pread"), "works");
    assert_eq!(state(&report, "preadv"), "works");
    assert!(report["limits"]["rlimit_nofile_soft"].is_u64());
    assert!(report["place"]["mirrors"].as_u64().is_some_and(|mirrors| mirrors >= 1));
    assert_empty(dir.path());
}

#[test]
fn the_directory_is_the_named_one_or_the_data_directory_or_the_current_one() {
    let [named, data, current] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let told = |command: &mut Command| {
        let text = succeed(command.arg("--json").current_dir(current.path()));
        let report: Value = serde_json::from_str(&text).unwrap();
        PathBuf::from(report["directory"].as_str().unwrap())
    };
    let resolved = |path: PathBuf| path.canonicalize().unwrap();
    let expected = |dir: &TempDir| dir.path().canonicalize().unwrap();
    assert_eq!(resolved(told(&mut probe(&[]))), expected(&current));
    assert_eq!(resolved(told(probe(&["-D"]).arg(data.path()))), expected(&data));
    assert_eq!(resolved(told(probe(&[]).env("PGDATA", data.path()))), expected(&data));
    assert_eq!(resolved(told(probe(&[]).env("PGDATA", ""))), expected(&current));
    let both = told(probe(&[]).env("PGDATA", data.path()).arg(named.path()));
    assert_eq!(resolved(both), expected(&named));
}

#[test]
fn what_is_absent_or_no_directory_ends_with_status_1_and_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for (path, message) in
        [(dir.path().join("absent"), "no such directory"), (file, "not a directory")]
    {
        let output = probe(&[]).arg(&path).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
        assert!(said.starts_with("pagemill: ") && said.contains(message), "{said}");
        assert!(said.contains(path.to_str().unwrap()), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

fn set_mode(directory: &Path, mode: u32) {
    std::fs::set_permissions(directory, PermissionsExt::from_mode(mode)).unwrap();
}

/// A directory whose mode forbids writing, and how to run a program to which that matters.
fn read_only(directory: &Path) -> Option<Command> {
    set_mode(directory, 0o555);
    let mut command = probe(&["--json"]);
    command.arg(directory);
    if !is_root() {
        return Some(command);
    }
    let runs = |command: &mut Command| {
        command.uid(NOBODY).gid(NOBODY).output().is_ok_and(|output| output.status.success())
    };
    if runs(Command::new(env!("CARGO_BIN_EXE_pagemill")).arg("--version")) {
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        return Some(command);
    }
    println!("SKIPPED: root may write everywhere, and nobody else can run the program");
    None
}

#[test]
fn in_a_read_only_directory_an_existing_file_is_read_and_the_rest_is_untried() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("16384");
    std::fs::write(&file, vec![5; 64 * 1024]).unwrap();
    let Some(mut command) = read_only(dir.path()) else { return };
    let report: Value = serde_json::from_str(&succeed(&mut command)).unwrap();
    // So that it can be removed with what is in it.
    set_mode(dir.path(), 0o755);
    assert_eq!(report["tried_on"]["kind"], "existing_file");
    assert_eq!(report["tried_on"]["path"].as_str(), file.to_str());
    assert!(report["tried_on"]["why"].as_str().unwrap().contains("ermission"), "{report}");
    assert_eq!(state(&report, "pread"), "works");
    for call in ["fadvise_dontneed", "fallocate", "copy_file_range", "ficlone"] {
        assert_eq!(state(&report, call), "untried", "{call}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), vec![5; 64 * 1024]);
}

#[test]
fn in_an_empty_read_only_directory_the_place_is_told_and_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut command) = read_only(dir.path()) else { return };
    let report: Value = serde_json::from_str(&succeed(&mut command)).unwrap();
    // So that it can be removed with what is in it.
    set_mode(dir.path(), 0o755);
    assert_eq!(report["tried_on"]["kind"], "nothing");
    assert_eq!(report["calls"].as_object().unwrap().len(), 0);
    assert!(report["place"]["file_system"].is_string());
}

#[test]
fn on_tmpfs_there_is_no_device_and_the_cache_cannot_be_passed_by() {
    let is_tmpfs = |path: &Path| {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        table
            .lines()
            .any(|line| line.contains(" - tmpfs ") && line.split(' ').nth(4) == path.to_str())
    };
    let shm = Path::new("/dev/shm");
    let Some(dir) = is_tmpfs(shm).then(|| tempfile::tempdir_in(shm).ok()).flatten() else {
        println!("SKIPPED: /dev/shm is no tmpfs that can be written to");
        return;
    };
    let report = json_of(dir.path());
    assert_eq!(report["place"]["file_system"], "tmpfs");
    assert_eq!(report["place"]["devices"].as_array().unwrap().len(), 0);
    assert_eq!(report["place"]["mirrors"], 1);
    assert!(report["place"]["note"].as_str().unwrap().contains("memory"));
    assert_eq!(state(&report, "fadvise_dontneed"), "no_effect");
    assert_ne!(state(&report, "o_direct"), "works");
    assert_empty(dir.path());
}

/// A mount, undone at the end.
struct Mounted(PathBuf);

impl Mounted {
    /// Makes the directory `place` and mounts there what `words` say.
    fn at(place: PathBuf, words: &[&str]) -> Result<Self, String> {
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        tool("mount", &[words, &[place.to_str().unwrap()]].concat())?;
        Ok(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(why) = tool("umount", &[self.0.to_str().unwrap()]) {
            println!("{} stays mounted: {why}", self.0.display());
        }
    }
}

/// A file system on files, unmounted and taken apart at the end.
struct LoopedFileSystem {
    dir: TempDir,
    devices: Vec<String>,
    mounted: Option<Mounted>,
}

impl LoopedFileSystem {
    /// Makes one with this program on so many devices, or says why not.
    fn make(mkfs: &[&str], count: usize) -> Option<Self> {
        let made = Self::try_make(mkfs, count);
        made.map_err(|why| println!("SKIPPED: no {} on loop devices: {why}", mkfs[0])).ok()
    }

    fn try_make(mkfs: &[&str], count: usize) -> Result<Self, String> {
        if !is_root() {
            return Err("that takes root".into());
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut made = Self { dir, devices: Vec::new(), mounted: None };
        for number in 0..count {
            let image = made.dir.path().join(format!("image{number}"));
            let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
            file.set_len(IMAGE_BYTES).map_err(|error| error.to_string())?;
            let device = tool("losetup", &["--find", "--show", image.to_str().unwrap()])?;
            made.devices.push(device.trim().to_owned());
        }
        let devices: Vec<&str> = made.devices.iter().map(String::as_str).collect();
        tool(mkfs[0], &[&mkfs[1..], &devices].concat())?;
        made.mounted = Some(Mounted::at(made.place(), &devices[..1])?);
        Ok(made)
    }

    fn place(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }
}

impl Drop for LoopedFileSystem {
    fn drop(&mut self) {
        self.mounted = None;
        for device in &self.devices {
            if let Err(why) = tool("losetup", &["--detach", device]) {
                println!("{device} stays behind: {why}");
            }
        }
    }
}

fn tool(name: &str, words: &[&str]) -> Result<String, String> {
    let output =
        Command::new(name).args(words).output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn device_names(report: &Value) -> Vec<String> {
    let devices = report["place"]["devices"].as_array().unwrap();
    devices.iter().map(|device| format!("/dev/{}", device["name"].as_str().unwrap())).collect()
}

#[test]
fn btrfs_raid1_on_two_loop_devices_is_a_mirror_of_two_and_shares_blocks() {
    let mkfs = ["mkfs.btrfs", "--quiet", "--data", "raid1", "--metadata", "raid1"];
    let Some(made) = LoopedFileSystem::make(&mkfs, 2) else { return };
    let report = json_of(&made.place());
    let place = &report["place"];
    assert_eq!(place["file_system"], "btrfs");
    assert_eq!((&place["mirrors"], &place["data_profiles"][0]), (&2.into(), &"raid1".into()));
    let mut devices = made.devices.clone();
    devices.sort();
    assert_eq!(device_names(&report), devices);
    let image = place["devices"][0]["backing_file"].as_str().unwrap();
    assert!(image.contains("/image"), "{image}");
    assert_eq!(state(&report, "ficlone"), "works");
    // Pages being fetched by one trial stay in the cache, and are waited for before the next.
    for call in ["fadvise_willneed", "readahead", "madvise_willneed"] {
        assert_ne!(state(&report, call), "accepted", "{report:#}");
    }
    let text = succeed(probe(&[]).arg(made.place()));
    assert!(text.contains("each block on 2 devices, data profile raid1"), "{text}");
    println!("{text}");
}

#[test]
fn xfs_on_a_loop_device_tells_its_file_its_alignment_and_shares_blocks() {
    let mkfs = ["mkfs.xfs", "-q", "-m", "reflink=1"];
    let Some(made) = LoopedFileSystem::make(&mkfs, 1) else { return };
    let report = json_of(&made.place());
    assert_eq!(report["place"]["file_system"], "xfs");
    assert_eq!(report["place"]["mirrors"], 1);
    assert_eq!(device_names(&report), made.devices);
    assert_eq!(report["place"]["devices"][0]["kind"], "loop");
    assert_eq!(state(&report, "ficlone"), "works");
    assert_eq!(state(&report, "fallocate"), "works");
    let alignments = &report["calls"]["direct"]["statx_dioalign"];
    if alignments["state"] == "works" {
        assert!(alignments["offset_alignment_bytes"].as_u64().unwrap() >= 512, "{alignments}");
    }
    println!("{}", succeed(probe(&[]).arg(made.place())));
}

/// On overlayfs, cachestat of Linux 6.18 sees no page at all. The effect of advice was first judged by it, so
/// that in every container no advice seemed to have any.
#[test]
fn on_overlayfs_advice_has_the_effect_it_has_on_the_layer_below() {
    let dir = tempfile::tempdir().unwrap();
    let layer = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let [lower, upper, work] = ["lower", "upper", "work"].map(layer);
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let words = ["-t", "overlay", "overlay", "-o", &layers];
    let mounted = match is_root().then(|| Mounted::at(dir.path().join("merged"), &words)) {
        Some(Ok(mounted)) => mounted,
        Some(Err(why)) => return println!("SKIPPED: no overlayfs: {why}"),
        None => return println!("SKIPPED: mounting an overlayfs takes root"),
    };
    let (merged, below) = (json_of(&mounted.0), json_of(&upper));
    assert_eq!(merged["place"]["file_system"], "overlay");
    assert!(merged["place"]["note"].is_string());
    for call in ["fadvise_dontneed", "fadvise_willneed", "readahead", "mincore"] {
        assert_eq!(state(&merged, call), state(&below, call), "{call}: {merged:#}");
    }
    assert_empty(&upper);
}
