//! Real output of perf 6.1 on a release build, and what no perf prints.
//!
//! The files' directories are made up; addresses and names are as they came.

use super::*;

/// Three samples: a turn in the kernel and one in a library, and a thread of its own.
const PRINTED: &str = "\
pagemill 31297 
\tffffffff821ed4e6 do_syscall_64 ([kernel.kallsyms])
\tffffffff81000130 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])
\t           f64c7 __libc_pwrite (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          6acb91 pagemill_lab::experiments::wal_segments::commits (/usr/bin/pagemill)
\t          72dc5a pagemill_lab::experiments::wal_segments::writer::{{closure}} (/usr/bin/pagemill)
\t          6d74e0 pagemill_lab::runner::perform_turn (/usr/bin/pagemill)
\t          6d7a5a pagemill_lab::runner::Match::round (/usr/bin/pagemill)
\t          34be3c pagemill::main (/usr/bin/pagemill)
\t           27304 __libc_start_main@@GLIBC_2.34 (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          1bf7a0 _start (/usr/bin/pagemill)

pagemill 31297 
\t           f6483 [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          6acb91 pagemill_lab::experiments::wal_segments::commits (/usr/bin/pagemill)
\t          6d74e0 pagemill_lab::runner::perform_turn (/usr/bin/pagemill)
\t          1bf7a0 _start (/usr/bin/pagemill)

pagemill 31606 
\t             b46 __vdso_clock_gettime ([vdso])
\t          88ce02 <std::sys::pal::unix::time::Timespec>::now (/usr/bin/pagemill)
\t          784ed4 core::ops::function::FnOnce::call_once{{vtable.shim}} (/usr/bin/pagemill)
\t           891f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          1098eb clone3 (/usr/lib/x86_64-linux-gnu/libc.so.6)

";

fn folded(printed: &str) -> Vec<String> {
    fold(printed, "perform_turn", "Recording::tell").lines().map(str::to_owned).collect()
}

#[test]
fn stacks_begin_below_the_turn_and_threads_keep_theirs() {
    let expected = [
        "pagemill;clone3;start_thread;core::ops::function::FnOnce::call_once{{vtable.shim}};\
         <std::sys::pal::unix::time::Timespec>::now;__vdso_clock_gettime 1",
        "pagemill;pagemill_lab::experiments::wal_segments::commits;[libc.so.6] 1",
        "pagemill;pagemill_lab::experiments::wal_segments::writer::{{closure}};\
         pagemill_lab::experiments::wal_segments::commits;__libc_pwrite;entry_SYSCALL_64_after_hwframe;\
         do_syscall_64 1",
    ];
    assert_eq!(folded(PRINTED), expected);
}

#[test]
fn equal_stacks_are_counted_together() {
    let three = folded(&PRINTED.repeat(3));
    assert_eq!(three.len(), 3);
    assert!(three.iter().all(|line| line.ends_with(" 3")), "{three:?}");
}

#[test]
fn those_who_watch_are_no_part_of_it() {
    let aside =
        "pagemill 1 \n\t12 write (libc.so)\n\t34 pagemill_lab::profiler::Recording::tell (x)\n\n";
    assert_eq!(folded(aside), [""; 0]);
}

#[test]
fn a_name_breaks_no_line_and_no_stack() {
    let strange =
        "a; b 7 \n\t1 operator;() (x)\n\t2 [unknown] ([heap])\n\tnonsense\n\n\n\n  \n\nalone 3\n";
    assert_eq!(folded(strange), ["a_ b;[heap];operator_() 1"]);
}

#[test]
fn many_rare_stacks_are_shortened_and_none_is_lost() {
    let sample = |number: usize| {
        let frames: String =
            (0..40).map(|depth| format!("\t1 f{depth}_{}  (x)\n", number * depth)).collect();
        format!("t 1 \n{frames}\n")
    };
    let printed: String = (0..2 * MOST_STACKS).map(sample).collect();
    let lines = folded(&printed);
    let count = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap();
    assert_eq!(lines.iter().map(count).sum::<usize>(), 2 * MOST_STACKS);
    let is_short = |line: &&String| line.split(';').count() == SHORTENED;
    assert!(lines.iter().filter(is_short).count() > 0);
}

proptest::proptest! {
    #[test]
    fn any_text_gives_lines_of_a_stack_and_a_count(printed in "[a;\\[\\]() \\t\\n7]{0,200}|.*") {
        for line in folded(&printed) {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            assert!(stack.contains(';') && count.parse::<u64>().unwrap() > 0, "{line:?}");
        }
    }
}

#[test]
fn what_is_done_between_turns_is_no_part_of_them() {
    let between = "pagemill 1 \n\t1 read (/usr/lib/libc.so.6)\n\t2 pagemill_lab::lab::run (/usr/bin/pagemill)\n\n";
    assert_eq!(folded(between), [""; 0]);
}
