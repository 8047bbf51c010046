//! `ci/keep-times.sh`: which files of a checkout are as old as they were in the one before, and which are new.
//!
//! A file that is older than what was made of another content would have tests run what was built before the change.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use pagemill_testkit::in_checkout;
use tempfile::TempDir;

/// A checkout beside the record of it.
struct Checkout {
    directory: TempDir,
}

impl Checkout {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("sources")).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("sources").join(name)
    }

    /// Another directory at the same path, as a clone is; the one before is gone only once it stands there, so that it is no
    /// directory of the same number.
    fn made_again(&self) {
        let root = self.directory.path();
        fs::create_dir(root.join("next")).unwrap();
        fs::rename(root.join("sources"), root.join("before")).unwrap();
        fs::rename(root.join("next"), root.join("sources")).unwrap();
        fs::remove_dir_all(root.join("before")).unwrap();
    }

    /// Writes a file that is as old as said.
    fn write(&self, name: &str, content: &str, hours: u64) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let time = SystemTime::now() - Duration::from_secs(3600 * hours);
        File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    fn time(&self, name: &str) -> SystemTime {
        fs::metadata(self.path(name)).unwrap().modified().unwrap()
    }

    /// As old as this test at most.
    fn is_new(&self, name: &str) -> bool {
        self.time(name).elapsed().unwrap_or_default() < Duration::from_secs(1800)
    }

    fn record(&self) -> PathBuf {
        self.directory.path().join("kept/record")
    }

    fn keep_times(&self) {
        assert!(self.kept_times("/usr/bin:/bin"));
    }

    /// With the programs that these directories have; true if it came to its end.
    fn kept_times(&self, path: &str) -> bool {
        self.recorded(&self.record(), path)
    }

    fn recorded(&self, record: &Path, path: &str) -> bool {
        let mut command = Command::new("/bin/sh");
        command.arg(in_checkout("ci/keep-times.sh")).arg(record).env("PATH", path);
        command.current_dir(self.path("")).status().unwrap().success()
    }
}

#[test]
fn in_a_fresh_checkout_a_file_is_as_old_as_its_content() {
    let checkout = Checkout::new();
    checkout.write("same.rs", "a", 5);
    checkout.write("with a space/same.rs", "b", 4);
    checkout.write("changed.rs", "c", 3);
    checkout.write("moved.rs", "d", 3);
    checkout.keep_times();
    let before = [checkout.time("same.rs"), checkout.time("with a space/same.rs")];

    checkout.made_again();
    checkout.write("same.rs", "a", 0);
    checkout.write("with a space/same.rs", "b", 0);
    // Older than it was, as whatever copied it kept its time.
    checkout.write("changed.rs", "changed", 9);
    checkout.write("moved_here.rs", "d", 9);
    checkout.write("added.rs", "a", 9);
    checkout.keep_times();
    assert_eq!([checkout.time("same.rs"), checkout.time("with a space/same.rs")], before);
    for name in ["changed.rs", "moved_here.rs", "added.rs"] {
        assert!(checkout.is_new(name), "{name} is as old as another content");
    }
}

/// Of whatever stands at another path, cargo takes what it built all the same.
#[test]
fn a_checkout_at_another_path_has_the_times_of_the_run_before() {
    let (first, second) = (Checkout::new(), Checkout::new());
    first.write("same.rs", "a", 5);
    first.write("changed.rs", "b", 5);
    assert!(first.recorded(&first.record(), "/usr/bin:/bin"));

    second.write("same.rs", "a", 0);
    second.write("changed.rs", "c", 0);
    assert!(second.recorded(&first.record(), "/usr/bin:/bin"));
    assert_eq!(second.time("same.rs"), first.time("same.rs"));
    assert!(second.is_new("changed.rs"));

    // What the second one built of it is newer than what the first one has.
    assert!(first.recorded(&first.record(), "/usr/bin:/bin"));
    assert!(first.is_new("changed.rs"));
    assert_eq!(second.time("same.rs"), first.time("same.rs"));
}

/// The last run counts, and not one before it: in between, something was built of the other content.
#[test]
fn a_content_that_comes_back_is_new() {
    let checkout = Checkout::new();
    for (content, hours) in [("first", 7), ("second", 6), ("first", 5)] {
        checkout.write("lib.rs", content, hours);
        checkout.keep_times();
        checkout.made_again();
    }
    checkout.write("lib.rs", "first", 0);
    checkout.keep_times();
    assert!(checkout.is_new("lib.rs"), "as old as in the first of three runs");
}

#[test]
fn a_checkout_that_was_there_before_keeps_its_own_times() {
    let checkout = Checkout::new();
    checkout.write("lib.rs", "a", 7);
    checkout.keep_times();
    // Something else was built meanwhile, and then it was written as it was.
    checkout.write("lib.rs", "a", 1);
    let own = checkout.time("lib.rs");
    checkout.keep_times();
    assert_eq!(checkout.time("lib.rs"), own);
}

/// What it built is not known, so that what was known before must not be taken for it.
#[test]
fn a_run_that_ended_early_leaves_no_record() {
    let checkout = Checkout::new();
    checkout.write("lib.rs", "a", 7);
    checkout.keep_times();

    checkout.made_again();
    checkout.write("lib.rs", "b", 0);
    let programs = tempfile::tempdir().unwrap();
    let path = programs.path().to_str().unwrap();
    fs::write(programs.path().join("join"), "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(programs.path().join("join"), Permissions::from_mode(0o755)).unwrap();
    // `mv` is what its last step needs.
    fs::copy(programs.path().join("join"), programs.path().join("mv")).unwrap();
    assert!(!checkout.kept_times(&format!("{path}:/usr/bin:/bin")));

    checkout.made_again();
    checkout.write("lib.rs", "a", 0);
    checkout.keep_times();
    assert!(checkout.is_new("lib.rs"), "as old as in the first of three runs");
}
