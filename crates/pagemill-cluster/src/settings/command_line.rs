//! The command line that a server was last started with, from `postmaster.opts`.
//!
//! The file lies in the data directory and stays there when the server stops. It holds the path of
//! the program, then each word in double quotes, with nothing escaped: a quote within a word is
//! told from its end by what follows. The options are read as `getopt` would read them; of
//! interest are `-D`, `-c name=value` and `--name=value`.
//!
//! Source: `CreateOptsFile` and `PostmasterMain` in `src/backend/postmaster/postmaster.c`,
//! `ParseLongOption` in `src/backend/utils/misc/guc.c`, PostgreSQL 14 to 18.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::parse_role_setting;

/// Options that have an argument.
const WITH_ARGUMENT: &[u8] = b"BCcDdfhkNprStW-";

/// What a command line says about settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// The argument of `-D`: where `postgresql.conf` is, and the data unless that says otherwise.
    pub(super) directory: Option<PathBuf>,
    /// Settings in the order they are given.
    pub(super) settings: Vec<(String, Vec<u8>)>,
}

impl CommandLine {
    pub(super) fn parse(file: &[u8]) -> Self {
        let mut line = Self::default();
        let words = words(file);
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                [b'-', letters @ ..] if !letters.is_empty() => line.options(letters, &mut words),
                _ => {}
            }
        }
        line
    }

    /// The path that a setting names, if it is absolute: what it would be relative to is gone with
    /// the server.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        let (_, value) = self.settings.iter().rev().find(|(found, _)| found == name)?;
        Some(path(value)).filter(|path| path.is_absolute())
    }

    /// The options of one word; the last may have its argument in the next.
    fn options<'a>(&mut self, mut letters: &'a [u8], next: &mut impl Iterator<Item = &'a [u8]>) {
        while let [letter, rest @ ..] = letters {
            letters = rest;
            if WITH_ARGUMENT.contains(letter) {
                let argument = if rest.is_empty() { next.next() } else { Some(rest) };
                return self.option(*letter, argument.unwrap_or_default());
            }
        }
    }

    fn option(&mut self, letter: u8, argument: &[u8]) {
        match letter {
            b'D' => self.directory = Some(path(argument)),
            b'c' | b'-' => {
                let setting = parse_role_setting(argument);
                self.settings.extend(setting.map(|(name, value)| (name, value.to_vec())));
            }
            _ => {}
        }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// The words behind the program's path.
fn words(file: &[u8]) -> Vec<&[u8]> {
    let line = file.strip_suffix(b"\n").unwrap_or(file);
    let start = position(line, b" \"").map(|at| at + 2);
    let quoted = start.and_then(|at| line.get(at..)).and_then(|rest| rest.strip_suffix(b"\""));
    let Some(mut rest) = quoted else { return Vec::new() };
    let mut words = Vec::new();
    while let Some(end) = position(rest, b"\" \"") {
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.get(3..).unwrap_or_default();
    }
    words.push(rest);
    words
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> CommandLine {
        CommandLine::parse(text.as_bytes())
    }

    fn setting(name: &str, value: &str) -> (String, Vec<u8>) {
        (name.into(), value.into())
    }

    #[test]
    fn debian_starts_a_server_with_a_configuration_file_elsewhere() {
        let line = parsed(
            "/usr/lib/postgresql/15/bin/postgres \"-D\" \"/var/lib/postgresql/15/main\" \
             \"-c\" \"config_file=/etc/postgresql/15/main/postgresql.conf\"\n",
        );
        assert_eq!(line.directory, Some("/var/lib/postgresql/15/main".into()));
        let file = line.path("config_file");
        assert_eq!(file, Some("/etc/postgresql/15/main/postgresql.conf".into()));
    }

    #[test]
    fn settings_are_given_in_two_ways_beside_other_options() {
        let line = parsed(
            "postgres \"-iFp\" \"-cx=1\" \"-k/tmp\" \"-lc\" \"LC-Monetary=de_DE=x\" \
             \"--search_path=a \"b\"\" \"-D/d\" \"stray\" \"-c\" \"nothing\" \"-c\"\n",
        );
        let expected = [setting("lc_monetary", "de_DE=x"), setting("search_path", "a \"b\"")];
        assert_eq!(line.settings, expected);
        assert_eq!(line.directory, Some("/d".into()));
    }

    #[test]
    fn a_relative_path_leads_nowhere() {
        let line = parsed("postgres \"-c\" \"config_file=a.conf\"\n");
        assert_eq!((line.settings.len(), line.path("config_file")), (1, None));
    }

    #[test]
    fn a_file_of_another_kind_holds_no_options() {
        for text in ["", "\n", "postgres\n", "postgres \"-D", "\"-c\" ", " \""] {
            assert_eq!(parsed(text), CommandLine::default(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_line(text: Vec<u8>) {
            CommandLine::parse(&text);
        }

        #[test]
        fn anything_like_a_command_line_is_one(text in "p( \"[-cD=a\" ]{0,6}\"){0,5}") {
            CommandLine::parse(text.as_bytes());
        }

        #[test]
        fn every_word_comes_back(given in prop::collection::vec("[^\" ]{1,9}", 1..5)) {
            let quoted: String = given.iter().map(|word| format!(" \"{word}\"")).collect();
            let text = format!("postgres{quoted}\n");
            let found: Vec<_> =
                words(text.as_bytes()).iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect();
            prop_assert_eq!(found, given);
        }
    }
}
