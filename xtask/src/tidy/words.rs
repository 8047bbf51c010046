//! The rule of banned words and calls, each with what to write instead.
//!
//! Calls that may panic are looked for in code outside tests; a line whose comment says
//! `// infallible: why` is excused, because the reason then stands beside it. Marks of unfinished
//! work are looked for in comments and in tests too: they have no good place.

use super::source::{Line, Source};
use super::{Finding, Tree};

const RULE: &str = "words";

/// Excuses a call that may panic, when a reason follows it.
const EXCUSE: &str = "// infallible:";

/// Says what a default stands for, on the paths that write.
const MEANING: &str = "// default:";

/// Where a word is looked for.
#[derive(PartialEq, Eq)]
enum Scope {
    /// Code, tests included.
    Code,
    /// Code outside tests, unless excused.
    Shipped,
    /// Comments.
    Comment,
    /// Code outside tests of the rooms that write, unless it is said what the default stands for.
    Writing,
    /// Code outside tests, in crates that must go through `pagemill-io`.
    AboveFiles,
}

struct Ban {
    word: &'static str,
    scope: Scope,
    instead: &'static str,
}

const BANS: [Ban; 24] = [
    ban("todo!", Scope::Code, "write the code"),
    ban("unimplemented!", Scope::Code, "write the code, or return an `unsupported` error"),
    ban("dbg!", Scope::Code, "take it out"),
    ban("TODO", Scope::Comment, "do it now, or open an issue"),
    ban("FIXME", Scope::Comment, "do it now, or open an issue"),
    ban("XXX", Scope::Comment, "say what is wrong, in words"),
    ban(".unwrap()", Scope::Shipped, PANIC),
    ban(".expect(", Scope::Shipped, PANIC),
    ban("panic!", Scope::Shipped, PANIC),
    ban(".unwrap_or_default()", Scope::Writing, DEFAULTS),
    ban("std::fs", Scope::AboveFiles, FILES),
    ban("File::open", Scope::AboveFiles, FILES),
    ban("File::create", Scope::AboveFiles, FILES),
    ban("unix::fs", Scope::AboveFiles, FILES),
    ban("rustix::fs", Scope::AboveFiles, FILES),
    ban(".canonicalize()", Scope::AboveFiles, PATHS),
    ban(".read_link()", Scope::AboveFiles, PATHS),
    ban(".metadata()", Scope::AboveFiles, PATHS),
    ban(".symlink_metadata()", Scope::AboveFiles, PATHS),
    ban(".exists()", Scope::AboveFiles, PATHS),
    ban(".try_exists()", Scope::AboveFiles, PATHS),
    ban(".is_dir()", Scope::AboveFiles, PATHS),
    ban(".is_file()", Scope::AboveFiles, PATHS),
    ban(".is_symlink()", Scope::AboveFiles, PATHS),
];

const PANIC: &str = "return an error, or end the line with `// infallible: why`";
const DEFAULTS: &str = "where it cannot happen, stop before a byte is written: `.expect(…) // infallible: why`; else end \
                        the line with `// default: what it stands for`";
const FILES: &str = "go through pagemill-io, where reads are counted and faults are injected";

const PATHS: &str = "ask `Storage` of the cluster's files, and `HostFiles` of the user's own";

const fn ban(word: &'static str, scope: Scope, instead: &'static str) -> Ban {
    Ban { word, scope, instead }
}

/// Who may ask the system about files themselves: the two crates at the bottom, servers of our own, the lab (it measures
/// the calls themselves, on files of its own), the sockets that clients connect to, the cache of what object stores sent, which
/// may fail without anybody being told wrong, and what never ships.
const FILE_CRATES: [&str; 11] = [
    "crates/pagemill-io/",
    "crates/pagemill-sys/",
    "crates/pagemill-server/",
    "crates/pagemill-lab/",
    "crates/pagemill-remote/src/disk_cache.rs",
    "crates/pagemill-serve/src/endpoints.rs",
    "crates/pagemill-sim/",
    "crates/pagemill-testbucket/",
    "crates/pagemill-testkit/",
    "crates/pagemill-torture/",
    "xtask/",
];

/// The rooms that write into data directories.
const WRITING: [&str; 4] = [
    "crates/pagemill-cluster/src/change/",
    "crates/pagemill-engine/src/load/",
    "crates/pagemill-engine/src/clone/",
    "crates/pagemill-engine/src/generate/",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let is_example = source.path.contains("/examples/");
    let opens_files =
        is_example || FILE_CRATES.iter().any(|prefix| source.path.starts_with(prefix));
    let writes = WRITING.iter().any(|room| source.path.starts_with(room));
    let mut findings = Vec::new();
    for (number, line) in source.numbered() {
        let is_broken = |ban: &&Ban| match ban.scope {
            Scope::AboveFiles if opens_files => false,
            Scope::Writing if !writes => false,
            _ => is_broken(ban, line),
        };
        for ban in BANS.iter().filter(is_broken) {
            let message = format!("`{}`; {}", ban.word, ban.instead);
            findings.push(Finding::new(&source.path, number, RULE, message));
        }
    }
    findings
}

fn is_broken(ban: &Ban, line: &Line) -> bool {
    let in_code = has_word(&line.code, ban.word);
    match ban.scope {
        Scope::Code => in_code,
        Scope::Comment => has_word(&line.comment, ban.word),
        Scope::Shipped => !line.in_test && in_code && !says_why(line, EXCUSE),
        Scope::Writing => !line.in_test && in_code && !says_why(line, MEANING),
        Scope::AboveFiles => !line.in_test && in_code,
    }
}

/// True where a reason follows the mark at the end of the line.
fn says_why(line: &Line, mark: &str) -> bool {
    line.comment.split_once(mark).is_some_and(|(_, why)| !why.trim().is_empty())
}

/// Whether the word stands there by itself: `core_panic!` holds no `panic!`, `File::opened` no `File::open`.
fn has_word(text: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts_name = word.starts_with(part_of_name);
    let ends_name = word.ends_with(part_of_name);
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|tail| tail.chars().next());
        let joined_before = starts_name && before.is_some_and(part_of_name);
        let joined_after = ends_name && after.is_some_and(part_of_name);
        !joined_before && !joined_after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let source = Source::new(path, text);
        let findings = check_source(&source).into_iter();
        findings.map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn a_call_that_may_panic_is_named_with_its_remedy() {
        let found = found("crates/pagemill-io/src/a.rs", "let a = b.unwrap();\n");
        assert_eq!(found, [(1, format!("`.unwrap()`; {PANIC}"))]);
    }

    #[test]
    fn a_reason_excuses_it_and_an_empty_reason_does_not() {
        let path = "crates/pagemill-io/src/a.rs";
        assert!(found(path, "b.expect(\"x\") // infallible: checked above\n").is_empty());
        assert_eq!(found(path, "b.expect(\"x\") // infallible:\n").len(), 1);
    }

    #[test]
    fn a_default_on_a_path_that_writes_has_to_say_what_it_stands_for() {
        let path = "crates/pagemill-engine/src/load/a.rs";
        let bare = "let a = b.unwrap_or_default();\n";
        assert_eq!(found(path, bare), [(1, format!("`.unwrap_or_default()`; {DEFAULTS}"))]);
        let said = "let a = b.unwrap_or_default(); // default: no rows yet\n";
        assert!(found(path, said).is_empty());
        assert!(found("crates/pagemill-engine/src/count.rs", bare).is_empty());
    }

    #[test]
    fn tests_comments_and_strings_may_say_it() {
        let text =
            "// x.unwrap()\nlet a = \"panic!\";\n#[cfg(test)]\nmod t { fn f() { x.unwrap() } }\n";
        assert!(found("crates/pagemill-io/src/a.rs", text).is_empty());
    }

    #[test]
    fn unfinished_work_is_found_in_tests_and_comments_too() {
        let text = concat!("#[cfg(test)]\nmod t { fn f() { to", "do!() } }\n// TO", "DO: later\n");
        let lines: Vec<usize> =
            found("crates/x/src/a.rs", text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn files_are_opened_by_the_crates_at_the_bottom_only() {
        let text = "let f = std::fs::read(p)?;\n";
        assert_eq!(found("crates/pagemill-engine/src/a.rs", text).len(), 1);
        assert!(found("crates/pagemill-io/src/a.rs", text).is_empty());
        assert_eq!(found("crates/pagemill/src/a.rs", text).len(), 1);
        assert!(found("crates/pagemill/examples/a.rs", text).is_empty());
        assert!(found("crates/pagemill-engine/tests/a.rs", text).is_empty());
    }

    #[test]
    fn what_a_path_leads_to_is_asked_through_the_seam() {
        let path = "crates/pagemill-engine/src/a.rs";
        for text in ["p.canonicalize().ok()\n", "if p.is_dir() {\n", "let m = p.metadata()?;\n"] {
            assert_eq!(found(path, text).len(), 1, "{text}");
        }
        for text in ["storage.metadata(p)?;\n", "if found.is_dir {\n", "storage.exists(p)?;\n"] {
            assert!(found(path, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_word_inside_a_longer_name_is_another_word() {
        assert!(!has_word("assert_no_panic!()", "panic!"));
        assert!(has_word("(panic!())", "panic!"));
        assert!(!has_word("std::fs_x", "std::fs"));
        assert!(has_word("use std::fs;", "std::fs"));
        assert!(!has_word("a.unwrap_or(0)", ".unwrap()"));
    }
}
