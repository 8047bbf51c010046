//! Every way to read: the same rows, as many calls as `--stats` tells and `strace` sees, and a clear word
//! where the platform or the flags stand against it.
//!
//! That each method passes the suites written for all is seen by running them with `PAGEMILL_TEST_READ`, as
//! `cargo xtask ci` does. Here are the tests that name methods themselves; they skip when that is set.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::program::READ_VARIABLE;
use pagemill_testkit::{Prepared, Program, two_versions};
use serde_json::Value;

const METHODS: [&str; 7] = ["auto", "seek", "pread", "preadv", "mmap", "worker", "io_uring"];
/// A table of several thousand blocks, and the database it is in.
const MANY_BLOCKS: [&str; 4] = ["-d", "ddl", "-t", "public.many_blocks"];
/// Most calls beyond those `--stats` counts: the loader's, the runtime's, and questions to `/proc` and `/sys`.
const OTHER_CALLS: u64 = 40;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// True when the flags of all commands are set from outside, which leaves nothing to name here.
fn is_set_from_outside() -> bool {
    let set = std::env::var_os(READ_VARIABLE).is_some_and(|flags| !flags.is_empty());
    if set {
        println!("SKIPPED: {READ_VARIABLE} is set");
    }
    set
}

fn has_ring(prepared: &Prepared) -> bool {
    let output = run(prepared, &["--io-method", "io_uring"]);
    let refused = !output.status.success();
    if refused {
        println!("SKIPPED io_uring: {}", String::from_utf8_lossy(&output.stderr));
    }
    !refused
}

fn run(prepared: &Prepared, flags: &[&str]) -> Output {
    let args = [&["count", "--stats=json"], &MANY_BLOCKS[..], flags].concat();
    program().run(&prepared.data_dir(), &args).unwrap()
}

fn stats(output: &Output) -> Result<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(serde_json::from_str(said.lines().last().context("no statistics")?)?)
}

#[test]
fn every_method_and_every_strategy_writes_the_same_bytes() {
    if is_set_from_outside() {
        return;
    }
    two_versions(|prepared| {
        let export = |flags: &[&str]| {
            let args = [&["export"], &MANY_BLOCKS[..], flags].concat();
            program().succeed(&prepared.data_dir(), &args)
        };
        let expected = export(&["--io-method", "pread"])?;
        let methods =
            METHODS.into_iter().filter(|method| *method != "io_uring" || has_ring(prepared));
        for method in methods {
            for more in [
                &["--readahead", "none"][..],
                &["--readahead", "every-page", "--readahead-distance", "64"],
                &["--readahead", "window", "--readahead-distance", "64"],
                &["--readahead", "double-window", "--readahead-distance", "64"],
                &["--io-combine-limit", "1", "--effective-io-concurrency", "1"],
                &["--io-combine-limit", "128", "-j", "3"],
                &["--max-open-files", "1", "--max-mapped-bytes", "8kB"],
                &["--madvise", "normal"],
                &["--madvise", "sequential"],
                &["--madvise", "random"],
                &["--madvise", "willneed"],
            ] {
                let flags = [&["--io-method", method], more].concat();
                ensure!(export(&flags)? == expected, "{flags:?} differs");
            }
        }
        Ok(())
    });
}

#[test]
fn direct_reads_give_the_same_bytes_where_the_file_system_has_them() {
    if is_set_from_outside() {
        return;
    }
    two_versions(|prepared| {
        let expected = run(prepared, &["--io-method", "pread"]).stdout;
        for method in ["auto", "seek", "pread", "preadv", "worker", "io_uring"] {
            let output = run(prepared, &["--io-method", method, "--direct"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if said.contains("leave out --direct") || said.contains("--io-method worker") {
                println!("SKIPPED {method}: {said}");
                continue;
            }
            ensure!(output.stdout == expected, "{method}: {said}");
        }
        Ok(())
    });
}

#[test]
fn the_kernel_sees_the_calls_that_the_statistics_tell() {
    if is_set_from_outside() || !strace_works() {
        return;
    }
    two_versions(|prepared| {
        for (method, read, jobs) in [
            ("seek", "read", "1"),
            ("pread", "pread64", "1"),
            ("pread", "pread64", "3"),
            ("preadv", "preadv", "1"),
            ("worker", "pread64", "1"),
            ("mmap", "pread64", "1"),
        ] {
            let (stats, summary) = traced(prepared, method, jobs)?;
            let number = |name: &str| stats[name].as_u64().context("no such statistic");
            // Small files are read by pread whatever the method.
            let mut seen = calls_of("pread64", &summary);
            seen += if read == "pread64" { 0 } else { calls_of(read, &summary) };
            let (told, pages) = (number("read_calls")?, number("pages")?);
            ensure!(pages > 2500, "a table of {pages} blocks is too small");
            let what = format!("{method} -j {jobs}, {pages} blocks");
            ensure!(seen.abs_diff(told) <= OTHER_CALLS, "{what}: {seen} seen, {told} told");
            let seeks = calls_of("lseek", &summary).abs_diff(number("seek_calls")?);
            ensure!(seeks <= OTHER_CALLS, "{what}: {seeks} seeks differ");
            let most = match method {
                "seek" => pages + 1500,
                "mmap" => 80,
                _ => pages / 16 + 400,
            };
            ensure!(told <= most, "{what}: {told} calls");
        }
        Ok(())
    });
}

#[test]
fn a_ring_is_entered_as_often_as_the_statistics_tell() {
    if is_set_from_outside() || !strace_works() {
        return;
    }
    two_versions(|prepared| {
        if has_ring(prepared) {
            let (stats, summary) = traced(prepared, "io_uring", "1")?;
            let told = stats["ring_calls"].as_u64().context("no such statistic")?;
            let seen = calls_of("io_uring_enter", &summary);
            ensure!(told > 0 && seen.abs_diff(told) <= 2, "{seen} seen, {told} told");
        }
        Ok(())
    });
}

#[test]
fn auto_says_what_it_chose_and_why() {
    if is_set_from_outside() {
        return;
    }
    two_versions(|prepared| {
        run(prepared, &["--io-method", "pread"]);
        let stats = stats(&run(prepared, &["-j", "1"]))?;
        let reason = stats["io_method_reason"].as_str().context("no reason")?;
        ensure!(reason.starts_with("auto: "), "{stats}");
        let method = stats["io_method"].as_str().context("no method")?;
        ensure!(METHODS[1..].contains(&method) && reason.contains(method), "{stats}");
        Ok(())
    });
}

#[test]
fn flags_that_contradict_each_other_and_nonsense_are_wrong_usage() {
    if is_set_from_outside() {
        return;
    }
    two_versions(|prepared| {
        for flags in [
            &["--io-method", "mmap", "--direct"][..],
            &["--io-method", "mmap", "--live"],
            &["--direct", "--readahead", "window"],
            &["--io-method", "sendfile"],
            &["--effective-io-concurrency", "0"],
            &["--effective-io-concurrency", "1001"],
            &["--readahead-distance", "0"],
            &["--readahead", "often"],
            &["--max-open-files", "0"],
            &["--max-mapped-bytes", "0"],
            &["--max-mapped-bytes", "8 elephants"],
        ] {
            let output = run(prepared, flags);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(output.status.code() == Some(2) && !said.is_empty(), "{flags:?}: {said}");
            ensure!(output.stdout.is_empty(), "{flags:?}");
        }
        Ok(())
    });
}

/// Runs a command under a filter that forbids `io_uring_setup` (call 425), as containers have it.
const WITHOUT_RINGS: &str = "
import ctypes, os, struct, sys
step = lambda code, jt, jf, k: struct.pack('HBBI', code, jt, jf, k)
filter = (step(0x20, 0, 0, 0) + step(0x15, 0, 1, 425) + step(0x06, 0, 0, 0x00050001)
          + step(0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(filter)
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
";

/// In a container that forbids rings, one asked for by name is an error with the reason, and `auto` goes
/// another way and says so.
#[test]
fn a_method_that_the_platform_refuses_is_an_error_by_name_and_no_matter_to_auto() {
    if is_set_from_outside() {
        return;
    }
    two_versions(|prepared| {
        let run = |flags: &[&str]| {
            let args = [&["count", "-v"], &MANY_BLOCKS[..], flags].concat();
            let command = program().command(&prepared.data_dir(), &args);
            let mut python = Command::new("python3");
            python.args(["-c", WITHOUT_RINGS]).arg(command.get_program()).args(command.get_args());
            python.env_remove("PGDATA").env_remove("PGDATABASE").output()
        };
        let output = match run(&["--io-method", "io_uring"]) {
            Ok(output) if output.status.code() != Some(77) => output,
            _ => {
                println!("SKIPPED: no python3 here, or no filters");
                return Ok(());
            }
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(1), "{said}");
        ensure!(said.contains("io_uring is forbidden to this process"), "{said}");
        ensure!(said.contains("--io-method worker"), "{said}");
        // Direct reads are where auto would take a ring.
        let output = run(&["--direct"])?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let moved_on = said.contains("not io_uring: ") && said.contains("worker: ");
        ensure!(
            output.status.success() && moved_on || said.contains("leave out --direct"),
            "{said}"
        );
        Ok(())
    });
}

fn strace_works() -> bool {
    let traced = Command::new("strace").args(["-f", "-c", "-o", "/dev/null", "true"]).output();
    let works = traced.is_ok_and(|output| output.status.success());
    if !works {
        println!("SKIPPED: strace is not installed, or may not trace here");
    }
    works
}

/// The statistics the program told, and what `strace -c` counted.
fn traced(prepared: &Prepared, method: &str, jobs: &str) -> Result<(Value, String)> {
    let summary = tempfile::NamedTempFile::new()?;
    let flags = ["count", "--stats=json", "-j", jobs, "--io-method", method];
    let command = program().command(&prepared.data_dir(), &[&flags, &MANY_BLOCKS[..]].concat());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(summary.path());
    strace.arg(command.get_program()).args(command.get_args());
    let output = strace.env_remove("PGDATA").env_remove("PGDATABASE").output()?;
    Ok((stats(&output)?, fs::read_to_string(summary.path())?))
}

/// From `% time, seconds, usecs/call, calls, [errors,] syscall`; 0 for a call never made.
fn calls_of(name: &str, summary: &str) -> u64 {
    let line = summary.lines().find(|line| line.ends_with(&format!(" {name}")));
    let calls = line.and_then(|line| line.split_whitespace().nth(3));
    calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
}
