//! Settings read from files that exist only here: what overrides what, and what is refused.
//!
//! The files are a map in memory, so that a test shows all it depends on.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

struct MemoryFiles(BTreeMap<PathBuf, Vec<u8>>);

impl SettingFiles for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let inside = self.0.keys().rev().filter(|path| path.parent() == Some(directory));
        let names: Vec<_> =
            inside.map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
        if names.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(names) }
    }

    fn directories(&self, directory: &Path) -> io::Result<Vec<String>> {
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(directory).ok());
        let below = inside.filter(|path| path.components().count() > 1);
        Ok(below.map(|p| p.iter().next().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn is_same(&self, one: &Path, other: &Path) -> bool {
        canonical(one) == canonical(other)
    }
}

fn made(files: &[(&str, &str)]) -> MemoryFiles {
    MemoryFiles(files.iter().map(|(path, text)| (path.into(), text.as_bytes().to_vec())).collect())
}

fn parsed(files: &[(&str, &str)]) -> Settings {
    let auto = Path::new("/d/postgresql.auto.conf");
    Settings::parse(Path::new("/d/postgresql.conf"), Some(auto), &made(files))
}

fn value_of(line: &str) -> Option<String> {
    let settings = parsed(&[("/d/postgresql.conf", line)]);
    settings.get("x").map(|value| String::from_utf8_lossy(value).into_owned())
}

#[test]
fn values_of_every_form_are_read() {
    let forms = [
        ("x = on", "on"),
        ("\tX on # comment", "on"),
        ("x=on\r", "on"),
        ("x = -1", "-1"),
        ("x = 0x1F", "0x1F"),
        ("x = 128MB", "128MB"),
        ("x = .5e-3", ".5e-3"),
        ("x = 1.", "1."),
        ("x = pg_catalog.english.x", "pg_catalog.english.x"),
        ("x = /tmp", ""),
        ("x = C.UTF-8", "C.UTF-8"),
        ("x = ''", ""),
        ("x = 'a # b'", "a # b"),
        (r"x = 'it''s \'q\' \\ \t\101\0601'", "it's 'q' \\ \tA01"),
        ("x = '\"$user\", public'", "\"$user\", public"),
    ];
    for (line, value) in forms {
        // A bare word begins with a letter, so a bare path is an error.
        let expected = (line != "x = /tmp").then(|| value.to_owned());
        assert_eq!(value_of(line), expected, "{line}");
    }
}

#[test]
fn lines_the_server_refuses_set_nothing_and_are_reported() {
    for line in [
        "x",
        "x =",
        "x = a b",
        "x = a.b",
        "x = 'a",
        "x = 'a\\'",
        "= 1",
        "1 = 1",
        "x = 1e5",
        "x = 1.5GB",
        "'x' = 1",
        "x = = 1",
        "x = ()",
        "x = $1",
    ] {
        let settings = parsed(&[("/d/postgresql.conf", &format!("y = 1\n{line}\nz = 2"))]);
        assert_eq!(settings.get("x"), None, "{line}");
        assert_eq!((settings.get("y"), settings.get("z")), (Some(&b"1"[..]), Some(&b"2"[..])));
        assert_eq!(settings.problems().len(), 1, "{line}");
        assert_eq!(settings.problems()[0].line, 2);
    }
}

#[test]
fn the_last_entry_wins_and_the_automatic_file_comes_last() {
    let settings = parsed(&[
        ("/d/postgresql.conf", "a = 1\nb = 1\nA = 2\nc = 1\nmy.name = 7\n"),
        ("/d/postgresql.auto.conf", "# by ALTER SYSTEM\nc = '3'\n"),
    ]);
    let values = ["a", "b", "C", "My.Name"].map(|name| settings.get(name).unwrap());
    assert_eq!(values, [b"2", b"1", b"3", b"7"]);
    let place = settings.setting("c").unwrap();
    assert_eq!(
        (place.file.as_deref(), place.line),
        (Some(Path::new("/d/postgresql.auto.conf")), 2)
    );
    assert!(settings.problems().is_empty());
}

/// The value of `x` in the cluster of `/d`.
fn value_in_cluster(files: &[(&str, &str)]) -> Option<String> {
    let settings = Settings::of_cluster(Path::new("/d"), 15, &made(files));
    settings.get("x").map(|value| String::from_utf8_lossy(value).into_owned())
}

#[test]
fn the_command_line_of_the_last_start_wins_over_all_files() {
    let files = [
        ("/d/postgresql.conf", "x = 1"),
        ("/d/postgresql.auto.conf", "x = 2"),
        ("/d/postmaster.opts", "postgres \"-D\" \"/d\" \"-c\" \"x=3\" \"--X=4\"\n"),
    ];
    let values = [1, 2, 3].map(|count| value_in_cluster(&files[..count]).unwrap());
    assert_eq!(values, ["1", "2", "4"]);
}

#[test]
fn the_configuration_file_that_the_server_was_told_is_read_while_it_is_there() {
    let opts = "postgres \"-D\" \"/d\" \"-c\" \"config_file=/e/a.conf\"\n";
    let files = [
        ("/d/postmaster.opts", opts),
        ("/d/postgresql.conf", "x = own"),
        ("/e/a.conf", "x = named"),
    ];
    assert_eq!(value_in_cluster(&files).unwrap(), "named");
    assert_eq!(value_in_cluster(&files[..2]).unwrap(), "own");
}

#[test]
fn the_directory_that_the_server_was_told_may_hold_the_configuration_only() {
    let opts = "postgres \"-D\" \"/e\"\n";
    let files = [
        ("/d/postmaster.opts", opts),
        ("/e/postgresql.conf", "x = told"),
        ("/d/postgresql.conf", "x = own"),
    ];
    assert_eq!(value_in_cluster(&files[..2]).unwrap(), "told");
    assert_eq!(value_in_cluster(&files).unwrap(), "own");
}

#[test]
fn a_configuration_in_debians_place_is_found_by_the_data_directory_it_names() {
    let files = [
        ("/etc/postgresql/15/a/postgresql.conf", "data_directory = '/c'\nx = a"),
        ("/etc/postgresql/15/b/postgresql.conf", "data_directory = '/c/../d'\nx = b"),
        ("/etc/postgresql/14/b/postgresql.conf", "data_directory = '/d'\nx = old"),
        ("/d/postgresql.auto.conf", "y = 1"),
    ];
    assert_eq!(value_in_cluster(&files).unwrap(), "b");
    let other = Settings::of_cluster(Path::new("/e"), 15, &made(&files));
    assert_eq!((other.get("x"), other.problems().len()), (None, 1));
}

#[test]
fn included_files_take_effect_in_their_places() {
    let settings = parsed(&[
        (
            "/d/postgresql.conf",
            "a=0\nb=0\nc=0\ninclude 'sub/one.conf'\nb=1\ninclude_if_exists 'no'\ninclude_dir = 'conf.d'\n",
        ),
        ("/d/sub/one.conf", "a=2\nb=2\ninclude '../two.conf'\n"),
        ("/d/two.conf", "t=2"),
        ("/d/conf.d/20.conf", "c=20"),
        ("/d/conf.d/10.conf", "c=10"),
        ("/d/conf.d/.30.conf", "c=30"),
        ("/d/conf.d/40.conf~", "c=40"),
    ]);
    let values = ["a", "b", "t", "c"].map(|name| settings.get(name).unwrap());
    assert_eq!(values, [&b"2"[..], b"1", b"2", b"20"]);
    assert!(settings.problems().is_empty());
}

#[test]
fn files_that_are_missing_or_include_themselves_are_reported() {
    let settings = parsed(&[(
        "/d/postgresql.conf",
        "include 'gone'\ninclude_dir 'gone.d'\ninclude './postgresql.conf'\ninclude ' '\nz = 1\n",
    )]);
    assert_eq!(settings.get("z"), Some(&b"1"[..]));
    let lines: Vec<_> = settings.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 2, 3, 4]);
    let first = settings.problems()[0].to_string();
    assert!(first.starts_with("/d/postgresql.conf:1: /d/gone could not be read"), "{first}");
}

#[test]
fn files_that_include_each_other_come_to_an_end() {
    let twice = |other: &str| format!("include '{other}'\n").repeat(50);
    let (main, other) = (twice("b.conf"), twice("postgresql.conf"));
    let settings = parsed(&[("/d/postgresql.conf", &main), ("/d/b.conf", &other)]);
    assert!(!settings.problems().is_empty());
    assert_eq!(settings.includes, MAX_INCLUDES);
}

#[test]
fn a_missing_main_file_leaves_everything_unset() {
    let settings = parsed(&[]);
    assert_eq!(settings.get("search_path"), None);
    assert_eq!(settings.problems()[0].line, 0);
}

#[test]
fn role_settings_split_at_the_first_equals_sign() {
    assert_eq!(
        parse_role_setting(b"search_path=a, \"b=c\""),
        Some(("search_path".into(), &b"a, \"b=c\""[..]))
    );
    assert_eq!(parse_role_setting(b"My-Ext.x="), Some(("my_ext.x".into(), &b""[..])));
    assert_eq!(parse_role_setting(b"nothing"), None);
    let mut settings = Settings::default();
    settings.set("Search_Path", b"app");
    assert_eq!(settings.get("search_path"), Some(&b"app"[..]));
}

proptest! {
    #[test]
    fn any_bytes_are_parsed(text: Vec<u8>) {
        let files = MemoryFiles(BTreeMap::from([("/c".into(), text.clone())]));
        let settings = Settings::parse(Path::new("/c"), None, &files);
        prop_assert!(settings.values.len() <= text.len());
        let _ = parse_role_setting(&text);
    }

    #[test]
    fn anything_like_a_file_is_parsed(text in r"([ax'=.\\#0-9x\n \-+e]|include ){0,40}") {
        let files = MemoryFiles(BTreeMap::from([("/c".into(), text.into_bytes())]));
        Settings::parse(Path::new("/c"), None, &files);
    }

    #[test]
    fn a_quoted_value_reads_back_as_itself(value in "[^\0\n]{0,20}") {
        let quoted = value.replace('\\', "\\\\").replace('\'', "''");
        prop_assert_eq!(value_of(&format!("x = '{quoted}'")), Some(value));
    }
}
