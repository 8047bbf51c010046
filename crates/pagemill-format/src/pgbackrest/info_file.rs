//! [`InfoFile`]: sections of keys with values in JSON, sealed by a checksum: the form of `backup.info`, `archive.info` and manifests.
//!
//! A line is `[section]` or `key=value`. A key may have `=` in it: the value begins behind the first one from which on the line is
//! JSON. The checksum is that of one JSON text made of all sections, but for the line that holds it.
//!
//! Invariant: what is handed out was under the checksum.
//!
//! Source: `infoNewLoad` in `src/info/info.c`, `iniValueNext` in `src/common/ini.c`, pgBackRest 2.59.

use serde::Deserialize;
use serde::de::IgnoredAny;
use sha1::{Digest as _, Sha1};

use super::cipher::{Passphrase, is_encrypted};
use crate::error::{Error, Result};

/// The format of repositories that is known (`REPOSITORY_FORMAT`).
const FORMAT: u64 = 5;

/// A file of this form, its checksum verified.
#[derive(Debug)]
pub(super) struct InfoFile<'a> {
    structure: &'static str,
    entries: Vec<Entry<'a>>,
}

/// A key with its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) section: &'a str,
    pub(super) key: &'a str,
    /// JSON.
    value: &'a str,
    structure: &'static str,
    /// Where the line begins.
    offset: usize,
}

impl<'a> InfoFile<'a> {
    /// Takes a file apart.
    ///
    /// # Errors
    /// Unsupported: it is encrypted, or of another format. Corrupt: not of this form, or the checksum is wrong.
    pub(super) fn parse(structure: &'static str, bytes: &'a [u8]) -> Result<Self> {
        if is_encrypted(bytes) {
            return Err(Error::unsupported(structure, "it is encrypted (by repo-cipher-type)"));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Error::corrupt(structure, error.valid_up_to(), "not UTF-8"))?;
        let file = Self { structure, entries: entries(structure, text)? };
        file.check_format()?;
        file.check_sum()?;
        Ok(file)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter()
    }

    /// The value of a key, if there is one.
    pub(super) fn value<T: Deserialize<'a>>(&self, section: &str, key: &str) -> Result<Option<T>> {
        let mut found = self.entries.iter().filter(|entry| entry.section == section);
        found.find(|entry| entry.key == key).map(Entry::value).transpose()
    }

    /// The value of a key that has to be there.
    pub(super) fn required<T: Deserialize<'a>>(&self, section: &str, key: &str) -> Result<T> {
        self.value(section, key)?.ok_or_else(|| self.wrong(format!("no {key} in [{section}]")))
    }

    /// What the files are encrypted by that this one tells of, if they are.
    pub(super) fn passphrase(&self) -> Result<Option<Passphrase>> {
        let text: Option<String> = self.value("cipher", "cipher-pass")?;
        Ok(text.map(|text| Passphrase::new(text.into_bytes())))
    }

    /// What is wrong with the file as a whole.
    pub(super) fn wrong(&self, what: String) -> Error {
        Error::corrupt(self.structure, 0, what)
    }

    /// Before the checksum: how that is made, the format says.
    fn check_format(&self) -> Result<()> {
        match self.required("backrest", "backrest-format")? {
            FORMAT => Ok(()),
            other => {
                let what = format!("repository format {other}; format {FORMAT} is read");
                Err(Error::unsupported(self.structure, what))
            }
        }
    }

    fn check_sum(&self) -> Result<()> {
        let said: String = self.required("backrest", CHECKSUM)?;
        let mut sum = Sha1::new();
        let mut section = "";
        sum.update("{");
        for entry in self.entries.iter().filter(|entry| !entry.is_checksum()) {
            if entry.section != section {
                sum.update(if section.is_empty() { "\"" } else { "},\"" });
                sum.update(entry.section);
                sum.update("\":{");
                section = entry.section;
            } else {
                sum.update(",");
            }
            // A string always has a JSON form.
            sum.update(serde_json::to_string(entry.key).unwrap_or_default());
            sum.update(":");
            sum.update(entry.value);
        }
        sum.update("}}");
        match super::digits(sum) {
            found if found == said => Ok(()),
            found => Err(self.wrong(format!("its checksum is {found}, and it says {said}"))),
        }
    }
}

const CHECKSUM: &str = "backrest-checksum";

impl<'a> Entry<'a> {
    fn is_checksum(&self) -> bool {
        self.section == "backrest" && self.key == CHECKSUM
    }

    /// The value as what it has to be.
    pub(super) fn value<T: Deserialize<'a>>(&self) -> Result<T> {
        serde_json::from_str(self.value)
            .map_err(|error| self.wrong(format!("the value of {}: {error}", self.key)))
    }

    /// What is wrong with the line.
    pub(super) fn wrong(&self, what: String) -> Error {
        Error::corrupt(self.structure, self.offset, what)
    }
}

fn entries<'a>(structure: &'static str, text: &'a str) -> Result<Vec<Entry<'a>>> {
    let mut entries = Vec::new();
    let (mut section, mut offset) = ("", 0);
    for line in text.split('\n') {
        let wrong = |what: &'static str| Error::corrupt(structure, offset, what);
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        } else if !line.is_empty() {
            let (key, value) =
                key_and_value(line).ok_or_else(|| wrong("neither a section nor key=value"))?;
            if section.is_empty() || key.is_empty() {
                return Err(wrong("a value without a key, or outside of the sections"));
            }
            entries.push(Entry { section, key, value, structure, offset });
        }
        offset += line.len() + 1;
    }
    Ok(entries)
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let places = line.match_indices('=');
    let mut splits = places.map(|(at, _)| (&line[..at], &line[at + 1..]));
    splits.find(|(_, value)| serde_json::from_str::<IgnoredAny>(value).is_ok())
}
