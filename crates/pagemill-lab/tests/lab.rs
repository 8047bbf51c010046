//! `pagemill lab`: a run on tiny files leaves results and nothing else, however it ends.
//!
//! Nothing here looks at a time: what is measured on such files says nothing.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use pagemill_lab::results::{Absence, Results};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};

fn lab(directory: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-lab"));
    command.arg("lab").arg(directory).args(words.split(' '));
    command
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn results(directory: &Path) -> Results {
    serde_json::from_slice(&fs::read(directory.join("results.json")).unwrap()).unwrap()
}

/// A small run with its results as JSON beside its directory.
fn small_run(experiment: &str) -> (Output, Results) {
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("mine"), "x").unwrap();
    let words = format!(
        "--quick --size 1MB --experiment {experiment} --details --json results.json --csv cells.csv --markdown tables.md"
    );
    let output = lab(dir.path(), &words).current_dir(kept.path()).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, said(&output));
    assert_eq!(names(dir.path()), ["mine"]);
    let documents = ["cells.csv", "report.html", "results.json", "tables.md"];
    assert_eq!(names(kept.path()), documents);
    for document in documents {
        assert!(fs::metadata(kept.path().join(document)).unwrap().len() > 500, "{document}");
    }
    (output, results(kept.path()))
}

/// Every cell has samples or a reason, and all that were measured equally many.
fn check_cells(results: &Results) {
    for group in results.experiments.iter().flat_map(|experiment| &experiment.groups) {
        assert!(!group.cells.is_empty(), "{}", group.name);
        for cell in &group.cells {
            let told = format!("{}: {}: {:?}", group.name, cell.name, cell.absent);
            assert!(!matches!(cell.absent, Some(Absence::Failed(_))), "{told}");
            assert_eq!(cell.samples.len(), if cell.absent.is_some() { 0 } else { 6 }, "{told}");
            assert!(!cell.parameters.is_empty(), "{told}");
            assert!(group.figures(cell).iter().all(|figure| figure.is_finite()), "{told}");
        }
        let baseline = group.baseline.as_deref();
        assert!(baseline.is_none_or(|name| group.cell(name).is_some()), "{}", group.name);
    }
}

#[test]
fn extend_on_tiny_files_announces_itself_and_ends_with_results_alone() {
    let (output, results) = small_run("extend");
    let announced = said(&output);
    assert!(announced.contains("extend: about "), "{announced}");
    assert!(announced.contains("of disk space"), "{announced}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("posix_fallocate 64"), "{told}");
    assert!(told.contains("Linux "), "{told}");
    check_cells(&results);
    assert!(results.quick && results.interrupted.is_none());
    assert_eq!(results.experiments.len(), 1);
    let group = results.group("extend", "extend").unwrap();
    assert_eq!(group.bytes, 1 << 19);
    let sample = &group.cell("write_zeros 8").unwrap().samples[0];
    assert_eq!((sample.calls["pwrite"], sample.calls["fdatasync"]), (8, 1));
    assert!(sample.parts.contains_key("extend") && sample.parts.contains_key("fdatasync"));
}

#[test]
fn device_and_pread_measure_every_row_or_say_why_not() {
    let (_, results) = small_run("device,pread");
    check_cells(&results);
    let names: Vec<_> = results.experiments.iter().map(|each| each.name.as_str()).collect();
    assert_eq!(names, ["device", "pread"]);
    let scans = results.group("pread", "sequential-cached").unwrap();
    let calls = |cell: &str, call: &str| scans.cell(cell).unwrap().samples[0].calls[call];
    assert_eq!((calls("seek", "lseek"), calls("seek", "read")), (128, 128));
    assert_eq!((calls("pread 8 kB", "pread"), calls("pread", "pread")), (128, 8));
    // A table of 1 MiB is larger than no memory.
    assert!(!results.experiment("pread").unwrap().skipped.is_empty());
    let through = results.group("device", "sync-one-write").unwrap();
    let as_servers_do = through.cell("open_datasync buffered").unwrap();
    assert_eq!(as_servers_do.parameters["direct"], "false");
}

/// A run with the server that the tests cannot do without.
fn postgres_run(directory: &Path, words: &str) -> Command {
    let installed = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut command = lab(directory, &format!("--experiment postgres --no-html {words}"));
    command.arg("--with-postgres").arg(installed.bindir);
    command
}

/// The processes of a run's server.
fn servers_below(directory: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_below = |path: &Path| {
        fs::read_link(path.join("cwd")).is_ok_and(|place| place.starts_with(directory))
    };
    processes.filter(|path| is_below(path)).map(|path| path.display().to_string()).collect()
}

#[test]
fn a_server_takes_turns_with_us_in_all_groups_and_is_gone_at_the_end() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut run = postgres_run(dir.path(), "--quick --size 8MB --json results.json");
    let output = run.current_dir(kept.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(dir.path()), [""; 0]);
    let results = results(kept.path());
    let experiment = results.experiment("postgres").unwrap();
    let skipped: Vec<_> = experiment.skipped.iter().map(|part| part.what.as_str()).collect();
    assert_eq!(skipped, ["index-order-cold"], "{:?}", experiment.skipped);
    check_cells(&results);
    let version = results.environment.iter().find(|fact| fact.name == "postgresql").unwrap();
    assert!(version.value.starts_with("15."), "{}", version.value);
    let groups = [
        ("scan-cached", "PostgreSQL", "pread 8 kB"),
        ("scan-cold", "PostgreSQL", "auto"),
        ("index-order-cached", "PostgreSQL", "seek"),
        ("copy-from", "PostgreSQL", "pagemill load, 1 thread"),
        ("create-database", "PostgreSQL wal_log", "pagemill clone wal_log"),
        ("create-database", "PostgreSQL file_copy", "pagemill clone file_copy"),
    ];
    for (group, theirs, ours) in groups {
        let group = results.group("postgres", group).unwrap();
        for cell in [theirs, ours] {
            assert_eq!(group.cell(cell).unwrap().samples.len(), 6, "{}: {cell}", group.name);
        }
    }
    let scan = results.group("postgres", "scan-cached").unwrap();
    let rows = |cell: &str| scan.cell(cell).unwrap().samples[0].operations;
    assert!(rows("seek") > 100_000 && rows("seek") == rows("PostgreSQL"));
}

#[test]
fn a_run_that_ends_early_takes_its_server_along_even_when_it_is_killed() {
    for signal in ["-TERM", "-KILL"] {
        let dir = tempfile::tempdir().unwrap();
        let mut run = postgres_run(dir.path(), "--size 8MB");
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        let is_up = || {
            let mut runs = fs::read_dir(dir.path()).unwrap().flatten();
            runs.any(|run| run.path().join("postgres/data/postmaster.pid").exists())
        };
        while !is_up() {
            assert!(run.try_wait().unwrap().is_none(), "it ended before it had a server");
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = end(run, signal);
        let begin = Instant::now();
        while !servers_below(dir.path()).is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", servers_below(dir.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        if signal == "-TERM" {
            assert_eq!(status.signal(), Some(15));
            assert_eq!(names(dir.path()), [""; 0]);
        }
    }
}

#[test]
fn a_directory_without_a_server_is_wrong_usage_and_named() {
    let (dir, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut run = lab(dir.path(), "--quick --experiment extend --no-html --with-postgres");
    let output = run.arg(empty.path()).output().unwrap();
    let message = said(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let expected = format!("{}: there is no postgres and no initdb: name", empty.path().display());
    assert!(message.contains(&expected), "{message}");
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A run that lasts long enough to be ended, once it has made its directory.
fn long_run(directory: &Path, json: &Path) -> Child {
    let words = "--size 64MB --experiment extend --no-html --json";
    let mut command = lab(directory, words);
    command.arg(json).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    let begin = Instant::now();
    let has_files = || {
        let directories = fs::read_dir(directory).unwrap().flatten();
        directories.into_iter().any(|entry| entry.path().join("extend/file").exists())
    };
    while !has_files() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before it measured anything");
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    run
}

fn end(mut run: Child, signal: &str) -> ExitStatus {
    let sent = Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap();
    assert!(sent.success());
    run.wait().unwrap()
}

#[test]
fn an_interrupted_run_leaves_nothing_but_what_was_measured() {
    // Jobs that a shell runs in the background ignore what Ctrl-C sends, and so would the run here.
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let status = end(long_run(dir.path(), &kept.path().join("results.json")), "-TERM");
    assert_eq!(status.signal(), Some(15), "{status}");
    assert_eq!(names(dir.path()), [""; 0]);
    let results = results(kept.path());
    assert!(results.interrupted.is_some());
    assert_eq!(results.experiments.len(), 1);
}

/// Whether there is a perf that watches that process, or did.
fn watchers(pid: u32) -> usize {
    let target = format!("\0-p\0{pid}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains("perf") && line.contains(&target)).count()
}

#[test]
fn each_winner_has_a_flame_graph_or_one_warning_says_why_not() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let words = "--quick --size 1MB --experiment extend --flame-graphs --json results.json";
    let output = lab(dir.path(), words).current_dir(kept.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(dir.path()), [""; 0]);
    assert_eq!(names(kept.path()), ["report.html", "results.json"]);
    let results = results(kept.path());
    let cells = results.experiments[0].groups.iter().flat_map(|group| &group.cells);
    let profiles: Vec<&str> = cells.filter_map(|cell| cell.profile.as_deref()).collect();
    let is_refusal = |message: &str| message.starts_with("no flame graphs: ");
    let refusals: Vec<_> =
        results.warnings.iter().filter(|warning| is_refusal(&warning.message)).collect();
    let page = fs::read_to_string(kept.path().join("report.html")).unwrap();
    if let [refusal] = refusals.as_slice() {
        eprintln!("SKIPPED: {}: {}", refusal.message, refusal.remedy);
        assert!(profiles.is_empty() && !page.contains("Flame graph: "));
        return;
    }
    assert_eq!(refusals.len(), 0);
    assert_eq!(page.matches("<summary>Flame graph: ").count(), profiles.len());
    assert!(!profiles.is_empty());
    for group in &results.experiments[0].groups {
        assert!(group.cells.iter().filter(|cell| cell.profile.is_some()).count() <= 1);
    }
    // What stands above a turn is no part of it.
    assert!(profiles.iter().all(|folded| !folded.contains("pagemill_lab::lab::run")));
    assert!(profiles.iter().any(|folded| folded.contains("pagemill_lab::experiments::grow")));
}

#[test]
fn without_perf_a_warning_says_so_and_the_run_is_as_good_as_any() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let words =
        "--quick --size 1MB --experiment readiness --flame-graphs --no-html --json results.json";
    let mut run = lab(dir.path(), words);
    let output = run.current_dir(kept.path()).env("PATH", "/nowhere").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let results = results(kept.path());
    let told: Vec<_> =
        results.warnings.iter().filter(|warning| warning.message.contains("perf")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].remedy.contains("install it"), "{told:?}");
    check_cells(&results);
}

#[test]
fn a_run_that_ends_while_perf_watches_leaves_neither_perf_nor_files() {
    let dir = tempfile::tempdir().unwrap();
    let words = "--quick --size 1MB --experiment extend --flame-graphs --no-html";
    let mut run = lab(dir.path(), words);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while watchers(run.id()) == 0 {
        if run.try_wait().unwrap().is_some() {
            eprintln!("SKIPPED: perf cannot be used here");
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = run.id();
    assert_eq!(end(run, "-TERM").signal(), Some(15));
    assert_eq!(watchers(pid), 0);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_run_whose_reader_went_away_ends_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = lab(dir.path(), "--experiment extend --size 1MB --no-html --details");
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(run.stdout.take());
    assert_eq!(run.wait().unwrap().code(), Some(0), "a reader that went away is no error");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_and_nothing_else_is() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let json = kept.path().join("results.json");
    end(long_run(dir.path(), &json), "-KILL");
    assert_eq!(names(dir.path()).len(), 1);
    let alive = long_run(dir.path(), &json);
    assert_eq!(names(dir.path()).len(), 1, "the next run removed what was left");
    let other =
        lab(dir.path(), "--quick --size 1MB --experiment extend --no-html").output().unwrap();
    assert!(other.status.success(), "{}", said(&other));
    assert_eq!(names(dir.path()).len(), 1, "a run that lives keeps its files");
    assert_eq!(end(alive, "-TERM").signal(), Some(15));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn what_cannot_be_done_is_told_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |directory: &Path, words: &str, status: i32, reason: &str| {
        let output = lab(directory, words).arg("--no-html").output().unwrap();
        let message = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words}: {message}");
        assert!(message.contains(reason), "{words}: {message}");
        assert!(output.stdout.is_empty());
    };
    let quick = "--quick --experiment extend";
    refused(Path::new("/proc"), quick, 1, "/proc: cannot be written to");
    refused(&dir.path().join("absent"), quick, 2, "not a directory");
    refused(dir.path(), "--experiment tea", 2, "there is no experiment tea: there are device, ");
    refused(dir.path(), "--quick --size 900000TB", 1, "make room");
    // It measured files of 1 MB and said nothing; and told one who had passed --quick to pass it.
    refused(dir.path(), "--size 1kB", 2, "1MB is the least");
    let refusal = |words| said(&lab(dir.path(), words).output().unwrap());
    let after_quick = refusal("--quick --size 900000TB --no-html");
    assert!(!after_quick.contains("--quick"), "{after_quick}");
    assert!(refusal("--size 900000TB --no-html").contains("--quick"));
    refused(dir.path(), "--quick --size little", 2, "a size is a number of bytes");
    let missing = dir.path().join("absent/results.json");
    let words = format!("{quick} --json {}", missing.display());
    refused(dir.path(), &words, 1, "absent/results.json");
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A second run wrote over the page of the first, and `--json` over whatever file it was given.
#[test]
fn no_file_is_replaced_without_force() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |more: &str| {
        let words = format!("--quick --size 1MB --experiment extend{more}");
        lab(dir.path(), &words).current_dir(kept.path()).output().unwrap()
    };
    for (name, flag) in [
        ("report.html", ""),
        ("mine.html", " --html mine.html"),
        ("mine.json", " --no-html --json mine.json"),
        ("mine.csv", " --no-html --csv mine.csv"),
        ("mine.md", " --no-html --markdown mine.md"),
    ] {
        let path = kept.path().join(name);
        fs::write(&path, "mine").unwrap();
        let output = run(flag);
        assert_eq!(output.status.code(), Some(1), "{flag}: {}", said(&output));
        let message = said(&output);
        assert!(message.contains(&format!("{name} exists: name another file")), "{message}");
        assert!(message.contains("--force"), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
    }
    let output = run(" --no-html --json both --csv both");
    assert!(said(&output).contains("both is named twice"), "{}", said(&output));
    assert_eq!(names(kept.path()), [""; 0]);
    assert!(run(" --json one.json").status.success());
    let output = run(" --json two.json --force");
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read_to_string(kept.path().join("report.html")).unwrap().contains("<svg"));
    let compare = |html: &str, more: &[&str]| {
        let mut compare = Command::new(env!("CARGO_BIN_EXE_pagemill-lab"));
        compare.current_dir(kept.path()).args(["lab", "--compare", "one.json", "two.json"]);
        compare.args(["--html", html]).args(more).output().unwrap()
    };
    assert_eq!(compare("report.html", &[]).status.code(), Some(1));
    let output = compare("two.json", &["--force"]);
    assert!(said(&output).contains("two.json is named twice"), "{}", said(&output));
    let output = compare("both.html", &[]);
    assert!(output.status.success(), "{}", said(&output));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told.contains("one") && told.contains("two") && told.contains("write_zeros 1"),
        "{told}"
    );
    assert_eq!(names(kept.path()), ["both.html", "one.json", "report.html", "two.json"]);
}

/// A quick run printed 1,900 lines.
#[test]
fn a_terminal_gets_one_screen_and_the_rest_with_details() {
    let dir = tempfile::tempdir().unwrap();
    let lines = |more: &str| {
        let words = format!("--quick --size 1MB --experiment extend,readiness --no-html{more}");
        let output = lab(dir.path(), &words).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    let (screen, details) = (lines(""), lines(" --details"));
    assert!((12..=50).contains(&screen), "{screen} lines");
    assert!(details > 3 * screen, "{details} lines with --details, {screen} without");
}
