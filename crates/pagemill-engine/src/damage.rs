//! What to do on damage, and the account of it: whatever is left out of a result is named.
//!
//! Refusals and failures of the system are no damage and end the work under every policy.

use pagemill_cluster::{Damage, Error as ClusterError};
use pagemill_format::Error as FormatError;
use pagemill_io::ForkFiles;

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

/// What was left out because it was damaged, in the order it was met.
#[derive(Debug, Default)]
pub struct DamageLog {
    policy: OnDamage,
    found: Vec<Damage>,
}

impl DamageLog {
    /// An empty log.
    pub fn new(policy: OnDamage) -> Self {
        Self { policy, found: Vec::new() }
    }

    /// The policy it was made with.
    pub fn policy(&self) -> OnDamage {
        self.policy
    }

    /// What was found.
    pub fn found(&self) -> &[Damage] {
        &self.found
    }

    /// Takes note of damage.
    ///
    /// # Errors
    /// The damage itself, where it ends the work.
    pub fn report(&mut self, damage: Damage) -> Result<()> {
        match self.policy {
            OnDamage::Stop => Err(ClusterError::from(damage).into()),
            OnDamage::Skip => {
                self.found.push(damage);
                Ok(())
            }
        }
    }

    /// Adds what another log, of later blocks, found.
    pub fn append(&mut self, mut later: Self) {
        self.found.append(&mut later.found);
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

/// A block that cannot be read is lost as much as one that is damaged.
pub(crate) fn read_damage(error: pagemill_io::Error) -> Result<Damage> {
    match (error.fork(), error.block()) {
        (Some(fork), Some(block)) => {
            Ok(Damage::in_block(error.path(), fork, block, error.kind().to_string()))
        }
        _ => Err(ClusterError::Io(error).into()),
    }
}

/// What damage a value error tells of: its own, or that of the TOAST value or name it led to.
pub(crate) fn value_damage(error: FormatError) -> Result<ValueDamage> {
    match error {
        FormatError::Lookup(source) => match source.downcast::<ClusterError>() {
            Ok(error) => Ok(ValueDamage::Elsewhere(Box::new(damage_of(*error)?))),
            Err(source) => Ok(ValueDamage::Here(source.to_string())),
        },
        own => Ok(ValueDamage::Here(own.to_string())),
    }
}

/// Where a value's damage lies.
pub(crate) enum ValueDamage {
    /// In the tuple.
    Here(String),
    /// In what the tuple points to.
    Elsewhere(Box<Damage>),
}

/// The file damage that sizes alone give away, for every finding of [`ForkFiles::damage`].
pub(crate) fn file_damage(files: &ForkFiles) -> Vec<Damage> {
    files.damage().iter().map(|found| Damage::in_file(&found.path, found.finding())).collect()
}
