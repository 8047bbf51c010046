//! What to do on damage, and the account of it: whatever is left out of a result is named.
//!
//! Refusals and failures of the system are no damage and end the work under every policy.

use std::fmt;

use pagemill_cluster::{Damage, Error as ClusterError};
use pagemill_format::{BlockNumber, Error as FormatError, ErrorKind as FormatErrorKind};
use pagemill_io::{ErrorKind, ForkFiles, Spool};
use pagemill_stream::ScanOrder;

use crate::error::{Error, Result};

/// Whether damage ends the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// The first damage is an error.
    #[default]
    Stop,
    /// What is damaged is left out and accounted for.
    Skip,
}

/// What was left out because it was damaged, in the order it was met. The account of a table that
/// is damaged all over takes no more memory than any other.
#[derive(Debug, Default)]
pub struct DamageLog {
    policy: OnDamage,
    /// One loss a line: the block, or 0, a tab, and the text.
    found: Spool,
}

impl DamageLog {
    /// An empty log.
    pub fn new(policy: OnDamage) -> Self {
        Self { policy, found: Spool::default() }
    }

    /// The policy it was made with.
    pub fn policy(&self) -> OnDamage {
        self.policy
    }

    /// How many losses were noted.
    pub fn len(&self) -> u64 {
        self.found.len()
    }

    /// True when nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What was lost, each with its place.
    ///
    /// # Errors
    /// When the account cannot be read back, also in place of a loss.
    pub fn losses(&self) -> Result<impl Iterator<Item = Result<String>> + '_> {
        let text = |line: String| line.split_once('\t').map(|(_, text)| text.to_owned());
        let lines = self.lines()?;
        Ok(lines.map(move |line| line.map(|line| text(line).unwrap_or_default())))
    }

    fn lines(&self) -> Result<impl Iterator<Item = Result<String>> + '_> {
        let lines = self.found.lines().map_err(Error::Output)?;
        Ok(lines.map(|line| line.map_err(Error::Output)))
    }

    fn push(&mut self, line: &str) -> Result<()> {
        self.found.push(line).map_err(Error::Output)
    }

    /// Takes note of damage.
    ///
    /// # Errors
    /// The damage itself, where it ends the work; when no note can be taken.
    #[cold]
    pub fn report(&mut self, damage: Damage) -> Result<()> {
        match self.policy {
            OnDamage::Stop => Err(ClusterError::from(damage).into()),
            OnDamage::Skip => {
                let block = damage.block.map_or(0, |(_, block)| block.0);
                self.push(&format!("{block}\t{damage}"))
            }
        }
    }

    /// Adds what another log, of later blocks, found.
    ///
    /// # Errors
    /// When an account cannot be read back or written.
    pub fn append(&mut self, later: &Self) -> Result<()> {
        later.lines()?.try_for_each(|line| self.push(&line?))
    }

    /// Adds what several logs found, each of which is in the order of one scan, in that order.
    ///
    /// # Errors
    /// When an account cannot be read back or written.
    pub(crate) fn merge(&mut self, logs: &[Self], order: ScanOrder) -> Result<()> {
        let sources = logs.iter().map(Self::lines);
        let mut sources = sources.collect::<Result<Vec<_>>>()?;
        let mut heads = Vec::new();
        for source in &mut sources {
            heads.push(source.next().transpose()?);
        }
        let block = |line: &String| line.split_once('\t').and_then(|(n, _)| n.parse::<u32>().ok());
        let rank = |line: &String| block(line).map(|block| order.rank(BlockNumber(block)));
        loop {
            let pending = heads.iter_mut().zip(&mut sources).filter(|(head, _)| head.is_some());
            let Some((head, source)) = pending.min_by_key(|(head, _)| head.as_ref().map(rank))
            else {
                return Ok(());
            };
            if let Some(line) = std::mem::replace(head, source.next().transpose()?) {
                self.push(&line)?;
            }
        }
    }
}

/// The damage that an error tells of, or the error itself when it is of another kind.
pub(crate) fn damage_of(error: ClusterError) -> Result<Damage> {
    match error {
        ClusterError::Damage(damage) => Ok(*damage),
        ClusterError::Io(error) => read_damage(error),
        other => Err(Error::Cluster(other)),
    }
}

/// A block that cannot be read is lost as much as one that is damaged. Not so where no device said so: what a store refuses, or a network
/// does not bring, may be there the next time.
pub(crate) fn read_damage(error: pagemill_io::Error) -> Result<Damage> {
    let is_of_system = match error.kind() {
        ErrorKind::Io(error) => error.raw_os_error().is_some(),
        _ => true,
    };
    match (error.fork(), error.block()) {
        (Some(fork), Some(block)) if is_of_system => {
            Ok(Damage::in_block(error.path(), fork, block, error.kind().to_string()))
        }
        _ => Err(ClusterError::Io(error).into()),
    }
}

/// What damage a value error tells of: its own, or that of the TOAST value or name it led to.
pub(crate) fn value_damage(error: FormatError) -> Result<ValueDamage> {
    match error.into_kind() {
        FormatErrorKind::Lookup(source) => match source.downcast::<ClusterError>() {
            Ok(error) => Ok(ValueDamage::Elsewhere(Box::new(damage_of(*error)?))),
            Err(source) => {
                Ok(ValueDamage::Here(FormatError::of_kind(FormatErrorKind::Lookup(source))))
            }
        },
        own => Ok(ValueDamage::Here(FormatError::of_kind(own))),
    }
}

/// The error that a value's error is to whoever reads values: what the lookups met as it was, and damage of the value.
pub fn value_error(error: FormatError) -> Error {
    match value_damage(error) {
        Ok(ValueDamage::Elsewhere(damage)) => ClusterError::from(*damage).into(),
        Ok(ValueDamage::Here(error)) => Error::Value(error),
        Err(error) => error,
    }
}

/// Where a value's damage lies.
pub(crate) enum ValueDamage {
    /// In the tuple.
    Here(FormatError),
    /// In what the tuple points to.
    Elsewhere(Box<Damage>),
}

impl fmt::Display for ValueDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(error) => error.fmt(f),
            Self::Elsewhere(damage) => damage.fmt(f),
        }
    }
}

/// The file damage that sizes alone give away, for every finding of [`ForkFiles::damage`].
pub(crate) fn file_damage(files: &ForkFiles) -> Vec<Damage> {
    files.damage().iter().map(|found| Damage::in_file(&found.path, found.finding())).collect()
}

#[cfg(test)]
mod tests {
    use pagemill_format::Fork;

    use super::*;

    fn loss(block: u32, what: &str) -> Damage {
        Damage::in_block("base/5/16384", Fork::Main, BlockNumber(block), what)
    }

    fn texts(log: &DamageLog) -> Vec<String> {
        log.losses().unwrap().collect::<Result<_>>().unwrap()
    }

    #[test]
    fn a_million_losses_are_all_told() {
        let mut log = DamageLog::new(OnDamage::Skip);
        for block in 0..1_000_000 {
            log.report(loss(block, "x")).unwrap();
        }
        assert_eq!(log.len(), 1_000_000);
        let told = (0..).zip(log.losses().unwrap());
        let mut last = 0;
        for (block, text) in told {
            last = block;
            assert_eq!(text.unwrap(), format!("base/5/16384: fork main, block {block}: x"));
        }
        assert_eq!(last, 999_999);
    }

    #[test]
    fn logs_of_several_threads_come_together_in_the_order_of_blocks() {
        let mut logs = [(); 3].map(|()| DamageLog::new(OnDamage::Skip));
        for (log, block) in [(0, 2), (0, 2), (2, 1), (1, 10), (2, 11), (0, 100)] {
            logs[log].report(loss(block, &format!("found by {log}"))).unwrap();
        }
        let mut all = DamageLog::new(OnDamage::Skip);
        all.report(Damage::in_file("base/5/16384.1", "the file is missing\nand gone")).unwrap();
        all.merge(&logs, ScanOrder::default()).unwrap();
        let places = texts(&all);
        assert_eq!(places.len(), 7);
        assert_eq!(places[0], "base/5/16384.1: the file is missing and gone");
        let ends = ["1: found by 2", "2: found by 0", "2: found by 0", "10: found by 1"];
        for (place, end) in places[1..].iter().zip(ends) {
            assert!(place.ends_with(&format!("block {end}")), "{place}");
        }
        let mut twice = DamageLog::new(OnDamage::Skip);
        twice.append(&all).unwrap();
        assert_eq!(texts(&twice), places);
    }

    #[test]
    fn logs_of_several_threads_come_together_in_the_order_of_the_scan() {
        let mut logs = [(); 2].map(|()| DamageLog::new(OnDamage::Skip));
        for (log, block) in [(0, 5), (0, 2), (1, 4), (1, 3), (0, 1), (1, 9), (0, 7)] {
            logs[log].report(loss(block, "x")).unwrap();
        }
        let mut all = DamageLog::new(OnDamage::Skip);
        let order = ScanOrder { backward: true, start: Some(BlockNumber(5)) };
        all.merge(&logs, order).unwrap();
        let blocks: Vec<_> =
            texts(&all).iter().map(|text| text[text.len() - 4..].to_owned()).collect();
        assert_eq!(
            blocks,
            ["5: x", "4: x", "3: x", "2: x", "1: x", "9: x", "7: x"].map(|t| t.to_owned())
        );
    }

    #[test]
    fn damage_that_ends_the_work_is_not_noted() {
        let mut log = DamageLog::new(OnDamage::Stop);
        assert!(log.report(loss(1, "x")).unwrap_err().to_string().ends_with("block 1: x"));
        assert!(log.is_empty());
    }
}
