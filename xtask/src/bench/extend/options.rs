//! The flags of `cargo xtask bench extend`.
//!
//! Invariant: a size is at least one block and at most a segment, so that a contestant has one file.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const HELP: &str = "usage: cargo xtask bench extend [OPTION]...

Measures how files are extended and filled: n blocks at a time, against fio, and against dd in how many pieces they
lie. Keeps the result under runs/.

options:
  --size-mib N      size of the file (1024, at most 1024)
  --repetitions N   turns of each contestant (5)
  --quick           64 MiB, one turn, result not kept under runs/
  --dir DIR         where the files lie (target/bench-extend)
  --name NAME       name of the result (extend)";

/// What to do, in full.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    /// Blocks of the file.
    pub(super) blocks: u32,
    pub(super) repetitions: usize,
    pub(super) quick: bool,
    pub(super) directory: Option<PathBuf>,
    pub(super) name: String,
}

/// Blocks in a MiB.
const PER_MIB: u32 = 128;

impl Options {
    /// The options, or none when help was asked for and printed.
    pub(super) fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let (mib, repetitions) = if quick { (64, 1) } else { (1024, 5) };
        let blocks = mib * PER_MIB;
        let mut options =
            Self { blocks, repetitions, quick, directory: None, name: "extend".into() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            match word.as_str() {
                "--help" => {
                    println!("{HELP}");
                    return Ok(None);
                }
                "--quick" => {}
                "--size-mib" => options.blocks = mib_of(value()?)? * PER_MIB,
                "--repetitions" => options.repetitions = value()?.parse()?,
                "--dir" => options.directory = Some(value()?.into()),
                "--name" => options.name.clone_from(value()?),
                _ => bail!("unknown option {word}; see --help"),
            }
        }
        if options.repetitions == 0 {
            bail!("--repetitions: at least 1");
        }
        Ok(Some(options))
    }
}

fn mib_of(value: &str) -> Result<u32> {
    let mib: u32 = value.parse()?;
    if !(1..=1024).contains(&mib) {
        bail!("--size-mib {mib}: from 1 to 1024");
    }
    Ok(mib)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)?.context("help")
    }

    #[test]
    fn quick_makes_it_small_and_an_explicit_size_wins() {
        assert_eq!(parse("").unwrap().blocks, 131_072);
        assert_eq!(parse("--size-mib 3 --quick").unwrap().blocks, 384);
        assert_eq!(parse("--quick").unwrap().repetitions, 1);
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in ["--size-mib", "--size-mib 0", "--size-mib 2000", "--repetitions 0", "--what"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
