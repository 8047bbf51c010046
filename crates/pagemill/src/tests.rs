//! The examples in the help texts and in the README, held against the parser: who copies a line must not be told that
//! it is wrong, nor get something else than the line seems to say.
//!
//! Invariant: an example fits a terminal of 80 columns, since what is wrapped in mid-command cannot be copied; a longer
//! one is continued behind a backslash.

use std::ffi::OsString;

use clap::Command;

use crate::arguments::{definition, parse};

const TERMINAL: usize = 80;

/// The words of each `pagemill` in a line of shell: pipes and redirections part them, quotes hold together.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let mut words = words(line).into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "|" => commands.push(vec![]),
            ">" | ">>" => drop(words.next()),
            _ if word.starts_with('#') => break,
            _ => commands.last_mut().unwrap().push(word),
        }
    }
    commands.retain(|words| words.first().is_some_and(|word| word == "pagemill"));
    commands
}

/// The words of a line of shell, without their quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A text's lines, what is continued behind a backslash on one of them.
fn lines(text: &str) -> Vec<String> {
    text.replace("\\\n", " ").lines().map(str::to_owned).collect()
}

/// A command and those below it.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().flat_map(with_subcommands);
    std::iter::once(command).chain(below).collect()
}

/// What is wrong with a command line.
fn complaint(definition: &Command, words: &[String]) -> Option<String> {
    if let Err(error) = parse(words.iter().map(OsString::from)) {
        // Those that ask for help or the version are no mistakes.
        return error.use_stderr().then(|| error.to_string());
    }
    let command = definition.find_subcommand(words.get(1)?)?;
    for argument in command.get_arguments().filter(|argument| argument.is_require_equals_set()) {
        let flag = format!("--{}", argument.get_long()?);
        let values = argument.get_possible_values();
        let is_value = |word: &String| values.iter().any(|value| value.matches(word, true));
        if words.windows(2).any(|pair| pair[0] == flag && is_value(&pair[1])) {
            return Some(format!("the word behind {flag} is not its value: {flag}=VALUE"));
        }
    }
    None
}

/// What is wrong with a text's command lines; how many there are.
fn check(text: &str, is_example: impl Fn(&str) -> bool) -> (usize, Vec<String>) {
    let mut definition = definition();
    definition.build();
    let commands: Vec<_> = lines(text)
        .iter()
        .filter(|line| is_example(line))
        .flat_map(|line| commands(line))
        .collect();
    let wrong = commands.iter().filter_map(|words| {
        complaint(&definition, words).map(|why| format!("{}: {why}", words.join(" ")))
    });
    (commands.len(), wrong.collect())
}

/// `load --help` showed `--header skip orders.csv`, which reads a file named skip.
#[test]
fn every_example_in_the_help_is_a_command_line_that_says_what_it_means() {
    let definition = definition();
    for command in with_subcommands(&definition) {
        let Some(help) = command.get_after_long_help() else { continue };
        let help = help.to_string();
        let (count, wrong) = check(&help, |line| line.starts_with("  "));
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(count > 0, "no example in the help of {}", command.get_name());
    }
}

/// The same example was longer than a terminal is wide, and wrapped in the middle.
#[test]
fn no_example_in_the_help_is_wrapped() {
    let definition = definition();
    for command in with_subcommands(&definition) {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.split("Example").nth(1).unwrap_or_default();
        for line in examples.lines() {
            assert!(line.len() <= TERMINAL, "{} columns: {line}", line.len());
        }
    }
}

#[test]
fn every_command_line_in_the_readme_is_one() {
    let readme = pagemill_testkit::in_checkout("README.md");
    let readme = std::fs::read_to_string(readme).unwrap().replace("$ pagemill", "pagemill");
    let (count, wrong) = check(&readme, |line| line.starts_with("pagemill "));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 10, "{count}");
}

#[test]
fn a_value_that_is_taken_for_a_file_is_noticed() {
    let text = "  zcat a | pagemill load -t b --header skip - > c\n  pagemill count\n  pagemill ls \\\n -D x";
    let (count, wrong) = check(text, |_| true);
    assert_eq!(count, 3);
    assert!(wrong[0].contains("--header=VALUE") && wrong[1].contains("required"), "{wrong:?}");
    assert_eq!(wrong.len(), 2);
}
