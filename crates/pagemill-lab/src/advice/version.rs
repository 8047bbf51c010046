//! The version of PostgreSQL that advice is for: a major one, and a minor one where somebody names it.
//!
//! Invariant: the major version is one that is known here. Minor versions matter to settings that came with one.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::Error;

/// A version, as `17` or `17.8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    major: u32,
    minor: Option<u32>,
}

impl Version {
    /// The oldest major version that is known.
    pub const OLDEST: u32 = 14;
    /// The newest.
    pub const NEWEST: u32 = 18;

    /// The newest version that is known, whatever its minor one.
    pub fn newest() -> Self {
        Self { major: Self::NEWEST, minor: None }
    }

    /// The major version.
    pub fn major(self) -> u32 {
        self.major
    }

    /// The minor version, if it was named.
    pub fn minor(self) -> Option<u32> {
        self.minor
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownVersion { name: text.into() };
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if plain { digits.parse::<u32>().map_err(|_| unknown()) } else { Err(unknown()) }
        };
        let (major, minor) = match text.split_once('.') {
            Some((major, minor)) => (number(major)?, Some(number(minor)?)),
            None => (number(text)?, None),
        };
        match (Self::OLDEST..=Self::NEWEST).contains(&major) {
            true => Ok(Self { major, minor }),
            false => Err(unknown()),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            Some(minor) => write!(f, "{}.{minor}", self.major),
            None => write!(f, "{}", self.major),
        }
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_major_ones_or_have_a_minor_one() {
        for text in ["14", "17.8", "18.0"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        for text in ["13", "19", "9.6", "", "17.", ".8", "+17", "17.8.1", "18beta1", "99999999999"]
        {
            let error = text.parse::<Version>().unwrap_err();
            assert!(error.is_usage() && error.to_string().contains("14 to 18"), "{text}: {error}");
        }
    }
}
