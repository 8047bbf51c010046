//! How a cluster is made: the options of `initdb`, and the end of `postgresql.conf`.
//!
//! Invariant: what is not said here is as `initdb` of the version has it, but that nothing is synced and no TCP port is opened.

use crate::server::SUPERUSER;

/// From this major version on checksums are on unless somebody says otherwise.
const CHECKSUMS_BY_DEFAULT: u32 = 18;

/// How a cluster is made.
#[derive(Debug, Clone, Copy)]
pub struct InitdbOptions<'a> {
    /// Data checksums on or off; `None` leaves it to the version's `initdb`.
    pub data_checksums: Option<bool>,
    /// The encoding of the template databases.
    pub encoding: &'a str,
    /// Their locale.
    pub locale: &'a str,
    /// Further flags of `initdb`.
    pub flags: &'a [String],
    /// Further lines for `postgresql.conf`.
    pub settings: &'a str,
}

impl Default for InitdbOptions<'_> {
    fn default() -> Self {
        Self { data_checksums: None, encoding: "UTF8", locale: "C", flags: &[], settings: "" }
    }
}

impl InitdbOptions<'_> {
    /// The words for `initdb` of this major version.
    pub(crate) fn arguments(&self, major: u32) -> Vec<String> {
        let mut words: Vec<String> =
            ["-A", "trust", "-U", SUPERUSER, "--no-sync", "--no-instructions"]
                .map(Into::into)
                .into();
        words.push(format!("--encoding={}", self.encoding));
        words.push(format!("--locale={}", self.locale));
        match self.data_checksums {
            Some(true) => words.push("--data-checksums".into()),
            // Older versions do not know the flag, and have none unless asked.
            Some(false) if major >= CHECKSUMS_BY_DEFAULT => {
                words.push("--no-data-checksums".into());
            }
            _ => {}
        }
        words.extend(self.flags.iter().cloned());
        words
    }

    /// What is put at the end of `postgresql.conf`.
    pub(crate) fn configuration(&self) -> String {
        format!("\nlisten_addresses = ''\n{}\n", self.settings.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_said_to_be_off_where_a_version_would_have_them_on() {
        let words = |data_checksums, major| {
            let options = InitdbOptions { data_checksums, ..Default::default() };
            options.arguments(major).into_iter().find(|word| word.contains("checksums"))
        };
        assert_eq!(words(None, 18), None);
        assert_eq!(words(Some(false), 17), None);
        assert_eq!(words(Some(false), 18).as_deref(), Some("--no-data-checksums"));
        assert_eq!(words(Some(true), 14).as_deref(), Some("--data-checksums"));
    }
}
